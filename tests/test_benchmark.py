"""`td3 bench`: it measures what it says, counts operations as one would by hand, and refuses what it does not know."""

import importlib.util
import json
import math

import numpy as np
import pytest
import torch
from engines import WHY_NOT

from td3.benchmark.cases import CASES, IMAGES, Case, ImageCase, operations
from td3.benchmark.libraries import StableBaselines, Td3Library, fill
from td3.benchmark.measurements import images_of, measure
from td3.benchmark.pixels import (
    EPISODE,
    Extractor,
    Kept,
    Passes,
    buffer_of,
    image_workloads,
    memories,
    model_of,
    passes,
    refusals,
    some_images,
    space_of,
    train,
)
from td3.benchmark.report import draw, tables
from td3.benchmark.rounds import REST, interleave
from td3.learner.encoders import ImageEncoder
from td3.views import cli

SMALL = ImageCase("small", 2, 16, 3, 2, (4, 4), 6, (8,), batch=4, rows=150, share=10, stretch=3)


def test_the_operations_of_an_update_are_counted_right():
    # By hand: one unit each, batch 1. The actor has 2 products, a critic 1 · 2 + 1 = 3, of which 1 is not its inputs'.
    tiny = Case("tiny", 1, 1, (1,), 1)
    critics_only = 2 + 6 * 3 + 2 * 1
    delayed = 2 + 3 + (1 + 1) + 2 + 1  # actor, critic, back to the action, the actor's weights, and back
    assert operations(tiny) == 2 * (critics_only + delayed / 2)
    assert operations(tiny, policy_delay=1) == 2 * (critics_only + delayed)
    assert operations(CASES["author"]) == pytest.approx(413.5e6, rel=1e-3)


def test_rounds_are_interleaved_and_the_best_and_the_middle_are_told(monkeypatch):
    now, order = [0.0], []
    monkeypatch.setattr("td3.benchmark.rounds.time.perf_counter", lambda: now[0])
    monkeypatch.setattr("td3.benchmark.rounds.time.sleep", lambda seconds: order.append(seconds))

    def run_at(name, seconds_each):
        def run(count):
            order.append(name)
            now[0] += count * next(seconds_each)

        return run

    slow = run_at("slow", iter([0.02] * 2 + [9, 0.02, 9, 0.04, 9, 0.01]))  # before each round a few untimed
    fast = run_at("fast", iter([0.001] * 10))
    speeds = interleave({"slow": slow, "fast": fast}, rounds=3, seconds=0.32)
    assert order[-18:] == [REST, "slow", "slow", REST, "fast", "fast"] * 3
    assert (speeds["slow"].best, speeds["slow"].median) == pytest.approx((100, 50))
    assert (speeds["fast"].best, speeds["fast"].median) == pytest.approx((1000, 1000))


def test_a_small_benchmark_runs_in_a_process_of_its_own_and_answers_json(capsys):
    assert (
        cli.main(
            ["bench", "--threads", "1", "--sections", "updates,acting", "--cases", "small", "--rounds", "1", "--json"]
        )
        == 0
    )
    result = json.loads(capsys.readouterr().out)
    (run,) = result["runs"]
    ours = ["td3 torch"] if WHY_NOT else ["td3 native", "td3 torch"]
    assert run["threads"] == 1 and list(run["libraries"])[: len(ours)] == ours
    speeds = run["updates"]["small"]["speeds"]
    assert all(speeds[name]["best"] > 1 for name in ours)
    if not WHY_NOT:
        share = speeds["td3 native"]["best"] * operations(CASES["small"]) / 1e9 / run["peak_gflops"]
        assert 0 < share < 10  # below 1, but for a machine that is busy while the peak is measured


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--cases", "smal"], "--cases must be of small, author, paper, large, wide; got 'smal'. Did you mean small?"),
        (["--threads", "0"], "--threads must be a whole number, at least 1; got '0'."),
        (["--threads", "1,4096"], "--threads must be at most"),
        (["--sections", "all"], "--sections must be of updates, steps, acting, growth, pixels; got 'all'."),
        (["--picture", "speed.foo"], "--picture must be a .png or .svg in a folder that exists; got 'speed.foo'."),
        (["--picture", "nowhere/speed.png"], "--picture must be a .png or .svg in a folder that exists"),
        (["--rounds", "few"], "--rounds must be a whole number, at least 1; got 'few'."),
    ],
)
def test_what_it_does_not_know_is_refused_in_one_sentence(words, sentence, capsys):
    assert cli.main(["bench", *words]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"td3: {sentence}") and said.count("\n") == 1


@pytest.fixture
def peer():
    if not importlib.util.find_spec("stable_baselines3"):
        pytest.skip("Stable-Baselines3 is not installed")
    return StableBaselines("Stable-Baselines3", "stable_baselines3", "stable_baselines3")


def test_the_images_are_stacks_of_episodes_each_with_a_beginning_and_an_end():
    rows = some_images(SMALL)
    before, after = (SMALL.layout.frames(seen) for seen in (rows.observation, rows.next_observation))
    assert len(rows.reward) == 150 and before.shape == (150, 3, 2 * 16 * 16)
    assert (before[:, 1:] == after[:, :-1]).all() and (before[:, 2] != after[:, 2]).any(axis=1).all()
    assert np.flatnonzero(rows.first).tolist() == [0, EPISODE] and np.flatnonzero(rows.terminated).tolist() == [99]
    assert (before[[0, EPISODE]] == before[[0, EPISODE], :1]).all()  # an episode's first frame fills its first stack
    assert (before[1:EPISODE] == after[: EPISODE - 1]).all() and (before[EPISODE] != after[EPISODE - 1]).any()


def test_ours_goes_through_the_encoder_twice_forward_and_once_back():
    found = [Td3Library("torch")] if WHY_NOT else [Td3Library("native"), Td3Library("torch")]
    (workload,) = image_workloads(SMALL, found, some_images(SMALL))
    assert (workload.name, passes(workload)) == ("td3 torch", Passes(2, 1))
    assert not any(encoder._forward_hooks for encoder in workload.encoders)  # nothing is left to slow it down


def test_a_transition_of_images_has_the_bytes_one_counts_by_hand():
    (kept,) = memories(SMALL, [Td3Library("torch")], some_images(SMALL))
    # 150 moments. Each has a frame, action, reward, terminated, begins, env, its neighbours, and how far it reaches.
    each = 2 * 16 * 16 + 2 * 4 + 4 + 1 + 1 + 4 + 2 * 8 + 8
    # 152 were written: the first two are gone, with them the stacks of the next three; and an episode begins.
    assert kept == Kept("td3", 150 * each, 150 - 3 - 1)


def test_the_peer_remembers_the_same_images_in_the_bytes_one_counts_by_hand(peer):
    rows = some_images(SMALL)
    buffer = buffer_of("ReplayBuffer", SMALL.rows, space_of(SMALL), SMALL.actions)
    fill(buffer, rows)
    assert (buffer.observations.reshape(150, -1) == rows.observation).all()
    assert (buffer.next_observations.reshape(150, -1) == rows.next_observation).all()
    assert (buffer.dones[:, 0] == rows.terminated).all() and (buffer.actions[:, 0] == rows.action).all()
    stack, others = 3 * 2 * 16 * 16, 2 * 4 + 3 * 4  # action; reward, done and timeout
    assert list(memories(SMALL, [peer], rows)) == [
        Kept("Stable-Baselines3", 150 * (2 * stack + others), 150),
        Kept("Stable-Baselines3, optimize_memory_usage", 150 * (stack + others), 149),
    ]


def test_the_peer_learns_with_the_very_layers_of_our_encoder(peer):
    (part,) = SMALL.layout.parts
    eye = ImageEncoder(part, SMALL.stack, SMALL.encoder_channels, SMALL.encoder_features)
    rows = torch.from_numpy(some_images(SMALL).observation[:5])
    for shared, count in ((False, 4), (True, 2)):
        model = model_of(SMALL, peer, shared)
        networks = (model.actor, model.critic, model.actor_target, model.critic_target)
        theirs = {network.features_extractor for network in networks}
        assert len(theirs) == count and all(isinstance(one, Extractor) for one in theirs)
        layers = model.critic.features_extractor
        eye.load_state_dict(dict(zip(eye.state_dict(), layers.state_dict().values(), strict=True)))
        pixels = rows.reshape(5, *space_of(SMALL).shape) / 255 - 0.5
        torch.testing.assert_close(layers(pixels), eye(rows.reshape(5, SMALL.stack, -1)))
        assert [tuple(one.shape) for one in model.actor.mu.parameters()][::2] == [(8, 6), (2, 8)]


def test_the_shared_encoder_of_the_peer_is_moved_by_the_actor_alone(peer):
    for shared, moved in ((False, [True, True]), (True, [False, True])):
        model = model_of(SMALL, peer, shared)
        fill(model.replay_buffer, some_images(SMALL))
        found = []
        for _ in range(2):  # the second update moves the actor too
            before = [one.clone() for one in model.critic.features_extractor.parameters()]
            train(model, SMALL.batch, 1)
            after = model.critic.features_extractor.parameters()
            found.append(not all(map(torch.equal, before, after)))
        assert found == moved


def test_the_section_of_pixels_measures_all_there_are_side_by_side(peer, monkeypatch):
    monkeypatch.setattr("td3.benchmark.measurements.IMAGES", {"small": SMALL})
    said, threads = [], torch.get_num_threads()
    run = measure(threads, sections=["pixels"], cases=[], rounds=20, seconds=1e-4, say=said.append)
    assert said == ["images, small, 3 frames of 16×16×2 (4-4 → 6, 8, batch 4, 2 actions) …"]
    found = json.loads(json.dumps(run))["pixels"]
    one = found["cases"]["small"]
    each, shared = "Stable-Baselines3, an encoder each", "Stable-Baselines3, one shared"
    assert list(one["speeds"]) == ["td3 torch", each, shared] and one["rounds"] == 2
    assert all(speed["best"] >= speed["median"] > 0 for speed in one["speeds"].values())
    assert one["passes"][each] == {"forward": 4, "back": 1.5}
    assert one["passes"][shared] == {"forward": 4, "back": 0.5}
    assert list(found["refused"]) == ["to know a time limit from an end", "to keep a Dict"]
    assert all("not support optimize_memory_usage" in refusal for refusal in found["refused"].values())
    assert ImageCase(**one["case"])._replace(encoder_channels=(4, 4), hidden=(8,)) == SMALL  # JSON has lists
    assert tables({"runs": [run]}) == tables({"runs": [json.loads(json.dumps(run))]})


def test_a_round_of_images_is_as_much_longer_as_its_case_says(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "td3.benchmark.measurements.interleave", lambda runs, *rest: asked.append((list(runs), *rest)) or {}
    )
    images_of(SMALL, [Td3Library("torch")], rounds=40, seconds=0.5, say=lambda _: None)
    assert asked == [(["td3 torch"], 4, 1.5)]


def test_where_no_peer_is_installed_the_pixels_are_ours_alone(monkeypatch):
    monkeypatch.setattr("td3.benchmark.measurements.IMAGES", {"small": SMALL})
    monkeypatch.setattr("td3.benchmark.measurements.libraries", lambda: iter([Td3Library("torch")]))
    run = measure(torch.get_num_threads(), sections=["pixels"], cases=[], rounds=1, seconds=1e-4, say=lambda _: None)
    one = run["pixels"]["cases"]["small"]
    assert list(one["speeds"]) == list(one["passes"]) == ["td3 torch"] and list(one["bytes"]) == ["td3"]
    assert run["pixels"]["refused"] == refusals([]) == {}
    text = tables({"runs": [run]})
    assert "| images and networks | td3 torch |\n" in text and "| images | td3 |\n" in text
    assert "forward and back: td3 torch 2 and 1.\n" in text and "Stable" not in text and "optimize" not in text


def speed(best):
    return {"best": best, "median": best / 2}


def result(peak=100.0):
    growth = {"32": {**speed(900.0), "gflops": 40.0}, "64": {**speed(500.0), "gflops": 45.0}}
    case = CASES["author"]
    run = {
        "threads": 2,
        "rounds": 3,
        "peak_gflops": peak,
        "libraries": {"td3 native": "native avx2", "Peer": "1.0"},
        "updates": {
            "author": {
                "case": case._asdict(),
                "operations": 5e8,
                "speeds": {"td3 native": speed(160.0), "Peer": speed(40.0)},
            }
        },
        "steps": {
            "env": "HalfCheetah-v5",
            "case": case._asdict(),
            "speeds": {"td3 native": speed(150.0), "Peer": speed(50.0)},
            "around": {"update": 2_600.0, "env": 200.0, "around": 200.0},
        },
        "acting": {"case": case._asdict(), "speeds": {"td3 native": speed(50_000.0)}},
        "growth": {
            "engine": "td3 native",
            "batch": growth,
            "width": growth,
            "environments": {"1": speed(150.0)},
            "memory": {"5,000": speed(160.0)},
        },
        "pixels": {
            "cases": {
                "colour": {
                    "case": IMAGES["colour"]._asdict(),
                    "rounds": 4,
                    "passes": {"td3 torch": {"forward": 2.0, "back": 1.0}, "Peer": {"forward": 4.0, "back": 1.5}},
                    "speeds": {"td3 torch": speed(25.0), "Peer": speed(12.5)},
                    "bytes": {"td3": 21_226.0, "Peer": 127_044.0},
                }
            },
            "refused": {"to fly": "I can not."},
        },
    }
    return {"machine": "any", "runs": [json.loads(json.dumps(run))]}


def test_the_tables_tell_speeds_shares_and_ratios():
    text = tables(result())
    assert "| author (256-256, batch 256, 17 → 6) | 160 (80) | 40 (20) | 0.80 | 4.0 × |" in text
    assert "| author (256-256, batch 256, 17 → 6) | 150 (75) | 50 (25) | 3.0 × |" in text
    assert "all else (acting, storing, sampling, bookkeeping) 200 µs: 6.7%." in text
    assert "td3 native 20.0 µs" in text and "| of peak | 0.40 | 0.45 |" in text
    seen = "colour, 3 frames of 84×84×3"
    assert "the best of 4 interleaved rounds" in text
    assert f"| {seen} (16-32-32 → 50, 256-256, batch 64, 6 actions) | 25.0 (12.5) | 12.5 (6.2) | 2.0 × |" in text
    assert "td3 torch 2 and 1; Peer 4 and 1.5. Ours is moved by the critics' loss;" in text
    assert f"| {seen} | 21,226 | 127,044 | 6.0 × |" in text and '- to fly: "I can not."' in text
    assert "of peak" not in tables(result(math.nan)) and "nan" not in tables(result(math.nan))


def test_the_picture_is_drawn(tmp_path):
    draw(result(), tmp_path / "speed.png")
    assert (tmp_path / "speed.png").read_bytes().startswith(b"\x89PNG")
