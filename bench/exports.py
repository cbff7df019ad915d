"""Sizes and microseconds per action of exported policies beside `agent.act` and PyTorch, `python -m bench.exports`."""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import onnxruntime
import torch
from gymnasium import spaces

import td3
from td3.environments.structure import assemble
from td3.export.description import describe
from td3.export.observations import sampled_arrays
from td3.export.policy_file import FORMATS
from td3.export.runners import record_type
from td3.learner.networks import act

OBSERVATIONS = 100  # different ones, each tried again and again
ROUNDS = 5  # the fastest counts, in processor time: other work on the machine only makes it slower


class Case(NamedTuple):
    """What a policy observes and does, and its settings."""

    observation: Any
    action: Any
    settings: dict[str, Any]


CASES = {
    "3 numbers → 1, layers 256-256": Case(spaces.Box(-1, 1, (3,)), spaces.Box(-2, 2, (1,)), {}),
    "17 numbers → 6, layers 256-256, normalised": Case(
        spaces.Box(-np.inf, np.inf, (17,), np.float64), spaces.Box(-1, 1, (6,)), {"normalize_observations": True}
    ),
    "3 frames of 64×64×3 → 2, layers 256-256": Case(
        spaces.Box(0, 255, (64, 64, 3), np.uint8), spaces.Box(-1, 1, (2,)), {"frame_stack": 3}
    ),
}


class Anything(gymnasium.Env[Any, Any]):
    """Observes samples of a space."""

    def __init__(self, case: Case) -> None:
        self.observation_space, self.action_space = case.observation, case.action

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:  # noqa: ARG002
        """Begins an episode."""
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:  # noqa: ARG002
        """Steps to a sample."""
        return self.observation_space.sample(), 0.0, False, False, {}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.5, help="of each round (default: 0.5)")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    print("| policy | | size | µs per action |\n| --- | --- | --- | --- |")
    for name, case in CASES.items():
        for what, size, seconds in measured(case, chosen.seconds):
            print(f"| {name} | {what} | {size} | {1e6 * seconds:.1f} |", flush=True)
            name = ""
    return 0


def measured(case: Case, seconds: float) -> Iterator[tuple[str, str, float]]:
    """Yields what acted, the size of its file, and the seconds per action."""
    settings = {"hidden": (256, 256), "warmup_steps": 50, "film": False, "threads": 1, **case.settings}
    made = td3.TD3(partial(Anything, case), **settings).learn(20)
    with tempfile.TemporaryDirectory() as place:
        made.save(Path(place) / "run")
        agent = td3.load(Path(place) / "run")
        learner: Any = agent._learner
        graph = describe(learner, agent.observation, agent.action, agent.config, agent.step, "policy")
        arrays = sampled_arrays(graph, OBSERVATIONS, np.random.default_rng(0))
        single = [{name: array[index] for name, array in arrays.items()} for index in range(OBSERVATIONS)]
        nested = [assemble(agent.observation, {one.path: each[one.name] for one in graph.inputs}) for each in single]
        rows = [agent.observation.rows(each)[0] for each in nested]

        yield "`agent.act`", "", per_call(agent.act, nested, seconds)
        in_torch = partial(act, learner.actor, learner.critics.encoder, learner.normalizer)
        yield "PyTorch, the networks alone", "", per_call(in_torch, rows, seconds)
        for ending, form in FORMATS.items():
            (Path(place) / f"policy{ending}").write_bytes(form.write(graph))
        size = {ending: f"{(Path(place) / f'policy{ending}').stat().st_size / 1e3:,.0f} kB" for ending in FORMATS}

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(Path(place) / "policy.onnx", options)
        kinds = {"image": np.uint8, "category": np.int64, "vector": np.float32}
        given = [{one.name: each[one.name][None].astype(kinds[one.kind]) for one in graph.inputs} for each in single]
        yield "`.onnx`, onnxruntime in Python", size[".onnx"], per_call(partial(session.run, None), given, seconds)

        records = np.zeros(OBSERVATIONS, record_type(graph)["observation"])
        for one in graph.inputs:
            newest = arrays[one.name].reshape(OBSERVATIONS, one.stack, one.size)[:, -1]
            records[one.name] = newest
        for flags in ("-O2", "-O3 -march=native"):
            yield f"`.c`, gcc {flags}", size[".c"], in_c(Path(place), flags, records, seconds)
        if shutil.which("node"):
            yield "`.js`, Node", size[".js"], in_node(Path(place), graph.inputs[0].kind, records, seconds)


def per_call(call: Callable[[Any], Any], inputs: list[Any], seconds: float) -> float:
    """Returns the processor's seconds of one call, in the fastest round."""
    for each in inputs:
        call(each)
    best = float("inf")
    for _ in range(ROUNDS):
        count, began = 0, time.process_time()
        while time.process_time() - began < seconds:
            for each in inputs:
                call(each)
            count += len(inputs)
        best = min(best, (time.process_time() - began) / count)
    return best


def in_c(place: Path, flags: str, records: Any, seconds: float) -> float:
    """Returns the same for the C file, measured by a C program."""
    (place / "main.c").write_text(C_MAIN.replace("COUNT", str(len(records))))
    subprocess.run(["gcc", "-std=c99", *flags.split(), "main.c", "-o", "main"], cwd=place, check=True)
    words = [str(place / "main"), str(ROUNDS), str(seconds)]
    return float(subprocess.run(words, input=records.tobytes(), capture_output=True, check=True).stdout)


def in_node(place: Path, kind: str, records: Any, seconds: float) -> float:
    """Returns the same for the JavaScript file, measured by Node."""
    array = "Uint8Array" if kind == "image" else "Float32Array"
    (place / "main.js").write_text(JS_MAIN.replace("ARRAY", array).replace("COUNT", str(len(records))))
    words = ["node", str(place / "main.js"), str(ROUNDS), str(seconds)]
    return float(subprocess.run(words, input=records.tobytes(), capture_output=True, check=True).stdout)


C_MAIN = """
#include "policy.c"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static policy_state state;
static policy_observation observations[COUNT];

static double now(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

int main(int count, char **words)
{
    double best = 1e9, seconds = atof(words[count - 1]), sum = 0;
    float action[POLICY_ACTION_SIZE];
    if (fread(observations, sizeof observations, 1, stdin) != 1) return 1;
    policy_reset(&state);
    for (int round = 0; round < atoi(words[1]); round++) {
        double began = now(), calls = 0;
        while (now() - began < seconds)
            for (int i = 0; i < COUNT; i++, calls++) {
                if (policy_act(&state, &observations[i], action)) return 2;
                sum += action[0];
            }
        if ((now() - began) / calls < best) best = (now() - began) / calls;
    }
    fprintf(stderr, "%g", sum);
    printf("%.12g", best);
    return 0;
}
"""

JS_MAIN = """
const Policy = require("./policy.js");
const data = require("fs").readFileSync(0);
const [rounds, seconds] = process.argv.slice(2).map(Number);
const length = data.length / COUNT;
const observations = Array.from({ length: COUNT }, (_, i) =>
    new ARRAY(new Uint8Array(data.subarray(i * length, (i + 1) * length)).buffer));
const policy = new Policy();
const now = () => process.cpuUsage().user / 1e6;
let best = Infinity;
for (let round = 0; round <= rounds; round++) {
    const began = now();
    let calls = 0;
    while (now() - began < seconds)
        for (const observation of observations) { policy.act(observation); calls++; }
    if (round) best = Math.min(best, (now() - began) / calls); // the first one warms up
}
process.stdout.write(String(best));
"""


if __name__ == "__main__":
    sys.exit(main())
