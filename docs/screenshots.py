"""Takes the pictures of the web page that README and docs show: `python docs/screenshots.py RUNS NAME [--images]`.

RUNS is a folder with runs; those of the newest one's environment are plotted together. NAME is one of them whose
recorded updates are shown. With `--images` it is one with image observations, with `--findings` one with findings, and
only their picture is taken. It needs Chromium.
"""

import json
import sys
from io import BytesIO
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from browser import chromium, opened, serving  # noqa: E402 - the tests' browser

WIDE = {"width": 1280, "height": 850}


def main() -> None:
    runs, name = sys.argv[1:3]
    with serving(runs) as address:
        with chromium(viewport=WIDE, reduced_motion="reduce") as page:
            rows = json.loads(page.request.get(f"{address}api/runs").text())["runs"]
            id = next(row["id"] for row in rows if row["name"] == name)
            if "--images" in sys.argv:
                take(page, f"{address}steps?id={id}&step=4", "page-images", height=1_130)
                return
            if "--findings" in sys.argv:
                take(page, f"{address}run?id={id}", "page-findings", height=600)
                return
            update, row = terminated_row(page, address, id)
        with chromium(viewport=WIDE) as page:
            take(page, f"{address}?group=1", "page-runs")
            take(page, f"{address}run?id={id}", "page-run", height=1_600)
        with chromium(viewport=WIDE, color_scheme="dark") as page:
            take(page, f"{address}run?id={id}", "page-run-dark")
        with chromium(viewport=WIDE, reduced_motion="reduce") as page:  # at the end of each step's animation
            take(page, f"{address}steps?id={id}&update={update}&step=4", "page-step-04")
            take(page, f"{address}steps?id={id}&update={update}&step=9&row={row + 1}", "page-step-09")
        with chromium(viewport=WIDE, reduced_motion="reduce", color_scheme="dark") as page:
            take(page, f"{address}steps?id={id}&update={update}&step=13", "page-step-13")


def terminated_row(page, address, id):
    """Return the newest delayed update that shows a terminated row, and that row."""
    updates = json.loads(page.request.get(f"{address}api/updates", params={"id": id}).text())["updates"]
    for update in sorted((one["update"] for one in updates if one["delayed"]), reverse=True):
        record = json.loads(page.request.get(f"{address}api/update", params={"id": id, "update": update}).text())
        if any(record["rows"]["terminated"]):
            return update, record["rows"]["terminated"].index(True)
    raise SystemExit("No recorded update of this run has a terminated row.")


def take(page, address, name, height=WIDE["height"]):
    page.set_viewport_size({**WIDE, "height": height})
    opened(page, address)
    page.wait_for_timeout(1_500)  # milliseconds: the charts' own animation ends
    picture = Image.open(BytesIO(page.screenshot()))
    picture.convert("RGB").save(ROOT / "docs/pictures" / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
