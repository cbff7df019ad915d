"""Twin Delayed DDPG: fifteen readable steps, a command line, exact and fast.

Public names are few and listed one by one; each is imported when it is first used, so that
`import td3` and `td3 --help` answer at once.
"""

import importlib
from typing import TYPE_CHECKING, Any

from td3.version import VERSION as __version__

if TYPE_CHECKING:
    from td3.agent import TD3, Agent, evaluate, load
    from td3.collection import Collector
    from td3.config import Config
    from td3.diagnosis.reading import diagnose
    from td3.errors import (
        ConfigError,
        EnvironmentFailure,
        RunError,
        SpaceError,
        TD3Error,
        TrainingDiverged,
    )
    from td3.events import (
        EpisodeEnded,
        Evaluated,
        Event,
        Examined,
        Finished,
        Found,
        Measured,
        Noted,
        Resumed,
        Saved,
        SaveFailed,
        Started,
        Stepped,
    )
    from td3.exploration import GaussianNoise
    from td3.interfaces import AnyCollector, Noise, Sampler
    from td3.learner.td3 import Learner
    from td3.learner.td7 import TD7Learner
    from td3.offline import Dataset
    from td3.replay.sampling import UniformSampler
    from td3.training import Training, resume, train
    from td3.types import Batch, Evaluation, Finding, Targets, Update

_HOMES = {
    "td3.agent": ("TD3", "Agent", "evaluate", "load"),
    "td3.config": ("Config",),
    "td3.diagnosis.reading": ("diagnose",),
    "td3.errors": (
        "ConfigError",
        "EnvironmentFailure",
        "RunError",
        "SpaceError",
        "TD3Error",
        "TrainingDiverged",
    ),
    "td3.training": ("Training", "resume", "train"),
    "td3.collection": ("Collector",),
    "td3.exploration": ("GaussianNoise",),
    "td3.interfaces": ("AnyCollector", "Noise", "Sampler"),
    "td3.learner.td3": ("Learner",),
    "td3.learner.td7": ("TD7Learner",),
    "td3.offline": ("Dataset",),
    "td3.replay.sampling": ("UniformSampler",),
    "td3.types": ("Batch", "Evaluation", "Finding", "Targets", "Update"),
    "td3.events": (
        "EpisodeEnded",
        "Evaluated",
        "Event",
        "Examined",
        "Finished",
        "Found",
        "Measured",
        "Noted",
        "Resumed",
        "SaveFailed",
        "Saved",
        "Started",
        "Stepped",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "TD3",
    "Agent",
    "AnyCollector",
    "Batch",
    "Collector",
    "Config",
    "ConfigError",
    "Dataset",
    "EnvironmentFailure",
    "EpisodeEnded",
    "Evaluated",
    "Evaluation",
    "Event",
    "Examined",
    "Finding",
    "Finished",
    "Found",
    "GaussianNoise",
    "Learner",
    "Measured",
    "Noise",
    "Noted",
    "Resumed",
    "RunError",
    "Sampler",
    "SaveFailed",
    "Saved",
    "SpaceError",
    "Started",
    "Stepped",
    "TD3Error",
    "TD7Learner",
    "Targets",
    "Training",
    "TrainingDiverged",
    "UniformSampler",
    "Update",
    "__version__",
    "diagnose",
    "evaluate",
    "load",
    "resume",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(importlib.import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'td3' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
