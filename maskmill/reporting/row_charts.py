"""The charts of rows: what their places hold, how long they are, what is masked, and which pieces they have."""

from collections.abc import Callable, Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from maskmill.reporting import shown
from maskmill.reporting.drawing import (
    BACK,
    FIRST,
    GRID,
    INK,
    SECOND,
    THIRD,
    WIDTH,
    Chart,
    Table,
    band,
    draw,
    outline,
    percents,
    short,
    thousands,
)
from maskmill.reporting.facts import Facts, Places
from maskmill.reporting.row_facts import Bin, RowFacts, named

_BAR, _BAR_ROOM = 30, 58  # height of a stacked bar, and of all that belongs to it
_NARROW = 0.12  # of the width: a share of less has no room for its number
_MOST_RANKS = 24  # of a table


def row_charts(facts: Facts, other: Facts | None) -> Iterator[Chart]:
    """The charts of rows that there is data for; of another data set the same as a line."""
    if facts.places:
        yield places_chart(facts.places)
    if not facts.rows:
        return
    split, rows = named(facts.rows)[0]
    others = None if other is None else other.rows.get("train" if split == "training" else "eval")
    names = (facts.name, other.name if other is not None else "")
    yield _lengths(rows, others, split, names)
    yield _positions(rows, others, split, names)
    if rows.masked:
        yield _masks_by_position(rows, others, split, names)
        yield _masks_by_row(rows, others, split, names)
    if rows.ranks:
        yield _zipf(rows, others, split, names)
        yield _coverage(rows, others, split, names)


def places_chart(places: Sequence[Places]) -> Chart:
    """What the places of all rows hold, a bar for each split."""
    title = "What the places hold"
    first = places[0]
    summary = (
        f"Of {shown.count(first.all)} places of the {first.split} examples {shown.percent(first.share('padding'))} are "
        f"padding"
    )
    summary += f", and {shown.percent(first.share('predicted'))} are to be predicted." if first.predicted else "."
    colours = {"text": FIRST, "predicted": SECOND, "special": THIRD, "padding": GRID}
    height = 8 + _BAR_ROOM * len(places)

    def onto(plane: Axes) -> None:
        for number, one in enumerate(places):
            top = height - _BAR_ROOM * number - 4
            plane.text(0, top - 8, f"{one.split}, {short(one.all)} places", color=INK, va="center")
            at, low = 0.0, top - 20 - _BAR
            for name, colour in colours.items():
                width = WIDTH * one.share(name)
                plane.fill([at, at + width, at + width, at], [low, low, low + _BAR, low + _BAR], fc=colour, lw=0)
                if one.share(name) >= _NARROW:
                    ink = INK if name == "padding" else BACK
                    text = shown.percent(one.share(name))
                    plane.text(at + width / 2, low + _BAR / 2, text, color=ink, ha="center", va="center")
                at += width

    rows = [
        (f"{one.split}: {_PLACES[name]}", shown.count(getattr(one, name)), shown.percent(one.share(name)))
        for one in places
        for name in colours
    ]
    return Chart(
        name="places",
        title=title,
        summary=summary,
        svg=draw("places", title, summary, onto, height=height, axes=False),
        table=Table(columns=("places", "number", "share"), rows=tuple(rows)),
        legend=tuple((_CLASSES[name], _PLACES[name]) for name in colours if any(getattr(one, name) for one in places)),
    )


_PLACES = {
    "text": "pieces of text",
    "predicted": "pieces to predict",
    "special": "[CLS], [SEP] and the like",
    "padding": "padding",
}
_CLASSES = {"text": "first", "predicted": "second", "special": "third", "padding": "none"}


def _lengths(rows: RowFacts, other: RowFacts | None, split: str, names: tuple[str, str]) -> Chart:
    summary = (
        f"{shown.count(rows.rows)} {split} rows have {shown.number(rows.mean_length)} pieces on average. "
        f"{shown.percent(rows.full_rows / max(1, rows.rows))} are full, with all {shown.count(rows.width)}; the chart "
        "shows the others."
    )
    shares, others = _shares(rows.lengths, rows.rows), None if other is None else _shares(other.lengths, other.rows)
    return _by_place("row-lengths", "Length of rows", summary, ("pieces", "rows"), shares, others, names)


def _positions(rows: RowFacts, other: RowFacts | None, split: str, names: tuple[str, str]) -> Chart:
    half = next((part.first for part in rows.pieces_at if part.value < 0.5), None)
    reach = f"Half of the {split} rows end before position {half}." if half else f"Most {split} rows are full."
    others = None if other is None else other.pieces_at
    columns = ("position", "rows with a piece")
    return _by_place(
        "positions",
        "Pieces by position",
        f"{reach} What is missing is padding.",
        columns,
        rows.pieces_at,
        others,
        names,
    )


def _masks_by_position(rows: RowFacts, other: RowFacts | None, split: str, names: tuple[str, str]) -> Chart:
    share = rows.masked / max(1, rows.pieces)
    summary = (
        f"{shown.percent(share)} of all pieces of {split} rows are to be predicted. It should be about as "
        "much at every position, but for special pieces."
    )
    others = None if other is None or not other.masked else other.masks_at
    columns = ("position", "predicted")
    return _by_place("masks-at", "Predicted pieces by position", summary, columns, rows.masks_at, others, names)


def _masks_by_row(rows: RowFacts, other: RowFacts | None, split: str, names: tuple[str, str]) -> Chart:
    summary = f"A {split} row has {shown.number(rows.masked / max(1, rows.rows))} pieces to predict on average."
    shares = _shares(rows.masks, rows.rows)
    others = None if other is None or not other.masked else _shares(other.masks, other.rows)
    return _by_place("masks", "Predicted pieces a row", summary, ("pieces", "rows"), shares, others, names)


def _shares(bins: Sequence[Bin], whole: int) -> tuple[Bin, ...]:
    return tuple(Bin(first=b.first, last=b.last, value=b.value / max(1, whole)) for b in bins)


def _by_place(
    name: str,
    title: str,
    summary: str,
    columns: tuple[str, str],
    bins: Sequence[Bin],
    others: Sequence[Bin] | None,
    names: tuple[str, str],
) -> Chart:
    """A chart of shares by length or position."""

    def onto(plane: Axes) -> None:
        band(plane, [b.first for b in bins], [b.last + 1 for b in bins], [b.value for b in bins], FIRST)
        if others:
            outline(plane, [b.first for b in others], [b.last + 1 for b in others], [b.value for b in others])
        plane.set(ylim=(0, None), xlabel=columns[0])
        percents(plane.yaxis)
        thousands(plane.xaxis, most=6)

    return _chart(name, title, summary, onto, columns, bins, others, names, shown.percent)


def _zipf(rows: RowFacts, other: RowFacts | None, split: str, names: tuple[str, str]) -> Chart:
    never = rows.vocabulary - rows.used
    summary = (
        f"How often the pieces of the {split} rows occur, the most frequent first. {shown.count(rows.used)} of "
        f"{shown.count(rows.vocabulary)} pieces of the vocabulary occur, {shown.count(never)} never do."
    )

    def onto(plane: Axes) -> None:
        for one, colour, style in ((rows, FIRST, "-"), (other, SECOND, "--")):
            if one is not None:
                plane.plot([b.last for b in one.ranks], [b.value for b in one.ranks], style, color=colour, lw=2)
        plane.set(xscale="log", yscale="log", xlabel="rank", ylabel="occurrences")
        for axis in (plane.xaxis, plane.yaxis):
            axis.set_major_locator(LogLocator(numticks=6))
            axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
            axis.set_minor_formatter(NullFormatter())

    others = None if other is None else other.ranks
    return _chart(
        "zipf", "Frequency of pieces", summary, onto, ("rank", "occurrences"), rows.ranks, others, names, shown.number
    )


def _coverage(rows: RowFacts, other: RowFacts | None, split: str, names: tuple[str, str]) -> Chart:
    enough = next((b.last for b in rows.coverage if b.value >= 0.9), rows.used)
    summary = f"The {shown.count(enough)} most frequent pieces make up 90 % of the {split} rows."

    def onto(plane: Axes) -> None:
        for one, colour, style in ((rows, FIRST, "-"), (other, SECOND, "--")):
            if one is not None:
                plane.plot([b.last for b in one.coverage], [b.value for b in one.coverage], style, color=colour, lw=2)
        plane.set(xscale="log", ylim=(0, 1.02), xlabel="most frequent pieces")
        percents(plane.yaxis)
        plane.xaxis.set_major_locator(LogLocator(numticks=6))
        plane.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
        plane.xaxis.set_minor_formatter(NullFormatter())

    others = None if other is None else other.coverage
    columns = ("most frequent pieces", "share of all")
    return _chart(
        "coverage", "Coverage of the vocabulary", summary, onto, columns, rows.coverage, others, names, shown.percent
    )


def _chart(
    name: str,
    title: str,
    summary: str,
    onto: Callable[[Axes], object],
    columns: tuple[str, str],
    bins: Sequence[Bin],
    others: Sequence[Bin] | None,
    names: tuple[str, str],
    show: Callable[[float], str],
) -> Chart:
    """A chart with its table; another data set's figures are a column of their own where they have the same places."""
    labelled = {_place(b): show(b.value) for b in bins}
    rows: tuple[tuple[str, ...], ...] = tuple(labelled.items())
    heads: tuple[str, ...] = columns
    if others:
        theirs = {_place(b): show(b.value) for b in others}
        heads = (columns[0], names[0], names[1])
        rows = tuple((k, labelled.get(k, "–"), theirs.get(k, "–")) for k in dict.fromkeys([*labelled, *theirs]))
    return Chart(
        name=name,
        title=title,
        summary=summary,
        svg=draw(name, title, summary, onto),
        table=Table(columns=heads, rows=rows),
        legend=(("first", names[0]), ("second", names[1])) if others else (),
    )


def _place(one: Bin) -> str:
    return shown.count(one.first) if one.first == one.last else f"{shown.count(one.first)} to {shown.count(one.last)}"
