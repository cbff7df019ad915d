"""Learners, batches and actors that the tests of both engines share."""

import numpy as np
import torch

from td3.learner.networks import Actor, initialise
from td3.types import Batch, Transitions

TENSORS = ("actor", "actor_target", "critics", "critic_targets")


def some_batch(observations, actions, rows, seed=0, dtype=torch.float32):
    rng = np.random.default_rng(seed)
    s, s2 = rng.standard_normal((2, rows, observations))
    a, r = rng.uniform(-1, 1, (rows, actions)), rng.standard_normal(rows)
    terminated = (rng.random(rows) < 0.2).astype(float)
    noise = rng.standard_normal((rows, actions))
    columns = s, a, r, s2, terminated, rng.uniform(0.9, 1, rows)
    return Batch(*(torch.from_numpy(one).to(dtype) for one in columns)), torch.from_numpy(noise).to(dtype)


def largest_difference(ours, theirs):
    """The largest of any number, relative to the largest of its tensor."""
    return max(
        float((x.double() - y.double()).abs().max() / y.double().abs().max().clamp_min(1e-30))
        for x, y in zip(ours, theirs, strict=True)
    )


def parameters(learner):
    return [one.detach() for name in TENSORS for one in getattr(learner, name).parameters()]


def filled(learner, rows=300, seed=0):
    (s, a, r, s2, terminated, _), _ = some_batch(learner.layout.size, learner.action_size, rows, seed)
    columns = (one.numpy() for one in (s, a, r, s2))
    learner.memory.add(Transitions.in_a_row(*columns, terminated.numpy().astype(bool)))
    return learner


def some_actor(hidden=(24, 20), observations=5, actions=3, seed=0):
    actor = Actor(observations, actions, hidden)
    initialise(actor, torch.Generator().manual_seed(seed))
    return actor.requires_grad_(False)
