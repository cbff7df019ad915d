"""How fast each engine performs TD7, and at which share of the processor's multiply-adds, `python -m bench.td7`.

Times are those of the processor, not of the clock: other processes on the machine count little.
"""

import argparse
import statistics
import sys
import time
from dataclasses import replace

import numpy as np
import torch

from td3.config import Config
from td3.learner import engine_name, switched
from td3.learner.native import library
from td3.learner.td7 import TD7Learner
from td3.types import Layout, Transitions

OBSERVATIONS, ACTIONS, ROWS = 17, 6, 20_000  # HalfCheetah's
EXACT = Config(env="none", preset="td7", buffer_size=ROWS)
SMALL = replace(EXACT, embedding_size=128, embedding_hidden=(128, 128), batch_size=128)
SMALLEST = replace(SMALL, embedding_size=64)


def flops(config: Config) -> float:
    """Counts the multiplications and additions of an update's matrix products; the actor moves in one of two."""
    z, (e, h), (w, v), o, a = config.embedding_size, config.embedding_hidden, config.actor_layers, OBSERVATIONS, ACTIONS
    f, g = o * e + e * h + h * z, (z + a) * e + e * h + h * z
    actor, critic = o * w + (w + z) * w + w * v + v * a, (o + a) * w + (w + 2 * z) * w + w * v + v
    embedding = 2 * f + g + (2 * h * z + 2 * e * h + z * e) + f + g  # forward, to the inputs, to the weights
    targets, online = f + actor + g + 2 * critic, f + g + 4 * critic + 2 * (v + v * w + w * w)
    moved = 2 * actor + g + 2 * critic + 2 * (v + v * w + w * (w + z) + w * a) + (z * h + h * e + e * a)
    moved += a * v + v * w + w * w
    return 2 * config.batch_size * (embedding + targets + online + moved / config.policy_delay)


def peak() -> float:
    """Measures the GFLOPS of multiply-adds alone, per second of this thread."""
    began, used = time.perf_counter(), time.thread_time()
    rate = library.peak(1, 0.05)
    return rate * (time.perf_counter() - began) / (time.thread_time() - used)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--updates", type=int, default=8, help="of each engine in a round")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    for name, config in {"exact": EXACT, "z 128, batch 128": SMALL, "z 64, batch 128": SMALLEST}.items():
        rng, rates = np.random.default_rng(0), {"native": [0.0], "torch": [0.0]}
        learners = {engine: switched(filled(config), engine) for engine in rates}
        peaks = []
        for _ in range(chosen.rounds):
            peaks.append(peak())
            for engine, learner in learners.items():
                began = time.thread_time()
                for _ in range(chosen.updates):
                    learner.learn(rng, rng)
                rates[engine].append(chosen.updates / (time.thread_time() - began))
        native, pytorch = (max(found) for found in rates.values())
        medians = [statistics.median(found[1:]) for found in rates.values()]
        share, usual = native * flops(config) / 1e9 / max(peaks), statistics.median(peaks)
        print(
            f"{name}: {flops(config) / 1e6:,.0f} MFLOP; {engine_name('native')} {native:.1f} updates/s "
            f"(median {medians[0]:.1f}), {share:.2f} of {max(peaks):.0f} GFLOPS (median {usual:.0f}); "
            f"torch {pytorch:.1f} ({medians[1]:.1f}): {native / pytorch:.2f} times"
        )
    return 0


def filled(config: Config) -> TD7Learner:
    """Makes a learner with a full memory."""
    rng = np.random.default_rng(0)
    learner = TD7Learner(Layout(OBSERVATIONS), ACTIONS, config, 0)
    s, a, s2 = (rng.standard_normal((ROWS, size), np.float32) for size in (OBSERVATIONS, ACTIONS, OBSERVATIONS))
    learner.store(Transitions.in_a_row(s, a, rng.standard_normal(ROWS, np.float32), s2, np.zeros(ROWS, np.bool_)))
    return learner


if __name__ == "__main__":
    sys.exit(main())
