"""The algorithm, in one file: Twin Delayed DDPG in fifteen steps.

`Learner.__init__` is steps 1–3, `sample` is step 4, `target` is steps 5–9, `update` is steps 10–15. Actions are in
[−1, 1] here, so noise and its clip are in half action ranges. No randomness is hidden: `sample` takes the generators it
uses, and `update` is a function of the networks, the batch and the noise.

To change a step or a network, override a method in a class of your own and pass it: `td3.train(config, learner=Mine)`.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from torch.optim import Adam, Optimizer

from td3.config import Config
from td3.interfaces import EndedEpisode, MakeSampler
from td3.learner.encoders import Encoder, encoder_of
from td3.learner.losses import lap_loss
from td3.learner.networks import Actor, Critics, act, initialise, own_stream
from td3.learner.preprocessing import Normalizer, preprocess
from td3.learner.targets import polyak, target_of
from td3.metrics import DELAYED, MEANS
from td3.replay import OWN_SAMPLERS, UniformSampler, check_indices, make_memory, sampler_of
from td3.types import Batch, Float32s, Layout, Observer, Policy, Rows, Sample, Targets, Transitions, Update


class Learner:
    """TD3: six networks, two optimisers, and the memory they learn from."""

    MEANS, DELAYED = MEANS, DELAYED  # the names of what `Update.means` returns; the latter only where the actor moved

    def __init__(
        self, layout: Layout, action_size: int, config: Config, seed: int, sampler: MakeSampler | None = None
    ) -> None:
        self.layout, self.action_size, self.config = layout, action_size, config
        self.updates = 0
        self.normalizer = Normalizer(layout) if config.normalize_observations else None
        generator = torch.Generator().manual_seed(seed)

        # 1 · The replay memory: a ring of (s, a, r, s', terminated), and its sampler.
        self.memory = make_memory(config.buffer_size, layout, action_size, config.n_step, config.gamma)
        self.sampler = (sampler or sampler_of(config))(self.memory)

        with own_stream(seed):
            encoder = encoder_of(layout, config)  # vectors pass as they are; images go through convolutions

            # 2 · The actor and its target: one architecture, two instances, equal at first.
            self.actor = self.make_actor(encoder.size, generator).to(config.device)
            self.actor_target = target_of(self.actor)
            self.actor_optimizer = Adam(self.actor.parameters(), lr=config.actor_lr, fused=True)

            # 3 · Two critics with different weights, and two critic targets, each equal to its critic at first.
            self.critics = self.make_critics(encoder, generator).to(config.device)
            self.critic_targets = target_of(self.critics)
            self.critics_optimizer = Adam(self.critics.parameters(), lr=config.critic_lr, fused=True)

    def make_actor(self, features: int, generator: torch.Generator) -> Actor:
        """Makes the network that maps (B, features) to actions in [−1, 1], (B, action_size)."""
        return initialise(Actor(features, self.action_size, self.config.actor_layers), generator)

    def make_critics(self, encoder: Encoder, generator: torch.Generator) -> Critics:
        """Makes the network that maps features and actions to two values, (B,) each; `first` returns one alone."""
        return initialise(Critics(encoder, self.action_size, self.config.critic_layers), generator)

    def networks(self) -> dict[str, nn.Module]:
        """All networks by name: what is saved, loaded, moved to a device and compiled."""
        return {
            "actor": self.actor,
            "actor_target": self.actor_target,
            "critics": self.critics,
            "critic_targets": self.critic_targets,
        }

    def optimizers(self) -> dict[str, Optimizer]:
        """All optimisers by name."""
        return {"actor_optimizer": self.actor_optimizer, "critics_optimizer": self.critics_optimizer}

    def store(self, rows: Transitions) -> None:
        """Stores transitions for replay, and updates the statistics that normalise observations."""
        if self.normalizer:
            self.normalizer.add(rows)
        if self.config.reward_scale != 1:
            rows = rows._replace(reward=rows.reward * np.float32(self.config.reward_scale))
        first = self.memory.written
        self.memory.add(rows)
        if type(self.sampler) is not UniformSampler:  # which keeps nothing: this is called at every step
            self.sampler.added(np.arange(first, self.memory.written) % self.memory.capacity)

    def learn(
        self, replay_rng: np.random.Generator, smoothing_rng: np.random.Generator, observer: Observer | None = None
    ) -> Update:
        """Performs one update: sample, load, update, report. An observer sees it before and after."""
        sample = self.sample(replay_rng, smoothing_rng)
        batch = self.load_batch(sample)
        if observer:
            observer.before(self, sample, batch)
        update = self.update(batch, sample.noise)
        if observer:
            observer.after(self, update)
        self.sampler.updated(sample.indices, update)
        return update

    def ended(self, episodes: Sequence[EndedEpisode], step: int) -> int:  # noqa: ARG002
        """Is called when training episodes ended; returns for how many steps `update_schedule episode` updates now."""
        return sum(episode.length for episode in episodes)

    def sample(self, replay_rng: np.random.Generator, smoothing_rng: np.random.Generator) -> Sample:
        """Draws everything random in an update: which transitions, and a standard normal number per target action."""
        # 4 · Sample a batch of transitions, uniformly and with replacement, or with `sampling lap` by their errors.
        size, most_shift = self.config.batch_size, self.config.random_shift
        indices = self.sampler.sample(replay_rng, size)
        if type(self.sampler) not in OWN_SAMPLERS:
            check_indices(indices, self.sampler, self.memory, size)
        shifts = replay_rng.integers(-most_shift, most_shift, size=(2, size, 2), endpoint=True) if most_shift else None
        noise = smoothing_rng.standard_normal((size, self.action_size), dtype=np.float32)
        return Sample(indices, torch.from_numpy(noise), shifts)

    def load_batch(self, sample: Sample) -> Batch:
        """Returns the sampled transitions as the networks take them: stored raw, preprocessed now."""
        batch = self.memory.batch(sample.indices)
        if self.normalizer or sample.shifts is not None:
            batch = preprocess(batch, self.layout, self.normalizer, sample.shifts)
        return Batch(*(column.to(self.config.device) for column in batch))

    @torch.no_grad()
    def target(self, batch: Batch, noise: Tensor) -> Targets:
        """Computes the critics' targets; no gradient flows through them."""
        config = self.config
        next_features = self.critic_targets.encoder(batch.next_observation)  # a vector is passed on as it is

        # 5 · The actor target selects the next action a' in s'.
        next_action = self.actor_target(next_features)

        # 6 · Smoothing: clipped noise on every row and dimension of a', then back into bounds.
        noise = (noise.to(next_action) * config.target_noise).clamp(-config.noise_clip, config.noise_clip)
        next_action = (next_action + noise).clamp(-1, 1)

        # 7 · Both critic targets evaluate the same (s', a').
        next_q1, next_q2 = self.critic_targets(next_features, next_action)

        # 8 · The smaller value counts, row by row.
        next_q = torch.minimum(next_q1, next_q2)

        # 9 · The target: reward, plus the discounted future unless the episode terminated there.
        target = batch.reward + batch.discount * (1 - batch.terminated) * next_q
        return Targets(next_action, next_q1, next_q2, next_q, target)

    def distance(self, q: Tensor, target: Tensor) -> Tensor:
        """Returns the mean squared distance; with `sampling lap`, the loss that makes up for its sampling."""
        return mse_loss(q, target) if self.config.sampling == "uniform" else lap_loss(q, target, self.config)

    def update(self, batch: Batch, noise: Tensor) -> Update:
        """One update of the critics; every `policy_delay`-th also moves the actor and all targets."""
        config = self.config
        self.updates += 1
        next_action, next_q1, next_q2, next_q, target = self.target(batch, noise)

        # 10 · Both critics evaluate the stored (s, a).
        features = self.critics.encoder(batch.observation)
        q1, q2 = self.critics(features, batch.action)
        assert q1.shape == q2.shape == target.shape == batch.reward.shape, "all must be (B,): nothing broadcasts"

        # 11 · The loss: both critics' mean squared distance from the target.
        critic_loss = self.distance(q1, target) + self.distance(q2, target)

        # 12 · Backpropagate; Adam moves both critics, and the encoder they share.
        self.critics_optimizer.zero_grad()
        critic_loss.backward()
        self.critics_optimizer.step()

        actor_loss = None
        if self.updates % config.policy_delay == 0:
            # 13 · Delayed: the actor ascends the first critic's value of its own action.
            features = features.detach()  # what moves the encoder is the critics' loss alone
            actor_loss = -self.critics.first(features, self.actor(features)).mean()
            self.actor_optimizer.zero_grad()
            actor_loss.backward(inputs=list(self.actor.parameters()))  # the critics' weights get no gradient
            self.actor_optimizer.step()
            actor_loss = actor_loss.detach()

            # 14 · The actor target moves a little towards the actor.
            polyak(self.actor_target, self.actor, config.tau)

            # 15 · The critic targets move a little towards the critics.
            polyak(self.critic_targets, self.critics, config.tau)

        q1, q2, critic_loss = q1.detach(), q2.detach(), critic_loss.detach()
        return Update(next_action, next_q1, next_q2, next_q, target, q1, q2, critic_loss, actor_loss)

    def policy(self) -> Policy:
        """Returns the policy of the actor, without noise: (n, observation_size) → (n, action_size)."""
        return partial(act, self.actor, self.critics.encoder, self.normalizer)

    def checkpoint_policy(self) -> Policy | None:
        """Returns the best policy so far where an algorithm keeps one beside the actor's: this one does not."""
        return None

    def act(self, observations: Rows) -> Float32s:
        """Returns the actions of the policy as it is now."""
        return self.policy()(observations)

    def configure(self, config: Config) -> None:
        """Applies changed settings from the next update on."""
        self.config, self.memory.gamma = config, config.gamma
        self.actor_optimizer.param_groups[0]["lr"] = config.actor_lr
        self.critics_optimizer.param_groups[0]["lr"] = config.critic_lr

    @torch.no_grad()
    def value(self, observations: Rows, actions: Float32s) -> Float32s:
        """Returns the first critic's values, (n,), in the environment's own rewards."""
        arrays = self.normalise(observations), actions
        observation, action = (torch.from_numpy(array).to(self.config.device) for array in arrays)
        values: Float32s = self.critics.first(self.critics.encoder(observation), action).cpu().numpy()
        return values / np.float32(self.config.reward_scale)

    @torch.no_grad()
    def values(self, observations: Rows, actions: Float32s) -> Float32s:
        """Returns both critics' values, (n, 2), in the environment's own rewards."""
        arrays = self.normalise(observations), actions
        observation, action = (torch.from_numpy(array).to(self.config.device) for array in arrays)
        both: Float32s = torch.stack(self.critics(self.critics.encoder(observation), action), dim=1).cpu().numpy()
        return both / np.float32(self.config.reward_scale)

    def __repr__(self) -> str:
        rows, updates = len(self.memory), self.updates
        return (
            f"<{type(self).__name__}: {updates:,} updates, {rows:,} transitions, networks {', '.join(self.networks())}>"
        )

    def normalise(self, observations: Rows) -> Rows:
        """Returns observations as the networks take them."""
        return self.normalizer(observations) if self.normalizer else observations
