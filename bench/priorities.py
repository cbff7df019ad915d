"""What prioritised replay costs beside a native update, with a full memory, `python -m bench.priorities`."""

import argparse
import statistics
import sys
import time

import numpy as np

from td3.config import Config
from td3.learner import Learner, engine_name
from td3.learner.making import hand_over
from td3.replay import Memory, PrioritizedSampler
from td3.types import Layout, Transitions

OBSERVATIONS, ACTIONS = 17, 6  # HalfCheetah's


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--updates", type=int, default=1_000)
    chosen = parser.parse_args()
    rng = np.random.default_rng(0)
    config = Config(env="none", buffer_size=chosen.rows)
    learner, engine, _, threads = hand_over(Learner(Layout(OBSERVATIONS), ACTIONS, config, 0), config)
    wide = [rng.standard_normal((chosen.rows, size), np.float32) for size in (OBSERVATIONS, ACTIONS, OBSERVATIONS)]
    reward, ends = rng.standard_normal(chosen.rows, np.float32), np.zeros(chosen.rows, np.bool_)
    learner.store(Transitions.in_a_row(wide[0], wide[1], reward, wide[2], ends))
    assert isinstance(learner.memory, Memory)
    sampler = PrioritizedSampler(learner.memory)
    sampler.added(np.arange(chosen.rows))
    sampler.priority[:] = np.maximum(rng.exponential(3, chosen.rows), 1) ** 0.4
    sampler.sums.add_up_all()
    whole, own = [], []
    for index in range(chosen.updates):  # in turns, so that both meet the same machine and the same caches
        began = time.perf_counter()
        update = learner.learn(rng, rng)
        between = time.perf_counter()
        sampler.updated(sampler.sample(rng, config.batch_size), update)
        sampler.added(np.array([index]))  # as a step in between does
        own.append(time.perf_counter() - between)
        whole.append(between - began)
    update_us, own_us = (1e6 * statistics.median(times) for times in (whole, own))
    print(
        f"{chosen.rows:,} rows, {engine_name(engine)} on {threads} threads: an update {update_us:,.0f} µs, "
        f"sampling by errors {own_us:,.0f} µs more, {own_us / update_us:.1%} (medians of {chosen.updates:,})"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
