"""Maps observations to features, which actor and critics take: vectors as they are, images through convolutions.

There is one encoder, and it belongs to the critics: their loss trains it, and the actor takes its features without
training it. The critic targets have its target, which follows as they do, and the actor target takes its features.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from td3.config import Config
from td3.errors import ConfigError
from td3.types import Layout, Part

LARGE = 48  # images of at least so many pixels start with a 4×4 convolution of stride 4, in a third of the time


class VectorEncoder(nn.Module):
    """Passes numbers on as they are."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, observation: Tensor) -> Tensor:
        """Returns (B, size) as it is."""
        return observation


class ImageEncoder(nn.Module):
    """Maps a stack of frames, (B, stack, …) bytes, to features in [−1, 1]."""

    def __init__(self, part: Part, stack: int, channels: Sequence[int], features: int) -> None:
        super().__init__()
        self.size = features
        self.shape = (stack * part.shape[0], *part.shape[1:])
        layers: list[nn.Module] = []
        inputs, height, width = self.shape
        for outputs in channels:
            if min(height, width) >= LARGE:
                convolution = skip_init(nn.Conv2d, inputs, outputs, kernel_size=4, stride=4)
                height, width = height // 4, width // 4
            else:
                convolution = skip_init(nn.Conv2d, inputs, outputs, kernel_size=3, stride=2, padding=1)
                height, width = (height + 1) // 2, (width + 1) // 2
            layers += [convolution, nn.ReLU()]
            inputs = outputs
        self.convolutions = nn.Sequential(*layers)
        self.joined = skip_init(nn.Linear, inputs * height * width, features)
        # Without it the features grow until every tanh is saturated, the actor's too.
        self.norm = nn.LayerNorm(features)

    def forward(self, frames: Tensor) -> Tensor:
        """Maps (B, stack, frame) bytes to (B, features)."""
        pixels = frames.reshape(len(frames), *self.shape)
        # Bytes become floats only here; with channels last the convolutions are fastest on a CPU.
        pixels = pixels.to(dtype=self.joined.weight.dtype, memory_format=torch.channels_last).div_(255).sub_(0.5)
        return torch.tanh(self.norm(self.joined(self.convolutions(pixels).flatten(1))))


# Makes a module from a part, its stack and the config. The module takes (B, size) float32 numbers, or (B, stack,
# size) bytes where frames are stored; it returns (B, features), and its `size` is how many features those are. Numbers
# of several time steps (`history`) are given to it one time step after the other, and the features are joined.
MakeEncoder = Callable[[Part, int, Config], Any]


def make_vector_encoder(part: Part, stack: int, config: Config) -> VectorEncoder:  # noqa: ARG001
    """Makes an encoder that passes the part on as it is."""
    return VectorEncoder(part.size)


def make_image_encoder(part: Part, stack: int, config: Config) -> ImageEncoder:
    """Makes an encoder of the size that the config says."""
    return ImageEncoder(part, stack, config.encoder_channels, config.encoder_features)


# By the kind of a part. Parts that are passed on as they are need no module each: adjacent ones share a module.
ENCODERS: dict[str, MakeEncoder] = {
    "vector": make_vector_encoder,
    "category": make_vector_encoder,
    "image": make_image_encoder,
}


class CombinedEncoder(nn.Module):
    """Encodes each part of an observation by its kind and joins the features: frames first, then numbers."""

    def __init__(self, layout: Layout, config: Config) -> None:
        super().__init__()
        self.layout = layout
        frames = [(ENCODERS[part.kind](part, layout.stack, config), span) for part, span in layout.frame_parts]
        numbers: list[tuple[Any, slice]] = []
        placed_parts = [placed for placed in layout.number_parts if placed[0].size]
        for plain, group in groupby(placed_parts, key=lambda placed: is_plain(placed[0])):
            placed = list(group)
            if plain:
                start, end = placed[0][1].start, placed[-1][1].stop
                numbers.append((VectorEncoder(end - start), slice(start, end)))
            else:
                numbers += [(ENCODERS[part.kind](part, 1, config), span) for part, span in placed]
        self.parts = nn.ModuleList(encoder for encoder, _ in (*frames, *numbers))
        self._frames, self._numbers = [span for _, span in frames], [span for _, span in numbers]
        of_numbers = sum(encoder.size for encoder, _ in numbers)
        self.size: int = sum(encoder.size for encoder, _ in frames) + layout.history * of_numbers

    def forward(self, observation: Tensor) -> Tensor:
        """Maps (B, row) to (B, features of all parts)."""
        encoders, features, numbers, layout = list(self.parts), [], observation, self.layout
        if self._frames:
            stacks, numbers = observation.split([layout.stack * layout.frame, 4 * layout.numbers], dim=1)
            frames = stacks.reshape(len(observation), layout.stack, layout.frame)
            features = [encoders.pop(0)(frames[..., span]) for span in self._frames]
            if self._numbers:
                aligned = numbers.clone(memory_format=torch.contiguous_format)  # aligned for float32
                numbers = aligned.view(torch.float32).to(features[0])
        if layout.history > 1 and self._numbers:
            numbers = numbers.reshape(len(observation) * layout.history, layout.step_numbers)
        of_numbers = [encoder(numbers[:, span]) for encoder, span in zip(encoders, self._numbers, strict=True)]
        if layout.history > 1 and self._numbers:  # one time step after the other, as they are in a row
            of_numbers = [torch.cat(of_numbers, dim=1).reshape(len(observation), -1)]
        return torch.cat(features + of_numbers, dim=1)


Encoder = VectorEncoder | CombinedEncoder


def encoder_of(layout: Layout, config: Config) -> Encoder:
    """Makes the encoder for such observations."""
    for part in layout.parts:
        if part.kind not in ENCODERS:
            raise ConfigError(f"td3.learner.encoders.ENCODERS must have the kind of {part.name}; got {part.kind!r}.")
    if all(is_plain(part) for part in layout.parts):
        return VectorEncoder(layout.numbers)
    return CombinedEncoder(layout, config)


def is_plain(part: Part) -> bool:
    """Returns whether a part is passed on as it is."""
    return ENCODERS[part.kind] is make_vector_encoder
