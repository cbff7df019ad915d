"""Broken runs, one for each finding that training can show: a broken environment, bad settings, or a broken learner."""

import contextlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import td3
from bench.broken_envs import Twin

SETTINGS: dict[str, Any] = {
    "hidden": (64, 64),
    "batch_size": 64,
    "warmup_steps": 1_000,
    "steps": 15_000,
    "eval_every": 1_000,
    "eval_episodes": 5,
    "film": False,
    "record_updates": False,
    "threads": 1,
}


class Saturated(td3.Learner):
    """An actor with weights so large that every action is at an end from the beginning."""

    def make_actor(self, features: int, generator: Any) -> Any:
        """Makes the usual actor, with a thousand times the weights."""
        actor = super().make_actor(features, generator)
        for parameter in actor.parameters():
            parameter.data *= 1_000
        return actor


class Leaning(td3.Learner):
    """An actor that begins at the upper end of every dimension."""

    def make_actor(self, features: int, generator: Any) -> Any:
        """Makes the usual actor, with large biases in its last layer."""
        actor = super().make_actor(features, generator)
        actor.layers[-1].bias.data += 4
        return actor


class Optimist(td3.Learner):
    """Adds to every target what no reward has paid."""

    extra = 0.5

    def target(self, batch: Any, noise: Any) -> Any:
        """Computes the usual targets, and adds to them."""
        targets = super().target(batch, noise)
        return targets._replace(target=targets.target + self.extra)


class Dreamer(Optimist):
    """Adds far more."""

    extra = 1_000.0


NONE: Mapping[str, Any] = MappingProxyType({})


class Case(NamedTuple):
    """A broken run: the finding it must lead to, what is wrong, and the metric that shows it."""

    finding: str
    what: str
    chart: str = "eval/mean_return"
    fault: str = ""  # of the environment
    settings: Mapping[str, Any] = NONE
    learner: type[td3.Learner] | None = None
    change_at: int = 0  # the step at which `change` sets in
    change: Mapping[str, Any] = NONE
    log: bool = False
    place: int = 0  # of the finding: what made a run collapse comes before the collapse

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.finding or "healthy"


HEALTHY_TWIN = Case("", "healthy")
BROKEN = (
    Case("failed", "an environment that raises", "rollout/ep_return", "raises"),
    Case("no_updates", "25,000 steps of warm-up", settings={"warmup_steps": 25_000}),
    Case("ends_at_once", "`terminated` after two steps", "rollout/ep_length", "ends at once", log=True),
    Case("never_ends", "no time limit", "health/reward_mean", "never ends", {"eval_every": 0}),
    Case("actions_ignored", "step() ignores its action", fault="actions ignored"),
    Case("nothing_to_see", "always the same observation", fault="nothing to see"),
    Case("limit_as_end", "the time limit is `terminated`", "health/q_size", "limit as end"),
    Case("reward_scale", "rewards × 1,000", "train/critic_loss", "large rewards", log=True),
    Case("rare_rewards", "a reward at the goal only", fault="rare rewards"),
    Case("narrow_actions", "actions clipped to a twelfth", fault="narrow actions"),
    Case("unscaled_observations", "one number × 1,000", fault="unscaled observation"),
    Case("small_memory", "a memory of 500 rows", settings={"buffer_size": 500}),
    Case("diverged", "rewards × 1e25", "health/reward_std", "huge rewards", log=True, place=1),
    Case("values_beyond", "targets beyond the rewards", "health/q_size", "", {"critic_lr": 0.01}, Dreamer, log=True),
    Case("cannot_recover", "an actor that begins at its ends", "health/actor_gradient", "", {}, Saturated),
    Case("one_action", "an actor stuck at one end", "health/one_end", "", {"actor_lr": 1e-6}, Leaning),
    Case("not_reproducible", "noise from an rng of its own", fault="not reproducible"),
    Case("critics_explain_nothing", "observations of pure noise", "health/residual_variance", "noise"),
    Case("dead_units", "learning rates of 1", "health/dead_units", "", {"actor_lr": 1.0, "critic_lr": 1.0}),
    Case("same_score", "a reward for time alone", fault="same score"),
    Case(
        "collapse",
        "learning rates × 100 from step 6,000 on",
        change_at=6_000,
        change={"actor_lr": 0.1, "critic_lr": 0.1},
        place=2,
    ),
    Case("overestimation", "targets 0.5 too high", "eval/value_error", "", {"steps": 30_000, "gamma": 0.95}, Optimist),
    Case("short_horizon", "a reward at the end only, gamma 0.9", "eval/late_share", "late rewards", {"gamma": 0.9}),
    Case("young_memory", "200 steps of warm-up", settings={"warmup_steps": 200}),
    Case("unused_range", "only tiny actions pay", "eval/mean_return", "tiny actions pay"),
    Case("constant_observations", "one number never changes", fault="constant observation"),
    Case("coarse_evaluation", "one episode an evaluation", settings={"eval_episodes": 1}),
    Case("plateau", "observations of pure noise", fault="noise", place=1),
)


def trained_broken(runs: Path, case: Case) -> Path:
    """Trains a case, unless its folder is there, and returns the folder."""
    run = runs / case.name
    if run.exists():
        return run
    env = partial(Twin, fault=case.fault) if case.fault else Twin
    config = td3.Config(**{**SETTINGS, "env": env, **case.settings})
    with (
        contextlib.suppress(td3.TrainingDiverged, td3.EnvironmentFailure),
        td3.train(config, run, learner=case.learner) as training,
    ):
        for event in training:
            if case.change and event.step >= case.change_at and training.config.actor_lr != case.change["actor_lr"]:
                training.change(**case.change)
    return run
