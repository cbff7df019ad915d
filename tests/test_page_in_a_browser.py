"""The live page in a real browser: it grows by itself, walks through a true update, and stays on its own address."""

import json

import browser
import msgspec
import pytest
from browser import chromium, opened, visiting
from folders import append, make_run

from td3.config import Config
from td3.training import train

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
