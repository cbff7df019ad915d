"""Studies: what a spec may say, the order of its runs, how it continues, and what the folder of a study may become."""

import json
import os
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import interfering
import pytest
import runs
from folders import make_run, rows_of
from refusals import check_names, refusal

import td3
from td3.config import Config
from td3.errors import ConfigError
from td3.machine import cores
from td3.storage.study import StudyFolder
from td3.studies import Began, Driver, Ended, ProcessJob, Spec, Study, Waiting, read_spec
from td3.studies.spec import toml_of
from td3.studies.standing import standing_of
from td3.views.cli import main, understand

TESTS = Path(__file__).parent
SPEC = """
env = ["Pendulum-v1", "Hopper-v5"]
seeds = [0, 3]
steps = 500
[settings.author]
[settings.wide]
hidden = [512, 512]
"""


def spec_of(text):
    return Spec.of(tomllib.loads(text))


# --- What a spec says -------------------------------------------------------------------------------------------------


def test_every_environment_and_setting_comes_with_the_first_seed_first():
    assert [run.name for run in spec_of(SPEC).runs()] == [
        "Pendulum-v1/author/seed-0",
        "Pendulum-v1/wide/seed-0",
        "Hopper-v5/author/seed-0",
        "Hopper-v5/wide/seed-0",
        "Pendulum-v1/author/seed-3",
        "Pendulum-v1/wide/seed-3",
        "Hopper-v5/author/seed-3",
        "Hopper-v5/wide/seed-3",
    ]


def test_a_run_has_its_settings_its_seed_and_one_thread():
    assert spec_of(SPEC).runs()[5].config == Config(env="Pendulum-v1", steps=500, hidden=(512, 512), seed=3, threads=1)
    assert spec_of('env = "Ant-v5"\nthreads = 2').runs()[0].config.threads == 2
    assert [run.config.seed for run in spec_of('env = "Ant-v5"').runs()] == [0, 1, 2, 3, 4]


def test_a_spec_is_written_as_toml_that_reads_the_same():
    spec = spec_of(
        'env = "a:b\\u007f\\n\\"é"\nseeds = 2\ntau = 3e-5\nstop_at = -1e22\nfilm = false\n'
        'hidden = [8]\nactor_hidden = "none"\n'
        'env_args = {a = [1, [true, "x"]], b = 0.5}\n[settings."v1.2"]\nenv_args = {b = 7}\n[settings.b]\ngamma = 1\n'
    )
    assert spec_of(toml_of(spec).decode()) == spec
    assert spec.runs()[0].given["env_args"] == {"a": [1, [True, "x"]], "b": 7}
    assert spec.runs()[1].given["env_args"] == {"a": [1, [True, "x"]], "b": 0.5}


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("seeds = 2", "env", "missing"),
        ("env = []", "env", "empty"),
        ("env = 5", "env", 5),
        ('env = ["Ant-v5", "Ant-v5"]', "env", "Ant-v5"),
        ('env = ["a:b", "a/b"]', "env", "a-b"),
        ('env = "Ant-v5"\nseeds = 0', "seeds", 0),
        ('env = "Ant-v5"\nseeds = 1.5', "seeds", 1.5),
        ('env = "Ant-v5"\nseeds = true', "seeds", True),
        ('env = "Ant-v5"\nseeds = []', "seeds", "empty"),
        ('env = "Ant-v5"\nseeds = [1, 1]', "seeds", 1),
        ('env = "Ant-v5"\nseeds = [-1]', "seeds", -1),
        ('env = "Ant-v5"\nseed = 1', "seed", 1),
        ('env = "Ant-v5"\nhiden = [8]', "hiden", "hidden"),
        ('env = "Ant-v5"\ngamma = 2', "gamma", 2),
        ('env = "Ant-v5"\nsettings = 3', "settings", 3),
        ('env = "Ant-v5"\n[settings]', "settings", "none"),
        ('env = "Ant-v5"\n[settings]\nwide = 3', "settings", "{'wide': 3}"),
        ('env = "Ant-v5"\n[settings.Wide]\n[settings.wide]', "settings", "wide"),
        ('env = "Ant-v5"\n[settings.".."]', "settings", ".."),
        ('env = "Ant-v5"\n[settings."a/b"]', "settings", "a/b"),
        ('env = "Ant-v5"\n[settings.a]\nseed = 4', "seed", 4),
        ('env = "Ant-v5"\n[settings.a]\ntau = 0', "tau", 0),
        ('env = "Ant-v5"\n[settings.a]\nworkers = 5', "workers", 5),
        ('env = ["A-v0", "B-v0"]\nseeds = 5001', None, 10_002),
    ],
)
def test_a_bad_spec_is_refused_with_the_files_name_and_nothing_is_written(
    text, field, value, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    Path("bad.toml").write_text(text)
    assert main(["study", "bad.toml"]) == 2
    check_names(capsys.readouterr().err, field, value, "bad.toml")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.toml"]


def test_flags_win_over_the_file_but_not_over_a_named_setting():
    spec = spec_of(SPEC)
    changed = spec.changed((), 3, {"steps": 900, "tau": 0.1})
    assert (changed.seeds, changed.shared, changed.settings) == ((0, 1, 2), {"steps": 900, "tau": 0.1}, spec.settings)
    with refusal(ConfigError, "hidden", "settings.wide"):
        spec.changed((), None, {"hidden": (8,)})


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (["Ant-v5", "--seed", "1"], "--seed", 1),
        (["Ant-v5", "--seeds", "x"], "--seeds", "x"),
        (["Ant-v5", "--jobs", "0"], "--jobs", 0),
        (["Ant-v5", "--jobs", str(cores() + 1)], "--jobs", cores() + 1),
        (["Ant-v5", "--env-arg", "x=null"], "env_args", "None"),
        (["spec.toml", "Ant-v5"], None, "Ant-v5"),
        (["spec.toml", "--study", ""], "--study", "''"),
        (["folder"], None, "folder"),
        (["missing.toml"], None, "missing.toml"),
    ],
)
def test_a_bad_command_line_is_refused_and_nothing_is_written(words, field, value, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("spec.toml").write_text('env = "Ant-v5"')
    assert main(["study", *words]) == 2
    check_names(capsys.readouterr().err, field, value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "spec.toml"]


# --- What a folder may become -----------------------------------------------------------------------------------------


def begun(study, name, **changes):
    """Begins a run of a study without training: its folder, with the settings that the study gives it."""
    (run,) = [run for run in study.runs if run.name == name]
    goal = changes.pop("goal", None)
    return make_run(study.path_of(run), config={**run.config.to_data(), **changes}, goal=goal)


def test_seeds_steps_and_settings_may_be_added_to_what_is_begun(tmp_path):
    study = Study(tmp_path / "s", Spec.of({"env": "Pendulum-v1", "seeds": 1, "steps": 400, "settings": {"a": {}}}))
    begun(study, "Pendulum-v1/a/seed-0", goal=400)  # its checkpoint is at step 500
    assert study.left() == []
    more = {"env": "Pendulum-v1", "seeds": 2, "steps": 900, "settings": {"a": {}, "b": {"tau": 0.1}}}
    extended = Study(tmp_path / "s", Spec.of(more))
    with extended:
        assert read_spec(tmp_path / "s/study.toml") == extended.spec
    names = ["Pendulum-v1/a/seed-0", "Pendulum-v1/b/seed-0", "Pendulum-v1/a/seed-1", "Pendulum-v1/b/seed-1"]
    assert [run.name for run in extended.left()] == names


@pytest.mark.parametrize(
    ("changes", "name", "now", "wanted"),
    [
        ({"tau": 0.2}, "tau", 0.1, 0.2),
        ({"steps": 300}, "steps", 400, 300),
        ({"settings": {"a": {"hidden": [7]}}}, "hidden", "[128, 128]", "[7]"),
        ({"env_args": {"g": 1}}, "env_args", "{}", "{'g': 1}"),
    ],
)
def test_a_setting_of_a_run_that_is_begun_cannot_change(changes, name, now, wanted, tmp_path):
    first = {"env": "Pendulum-v1", "steps": 400, "tau": 0.1, "settings": {"a": {}}}
    begun(Study(tmp_path / "s", Spec.of(first)), "Pendulum-v1/a/seed-0")
    with (
        refusal(ConfigError, name, wanted, now, "Pendulum-v1/a/seed-0"),
        Study(tmp_path / "s", Spec.of({**first, **changes})),
    ):
        pass
    assert not (tmp_path / "s/study.toml").exists()


def test_a_run_that_is_begun_cannot_be_left_out(tmp_path):
    begun(Study(tmp_path / "s", Spec.of({"env": "Pendulum-v1"})), "Pendulum-v1/default/seed-4")
    with refusal(ConfigError, None, str(tmp_path / "s"), "Pendulum-v1/default/seed-4"):
        Study(tmp_path / "s", Spec.of({"env": "Pendulum-v1", "seeds": 4})).check()


def test_what_a_killed_run_left_while_it_was_made_is_no_run(tmp_path):
    study = Study(tmp_path / "s", Spec.of({"env": "Pendulum-v1"}))
    (tmp_path / "s/Pendulum-v1/default/.seed-0-0f3a/checkpoints").mkdir(parents=True)
    study.check()
    assert len(study.left()) == 5


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path):
    (tmp_path / "s/thesis").mkdir(parents=True)
    with refusal(ConfigError, None, str(tmp_path / "s"), "thesis"), Study(tmp_path / "s", Spec.of({"env": "Ant-v5"})):
        pass
    assert [path.name for path in (tmp_path / "s").iterdir()] == ["thesis"]


def test_a_second_driver_of_a_study_is_refused_with_the_first_ones_process(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with Study("studies/Ant-v5", Spec.of({"env": "Ant-v5"})):
        assert main(["study", "Ant-v5"]) == 2
        check_names(capsys.readouterr().err, "study", "studies/Ant-v5", os.getpid())


# --- How runs are placed ----------------------------------------------------------------------------------------------


def placed(path, jobs, words, seeds=3):
    with Study(path, Spec.of({"env": "Pendulum-v1", "seeds": seeds})) as study:
        return list(Driver(study, jobs, lambda run: ProcessJob(words(run))).events())


@pytest.mark.parametrize("jobs", [1, 2])
def test_never_more_runs_than_jobs_train_at_once_and_in_their_order(jobs, tmp_path):
    events = placed(tmp_path / "s", jobs, lambda run: ["--version"])
    assert [event.run.config.seed for event in events if isinstance(event, Began)] == [0, 1, 2]
    changes = [isinstance(event, Began) - isinstance(event, Ended) for event in events]
    assert max(sum(changes[: place + 1]) for place in range(len(changes))) == jobs and sum(changes) == 0


def test_a_run_that_fails_is_reported_with_its_sentence_and_the_others_continue(tmp_path):
    words = {0: ["--version"], 1: ["train", "--nonsense"], 2: ["--version"]}
    events = placed(tmp_path / "s", 1, lambda run: words[run.config.seed])
    ended = [event for event in events if isinstance(event, Ended)]
    assert [event.state for event in ended] == ["finished", "failed", "finished"]
    check_names(ended[1].problem, "--nonsense")
    assert not ended[0].problem


def test_a_run_that_another_process_writes_is_waited_for(tmp_path):
    study = Study(tmp_path / "s", Spec.of({"env": "Pendulum-v1", "seeds": 2}))
    other = StudyFolder(begun(study, "Pendulum-v1/default/seed-0"))  # has the same lock
    other.open()
    seen = []
    with study:
        for event in Driver(study, 1, lambda run: ProcessJob(["--version"])).events():
            seen.append((type(event), event.run.config.seed) if not hasattr(event, "share") else None)
            if isinstance(event, Waiting):
                other.close()
    order = [(Began, 1), (Ended, 1), (Waiting, 0), (Began, 0), (Ended, 0)]
    assert [one for one in seen if one] == order


class Ending:
    """A job that ends when it is asked to, and not before."""

    def __init__(self):
        self.code, self.sent = None, []

    def send(self, number):
        self.sent.append(number)
        self.code = 143

    def end(self):
        pass


def test_a_run_may_be_added_and_stopped_while_others_train(tmp_path):
    study, jobs, ended = Study(tmp_path / "s", Spec.of({"env": "Pendulum-v1", "seeds": 1})), {}, []
    driver = Driver(study, 2, lambda run: jobs.setdefault(run.config.seed, Ending()))
    more = Spec.of({"env": "Pendulum-v1", "seeds": [7, 8, 9]}).runs()
    for event in driver.events():
        if isinstance(event, Began) and event.run.config.seed == 0:
            driver.add(more)
            driver.stop(more[2].name)  # not begun: never will be
        elif isinstance(event, Began):
            driver.stop(event.run.name)
            driver.stop(event.run.name)  # a second time is nothing new: it would mean at once
        elif isinstance(event, Ended):
            ended.append((event.run.config.seed, event.state))
            if event.run.config.seed == 8:
                driver.stop("Pendulum-v1/default/seed-0")
    assert ended == [(7, "stopped"), (8, "stopped"), (0, "stopped")]
    assert {seed: job.sent for seed, job in jobs.items()} == {seed: [signal.SIGTERM] for seed in [0, 7, 8]}


# --- Whole studies ----------------------------------------------------------------------------------------------------

OWN = {**runs.SMALL, "env": "interfering:Interfering"}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder from which children find the environment of these tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), str(TESTS.parent)]))
    monkeypatch.syspath_prepend(str(TESTS))
    return tmp_path


def write_spec(path, seeds, **tables):
    shared = {name: list(value) if isinstance(value, tuple) else value for name, value in OWN.items()}
    path.write_bytes(toml_of(Spec.of({**shared, "seeds": seeds, "settings": tables or {"a": {}}})))


def driven(*words):
    """Runs `td3 study` in a process of its own, for it is going to be killed."""
    return subprocess.run([sys.executable, "-m", "td3", "study", *words], capture_output=True, text=True, check=False)


def test_a_study_that_is_stopped_and_killed_ends_with_the_bytes_of_runs_that_were_trained_alone(place, capsys):
    write_spec(Path("s.toml"), 1)
    Path("signal").write_text("SIGTERM 50")
    stopped = driven("s.toml")
    assert stopped.returncode == 143 and "td3 study studies/s --trust" in stopped.stderr
    assert 0 < standing_of(Path("studies/s/interfering-Interfering/a/seed-0")).step < 120
    write_spec(Path("s.toml"), 2)
    Path("signal").write_text("SIGKILL 30")
    assert driven("s.toml", "--jobs", str(min(2, cores()))).returncode == -9
    assert main(["study", "studies/s"]) == 2  # its environment is Python code
    check_names(capsys.readouterr().err, "env", "interfering:Interfering", "--trust")
    assert main(["study", "studies/s", "--trust", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["finished"] == 2 and [row["step"] for row in report["runs"]] == [120, 120]
    for seed in range(2):
        alone = place / f"alone-{seed}"
        list(td3.train(Config(**OWN, seed=seed, threads=1), alone))
        run = place / f"studies/s/interfering-Interfering/a/seed-{seed}"
        assert runs.contents(run) == runs.contents(alone)
        assert (run / "config.json").read_bytes() == (alone / "config.json").read_bytes()


def test_a_failing_setting_leaves_the_others_alone_and_the_exit_code_is_1(place, capsys):
    write_spec(Path("s.toml"), 1, bad={"env_args": {"fails": True}}, good={})
    assert main(["study", "s.toml", "--json"]) == 1
    captured = capsys.readouterr()
    bad, good = json.loads(captured.out)["runs"]
    assert (bad["state"], good["state"], good["step"]) == ("failed", "finished", 120)
    assert "the gripper is stuck" in bad["problem"] and "bad/seed-0" in captured.err


def test_a_study_from_python_yields_its_events_and_continues_what_is_left(place):
    spec = {**OWN, "env": interfering.Interfering, "seeds": 2}
    ended = [event for event in td3.study(spec, "studies/mine", jobs=1) if isinstance(event, Ended)]
    assert [(event.run.name, event.state, event.standing.step) for event in ended] == [
        (f"interfering-Interfering/default/seed-{seed}", "finished", 120) for seed in range(2)
    ]
    assert list(td3.study(spec, "studies/mine", jobs=1)) == []
    more = [
        event.run.config.seed for event in td3.study({**spec, "seeds": 3}, "studies/mine") if isinstance(event, Began)
    ]
    assert more == [2]


@pytest.mark.parametrize(
    ("spec", "options", "field", "value"),
    [
        (7, {}, "spec", 7),
        ({"env": lambda: None}, {}, "env", "<lambda>"),
        ({"env": "Ant-v5", "seed": 1}, {}, "seed", 1),
        ({"env": "Ant-v5"}, {"jobs": 0}, "jobs", 0),
        ({"env": "Ant-v5"}, {"jobs": 1_000}, "jobs", 1_000),
        ({"env": "Ant-v5"}, {"ray": "ray://head:10001"}, "--ray", "ray://head:10001"),
        ({"env": "Ant-v5"}, {"ray": 3}, "ray", 3),
        ({"env": "Ant-v5"}, {"ray": "local", "patience": -1}, "patience", -1),
        ({"env": "Ant-v5", "tau": 3}, {}, "tau", 3),
    ],
)
def test_a_study_from_python_is_refused_before_anything_is_written(spec, options, field, value, place):
    with pytest.raises(td3.ConfigError) as refused:
        td3.study(spec, "studies/mine", **options)
    check_names(str(refused.value), field, value)
    assert not Path("studies").exists()


def test_an_environment_that_cannot_be_made_is_refused_before_anything_is_written(place, capsys):
    assert main(["study", "studies/netwroks"]) == 2
    check_names(capsys.readouterr().err, "env", "studies/netwroks")
    assert not Path("studies").exists()


def test_a_folder_of_results_is_no_study(place, capsys):
    write_spec(Path("study.toml"), 1)
    Path("Ant-v5/a").mkdir(parents=True)
    Path("Ant-v5/a/seed-0.json").touch()
    assert main(["study", "."]) == 2
    check_names(capsys.readouterr().err, "study.toml", ".", "--study")


def test_print_gives_a_command_for_each_run_that_is_left_and_writes_nothing(place, capsys):
    write_spec(Path("s.toml"), 2, a={}, b={"stop_at": -5.0, "env_args": {"fails": False}})
    assert main(["study", "s.toml", "--print"]) == 0
    lines = capsys.readouterr().out.splitlines()
    planned = read_spec("s.toml").runs()
    assert len(lines) == len(planned) == 4 and not Path("studies").exists()
    from td3.views.flags import all_given

    for line, run in zip(lines, planned, strict=True):
        name, *words = shlex.split(line)
        chosen = understand(words)
        assert name == "td3" and chosen.resume and chosen.run == f"studies/s/{run.name}"
        assert Config(**all_given(chosen)) == run.config
    begun(Study("studies/s", read_spec("s.toml")), planned[0].name, goal=120)
    assert main(["study", "s.toml", "--print"]) == 0
    assert capsys.readouterr().out.splitlines() == lines[1:]


def test_the_page_groups_the_seeds_of_a_studys_settings(tmp_path):
    study = Study(tmp_path / "s", spec_of('env = "Pendulum-v1"\nseeds = 2\n[settings.a]\n[settings.b]\ntau = 0.1'))
    for run in study.runs:
        begun(study, run.name)
    rows = rows_of(tmp_path / "s")
    groups = {name: row["group"] for name, row in rows.items()}
    assert len(groups) == 4 and len(set(groups.values())) == 2
    assert groups["Pendulum-v1/a/seed-0"] == groups["Pendulum-v1/a/seed-1"] != groups["Pendulum-v1/b/seed-0"]
