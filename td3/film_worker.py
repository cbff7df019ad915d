"""Films one episode in a process of its own: `python -m td3.film_worker PARENT TIED SECONDS PRIORITY`, job on stdin.

A graphics driver may crash or hang, and takes this process with it and no other. It ends when its time is over or its
parent is gone. The heavy imports come late: first it lowers its priority below that of the training.
"""

import contextlib
import io
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from td3.environments import Wrappers
    from td3.types import Policy

SIZE = 240  # pixels, the longer side
FRAMES = 200
SECONDS = 3.0  # of rendering, at most; what was rendered until then is the film
SLOWEST, FASTEST = 50, 20  # milliseconds from frame to frame: no jerks, and no faster than browsers play
QUALITY, EFFORT = 60, 0  # of the compression: small enough, and quick
NO_FILM = 3  # exit code: it could not be rendered, which is no error


class Job(NamedTuple):
    """An episode to be played once more, without noise and from the same seed, and where its film goes."""

    path: Path
    name: str
    make: Callable[[], Any]
    wrappers: "Wrappers"
    policy: "Policy"
    seed: int
    length: int


def main(parent: int, tied: int, seconds: int, priority: int) -> None:
    """Films the job on stdin, and ends with an exit code."""
    with contextlib.suppress(OSError):
        os.nice(priority)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    signal.alarm(seconds)  # ends the process even if a driver never lets Python run again
    from td3.environments.worker import end_with
    from td3.storage.disk import replace_whole

    end_with(parent, bool(tied))
    try:
        sys.path[:] = pickle.load(sys.stdin.buffer)  # the user's modules are found where the parent found them
        job: Job = pickle.load(sys.stdin.buffer)
        replace_whole(job.path, filmed(job))
    except BaseException:  # an environment, a driver or the disk: none is worth a word
        os._exit(NO_FILM)
    os._exit(0)  # without a farewell: drivers are at their worst there


def filmed(job: Job, clock: Callable[[], float] = time.process_time) -> bytes:
    """Plays the episode and returns its film; only this process's own time counts, for it has to wait for others."""
    from td3.environments import make_to_render

    with contextlib.closing(make_to_render(job.name, job.make, job.wrappers)) as envs:
        frames: list[Any] = []
        observation, began = envs.reset([job.seed]), clock()
        for step in range(job.length):
            if step % apart(job.length) == 0:
                frames.append(picture(envs.envs[0].render()))
            result = envs.step(job.policy(observation))
            observation = result.observation
            if result.terminated[0] or result.truncated[0] or clock() - began > SECONDS:
                break
        rate = (envs.envs[0].metadata.get("render_fps") or 30) / job.wrappers.action_repeat
        return compressed(frames, rate, job.length)


def compressed(frames: list[Any], rate: float, length: int) -> bytes:
    """Compresses frames to an animation, at the environment's own pace or, where that would crawl, faster."""
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
    """Returns the steps from one frame to the next: a long episode is not rendered at every step."""
    return max(1, -(-length // FRAMES))


def picture(frame: Any) -> Any:
    """Makes an image of a rendered frame, no larger than needed; a small one is enlarged, each pixel to a square."""
    import numpy as np
    from PIL import Image

    pixels = np.asarray(frame)
    if pixels.dtype != np.uint8 or pixels.ndim != 3:
        raise ValueError(f"a frame must be an array of bytes (height, width, 3), not {pixels.dtype} {pixels.shape}")
    image = Image.fromarray(pixels).convert("RGB")
    image.thumbnail((SIZE, SIZE))
    times = SIZE // max(image.size)
    return image if times == 1 else image.resize((times * image.width, times * image.height), Image.Resampling.NEAREST)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
