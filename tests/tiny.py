"""A learner so small that every number can be worked out on paper.

One observation, one action, one hidden unit. While s + a > −2 the critics are straight lines:
Q1 = s + a + 2 and Q2 = 2 (s + a + 2) − 3, and their targets Q1' = 3 (s + a + 2) and Q2' = (s + a + 2) + 4.
While s > −2 the actor is tanh(0.5 (s + 2)) and its target tanh(0.25 (s + 2)).
"""

import numpy as np
import torch

from td3.config import Config
from td3.learner import Learner
from td3.types import Batch, Layout

LR = 1e-3


def tiny(**settings):
    config = Config(env="X-v0", hidden=(1,), buffer_size=8, actor_lr=LR, critic_lr=LR, **settings)
    learner = Learner(Layout(1), 1, config, 0)
    put_actor(learner.actor, 0.5)
    put_actor(learner.actor_target, 0.25)
    put_critics(learner.critics, slopes=(1.0, 2.0), shifts=(0.0, -3.0))
    put_critics(learner.critic_targets, slopes=(3.0, 1.0), shifts=(0.0, 4.0))
    return learner


@torch.no_grad()
def put_actor(actor, slope):
    first, _, last = actor.layers
    first.weight.fill_(1.0), first.bias.fill_(2.0)
    last.weight.fill_(slope), last.bias.fill_(0.0)


@torch.no_grad()
def put_critics(critics, slopes, shifts):
    first, _, last = critics.layers
    first.weight.fill_(1.0), first.bias.fill_(2.0)
    last.weight.copy_(torch.tensor(slopes).reshape(2, 1, 1))
    last.bias.copy_(torch.tensor(shifts).reshape(2, 1, 1))


def batch(s=(0.0,), a=(0.0,), r=(0.0,), s2=(0.0,), terminated=(0.0,), discount=(0.99,)):
    columns = (s, a, r, s2, terminated, discount)
    rows = max(map(len, columns))
    s, a, r, s2, terminated, discount = (torch.from_numpy(np.broadcast_to(np.float32(x), rows).copy()) for x in columns)
    return Batch(s[:, None], a[:, None], r, s2[:, None], terminated, discount)


def no_noise(rows=1):
    return torch.zeros(rows, 1)


def numbers(network):
    return [one.detach().clone() for one in network.parameters()]


def same(before, after):
    return all(torch.equal(x, y) for x, y in zip(before, after, strict=True))
