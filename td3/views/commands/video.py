"""`td3 video`: writes a video of a run's agent."""

from argparse import Namespace

from td3.config import env_name
from td3.errors import ConfigError
from td3.views.extras import needs
from td3.views.flags import Parser, add_run, add_trust, find_local_modules, number_for, whole_number
from td3.views.own_parts import add_parts, load_parts, part_names
from td3.views.speaking import answer, say
from td3.wording import brief, counted

HELP = "Write a video of a run's agent: the picture, its return, what its critics expect, and its actions."
SMALLEST, LARGEST = 64, 2_160  # pixels


def add_arguments(parser: Parser) -> None:
    """Adds the flags of this command."""
    add_run(parser)
    parser.add_argument("file", metavar="FILE", help="what to write; the ending says the format: .mp4, .webp or .gif")
    parser.add_argument("--episodes", metavar="N", default="1", help="how many (default: 1)")
    parser.add_argument(
        "--seed", metavar="N", default="0", help="seed of the episodes, as of td3 evaluate (default: 0)"
    )
    parser.add_argument("--checkpoint", metavar="WHICH", default="last", help="last (default), best, or a step")
    parser.add_argument("--size", metavar="N", default="480", help="height of the picture in pixels (default: 480)")
    parser.add_argument("--seconds", metavar="X", help="only the first seconds of each episode")
    parser.add_argument("--no-panel", action="store_true", help="the picture alone, without numbers beside it")
    add_trust(parser)
    add_parts(parser, ("learner",))


def run(chosen: Namespace) -> int:
    """Plays and writes; returns the exit code."""
    from td3.video.files import Video, ending_checked  # light: what is wrong with FILE is said at once

    episodes = number_for("eval_episodes", "--episodes", chosen.episodes)
    seed = number_for("seed", "--seed", chosen.seed)
    size = whole_number("--size", chosen.size, SMALLEST, LARGEST)
    size += size % 2  # video codecs take even sizes
    seconds = seconds_of(chosen.seconds)
    path = ending_checked(chosen.file)
    if path.suffix.lower() == ".mp4":
        needs("imageio_ffmpeg", "video")
    if chosen.env or chosen.trust or part_names(chosen):
        find_local_modules()
    parts = load_parts(chosen)
    from td3.agent import load
    from td3.config.trust import why_not_trusted
    from td3.learner.making import use_threads
    from td3.video import Panel, play
    from td3.video.episodes import episode_seeds
    from td3.video.panel import scaled

    use_threads(1)
    agent = load(chosen.run, chosen.checkpoint, chosen.env, chosen.trust, **parts)
    if not agent.trusted:
        raise ConfigError(why_not_trusted(agent.config))
    for note in agent.notes:
        say(f"Note: {note}")
    name, returns = env_name(agent.config.env), []
    with play(agent, size) as playback:
        most = None if seconds is None else max(1, round(seconds * playback.rate))
        panel = None if chosen.no_panel else Panel(size, name, f"after {counted(agent.step, 'step')}, seed {seed}")
        with Video(path, playback.rate) as video:
            for number, episode_seed in enumerate(episode_seeds(seed, episodes)):
                for moment in playback.episode(number, episode_seed, most):
                    video.add(panel.beside(moment) if panel else scaled(moment.frame, size))
                returns.append(moment.earned)
            frames, rate = video.frames, video.rate
    if chosen.json:
        answer({"file": str(path), "env": name, "step": agent.step, "frames": frames, "rate": rate, "returns": returns})
    else:
        say(
            f"{path}: {counted(episodes, 'episode')} of {name} after {counted(agent.step, 'step')}, "
            f"{frames / rate:.0f} s, return {', '.join(f'{one:.1f}' for one in returns)}."
        )
    return 0


def seconds_of(text: str | None) -> float | None:
    """Reads a number of seconds greater than zero."""
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ConfigError(f"--seconds must be a number greater than 0; got {brief(text)}.")
    return seconds
