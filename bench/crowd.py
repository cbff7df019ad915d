"""Do two learners on two cores get in each other's way? `python -m bench.crowd`

Two processes learn at the same time, first with one thread each, then with as many threads as there are cores each;
several rounds, interleaved. The sum of the second pair should not fall below the sum of the first.
"""

import json
import statistics
import subprocess
import sys
import time

from td3.learner.making import cores

ROUNDS, SECONDS, START = 5, 4.0, 12.0  # both are ready long before they start


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(learn(int(sys.argv[1]), float(sys.argv[2]))))
        return
    sums: dict[int, list[float]] = {1: [], cores(): []}
    for number in range(1, ROUNDS + 1):
        for threads, found in sums.items():
            words = [sys.executable, "-m", "bench.crowd", str(threads), str(time.time() + START)]
            pair = [subprocess.Popen(words, stdout=subprocess.PIPE) for _ in range(2)]
            found.append(sum(json.loads(one.communicate()[0]) for one in pair))
        print(
            f"round {number}: " + ", ".join(f"2 × {t} threads {found[-1]:.0f}" for t, found in sums.items()), flush=True
        )
    for words, choose in (("best", max), ("median", statistics.median)):
        single, many = choose(sums[1]), choose(sums[cores()])
        print(
            f"{words}: two single threads {single:.0f} updates/s, two times {cores()} {many:.0f}: {many / single:.2f}"
        )


def learn(threads: int, start: float) -> float:
    """Updates per second, begun together with the neighbour."""
    import torch

    from td3.benchmark.cases import CASES
    from td3.benchmark.libraries import Ours

    torch.set_num_threads(threads)
    run = Ours("native").updates(CASES["author"])
    run(50)
    time.sleep(max(0.0, start - time.time()))
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < SECONDS:
        run(10)
        count += 10
    return count / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
