"""Settings: presets, tasks, precedence, and refusals that name field, value and range."""

import inspect
import pydoc
import re
from dataclasses import fields, replace
from decimal import Decimal
from fractions import Fraction

import gymnasium
import numpy as np
import pytest
import torch

from td3 import TD3, synonyms
from td3.config import GROUPS, SETTINGS, Config
from td3.config.presets import OF_PRESETS, PRESETS, TASKS
from td3.config.values import in_words
from td3.errors import ConfigError
from td3.loop import advance
from td3.session import Session
from td3.views import cli, flags
from td3.wording import letters


def test_the_defaults_are_the_authors_and_the_paper_preset_is_the_papers():
    author, paper = Config(env="HalfCheetah-v5"), Config(env="HalfCheetah-v5", preset="paper")
    assert (author.hidden, author.actor_lr, author.critic_lr, author.batch_size) == ((256, 256), 3e-4, 3e-4, 256)
    assert (author.warmup_steps, author.update_schedule, author.update_after) == (25_000, "step", 25_000)
    assert (paper.hidden, paper.actor_lr, paper.critic_lr, paper.batch_size) == ((400, 300), 1e-3, 1e-3, 100)
    assert (paper.warmup_steps, paper.update_schedule, paper.update_after) == (10_000, "episode", 0)
    for config in (author, paper):
        assert (config.gamma, config.tau, config.policy_delay) == (0.99, 0.005, 2)
        assert (config.target_noise, config.noise_clip, config.exploration_noise) == (0.2, 0.5, 0.1)
        assert (config.buffer_size, config.eval_every, config.eval_episodes) == (1_000_000, 5_000, 10)


def test_a_task_goes_before_the_preset_and_the_user_before_both():
    assert Config(env="Swimmer-v5").gamma == Config(env="Swimmer-v4", preset="paper").gamma == 0.9999
    assert Config(env="Swimmer-v5", gamma=0.99).gamma == 0.99
    for env in ("InvertedPendulum-v5", "InvertedDoublePendulum-v4", "Reacher-v5", "Pendulum-v1"):
        assert Config(env=env).warmup_steps == Config(env=env, preset="paper").warmup_steps == 1_000
    assert Config(env="Reacher-v5").update_after == 1_000
    assert Config(env="Hopper-v5").warmup_steps == 25_000
    assert Config(env="Hopper-v5", preset="paper").warmup_steps == 1_000  # as the code of 2018 has it
    assert Config(env="my_module:Swimmer-v5").gamma == 0.99  # somebody else's Swimmer
    assert Config(env="Swimmer") == replace(Config(env="Swimmer-v5"), env="Swimmer")  # the latest version


def test_every_preset_and_task_setting_is_a_valid_setting():
    of_presets = [values for tasks in OF_PRESETS.values() for values in tasks.values()]
    for values in (*PRESETS.values(), *TASKS.values(), *of_presets):
        assert set(values) <= set(SETTINGS)
        Config(**values)


def test_every_setting_has_a_meaning_and_a_default_it_admits():
    for name, known in SETTINGS.items():
        assert len(known.meaning) > 10, name
        if known.default is not None:
            assert getattr(Config(env="X-v0", **{name: known.default} if name != "env" else {}), name) is not None


def names_in_order(problem, *parts):
    """Whether a refusal is one line that begins with the first of these and names the others after it."""
    text, place = str(problem), 0
    assert text.startswith(parts[0]) and "\n" not in text, text
    for part in parts:
        place = text.find(part, place)
        assert place >= 0, (part, text)
        place += len(part)
    return True


BAD = [
    ("gamma", 1.5),
    ("gamma", float("nan")),
    ("gamma", "high"),
    ("gamma", True),
    ("tau", 0),
    ("steps", 0),
    ("steps", 10.5),
    ("steps", True),
    ("steps", "1000"),
    ("steps", 10**19),
    ("seed", -1),
    ("seed", 2**63),
    ("buffer_size", 10**19),
    ("hidden", (256, 0)),
    ("hidden", (99999999999999999999,)),
    ("hidden", 256),
    ("preset", "papers"),
    ("env", 7),
    ("env", ""),
    ("film", 1),
    ("worker_timeout", float("inf")),
    ("worker_timeout", 1e9),
    ("log_every", 2**63),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_bad_value_is_refused_with_field_value_and_range(name, value):
    with pytest.raises(ConfigError) as refusal:
        Config(**{name: value})
    assert names_in_order(refusal.value, name, SETTINGS[name].range_words, repr(value))
    assert isinstance(refusal.value, ValueError)


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("device", "gpu", "cuda"),
        ("device", "cuda:0", "cuda"),
        ("engine", "C++", "native"),
        ("engine", "pytorch", "torch"),
        ("engine", "natve", "native"),
        ("preset", "papers", "paper"),
        ("preset", "default", "author"),
        ("update_schedule", "episodes", "episode"),
    ],
)
def test_a_near_or_foreign_value_gets_the_right_one(name, value, meant):
    with pytest.raises(ConfigError) as refusal:
        Config(**{name: value})
    assert names_in_order(refusal.value, name, repr(value), meant)


NASTY = [
    None, True, False, 0, -1, 1, 7, 10**19, -(10**19), 2**63, 2**64, 10**400, 10**5000, 0.0, -0.0, 0.5, 1e6, 1e18,
    1e300, 1e308, 5e-324, float("nan"), float("inf"), -float("inf"), "", " ", "1", "٣", "0x10", "1e400", "nan",
    "a" * 5_000, b"1", (), [], {}, set(), (1,), [1, 2], (0,), (-1,), (10**20,), (10**5000,), (1.5,), ("a",), (True,),
    (None,), ((1,),), [1] * 65, {"a": 1}, {1, 2}, 1j, object(), int, len, np.int64(5), np.uint64(2**63),
    np.float32(0.5), np.float64("nan"), np.bool_(True), np.str_("paper"), np.float32, np.array(5), np.array([8, 9]),
    np.array([]), np.ones((2, 2)), torch.tensor(5), torch.tensor(0.5), torch.tensor([8, 9]), torch.empty(2,
    device="meta"), Decimal("0.5"), Fraction(1, 2), range(3), iter([1]), Ellipsis, Decimal("NaN"), "author", "auto",
    "cpu", "step", "uniform", "td3", "q1",
]  # fmt: skip


NEEDED = {name: {"algorithm": "td7"} for name in GROUPS["TD7"]}  # what else must be given


@pytest.mark.parametrize("name", SETTINGS)
def test_whatever_is_given_for_a_setting_is_taken_or_refused_in_one_line(name):
    taken = 0
    for value in NASTY:
        config = outcome(lambda value=value: Config(**{"env": "X-v0", **NEEDED.get(name, {}), name: value}))
        if isinstance(config, Config):
            taken += 1
            assert Config.from_data({**config.to_data(), "env": config.env}) == config
        else:
            assert "\n" not in config and len(config) < 500 and config.startswith(name)
    assert taken > 0


def outcome(make):
    """The config, or the words it is refused with; any other exception is a failure."""
    try:
        return make()
    except ConfigError as refusal:
        return str(refusal)


@pytest.fixture(scope="module")
def parser():
    return cli.make_parser()[0]


WORDS = [
    "", " ", "0", "-1", "1", "5", "10000000000000000000", "9" * 5_000, "-" + "9" * 5_000, "1e3", "1e400", "-1e400",
    "1e-400", "nan", "inf", "-inf", "NaN", "0x10", "0b1", "1_000", "_1", "1_", "1__0", "1,2", "1,", ",", "1,,2",
    "[1,2]", "(1,2)", "1 2", "٣", "１２", "½", "1.5", ".5", "5.", "1e", "+5", "--5", "true", "None", "\x00", "\n", "🎲",
    "1" + "0" * 400, "1,2" * 3_000, "author", "auto", "cpu", "step", "uniform", "td3", "q1",
]  # fmt: skip


@pytest.mark.parametrize("name", [name for name in SETTINGS if not isinstance(SETTINGS[name].default, bool)])
def test_whatever_is_typed_for_a_flag_is_taken_or_refused_in_one_line(name, parser):
    taken = 0
    for text in WORDS:
        words = ["--", text] if name == "env" else [f"{flags.flag(name)}={text}"]
        given = [f"--{key}={value}" for key, value in NEEDED.get(name, {}).items()]
        config = outcome(lambda words=(*given, *words): Config(**flags.all_given(parser.parse_args(["train", *words]))))
        taken += isinstance(config, Config)
        assert isinstance(config, Config) or (
            "\n" not in config and len(config) < 500 and config.startswith((name, "--env-arg"))
        )
    assert taken > 0 or name == "env_args"  # none of these is NAME=VALUE


def test_the_largest_counts_that_are_taken_do_not_overflow_later():
    large = {
        name: int(known.at_most)
        for name, known in SETTINGS.items()
        if isinstance(known.default, int) and not isinstance(known.default, bool) and known.group != "TD7"
        if name.endswith(("steps", "_every", "seed", "_delay", "keep_last", "keep_best"))
    }
    assert len(large) == 9
    config = Config(
        **{**large, "env": "Pendulum-v1", "hidden": (4,), "buffer_size": 8, "update_after": 8, "film": False}
    )
    session = Session(config)
    for event in advance(session, 12):
        assert event.step <= 12
    session.close()
    with pytest.raises(ConfigError, match="buffer_size"):
        Session(replace(config, buffer_size=SETTINGS["buffer_size"].at_most))
    with pytest.raises(ConfigError, match="hidden"):
        Session(replace(config, hidden=(65_536,) * 64))


def test_an_environment_itself_is_refused_with_what_to_pass():
    env = gymnasium.make("Pendulum-v1")
    with pytest.raises(ConfigError) as refusal:
        Config(env=env)
    assert names_in_order(refusal.value, "env", "callable", type(env).__name__)
    env.close()


FOREIGN = [
    ("lr", "actor_lr critic_lr"),
    ("learning_rate", "actor_lr critic_lr"),
    ("learningRate", "actor_lr critic_lr"),
    ("pi_lr", "actor_lr"),
    ("q_lr", "critic_lr"),
    ("discount", "gamma"),
    ("polyak", "tau polyak"),
    ("policy_freq", "policy_delay"),
    ("policy_frequency", "policy_delay"),
    ("policy_noise", "target_noise"),
    ("target_policy_noise", "target_noise"),
    ("target_noise_clip", "noise_clip"),
    ("action_noise", "exploration_noise --noise"),
    ("expl_noise", "exploration_noise"),
    ("start_timesteps", "warmup_steps"),
    ("learning_starts", "warmup_steps"),
    ("total_timesteps", "steps"),
    ("n_steps", "n_step steps"),
    ("replay_size", "buffer_size"),
    ("hidden_sizes", "hidden"),
    ("policy_kwargs", "hidden actor_hidden critic_hidden"),
    ("net_arch", "hidden actor_hidden critic_hidden"),
    ("pi", "actor_hidden"),
    ("qf", "critic_hidden"),
    ("actor_hidden_sizes", "actor_hidden"),
    ("policy", "hidden --learner"),
    ("replay_buffer_class", "buffer_size --sampler"),
    ("n_envs", "num_envs"),
    ("env_id", "env"),
    ("eval_freq", "eval_every"),
    ("save_freq", "checkpoint_every"),
    ("gradient_steps", "updates_per_step"),
    ("train_freq", "updates_per_step update_schedule"),
    ("cuda", "device"),
    ("verbose", "--quiet"),
    ("tensorboard_log", "metrics.jsonl watch"),
    ("max_action", "environment"),
    ("batch_sise", "batch_size"),
    ("Gamma", "gamma"),
]


@pytest.mark.parametrize(("name", "ours"), FOREIGN)
def test_a_name_of_another_library_is_refused_with_the_right_setting(name, ours):
    config = Config()
    ways = (
        lambda: Config(**{name: 1}),
        lambda: replace(config, **{name: 1}),
        lambda: Config.from_data({**config.to_data(), name: 1}),
        lambda: TD3("Pendulum-v1", **{name: 1}),
    )
    for way in ways:
        with pytest.raises(ConfigError) as refusal:
            way()
        text = str(refusal.value)
        assert names_in_order(text, name)
        for word in ours.split():
            assert re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text.removeprefix(name)), text


@pytest.mark.parametrize("name", ["frobnicate", "xyz", "zzz_size", "q"])
def test_a_name_that_means_nothing_gets_no_suggestion(name):
    with pytest.raises(ConfigError) as refusal:
        Config(**{name: 1})
    text = str(refusal.value)
    assert names_in_order(text, name) and "?" not in text and ":" not in text


def test_every_synonym_stands_once_and_leads_to_settings_that_there_are():
    table = synonyms._SETTINGS
    names = [letters(name) for names in table.values() for name in names.split()]
    assert len(names) == len(set(names)) > 300
    assert not set(names) & set(map(letters, SETTINGS))
    for meaning in table:
        assert set(re.findall(r"{(\w+)}", meaning)) <= set(SETTINGS), meaning
    for library, names in synonyms.LIBRARIES.items():
        for name in names.split():
            assert (name in SETTINGS) != bool(synonyms.instead_of(name)), (library, name)
    for setting, values in synonyms.VALUES.items():
        assert set(values) <= set(SETTINGS[setting].choices)


def test_the_ways_of_stable_baselines3_are_answered_in_our_words():
    with pytest.raises(ConfigError) as refusal:
        TD3("MlpPolicy", "Pendulum-v1", verbose=1)
    assert names_in_order(refusal.value, "TD3", "TD3('Pendulum-v1', seed=0)", "'MlpPolicy', 'Pendulum-v1'")
    agent = TD3("Pendulum-v1")
    with pytest.raises(ConfigError) as refusal:
        agent.learn(total_timesteps=1_000)
    assert names_in_order(refusal.value, "total_timesteps", "learn", "steps")
    with pytest.raises(ConfigError) as refusal:
        agent.learn()
    assert names_in_order(refusal.value, "steps", "None")


def test_every_setting_is_in_one_group_and_groups_keep_the_order_of_the_fields():
    assert [name for names in GROUPS.values() for name in names] == [field.name for field in fields(Config)]
    assert len(GROUPS) == 13 and all(0 < len(names) <= 9 for names in GROUPS.values())
    assert GROUPS["Networks"] == ("hidden", "actor_hidden", "critic_hidden", "normalize_observations")


def test_actor_and_critics_have_the_hidden_layers_of_all_networks_or_their_own():
    both = Config(env="X-v0", hidden=(8, 9))
    assert both.actor_layers == both.critic_layers == (8, 9) and both.actor_hidden is both.critic_hidden is None
    own = replace(both, actor_hidden=[4], critic_hidden=())
    assert (own.actor_layers, own.critic_layers, own.hidden) == ((4,), (), (8, 9))
    assert replace(both, hidden=(5,)).actor_layers == (5,)
    assert Config(preset="paper", env="X-v0", critic_hidden=(7,)).actor_layers == (400, 300)
    assert Config.from_data(own.to_data()) == own and own.to_data()["actor_hidden"] == [4]


def test_a_config_written_before_a_setting_existed_is_read_with_its_default():
    config = Config(env="X-v0", hidden=(8, 9))
    before = {name: value for name, value in config.to_data().items() if name not in ("actor_hidden", "critic_hidden")}
    assert Config.from_data(before) == config


def test_help_shows_meaning_range_default_and_source_of_every_setting_under_its_group():
    text = pydoc.plain(pydoc.render_doc(Config))
    words = " ".join(text.replace(" |", "").split())
    for group, names in GROUPS.items():
        section = words.split(f" {group} {'-' * len(group)} ")[1].split(" ---")[0]
        assert all(f" {name}: " in f" {section}" for name in names)
    assert max(map(len, text.splitlines())) <= 110 and "<" not in text.split("Methods defined here")[0]
    for name, known in SETTINGS.items():
        assert f" {name}: " in words and " ".join(known.meaning.split()) in words, name
        assert known.allowed in words and known.source in words
        assert known.default in (None, {}) or f"default {in_words(known.default)}" in words
    shown = inspect.signature(Config).parameters
    assert {name: one.default for name, one in shown.items()} == {name: one.default for name, one in SETTINGS.items()}
    assert Config(**{name: one.default for name, one in shown.items()}) == Config(
        **{name: known.default for name, known in SETTINGS.items() if known.default is not None}
    )


def test_more_workers_than_environments_are_refused():
    with pytest.raises(ConfigError) as refusal:
        Config(num_envs=2, workers=3)
    assert names_in_order(refusal.value, "workers", "num_envs", "2", "3")


def test_plain_data_brings_back_the_same_config():
    config = Config(env="Swimmer-v5", preset="paper", hidden=(8,), seed=3)
    assert Config.from_data(config.to_data()) == config
    with pytest.raises(ConfigError) as refusal:
        Config.from_data({"gama": 0.9})
    assert names_in_order(refusal.value, "gama", "gamma")


def test_numpy_numbers_lists_and_underscores_are_understood():
    assert Config(steps=np.int64(5), gamma=np.float32(0.5), hidden=[8, 9]).hidden == (8, 9)
    assert SETTINGS["steps"].parse("1_000") == 1_000 and SETTINGS["hidden"].parse("400,300") == (400, 300)
    assert SETTINGS["gamma"].parse("1e-1") == 0.1 and SETTINGS["worker_timeout"].parse("1_000.5") == 1_000.5
    assert Config(steps=1e6).steps == 1_000_000 and isinstance(Config(steps=np.float64(1e6)).steps, int)
    assert Config(hidden=torch.tensor([8, 9]), seed=torch.tensor(5)).seed == 5


def test_a_config_is_frozen_and_can_be_replaced():
    config = Config(env="HalfCheetah-v5")
    with pytest.raises(AttributeError):
        config.gamma = 0.5
    assert replace(config, seed=4).seed == 4 and len(fields(config)) == len(SETTINGS)
