"""The live page says nothing false: about other runs, lost servers, steps not reached, settings, and seeds."""

import shutil

import browser
import msgspec
import pytest
from browser import opened, visiting
from folders import append, make_run

from td3.config import Config
from td3.storage import RunFolder
from td3.training import train
from td3.views.web import live
from td3.views.web.runs import Watched
from td3.views.web.server import Page


@pytest.fixture(scope="module")
def page():
    with browser.browsing() as page:
        yield page


@pytest.fixture(autouse=True)
def quiet_page(page):
    with browser.quiet(page):
        yield


def curve(*values, name="eval/mean_return"):
    return [{"step": 100 * n, name: value} for n, value in enumerate(values, start=1)]


def values(page, chart="eval/mean_return"):
    """What the last line of a chart shows."""
    return page.evaluate("(chart) => document.querySelector(`[data-chart='${chart}']`).data.at(-1).y", chart)


def shows(page, wanted, chart="eval/mean_return"):
    """Waits until the last line of a chart shows these values."""
    page.wait_for_function(
        "([chart, wanted]) => String(document.querySelector(`[data-chart='${chart}']`).data?.at(-1)?.y) === wanted",
        arg=[chart, ",".join(map(str, wanted))],
    )
    assert values(page, chart) == wanted


def said(page, place, words):
    """Waits until this place says these words, and returns all it says."""
    page.wait_for_function(
        "([place, words]) => document.querySelector(place)?.innerText.includes(words)", arg=[place, words]
    )
    return page.locator(place).inner_text()


# ---- who answers ----


@pytest.mark.parametrize("view", ["run", "steps"])
def test_an_old_tab_shows_no_other_runs_numbers_and_says_who_answers(page, tmp_path, view):
    first = make_run(tmp_path / "first", curve(1.0, 2.0))
    second = make_run(tmp_path / "second", curve(7.0, 8.0, 9.0))
    with visiting(page, first) as address:
        opened(page, f"{address}{view}?id={Watched(first, first).id}")
        page.server.end()
        page.server.page = Page(second)  # another `--watch` on the same port
        notice = said(page, "#problem", "Another page answers")
        assert "“second”" in notice and f"td3 watch {first}" in notice
        if view == "run":
            assert page.locator("#name").inner_text() == "first"
            assert values(page) == [1, 2]
    assert all("404" in one for one in page.complaints)  # it asked for its own run
    page.complaints.clear()


def test_another_run_that_takes_the_place_of_the_first_is_shown_with_a_notice(page, tmp_path):
    run = make_run(tmp_path / "run", curve(1.0, 2.0), Config(seed=1).to_data())
    with visiting(page, tmp_path) as address:
        opened(page, f"{address}run?id={Watched(tmp_path, run).id}")
        shutil.rmtree(run)
        make_run(run, curve(5.0, 6.0, 7.0), Config(seed=2).to_data())
        said(page, "#line", "Another run has begun in this folder")
        said(page, "#seed", "seed 2")
        assert page.locator("[data-setting=seed] td").text_content() == "2"
        shows(page, [5, 6, 7])
    page.complaints.clear()  # for a moment there was none


def test_a_list_that_is_answered_by_another_folder_says_so(page, tmp_path):
    make_run(tmp_path / "one/a", curve(1.0))
    make_run(tmp_path / "two/b", curve(1.0))
    with visiting(page, tmp_path / "one") as address:
        opened(page, address)
        page.server.end()
        page.server.page = Page(tmp_path / "two")
        assert said(page, "#line", "This address") == "This address now shows the runs in “two”."


# ---- the end ----


def test_a_run_that_ends_leaves_its_last_state_and_film_on_the_page(page, tmp_path, monkeypatch):
    monkeypatch.setattr(live, "PERIOD", 3_600)  # no news after the first look: only the end brings the last state
    run = make_run(tmp_path / "run", curve(1.0, 2.0), Config(steps=300).to_data())
    writer = RunFolder.open(run, to_write=True)
    with visiting(page, run) as address:
        opened(page, f"{address}run?id={Watched(run, run).id}")
        assert page.locator("#state").inner_text() == "live"
        append(run, [{"step": 300, "eval/mean_return": 3.0, "health/one_end": 0.5}])
        (run / "film.webp").write_bytes(STILL)
        writer.release()
        assert page.server.farewell() == 0  # all viewers have left
        assert said(page, "#line", "server has ended").endswith(f"Look again with: td3 watch {run}")
        assert page.locator("#connection").inner_text() == "server ended"
        assert page.locator("#state").inner_text() == "finished"
        assert values(page) == [1, 2, 3]
        page.route("**/*", lambda route: route.abort())  # nobody answers any more
        page.wait_for_function("() => document.querySelector('#film').naturalWidth == 1")
        assert page.locator("#film").get_attribute("src").startswith("blob:")
        page.locator("#health > summary").click()
        page.wait_for_selector("[data-chart='health/one_end'][data-drawn]")
        page.unroute("**/*")


# A picture of one pixel.
STILL = bytes.fromhex("524946461a000000574542505650384c0d0000002f00000010071011118888fe0700")


def test_a_hidden_page_is_there_at_the_end_and_a_lost_line_is_shown(page, tmp_path):
    run = make_run(tmp_path / "run", curve(1.0))
    with visiting(page, run) as address:
        opened(page, f"{address}run?id={Watched(run, run).id}")
        page.route("**/events*", lambda route: route.abort())
        page.server.end()
        assert said(page, "#line", "The connection is lost").endswith(f"td3 watch {run}")
        page.unroute("**/events*")
        page.wait_for_selector("#line", state="hidden")
        page.wait_for_selector("#connection[data-state=open]")
        page.evaluate(
            """() => {
                Object.defineProperty(document, "visibilityState", { get: () => "hidden", configurable: true });
                document.dispatchEvent(new Event("visibilitychange"));
            }"""
        )
        append(run, curve(1.0, 2.0)[1:])
        assert page.server.farewell() == 0
        said(page, "#line", "server has ended")
        assert values(page) == [1, 2]
    page.complaints.clear()  # of the line that was lost


# ---- curves ----


def pointed_at(page, step):
    """What the chart of all runs says where the mouse points at this step."""
    box = page.locator("#chart .nsewdrag").first.bounding_box()
    across = page.evaluate("(step) => document.querySelector('#chart')._fullLayout.xaxis.d2p(step)", step)
    page.mouse.move(box["x"] + across, box["y"] + box["height"] / 2)
    page.wait_for_function(
        "(title) => document.querySelector('#chart .hoverlayer')?.textContent.includes(title)", arg=f"step {step:,}"
    )
    return page.locator("#chart .hoverlayer .legend text.legendtext").all_text_contents()


def test_the_mouse_is_shown_only_what_is_there_and_at_its_own_step(page, tmp_path):
    make_run(tmp_path / "long", curve(*range(1, 11)))
    make_run(tmp_path / "short", curve(51.0, 52.0, 53.0))
    make_run(tmp_path / "aside", [{"step": 504, "eval/mean_return": 70.0}, {"step": 904, "eval/mean_return": 71.0}])
    with visiting(page, tmp_path) as address:
        opened(page, address)
        assert pointed_at(page, 700) == ["long : 7 at step 700"]
        assert sorted(pointed_at(page, 200)) == ["long : 2 at step 200", "short : 52 at step 200"]
        assert sorted(pointed_at(page, 500)) == ["aside : 70 at step 504", "long : 5 at step 500"]


def lines_of(page):
    return page.evaluate(
        "() => document.querySelector('#chart').data.map(({ x, y, fill }) => ({ x, y, band: fill == 'toself' }))"
    )


def test_the_band_over_seeds_is_the_spread_of_the_seeds_however_smooth_the_curve(page, tmp_path):
    for seed, values in enumerate([[0, 6] * 20, [6, 0] * 20, [3] * 40]):  # smoothed, all three would be 3
        make_run(tmp_path / f"seed-{seed}", curve(*map(float, values)), Config(seed=seed).to_data())
    with visiting(page, tmp_path) as address:
        for smoothing in (0, 0.9):
            opened(page, f"{address}?group=1&smoothing={smoothing}")
            band = next(line for line in lines_of(page) if line["band"])
            high, low = band["y"][:40], band["y"][40:]
            assert high == pytest.approx([6.0] * 40)  # 3, and the square root of (9 + 9 + 0) / 2
            assert low == pytest.approx([0.0] * 40, abs=1e-9)
            (mean,) = [line for line in lines_of(page)[-1:] if not line["band"]]
            assert mean["y"] == pytest.approx([3.0] * 40)
        assert "seed" not in page.locator("#legend li").first.inner_text()


def test_a_group_is_named_by_what_its_runs_have_in_common(page, tmp_path):
    def study(place, seed, **settings):
        config = {**Config(seed=seed, **settings).to_data(), "env": "Hopper-v5"}
        make_run(tmp_path / place, curve(1.0), config)

    study("Hopper-v5/author/seed-0", 0)
    study("Hopper-v5/slow/seed-10", 10, tau=0.001)
    study("Hopper-v5/slow/seed-11", 11, tau=0.001)
    study("seed_3", 3, tau=0.01)
    study("alone/Walker-v5", 5, tau=0.02)  # this number is no seed
    with visiting(page, tmp_path) as address:
        opened(page, f"{address}?group=1")
        assert sorted(page.locator("#legend li[data-group]").all_inner_texts()) == [
            "Hopper-v5 (n = 1)",
            "Hopper-v5/author (n = 1)",
            "Hopper-v5/slow (n = 2)",
            "alone/Walker-v5 (n = 1)",
        ]


# ---- the fifteen steps ----


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """The records of a short true run, of which nothing is as the words were first written."""
    small = {"hidden": (16,), "actor_hidden": (8,), "batch_size": 8, "warmup_steps": 60, "log_every": 1}
    changed = {"normalize_observations": True, "reward_scale": 0.1, "n_step": 3}
    config = Config(env="Pendulum-v1", steps=66, eval_every=0, film=False, threads=1, **small, **changed)
    run = tmp_path_factory.mktemp("runs") / "run"
    for _ in train(config, run):
        pass
    return run, [msgspec.json.decode(line) for line in (run / "updates.jsonl").read_bytes().splitlines()]


def with_records(folder, run, records):
    """A copy of the run that has recorded these updates, and the address of its steps without the server's."""
    shutil.copytree(run, folder / "run")
    (folder / "run/updates.jsonl").write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in records))
    return f"steps?id={Watched(folder, folder / 'run').id}"


def changed(record, **settings):
    return {**record, "settings": {**record["settings"], **settings}}


def test_the_steps_say_what_was_done_with_states_and_rewards(page, prepared, tmp_path):
    run, records = prepared
    record = next(one for one in records if one["delayed"])
    plain = changed(record, reward_scale=1.0, normalize_observations=False) | {"update": 1_000}
    plain["rows"] = record["rows"] | {"discount": [record["settings"]["gamma"]] * 6}
    older = record | {"update": 1_002, "settings": {name: record["settings"][name] for name in OLD_SETTINGS}}
    place = with_records(tmp_path, run, [record, plain, older])
    with visiting(page, tmp_path) as address:
        for update, is_prepared in ((record["update"], True), (1_000, False), (1_002, True)):
            text = {}
            for step in (1, 4, 9, 10):
                opened(page, f"{address}{place}&update={update}&step={step}")
                text[step] = page.locator("#panel").inner_text()
            assert ("scaled n-step reward r" in text[4]) == is_prepared
            assert ("n-step: r is the discounted sum of" in text[4]) == is_prepared
            assert ("Rewards are stored times reward_scale 0.1" in text[4]) == is_prepared
            assert ("state s, normalised, row 1" in text[4]) == is_prepared
            assert ("next state s′, normalised, row 1" in text[4]) == is_prepared
            assert ("The memory stores them as they were." in text[4]) == is_prepared
            assert ("reward times reward_scale" in text[1]) == is_prepared
            assert ("reward_scale 0.1" in text[9]) == ("scaled r" in text[9]) == is_prepared
            assert ("exactly as they are stored" in text[10]) == (not is_prepared)
            assert ("the stored state, normalised, and the action exactly as it is stored" in text[10]) == is_prepared
        opened(page, f"{address}{place}&update={record['update']}&step=2")
        assert page.locator(".layers b").all_inner_texts() == ["3", "8", "1"]


OLD_SETTINGS = ("gamma", "tau", "policy_delay", "target_noise", "noise_clip", "actor_lr", "critic_lr", "batch_size")
OLD_SETTINGS += ("hidden", "buffer_size")


def test_words_are_true_without_delay_and_without_noise(page, prepared, tmp_path):
    run, records = prepared
    record = next(one for one in records if one["delayed"])
    at_once = changed(record, policy_delay=1, target_noise=0.0) | {"update": 1_000}
    unclipped = changed(record, noise_clip=0.0) | {"update": 1_002}
    place = with_records(tmp_path, run, [at_once, unclipped])
    with visiting(page, tmp_path) as address:
        text = {}
        for step in (6, 7, 13, 14, 15):
            opened(page, f"{address}{place}&update=1000&step={step}")
            text[step] = page.locator("main").inner_text()
            assert "delayed" not in text[step].replace("With policy_delay", "")
            assert "Update 1,000 at step" in text[step] and "· all fifteen steps" in text[step]
        assert "No noise is added in this run, because target_noise is 0" in text[6]
        assert "Target smoothing, switched off" in text[6] and "With noise the target would be" in text[6]
        assert "smoothed" not in text[7]
        assert "The actor learns, every update" in text[13] and "a higher value, here on every update." in text[13]
        assert "With policy_delay 1 the actor follows the critics at once" in text[13]
        assert "In every update: the actor and the targets" in text[14]
        assert "With policy_delay 1 they move in every update" in text[15] and "fast as" not in text[15]
        opened(page, f"{address}{place}&update=1002&step=6")
        text = page.locator("main").inner_text()
        assert "because noise_clip is 0" in text and "delayed: all fifteen steps" in text


def test_training_without_noise_is_described_so(page, tmp_path):
    for name, noise in (("loud", 0.1), ("silent", 0.0)):
        make_run(tmp_path / name, curve(1.0, name="rollout/ep_return"), Config(exploration_noise=noise).to_data())
    with visiting(page, tmp_path) as address:
        said_of = {}
        for name in ("loud", "silent"):
            opened(page, f"{address}run?id={Watched(tmp_path, tmp_path / name).id}")
            said_of[name] = page.locator("#training-words").inner_text()
    assert said_of == {
        "loud": "Each training episode, played with exploration noise, and the moving average.",
        "silent": "Each training episode, played without noise, and the moving average.",
    }


SEEN = """() => {
    window.seen = [];
    const note = () => {
        const update = document.querySelector("#update-words").textContent.split(" ")[1];
        if (window.seen.at(-1) !== update) window.seen.push(update);
    };
    new MutationObserver(note).observe(document.querySelector("#update-words"), { childList: true, subtree: true });
    document.querySelector("#speed").options[3].value = 500;  // a step in every frame
}"""


def test_play_shows_both_kinds_of_update_in_order_also_when_the_server_has_ended(page, prepared, tmp_path):
    run, records = prepared
    without, delayed = (next(one for one in records if one["delayed"] == kind) for kind in (False, True))
    place = with_records(tmp_path, run, [(without, delayed)[n % 2] | {"update": 101 + n} for n in range(4)])
    with visiting(page, tmp_path) as address:
        opened(page, f"{address}{place}")
        assert said(page, "#update-words", "Update 104").startswith("Update 104 at step")  # it follows
        page.evaluate(SEEN)
        page.locator("#speed").select_option(index=3)
        page.locator("#play").click()
        page.wait_for_function("() => window.seen.length >= 4")
        assert page.evaluate("window.seen.slice(0, 4)") == ["103", "104", "103", "104"]
        assert page.server.farewell() == 0
        said(page, "#line", "server has ended")
        page.route("**/*", lambda route: route.abort())
        page.evaluate("window.seen = []")
        page.wait_for_function("() => window.seen.length >= 4")
        assert set(page.evaluate("window.seen")) == {"103", "104"}
        page.locator("#play").click()
        page.unroute("**/*")


def filled(page):
    """How full the ring in the diagram is, of 1."""
    share = page.locator("#diagram .fill").first.get_attribute("stroke-dasharray")
    return float(share.split()[0]) / 100


def test_the_memorys_fill_counts_only_rows_that_there_will_be(page, prepared, tmp_path):
    run, records = prepared
    record = records[-1] | {"step": 66, "memory": {**records[-1]["memory"], "rows": 66, "oldest_age": 65}}
    capacity = record["memory"]["capacity"]
    assert capacity == 1_000_000
    early = record | {"update": 1_000, "step": 33, "memory": {**record["memory"], "rows": 33, "oldest_age": 32}}
    small = record | {"update": 1_002, "step": 33, "memory": {**early["memory"], "capacity": 40}}
    place = with_records(tmp_path, run, [early, small, record | {"update": 1_004}])
    with visiting(page, tmp_path) as address:
        shown = {}
        for update in (1_000, 1_002, 1_004):
            opened(page, f"{address}{place}&update={update}&step=1")
            shown[update] = page.locator(".bar").inner_text(), round(filled(page), 3)
        assert shown == {
            1_000: ("33 of 66 rows that this run will write are written", 0.5),
            1_002: ("33 of 40 rows are written", 0.825),
            1_004: ("66 of 66 rows that this run will write are written", 1.0),
        }
        opened(page, f"{address}{place.replace('steps', 'run')}")
        assert page.locator("#memory-text").inner_text() == "66 of 66 that this run will store (100 %)"
        assert page.locator("#memory-fill").evaluate("(bar) => bar.value") == 1


# ---- states ----


def test_a_run_that_stopped_by_itself_says_why_until_it_trains_on(page, tmp_path):
    reason = "The last 5 evaluations brought no new best."
    rows = [*curve(1.0, 2.0), {"step": 200, "stopped": reason}]
    run = make_run(tmp_path / "run", rows, Config(steps=1_000).to_data(), goal=1_000)
    (state,) = run.glob("checkpoints/*/state.json")
    state.write_bytes(msgspec.json.encode({"config": {"steps": 1_000}, "stopped": ["stop_after", reason]}))
    make_run(tmp_path / "whole", curve(*map(float, range(10))), Config(steps=1_000).to_data())
    with visiting(page, tmp_path) as address:
        opened(page, address)
        assert page.locator("tr[data-state=finished]").count() == 2
        assert page.locator(".row-reason:visible").all_inner_texts() == [f"Stopped by itself: {reason}"]
        opened(page, f"{address}run?id={Watched(tmp_path, run).id}")
        assert page.locator("#run-reason").inner_text() == f"Stopped by itself at step 200: {reason}"
        append(run, [{"step": 300, "eval/mean_return": 3.0}])  # it was resumed
        page.wait_for_selector("#run-reason", state="hidden")


# ---- first things first ----


def test_a_run_is_named_before_the_library_of_the_charts_is_there(page, tmp_path):
    run = make_run(tmp_path / "run", curve(1.0, 2.0))
    with visiting(page, run) as address:
        held = []
        page.route("**/static/plotly.js", lambda route: held.append(route))
        page.goto(f"{address}run?id={Watched(run, run).id}")
        said(page, "#name", "run")
        said(page, "[data-figure=last]", "2.00")
        page.wait_for_function("() => document.querySelector('script[src*=plotly]')")
        while not held:
            page.evaluate("1")  # lets the request arrive here
        for route in held:
            route.continue_()
        page.wait_for_selector("html[data-ready=true]")
        page.unroute("**/static/plotly.js")
        assert values(page) == [1, 2]
