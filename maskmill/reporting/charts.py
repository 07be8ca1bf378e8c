"""The charts of the page: of one data set, or of two, the second as a line."""

from collections.abc import Iterator, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from maskmill.reporting import shown
from maskmill.reporting.facts import Facts, Shard, StageTimings
from maskmill.reporting.input_documents import Flow, flow_of
from maskmill.reporting.row_charts import row_charts
from maskmill.reporting.svg import FIRST, INK, MUTED, SECOND, WIDTH, Chart, Table, box, drawn, percents, thousands

_MOST_BARS = 60
_MOST_LABEL = 60  # characters beside a branch
_MOST_LABELS = 9  # below the bars of a chart


def charts_of(facts: Facts, other: Facts | None = None) -> dict[str, Chart]:
    """The charts that there is data for, by name."""
    return {chart.name: chart for chart in _all_charts(facts, other)}


def _all_charts(facts: Facts, other: Facts | None) -> Iterator[Chart]:
    flow = None if facts.documents is None else flow_of(facts.documents)
    if flow is not None:
        yield _flow(flow)
    yield from row_charts(facts, other)
    yield from _of_text(facts, other)
    for stage, count in (("Text", "documents"), ("Text", "sentences"), ("Examples", "examples")):
        shards = [shard for shard in facts.shards if (shard.stage, shard.split) == (stage, "train")]
        if shards and all(count in shard.counts for shard in shards):
            yield _shards(shards, count)
    if facts.timings:
        yield _timings(facts.timings)


def _flow(flow: Flow) -> Chart:
    """The stream of documents, from what was read down to the text, with what was left out to the right."""
    kept = shown.count(flow.kept)
    summary = f"Of {shown.count(flow.read)} pages or documents that were read, {kept} are in the text."
    largest = max((branch for branch in flow.branches if not branch.is_kept), key=lambda b: b.count, default=None)
    if largest is not None:
        summary += f" Most others are {largest.label}: {shown.count(largest.count)}."
    height = 96 + 30 * max(3, len(flow.branches))
    rows = tuple((b.label, shown.count(b.count), shown.percent(b.count / flow.read)) for b in flow.branches)
    return drawn(
        ("flow", "What became of the documents", summary),
        Table(("where they went", "documents", "share"), rows),
        lambda plane: _draw_flow(plane, flow, height),
        height=height,
    )


def _draw_flow(plane: Axes, flow: Flow, height: int) -> None:
    left, top, bottom, thickness, label_at = 2, height - 30, 44, 96, 130
    plane.text(left, height - 12, f"{shown.count(flow.read)} read", color=INK, va="center", weight="bold")
    lost = [branch for branch in flow.branches if not branch.is_kept]
    kept = [branch for branch in flow.branches if branch.is_kept]
    # The rightmost stream leaves first, at the top.
    for place, branch in enumerate(reversed(lost)):
        middle = top - 34 - 30 * place
        size = min(24.0, max(1.5, (branch.end - branch.start) * thickness))
        start, end = left + branch.start * thickness, left + branch.end * thickness
        _ribbon(plane, (start, end), top, (label_at - 8, middle + size / 2, middle - size / 2))
        count = shown.count(branch.count)
        plane.text(label_at, middle, count, color=INK, va="center", weight="bold")
        label = shown.text(shown.beginning(branch.label, _MOST_LABEL))
        plane.text(label_at + 8 * len(count) + 6, middle, label, color=MUTED, va="center")
    at = left
    for place, branch in enumerate(kept):
        start, end = left + branch.start * thickness, left + branch.end * thickness
        box(plane, start, end, top, bottom, FIRST if place == 0 else SECOND)
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


def _shards(shards: Sequence[Shard], count: str) -> Chart:
    """How many of something each shard has: of at most so many bars, each of neighbours [first, last]."""
    values = [shard.counts[count] for shard in shards]
    step = -(-len(values) // _MOST_BARS)
    groups = [(start, min(len(values), start + step) - 1) for start in range(0, len(values), step)]
    means = [sum(values[a : b + 1]) / (b + 1 - a) for a, b in groups]
    summary = (
        f"{shown.count(len(values))} training shards have {shown.number(sum(values) / len(values))} {count} each on "
        f"average, from {shown.count(min(values))} to {shown.count(max(values))}."
    )

    def onto(plane: Axes) -> None:
        for (a, b), value in zip(groups, means, strict=True):
            beside = 0.42 if b == a else 0.5
            box(plane, a - beside, b + beside, 0, value, FIRST)
        plane.set(ylim=(0, None), xlabel="shard")
        thousands(plane.yaxis)
        thousands(plane.xaxis, most=6)

    rows = [(f"{a}" if a == b else f"{a} to {b}", shown.number(m)) for (a, b), m in zip(groups, means, strict=True)]
    title = f"{count.capitalize()} a shard"
    return drawn((f"shards-{count}", title, summary), Table(("shard", count), tuple(rows)), onto)


def _of_text(facts: Facts, other: Facts | None) -> Iterator[Chart]:
    """The lengths of documents, and how many pieces words have."""
    if facts.texts:
        split, text = next(iter(facts.texts.items()))
        theirs = None if other is None or split not in other.texts else other.texts[split].document_lines
        summary = f"A document has {shown.number(text.lines / max(1, text.documents))} sentences on average."
        ours = [(_range(low, high), number) for low, high, number in text.document_lines]
        others = None if theirs is None else {_range(low, high): number for low, high, number in theirs}
        named = ("document-lengths", "Sentences a document", summary)
        yield _bars(named, ("sentences", "documents"), ours, others)
    if facts.samples.word_pieces:
        counts = facts.samples.word_pieces
        words = sum(number for _, number in counts)
        mean = sum(pieces * number for pieces, number in counts) / words
        summary = f"{shown.count(words)} words of some examples have {shown.number(mean)} pieces on average."
        others = None if other is None else {str(pieces): number for pieces, number in other.samples.word_pieces}
        ours = [(str(pieces), number) for pieces, number in counts]
        yield _bars(("word-pieces", "Pieces a word", summary), ("pieces", "words"), ours, others)


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}–{high}"


def _bars(
    named: tuple[str, str, str],
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
            box(plane, place - 0.4, place - 0.4 + width, 0, number / total, FIRST)
            if others:
                box(plane, place, place + width, 0, others.get(label, 0) / all_others, SECOND)
        plane.set(ylim=(0, None), xlabel=columns[0])
        step = -(-len(labels) // _MOST_LABELS)
        plane.set_xticks(range(0, len(labels), step), [label.partition("–")[0] for label in labels[::step]])
        percents(plane.yaxis)

    rows = tuple((label, shown.count(number), shown.percent(number / total)) for label, number in bars)
    return drawn(named, Table((*columns, "share"), rows), onto)


def _timings(timings: Sequence[StageTimings]) -> Chart:
    """How long each step took."""
    steps = [step for stage in timings for step in stage.steps]
    longest = max(steps, key=lambda step: step.seconds)
    summary = (
        f"The steps took {shown.duration(sum(step.seconds for step in steps))} together, most of it {longest.label}."
    )
    height = 12 + 34 * len(steps)

    def onto(plane: Axes) -> None:
        for place, step in enumerate(steps):
            top = height - 6 - 34 * place
            plane.text(0, top - 7, step.label, color=INK, va="center")
            plane.text(WIDTH, top - 7, shown.duration(step.seconds), color=MUTED, va="center", ha="right")
            box(plane, 0, max(2.0, WIDTH * step.seconds / (longest.seconds or 1)), top - 16, top - 26, FIRST)

    rows = [
        (
            step.label,
            shown.duration(step.seconds),
            shown.count(step.pieces),
            f"{shown.size(step.bytes / step.seconds)}/s" if step.seconds and step.bytes else "–",
            "–" if step.memory is None else shown.size(step.memory),
        )
        for step in steps
    ]
    table = Table(("step", "time", "pieces of work", "rate", "memory"), tuple(rows))
    return drawn(("timings", "Time by step", summary), table, onto, height=height)
