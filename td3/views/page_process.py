"""The live page of a run that trains (`--watch`), in a process of its own, so that viewers cost training little."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from td3.errors import ConfigError
from td3.events import Event
from td3.views.web.runs import Watched


def begun(events: Iterator[Event]) -> Iterator[Event]:
    """Returns the same events, of a run that has begun: a refusal comes before a page is started."""
    first = next(events)

    def all_events() -> Iterator[Event]:
        """Yields the first event and the others, and closes them if the loop is left early."""
        try:
            yield first
            yield from events
        finally:
            events.close()  # type: ignore[attr-defined]  # a generator: saves if it was left early

    return all_events()


@contextlib.contextmanager
def page_of(folder: Path) -> Iterator[str]:
    """Starts the page and returns its address; the page ends with this process, however that ends."""
    words = [sys.executable, "-m", "td3", "watch", str(folder), "--json", "--until-closed"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdin
    assert process.stdout
    try:
        line = process.stdout.readline()
        if not line:  # it has said why on stderr
            raise ConfigError("The page could not be started; train without --watch.")
        address = str(msgspec.json.decode(line, type=dict[str, str | int])["address"])
        yield f"{address}run?id={Watched(folder.absolute(), folder.absolute()).id}"
    finally:
        process.stdin.close()  # the run is saved: whoever looks is sent its last state, and then the page ends
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()
        process.stdout.close()
