"""Every number of a run, once: meaning, range, source and default; the presets; the settings per task.

Flags, `--help`, `docs/settings.md` and `config.json` are all made from the fields of `Config`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, get_type_hints

import msgspec

from td3.errors import ConfigError, did_you_mean


class _Unset:
    """The value of a field nobody has set yet: the task, the preset or the default will."""

    def __repr__(self) -> str:
        return "<task, preset or default>"


UNSET: Any = _Unset()


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
    return field(default=UNSET, metadata={"setting": Setting(default, meaning, **known)})


SMALLEST_IMAGE = 8  # pixels each way: what is smaller is a table of numbers
PAPER = "Fujimoto et al. 2018"
AUTHOR = "the author's code since 2019"


@dataclass(frozen=True)
class Config:
    """All settings of a run. What is not given comes from the task, then the preset, then the default.

    `dataclasses.replace` takes every number as given, so it changes what is named and nothing else.
    """

    env: str | Callable[..., Any] = setting(
        "Pendulum-v1",
        "the environment: a Gymnasium id, `module:Id-v0` or `module:callable`, or a callable that makes one",
    )
    steps: int = setting(1_000_000, "the run's goal, in environment steps summed over all environments", at_least=1)
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
    policy_delay: int = setting(2, "critic updates per update of the actor and the targets", source=PAPER, at_least=1)
    target_noise: float = setting(
        0.2,
        "standard deviation of the noise on the target's action, in half action ranges",
        source=PAPER,
        at_least=0,
    )
    noise_clip: float = setting(0.5, "the most that noise may be, in half action ranges", source=PAPER, at_least=0)
    exploration_noise: float = setting(
        0.1,
        "standard deviation of the noise while playing, in half action ranges",
        source=PAPER,
        at_least=0,
    )
    warmup_steps: int = setting(
        25_000, "steps played uniformly at random before the actor plays", source=AUTHOR, at_least=0
    )
    batch_size: int = setting(256, "remembered transitions per update", source=AUTHOR, at_least=1, at_most=1_000_000)
    buffer_size: int = setting(
        1_000_000, "transitions the replay memory holds; the oldest goes first", source=PAPER, at_least=1
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
        "every image is moved by up to so many pixels each way, by chance, when it is learned from",
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
        None, "transitions before the first update (default: as many as warmup_steps)", at_least=0
    )

    num_envs: int = setting(1, "environments played side by side, feeding one memory", at_least=1, at_most=100_000)
    workers: int = setting(0, "processes that play them; 0 plays them in this process", at_least=0, at_most=10_000)
    worker_timeout: float = setting(
        30.0, "seconds a worker may take for one step or reset before it counts as hung", above=0
    )

    eval_every: int = setting(
        5_000, "steps between evaluations, which play without noise; 0 never evaluates", at_least=0
    )
    eval_episodes: int = setting(10, "episodes per evaluation", source=PAPER, at_least=1, at_most=1_000_000)
    checkpoint_every: int = setting(
        5_000,
        "steps between checkpoints; 0 saves only at a new best and at the end",
        at_least=0,
    )
    keep_last: int = setting(2, "newest checkpoints that are kept", at_least=1, at_most=1_000_000)
    keep_best: int = setting(1, "best-judged checkpoints that are kept besides", at_least=0, at_most=1_000_000)
    log_every: int = setting(250, "steps between two rows of training metrics", at_least=1)
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

    def __post_init__(self) -> None:
        given = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not UNSET}
        env = given.get("env", SETTINGS["env"].default)
        preset = given.get("preset", "pixels" if given.get("pixels") else SETTINGS["preset"].default)
        checked("preset", preset)
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
        """A config from plain data, each value checked like one typed by hand."""
        return cls(**{check_name(name): value for name, value in {**data, **changes}.items()})


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
    match = re.fullmatch(r"(\w+)-v\d+", env) if isinstance(env, str) else None
    name = match[1] if match else ""
    return {**TASKS.get(name, {}), **OF_PRESETS.get(preset, {}).get(name, {})}


def env_name(env: Any) -> str:
    """The environment in one word: its id, or the name of the callable that makes it."""
    if isinstance(env, str):
        return env
    return f"{getattr(env, '__module__', '?')}:{getattr(env, '__qualname__', type(env).__qualname__)}"


def check_name(name: str) -> str:
    if name not in SETTINGS:
        raise ConfigError(f"{name} is not a setting.{did_you_mean(name, SETTINGS)}")
    return name


def type_words(name: str) -> str:
    words: dict[Any, str] = {
        int: "a whole number",
        float: "a number",
        str: "a word",
        bool: "true or false",
    }
    default = SETTINGS[name].default
    if isinstance(default, tuple):
        return f"whole numbers such as {','.join(map(str, default))}"
    return words.get(_TYPES[name], "a Gymnasium id or a callable that makes an environment")


def parse(name: str, text: str) -> Any:
    """The value a flag's text stands for; still to be checked by `Config`."""
    try:
        if _TYPES[name] == tuple[int, ...]:
            return tuple(msgspec.convert(text.split(","), list[int], strict=False))
        if _TYPES[name] not in (int, float):
            return text
        return msgspec.convert(text.replace("_", ""), _TYPES[name], strict=False)
    except (msgspec.ValidationError, UnicodeEncodeError):  # the second: bytes on the command line that are no UTF-8
        raise ConfigError(_refusal(name, text)) from None


def checked(name: str, value: Any) -> Any:
    """The value in the field's own type, or a sentence that names field, value and range."""
    known = SETTINGS[name]
    if name == "env":
        if (isinstance(value, str) and value) or callable(value):
            return value
        raise ConfigError(_refusal(name, value))
    try:
        checked = msgspec.convert(_plain(value), _TYPES[name])
    except msgspec.ValidationError:
        raise ConfigError(_refusal(name, value)) from None
    finite = checked == checked and checked not in (float("inf"), float("-inf"))
    if not finite or not all(map(known.admits, checked if isinstance(checked, tuple) else (checked,))):
        raise ConfigError(_refusal(name, value))
    return checked


def _plain(value: Any) -> Any:
    """Python's own numbers for those of NumPy and PyTorch, inside lists and tuples too."""
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value.tolist() if hasattr(value, "tolist") else value


def _refusal(name: str, value: Any) -> str:
    known = SETTINGS[name]
    near = did_you_mean(str(value), known.choices)
    if known.choices:
        return f"{name} must be {known.allowed}; got {value!r}.{near}"
    each = ", each" if _TYPES[name] == tuple[int, ...] else ","
    allowed = f"{each} {known.allowed}" if known.allowed else ""
    return f"{name} must be {type_words(name)}{allowed}; got {value!r}."
