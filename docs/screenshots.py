"""Takes the pictures of the live page that README and docs show: `python docs/screenshots.py RUNS NAME [--images]`.

RUNS is a folder with runs, NAME one of them whose recorded updates are walked through. With `--images` it is one that
sees images, and only the picture of those is taken. It needs Chromium.
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
        with chromium(viewport=WIDE) as page:
            take(page, f"{address}?group=1", "page-runs")
            take(page, f"{address}run?id={id}", "page-run", height=1_600)
        with chromium(viewport=WIDE, color_scheme="dark") as page:
            take(page, f"{address}run?id={id}", "page-run-dark")
        with chromium(viewport=WIDE, reduced_motion="reduce") as page:  # at the end of each step's movement
            take(page, f"{address}steps?id={id}&step=4", "page-step-04")
            take(page, f"{address}steps?id={id}&step=9&row=6", "page-step-09")
        with chromium(viewport=WIDE, reduced_motion="reduce", color_scheme="dark") as page:
            take(page, f"{address}steps?id={id}&step=13", "page-step-13")


def take(page, address, name, height=WIDE["height"]):
    page.set_viewport_size({**WIDE, "height": height})
    opened(page, address)
    page.wait_for_timeout(1_500)  # the charts' own movement ends
    picture = Image.open(BytesIO(page.screenshot()))
    picture.convert("RGB").save(ROOT / "docs/pictures" / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
