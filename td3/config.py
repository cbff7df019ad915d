"""Every number of a run, once: meaning, range, source and default; the presets; the settings per task.

Flags, `--help`, `docs/settings.md` and `config.json` are all made from the fields of `Config`.
"""

import contextlib
import inspect
import math
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Self, get_type_hints

import msgspec

from td3.errors import ConfigError
from td3.synonyms import instead_of, value_for
from td3.wording import brief, did_you_mean

UNSET: Any = object()  # the value of a field nobody has set yet: the task, the preset or the default will


@dataclass(frozen=True)
class Setting:
    """What is known about one field: enough to check it, to explain it and to make a flag of it."""

    default: Any
    meaning: str
    source: str = ""
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """The range in words: 'above 0, at most 1', or the choices; empty where everything goes."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        bounds = {"at least": self.at_least, "above": self.above, "at most": self.at_most}
        return ", ".join(f"{word} {bound:,}" for word, bound in bounds.items() if bound is not None)

    def admits(self, value: Any) -> bool:
        if self.choices:
            return value in self.choices
        return (
            (self.at_least is None or value >= self.at_least)
            and (self.above is None or value > self.above)
            and (self.at_most is None or value <= self.at_most)
        )


def setting(default: Any, meaning: str, **known: Any) -> Any:
    by_hash = None if default.__hash__ else False  # a mapping counts for equality alone
    known_setting = Setting(default, meaning, **known)
    return field(default_factory=lambda: UNSET, hash=by_hash, metadata={"setting": known_setting})


MOST = 10**12  # of anything that is counted: more than any run reaches, and exact in floats and in JSON
MOST_LAYERS = 64  # of a network: a list longer than this is a mistake
SMALLEST_IMAGE = 8  # pixels each way: what is smaller is a table of numbers
PAPER = "Fujimoto et al. 2018"
AUTHOR = "the author's code since 2019"


@dataclass(frozen=True)
class Config:
    """All settings of a run.

    What is not given comes from the task, then the preset, then the default.
    `dataclasses.replace` takes every number as given, so it changes what is
    named and nothing else. A name that is no setting is a `td3.ConfigError`.
    """

    env: str | Callable[..., Any] = setting(
        "Pendulum-v1",
        "the environment: a Gymnasium id, `module:Id-v0` or `module:callable`, or a callable that makes one",
    )
    env_args: Mapping[str, Any] = setting(
        {},
        "keyword arguments for whatever makes the environment; plain data, kept in config.json and used by resume",
    )
    steps: int = setting(
        1_000_000, "the run's goal, in environment steps summed over all environments", at_least=1, at_most=MOST
    )
    seed: int = setting(0, "one number from which every random stream is spawned", at_least=0, at_most=2**63 - 1)
    preset: str = setting(
        "author",
        "settings to start from: `author` (published since 2019), `paper` (2018), or `pixels` (ours, for images)",
        choices=("author", "paper", "pixels"),
    )

    gamma: float = setting(
        0.99,
        "discount: how much a reward one step later is worth; larger looks further ahead",
        source=PAPER,
        at_least=0,
        at_most=1,
    )
    tau: float = setting(
        0.005,
        "how far a target moves towards its network at each delayed update",
        source=PAPER,
        above=0,
        at_most=1,
    )
    policy_delay: int = setting(
        2,
        "critic updates per update of the actor and the targets",
        source=PAPER,
        at_least=1,
        at_most=1_000_000,
    )
    target_noise: float = setting(
        0.2,
        "standard deviation of the noise on the target's action, in half action ranges",
        source=PAPER,
        at_least=0,
        at_most=1_000_000,
    )
    noise_clip: float = setting(
        0.5, "the most that noise may be, in half action ranges", source=PAPER, at_least=0, at_most=1_000_000
    )
    exploration_noise: float = setting(
        0.1,
        "standard deviation of the noise while playing, in half action ranges",
        source=PAPER,
        at_least=0,
        at_most=1_000_000,
    )
    warmup_steps: int = setting(
        25_000, "steps played uniformly at random before the actor plays", source=AUTHOR, at_least=0, at_most=MOST
    )
    batch_size: int = setting(256, "remembered transitions per update", source=AUTHOR, at_least=1, at_most=1_000_000)
    buffer_size: int = setting(
        1_000_000, "transitions the replay memory holds; the oldest goes first", source=PAPER, at_least=1, at_most=MOST
    )
    actor_lr: float = setting(3e-4, "Adam's learning rate of the actor", source=AUTHOR, above=0, at_most=1)
    critic_lr: float = setting(3e-4, "Adam's learning rate of the critics", source=AUTHOR, above=0, at_most=1)
    hidden: tuple[int, ...] = setting(
        (256, 256),
        "units of each hidden layer, of the actor and of each critic",
        source=AUTHOR,
        at_least=1,
        at_most=65_536,
    )

    n_step: int = setting(
        1,
        "steps whose rewards a target adds up before it trusts the critics; fewer where an episode ends",
        at_least=1,
        at_most=1_000,
    )
    reward_scale: float = setting(
        1.0,
        "the critics learn from the reward times this; losses and Q values are told so, returns are not",
        at_least=1e-6,
        at_most=1e6,
    )
    normalize_observations: bool = setting(
        False, "numbers are read in standard deviations from their running mean; they are remembered as they are"
    )

    pixels: int = setting(
        0,
        "learn from what the environment draws, in so many pixels each way, at least 8; 0 learns from its observations",
        at_least=0,
        at_most=1_024,
    )
    resize: int = setting(
        0,
        "every image of an observation is made so many pixels wide and high, at least 8; 0 leaves it",
        at_least=0,
        at_most=1_024,
    )
    grey: bool = setting(False, "every image of an observation is made grey")
    frame_stack: int = setting(
        1, "every image is seen together with the ones before it, so many in all", at_least=1, at_most=64
    )
    action_repeat: int = setting(
        1,
        "every action is executed so many times, which count as one step; their rewards add up",
        at_least=1,
        at_most=100,
    )
    random_shift: int = setting(
        0,
        "shifts every sampled image by a random number of pixels each way, up to this many",
        at_least=0,
        at_most=64,
    )
    encoder_channels: tuple[int, ...] = setting(
        (16, 32, 32),
        "channels of each convolution that reads an image",
        at_least=1,
        at_most=4_096,
    )
    encoder_features: int = setting(50, "numbers that are left of an image", at_least=1, at_most=65_536)

    update_schedule: str = setting(
        "step",
        "`step`: learn after every step; `episode`: after each episode, for as many steps as it had",
        source="episode: " + PAPER,
        choices=("step", "episode"),
    )
    updates_per_step: float = setting(
        1.0,
        "updates per transition, however many environments bring them in",
        source=PAPER,
        above=0,
        at_most=1_000,
    )
    update_after: int = setting(
        None, "transitions before the first update (default: as many as warmup_steps)", at_least=0, at_most=MOST
    )

    num_envs: int = setting(1, "environments played side by side, feeding one memory", at_least=1, at_most=100_000)
    workers: int = setting(0, "processes that play them; 0 plays them in this process", at_least=0, at_most=10_000)
    worker_timeout: float = setting(
        30.0,
        "seconds a worker may take for one step or reset before it counts as hung",
        above=0,
        at_most=1_000_000,
    )

    eval_every: int = setting(
        5_000, "steps between evaluations, which play without noise; 0 never evaluates", at_least=0, at_most=MOST
    )
    eval_episodes: int = setting(10, "episodes per evaluation", source=PAPER, at_least=1, at_most=1_000_000)
    checkpoint_every: int = setting(
        5_000,
        "steps between checkpoints; 0 saves only at a new best and at the end",
        at_least=0,
        at_most=MOST,
    )
    keep_last: int = setting(2, "newest checkpoints that are kept", at_least=1, at_most=1_000_000)
    keep_best: int = setting(
        1, "checkpoints with the best evaluations that are kept as well", at_least=0, at_most=1_000_000
    )
    log_every: int = setting(250, "steps between two rows of training metrics", at_least=1, at_most=MOST)
    record_updates: bool = setting(
        True, "record one real update now and then, for the page; at most a hundredth of the time goes into it"
    )
    film: bool = setting(
        True, "film an evaluated episode now and then, for the page, where the environment can draw itself"
    )

    engine: str = setting(
        "auto",
        "who performs the update: `torch`, the readable page; `native`, the same in C++; `auto`: native where it can",
        choices=("auto", "native", "torch"),
    )
    device: str = setting("cpu", "where the networks live", choices=("cpu", "cuda"))
    compile: bool = setting(
        False, "compile the torch engine's networks with torch.compile; meant for GPUs, and unmeasured there"
    )
    threads: int = setting(
        0,
        "CPU threads of the update; 0 takes at most 4, and leaves a core free for torch and for `workers`",
        at_least=0,
        at_most=1_024,
    )

    def __new__(cls, *_: Any, **settings: Any) -> Self:
        """Refuses names that are no settings, before Python would with a TypeError."""
        for name in settings:
            check_name(name)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        given = {
            name: checked(name, value)
            for name in SETTINGS
            if (value := getattr(self, name)) is not UNSET and not (value is None and SETTINGS[name].default is None)
        }
        env, own_args = unfolded(given.get("env", SETTINGS["env"].default))
        if env is not given.get("env", env):
            given.update(env=env, env_args={**own_args, **given.get("env_args", {})})
        preset = given.get("preset", "pixels" if given.get("pixels") else SETTINGS["preset"].default)
        known = {**PRESETS[preset], **task_settings(env, preset), **given, "preset": preset}
        known.setdefault("update_after", known.get("warmup_steps", SETTINGS["warmup_steps"].default))
        for name, known_setting in SETTINGS.items():
            object.__setattr__(self, name, checked(name, known.get(name, known_setting.default)))
        for name in ("pixels", "resize"):
            if 0 < getattr(self, name) < SMALLEST_IMAGE:
                raise ConfigError(f"{name} must be 0, or at least {SMALLEST_IMAGE}; got {getattr(self, name)}.")
        if not self.encoder_channels:
            raise ConfigError("encoder_channels must name at least one convolution; got none.")
        if self.workers > self.num_envs:
            raise ConfigError(f"workers must be at most num_envs, which is {self.num_envs}; got {self.workers}.")

    def to_data(self) -> dict[str, Any]:
        """Plain data for `config.json`; an environment made by Python code is kept by name only."""
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        data = {name: list(value) if isinstance(value, tuple) else value for name, value in data.items()}
        return {**data, "env": env_name(self.env)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], **changes: Any) -> "Config":
        """A config from plain data, each name and value checked like one typed by hand."""
        return cls(**{**data, **changes})


SETTINGS: dict[str, Setting] = {f.name: f.metadata["setting"] for f in fields(Config)}
_TYPES: dict[str, Any] = get_type_hints(Config)

PRESETS: dict[str, dict[str, Any]] = {
    "author": {},
    "paper": {  # the 2018 code also learns from the warm-up's episodes while it lasts: update_after 0
        "hidden": (400, 300),
        "actor_lr": 1e-3,
        "critic_lr": 1e-3,
        "batch_size": 100,
        "warmup_steps": 10_000,
        "update_schedule": "episode",
        "update_after": 0,
    },
    "pixels": {
        "grey": True,
        "frame_stack": 3,
        "action_repeat": 2,
        "reward_scale": 0.1,
        "batch_size": 64,
        "buffer_size": 100_000,
        "actor_lr": 5e-4,
        "critic_lr": 5e-4,
        "warmup_steps": 500,
    },
}

EASY = {"warmup_steps": 1_000}
TASKS: dict[str, dict[str, Any]] = {  # by the id's name without its version; they go before the preset
    "Pendulum": {
        **EASY,
        "steps": 10_000,
        "hidden": (128, 128),
        "gamma": 0.98,
        "actor_lr": 1e-3,
        "critic_lr": 1e-3,
        "eval_every": 1_000,
    },
    "InvertedPendulum": {**EASY, "steps": 50_000},
    "InvertedDoublePendulum": EASY,
    "Reacher": EASY,
    "Swimmer": {"gamma": 0.9999},  # learns to swim only when it looks this far: Franceschetti et al., arXiv:2208.07587
}
OF_PRESETS: dict[str, dict[str, dict[str, Any]]] = {  # and these of one preset alone before all others
    "paper": {"Hopper": EASY, "Walker2d": EASY},  # the author's code of 2018 did so
    "pixels": {
        "Pendulum": {
            "steps": 7_500,
            "hidden": (256, 256),
            "pixels": 32,
            "warmup_steps": 500,
            "eval_every": 500,
            "gamma": 0.99,
        },
        "InvertedPendulum": {
            "pixels": 64,
            "steps": 20_000,
            "warmup_steps": 500,
            "action_repeat": 1,
            "eval_every": 1_000,
        },
    },
}


def task_settings(env: Any, preset: str) -> Mapping[str, Any]:
    """What this task needs in addition to the preset."""
    match = re.fullmatch(r"(\w+?)(-v\d+)?", env) if isinstance(env, str) else None  # or the latest version
    name = match[1] if match else ""
    return {**TASKS.get(name, {}), **OF_PRESETS.get(preset, {}).get(name, {})}


def env_name(env: Any) -> str:
    """The environment in one word: its id, or the name of the callable that makes it.

    What cannot be found again by a name (a lambda, a function inside another, an object) has its name in `<…>`.
    """
    if isinstance(env, str):
        return env
    inner = env.func if isinstance(env, partial) else env
    module = getattr(inner, "__module__", None) or "?"
    name = getattr(inner, "__qualname__", None)
    if name is None:
        return f"{module}:<{type(inner).__qualname__} object>"
    if isinstance(env, partial):
        return f"{module}:<partial of {name}>"
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}:{name}" if found == env or "<" in name else f"{module}:<{name}>"


def has_no_name(env: Any) -> bool:
    """Whether this is how `env_name` called what cannot be found by a name."""
    return isinstance(env, str) and ("<" in env or env == "functools:partial")


def nameless(env: str) -> str:
    return (
        f"env {env!r} was made by code that no other program can find by its name: pass the environment itself "
        "(env=… in Python, --env module:callable)."
    )


def unfolded(env: Any) -> tuple[Any, dict[str, Any]]:
    """The maker and the keyword arguments of a `functools.partial` of plain data; anything else as it is.

    `partial(gymnasium.make, "Id-v0", size=3)` is the id and its arguments.
    """
    if not isinstance(env, partial):
        return env, {}
    try:
        parameters = inspect.signature(env.func).parameters.values()
        names = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
        arguments = {**dict(zip(names[: len(env.args)], env.args, strict=True)), **env.keywords}
        arguments = checked("env_args", arguments)
    except (TypeError, ValueError):  # no signature, more arguments than names, or no plain data
        return env, {}
    gymnasium = sys.modules.get("gymnasium")
    if gymnasium is not None and env.func is gymnasium.make and isinstance(arguments.get("id"), str):
        return arguments.pop("id"), arguments
    return env.func, arguments


def check_name(name: str) -> str:
    if name not in SETTINGS:
        there = instead_of(name)
        raise ConfigError(f"{name} is not a setting{f': {there}.' if there else f'.{did_you_mean(name, SETTINGS)}'}")
    return name


def type_words(name: str) -> str:
    words: dict[Any, str] = {
        int: "a whole number",
        float: "a number",
        str: "a word",
        bool: "true or false",
    }
    if name == "env_args":
        return "names with plain values: numbers, texts, true, false, null, or lists of those"
    default = SETTINGS[name].default
    if isinstance(default, tuple):
        return f"whole numbers such as {in_words(default)}"
    return words.get(_TYPES[name], "a Gymnasium id or a callable that makes an environment")


def range_words(name: str) -> str:
    """What a setting may be: 'a number, above 0, at most 1'."""
    known = SETTINGS[name]
    if known.choices or not known.allowed:
        return known.allowed or type_words(name)
    each = f" at most {MOST_LAYERS} of them, each" if isinstance(known.default, tuple) else ""
    return f"{type_words(name)},{each} {known.allowed}"


def in_words(value: Any) -> str:
    """A value as a flag takes it, for people to read: '400,300'."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def explained(name: str) -> str:
    """Meaning, range, default, what presets choose and where it is from: for `--help` and for `help(Config)`."""
    known = SETTINGS[name]
    facts = [known.allowed, "" if known.default in (None, {}) else f"default {in_words(known.default)}"]
    facts += [f"{preset}: {in_words(values[name])}" for preset, values in PRESETS.items() if name in values]
    facts += [known.source]
    return f"{known.meaning} [{'; '.join(filter(None, facts))}]".removesuffix(" []")


def whole_number_in(text: str) -> int:
    """The whole number that is written there, as `1000`, `1_000` or `1e3`; else a ValueError."""
    try:
        return msgspec.convert(_without_underscores(text), int, strict=False)
    except msgspec.ValidationError:
        raise ValueError(f"{brief(text)} is no whole number") from None


def _without_underscores(text: str) -> str:
    return re.sub(r"(?<=\d)_(?=\d)", "", text)


def parse(name: str, text: str) -> Any:
    """The value a flag's text stands for; still to be checked by `Config`."""
    try:
        if _TYPES[name] == tuple[int, ...]:
            return tuple(map(whole_number_in, text.split(",")))
        if _TYPES[name] is int:
            return whole_number_in(text)
        return msgspec.convert(_without_underscores(text), float, strict=False) if _TYPES[name] is float else text
    except (ValueError, msgspec.ValidationError):  # bytes that are no UTF-8 are a ValueError, too
        raise ConfigError(_refusal(name, text)) from None


def parse_env_args(texts: Sequence[str]) -> dict[str, Any]:
    """What `name=value`, `name=value` stand for; a value that is no JSON is a text."""
    arguments: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"--env-arg must be NAME=VALUE; got {brief(text)}.")
        try:
            arguments[name] = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            arguments[name] = value
    return arguments


def checked(name: str, value: Any) -> Any:
    """The value in the field's own type, or a sentence that names field, value and range."""
    known = SETTINGS[name]
    if name == "env":
        gymnasium = sys.modules.get("gymnasium")  # where nobody has imported it, nobody has made one
        if gymnasium is not None and isinstance(value, gymnasium.Env | gymnasium.vector.VectorEnv):
            kind = type(value).__name__
            raise ConfigError(
                f"env must be {type_words(name)}; got an environment, a {kind}: pass what makes one, such as "
                f"lambda: {kind}(…)."
            )
        if (isinstance(value, str) and value) or callable(value):
            return value
        raise ConfigError(_refusal(name, value))
    if name == "env_args":
        return _checked_arguments(value)
    try:
        checked = msgspec.convert(_plain(value, whole=_TYPES[name] is not float), _TYPES[name])
    except msgspec.ValidationError:
        raise ConfigError(_refusal(name, value)) from None
    each = checked if isinstance(checked, tuple) else (checked,)
    finite = checked == checked and checked not in (float("inf"), float("-inf"))
    if not finite or len(each) > MOST_LAYERS or not all(map(known.admits, each)):
        raise ConfigError(_refusal(name, value))
    return checked


def _checked_arguments(arguments: Any) -> dict[str, Any]:
    if not isinstance(arguments, Mapping):
        raise ConfigError(_refusal("env_args", arguments))
    for name in arguments:
        if not isinstance(name, str) or not name.isidentifier():
            raise ConfigError(f"env_args must have names that Python can call with; got {brief(name)}.")
    plain = {name: _plain_data(value) for name, value in arguments.items()}
    for name, value in plain.items():
        if not _is_plain(value):
            raise ConfigError(
                f"env_args must be {type_words('env_args')}; got {name} = {brief(value)}, a {type(value).__name__}."
            )
    return plain


def _plain_data(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain_data(one) for one in value]
    return _plain_number(value, whole=False)


def _is_plain(value: Any) -> bool:
    """Whether JSON gives back the very same."""
    kind = type(value)
    if kind is list:
        return all(map(_is_plain, value))
    if kind is str:
        return bool(value.encode(errors="ignore").decode() == value)  # no halves of characters
    if kind is float:
        return math.isfinite(value)
    return value is None or kind is bool or (kind is int and -(2**63) <= value < 2**64)


def _plain(value: Any, whole: bool) -> Any:
    """Python's own numbers for those of NumPy and PyTorch, inside lists and tuples too; 1e6 is `whole` as well."""
    if isinstance(value, list | tuple):
        return [_plain_number(one, whole) for one in value]
    return _plain_number(value, whole)


def _plain_number(value: Any, whole: bool) -> Any:
    if hasattr(value, "tolist"):
        with contextlib.suppress(Exception):  # a class, a tensor without data, …: no number, and refused as it is
            value = value.tolist()
    return int(value) if whole and isinstance(value, float) and value.is_integer() else value


def _refusal(name: str, value: Any) -> str:
    known = SETTINGS[name]
    near = ""
    if known.choices and isinstance(value, str):
        meant = value_for(name, value)
        near = f" Did you mean {meant}?" if meant else did_you_mean(value, known.choices)
    elif name == "env" and hasattr(value, "reset"):
        near = " An environment itself is played in one place only: pass what makes it."
    return f"{name} must be {range_words(name)}; got {brief(value)}.{near}"


class _Signature(inspect.Signature):
    """A signature that `help` shows in lines of a readable width."""

    def __str__(self) -> str:
        parameters = ", ".join(str(one).replace(" ", "\0") for one in self.parameters.values())
        return "(" + textwrap.fill(parameters, 64, subsequent_indent="    ").replace("\0", " ") + ")"


def _make_help() -> None:
    """Tells every setting in `help(Config)`, which Python would show as names without meaning."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    given = [inspect.Parameter(name, kind, default=known.default) for name, known in SETTINGS.items()]
    itself = inspect.Parameter("self", kind)
    several = inspect.Parameter("settings", inspect.Parameter.VAR_KEYWORD)
    Config.__signature__ = _Signature(given)  # type: ignore[attr-defined]
    Config.__init__.__signature__ = inspect.Signature([itself, several])  # type: ignore[attr-defined]
    entries = []
    for name in SETTINGS:
        text = textwrap.fill(explained(name), 75, initial_indent="    ", subsequent_indent="    ")
        entries.append(f"{name}: {inspect.formatannotation(_TYPES[name])}\n{text}")
    Config.__doc__ = f"{inspect.cleandoc(Config.__doc__ or '')}\n\n" + "\n".join(entries)


_make_help()
