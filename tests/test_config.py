"""Settings: presets, tasks, precedence, and refusals that name field, value and range."""

from dataclasses import fields, replace

import numpy as np
import pytest

from td3.config import OF_PRESETS, PRESETS, SETTINGS, TASKS, Config, parse
from td3.errors import ConfigError


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


def test_every_preset_and_task_setting_is_a_valid_setting():
    of_presets = [values for tasks in OF_PRESETS.values() for values in tasks.values()]
    for values in (*PRESETS.values(), *TASKS.values(), *of_presets):
        assert set(values) <= set(SETTINGS)
        Config(**values)


def test_every_setting_has_a_meaning_and_a_default_it_admits():
    for name, known in SETTINGS.items():
        assert len(known.meaning) > 10, name
        if name != "update_after":
            assert getattr(Config(env="X-v0", **{name: known.default} if name != "env" else {}), name) is not None


BAD = [
    ("gamma", 1.5, "gamma must be a number, at least 0, at most 1; got 1.5."),
    ("gamma", float("nan"), "gamma must be a number, at least 0, at most 1; got nan."),
    ("gamma", "high", "gamma must be a number, at least 0, at most 1; got 'high'."),
    ("tau", 0, "tau must be a number, above 0, at most 1; got 0."),
    ("steps", 0, "steps must be a whole number, at least 1; got 0."),
    ("steps", 10.5, "steps must be a whole number, at least 1; got 10.5."),
    ("steps", True, "steps must be a whole number, at least 1; got True."),
    ("seed", -1, "seed must be a whole number, at least 0, at most 9,223,372,036,854,775,807; got -1."),
    (
        "hidden",
        (256, 0),
        "hidden must be whole numbers such as 256,256, each at least 1, at most 65,536; got (256, 0).",
    ),
    ("preset", "papers", "preset must be one of author, paper, pixels; got 'papers'. Did you mean paper?"),
    ("device", "gpu", "device must be one of cpu, cuda; got 'gpu'. Did you mean cpu?"),
    ("env", 7, "env must be a Gymnasium id or a callable that makes an environment; got 7."),
    ("env", "", "env must be a Gymnasium id or a callable that makes an environment; got ''."),
    ("worker_timeout", float("inf"), "worker_timeout must be a number, above 0; got inf."),
]


@pytest.mark.parametrize(("name", "value", "sentence"), BAD)
def test_a_bad_value_is_refused_with_field_value_and_range(name, value, sentence):
    with pytest.raises(ConfigError) as refusal:
        Config(**{name: value})
    assert str(refusal.value) == sentence
    assert isinstance(refusal.value, ValueError)


def test_more_workers_than_environments_are_refused():
    with pytest.raises(ConfigError, match="workers must be at most num_envs, which is 2; got 3"):
        Config(num_envs=2, workers=3)


def test_plain_data_brings_back_the_same_config():
    config = Config(env="Swimmer-v5", preset="paper", hidden=(8,), seed=3)
    assert Config.from_data(config.to_data()) == config
    with pytest.raises(ConfigError, match=r"gama is not a setting\. Did you mean gamma\?"):
        Config.from_data({"gama": 0.9})


def test_numpy_numbers_lists_and_underscores_are_understood():
    assert Config(steps=np.int64(5), gamma=np.float32(0.5), hidden=[8, 9]).hidden == (8, 9)
    assert parse("steps", "1_000") == 1_000 and parse("hidden", "400,300") == (400, 300)
    assert parse("gamma", "1e-1") == 0.1


def test_a_config_is_frozen_and_can_be_replaced():
    config = Config(env="HalfCheetah-v5")
    with pytest.raises(AttributeError):
        config.gamma = 0.5
    assert replace(config, seed=4).seed == 4 and len(fields(config)) == len(SETTINGS)
