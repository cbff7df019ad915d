"""From a name or a callable to environments that can be played: in this process, in workers, or ready-made."""

import contextlib
import importlib
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from td3.config import env_name
from td3.environments.images import View
from td3.environments.mujoco_warnings import handle_mujoco_warnings
from td3.environments.vector import VectorWorlds
from td3.environments.workers import WorkerWorlds
from td3.environments.worlds import LocalWorlds, Worlds, told
from td3.errors import ConfigError, SpaceError, TD3Error, did_you_mean

PLAIN = View()  # as the environment shows itself
SPACES = ("observation_space", "action_space")
Made = gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]


def make_worlds(
    env: str | Callable[..., Any],
    num_envs: int = 1,
    workers: int = 0,
    timeout: float = 30.0,
    role: str = "Environment",
    view: View = PLAIN,
) -> Worlds:
    """`num_envs` environments behind one door; a callable may also make a whole `VectorEnv` at once."""
    name = env_name(env)
    make = maker(env)
    if view.pixels:
        make = drawing(name, make, view.pixels)
    if workers:
        return WorkerWorlds(name, make, num_envs, workers, timeout, view)
    first = made(name, make)
    try:
        if isinstance(first, VectorEnv):
            if num_envs not in (1, first.num_envs):
                raise ConfigError(
                    f"num_envs must be left alone or {first.num_envs}, the size of the vector environment that "
                    f"{name} makes; got {num_envs}."
                )
            if view.asked_for:
                raise ConfigError(
                    f"{', '.join(view.asked_for)} must be left alone here: {name} makes a vector environment, which is "
                    "taken as it is; wrap its single environments instead."
                )
            return VectorWorlds(name, first, timeout)
        others = [_single(name, make) for _ in range(num_envs - 1)]
        return local_worlds(name, [first, *others], view=view, role=role)
    except TD3Error:
        first.close()
        raise


def make_single(env: str | Callable[..., Any], view: View = PLAIN) -> Made:
    """One environment as it is looked at, for whoever wants to play it without us; a vector environment as it is."""
    name, make = env_name(env), maker(env)
    one = made(name, drawing(name, make, view.pixels) if view.pixels else make)
    return one if isinstance(one, VectorEnv) else view.on(one)


def make_drawable(env: str | Callable[..., Any], others: Sequence[Any], size: int, view: View = PLAIN) -> LocalWorlds:
    """One environment more that draws what it shows, as arrays and if it can be told so about `size` pixels wide.

    A callable that takes no `render_mode` cannot be asked for one; that, and all else, is a ConfigError here.
    """
    name = env_name(env)
    one = _single(name, drawing(name, maker(env), view.pixels or size))
    check_apart(name, [one, *others])
    return local_worlds(name, [one], view=view, role="Filmed environment")


def drawing(name: str, make: Callable[..., Any], size: int) -> Callable[[], Any]:
    """The same callable for an environment that draws arrays, so large if it can be told so, and plainly."""
    by_name = isinstance(make, partial) and make.func is gymnasium.make
    return partial(_made_to_draw, name, make, size if by_name else 0)


def _made_to_draw(name: str, make: Callable[..., Any], size: int) -> Made:
    if takes(make, "render_mode"):
        make = partial(make, render_mode="rgb_array")
    try:
        one = made(name, partial(make, width=size, height=size) if size else make)
    except ConfigError:  # those that know no width and height
        one = made(name, make)
    if isinstance(one, VectorEnv):
        return one  # for others to refuse
    if one.render_mode != "rgb_array":
        one.close()
        raise ConfigError(f"env {name!r} cannot be drawn: it takes no render_mode, or draws no arrays.")
    draw_plainly(one)
    return one


def draw_plainly(env: gymnasium.Env[Any, Any]) -> None:
    """Without MuJoCo's shadows, mirrors and smooth edges, which cost twenty times as much as all else in a picture.

    And by the camera that goes along, if there is one: what walks would walk out of the picture of any other.
    """
    inner: Any = env.unwrapped
    model: Any = getattr(inner, "model", None)
    with contextlib.suppress(AttributeError, TypeError):  # another kind of model, or none
        model.vis.quality.shadowsize = model.vis.quality.offsamples = 0
        model.mat_reflectance[:] = 0
    with contextlib.suppress(AttributeError, TypeError, KeyError):  # or one without such a camera
        inner.mujoco_renderer.camera_id = model.camera("track").id


def takes(make: Callable[..., Any], name: str) -> bool:
    """Whether a callable has an argument of this name, or any."""
    try:
        known = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):
        return False
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return any(one.kind is one.VAR_KEYWORD or (one.name == name and one.kind in by_name) for one in known)


def make_local(name: str, make: Callable[[], Any], first: int, count: int, view: View) -> LocalWorlds:
    """The share of the environments that one worker process plays."""
    return local_worlds(name, [_single(name, make) for _ in range(count)], first, view)


def local_worlds(
    name: str,
    envs: list[gymnasium.Env[Any, Any]],
    first: int = 0,
    view: View = PLAIN,
    role: str = "Environment",
) -> LocalWorlds:
    check_apart(name, envs)
    envs = [view.on(env) for env in envs]
    for env in envs[1:]:
        if (env.observation_space, env.action_space) != (envs[0].observation_space, envs[0].action_space):
            raise ConfigError(f"env {name!r} makes environments with different spaces: they cannot share one agent.")
    return LocalWorlds(name, envs, first, role, view.frame_stack)


def check_apart(name: str, envs: list[Any]) -> None:
    """No environment may be played in two places: what it remembers of one would show in the other."""
    if len({id(env.unwrapped) for env in envs}) < len(envs):
        raise ConfigError(f"env {name!r} must make a new environment each time; it returned the same one twice.")


def environments_of(worlds: Worlds) -> list[Any]:
    """Those that live in this process."""
    envs: Any = getattr(worlds, "envs", None)
    if isinstance(worlds, LocalWorlds):
        return list(envs)
    return [envs] if envs is not None else []


def maker(env: str | Callable[..., Any]) -> Callable[[], Any]:
    """A callable of no arguments, whatever the user named."""
    if not isinstance(env, str):
        return env
    module_name, _, attribute = env.rpartition(":")
    if module_name:
        try:
            module = importlib.import_module(module_name)
        except (Exception, SystemExit) as problem:
            why = problem if isinstance(problem, ImportError) else told(problem)
            raise ConfigError(f"env {env!r} cannot be imported: {why}.") from problem
        if callable(found := getattr(module, attribute, None)):
            return found  # type: ignore[no-any-return]
    # The specification goes along to workers, which may never have heard of what was registered here.
    return partial(gymnasium.make, gymnasium.registry.get(attribute, env))


def made(name: str, make: Callable[[], Any]) -> Made:
    handle_mujoco_warnings()
    try:
        env = make()
    except TD3Error:
        raise
    except gymnasium.error.Error as problem:
        base = name.rpartition(":")[2]
        known = "Did you mean" in str(problem) or base in gymnasium.registry  # by name, yet it lacks something
        near = "" if known else did_you_mean(base, gymnasium.registry)
        raise ConfigError(f"env {name!r} cannot be made: {_one_line(problem)}{near}") from problem
    except (Exception, SystemExit) as problem:
        raise ConfigError(f"env {name!r} cannot be made: {told(problem)}.") from problem
    if not isinstance(env, gymnasium.Env | VectorEnv):
        raise ConfigError(
            f"env {name!r} must make a gymnasium.Env or a gymnasium.vector.VectorEnv; it made a "
            f"{type(env).__module__}.{type(env).__qualname__}."
        )
    for space in ("single_observation_space", "single_action_space") if isinstance(env, VectorEnv) else SPACES:
        if not isinstance(getattr(env, space, None), gymnasium.Space):
            raise SpaceError(f"env {name!r} must have a {space}; it has {getattr(env, space, None)!r}.")
    return env


def _single(name: str, make: Callable[[], Any]) -> gymnasium.Env[Any, Any]:
    env = made(name, make)
    if isinstance(env, VectorEnv):
        env.close()
        raise ConfigError(f"env {name!r} makes a vector environment already: workers must be 0 with it.")
    return env


def _one_line(problem: BaseException) -> str:
    text = " ".join(str(problem).split())
    return text if text.endswith((".", "?", "!", "`")) else text + "."
