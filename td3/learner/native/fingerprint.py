"""Fingerprints of the Python functions that the native library replaces: it stands in for these and for no others.

The library carries the fingerprints it was tested with (`source/tested.h`, which is committed). Where a function was
edited in its file or replaced in this process, its fingerprint is another one, and the library is not used. Building
the library again does not change what it was tested with; see `__main__.py`.
"""

import ast
import functools
import hashlib
import importlib
import inspect
import linecache
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# What it does, and what it believes unseen: the two that draw. Networks and optimisers are looked at themselves
# (`supported.py`), so it does not matter who makes them.
FUNCTIONS = (
    "td3.learner.td3:Learner.learn",
    "td3.learner.td3:Learner.sample",
    "td3.learner.td3:Learner.load_batch",
    "td3.learner.td3:Learner.target",
    "td3.learner.td3:Learner.distance",
    "td3.learner.td3:Learner.update",
    "td3.learner.td3:Learner.policy",
    "td3.learner.td3:Learner.act",
    "td3.learner.losses:lap_loss",
    "td3.learner.networks:Actor.forward",
    "td3.learner.networks:Critics.forward",
    "td3.learner.networks:Critics.first",
    "td3.learner.networks:TwinLinear.forward",
    "td3.learner.networks:TwinLinear.first",
    "td3.learner.networks:act",
    "td3.learner.encoders:VectorEncoder.forward",
    "td3.learner.targets:polyak",
    "td3.learner.preprocessing:preprocess",
    "td3.replay.memory:Memory.sample",
    "td3.replay.memory:Memory.batch",
    "td3.replay.links:look_ahead",
    "td3.types:Update.means",
)
TD7_FUNCTIONS = (  # what it does besides, where the algorithm is TD7
    "td3.learner.td7:TD7Learner.learn",
    "td3.learner.td7:TD7Learner.target",
    "td3.learner.td7:TD7Learner.update",
    "td3.learner.td7:TD7Learner.copies_now",
    "td3.learner.td7:TD7Update.means",
    "td3.learner.assessment:TargetRange.clip",
    "td3.learner.embeddings:avg_l1_norm",
    "td3.learner.embeddings:Embedding.forward",
    "td3.learner.embeddings:Embedding.state",
    "td3.learner.embeddings:Embedding.pair",
    "td3.learner.embeddings:EmbeddedActor.forward",
    "td3.learner.embeddings:EmbeddedCritics.forward",
    "td3.learner.embeddings:EmbeddedCritics.first",
    "td3.learner.embeddings:EmbeddedCritics._inputs",
)


def why_edited(tested: Mapping[str, str], algorithm: str = "td3") -> str:
    """Which function of an algorithm is not the one that was tested, and what to do; nothing where all are."""
    others = set() if algorithm == "td7" else set(TD7_FUNCTIONS)
    for name in dict.fromkeys((*FUNCTIONS, *TD7_FUNCTIONS, *tested)):
        if name not in others and fingerprint(name) != tested.get(name):
            module, _, function = name.partition(":")
            return (
                f"{module.replace('.', '/')}.py was edited, or its {function} replaced, and the native engine does "
                "what it said before (undo that to have the engine back; after an update of td3, install it again)"
            )
    return ""


def fingerprint(name: str) -> str:
    """Of the function that 'module:function' or 'module:Class.method' stands for now; nothing if it has no source.

    Comments, docstrings, types and layout do not count. What the function's global names stand for does.
    """
    module, _, path = name.partition(":")
    try:
        function: Any = functools.reduce(getattr, path.split("."), importlib.import_module(module))
        function = getattr(function, "fget", function)  # of a property
        wrappers = 0
        while hasattr(function, "__wrapped__"):  # by its decorators; one more is somebody else's
            function, wrappers = function.__wrapped__, wrappers + 1
        code = function.__code__
        said, names = syntax(code, code.co_filename, Path(code.co_filename).stat().st_mtime_ns)
    except (AttributeError, IndexError, OSError, SyntaxError):
        return ""
    stand_for = [(name, origin(function.__globals__[name])) for name in names if name in function.__globals__]
    return hashlib.sha256(repr((said, stand_for, wrappers)).encode()).hexdigest()[:16]


@functools.cache
def syntax(code: types.CodeType, path: str, _changed: int) -> tuple[str, tuple[str, ...]]:
    """What a function says in its file, read once until that changes, and the names in it."""
    linecache.checkcache(path)
    # `inspect.getsource` would search every module that is loaded, which takes a tenth of a second.
    lines = inspect.getblock(linecache.getlines(path)[code.co_firstlineno - 1 :])
    tree = ast.parse("".join(["if True:\n", *lines] if lines[0][0].isspace() else lines))
    names: set[str] = set()
    return repr(plain(tree, names)), tuple(sorted(names))


IGNORED = ("annotation", "returns", "ctx")  # types; and what the place of a name says already


def plain(node: Any, names: set[str]) -> Any:
    """A syntax tree as tuples, the same in every version of Python: `ast.dump` is not. The names in it join `names`."""
    if isinstance(node, ast.AST):
        if isinstance(node, ast.Name):
            names.add(node.id)
        fields = [(name, getattr(node, name, None)) for name in node._fields if name not in IGNORED]
        return type(node).__name__, [(name, plain(value, names)) for name, value in fields if value not in (None, [])]
    if isinstance(node, list):
        return [plain(one, names) for one in node if not is_docstring(one)]
    return repr(node)


def is_docstring(node: Any) -> bool:
    """Or another string that stands by itself, which does nothing either."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def origin(value: Any) -> str:
    """Returns where a global value comes from; a plain constant is its own origin."""
    if isinstance(value, types.ModuleType):
        return value.__name__
    if callable(value):
        return f"{getattr(value, '__module__', None)}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    return repr(value) if isinstance(value, int | float | str | bool) else type(value).__qualname__
