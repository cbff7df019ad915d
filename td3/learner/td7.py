"""A second algorithm, in one file: TD7, which is TD3 with learned embeddings, clipped targets and policy checkpoints.

Fujimoto et al. 2023, arXiv 2306.02451. The fifteen steps are those of `td3.py`, and each comment says how they differ.
Step 4½ is new: the embedding learns. What is not here is inherited: the memory, sampling, acting. Each addition has a
setting: without all of them (`embedding_size 0`, `clip_targets` and `policy_checkpoints` off, `target_every 0`,
`actor_loss q1`, `sampling uniform`) this is TD3, to the bit.

There are three copies of the embedding, as old as the networks that take it: `embedding` learns (f_{t+1}, g_{t+1}),
`critics.encoder` feeds actor and critics (f_t, g_t), `critic_targets.encoder` feeds their targets (f_{t−1}, g_{t−1}).
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from torch.optim import Adam, Optimizer

from td3.config import Config
from td3.errors import ConfigError
from td3.interfaces import EndedEpisode, MakeSampler
from td3.learner.assessment import Assessment, TargetRange
from td3.learner.embeddings import EmbeddedActor, EmbeddedCritics, Embedding
from td3.learner.encoders import Encoder, VectorEncoder, encoder_of
from td3.learner.networks import Actor, Critics, act, initialise, own_stream
from td3.learner.preprocessing import Normalizer
from td3.learner.targets import polyak, target_of
from td3.learner.td3 import Learner
from td3.metrics import MEANS
from td3.replay import PrioritizedSampler, make_memory, sampler_of
from td3.types import Batch, Layout, Observer, Policy, Targets, Update


class TD7Learner(Learner):
    """TD7: TD3's six networks, an embedding in three copies, and the best policy so far."""

    MEANS = (*MEANS, "embedding_loss", "target_low", "target_high")  # type: ignore[assignment]

    def __init__(
        self, layout: Layout, action_size: int, config: Config, seed: int, sampler: MakeSampler | None = None
    ) -> None:
        self.layout, self.action_size, self.config = layout, action_size, config
        self.updates = 0
        self.normalizer = Normalizer(layout) if config.normalize_observations else None
        generator = torch.Generator().manual_seed(seed)

        # 1 · The replay memory, as in TD3; with `sampling lap` each row has a priority.
        self.memory = make_memory(config.buffer_size, layout, action_size, config.n_step, config.gamma)
        self.sampler = (sampler or sampler_of(config))(self.memory)

        with own_stream(seed):
            encoder = self.make_encoder()

            # 2 · The actor and its target, as in TD3; the actor takes z^s beside s.
            self.actor = self.make_actor(encoder.size, generator).to(config.device)
            self.actor_target = target_of(self.actor)
            self.actor_optimizer = Adam(self.actor.parameters(), lr=config.actor_lr, fused=True)

            # 3 · Two critics and their targets, as in TD3; they take z^s and z^sa beside s and a.
            self.critics = self.make_critics(encoder, generator).to(config.device)
            self.embedding: Embedding | None = None
            if isinstance(encoder, Embedding):  # made last: without it the generator draws what it draws for TD3
                self.embedding = initialise(encoder, generator).to(config.device)
                self.embedding_optimizer = Adam(self.embedding.parameters(), lr=config.embedding_lr, fused=True)
                self.critics.encoder = target_of(self.embedding)  # type: ignore[assignment]
            self.critic_targets = target_of(self.critics)
            learned = [parameter for parameter in self.critics.parameters() if parameter.requires_grad]
            self.critics_optimizer = Adam(learned, lr=config.critic_lr, fused=True)

        self.target_range = TargetRange().to(config.device)
        self.assessment = Assessment()
        self.checkpoint_actor, self.checkpoint_encoder = target_of(self.actor), target_of(self.critics.encoder)

    def make_encoder(self) -> Encoder | Embedding:
        """Makes the embedding, f and g; with `embedding_size 0`, TD3's encoder."""
        config, plain = self.config, encoder_of(self.layout, self.config)
        if not config.embedding_size:
            return plain
        if not isinstance(plain, VectorEncoder):
            raise ConfigError(
                "embedding_size must be 0 here: embeddings are made of vectors, and the observation has other parts; "
                f"got {config.embedding_size}."
            )
        return Embedding(plain.size, self.action_size, config.embedding_size, config.embedding_hidden)

    def make_actor(self, features: int, generator: torch.Generator) -> Actor:
        """Makes the network that maps features, here s and z^s, to actions in [−1, 1]."""
        size = self.config.embedding_size
        if not size:
            return super().make_actor(features, generator)
        sizes = features - size, size
        return initialise(EmbeddedActor(sizes, self.action_size, self.config.actor_layers), generator)

    def make_critics(self, encoder: Encoder | Embedding, generator: torch.Generator) -> Critics:
        """Makes the network that maps features and actions to two values; an embedding is put in later."""
        if not isinstance(encoder, Embedding):
            return super().make_critics(encoder, generator)
        return initialise(EmbeddedCritics(encoder.sizes, self.action_size, self.config.critic_layers), generator)

    def networks(self) -> dict[str, nn.Module]:
        """All networks by name, and what is saved and loaded as they are."""
        networks = {
            **super().networks(),
            "checkpoint_actor": self.checkpoint_actor,
            "checkpoint_encoder": self.checkpoint_encoder,
            "target_range": self.target_range,
            "assessment": self.assessment,
        }
        return {**networks, "embedding": self.embedding} if self.embedding else networks

    def optimizers(self) -> dict[str, Optimizer]:
        """All optimisers by name."""
        optimizers = super().optimizers()
        return {**optimizers, "embedding_optimizer": self.embedding_optimizer} if self.embedding else optimizers

    @torch.no_grad()
    def target(self, batch: Batch, noise: Tensor) -> Targets:
        """Computes the critics' targets; no gradient flows through them."""
        config = self.config
        next_features = self.critic_targets.encoder(batch.next_observation)  # s', and its z of f_{t−1}

        # 5 · The actor target selects the next action a' in s', as in TD3.
        next_action = self.actor_target(next_features)

        # 6 · Smoothing, as in TD3.
        noise = (noise.to(next_action) * config.target_noise).clamp(-config.noise_clip, config.noise_clip)
        next_action = (next_action + noise).clamp(-1, 1)

        # 7 · Both critic targets evaluate the same (s', a'), as in TD3; their z of (s', a') is of g_{t−1}.
        next_q1, next_q2 = self.critic_targets(next_features, next_action)

        # 8 · The smaller value counts, as in TD3; then it is clipped to the range of targets up to the last copy.
        next_q = torch.minimum(next_q1, next_q2)
        if config.clip_targets:
            next_q = self.target_range.clip(next_q)

        # 9 · The target, as in TD3.
        target = batch.reward + batch.discount * (1 - batch.terminated) * next_q
        return Targets(next_action, next_q1, next_q2, next_q, target)

    def update(self, batch: Batch, noise: Tensor) -> Update:
        """One update of embedding and critics; every `policy_delay`-th also moves the actor. Targets are copied."""
        config = self.config
        self.updates += 1

        # 4½ · New: the embedding learns to predict. g(f(s), a) moves towards f(s'), which gets no gradient.
        embedding_loss = torch.zeros(())
        if self.embedding:
            with torch.no_grad():
                next_state = self.embedding.state(batch.next_observation)
            predicted = self.embedding.pair(self.embedding.state(batch.observation), batch.action)
            embedding_loss = mse_loss(predicted, next_state)
            self.embedding_optimizer.zero_grad()
            embedding_loss.backward()
            self.embedding_optimizer.step()

        next_action, next_q1, next_q2, next_q, target = self.target(batch, noise)
        if config.clip_targets:
            self.target_range.widen(target)

        # 10 · Both critics evaluate the stored (s, a), as in TD3, with z of f_t and g_t, which stand still.
        features = self.critics.encoder(batch.observation)
        q1, q2 = self.critics(features, batch.action)
        assert q1.shape == q2.shape == target.shape == batch.reward.shape, "all must be (B,): nothing broadcasts"

        # 11 · The loss, as in TD3; with `sampling lap` a Huber loss.
        critic_loss = self.distance(q1, target) + self.distance(q2, target)

        # 12 · Backpropagate, as in TD3; no gradient reaches the embedding.
        self.critics_optimizer.zero_grad()
        critic_loss.backward()
        self.critics_optimizer.step()

        actor_loss = None
        if self.updates % config.policy_delay == 0:
            # 13 · Delayed, as in TD3: the actor ascends, here the mean of both critics; through a, and z^sa of a.
            features = features.detach()
            action = self.actor(features)
            if config.actor_loss == "both":
                actor_loss = -torch.stack(self.critics(features, action)).mean()
            else:
                actor_loss = -self.critics.first(features, action).mean()
            self.actor_optimizer.zero_grad()
            actor_loss.backward(inputs=list(self.actor.parameters()))
            self.actor_optimizer.step()
            actor_loss = actor_loss.detach()

        if self.copies_now:
            rate = 1.0 if config.target_every else config.tau

            # 14 · The actor target becomes the actor, every `target_every` updates; with 0, it follows as in TD3.
            polyak(self.actor_target, self.actor, rate)

            # 15 · So do the critic targets, with their embedding: f_{t−1} becomes f_t. Then f_t becomes f_{t+1}.
            polyak(self.critic_targets, self.critics, rate)
            if self.embedding:
                polyak(self.critics.encoder, self.embedding, rate)
            if config.clip_targets:
                self.target_range.take_over()

        q1, q2, critic_loss = q1.detach(), q2.detach(), critic_loss.detach()
        update = TD7Update(next_action, next_q1, next_q2, next_q, target, q1, q2, critic_loss, actor_loss)
        update.others = embedding_loss.detach(), self.target_range.low, self.target_range.high
        return update

    @property
    def copies_now(self) -> bool:
        """Whether the targets are copied in the update of this number."""
        return self.updates % (self.config.target_every or self.config.policy_delay) == 0

    def learn(
        self, replay_rng: np.random.Generator, smoothing_rng: np.random.Generator, observer: Observer | None = None
    ) -> Update:
        """Performs one update; with each copy, the priority of new rows is measured again."""
        if self.updates == self.config.assess_longer_after:
            self.assessment.lengthen(self.config.assessment_episodes)
        update = super().learn(replay_rng, smoothing_rng, observer)
        if self.config.target_every and self.copies_now and isinstance(self.sampler, PrioritizedSampler):
            self.sampler.measure_largest()
        return update

    def ended(self, episodes: Sequence[EndedEpisode], step: int) -> int:
        """Assesses the policy that played these; returns the steps for which updates are due, once it is assessed."""
        if not self.config.policy_checkpoints:
            return super().ended(episodes, step)
        due = 0
        for episode in episodes:
            if step - episode.length <= self.config.warmup_steps:
                continue  # played at random
            result = self.assessment.add(episode.episode_return, episode.length)
            if result == "passed":
                polyak(self.checkpoint_actor, self.actor, 1.0)
                polyak(self.checkpoint_encoder, self.critics.encoder, 1.0)
            if result:
                due += self.assessment.end(result == "passed")
        return due

    def checkpoint_policy(self) -> Policy | None:
        """Returns the policy that passed its assessment best, without noise; None before there is one."""
        if not self.assessment.has_checkpoint:
            return None
        return partial(act, self.checkpoint_actor, self.checkpoint_encoder, self.normalizer)

    def configure(self, config: Config) -> None:
        """Applies changed settings from the next update on."""
        super().configure(config)
        if self.embedding:
            self.embedding_optimizer.param_groups[0]["lr"] = config.embedding_lr


class TD7Update(Update):
    """What happened in one update of TD7: all that `Update` has, the embedding's loss, and the range of targets."""

    others: tuple[Tensor, Tensor, Tensor]

    def means(self) -> Tensor:
        """Returns what a record keeps, in the order of `TD7Learner.MEANS`."""
        others = torch.stack([number.double().to(self.target.device) for number in self.others])
        return torch.cat([super().means(), others])
