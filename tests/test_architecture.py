"""The rules of the layout, held to the source itself: CONTRIBUTING.md says them in the same words and no others."""

import ast
import inspect
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import td3

ROOT = Path(__file__).parents[1]
PACKAGE, TESTS = ROOT / "td3", ROOT / "tests"


# --- What is imported -------------------------------------------------------------------------------------------------


class Import(NamedTuple):
    """One import statement's target: a module, and when it is imported."""

    target: str
    when: str  # "module": as the module is imported; "function": when a function is called; "types": for mypy alone
    line: int


def name_of(path):
    """td3/replay/__init__.py is td3.replay."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module):
    """The first component below td3: a package or a module; td3 itself has none."""
    return module.split(".")[1] if "." in module else ""


@cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}
ROOMS = sorted({room_of(module) for module in MODULES} - {"", "__main__"})
ENTRIES = {"td3", *(module for module in MODULES if module.endswith(".__main__"))}


@cache
def imports_of(module):
    """Every import of a module; also a library that `importlib` is asked for by name."""
    named = [
        Import(ast.literal_eval(node.args[0]), "function", node.lineno)
        for node in ast.walk(tree_of(MODULES[module]))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module")
        if isinstance(node.args[0], ast.Constant)
    ]
    return [*imports_in(tree_of(MODULES[module]), "module"), *named]


def imports_in(node, when):
    """Every import below a node of the syntax tree; a name that is a module itself counts as that module."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, when, child.lineno) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"line {child.lineno}: a relative import hides which room it is from"
            for alias in child.names:
                full = f"{child.module}.{alias.name}"
                yield Import(full if full in MODULES else child.module, when, child.lineno)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from imports_in(ast.Module(child.body, []), "types")
            yield from imports_in(ast.Module(child.orelse, []), when)
        else:
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from imports_in(child, "function" if inside and when == "module" else when)


def is_ours(target):
    return target.partition(".")[0] == "td3"


# --- The order of the rooms -------------------------------------------------------------------------------------------


def contributing():
    return (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def order():
    """The rooms from left to right, as CONTRIBUTING has them: the first block of text under Layout."""
    block = re.search(r"## Layout\n.*?```text\n(.*?)```", contributing(), re.DOTALL)
    assert block, "CONTRIBUTING has no block of rooms under Layout"
    return re.findall(r"\w+", block[1])


def test_every_file_that_contributing_names_is_there():
    named = re.findall(r"`((?:td3|tests|docs)/[\w./]*|test_\w+\.py)`", contributing())
    assert len(named) > 10
    assert not [name for name in named if not (ROOT / name).exists() and not (TESTS / name).exists()]


def test_every_room_stands_once_in_the_order_of_contributing():
    assert sorted(order()) == ROOMS


def test_a_module_imports_only_from_its_own_room_and_rooms_to_its_left():
    place = {room: number for number, room in enumerate(order())}
    wrong = [
        f"{module}:{line} imports {target} ({when})"
        for module in MODULES.keys() - ENTRIES
        for target, when, line in imports_of(module)
        if is_ours(target) and target != "td3" and place[room_of(target)] > place[room_of(module)]
    ]
    assert not wrong, "\n".join(sorted(wrong))


def test_no_module_imports_an_entry_point():
    wrong = [
        f"{module}:{line} imports {target}"
        for module in MODULES
        for target, _, line in imports_of(module)
        if target in ENTRIES
    ]
    assert not wrong, "\n".join(wrong)


# A module imports these for mypy or inside a function, though they import it: (who, whom) with the reason.
BACKWARDS = {
    ("td3.replay.sampling", "td3.replay"): "mypy must know both memories, and each memory's home exports the samplers",
    ("td3.replay.prioritized", "td3.replay"): "for the same reason",
    ("td3.views.commands.explain", "td3.views.cli"): "td3 explain trains by the same command line as td3 train",
}


def test_no_imports_go_in_a_circle():
    """All imports count, also those inside functions and for mypy; of these, BACKWARDS are let through."""
    graph = {
        module: {
            one.target
            for one in imports_of(module)
            if one.target in MODULES and (one.when == "module" or (module, one.target) not in BACKWARDS)
        }
        for module in MODULES
    }
    assert not (circle := circle_in(graph)), " → ".join(circle)


def test_every_import_that_may_go_backwards_does():
    later = {(module, one.target) for module in MODULES for one in imports_of(module) if one.when != "module"}
    assert later >= BACKWARDS.keys()


def circle_in(graph):
    """Modules that import each other in a circle, or nothing."""
    done = set()

    def follow(module, way):
        if module in way:
            return [*way[way.index(module) :], module]
        if module not in done:
            done.add(module)
            for target in sorted(graph[module]):
                if circle := follow(target, [*way, module]):
                    return circle
        return []

    return next((circle for module in sorted(graph) if (circle := follow(module, []))), [])


# --- Doors of third-party libraries -----------------------------------------------------------------------------------


def doors():
    """Which rooms import which library, as CONTRIBUTING's table has it."""
    table = re.search(r"\| library \|.*\n((?: *\|.*\n)+)", contributing())
    assert table, "CONTRIBUTING has no table of libraries"
    rows = [[re.findall(r"`(\w+)`", cell) for cell in row.strip(" |").split("|")] for row in table[1].splitlines()[1:]]
    return {library: set(row[1]) for row in rows for library in row[0]}


def third_party(module):
    return {
        (one.target.partition(".")[0], one.when)
        for one in imports_of(module)
        if not is_ours(one.target) and one.target.partition(".")[0] not in sys.stdlib_module_names
    }


def test_each_library_is_imported_by_its_own_rooms_alone():
    found = {}
    for module in MODULES.keys() - ENTRIES:
        for library, _ in third_party(module):
            found.setdefault(library, set()).add(room_of(module))
    assert found.pop("numpy")  # everybody's
    assert found == doors()


# --- Views ------------------------------------------------------------------------------------------------------------

# What trains: no view imports it, not even inside a function.
TRAINS = {
    "environments", "exploration", "collection", "offline", "replay", "learner", "evaluation", "session", "training",
    "agent", "trial", "forecast", "video",
}  # fmt: skip
# The commands start what trains, each inside its `run`; and these serve them.
FOR_COMMANDS = {
    "td3.views.env_report": "td3 check plays an environment and asks what learning in it would take",
    "td3.views.own_parts": "td3 train and resume load the parts that the user names",
}


def test_views_read_the_record_of_a_run_and_never_import_what_trains():
    wrong = [
        f"{module}:{line} imports {target}"
        for module in MODULES
        if room_of(module) == "views" and not module.startswith("td3.views.commands.") and module not in FOR_COMMANDS
        for target, _, line in imports_of(module)
        if is_ours(target) and room_of(target) in TRAINS
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "module", ["td3", "td3.config", "td3.results", "td3.views.cli", "td3.views.page_host", "td3.views.web.server"]
)
def test_what_must_answer_at_once_loads_nothing_that_trains(module):
    names = [f"td3.{room}" for room in sorted(TRAINS)] + [
        "torch",
        "gymnasium",
        "mujoco",
        "matplotlib",
        "rich",
        "optuna",
    ]
    code = f"import sys, {module}; print(*(name for name in {names!r} if name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stdout == "\n"


# --- Who speaks -------------------------------------------------------------------------------------------------------


def test_nothing_but_speaking_prints_or_writes_to_stdout_or_stderr():
    wrong = [
        f"{module}:{node.lineno} {ast.unparse(node)}"
        for module, path in MODULES.items()
        if module != "td3.views.speaking"
        for node in ast.walk(tree_of(path))
        if (isinstance(node, ast.Call) and re.match(r"print\(|pprint\(|os\.write\([12],", ast.unparse(node)))
        or (isinstance(node, ast.Attribute) and re.fullmatch(r"sys\.(__)?std(out|err)(__)?", ast.unparse(node)))
    ]
    assert not wrong, "\n".join(wrong)


# --- Who writes files -------------------------------------------------------------------------------------------------

MAKES_OR_CHANGES = {
    "os": "rename replace unlink remove mkdir makedirs rmdir removedirs link symlink truncate ftruncate mkfifo mknod",
    "shutil": "rmtree copy copy2 copyfile copytree move",
    "tempfile": "TemporaryFile NamedTemporaryFile TemporaryDirectory mkstemp mkdtemp",
    "np": "save savez savetxt",
    "torch": "save",
}
OF_ANY_PATH = "write_text write_bytes touch mkdir rmdir unlink rename symlink_to hardlink_to savefig tofile save_file"

# Who writes a file though it is not `storage`, and why: none of these is a file of a run, and nobody else writes.
WRITES = {
    "td3.export.runners": "an exported file is compiled and run in a temporary folder",
    "td3.filming": "what the film's process says goes to a nameless temporary file",
    "td3.views.commands.explain": "td3 explain trains in a temporary folder",
    "td3.views.speaking": "a closed stdout or stderr becomes the null device",
    "td3.results.files": "td3 compare --save writes below the folder that the user names",
    "td3.video.files": "td3 video writes the file that the user names",
    "td3.benchmark.report": "td3 bench --picture draws the file that the user names",
    "td3.studies.tune_picture": "td3 tune --picture draws the file that the user names",
    "td3.results.pictures": "td3 compare --picture and --profile plot the files that the user names",
    "td3.learner.native.__main__": "--renew writes a C++ header of the source tree",
}


def writes_in(tree):
    """The calls in a module that may make, change or remove a file."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        whole = ast.unparse(call.func)
        owner, _, name = whole.rpartition(".")
        words = [*call.args, *(keyword.value for keyword in call.keywords)]
        if name in MAKES_OR_CHANGES.get(owner, "").split():
            yield call.lineno, whole
        elif whole == "os.open":
            if re.search("O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND", ast.unparse(call)):
                yield call.lineno, whole
        elif name in ("open", "fdopen"):
            modes = [word.value for word in words if isinstance(word, ast.Constant) and isinstance(word.value, str)]
            if any(re.fullmatch("[rwaxbt+]*", mode) and set(mode) & set("wax+") for mode in modes):
                yield call.lineno, whole
        elif (owner and name in OF_ANY_PATH.split()) or (name == "replace" and is_one_path(words)):
            yield call.lineno, whole


def is_one_path(words):
    """Whether `replace` is a path's, which takes one word; a text's takes two."""
    return len(words) == 1 and not isinstance(words[0], ast.Starred)


def test_only_storage_writes_files_of_a_run():
    writers = {}
    for module, path in MODULES.items():
        if room_of(module) != "storage" and (calls := list(writes_in(tree_of(path)))):
            writers[module] = calls
    assert writers.keys() == WRITES.keys(), writers


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("open(path, 'w')", 1),
        ("path.open(mode='ab')", 1),
        ("open(path)", 0),
        ("path.open('rb')", 0),
        ("os.open(name, os.O_RDONLY | os.O_CREAT)", 1),
        ("os.open(name, os.O_RDONLY)", 0),
        ("beside.replace(path)", 1),
        ("text.replace('a', 'b')", 0),
        ("os.replace(a, b); a.unlink(); shutil.rmtree(b); Path(a).write_text('x')", 4),
    ],
)
def test_the_search_for_writing_calls_finds_them(code, count):
    assert len(list(writes_in(ast.parse(code)))) == count


# --- Names and first lines --------------------------------------------------------------------------------------------

EMPTY_NAMES = {"utils", "util", "common", "base", "manager", "helper", "helpers", "core", "misc"}

# The field has another word for each of these, and a name uses that.
OLD_WORDS = re.compile(
    "world|worlds|Worlds|LocalWorlds|VectorWorlds|WorkerWorlds|chance|told|telling|Tick|Played|Eye|Seer|Retelling|"
    "retelling|keeping|Keeper|House|Drawn|judge|judged|judging|Subject|subjects|Ours"
)


def test_no_module_has_a_name_that_says_nothing():
    names = {part for module in MODULES for part in module.split(".")}
    assert not names & EMPTY_NAMES


def test_the_first_line_of_every_module_is_a_sentence():
    paths = [*MODULES.values(), *TESTS.glob("*.py")]
    wrong = [
        f"{path.relative_to(ROOT)}: {first!r}"
        for path in paths
        if not re.match(r"[A-Z`].*[.:!?]$", first := (ast.get_docstring(tree_of(path)) or "\n").splitlines()[0])
    ]
    assert not wrong, "\n".join(wrong)


def identifiers(tree):
    """Every name that a module gives or uses, with its line; texts and comments are none."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield name, node.lineno
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.alias(name=name, asname=other):
                yield from ((part, node.lineno) for part in [*name.split("."), other or ""])


def test_no_name_uses_a_word_that_the_field_does_not():
    wrong = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in [*MODULES.values(), *TESTS.glob("*.py")]
        for name, line in identifiers(tree_of(path))
        if not (path.parent == TESTS and name.startswith("test_"))  # a sentence
        and any(OLD_WORDS.fullmatch(part) for part in name.split("_"))
    ]
    assert not wrong, "\n".join(wrong)


# --- Docstrings -------------------------------------------------------------------------------------------------------


def used_elsewhere():
    """What each module offers to others: (module, name) for every name that another module of td3 imports."""
    for user in MODULES:
        for node in ast.walk(tree_of(MODULES[user])):
            if isinstance(node, ast.ImportFrom) and node.module in MODULES:
                yield from ((node.module, alias.name) for alias in node.names)


def test_what_a_module_offers_to_others_has_a_docstring():
    offered = set(used_elsewhere())
    wrong = [
        f"{module}:{node.lineno} {node.name}"
        for module, path in MODULES.items()
        for node in tree_of(path).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and (module, node.name) in offered
        and not ast.get_docstring(node)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_public_name_and_each_of_its_methods_has_a_docstring():
    promised = {  # what a protocol documents, once for all that fulfil it
        method.name
        for path in MODULES.values()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef) and "Protocol" in map(ast.unparse, node.bases)
        for method in node.body
        if isinstance(method, ast.FunctionDef) and ast.get_docstring(method)
    }
    wrong = []
    for name in set(td3.__all__) - {"__version__"}:
        thing = getattr(td3, name)
        own = inspect.getmembers_static(thing, callable) if isinstance(thing, type) else []
        named = [(name, thing), *(pair for pair in own if not pair[0].startswith("_") and pair[0] not in promised)]
        wrong += [f"{name}: {called}" for called, one in named if not (inspect.getdoc(one) or "").strip()]
    assert not wrong, "\n".join(sorted(wrong))


# --- Tests ------------------------------------------------------------------------------------------------------------


def test_test_modules_do_not_import_each_other():
    tests = {path.stem for path in TESTS.glob("test_*.py")}
    wrong = [
        f"{path.name}:{line} imports {target}"
        for path in TESTS.glob("*.py")
        for target, _, line in imports_in(tree_of(path), "module")
        if target.partition(".")[0] in tests
    ]
    assert not wrong, "\n".join(wrong)
