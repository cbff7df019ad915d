"""What is measured: networks and batches as people use them, and how many operations an update of them takes."""

import itertools
from typing import TYPE_CHECKING, NamedTuple

from td3.wording import counted

if TYPE_CHECKING:
    from td3.types import Layout


class Case(NamedTuple):
    """Sizes of networks and batch that are measured."""

    name: str
    observations: int
    actions: int
    hidden: tuple[int, ...]
    batch: int

    @property
    def words(self) -> str:
        """Returns the case in one line: its name, layers, batch and sizes."""
        layers = "-".join(map(str, self.hidden))
        return f"{self.name} ({layers}, batch {self.batch}, {self.observations} → {self.actions})"

    @property
    def lines(self) -> str:
        """The same in little room."""
        return (
            f"{self.name}\n{'-'.join(map(str, self.hidden))}\nbatch {self.batch}\n{self.observations} → {self.actions}"
        )


class ImageCase(NamedTuple):
    """Frames of so many channels and pixels each way, seen `stack` at a time through convolutions."""

    name: str
    channels: int
    side: int
    stack: int
    actions: int
    encoder_channels: tuple[int, ...]
    encoder_features: int
    hidden: tuple[int, ...]
    batch: int
    rows: int  # remembered transitions; enough that no cache holds them all
    share: int  # of the rounds, one in so many: images take long
    stretch: int  # times longer than a round of vectors: updates come in eights, and all shall take about as long

    @property
    def layout(self) -> "Layout":
        """Returns the layout of its observations: one stack of frames."""
        from td3.types import Layout, Part  # not before it is needed: `td3 --help` knows these cases, too

        return Layout([Part("observation", "image", (self.channels, self.side, self.side), "uint8")], self.stack)

    @property
    def seen(self) -> str:
        """Returns its name and frames in a few words."""
        return f"{self.name}, {self.stack} frames of {self.side}×{self.side}×{self.channels}"

    @property
    def words(self) -> str:
        """Returns the case in one line: its frames, encoder, layers, batch and actions."""
        encoder = f"{'-'.join(map(str, self.encoder_channels))} → {self.encoder_features}"
        layers = "-".join(map(str, self.hidden))
        return f"{self.seen} ({encoder}, {layers}, batch {self.batch}, {counted(self.actions, 'action')})"


CASES = {
    case.name: case
    for case in (
        Case("small", 17, 6, (64, 64), 64),
        Case("author", 17, 6, (256, 256), 256),
        Case("paper", 17, 6, (400, 300), 100),
        Case("large", 17, 6, (512, 512), 512),
        Case("wide", 348, 17, (256, 256), 256),  # Humanoid-v5
    )
}
GROWTH = {
    "batch": [Case(str(n), 17, 6, (256, 256), n) for n in (32, 64, 128, 256, 512, 1024)],
    "width": [Case(str(n), 17, 6, (n, n), 256) for n in (32, 64, 128, 256, 512, 1024)],
}
IMAGES = {
    case.name: case
    for case in (
        ImageCase("grey", 1, 32, 3, 6, (16, 32, 32), 50, (256, 256), 64, rows=5_000, share=2, stretch=4),
        ImageCase("colour", 3, 84, 3, 6, (16, 32, 32), 50, (256, 256), 64, rows=500, share=10, stretch=6),
    )
}
ENV = "HalfCheetah-v5"
SECTIONS = ("updates", "steps", "acting", "growth", "pixels")


def operations(case: Case, policy_delay: int = 2) -> float:
    """Floating-point operations of one update, averaged over the delay: the matrix products alone."""
    actor = products(case.observations, case.hidden, case.actions)
    critic = products(case.observations + case.actions, case.hidden, 1)
    # Target actor; both target critics; both critics forward, to their weights, and back but for their inputs.
    every = sum(actor) + 6 * sum(critic) + 2 * sum(critic[1:])
    # Actor and first critic forward; back through the critic to the action; the actor's weights, and back.
    delayed = 2 * sum(actor) + sum(actor[1:]) + sum(critic) + sum(critic[1:]) + case.actions * case.hidden[0]
    return 2.0 * case.batch * (every + delayed / policy_delay)


def products(inputs: int, hidden: tuple[int, ...], outputs: int) -> list[int]:
    """Returns the number of multiplications in each layer of a perceptron, for one row."""
    widths = (inputs, *hidden, outputs)
    return [x * y for x, y in itertools.pairwise(widths)]
