"""What tests of whole runs share: a run's bytes, a clock that stands still, and whether a process is alive."""

from pathlib import Path

from td3.learner.state import network_tensors, optimizer_tensors
from td3.loop import advance
from td3.session import Session
from td3.storage import read_metrics


def bytes_of(session):
    """Everything a run has learned and remembers."""
    kept = {**network_tensors(session.learner), **optimizer_tensors(session.learner)}
    tensors = {name: one.numpy().tobytes() for name, one in kept.items()}
    memory = session.learner.memory
    return tensors, [column[: len(memory)].tobytes() for column in memory.columns.values()]


def played(settings, run):
    session = Session(settings, run)
    for _ in advance(session, settings.steps):
        pass
    session.close()
    streams = [session.replay_rng, session.smoothing_rng, session.collector.rng]
    metrics = [
        {name: value for name, value in row.items() if not name.startswith("time/")}
        for row in read_metrics(run / "metrics.jsonl")
    ]
    return bytes_of(session), [str(one.bit_generator.state) for one in streams], metrics


class Clock:
    """Goes on only when told to; an update takes as long as it is said to."""

    now = 0.0

    def __call__(self):
        return self.now


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
