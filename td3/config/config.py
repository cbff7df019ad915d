"""All settings of a run, in groups: meaning, range, source and default of each, written once.

Flags, `--help`, `docs/settings.md`, the web page's table and `config.json` are made from these fields. A new setting
is one more field here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Self

from td3.config.env import ARGUMENT_WORDS, ENV_WORDS, check_env, check_env_args, env_name, unfolded
from td3.config.files import check_no_study, in_file, read_toml
from td3.config.help_text import explain_class
from td3.config.presets import completed
from td3.config.settings import UNSET, Setting, setting, settings_of
from td3.errors import ConfigError
from td3.synonyms import instead_of
from td3.wording import did_you_mean

MOST = 10**12  # of anything that is counted: more than any run reaches, and exact in floats and in JSON
SMALLEST_IMAGE = 8  # pixels each way: anything smaller is no image
PAPER = "Fujimoto et al. 2018"
AUTHOR = "the author's code since 2019"
TD7 = "Fujimoto et al. 2023"
LAP = "Fujimoto et al. 2020"

task = partial(setting, "Task")
learning = partial(setting, "Algorithm")
td7 = partial(setting, "TD7", source=TD7)
networks = partial(setting, "Networks")
exploration = partial(setting, "Exploration")
replay = partial(setting, "Replay memory")
images = partial(setting, "Images")
schedule = partial(setting, "Update schedule")
parallel = partial(setting, "Parallel environments")
evaluation = partial(setting, "Evaluation")
stopping = partial(setting, "Stopping early")
run_folder = partial(setting, "Run folder")
machine = partial(setting, "Machine")


@dataclass(frozen=True)
class Config:
    """All settings of a run.

    What is not given comes from the task, then the preset, then the default.
    `dataclasses.replace` takes every value as given, so it changes what is
    named and nothing else. A name that is no setting is a `td3.ConfigError`.
    """

    env: str | Callable[..., Any] = task(
        "Pendulum-v1",
        "the environment: a Gymnasium id, `module:Id-v0` (the module registers it), `module:callable`, or a callable",
        kind=ENV_WORDS,
        own_check=check_env,
    )
    env_args: Mapping[str, Any] = task(
        {},
        "keyword arguments for the environment; plain data, saved in config.json and used again by resume",
        kind=ARGUMENT_WORDS,
        own_check=check_env_args,
    )
    action_repeat: int = task(
        1, "repeats every action this many times, as one step; the rewards are summed", at_least=1, at_most=100
    )
    history: int = task(
        1,
        "consecutive observations of numbers that are joined into one, for delays and hidden velocities",
        at_least=1,
        at_most=64,
    )
    steps: int = task(1_000_000, "environment steps to train for, over all environments", at_least=1, at_most=MOST)
    seed: int = task(0, "seed of every random number generator", at_least=0, at_most=2**63 - 1)
    preset: str = task(
        "author",
        "settings to start from: `author` (published since 2019), `paper` (2018), `pixels` (ours, for images), `td7`",
        choices=("author", "paper", "pixels", "td7"),
    )
    algorithm: str = task(
        "td3",
        "what learns: `td3`, or `td7`, TD3 with the additions in the group TD7",
        source="td7: " + TD7,
        choices=("td3", "td7"),
    )

    gamma: float = learning(
        0.99, "discount factor; a larger one looks further ahead", source=PAPER, at_least=0, at_most=1
    )
    n_step: int = learning(
        1, "rewards summed before a target uses the critics; fewer where an episode ends", at_least=1, at_most=1_000
    )
    reward_scale: float = learning(
        1.0, "multiplies the rewards that the critics learn from; returns stay unscaled", at_least=1e-6, at_most=1e6
    )
    tau: float = learning(
        0.005, "soft update rate of the target networks, at each delayed update", source=PAPER, above=0, at_most=1
    )
    policy_delay: int = learning(
        2, "critic updates per update of actor and target networks", source=PAPER, at_least=1, at_most=10**6
    )
    target_noise: float = learning(
        0.2, "standard deviation of target action noise, in half action ranges", source=PAPER, at_least=0, at_most=10**6
    )
    noise_clip: float = learning(
        0.5, "largest noise on target actions, in half action ranges", source=PAPER, at_least=0, at_most=10**6
    )
    actor_lr: float = learning(3e-4, "Adam's learning rate for the actor", source=AUTHOR, above=0, at_most=1)
    critic_lr: float = learning(3e-4, "Adam's learning rate for the critics", source=AUTHOR, above=0, at_most=1)

    embedding_size: int = td7(
        256, "numbers of an embedding of states and of state-action pairs; 0: none", at_least=0, at_most=65_536
    )
    embedding_hidden: tuple[int, ...] = td7(
        (256, 256), "units of each hidden layer of both encoders of the embedding", at_least=1, at_most=65_536
    )
    embedding_lr: float = td7(3e-4, "Adam's learning rate for the embedding", above=0, at_most=1)
    target_every: int = td7(
        250, "updates between copies of all target networks; 0 moves them by tau, as TD3", at_least=0, at_most=10**6
    )
    clip_targets: bool = td7(True, "clips the next state's value to the range of all targets up to the last copy")
    actor_loss: str = td7(
        "both", "what the actor ascends: the mean of `both` critics, or `q1` alone, as TD3", choices=("both", "q1")
    )
    policy_checkpoints: bool = td7(
        False, "keeps the policy with the best smallest return, each assessed before it learns on (one environment)"
    )
    assessment_episodes: int = td7(
        20,
        "episodes that assess a policy, from assess_longer_after on",
        at_least=1,
        at_most=10**6,
    )
    assess_longer_after: int = td7(
        750_000, "updates up to which a policy is assessed by one episode", at_least=0, at_most=MOST
    )

    hidden: tuple[int, ...] = networks(
        (256, 256), "units of each hidden layer, of actor and critics", source=AUTHOR, at_least=1, at_most=65_536
    )
    actor_hidden: tuple[int, ...] | None = networks(
        None, "units of each hidden layer of the actor (default: as hidden)", at_least=1, at_most=65_536
    )
    critic_hidden: tuple[int, ...] | None = networks(
        None, "units of each hidden layer of each critic (default: as hidden)", at_least=1, at_most=65_536
    )
    normalize_observations: bool = networks(
        False, "normalises observations by their running mean and standard deviation, images excepted"
    )

    exploration_noise: float = exploration(
        0.1, "standard deviation of the action noise, in half action ranges", source=PAPER, at_least=0, at_most=10**6
    )
    warmup_steps: int = exploration(
        25_000, "steps with uniformly random actions, before the actor is used", source=AUTHOR, at_least=0, at_most=MOST
    )

    buffer_size: int = replay(
        1_000_000, "transitions in the replay memory; the oldest is overwritten", source=PAPER, at_least=1, at_most=MOST
    )
    batch_size: int = replay(256, "transitions sampled per update", source=AUTHOR, at_least=1, at_most=10**6)
    sampling: str = replay(
        "uniform",
        "which transitions a batch has: `uniform`, any; `lap`, rather those with large errors, and a Huber loss",
        source="lap: " + LAP,
        choices=("uniform", "lap"),
    )
    priority_alpha: float = replay(
        0.4,
        "`sampling lap`: the power of an error that is its priority; 0 is uniform",
        source=LAP,
        at_least=0,
        at_most=1,
    )
    priority_floor: float = replay(
        1.0,
        "`sampling lap`: the error below which all priorities are equal, and the loss is quadratic",
        source=LAP,
        above=0,
        at_most=1e6,
    )

    pixels: int = images(
        0, "learns from images rendered this size, at least 8 pixels; 0: from observations", at_least=0, at_most=1_024
    )
    resize: int = images(
        0, "resizes images in an observation to this, at least 8 pixels; 0: does not", at_least=0, at_most=1_024
    )
    grey: bool = images(False, "converts every image in an observation to greyscale")
    frame_stack: int = images(
        1, "consecutive frames that are stacked into one image observation", at_least=1, at_most=64
    )
    random_shift: int = images(
        0, "shifts every sampled image by a random number of pixels each way, up to this many", at_least=0, at_most=64
    )
    encoder_channels: tuple[int, ...] = images(
        (16, 32, 32), "output channels of each convolution of the image encoder", at_least=1, at_most=4_096
    )
    encoder_features: int = images(50, "features that the image encoder outputs", at_least=1, at_most=65_536)

    update_schedule: str = schedule(
        "step",
        "`step`: updates after every step; `episode`: after every episode, for as many steps as it had",
        source="episode: " + PAPER,
        choices=("step", "episode"),
    )
    updates_per_step: float = schedule(
        1.0, "updates per transition, with any number of environments", source=PAPER, above=0, at_most=1_000
    )
    update_after: int = schedule(
        None, "transitions before the first update (default: as warmup_steps)", at_least=0, at_most=MOST
    )

    num_envs: int = parallel(1, "environments that fill one replay memory", at_least=1, at_most=100_000)
    workers: int = parallel(0, "processes that step them; 0 steps them in this process", at_least=0, at_most=10_000)
    worker_timeout: float = parallel(
        30.0, "seconds for one step or reset, after which a worker counts as hung", above=0, at_most=10**6
    )
    restart_failed: int = parallel(
        0, "failed environments that are made anew, in the whole run; one more ends it", at_least=0, at_most=10**6
    )

    eval_every: int = evaluation(
        5_000, "steps between evaluations, without noise; 0 never evaluates", at_least=0, at_most=MOST
    )
    eval_episodes: int = evaluation(10, "episodes per evaluation", source=PAPER, at_least=1, at_most=10**6)

    stop_at: float | None = stopping(
        None, "stops after an evaluation with at least this mean return (default: none, which never does)"
    )
    stop_after: int = stopping(
        0, "stops after this many evaluations in a row without a new best; 0 never does", at_least=0, at_most=MOST
    )
    stop_when_sick: bool = stopping(False, "stops when a finding says that the run cannot recover")

    checkpoint_every: int = run_folder(
        5_000, "steps between checkpoints; 0 saves only at a new best and at the end", at_least=0, at_most=MOST
    )
    keep_last: int = run_folder(2, "newest checkpoints that are kept", at_least=1, at_most=10**6)
    keep_best: int = run_folder(
        1, "checkpoints with the best evaluations that are kept as well", at_least=0, at_most=10**6
    )
    log_every: int = run_folder(250, "steps between rows of training metrics", at_least=1, at_most=MOST)
    record_updates: bool = run_folder(
        True, "records an update now and then for the web page, in at most a hundredth of the time"
    )
    diagnose: bool = run_folder(
        True, "measures the run's health now and then, and says when it sees why the agent cannot learn"
    )
    film: bool = run_folder(
        True, "films an evaluation episode now and then for the web page, if the environment can render"
    )

    engine: str = machine(
        "auto",
        "what computes the update: `torch`, the reference; `native`, the same in C++; `auto`, native if it can",
        choices=("auto", "native", "torch"),
    )
    device: str = machine("cpu", "device of the networks", choices=("cpu", "cuda"))
    compile: bool = machine(
        False, "compiles the torch engine's networks with torch.compile; meant for GPUs, and not measured there"
    )
    threads: int = machine(
        0, "CPU threads for updates; 0 takes up to 4, leaving a core for torch and `workers`", at_least=0, at_most=1_024
    )

    def __new__(cls, *_: Any, **settings: Any) -> Self:
        """Refuses names that are no settings, before Python would with a TypeError."""
        for name in settings:
            check_name(name)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        given = {
            name: checked(name, value)
            for name, known in SETTINGS.items()
            if (value := getattr(self, name)) is not UNSET and not (value is None and known.default is None)
        }
        env, own_args = unfolded(given.get("env", SETTINGS["env"].default))
        if env is not given.get("env", env):
            given.update(env=env, env_args={**own_args, **given.get("env_args", {})})
        for name, value in completed(given, {name: known.default for name, known in SETTINGS.items()}).items():
            object.__setattr__(self, name, checked(name, value))
        self._check_together()

    def _check_together(self) -> None:
        for name in ("pixels", "resize"):
            if 0 < getattr(self, name) < SMALLEST_IMAGE:
                raise ConfigError(f"{name} must be 0, or at least {SMALLEST_IMAGE}; got {getattr(self, name)}.")
        if self.stop_when_sick and not self.diagnose:
            raise ConfigError("stop_when_sick must be off where diagnose is: nothing would be found; got True.")
        for name in GROUPS["TD7"] if self.algorithm == "td3" else ():
            if getattr(self, name) != SETTINGS[name].default:
                raise ConfigError(f"{name} needs algorithm td7, which has it; got {getattr(self, name)!r} with td3.")
        if self.policy_checkpoints and (self.num_envs > 1 or self.update_schedule != "episode"):
            raise ConfigError(
                "policy_checkpoints needs num_envs 1 and update_schedule episode, so that one policy plays each "
                f"episode; got {self.num_envs} and {self.update_schedule!r}."
            )
        if not self.encoder_channels:
            raise ConfigError("encoder_channels must name at least one convolution; got none.")
        if self.workers > self.num_envs:
            raise ConfigError(f"workers must be at most num_envs, which is {self.num_envs}; got {self.workers}.")
        for name in ("stop_at", "stop_after"):
            if not self.eval_every and getattr(self, name) != SETTINGS[name].default:
                raise ConfigError(
                    f"{name} needs evaluations, and eval_every is 0: set eval_every; got {getattr(self, name):g}."
                )

    @property
    def actor_layers(self) -> tuple[int, ...]:
        """Units of each hidden layer of the actor."""
        return self.hidden if self.actor_hidden is None else self.actor_hidden

    @property
    def critic_layers(self) -> tuple[int, ...]:
        """Units of each hidden layer of each critic."""
        return self.hidden if self.critic_hidden is None else self.critic_hidden

    def to_data(self) -> dict[str, Any]:
        """Returns plain data for `config.json`; an environment made by Python code is kept by name only."""
        data = {field.name: getattr(self, field.name) for field in fields(self)}
        data = {name: list(value) if isinstance(value, tuple) else value for name, value in data.items()}
        return {**data, "env": env_name(self.env)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], **changes: Any) -> "Config":
        """Makes a config from plain data, each name and value checked like one typed by hand."""
        return cls(**{**data, **changes})

    @classmethod
    def load(cls, path: str | Path, **changes: Any) -> "Config":
        """Makes a config from a TOML file, in which each key is a setting; `changes` win over the file.

        >>> config = td3.Config.load("cheetah.toml", seed=1)
        """
        settings = settings_in(path)
        return in_file(path, lambda: cls(**{**settings, **changes}))


SETTINGS: dict[str, Setting] = settings_of(Config)
GROUPS: dict[str, tuple[str, ...]] = {  # in the order of the fields
    group: tuple(name for name, known in SETTINGS.items() if known.group == group)
    for group in dict.fromkeys(known.group for known in SETTINGS.values())
}
explain_class(Config, SETTINGS, GROUPS)


def check_name(name: str) -> str:
    """Returns the name of a setting; any other is refused, with the right one where that is known."""
    if name not in SETTINGS:
        there = instead_of(name)
        raise ConfigError(f"{name} is not a setting{f': {there}.' if there else f'.{did_you_mean(name, SETTINGS)}'}")
    return name


def checked(name: str, value: Any) -> Any:
    """Returns the value of a setting in its own type, or refuses it by field, value and range."""
    return SETTINGS[name].check(value)


def checked_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns settings by their names, each checked; `none` as in a flag, for TOML has no such value."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        none = SETTINGS[check_name(name)].default is None and value in ("none", "None")
        found[name] = None if none else checked(name, value)
    return found


def settings_in(path: str | Path) -> dict[str, Any]:
    """Reads the settings that a TOML file gives, checked; each refusal begins with the file's name."""
    data = read_toml(path)
    check_no_study(path, data)
    return in_file(path, lambda: checked_settings(data))
