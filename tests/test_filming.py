"""Films: one evaluated episode, drawn apart from the run; what cannot be drawn is not there, and never a failure."""

import io
import random
import sys
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from test_recording import Clock, played
from test_training import bytes_of

import td3
from td3 import filming, training
from td3.config import Config
from td3.filming import Film, apart, picture
from td3.keeping import verify
from td3.training import Session

Image = pytest.importorskip("PIL.Image")
SMALL = {"hidden": (8,), "batch_size": 8, "warmup_steps": 20, "threads": 1, "eval_episodes": 2, "log_every": 50}


class Painted(gymnasium.Env):
    """Shows its step as a grey and its seed's number as a height; ends after `length` steps."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)
    metadata = {"render_modes": ["human", "rgb_array"], "render_fps": 25}
    length, made = 10, []

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self.actions, self.seeds, self.drawn, self.closed = [], [], 0, 0
        Painted.made.append(self)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count, self.place = 0, self.np_random.normal()
        self.seeds.append(seed)
        return self._seen(), {}

    def step(self, action):
        self.count += 1
        self.actions.append(float(action[0]))
        return self._seen(), float(action[0]), False, self.count == self.length, {}

    def _seen(self):
        return np.array([self.count / 10, self.place], np.float32)

    def close(self):
        self.closed += 1

    def render(self):
        assert self.render_mode == "rgb_array"
        self.drawn += 1
        return np.full((300, 480, 3), 20 * (self.count % 12), np.uint8)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    monkeypatch.setattr(Painted, "made", [])
    monkeypatch.setattr(Painted, "length", 10)


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


def test_the_film_is_the_first_evaluated_episode_without_noise(tmp_path):
    list(td3.train(config(), tmp_path / "run"))
    data = (tmp_path / "run" / "film.webp").read_bytes()
    found = frames(data)
    assert [size for size, _, _ in found] == [(240, 150)] * 10
    assert [grey for _, grey, _ in found] == pytest.approx([20 * count for count in range(10)], abs=6)
    assert [duration for _, _, duration in found] == [40] * 10
    (artist,) = drawing()
    _, judge = (one for one in Painted.made if one.render_mode is None)
    assert artist.seeds[0] == judge.seeds[0] and artist.actions == judge.actions[:10]
    assert artist.drawn == 10 and judge.drawn == 0
    assert sorted(one.name for one in (tmp_path / "run").iterdir() if "film" in one.name) == ["film.webp"]
    assert not list(verify(tmp_path / "run").values())[-1]


def test_of_a_long_episode_every_so_manyth_step_is_drawn_and_the_film_never_crawls(tmp_path, monkeypatch):
    monkeypatch.setattr(Painted, "length", 450)
    list(td3.train(config(eval_episodes=1), tmp_path / "run"))
    (artist,) = drawing()
    assert artist.drawn == 150 and len(artist.actions) == 450 and apart(450) == 3
    assert sum(duration for *_, duration in frames((tmp_path / "run" / "film.webp").read_bytes())) == 150 * 50
    assert [apart(length) for length in (1, 200, 201, 1_000, 1_001)] == [1, 1, 2, 5, 6]


def film_of(path, clock=None, env=Painted, judges=None):
    return Film(path, env, [Painted()] if judges is None else judges, [], clock or Clock())


still = lambda rows: np.zeros((len(rows), 1), np.float32)


def test_drawing_stops_after_three_seconds_and_what_there_is_is_kept(tmp_path, monkeypatch):
    clock, step = Clock(), Painted.step

    def slow(self, action):
        clock.now += 0.7
        return step(self, action)

    monkeypatch.setattr(Painted, "step", slow)
    film = film_of(tmp_path / "film.webp", clock)
    film.offer(still, 1, 10, last=True)
    assert drawing()[0].drawn == 5 and len(frames((tmp_path / "film.webp").read_bytes())) == 5


def test_a_hundredth_of_the_time_goes_into_films_and_the_end_is_always_filmed(tmp_path, monkeypatch):
    clock, step = Clock(), Painted.step

    def slow(self, action):
        clock.now += 0.1
        return step(self, action)

    monkeypatch.setattr(Painted, "step", slow)
    film, filmed = film_of(tmp_path / "film.webp", clock), []
    for minute in range(1, 21):
        before = film.allowance.seconds
        film.offer(still, minute, 10, last=minute == 20)
        if film.allowance.seconds > before:
            filmed.append(minute)
        clock.now = 60.0 * minute
    assert filmed == [3, 5, 7, 9, 11, 13, 15, 17, 19, 20]  # a second each, a hundred seconds and more apart


FAILURES = {
    "raises": lambda self: 1 / 0,
    "exits": lambda self: sys.exit(3),
    "draws nothing": lambda self: None,
    "draws text": lambda self: "a picture",
    "draws floats": lambda self: np.zeros((4, 4, 3)),
    "draws a list": lambda self: [np.zeros((4, 4, 3), np.uint8)] * 2,
    "warns and draws": None,
}


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
    monkeypatch.setattr(training, "Film", partial(Film, clock=lambda: 0.0))
    monkeypatch.setattr(filming, "EXPECTED", 0.0)
    events = list(td3.train(config(eval_every=25, checkpoint_every=25), tmp_path / "run"))
    assert events[-1].step == 100 and not any(isinstance(event, td3.SaveFailed) for event in events)
    assert (tmp_path / "run" / "film.webp").exists() == (failure == "warns and draws")
    assert [one.drawn for one in drawing()] == ([10] * 4 if failure == "warns and draws" else [1])
    assert all(one.closed == 1 for one in drawing())


def test_without_pillow_or_a_disk_there_is_no_film_and_no_failure(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert list(td3.train(config(), tmp_path / "run"))[-1].step == 100
    assert not (tmp_path / "run" / "film.webp").exists()
    monkeypatch.delitem(sys.modules, "PIL")
    film = film_of(tmp_path / "nowhere" / "film.webp")
    film.offer(still, 1, 10, last=True)
    film.offer(still, 1, 10, last=True)
    assert [one.drawn for one in drawing()] == [1, 10]  # once, and then not again


class Plain(Painted):
    metadata = {"render_modes": []}


def no_arguments():
    return Painted()


def vector(render_mode=None):
    from gymnasium.vector import SyncVectorEnv

    return SyncVectorEnv([partial(Painted, render_mode), partial(Painted, render_mode)])


@pytest.mark.parametrize("env", [Plain, no_arguments, vector])
def test_what_cannot_be_asked_to_draw_itself_is_not_filmed(env, tmp_path):
    assert list(td3.train(config(env=env), tmp_path / "run"))[-1].step == 100
    assert not (tmp_path / "run" / "film.webp").exists()
    assert all(one.drawn == 0 for one in Painted.made)


def test_what_draws_arrays_without_being_asked_is_filmed(tmp_path):
    assert list(td3.train(config(env=lambda: Painted("rgb_array")), tmp_path / "run"))[-1].step == 100
    assert len(frames((tmp_path / "run" / "film.webp").read_bytes())) == 10
    assert sorted(one.drawn for one in Painted.made) == [0, 0, 10]  # neither where it trains nor where it is judged


def test_no_film_is_made_in_an_environment_that_trains_or_judges(tmp_path):
    shared = Painted("rgb_array")
    film = film_of(tmp_path / "film.webp", env=lambda render_mode=None: shared, judges=[shared])
    film.offer(still, 1, 10, last=True)
    assert shared.drawn == 0 and shared.actions == [] and not (tmp_path / "film.webp").exists()


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
    render = Painted.render

    def careless(self):
        random.random(), np.random.rand(3)
        import torch

        torch.rand(3)
        return render(self)

    monkeypatch.setattr(Painted, "render", careless)
    monkeypatch.setattr(training, "Film", partial(Film, clock=lambda: 0.0))
    found = []
    for film in (True, False):
        random.seed(1), np.random.seed(1)
        told = played(config(eval_every=20, film=film), tmp_path / str(film))
        found.append((told, random.random(), np.random.rand()))
    assert found[0] == found[1]
    assert (tmp_path / "True" / "film.webp").exists() and not (tmp_path / "False" / "film.webp").exists()


def test_a_run_without_a_folder_or_without_evaluations_is_not_filmed(tmp_path):
    session = Session(config())
    for _ in session.advance(100):
        pass
    session.close()
    list(td3.train(config(eval_every=0), tmp_path / "run"))
    assert drawing() == [] and not (tmp_path / "run" / "film.webp").exists()


def test_a_resumed_run_ends_with_the_same_bytes_films_or_not(tmp_path):
    settings = config(eval_every=40)
    whole = played(settings, tmp_path / "whole")
    for event in td3.train(settings, tmp_path / "run"):
        if event.step == 60:
            break
    del event
    session = Session.resumed(tmp_path / "run", {}, Painted, False)
    for _ in session.advance(100):
        pass
    session.close()
    assert bytes_of(session) == whole[0]


def test_time_spent_filming_is_not_slowness(tmp_path, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(training.time, "perf_counter", clock)

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
    film = film_of(place)
    film.offer(still, 1, 10, last=True)
    assert not place.is_symlink() and len(frames(place.read_bytes())) == 10 and other.read_text() == "mine"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["film.webp", "other"]


def test_pictures_are_no_larger_than_needed_and_small_ones_are_enlarged_pixel_by_pixel():
    assert picture(np.zeros((480, 640, 3), np.uint8)).size == (240, 180)
    assert picture(np.zeros((480, 480, 4), np.uint8)).size == (240, 240)
    assert picture(np.zeros((150, 130, 3), np.uint8)).size == (130, 150)
    seen = np.random.default_rng(0).integers(0, 256, (50, 20, 3), dtype=np.uint8)
    drawn = np.asarray(picture(seen))
    assert drawn.shape == (200, 80, 3) and (drawn == seen.repeat(4, axis=0).repeat(4, axis=1)).all()


def test_all_is_saved_before_a_film_is_drawn(tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr(Painted, "render", lambda self: saved.append(verify(tmp_path / "run")) or 1 / 0)
    list(td3.train(config(eval_every=50), tmp_path / "run"))
    (found,) = saved
    assert [name.split("-")[0] for name in found][-1] == "000000100"


# ---- agents that see images ----

SEEING = {"encoder_channels": (2, 2), "encoder_features": 4, "buffer_size": 200}


def test_an_agent_that_learns_from_what_is_drawn_is_filmed_at_the_pace_of_its_world(tmp_path, monkeypatch):
    monkeypatch.setattr(Painted, "metadata", {"render_modes": ["rgb_array"], "render_fps": 50})
    settings = {"pixels": 16, "grey": True, "frame_stack": 2, "action_repeat": 2, **SEEING}
    list(td3.train(config(**settings), tmp_path / "run"))
    found = frames((tmp_path / "run" / "film.webp").read_bytes())
    assert [size for size, _, _ in found] == [(240, 150)] * 5
    assert [grey for _, grey, _ in found] == pytest.approx([0, 40, 80, 120, 160], abs=6)
    assert [duration for _, _, duration in found] == [40] * 5  # two steps of the world from frame to frame


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


def test_a_world_that_is_an_image_already_is_filmed_as_it_draws_itself(tmp_path):
    list(td3.train(config(env=Seen, frame_stack=3, **SEEING), tmp_path / "run"))
    found = frames((tmp_path / "run" / "film.webp").read_bytes())
    assert [size for size, _, _ in found] == [(240, 150)] * 10
    assert [grey for _, grey, _ in found] == pytest.approx([20 * count for count in range(10)], abs=6)
    (artist,) = drawing()
    _, judge = (one for one in Painted.made if one.render_mode is None)
    assert artist.actions == judge.actions[:10]
