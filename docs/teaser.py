"""Makes the animation at the top of the README: `python docs/teaser.py RUNS NAME`.

RUNS is a folder with runs, NAME one of them. Its newest delayed update is played step by step, with a row that did not
terminate. The web page's clock is stopped and moved from frame to frame, so the animation does not depend on how fast
this machine is. It needs Chromium.
"""

import json
import sys
from io import BytesIO
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from browser import chromium, opened, serving  # noqa: E402 - the tests' browser

SIZE = {"width": 880, "height": 644}  # as wide as a README is shown
FRAMES, FRAME = 7, 50  # frames of a wave, and milliseconds that each is shown
WAVE = 1_300  # milliseconds that a wave takes on the web page: WAVE in animation.js
HOLD, LAST_HOLD = 400, 1_200  # milliseconds that a finished step is shown, and the last one
# The diagram and below it number, title, sentence and formula of the step; all else is hidden.
ONLY_THE_STEP = """
  #top, .steps-title, .controls, .legend, #rows, #step-data, #step-data ~ *, .phase, .skip { display: none !important; }
  .steps-page main { padding: 8px !important; }
  .stage { gap: 8px !important; }
  .diagram-card { padding-block: 6px 10px !important; }
  .panel { height: 116px; padding: 10px 16px !important; grid-template-columns: minmax(0, 1fr) max-content !important; }
  .panel header { margin-bottom: 2px !important; }
  .step-number { height: 2rem !important; min-width: 2rem !important; }
  .formula { align-self: start; max-width: 370px; }
"""


def main() -> None:
    runs, name = sys.argv[1:3]
    with serving(runs) as address, chromium(viewport=SIZE, bypass_csp=True) as page:
        update, row = ordinary_row(page, address, name)
        page.clock.install()
        opened(page, f"{address}steps?id={run_of(page, address, name)}&update={update}&row={row + 1}&step=1")
        page.add_style_tag(content=ONLY_THE_STEP)
        frames, durations = [], []
        for step in range(1, 16):
            page.keyboard.press("Home" if step == 1 else "ArrowRight")
            for picture, duration in step_frames(page, step):
                frames.append(picture)
                durations.append(duration)
    path = ROOT / "docs/pictures/fifteen-steps.webp"
    frames[0].save(
        path, save_all=True, append_images=frames[1:], duration=durations, loop=0, quality=90, method=6,
        minimize_size=True,
    )  # fmt: skip
    print(f"{path.name}: {len(frames)} frames, {sum(durations) / 1_000:.1f} s, {path.stat().st_size / 1_000:,.0f} kB")


def answer(page, address, **query):
    return json.loads(page.request.get(address, params=query).text())


def run_of(page, address, name):
    return next(run["id"] for run in answer(page, f"{address}api/runs")["runs"] if run["name"] == name)


def ordinary_row(page, address, name):
    """The newest update that also moves the actor, and the first of its rows that did not terminate."""
    id = run_of(page, address, name)
    updates = answer(page, f"{address}api/updates", id=id)["updates"]
    update = max(one["update"] for one in updates if one["delayed"])
    rows = answer(page, f"{address}api/update", id=id, update=update)["rows"]
    return update, rows["terminated"].index(0)


def step_frames(page, step):
    """Yield the frames of one step with their durations: every wave, then the finished step."""
    for _ in range(int(page.locator("svg.drawn").get_attribute("data-waves"))):
        for _ in range(FRAMES):
            page.clock.run_for(WAVE / FRAMES)
            yield shot(page), FRAME
    page.clock.run_for(1_000)
    yield shot(page), LAST_HOLD if step == 15 else HOLD


def shot(page):
    return Image.open(BytesIO(page.screenshot(animations="disabled"))).convert("RGB")


if __name__ == "__main__":
    main()
