"""Compares a native library in a folder with the page of TD7: prints every quantity of two updates that is wrong."""

import sys
from dataclasses import replace
from pathlib import Path

import torch
from learners import some_batch
from torch import nn

from td3.config import Config
from td3.learner.native import library
from td3.learner.native.td7 import NativeTD7Learner
from td3.learner.td7 import TD7Learner
from td3.types import Layout

CONFIG = Config(
    env="none", algorithm="td7", sampling="lap", hidden=(33, 17), embedding_size=20, embedding_hidden=(31, 18),
    batch_size=50, buffer_size=1, target_every=2, policy_delay=1, priority_floor=0.25, critic_lr=1e-3, tau=0.3,
    update_schedule="episode",
)  # fmt: skip
CONFIGS = CONFIG, replace(CONFIG, sampling="uniform", actor_loss="q1", clip_targets=False, target_every=0)
TOLERANCE = 2e-4  # of the largest number of its tensor; Adam turns the rounding of a tiny gradient into a step


def quantities(learner: TD7Learner, update):
    """Yields every quantity of an update by name, in the order of the steps."""
    embedding = learner.embedding
    yield "embedding loss", [update.means()[5]]
    yield "embedding's gradient", gradients(learner.embedding_optimizer)
    yield "embedding", embedding.parameters()
    yield "next_action", [update.next_action]
    yield "next_q", [update.next_q1, update.next_q2]
    yield "clipped next_q", [update.next_q]
    yield "target", [update.target, learner.target_range.smallest, learner.target_range.largest]
    yield "q", [update.q1, update.q2]
    yield "critic loss", [update.means()[0]]
    yield "critics' gradient", gradients(learner.critics_optimizer)
    yield "critics", own(learner.critics)
    yield "actor loss", [update.means()[1]]
    yield "actor's gradient", gradients(learner.actor_optimizer)
    yield "actor", learner.actor.parameters()
    yield "actor target", learner.actor_target.parameters()
    yield "critic targets", own(learner.critic_targets)
    yield "target embedding", learner.critic_targets.encoder.parameters()
    yield "fixed embedding", learner.critics.encoder.parameters()


def gradients(optimizer):
    return [state["exp_avg"] for state in optimizer.state.values()]


def own(critics: nn.Module):
    return [*critics.linear.parameters(), *critics.layers.parameters()]


def near(ours, theirs) -> bool:
    with torch.no_grad():
        return all(bool(((x - y).abs() <= TOLERANCE * y.abs().max()).all()) for x, y in zip(ours, theirs, strict=True))


def wrong_quantities(config: Config):
    """Returns the names of the quantities that differ, in the first update in which any does."""
    native, page = (kind(Layout(17), 6, config, 0) for kind in (NativeTD7Learner, TD7Learner))
    for learner in (native, page):
        learner.target_range.low.fill_(-0.05), learner.target_range.high.fill_(0.05)
    for count in range(3):
        given = some_batch(17, 6, 50, seed=count)
        ours, theirs = quantities(native, native.update(*given)), quantities(page, page.update(*given))
        pairs = [(name, list(mine), list(other)) for (name, mine), (_, other) in zip(ours, theirs, strict=True)]
        assert all(one.isfinite().all() for _, mine, _ in pairs for one in mine), "not a number"
        if wrong := [name for name, mine, other in pairs if not near(mine, other)]:
            return wrong
    return []


if __name__ == "__main__":
    library.FOLDER = Path(sys.argv[1])
    torch.set_num_threads(1)
    found = [wrong for wrong in map(wrong_quantities, CONFIGS) if wrong]
    for quantity in found[0] if found else []:
        print(quantity)
