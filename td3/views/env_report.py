"""What an environment looks like to TD3, for `td3 check`: known before a long run is started."""

import time
from collections.abc import Callable
from typing import Any

from td3 import seeding
from td3.config import SETTINGS, Config, env_name
from td3.config.presets import task_settings
from td3.diagnosis import findings_before, may_never_end
from td3.environments import Envs, Restarts, Wrappers, make_envs
from td3.environments.descriptions import describe_bounds, oddities
from td3.environments.limits import time_limit
from td3.environments.observations import Leaf
from td3.errors import ConfigError
from td3.forecast import costs_of, forecast, in_parallel
from td3.learner import Learner, engine_name
from td3.learner.encoders import ENCODERS
from td3.learner.making import check_networks, engine_for
from td3.machine import check_room, cores, human
from td3.replay import bytes_per_transition
from td3.trial import STEPS, Clock, Show, Trial, play_randomly, small_learner
from td3.views.times import brief_time, duration
from td3.wording import counted


def check_environment(config: Config, show: Show = lambda _: None, clock: Clock = time.perf_counter) -> dict[str, Any]:
    """Makes the environment, plays random steps and reports on it; raises what training would raise."""
    envs = make_envs(
        config.env,
        config.num_envs,
        config.workers,
        config.worker_timeout,
        wrappers=Wrappers.of(config),
        env_args=config.env_args,
        restarts=Restarts(config.restart_failed, config.seed),
    )
    try:
        layout = envs.observation.layout
        engine, _ = engine_for(config, layout, envs.num_envs)
        check_networks(engine, config, layout, envs.action.size)
        each = bytes_per_transition(layout, envs.action.size, config.n_step, config.sampling)
        notes = oddities(envs.observation, envs.action)
        try:
            check_room(each, config.buffer_size)
        except ConfigError as problem:
            notes.append(f"A full memory does not fit: {problem}")
        learner, engine, threads = small_learner(config, envs, engine)
        trial = play_randomly(envs, config, learner, time_limit(envs, config.env, config.action_repeat), show, clock)
        return {
            "env": env_name(config.env),
            "trainable": True,
            "num_envs": envs.num_envs,
            "observation": [
                {"name": leaf.name, "shape": leaf.shape, "dtype": leaf.dtype.name, **reading(leaf, config)}
                for leaf in envs.observation.leaves
            ],
            "observation_size": envs.observation.size,
            "action_shape": envs.action.shape,
            "action_size": envs.action.size,
            "action_bounds": describe_bounds(*envs.action.bounds),
            "bytes_per_transition": each,
            "memory_bytes": each * config.buffer_size,
            "buffer_size": config.buffer_size,
            "random_steps": trial.steps,
            "steps_per_second": 1 / max(trial.times.step, 1e-9),
            "reward_range": list(trial.rewards),
            "episode_lengths": trial.lengths,
            "time_limit": trial.evidence.limit or None,
            "engine": engine_name(engine),
            "threads": threads,
            **expected_times(config, envs, learner, trial, clock),
            "task_settings": {
                name: value
                for name, value in task_settings(config.env, config.preset).items()
                if getattr(config, name) == value
            },
            "notes": [*notes, *notes_on(trial)],
            "findings": findings_before(trial.evidence),
        }
    finally:
        envs.close()


def notes_on(trial: Trial) -> list[str]:
    """Returns what a trial could not find out, one sentence each."""
    notes = [note] if (note := may_never_end(trial.evidence)) else []
    if trial.steps < STEPS:
        slow = f"It is slow: {counted(trial.steps, 'random step')} were played, so that less can be said of it"
        unknown = "; whether actions matter and seeds hold was not tried" if not trial.probed else ""
        notes.append(f"{slow}{unknown}.")
    return notes


def expected_times(
    config: Config, envs: Envs, learner: Learner, trial: Trial, clock: Clock
) -> dict[str, dict[str, Any] | None]:
    """Returns the seconds of each part of a run, of the whole, and of one with more environments if that is shorter."""
    times, evidence = trial.times, trial.evidence
    seeds = seeding.environment_seeds(config.seed, "environments", envs.num_envs)
    costs = costs_of(config, learner, times, envs, seeds, clock)
    eval_length = evidence.limit or evidence.usual_length or float(trial.steps)
    expected = forecast(config, costs, envs.num_envs, eval_length)
    parallel = in_parallel(config, learner, costs, expected, clock) if envs.num_envs == 1 else None
    return {
        "times": {**times._asdict(), "act": costs.act, "update": costs.update},
        "forecast": {
            "steps": config.steps,
            "seconds": expected.seconds,
            **expected._asdict(),
            "evaluation_length": eval_length,
            "cores": cores(),
        },
        "parallel": parallel._asdict() if parallel else None,
    }


def reading(leaf: Leaf, config: Config) -> dict[str, Any]:
    """Returns what is done with a leaf of the observation, and how many numbers the networks take of it."""
    return READINGS.get(leaf.kind, read_other)(leaf, config)


def read_vector(leaf: Leaf, config: Config, how: str = "") -> dict[str, Any]:
    """Describes numbers that are passed on as they are."""
    normal = ", normalised" if config.normalize_observations else ""
    return {
        "numbers": leaf.stack * leaf.part.size,
        "read": f"{counted(leaf.part.size, 'number')}{how}{times(leaf)}{normal}",
    }


def times(leaf: Leaf) -> str:
    """Returns how many observations of a leaf are joined, if there are several."""
    return f" × {leaf.history} observations, each stored once" if leaf.history > 1 else ""


def read_category(leaf: Leaf, config: Config) -> dict[str, Any]:
    """Describes a category."""
    return read_vector(leaf, config, ", one-hot")


def read_image(leaf: Leaf, config: Config) -> dict[str, Any]:
    """Describes an image and its convolutions."""
    count, height, width = leaf.part.shape
    frames = f"{leaf.stack} frames" if leaf.stack > 1 else "an image"
    layers = ", ".join(map(str, config.encoder_channels))
    by = counted(config.random_shift, "pixel")
    shift = f", shifted by up to {by} when sampled" if config.random_shift else ""
    read = (
        f"{frames} of {height}×{width}, {counted(count, 'channel')}; each stored once, as bytes"
        f"{shift}; convolutions {layers} output {counted(config.encoder_features, 'feature')}"
    )
    return {"numbers": config.encoder_features, "read": read}


def read_other(leaf: Leaf, config: Config) -> dict[str, Any]:
    """Describes a kind that was added: what is stored, and what its encoder makes of it."""
    frames = leaf.stack // leaf.history
    features: int = leaf.history * ENCODERS[leaf.kind](leaf.part, frames, config).size
    stored = f"{counted(frames * leaf.part.size, leaf.kind)} of {leaf.part.dtype}{times(leaf)}"
    return {"numbers": features, "read": f"{stored}; its encoder outputs {counted(features, 'feature')}"}


# What is done with a leaf, by kind.
READINGS: dict[str, Callable[[Leaf, Config], dict[str, Any]]] = {
    "vector": read_vector,
    "category": read_category,
    "image": read_image,
}


def lines_of(report: dict[str, Any]) -> list[str]:
    """Writes the report in lines for people."""
    parts = [
        f"{part['name']} {tuple(part['shape'])} {part['dtype']} → {part['read']}" for part in report["observation"]
    ]
    settings = ", ".join(f"{name} {value}" for name, value in report["task_settings"].items() if name in SETTINGS)
    low, high = report["reward_range"]
    ended = report["episode_lengths"]
    episodes = "no episode ended"
    if ended:
        episodes = f"{counted(len(ended), 'episode')} ended, the longest after {counted(max(ended), 'step')}"
    rows = [
        *(("observes" if place == 0 else "", part) for place, part in enumerate(parts[:12])),
        ("", f"… {len(parts)} parts in all" if len(parts) > 12 else ""),
        (
            "acts",
            f"{counted(report['action_size'], 'number')}, shape {tuple(report['action_shape'])}, "
            f"in {report['action_bounds']}",
        ),
        (
            "memory",
            f"{report['bytes_per_transition']:,} bytes per transition, {human(report['memory_bytes'])} when "
            f"{report['buffer_size']:,} are stored",
        ),
        (
            "played",
            f"{counted(report['random_steps'], 'random step')} at {report['steps_per_second']:,.0f} per second; "
            f"rewards from {low:g} to {high:g}; {episodes}",
        ),
        ("settings", settings and f"of its own: {settings}"),
        *zip(("times", "run", ""), lines_on_time(report), strict=True),
        *(("note", note) for note in report["notes"]),
    ]
    lines = [f"{title:>9}  {text}" for title, text in rows if text]
    return [f"{report['env']}: TD3 can train on it.", *lines]


def lines_on_time(report: dict[str, Any]) -> tuple[str, str, str]:
    """Writes how long a step, an update and the run take, and whether more environments would help."""
    times, run, parallel = report["times"], report["forecast"], report["parallel"]
    each = (
        f"a step takes {brief_time(times['step'])}, a reset {brief_time(times['reset'])}, an action of the actor "
        f"{brief_time(times['act'])}, an update {brief_time(times['update'])} ({report['engine']}, "
        f"{counted(report['threads'], 'thread')})"
    )
    spent = {
        "in the environment": run["environment"],
        "in the actor": run["acting"],
        "in updates": run["updates"],
        "in evaluations": run["evaluations"],
    }
    shares = [f"{round(100 * part / run['seconds'])} % {what}" for what, part in spent.items() if part > 0]
    whole = (
        f"{counted(run['steps'], 'step')} will take about {duration(run['seconds'])} here, as an estimate: "
        f"{', '.join(shares)}"
    )
    if run["evaluations"]:
        ended = report["time_limit"] or report["episode_lengths"]
        whole += (
            f" (if an evaluation episode has {run['evaluation_length']:,.0f} steps{'' if ended else '; none ended'})"
        )
    if parallel:
        advice = (
            f"--num-envs {parallel['num_envs']} --workers {parallel['workers']} would take about "
            f"{duration(parallel['seconds'])}: the environments then step side by side, each step of all of "
            "them with the same actor; there are as many updates per step as before"
        )
    elif report["num_envs"] > 1 or run["cores"] < 2:
        advice = ""
    else:
        why = "its step is short" if run["environment"] > run["updates"] else "updates take longer than its steps"
        advice = f"--num-envs and --workers would hardly help: {why}"
    return each, whole, advice
