"""An environment that fails is made anew, as often as `restart_failed` allows, and nothing else changes."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from flaky import LENGTH, Flaky
from gymnasium.vector import SyncVectorEnv
from refusals import UNSAID, check_names, refusal
from runs import SMALL, contents

import td3
from td3.collection import Collector
from td3.environments import Restarts, make_envs
from td3.errors import ConfigError, EnvironmentFailure
from td3.evaluation import play_episodes
from td3.progress import Pending
from td3.storage import read_metrics, verify
from td3.views import cli

FAILING = {**SMALL, "env": Flaky, "restart_failed": 50, "eval_every": 0}
SEVERAL = {"num_envs": 2}
WORKERS = {**SEVERAL, "workers": 2}


def train(run, **settings):
    """The events of a whole run."""
    return list(td3.train(td3.Config(**{**FAILING, **settings}), run))


def notes_in(events):
    return [event.note for event in events if isinstance(event, td3.Noted)]


def failures_in(run):
    rows = read_metrics(run / "metrics.jsonl")
    return [row["rollout/failures"] for row in rows if "rollout/failures" in row]


def is_bad(seed):
    """Whether this seed leads to an episode that fails."""
    env = Flaky()
    env.reset(seed=seed)
    return env.last <= LENGTH


def test_the_step_that_failed_is_no_transition_and_its_episode_ends_with_the_last_good_observation():
    restarts = Restarts(1_000, 7)
    collector = Collector(make_envs(Flaky, restarts=restarts), [1], np.random.default_rng(0), 10**6, 0.0)
    collector.restarts = restarts
    collected = [collector.collect(lambda _: None) for _ in range(400)]
    rows = [one.transitions for one in collected]
    empty = [len(row.reward) == 0 for row in rows]
    assert sum(empty) == restarts.used == 400 - collector.steps > 5
    assert empty == [bool(one.failures) for one in collected]
    rows = [row for row in rows if len(row.reward)]
    for before, after in pairwise(rows):
        count, first = int(before.next_observation[0, 0]), bool(after.first[0])
        assert not before.terminated[0] and count <= LENGTH
        assert int(after.observation[0, 0]) == (0 if first else count)
        assert first or after.observation.tobytes() == before.next_observation.tobytes()
    cut = [count for a, b in pairwise(rows) if b.first[0] and (count := int(a.next_observation[0, 0])) < LENGTH]
    ended = [episode for one in collected for episode in one.episodes]
    assert sorted(one.length for one in ended if one.length < LENGTH) == sorted(cut)
    assert sum(one.length for one in ended) >= collector.steps - LENGTH
    assert not any(one.terminated for one in ended)


def test_each_failure_is_counted_noted_with_its_reason_and_written_to_the_record(tmp_path):
    events = train(tmp_path / "run")
    notes = notes_in(events)
    assert failures_in(tmp_path / "run") == list(range(1, len(notes) + 1)) and len(notes) > 2
    for number, note in enumerate(notes, 1):
        check_names(note, "Environment 0", UNSAID, "RuntimeError", "the joint broke", "flaky.py", number, 50)
    assert events[-1].step == 120
    assert len(notes) == sum(
        event.step == before.step
        for before, event in pairwise(event for event in events if isinstance(event, td3.Stepped))
    )


@pytest.mark.parametrize(
    "settings",
    [{}, SEVERAL, WORKERS, {"update_schedule": "episode"}, {"n_step": 3}, {"eval_every": 60, "eval_episodes": 3}],
    ids=str,
)
def test_a_run_with_failures_resumes_to_the_same_bytes(settings, tmp_path):
    train(tmp_path / "whole", **settings)
    config = td3.Config(**{**FAILING, **settings})
    with td3.train(config, tmp_path / "stopped") as training:
        for event in training:
            if event.step >= 70 and isinstance(event, td3.Stepped):
                break
    assert training.session.restarts.used > 0
    list(td3.resume(tmp_path / "stopped", env=Flaky))
    assert contents(tmp_path / "whole") == contents(tmp_path / "stopped")
    assert failures_in(tmp_path / "whole")[-1] == len(failures_in(tmp_path / "whole"))


def test_a_run_stopped_right_after_a_failure_keeps_its_count(tmp_path):
    often = {"checkpoint_every": 1, "steps": 60}  # so that there is a checkpoint of the same step before the failure
    with td3.train(td3.Config(**{**FAILING, **often}), tmp_path / "run") as training:
        for event in training:
            if isinstance(event, td3.Noted):
                break
    used = training.session.restarts.used
    resumed = td3.resume(tmp_path / "run", env=Flaky)
    next(resumed)
    assert resumed.session.restarts.used == used == 1
    list(resumed)
    train(tmp_path / "whole", **often)
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


def test_workers_give_the_same_bytes_as_no_workers_also_where_they_die(tmp_path):
    few = {"steps": 50}
    whole = [
        *notes_in(train(tmp_path / "alone", **SEVERAL, **few)),
        *notes_in(train(tmp_path / "workers", **WORKERS, **few)),
    ]
    assert len(whole) > 1 and whole[: len(whole) // 2] == whole[len(whole) // 2 :]
    died = notes_in(train(tmp_path / "dead", **WORKERS, **few, env_args={"fate": "dies"}))
    assert all("SIGKILL" in note for note in died) and len(died) == len(whole) // 2
    expected = contents(tmp_path / "alone")
    for run in ("workers", "dead"):
        assert contents(tmp_path / run) == expected


def test_a_worker_that_hangs_is_started_anew():
    restarts = Restarts(1, 0)
    envs = make_envs(partial(Flaky, "hangs", 3), 2, 1, timeout=0.3, restarts=restarts)
    try:
        envs.reset([1, 2])
        for _ in range(3):
            result = envs.step(np.zeros((2, 1), np.float32))
            if result.failures:
                break
        (failure,) = result.failures
        check_names(failure, "Environments 0, 1", UNSAID, "0.3 s")
        assert restarts.used == 1 and not result.valid.any() and result.truncated.all()
        assert result.observation[:, 0].tolist() == [0, 0]
        with refusal(EnvironmentFailure, "restart_failed", 1, "0.3 s"):
            for _ in range(3):
                envs.step(np.zeros((2, 1), np.float32))
    finally:
        envs.close()


@pytest.mark.parametrize("settings", [{}, SEVERAL, WORKERS], ids=str)
def test_one_failure_more_than_is_allowed_ends_the_run_saved(settings, tmp_path):
    with refusal(EnvironmentFailure, "restart_failed", 2, "the joint broke", "failure 3"):
        train(tmp_path / "run", **settings, restart_failed=2)
    assert not list(verify(tmp_path / "run").values())[-1] and failures_in(tmp_path / "run") == [1, 2]
    with refusal(EnvironmentFailure, "failure 3"):  # the count is part of the run
        list(td3.resume(tmp_path / "run", env=Flaky))
    assert failures_in(tmp_path / "run") == [1, 2]


def test_without_the_setting_the_first_failure_ends_the_run(tmp_path):
    with pytest.raises(EnvironmentFailure) as caught:
        train(tmp_path / "run", restart_failed=0)
    assert "restart_failed" not in str(caught.value) and failures_in(tmp_path / "run") == []


def test_the_command_line_says_it_and_ends_with_1(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    few = ["--steps", "400", "--warmup-steps", "390", "--eval-every", "0", "--no-film"]
    assert cli.main(["train", "flaky:Flaky", "--run", "run", *few, "--restart-failed", "2"]) == 1
    printed = capsys.readouterr().err.splitlines()
    assert [line.count("the joint broke") for line in printed if line.startswith("Note:")] == [1, 1]
    assert any("restart_failed" in line and line.startswith("td3:") for line in printed)


class Reluctant(Flaky):
    """Makes and resets itself only as often as its class has left."""

    makes = resets = 10**6

    def __init__(self):
        Reluctant.makes -= 1
        if Reluctant.makes < 0:
            raise ConnectionError("no licence")
        super().__init__("raises", 10**6)

    def reset(self, **how):
        Reluctant.resets -= 1
        if Reluctant.resets == 0:
            raise RuntimeError("stuck")
        return super().reset(**how)


@pytest.mark.parametrize("resets", [1, 3])
def test_a_reset_that_fails_costs_no_transition(resets, monkeypatch):
    restarts = Restarts(1, 0)
    monkeypatch.setattr(Reluctant, "resets", resets)
    monkeypatch.setattr(Reluctant, "makes", 2)
    envs = make_envs(Reluctant, restarts=restarts)
    collector = Collector(envs, [1], np.random.default_rng(0), 10**6, 0.0, restarts=restarts)
    collected = [collector.collect(lambda _: None) for _ in range(45)]
    assert collector.steps == 45 and restarts.used == 1
    (failure,) = [failure for one in collected for failure in one.failures]
    check_names(failure[1], "reset", UNSAID, "stuck", "Environment 0")
    assert [episode.length for one in collected for episode in one.episodes] == 4 * [LENGTH]


def test_an_environment_that_cannot_be_made_anew_uses_up_what_is_allowed(monkeypatch):
    monkeypatch.setattr(Reluctant, "resets", 2)
    monkeypatch.setattr(Reluctant, "makes", 1)
    envs = make_envs(Reluctant, restarts=(restarts := Restarts(3, 0)))
    collector = Collector(envs, [1], np.random.default_rng(0), 10**6, 0.0, restarts=restarts)
    with refusal(EnvironmentFailure, "restart_failed", 3, "no licence"):
        for _ in range(LENGTH):
            collector.collect(lambda _: None)
    assert restarts.used == 0 and collector.steps == LENGTH - 1  # the last step is as if it had not been tried


def test_a_callable_that_returns_the_same_environment_again_is_no_restart():
    only = Flaky("raises", 2)
    envs = make_envs(lambda: only, restarts=Restarts(2, 0))
    envs.reset([1])
    with refusal(EnvironmentFailure, "restart_failed", 2, "the same one twice"):
        envs.step(np.zeros((1, 1), np.float32))


def test_what_is_no_number_is_a_failure_like_any_other(tmp_path):
    notes = notes_in(train(tmp_path / "run", env_args={"fate": "is no number"}))
    assert notes and all("reward is nan" in note for note in notes)


def test_a_vector_environment_is_refused_with_it():
    with refusal(ConfigError, "restart_failed", 3, "vector environment"):
        make_envs(partial(SyncVectorEnv, [Flaky]), restarts=Restarts(3, 0))
    make_envs(partial(SyncVectorEnv, [Flaky]), restarts=Restarts(0, 0)).close()


def act(rows):
    return np.full((len(rows), 1), 0.5, np.float32)


def test_an_evaluation_episode_that_fails_is_played_again_from_another_seed():
    seeds, spare = list(range(8, 28)), list(range(100, 150))
    played, tried, others = [], [], iter(spare)
    for seed in seeds:
        while is_bad(seed):
            tried.append(seed)
            seed = next(others)
        played.append(seed)
    assert len(tried) > 2 and played != seeds
    restarts = Restarts(len(tried), 0)
    envs = make_envs(Flaky, restarts=restarts)
    evaluation = play_episodes(envs, act, seeds, 1.0, lambda rows, _: rows[:, 1], iter(spare))
    assert evaluation.lengths == 20 * (LENGTH,) and evaluation.returns == 20 * (LENGTH / 2,)
    first = [float(Flaky().reset(seed=seed)[0][1]) for seed in played]
    assert list(evaluation.predicted) == pytest.approx(first)
    assert len(evaluation.failures) == restarts.used == len(tried)


def failing_in_evaluations(often):
    """Makes one environment that never fails, to train in; those that follow fail often."""
    made = []

    def make():
        made.append(Flaky("raises", often if made else 10**6))
        return made[-1]

    return make


def test_failures_of_evaluations_are_counted_and_noted_like_those_of_training(tmp_path):
    events = train(tmp_path / "run", env=failing_in_evaluations(15), eval_every=60, eval_episodes=3)
    notes = notes_in(events)
    assert len(notes) > 2 and failures_in(tmp_path / "run") == list(range(1, len(notes) + 1))
    assert all(note.startswith("Evaluation environment 0") for note in notes)
    assert [event.evaluation.lengths for event in events if isinstance(event, td3.Evaluated)] == 2 * [3 * (LENGTH,)]


def test_an_evaluation_that_could_not_be_ended_is_owed_and_its_failures_do_not_count(tmp_path):
    with refusal(EnvironmentFailure, "restart_failed", 4, "Evaluation environment 0"):
        train(tmp_path / "run", env=failing_in_evaluations(2), restart_failed=4, eval_every=60, eval_episodes=1)
    resumed = td3.resume(tmp_path / "run", env=failing_in_evaluations(10**6))
    events = [event for event in resumed if isinstance(event, td3.Evaluated)]
    assert [event.step for event in events] == [60, 120]
    assert resumed.session.restarts.used == 0 and failures_in(tmp_path / "run") == []


def test_a_trained_agent_is_evaluated_with_the_same_patience(tmp_path, capsys):
    train(tmp_path / "run", eval_every=120, eval_episodes=4)
    agent = td3.load(tmp_path / "run", env=Flaky)
    evaluation = td3.evaluate(agent, episodes=8, seed=3)
    assert evaluation.lengths == 8 * (LENGTH,) and evaluation.failures
    assert cli.main(["evaluate", str(tmp_path / "run"), "--env", "flaky:Flaky", "--episodes", "8", "--seed", "3"]) == 0
    assert capsys.readouterr().err.count("the joint broke") == len(evaluation.failures)


def test_a_step_that_an_older_checkpoint_left_pending_is_understood():
    assert Pending.of([3, [[0, 1.5, 2]], True]) == (3, [(0, 1.5, 2, None)], True, [])
    assert Pending.of([3, [], False, [[1, "broke"]]]).failures == [(1, "broke")]
