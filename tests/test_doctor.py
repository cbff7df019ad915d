"""The diagnosis: the right finding first where something is broken, none where nothing is, and no bit of it changed."""

import json
import math
from functools import partial

import numpy as np
import pytest
import torch
from refusals import refusal
from runs import contents
from sessions import bytes_of

import td3
from bench.broken_envs import FAULTS, Twin, settings_of
from bench.broken_runs import Dreamer, Saturated
from td3.diagnosis import RULES, Evidence, findings
from td3.diagnosis.evidence import numbers
from td3.environments import make_envs
from td3.health import measure_health
from td3.probing import TooSlow, probe
from td3.views import cli
from td3.views.findings import lines_of

QUICK = {
    "hidden": (32, 32),
    "batch_size": 64,
    "warmup_steps": 1_000,
    "steps": 6_000,
    "eval_every": 1_000,
    "eval_episodes": 3,
    "film": False,
    "record_updates": False,
    "checkpoint_every": 0,
    "threads": 1,
}
MILD = {"coarse_evaluation", "plateau"}


def trained(run=None, learner=None, **settings):
    """Trains; returns the findings it announced, by name with their steps, and those that stand out at the end."""
    training = td3.train(td3.Config(**{**QUICK, **settings}), run, learner=learner)
    announced = {}
    for event in training:
        if isinstance(event, td3.Found):
            assert event.finding.name not in announced, "announced twice"
            announced[event.finding.name] = event.step
    return announced, findings(training.session.evidence)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "healthy"
    return run, trained(run, **settings_of())


def test_a_healthy_run_has_no_findings_at_any_tenth_of_its_way(healthy):
    run, (announced, at_the_end) = healthy
    assert announced == {}
    assert at_the_end == []
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    evidence, seen = Evidence(td3.Config(**{**QUICK, **settings_of()})), []
    for row, after in zip(rows, [*rows[1:], {"step": math.inf}], strict=True):
        evidence.add(row)
        if after["step"] // 600 > row["step"] // 600:
            seen += [finding.name for finding in findings(evidence)]
    assert set(seen) <= MILD


ANNOUNCED = {rule.name for rule in RULES if rule.announced}
TRAINED_FAULTS = [fault for fault in FAULTS if fault != "never ends"]


@pytest.mark.parametrize("fault", TRAINED_FAULTS)
def test_a_broken_environment_is_found_first_and_early(fault):
    wanted = FAULTS[fault].finding
    announced, at_the_end = trained(**{"steps": 3_000, **settings_of(fault)})
    assert at_the_end[0].name == wanted
    if wanted in ANNOUNCED:
        assert announced[wanted] <= 2_000


def test_an_environment_that_never_ends_is_found_while_training():
    announced, at_the_end = trained(**settings_of("never ends"), eval_every=0, steps=10_000, updates_per_step=0.01)
    assert announced == {"never_ends": 10_000}
    assert [finding.name for finding in at_the_end] == ["never_ends"]


def test_an_evaluation_that_never_ends_is_found_in_the_folder_it_left(tmp_path, monkeypatch):
    monkeypatch.setattr("td3.evaluation.LONGEST", 500)
    monkeypatch.setattr("td3.reporting.LONGEST", 500)
    with pytest.raises(td3.EnvironmentFailure):
        trained(tmp_path / "run", **settings_of("never ends"))
    (finding,) = td3.diagnose(tmp_path / "run")
    assert finding.name == "never_ends"
    assert finding.numbers["steps"] == 500


SICK = {
    "a learning rate of 1": ({"actor_lr": 1.0, "critic_lr": 1.0, "steps": 8_000}, None, "dead_units"),
    "an actor that begins at an end": ({}, Saturated, "cannot_recover"),
    "targets beyond the rewards": ({"critic_lr": 0.01}, Dreamer, "values_beyond"),
    "one episode an evaluation": ({"eval_episodes": 1}, None, "coarse_evaluation"),
}


@pytest.mark.parametrize("fault", SICK)
def test_a_sick_learner_is_found_first(fault):
    settings, learner, wanted = SICK[fault]
    _, at_the_end = trained(**{**settings_of(), "steps": 6_000, "updates_per_step": 0.2, **settings}, learner=learner)
    assert at_the_end[0].name == wanted


def test_a_run_is_the_same_to_the_bit_with_and_without_its_diagnosis(tmp_path):
    runs = {}
    for diagnose in (True, False):
        training = td3.train(td3.Config(**{**QUICK, **settings_of(), "steps": 2_500, "diagnose": diagnose}))
        metrics = []
        for event in training:
            if isinstance(event, td3.Measured | td3.Evaluated):
                kept = {name: value for name, value in event.metrics.items() if not name.startswith("time/")}
                metrics.append((event.step, kept))
        session = training.session
        streams = [session.replay_rng, session.smoothing_rng, session.collector.rng]
        runs[diagnose] = bytes_of(session), [str(rng.bit_generator.state) for rng in streams], metrics
    assert runs[True] == runs[False]


def test_measuring_changes_nothing_in_networks_that_draw_and_count():
    training = td3.train(td3.Config(**{**QUICK, **settings_of(), "steps": 1_100, "engine": "torch"}))
    for _ in training:
        pass
    learner = training.learner
    learner.actor.layers.insert(1, torch.nn.Dropout(0.5))
    learner.actor.layers.insert(1, torch.nn.BatchNorm1d(32))
    counts, random = learner.actor.layers[1], torch.get_rng_state()
    assert measure_health(learner, 1_000)["health/rows"] == 1_000
    assert (counts.num_batches_tracked.item(), counts.running_mean.abs().max().item()) == (0, 0)
    assert torch.equal(torch.get_rng_state(), random)
    assert all(module.training for module in learner.actor.modules())


def test_a_resumed_run_measures_and_finds_the_same(tmp_path):
    settings = {**QUICK, **settings_of("large rewards"), "steps": 2_400, "checkpoint_every": 700}
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    for _ in td3.train(td3.Config(**settings), whole):
        pass
    for event in td3.train(td3.Config(**settings), stopped):
        if event.step >= 1_500:
            break
    for _ in td3.resume(stopped, env=Twin):
        pass
    arrays, memory, metrics = contents(stopped)
    assert (arrays, memory, metrics) == contents(whole)
    assert [row["finding"]["name"] for row in metrics if "finding" in row] == ["reward_scale"]
    assert sum("health/rows" in row for row in metrics) == 2


def test_diagnose_reads_the_folder_of_a_run_and_says_what_training_said(tmp_path):
    announced, at_the_end = trained(tmp_path / "run", **settings_of("limit as end"), steps=2_000)
    assert td3.diagnose(tmp_path / "run") == at_the_end
    assert announced == {"limit_as_end": 1_000}


def test_a_finding_names_its_number_its_cure_and_the_command_that_shows_it(tmp_path):
    _, (finding, *_) = trained(**settings_of("large rewards"), steps=1_100)
    assert finding.numbers["std"] > 100
    assert finding.advice.startswith(f"Use --reward-scale {finding.numbers['reward_scale']:g} in a new run,")
    number, advice, shown = lines_of([finding], "runs/mine", td3.Config(env_args={"g": 9.0}))
    assert number.startswith("1. Rewards spread widely: their standard deviation is")
    assert advice.strip().startswith("Try first: ")
    assert shown.strip() == "See: td3 check Pendulum-v1 --env-arg g=9.0"


def test_every_rule_has_its_own_name_and_a_place_in_the_document():
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names) >= 20


def health(step, **numbers):
    """A row of a healthy measurement, with some numbers of another kind."""
    row = {
        "step": step,
        "health/rows": 1_000,
        "health/reward_mean": 0.1,
        "health/reward_std": 1.0,
        "health/reward_size": 3.0,
        "health/reward_range": [-60.0, 60.0],  # where rewards are large, they usually are
        "health/reward_ends": [-3.0, 3.0],
        "health/reward_mode": [0.5, 1],
        "health/observation_mean": [0.0, 0.1],
        "health/observation_std": [1.0, 1.2],
        "health/observation_low": [-3.0, -4.0],
        "health/observation_high": [3.0, 4.0],
        "health/residual_variance": 0.1,
        "health/target_std": 10.0,
        "health/q_size": 20.0,
        "health/one_end": 0.4,
        "health/low_end": [0.3, 0.2],
        "health/high_end": [0.4, 0.1],
        "health/action_low": [-1.0, -0.9],
        "health/action_high": [1.0, 0.9],
        "health/actor_gradient": 0.1,
        "health/dead_units": 0.5,
        "health/dead_layers": {"actor, layer 1": 0.5},
    }
    return {**row, **{f"health/{name}": value for name, value in numbers.items()}}


def evaluation(step, mean, std=1.0, episodes=10, **more):
    spread = [mean + std * (-1) ** index for index in range(episodes)]
    row = {"step": step, "eval/mean_return": mean, "eval/std_return": std, "eval/returns": spread}
    return {**row, "eval/lengths": [100] * episodes, **{f"eval/{name}": value for name, value in more.items()}}


def found(rows, **settings):
    """The names of the findings in a record of these rows."""
    evidence = Evidence(td3.Config(**{"warmup_steps": 1_000, "gamma": 0.99, **settings}))
    for row in rows:
        evidence.add(row)
    return [finding.name for finding in findings(evidence, 99)]


EPISODES = [{"step": 100 * n, "rollout/ep_length": 100, "rollout/terminated": False} for n in range(1, 60)]


def healths(count, **numbers):
    return [*EPISODES, *(health(1_000 * step, **numbers) for step in range(2, 2 + count))]


# A rule, rows that are just on its far side, and rows that are just not.
EDGES = {
    "one_action": (
        healths(5, high_end=[0.95, 0.96]),
        healths(4, high_end=[0.95, 0.96]),
    ),
    "cannot_recover": (
        healths(5, high_end=[0.95, 0.96], actor_gradient=0.0),
        healths(5, high_end=[0.95, 0.96], actor_gradient=1e-11),
    ),
    "values_beyond": (healths(3, q_size=361.0), healths(3, q_size=359.0)),
    "critics_explain_nothing": (healths(7, residual_variance=0.71), healths(7, residual_variance=0.69)),
    "dead_units": (healths(3, dead_units=0.96), healths(3, dead_units=0.94)),
    "unused_range": (
        healths(7, action_low=[-1.0, -0.09], action_high=[1.0, 0.1]),
        healths(7, action_low=[-1.0, -0.11], action_high=[1.0, 0.1]),
    ),
    "unscaled_observations": (
        healths(2, observation_mean=[0.0, 100.0]),
        healths(2, observation_mean=[0.0, 90.0]),
    ),
    "constant_observations": (
        healths(2, observation_low=[0.0, -4.0], observation_high=[0.0, 4.0]),
        healths(2, observation_low=[0.0, -4.0], observation_high=[1e-6, 4.0]),
    ),
    "reward_scale": (healths(2, reward_std=10.1), healths(2, reward_std=9.9)),
    "rare_rewards": (healths(2, reward_mode=[0.0, 999]), healths(2, reward_mode=[0.0, 998])),
    "never_ends": ([health(10_000)], [health(9_999)]),
    "failed": ([*EPISODES, {"step": 6_000, "failed": "It broke."}], EPISODES),
    "diverged": (
        [*EPISODES, {"step": 6_000, "train/critic_loss": None}],
        [*EPISODES, {"step": 6_000, "train/critic_loss": 1e9}],
    ),
    "same_score": (
        [*EPISODES, *(evaluation(step, 5.367, std=0.0) for step in (1_000, 2_000, 3_000))],
        [*EPISODES, evaluation(1_000, 5.0, std=0.0), *(evaluation(step, 5.367, std=0.0) for step in (2_000, 3_000))],
    ),
    "collapse": (
        [*EPISODES, *(evaluation(1_000 * n, mean) for n, mean in enumerate([0, 50, 100, *[29] * 8], 1))],
        [*EPISODES, *(evaluation(1_000 * n, mean) for n, mean in enumerate([0, 50, 100, *[29] * 7, 31], 1))],
    ),
    "plateau": (
        [*EPISODES, *(evaluation(1_000 * n, mean) for n, mean in enumerate([0, 100, *[90, 91] * 5], 1))],
        [*EPISODES, *(evaluation(1_000 * n, mean) for n, mean in enumerate([0, 100, *range(20, 91, 8)], 1))],
    ),
    "coarse_evaluation": (
        [*EPISODES, *(evaluation(1_000 * n, mean, std=30.0) for n, mean in enumerate([0, 10, 20, 30, 39], 1))],
        [*EPISODES, *(evaluation(1_000 * n, mean, std=30.0) for n, mean in enumerate([0, 10, 20, 30, 41], 1))],
    ),
    "short_horizon": (
        [*EPISODES, {**evaluation(2_000, 5.0, late_share=0.51), "eval/lengths": [500] * 10}],
        [*EPISODES, {**evaluation(2_000, 5.0, late_share=0.51), "eval/lengths": [400] * 10}],
    ),
}


@pytest.mark.parametrize("name", EDGES)
def test_a_rule_begins_where_it_says(name):
    beyond, within = EDGES[name]
    assert name in found(beyond)
    assert name not in found(within)


def test_overestimation_is_found_only_once_the_values_have_settled():
    values = {"predicted_q": 100.0, "value_error": 30.0, "value_errors": [29.0, 31.0] * 5}
    rows = [*healths(5), *(evaluation(5_000 * n, 50.0, **values) for n in range(1, 7))]
    assert "overestimation" in found(rows)
    assert "overestimation" not in found(rows[:-1])
    assert "overestimation" not in found([*rows[:-1], evaluation(21_000, 50.0, **{**values, "value_error": 15.0})])
    assert "overestimation" not in found(rows, warmup_steps=15_000, update_after=15_000)


def test_what_a_setting_cures_is_not_found_again():
    assert "unscaled_observations" not in found(EDGES["unscaled_observations"][0], normalize_observations=True)
    assert "reward_scale" not in found(EDGES["reward_scale"][0], reward_scale=0.1)
    assert "values_beyond" not in found(EDGES["values_beyond"][0], gamma=0.999)


def test_no_more_than_three_findings_come_at_once_the_worst_first():
    rows = healths(7, reward_std=50.0, observation_mean=[0.0, 500.0], residual_variance=1.0, dead_units=1.0)
    evidence = Evidence(td3.Config(warmup_steps=100))
    for row in rows:
        evidence.add(row)
    assert [finding.name for finding in findings(evidence)] == [
        "reward_scale",
        "unscaled_observations",
        "dead_units",
    ]


HOSTILE = [
    None,
    True,
    "x" * 10_000,
    -1,
    0,
    10**400,
    [],
    [None],
    {},
    {"a": []},
    [[1]],
    1e308,
    1e299,
    -1e299,
    5e-324,
    [1e99],
]


def test_any_value_in_a_record_is_survived():
    names = [name for name in health(1_000) if name != "step"]
    for value in HOSTILE:
        for name in names:
            assert isinstance(found([{**health(1_000 * n), name: value} for n in range(1, 8)]), list)
        rows = [
            {"step": value, "health/rows": 3},
            {"step": 3, "finding": value},
            {"step": 3, "finding": {"name": value}},
            {"step": 3, "probe/reproducible": value, "probe/ignored": value, "probe/narrow": value},
            {"step": 3, "rollout/ep_length": value, "rollout/terminated": value},
            {**evaluation(3, 1.0), "eval/returns": value, "eval/value_errors": value},
            *({**evaluation(3 * n, 1.0, late_share=0.9), "eval/mean_return": value} for n in range(1, 12)),
            {**evaluation(40, 1.0, late_share=0.9), "eval/lengths": [value]},
            {"step": 41, "failed": value},
            {"step": 42, "changed": {"actor_lr": value, "no_setting": [1, value]}},
            {"step": 3, "eval/unfinished": value},
        ]
        assert isinstance(found(rows), list)


def test_numbers_are_finite_or_none():
    assert numbers({"a": [1, 2.5]}, "a").tolist() == [1.0, 2.5]
    for value in (None, [None], [math.nan], [True], "12", [10**400]):
        assert numbers({"a": value}, "a") is None


def test_what_is_no_run_is_refused(tmp_path):
    for path in (tmp_path / "none", tmp_path):
        with refusal(td3.ConfigError, "run", str(path)):
            td3.diagnose(path)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(td3.RunError):
        td3.diagnose(tmp_path)


def test_episodes_say_how_they_ended():
    ends = {}
    for fault in ("", "limit as end"):
        events = td3.train(td3.Config(**{**QUICK, **settings_of(fault), "steps": 200, "eval_every": 0}))
        ends[fault] = [event.terminated for event in events if isinstance(event, td3.EpisodeEnded)]
    assert ends == {"": [False, False], "limit as end": [True, True]}


def test_the_value_of_a_cut_tail_is_counted():
    """A critic that knows the truth has no error, whether an episode is truncated or terminated."""
    from td3.environments import make_envs
    from td3.evaluation import play_episodes

    class Steady(Twin):
        def step(self, action):
            observation, _, terminated, truncated, info = super().step(action)
            return observation, 1.0, terminated, truncated, info

    gamma = 0.9
    envs = make_envs(Steady)
    policy = lambda rows: np.zeros((len(rows), 2), np.float32)
    forever = lambda rows, _: np.full(len(rows), 1 / (1 - gamma), np.float32)
    metrics = play_episodes(envs, policy, [1, 2], gamma, forever).metrics
    assert metrics["eval/value_error"] == pytest.approx(0, abs=1e-5)
    assert metrics["eval/late_share"] == pytest.approx(0.1)


def said(capsys, *words):
    """Runs a command; returns its exit code, its answer and what it says to people."""
    code = cli.main([*words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_command_says_what_stands_out_and_exits_with_0_unless_it_is_strict(healthy, tmp_path, capsys):
    run, _ = healthy
    assert said(capsys, "doctor", str(run), "--strict")[0] == 0
    code, answer, text = said(capsys, "doctor", str(run))
    assert (code, answer) == (0, "")
    assert text.splitlines()[0] == "Nothing stands out in 6,000 steps of bench.broken_envs:Twin."
    sick = tmp_path / "run"
    trained(sick, **settings_of("large rewards"), steps=1_100)
    code, answer, text = said(capsys, "doctor", str(sick))
    assert (code, answer, text.splitlines()[0][:33]) == (0, "", "1. Rewards spread widely: their s")
    assert said(capsys, "doctor", str(sick), "--strict")[0] == 1
    code, answer, _ = said(capsys, "doctor", str(sick), "--json")
    (finding,) = json.loads(answer)["findings"]
    assert (code, finding["name"], json.loads(answer)["step"]) == (0, "reward_scale", 1_100)
    flags = "--steps 1100 --warmup-steps 1000"
    assert finding["command"] == f"td3 check bench.broken_envs:Twin --env-arg 'fault=\"large rewards\"' {flags}"


def test_a_run_that_cannot_recover_stops_by_itself_and_says_why(tmp_path):
    settings = {**QUICK, **settings_of(), "updates_per_step": 0.2, "stop_when_sick": True, "steps": 20_000}
    *_, finished = td3.train(td3.Config(**settings), tmp_path / "run", learner=Saturated)
    assert (finished.step, finished.stopped_by) == (6_000, "stop_when_sick")
    assert "this run will not recover" in finished.reason


def test_a_finding_is_said_once_in_the_terminal(tmp_path, capsys):
    settings = ["--steps", "2500", "--warmup-steps", "1000", "--hidden", "16,16", "--reward-scale", "1000", "--no-film"]
    code, _, text = said(capsys, "train", "Pendulum-v1", "--run", str(tmp_path / "run"), *settings)
    lines = text.splitlines()
    (place,) = [
        place for place, line in enumerate(lines) if line.startswith("Found at step 1,000: Rewards × 1000 spread")
    ]
    assert code == 0
    assert lines[place + 1].startswith("  Try first: Use --reward-scale")
    assert lines[place + 2] == "  See: td3 check Pendulum-v1 --steps 2500 --reward-scale 1000.0"


def test_a_run_that_ends_before_it_learns_is_found():
    assert found(EPISODES[:9], steps=1_000)[0] == "no_updates"
    assert found(EPISODES[:9], steps=1_001) == []
    assert found(EPISODES, steps=1_000) == []  # it was extended since


def test_one_end_is_no_finding_where_it_is_best():
    stuck = healths(7, high_end=[1.0, 1.0], actor_gradient=0.0)
    rising = [evaluation(1_000 * n, mean) for n, mean in enumerate([0, 50, 100, 100], 1)]
    assert found([*stuck, *rising[:2], evaluation(3_000, 20)])[0] == "cannot_recover"
    assert found([*stuck, *rising]) == []


def test_an_agent_that_has_learned_to_do_nothing_is_found():
    """Each step costs 0.1, a goal that was seen pays 100, and every episode of 500 steps returns -50."""
    ends = healths(3, reward_ends=[-100.0, 100.0])
    idle = [{**evaluation(1_000 * n, -50.0, std=0.0), "eval/lengths": [500] * 10} for n in range(2, 7)]
    first = evaluation(1_000, -70.0)
    assert found([*ends, first, *idle])[0] == "same_score"
    assert "same_score" not in found([*ends, first, *idle[1:]])
    full = healths(3, reward_ends=[-1.0, 1.0])  # every step pays 1, which is all there is
    solved = [{**evaluation(1_000 * n, 1_000.0, std=0.0), "eval/lengths": [1_000] * 10} for n in range(2, 7)]
    assert "same_score" not in found([*full, first, *solved])


def test_rewards_at_a_goal_alone_are_rare_whatever_ends_the_episodes():
    rare = [{**row, "health/reward_std": 0.005} for row in healths(2, reward_mode=[0.0, 1_000], reward_mean=0.0)]
    assert found(rare)[:2] == ["rare_rewards", "reward_scale"]
    limited = [{**row, "rollout/terminated": True} if "rollout/terminated" in row else row for row in rare]
    assert found(limited)[:2] == ["limit_as_end", "rare_rewards"]


def test_a_large_reward_now_and_then_is_no_matter_of_scale():
    assert "reward_scale" in found(healths(2, reward_std=13.0))
    assert "reward_scale" not in found(healths(2, reward_std=13.0, reward_range=[-1.0, 1.0]))


def test_episodes_that_grow_longer_do_not_make_a_warm_up_short():
    long = [{"step": 5_900 + 1_000 * n, "rollout/ep_length": 1_000, "rollout/terminated": False} for n in range(1, 50)]
    assert "young_memory" not in found([*EPISODES, *long])
    assert "young_memory" in found([*EPISODES, *long], warmup_steps=490)


def test_a_dataset_is_measured_once_and_has_no_episodes_to_end():
    rng = np.random.default_rng(0)
    rows = 3_000
    dense = np.where(np.arange(rows) < 2_000, rng.normal(size=rows), 0).astype(np.float32)
    columns = {
        "observation": rng.normal(size=(rows, 4)).astype(np.float32),
        "action": rng.uniform(-1, 1, (rows, 2)).astype(np.float32),
        "reward": dense,
        "next_observation": rng.normal(size=(rows, 4)).astype(np.float32),
        "terminated": np.zeros(rows, bool),
    }
    settings = {**QUICK, **settings_of(), "steps": 12_000, "updates_per_step": 0.01, "eval_every": 0}
    training = td3.train(td3.Config(**settings), collector=partial(td3.Dataset, columns))
    measured = [event.metrics["health/rows"] for event in training if isinstance(event, td3.Examined)]
    assert (measured[0], set(measured[1:])) == (rows, {0})
    assert training.session.evidence.announced == set()


def test_a_run_whose_environment_failed_says_so_until_it_is_resumed(tmp_path):
    class Breaks(Twin):
        def step(self, action):
            if self.np_random.random() < 0.002:
                raise RuntimeError("the joint broke")
            return super().step(action)

    with pytest.raises(td3.EnvironmentFailure):
        trained(tmp_path / "run", env=Breaks, eval_every=0)
    finding, *_ = td3.diagnose(tmp_path / "run")
    assert finding.name == "failed"
    assert "the joint broke" in finding.seen
    with pytest.raises(td3.EnvironmentFailure):
        list(td3.resume(tmp_path / "run", env=Breaks))
    assert [row for row in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines() if '"failed"' in row][1:] == []


PROBED = {
    "a switch": (lambda self, action: np.sign(action), ([], [])),
    "a tenth": (lambda self, action: np.clip(action, -0.1, 0.1), ([], [0, 1])),
    "half": (lambda self, action: np.clip(action, -0.5, 0.5), ([], [])),
    "none of the second": (lambda self, action: action * [1, 0], ([1], [])),
    "nothing before step 60": (lambda self, action: action * (self.count > 60), ([], [])),
}


@pytest.mark.parametrize("name", PROBED)
def test_a_probe_finds_what_an_environment_makes_of_its_actions(name):
    push, (ignored, narrow) = PROBED[name]
    envs = make_envs(type("Other", (Twin,), {"_push": push}))
    answers = probe(envs, 5)
    assert (answers.reproducible, answers.actions_matter) == (True, True)
    if name != "nothing before step 60":
        assert (answers.ignored, answers.narrow) == (ignored, narrow)


def test_a_slow_environment_is_not_probed_for_long():
    ticks = iter(range(1_000))
    with pytest.raises(TooSlow):
        probe(make_envs(Twin), 5, seconds=3.0, clock=lambda: float(next(ticks)))
