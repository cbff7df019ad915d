"""What the evaluations show: a score that fell, stands still, never differs, or drowns in noise."""

import math

import numpy as np

from td3.diagnosis.evidence import RECENT, Evaluated, Evidence
from td3.diagnosis.wording import finding, share, short
from td3.types import Finding
from td3.wording import counted

# Lost of the way from the lowest to the best, in so many evaluations running. A healthy run falls and comes back: of
# the 70 curves that the author published, 35 lose half of it in three evaluations, and none loses so much in eight.
FALL, FALLEN, STANDARD_ERRORS = 0.7, 8, 3.0
IDLE = 5  # evaluations that return exactly the same
PLATEAU = 10  # evaluations without a new best
COARSE = 0.25  # standard error, as a part of what was gained
FAR = 0.01  # worth of a reward at the end of an episode
LATE = 0.5  # share of the rewards' size in the last tenth


def same_score(evidence: Evidence) -> Finding | None:
    """Every episode of every evaluation returns the same."""
    last, best, lowest = list(evidence.evaluations)[-RECENT:], evidence.best, evidence.lowest
    if len(last) < RECENT or any(one.std > 0 for one in last) or best is None or lowest is None:
        return None
    if best.mean != lowest.mean:
        return idle(evidence)
    return finding(
        "same_score",
        evidence,
        f"Every episode of {counted(len(evidence.evaluations), 'evaluation')} returned exactly {last[-1].mean:.6g}.",
        "Check that reset(seed=…) begins in different states and that the reward depends on what the agent does.",
        chart="eval/mean_return",
        command=("check", "ENV"),
        score=last[-1].mean,
    )


def idle(evidence: Evidence) -> Finding | None:
    """The agent has learned to do the same in every episode, and gets far less than there is to get."""
    last, rewards = list(evidence.evaluations)[-IDLE:], evidence.rewards
    length, mean = last[-1].length, last[-1].mean
    if len(last) < IDLE or any(one.std > 0 or one.mean != mean for one in last) or not length:
        return None
    if mean / length > (rewards.low + rewards.high) / 2:  # a full score, perhaps, that it has learned to reach
        return None
    return finding(
        "same_score",
        evidence,
        f"Every episode of the last {IDLE} evaluations returned exactly {mean:.6g}, where single rewards of up to "
        f"{short(rewards.high)} were seen: the agent may have learned to do nothing.",
        "Reward the way to the goal, not the goal alone, and let what costs something each step cost less.",
        chart="eval/mean_return",
        command=("check", "ENV"),
        score=mean,
    )


def collapse(evidence: Evidence) -> Finding | None:
    """The last evaluations are all far below the best."""
    best, lowest, last = evidence.best, evidence.lowest, list(evidence.evaluations)[-FALLEN:]
    if best is None or lowest is None or len(last) < FALLEN or best.step >= last[0].step or best is evidence.first:
        return None
    gain = best.mean - lowest.mean
    for one in last:
        noise = math.hypot(standard_error(one), standard_error(best))
        if best.mean - one.mean <= max(STANDARD_ERRORS * noise, FALL * gain):
            return None
    return finding(
        "collapse",
        evidence,
        f"The return was {short(best.mean)} at step {best.step:,} and is {short(last[-1].mean)} now, far below it in "
        f"{FALLEN} evaluations.",
        "Use the best checkpoint (--checkpoint best); for a new run lower --actor-lr and --critic-lr.",
        chart="eval/mean_return",
        command=("evaluate", "RUN", "--checkpoint", "best"),
        best=best.mean,
        best_step=best.step,
        last=last[-1].mean,
    )


def short_horizon(evidence: Evidence) -> Finding | None:
    """What counts comes at the end, and is discounted away."""
    last = evidence.evaluations[-1] if evidence.evaluations else None
    if last is None or last.late is None or not last.length or last.late <= LATE:
        return None
    worth = evidence.config.gamma**last.length
    if worth >= FAR:
        return None
    wanted = 1 - 1 / (3 * last.length)
    return finding(
        "short_horizon",
        evidence,
        f"{share(last.late)} of the rewards come in the last tenth of an episode, where one is worth {worth:.1g} of "
        f"itself at the start (gamma {evidence.config.gamma:g}, {last.length:,.0f} steps).",
        f"Use --gamma {wanted:.5g}, or reward the way there.",
        chart="eval/late_share",
        late_share=last.late,
        worth=worth,
    )


def coarse_evaluation(evidence: Evidence) -> Finding | None:
    """The evaluations are too noisy to compare."""
    best, first = evidence.best, evidence.first
    if best is None or first is None or len(evidence.evaluations) < 5:
        return None
    gain, episodes = best.mean - first.mean, evidence.evaluations[-1].episodes
    noise = usual_error(evidence)
    if episodes == 1:
        return one_episode(evidence)
    if gain <= 0 or noise <= COARSE * gain:
        return None
    ratio = min(noise / (COARSE * gain), 100.0)
    wanted = min(1_000, max(2 * episodes, math.ceil(episodes * ratio**2)))
    return finding(
        "coarse_evaluation",
        evidence,
        f"The mean of {counted(episodes, 'evaluation episode')} is uncertain by ±{short(noise)}, the whole gain so far "
        f"is {short(gain)}: evaluations so coarse do not rank checkpoints.",
        f"Use --eval-episodes {wanted} (also on resume), or compare checkpoints with more episodes.",
        chart="eval/std_return",
        command=("evaluate", "RUN", "--checkpoint", "best", "--episodes", str(wanted)),
        standard_error=noise,
        gain=gain,
        episodes=wanted,
    )


def one_episode(evidence: Evidence) -> Finding:
    """An evaluation of a single episode says nothing about its own uncertainty."""
    return finding(
        "coarse_evaluation",
        evidence,
        "An evaluation plays 1 episode: how far its return is from the mean, it cannot say.",
        "Use --eval-episodes 10 (also on resume), or compare checkpoints with more episodes.",
        chart="eval/mean_return",
        command=("evaluate", "RUN", "--checkpoint", "best", "--episodes", "10"),
        episodes=10,
    )


def plateau(evidence: Evidence) -> Finding | None:
    """Nothing new for a while."""
    best, last = evidence.best, list(evidence.evaluations)[-PLATEAU:]
    if best is None or len(last) < PLATEAU or best.step >= last[0].step:
        return None
    slope, error = slope_of(last)
    if abs(slope) > 2 * error:
        return None
    return finding(
        "plateau",
        evidence,
        f"No new best in {PLATEAU} evaluations: {short(best.mean)} at step {best.step:,} is still the best.",
        "If that is good enough, stop (--stop-after); else try other settings or seeds rather than more steps.",
        chart="eval/mean_return",
        best=best.mean,
        best_step=best.step,
    )


def at_its_best(evidence: Evidence) -> bool:
    """Whether the last evaluation is about the best, and that is better than the first: the agent has learned."""
    best, first = evidence.best, evidence.first
    if best is None or first is None:
        return False
    last = evidence.evaluations[-1]
    noise = math.hypot(standard_error(last), standard_error(best))
    gain = best.mean - first.mean
    return gain > STANDARD_ERRORS * math.hypot(standard_error(first), standard_error(best)) and (
        best.mean - last.mean <= max(2 * noise, 0.05 * gain)
    )


def standard_error(evaluation: Evaluated) -> float:
    """Returns how uncertain the mean of an evaluation is."""
    return evaluation.std / math.sqrt(max(evaluation.episodes - 1, 1))


def usual_error(evidence: Evidence) -> float:
    """Returns the usual uncertainty of an evaluation; with one episode each, from one evaluation to the next."""
    seen = list(evidence.evaluations)
    if seen[-1].episodes > 1:
        return float(np.median([standard_error(one) for one in seen]))
    means = np.array([one.mean for one in seen])
    return float(np.median(np.abs(np.diff(means)))) / math.sqrt(2)


def slope_of(evaluations: list[Evaluated]) -> tuple[float, float]:
    """Returns the slope of a line through the means, per evaluation, and its standard error."""
    means, places = np.array([one.mean for one in evaluations]), np.arange(len(evaluations))
    places = places - places.mean()
    slope = float(places @ means / (places @ places))
    left = means - means.mean() - slope * places
    return slope, float(np.sqrt(left @ left / (len(means) - 2) / (places @ places)))
