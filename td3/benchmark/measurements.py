"""One process's measurements, for one number of threads: updates, steps, single actions, how they grow, and images."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np

from td3.agent import Agent
from td3.benchmark.cases import CASES, ENV, GROWTH, IMAGES, Case, ImageCase, operations
from td3.benchmark.libraries import Library, Td3Library, Workload, libraries
from td3.benchmark.pixels import image_workloads, memories, passes, refusals, some_images
from td3.benchmark.rounds import Speed, interleave
from td3.config import Config
from td3.environments import ActionMap, ObservationMap
from td3.learner import Learner, policy_of, why_not_native
from td3.learner.making import use_threads
from td3.learner.native import library as native
from td3.learner.native.engine import NativeLearner


def measure(
    threads: int, sections: list[str], cases: list[str], rounds: int, seconds: float, say: Callable[[str], None]
) -> dict[str, Any]:
    """Measures every case of these sections with so many threads, in interleaved rounds."""
    use_threads(threads)
    found = list(libraries())
    result: dict[str, Any] = {
        "threads": threads,
        "rounds": rounds,
        "libraries": {library.name: library.version for library in found},
    }
    peak = Peak(threads)
    if "updates" in sections:
        result["updates"] = {name: updates_of(CASES[name], found, peak, rounds, seconds, say) for name in cases}
    if "steps" in sections:
        result["steps"] = steps_of(found, rounds, seconds, say)
    if "acting" in sections:
        say("one action at a time …")
        result["acting"] = acting(rounds)
    if "growth" in sections:
        result["growth"] = growth(peak, rounds, seconds, say)
    if "pixels" in sections:
        result["pixels"] = pixels(found, rounds, seconds, say)
    result["peak_gflops"] = peak.best
    return result


class Peak:
    """The most multiply-adds this machine was seen to do, in billions of operations per second."""

    def __init__(self, threads: int) -> None:
        self.threads, self.best = threads, 0.0

    def look(self) -> None:
        """Measures the peak once more, and keeps the best."""
        try:
            self.best = max(self.best, native.peak(self.threads, 0.05))
        except native.Missing:
            self.best = float("nan")  # nothing to measure it with


def updates_of(
    case: Case, found: list[Library], peak: Peak, rounds: int, seconds: float, say: Callable[[str], None]
) -> dict[str, Any]:
    """Measures the updates per second of each library."""
    say(f"updates, {case.words} …")
    speeds = interleave({one.name: one.updates(case) for one in found}, rounds, seconds, peak.look)
    return {"case": case._asdict(), "operations": operations(case), "speeds": as_data(speeds)}


def steps_of(found: list[Library], rounds: int, seconds: float, say: Callable[[str], None]) -> dict[str, Any]:
    """Measures the steps per second of each library, and where our own time is spent."""
    case = CASES["author"]
    say(f"steps on {ENV}, one update each, {case.words} …")
    speeds = interleave({one.name: one.steps(ENV, case) for one in found}, rounds, seconds)
    return {"env": ENV, "case": case._asdict(), "speeds": as_data(speeds), "around": around(case, rounds)}


def around(case: Case, rounds: int) -> dict[str, float]:
    """Of one native step: the microseconds of the update alone, of the environment, and of all that is around them."""
    if why_not_native(Config()):
        return {}
    ours, clocks = Td3Library("native"), {"update": Clock(), "env": Clock()}

    def make() -> gymnasium.Env[Any, Any]:
        return ClockedEnvironment(gymnasium.make(ENV), clocks["env"])

    session = ours.session(make, case)
    assert isinstance(session.learner, NativeLearner)
    session.learner.engine.functions = ClockedLibrary(session.learner.engine.functions, clocks["update"])
    run = ours.playing(session)
    best = {"update": float("inf"), "env": float("inf"), "around": float("inf")}
    for _ in range(rounds):
        for clock in clocks.values():
            clock.seconds = 0.0
        began = time.perf_counter()
        run(64)
        parts = {name: clock.seconds for name, clock in clocks.items()}
        parts["around"] = time.perf_counter() - began - sum(parts.values())
        best = {name: min(best[name], 1e6 * parts[name] / 64) for name in best}
    return best


class Clock:
    """Adds up the time spent inside functions."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the function with its time added to this clock."""

        def clocked(*arguments: Any) -> Any:
            began = time.perf_counter()
            result = function(*arguments)
            self.seconds += time.perf_counter() - began
            return result

        return clocked


class ClockedEnvironment(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The environment, with its steps under a clock."""

    def __init__(self, env: gymnasium.Env[Any, Any], clock: Clock) -> None:
        super().__init__(env)
        self._step = clock.around(env.step)

    def step(self, action: Any) -> Any:
        """Steps the environment, on the clock."""
        return self._step(action)


class ClockedLibrary:
    """The library, with its update under a clock."""

    def __init__(self, functions: Any, clock: Clock) -> None:
        self._functions, self.td3_update = functions, clock.around(functions.td3_update)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._functions, name)


def acting(rounds: int) -> dict[str, Any]:
    """Actions per second through the public `agent.act`, one observation at a time."""
    case = CASES["author"]
    observation = ObservationMap(gymnasium.spaces.Box(-np.inf, np.inf, (case.observations,), np.float64))
    action = ActionMap(gymnasium.spaces.Box(-1, 1, (case.actions,), np.float32))
    seen = np.random.default_rng(0).standard_normal(case.observations)
    runs: dict[str, Workload] = {}
    for library in libraries():
        if isinstance(library, Td3Library):
            config = Config(engine=library.engine, hidden=case.hidden, buffer_size=1)
            learner = Learner(observation.layout, case.actions, config, seed=0)
            agent = Agent(policy_of(learner), observation, action, config, 0)
            runs[library.name] = partial(repeat, agent, seen)
    return {"case": case._asdict(), "speeds": as_data(interleave(runs, rounds, 0.02))}


def repeat(agent: Agent, observation: Any, count: int) -> None:
    """Asks the agent for `count` single actions."""
    for _ in range(count):
        agent.act(observation)


def growth(peak: Peak, rounds: int, seconds: float, say: Callable[[str], None]) -> dict[str, Any]:
    """Our fastest engine with larger batches, wider layers, more environments, and a full memory."""
    ours = next(one for one in libraries() if isinstance(one, Td3Library))
    result: dict[str, Any] = {"engine": ours.name}
    for name, cases in GROWTH.items():
        say(f"growth with the {name} …")
        speeds = interleave({case.name: ours.updates(case) for case in cases}, rounds, seconds, peak.look)
        result[name] = {
            case.name: {**speeds[case.name]._asdict(), "gflops": speeds[case.name].best * operations(case) / 1e9}
            for case in cases
        }
    case = CASES["author"]
    say("growth with the environments …")
    result["environments"] = as_data(
        interleave({str(n): ours.steps(ENV, case, num_envs=n) for n in (1, 2, 4, 8)}, rounds, 2 * seconds)
    )
    say("growth with the memory …")
    memories = {f"{rows:,}": ours.updates(case, rows=rows) for rows in (5_000, 100_000, 1_000_000)}
    result["memory"] = as_data(interleave(memories, rounds, seconds))
    return result


def pixels(found: list[Library], rounds: int, seconds: float, say: Callable[[str], None]) -> dict[str, Any]:
    """Learning from images: how fast, with how much work, and what remembering them takes."""
    return {
        "cases": {case.name: images_of(case, found, rounds, seconds, say) for case in IMAGES.values()},
        "refused": refusals(found),
    }


def images_of(
    case: ImageCase, found: list[Library], rounds: int, seconds: float, say: Callable[[str], None]
) -> dict[str, Any]:
    """Measures updates from images: their speed, passes through encoders, and bytes per transition."""
    say(f"images, {case.words} …")
    rows, rounds = some_images(case), max(1, rounds // case.share)
    seeing = list(image_workloads(case, found, rows))
    return {
        "case": case._asdict(),
        "rounds": rounds,
        "passes": {one.name: passes(one)._asdict() for one in seeing},
        "speeds": as_data(interleave({one.name: one.run for one in seeing}, rounds, seconds * case.stretch)),
        "bytes": {kept.name: kept.bytes / kept.transitions for kept in memories(case, found, rows)},
    }


def as_data(speeds: dict[str, Speed]) -> dict[str, dict[str, float]]:
    """Returns the speeds as plain data."""
    return {name: speed._asdict() for name, speed in speeds.items()}
