"""The charts of the page: of one data set, or of two, the second as a line."""

import itertools
from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from transforms.reporting import shown
from transforms.reporting.drawing import (
    BACK,
    FIRST,
    HEIGHT,
    INK,
    MUTED,
    SECOND,
    WIDTH,
    Chart,
    Table,
    band,
    draw,
    percents,
    thousands,
)
from transforms.reporting.facts import Facts, Shard
from transforms.reporting.flow import Branch, Flow, flow_of
from transforms.reporting.row_facts import Bin

_MOST_BARS = 60
_MOST_TABLE_ROWS = 64
_THIS, _OTHER = "this data set", "the other"


def charts_of(facts: Facts, other: Facts | None = None) -> dict[str, Chart]:
    """The charts that there is data for, by name."""
    return {chart.name: chart for chart in _all_charts(facts, other)}


def _all_charts(facts: Facts, other: Facts | None) -> Iterator[Chart]:
    flow = None if facts.documents is None else flow_of(facts.documents)
    if flow is not None:
        yield flow_chart(flow)
    yield from _shard_charts(facts)


def flow_chart(flow: Flow) -> Chart:
    """The stream of documents, from what was read down to the text, with what was left out to the right."""
    kept = shown.count(flow.kept)
    summary = f"Of {shown.count(flow.read)} pages or documents that were read, {kept} are in the text."
    largest = max((branch for branch in flow.branches if not branch.is_kept), key=lambda b: b.count, default=None)
    if largest is not None:
        summary += f" Most others are {largest.label}: {shown.count(largest.count)}."
    height = 96 + 30 * max(3, len(flow.branches))
    title = "What became of the documents"
    svg = draw("flow", title, summary, lambda plane: _draw_flow(plane, flow, height), height=height, axes=False)
    rows = [(b.label, shown.count(b.count), shown.percent(b.count / flow.read)) for b in flow.branches]
    return Chart(
        name="flow",
        title=title,
        summary=summary,
        svg=svg,
        table=Table(columns=("where they went", "documents", "share"), rows=tuple(rows)),
    )


def _draw_flow(plane: Axes, flow: Flow, height: int) -> None:
    left, top, thickness, label_at = 4, height - 30, 110, 168
    plane.text(left, height - 12, f"{shown.count(flow.read)} read", color=INK, fontsize=12, va="center", weight="bold")
    lost = [branch for branch in flow.branches if not branch.is_kept]
    kept = [branch for branch in flow.branches if branch.is_kept]
    bottom = 44
    # The rightmost stream leaves first, at the top.
    for place, branch in enumerate(reversed(lost)):
        middle = top - 34 - 30 * place
        size = min(24.0, max(1.5, (branch.end - branch.start) * thickness))
        start, end = left + branch.start * thickness, left + branch.end * thickness
        _ribbon(plane, (start, end), top, (label_at - 8, middle + size / 2, middle - size / 2))
        plane.text(label_at, middle, shown.count(branch.count), color=INK, va="center", weight="bold")
        width = 8 * len(shown.count(branch.count)) + 4
        plane.text(label_at + width, middle, branch.label, color=MUTED, va="center", fontsize=10)
    for place, branch in enumerate(kept):
        start, end = left + branch.start * thickness, left + branch.end * thickness
        colour = FIRST if place == 0 else SECOND
        plane.fill([start, end, end, start], [top, top, bottom, bottom], facecolor=colour, linewidth=0)
    at = left
    for branch in kept:
        text = f"{shown.count(branch.count)} {branch.label}"
        plane.text(at, bottom - 14, text, color=INK, va="center", weight="bold")
        at += 8 * len(text)


def _ribbon(plane: Axes, across: tuple[float, float], top: float, end: tuple[float, float, float]) -> None:
    """A stream that bends to the right: from `across` at `top` to the edge (x, upper y, lower y)."""
    (inner, outer), (x, upper, lower) = across, end
    bend = 14
    outline = [
        ((inner, top), Path.MOVETO),
        ((outer, top), Path.LINETO),
        ((outer, upper + min(bend, top - upper)), Path.LINETO),
        ((outer, upper), Path.CURVE3),
        ((outer + bend, upper), Path.CURVE3),
        ((x, upper), Path.LINETO),
        ((x, lower), Path.LINETO),
        ((outer + bend, lower), Path.LINETO),
        ((inner, lower), Path.CURVE3),
        ((inner, lower + bend + (upper - lower)), Path.CURVE3),
        ((inner, top), Path.LINETO),
    ]
    points, codes = zip(*outline, strict=True)
    plane.add_patch(PathPatch(Path(points, codes), facecolor=MUTED, alpha=0.35, linewidth=0))


def _shard_charts(facts: Facts) -> Iterator[Chart]:
    """Documents and sentences of each text shard, examples of each shard of examples."""
    wanted = [("Text", "documents"), ("Text", "sentences"), ("Examples", "examples")]
    for stage, count in wanted:
        shards = [shard for shard in facts.shards if (shard.stage, shard.split) == (stage, "train")]
        if shards and all(count in shard.counts for shard in shards):
            yield shard_chart(shards, count)


def shard_chart(shards: Sequence[Shard], count: str) -> Chart:
    """How many of something each shard has."""
    values = [shard.counts[count] for shard in shards]
    groups = _grouped(len(values), _MOST_BARS)
    means = [sum(values[a : b + 1]) / (b + 1 - a) for a, b in groups]
    title = f"{count.capitalize()} a shard"
    low, high, mean = min(values), max(values), sum(values) / len(values)
    summary = (
        f"{shown.count(len(values))} training shards have {shown.number(mean)} {count} each on average, from "
        f"{shown.count(low)} to {shown.count(high)}."
    )

    def onto(plane: Axes) -> None:
        starts = [a - 0.42 if b == a else a - 0.5 for a, b in groups]
        ends = [b + 0.42 if b == a else b + 0.5 for a, b in groups]
        for start, end, value in zip(starts, ends, means, strict=True):
            plane.fill([start, end, end, start], [0, 0, value, value], facecolor=FIRST, linewidth=0)
        plane.set(ylim=(0, None), xlabel="shard")
        thousands(plane.yaxis)
        thousands(plane.xaxis, most=6)

    name = f"shards-{count}"
    table = Table(
        columns=("shard", count),
        rows=tuple((f"{a}" if a == b else f"{a} to {b}", shown.number(m)) for (a, b), m in zip(groups, means, strict=True)),
    )
    return Chart(name=name, title=title, summary=summary, svg=draw(name, title, summary, onto), table=table)


def _grouped(count: int, most: int) -> list[tuple[int, int]]:
    """Neighbours [first, last] among `count` things: at most `most` groups, all of one size but the last."""
    step = -(-count // most)
    return [(start, min(count, start + step) - 1) for start in range(0, count, step)]
