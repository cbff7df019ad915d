"""Films: one evaluated episode, drawn in a process of its own; what cannot be drawn is not there, and no failure."""

import io
import os
import random
import select
import subprocess
import sys
from functools import partial
from pathlib import Path

import cloudpickle
import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from painted import Painted
from sessions import Clock, alive, bytes_of, played

import td3
from td3 import filming, progress, run_output
from td3.config import Config
from td3.environments import Wrappers, maker_to_render
from td3.film_worker import NO_FILM, Job, apart, filmed, picture
from td3.filming import Film
from td3.loop import advance
from td3.session import Session
from td3.storage import verify
from td3.storage.disk import replace_whole

Image = pytest.importorskip("PIL.Image")
SMALL = {"hidden": (8,), "batch_size": 8, "warmup_steps": 20, "threads": 1, "eval_episodes": 2, "log_every": 50}
SMALL["diagnose"] = False  # which plays the evaluation environment, too


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    monkeypatch.setattr(Painted, "made", [])
    monkeypatch.setattr(Painted, "length", 10)


class Ended:
    """A child that did its work in no time, as far as anybody can see."""

    def __init__(self, code):
        self.code, self.pid = code, 0

    def poll(self):
        return self.code

    def wait(self, timeout):
        return self.code


@pytest.fixture
def in_process(monkeypatch):
    """Films are drawn here, from jobs that have been sent; where each of them is asked for goes into a list."""
    jobs = []

    def started(job, seconds, priority):
        jobs.append((seconds, priority))
        job = cloudpickle.loads(cloudpickle.dumps(job))
        try:
            replace_whole(job.path, filmed(job))
        except (Exception, SystemExit):
            return Ended(NO_FILM)
        return Ended(0)

    monkeypatch.setattr(filming, "started", started)
    return jobs


def config(env=Painted, **settings):
    return Config(**{"env": env, "steps": 100, "eval_every": 100, **SMALL, **settings})


def frames(data):
    film = Image.open(io.BytesIO(data))
    found = []
    for number in range(film.n_frames):
        film.seek(number)
        film.load()
        found.append((film.size, film.convert("RGB").getpixel((5, 5))[0], film.info["duration"]))
    return found


def drawing():
    return [one for one in Painted.made if one.render_mode == "rgb_array"]


def test_the_film_is_the_first_evaluated_episode_without_noise_drawn_by_another_process(tmp_path):
    log = tmp_path / "log"
    list(td3.train(config(env_args={"log": str(log)}), tmp_path / "run"))
    found = frames((tmp_path / "run" / "film.webp").read_bytes())
    assert [size for size, _, _ in found] == [(240, 150)] * 10
    assert [grey for _, grey, _ in found] == pytest.approx([20 * count for count in range(10)], abs=6)
    assert [duration for _, _, duration in found] == [40] * 10
    player, evaluated = Painted.made  # none that draws was made here
    assert player.render_mode is evaluated.render_mode is None and player.drawn == evaluated.drawn == 0
    rows = [line.split() for line in log.read_text().splitlines()]
    assert len({row[0] for row in rows}) == 1 and not alive(int(rows[0][0]))
    assert [float(action) for action in rows[-1][1:]] == evaluated.actions[:9]  # so many when the last frame was drawn
    assert sorted(one.name for one in (tmp_path / "run").iterdir() if "film" in one.name) == ["film.webp"]
    assert not list(verify(tmp_path / "run").values())[-1]


@pytest.mark.usefixtures("in_process")
def test_of_a_long_episode_every_so_manyth_step_is_drawn_and_the_film_never_crawls(tmp_path, monkeypatch):
    monkeypatch.setattr(Painted, "length", 450)
    list(td3.train(config(eval_episodes=1), tmp_path / "run"))
    (artist,) = drawing()
    assert artist.drawn == 150 and len(artist.actions) == 450 and apart(450) == 3
    assert sum(duration for *_, duration in frames((tmp_path / "run" / "film.webp").read_bytes())) == 150 * 50
    assert [apart(length) for length in (1, 200, 201, 1_000, 1_001)] == [1, 1, 2, 5, 6]


def film_of(path, clock=None, env=Painted, eval_envs=None, **settings):
    return Film(path, env, [Painted()] if eval_envs is None else eval_envs, clock or Clock(), **settings)


def still(rows):
    return np.zeros((len(rows), 1), np.float32)


def policy():
    return still


def job(path, env=Painted, length=10):
    return Job(path, "Painted", maker_to_render(env, 240), Wrappers(), still, 1, length)


def test_drawing_stops_after_three_seconds_and_what_there_is_is_kept(tmp_path, monkeypatch):
    clock, step = Clock(), Painted.step

    def slow(self, action):
        clock.now += 0.7
        return step(self, action)

    monkeypatch.setattr(Painted, "step", slow)
    assert len(frames(filmed(job(tmp_path), clock))) == 5 and drawing()[0].drawn == 5


def test_a_hundredth_of_the_time_goes_into_films_and_the_end_is_always_filmed(tmp_path, monkeypatch, in_process):
    clock, used = Clock(), iter(np.arange(0.0, 100.0))  # a second of a processor for each film
    monkeypatch.setattr(filming, "seconds_of_children", lambda: next(used))
    monkeypatch.setattr(filming, "EXPECTED", 1.0)
    film, filmed_at = film_of(tmp_path / "film.webp", clock), []
    for minute in range(1, 21):
        before = len(in_process)
        film.offer(policy, minute, 10, last=minute == 20)
        if len(in_process) > before:
            filmed_at.append(minute)
        clock.now = 60.0 * minute
    # Whether it is ready is seen a minute later, and then a hundred seconds and more have to pass.
    assert filmed_at == [3, 6, 9, 12, 15, 18, 20]
    assert film.allowance.seconds == pytest.approx(len(filmed_at))
    assert in_process == [(filming.MEANWHILE, filming.LOW)] * 6 + [(filming.AT_THE_END, 0)]


FAILURES = {
    "raises": lambda self: 1 / 0,
    "exits": lambda self: sys.exit(3),
    "draws nothing": lambda self: None,
    "draws text": lambda self: "a picture",
    "draws floats": lambda self: np.zeros((4, 4, 3)),
    "draws a list": lambda self: [np.zeros((4, 4, 3), np.uint8)] * 2,
    "warns and draws": None,
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("failure", list(FAILURES))
def test_an_environment_that_fails_to_draw_fails_nothing_else_and_is_asked_once(failure, tmp_path, monkeypatch):
    import warnings

    def render(self):
        self.drawn += 1
        if failure == "warns and draws":
            warnings.warn("no display", stacklevel=1)
            return np.zeros((4, 4, 3), np.uint8)
        return FAILURES[failure](self)

    monkeypatch.setattr(Painted, "render", render)
    monkeypatch.setattr(run_output, "Film", partial(Film, clock=lambda: 0.0))
    monkeypatch.setattr(filming, "EXPECTED", 0.0)
    events = list(td3.train(config(eval_every=25, checkpoint_every=25), tmp_path / "run"))
    assert events[-1].step == 100 and not any(isinstance(event, td3.SaveFailed | td3.Noted) for event in events)
    assert (tmp_path / "run" / "film.webp").exists() == (failure == "warns and draws")
    assert [one.drawn for one in drawing()] == ([10] * 4 if failure == "warns and draws" else [1])
    assert all(one.closed == 1 for one in drawing())


def test_without_pillow_or_a_disk_there_is_no_film_and_no_failure(tmp_path, monkeypatch, in_process):
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert list(td3.train(config(), tmp_path / "run"))[-1].step == 100
    assert not (tmp_path / "run" / "film.webp").exists()
    monkeypatch.delitem(sys.modules, "PIL")
    film = film_of(tmp_path / "nowhere" / "film.webp")
    film.offer(policy, 1, 10, last=True)
    film.offer(policy, 1, 10, last=True)
    assert [one.drawn for one in drawing()] == [1, 10] and len(in_process) == 2  # once, and then not again


class Plain(Painted):
    metadata = {"render_modes": []}


def no_arguments():
    return Painted()


def vector(render_mode=None):
    from gymnasium.vector import SyncVectorEnv

    return SyncVectorEnv([partial(Painted, render_mode), partial(Painted, render_mode)])


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("env", [Plain, no_arguments, vector])
def test_what_cannot_be_asked_to_draw_itself_is_not_filmed(env, tmp_path):
    assert list(td3.train(config(env=env), tmp_path / "run"))[-1].step == 100
    assert not (tmp_path / "run" / "film.webp").exists()
    assert all(one.drawn == 0 for one in Painted.made)


@pytest.mark.usefixtures("in_process")
def test_what_draws_arrays_without_being_asked_is_filmed(tmp_path):
    assert list(td3.train(config(env=lambda: Painted("rgb_array")), tmp_path / "run"))[-1].step == 100
    assert len(frames((tmp_path / "run" / "film.webp").read_bytes())) == 10
    assert sorted(one.drawn for one in Painted.made) == [0, 0, 10]  # neither where it trains nor where it is evaluated


def test_an_environment_that_cannot_be_sent_is_not_filmed_and_nobody_is_told(tmp_path):
    with (tmp_path / "file").open("w") as shared:  # an open file cannot be sent
        events = list(td3.train(config(env=lambda render_mode=None: shared and Painted(render_mode)), tmp_path / "run"))
    assert events[-1].step == 100 and not any(isinstance(event, td3.Noted) for event in events)
    assert not (tmp_path / "run" / "film.webp").exists()


@pytest.mark.usefixtures("in_process")
def test_keywords_and_ids_are_asked_too_and_those_that_know_no_size_without_one(tmp_path):
    gymnasium.register("Painted-v0", Painted, max_episode_steps=7)
    try:
        list(td3.train(config(env="Painted-v0"), tmp_path / "id"))
        assert len(frames((tmp_path / "id" / "film.webp").read_bytes())) == 7
        list(td3.train(config(env=lambda **keywords: Painted(**keywords)), tmp_path / "keywords"))
        assert len(frames((tmp_path / "keywords" / "film.webp").read_bytes())) == 10
    finally:
        del gymnasium.registry["Painted-v0"]


def test_filming_changes_no_bit_of_a_run_not_even_of_a_stream_that_all_share(tmp_path, monkeypatch):
    send = Job.__reduce__

    def careless(self):
        random.random(), np.random.rand(3)
        import torch

        torch.rand(3)
        return send(self)

    monkeypatch.setattr(Job, "__reduce__", careless)
    monkeypatch.setattr(run_output, "Film", partial(Film, clock=lambda: 0.0))
    monkeypatch.setattr(filming, "EXPECTED", 0.0)
    found = []
    for film in (True, False):
        random.seed(1), np.random.seed(1)
        run = played(config(eval_every=20, film=film), tmp_path / str(film))
        found.append((run, random.random(), np.random.rand()))
    assert found[0] == found[1]
    assert (tmp_path / "True" / "film.webp").exists() and not (tmp_path / "False" / "film.webp").exists()


def test_a_run_without_a_folder_or_without_evaluations_is_not_filmed(tmp_path, in_process):
    session = Session(config())
    for _ in advance(session, 100):
        pass
    session.close()
    list(td3.train(config(eval_every=0), tmp_path / "run"))
    assert in_process == [] and not (tmp_path / "run" / "film.webp").exists()


@pytest.mark.usefixtures("in_process")
def test_a_resumed_run_ends_with_the_same_bytes_films_or_not(tmp_path):
    settings = config(eval_every=40)
    whole = played(settings, tmp_path / "whole")
    for event in td3.train(settings, tmp_path / "run"):
        if event.step == 60:
            break
    del event
    session = Session.resumed(tmp_path / "run", {}, Painted, False)
    for _ in advance(session, 100):
        pass
    session.close()
    assert bytes_of(session) == whole[0]


def test_time_spent_filming_is_not_slowness(tmp_path, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress.time, "perf_counter", clock)

    def slow(self, *_):
        clock.now += 1_000.0

    monkeypatch.setattr(filming.Film, "offer", slow)
    step = Painted.step

    def ticking(self, action):
        clock.now += 0.5
        return step(self, action)

    monkeypatch.setattr(Painted, "step", ticking)
    events = list(td3.train(config(eval_every=50, record_updates=False), tmp_path / "run"))
    speeds = [event.metrics["time/steps_per_second"] for event in events if isinstance(event, td3.Measured)]
    assert speeds == pytest.approx([2.0, 2.0])


@pytest.mark.parametrize("trick", ["a link", "a torn film", "what a kill left behind"])
def test_a_film_takes_its_place_whole_and_follows_no_link(trick, tmp_path):
    place, other = tmp_path / "film.webp", tmp_path / "other"
    other.write_text("mine")
    if trick == "a link":
        place.symlink_to(other)
    elif trick == "a torn film":
        place.write_bytes(b"RIFF")
    else:
        (tmp_path / ".film.webp").symlink_to(other)
    replace_whole(place, filmed(job(place)))
    assert not place.is_symlink() and len(frames(place.read_bytes())) == 10 and other.read_text() == "mine"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["film.webp", "other"]


def test_pictures_are_no_larger_than_needed_and_small_ones_are_enlarged_pixel_by_pixel():
    assert picture(np.zeros((480, 640, 3), np.uint8)).size == (240, 180)
    assert picture(np.zeros((480, 480, 4), np.uint8)).size == (240, 240)
    assert picture(np.zeros((150, 130, 3), np.uint8)).size == (130, 150)
    seen = np.random.default_rng(0).integers(0, 256, (50, 20, 3), dtype=np.uint8)
    drawn = np.asarray(picture(seen))
    assert drawn.shape == (200, 80, 3) and (drawn == seen.repeat(4, axis=0).repeat(4, axis=1)).all()


def test_all_is_saved_before_a_film_is_asked_for(tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr(filming, "started", lambda *_: saved.append(verify(tmp_path / "run")) or Ended(0))
    list(td3.train(config(eval_every=50), tmp_path / "run"))
    (found,) = saved
    assert [name.split("-")[0] for name in found][-1] == "000000100"


# ---- what a graphics driver can do to a run ----


@pytest.fixture
def children(monkeypatch):
    """Every process that was started to film."""
    found, start = [], filming.started

    def started(*words):
        found.append(start(*words))
        return found[-1]

    monkeypatch.setattr(filming, "started", started)
    return found


@pytest.mark.parametrize(
    ("trouble", "what"),
    [("crash", "was killed by SIGSEGV"), ("exit", "ended with exit code 7"), ("raise", None)],
)
def test_a_film_that_takes_its_process_with_it_costs_the_run_nothing_and_is_told_once(
    trouble, what, tmp_path, monkeypatch, children
):
    monkeypatch.setattr(run_output, "Film", partial(Film, clock=lambda: 0.0))
    monkeypatch.setattr(filming, "EXPECTED", 0.0)
    events = []
    for event in td3.train(config(env_args={"trouble": trouble}, eval_every=25, checkpoint_every=25), tmp_path / "run"):
        events.append(event)
        if isinstance(event, td3.Saved) and children:
            children[0].wait(60)  # it has failed when the next film would be due
    assert events[-1].step == 100 and isinstance(events[-1], td3.Finished)
    notes = [(event.step, event.note) for event in events if isinstance(event, td3.Noted)]
    assert len(children) == 1 and not (tmp_path / "run" / "film.webp").exists()
    if what is None:
        assert notes == []
    else:
        ((step, note),) = notes
        assert step == 50 and what in note


def test_a_film_that_hangs_is_given_up_and_its_process_ends(tmp_path, monkeypatch, children):
    monkeypatch.setattr(run_output, "Film", partial(Film, at_the_end=1.0))
    events = list(td3.train(config(env_args={"trouble": "hang"}), tmp_path / "run"))
    assert isinstance(events[-1], td3.Finished) and events[-1].step == 100
    (note,) = [event for event in events if isinstance(event, td3.Noted)]
    assert "did not end in time" in note.note and note.step == 100
    assert [child.returncode for child in children] == [-9]


def test_the_command_ends_well_when_a_film_crashes(tmp_path, capsys):
    from td3.views.cli import main

    run, words = tmp_path / "run", ["--hidden", "8", "--batch-size", "8", "--threads", "1", "--warmup-steps", "20"]
    flags = ["--steps", "50", "--eval-every", "50", "--eval-episodes", "1", "--env-arg", "trouble=crash"]
    assert main(["train", "painted:Painted", "--run", str(run), *words, *flags]) == 0
    text = capsys.readouterr().err
    assert text.count("SIGSEGV") == 1 and "Traceback" not in text


def test_a_run_that_is_left_early_takes_its_film_along(tmp_path, monkeypatch, children):
    monkeypatch.setattr(run_output, "Film", partial(Film, clock=lambda: 0.0))
    monkeypatch.setattr(filming, "EXPECTED", 0.0)
    for event in td3.train(config(env_args={"trouble": "hang"}, eval_every=25, checkpoint_every=25), tmp_path / "run"):
        if event.step == 40:
            break
    del event
    assert [child.returncode for child in children] == [-9]


PARENT = """
import sys
sys.path.insert(0, {tests!r})
import td3
from painted import Painted
small = dict(hidden=(8,), batch_size=8, warmup_steps=20, threads=1, eval_episodes=1)
settings = dict(env_args={{"trouble": "hang", "log": {log!r}}}, steps=50, eval_every=50, **small)
list(td3.train(td3.Config(env=Painted, **settings), {run!r}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_film_does_not_outlive_a_killed_run(tmp_path):
    log = tmp_path / "log"
    os.mkfifo(log)
    code = PARENT.format(tests=str(Path(__file__).parent), log=str(log), run=str(tmp_path / "run"))
    with open(os.open(log, os.O_RDWR), "rb", buffering=0) as line:  # noqa: PTH123
        parent = subprocess.Popen([sys.executable, "-c", code])
        try:
            assert select.select([line], [], [], 120)[0]
            child = int(line.read(100).split()[0])
            assert child != parent.pid and alive(child)
        finally:
            parent.kill()
            parent.wait()
    while alive(child):  # for ever, if it outlived its parent: then the time limit of the test ends it
        os.sched_yield()


def test_a_run_can_be_resumed_without_films_and_stays_so(tmp_path, in_process):
    settings = config(eval_every=20)
    whole = played(settings, tmp_path / "whole")
    assert len(in_process) == 1
    for event in td3.train(settings, tmp_path / "run"):
        if event.step == 60:
            break
    del event
    in_process.clear()
    list(td3.resume(tmp_path / "run", env=Painted, film=False, steps=80))
    assert in_process == []
    session = Session.resumed(tmp_path / "run", {"steps": 100}, Painted, False)
    for _ in advance(session, 100):
        pass
    session.close()
    assert session.config.film is False and in_process == []
    assert bytes_of(session) == whole[0]


def test_the_command_resumes_without_films(tmp_path, in_process):
    from td3.views.cli import main

    list(td3.train(config(film=True), tmp_path / "run"))
    in_process.clear()
    assert main(["resume", str(tmp_path / "run"), "--steps", "200", "--no-film", "--trust", "--quiet"]) == 0
    assert in_process == [] and td3.load(tmp_path / "run").config.film is False


# ---- agents that see images ----

SEEING = {"encoder_channels": (2, 2), "encoder_features": 4, "buffer_size": 200}


@pytest.mark.usefixtures("in_process")
def test_an_agent_that_learns_from_what_is_drawn_is_filmed_at_the_pace_of_its_world(tmp_path, monkeypatch):
    monkeypatch.setattr(Painted, "metadata", {"render_modes": ["rgb_array"], "render_fps": 50})
    settings = {"pixels": 16, "grey": True, "frame_stack": 2, "action_repeat": 2, **SEEING}
    list(td3.train(config(**settings), tmp_path / "run"))
    found = frames((tmp_path / "run" / "film.webp").read_bytes())
    assert [size for size, _, _ in found] == [(240, 150)] * 5
    assert [grey for _, grey, _ in found] == pytest.approx([0, 40, 80, 120, 160], abs=6)
    assert [duration for _, _, duration in found] == [40] * 5  # two steps of the environment from frame to frame


@pytest.mark.usefixtures("in_process")
def test_a_world_that_is_drawn_small_for_its_agent_is_filmed_large_enough(tmp_path):
    list(td3.train(config(env="Pendulum-v1", pixels=24, steps=30, eval_every=30, **SEEING), tmp_path / "run"))
    film = Image.open(tmp_path / "run" / "film.webp")
    assert film.size == (192, 192)  # drawn at four times 24, each pixel two
    pixels = np.asarray(film.convert("RGB")).astype(int)
    assert pixels[0, 0].min() > 250  # white around …
    rod = (pixels[..., 0] > 170) & (pixels[..., 1] < 120)
    assert 0.01 < rod.mean() < 0.1  # … and a red rod


class Seen(Painted):
    """Its observation is an image already, and not what it draws for others."""

    observation_space = spaces.Box(0, 255, (8, 12), np.uint8)

    def _seen(self):
        return np.full((8, 12), 10 * self.count, np.uint8)


@pytest.mark.usefixtures("in_process")
def test_an_agent_with_a_history_is_filmed_as_it_was_evaluated(tmp_path):
    list(td3.train(config(env=Painted, history=3), tmp_path / "run"))
    assert len(frames((tmp_path / "run" / "film.webp").read_bytes())) == 10
    (artist,) = drawing()
    _, evaluated = (one for one in Painted.made if one.render_mode is None)
    assert artist.actions == evaluated.actions[:10]


@pytest.mark.usefixtures("in_process")
def test_a_world_that_is_an_image_already_is_filmed_as_it_draws_itself(tmp_path):
    list(td3.train(config(env=Seen, frame_stack=3, **SEEING), tmp_path / "run"))
    found = frames((tmp_path / "run" / "film.webp").read_bytes())
    assert [size for size, _, _ in found] == [(240, 150)] * 10
    assert [grey for _, grey, _ in found] == pytest.approx([20 * count for count in range(10)], abs=6)
    (artist,) = drawing()
    _, evaluated = (one for one in Painted.made if one.render_mode is None)
    assert artist.actions == evaluated.actions[:10]
