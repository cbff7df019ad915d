"""The live page in a real browser: it grows by itself, walks through a true update, and stays on its own address."""

import json
import shutil
from urllib.parse import quote

import browser
import msgspec
import pytest
from browser import chromium, opened, visiting
from folders import append, make_run

from td3.config import Config
from td3.training import train
from td3.views.web.runs import Watched

HOSTILE = "<img src=x onerror=alert(1)>"


def curve(seed, points, name="eval/mean_return"):
    return [{"step": 100 * n, name: float(seed + n)} for n in range(1, points + 1)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A short true run, with its recorded updates."""
    folder = tmp_path_factory.mktemp("runs")
    settings = {"warmup_steps": 200, "hidden": (16, 16), "batch_size": 32, "eval_every": 200, "eval_episodes": 2}
    config = Config(env="Pendulum-v1", steps=600, log_every=100, film=False, engine="torch", threads=1, **settings)
    for _ in train(config, folder / "pendulum"):
        pass
    return folder


@pytest.fixture(scope="module")
def page():
    browser.needed()
    with chromium(viewport={"width": 1280, "height": 850}) as page:
        yield page


@pytest.fixture(autouse=True)
def quiet_page(page):
    """No test may leave a complaint in the console, or ask anybody but the page's own server."""
    page.requested.clear()
    page.complaints.clear()
    yield
    assert page.complaints == []
    assert page.requested
    assert {url.split("/")[2].split(":")[0] for url in page.requested if url.startswith("http")} == {"127.0.0.1"}


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


def test_the_page_follows_the_light_and_the_dark(page, trained):
    with visiting(page, trained) as address:
        opened(page, address)
        page.emulate_media(color_scheme="dark")
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.emulate_media(color_scheme="light")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark


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


def test_an_actor_that_waits_for_every_third_update_is_told_so(page, trained, tmp_path):
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
        assert 0.5 < min(band["y"]) < max(band["y"]) < 3.5  # one standard deviation of 1 and 3 is 1


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
