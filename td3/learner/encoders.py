"""From what was observed to what actor and critics read: vectors as they are, images through convolutions.

There is one encoder, and it belongs to the critics: their loss moves it, and the actor reads what it tells without
moving it. The critic targets have its target, which follows as they do, and the actor target reads that.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from td3.config import Config
from td3.types import Layout, Picture

LARGE = 48  # pixels: what is no smaller is taken in patches that do not overlap, in a third of the time


class VectorEncoder(nn.Module):
    """Numbers are read as they are."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, observation: Tensor) -> Tensor:
        return observation


class CombinedEncoder(nn.Module):
    """Each image through an eye of its own; the numbers beside them as they are; all joined."""

    def __init__(self, layout: Layout, channels: Sequence[int], features: int) -> None:
        super().__init__()
        self.layout = layout
        self.eyes = nn.ModuleList(
            ImageEncoder(picture, layout.stack, channels, features) for picture in layout.pictures
        )
        self.size = features * len(layout.pictures) + layout.numbers

    def forward(self, observation: Tensor) -> Tensor:
        layout = self.layout
        stacks, numbers = observation.split([layout.stack * layout.frame, 4 * layout.numbers], dim=1)
        frames = stacks.reshape(len(observation), layout.stack, layout.frame)
        sizes = [picture.size for picture in layout.pictures]
        parts = [eye(one) for eye, one in zip(self.eyes, frames.split(sizes, dim=2), strict=True)]
        if layout.numbers:
            aligned = numbers.clone(memory_format=torch.contiguous_format)  # where floats may begin, one row or many
            parts.append(aligned.view(torch.float32).to(parts[0]))
        return torch.cat(parts, dim=1)


class ImageEncoder(nn.Module):
    """A stack of frames, (B, stack, bytes) → features, each in [−1, 1]."""

    def __init__(self, picture: Picture, stack: int, channels: Sequence[int], features: int) -> None:
        super().__init__()
        self.shape = (stack * picture.channels, picture.height, picture.width)
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
        pixels = frames.reshape(len(frames), *self.shape)
        # Bytes become numbers here and nowhere else; channels last is how the convolutions are fastest on a CPU.
        pixels = pixels.to(dtype=self.joined.weight.dtype, memory_format=torch.channels_last).div_(255).sub_(0.5)
        return torch.tanh(self.norm(self.joined(self.convolutions(pixels).flatten(1))))


Encoder = VectorEncoder | CombinedEncoder


def encoder_of(layout: Layout, config: Config) -> Encoder:
    if not layout.pictures:
        return VectorEncoder(layout.numbers)
    return CombinedEncoder(layout, config.encoder_channels, config.encoder_features)
