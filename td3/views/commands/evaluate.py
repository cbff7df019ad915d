"""`td3 evaluate`: plays a run's agent without noise and reports its returns."""

from argparse import Namespace

from td3.config import env_name
from td3.views.flags import Parser, add_run, add_trust, find_local_modules, number_for
from td3.views.own_parts import add_parts, load_parts, part_names
from td3.views.speaking import answer, say
from td3.wording import counted

HELP = "Play a run's agent without noise and report its returns."


def add_arguments(parser: Parser) -> None:
    """Adds the flags of this command."""
    add_run(parser)
    parser.add_argument("--episodes", metavar="N", default="10", help="how many (default: 10)")
    parser.add_argument("--seed", metavar="N", default="0", help="seed of the episodes (default: 0)")
    parser.add_argument("--checkpoint", metavar="WHICH", default="last", help="last (default), best, or a step")
    parser.add_argument(
        "--policy",
        metavar="WHICH",
        default="current",
        help="current (default), or checkpoint: what TD7 kept as its best",
    )
    add_trust(parser)
    add_parts(parser, ("learner",))


def run(chosen: Namespace) -> int:
    """Evaluates; returns the exit code."""
    episodes = number_for("eval_episodes", "--episodes", chosen.episodes)
    seed = number_for("seed", "--seed", chosen.seed)
    if chosen.env or chosen.trust or part_names(chosen):
        find_local_modules()
    parts = load_parts(chosen)
    from td3.agent import evaluate, load
    from td3.learner.making import use_threads

    use_threads(1)  # one observation at a time gives two threads nothing to share
    agent = load(chosen.run, chosen.checkpoint, chosen.env, chosen.trust, policy=chosen.policy, **parts)
    for note in agent.notes:
        say(f"Note: {note}")
    evaluation = evaluate(agent, episodes, seed)
    for failure in evaluation.failures:
        say(f"Note: {failure} A new one was made.")
    name = env_name(agent.config.env)
    if chosen.json:
        answer(
            {
                "env": name,
                "step": agent.step,
                "episodes": evaluation.episodes,
                "mean": evaluation.mean,
                "std": evaluation.std,
                "returns": evaluation.returns,
            }
        )
    else:
        say(
            f"{name} after {counted(agent.step, 'step')}, {counted(evaluation.episodes, 'episode')} without noise: "
            f"{evaluation.mean:.1f} ± {evaluation.std:.1f} (lowest {min(evaluation.returns):.1f}, "
            f"highest {max(evaluation.returns):.1f})."
        )
    return 0
