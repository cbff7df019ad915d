"""The native library's own checks in C++: as installed, under sanitizers and under valgrind."""

import hashlib
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from native_build import CHECKS, COMPILER, LIBRARY, flags_of_setup, needs_compiler, run

QUICKLY = ["-O1", "-g1"]  # g1: files and lines for the reports

# Tiles of 12 rows need 32 registers; where there are 16, -O3 takes minutes over them.
OWN_FLAGS = {"wide": ["-O1"]}
if sys.platform == "linux" and "avx512f" not in Path("/proc/cpuinfo").read_text():
    OWN_FLAGS["avx512"] = ["-O0", "-fno-sanitize=all"]  # only linked, never run

pytestmark = [
    needs_compiler,
    pytest.mark.timeout(1_800),  # compilers are slow where cores are few and busy
]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory, pytestconfig):
    """Compiles the check program with setup.py's flags and some more, once until a source changes."""
    cache = getattr(pytestconfig, "cache", None)  # None with -p no:cacheprovider
    folder = cache.mkdir("native-checks") if cache else tmp_path_factory.mktemp("native-checks")

    def program(name, *flags):
        flags = [*flags_of_setup(), *flags]
        made, key = folder / name, folder / f"{name}.key"
        now = fingerprint(flags)
        if not made.exists() or not key.exists() or key.read_text() != now:
            shutil.move(compile_all(tmp_path_factory.mktemp(name), flags), made)
            key.write_text(now)
        return made

    return program


def fingerprint(flags):
    """Hashes everything that a compiled program depends on."""
    compiler = subprocess.run([COMPILER, "--version"], capture_output=True, check=True).stdout
    files = [path.read_bytes() for path in sorted([*LIBRARY.iterdir(), *CHECKS.iterdir()])]
    return hashlib.sha256(repr((compiler, flags, OWN_FLAGS, files)).encode()).hexdigest()


def compile_all(folder, flags):
    empty = folder / "empty.cpp"
    empty.write_text("int main() {}\n")
    if subprocess.run([COMPILER, *flags, empty, "-o", folder / "empty"], capture_output=True).returncode:
        pytest.skip(f"{COMPILER} cannot link with {' '.join(flags)}")

    def compile_one(source):
        own = OWN_FLAGS.get(source.stem, [])
        run([COMPILER, *flags, *own, "-I", LIBRARY, "-c", source, "-o", folder / f"{source.stem}.o"])

    sources = [*CHECKS.glob("*.cpp"), *LIBRARY.glob("*.cpp")]
    with ThreadPoolExecutor(2) as pool:  # wide.cpp first, it takes longest
        list(pool.map(compile_one, sorted(sources, key=lambda source: source.name, reverse=True)))
    run([COMPILER, *flags, *folder.glob("*.o"), "-o", folder / "check"])
    return folder / "check"


def assert_all_checks_pass(words):
    out, err = run(words)
    assert err == ""  # no sanitizer or valgrind reported anything
    assert int(re.fullmatch(r"(\d+) checks passed\n", out)[1]) > 10_000


def test_the_library_as_it_is_installed_passes_its_own_checks(compiled):
    assert_all_checks_pass([compiled("installed")])


def test_no_address_is_wrong_and_nothing_undefined_while_the_checks_run(compiled):
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    assert_all_checks_pass([compiled("sanitized", *QUICKLY, *sanitizers)])


@pytest.mark.campaign
def test_no_two_threads_touch_the_same_number_at_once(compiled, monkeypatch):
    monkeypatch.setenv("TSAN_OPTIONS", "halt_on_error=1")  # the first race is enough
    assert_all_checks_pass([compiled("threads", *QUICKLY, "-fsanitize=thread")])


@pytest.mark.campaign
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="there is no valgrind here")
def test_valgrind_finds_no_unwritten_number_and_no_lost_memory(compiled):
    valgrind = ["valgrind", "--error-exitcode=9", "--leak-check=full", "-q"]
    assert_all_checks_pass([*valgrind, compiled("quick", *QUICKLY)])
