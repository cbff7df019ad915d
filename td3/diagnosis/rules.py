"""All rules, the worst and the causes first: what an environment does wrong comes before what follows from it."""

from collections.abc import Callable
from typing import NamedTuple

from td3.diagnosis import environment, networks, results
from td3.diagnosis.evidence import Evidence
from td3.types import Finding

MOST, MOST_BEFORE = 3, 5  # findings at once

Find = Callable[[Evidence], Finding | None]


class Rule(NamedTuple):
    """What looks for one finding."""

    find: Find
    announced: bool = True  # while a run trains; what is only worth knowing waits until it is asked for

    @property
    def before(self) -> bool:
        """Whether it can show before anything is learned."""
        return self.find.__module__ == environment.__name__

    @property
    def name(self) -> str:
        """The name of its finding."""
        return self.find.__name__


RULES = (
    Rule(environment.failed, announced=False),
    Rule(environment.no_updates, announced=False),  # a note says so at the beginning
    Rule(environment.ends_at_once),
    Rule(environment.never_ends),
    Rule(environment.actions_ignored),
    Rule(environment.nothing_to_see),
    Rule(environment.limit_as_end),
    Rule(environment.rare_rewards),
    Rule(environment.reward_scale),
    Rule(environment.narrow_actions),
    Rule(environment.unscaled_observations),
    Rule(environment.small_memory),
    Rule(networks.diverged),
    Rule(networks.values_beyond),
    Rule(networks.dead_units),
    Rule(networks.cannot_recover),
    Rule(networks.one_action),
    Rule(environment.not_reproducible),
    Rule(networks.critics_explain_nothing),
    Rule(results.same_score),
    Rule(results.collapse),
    Rule(networks.overestimation),
    Rule(results.short_horizon),
    Rule(environment.young_memory),
    Rule(networks.unused_range),
    Rule(environment.constant_observations, announced=False),  # in many a simulator some numbers never change
    Rule(results.coarse_evaluation, announced=False),
    Rule(results.plateau, announced=False),
)


def findings(evidence: Evidence, most: int = MOST) -> list[Finding]:
    """Returns what stands out, the worst first."""
    found = (rule.find(evidence) for rule in RULES)
    return [one for one in found if one][:most]


def findings_before(evidence: Evidence, most: int = MOST_BEFORE) -> list[Finding]:
    """Returns what stands out in random steps before a run, the worst first."""
    found = (rule.find(evidence) for rule in RULES if rule.before)
    return [one for one in found if one][:most]


def sickness(evidence: Evidence) -> str:
    """Returns the sentence that `stop_when_sick` waits for: the run cannot recover; else nothing."""
    found = networks.cannot_recover(evidence)
    return found.seen if found else ""


def news(evidence: Evidence) -> list[Finding]:
    """Returns what stands out now and was not announced before."""
    waiting = (rule for rule in RULES if rule.announced and rule.name not in evidence.announced)
    return [one for rule in waiting if (one := rule.find(evidence))]
