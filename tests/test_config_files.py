"""Settings from a TOML file: `td3 train --config FILE`, `td3 check --config FILE` and `td3.Config.load`."""

import json

import pytest
from refusals import check_names, refusal
from runs import SMALL

from td3.config import Config
from td3.errors import ConfigError
from td3.views import cli, flags


def toml(path, text):
    path.write_text(text)
    return path


def test_a_file_gives_settings_and_arguments_win_over_it(tmp_path):
    file = toml(tmp_path / "a.toml", 'env = "Hopper-v5"\nhidden = [32, 16]\nsteps = 1e3\nstop_at = "none"\ngamma = 1\n')
    assert Config.load(file) == Config(env="Hopper-v5", hidden=(32, 16), steps=1_000, gamma=1.0)
    assert Config.load(file, gamma=0.5, seed=3) == Config(
        env="Hopper-v5", hidden=(32, 16), steps=1_000, gamma=0.5, seed=3
    )


def test_flags_win_over_the_file_and_arguments_of_the_environment_one_by_one(tmp_path):
    file = toml(tmp_path / "a.toml", 'env = "Pendulum-v1"\nbatch_size = 64\ntau = 0.1\nenv_args = {g = 9.8, x = 1}\n')
    parser, _ = cli.make_parser()
    chosen = parser.parse_args(["train", "--config", str(file), "--tau", "0.2", "--env-arg", "g=1.5"])
    given = {"env": "Pendulum-v1", "batch_size": 64, "tau": 0.2, "env_args": {"g": 1.5, "x": 1}}
    assert flags.all_given(chosen) == given


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("lr = 0.1", "lr", "actor_lr"),
        ("hiden = [8]", "hiden", "hidden"),
        ("gamma = 2", "gamma", 2),
        ('steps = "many"', "steps", "many"),
        ("steps = true", "steps", True),
        ("steps = 1.5", "steps", 1.5),
        ("hidden = [8, 0]", "hidden", [8, 0]),
        ("env = 3", "env", 3),
        ("[learning]\ngamma = 0.9", "learning", "setting"),
    ],
)
def test_a_bad_value_is_refused_with_the_files_name(text, field, value, tmp_path):
    file = toml(tmp_path / "a.toml", text)
    with refusal(ConfigError, field, value, str(file)):
        Config.load(file)


@pytest.mark.parametrize("data", [b"steps", b"steps = 1\nsteps = 2", b"\xff", b"#" * 2**21, b"x = " + b"9" * 5_000])
def test_what_is_no_toml_is_refused_with_the_files_name(data, tmp_path):
    (tmp_path / "a.toml").write_bytes(data)
    with refusal(ConfigError, None, str(tmp_path / "a.toml"), "TOML"):
        Config.load(tmp_path / "a.toml")


@pytest.mark.parametrize("name", ["missing.toml", "."])
def test_a_file_that_cannot_be_read_is_refused(name, tmp_path):
    with refusal(ConfigError, None, str(tmp_path / name)):
        Config.load(tmp_path / name)


def test_settings_that_do_not_fit_together_are_refused_with_the_files_name(tmp_path):
    file = toml(tmp_path / "a.toml", "workers = 3")
    with refusal(ConfigError, "workers", 3, str(file)):
        Config.load(file)


def test_the_file_of_a_study_is_refused_with_the_command_for_it(tmp_path, capsys):
    file = toml(tmp_path / "a.toml", "seeds = 3")
    assert cli.main(["train", "--config", str(file)]) == 2
    check_names(capsys.readouterr().err, "seeds", str(file), f"td3 study {file}")


def test_a_run_of_a_file_is_the_run_of_the_same_flags(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{name} = {json.dumps(value)}" for name, value in SMALL.items()]
    toml(tmp_path / "a.toml", "\n".join(lines))
    assert cli.main(["train", "--config", "a.toml", "--run", "run", "--steps", "60", "--quiet"]) == 0
    assert Config.from_data(json.loads((tmp_path / "run/config.json").read_text())) == Config(**{**SMALL, "steps": 60})
    assert cli.main(["train", "--config", "a.toml", "--run", "run", "--resume", "--quiet"]) == 0
    assert json.loads((tmp_path / "run/metrics.jsonl").read_text().splitlines()[-1])["step"] == 120


def test_check_takes_the_environment_from_the_file_and_needs_one(tmp_path, capsys):
    file = toml(tmp_path / "a.toml", 'env = "Pendulum-v1"')
    assert cli.main(["check", "--config", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["env"] == "Pendulum-v1"
    assert cli.main(["check"]) == 2
    assert "ENV" in capsys.readouterr().err
