"""Makes environments from a name or a callable: in this process, in worker processes, or a `VectorEnv`."""

import contextlib
import inspect
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from functools import partial, reduce
from types import MappingProxyType
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from td3.config import env_name, has_no_name, nameless
from td3.environments.actions import no_box
from td3.environments.envs import Envs
from td3.environments.families import family_advice
from td3.environments.faults import STOPPED, close_quietly, describe_exception, message_of, refusing, shown
from td3.environments.mujoco_warnings import handle_mujoco_warnings
from td3.environments.observations import KINDS, Leaf, added_kinds
from td3.environments.processes import ProcessEnvs
from td3.environments.restarts import Restarts
from td3.environments.serial import SerialEnvs
from td3.environments.user_code import user_module
from td3.environments.vector import GymVectorEnvs
from td3.environments.wrappers import PLAIN, Wrappers
from td3.errors import ConfigError, SpaceError, TD3Error
from td3.wording import did_you_mean

NONE: Mapping[str, Any] = MappingProxyType({})
SPACES = ("observation_space", "action_space")
OTHERS = ("unwrapped", "metadata", "render_mode")
Made = gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]


def make_envs(
    env: str | Callable[..., Any],
    num_envs: int = 1,
    workers: int = 0,
    timeout: float = 30.0,
    role: str = "Environment",
    wrappers: Wrappers = PLAIN,
    env_args: Mapping[str, Any] = NONE,
    restarts: Restarts | None = None,
) -> Envs:
    """Makes `num_envs` environments; a callable may also make a whole `VectorEnv` at once.

    One that fails is made anew as often as `restarts` allow, which counts them.
    """
    name = env_name(env)
    make = maker(env, env_args)
    if wrappers.pixels:
        make = rendering(name, make, wrappers.pixels)
    if workers:
        return ProcessEnvs(name, knowing_kinds(make), num_envs, workers, timeout, wrappers, restarts)
    first = made(name, make)
    try:
        if isinstance(first, VectorEnv):
            if num_envs not in (1, first.num_envs):
                raise ConfigError(
                    f"num_envs must be left alone or {first.num_envs}, the size of the vector environment that "
                    f"{name} makes; got {num_envs}."
                )
            if wrappers.asked_for:
                raise ConfigError(
                    f"{', '.join(wrappers.asked_for)} must be left alone here: {name} makes a vector environment, "
                    "which is taken as it is; wrap its single environments instead."
                )
            if restarts and restarts.allowed:
                raise ConfigError(
                    f"restart_failed must be 0 here, not {restarts.allowed}: {name} makes a vector environment, of "
                    "which no single one can be made anew."
                )
            with refusing(f"env {name!r} cannot be used:"):
                return GymVectorEnvs(name, first, timeout)
        others = [_single(name, make) for _ in range(num_envs - 1)]
        return serial_envs(name, [first, *others], make, wrappers=wrappers, role=role, restarts=restarts)
    except TD3Error:
        close_quietly(first.close)
        raise


def make_single(env: str | Callable[..., Any], wrappers: Wrappers = PLAIN, env_args: Mapping[str, Any] = NONE) -> Made:
    """Makes one wrapped environment, to be played without td3; a vector environment is not wrapped."""
    name, make = env_name(env), maker(env, env_args)
    made_env = made(name, rendering(name, make, wrappers.pixels) if wrappers.pixels else make)
    return made_env if isinstance(made_env, VectorEnv) else wrappers.wrap(made_env)


def maker_to_render(
    env: str | Callable[..., Any], size: int, wrappers: Wrappers = PLAIN, env_args: Mapping[str, Any] = NONE
) -> Callable[[], Any]:
    """Returns what makes an environment that renders arrays, about `size` wide if it takes a width."""
    return knowing_kinds(rendering(env_name(env), maker(env, env_args), wrappers.pixels or size))


def make_to_render(name: str, make: Callable[[], Any], wrappers: Wrappers) -> SerialEnvs:
    """Makes the environment of a film, wrapped as in training; one that cannot render is a ConfigError."""
    return serial_envs(name, [_single(name, make)], make, wrappers=wrappers, role="Filmed environment")


def rendering(name: str, make: Callable[..., Any], size: int) -> Callable[[], Any]:
    """Returns the same callable for an environment that renders arrays, of this size if it takes one, and plainly."""
    by_name = isinstance(make, partial) and make.func is gymnasium.make
    return partial(_made_to_render, name, make, size if by_name else 0)


def _made_to_render(name: str, make: Callable[..., Any], size: int) -> Made:
    if takes(make, "render_mode"):
        make = partial(make, render_mode="rgb_array")
    try:
        env = made(name, partial(make, width=size, height=size) if size else make)
    except ConfigError:  # it takes no width and height
        env = made(name, make)
    if isinstance(env, VectorEnv):
        return env  # is refused elsewhere
    if env.render_mode != "rgb_array":
        close_quietly(env.close)
        raise ConfigError(f"env {name!r} cannot be drawn: it takes no render_mode, or draws no arrays.")
    with refusing(f"env {name!r} cannot be drawn:"):
        render_plainly(env)
    return env


def render_plainly(env: gymnasium.Env[Any, Any]) -> None:
    """Switches off MuJoCo's shadows, mirrors and smooth edges, which cost twenty times as much as all else in a frame.

    And chooses the camera that goes along, if there is one: a walker would leave the frame of any other.
    """
    inner: Any = env.unwrapped
    model: Any = getattr(inner, "model", None)
    with contextlib.suppress(AttributeError, TypeError):  # another kind of model, or none
        model.vis.quality.shadowsize = model.vis.quality.offsamples = 0
        model.mat_reflectance[:] = 0
    with contextlib.suppress(AttributeError, TypeError, KeyError):  # or one without such a camera
        inner.mujoco_renderer.camera_id = model.camera("track").id


def knowing_kinds(make: Callable[[], Any]) -> Callable[[], Any]:
    """Returns the same callable for another process, which learns of kinds of observations that were added here."""
    return partial(_made_knowing, added_kinds(), make) if added_kinds() else make


def _made_knowing(kinds: Mapping[str, type[Leaf]], make: Callable[[], Any]) -> Any:
    KINDS.update(kinds)
    return make()


def takes(make: Callable[..., Any], name: str) -> bool:
    """Returns whether a callable has an argument of this name, or takes any."""
    try:
        known = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):
        return False
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return any(given.kind is given.VAR_KEYWORD or (given.name == name and given.kind in by_name) for given in known)


def make_local(
    name: str, make: Callable[[], Any], first: int, count: int, wrappers: Wrappers, restarts: Restarts
) -> SerialEnvs:
    """Makes the share of the environments that one worker process plays."""
    return serial_envs(name, [_single(name, make) for _ in range(count)], make, first, wrappers, restarts=restarts)


def serial_envs(
    name: str,
    envs: list[gymnasium.Env[Any, Any]],
    make: Callable[[], Any],
    first: int = 0,
    wrappers: Wrappers = PLAIN,
    role: str = "Environment",
    restarts: Restarts | None = None,
) -> SerialEnvs:
    """Wraps environments, checks that they fit together, and puts them behind one `step`."""
    with refusing(f"env {name!r} cannot be used:"):
        check_apart(name, envs)
        envs = [wrappers.wrap(env) for env in envs]
        spaces = [(env.observation_space, env.action_space) for env in envs]
        if any(pair != spaces[0] for pair in spaces):
            raise ConfigError(f"env {name!r} makes environments with different spaces: they cannot share one agent.")
        make_another = partial(_another, name, make, wrappers)
        if twin := real_valued_twin(name, envs[0]):
            raise no_box(envs[0].action_space, twin)
        return SerialEnvs(name, envs, first, role, wrappers, restarts, make_another)


def real_valued_twin(name: str, env: gymnasium.Env[Any, Any]) -> str:
    """Names the same task with real-valued actions, where the environment has one; else ''."""
    if isinstance(env.action_space, gymnasium.spaces.Box):
        return ""
    if "continuous" in inspect.signature(type(env.unwrapped)).parameters:
        return "Its actions are real-valued with --env-arg continuous=true (env_args={'continuous': True})."
    task, dash, version = name.rpartition("-")
    twin = f"{task}Continuous{dash}{version}"
    return f"{twin} is the same task with real-valued actions." if twin in gymnasium.registry else ""


def _another(name: str, make: Callable[[], Any], wrappers: Wrappers) -> gymnasium.Env[Any, Any]:
    """Makes one more environment, wrapped like those before."""
    with refusing(f"env {name!r} cannot be used:"):
        return wrappers.wrap(_single(name, make))


def check_apart(name: str, envs: list[Any]) -> None:
    """Refuses an environment that is there twice: what it remembers of one episode would show in the other."""
    if len({id(env.unwrapped) for env in envs}) < len(envs):
        raise ConfigError(f"env {name!r} must make a new environment each time; it returned the same one twice.")


def in_this_process(envs: Envs) -> list[Any]:
    """Returns the Gymnasium environments that live in this process."""
    if isinstance(envs, SerialEnvs):
        return list(envs.envs)
    return [envs.envs] if isinstance(envs, GymVectorEnvs) else []


def maker(env: str | Callable[..., Any], env_args: Mapping[str, Any] = NONE) -> Callable[[], Any]:
    """Returns a callable without arguments, whatever the user named."""
    if not isinstance(env, str):
        return partial(env, **env_args) if env_args else env
    if has_no_name(env):
        raise ConfigError(nameless(env))
    module_name, _, attribute = env.rpartition(":")
    if module_name:
        module = user_module("env", env)
        with contextlib.suppress(AttributeError):
            if callable(found := reduce(getattr, attribute.split("."), module)):
                return partial(found, **env_args)
        if module_name == "__main__":  # another script than the one that knew it
            raise ConfigError(nameless(env))
        makers = [name for name, value in vars(module).items() if callable(value)]
        if attribute not in gymnasium.registry and (near := did_you_mean(attribute, makers)):
            raise ConfigError(f"env {env!r} cannot be made: {module_name} has no {attribute}.{near}")
    # The specification goes along to workers, which may never have heard of what was registered here.
    return partial(gymnasium.make, gymnasium.registry.get(attribute, env), **env_args)


def made(name: str, make: Callable[[], Any]) -> Made:
    """Makes an environment and looks at all that is needed of it; whatever it raises is a ConfigError."""
    handle_mujoco_warnings()
    try:
        with plain_children():
            env = make()
    except (*STOPPED, TD3Error):
        raise
    except gymnasium.error.Error as problem:
        base, words = name.rpartition(":")[2], _sentence(problem)
        unknown = base not in gymnasium.registry or isinstance(problem, gymnasium.error.DependencyNotInstalled)
        if unknown and (advice := family_advice(name)):
            raise ConfigError(f"env {name!r} cannot be made: {advice}") from problem
        known = "Did you mean" in words or base in gymnasium.registry  # by name, yet it lacks something
        near = "" if known else did_you_mean(base, gymnasium.registry)
        raise ConfigError(f"env {name!r} cannot be made: {words}{near}") from problem
    except BaseException as problem:
        raise ConfigError(f"env {name!r} cannot be made: {describe_exception(problem)}.") from problem
    if not isinstance(env, gymnasium.Env | VectorEnv):
        raise ConfigError(
            f"env {name!r} must make a gymnasium.Env or a gymnasium.vector.VectorEnv; it made a "
            f"{type(env).__module__}.{type(env).__qualname__}."
        )
    spaces = ("single_observation_space", "single_action_space") if isinstance(env, VectorEnv) else SPACES
    for attribute in (*spaces, *OTHERS):  # whatever raises, raises here, and is named
        with refusing(f"env {name!r} cannot be used: its {attribute} raised"):
            value = getattr(env, attribute, None)
            if attribute in spaces:
                if not isinstance(value, gymnasium.Space):
                    raise SpaceError(f"env {name!r} must have a {attribute}; it has {shown(value)}.")
                repr(value)  # which messages quote
    return env


@contextlib.contextmanager
def plain_children() -> Iterator[None]:
    """Resets the signal handlers of processes that are forked in here: this one may have handlers of its own.

    `AsyncVectorEnv` forks its workers when it is made, and ends them with a signal.
    """
    global _forks_are_plain
    before, _forks_are_plain = _forks_are_plain, True
    try:
        yield
    finally:
        _forks_are_plain = before


_forks_are_plain = False


def _plain_signals() -> None:
    if _forks_are_plain:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_plain_signals)


def _single(name: str, make: Callable[[], Any]) -> gymnasium.Env[Any, Any]:
    env = made(name, make)
    if isinstance(env, VectorEnv):
        close_quietly(env.close)
        raise ConfigError(f"env {name!r} makes a vector environment already: workers must be 0 with it.")
    return env


def _sentence(problem: BaseException) -> str:
    text = message_of(problem) or type(problem).__name__
    return text if text.endswith((".", "?", "!", "`")) else text + "."
