"""How an environment is named in a run: by an id or a callable, with arguments, so that it can be opened again."""

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from example_envs import Counting, Spaces
from gymnasium.envs.classic_control import PendulumEnv
from refusals import UNSAID, refusal

import td3
from td3.config import Config, env_name, has_no_name
from td3.environments import make_envs
from td3.errors import ConfigError
from td3.views.cli import main

SMALL = {
    "steps": 40, "hidden": (8,), "batch_size": 8, "warmup_steps": 20, "threads": 1, "film": False, "eval_every": 0,
    "log_every": 20,
}  # fmt: skip
FLAGS = [
    "--steps", "40", "--hidden", "8", "--batch-size", "8", "--warmup-steps", "20", "--threads", "1", "--no-film",
    "--eval-every", "0", "--quiet",
]  # fmt: skip


class Sized(gymnasium.Env):
    """Observes as many numbers as it is told, all of them `value`."""

    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, size=2, value=0.5, names=()):
        self.observation_space = gymnasium.spaces.Box(-9, 9, (size,), np.float32)
        self.value, self.names = value, names

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return np.full(self.observation_space.shape, self.value, np.float32), {}

    def step(self, action):
        self.count += 1
        return np.full(self.observation_space.shape, self.value, np.float32), 0.0, False, self.count == 5, {}

    @classmethod
    def large(cls):
        return cls(7)


def on_disk(run):
    return json.loads((run / "config.json").read_text())


def unusual(size, /):
    return Sized(size)


# ---- what a Config makes of it ----


def test_a_partial_of_gymnasium_make_is_its_id_and_its_arguments():
    config = Config(env=partial(gymnasium.make, "Pendulum-v1", g=9.0, max_episode_steps=50))
    assert config.env == "Pendulum-v1" and config.env_args == {"g": 9.0, "max_episode_steps": 50}
    assert config == Config(env="Pendulum-v1", env_args={"g": 9.0, "max_episode_steps": 50})
    assert config.steps == 10_000  # the task's own settings
    assert Config(env=partial(gymnasium.make, id="Pendulum-v1")) == Config(env="Pendulum-v1")
    assert Config(env=partial(gymnasium.make, "Pendulum-v1", 50)).env_args == {"max_episode_steps": 50}


def test_a_partial_of_a_class_is_the_class_and_its_arguments_and_what_is_said_besides_counts():
    config = Config(env=partial(Sized, 3, names=("a", "b")), env_args={"value": np.float32(0.25)})
    assert config.env is Sized and config.env_args == {"size": 3, "names": ["a", "b"], "value": 0.25}
    assert Config(env=partial(Sized, size=3), env_args={"size": 4}).env_args == {"size": 4}
    assert Config.from_data(config.to_data()).env_args == config.env_args
    assert env_name(config.env) == "test_env_args:Sized" and not has_no_name(env_name(config.env))
    assert Config(env=partial(Sized)).env is Sized
    hash(config)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("two words", 1), ("", 1), ("1st", 1), (3, 1), ("x", {}), ("x", object()), ("x", float("nan")), ("x", 1e999),
        ("x", [1, {}]), ("x", 2**64), ("x", "\udc80"), ("x", b"bytes"), ("x", 1j), ("x", PendulumEnv),
    ],
)  # fmt: skip
def test_arguments_that_are_no_plain_data_are_refused(name, value):
    with refusal(ConfigError, "env_args"):
        Config(env="Pendulum-v1", env_args={name: value})
    with refusal(ConfigError, "env_args"):
        Config(env="Pendulum-v1", env_args=[name])


@pytest.mark.parametrize("value", [None, True, 0, -3, 2**64 - 1, 0.1, "text", "ü", [], [1, [2.5, None], "x"]])
def test_plain_data_survives_the_journey_through_a_run(value, tmp_path):
    list(td3.train(Config(env=Sized, env_args={"names": value}, **{**SMALL, "steps": 5}), tmp_path / "run"))
    assert on_disk(tmp_path / "run")["env_args"] == {"names": value}
    assert td3.load(tmp_path / "run", trust=True).make_env().names == value


def nested():
    def make():
        return Sized()

    return make


class Maker:
    def __call__(self):
        return Sized()

    def make(self):
        return Sized()


NAMELESS = {
    "a lambda": lambda: Sized(),
    "a function inside another": nested(),
    "an object": Maker(),
    "a method of an object": Maker().make,
    "a partial of no plain data": partial(Spaces, Sized().observation_space, Sized().action_space),
    "a partial that takes no names": partial(unusual, 2),
}


@pytest.mark.parametrize("what", list(NAMELESS))
def test_what_has_no_name_says_so_when_it_is_to_be_opened_again(what, tmp_path, capsys):
    run, env = tmp_path / "run", NAMELESS[what]
    for event in td3.train(Config(env=env, **SMALL), run):
        if event.step == 30:
            break
    del event
    name = on_disk(run)["env"]
    assert has_no_name(name) and name.startswith("test_env_args:" if "Spaces" not in name else "example_envs:")
    agent = td3.load(run)
    assert agent.act(np.zeros(2, np.float32)).shape == (1,)
    for trust in (False, True):
        with refusal(ConfigError, "env", name, "env=") as caught:
            td3.load(run, trust=trust).make_env()
        assert "trust" not in str(caught.value)
        with pytest.raises(ConfigError):
            td3.evaluate(td3.load(run, trust=trust), 1)
        with pytest.raises(ConfigError):
            list(td3.resume(run, trust=trust))
    for command in ("evaluate", "resume"):
        assert main([command, str(run), "--trust"]) == 2
        assert "--env module:callable" in capsys.readouterr().err
    assert td3.evaluate(td3.load(run, env=env), 1).lengths in ((5,), (10,))
    assert list(td3.resume(run, env=env))[-1].step == 40
    capsys.readouterr()


def test_a_partial_of_an_older_run_is_known_to_have_no_name():
    with refusal(ConfigError, "env", "functools:partial"):
        make_envs("functools:partial")
    with refusal(ConfigError, "env", "__main__:OfAnotherScript"):
        make_envs("__main__:OfAnotherScript")


# ---- runs ----


def test_a_run_is_resumed_and_evaluated_with_its_arguments(tmp_path):
    run = tmp_path / "run"
    make = partial(gymnasium.make, "Pendulum-v1", max_episode_steps=15, g=5.0)
    for event in td3.train(Config(env=make, **SMALL), run):
        if event.step == 20:
            break
    del event
    assert on_disk(run)["env"] == "Pendulum-v1" and on_disk(run)["env_args"] == {"max_episode_steps": 15, "g": 5.0}
    assert td3.evaluate(td3.load(run), 1).lengths == (15,)
    assert td3.load(run).make_env().unwrapped.g == 5.0
    episodes = [event.length for event in td3.resume(run) if isinstance(event, td3.EpisodeEnded)]
    assert episodes == [15]  # at step 30; the first ended at 15
    assert td3.evaluate(td3.load(run, env="Pendulum-v1"), 1).lengths == (15,)  # the run's own, passed once more
    assert td3.evaluate(td3.load(run, env=partial(make, max_episode_steps=9)), 1).lengths == (9,)
    assert td3.evaluate(td3.load(run, env=lambda: make(max_episode_steps=8)), 1).lengths == (8,)  # another: as it is


@pytest.mark.parametrize("workers", [0, 2])
def test_arguments_reach_every_environment_wherever_it_lives(workers):
    made = make_envs(Sized, 2, workers, env_args={"size": 3, "value": 0.125})
    assert made.reset([1, 2]).tolist() == [[0.125] * 3] * 2
    made.close()


def test_a_name_may_have_dots(tmp_path):
    list(td3.train(Config(env=Sized.large, **SMALL), tmp_path / "run"))
    assert on_disk(tmp_path / "run")["env"] == "test_env_args:Sized.large"
    assert td3.load(tmp_path / "run", trust=True).make_env().observation_space.shape == (7,)


def test_a_config_without_arguments_is_still_understood():
    data = Config(env="Pendulum-v1").to_data()
    assert data.pop("env_args") == {}
    assert Config.from_data(data) == Config(env="Pendulum-v1")


def test_the_flag_takes_json_and_else_text(tmp_path, capsys):
    run = tmp_path / "run"
    words = ["size=3", "value=0.25", 'names=["a", null, true]']
    arguments = [word for one in words for word in ("--env-arg", one)]
    assert main(["train", "test_env_args:Sized", "--run", str(run), *arguments, *FLAGS]) == 0
    assert on_disk(run)["env_args"] == {"size": 3, "value": 0.25, "names": ["a", None, True]}
    assert main(["resume", str(run), "--trust", "--steps", "50", "--quiet"]) == 0
    assert main(["check", "test_env_args:Sized", "--env-arg", "size=5", "--env-arg", "names=up=down", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["observation_size"] == 5


@pytest.mark.parametrize("text", ["size", "=3", "two words=1", 'size={"a": 1}', "colour=3", "size=none"])
def test_a_bad_argument_is_one_sentence_and_exit_code_two(text, tmp_path, capsys):
    assert main(["train", "test_env_args:Sized", "--run", str(tmp_path / "run"), "--env-arg", text, *FLAGS]) == 2
    assert capsys.readouterr().err.count("\n") == 1 and not (tmp_path / "run").exists()


# ---- an environment instead of what makes one ----


class Callable(Counting):
    def __call__(self):
        return self


@pytest.mark.parametrize("make", [Counting, Callable, lambda: gymnasium.vector.SyncVectorEnv([Counting])])
def test_an_environment_itself_is_refused_as_the_env_that_it_is(make, tmp_path):
    list(td3.train(Config(env=Counting, **SMALL), tmp_path / "run"))
    env = make()
    for attempt in (
        lambda: Config(env=env),
        lambda: td3.TD3(env),
        lambda: td3.load(tmp_path / "run", env=env),
        lambda: list(td3.resume(tmp_path / "run", env=env)),
        lambda: td3.TD3.load(tmp_path / "run", env=env),
    ):
        with refusal(ConfigError, "env", UNSAID, type(env).__name__):
            attempt()


def test_a_config_is_made_without_gymnasium():
    code = "import sys, td3; td3.Config(env='Pendulum-v1', env_args={'g': 1}); sys.exit('gymnasium' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- vector environments that fork ----

VECTOR = """
import os
from functools import partial
from pathlib import Path
import gymnasium
from gymnasium.vector import AsyncVectorEnv

def make():
    return AsyncVectorEnv([partial(gymnasium.make, "Pendulum-v1")] * 2)
"""


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_run_with_an_asynchronous_vector_ends_without_a_traceback(interrupted, tmp_path):
    (tmp_path / "vectors.py").write_text(VECTOR)
    steps = "100000000" if interrupted else "60"
    words = ["train", "vectors:make", "--run", "run", *FLAGS[2:-1], "--steps", steps, "--checkpoint-every", "40"]
    started = subprocess.Popen(
        [sys.executable, "-m", "td3", *words],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(td3.__file__).parents[1]), *sys.path])},
    )
    if interrupted:  # as a terminal does: the whole group is told
        while not started.stderr.readline().startswith("Memory"):
            assert started.poll() is None
        os.killpg(started.pid, signal.SIGINT)
    text = started.communicate(timeout=240)[1]
    assert started.returncode == (130 if interrupted else 0), text
    assert "Traceback" not in text and text.count("Stopping") == int(interrupted)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_only_processes_that_are_forked_while_an_environment_is_made_have_plain_signals():
    found = []

    def fork():
        reading, writing = os.pipe()
        if (child := os.fork()) == 0:
            handlers = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
            os.write(
                writing, repr([handler.name for handler in handlers if isinstance(handler, signal.Handlers)]).encode()
            )
            os._exit(0)
        os.waitpid(child, 0)
        found.append(os.read(reading, 1_000).decode())
        os.close(reading), os.close(writing)
        return Counting()

    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        make_envs(fork).close()
        fork()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert found == ["['SIG_IGN', 'SIG_DFL', 'SIG_DFL']", "['SIG_DFL']"]


def test_a_text_of_a_strangers_run_is_given_to_no_environment_because_it_may_name_a_file(tmp_path):
    make = partial(gymnasium.make, "Pendulum-v1", render_mode="rgb_array")
    list(td3.train(Config(env=make, **SMALL), tmp_path / "run"))
    for call in (
        lambda: list(td3.resume(tmp_path / "run", steps=50)),
        lambda: td3.evaluate(td3.load(tmp_path / "run")),
    ):
        with refusal(ConfigError, "env_args", UNSAID, "render_mode", "--trust"):
            call()
    assert list(td3.resume(tmp_path / "run", steps=50, trust=True))[-1].step == 50
    assert td3.evaluate(td3.load(tmp_path / "run", trust=True), episodes=1).episodes == 1
