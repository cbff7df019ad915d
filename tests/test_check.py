"""`td3 check`: what is found in an environment before a run, how long the run will take, and what is said of it."""

import json
from functools import partial

import gymnasium
import pytest
from gymnasium.wrappers import TimeLimit

from bench.broken_envs import FAULTS, LIMIT, Twin, settings_of
from td3 import Config, forecast, trial
from td3.environments import make_envs
from td3.environments.limits import time_limit
from td3.forecast import Costs, Forecast
from td3.trial import Times, share_done, times_of
from td3.views import cli
from td3.views.env_report import check_environment, lines_of
from td3.views.times import brief_time, duration

SMALL = {"hidden": (8,), "batch_size": 8}


@pytest.fixture(autouse=True)
def _hardly_any_measurements(monkeypatch):
    monkeypatch.setattr(forecast, "UPDATE_SECONDS", 0.0)
    monkeypatch.setattr(forecast, "ACT_SECONDS", 0.0)


def check(fault="", **settings):
    return check_environment(Config(**settings_of(fault), **SMALL, **settings))


def names(report):
    return [finding.name for finding in report["findings"]]


# --- Findings ---------------------------------------------------------------------------------------------------------


def test_nothing_stands_out_in_the_healthy_twin():
    report = check()
    assert names(report) == [] and report["notes"] == []
    assert report["random_steps"] == 2_000 and report["episode_lengths"] == 20 * [LIMIT]


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "never ends"])
def test_each_broken_twin_leads_to_its_finding_and_to_none_but_what_follows_from_it(fault):
    at_rest = ["constant_observations"] if "action" in fault and "ignored" in fault else []  # its velocity stays 0
    assert names(check(fault)) == [FAULTS[fault].finding, *at_rest]


def test_a_twin_that_never_ended_gets_a_note_for_it_may_end_later():
    report = check("never ends")
    assert names(report) == [] and len(report["notes"]) == 1 and "2,000 steps" in report["notes"][0]


def test_a_known_time_limit_says_that_it_will_end():
    report = check_environment(Config(env=lambda: TimeLimit(Twin("never ends"), 5_000), **SMALL))
    assert report["time_limit"] == 5_000 and report["notes"] == []


def test_a_time_limit_counts_where_no_episode_ended_in_the_trial():
    def long():
        return TimeLimit(Twin("never ends"), 5_000)

    report = check_environment(Config(env=long, warmup_steps=10_000, buffer_size=49_999, **SMALL))
    assert names(report) == ["small_memory", "young_memory"]
    assert [finding.numbers["longest"] for finding in report["findings"][:1]] == [5_000]
    assert report["findings"][1].numbers["episodes"] == 2
    report = check_environment(Config(env=long, warmup_steps=25_000, buffer_size=49_999, steps=49_999, **SMALL))
    assert names(report) == []  # such a run forgets nothing


def test_two_long_episodes_that_terminate_after_the_same_step_are_enough():
    class Long(Twin):
        def step(self, action):
            observation, reward, *_ = super().step(action)
            return observation, reward, self.count == 1_000, False, {}

    [finding] = check_environment(Config(env=Long, env_args={"fault": "never ends"}, **SMALL))["findings"]
    assert finding.name == "limit_as_end" and finding.numbers == {"length": 1_000, "episodes": 2}


def test_several_environments_share_the_steps_and_the_findings():
    report = check("unscaled observation", num_envs=4)
    assert names(report) == ["unscaled_observations"] and report["random_steps"] == 2_000


def test_normalised_observations_may_have_any_size():
    assert names(check("unscaled observation", normalize_observations=True)) == []


# --- Time limits ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env", "repeat", "limit"),
    [
        ("Pendulum-v1", 1, 200),
        ("Pendulum-v1", 3, 67),
        (partial(gymnasium.make, "Pendulum-v1"), 1, 200),
        (lambda: TimeLimit(Twin(), 40), 1, 40),
        (Twin, 1, 0),
        (lambda: gymnasium.make_vec("Pendulum-v1", 2, vectorization_mode="sync"), 1, 200),
    ],
)
def test_the_time_limit_is_found_in_registration_and_wrappers(env, repeat, limit):
    envs = make_envs(env)
    assert time_limit(envs, env, repeat) == limit
    envs.close()


def test_the_time_limit_of_a_registered_environment_in_a_process_is_found():
    envs = make_envs("Pendulum-v1", 1, 1)
    assert time_limit(envs, "Pendulum-v1") == 200
    envs.close()


# --- Slow environments ------------------------------------------------------------------------------------------------


class Clock:
    """Seconds that pass only when an environment says so."""

    now = 0.0

    def __call__(self):
        return self.now


def slow(clock, step, reset=0.0):
    class Slow(Twin):
        def step(self, action):
            clock.now += step
            return super().step(action)

        def reset(self, **how):
            clock.now += reset
            return super().reset(**how)

    return Slow


@pytest.mark.parametrize(
    ("seconds", "steps", "probed"), [(0.001, 2_000, True), (1 / 64, 320, True), (0.04, 300, True), (1.0, 15, False)]
)
def test_a_slow_environment_is_played_less_and_the_report_says_so(seconds, steps, probed):
    clock = Clock()
    report = check_environment(Config(env=slow(clock, seconds), **SMALL), clock=clock)
    assert report["random_steps"] == steps
    assert [f"{steps:,} random steps" in note for note in report["notes"]] == ([] if steps == 2_000 else [True])
    assert sum("not tried" in note for note in report["notes"]) == (not probed)
    assert clock.now < 60


@pytest.mark.parametrize(
    ("steps", "seconds", "share"),
    [(1_000, 1.0, 0.5), (2_000, 0.1, 1), (150, 6, 0.5), (300, 5, 1), (150, 7.5, 0.5), (3, 15, 1), (2, 60, 2 / 3)],
)
def test_a_trial_ends_by_steps_or_by_seconds(steps, seconds, share):
    assert share_done(steps, seconds) == share


def test_a_step_is_timed_without_the_first_and_a_reset_apart():
    clock = Clock()
    report = check_environment(Config(env=slow(clock, 0.002, 0.1), **SMALL), clock=clock)
    assert report["times"]["median"] == pytest.approx(0.002) and report["times"]["reset"] == pytest.approx(0.1)
    assert report["times"]["step"] == pytest.approx(0.002 + 0.1 / LIMIT, rel=0.02)
    assert times_of([9.0, 1.0, 1.0], [3.0], 0.5, 2) == Times(step=5 / 6, median=0.5, reset=2.0)


def test_progress_counts_the_steps_up_to_the_last():
    shown = []
    check_environment(Config(**settings_of(), **SMALL), show=shown.append, clock=Clock())
    assert shown == [step / 2_000 for step in range(2_001)]


def test_a_ready_made_vector_environment_is_played_although_some_of_its_steps_are_resets():
    def vector():
        return gymnasium.vector.SyncVectorEnv([Twin, Twin])  # all of them end, and are reset, in the same step

    report = check_environment(Config(env=vector, **SMALL))
    assert report["num_envs"] == 2 and set(report["episode_lengths"]) == {LIMIT} and names(report) == []


# --- Forecasts --------------------------------------------------------------------------------------------------------

RUN = Config(steps=1_000, warmup_steps=100, update_after=200, updates_per_step=2, eval_every=300, eval_episodes=5)


def test_a_run_takes_its_steps_actions_updates_and_evaluations():
    costs = Costs(step=1.0, act=0.5, update=0.25, eval_step=1.5)
    expected = forecast.forecast(RUN, costs, num_envs=1, eval_length=10)
    assert expected == Forecast(environment=1_000, acting=450, updates=400, evaluations=4 * 5 * 10 * 1.5)
    assert expected.seconds == 2_150
    assert forecast.forecast(RUN, costs, num_envs=3, eval_length=10).acting == 150


def test_a_run_without_evaluations_or_updates_takes_no_time_for_them():
    run = Config(steps=100, warmup_steps=1_000, eval_every=0)
    assert forecast.forecast(run, Costs(1.0, 1.0, 1.0, 1.0), 1, 10) == Forecast(100, 0, 0, 0)


def test_work_is_timed_by_the_mean_of_blocks_without_the_first():
    clock, takes = Clock(), iter([100.0, 1.0, 2.0, 1.0, 50.0, 3.0])

    def work():
        clock.now += next(takes)

    assert forecast.timed(work, block=1, seconds=150, clock=clock) == 54 / 4
    assert next(takes) == 3.0


def test_what_is_done_between_is_not_timed():
    clock = Clock()

    def spend(seconds):
        clock.now += seconds

    assert forecast.timed(lambda: spend(2.0), 3, 50, clock, between=lambda: spend(5.0)) == 2.0


def learner_of(config):
    envs = make_envs(config.env)
    return trial.small_learner(config, envs, "torch")[0]


@pytest.mark.parametrize(
    ("step", "cores", "settings", "advised"),
    [
        (0.010, 4, {}, 4),
        (0.010, 1, {}, None),
        (0.0005, 4, {}, None),
        (0.010, 4, {"num_envs": 2, "workers": 2}, None),
        (0.010, 4, {"updates_per_step": 30}, None),
    ],
)
def test_more_environments_are_advised_where_a_slow_step_dominates(monkeypatch, step, cores, settings, advised):
    monkeypatch.setattr(forecast, "cores", lambda: cores)
    monkeypatch.setattr(forecast, "update_seconds", lambda *_: 0.0005)
    config = Config(env=Twin, engine="torch", steps=100_000, eval_every=0, **SMALL, **settings)
    costs = Costs(step, 0.0, 0.0005, step)
    expected = forecast.forecast(config, costs, 1, 100)
    found = forecast.in_parallel(config, learner_of(config), costs, expected)
    assert (found and found.num_envs) == advised
    if found:
        assert found.workers == 4 and found.seconds == pytest.approx(100_000 * 0.0102 / 4 + 75_000 * 0.0005)


def test_the_trial_does_not_reserve_the_memory_of_the_run():
    learner = learner_of(Config(env=Twin, buffer_size=10**12, engine="torch", **SMALL))
    assert learner.memory.capacity == 4_000


# --- The command ------------------------------------------------------------------------------------------------------

QUICK = ["--hidden", "8", "--batch-size", "8"]


def test_the_command_says_that_nothing_stands_out_and_how_long_a_run_takes(capsys):
    assert cli.main(["check", "bench.broken_envs:Twin", "--strict", *QUICK]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == "Nothing stands out in 2,000 random steps of bench.broken_envs:Twin."
    assert any("1,000,000 steps will take about " in line for line in lines)
    assert any("--num-envs and --workers would hardly" in line for line in lines)


def test_the_command_writes_findings_as_doctor_does_without_a_run(capsys):
    words = ["check", "bench.broken_envs:Twin", "--env-arg", "fault=large rewards", "--warmup-steps", "200", *QUICK]
    assert cli.main(words) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line[:2] for line in lines[-4:]] == ["1.", "  ", "2.", "  "]
    assert lines[-3].startswith("   Try first: Use --reward-scale 0.")
    assert cli.main([*words, "--strict"]) == 1


def test_the_answer_for_programs_holds_findings_and_seconds(capsys):
    words = ["check", "bench.broken_envs:Twin", "--env-arg", "fault=ends at once", "--json", *QUICK]
    assert cli.main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["step"], one["numbers"]["median_length"]) for one in found["findings"]] == [
        ("ends_at_once", 2_000, 2)
    ]
    assert found["forecast"].keys() >= {"seconds", "environment", "acting", "updates", "evaluations"}
    assert found["times"].keys() == {"step", "median", "reset", "act", "update"} and found["parallel"] is None


def test_advice_for_more_environments_is_written_with_the_flags_to_use():
    report = check()
    report["parallel"] = {"num_envs": 4, "workers": 4, "seconds": 600.0}
    [line] = [line for line in lines_of(report) if "--num-envs" in line]
    assert "--num-envs 4 --workers 4 would take about 10 min" in line


def test_times_are_written_as_people_do():
    assert [brief_time(seconds) for seconds in (0.0000312, 0.00049, 0.0052, 0.25, 1.49)] == [
        "0.031 ms", "0.49 ms", "5.2 ms", "250 ms", "1.5 s",
    ]  # fmt: skip
    assert [duration(seconds) for seconds in (0.2, 40, 100, 3_000, 12_100, 86_400 * 2.2)] == [
        "1 s", "40 s", "2 min", "50 min", "3 h 20 min", "2 days 5 h",
    ]  # fmt: skip
