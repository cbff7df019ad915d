"""What is wrong with an environment or with how it is set up: these show before anything is learned."""

import math

import numpy as np

from td3.config import SETTINGS
from td3.diagnosis.evidence import Evidence
from td3.diagnosis.wording import finding, joined, listed, share, short
from td3.types import Finding
from td3.wording import counted

FEW_ROWS, FEW_BEFORE = 1_000, 100  # of the memory, and of the random steps before a run: fewer say nothing
ENDLESS = 10_000  # steps without an end
SHORT_EPISODE, LONG_EPISODE = 3, 100  # steps
TOO_LARGE, APART = 100.0, 1_000.0  # of an observation: how large a number is, and how many times the others' spread
REWARD_LARGE, REWARD_SMALL = 10.0, 0.01  # standard deviations of a reward
RARE = 0.999  # share of rewards that are equal
SAME_LENGTH = 0.95  # share of the episodes
YOUNG_STEPS, YOUNG_EPISODES = 500, 5  # of warm-up
MEMORY_EPISODES = 10  # that a memory should hold


def failed(evidence: Evidence) -> Finding | None:
    """The run ended with an error."""
    if not evidence.failed or evidence.unfinished or evidence.diverged:  # the last two have findings of their own
        return None
    return finding(
        "failed",
        evidence,
        f"The run ended at step {evidence.step:,}: {evidence.failed}",
        "Mend that and resume the run; a simulator that fails now and then is made anew with --restart-failed 10.",
        command=("check", "ENV"),
    )


def no_updates(evidence: Evidence) -> Finding | None:
    """The run ends before it learns anything."""
    config = evidence.config
    begins = max(config.update_after, config.warmup_steps)
    if max(config.steps, evidence.step) > begins:  # a run may have been extended
        return None
    wanted = max(1, min(25_000, rounded_up(config.steps / 10)))
    return finding(
        "no_updates",
        evidence,
        f"The run of {counted(config.steps, 'step')} plays at random throughout: learning begins after {begins:,}.",
        f"Use --warmup-steps {wanted} in a new run, or resume this one with more --steps.",
        chart="train/critic_loss",
        steps=config.steps,
        begins=begins,
    )


def ends_at_once(evidence: Evidence) -> Finding | None:
    """Episodes of a few steps: there is nothing to control."""
    if evidence.episodes < 100 or evidence.median_length > SHORT_EPISODE:
        return None
    median, flag = evidence.median_length, "terminated" if evidence.terminated >= evidence.truncated else "truncated"
    most = f"{counted(median, 'step')} or fewer" if median > 1 else "1 step"
    return finding(
        "ends_at_once",
        evidence,
        f"Half of {counted(evidence.episodes, 'episode')} ended after {most}.",
        f"Look at what your step() returns as {flag}, and at what reset() leaves of the episode before.",
        chart="rollout/ep_length",
        command=("check", "ENV"),
        median_length=median,
        episodes=evidence.episodes,
    )


def never_ends(evidence: Evidence) -> Finding | None:
    """No episode ends: nothing is ever reset."""
    given_up = evidence.unfinished
    patience = max(ENDLESS, 2 * evidence.limit) * evidence.config.num_envs
    if not given_up and (evidence.episodes or evidence.step < patience or not evidence.collecting):
        return None
    steps = given_up or evidence.step
    where = "An evaluation episode did not end within" if given_up else "No episode ended in"
    return finding(
        "never_ends",
        evidence,
        f"{where} {counted(steps, 'step')}: the agent sees one beginning only.",
        "Give the environment a time limit: register it with max_episode_steps, or wrap it in "
        "gymnasium.wrappers.TimeLimit.",
        command=("check", "ENV"),
        steps=steps,
    )


def actions_ignored(evidence: Evidence) -> Finding | None:
    """Nothing the agent does changes anything."""
    ignored = evidence.probe.get("ignored")
    if evidence.probe.get("actions_matter") is False:
        seen = (
            "Opposite actions led to the very same observations and rewards, from the same seed, for up to 300 steps."
        )
    elif isinstance(ignored, list) and ignored:
        seen = f"{listed('action', ignored)} changed nothing: other values led to the same observations and rewards."
    else:
        return None
    return finding(
        "actions_ignored",
        evidence,
        seen,
        "Check that your step(action) uses its argument, every dimension of it.",
        command=("check", "ENV"),
        dimensions=ignored if isinstance(ignored, list) else [],
    )


def narrow_actions(evidence: Evidence) -> Finding | None:
    """The environment clips its actions to a small part of the range it declares."""
    narrow = evidence.probe.get("narrow")
    if not isinstance(narrow, list) or not narrow:
        return None
    return finding(
        "narrow_actions",
        evidence,
        f"A tenth of the range of {listed('action', narrow)} does the same as the whole: the rest of it is unused.",
        "Declare the range that step() really uses as the Box of the action space, in the same unit.",
        command=("check", "ENV"),
        dimensions=narrow,
    )


def limit_as_end(evidence: Evidence) -> Finding | None:
    """A time limit is returned as `terminated`, so the critics learn that the future is worth nothing there."""
    if evidence.episodes < 2 or evidence.truncated or evidence.terminated < evidence.episodes:
        return None
    length, same = evidence.usual
    enough = 2 if evidence.before and length >= LONG_EPISODE else 10  # two long ones are of equal length by no accident
    if same < SAME_LENGTH or length <= SHORT_EPISODE or evidence.episodes < enough:
        return None
    return finding(
        "limit_as_end",
        evidence,
        f"{share(same)} of {counted(evidence.episodes, 'episode')} terminated after exactly {counted(length, 'step')}: "
        "that looks like a time limit.",
        "Return a time limit as truncated, not as terminated: the critics take a terminated state to be worth 0.",
        chart="rollout/ep_length",
        command=("check", "ENV"),
        length=length,
        episodes=evidence.episodes,
    )


def nothing_to_see(evidence: Evidence) -> Finding | None:
    """The observation never changes."""
    seen = evidence.observations
    constant = constant_numbers(evidence)
    images_stand = seen.image_change == 0
    if evidence.rewards.rows < few_rows(evidence) or (seen.image_change or 0) > 0:
        return None
    if not images_stand and (not len(seen.low) or len(constant) < len(seen.low)):
        return None
    if images_stand and len(constant) < len(seen.low):
        return None
    return finding(
        "nothing_to_see",
        evidence,
        f"The observation was the same in all of {counted(evidence.rewards.rows, 'row')}.",
        "Return the new state from step(), as a new array each time.",
        command=("check", "ENV"),
        rows=evidence.rewards.rows,
    )


def constant_observations(evidence: Evidence) -> Finding | None:
    """Some numbers of the observation never change."""
    constant = constant_numbers(evidence)
    if not constant or len(constant) == len(evidence.observations.low) or evidence.episodes < 2:
        return None  # one episode may have one goal
    names = joined([evidence.observations.name(index) for index in constant])
    return finding(
        "constant_observations",
        evidence,
        f"{names} never changed in {counted(evidence.observations.rows, 'row')}.",
        "Check that your environment fills it in; leave out what is always the same.",
        command=("check", "ENV"),
        numbers=constant,
        rows=evidence.observations.rows,
    )


def unscaled_observations(evidence: Evidence) -> Finding | None:
    """Numbers of very different size: the networks see the largest and little else."""
    seen = evidence.observations
    if evidence.config.normalize_observations or seen.rows < few_rows(evidence) or not len(seen.low):
        return None
    std = seen.std
    size = np.abs(seen.mean) + 2 * std
    largest = np.maximum(np.abs(seen.low), np.abs(seen.high))
    changing = std > 0
    index = int(size.argmax())
    others = np.delete(largest, index)
    middle = float(np.median(others)) if len(others) else 0.0
    apart = size[index] > APART * np.median(size[changing]) if changing.sum() > 1 else False
    if size[index] <= TOO_LARGE and not apart:
        return None
    beside = f", most others within ±{short(middle)}" if len(others) else ""
    between = f"{short(float(seen.low[index]))} and {short(float(seen.high[index]))}"
    return finding(
        "unscaled_observations",
        evidence,
        f"{seen.name(index)} lies between {between}{beside}: the networks take numbers around 1 best.",
        "Use --normalize-observations in a new run, or divide such numbers by their usual size in your environment.",
        command=("check", "ENV"),
        number=index,
        size=float(size[index]),
        others=middle,
    )


def reward_scale(evidence: Evidence) -> Finding | None:
    """Rewards far from 1 in size: the learning rates do not fit them."""
    rewards = evidence.rewards
    if rewards.rows < few_rows(evidence):
        return None
    scale = evidence.config.reward_scale
    std, mean, usual = rewards.std * scale, abs(rewards.mean) * scale, rewards.usual_std * scale
    if std > REWARD_LARGE and usual > REWARD_LARGE:  # a large reward now and then does no harm
        how = "spread widely"
    elif 0 < max(std, mean) < REWARD_SMALL:
        how = "hardly differ"
    else:
        return None
    allowed = SETTINGS["reward_scale"]
    wanted = float(f"{scale / max(std, mean):.1g}")
    wanted = min(max(wanted, allowed.at_least or 0.0), allowed.at_most or wanted)
    scaled = f" × {scale:g}" if scale != 1 else ""
    return finding(
        "reward_scale",
        evidence,
        f"Rewards{scaled} {how}: their standard deviation is {short(std)}, where about 1 suits the learning rates.",
        f"Use --reward-scale {wanted:g} in a new run, or scale the reward in your environment.",
        chart="health/reward_std",
        command=("check", "ENV"),
        std=std,
        reward_scale=wanted,
    )


def rare_rewards(evidence: Evidence) -> Finding | None:
    """Nearly every reward is the same: there is nothing to climb."""
    rewards = evidence.rewards
    enough = FEW_ROWS if evidence.before else max(FEW_ROWS, evidence.config.warmup_steps)
    if rewards.rows < enough or not rewards.frequent:
        return None
    value, count = rewards.frequent.most_common(1)[0]
    others = rewards.rows - count
    ends = 0 if limit_as_end(evidence) else evidence.terminated  # not to terminate may be what is rewarded
    if others + ends > (1 - RARE) * rewards.rows:
        return None
    times = "never" if not others else "once" if others == 1 else f"{others:,} times"
    return finding(
        "rare_rewards",
        evidence,
        f"The reward was {short(value)} in {share(count / rewards.rows)} of {counted(rewards.rows, 'row')}, another "
        f"{times}: the critics have next to nothing to learn from.",
        "Add a term to the reward that grows on the way to the goal, such as the negative distance to it.",
        chart="health/reward_std",
        command=("check", "ENV"),
        value=value,
        others=others,
        rows=rewards.rows,
    )


def small_memory(evidence: Evidence) -> Finding | None:
    """A memory that holds a few episodes only."""
    wanted = MEMORY_EPISODES * evidence.longest
    steps = evidence.config.steps if evidence.before else evidence.step
    if not evidence.longest or evidence.config.buffer_size >= wanted or steps <= evidence.config.buffer_size:
        return None
    return finding(
        "small_memory",
        evidence,
        f"The memory holds {counted(evidence.config.buffer_size, 'transition')}, the longest episode has "
        f"{counted(evidence.longest, 'step')}: the critics forget what they learned.",
        f"Use --buffer-size {max(100_000, wanted)} or more in a new run.",
        command=("check", "ENV"),
        buffer_size=evidence.config.buffer_size,
        longest=evidence.longest,
    )


def young_memory(evidence: Evidence) -> Finding | None:
    """A warm-up so short that the critics begin with next to nothing."""
    each, begun = evidence.usual_length, evidence.step >= evidence.config.warmup_steps + FEW_ROWS
    if not each or not (begun or evidence.before) or not evidence.collecting:  # a run of a few steps is a trial
        return None
    expected = int(evidence.config.warmup_steps / max(each, 1))
    episodes = expected if evidence.before else evidence.random_lengths.total()  # later ones may be longer
    if evidence.config.warmup_steps >= YOUNG_STEPS and episodes >= YOUNG_EPISODES:
        return None
    wanted = max(YOUNG_STEPS, rounded_up(2 * YOUNG_EPISODES * each))
    return finding(
        "young_memory",
        evidence,
        f"{counted(evidence.config.warmup_steps, 'step')} of warm-up are {counted(episodes, 'whole episode')}: the "
        "critics begin with little to learn from.",
        f"Use --warmup-steps {wanted} in a new run.",
        chart="eval/mean_return",
        warmup_steps=evidence.config.warmup_steps,
        episodes=episodes,
    )


def not_reproducible(evidence: Evidence) -> Finding | None:
    """The same seed and actions lead elsewhere."""
    if evidence.probe.get("reproducible") is not False:
        return None
    return finding(
        "not_reproducible",
        evidence,
        "The same seed and the same actions led to other observations or rewards.",
        "Draw every random number from self.np_random, which reset(seed=…) seeds, and let reset() forget the last "
        "episode.",
        command=("check", "ENV"),
    )


def rounded_up(number: float) -> int:
    """Rounds up to two digits."""
    unit: int = 10 ** max(0, len(str(int(number))) - 2)
    return math.ceil(number / unit) * unit


def constant_numbers(evidence: Evidence) -> list[int]:
    """Returns the numbers of the observation that never changed in enough rows."""
    seen = evidence.observations
    return np.flatnonzero(seen.low == seen.high).tolist() if seen.rows >= few_rows(evidence) else []


def few_rows(evidence: Evidence) -> int:
    """Returns how many rows are too few to say anything."""
    return FEW_BEFORE if evidence.before else FEW_ROWS


def may_never_end(evidence: Evidence) -> str:
    """Returns a note where random steps before a run saw no end and no time limit is known: that may be, or not."""
    if evidence.episodes or evidence.limit or evidence.step < FEW_ROWS * evidence.config.num_envs:
        return ""
    return (
        f"No episode ended in {counted(evidence.step, 'step')}, and no time limit is known: if none ever ends, give "
        "the environment one with max_episode_steps or gymnasium.wrappers.TimeLimit."
    )
