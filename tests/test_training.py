"""The loop: the same seed gives the same bytes, looking changes nothing, and the schedules keep their word."""

import json

import gymnasium
import numpy as np
import pytest
import torch
from engines import BOTH
from example_envs import Counting, Probe, Unruly
from sessions import bytes_of

import td3
import td3.types
from td3 import seeding
from td3.learner import making
from td3.learner.means import Means
from td3.loop import advance
from td3.schedule import crossed
from td3.session import Session
from td3.views.env_report import check_environment

SMALL = {
    "hidden": (16, 16), "batch_size": 16, "warmup_steps": 50, "threads": 1, "log_every": 50, "eval_episodes": 2,
    "film": False,
}  # fmt: skip


def config(**settings):
    return td3.Config(**{"env": "Pendulum-v1", "steps": 300, "eval_every": 100, **SMALL, **settings})


def play(settings, look=lambda event: None):
    session = Session(settings)
    events = []
    for event in advance(session, settings.steps):
        look(event)
        events.append(event)
    session.close()
    return session, events


@pytest.mark.parametrize("env", ["Pendulum-v1", "InvertedPendulum-v5"])
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(env):
    first, second = (bytes_of(play(config(env=env, seed=3))[0]) for _ in range(2))
    assert first == second
    other = bytes_of(play(config(env=env, seed=4))[0])
    assert other[0] != first[0] and other[1][0] != first[1][0]


def test_evaluating_logging_and_looking_change_no_bit():
    def nosy(event):
        torch.rand(3), np.random.rand(3), gymnasium.make("Pendulum-v1").reset(seed=1)

    plain = bytes_of(play(config(eval_every=0))[0])
    assert plain == bytes_of(play(config(eval_every=30, eval_episodes=3, log_every=7), nosy)[0])


def test_keeping_a_run_changes_no_bit(tmp_path):
    session = Session(config(checkpoint_every=40), tmp_path / "run")
    for _ in advance(session, 300):
        pass
    session.close()
    assert bytes_of(session) == bytes_of(play(config())[0])


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_change_no_bit(workers):
    alone = bytes_of(play(config(env=Counting, num_envs=3, steps=120, eval_every=0))[0])
    assert alone == bytes_of(play(config(env=Counting, num_envs=3, steps=120, eval_every=0, workers=workers))[0])


def test_stopping_in_the_middle_and_going_on_changes_no_bit():
    session = Session(config(eval_every=0))
    for goal in (120, 300):
        for _ in advance(session, goal):
            pass
    session.close()
    assert bytes_of(session) == bytes_of(play(config(eval_every=0))[0])


def test_one_update_per_step_begins_with_the_first_step_after_warm_up():
    _, events = play(config(eval_every=0, steps=60))
    counts = {event.step: event.updates for event in events if isinstance(event, td3.Stepped)}
    assert [counts[step] for step in (1, 50, 51, 52, 60)] == [0, 0, 1, 2, 10]


@pytest.mark.parametrize(("num_envs", "ratio", "updates"), [(1, 0.25, 25), (4, 0.25, 25), (4, 1, 100), (4, 2, 200)])
def test_updates_per_step_is_a_ratio_to_transitions_however_many_environments(num_envs, ratio, updates):
    settings = config(env=Counting, num_envs=num_envs, updates_per_step=ratio, warmup_steps=40, steps=140, eval_every=0)
    session, _ = play(settings)
    assert session.step == 140 and session.learner.updates == updates == int(ratio * (140 - 40))


def test_the_episode_schedule_learns_as_many_times_as_the_episode_had_steps():
    settings = config(env=Counting, update_schedule="episode", update_after=0, steps=40, eval_every=0)
    _, events = play(settings)
    at = {event.step: event.updates for event in events if isinstance(event, td3.Stepped)}
    # episodes of 3, 4, 5, 6, 7, 3, 4, 5 steps end at 3, 7, 12, 18, 25, 28, 32, 37
    assert [at[step] for step in (2, 3, 6, 7, 11, 12, 18, 25, 36, 37, 40)] == [0, 3, 3, 7, 7, 12, 18, 25, 32, 37, 37]


def test_the_episode_schedule_waits_for_update_after():
    settings = config(env=Counting, update_schedule="episode", update_after=10, steps=20, eval_every=0)
    _, events = play(settings)
    at = {event.step: event.updates for event in events if isinstance(event, td3.Stepped)}
    assert [at[step] for step in (7, 12, 18)] == [0, 5, 11]


def test_events_come_in_order_and_at_their_steps():
    _, events = play(config(steps=330, log_every=100, checkpoint_every=0))
    kinds = [type(event).__name__ for event in events if not isinstance(event, td3.Stepped | td3.EpisodeEnded)]
    first = ["Measured", "Examined", "Evaluated"]  # the environment is asked before its first evaluation
    assert kinds == ["Started", *first] + ["Measured", "Evaluated"] * 3 + ["Finished"]
    assert [event.step for event in events if isinstance(event, td3.Evaluated)] == [100, 200, 300, 330]
    assert [event.step for event in events if isinstance(event, td3.Stepped)] == list(range(1, 331))
    assert [event.step for event in events if isinstance(event, td3.EpisodeEnded)] == [200]
    measured = [event for event in events if isinstance(event, td3.Measured)][-1].metrics
    assert set(measured) == {
        "train/critic_loss", "train/actor_loss", "train/q1_mean", "train/q2_mean", "train/target_mean",
        "time/steps_per_second", "time/updates_per_second",
    }  # fmt: skip


def test_metrics_are_means_over_the_updates_since_the_last_row():
    def update(number):
        loss, rows = torch.tensor(float(number)), torch.full((4,), float(number))
        actor_loss = -loss if number % 2 == 0 else None
        return td3.types.Update(rows, rows, rows, rows, 3 * rows, rows, 2 * rows, loss, actor_loss)

    means = Means()
    for number in range(1, 6):
        means.add(update(number).means(), delayed=number % 2 == 0)
        if number == 3:  # looking, as a checkpoint does, changes nothing
            again = Means()
            again.restore(means.capture())
            means = again
    assert means.take() == {
        "train/critic_loss": 3.0, "train/actor_loss": -3.0,
        "train/q1_mean": 3.0, "train/q2_mean": 6.0, "train/target_mean": 9.0,
    }  # fmt: skip
    assert means.take() == {}


def test_a_row_of_means_has_the_same_order_wherever_a_checkpoint_was_made():
    means = Means()
    means.add(torch.arange(5.0), delayed=False)  # the actor's loss comes only with the next update
    means.capture()
    means.add(torch.arange(5.0), delayed=True)
    assert list(means.take()) == means.names


def test_an_evaluation_is_noise_free_in_fresh_starts_and_does_not_depend_on_others():
    often = {e.step: e.evaluation for e in play(config(eval_every=50))[1] if isinstance(e, td3.Evaluated)}
    seldom = {e.step: e.evaluation for e in play(config(eval_every=150))[1] if isinstance(e, td3.Evaluated)}
    assert often[150] == seldom[150] and often[300] == seldom[300]
    assert len({one.returns for one in often.values()}) == 6
    assert often[50].episodes == 2 and often[50].lengths == (200, 200)


def test_evaluation_is_the_mean_of_whole_episodes_also_in_a_vector_environment():
    from gymnasium.vector import AutoresetMode, SyncVectorEnv

    from td3.environments import make_envs
    from td3.evaluation import play_episodes

    policy = lambda o: np.full((len(o), 2), 0.5, np.float32)
    expected = play_episodes(make_envs(Counting), policy, [1, 2, 3, 4, 5])
    assert expected.lengths == (3, 5, 7, 4, 6)  # one environment: an episode more is begun behind each
    for mode in AutoresetMode:
        envs = make_envs(lambda mode=mode: SyncVectorEnv([Counting] * 3, autoreset_mode=mode))
        found = play_episodes(envs, policy, [1, 2, 3, 4, 5])
        envs.close()
        assert found.returns == tuple(length / 2 for length in found.lengths)
        assert found.episodes == 5 and found.lengths[:3] == (3, 3, 3)


def test_no_two_streams_runs_or_environments_share_their_randomness():
    draws = {
        tuple(seeding.generator(seed, stream).integers(2**63, size=2))
        for seed in range(20)
        for stream in seeding.STREAMS
    }
    assert len(draws) == 20 * len(seeding.STREAMS)
    seeds = [one for seed in range(20) for one in seeding.environment_seeds(seed, "environments", 50)]
    assert len(set(seeds)) == 1_000
    assert seeding.environment_seeds(1, "environments", 3) == seeding.environment_seeds(1, "environments", 9)[:3]
    starts = {tuple(seeding.environment_seeds(0, "evaluation environments", 3, step)) for step in range(100)}
    assert len(starts) == 100


def test_a_failing_environment_saves_what_was_learned_and_names_itself(tmp_path):
    settings = config(env=lambda: Unruly("nan", after=120), eval_every=0, checkpoint_every=0)
    with pytest.raises(td3.EnvironmentFailure, match=r"step 121: observation\['eye'\] holds nan"):
        for _ in td3.train(settings, tmp_path / "run"):
            pass
    agent = td3.load(tmp_path / "run")
    assert agent.step == 120
    assert np.isfinite(agent.act({"eye": np.zeros(2, np.float32), "mode": 1})).all()


def test_a_dying_worker_costs_nothing_that_was_learned(tmp_path):
    settings = config(env=lambda: Unruly("die", after=60), eval_every=0, checkpoint_every=0, num_envs=2, workers=1)
    with pytest.raises(td3.EnvironmentFailure, match="its process was killed by SIGKILL"):
        for _ in td3.train(settings, tmp_path / "run"):
            pass
    assert td3.load(tmp_path / "run").step == 120
    events = list(td3.resume(tmp_path / "run", steps=200, env=lambda: Unruly("die", after=1_000)))
    assert all("how its episode began is not known" in note for note in events[1].notes) and events[-1].step == 200


def test_leaving_the_loop_saves_where_it_was_left(tmp_path):
    for event in td3.train(config(), tmp_path / "run"):
        if event.step == 130:
            break
    del event
    assert td3.load(tmp_path / "run").step == 130


@pytest.mark.parametrize("engine", BOTH)
def test_numbers_that_explode_end_the_run_with_a_sentence(engine):
    class Exploding(Probe):
        def step(self, action):
            seen, _, terminated, truncated, info = super().step(action)
            return seen, 1e38, terminated, truncated, info

    with pytest.raises(td3.TrainingDiverged, match="NaN or infinity at step"):
        play(config(env=lambda: Exploding("endless"), eval_every=0, steps=2_000, engine=engine))


def test_a_warm_up_longer_than_the_run_is_noted():
    _, events = play(config(warmup_steps=500, steps=60, eval_every=0, engine="torch"))
    assert events[0].notes == (
        "warmup_steps is 500 and steps only 60: the agent will play at random throughout.",
        "update_after is 500 and steps only 60: the agent will learn nothing.",
    )


def test_more_threads_than_cores_are_refused(monkeypatch):
    monkeypatch.setattr(making, "cores", lambda: 2)
    for begin in (lambda settings: Session(settings), check_environment):
        with pytest.raises(td3.ConfigError, match=r"^threads must be at most 2, .*; got 99\.$"):
            begin(config(env="Pendulum-v1", threads=99))
    session = Session(config(env="Pendulum-v1", threads=2))
    assert session.threads == session.summary()["threads"] == 2
    session.close()


def test_a_memory_too_large_for_this_machine_is_refused_before_the_first_step():
    with pytest.raises(td3.ConfigError, match="buffer_size must be at most"):
        Session(config(buffer_size=10**12, steps=10**12))


def test_crossing_counts_multiples_on_the_way():
    assert [crossed(100, *pair) for pair in ((0, 99), (99, 100), (100, 101), (98, 203))] == [False, True, False, True]
    assert not crossed(0, 5, 10)


def test_networks_that_are_no_numbers_are_their_own_fault_and_do_not_replace_good_checkpoints(tmp_path):
    class Echo(Probe):
        def step(self, action):
            return np.asarray(action), 3e38, False, False, {}

    settings = config(env=lambda: Echo("endless"), eval_every=0, checkpoint_every=20, log_every=1_000)
    with pytest.raises(td3.TrainingDiverged, match="NaN or infinity at step"):
        for _ in td3.train(settings, tmp_path / "run"):
            pass
    assert np.isfinite(td3.load(tmp_path / "run").act(np.zeros(1, np.float32))).all()
    last = json.loads((tmp_path / "run/metrics.jsonl").read_text().splitlines()[-1])
    assert "NaN or infinity" in last["failed"]  # the record says why it ended


def test_the_same_environment_twice_is_refused():
    env = Counting()
    with pytest.raises(td3.ConfigError, match="must make a new environment each time"):
        Session(config(env=lambda: env))
    with pytest.raises(td3.ConfigError, match="must make a new environment each time"):
        Session(config(env=lambda: env, num_envs=2, eval_every=0))


def test_an_episode_without_an_end_does_not_hang_an_evaluation(monkeypatch):
    from td3 import evaluation

    class Endless(Probe):
        def step(self, action):
            return self.seen, 0.0, False, False, {}

    monkeypatch.setattr(evaluation, "LONGEST", 500)
    with pytest.raises(td3.EnvironmentFailure, match="did not end within 500 steps: give it a time limit"):
        play(config(env=lambda: Endless("endless")))


def test_evaluation_plays_exactly_what_the_actor_says():
    from td3.environments import make_envs
    from td3.evaluation import play_episodes

    # Counting pays its action: three steps of 0.25, and nothing but that
    envs = make_envs(Counting)
    evaluation = play_episodes(envs, lambda o: np.full((1, 2), 0.25, np.float32), [1])
    assert evaluation.returns == (0.75,) and evaluation.lengths == (3,)


@pytest.mark.parametrize("workers", [0, 1])
def test_an_interrupted_step_is_forgotten_and_episodes_begin_anew(workers):
    session = Session(config(env=Counting, num_envs=2, workers=workers, eval_every=0))
    step = session.collector.envs.step

    def interrupted(actions):
        session.collector.envs.step = step
        if workers:
            session.collector.envs._ask("step", [(actions,)])
        else:
            step(actions)
        raise KeyboardInterrupt

    list(advance(session, 10))
    session.collector.envs.step = interrupted
    with pytest.raises(KeyboardInterrupt):
        list(advance(session, 20))
    list(advance(session, 60))
    rows = session.learner.memory.rows(0, 60)
    session.close()
    assert (rows["observation"][:, :2] == rows["next_observation"][:, :2]).all()
    assert (rows["next_observation"][:, 2] == rows["observation"][:, 2] + 1).all()
    assert (rows["reward"] == rows["action"][:, 0]).all()
