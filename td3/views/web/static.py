"""The page's own files: compressed once, and not sent again to a browser that has them."""

import functools
import gzip
import hashlib
import importlib.util
import re
from pathlib import Path
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

PAGES = Path(__file__).parent / "page"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}
LIBRARY = "plotly.js"
ASK_AGAIN = "no-cache"  # whether there is a newer one
A_DAY = "private, max-age=86400"


class File(NamedTuple):
    """A file as it is sent."""

    data: bytes
    compressed: bytes
    tag: str  # that changes with its content


def names() -> set[str]:
    """Returns the names of all files; a request's is compared with them, never joined to a path."""
    return {LIBRARY, *(path.name for path in PAGES.iterdir())}


async def answer(request: Request, name: str) -> Response:
    """Answers with one of the files, or says that the browser's own copy is still right."""
    file = await run_in_threadpool(library if name == LIBRARY else own, name)
    headers = {"Cache-Control": A_DAY if name == LIBRARY else ASK_AGAIN, "ETag": file.tag, "Vary": "Accept-Encoding"}
    if file.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    data = file.data
    if "gzip" in request.headers.get("accept-encoding", ""):
        data, headers["Content-Encoding"] = file.compressed, "gzip"
    return Response(data, media_type=KINDS.get(Path(name).suffix), headers=headers)


def own(name: str) -> File:
    """Reads a file of the page, compressed again only if it has changed."""
    return prepared((PAGES / name).read_bytes())


@functools.lru_cache(maxsize=64)
def prepared(data: bytes) -> File:
    """Compresses a file, and makes its tag."""
    return File(data, gzip.compress(data, mtime=0), f'"{hashlib.sha256(data).hexdigest()[:16]}"')


@functools.cache
def library(_name: str) -> File:
    """Reads the charts' library, where its Python package keeps it; found without importing it.

    It would add the style of its maps, which we have none of, to every page; it does not where an element with that
    style's name is there already.
    """
    found = importlib.util.find_spec("plotly")
    assert found
    assert found.submodule_search_locations
    code = (Path(found.submodule_search_locations[0]) / "package_data" / "plotly.min.js").read_bytes()
    styles = sorted({name.decode() for name in re.findall(rb'getElementById\("([0-9a-f]{64})"\)', code)})
    there = f'for (const id of {styles}) document.head.append(Object.assign(document.createElement("meta"), {{ id }}));'
    return prepared(there.encode() + b"\n" + code)
