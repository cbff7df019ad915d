"""The whole benchmark: a fresh process for each number of threads, one after the other."""

import json
import platform
import subprocess
import sys
from typing import Any

from td3.errors import TD3Error
from td3.wording import counted


class BenchFailed(TD3Error):
    """A measuring process did not come to its end."""


def bench(threads: list[int], **plan: Any) -> dict[str, Any]:
    """Measures each number of threads in a process of its own."""
    runs = []
    for count in threads:
        words = [sys.executable, "-m", "td3.benchmark", json.dumps({"threads": count, **plan})]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise BenchFailed(f"The measurement with {counted(count, 'thread')} ended with code {done.returncode}.")
        runs.append(json.loads(done.stdout))
    return {"machine": f"{platform.system()} {platform.machine()}", "runs": runs}
