"""The measurements as Markdown tables and as a picture."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from td3.benchmark.cases import Case, ImageCase
from td3.benchmark.pixels import EPISODE, SAVING
from td3.wording import counted


def tables(result: dict[str, Any]) -> str:
    """Returns what was measured as tables in Markdown."""
    return "\n\n".join("\n".join(lines) for run in result["runs"] for lines in sections(run))


def sections(run: dict[str, Any]) -> Iterator[list[str]]:
    """Yields the tables of one number of threads, each as lines."""
    threads = counted(run["threads"], "thread")
    names = list(run["libraries"])
    if "updates" in run:
        peak = run["peak_gflops"]
        known = "" if math.isnan(peak) else f" Fused multiply-adds alone reach {peak:.0f} GFLOPS."
        yield [
            f"Updates per second, {threads}: the best of {run['rounds']} interleaved rounds, "
            f"the median in brackets.{known}",
            "",
            *head(["networks", *names, *(["of peak"] if known else []), *versus(names)]),
            *(update_row(one, names, peak) for one in run["updates"].values()),
        ]
    if "steps" in run:
        speeds = run["steps"]["speeds"]
        yield [
            f"Steps per second on {run['steps']['env']} with one update each, {threads}:",
            "",
            *head(["networks", *names, *versus(names)]),
            row([Case(**run["steps"]["case"]).words, *rates(speeds, names), *ratios(speeds, names)]),
        ]
        if parts := run["steps"]["around"]:
            share = parts["around"] / sum(parts.values())
            yield [
                f"Of such a step the update takes {parts['update']:,.0f} µs, the environment {parts['env']:,.0f} µs, "
                f"all else (acting, storing, sampling, bookkeeping) {parts['around']:,.0f} µs: {share:.1%}."
            ]
    if "acting" in run:
        speeds = run["acting"]["speeds"]
        ours = list(speeds)
        each = ", ".join(f"{name} {1e6 / speeds[name]['best']:.1f} µs" for name in ours)
        yield [f"One action through `agent.act`: {each}."]
    if "growth" in run:
        yield from growth_tables(run, threads)
    if "pixels" in run:
        yield from pixel_tables(run["pixels"], threads)


def growth_tables(run: dict[str, Any], threads: str) -> Iterator[list[str]]:
    """Yields the tables of how speed grows with batch and width."""
    growth, peak = run["growth"], run["peak_gflops"]
    for name in ("batch", "width"):
        points = growth[name]
        yield [
            f"Updates per second of {growth['engine']} with the {name}, {threads}:",
            "",
            *head([name, *points]),
            row(["updates/s", *(f"{point['best']:,.0f}" for point in points.values())]),
            *(
                []
                if math.isnan(peak)
                else [row(["of peak", *(f"{one['gflops'] / peak:.2f}" for one in points.values())])]
            ),
        ]
    for name, unit in (("environments", "steps/s"), ("memory", "updates/s")):
        points = growth[name]
        yield [
            f"{unit} of {growth['engine']} with the {name}, {threads}:",
            "",
            *head([name, *points]),
            row([unit, *(f"{point['best']:,.0f}" for point in points.values())]),
        ]


def pixel_tables(pixels: dict[str, Any], threads: str) -> Iterator[list[str]]:
    """Yields the tables of images: speed, passes through encoders, and bytes per transition."""
    cases = list(pixels["cases"].values())
    names, keepers = list(cases[0]["speeds"]), list(cases[0]["bytes"])
    rounds = " and ".join(str(one["rounds"]) for one in cases)
    yield [
        f"Updates per second from images, {threads}: the best of {rounds} interleaved rounds, the median in brackets.",
        "",
        *head(["images and networks", *names, *versus(names)]),
        *(image_row(one, names) for one in cases),
    ]
    each = (f"{name} {one['forward']:g} and {one['back']:g}" for name, one in cases[0]["passes"].items())
    moved = " Ours is moved by the critics' loss; the shared one by the actor's alone." if names[1:] else ""
    yield [f"Times that such an update goes through an encoder, forward and back: {'; '.join(each)}.{moved}"]
    yield [
        f"Bytes of a remembered transition, in full memories after episodes of {EPISODE} steps:",
        "",
        *head(["images", *keepers, *versus(keepers)]),
        *(byte_row(one, keepers) for one in cases),
    ]
    if refused := pixels["refused"]:
        yield [f"{SAVING}, when asked:", "", *(f'- {asked}: "{said}"' for asked, said in refused.items())]


def image_row(one: dict[str, Any], names: list[str]) -> str:
    """Formats one image case's speeds as a row."""
    speeds = one["speeds"]
    return row([ImageCase(**one["case"]).words, *rates(speeds, names, digits=1), *ratios(speeds, names)])


def byte_row(one: dict[str, Any], keepers: list[str]) -> str:
    """Formats one image case's bytes per transition as a row."""
    taken = one["bytes"]
    times = [f"{taken[name] / taken[keepers[0]]:.1f} ×" for name in keepers[1:]]
    return row([ImageCase(**one["case"]).seen, *(f"{taken[name]:,.0f}" for name in keepers), *times])


def update_row(one: dict[str, Any], names: list[str], peak: float) -> str:
    """Formats one case's speeds as a row."""
    speeds = one["speeds"]
    share = speeds[names[0]]["best"] * one["operations"] / 1e9 / peak
    shares = [] if math.isnan(peak) else [f"{share:.2f}"]
    return row([Case(**one["case"]).words, *rates(speeds, names), *shares, *ratios(speeds, names)])


def rates(speeds: dict[str, Any], names: list[str], digits: int = 0) -> list[str]:
    """Formats each library's best and median speed."""
    return [f"{speeds[name]['best']:,.{digits}f} ({speeds[name]['median']:,.{digits}f})" for name in names]


def ratios(speeds: dict[str, Any], names: list[str]) -> list[str]:
    """Formats the first library's best speed as a multiple of each other's."""
    return [f"{speeds[names[0]]['best'] / speeds[name]['best']:.1f} ×" for name in names[1:]]


def versus(names: list[str]) -> list[str]:
    """Returns the headings of the columns that `ratios` fills."""
    return [f"vs {name}" for name in names[1:]]


def head(words: list[str]) -> list[str]:
    """Returns the two lines that begin a table."""
    return [row(words), row(["---"] * len(words))]


def row(words: list[str]) -> str:
    """Formats one line of a table."""
    return "| " + " | ".join(words) + " |"


COLOURS = ("#1d4ed8", "#c2410c", "#15803d", "#7e22ce")


def draw(result: dict[str, Any], path: Path) -> None:
    """Plot the speed for every kind of network, each on its own axis from zero, and the share of the peak."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import patches, pyplot

    run = max(result["runs"], key=lambda one: one["threads"])
    cases = list(run.get("updates", {}).values())
    growth = {name: run["growth"][name] for name in ("batch", "width") if name in run.get("growth", {})}
    figure = pyplot.figure(figsize=(11, 4 + 3 * bool(growth)), dpi=150, layout="constrained")
    subfigures: Any = figure.subfigures(2, 1, height_ratios=(4, 3)) if growth else [figure]
    above, *below = subfigures
    for one, axes in zip(cases, above.subplots(1, max(1, len(cases)), squeeze=False)[0], strict=False):
        plot_case(axes, one["speeds"], Case(**one["case"]).lines)
    above.suptitle(
        f"updates per second, {counted(run['threads'], 'thread')}, best of {run['rounds']} interleaved rounds"
    )
    bars = [patches.Rectangle((0, 0), 1, 1, color=colour) for colour in COLOURS]
    above.legend(bars[: len(run["libraries"])], run["libraries"], loc="outside lower center", ncols=4, frameon=False)
    for part in below:
        for (name, points), axes in zip(growth.items(), part.subplots(1, len(growth), squeeze=False)[0], strict=True):
            plot_growth(axes, points, run["peak_gflops"], name)
    figure.savefig(path)
    pyplot.close(figure)


def plot_case(axes: Any, speeds: dict[str, Any], title: str) -> None:
    """Plots the speeds of one case as bars."""
    heights = [speed["best"] for speed in speeds.values()]
    bars = axes.bar(range(len(heights)), heights, 0.8, color=COLOURS[: len(heights)])
    axes.bar_label(bars, [f"{height:,.0f}" for height in heights], fontsize=8, padding=1)
    axes.set_title(title, fontsize=9)
    axes.set_xticks([])
    axes.set_ylim(0, 1.1 * max(heights))
    axes.tick_params(axis="y", labelsize=8)
    plain_frame(axes)


def plot_growth(axes: Any, points: dict[str, Any], peak: float, name: str) -> None:
    """Plots the share of the peak that is reached as the batch or the width grows."""
    axes.plot(list(points), [point["gflops"] / peak for point in points.values()], marker="o", color=COLOURS[0])
    axes.set_ylim(0, 1)
    axes.set_xlabel("batch size, networks 256-256" if name == "batch" else "width of both layers, batch 256")
    axes.set_ylabel("td3 native: share of the peak")
    plain_frame(axes)


def plain_frame(axes: Any) -> None:
    """Leaves a light grid, and no frame at the top and the right."""
    axes.grid(axis="y", alpha=0.25)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
