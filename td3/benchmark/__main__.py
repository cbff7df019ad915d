"""Measures with one number of threads in a process of its own: a plan as JSON comes in, the result leaves on stdout."""

import json
import os
import sys

from td3.views.speaking import answer, answers_only, say


def main() -> None:
    """Measures what the plan in the first argument asks for, and prints the result as JSON."""
    plan = json.loads(sys.argv[1])
    if hasattr(os, "sched_setaffinity"):  # before any library counts the cores
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: plan["threads"]])
    with answers_only():  # what peers print is no part of the answer
        from td3.benchmark.measurements import measure

        answer(measure(**plan, say=say))


if __name__ == "__main__":
    main()
