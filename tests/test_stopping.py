"""Runs that stop by themselves: after the right evaluation, with everything saved, and to the same bytes."""

import json

import pytest
import runs
from refusals import refusal

import td3
from td3.config import Config
from td3.metrics import STOPPED
from td3.progress import Progress, Stop
from td3.session import Session
from td3.stopping import why_stop
from td3.storage import read_metrics
from td3.views import cli
from td3.views.web.runs import Watched

SMALL = {**runs.SMALL, "steps": 400, "buffer_size": 1_000, "eval_every": 20, "checkpoint_every": 50, "threads": 1}
FLAGS = [
    "train", "Pendulum-v1", "--steps", "400", "--warmup-steps", "20", "--hidden", "8,8", "--batch-size", "16",
    "--eval-every", "20", "--eval-episodes", "1", "--threads", "1", "--no-film", "--run", "run",
]  # fmt: skip


def evaluations(run):
    rows = [row for row in read_metrics(run / "metrics.jsonl") if "eval/mean_return" in row]
    return [row["step"] for row in rows], [row["eval/mean_return"] for row in rows]


@pytest.fixture(scope="module")
def returns(tmp_path_factory):
    """The mean returns of a run that does not stop, by step."""
    run = tmp_path_factory.mktemp("whole") / "run"
    list(td3.train(Config(**SMALL), run))
    return dict(zip(*evaluations(run), strict=True))


def first_without_best(returns, count):
    """The step of the evaluation that is the last of so many without a new best."""
    best, since = float("-inf"), 0
    for step, value in returns.items():
        best, since = (value, 0) if value > best else (best, since + 1)
        if since == count:
            return step
    raise AssertionError("every evaluation is a new best")


def progress_at(step, mean, without_best=0, sick=""):
    progress = Progress((), ())
    progress.last_evaluation, progress.without_best, progress.sick = (step, mean), without_best, sick
    return progress


@pytest.mark.parametrize(
    ("settings", "progress", "setting"),
    [
        ({}, progress_at(20, 1e9, 1_000, "It is sick."), None),
        ({"stop_at": 5.0}, progress_at(20, 5.0), "stop_at"),
        ({"stop_at": 5.0}, progress_at(20, 4.999), None),
        ({"stop_at": 5.0}, progress_at(19, 5.0), None),  # an evaluation of another step
        ({"stop_at": 0.0}, progress_at(20, 0.0), "stop_at"),
        ({"stop_after": 3}, progress_at(20, 0.0, 3), "stop_after"),
        ({"stop_after": 3}, progress_at(20, 0.0, 2), None),
        ({"stop_after": 3}, progress_at(19, 0.0, 3), None),
        ({"stop_when_sick": True}, progress_at(19, 0.0, 0, "It is sick."), "stop_when_sick"),
        ({"stop_when_sick": True}, progress_at(20, 0.0), None),
        ({"stop_at": 5.0, "stop_after": 1}, progress_at(20, 6.0, 1), "stop_at"),
    ],
)
def test_each_setting_stops_a_run_on_its_own_condition(settings, progress, setting):
    stop = why_stop(Config(**SMALL | settings), progress, 20)
    assert (stop and stop.setting) == setting


def test_a_new_best_begins_the_count_anew():
    progress, counts = Progress((), ()), []
    for step, mean in enumerate([1.0, 0.5, 1.0, 2.0, 1.5]):  # as good as the best is no new best
        progress.evaluated(step, mean)
        counts.append(progress.without_best)
    assert counts == [0, 1, 2, 0, 1]


@pytest.mark.parametrize("name", ["stop_at", "stop_after"])
def test_a_stop_that_needs_evaluations_is_refused_without_them(name):
    with refusal(td3.ConfigError, name, 3, "eval_every"):
        Config(**SMALL | {name: 3, "eval_every": 0})
    assert Config(**SMALL | {"stop_when_sick": True, "eval_every": 0}).stop_when_sick  # a finding needs none


@pytest.mark.parametrize("name", ["stop_at", "stop_after"])
def test_a_run_stops_after_the_first_evaluation_that_is_reason_enough(name, tmp_path, returns):
    run, goal = tmp_path / "run", sorted(returns.values())[-3]
    value, at = (goal, next(step for step, mean in returns.items() if mean >= goal))
    if name == "stop_after":
        value, at = 3, first_without_best(returns, 3)
    events = list(td3.train(Config(**SMALL | {name: value}), run))
    finished = events[-1]
    assert isinstance(finished, td3.Finished) and (finished.step, finished.stopped_by) == (at, name)
    assert finished.reason.endswith(".") and finished.last == returns[at]
    assert [type(event) for event in events[-4:]] == [td3.Evaluated, td3.Saved, td3.Stepped, td3.Finished]
    assert runs.newest(run).name.startswith(f"{at:09d}-") and td3.load(run).step == at
    assert list(evaluations(run)[0]) == [step for step in returns if step <= at]
    assert list(read_metrics(run / "metrics.jsonl"))[-1] == {"step": at, STOPPED: finished.reason}


@pytest.mark.parametrize("kill_at", [30, 60, 100])
def test_a_killed_and_resumed_run_stops_at_the_same_step_with_the_same_bytes(kill_at, tmp_path):
    config = Config(**SMALL | {"stop_after": 4})
    *_, whole = td3.train(config, tmp_path / "whole")
    assert 100 < whole.step < 400
    for event in (killed := td3.train(config, tmp_path / "killed")):
        if isinstance(event, td3.Stepped) and event.step == kill_at:
            break
    killed.close()
    *_, resumed = td3.resume(tmp_path / "killed")
    assert (resumed.step, resumed.reason) == (whole.step, whole.reason)
    assert runs.contents(tmp_path / "killed") == runs.contents(tmp_path / "whole")


def stopped_run(run, **settings):
    *_, finished = td3.train(Config(**SMALL | {"stop_after": 3} | settings), run)
    assert finished.stopped_by == "stop_after"
    return finished


def test_a_stopped_run_stays_stopped_until_it_is_let_train_on(tmp_path):
    first = stopped_run(tmp_path / "run")
    again = list(td3.resume(tmp_path / "run"))
    assert [type(event) for event in again] == [td3.Started, td3.Resumed, td3.Finished]
    assert again[-1][:2] + again[-1][3:] == first[:2] + first[3:]
    *_, still = td3.resume(tmp_path / "run", actor_lr=1e-5, stop_at=1e9)  # neither has to do with why it stopped
    assert (still.step, still.stopped_by) == (first.step, "stop_after")
    *_, later = td3.resume(tmp_path / "run", stop_after=5)
    assert later.step >= first.step + 2 * 20  # exactly, if none of them is a new best
    *_, done = td3.resume(tmp_path / "run", stop_after=0)
    assert (done.step, done.reason) == (400, "")


def test_a_further_goal_lets_a_run_train_on_and_counts_anew(tmp_path):
    first = stopped_run(tmp_path / "run")
    *_, same = td3.resume(tmp_path / "run", steps=400)  # its own goal: a script may say it every time
    assert same.step == first.step
    *_, second = td3.resume(tmp_path / "run", steps=500)
    assert second.step >= first.step + 3 * 20
    session = Session.of(tmp_path / "run", None)
    assert session.config.steps == 500 and session.progress.without_best <= 3
    session.close()


def test_a_run_that_trains_on_equals_one_that_never_stopped(tmp_path):
    stopped_run(tmp_path / "stopped")
    list(td3.resume(tmp_path / "stopped", stop_after=0))
    list(td3.train(Config(**SMALL), tmp_path / "whole"))
    one, other = runs.contents(tmp_path / "stopped"), runs.contents(tmp_path / "whole")
    assert one[:2] == other[:2]
    assert [row for row in one[2] if not {STOPPED, "changed"} & row.keys()] == other[2]


@pytest.mark.parametrize("every", [20, 0])
def test_a_run_that_is_called_sick_stops_at_its_next_rows_and_only_if_it_is_asked_to(every, tmp_path, monkeypatch):
    sick = "The actor is saturated for good."
    monkeypatch.setattr("td3.reporting.sickness", lambda evidence: sick if evidence.step >= 50 else "")
    for asked in (True, False):
        config = Config(**SMALL | {"stop_when_sick": asked, "eval_every": every, "steps": 120, "log_every": 20})
        with td3.train(config, tmp_path / f"{asked}") as training:
            for event in training:
                if isinstance(event, td3.Stepped) and event.step == 50:
                    training.session.progress.sick = sick
        stop = (60, sick, "stop_when_sick") if asked else (120, "", "")
        assert (event.step, event.reason, event.stopped_by) == stop
    run = tmp_path / "True"
    assert list(td3.resume(run))[-1].step == 60
    *_, done = td3.resume(run, stop_when_sick=False)
    assert (done.step, done.reason) == (120, "")


def test_what_a_finding_said_is_saved_with_the_run(tmp_path):
    with td3.train(Config(**SMALL | {"stop_when_sick": True}), tmp_path / "run") as training:
        for event in training:
            if isinstance(event, td3.Stepped) and event.step == 45:
                training.session.progress.sick = "The actor is saturated for good."
                break
    *_, finished = td3.resume(tmp_path / "run")
    assert (finished.step, finished.reason) == (50, "The actor is saturated for good.")


def test_a_run_at_its_goal_has_no_reason_to_stop(tmp_path):
    *_, finished = td3.train(Config(**SMALL | {"steps": 20, "stop_at": -1e9}), tmp_path / "run")
    assert (finished.step, finished.reason, finished.stopped_by) == (20, "", "")


def test_learn_stops_too_and_learns_on_when_it_is_called_again(tmp_path):
    settings = {name: value for name, value in SMALL.items() if name not in ("env", "steps")}
    agent = td3.TD3("Pendulum-v1", **settings, stop_at=-1e9)
    assert agent.stopped == "" and agent.learn(200).agent.step == 20 and "-1e+09" in agent.stopped
    assert agent.learn(200).agent.step == 40
    agent.save(tmp_path / "run")
    assert td3.TD3.load(tmp_path / "run").learn(200).agent.step == 60
    with refusal(td3.ConfigError, "stop_at", 5, "eval_every"):
        td3.TD3("Pendulum-v1", stop_at=5)


def test_the_closing_line_says_why_and_the_command_that_continues(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main([*FLAGS, "--stop-at", "-1e6"]) == 0
    text = capsys.readouterr().err
    (closing,) = [line for line in text.splitlines() if line.startswith("Stopped by --stop-at at step 20 of 400: ")]
    assert "-1e+06" in closing and "20 steps" in closing and "      td3 resume run --stop-at none\n" in text
    assert cli.main(["resume", "run"]) == 0
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("Stopped by --stop-at at step 20 of 400: ")
    assert last.endswith("Train on with: td3 resume run --stop-at none")
    assert cli.main(["resume", "run", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["step"], answer["stopped_by"]) == (20, "stop_at") and answer["reason"]
    assert cli.main(["resume", "run", "--stop-at", "none", "--steps", "60"]) == 0
    assert "Done: 60 steps" in capsys.readouterr().err


def test_the_page_shows_a_run_that_stopped_by_itself_as_finished_also_while_its_process_lives(tmp_path):
    stopped_run(tmp_path / "run")
    row = Watched(tmp_path, tmp_path / "run").row()
    assert (row.state, row.goal) == ("finished", 400) and 0 < row.step < 400
    for event in (training := td3.resume(tmp_path / "run", stop_after=0)):
        if isinstance(event, td3.Stepped):
            break
    assert Watched(tmp_path, tmp_path / "run").row().state == "live"
    training.close()
    assert Watched(tmp_path, tmp_path / "run").row().state == "stopped"


def test_the_page_shows_the_goal_of_the_newest_of_several_checkpoints_of_a_step(tmp_path):
    list(td3.train(Config(**SMALL | {"steps": 20}), tmp_path / "run"))
    for goal in range(30, 36):  # by name they are in no order: a name ends with a hash
        with td3.resume(tmp_path / "run", steps=goal) as training:
            next(training)
        row = Watched(tmp_path, tmp_path / "run").row()
        assert (row.step, row.goal, row.state) == (20, goal, "stopped")


def test_a_checkpoint_of_an_older_version_has_no_stop():
    progress = Progress((), ())
    data = progress.capture()
    for name in ("without_best", "sick", "stopped"):
        del data[name]
    progress.restore(data)
    assert (progress.without_best, progress.sick, progress.stopped) == (0, "", None)
    assert Stop.of(["stop_at", "Enough."]) == ("stop_at", "Enough.")
