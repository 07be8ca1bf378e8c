"""The charts of rows: what their places hold, how long they are, what is masked, and which pieces they have."""

from collections.abc import Callable, Iterator, Sequence

from matplotlib.axes import Axes

from maskmill.reporting import shown, svg
from maskmill.reporting.facts import Facts, Places
from maskmill.reporting.measured import Bin, RowFacts, named
from maskmill.reporting.svg import Chart, Table

_BAR, _BAR_ROOM = 30, 58  # height of a stacked bar, and of all that belongs to it
_NARROW = 0.12  # of the width: a share of less has no room for its number
# What places hold: its colour, its class in the style sheet, and what it is called.
_PLACES = {
    "text": (svg.FIRST, "first", "pieces of text"),
    "predicted": (svg.SECOND, "second", "pieces to predict"),
    "special": (svg.THIRD, "third", "[CLS], [SEP] and the like"),
    "padding": (svg.GRID, "none", "padding"),
}


def row_charts(facts: Facts, other: Facts | None) -> Iterator[Chart]:
    """The charts of rows that there is data for; of another data set the same as a line."""
    if facts.places:
        yield _places(facts.places)
    if not facts.rows:
        return
    split, rows = named(facts.rows)[0]
    others = None if other is None else other.rows.get("train" if split == "training" else "eval")
    names = (facts.name, other.name if other is not None else "")
    yield _lengths(rows, others, split, names)
    yield _positions(rows, others, split, names)
    if rows.masked:
        masked = others if others is not None and others.masked else None
        yield _masks_by_position(rows, masked, split, names)
        yield _masks_by_row(rows, masked, split, names)
    if rows.ranks:
        yield _frequencies(rows, others, split, names)
        yield _coverage(rows, others, split, names)


def _places(places: Sequence[Places]) -> Chart:
    """What the places of all rows hold, a bar for each split."""
    first = places[0]
    summary = (
        f"Of {shown.count(first.all)} places of the {first.split} examples {shown.percent(first.share('padding'))} are "
        f"padding"
    )
    summary += f", and {shown.percent(first.share('predicted'))} are to be predicted." if first.predicted else "."
    height = 8 + _BAR_ROOM * len(places)

    def onto(plane: Axes) -> None:
        for number, one in enumerate(places):
            top = height - _BAR_ROOM * number - 4
            plane.text(0, top - 8, f"{one.split}, {svg.short(one.all)} places", color=svg.INK, va="center")
            at, low = 0.0, top - 20 - _BAR
            for name, (colour, _, _) in _PLACES.items():
                share = one.share(name)
                width = svg.WIDTH * share
                svg.box(plane, at, at + width, low, low + _BAR, colour)
                if share >= _NARROW:
                    ink = svg.INK if name == "padding" else svg.BACK
                    plane.text(
                        at + width / 2, low + _BAR / 2, shown.percent(share), color=ink, ha="center", va="center"
                    )
                at += width

    rows = [
        (f"{one.split}: {called}", shown.count(getattr(one, name)), shown.percent(one.share(name)))
        for one in places
        for name, (_, _, called) in _PLACES.items()
    ]
    shown_places = [place for name, place in _PLACES.items() if any(getattr(one, name) for one in places)]
    return svg.drawn(
        ("places", "What the places hold", summary),
        Table(("places", "number", "share"), tuple(rows)),
        onto,
        legend=tuple((style, called) for _, style, called in shown_places),
        height=height,
    )


def _lengths(rows: RowFacts, other: RowFacts | None, split: str, names: tuple[str, str]) -> Chart:
    summary = (
        f"{shown.count(rows.rows)} {split} rows have {shown.number(rows.mean_length)} pieces on average. "
        f"{shown.percent(rows.full_rows / max(1, rows.rows))} are full, with all {shown.count(rows.width)}; the chart "
        "shows the others."
    )
    bins = [None if one is None else _shares(one.lengths, one.rows) for one in (rows, other)]
    return _by_place(("row-lengths", "Length of rows", summary), ("pieces", "rows"), bins, names)


def _positions(rows: RowFacts, other: RowFacts | None, split: str, names: tuple[str, str]) -> Chart:
    half = next((part.first for part in rows.pieces_at if part.value < 0.5), None)
    reach = f"Half of the {split} rows end before position {half}." if half else f"Most {split} rows are full."
    named = ("positions", "Pieces by position", f"{reach} What is missing is padding.")
    bins = [None if one is None else one.pieces_at for one in (rows, other)]
    return _by_place(named, ("position", "rows with a piece"), bins, names)


def _masks_by_position(rows: RowFacts, other: RowFacts | None, split: str, names: tuple[str, str]) -> Chart:
    summary = (
        f"{shown.percent(rows.masked / max(1, rows.pieces))} of all pieces of {split} rows are to be predicted. It "
        "should be about as much at every position, but for special pieces."
    )
    bins = [None if one is None else one.masks_at for one in (rows, other)]
    return _by_place(("masks-at", "Predicted pieces by position", summary), ("position", "predicted"), bins, names)


def _masks_by_row(rows: RowFacts, other: RowFacts | None, split: str, names: tuple[str, str]) -> Chart:
    summary = f"A {split} row has {shown.number(rows.masked / max(1, rows.rows))} pieces to predict on average."
    bins = [None if one is None else _shares(one.masks, one.rows) for one in (rows, other)]
    return _by_place(("masks", "Predicted pieces a row", summary), ("pieces", "rows"), bins, names)


def _shares(bins: Sequence[Bin], whole: int) -> tuple[Bin, ...]:
    return tuple(Bin(b.first, b.last, b.value / max(1, whole)) for b in bins)


def _by_place(
    named: tuple[str, str, str],
    columns: tuple[str, str],
    bins: Sequence[Sequence[Bin] | None],
    names: tuple[str, str],
) -> Chart:
    """A chart of shares by length or position: `bins` of this data set, and of another one."""

    def onto(plane: Axes) -> None:
        for some, draw in zip(bins, (svg.band, svg.outline), strict=True):
            if some:
                draw(plane, [b.first for b in some], [b.last + 1 for b in some], [b.value for b in some])
        plane.set(ylim=(0, None), xlabel=columns[0])
        svg.percents(plane.yaxis)
        svg.thousands(plane.xaxis, most=6)

    return _chart(named, onto, columns, bins, names, shown.percent)


def _frequencies(rows: RowFacts, other: RowFacts | None, split: str, names: tuple[str, str]) -> Chart:
    never = rows.vocabulary - rows.used
    summary = (
        f"How often the pieces of the {split} rows occur, the most frequent first. {shown.count(rows.used)} of "
        f"{shown.count(rows.vocabulary)} pieces of the vocabulary occur, {shown.count(never)} never do."
    )
    bins = [None if one is None else one.ranks for one in (rows, other)]

    def onto(plane: Axes) -> None:
        _lines(plane, bins)
        plane.set(xscale="log", yscale="log", xlabel="rank", ylabel="occurrences")
        svg.logarithms(plane.xaxis)
        svg.logarithms(plane.yaxis)

    return _chart(("zipf", "Frequency of pieces", summary), onto, ("rank", "occurrences"), bins, names, shown.number)


def _coverage(rows: RowFacts, other: RowFacts | None, split: str, names: tuple[str, str]) -> Chart:
    enough = next((b.last for b in rows.coverage if b.value >= 0.9), rows.used)
    summary = f"The {shown.count(enough)} most frequent pieces make up 90 % of the {split} rows."
    bins = [None if one is None else one.coverage for one in (rows, other)]

    def onto(plane: Axes) -> None:
        _lines(plane, bins)
        plane.set(xscale="log", ylim=(0, 1.02), xlabel="most frequent pieces")
        svg.percents(plane.yaxis)
        svg.logarithms(plane.xaxis)

    columns = ("most frequent pieces", "share of all")
    return _chart(("coverage", "Coverage of the vocabulary", summary), onto, columns, bins, names, shown.percent)


def _lines(plane: Axes, bins: Sequence[Sequence[Bin] | None]) -> None:
    for some, colour, style in zip(bins, (svg.FIRST, svg.SECOND), ("-", "--"), strict=True):
        if some is not None:
            plane.plot([b.last for b in some], [b.value for b in some], style, color=colour, lw=2)


def _chart(
    named: tuple[str, str, str],
    onto: Callable[[Axes], object],
    columns: tuple[str, str],
    bins: Sequence[Sequence[Bin] | None],
    names: tuple[str, str],
    show: Callable[[float], str],
) -> Chart:
    """A chart with its table; another data set's figures are a column of their own if they have the same places."""
    labelled, theirs = ({_place(b): show(b.value) for b in some or ()} for some in bins)
    if not theirs:
        return svg.drawn(named, Table(columns, tuple(labelled.items())), onto)
    rows = tuple((k, labelled.get(k, "–"), theirs.get(k, "–")) for k in dict.fromkeys([*labelled, *theirs]))
    return svg.drawn(named, Table((columns[0], *names), rows), onto, legend=(("first", names[0]), ("second", names[1])))


def _place(one: Bin) -> str:
    return shown.count(one.first) if one.first == one.last else f"{shown.count(one.first)} to {shown.count(one.last)}"
