"""Statistics over seeds: equal to hand-computed numbers and to rliable's, and right as often as they claim."""

import math

import numpy as np
import pytest

from bench.coverage import DISTRIBUTIONS, coverage, false_alarms, power
from td3.results import (
    FIGURES,
    bootstrap_interval,
    difference,
    holm,
    iqm,
    mean,
    median,
    optimality_gap,
    performance_profile,
    permutation_test,
    probability_of_improvement,
    profile_band,
    seeds_needed,
)
from td3.results.published import ENDS, figures_for
from td3.results.statistics import smallest_p
from td3.results.verdicts import COVERAGE

# Runs × environments, as rliable has them; five seeds of one setting and four of another.
X = np.array([[0.52, 1.31, -0.2], [0.61, 1.02, 0.1], [0.44, 1.75, 0.4], [0.97, 1.11, 0.1], [0.58, 0.2, -0.6]])
Y = np.array([[0.41, 1.30, -0.1], [0.61, 0.92, 0.0], [0.33, 1.05, 0.3], [0.37, 1.31, 0.1]])
THRESHOLDS = [-0.5, 0.0, 0.5, 1.0, 1.5]
AGGREGATES = {iqm: "aggregate_iqm", mean: "aggregate_mean", median: "aggregate_median"}
AGGREGATES[optimality_gap] = "aggregate_optimality_gap"


# --- By hand ----------------------------------------------------------------------------------------------------------


def test_the_interquartile_mean_leaves_out_a_quarter_at_each_end():
    assert iqm([1.0, 2.0, 3.0, 100.0]) == 2.5
    assert iqm([5.0, 1.0, 9.0]) == 5.0  # a quarter of three is no run
    assert iqm([1, 2, 3, 4, 5, 6, 7, -1000]) == pytest.approx((2 + 3 + 4 + 5) / 4)
    assert iqm([[0.0, 10.0], [2.0, 4.0]]) == 3.0  # of all runs together


def test_mean_and_median_are_over_environments_and_the_gap_counts_no_more_than_the_optimum():
    scores = [[1.0, 3.0], [10.0, 30.0], [0.0, 0.5]]
    assert mean(scores) == pytest.approx((2 + 20 + 0.25) / 3)
    assert median(scores) == 2.0
    assert median([1.0, 2.0, 30.0]) == 2.0  # one environment: of its seeds
    assert optimality_gap([[0.5, 2.0], [0.9, 1.0]]) == pytest.approx((0.5 + 0 + 0.1 + 0) / 4)


def test_a_run_that_beats_counts_one_and_a_tie_one_half():
    assert probability_of_improvement([3.0, 1.0], [2.0, 1.0]) == pytest.approx((1 + 1 + 0 + 0.5) / 4)
    assert probability_of_improvement([[1.0], [0.0]], [[0.0], [5.0]]) == 0.5  # averaged over environments


def test_a_profile_is_the_share_of_runs_above_each_threshold():
    assert performance_profile([[1.0, 2.0], [3.0]], [0.0, 1.0, 2.5, 3.0]).tolist() == [1.0, 2 / 3, 1 / 3, 0.0]
    low, high = profile_band([[1.0, 2.0, 3.0]], [0.0, 1.5, 3.0])
    assert (low.tolist(), high.tolist()) == ([1.0, 0.0, 0.0], [1.0, 1.0, 0.0])


def test_a_bootstrap_of_two_seeds_has_the_ends_that_counting_gives():
    # Of 0 and 1 the mean of a resample is 0, 1/2, 1/2 or 1: the lowest and the highest each with a quarter.
    assert bootstrap_interval(mean, [0.0, 1.0]) == (0.0, 1.0)
    low, high = bootstrap_interval(mean, [[0.0] * 9 + [1.0]], resamples=50_000)
    assert (low, high) == (0.0, pytest.approx(0.3))  # binomial(10, 0.1) / 10: 2.5 % are 0, 97.5 % at most 3


def test_the_same_scores_have_the_same_interval_and_another_seed_another_one():
    scores = [[3.1, 4.1, 5.9, 2.6, 5.3], [5.8, 9.7, 9.3, 2.3, 8.4]]
    first = bootstrap_interval(mean, scores, resamples=500)
    assert first == bootstrap_interval(mean, scores, resamples=500)
    assert first != bootstrap_interval(mean, scores, resamples=500, seed=1)


def test_seeds_are_resampled_within_their_environment():
    low, high = bootstrap_interval(mean, [[0.0, 0.0, 0.0], [100.0, 100.0, 100.0]])
    assert (low, high) == (50.0, 50.0)  # no resample mixes the two


def test_a_large_bootstrap_is_made_in_blocks_and_holds_the_same_truth():
    rng = np.random.default_rng(0)
    scores, others = rng.normal(1.0, 1.0, 200), rng.normal(0.0, 1.0, 200)
    low, high = bootstrap_interval(probability_of_improvement, scores, others, resamples=300)
    assert 0.68 < low < probability_of_improvement(scores, others) < high < 0.84


def test_the_permutation_test_counts_all_splits():
    assert permutation_test([4.0, 5.0, 6.0], [1.0, 2.0, 3.0]) == pytest.approx(2 / 20)
    assert permutation_test([5, 6, 7, 8], [1, 2, 3, 4]) == pytest.approx(2 / 70)
    assert permutation_test([1.0, 2.0], [1.0, 2.0]) == 1.0
    assert permutation_test([1.0, 1.0], [1.0, 1.0]) == 1.0
    # Two environments have 20 × 20 splits together, and only the seen one and its mirror image are as far apart.
    both = permutation_test([[4.0, 5.0, 6.0], [40.0, 50.0, 60.0]], [[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
    assert both == pytest.approx(2 / 400)


def test_a_permutation_test_with_many_seeds_draws_splits_and_is_never_zero():
    assert permutation_test(np.arange(20) + 100.0, np.arange(20.0), draws=999) == 1 / 1_000
    rng = np.random.default_rng(1)
    scores, others = rng.normal(0.5, 1.0, 8), rng.normal(0.0, 1.0, 8)  # 12,870 splits
    exact = permutation_test(scores, others)
    assert permutation_test(scores, others, draws=5_000) == pytest.approx(exact, abs=0.02)


@pytest.mark.parametrize("sizes", [[(1, 1)], [(2, 2)], [(3, 3)], [(4, 4)], [(3, 4)], [(2, 2), (3, 3)]])
def test_no_test_gives_less_than_the_smallest_p(sizes):
    apart = [(np.arange(one) + 100.0, np.arange(other) * 1.0) for one, other in sizes]
    found = permutation_test([one for one, _ in apart], [other for _, other in apart])
    assert smallest_p(sizes) == pytest.approx(found)
    assert (found > 0.05) == (sizes in ([(1, 1)], [(2, 2)], [(3, 3)]))


def test_holm_multiplies_by_the_number_of_those_that_are_left():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_seeds_needed_follow_from_the_spread_and_the_difference():
    # Means 1 apart with standard deviation 1: 2 · (1.96 + 0.8416)² + 1.96² / 4 = 16.66.
    assert seeds_needed([0.0, math.sqrt(2)], [1.0, 1.0 + math.sqrt(2)]) == 17
    assert seeds_needed([0.0, 0.1], [100.0, 100.1]) == 4  # with fewer no difference can show
    assert seeds_needed([0.0, 0.1], [100.0, 100.1], comparisons=10) == 6
    assert seeds_needed([1.0, 2.0], [1.0, 2.0]) is None
    assert seeds_needed([1.0], [2.0, 3.0]) is None


# --- rliable ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statistic", "of_x", "of_y"),
    [
        (iqm, 0.5377777777777778, 0.49),
        (median, 0.624, 0.43),
        (mean, 0.554, 0.55),
        (optimality_gap, 0.5253333333333333, 0.505),
    ],
)
def test_aggregates_are_the_numbers_that_rliable_gave(statistic, of_x, of_y):
    assert statistic(X.T) == pytest.approx(of_x, abs=1e-12)
    assert statistic(Y.T) == pytest.approx(of_y, abs=1e-12)


def test_probability_and_profile_are_the_numbers_that_rliable_gave():
    assert probability_of_improvement(X.T, Y.T) == pytest.approx(0.6, abs=1e-12)
    profile = [0.9333333333, 0.8666666667, 0.5333333333, 0.2666666667, 0.0666666667]
    assert performance_profile(X.T, THRESHOLDS) == pytest.approx(profile, abs=1e-9)


@pytest.mark.parametrize(
    ("statistic", "ends"),
    [
        (iqm, (0.342222, 0.723333)),
        (mean, (0.364, 0.732)),
        (optimality_gap, (0.388, 0.677333)),
        (median, (0.49, 0.802)),
    ],
)
def test_intervals_are_those_that_rliable_gave_with_200_000_resamples(statistic, ends):
    assert bootstrap_interval(statistic, X.T, resamples=100_000) == pytest.approx(ends, abs=0.004)


def test_the_interval_of_the_probability_is_that_of_rliable():
    ends = bootstrap_interval(probability_of_improvement, X.T, Y.T, resamples=20_000)
    assert ends == pytest.approx((0.383333, 0.808333), abs=0.01)


@pytest.fixture
def rliable():
    """The library, where it can be imported; its dependency arch does not follow every pandas."""
    try:
        from rliable import library, metrics
    except Exception as problem:
        pytest.skip(f"rliable cannot be imported: {problem}")
    return library, metrics


@pytest.mark.parametrize("shape", [(3, 1), (5, 4), (10, 7)])
def test_point_estimates_equal_those_of_rliable(rliable, shape):
    library, metrics = rliable
    rng = np.random.default_rng(shape)
    scores, others = rng.normal(size=shape).round(1), rng.normal(size=(4, shape[1])).round(1)  # with ties
    for statistic, name in AGGREGATES.items():
        if statistic is median and shape[1] == 1:
            continue  # rliable gives the mean of a single environment
        assert statistic(scores.T) == pytest.approx(getattr(metrics, name)(scores), abs=1e-12)
    theirs = metrics.probability_of_improvement(scores, others)
    assert probability_of_improvement(scores.T, others.T) == pytest.approx(theirs, abs=1e-12)
    profile = library.score_distributions(scores, np.array(THRESHOLDS))
    assert performance_profile(scores.T, THRESHOLDS) == pytest.approx(profile, abs=1e-12)


def test_intervals_equal_those_of_rliable_on_the_same_resamples(rliable):
    library, metrics = rliable
    number = 300
    for statistic, name in AGGREGATES.items():
        np.random.seed(7)
        _, theirs = library.get_interval_estimates(
            {"x": X}, lambda scores, name=name: np.array([getattr(metrics, name)(scores)]), reps=number
        )
        np.random.seed(7)
        resamples = [data[0][0] for data in library.StratifiedBootstrap(X).bootstrap(number)]
        strata = list(np.stack(resamples).transpose(2, 0, 1))  # an environment each: resamples × seeds
        ends = np.quantile(statistic(strata), [0.025, 0.975])
        assert ends == pytest.approx(theirs["x"].ravel(), abs=1e-6)


# --- As often right as they claim -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_the_interval_holds_the_truth_as_often_as_is_said(seeds):
    held = coverage(DISTRIBUTIONS["normal"], seeds, studies=1_500, resamples=800)
    assert held == pytest.approx([share / 100 for share in COVERAGE[seeds]], abs=0.025)


def test_the_interval_of_thirty_seeds_holds_the_truth_in_95_of_100_studies():
    for name in ("normal", "one in five fails"):
        of_iqm, of_mean = coverage(DISTRIBUTIONS[name], 30, studies=1_000, resamples=800)
        assert of_iqm == pytest.approx(0.95, abs=0.02) and of_mean == pytest.approx(0.94, abs=0.025)


def test_equal_settings_are_distinguished_in_one_of_twenty_studies_where_intervals_would_in_three():
    test, interval = false_alarms(DISTRIBUTIONS["one in five fails"], 5, studies=600)
    assert test <= 0.05 + 0.02 and interval > 0.10
    assert false_alarms(DISTRIBUTIONS["normal"], 3, studies=100)[0] == 0.0


def test_as_many_seeds_as_are_needed_show_the_difference_in_four_of_five_studies():
    needed, found = power(1.5, studies=300)
    assert needed == 8 and found == pytest.approx(0.8, abs=0.06)


# --- Published figures ------------------------------------------------------------------------------------------------


def test_published_figures_have_a_source_and_come_with_the_last_step_up_to_the_one_asked_for():
    assert len(FIGURES) == 52
    assert all(figure.source.origin and figure.source.version[0] == "v" for figure in FIGURES)
    assert figures_for("HalfCheetah-v5", 99_999) == []
    at_100k = {figure.source.label: figure.mean for figure in figures_for("HalfCheetah-v5", 250_000)}
    assert at_100k == {"author's curves of 2018": 5514, "author's current code": 4704, "Tianshou": 5336}
    at_1m = figures_for("Walker2d-v4", 1_000_000)
    assert [(figure.step, figure.mean) for figure in at_1m] == [
        (10**6, 4413),
        (10**6, 3842),
        (10**6, 4058),
        (10**6, 3946),
    ]
    assert figures_for("Pendulum-v1", 10**6) == figures_for("mine:Ant", 10**6) == []


def test_the_ends_of_the_published_scale_are_those_of_the_papers_baseline():
    published = {figure.task: figure.mean for figure in FIGURES if figure.source.label == "TD7 paper"}
    assert {task: high for task, (_, high) in ENDS.items()} == published


def test_the_difference_is_that_of_the_means_over_environments():
    assert difference([[1.0, 3.0], [4.0]], [[1.0], [1.0]]) == pytest.approx(3.0 - 1.0)
