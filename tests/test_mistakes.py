"""Command lines as newcomers mistype them: each gets one line that names the word, and exit code 2."""

import re
import shlex
import sys

import pytest

from td3 import synonyms
from td3.config.words import flag
from td3.views import cli
from td3.views.commands import selftest
from td3.views.mistakes import no_flag

LONG = "9" * 5_000
MISTAKES = [  # the words after td3, and what the answer must name
    # commands
    ("trian", "'trian' | train?"),
    ("Train", "'Train' | train?"),
    ("eval runs", "'eval' | use evaluate."),
    ("test runs", "'test' | use evaluate."),
    ("play runs", "'play' | use video, or watch."),
    ("enjoy runs", "'enjoy' | use video, or watch."),
    ("run Pendulum-v1", "'run' | use train."),
    ("learn Pendulum-v1", "'learn' | use train."),
    ("continue runs", "'continue' | use resume."),
    ("benchmark", "'benchmark' | use bench."),
    ("tensorboard --logdir runs", "'tensorboard' | use watch."),
    ("help", "'help' | --help"),
    ("version", "'version' | --version"),
    ("Pendulum-v1", "'Pendulum-v1' | td3 train Pendulum-v1"),
    ("HalfCheetah-v5 train", "'HalfCheetah-v5' | td3 train HalfCheetah-v5"),
    ("my_robot:Robot --steps 5", "'my_robot:Robot' | td3 train my_robot:Robot"),
    ("''", "''"),
    ("convert runs", "'convert' | use export."),
    ("frobnicate", "'frobnicate' | train | bench"),
    ("train evaluate", "'evaluate'"),
    # flags before, without or of another command
    ("--steps 1000", "--steps | td3 train --steps"),
    ("--json train", "--json | td3 train --json"),
    ("--lr 3e-4", "--lr | --actor-lr | --critic-lr"),
    ("--verison", "--verison"),
    ("-x", "-x"),
    ("evaluate empty --gamma 0.9", "--gamma | td3 train"),
    ("resume empty --hidden 8", "--hidden | --actor-lr | --stop-at"),
    ("resume empty --lr 1e-3", "--lr | --actor-lr"),
    ("evaluate empty --eval-episodes 3", "--eval-episodes | --episodes"),
    ("evaluate empty --n-eval-episodes 3", "--n-eval-episodes | --episodes"),
    ("evaluate --run empty", "--run | RUN"),
    ("resume --run empty", "--run | RUN"),
    ("watch --run empty", "--run | RUNS"),
    ("evaluate --gamma", "--gamma | td3 train"),
    ("train --env Pendulum-v1", "--env | ENV"),
    ("train --env-id Pendulum-v1", "--env-id | ENV"),
    ("train --env_name=Pendulum-v1", "--env_name | ENV"),
    ("evaluate empty --env-id Pendulum-v1", "--env-id | --env"),
    ("train --checkpoint best", "--checkpoint | --checkpoint-every"),
    ("train --episodes 10", "--episodes | --steps | --eval-episodes"),
    ("verify empty --checkpoint best", "--checkpoint | td3 evaluate"),
    ("export empty", "FILE"),
    ("export empty policy.pt", "file | 'policy.pt' | .onnx"),
    ("export empty policy.c", "'empty'"),
    # misspelt and foreign flags
    ("train --setps 3", "--setps | --steps"),
    ("train -steps 3", "-steps | --steps"),
    ("train --batch_size 64", "--batch_size | --batch-size"),
    ("train --Gamma 0.9", "--Gamma | --gamma"),
    ("train --step 3", "--step | --steps"),
    ("train --learning-rate 3e-4", "--learning-rate | --actor-lr | --critic-lr"),
    ("train --lr=3e-4", "--lr | --actor-lr | --critic-lr"),
    ("train --discount 0.99", "--discount | --gamma"),
    ("train --total-timesteps 1e6", "--total-timesteps | --steps"),
    ("train --policy-freq 2", "--policy-freq | --policy-delay"),
    ("train --polyak 0.995", "--polyak | --tau | 1 - polyak"),
    ("train --expl_noise 0.1", "--expl_noise | --exploration-noise"),
    ("train --start-timesteps 100", "--start-timesteps | --warmup-steps"),
    ("train --hid 256 --l 2", "--hid | --hidden"),
    ("train --cuda", "--cuda | --device"),
    ("train --track", "--track | metrics.jsonl | td3 watch"),
    ("train --capture-video", "--capture-video | --film"),
    ("train --verbose", "--verbose | --quiet"),
    ("train --policy MlpPolicy", "--policy | --hidden"),
    ("train --log-dir logs", "--log-dir | --run"),
    ("train --load-model runs", "--load-model | td3 resume"),
    ("train --json --frobnicate", "--frobnicate"),
    # missing, empty and superfluous values
    ("train --steps", "--steps"),
    ("train --steps --seed 3", "--steps"),
    ("train --steps=", "steps | ''"),
    ("train --steps ''", "steps | ''"),
    ("train --run ''", "--run | ''"),
    ("train ''", "env | ''"),
    ("train Pendulum-v1 HalfCheetah-v5", "'HalfCheetah-v5'"),
    ("train --hidden 256 256", "--hidden | 256,256"),
    ("train Pendulum-v1 --hidden 400 300", "--hidden | 400,300"),
    ("train --film false", "--film | --no-film | 'false'"),
    ("train --film=False", "--film | --no-film | 'False'"),
    ("train --quiet 1", "--quiet | '1'"),
    ("selftest now", "'now'"),
    ("check", "ENV"),
    ("evaluate", "RUN"),
    ("resume", "RUN"),
    # numbers
    ("train --steps many", "steps | 'many'"),
    ("train --steps 0", "steps | 0"),
    ("train --steps -5", "steps | -5"),
    ("train --steps 1.5", "steps | '1.5'"),
    ("train --steps 1,000", "steps | '1,000'"),
    ("train --steps 10k", "steps | '10k'"),
    ("train --steps 0x10", "steps | '0x10'"),
    ("train --steps ' 5'", "steps | ' 5'"),
    ("train --steps 1e400", "steps | '1e400'"),
    ("train --steps ٣", "steps | '٣'"),
    (f"train --steps {LONG}", "steps | 9999"),
    (f"train --seed {LONG}", "seed | 9999"),
    ("train --seed 9223372036854775808", "seed | 9223372036854775808"),
    ("train --buffer-size 10000000000000000000", "buffer_size | 10000000000000000000"),
    ("train --buffer-size 1000000000000 --steps 1000000000000", "buffer_size | 1,000,000,000,000"),
    ("train --gamma 2", "gamma | 2.0"),
    ("train --gamma 0,99", "gamma | '0,99'"),
    ("train --gamma nan", "gamma | nan"),
    ("train --gamma -1e-5", "gamma | -1e-05"),
    ("train --actor-lr inf", "actor_lr | inf"),
    ("train --hidden 3,x", "hidden | '3,x'"),
    ("train --hidden [256,256]", "hidden | '[256,256]'"),
    ("train --hidden 256,", "hidden | '256,'"),
    ("train --hidden 99999999999999999999", "hidden | 99999999999999999999"),
    ("train --num-envs 2 --workers 3", "workers | num_envs | 3"),
    ("train --pixels 3", "pixels | 3"),
    ("evaluate empty --episodes 0", "--episodes | '0'"),
    ("evaluate empty --episodes 1e9", "--episodes | '1e9'"),
    ("evaluate empty --seed x", "--seed | 'x'"),
    ("evaluate empty --seed ٣", "--seed | '٣'"),
    (f"resume empty --steps {LONG}", "steps | 9999"),
    ("watch --port 99999", "--port | '99999'"),
    ("bench --rounds few", "--rounds | 'few'"),
    # choices
    ("train --preset papr", "preset | 'papr' | paper"),
    ("train --device gpu", "device | 'gpu' | cuda"),
    ("train --engine cpp", "engine | 'cpp' | native"),
    ("train --update-schedule episodes", "update_schedule | 'episodes' | episode"),
    ("bench --sections update", "--sections | 'update' | updates"),
    # environments
    ("train Pendlum-v1", "'Pendlum-v1' | Pendulum"),
    ("train halfcheetah-v5", "'halfcheetah-v5' | HalfCheetah"),
    ("train Pendulum-v9", "'Pendulum-v9' | Pendulum-v1"),
    ("train 'Pendulum v1'", "'Pendulum v1' | Pendulum-v1"),
    ("train ALE/Pong-v5", "'ALE/Pong-v5'"),
    ("train Pong-v5", "'Pong-v5'"),
    ("train CartPole-v1", "Discrete(2)"),
    ("check MountainCar-v0", "Discrete(3)"),
    ("train no_such_module:Env-v0", "'no_such_module:Env-v0' | 'no_such_module'"),
    ("train os:getcwd", "'os:getcwd'"),
    ("train no_such_file.py", "'no_such_file.py'"),
    # parts of the user's own
    ("train --learner", "--learner"),
    ("train --learner ''", "learner | ''"),
    ("train --learner Mine", "learner | 'Mine' | MODULE:NAME"),
    ("train --learner my_parts:", "learner | 'my_parts:' | MODULE:NAME"),
    ("train --learner my_prats:Mine", "learner | 'my_prats:Mine' | my_parts?"),
    ("train --learner my_parts.py:Mine", "learner | 'my_parts.py:Mine' | my_parts?"),
    ("train --learner my_parts:Mien", "learner | 'my_parts:Mien' | Mine?"),
    ("train --learner my_parts:Mine", "learner | td3.Learner | Mine"),
    ("train --noise 0.2", "noise | '0.2' | --exploration-noise"),
    ("train --noise my_parts:SIZE", "noise | 'my_parts:SIZE' | 3"),
    ("train --sampler my_parts:Mine.make", "sampler | 'my_parts:Mine.make'"),
    ("train --sampler broken_parts:Mine", "sampler | 'broken_parts:Mine' | OSError | broken_parts.py:1"),
    ("resume empty --noise no_such:Noise", "noise | 'no_such:Noise'"),
    ("evaluate empty --learner no_such:Mine", "learner | 'no_such:Mine'"),
    ("evaluate empty --sampler my_parts:Mine", "--sampler | td3 train | td3 resume"),
    # run folders
    ("evaluate nowhere", "'nowhere'"),
    ("evaluate file.txt", "'file.txt'"),
    ("evaluate empty", "'empty'"),
    ("evaluate Pendulum-v1", "'Pendulum-v1'"),
    ("resume nowhere", "'nowhere'"),
    ("resume file.txt", "'file.txt'"),
    ("resume empty", "'empty'"),
    ("verify nowhere", "'nowhere'"),
    ("watch nowhere", "'nowhere'"),
    ("train --run full --steps 10", "'full'"),
    ("train --run file.txt --steps 10", "'file.txt'"),
    ("train --run file.txt/below --steps 10", "'file.txt/below'"),
]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    (tmp_path / "file.txt").write_text("mine")
    (tmp_path / "my_parts.py").write_text("SIZE = 3\nclass Mine: pass\n")
    (tmp_path / "broken_parts.py").write_text("raise OSError('no motor')\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    sys.modules.pop("my_parts", None)


@pytest.mark.parametrize(("line", "names"), MISTAKES, ids=[line[:60] for line, _ in MISTAKES])
def test_a_mistaken_command_line_gets_one_line_that_names_the_mistake(line, names, place, capsys):
    before = sorted(place.rglob("*"))
    assert cli.main(shlex.split(line)) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("td3: ") and err.endswith("\n")
    assert len(err.splitlines()) == 1 and "Traceback" not in err and len(err) < 600
    for name in names.split(" | "):
        assert name in err
    assert sorted(place.rglob("*")) == before  # nothing is left behind


def test_there_are_many_mistakes_and_each_is_made_once():
    assert len({line for line, _ in MISTAKES}) == len(MISTAKES) > 120


def test_every_foreign_flag_leads_to_flags_that_there_are():
    commands = cli.make_parser()[1]
    for names in synonyms._SETTINGS.values():
        for name in names.split():
            text = no_flag(flag(name), "train", commands)
            for named in re.findall(r"--[a-z-]+", text.removeprefix(flag(name))):
                assert named in commands["train"]._option_string_actions, text
            assert "?" not in text and text.endswith(".")


def test_every_foreign_command_leads_to_commands_that_there_are():
    commands = cli.make_parser()[1]
    for meant, words in synonyms.COMMANDS.items():
        assert set(re.findall(r"[a-z]+", meant)) <= {*commands, "or", "td", "help", "version"}
        assert not set(words.split()) & set(commands)


def test_what_the_machine_refuses_is_one_line_and_exit_code_1(monkeypatch, capsys):
    for problem, named in ((OSError(24, "Too many open files"), "Too many open files"), (MemoryError(), "memory")):

        def refuse(chosen, problem=problem):
            raise problem

        monkeypatch.setattr(selftest, "run", refuse)
        assert cli.main(["selftest"]) == 1
        err = capsys.readouterr().err
        assert named in err and len(err.splitlines()) == 1
