"""The learner: `td3.py` is the algorithm in fifteen steps.

The update is a function of networks, batch and noise. `native` performs it faster, on the same tensors, and each engine
can continue where the other stopped; `td3 selftest` compares both with a reference in NumPy.
"""

import copy
from contextlib import suppress
from functools import partial
from typing import Any

from td3.config import Config
from td3.errors import ConfigError
from td3.learner.native.engine import Native, NativeLearner, NativePolicy
from td3.learner.native.fingerprint import why_edited
from td3.learner.native.library import Missing, kernels, tested
from td3.learner.native.supported import Unsupported, check_learner, check_td7_learner
from td3.learner.native.td7 import NativeTD7Learner, NativeTD7Policy
from td3.learner.preprocessing import Normalizer
from td3.learner.td3 import Learner
from td3.learner.td7 import TD7Learner
from td3.types import Float32s, Layout, Policy, Rows

# Who can perform TD3's update, by the name in `Config.engine`; `auto` takes the first that applies.
ENGINES: dict[str, type[Learner]] = {"native": NativeLearner, "torch": Learner}

ALGORITHMS: dict[str, type[Learner]] = {"td3": Learner, "td7": TD7Learner}  # by the name in `Config.algorithm`

PERFORMED: dict[type[Learner], type[Native]] = {Learner: NativeLearner, TD7Learner: NativeTD7Learner}  # in C++
PAGES: dict[type[Learner], type[Learner]] = {native: page for page, native in PERFORMED.items()}

NATIVE_KINDS = {"vector", "category"}  # of parts of an observation; each must be passed on as it is by its encoder


def choose_engine(config: Config, layout: Layout | None = None, learner: Learner | None = None) -> tuple[str, str]:
    """The engine for this config, and a sentence if the user would want to know why it is not the fast one."""
    if config.engine == "torch" or (config.engine == "auto" and layout and layout.frame):
        return "torch", ""
    reason = why_not_native(config, layout, learner)
    if reason and config.engine == "native":
        raise ConfigError(f"engine must be torch or auto here: {reason}; got 'native'.")
    if reason and config.device == "cpu" and not config.compile:
        return "torch", f"Learning with torch, several times slower than the native engine: {reason}."
    return ("torch" if reason else "native"), ""


def why_not_native(config: Config, layout: Layout | None = None, learner: Learner | None = None) -> str:
    """Why the native engine does not apply, or nothing; of a learner that is made already, its parts count too."""
    for part in layout.parts if layout else ():
        if part.kind not in NATIVE_KINDS:
            return f"the native engine reads vectors, not {part.kind}s"
    if config.device != "cpu":
        return f"the native engine runs on the cpu, not on {config.device}"
    if config.algorithm == "td7" and not config.embedding_size:
        return "the native engine performs td7 with an embedding, and embedding_size is 0"
    if config.compile:
        return "compile is for the torch engine"
    if not config.actor_layers or not config.critic_layers:
        return "the native engine needs at least one hidden layer"
    if config.algorithm == "td3" and config.actor_layers != config.critic_layers:
        return "the native engine needs the same actor_hidden and critic_hidden"
    try:
        kernels()
    except Missing as problem:
        return f"the native engine is not available: {problem}"
    return why_edited(tested(), config.algorithm) or (why_not_learner(learner) if learner else "")


def why_not_learner(learner: Learner) -> str:
    """Why the native engine cannot do what this learner does, or nothing."""
    own = [name for name in vars(learner) if hasattr(type(learner), name)]
    if PAGES.get(type(learner), type(learner)) not in PERFORMED or own:
        return f"{type(learner).__name__} overrides methods, which the native engine would not call"
    try:
        check_td7_learner(learner) if isinstance(learner, TD7Learner) else check_learner(learner)
    except Unsupported as problem:
        return str(problem)
    return ""


def engine_name(engine: str) -> str:
    """The engine with what its bits depend on: 'torch', or 'native avx2'."""
    return f"native {kernels()}" if engine == "native" else engine


def switched(learner: Learner, engine: str) -> Learner:
    """The same learner performed by another engine; no number is copied or changed."""
    page = PAGES.get(type(learner), type(learner))
    kind = PERFORMED.get(page, page) if engine == "native" else page
    if type(learner) is kind and (kind in PAGES if engine == "native" else not isinstance(learner, Native)):
        return learner
    if page not in PERFORMED or (engine == "native" and why_not_learner(learner)):
        reason = why_not_learner(learner)
        raise ConfigError(f"engine must be left as it is here: {reason}; got {engine!r}.")
    other = kind.__new__(kind)
    state: dict[str, Any] = {name: value for name, value in vars(learner).items() if name not in Native.OWN}
    vars(other).update(state)
    if isinstance(other, Native):
        other.prepare()
    return other


def policy_of(learner: Learner) -> Policy:
    """Returns what the learner's actor does, for another process too: on the CPU, by the fastest engine that can.

    Both engines act alike. A learner with a policy of its own keeps it.
    """
    if learner.config.device != "cpu":
        learner = on_cpu(learner)
    config = learner.config
    usual = type(learner).policy is Learner.policy and config.engine != "torch"
    if usual and not why_not_native(config, learner.layout):
        with suppress(ConfigError):
            if isinstance(learner, TD7Learner):
                policy: Policy = NativeTD7Policy(learner.actor, learner.critics.encoder)
            else:
                policy = NativePolicy(learner.actor)
            return partial(normalized, policy, learner.normalizer) if learner.normalizer else policy
    return learner.policy()


def on_cpu(learner: Learner) -> Learner:
    """Returns a learner that acts alike where there is no GPU; it has no memory to learn from."""
    other = copy.copy(learner)
    vars(other).update({name: copy.deepcopy(network).cpu() for name, network in learner.networks().items()})
    return other


def normalized(policy: Policy, normalizer: Normalizer, observations: Rows) -> Float32s:
    """Acts on normalised observations."""
    return policy(normalizer(observations))


__all__ = [
    "ALGORITHMS",
    "ENGINES",
    "Learner",
    "TD7Learner",
    "choose_engine",
    "engine_name",
    "policy_of",
    "switched",
    "why_not_native",
]
