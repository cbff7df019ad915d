"""What is installed is whole: every file of the package that is no Python goes along."""

import tomllib
from pathlib import Path

from td3.views.web.explanation import text

ROOT = Path(__file__).parents[1]
BUILT = ("*.so", "*.pyc", "source/*")  # made, or needed only to make it


def test_every_file_that_is_no_python_is_package_data():
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["td3"]
    files = [one.relative_to(ROOT / "td3") for one in (ROOT / "td3").rglob("*") if one.is_file()]
    others = {one for one in files if one.suffix != ".py" and not any(map(one.match, BUILT))}
    assert len(others) > 15
    assert [one for one in others if not any(map(one.match, known))] == []


def test_the_text_of_the_page_is_in_the_package_and_is_the_document():
    document = (ROOT / "docs/fifteen-steps.md").read_text()
    assert (ROOT / "td3/views/web/fifteen-steps.md").read_text() == document
    assert text("docs")["lines"] == document.splitlines()
