"""The charts of the page: of one data set, or of two, the second as a line."""

from collections.abc import Iterator, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from maskmill.reporting import shown
from maskmill.reporting.drawing import FIRST, INK, MUTED, SECOND, WIDTH, Chart, Table, draw, percents, thousands
from maskmill.reporting.facts import Facts, Shard, StageTimings
from maskmill.reporting.flow import Flow, flow_of
from maskmill.reporting.row_charts import row_charts

_MOST_BARS = 60
_MOST_LABEL = 60  # characters beside a branch
_MOST_LABELS = 9  # below the bars of a chart


def charts_of(facts: Facts, other: Facts | None = None) -> dict[str, Chart]:
    """The charts that there is data for, by name."""
    return {chart.name: chart for chart in _all_charts(facts, other)}


def _all_charts(facts: Facts, other: Facts | None) -> Iterator[Chart]:
    flow = None if facts.documents is None else flow_of(facts.documents)
    if flow is not None:
        yield flow_chart(flow)
    yield from row_charts(facts, other)
    yield from _text_charts(facts, other)
    yield from _shard_charts(facts)
    if facts.timings:
        yield timings_chart(facts.timings)


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
    left, top, thickness, label_at = 2, height - 30, 96, 130
    plane.text(left, height - 12, f"{shown.count(flow.read)} read", color=INK, va="center", weight="bold")
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
        width = 8 * len(shown.count(branch.count)) + 6
        plane.text(
            label_at + width, middle, shown.text(shown.beginning(branch.label, _MOST_LABEL)), color=MUTED, va="center"
        )
    for place, branch in enumerate(kept):
        start, end = left + branch.start * thickness, left + branch.end * thickness
        colour = FIRST if place == 0 else SECOND
        plane.fill([start, end, end, start], [top, top, bottom, bottom], facecolor=colour, linewidth=0)
    at = left
    for branch in kept:
        text = f"{shown.count(branch.count)} {branch.label}"
        plane.text(at, bottom - 14, text, color=INK, va="center", weight="bold")
        at += 8 * len(text) + 8


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
        rows=tuple(
            (f"{a}" if a == b else f"{a} to {b}", shown.number(m)) for (a, b), m in zip(groups, means, strict=True)
        ),
    )
    return Chart(name=name, title=title, summary=summary, svg=draw(name, title, summary, onto), table=table)


def _grouped(count: int, most: int) -> list[tuple[int, int]]:
    """Neighbours [first, last] among `count` things: at most `most` groups, all of one size but the last."""
    step = -(-count // most)
    return [(start, min(count, start + step) - 1) for start in range(0, count, step)]


def _text_charts(facts: Facts, other: Facts | None) -> Iterator[Chart]:
    """The lengths of documents, and how many pieces words have."""
    if facts.texts:
        split, text = next(iter(facts.texts.items()))
        theirs = None if other is None or split not in other.texts else other.texts[split].document_lines
        mean = text.lines / max(1, text.documents)
        summary = f"A document has {shown.number(mean)} sentences on average."
        title = "Sentences a document"
        ours = [(_range(low, high), number) for low, high, number in text.document_lines]
        other_bars = None if theirs is None else {_range(low, high): number for low, high, number in theirs}
        yield bars_chart("document-lengths", title, summary, ("sentences", "documents"), ours, other_bars)
    if facts.samples.word_pieces:
        counts = facts.samples.word_pieces
        words = sum(number for _, number in counts)
        mean = sum(pieces * number for pieces, number in counts) / words
        summary = f"{shown.count(words)} words of some examples have {shown.number(mean)} pieces on average."
        theirs_pieces = None if other is None else {str(p): n for p, n in other.samples.word_pieces}
        ours = [(str(pieces), number) for pieces, number in counts]
        yield bars_chart("word-pieces", "Pieces a word", summary, ("pieces", "words"), ours, theirs_pieces)


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}–{high}"


def bars_chart(
    name: str,
    title: str,
    summary: str,
    columns: tuple[str, str],
    bars: Sequence[tuple[str, int]],
    others: Mapping[str, int] | None,
) -> Chart:
    """A chart of named bars, as shares; those of another data set beside them."""
    total = max(1, sum(number for _, number in bars))
    all_others = max(1, sum(others.values())) if others else 1
    labels = [label for label, _ in bars]

    def onto(plane: Axes) -> None:
        width = 0.4 if others else 0.8
        for place, (label, number) in enumerate(bars):
            _bar(plane, place - 0.4, width, number / total, FIRST)
            if others:
                _bar(plane, place, width, others.get(label, 0) / all_others, SECOND)
        plane.set(ylim=(0, None), xlabel=columns[0])
        step = -(-len(labels) // _MOST_LABELS)
        plane.set_xticks(range(0, len(labels), step), [label.partition("–")[0] for label in labels[::step]])
        percents(plane.yaxis)

    rows = [(label, shown.count(number), shown.percent(number / total)) for label, number in bars]
    table = Table(columns=(*columns, "share"), rows=tuple(rows))
    return Chart(name=name, title=title, summary=summary, svg=draw(name, title, summary, onto), table=table)


def _bar(plane: Axes, left: float, width: float, height: float, colour: str) -> None:
    plane.fill([left, left + width, left + width, left], [0, 0, height, height], facecolor=colour, linewidth=0)


def timings_chart(timings: Sequence[StageTimings]) -> Chart:
    """How long each step took."""
    steps = [(f"{step.label}", step) for stage in timings for step in stage.steps]
    total, longest = sum(step.seconds for _, step in steps), max(step.seconds for _, step in steps)
    slowest = max(steps, key=lambda named: named[1].seconds)[0]
    title = "Time by step"
    summary = f"The steps took {shown.duration(total)} together, most of it {slowest}."
    height = 12 + 34 * len(steps)

    def onto(plane: Axes) -> None:
        for place, (label, step) in enumerate(steps):
            top = height - 6 - 34 * place
            plane.text(0, top - 7, label, color=INK, va="center")
            plane.text(WIDTH, top - 7, shown.duration(step.seconds), color=MUTED, va="center", ha="right")
            end = max(2.0, WIDTH * step.seconds / (longest or 1))
            plane.fill([0, end, end, 0], [top - 16, top - 16, top - 26, top - 26], facecolor=FIRST, linewidth=0)

    rows = [
        (
            label,
            shown.duration(step.seconds),
            shown.count(step.pieces),
            f"{shown.size(step.bytes / step.seconds)}/s" if step.seconds and step.bytes else "–",
            "–" if step.memory is None else shown.size(step.memory),
        )
        for label, step in steps
    ]
    return Chart(
        name="timings",
        title=title,
        summary=summary,
        svg=draw("timings", title, summary, onto, height=height, axes=False),
        table=Table(columns=("step", "time", "pieces of work", "rate", "memory"), rows=tuple(rows)),
    )
