"""Optuna's only door: which settings to try next, what became of each trial, and which settings matter.

One process asks and reports. Optuna's journal is the only list of trials, and each proposal is a function of the seed,
the trial's number and what is known of the trials before it: a search that was killed proposes the same again.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.storages import JournalStorage
from optuna.storages.journal import BaseJournalBackend
from optuna.trial import FrozenTrial, TrialState

from td3.config import SETTINGS
from td3.config.search import Choices
from td3.errors import RunError
from td3.storage.journal import Journal
from td3.studies.space import Space, label, settings_at
from td3.studies.tune_spec import TuneSpec
from td3.wording import brief

NAME, PROBLEM = "td3", "problem"
RUNNING, COMPLETE, PRUNED, FAILED = "running", "complete", "pruned", "failed"
STATES = {
    TrialState.RUNNING: RUNNING,
    TrialState.COMPLETE: COMPLETE,
    TrialState.PRUNED: PRUNED,
    TrialState.FAIL: FAILED,
}
STARTUP = 5  # complete trials before the median of them ends others
BETTER = 0.5  # the share of trials that count as good: Optuna's tenth would be two or three of them
ENOUGH = 10  # complete trials, from which the importance of settings can be read


class TrialRecord(NamedTuple):
    """What the journal knows of a trial."""

    number: int
    state: str  # running, complete, pruned or failed
    value: float | None  # mean over its seeds of the last evaluation; of a pruned trial, where it was ended
    settings: dict[str, Any]  # of the space
    reports: dict[int, float]  # mean over its seeds of each evaluation, by its step
    problem: str  # why it failed


class Search:
    """The trials of a search, kept in a journal."""

    def __init__(self, journal: Journal, spec: TuneSpec) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.spec, self._distributions = spec, distributions(spec.space)
        try:
            storage = JournalStorage(_Rows(journal))
            known: dict[str, Any] = {
                "storage": storage,
                "study_name": NAME,
                "sampler": _Proposals(spec, self._distributions),
                "pruner": pruner_of(spec),
            }
            if storage.get_all_studies():
                self._study = optuna.load_study(**known)
            else:
                self._study = optuna.create_study(direction="maximize", **known)
            self._open: dict[int, optuna.Trial] = {}
            for trial in self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
                self._propose(optuna.Trial(self._study, trial._trial_id))  # it was killed while it was asked for
            self.trials()
        except RunError:
            raise
        except Exception as problem:  # rows that Optuna did not write
            why = brief(problem, str).rstrip(".")
            raise RunError(f"{journal.path} is no journal of a search ({type(problem).__name__}: {why}).") from None

    def trials(self) -> list[TrialRecord]:
        """Returns all trials by their numbers."""
        return [self._record(trial) for trial in self._study.get_trials(deepcopy=False)]

    def trial(self, number: int) -> TrialRecord:
        """Returns one trial."""
        return self.trials()[number]

    def ask(self) -> TrialRecord:
        """Begins a trial with the settings that look best now; the first one has those there are."""
        return self.trial(self._propose(self._study.ask()))

    def report(self, number: int, step: int, value: float) -> None:
        """Adds an evaluation to a trial."""
        self._open[number].report(value, step)

    def should_prune(self, number: int) -> bool:
        """Whether the last evaluation of a trial says that it is not worth its time."""
        return self._open[number].should_prune()

    def complete(self, number: int, value: float) -> None:
        """Ends a trial with its value."""
        self._study.tell(number, value)

    def prune(self, number: int) -> None:
        """Ends a trial early; its value is that of the last evaluation."""
        self._study.tell(number, state=TrialState.PRUNED)

    def fail(self, number: int, problem: str) -> None:
        """Ends a trial that failed, and keeps the reason."""
        self._open[number].set_user_attr(PROBLEM, problem)
        self._study.tell(number, state=TrialState.FAIL)

    def importance(self) -> dict[str, float]:
        """Returns each setting's share in what makes a trial one of the better half; nothing if trials are too few."""
        values = {trial.value for trial in self.trials() if trial.state == COMPLETE}
        if sum(trial.state == COMPLETE for trial in self.trials()) < ENOUGH or len(values) < 2:
            return {}
        return get_param_importances(self._study, evaluator=PedAnovaImportanceEvaluator(target_quantile=BETTER))

    def _propose(self, trial: optuna.Trial) -> int:
        for name, known in self._distributions.items():
            if isinstance(known, CategoricalDistribution):
                trial.suggest_categorical(name, known.choices)
            elif isinstance(known, IntDistribution):
                trial.suggest_int(name, known.low, known.high, log=known.log, step=known.step)
            elif isinstance(known, FloatDistribution):
                trial.suggest_float(name, known.low, known.high, log=known.log, step=known.step)
        self._open[trial.number] = trial
        return trial.number

    def _record(self, trial: FrozenTrial) -> TrialRecord:
        found = settings_at(self.spec.space, trial.params)
        problem = str(trial.user_attrs.get(PROBLEM, ""))
        return TrialRecord(trial.number, STATES[trial.state], trial.value, found, trial.intermediate_values, problem)


class _Rows(BaseJournalBackend):
    """A journal of ours as Optuna asks for it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def read_logs(self, log_number_from: int) -> Iterable[dict[str, Any]]:
        return self._journal.rows(log_number_from)

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        self._journal.append(logs)


class _Proposals(BaseSampler):
    """Proposes all settings of a trial at once, by a sampler that knows nothing but the seed and the trials so far."""

    def __init__(self, spec: TuneSpec, space: dict[str, BaseDistribution]) -> None:
        self._spec, self._space = spec, space

    def infer_relative_search_space(self, *_: Any) -> dict[str, BaseDistribution]:
        return self._space

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        if trial.params.keys() >= search_space.keys():
            return {}  # it is continued
        if trial.number == 0:
            return {name: label(value) for name, value in self._spec.first().items()}
        seed = int(np.random.SeedSequence([self._spec.seed, trial.number]).generate_state(1)[0])
        sampler = TPESampler(seed=seed) if self._spec.sampler == "tpe" else RandomSampler(seed=seed)
        found = sampler.sample_relative(study, trial, search_space)
        return {
            name: found[name] if name in found else sampler.sample_independent(study, trial, name, known)
            for name, known in search_space.items()
        }

    def sample_independent(self, *_: Any) -> Any:
        raise AssertionError("all settings are proposed together")


def distributions(space: Space) -> dict[str, BaseDistribution]:
    """Returns a space as Optuna has it."""
    found: dict[str, BaseDistribution] = {}
    for name, known in space.items():
        if isinstance(known, Choices):
            found[name] = CategoricalDistribution([label(value) for value in known.values])
        elif SETTINGS[name].type is int:
            found[name] = IntDistribution(int(known.low), int(known.high), known.log, int(known.step or 1))
        else:
            found[name] = FloatDistribution(known.low, known.high, known.log, known.step)
    return found


def pruner_of(spec: TuneSpec) -> BasePruner:
    """Returns what ends trials early."""
    steps = spec.settings["steps"]
    if spec.pruner == "median":
        return MedianPruner(n_startup_trials=STARTUP, n_warmup_steps=steps // 3)
    if spec.pruner == "hyperband":
        return HyperbandPruner(min_resource=max(1, spec.default.eval_every), max_resource=steps, reduction_factor=3)
    return NopPruner()


def best_of(trials: Iterable[TrialRecord]) -> TrialRecord | None:
    """Returns the complete trial with the highest value, the first of equals."""
    complete = [trial for trial in trials if trial.state == COMPLETE and trial.value is not None]
    return max(complete, key=lambda trial: trial.value or 0.0, default=None)


def ranked(trials: Iterable[TrialRecord]) -> list[TrialRecord]:
    """Returns trials that have ended: complete ones by their values, then pruned ones, then failed ones."""
    order = {COMPLETE: 0, PRUNED: 1, FAILED: 2}
    over = [trial for trial in trials if trial.state in order]
    return sorted(over, key=lambda one: (order[one.state], -(one.value if one.value is not None else 0.0), one.number))
