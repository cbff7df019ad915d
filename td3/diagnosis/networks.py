"""What is wrong with the networks: actions, values, gradients and units, as measured on remembered states."""

from typing import NamedTuple

import numpy as np

from td3.diagnosis.environment import unscaled_observations
from td3.diagnosis.evidence import Evaluated, Evidence
from td3.diagnosis.results import at_its_best
from td3.diagnosis.wording import finding, share, short
from td3.types import Finding
from td3.wording import counted

# Steps at one end. A healthy actor often begins there: on Hopper all dimensions for 3,000 steps and one for 10,000, on
# Humanoid one of seventeen for 20,000.
STUCK_IN_ALL, STUCK_IN_ONE = 4_000, 30_000
MOVES = 100  # of the actor, before it can be said that it does not move
BEYOND = 1.2  # times what the rewards allow
OVERESTIMATED, STANDARD_ERRORS = 0.25, 2.0  # of what came, and of its uncertainty
OVERESTIMATING = 6  # evaluations running: for three, healthy runs do
SETTLED_UPDATES = 20_000  # before that, values still follow the rewards from afar
UNEXPLAINED = 0.7  # share of the targets' variance: healthy runs stay below 0.2
ENOUGH_UPDATES = 5_000  # before the critics can be expected to explain anything
DEAD = 0.95  # share of a layer's units: half of them are silent in many healthy runs, for a while four fifths
NARROW = 0.1  # of a dimension's range
LARGE_RATE, SMALL_RATE = 1e-3, 1e-4  # learning rates


def diverged(evidence: Evidence) -> Finding | None:
    """The networks' numbers stopped being numbers."""
    if not evidence.diverged:
        return None
    return finding(
        "diverged",
        evidence,
        f"The critics' loss became NaN or infinite before step {evidence.step:,}.",
        f"Begin anew with a smaller learning rate, --critic-lr {short(smaller(evidence.config.critic_lr))}, and check "
        "rewards and observations for huge values.",
        chart="train/critic_loss",
        command=("check", "ENV"),
    )


def values_beyond(evidence: Evidence) -> Finding | None:
    """Values larger than any rewards could make them: the critics diverge."""
    largest, config = evidence.rewards.size, evidence.config
    sizes = [size / config.reward_scale for size in evidence.recently("health/q_size")]
    if not sizes or config.gamma >= 1 or largest == 0:
        return None
    allowed = largest / (1 - config.gamma)
    if min(sizes) <= BEYOND * allowed:
        return None
    return finding(
        "values_beyond",
        evidence,
        f"The critics value states at {short(sizes[-1])} on average, the rewards allow at most {short(allowed)}: the "
        "values diverge.",
        f"Begin anew with a smaller learning rate, --critic-lr {short(smaller(config.critic_lr))}.",
        chart="health/q_size",
        value=sizes[-1],
        allowed=allowed,
    )


def cannot_recover(evidence: Evidence) -> Finding | None:
    """The actor has no gradient left: it will play for ever as it plays now."""
    ends = evidence.ends
    if ends.vanished is None or ends.step - ends.vanished < STUCK_IN_ALL:
        return None
    if updates_so_far(evidence) < MOVES * evidence.config.policy_delay or at_its_best(evidence):
        return None
    steps = ends.step - ends.vanished
    return finding(
        "cannot_recover",
        evidence,
        f"The actor's gradient has been {short(ends.gradient or 0.0)} for {counted(steps, 'step')}, with "
        f"{share(ends.saturated)} of its actions at an end of their range: this run will not recover.",
        f"Begin a new run with {cure(evidence)}.",
        chart="health/actor_gradient",
        gradient=ends.gradient,
        steps=steps,
        saturated=ends.saturated,
    )


def one_action(evidence: Evidence) -> Finding | None:
    """One end of the range in nearly all states."""
    stuck = one_end(evidence)
    if stuck is None or cannot_recover(evidence) or at_its_best(evidence):  # one end may be right everywhere
        return None
    return finding(
        "one_action",
        evidence,
        f"{stuck.sentence}: it no longer looks at the state.",
        f"Begin a new run with {cure(evidence)}.",
        chart="health/one_end",
        dimension=stuck.dimension,
        share=stuck.share,
        steps=stuck.steps,
    )


def unused_range(evidence: Evidence) -> Finding | None:
    """The actor stays within a small part of a dimension's range."""
    low, high = evidence.recent_lists("health/action_low"), evidence.recent_lists("health/action_high")
    if low is None or high is None or low.shape != high.shape or updates_so_far(evidence) < ENOUGH_UPDATES:
        return None
    used = ((high - low) / 2).max(axis=0)
    dimension = int(used.argmin())
    if used[dimension] >= NARROW or not evidence.rewards.std:
        return None
    centre = float((low + high)[-1, dimension]) / 2
    if abs(centre) > 1 - 2 * NARROW:
        return None  # at an end: that is another finding
    return finding(
        "unused_range",
        evidence,
        f"Nine tenths of the actor's actions lie within {share(float(used[dimension]))} of the range of "
        f"action[{dimension}].",
        "Check the unit of that dimension: the Box of the action space should be the range that is useful.",
        chart="health/one_end",
        dimension=dimension,
        used=float(used[dimension]),
    )


def critics_explain_nothing(evidence: Evidence) -> Finding | None:
    """The critics predict no better than one number for all states."""
    left, spread = evidence.recently("health/residual_variance"), evidence.recently("health/target_std")
    sizes = evidence.recently("health/q_size")
    if not left or not spread or not sizes or updates_so_far(evidence) < ENOUGH_UPDATES:
        return None
    if min(left) <= UNEXPLAINED or min(spread) < 0.01 * max(sizes):  # targets that are all alike explain themselves
        return None
    return finding(
        "critics_explain_nothing",
        evidence,
        f"The critics' errors have {share(min(left[-1], 1.0))} of the variance of their targets: one number for all "
        "states would predict as well.",
        "Check that the observation has all that the reward depends on; positions without velocities need --history 3.",
        chart="health/residual_variance",
        residual_variance=left[-1],
    )


def overestimation(evidence: Evidence) -> Finding | None:
    """The critics predict more than comes."""
    last = list(evidence.evaluations)[-OVERESTIMATING:]
    spread = evidence.recently("health/target_std", 1)
    if len(last) < OVERESTIMATING or not spread or updates_so_far(evidence) < SETTLED_UPDATES:
        return None
    shares = [overestimated(one, spread[0] / evidence.config.reward_scale) for one in last]
    if not all(shares):
        return None
    newest = last[-1]
    assert newest.predicted is not None
    assert newest.error is not None
    obtained = newest.predicted - newest.error
    return finding(
        "overestimation",
        evidence,
        f"The critics predict {short(newest.predicted)} at the beginning of an episode, and {short(obtained)} comes: "
        "they overestimate.",
        "Lower --critic-lr, or raise --policy-delay and --target-noise, which damp overestimation.",
        chart="eval/value_error",
        predicted=newest.predicted,
        obtained=obtained,
    )


def dead_units(evidence: Evidence) -> Finding | None:
    """Most of a layer's units are never active."""
    shares = evidence.recently("health/dead_units")
    if not shares or min(shares) <= DEAD:
        return None
    layers = evidence.recent[-1].get("health/dead_layers")
    known = {name: part for name, part in layers.items() if isinstance(part, float)} if isinstance(layers, dict) else {}
    worst = max(known, key=lambda name: known[name]) if known else "a hidden layer"
    return finding(
        "dead_units",
        evidence,
        f"{share(shares[-1])} of the units of {worst[:40]} are silent in every remembered state.",
        f"Begin anew with smaller learning rates, --critic-lr {short(smaller(evidence.config.critic_lr))} "
        f"--actor-lr {short(smaller(evidence.config.actor_lr))}.",
        chart="health/dead_units",
        layer=worst[:40],
        share=shares[-1],
    )


class Stuck(NamedTuple):
    """An actor that plays one end of a dimension in nearly all remembered states."""

    dimension: int
    end: str
    share: float
    steps: int  # for how long

    @property
    def sentence(self) -> str:
        """The beginning of a sentence about it."""
        return (
            f"For {counted(self.steps, 'step')} the actor has played the {self.end} end of action[{self.dimension}] "
            f"in {share(self.share)} of remembered states"
        )


def one_end(evidence: Evidence) -> Stuck | None:
    """Returns the dimension that has been at one end for too long, if all others are, or for very long."""
    ends = evidence.ends
    all_of_them, dimension = ends.longest(max(ends.dimensions, 1))
    longest, dimension = ends.longest()
    if all_of_them < STUCK_IN_ALL and longest < STUCK_IN_ONE:
        return None
    end, _ = ends.since[dimension]
    return Stuck(dimension, end, ends.share[dimension], longest)


def overestimated(evaluation: Evaluated, spread_of_values: float) -> float:
    """Returns by which part of what came the critics predicted more; 0 where that may be by accident.

    Where next to nothing came, by which part of the usual spread of values.
    """
    predicted, error, spread = evaluation.predicted, evaluation.error, evaluation.error_std
    if predicted is None or error is None or spread is None:
        return 0.0
    obtained = predicted - error
    certain = error > STANDARD_ERRORS * spread / np.sqrt(evaluation.episodes)
    part = error / max(abs(obtained), spread_of_values, 1e-9)
    return float(part) if certain and part > OVERESTIMATED else 0.0


def updates_so_far(evidence: Evidence) -> float:
    """Returns about how many updates the run has done."""
    return (evidence.step - evidence.config.update_after) * evidence.config.updates_per_step


def smaller(rate: float) -> float:
    """Returns a learning rate to try after this one."""
    return min(rate / 3, 3e-4)


def cure(evidence: Evidence) -> str:
    """Returns the flags that most often help against an actor that plays one action."""
    config = evidence.config
    rates = f"--actor-lr {short(smaller(config.actor_lr))}"
    if config.critic_lr > LARGE_RATE:
        rates += f" --critic-lr {short(smaller(config.critic_lr))}"
    if max(config.actor_lr, config.critic_lr) > LARGE_RATE:
        return rates
    if unscaled_observations(evidence):
        return "--normalize-observations"
    other = rates if config.actor_lr > SMALL_RATE else "--exploration-noise 0.3"
    return other if config.normalize_observations else f"--normalize-observations, or {other}"
