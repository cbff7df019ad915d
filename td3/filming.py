"""Films an evaluated episode now and then, for whoever watches; whatever cannot be drawn is simply not there.

It is played once more, from the same start and without noise, in an environment that is used for nothing else.
"""

import contextlib
import io
import os
import random
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from td3.collection import Policy
from td3.environments import View, make_drawable
from td3.environments.worlds import LocalWorlds
from td3.recording import Allowance, Clock

SIZE = 240  # pixels, the longer side
FRAMES = 200
SECONDS = 3.0  # of drawing, at most; what was drawn until then is the film
EXPECTED = 1.0  # seconds a film may cost: the first waits until that is little, or for the end
SLOWEST, FASTEST = 50, 20  # milliseconds from frame to frame: no jerks, and no faster than browsers play
QUALITY, EFFORT = 60, 0  # of the compression: small enough, and quick


class Film:
    """`film.webp` of one run. After the first failure of any kind nothing is tried again."""

    def __init__(
        self,
        path: Path,
        env: Any,
        judges: Sequence[Any],
        players: Sequence[Any],
        clock: Clock = time.perf_counter,
        view: View | None = None,
    ) -> None:
        """`judges` are the environments that evaluate, `players` those that train: no film is made in them."""
        self._path, self._env, self._others, self._view = path, env, [*judges, *players], view or View()
        self.allowance = Allowance(clock, EXPECTED)
        self._possible = any("rgb_array" in render_modes(one) for one in judges)

    def offer(self, policy: Policy, seed: int, length: int, last: bool) -> None:
        """An episode that was evaluated just now, and how long it was; filmed if it is time, and always at the end."""
        if not self._possible or not (last or self.allowance.due()):
            return
        clock = self.allowance.clock
        began = clock()
        try:
            # Made anew each time: between two films nothing is left, no window and no graphics driver's threads.
            with undisturbed(), contextlib.closing(make_drawable(self._env, self._others, SIZE, self._view)) as worlds:
                frames = self._drawn(worlds, policy, seed, length)
                rate = (worlds.envs[0].metadata.get("render_fps") or 30) / self._view.action_repeat
                self._write(compressed(frames, rate, length))
        except (Exception, SystemExit):  # an environment, a driver or the disk: none is worth a run
            self._possible = False
        self.allowance.spent(clock() - began)

    def _drawn(self, worlds: LocalWorlds, policy: Policy, seed: int, length: int) -> list[Any]:
        frames: list[Any] = []
        observation, began = worlds.reset([seed]), self.allowance.clock()
        for step in range(length):
            if step % apart(length) == 0:
                frames.append(picture(worlds.envs[0].render()))
            tick = worlds.step(policy(observation))
            observation = tick.observation
            if tick.terminated[0] or tick.truncated[0] or self.allowance.clock() - began > SECONDS:
                break
        return frames

    def _write(self, data: bytes) -> None:
        """Beside its place and then renamed: whoever reads it sees a whole film, this one or the one before."""
        beside = self._path.with_name(f".{self._path.name}")
        beside.unlink(missing_ok=True)  # of a run that was killed just here
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
        try:
            with os.fdopen(file, "wb") as opened:
                opened.write(data)
            beside.replace(self._path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise


def render_modes(env: Any) -> Any:
    metadata = getattr(env, "metadata", None)
    return (metadata.get("render_modes") if isinstance(metadata, dict) else None) or ()


def compressed(frames: list[Any], rate: float, length: int) -> bytes:
    """As an animation, at the environment's own pace or, where that would crawl, faster."""
    milliseconds = round(min(max(1000 * apart(length) / rate, FASTEST), SLOWEST))
    memory = io.BytesIO()
    first, *others = frames
    first.save(
        memory,
        "WEBP",
        save_all=True,
        append_images=others,
        duration=milliseconds,
        loop=0,
        quality=QUALITY,
        method=EFFORT,
    )
    return memory.getvalue()


def apart(length: int) -> int:
    """From one frame to the next, in steps: a long episode is not drawn at every one."""
    return max(1, -(-length // FRAMES))


def picture(frame: Any) -> Any:
    """What an environment drew, no larger than needed; the small is enlarged, each pixel to a square, to stay crisp."""
    from PIL import Image

    pixels = np.asarray(frame)
    if pixels.dtype != np.uint8 or pixels.ndim != 3:
        raise ValueError(f"a frame must be an array of bytes (height, width, 3), not {pixels.dtype} {pixels.shape}")
    image = Image.fromarray(pixels).convert("RGB")
    image.thumbnail((SIZE, SIZE))
    times = SIZE // max(image.size)
    return image if times == 1 else image.resize((times * image.width, times * image.height), Image.Resampling.NEAREST)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """When there is a film depends on the clock, so nothing of it may be left: no warning, no number drawn."""
    streams = random.getstate(), np.random.get_state(), torch.get_rng_state()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        random.setstate(streams[0])
        np.random.set_state(streams[1])
        torch.set_rng_state(streams[2])
