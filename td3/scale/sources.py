"""The user's own modules that an environment needs, as bytes: a node need not have them.

What is installed (by pip, or with Python) is expected on every node; everything else that is imported, from the module
of `module:name` on, is sent along.
"""

import ast
import importlib.util
import sys
import sysconfig
from pathlib import Path

from td3.errors import ConfigError

MOST = 16 * 2**20  # bytes: more is no code


def sources_of(env: str) -> dict[str, bytes]:
    """Returns the files of the modules behind `module:name`, by their places; none for an id without a module."""
    found: dict[str, bytes] = {}
    wanted, seen = [env.rpartition(":")[0].partition(".")[0]] if ":" in env else [], set()
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        files = own_files(name)
        for place, data in files.items():
            wanted += imported_by(data) if place.endswith(".py") else []
        found.update(files)
        if (size := sum(map(len, found.values()))) > MOST:
            raise ConfigError(
                f"env {env!r} comes with {size:,} bytes of Python files, more than the {MOST:,} that are sent to a "
                "node: install it there as a package."
            )
    return found


def own_files(module: str) -> dict[str, bytes]:
    """Returns the Python files of a module or package that is not installed; none for any other."""
    try:
        spec = importlib.util.find_spec(module) if module else None
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return {}  # an import that is tried, or a mistake of which training says more
    if spec.submodule_search_locations:
        folders = [Path(place) for place in spec.submodule_search_locations]
        paths = [(path, folder.parent) for folder in folders for path in sorted(folder.rglob("*.py"))]
    else:
        origin = Path(spec.origin or "")
        paths = [(origin, origin.parent)] if origin.suffix == ".py" else []
    return {path.relative_to(root).as_posix(): path.read_bytes() for path, root in paths if not is_installed(path)}


def is_installed(path: Path) -> bool:
    """Whether a file belongs to Python, to a package that pip installed, or to td3."""
    places = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders = [*map(Path, filter(None, places)), Path(__file__).parents[1]]
    return any(path.is_relative_to(folder) for folder in folders) or "site-packages" in path.parts


def imported_by(source: bytes) -> list[str]:
    """Returns the names of the top modules that a module imports anywhere."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.append(node.module)
    tops = {name.partition(".")[0] for name in names}
    return sorted(tops - set(sys.stdlib_module_names))
