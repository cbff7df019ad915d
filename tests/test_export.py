"""Exported policies: every format acts as the agent does, for every kind of observation and action."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import browser
import gymnasium
import numpy as np
import pytest
import torch
from dots import SMALL as SMALL_IMAGES
from dots import Dot, images
from example_envs import Spaces
from gymnasium import spaces
from refusals import check_names, refusal
from runs import SMALL
from torch import nn

import td3
from td3.environments.structure import assemble
from td3.errors import ConfigError, ExportError
from td3.export import policy_file, runners
from td3.export.buffers import place_values
from td3.export.description import describe
from td3.export.graph import Convolution, LayerNorm, Linear, Normalise, Relu, Tanh, Unscale
from td3.export.modules import MODULES
from td3.export.naming import c_string, class_name, comment, distinct, identifier
from td3.export.numpy_policy import perform
from td3.export.observations import arrays_of_rows, sampled_arrays
from td3.export.parity import LARGEST_ERROR, difference
from td3.learner.networks import initialise
from td3.views import cli

Box, Dict, Tuple = spaces.Box, spaces.Dict, spaces.Tuple
ENDINGS = (".onnx", ".c", ".js")
STRICT = "-O0 -Wall -Wextra -Werror -pedantic -fsanitize=address,undefined -fno-sanitize-recover=all"

ANY = Box(-np.inf, np.inf, (3,), np.float64)
FAR = Box(np.float32(1000), np.float32(1000.5), (4,))  # one float32 of the mean would lose most of it
ONE, TWO = Box(-1, 1, (1,)), Box(-1, 1, (2,))
NUMBERS = Dict(
    {
        "speed": Box(-2, 2, (2, 2)),
        "gear": spaces.Discrete(3, start=-1),
        "switches": spaces.MultiBinary(2),
        "cards": spaces.MultiDiscrete([2, 3]),
        "count": Box(0, 9, (), np.int64),
        "nothing": Box(-1, 1, (0,)),
    }
)
ODD_NAMES = Dict({"a b": Box(-1, 1, (1,)), "a-b": Box(-1, 1, (1,)), "int": ONE, 0: Tuple([ONE, Dict({"é": ONE})])})
BOTH = Dict({"a": ANY, "eye": images(9, 12, 3), "mode": spaces.Discrete(2), "back": images(4, 8, 8)})


class OwnLayers(td3.Learner):
    """Has an actor of layers that td3 knows, in an order that it does not use itself."""

    def make_actor(self, features, generator):
        layers = nn.Linear(features, 6, bias=False), nn.LayerNorm(6), nn.Tanh(), nn.Identity()
        return initialise(nn.Sequential(*layers, nn.Linear(6, self.action_size), nn.Tanh()), generator)


# What an agent observes and does, and settings of its own.
CASES = {
    "mlp": (ANY, TWO, {}),
    "no hidden layer": (ANY, TWO, {"hidden": ()}),
    "normalised": (FAR, TWO, {"normalize_observations": True}),
    "normalised before any step": (ANY, TWO, {"normalize_observations": True, "learned": 0}),
    "history": (NUMBERS, TWO, {"history": 3, "normalize_observations": True}),
    "one number": (Box(-1, 1, ()), ONE, {}),
    "a category": (spaces.Discrete(4), ONE, {"history": 2}),
    "odd names": (ODD_NAMES, ONE, {}),
    "images": (images(9, 12, 3), ONE, {"frame_stack": 2}),
    "images of planes": (images(3, 12, 9), ONE, {}),
    "grey images": (images(10, 8), ONE, {"frame_stack": 3}),
    "images that the environment stacks": (images(2, 9, 8, 3), ONE, {}),
    "large images": (images(50, 52, 3), ONE, {"encoder_channels": (4, 5)}),
    "image and numbers": (BOTH, TWO, {"frame_stack": 3, "history": 2, "normalize_observations": True}),
    "asymmetric bounds": (ANY, Box(np.array([-2, 0, 5, 100], np.float32), np.array([3, 10, 5, 101], np.float32)), {}),
    "actions of shape (2, 3)": (ANY, Box(-3, 1, (2, 3)), {}),
    "one action without a shape": (ANY, Box(-3, 1, ()), {}),
    "float64 actions": (ANY, Box(10_000.0, 10_001.0, (2,), np.float64), {}),
    "float16 actions": (ANY, Box(-2, 2, (2,), np.float16), {}),
    "far float32 actions": (ANY, Box(np.float32(1000), np.float32(1000.1), (2,)), {}),
    "own layers": (ANY, TWO, {"learner": OwnLayers}),
}


@cache
def short_way(name):
    """A TD3 that has learned a little, or nothing, where the case says so."""
    observed, actions, settings = CASES[name]
    settings = {"num_envs": 1, **SMALL_IMAGES, "warmup_steps": 30, **settings}
    steps = settings.pop("learned", 40)
    made = td3.TD3(partial(Spaces, observed, actions), **settings)
    return made.learn(steps) if steps else made


def agent_of(name):
    return short_way(name).agent


def graph_of(agent, name="policy"):
    return describe(agent._learner, agent.observation, agent.action, agent.config, agent.step, name)


def nested(agent, graph, arrays):
    """A batch of observations, as the environment nests them."""
    return assemble(agent.observation, {one.path: arrays[one.name] for one in graph.inputs})


def needs_tool(ending):
    """Skips where nothing can run such a file."""
    if ending == ".c" and not shutil.which("gcc"):
        pytest.skip("there is no gcc")
    if ending == ".js" and not shutil.which("node"):
        pytest.skip("there is no node: apt-get install nodejs")


TOOLS = {".onnx": "onnxruntime ", ".c": "compiled by ", ".js": "node "}


# --- Parity -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("name", list(CASES))
def test_a_file_acts_as_the_agent_does(name, ending, tmp_path, monkeypatch):
    needs_tool(ending)
    monkeypatch.setenv("CC", f"gcc {STRICT}")
    exported = agent_of(name).export(tmp_path / f"policy{ending}")
    assert exported.observations == 1_000 and not exported.unchecked and exported.tool.startswith(TOOLS[ending])
    assert exported.remembered == (0 if name == "normalised before any step" else 40)
    rounding = {"float16 actions": 2.0**-11, "far float32 actions": 2.0**-14 / 0.1}.get(name, 0)  # of the dtype itself
    assert exported.error <= max(LARGEST_ERROR, rounding), exported
    assert (tmp_path / f"policy{ending}").stat().st_size == exported.size


@pytest.mark.parametrize("name", list(CASES))
def test_the_description_performed_in_numpy_acts_as_the_agent_does(name):
    agent = agent_of(name)
    graph = graph_of(agent)
    arrays = sampled_arrays(graph, 50, np.random.default_rng(1))
    wanted = agent.act(nested(agent, graph, arrays))
    actions = perform(graph, arrays)
    assert actions.shape == wanted.shape == (50, *CASES[name][1].shape)
    assert difference(actions.reshape(50, -1), wanted.reshape(50, -1), graph.action)[1]
    assert len(np.unique(wanted)) > 10, "the agent must not do the same everywhere"


@pytest.mark.parametrize("name", ["history", "images", "image and numbers", "odd names"])
def test_remembered_rows_become_the_observations_they_were_made_of(name):
    made = short_way(name)
    agent, memory = made.agent, made._session.learner.memory
    indices = np.flatnonzero(memory.can_sample(np.arange(memory.written)))
    rows = memory.batch(indices).observation.numpy()
    graph = graph_of(agent)
    arrays = arrays_of_rows(rows, agent.observation.layout, graph.inputs)
    again, batch = agent.observation.rows(nested(agent, graph, arrays))
    assert batch and np.array_equal(again, rows) and len(rows) == 40


# --- The state that a C or JavaScript policy keeps --------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".c", ".js"])
def test_a_policy_with_a_history_follows_whole_episodes_from_single_time_steps(ending, monkeypatch):
    needs_tool(ending)
    monkeypatch.setenv("CC", f"gcc {STRICT}")
    settings = {**SMALL_IMAGES, "frame_stack": 2, "history": 3, "normalize_observations": True}
    agent = td3.TD3(partial(Dot, "both"), **settings).learn(40).agent
    graph = graph_of(agent)
    env, wanted, records = agent.make_env(), [], []
    for episode in range(2):
        observation, ended, begins = env.reset(seed=episode)[0], False, True
        while not ended:
            record = np.zeros((), runners.record_type(graph))
            record["begins"] = begins
            record["observation"]["a"] = observation["a"][-1]  # the newest time step alone
            record["observation"]["eye"] = observation["eye"][-1].reshape(-1)
            records.append(record)
            wanted.append(agent.act(observation))
            observation, _, terminated, truncated, _ = env.step(wanted[-1])
            ended, begins = terminated or truncated, False
    assert len(records) == 24 and sum(int(record["begins"]) for record in records) == 2
    monkeypatch.setattr(runners, "_records", lambda graph, arrays: np.array(records))
    monkeypatch.setattr(runners, "depth_of", lambda graph: 1)
    form = policy_file.FORMATS[ending]
    actions = form.run(form.write(graph), graph, {}).actions
    assert np.abs(actions - np.array(wanted)).max() < 5 * LARGEST_ERROR  # the range is 5 wide
    assert np.ptp(actions) > 1e-3


C_MAIN = """
#define TWICE_DECLARATIONS
#include "twice.c"
#undef TWICE_DECLARATIONS
#include "twice.c"
#include <math.h>
#include <stdio.h>

static twice_state state;

int main(void)
{
    twice_observation observation = {0};
    float action[TWICE_ACTION_SIZE] = {7.0f, 7.0f};
    twice_reset(&state);
    observation.gear = 2;
    printf("%d ", twice_act(&state, &observation, action));
    observation.gear = -2;
    printf("%d ", twice_act(&state, &observation, action));
    observation.gear = 1;
    observation.cards[1] = 3;
    printf("%d ", twice_act(&state, &observation, action));
    observation.cards[1] = 2;
    observation.speed[3] = (float)NAN;
    printf("%d ", twice_act(&state, &observation, action));
    observation.speed[3] = -(float)INFINITY;
    printf("%d ", twice_act(&state, &observation, action));
    printf("%g %d ", (double)action[0], state.begun);
    observation.speed[3] = 1.0f;
    printf("%d ", twice_act(&state, &observation, action));
    printf("%d\\n%s\\n", state.begun, twice_about());
    return action[0] == 7.0f;
}
"""


def test_a_c_program_gets_a_number_for_each_bad_field_and_nothing_is_changed(tmp_path):
    needs_tool(".c")
    agent_of("history").export(tmp_path / "twice.c")
    (tmp_path / "main.c").write_text(C_MAIN)
    words = ["gcc", "-std=c99", *STRICT.split(), "main.c", "-o", "main"]  # nothing is linked: no -lm
    subprocess.run(words, cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True)
    codes, about = done.stdout.splitlines()
    assert [one["name"] for one in json.loads(about)["inputs"]] == ["cards", "count", "gear", "speed", "switches"]
    assert codes == "3 3 1 4 4 7 0 0 1"  # gear twice, cards, speed twice: the action and the state are as they were


def test_a_c_file_needs_no_symbol_but_its_own(tmp_path):
    needs_tool(".c")
    for name in ("history", "image and numbers"):
        agent_of(name).export(tmp_path / "alone.c")
        command = ["gcc", "-std=c99", "-O1", "-ffreestanding", "-fno-builtin", "-c", "alone.c", "-o", "alone.o"]
        subprocess.run(command, cwd=tmp_path, check=True)
        found = subprocess.run(["nm", "alone.o"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        symbols = [line.split()[-2:] for line in found.splitlines()]
        assert sorted(name for kind, name in symbols if kind == "T") == ["alone_about", "alone_act", "alone_reset"]
        assert not [name for kind, name in symbols if kind not in "TtrRdD" and not name.startswith(".")], found


def test_the_tanh_of_c_is_as_good_as_float32_can_be(tmp_path):
    needs_tool(".c")
    agent_of("mlp").export(tmp_path / "p.c")
    (tmp_path / "main.c").write_text(
        '#include "p.c"\n#include <stdio.h>\nint main(void) { float x; while (fread(&x, sizeof x, 1, stdin) == 1) '
        "{ float y = p_tanh(x); fwrite(&y, sizeof y, 1, stdout); } return 0; }\n"
    )
    subprocess.run(["gcc", "-std=c99", "main.c", "-o", "main"], cwd=tmp_path, check=True)
    x = np.concatenate([np.linspace(-25, 25, 40_001), np.geomspace(1e-30, 1e30, 1_001)]).astype(np.float32)
    output = subprocess.run([tmp_path / "main"], input=x.tobytes(), capture_output=True, check=True).stdout
    exact = np.tanh(x.astype(np.float64))
    assert (np.abs(np.frombuffer(output, np.float32) - exact) <= np.spacing(np.abs(exact).astype(np.float32))).all()


JS_MAIN = """
const Policy = require("./twice.js");
const said = [];
const attempt = (change) => {
    const policy = new Policy();
    const observation = { speed: [[1, 2], [0, 1]], gear: 1, switches: [1, 0], cards: new Int8Array([1, 2]), count: 3 };
    try { said.push(Array.from(policy.act(change(observation)))); } catch (problem) { said.push(problem.message); }
};
attempt((o) => o);
attempt((o) => ({ ...o, speed: [1, 2, 0, 1] }));
attempt((o) => ({ ...o, speed: [1, 2, 3] }));
attempt((o) => ({ ...o, speed: [1, 2, NaN, 3] }));
attempt((o) => ({ ...o, gear: 1.5 }));
attempt((o) => ({ ...o, cards: [0, 3] }));
attempt((o) => ({ ...o, speed: undefined }));
said.push(globalThis.TwicePolicy === Policy, Policy.about.action.high);
console.log(JSON.stringify(said));
"""


def test_javascript_takes_nested_and_flat_arrays_and_names_what_is_wrong(tmp_path):
    needs_tool(".js")
    agent = agent_of("history")
    agent.export(tmp_path / "twice.js")
    (tmp_path / "main.js").write_text(JS_MAIN)
    done = subprocess.run(["node", "main.js"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, same, few, nan, half, card, missing, is_global, high = json.loads(done.stdout)
    observation = {
        "speed": np.float32([[[1, 2], [0, 1]]] * 3), "gear": [1] * 3, "switches": np.int8([[1, 0]] * 3),
        "cards": [[1, 2]] * 3, "count": [3] * 3, "nothing": np.zeros((3, 0), np.float32),
    }  # fmt: skip
    assert np.abs(agent.act(observation) - first).max() < 1e-5 and same == first
    check_names(few, "observation['speed']", 3, 4)
    check_names(nan, "observation['speed']", "NaN", 2)
    check_names(half, "observation['gear']", 1.5, -1, 1)
    check_names(card, "observation['cards']", 3, 0, 2)
    check_names(missing, "observation['speed']")
    assert is_global and high == [1.0, 1.0]


# --- ONNX -------------------------------------------------------------------------------------------------------------


def test_an_onnx_file_has_one_input_for_each_part_and_its_metadata(tmp_path):
    import onnxruntime

    agent_of("image and numbers").export(tmp_path / "both.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "both.onnx")
    assert {one.name: (one.type, one.shape) for one in session.get_inputs()} == {
        "a": ("tensor(float)", ["batch", 2, 3]),
        "eye": ("tensor(uint8)", ["batch", 3, 9, 12, 3]),
        "mode": ("tensor(int64)", ["batch", 2]),
        "back": ("tensor(uint8)", ["batch", 3, 4, 8, 8]),
    }
    (output,) = session.get_outputs()
    assert (output.name, output.type, output.shape) == ("action", "tensor(float)", ["batch", 2])
    about = {key: json.loads(value) for key, value in session.get_modelmeta().custom_metadata_map.items()}
    assert about["action"] == {"shape": [2], "dtype": "float32", "low": [-1.0, -1.0], "high": [1.0, 1.0]}
    assert [(one["name"], one["kind"], one["shape"], one["stack"]) for one in about["inputs"]] == [
        ("a", "vector", [3], 2),
        ("back", "image", [4, 8, 8], 3),
        ("eye", "image", [9, 12, 3], 3),
        ("mode", "category", [], 2),
    ]
    assert about["normalized"] is True and about["step"] == 40 and about["made_by"] == f"td3 {td3.__version__}"


def test_without_onnxruntime_the_reference_implementation_of_onnx_checks(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    exported = agent_of("image and numbers").export(tmp_path / "p.onnx")
    assert exported.tool.startswith("onnx ") and exported.error <= LARGEST_ERROR


def test_settings_that_the_caller_must_apply_are_in_the_metadata(tmp_path):
    settings = {**SMALL_IMAGES, "pixels": 8, "grey": True, "action_repeat": 2, "frame_stack": 2}
    agent = td3.TD3(partial(Dot, "numbers"), **settings).learn(5).agent
    assert graph_of(agent).about["prepare"] == {"pixels": 8, "grey": True, "action_repeat": 2}


# --- What a file is made of -------------------------------------------------------------------------------------------


def test_the_description_of_a_known_policy_has_these_operations_and_numbers():
    ops = graph_of(agent_of("image and numbers")).ops
    kinds = [type(op).__name__ for op in ops]
    encoder = ["ReadImage", "Convolution", "Relu", "Linear", "LayerNorm", "Tanh"]
    assert kinds == [*encoder * 2, "ReadNumbers", "Normalise", "Join", "Linear", "Relu", "Linear", "Tanh", "Unscale"]
    assert ops[0].shape == (3 * 4, 8, 8) and ops[6].shape == (3 * 3, 9, 12)  # stacked channels first
    assert ops[12].shape == (2, 5) and ops[14].shape == (6 + 6 + 10,)
    unscale = graph_of(agent_of("asymmetric bounds")).action
    assert unscale.source.tolist() == [0, 1, 0, 2] and unscale.half.tolist() == [2.5, 5, 0, 0.5]


def test_values_that_are_needed_at_the_same_time_never_share_a_place():
    graph = graph_of(agent_of("image and numbers"))
    places, size = place_values(graph)
    spans = [(place, place + int(np.prod(op.shape))) for place, op in zip(places, graph.ops, strict=True)]
    joined = next(number for number, op in enumerate(graph.ops) if type(op).__name__ == "Join")
    taken = [spans[number] for number in (*graph.ops[joined].takes, joined)]
    assert all(one[1] <= other[0] or other[1] <= one[0] for one in taken for other in taken if one is not other)
    assert size == max(end for _, end in spans) < sum(end - start for start, end in spans)


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_same_policy_gives_the_same_bytes(ending, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    files = [tmp_path / f"p{ending}", tmp_path / "elsewhere" / f"p{ending}"]
    for file in files:
        agent_of("image and numbers").export(file)
    assert files[0].read_bytes() == files[1].read_bytes()


MISTAKES = {
    "the bounds are forgotten": lambda op: (
        replace(op, half=np.ones_like(op.half), centre=0 * op.centre, low=op.low - 9, high=op.high + 9)
        if isinstance(op, Unscale)
        else op
    ),
    "the statistics are forgotten": lambda op: (
        replace(op, mean=0 * op.mean, scale=np.ones_like(op.scale)) if isinstance(op, Normalise) else op
    ),
    "tanh is forgotten": lambda op: Relu(op.takes, op.shape) if isinstance(op, Tanh) else op,
    "a bias is forgotten": lambda op: replace(op, bias=0 * op.bias) if isinstance(op, Linear) else op,
    "a convolution is transposed": lambda op: (
        replace(op, weight=op.weight.swapaxes(2, 3)) if isinstance(op, Convolution) else op
    ),
    "the norm has another epsilon": lambda op: replace(op, epsilon=0.1) if isinstance(op, LayerNorm) else op,
}


@pytest.mark.parametrize("mistake", list(MISTAKES))
def test_a_policy_that_acts_otherwise_is_refused_and_the_old_file_stays(mistake, tmp_path, monkeypatch):
    file = tmp_path / "p.onnx"
    file.write_bytes(b"old")

    def wrong(*arguments):
        graph = describe(*arguments)
        return replace(graph, ops=tuple(map(MISTAKES[mistake], graph.ops)))

    observed, _, settings = CASES["image and numbers"]
    agent = td3.TD3(partial(Spaces, observed, Box(-3, 1, (2,))), **{**SMALL_IMAGES, **settings}).learn(25).agent
    monkeypatch.setattr(policy_file, "describe", wrong)
    with refusal(ExportError, None, "1e-05", "onnxruntime"):
        agent.export(file)
    assert file.read_bytes() == b"old" and [one.name for one in tmp_path.iterdir()] == ["p.onnx"]


def test_a_c_file_that_does_not_compile_is_refused(tmp_path, monkeypatch):
    needs_tool(".c")
    broken = policy_file.FORMATS[".c"]._replace(write=lambda graph: b"int broken(void) { return }\n")
    monkeypatch.setitem(policy_file.FORMATS, ".c", broken)
    with refusal(ExportError, None, "error", "cc"):
        agent_of("mlp").export(tmp_path / "p.c")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("ending", "tool"), [(".c", "C compiler"), (".js", "node")])
def test_without_a_compiler_or_node_the_file_is_written_and_said_to_be_unchecked(ending, tool, tmp_path, monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    exported = agent_of("mlp").export(tmp_path / f"p{ending}")
    assert tool in exported.unchecked and exported.tool == "NumPy" and exported.error <= LARGEST_ERROR
    assert exported.path.stat().st_size == exported.size


def test_a_compiler_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-cc -O1")
    assert "'no-such-cc'" in agent_of("mlp").export(tmp_path / "p.c").unchecked


# --- What cannot be exported ------------------------------------------------------------------------------------------


class OwnForward(nn.Module):
    def __init__(self, features, actions):
        super().__init__()
        self.layer = nn.Linear(features, actions)

    def forward(self, features):
        return torch.sin(self.layer(features))


class OwnActor(td3.Learner):
    def make_actor(self, features, generator):
        return initialise(OwnForward(features, self.action_size), generator)


class OwnPolicy(td3.Learner):
    def policy(self):
        return lambda rows: -super(OwnPolicy, self).policy()(rows)


class Hooked(td3.Learner):
    def make_actor(self, features, generator):
        actor = super().make_actor(features, generator)
        actor.layers[0].register_forward_hook(lambda module, taken, made: 2 * made)
        return actor


class Wide(td3.Learner):
    def make_actor(self, features, generator):
        return initialise(nn.Sequential(nn.Linear(features, self.action_size), nn.Sigmoid()), generator)


@pytest.mark.parametrize(
    ("learner", "fact"),
    [
        (OwnActor, "OwnForward"),
        (OwnPolicy, "OwnPolicy"),
        (Hooked, "actor.layers[0]"),
        (Wide, "Sigmoid"),
    ],
)
def test_networks_that_the_description_does_not_know_are_refused_by_name(learner, fact, tmp_path):
    agent = td3.TD3(partial(Spaces, ANY, TWO), hidden=(4,), learner=learner).agent
    with refusal(ConfigError, None, fact):
        agent.export(tmp_path / "p.onnx")
    assert not list(tmp_path.iterdir())


def test_numbers_that_are_not_finite_are_refused(tmp_path):
    made = td3.TD3(partial(Spaces, ANY, TWO), hidden=(4,))
    with torch.no_grad():
        made._open(1).learner.actor.layers[0].weight[0, 0] = torch.nan
    with refusal(ConfigError, "actor.layers[0].weight"):
        made.agent.export(tmp_path / "p.onnx")


def test_an_agent_without_a_learner_says_so(tmp_path):
    agent = agent_of("mlp")
    other = td3.Agent(agent.policy, agent.observation, agent.action, agent.config, 0)
    with refusal(ConfigError, "agent"):
        other.export(tmp_path / "p.onnx")


def test_a_policy_too_large_for_text_is_refused_and_onnx_named(tmp_path, monkeypatch):
    monkeypatch.setattr(policy_file, "LARGEST_TEXT", 20)
    for ending in (".c", ".js"):
        with refusal(ConfigError, "file", str(tmp_path / f"p{ending}"), ".onnx", 20):
            agent_of("mlp").export(tmp_path / f"p{ending}")
    agent_of("mlp").export(tmp_path / "p.onnx")


@pytest.mark.parametrize("file", ["p.h5", "p", "p.onnx/", "nowhere/p.c", 3, "p\0.c"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_done(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("p.onnx").mkdir()
    monkeypatch.setattr(policy_file, "describe", None)
    with refusal(ConfigError, "file", file):
        agent_of("mlp").export(file)


def test_a_link_stays_a_link_and_what_it_leads_to_is_written(tmp_path):
    (tmp_path / "real.js").write_text("old")
    (tmp_path / "link.js").symlink_to("real.js")
    agent_of("mlp").export(tmp_path / "link.js")
    assert (tmp_path / "link.js").is_symlink() and b"act(observation)" in (tmp_path / "real.js").read_bytes()


# --- A stranger's words -----------------------------------------------------------------------------------------------

EVIL = '*/ #error "x" \n??/ ${globalThis.hit=1}`"\\\'</script>\u2028\x00\x7fé'


class Evil(gymnasium.Env):
    observation_space = Dict({EVIL: ONE, "*/": spaces.Discrete(2)})
    action_space = ONE


def test_names_that_a_stranger_chose_never_become_code(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", f"gcc {STRICT}")
    agent = td3.TD3(Evil, hidden=(4,)).agent
    object.__setattr__(agent.config, "env", EVIL)  # as a forged run might name it
    for ending in ENDINGS:
        exported = agent.export(tmp_path / f"p{ending}")
        assert exported.error <= LARGEST_ERROR
    text = (tmp_path / "p.js").read_text()
    assert "</script" not in text and text.isascii() and (tmp_path / "p.c").read_text().isascii()
    if shutil.which("node"):
        code = 'const P = require("./p.js"); console.log(JSON.stringify([P.about.env, typeof globalThis.hit]))'
        done = subprocess.run(["node", "-e", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout) == [EVIL, "undefined"]
    if shutil.which("gcc"):
        (tmp_path / "main.c").write_text(
            '#include "p.c"\n#include <stdio.h>\nint main(void) { puts(p_about()); return 0; }\n'
        )
        subprocess.run(["gcc", "-std=c99", "-trigraphs", "main.c", "-o", "main"], cwd=tmp_path, check=True)
        done = subprocess.run([tmp_path / "main"], capture_output=True, check=True)
        assert json.loads(done.stdout)["env"] == EVIL


@pytest.mark.parametrize(
    ("text", "name"),
    [("half cheetah", "half_cheetah"), ("2d", "policy_2d"), ("é*/", "policy"), ("int", "int_"), ("_x__y_", "x_y")],
)
def test_a_files_name_becomes_an_identifier(text, name):
    assert identifier(text, "policy") == name


def test_names_are_made_distinct_and_readable():
    assert distinct(["a", "a", "a_2", "b"]) == ["a", "a_2", "a_2_2", "b"]
    assert [class_name(name) for name in ("pendulum", "half_cheetah", "policy")] == [
        "PendulumPolicy",
        "HalfCheetahPolicy",
        "Policy",
    ]
    assert comment("a*/b\nc?") == "a__b_c_" and c_string('a"\\?\n1') == r'"a\"\\\?\0121"'


# --- The command ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("exported") / "run"
    for _ in td3.train(td3.Config(**SMALL), run=path):
        pass
    return path


def test_the_command_exports_the_chosen_checkpoint_and_says_how_it_was_checked(run, tmp_path, capsys):
    file = tmp_path / "p.onnx"
    assert cli.main(["export", str(run), str(file), "--checkpoint", "80", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["env"], answer["step"], answer["bytes"]) == ("Pendulum-v1", 80, file.stat().st_size)
    assert (answer["observations"], answer["remembered"], answer["unchecked"]) == (1_000, 80, "")
    assert 0 <= answer["error"] <= LARGEST_ERROR and answer["tool"].startswith("onnxruntime")
    old = file.read_bytes()
    assert cli.main(["export", str(run), str(file), "--checkpoint", "best"]) == 0
    out, err = capsys.readouterr()
    assert out == "" and file.read_bytes() != old  # the best is of another step
    for fact in (str(file), "remembered", "sampled", "of the action's range", "onnxruntime"):
        assert fact in err


def test_a_loaded_run_remembers_what_it_observed_and_a_damaged_memory_is_sampled(run, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    agent = td3.load(copy)
    assert agent.export(tmp_path / "p.js").remembered == 120  # all that are on the disk
    for segment in (copy / "memory").iterdir():
        segment.write_bytes(b"damaged")
    exported = td3.load(copy).export(tmp_path / "p.js")
    assert (exported.remembered, exported.observations) == (0, 1_000)


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (["{run}", "p.h5"], ["file", "p.h5", ".onnx", ".c", ".js"]),
        (["{run}"], ["FILE", "--help"]),
        (["nowhere", "p.c"], ["run", "nowhere"]),
        (["{run}", "p.c", "--checkpoint", "7"], ["checkpoint", "7", 120]),
        (["{run}", "nowhere/p.c"], ["file", "nowhere/p.c"]),
    ],
)
def test_bad_input_is_one_sentence(words, facts, run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["export", *(word.format(run=run) for word in words)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    check_names(err, *facts)


def test_without_onnx_one_sentence_says_what_to_type(run, tmp_path, monkeypatch, capsys):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "onnx" else find(name, *rest))
    assert cli.main(["export", str(run), str(tmp_path / "p.onnx")]) == 2
    err = capsys.readouterr().err
    check_names(err, "onnx")
    assert "pip install" in err and "[export]" in err
    monkeypatch.setitem(sys.modules, "onnx", None)
    with refusal(ConfigError, "onnx", ".onnx", "pip install onnx"):
        td3.load(run).export(tmp_path / "p.onnx")
    assert cli.main(["export", str(run), str(tmp_path / "p.js")]) == 0  # which needs none


def test_a_run_with_a_learner_of_its_own_is_exported_with_it(tmp_path, monkeypatch, capsys):
    (tmp_path / "own_export.py").write_text("import td3\n\nclass Mine(td3.Learner):\n    pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    from own_export import Mine

    td3.TD3("Pendulum-v1", hidden=(4,), learner=Mine, warmup_steps=5).learn(5).save("run")
    assert cli.main(["export", "run", "p.js"]) == 2 and "--learner" in capsys.readouterr().err
    assert cli.main(["export", "run", "p.js", "--learner", "own_export:Mine"]) == 0


def test_a_strangers_environment_is_not_imported(tmp_path, monkeypatch):
    marker = tmp_path / "imported"
    code = f"open({str(marker)!r}, 'w').close()\nfrom example_envs import Drifting\n"
    (tmp_path / "stranger_env.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    td3.TD3("stranger_env:Drifting", hidden=(4,), warmup_steps=5).learn(5).save(tmp_path / "run")
    monkeypatch.delitem(sys.modules, "stranger_env")
    marker.unlink()
    assert cli.main(["export", str(tmp_path / "run"), str(tmp_path / "p.js")]) == 0
    assert not marker.exists() and "stranger_env" not in sys.modules


# --- The documented programs ------------------------------------------------------------------------------------------

DOCUMENT = (Path(__file__).parents[1] / "docs/export.md").read_text()
UPRIGHT = np.array([1, 0, 0], np.float32)  # what they observe


def documented(language):
    (code,) = re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)
    return code


def test_the_documented_c_program_does_what_the_agent_does(run, tmp_path):
    needs_tool(".c")
    agent = td3.load(run)
    agent.export(tmp_path / "pendulum.c")
    (tmp_path / "main.c").write_text(documented("c"))
    words = re.search(r"\$ (cc .*) && ./main", DOCUMENT)[1].replace("cc", "gcc -Wall -Wextra -Werror", 1).split()
    subprocess.run(words, cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True)
    assert float(done.stdout) == pytest.approx(float(agent.act(UPRIGHT)[0]), abs=4e-5)


def test_a_cpp_file_includes_the_declarations(run, tmp_path):
    if not shutil.which("g++"):
        pytest.skip("there is no g++")
    td3.load(run).export(tmp_path / "pendulum.c")
    (tmp_path / "main.cpp").write_text(documented("c"))
    for words in (["gcc", "-c", "pendulum.c"], ["g++", "-Wall", "-Wextra", "-Werror", "main.cpp", "pendulum.o"]):
        subprocess.run(words, cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "a.out"], capture_output=True).returncode == 0


def test_the_documented_python_does_what_the_agent_does(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    agent = td3.load(run)
    agent.export("pendulum.onnx")
    names = {}
    exec(documented("python"), names)
    assert names["actions"] == pytest.approx(agent.act(UPRIGHT[None]), abs=4e-5)


def test_the_documented_page_does_what_the_agent_does_in_a_browser(run, tmp_path):
    browser.needed()
    agent = td3.load(run)
    agent.export(tmp_path / "pendulum.js")
    (tmp_path / "index.html").write_text(f"<!doctype html><link rel=icon href=data:,>{documented('html')}")
    with browser.chromium() as page:
        page.goto((tmp_path / "index.html").as_uri())
        action = page.evaluate("Array.from(action)")
        assert page.complaints == []
    assert action == pytest.approx(agent.act(UPRIGHT).tolist(), abs=4e-5)


def test_the_document_names_the_largest_text_and_every_layer():
    assert f"up to {policy_file.LARGEST_TEXT:,} numbers" in DOCUMENT
    assert all(f"`{kind.__name__}`" in DOCUMENT or kind is nn.Sequential for kind in MODULES)
