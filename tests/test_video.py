"""Videos of an agent: what they show is what the agent does, earns and expects; and a failed one leaves no trace."""

import json

import gymnasium
import imageio_ffmpeg
import numpy as np
import pytest
import runs
from PIL import Image
from refusals import check_names

import td3
from td3.config import Config
from td3.video import Moment, Panel, Video, play
from td3.video.episodes import episode_seeds
from td3.video.panel import BLUE, ORANGE
from td3.views.cli import main


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("video") / "run"
    list(td3.train(Config(**{**runs.SMALL, "steps": 60, "threads": 1}), folder))
    return folder


def moment(**changes):
    known = {"episode": 0, "step": 0, "frame": np.zeros((64, 64, 3), np.uint8), "action": np.array([1.0, -0.5])}
    return Moment(**{**known, "earned": 0.0, "values": (1.0, 2.0), **changes})


def blue(image, left, right):
    """Returns the share of the columns from `left` to `right` that are blue in some row: how far bars reach."""
    pixels = np.asarray(image)[:, left:right]
    return (pixels == BLUE).all(axis=2).any(axis=0).mean()


# ---- episodes ----


def test_an_episode_shows_every_step_and_the_return_that_td3_evaluate_reports(run):
    agent = td3.load(run)
    with play(agent, 64) as playback:
        moments = list(playback.episode(0, episode_seeds(7, 1)[0], None))
    assert [one.step for one in moments] == [*range(200), 200]
    assert [one.last for one in moments] == [False] * 200 + [True]
    assert moments[-1].earned == pytest.approx(td3.evaluate(agent, 1, 7).returns[0], rel=1e-6)
    assert playback.rate == 30.0  # Pendulum's own pace


def test_the_values_are_those_of_both_critics_in_the_environments_rewards(run):
    agent = td3.load(run)
    observation, action = np.ones((3, 3), np.float32), np.full((3, 1), 0.5, np.float32)
    both = agent.values(observation, action)
    session = td3.training.Session.of(run, None)
    assert both.shape == (3, 2)
    assert both[:, 0] == pytest.approx(session.learner.value(observation, action), rel=1e-5)
    assert both[:, 1] != pytest.approx(both[:, 0], rel=1e-3)
    session.close()


def test_only_the_first_seconds_are_played_if_so_many_are_asked_for(run):
    with play(td3.load(run), 64) as playback:
        assert [one.step for one in playback.episode(0, 1, most=5)] == [0, 1, 2, 3, 4, 5]


# ---- the panel ----


def test_a_bar_reaches_as_far_from_the_middle_as_the_action(run):
    panel = Panel(480, "Env-v0", "")
    width = 480 + panel.width
    images = [panel.beside(moment(action=np.array([action]), values=None)) for action in (0.0, 0.5, -1.0)]
    middle = 480 + panel.width // 2
    bars = [image.crop((0, 400, width, 480)) for image in images]
    inside = panel.width / 2 - panel.unit
    reach = [(blue(one, 480, middle) * panel.width / 2, blue(one, middle, width) * panel.width / 2) for one in bars]
    assert reach[1][1] == pytest.approx(0.5 * inside, abs=2.5) and reach[1][0] < 2
    assert reach[2][0] == pytest.approx(inside, abs=2.5) and reach[2][1] < 2
    assert max(reach[0]) < 2


def test_curves_begin_anew_with_each_episode_and_infinite_values_are_left_out():
    panel = Panel(480, "Env-v0", "")
    for step in range(5):
        panel.beside(moment(step=step, earned=float(step), values=(np.inf, np.nan)))
    assert panel._earned == [0, 1, 2, 3, 4]
    image = panel.beside(moment(episode=1, earned=7.0))
    assert panel._earned == [7.0] and panel._values == [(1.0, 2.0)]
    assert (np.asarray(image) == ORANGE).all(axis=2).any()  # the number of the first critic


@pytest.mark.parametrize(
    ("frame", "size"), [((64, 64), (480, 480)), ((100, 151), (724, 480)), ((500, 333), (320, 480))]
)
def test_frames_of_any_shape_have_an_even_size_beside_the_panel(frame, size):
    panel = Panel(480, "a name that is far too long for the width of this panel " * 3, "")
    image = panel.beside(moment(frame=np.zeros((*frame, 3), np.uint8), action=np.zeros(30)))
    assert image.size == (size[0] + panel.width, size[1])
    assert not image.width % 2


# ---- files ----


@pytest.mark.parametrize("ending", [".mp4", ".webp", ".gif"])
def test_each_format_can_be_read_again_with_all_its_frames(ending, tmp_path):
    path = tmp_path / f"film{ending}"
    with Video(path, 20.0) as video:
        for shade in range(0, 240, 24):
            video.add(Image.new("RGB", (128, 64), (shade, 0, 255 - shade)))
    if ending == ".mp4":
        assert imageio_ffmpeg.count_frames_and_secs(str(path)) == (10, 0.5)
    else:
        with Image.open(path) as found:
            assert (found.n_frames, found.size) == (10, (128, 64))
            found.seek(1)
            found.load()
            assert found.info["duration"] == 50  # milliseconds
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_what_fails_half_way_leaves_the_file_that_was_there(tmp_path):
    path = tmp_path / "film.mp4"
    path.write_text("the old one")
    video = Video(path, 20.0)
    video.add(Image.new("RGB", (64, 64)))
    video.__exit__(ZeroDivisionError, None, None)
    assert path.read_text() == "the old one" and len(list(tmp_path.iterdir())) == 1


def test_a_file_of_pictures_keeps_its_length_when_memory_is_full_and_is_not_written_after_an_error(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("td3.video.files.MOST_BYTES", 3 * 64 * 64 * 8)  # eight frames
    with Video(tmp_path / "long.gif", 30.0) as video:
        for number in range(30):
            video.add(Image.new("RGB", (64, 64), (8 * number, 0, 0)))
    times = []
    with Image.open(tmp_path / "long.gif") as found:
        for number in range(found.n_frames):
            found.seek(number)
            times.append(found.info["duration"])
    assert found.n_frames == 8 and sum(times) == pytest.approx(1_000, abs=70)  # a second, every fourth frame
    broken = Video(tmp_path / "broken.webp", 30.0)
    broken.add(Image.new("RGB", (64, 64)))
    monkeypatch.setattr(Image.Image, "save", lambda *_, **__: pytest.fail("nothing is written after an error"))
    broken.__exit__(KeyboardInterrupt, None, None)
    assert not (tmp_path / "broken.webp").exists()


# ---- the command ----


def test_the_command_writes_the_episodes_and_says_what_they_earned(run, tmp_path, capsys):
    film = tmp_path / "film.mp4"
    words = ["video", str(run), str(film), "--episodes", "2", "--seconds", "0.2", "--size", "65", "--json"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["frames"], found["rate"], len(found["returns"])) == (14, 30.0, 2)  # two times six steps and an end
    assert imageio_ffmpeg.count_frames_and_secs(str(film))[0] == 14
    assert main([*words[:2], str(tmp_path / "alone.webp"), "--seconds", "0.1", "--size", "64", "--no-panel"]) == 0
    with Image.open(tmp_path / "alone.webp") as alone:
        assert alone.size == (64, 64)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["film.avi"], ["FILE", "film.avi", ".mp4"]),
        (["nowhere/film.mp4"], ["FILE", "nowhere/film.mp4"]),
        (["film.mp4", "--size", "9"], ["--size", "9", 64]),
        (["film.mp4", "--seconds", "-1"], ["--seconds", "-1"]),
        (["film.mp4", "--seconds", "nan"], ["--seconds", "nan"]),
        (["film.mp4", "--episodes", "0"], ["--episodes", "0"]),
        (["film.mp4", "--checkpoint", "7"], ["7"]),
    ],
)
def test_bad_input_is_refused_by_name_and_nothing_is_written(words, names, run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["video", str(run), *words]) == 2
    check_names(capsys.readouterr().err, *names)
    assert not list(tmp_path.iterdir())


class Unseen(gymnasium.Env):
    """An environment that renders nothing."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), 0.0, False, True, {}


def test_an_environment_that_renders_nothing_or_needs_trust_is_refused(tmp_path, capsys):
    list(
        td3.train(Config(**{**runs.SMALL, "env": Unseen, "steps": 40, "eval_every": 0, "threads": 1}), tmp_path / "run")
    )
    assert main(["video", str(tmp_path / "run"), str(tmp_path / "film.mp4")]) == 2
    check_names(capsys.readouterr().err, "env", "--trust")
    assert main(["video", str(tmp_path / "run"), str(tmp_path / "film.mp4"), "--env", "test_video:Unseen"]) == 2
    check_names(capsys.readouterr().err, "env", "test_video:Unseen")
    assert not (tmp_path / "film.mp4").exists()
