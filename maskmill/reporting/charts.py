"""The charts of the report: of one data set, or of two side by side."""

from collections.abc import Callable, Iterator, Sequence

from markupsafe import Markup

from maskmill.reporting import shown, svg
from maskmill.reporting.facts import Facts
from maskmill.reporting.measured import Bin
from maskmill.reporting.svg import Chart, Named


def charts_of(facts: Facts, other: Facts | None = None) -> dict[str, Chart]:
    """Return the charts for which there is data, by name."""
    names = (facts.name,) if other is None else (facts.name, other.name)
    both = (facts,) if other is None else (facts, other)
    charts = [chart for draw in (_documents, _places, _rows, _timings) for chart in draw(both, names)]
    return {chart.name: chart for chart in charts}


_Both = tuple[Facts, ...]  # of one data set, or of two
_Names = tuple[str, ...]


def _documents(both: _Both, names: _Names) -> Iterator[Chart]:
    documents = both[0].documents
    if documents is None or not documents.read:
        return
    counts: dict[str, float] = {"training text": documents.train, "eval set": documents.eval}
    counts |= {one.reason: one.count for one in documents.set_aside}
    kept = shown.count(documents.read - documents.lost)
    summary = f"Of {shown.count(documents.read)} pages or documents that were read, {kept} are in the text."
    named = ("documents-chart", "What became of the documents", summary)
    yield _bars(named, ("where they went", "documents"), [counts], shown.count, names[:1])


def _places(both: _Both, names: _Names) -> Iterator[Chart]:
    """Yield the chart of what the positions of training rows hold."""
    if both[0].places:
        shares = [{kind: n / sum(one.places.values()) for kind, n in one.places.items()} for one in both]
        summary = f"Of {shown.count(sum(both[0].places.values()))} places of the training examples."
        yield _bars(("places", "What the places hold", summary), ("places", "share"), shares, shown.percent, names)


def _rows(both: _Both, names: _Names) -> Iterator[Chart]:
    if not both[0].rows:
        return
    split = next(iter(both[0].rows))
    rows = [facts.rows[split] for facts in both if split in facts.rows]
    first = rows[0]
    title = {"train": "training"}.get(split, split)

    def shares(name: str) -> list[list[Bin]]:
        return [[b._replace(value=b.value / max(1, one.rows)) for b in getattr(one, name)] for one in rows]

    full = shown.percent(first.full_rows / max(1, first.rows))
    summary = (
        f"{shown.count(first.rows)} {title} rows have {shown.number(first.pieces / max(1, first.rows))} pieces on "
        f"average. {full} are full, with all {shown.count(first.width)}; the chart shows the others."
    )
    named = ("row-lengths", "Length of rows", summary)
    yield _curve(named, ("pieces", "rows"), shares("lengths"), shown.percent, names)
    if first.masked:
        predicted = shown.percent(first.masked / max(1, first.pieces))
        summary = (
            f"{predicted} of all pieces of {title} rows are to be predicted. It should be about as much at every "
            "position, but for special pieces."
        )
        named = ("masks-at", "Predicted pieces by position", summary)
        yield _curve(named, ("position", "predicted"), [one.masks_at for one in rows], shown.percent, names)
        mean = shown.number(first.masked / max(1, first.rows))
        named = ("masks", "Predicted pieces a row", f"A {title} row has {mean} pieces to predict on average.")
        yield _curve(named, ("pieces", "rows"), shares("masks"), shown.percent, names)
    if first.ranks:
        used, all_pieces = (shown.count(number) for number in (first.used, first.vocabulary))
        summary = (
            f"How often the pieces of the {title} rows occur, the most frequent first. {used} of {all_pieces} pieces "
            "of the vocabulary occur."
        )
        named = ("zipf", "Frequency of pieces", summary)
        yield _curve(named, ("rank", "occurrences"), [one.ranks for one in rows], shown.number, names, log=True)


def _timings(both: _Both, names: _Names) -> Iterator[Chart]:
    steps = {step.label: step.seconds for step in both[0].timings}
    if steps:
        summary = f"The steps took {shown.duration(sum(steps.values()))} together."
        yield _bars(("timings", "Time by step", summary), ("step", "time"), [steps], shown.duration, names[:1])


def _bars(
    named: Named,
    columns: tuple[str, str],
    data: Sequence[dict[str, float]],
    show: Callable[[float], str],
    names: _Names,
) -> Chart:
    labels = list(dict.fromkeys(label for one in data for label in one))
    values = [[one.get(label, 0) for label in labels] for one in data]
    rows = tuple((label, *(show(one[place]) for one in values)) for place, label in enumerate(labels))
    return _chart(named, svg.bars(named, labels, values, show), columns, rows, names[: len(data)])


def _curve(
    named: Named,
    columns: tuple[str, str],
    data: Sequence[Sequence[Bin]],
    show: Callable[[float], str],
    names: _Names,
    *,
    log: bool = False,
) -> Chart:
    shown_at = [{_range(b.first, b.last): show(b.value) for b in one} for one in data]
    labels = dict.fromkeys(label for one in shown_at for label in one)
    rows = tuple((label, *(one.get(label, "–") for one in shown_at)) for label in labels)
    return _chart(named, svg.curve(named, columns[0], data, show, log=log), columns, rows, names[: len(data)])


def _chart(
    named: Named, drawing: Markup, columns: tuple[str, str], rows: tuple[tuple[str, ...], ...], names: _Names
) -> Chart:
    several = len(names) > 1
    return Chart(*named, drawing, (columns[0], *names) if several else columns, rows, names if several else ())


def _range(low: int, high: int) -> str:
    return shown.count(low) if low == high else f"{shown.count(low)}–{shown.count(high)}"
