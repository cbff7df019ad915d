"""Wrappers: repeated actions; rendered observations; images resized, grey, stacked; numbers joined."""

import contextlib
import functools
import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.classic_control import PendulumEnv
from gymnasium.spaces import Space
from numpy.typing import NDArray

from td3.config import Config
from td3.environments.history import Joined, Path
from td3.environments.images import arrangement, is_image
from td3.environments.observations import ObservationMap
from td3.errors import ConfigError, SpaceError

FINER = 4  # times the size: what cannot smooth its edges is rendered so much larger, and averaged


class Wrappers(NamedTuple):
    """Which wrappers an environment gets: settings of a Config, by their names there."""

    pixels: int = 0
    resize: int = 0
    grey: bool = False
    frame_stack: int = 1
    action_repeat: int = 1
    history: int = 1

    @classmethod
    def of(cls, config: Config) -> "Wrappers":
        """Takes the settings out of a config."""
        return cls(*(getattr(config, name) for name in cls._fields))

    @property
    def asked_for(self) -> list[str]:
        """The settings that are not their defaults."""
        return [name for name, value in self._asdict().items() if value != Wrappers._field_defaults[name]]

    def wrap(self, env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
        """Wraps an environment; for `pixels` it must render arrays."""
        if self.action_repeat > 1:
            env = Repeated(env, self.action_repeat)
        if self.pixels:
            env = Rendered(env, self.pixels)
        if self.resize or self.grey or self.frame_stack > 1:
            env = Prepared(env, self.resize, self.grey, self.frame_stack)
        if self.history > 1:
            env = Joined(env, self.history, self.frame_stack)
        return env

    def observation_map(self, env: gymnasium.Env[Any, Any]) -> ObservationMap:
        """Returns the map of what a wrapped environment observes."""
        return self.map_of(env.single_space if isinstance(env, Joined) else env.observation_space)

    def map_of(self, space: Space[Any]) -> ObservationMap:
        """Returns the same map, from the `space` that it has."""
        return ObservationMap(space, self.frame_stack, self.history)


PLAIN = Wrappers()  # none


class Repeated(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Repeats every action several times, up to the episode's end; the rewards add up."""

    def __init__(self, env: gymnasium.Env[Any, Any], times: int) -> None:
        super().__init__(env)
        self.times = times

    def step(self, action: Any) -> Any:
        """Executes the action several times, or until the episode ends, and adds up the rewards."""
        total = 0.0
        for _ in range(self.times):
            observation, reward, terminated, truncated, info = self.env.step(action)
            total = total + reward  # type: ignore[operator]  # whatever it is: it is checked later
            if terminated or truncated:
                break
        return observation, total, terminated, truncated, info


class Rendered(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Observes what the environment renders, (size, size, 3) bytes, in place of its own observation."""

    def __init__(self, env: gymnasium.Env[Any, Any], size: int) -> None:
        super().__init__(env)
        self.size = size
        self.observation_space = spaces.Box(0, 255, (size, size, 3), np.uint8)
        self._rendering: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
        if isinstance(env.unwrapped, PendulumEnv):
            env.unwrapped.screen_dim = FINER * size
            self._rendering = images_loaded_once

    def reset(self, **how: Any) -> Any:
        """Resets, and returns the rendered image as observation."""
        _, info = self.env.reset(**how)
        return self._frame(), info

    def step(self, action: Any) -> Any:
        """Steps, and returns the rendered image as observation."""
        _, reward, terminated, truncated, info = self.env.step(action)
        return self._frame(), reward, terminated, truncated, info

    def _frame(self) -> NDArray[np.uint8]:
        try:
            with self._rendering():
                frame: Any = self.env.render()
        except gymnasium.error.DependencyNotInstalled as problem:
            raise ConfigError(f"The environment cannot be drawn: {problem}.") from problem
        if not isinstance(frame, np.ndarray) or frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
            what = f"{frame.dtype} {frame.shape}" if isinstance(frame, np.ndarray) else type(frame).__name__
            raise TypeError(f"render() must return bytes (height, width, 3), not {what}")
        return shrunk(frame, self.size)


class Prepared(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Makes every image of the observation smaller, grey, and stacks the frames before it; leaves all else as it is.

    Stacks stand in front, the oldest frame first. An episode's first frame stands for those there were not yet.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], size: int, grey: bool, frame_stack: int) -> None:
        super().__init__(env)
        self.size, self.grey, self.frame_stack = size, grey, frame_stack
        self._held: dict[Path, deque[NDArray[np.uint8]]] = {}
        self._images: set[Path] = set()
        self.observation_space = self._space(env.observation_space, ())
        if not self._images:
            asked = Wrappers(0, size, grey, frame_stack).asked_for
            raise ConfigError(
                f"{' and '.join(asked)} must be left alone here, or pixels say how large to draw the environment: the "
                f"observation {env.observation_space} has no image."
            )

    def reset(self, **how: Any) -> Any:
        """Resets, and returns the first observation prepared."""
        observation, info = self.env.reset(**how)
        self._held.clear()
        return self._prepared(observation), info

    def step(self, action: Any) -> Any:
        """Steps, and returns the observation prepared."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._prepared(observation), reward, terminated, truncated, info

    def _space(self, space: Space[Any], path: Path) -> Space[Any]:
        if isinstance(space, spaces.Dict):
            return spaces.Dict([(key, self._space(inner, (*path, key))) for key, inner in space.spaces.items()])
        if isinstance(space, spaces.Tuple):
            return spaces.Tuple([self._space(inner, (*path, index)) for index, inner in enumerate(space.spaces)])
        if not is_image(space):
            return space
        self._images.add(path)
        assert space.shape is not None
        channels = arrangement(space.shape)[1][3]
        if self.grey and channels not in (1, 3, 4):
            raise SpaceError(f"grey must be left alone here: an image {space} has {channels} channels, not 3 or 4.")
        if 0 < self.size <= channels:
            raise SpaceError(f"resize must be more than {channels}, the channels of an image {space}; got {self.size}.")
        shape = self._resized(np.zeros(space.shape, np.uint8)).shape
        return spaces.Box(0, 255, (self.frame_stack, *shape) if self.frame_stack > 1 else shape, np.uint8)

    def _prepared(self, value: Any, path: Path = ()) -> Any:
        """Returns the same observation with its images changed, wherever they are nested."""
        if path in self._images:
            return self._stacked(path, value)
        if isinstance(value, dict):
            return {key: self._prepared(inner, (*path, key)) for key, inner in value.items()}
        if isinstance(value, tuple):
            return tuple(self._prepared(inner, (*path, index)) for index, inner in enumerate(value))
        return value

    def _stacked(self, path: Path, image: Any) -> NDArray[np.uint8]:
        frame = self._resized(np.asarray(image))
        if self.frame_stack == 1:
            return frame
        frame = frame.copy()  # an environment may render the next frame into the same array
        frames = self._held.setdefault(path, deque([frame] * self.frame_stack, maxlen=self.frame_stack))
        frames.append(frame)
        return np.stack(frames)

    def _resized(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        if not self.size and not self.grey:
            return image
        order, (frames, height, width, channels) = arrangement(image.shape)
        planes = image.transpose(order).reshape(frames, channels, height, width)
        done = [shrunk(np.moveaxis(plane, 0, 2), self.size, self.grey) for plane in planes]
        return np.stack(done) if frames > 1 else done[0]


def shrunk(image: NDArray[np.uint8], size: int = 0, grey: bool = False) -> NDArray[np.uint8]:
    """Shrinks (height, width, channels) to (size, size, channels or 1), each pixel the mean of those it stands for."""
    from PIL import Image

    channels = image.shape[2]
    if grey and channels in (3, 4):  # as PIL weighs them: 299 red, 587 green, 114 blue of a thousand
        image = np.asarray(Image.fromarray(np.ascontiguousarray(image[..., :3])).convert("L"))[..., None]
    if not size or image.shape[:2] == (size, size):
        return image
    if image.shape[2] == 3:
        return np.asarray(Image.fromarray(np.ascontiguousarray(image)).resize((size, size), Image.Resampling.BOX))
    planes = (Image.fromarray(np.ascontiguousarray(image[..., channel])) for channel in range(image.shape[2]))
    return np.stack([np.asarray(plane.resize((size, size), Image.Resampling.BOX)) for plane in planes], axis=2)


@contextlib.contextmanager
def images_loaded_once() -> Iterator[None]:
    """Keeps pygame from loading a file twice: Pendulum loads one for every frame, which takes longer than all else."""
    pygame = sys.modules.get("pygame")
    if pygame is None:
        yield
        return
    load = pygame.image.load
    pygame.image.load = _remembering(load)
    try:
        yield
    finally:
        pygame.image.load = load


@functools.cache
def _remembering(load: Callable[..., Any]) -> Callable[..., Any]:
    return functools.lru_cache(maxsize=4)(load)
