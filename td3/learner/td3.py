"""The algorithm, on one page: Twin Delayed DDPG in fifteen steps.

`Learner.__init__` is steps 1–3, `draw` is step 4, `update` is steps 5–15. Actions are in [−1, 1] here,
so noise and its clip are in half action ranges. Nothing on this page is random: `draw` takes the
generators it draws from, and `update` is a function of the networks, the batch and the noise.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import mse_loss
from torch.optim import Adam

from td3.config import Config
from td3.learner.encoders import encoder_of
from td3.learner.networks import Actor, Critics, draw_weights, play
from td3.learner.reading import Normalizer, ready
from td3.learner.targets import polyak, target_of
from td3.replay import make_memory
from td3.types import Batch, Drawn, Float32s, Layout, Rows, Update


class Learner:
    """Six networks, two optimisers and the memory they learn from."""

    def __init__(self, layout: Layout, action_size: int, config: Config, seed: int) -> None:
        self.layout, self.action_size, self.config = layout, action_size, config
        self.updates = 0
        self.normalizer = Normalizer(layout) if config.normalize_observations else None
        generator = torch.Generator().manual_seed(seed)
        encoder = encoder_of(layout, config)  # vectors are read as they are; images through convolutions

        # 1 · The replay memory: a ring of (s, a, r, s', terminated).
        self.memory = make_memory(config.buffer_size, layout, action_size, config.n_step, config.gamma)

        # 2 · The actor and its target: one architecture, two instances, born equal.
        self.actor = Actor(encoder.size, action_size, config.hidden)
        draw_weights(self.actor, generator)
        self.actor.to(config.device)
        self.actor_target = target_of(self.actor)
        self.actor_optimizer = Adam(self.actor.parameters(), lr=config.actor_lr, fused=True)

        # 3 · Two critics, born different, and two critic targets, each born equal to its critic.
        self.critics = Critics(encoder, action_size, config.hidden)
        draw_weights(self.critics, generator)
        self.critics.to(config.device)
        self.critic_targets = target_of(self.critics)
        self.critics_optimizer = Adam(self.critics.parameters(), lr=config.critic_lr, fused=True)

    def learn(self, replay: np.random.Generator, smoothing: np.random.Generator) -> Tensor:
        """One update from what is remembered; tells its means."""
        drawn = self.draw(replay, smoothing)
        return self.update(self.recall(drawn), drawn.noise).means()

    def draw(self, replay: np.random.Generator, smoothing: np.random.Generator) -> Drawn:
        """All the chance in an update: which transitions, and a standard normal number per target action."""
        # 4 · Sample a batch of transitions, uniformly and with replacement.
        size, most = self.config.batch_size, self.config.random_shift
        places = self.memory.draw(replay, size)
        shifts = replay.integers(-most, most, size=(2, size, 2), endpoint=True) if most else None
        noise = smoothing.standard_normal((size, self.action_size), dtype=np.float32)
        return Drawn(places, torch.from_numpy(noise), shifts)

    def recall(self, drawn: Drawn) -> Batch:
        """The drawn transitions as they are read: remembered raw, made ready now."""
        batch = ready(self.memory.gather(drawn.places), self.layout, self.normalizer, drawn.shifts)
        return Batch(*(column.to(self.config.device) for column in batch))

    def update(self, batch: Batch, noise: Tensor) -> Update:
        """One update of the critics; every `policy_delay`-th also moves the actor and all targets."""
        config = self.config
        observation, action, reward, next_observation, terminated, discount = batch
        self.updates += 1

        with torch.no_grad():
            next_features = self.critic_targets.encoder(next_observation)  # of an image; a vector is its own

            # 5 · The actor target plays the next action a' in s'.
            next_action = self.actor_target(next_features)

            # 6 · Smoothing: clipped noise on every row and dimension of a', then back into bounds.
            noise = (noise.to(next_action) * config.target_noise).clamp(-config.noise_clip, config.noise_clip)
            next_action = (next_action + noise).clamp(-1, 1)

            # 7 · Both critic targets judge the same (s', a').
            next_q1, next_q2 = self.critic_targets(next_features, next_action)

            # 8 · The smaller value counts, row by row.
            next_q = torch.minimum(next_q1, next_q2)

            # 9 · The target: reward, plus the discounted future unless the episode terminated there.
            target = reward + discount * (1 - terminated) * next_q

        # 10 · Both critics judge the remembered (s, a).
        features = self.critics.encoder(observation)
        q1, q2 = self.critics(features, action)
        assert q1.shape == q2.shape == target.shape == reward.shape  # (B,) each: nothing broadcasts

        # 11 · The loss: both critics' mean squared distance from the target.
        critic_loss = mse_loss(q1, target) + mse_loss(q2, target)

        # 12 · Backpropagate; Adam moves both critics, and the encoder they share.
        self.critics_optimizer.zero_grad()
        critic_loss.backward()
        self.critics_optimizer.step()

        actor_loss = None
        if self.updates % config.policy_delay == 0:
            # 13 · Delayed: the actor climbs the first critic's value of its own action.
            features = features.detach()  # what moves the encoder is the critics' loss alone
            actor_loss = -self.critics.first(features, self.actor(features)).mean()
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

    def act(self, observations: Rows) -> Float32s:
        """The actor, not its target, plays: (n, observation_size) → (n, action_size), without noise."""
        return play(self.critics.encoder, self.actor, self.read(observations))

    @torch.no_grad()
    def value(self, observations: Rows, actions: Float32s) -> Float32s:
        """What the first critic says that is to come, (n,), in the environment's own rewards."""
        seen, done = (torch.from_numpy(one).to(self.config.device) for one in (self.read(observations), actions))
        values: Float32s = self.critics.first(self.critics.encoder(seen), done).cpu().numpy()
        return values / np.float32(self.config.reward_scale)

    def read(self, observations: Rows) -> Rows:
        """Observations as the networks read them."""
        return self.normalizer(observations) if self.normalizer else observations
