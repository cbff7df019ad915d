"""The live page in a real browser: it grows by itself, walks through a true update, and stays on its own address."""

import base64
import json
import os
import shutil
import zlib
from pathlib import Path
from urllib.parse import quote

import browser
import msgspec
import numpy as np
import pytest
from browser import opened, serving, visiting
from folders import append, found_row, make_run

from td3.config import GROUPS, Config
from td3.training import train
from td3.views.web.runs import Watched

HOSTILE = "<img src=x onerror=alert(1)>"


def curve(seed, points, name="eval/mean_return"):
    return [{"step": 100 * n, name: float(seed + n)} for n in range(1, points + 1)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A short true run, with its recorded updates."""
    folder = tmp_path_factory.mktemp("runs")
    settings = {"warmup_steps": 200, "hidden": (16, 16), "batch_size": 32, "eval_every": 200, "eval_episodes": 1}
    config = Config(env="Pendulum-v1", steps=600, log_every=100, film=False, engine="torch", threads=1, **settings)
    for _ in train(config, folder / "pendulum"):
        pass
    return folder


@pytest.fixture(scope="module")
def page():
    with browser.browsing() as page:
        yield page


@pytest.fixture(autouse=True)
def quiet_page(page):
    with browser.quiet(page):
        yield


def drawn(page, chart, least):
    """Waits until the chart has so many points, and tells its first line."""
    page.wait_for_function(
        """([chart, least]) => {
            const place = document.querySelector(`[data-chart="${chart}"]`);
            return place?.data?.some((line) => (line.x?.length ?? 0) >= least);
        }""",
        arg=[chart, least],
    )
    lines = page.evaluate(
        """(chart) => document.querySelector(`[data-chart="${chart}"]`).data.map(
            (line) => ({name: line.name, x: Array.from(line.x ?? []), y: Array.from(line.y ?? [])}))""",
        chart,
    )
    return max(lines, key=lambda line: len(line["x"]))


def test_a_run_in_progress_appears_and_its_curve_grows_without_a_reload(page, tmp_path):
    with visiting(page, tmp_path) as address:
        opened(page, address)
        assert page.locator("tr[data-run]").count() == 0
        run = make_run(tmp_path / "new", curve(0, 3))
        page.wait_for_selector("tr[data-run]")
        assert page.locator("tr[data-run]").inner_text().split("\n")[0].strip() != ""
        page.evaluate("window.same = true")
        page.locator("tr[data-run] a").first.click()
        page.wait_for_selector("html[data-ready=true]")
        assert drawn(page, "eval/mean_return", 3)["y"][:3] == [1, 2, 3]
        page.evaluate("window.same = true")
        append(run, curve(0, 6)[3:])
        assert drawn(page, "eval/mean_return", 6)["y"] == [1, 2, 3, 4, 5, 6]
        assert page.evaluate("window.same")  # never reloaded
        assert page.locator(".modebar-btn").count() > 0
        assert page.locator(".modebar-btn[data-title*=hare], .modebar-btn[data-title*=loud]").count() == 0


def test_picked_runs_are_laid_over_one_another_and_seeds_become_a_mean(page, tmp_path):
    for seed in range(3):
        make_run(tmp_path / f"seed-{seed}", curve(10 * seed, 5), Config(seed=seed).to_data())
    with visiting(page, tmp_path) as address:
        opened(page, address)
        page.locator("#pick-all").check()
        page.wait_for_function(
            "() => document.querySelector('#chart').data?.filter((line) => line.x.length == 5).length >= 3"
        )
        page.locator("#group").check()
        page.wait_for_function(
            """() => document.querySelector('#chart').data.some(
                (line) => line.y.length == 5 && Math.abs(line.y[0] - 11) < 1e-9 && Math.abs(line.y[4] - 15) < 1e-9)"""
        )
        link = page.url
        opened(page, link)  # the address holds the view
        assert page.locator("#group").is_checked()
        page.wait_for_function(
            "() => document.querySelector('#chart').data?.some((line) => Math.abs(line.y[0] - 11) < 1e-9)"
        )


def test_a_hostile_name_stays_text(page, tmp_path):
    make_run(tmp_path / HOSTILE, curve(0, 3), Config(seed=1).to_data() | {"env": HOSTILE})
    with visiting(page, tmp_path) as address:
        opened(page, address)
        row = page.locator("tr[data-run]")
        assert HOSTILE in row.inner_text()
        page.locator("tr[data-run] a").first.click()
        page.wait_for_selector("html[data-ready=true]")
        assert HOSTILE in page.locator("#name").inner_text()
        assert page.locator("main img[src=x], header img[src=x]").count() == 0


def test_a_broken_run_is_shown_with_its_sentence_beside_the_others(page, tmp_path):
    make_run(tmp_path / "good", curve(0, 3))
    (make_run(tmp_path / "bad") / "config.json").write_text("{")
    with visiting(page, tmp_path) as address:
        opened(page, address)
        words = page.locator("#table").inner_text()
        assert "config.json is no JSON object." in words
        assert "good" in words


def test_gaps_are_gaps(page, tmp_path):
    run = make_run(tmp_path / "run", curve(0, 2))
    append(run, [{"step": 300, "eval/mean_return": None}, {"step": 400, "eval/mean_return": 4.0}])
    with visiting(page, tmp_path) as address:
        opened(page, address)
        page.locator("tr[data-run] a").first.click()
        page.wait_for_selector("html[data-ready=true]")
        assert drawn(page, "eval/mean_return", 4)["y"] == [1, 2, None, 4]


def shown(page, name):
    """Every number the page shows under this name, exactly, by row and column."""
    return {
        (int(row), int(column or 0)): json.loads(value)
        for row, column, value in page.evaluate(
            """(name) => [...document.querySelectorAll(`#step-data [data-name="${name}"][data-value]`)].map(
                (cell) => [cell.dataset.row ?? 0, cell.dataset.column ?? 0, cell.dataset.value])""",
            name,
        )
    }


def test_the_fifteen_steps_are_walked_by_keyboard_with_the_recorded_numbers(page, trained):
    records = [msgspec.json.decode(line) for line in (trained / "pendulum/updates.jsonl").read_bytes().splitlines()]
    delayed = next(one for one in reversed(records) if one["delayed"])
    rows = delayed["rows"]
    with visiting(page, trained) as address:
        id = json.loads(page.request.get(f"{address}api/runs").text())["runs"][0]["id"]
        opened(page, f"{address}steps?id={id}&update={delayed['update']}")
        page.keyboard.press("Home")
        walked = []
        seen = {}
        for _ in range(15):
            number = int(page.locator("#step-number").inner_text())
            walked.append(number)
            assert page.locator("[data-part].active").count() > 0, number
            seen[number] = {name: shown(page, name) for name in rows}
            page.keyboard.press("ArrowRight")
        assert walked == list(range(1, 16))
    where = {4: "reward", 5: "target_action", 6: "next_action", 8: "next_q", 9: "target", 10: "q1"}
    for number, name in where.items():
        cells = seen[number][name]
        assert cells, (number, name)
        for (row, column), value in cells.items():
            true = rows[name][row]
            assert value == (true[column] if isinstance(true, list) else true), (number, name, row)
    assert seen[7]["next_q1"] and seen[7]["next_q2"]


@pytest.mark.parametrize("step", [1, 9, 15])
def test_a_steps_link_leads_to_its_line_of_the_algorithm_and_shows_no_number_that_moves(page, trained, step):
    with visiting(page, trained) as address:
        id = json.loads(page.request.get(f"{address}api/runs").text())["runs"][0]["id"]
        opened(page, f"{address}steps?id={id}&step={step}")
        link = page.locator("#code-place")
        assert link.inner_text() == f"td3/learner/td3.py, step {step}"
        path, line = link.get_attribute("title").rsplit(":", 1)
        link.click()
        page.wait_for_selector("#lines .wanted")
        wanted = page.locator("#lines .wanted").inner_text()
        assert wanted.strip().startswith(f"# {step} · ")
        assert (Path(__file__).parents[1] / path).read_text().splitlines()[int(line) - 1] == wanted


def test_runs_of_one_environment_are_picked_for_a_start(page, tmp_path):
    for number, (name, env) in enumerate([("old", "A-v0"), ("first", "B-v0"), ("second", "B-v0")]):
        run = make_run(tmp_path / name, curve(0, 3), config={**Config(steps=1_000).to_data(), "env": env})
        os.utime(run / "metrics.jsonl", (1_000_000 + number, 1_000_000 + number))
        os.utime(run / "config.json", (1_000_000, 1_000_000))
        os.utime(run / "checkpoints", (1_000_000, 1_000_000))
    with visiting(page, tmp_path) as address:
        opened(page, address)
        picked = page.locator("tr[data-picked=true] [data-cell=name] a").all_inner_texts()
        assert sorted(picked) == ["first", "second"]


def test_the_steps_play_pause_and_go_back(page, trained):
    with visiting(page, trained) as address:
        id = json.loads(page.request.get(f"{address}api/runs").text())["runs"][0]["id"]
        opened(page, f"{address}steps?id={id}")
        page.keyboard.press("Home")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowLeft")
        assert page.locator("#step-number").inner_text() == "2"
        page.locator("#speed").select_option(index=3) if page.locator("select#speed").count() else None
        page.keyboard.press("Space")
        page.wait_for_function("() => Number(document.querySelector('#step-number').textContent) >= 4")
        page.keyboard.press("Space")
        assert int(page.locator("#step-number").inner_text()) >= 4


def test_the_page_of_td3_watch_follows_the_light_and_the_dark(page, trained):
    with serving(trained) as address:  # the command itself, once
        opened(page, address)
        assert page.locator("tr[data-run]").count() == 1
        page.emulate_media(color_scheme="dark")
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.emulate_media(color_scheme="light")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
        page.goto("about:blank")  # before the server ends


@pytest.mark.parametrize("path", ["", "run?id={id}", "steps?id={id}"])
def test_nothing_is_wider_than_a_phone(page, trained, path):
    with visiting(page, trained) as address:
        id = json.loads(page.request.get(f"{address}api/runs").text())["runs"][0]["id"]
        page.set_viewport_size({"width": 360, "height": 740})
        try:
            opened(page, address + path.format(id=id))
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
        finally:
            page.set_viewport_size({"width": 1280, "height": 850})


def drawn_lines(page, chart):
    return page.evaluate(
        """(chart) => document.querySelector(`[data-chart="${chart}"]`).data.map(
            (line) => ({name: line.name, x: Array.from(line.x), y: Array.from(line.y), legend: line.showlegend}))""",
        chart,
    )


def forgive_the_question_for_a_run_that_is_not_there(page):
    """The browser itself notes every answer 404; here it is the right answer."""
    assert page.complaints
    assert all("404" in one for one in page.complaints)
    page.complaints.clear()


def test_a_run_page_opened_before_its_run_loads_all_of_it_when_it_appears(page, trained, tmp_path):
    ready, root = tmp_path / "elsewhere", tmp_path / "runs"
    root.mkdir()
    shutil.copytree(trained / "pendulum", ready)
    rows = [msgspec.json.decode(line) for line in (ready / "metrics.jsonl").read_bytes().splitlines()]
    evaluated = [row["eval/mean_return"] for row in rows if "eval/mean_return" in row]
    recorded = len((ready / "updates.jsonl").read_bytes().splitlines())
    with visiting(page, root) as address:
        opened(page, f"{address}run?id={Watched(root, root / 'late').id}")
        assert page.locator("#absent").is_visible()
        assert page.locator("#problem").is_hidden()
        assert page.locator("#run").is_hidden()
        forgive_the_question_for_a_run_that_is_not_there(page)
        ready.rename(root / "late")  # with all its points at once: none of them is news
        drawn(page, "eval/mean_return", len(evaluated))
        assert drawn_lines(page, "eval/mean_return")[-1]["y"] == evaluated
        assert len(drawn(page, "twin_gap", recorded)["y"]) == recorded
        assert page.locator("[data-setting=batch_size] td").text_content() == "32"
        captions = page.locator("#configuration caption").all_text_contents()
        assert captions == [*GROUPS, "Versions"]
        assert page.locator("#absent").is_hidden()
        append(root / "late", [{"step": 700, "eval/mean_return": -5.0}])
        page.wait_for_function("() => document.querySelector('[data-chart*=mean_return]').data.at(-1).x.at(-1) == 700")
        assert drawn_lines(page, "eval/mean_return")[-1]["y"] == [*evaluated, -5.0]


def test_the_steps_opened_before_their_run_begin_with_its_first_update(page, trained, tmp_path):
    ready, root = tmp_path / "elsewhere", tmp_path / "runs"
    root.mkdir()
    shutil.copytree(trained / "pendulum", ready)
    updates = (ready / "updates.jsonl").rename(tmp_path / "updates.jsonl")
    newest = msgspec.json.decode(updates.read_bytes().splitlines()[-1])
    with visiting(page, root) as address:
        opened(page, f"{address}steps?id={Watched(root, root / 'late').id}")
        assert page.locator("#absent").is_visible()
        assert page.locator("#problem").is_hidden()
        forgive_the_question_for_a_run_that_is_not_there(page)
        ready.rename(root / "late")
        page.wait_for_selector("#waiting:not([hidden])")
        assert page.locator("#absent").is_hidden()
        assert page.locator("#run-name").inner_text() == "late"
        updates.rename(root / "late" / "updates.jsonl")
        page.wait_for_selector("#stage:not([hidden])")
        assert page.locator("#waiting").is_hidden()
        assert page.locator("#update-words").inner_text().startswith(f"Update {newest['update']:,} at step")


def test_an_actor_that_waits_for_every_third_update_is_described_so(page, trained, tmp_path):
    shutil.copytree(trained / "pendulum", tmp_path / "run")
    record = msgspec.json.decode((tmp_path / "run/updates.jsonl").read_bytes().splitlines()[-1])
    record["settings"]["policy_delay"] = 3
    (tmp_path / "run/updates.jsonl").write_bytes(msgspec.json.encode(record) + b"\n")
    with visiting(page, tmp_path) as address:
        opened(page, f"{address}steps?id={Watched(tmp_path, tmp_path / 'run').id}&step=13")
        assert page.locator("#step-title").inner_text() == "The actor learns, every 3rd update"
        assert page.locator("#step-sentence").inner_text().endswith("but only on every 3rd update.")
        page.keyboard.press("End")
        assert page.locator("#step-why").inner_text().endswith("they would move 3 times as fast.")


def skewed(mean, rows=30_000):
    """One episode of ten is very good, the others give nothing: their extremes tell nothing of their mean."""
    return [{"step": 10 * n, "rollout/ep_return": 10.0 * mean * (n % 10 == 0)} for n in range(1, rows + 1)]


def test_the_moving_average_of_a_long_curve_is_that_of_its_points_and_not_of_its_extremes(page, tmp_path):
    run = make_run(tmp_path / "run", skewed(1))
    with visiting(page, tmp_path) as address:
        opened(page, f"{address}run?id={Watched(tmp_path, run).id}")
        every, moving = drawn_lines(page, "rollout/ep_return")
        assert {0, 10} <= set(every["y"])
        assert len(every["y"]) < 3_000
        assert len(moving["y"]) > 100
        assert all(abs(value - 1) < 0.3 for value in moving["y"][20:])
        append(run, [{"step": 300_000 + 10 * n, "rollout/ep_return": 3.0} for n in range(1, 51)])
        page.wait_for_function(
            "() => document.querySelector('[data-chart*=ep_return]').data.every((line) => line.x.at(-1) == 300500)"
        )
        every, moving = drawn_lines(page, "rollout/ep_return")
        assert every["y"][-50:] == [3.0] * 50
        assert 2.9 < moving["y"][-1] < 3.1
        assert 1 < moving["y"][-48] < 2


def test_long_curves_are_smoothed_and_averaged_over_seeds_by_their_means(page, tmp_path):
    for seed, mean in enumerate((1, 3)):
        make_run(tmp_path / f"seed-{seed}", skewed(mean), Config(seed=seed).to_data())
    with visiting(page, tmp_path) as address:
        opened(page, f"{address}?metric=rollout/ep_return&smoothing=0.9")
        smoothed = [line for line in drawn_lines(page, "overlay") if line["legend"] is not False]
        assert {line["name"] for line in smoothed} == {"seed-0", "seed-1"}
        for line in smoothed:
            mean = {"seed-0": 1, "seed-1": 3}[line["name"]]
            assert all(abs(value / mean - 1) < 0.3 for value in line["y"][20:])
        opened(page, f"{address}?metric=rollout/ep_return&group=1")
        band, mean = drawn_lines(page, "overlay")[:2]
        inside = [value for value in mean["y"] if value is not None]
        assert len(inside) > 100
        assert all(abs(value - 2) < 0.5 for value in inside)
        assert 0.5 < min(band["y"]) < max(band["y"]) < 3.5  # of 1 and 3, one standard deviation is 1.41


def test_a_zoom_of_the_overlay_shows_every_point_of_the_picked_runs(page, tmp_path):
    make_run(tmp_path / "run", skewed(1))
    with visiting(page, tmp_path) as address:
        opened(page, f"{address}?metric=rollout/ep_return")
        count = (
            "() => document.querySelector('#chart').data[0].x.filter((step) => step >= 10000 && step <= 12000).length"
        )
        assert page.evaluate(count) < 201
        page.evaluate("() => void Plotly.relayout('chart', {'xaxis.range': [10000, 12000]})")
        page.wait_for_selector("#chart[data-detail='10000-12000']")
        assert page.evaluate(count) == 201
        page.evaluate("() => void Plotly.relayout('chart', {'xaxis.autorange': true})")
        page.wait_for_selector("#chart:not([data-detail])")
        assert page.evaluate(count) < 201


@pytest.mark.parametrize("metric", ["<a href='https://evil.example'>x</a>", "constructor", "__proto__"])
def test_a_metric_named_by_the_address_stays_text(page, tmp_path, metric):
    make_run(tmp_path / "run", curve(0, 3, metric))
    with visiting(page, tmp_path) as address:
        opened(page, f"{address}?metric={quote(metric)}")
        assert drawn(page, "overlay", 3)["y"] == [1, 2, 3]
        assert page.locator("#chart .ytitle").text_content() == metric
        assert page.locator("#overlay-title").inner_text() == metric
        assert page.locator("#chart a[*|href*=evil], #chart .ytitle a").count() == 0


@pytest.mark.parametrize("group", [0, 1])
@pytest.mark.parametrize("name", ["<b>bold", "%{x} of %{y:.1f}", "a &lt;b&gt; 100%"])
def test_a_name_is_text_in_the_legend_and_where_the_mouse_points(page, tmp_path, name, group):
    make_run(tmp_path / name, curve(0, 3))
    with visiting(page, tmp_path) as address:
        opened(page, f"{address}?group={group}")
        assert drawn(page, "overlay", 3)["y"] == [1, 2, 3]
        assert name in page.locator("#legend").text_content()
        page.locator("#chart .nsewdrag").first.hover()
        page.wait_for_function("() => document.querySelector('#chart .hoverlayer')?.textContent.includes('step')")
        assert name in page.locator("#chart .hoverlayer").text_content()
        assert page.locator("#chart .hoverlayer [style*=bold]").evaluate_all(
            "(all) => all.map((one) => one.textContent)"
        ) in ([], ["step 200"])


# ---- findings ----

BANDED = ["dead_units", "cannot_recover", "one_action", "overestimation"]  # the worst first


def health(points):
    return [{"step": 1_000 * n, "health/one_end": n / 10} for n in range(1, points + 1)]


def seen_in(page, list_of):
    return page.locator(f"#findings-{list_of} .seen").all_text_contents()


def test_a_finding_appears_in_the_moment_it_is_written_and_goes_when_the_record_is_cut(page, tmp_path):
    run = make_run(tmp_path / "run", health(3), Config(env="Pendulum-v1").to_data())
    record = (run / "metrics.jsonl").read_bytes()
    with visiting(page, tmp_path) as address:
        opened(page, f"{address}run?id={Watched(tmp_path, run).id}")
        assert page.locator("#findings").is_hidden()
        page.evaluate("window.same = true")
        append(run, [found_row(3_000)])
        page.wait_for_selector("#findings:not([hidden])")
        item = page.locator("#findings li")
        assert item.count() == 1
        assert item.locator(".when").inner_text() == "Step 3,000"
        assert item.locator(".seen").inner_text() == found_row()["finding"]["seen"]
        assert item.locator(".advice").inner_text() == "Try first: Begin a new run with --normalize-observations."
        assert item.locator("code").inner_text() == "td3 check Pendulum-v1"
        assert page.locator("#findings-news").text_content() == f"Found: {found_row()['finding']['seen']}"
        append(run, [{"step": 4_000, "eval/mean_return": 1.0}, found_row(4_000)])  # once by name
        drawn(page, "eval/mean_return", 1)
        assert item.locator(".when").all_inner_texts() == ["Step 3,000"]
        (run / "metrics.jsonl").write_bytes(record)
        page.wait_for_selector("#findings", state="hidden")
        assert page.evaluate("window.same")  # never reloaded


def test_the_three_worst_findings_are_open_and_the_others_folded(page, tmp_path):
    rows = [found_row(1_000 * n, name=name, seen=f"{name}.") for n, name in enumerate(reversed(BANDED[1:]), start=1)]
    run = make_run(tmp_path / "run", rows)
    with visiting(page, tmp_path) as address:
        opened(page, f"{address}run?id={Watched(tmp_path, run).id}")
        assert seen_in(page, "worst") == [f"{name}." for name in BANDED[1:]]
        assert page.locator("#findings-fold").is_hidden()
        append(run, [found_row(9_000, name=BANDED[0], seen=f"{BANDED[0]}.")])
        page.wait_for_selector("#findings-fold:not([hidden])")
        assert seen_in(page, "worst") == [f"{name}." for name in BANDED[:3]]
        assert seen_in(page, "others") == [f"{BANDED[3]}."]
        assert page.locator("#findings-count").inner_text() == "4 findings"
        fold = page.locator("#findings-more")
        assert fold.inner_text() == "1 more"
        fold.focus()
        page.keyboard.press("Enter")
        assert page.locator("#findings-others li").is_visible()
        page.locator("#findings > summary").focus()
        page.keyboard.press("Enter")  # the reader folds the whole band away
        assert page.locator("#findings-worst li").first.is_hidden()


def test_a_findings_link_opens_its_chart_and_the_address_does_too(page, tmp_path):
    run = make_run(tmp_path / "run", [*health(3), *curve(0, 3), found_row(2_000)])
    with visiting(page, tmp_path) as address:
        place = f"{address}run?id={Watched(tmp_path, run).id}"
        opened(page, place)
        assert page.locator("[data-chart='health/one_end']").is_hidden()
        assert not any("health" in url for url in page.requested if "/api/series" in url)  # not before it is looked at
        page.locator("#findings li a").focus()
        page.keyboard.press("Enter")
        for _ in range(2):
            card = page.locator(".card.pointed")
            card.wait_for()
            assert drawn(page, "health/one_end", 3)["y"] == [0.1, 0.2, 0.3]
            assert card.locator("h3").inner_text() == "Actions at one end"
            assert page.evaluate("document.activeElement.dataset.card") == "health/one_end"
            assert 0 <= card.bounding_box()["y"] < 850
            marks = page.evaluate("document.querySelector('[data-chart=\"health/one_end\"]').layout.shapes")
            assert [(mark["x0"], mark["x1"]) for mark in marks] == [(2_000, 2_000)]
            assert page.url == f"{place}#health/one_end"
            page.goto(f"{address}text?of=code")
            opened(page, f"{place}#health/one_end")
        append(run, health(5)[3:])
        assert drawn(page, "health/one_end", 5)["x"] == [1_000, 2_000, 3_000, 4_000, 5_000]


def test_what_came_before_the_health_charts_were_opened_is_in_them(page, tmp_path):
    run = make_run(tmp_path / "run", [*health(3), *curve(0, 1)])
    with visiting(page, tmp_path) as address:
        opened(page, f"{address}run?id={Watched(tmp_path, run).id}")
        append(run, [*health(4)[3:], {"step": 4_000, "eval/mean_return": 2.0}])
        drawn(page, "eval/mean_return", 2)
        page.locator("#health > summary").click()
        assert drawn(page, "health/one_end", 4)["x"] == [1_000, 2_000, 3_000, 4_000]
        titles = page.locator("#health h3:visible").all_inner_texts()
        assert len(titles) == 9 and "Change of the images" not in titles
        page.locator("#health > summary").click()
        append(run, [*health(5)[4:], {"step": 5_000, "eval/mean_return": 3.0}])
        drawn(page, "eval/mean_return", 3)
        page.locator("#health > summary").click()
        assert drawn(page, "health/one_end", 5)["y"][-1] == 0.5


@pytest.mark.parametrize("size", [1e-22, 1e-3, 1e30])
def test_numbers_of_any_size_are_drawn_without_a_style_of_their_own(page, tmp_path, size):
    run = make_run(tmp_path / "run", [{"step": n, "train/q1_mean": n * size} for n in range(1, 4)])
    with visiting(page, tmp_path) as address:
        opened(page, f"{address}run?id={Watched(tmp_path, run).id}")
        assert drawn(page, "train/q1_mean", 3)["y"][0] == size


def test_a_hostile_finding_stays_text(page, tmp_path):
    texts = {"seen": f"{HOSTILE} {600 * 'x'}", "advice": HOSTILE, "name": HOSTILE}
    row = found_row(**texts, chart=HOSTILE, command=["check", HOSTILE])
    run = make_run(tmp_path / "run", [row, found_row(name='"]', seen="]()")], {**Config().to_data(), "env": HOSTILE})
    with visiting(page, tmp_path) as address:
        opened(page, address)
        title = page.locator(".mark").get_attribute("title")
        assert title.startswith(HOSTILE) and len(title) == 500
        for width in (360, 1280):
            page.set_viewport_size({"width": width, "height": 850})
            page.goto(f"{address}text?of=code")
            opened(page, f"{address}run?id={Watched(tmp_path, run).id}#{quote(HOSTILE)}%")
            item = page.locator("#findings li").first
            assert item.locator(".seen").inner_text().startswith(HOSTILE)
            assert HOSTILE in item.locator(".advice").inner_text()
            assert item.locator("a, code").count() == 0
            assert page.locator("main img[src=x]").count() == 0
            assert page.locator("#problem").is_hidden()
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_list_marks_a_run_with_findings_and_finds_it_by_them(page, tmp_path):
    sick = make_run(tmp_path / "sick", curve(0, 2))
    make_run(tmp_path / "well", curve(0, 2))
    with visiting(page, tmp_path) as address:
        opened(page, address)
        assert page.locator(".mark").count() == 0
        append(sick, [found_row(), found_row(name="critics_explain_nothing", seen="Silent.")])
        mark = page.locator("tr[data-run] .mark")
        mark.wait_for()
        assert mark.inner_text() == "2 findings"
        assert mark.get_attribute("title") == found_row()["finding"]["seen"]
        page.locator("#filter").fill("finding")
        assert page.locator("tr[data-run] [data-cell=name] a:not(.mark)").all_inner_texts() == ["sick"]
        page.locator("#metric").select_option("health/one_end")
        page.wait_for_selector("#chart[data-metric='health/one_end']", state="attached")
        assert page.locator("#overlay-title").inner_text() == "Actions at one end"
        mark.click()
        page.wait_for_selector("#findings:not([hidden])")
        assert seen_in(page, "worst") == [found_row()["finding"]["seen"], "Silent."]


CONTRAST = """() => {
    const light = (rgb) => rgb.match(/[0-9.]+/g).slice(0, 3).map((one) => one / 255).map(
        (one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
    ).reduce((sum, one, place) => sum + one * [0.2126, 0.7152, 0.0722][place], 0);
    const back = light(getComputedStyle(document.querySelector("#findings")).backgroundColor);
    return [".when", ".seen", ".advice", "a", "code", ".mark", ".quiet"].map((name) => {
        const ink = light(getComputedStyle(document.querySelector(`#findings ${name}`)).color);
        return (Math.max(ink, back) + 0.05) / (Math.min(ink, back) + 0.05);
    });
}"""


def test_the_band_can_be_read_in_the_dark_and_in_the_light(page, tmp_path):
    run = make_run(tmp_path / "run", [found_row()])
    with visiting(page, tmp_path) as address:
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)
            opened(page, f"{address}run?id={Watched(tmp_path, run).id}")
            assert min(page.evaluate(CONTRAST)) >= 4.5, scheme


# ---- images ----


@pytest.fixture(scope="module")
def seeing(tmp_path_factory):
    """A short true run that learns from what it sees."""
    folder = tmp_path_factory.mktemp("runs")
    view = {"pixels": 40, "grey": True, "frame_stack": 3, "n_step": 3, "random_shift": 2}
    small = {"hidden": (16,), "encoder_channels": (4, 4), "encoder_features": 7, "batch_size": 8, "warmup_steps": 60}
    config = Config(env="Pendulum-v1", steps=64, eval_every=0, film=False, threads=1, log_every=1, **view, **small)
    for _ in train(config, folder / "seeing"):
        pass
    return folder


def records_of(run):
    return [msgspec.json.decode(line) for line in (run / "updates.jsonl").read_bytes().splitlines()]


def recorded_frames(record):
    """Of its one image, (rows, s and s', frames, height, width, channels)."""
    whole = zlib.decompress(base64.b64decode(record["images"]["frames"]))
    (picture,) = record["images"]["pictures"]
    return np.frombuffer(whole, np.uint8).reshape(len(record["rows"]["reward"]), 2, *picture["shown"])


def drawn_frames(page, place):
    """Every canvas there: its words, how it is enlarged, and its pixels."""
    found = page.evaluate(
        """(place) => [...document.querySelectorAll(`#step-data ${place} canvas`)].map((one) => ({
            words: one.getAttribute("aria-label"),
            rendering: getComputedStyle(one).imageRendering,
            shape: [one.height, one.width, 4],
            times: one.getBoundingClientRect().width / one.width,
            pixels: Array.from(one.getContext("2d").getImageData(0, 0, one.width, one.height).data),
        }))""",
        place,
    )
    for one in found:
        one["pixels"] = np.array(one["pixels"], np.uint8).reshape(one.pop("shape"))
    return found


def walked(page, address):
    """The steps one after the other, each on the page while it is its turn."""
    opened(page, f"{address}&step=1")
    for step in range(1, 16):
        assert page.locator("#step-number").inner_text() == str(step)
        yield step
        page.keyboard.press("ArrowRight")


FRAMES = {  # by step: which moments are shown, and how they are called
    4: {"observation": "state s", "next_observation": "next state s′"},
    5: {"next_observation": "next state s′"},
    7: {"next_observation": "next state s′"},
    10: {"observation": "state s"},
    13: {"observation": "state s"},
}


def test_the_steps_show_the_recorded_frames_pixel_by_pixel(page, seeing):
    record = next(one for one in records_of(seeing / "seeing") if one["delayed"])
    frames = recorded_frames(record)
    assert frames.shape == (6, 2, 3, 20, 20, 1)
    assert len(np.unique(frames)) > 10
    row = 2
    with visiting(page, seeing) as address:
        id = Watched(seeing, seeing / "seeing").id
        for step in walked(page, f"{address}steps?id={id}&update={record['update']}&row={row + 1}"):
            assert page.locator("figure.frames").count() == len(FRAMES.get(step, {}))
            for name, words in FRAMES.get(step, {}).items():
                found = drawn_frames(page, f"[data-name={name}_frames]")
                assert [one["words"] for one in found] == [f"{words}, row {row + 1}, frame {n} of 3" for n in (1, 2, 3)]
                assert {(one["rendering"], one["times"]) for one in found} == {("pixelated", 4)}
                for one, frame in zip(found, frames[row, int(name.startswith("next"))], strict=True):
                    assert (one["pixels"][..., :3] == frame).all()
                    assert (one["pixels"][..., 3] == 255).all()
                caption = page.locator(f"[data-name={name}_frames] .caption").inner_text()
                assert caption.endswith("3 frames of 40×40 grey, the oldest first, drawn as 20×20")
        opened(page, f"{address}steps?id={id}&update={record['update']}&step=4")
        glances = drawn_frames(page, ".glance")
        assert len(glances) == 12
        for n, one in enumerate(glances):  # the newest frame of s and s' of every row
            assert (one["pixels"][..., :3] == frames[n // 2, n % 2, -1]).all()
        assert "up to 2 pixels" in page.locator("#step-data").inner_text()


def test_the_steps_say_who_reads_the_frames_and_how_the_encoder_moved(page, seeing):
    record = next(one for one in records_of(seeing / "seeing") if one["delayed"])
    with visiting(page, seeing) as address:
        id = Watched(seeing, seeing / "seeing").id
        said, named = {}, {}
        for step in walked(page, f"{address}steps?id={id}&update={record['update']}"):
            said[step] = page.locator("#panel").inner_text()
            named[step] = page.evaluate(
                """() => Object.fromEntries([...document.querySelectorAll("#step-data [data-name]")].map(
                    (one) => [`${one.dataset.name} ${one.dataset.row ?? ""}`.trim(), one.dataset.value]))"""
            )
    assert named[1]["sight"] == "3 frames of 40×40 grey"
    assert named[1]["transition_bytes"] == str(record["images"]["transition_bytes"])
    assert [name for name in ("features", "state") if name in said[2].split("Why?")[0].split("\n")] == ["features"]
    actor, critic = 8 * 16 + 17 * 1, 9 * 16 + 17 * 1  # 7 features, and an action
    assert named[2]["actor_parameters"] == str(actor)
    assert named[3]["critic_parameters"] == str(critic)
    assert named[3]["encoder_parameters"] == str(record["images"]["parameters"])
    assert named[3]["all_parameters"] == str(2 * actor + 4 * critic + 2 * record["images"]["parameters"])
    assert named[3]["apart_encoder"] == str(record["apart"]["encoder"])
    assert float(named[12]["gradient encoder"]) == record["gradient"]["encoder"] > 0
    assert float(named[12]["moved encoder"]) == record["moved"]["encoder"] > 0
    assert float(named[15]["moved encoder_target"]) == record["moved"]["encoder_target"] > 0
    assert float(named[15]["share encoder_target"]) == pytest.approx(0.005, rel=1e-3)
    assert all("encoder" in said[step] and "7 numbers" in said[step] for step in (2, 3, 5, 7, 10, 13))
    assert "of the encoder they share" in said[12]
    assert "the encoder’s target towards the encoder" in said[15]
    assert all("encoder" not in said[step] for step in (4, 6, 8, 9, 11, 14))


def test_the_steps_show_joined_observations_one_by_one(page, tmp_path):
    small = {"hidden": (16,), "batch_size": 8, "warmup_steps": 60, "log_every": 1}
    config = Config(env="Pendulum-v1", history=10, steps=64, eval_every=0, film=False, threads=1, **small)
    for _ in train(config, tmp_path / "joined"):
        pass
    record = records_of(tmp_path / "joined")[-1]
    lines = (tmp_path / "joined" / "updates.jsonl").read_bytes().splitlines(keepends=True)
    forged = [{**record, "update": 900 + n, "history": one} for n, one in enumerate([{}, 7, {"observations": 1e9}])]
    (tmp_path / "joined" / "updates.jsonl").write_bytes(
        b"".join([*lines, *(msgspec.json.encode(one) + b"\n" for one in forged)])
    )
    with visiting(page, tmp_path) as address:
        steps = f"{address}steps?id={Watched(tmp_path, tmp_path / 'joined').id}&update="
        opened(page, f"{steps}{record['update']}&step=1")
        assert page.locator("[data-name=sight]").get_attribute("data-value") == "3 numbers × 10 observations"
        assert page.locator("[data-name=transition_bytes]").get_attribute("data-value") == "50"
        opened(page, f"{steps}{record['update']}&step=4&row=2")
        captions = page.locator(".strip .caption").all_inner_texts()
        assert captions == [
            *(f"state s, observation {n} of 10, row 2" for n in range(3, 11)),
            "action a, row 2",
            *(f"next state s′, observation {n} of 10, row 2" for n in range(3, 11)),
        ]
        tiles = page.locator("[data-name=observation][data-value]").evaluate_all(
            "(all) => all.map((one) => one.dataset)"
        )
        assert [int(one["column"]) for one in tiles] == list(range(24))
        assert [float(one["value"]) for one in tiles] == record["rows"]["observation"][1]
        for one in forged:
            opened(page, f"{steps}{one['update']}&step=4&row=2")
            assert page.locator(".strip").count() == 3


def hostile_images(images):
    """What a record may claim; none of it is ours."""
    (picture,) = images["pictures"]
    packed = base64.b64decode(images["frames"])
    encoded = lambda data: base64.b64encode(data).decode()
    frames = {
        "no base64": "<img src=x onerror=alert(1)>",
        "nothing": "",
        "a number": 5,
        "null": None,
        "garbage": encoded(bytes(range(256)) * 20),
        "torn": encoded(packed[:-200]),
        "more after the end": encoded(packed + b"more"),
        "too few": encoded(zlib.compress(b"\x80" * 1000)),
        "a bomb": encoded(zlib.compress(bytes(2**24))),
        "a larger bomb": encoded(zlib.compress(bytes(2**28))),
    }
    shapes = [
        *([4, 20, 10**9, 1], [10**9, 20, 20, 1], [3, 20, 20, 4], [3, 20, -20, 1], [3, 0, 20, 1], [3, 20, 20.5, 1]),
        *([3, 20, 20], [3, 20, 20, 1, 1], [3, 20, "20", 1], None, "3", {"length": 4}, [3, 33, 33, 1]),
    ]
    whole = [None, [], "images", 7, True, {}, {**images, "pictures": []}, {**images, "pictures": [picture] * 3}]
    whole += [{**images, "pictures": {"length": 1}}, {**images, "pictures": [None]}, {**images, "stack": 1e300}]
    whole += [{**images, "features": "<b>"}, {**images, "parameters": None}, {**images, "random_shift": -1}]
    yield from (({**images, "frames": one}, True) for one in frames.values())
    yield from (({**images, "pictures": [{**picture, "shown": one}]}, False) for one in shapes)
    yield from ((one, False) for one in whole)


def test_hostile_images_are_not_drawn_and_hurt_nothing_else(page, seeing, tmp_path):
    record = next(one for one in records_of(seeing / "seeing") if one["delayed"])
    shutil.copytree(seeing / "seeing", tmp_path / "run")
    cases = list(hostile_images(record["images"]))
    rows = [record | {"update": 2 * n, "images": images} for n, (images, _) in enumerate(cases, start=1)]
    text = {**record["images"]["pictures"][0], "name": HOSTILE}
    rows.append(record | {"update": 2000, "images": {**record["images"], "pictures": [text]}})
    (tmp_path / "run/updates.jsonl").write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    with visiting(page, tmp_path) as address:
        opened(page, f"{address}steps?id={Watched(tmp_path, tmp_path / 'run').id}&step=4&update=2000")
        assert page.locator("#step-data canvas").count() == 12 + 6
        for n, (_, is_image) in enumerate(cases, start=1):
            page.locator("#update-select").select_option(str(2 * n))
            page.wait_for_function(
                "(n) => document.querySelector('#update-words').textContent.startsWith(n)", arg=f"Update {2 * n} at"
            )
            assert page.locator("#problem").is_hidden()
            assert page.locator("#step-data canvas").count() == 0, cases[n - 1]
            assert list(shown(page, "reward").values()) == record["rows"]["reward"]
            words = page.locator("#step-data").inner_text()
            assert words.count("The frames of this update cannot be read.") == (2 if is_image else 0), cases[n - 1]
        assert page.locator("main img").count() == 0


def test_two_images_with_channels_of_their_own_have_names_of_their_own(page, seeing, tmp_path):
    record = next(one for one in records_of(seeing / "seeing") if one["delayed"])
    pictures = [
        {"name": "eye['left']", "channels": 3, "height": 100, "width": 60, "shown": [4, 25, 15, 3]},
        {"name": "eye['right']", "channels": 2, "height": 8, "width": 9, "shown": [4, 8, 9, 1]},
    ]
    size = 12 * 4 * (25 * 15 * 3 + 8 * 9)
    data = np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)
    frames = base64.b64encode(zlib.compress(data.tobytes())).decode()
    record["images"] |= {"pictures": pictures, "stack": 6, "others": 2, "frames": frames, "random_shift": 0}
    record["observation_size"] = 30
    for name in ("observation", "next_observation"):
        record["rows"][name] = [[0.25 * row] * 24 for row in range(6)]
    shutil.copytree(seeing / "seeing", tmp_path / "run")
    (tmp_path / "run/updates.jsonl").write_bytes(msgspec.json.encode(record) + b"\n")
    with visiting(page, tmp_path) as address:
        id = Watched(tmp_path, tmp_path / "run").id
        opened(page, f"{address}steps?id={id}&step=10&row=2")
        found = drawn_frames(page, "[data-name=observation_frames]")
        left, right = found[:4], found[4:]
        assert left[0]["words"] == "state s, eye['left'], row 2, frame 3 of 6"
        assert [one["words"].split(", ", 3)[3] for one in right] == [
            *("frame 5 of 6, channel 1 of 2", "frame 5 of 6, channel 2 of 2"),
            *("frame 6 of 6, channel 1 of 2", "frame 6 of 6, channel 2 of 2"),
        ]
        each = 4 * (25 * 15 * 3 + 8 * 9)
        own = data[2 * each : 3 * each]  # of the second row's s
        coloured, grey = own[: 4 * 25 * 15 * 3].reshape(4, 25, 15, 3), own[4 * 25 * 15 * 3 :].reshape(4, 8, 9, 1)
        assert all((one["pixels"][..., :3] == true).all() for one, true in zip(left, coloured, strict=True))
        assert all((one["pixels"][..., :3] == true).all() for one, true in zip(right, grey, strict=True))
        words = page.locator("[data-name=observation_frames]").inner_text()
        assert (
            "eye['left'], row 2: 6 frames of 100×60 colour, the last 4 frames, the oldest first, drawn as 25×15"
            in words
        )
        assert "eye['right'], row 2: 6 frames of 8×9 in 2 channels, the last 4 channels, one by one" in words
        assert "… and 2 images more" in words
        assert set(shown(page, "observation").values()) == {0.25}
        assert "… 6 more" in page.locator("#step-data").inner_text()
        page.keyboard.press("Home")
        assert "6 frames of 100×60 colour, 6 frames of 8×9 in 2 channels, 2 images more and 30 numbers" in (
            page.locator("#step-data").inner_text()
        )


def target_shown(page):
    """What step 9 says of the chosen row: its sum, and what is on the way from `min` to `y`."""
    words = page.locator(".arithmetic .term").evaluate_all("(all) => all.map((one) => one.innerText.split('\\n'))")
    return words[:2], page.locator("#diagram .labels").text_content(), page.locator("#step-formula").inner_text()


def test_a_target_uses_its_rows_own_discount_and_shows_how_many_steps_it_sums(page, seeing, tmp_path):
    record = next(one for one in records_of(seeing / "seeing") if one["delayed"])
    record["rows"] |= {
        "discount": [0.970299, 0.9801, 0.99, 0.5, 0.8687458, 0.970299],
        "terminated": [False] * 5 + [True],
    }
    record["rows"]["reward"], record["settings"]["reward_scale"] = [1.5] * 6, 1.0
    older = msgspec.json.decode(msgspec.json.encode(record)) | {"update": 1000}
    del older["rows"]["discount"]
    certain = msgspec.json.decode(msgspec.json.encode(record)) | {"update": 1002}
    certain["settings"]["gamma"], certain["rows"]["discount"] = 1.0, [1.0] * 6
    shutil.copytree(seeing / "seeing", tmp_path / "run")
    rows = (record, older, certain)
    (tmp_path / "run/updates.jsonl").write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    with visiting(page, tmp_path) as address:
        place = f"{address}steps?id={Watched(tmp_path, tmp_path / 'run').id}&step=9"
        expected = {
            1: ("r of 3 steps", "0.970299", "γ³", "γ³"),
            2: ("r of 2 steps", "0.9801", "γ²", "γ²"),
            3: ("r", "0.99", "γ", "γ"),
            4: ("r", "0.5", "γᵏ", "γᵏ"),  # no power of γ: not ours, and still what was used
            5: ("r of 14 steps", "0.8687458", "γ¹⁴", "γ¹⁴"),
            6: ("r of 3 steps", "0.970299", "γ³", "0"),
        }
        opened(page, f"{place}&update={record['update']}&row=1")
        for row, (earned, discount, power, arrives) in expected.items():
            if row > 1:
                page.keyboard.press("r")
            terms, labels, formula = target_shown(page)
            assert terms == [["1.5000", earned], [discount, power]]
            assert labels == f"r, d× {arrives}"
            assert formula == "y = r + γᵏ · (1 − d) · min(Q₁′, Q₂′)"
        assert "the discounted sum of k rewards" in page.locator("#step-sentence").inner_text()
        for update, gamma in ((1000, "0.99"), (1002, "1")):
            opened(page, f"{place}&update={update}&row=1")
            terms, labels, formula = target_shown(page)
            assert terms == [["1.5000", "r"], [gamma, "γ"]]
            assert labels == "r, d× γ"
            assert formula == "y = r + γ · (1 − d) · min(Q₁′, Q₂′)"


def test_frames_are_not_wider_than_a_phone(page, seeing):
    with visiting(page, seeing) as address:
        id = Watched(seeing, seeing / "seeing").id
        page.set_viewport_size({"width": 360, "height": 740})
        try:
            for step in walked(page, f"{address}steps?id={id}"):
                assert page.locator("figure.frames").count() == len(FRAMES.get(step, {}))
                assert page.evaluate("document.documentElement.scrollWidth") <= 360
        finally:
            page.set_viewport_size({"width": 1280, "height": 850})
