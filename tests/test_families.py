"""Environments of other packages: who forgets the prefix or the package gets the line to type."""

import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import registry
from refusals import UNSAID, refusal

from td3.environments import ActionMap, families, make_envs
from td3.errors import ConfigError, SpaceError

NEEDS = {  # an id as it is often written, with what the answer must name
    "FetchReach-v4": ("Gymnasium-Robotics", "gymnasium-robotics", "gymnasium_robotics:FetchReach-v4"),
    "HandManipulateBlock-v1": ("Gymnasium-Robotics", "gymnasium_robotics:HandManipulateBlock-v1"),
    "AntMaze_UMaze-v5": ("gymnasium-robotics", "gymnasium_robotics:AntMaze_UMaze-v5"),
    "dm_control/cartpole-balance-v0": ("shimmy[dm-control]", "shimmy:dm_control/cartpole-balance-v0"),
    "LunarLander-v3": ("Box2D", "gymnasium[box2d]"),
    "gymnasium_robotics:FetchReach-v4": ("gymnasium-robotics",),
    "shimmy:dm_control/cartpole-balance-v0": ("shimmy[dm-control]",),
}


@pytest.fixture
def installed(monkeypatch):
    """The modules that count as installed."""
    there = set()
    monkeypatch.setattr(families, "find_spec", lambda name: name if name in there else None)
    for name in ("shimmy", "gymnasium_robotics", "Box2D", "dm_control"):
        monkeypatch.setitem(sys.modules, name, None)  # whatever is installed here
    return there


@pytest.mark.parametrize("env", list(NEEDS))
def test_an_id_of_a_package_that_is_missing_is_refused_with_what_to_install_and_to_write(env, installed):
    assert not installed
    with refusal(ConfigError, "env", env, "pip install", *NEEDS[env]) as caught:
        make_envs(env)
    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize("env", ["FetchReach-v4", "AntMaze_UMaze-v5", "dm_control/cartpole-balance-v0"])
def test_an_id_without_its_module_is_refused_with_the_whole_id_alone_where_the_package_is_installed(env, installed):
    installed.update(("gymnasium_robotics", "shimmy", "dm_control"))
    with refusal(ConfigError, "env", env, NEEDS[env][-1]) as caught:
        make_envs(env)
    assert "pip" not in str(caught.value) and "Did you mean" not in str(caught.value)


def test_a_mistyped_id_of_gymnasium_still_gets_the_right_one(installed):
    with refusal(ConfigError, "env", "Reachr-v5", "Reacher"):
        make_envs("Reachr-v5")
    installed.add("gymnasium_robotics")
    assert families.family_advice("gymnasium_robotics:FetchReach-v99") == ""


def test_no_id_of_gymnasium_itself_belongs_to_a_family_with_a_module_of_its_own():
    own = [family for family in families.FAMILIES if family.module]
    gymnasiums = [name for name, spec in registry.items() if str(spec.entry_point).startswith("gymnasium.envs")]
    assert len(gymnasiums) > 40
    assert not [name for name in gymnasiums for family in own if name.startswith(family.ids)]


class Lander(gymnasium.Env):
    """Has real-valued actions when asked for them."""

    observation_space = spaces.Box(-1, 1, (1,))

    def __init__(self, continuous=False):
        self.action_space = spaces.Box(-1, 1, (2,)) if continuous else spaces.Discrete(4)


def test_discrete_actions_that_an_argument_makes_real_are_refused_with_that_argument():
    with refusal(SpaceError, "--env-arg", UNSAID, "continuous=true", "Discrete(4)") as caught:
        make_envs(Lander)
    assert "TransformAction" not in str(caught.value)
    assert make_envs(Lander, env_args={"continuous": True}).action.size == 2


def test_discrete_actions_of_a_task_with_a_real_valued_twin_are_refused_with_it():
    with refusal(SpaceError, "MountainCarContinuous-v0", UNSAID, "Discrete(3)"):
        make_envs("MountainCar-v0")


BOX = spaces.Box(-1, 1, (2,))
WRAPPED = {  # an action space that is no Box, and what its refusal must name
    "one choice": (spaces.Discrete(3), ("Discrete(3)", "Box of 3 numbers", "largest", "DQN")),
    "choices": (spaces.MultiDiscrete([2, 5]), ("MultiDiscrete", "Box of 2 numbers", "equal parts", "DQN")),
    "switches": (spaces.MultiBinary((2, 3)), ("MultiBinary", "Box of 6 numbers", "above 0", "DQN")),
    "boxes in a dict": (spaces.Dict({"a": BOX, "b": BOX}), ("Dict", "gymnasium.spaces.flatten_space")),
    "boxes in a tuple": (spaces.Tuple([BOX, BOX]), ("Tuple", "gymnasium.spaces.flatten_space")),
    "a mixture": (spaces.Tuple([spaces.Discrete(2), BOX]), ("Tuple", "for each choice", "for each real number")),
}


@pytest.mark.parametrize("name", list(WRAPPED))
def test_an_action_space_that_is_no_box_is_refused_with_the_way_to_wrap_it(name):
    space, facts = WRAPPED[name]
    with refusal(SpaceError, "gymnasium.wrappers.TransformAction", UNSAID, "docs/environments.md", *facts):
        ActionMap(space)


def test_an_action_space_without_a_usual_way_gets_no_advice():
    with refusal(SpaceError, "Text") as caught:
        ActionMap(spaces.Text(5))
    assert "TransformAction" not in str(caught.value)
    assert ActionMap(BOX).to_env(np.ones((1, 2), np.float32)).tolist() == [[1, 1]]


def test_a_class_of_the_users_own_is_suggested_where_its_name_is_nearly_right():
    with refusal(ConfigError, "env", "bench.broken_envs:twin", "Twin"):
        make_envs("bench.broken_envs:twin")
