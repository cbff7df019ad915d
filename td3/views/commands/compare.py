"""`td3 compare`: compares settings over seeds, as tables and pictures."""

from argparse import Namespace

from td3.errors import ConfigError
from td3.views.extras import needs
from td3.views.flags import Parser, whole_number
from td3.views.speaking import answer, printable, say, write_out
from td3.wording import brief, counted, did_you_mean

HELP = "Compare settings over seeds: statistics, tables and pictures, with published results beside them."
FORMATS, AXES = ("text", "markdown", "csv", "json"), ("steps", "time")


def add_arguments(parser: Parser) -> None:
    """Adds the flags of this command."""
    parser.usage = (
        "td3 compare RUN…|STUDY… [--baseline NAME] [--at STEP|TIME] [--last N] [--normalize HOW] [--format FORMAT] "
        "[--picture FILE] [--against time] [--profile FILE] [--save DIR] [--no-published] [--json]"
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="runs, folders with runs below them, studies")
    parser.add_argument(
        "--baseline", metavar="NAME", help="the setting that others are compared with (default: the first)"
    )
    parser.add_argument(
        "--at",
        metavar="STEP|TIME",
        help="compare at this step, or after this training time, as 90s, 10min or 2h (default: at the last evaluation "
        "that all runs have)",
    )
    parser.add_argument("--last", metavar="N", default="1", help="average the last N evaluations of a run (default: 1)")
    parser.add_argument(
        "--normalize",
        metavar="HOW",
        help="normalise scores: published (0 is a random policy, 1 is TD3 after 1M steps), baseline (0 is its first "
        "evaluation, 1 its score), or a TOML file with low and high for each environment",
    )
    parser.add_argument("--format", metavar="|".join(FORMATS), help="how the tables are written (default: text)")
    parser.add_argument("--picture", metavar="FILE", help="plot the learning curves, as .svg, .png or .pdf")
    parser.add_argument("--against", metavar="|".join(AXES), help="the axis of the learning curves (default: steps)")
    parser.add_argument("--profile", metavar="FILE", help="plot the share of runs above each score")
    parser.add_argument(
        "--save",
        metavar="DIR",
        help="keep each finished run as a small file below DIR, which compares like the runs",
    )
    parser.add_argument("--no-published", action="store_true", help="leave published results of TD3 out")


def run(chosen: Namespace) -> int:
    """Compares; returns 0."""
    form = one_of("--format", chosen.format, FORMATS)
    against = one_of("--against", chosen.against, AXES)
    if chosen.json and chosen.format not in (None, "json"):
        raise ConfigError(f"--json is another format than --format {chosen.format}: leave one of them out.")
    if chosen.against and not chosen.picture:
        raise ConfigError(f"--against is about the picture: name one with --picture FILE; got {brief(chosen.against)}.")
    last = whole_number("--last", chosen.last, 1)
    from td3.results.comparison import compare
    from td3.results.pictures import check_picture

    for flag, path in (("--picture", chosen.picture), ("--profile", chosen.profile)):
        if path is not None:
            check_picture(flag, path)
            needs("matplotlib", "plot")
    found = compare(
        chosen.runs,
        baseline=chosen.baseline,
        at=chosen.at,
        last=last,
        normalize=chosen.normalize,
        published=not chosen.no_published,
    )
    if chosen.save is not None:
        files = found.save(chosen.save)
        left = found.unfinished()
        rest = f" {counted(left, 'run')} not finished, and not kept." if left else ""
        say(f"{counted(len(files), 'file')} new or changed below {chosen.save}.{rest}")
    if chosen.picture is not None:
        found.plot(chosen.picture, against)
    if chosen.profile is not None:
        found.plot_profile(chosen.profile)
    if chosen.json or form == "json":
        answer(found.to_data())
        return 0
    write_out("".join(f"{printable(line)}\n" for line in found.table(form).splitlines()))
    if form == "csv":
        from td3.results.tables import notes

        say(*notes(found))
    return 0


def one_of(name: str, text: str | None, allowed: tuple[str, ...]) -> str:
    """Returns one of the words that are allowed; the first where none is given."""
    if text is not None and text not in allowed:
        raise ConfigError(f"{name} must be {', '.join(allowed)}; got {brief(text)}.{did_you_mean(text, allowed)}")
    return text or allowed[0]
