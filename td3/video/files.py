"""Writes the frames of a video to a file: MP4 through ffmpeg, WebP and GIF through Pillow."""

import itertools
import os
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
from PIL import Image

from td3.errors import ConfigError
from td3.wording import brief

ENDINGS = (".mp4", ".webp", ".gif")
FASTEST_PICTURES = 25.0  # frames a second of WebP and GIF: every viewer plays that
MOST_BYTES = 2**30  # of frames that Pillow takes at once
QUALITY = 7  # of 0 to 10, for ffmpeg


class _Writer(Protocol):
    def add(self, frame: Image.Image) -> None: ...

    def finish(self) -> None: ...

    def leave(self) -> None: ...


class Video:
    """A file that appears, whole, when the block ends without an error; else what was there before stays."""

    def __init__(self, path: str | Path, rate: float) -> None:
        """Checks that the file can be written; `rate` is the number of frames that make a second."""
        self.path = ending_checked(path)
        self.rate, self.frames = rate, 0
        self._beside = self.path.with_name(f".{uuid.uuid4().hex}{self.path.suffix}")
        self._writer: _Writer | None = None
        try:
            os.close(os.open(self._beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        except OSError as problem:
            raise ConfigError(f"FILE {str(path)!r} cannot be written: {problem.strerror}.") from None

    def add(self, frame: Image.Image) -> None:
        """Adds a frame; all must have the size of the first."""
        if self._writer is None:
            kind = _Mp4 if self.path.suffix.lower() == ".mp4" else _Pictures
            self._writer = kind(self._beside, frame.size, self.rate)
        self._writer.add(frame)
        self.frames += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: Any, trace: TracebackType | None) -> None:
        try:
            if self._writer is not None and kind is not None:
                self._writer.leave()
            elif self._writer is not None:
                self._writer.finish()
                self._beside.replace(self.path)
        except OSError as failure:
            if kind is None:
                raise ConfigError(
                    f"FILE {str(self.path)!r} cannot be written: {failure.strerror or failure}."
                ) from None
        finally:
            self._beside.unlink(missing_ok=True)


def ending_checked(path: str | Path) -> Path:
    """Returns the path of a video; the ending says its format."""
    found = Path(path)
    if found.suffix.lower() not in ENDINGS:
        raise ConfigError(f"FILE must end with {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}; got {brief(str(path))}.")
    if found.is_dir() or not found.parent.is_dir():
        why = "is a folder" if found.is_dir() else "is in a folder that is not there"
        raise ConfigError(f"FILE must be a file to write; {str(path)!r} {why}.")
    return found


class _Mp4:
    """Frames go to ffmpeg one by one: a long video needs no memory."""

    def __init__(self, path: Path, size: tuple[int, int], rate: float) -> None:
        import imageio_ffmpeg

        self._frames = imageio_ffmpeg.write_frames(
            str(path),
            size,
            fps=rate,
            quality=QUALITY,
            macro_block_size=2,
            output_params=["-movflags", "+faststart"],  # plays while it loads
            ffmpeg_log_level="error",
        )
        self._frames.send(None)

    def add(self, frame: Image.Image) -> None:
        """Sends one frame."""
        self._frames.send(np.ascontiguousarray(frame.convert("RGB")))

    def finish(self) -> None:
        """Ends the file."""
        self._frames.close()

    leave = finish  # ffmpeg ends with its input


class _Pictures:
    """Frames wait until the end: Pillow writes them at once, and fewer a second where there are many."""

    def __init__(self, path: Path, size: tuple[int, int], rate: float) -> None:
        self.path = path
        self.every = max(1, round(rate / FASTEST_PICTURES))
        self.rate = rate
        self.most = max(1, MOST_BYTES // (3 * size[0] * size[1]))
        self.seen, self.frames = 0, list[Image.Image]()

    def add(self, frame: Image.Image) -> None:
        """Keeps a frame, if it is one of those that are shown."""
        if self.seen % self.every == 0:
            if len(self.frames) == self.most:  # half as many frames a second
                self.frames, self.every = self.frames[::2], 2 * self.every
            if self.seen % self.every == 0:
                self.frames.append(frame)
        self.seen += 1

    def finish(self) -> None:
        """Writes the file."""
        first, *others = self.frames
        settings: dict[str, Any] = {"quality": 75, "method": 4} if self.path.suffix.lower() == ".webp" else {}
        # In hundredths, as GIF counts: each frame begins as near to its time as that allows.
        begins = [round(100 * number * self.every / self.rate) for number in range(len(self.frames) + 1)]
        times = [10 * (after - before) for before, after in itertools.pairwise(begins)]
        first.save(self.path, save_all=True, append_images=others, duration=times, loop=0, **settings)

    def leave(self) -> None:
        """Writes nothing."""
        self.frames = []
