"""The algorithm, on one page: Twin Delayed DDPG in fifteen steps.

`Learner.__init__` is steps 1–3, `draw` is step 4, `update` is steps 5–15. Actions are in [−1, 1] here,
so noise and its clip are in half action ranges. Nothing on this page is random: `draw` takes the
generators it draws from, and `update` is a function of the networks, the batch and the noise.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import mse_loss
from torch.optim import Adam

from td3.config import Config
from td3.learner.networks import Actor, Critics, Encoder, draw_weights
from td3.learner.targets import polyak, target_of
from td3.replay import Memory
from td3.types import Batch, Float32s, Update


class Learner:
    """Six networks, two optimisers and the memory they learn from."""

    def __init__(self, observation_size: int, action_size: int, config: Config, seed: int) -> None:
        self.config = config
        self.updates = 0
        generator = torch.Generator().manual_seed(seed)

        # 1 · The replay memory: a ring of (s, a, r, s', terminated).
        self.memory = Memory(config.buffer_size, observation_size, action_size)

        # 2 · The actor and its target: one architecture, two instances, born equal.
        self.actor = Actor(Encoder(observation_size), action_size, config.hidden)
        draw_weights(self.actor, generator)
        self.actor.to(config.device)
        self.actor_target = target_of(self.actor)
        self.actor_optimizer = Adam(self.actor.parameters(), lr=config.actor_lr, fused=True)

        # 3 · Two critics, born different, and two critic targets, each born equal to its critic.
        self.critics = Critics(Encoder(observation_size), action_size, config.hidden)
        draw_weights(self.critics, generator)
        self.critics.to(config.device)
        self.critic_targets = target_of(self.critics)
        self.critics_optimizer = Adam(self.critics.parameters(), lr=config.critic_lr, fused=True)

    def learn(self, replay: np.random.Generator, smoothing: np.random.Generator) -> Tensor:
        """One update from what is remembered; tells its means."""
        rows, noise = self.draw(replay, smoothing)
        batch = self.memory.gather(rows)
        return self.update(Batch(*(column.to(self.config.device) for column in batch)), noise).means()

    def draw(self, replay: np.random.Generator, smoothing: np.random.Generator) -> tuple[NDArray[np.int64], Tensor]:
        """All the chance in an update: which transitions, and a standard normal number per target action."""
        # 4 · Sample a batch of transitions, uniformly and with replacement.
        rows = replay.integers(len(self.memory), size=self.config.batch_size)
        shape = (self.config.batch_size, self.memory.columns.action.shape[1])
        return rows, torch.from_numpy(smoothing.standard_normal(shape, dtype=np.float32))

    def update(self, batch: Batch, noise: Tensor) -> Update:
        """One update of the critics; every `policy_delay`-th also moves the actor and all targets."""
        config = self.config
        observation, action, reward, next_observation, terminated = batch
        self.updates += 1

        with torch.no_grad():
            # 5 · The actor target plays the next action a' in s'.
            next_action = self.actor_target(next_observation)

            # 6 · Smoothing: clipped noise on every row and dimension of a', then back into bounds.
            noise = (noise.to(next_action) * config.target_noise).clamp(-config.noise_clip, config.noise_clip)
            next_action = (next_action + noise).clamp(-1, 1)

            # 7 · Both critic targets judge the same (s', a').
            next_q1, next_q2 = self.critic_targets(next_observation, next_action)

            # 8 · The smaller value counts, row by row.
            next_q = torch.minimum(next_q1, next_q2)

            # 9 · The target: reward, plus the discounted future unless the episode terminated there.
            target = reward + config.gamma * (1 - terminated) * next_q

        # 10 · Both critics judge the remembered (s, a).
        q1, q2 = self.critics(observation, action)
        assert q1.shape == q2.shape == target.shape == reward.shape  # (B,) each: nothing broadcasts

        # 11 · The loss: both critics' mean squared distance from the target.
        critic_loss = mse_loss(q1, target) + mse_loss(q2, target)

        # 12 · Backpropagate; Adam moves both critics.
        self.critics_optimizer.zero_grad()
        critic_loss.backward()
        self.critics_optimizer.step()

        actor_loss = None
        if self.updates % config.policy_delay == 0:
            # 13 · Delayed: the actor climbs the first critic's value of its own action.
            actor_loss = -self.critics.first(observation, self.actor(observation)).mean()
            self.actor_optimizer.zero_grad()
            actor_loss.backward(inputs=list(self.actor.parameters()))  # the critic only passes it on
            self.actor_optimizer.step()
            actor_loss = actor_loss.detach()

            # 14 · The actor target moves a little towards the actor.
            polyak(self.actor_target, self.actor, config.tau)

            # 15 · The critic targets move a little towards the critics.
            polyak(self.critic_targets, self.critics, config.tau)

        q1, q2, critic_loss = q1.detach(), q2.detach(), critic_loss.detach()
        return Update(next_action, next_q1, next_q2, target, q1, q2, critic_loss, actor_loss)

    def act(self, observations: Float32s) -> Float32s:
        """The actor, not its target, plays: (n, observation_size) → (n, action_size), without noise."""
        return self.actor.play(observations)

    @torch.no_grad()
    def value(self, observations: Float32s, actions: Float32s) -> Float32s:
        """The first critic's value of each row, (n,)."""
        rows = (torch.from_numpy(one).to(self.config.device) for one in (observations, actions))
        values: Float32s = self.critics.first(*rows).cpu().numpy()
        return values
