"""The figures of a data set, each with a name, which the page compares with those of another one; and what went into
each stage, what came out, and what was lost on the way.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from maskmill.reporting import shown
from maskmill.reporting.made_stages import MadeStage

Unit = Literal["count", "bytes", "share", "number"]
_SHOWN = {"count": shown.count, "bytes": shown.size, "share": shown.percent, "number": shown.number}

# The counts of shards that are figures, with their names.
_SHARD_COUNTS: Mapping[str, str] = {
    "shards": "shards",
    "documents": "documents",
    "sentences": "sentences",
    "tokens": "pieces of the text",
    "examples": "examples",
    "sequences": "sequences",
    "picked": "examples picked",
}
SPLITS = {"train": "training", "eval": "eval"}


@dataclasses.dataclass(frozen=True)
class Figure:
    """A number of a data set: what it belongs to ("Text, training"), what it is ("sentences"), and its unit.

    value: the number; a share is 0 to 1.
    """

    group: str
    name: str
    value: float
    unit: Unit = "count"

    @property
    def text(self) -> str:
        """The number as it is shown."""
        return _SHOWN[self.unit](self.value)


def share(part: float, whole: float) -> float:
    """A part of a whole, 0 to 1; 0 of nothing."""
    return part / whole if whole else 0.0


def figures_of(stage: MadeStage) -> Iterator[Figure]:
    """The figures of a stage."""
    if stage.name == "extract":
        yield Figure("Input", "bytes", stage.input_bytes, "bytes")
        yield Figure("Input", "pages or documents read", stage.counted("extract", "read"))
    if stage.name == "vocabulary":
        yield Figure(stage.title, "pieces", stage.counted("vocabulary", "pieces"))
    for split, title in SPLITS.items():
        group = f"{stage.title}, {title}" if stage.name != "eval" else stage.title
        for name, label in _SHARD_COUNTS.items():
            if name in stage.counts.get(split, {}):
                yield Figure(group, label, stage.counted(split, name))
        if split in stage.counts:
            yield Figure(group, "bytes", stage.bytes_of(split), "bytes")
        if stage.name == "examples" and split in stage.counts:
            yield from _of_examples(stage, split, group)


def _of_examples(stage: MadeStage, split: str, group: str) -> Iterator[Figure]:
    counts = stage.counts[split]
    places = sum(stage.counted(split, name) for name in ("example_tokens", "special_tokens", "padding_tokens"))
    if counts.get("tokens"):
        yield Figure(group, "text used", 1 - share(counts.get("unused_tokens") or 0, counts["tokens"]), "share")
        words = counts.get("words") or 0
        yield Figure(group, "pieces a word", share(counts["tokens"], words), "number")
        yield Figure(group, "unknown words", share(counts.get("unknown_words") or 0, words), "share")
    if counts.get("padding_tokens") is not None and places:
        yield Figure(group, "padding", share(counts["padding_tokens"], places), "share")
    if counts.get("masked_positions") is not None and counts.get("example_tokens"):
        masked = share(counts["masked_positions"], counts["example_tokens"] + counts["special_tokens"])
        yield Figure(group, "predicted pieces", masked, "share")
    pairs = counts.get("sequences") or counts["examples"]
    for name, label in (("random_next", "random pairs"), ("swapped", "swapped pairs")):
        if counts.get(name) is not None:
            yield Figure(group, label, share(counts[name], pairs), "share")


class Amount(NamedTuple):
    """A number with what it is of, as text."""

    number: str
    of: str


@dataclasses.dataclass(frozen=True)
class StageCounts:
    """A stage: what went in, what came out, and what was lost or is worth knowing, the chief number first."""

    title: str
    went_in: tuple[Amount, ...]
    came_out: tuple[Amount, ...]
    on_the_way: tuple[Amount, ...] = ()


def stage_counts_of(stages: Sequence[MadeStage]) -> tuple[StageCounts, ...]:
    """The counts in and out of stages, in their order."""
    makers = {"extract": _text, "vocabulary": _vocabulary, "examples": _examples, "eval": _picked}
    return tuple(StageCounts(stage.title, *makers[stage.name](stage)) for stage in stages if stage.name in makers)


def _amounts(*pairs: tuple[float, str]) -> tuple[Amount, ...]:
    """Numbers of things, without those that are 0; the noun is that of several."""
    return tuple(
        Amount(shown.count(number), of.removesuffix("s") if number == 1 else of) for number, of in pairs if number
    )


_Amounts = tuple[tuple[Amount, ...], ...]  # in, out, and on the way


def _text(stage: MadeStage) -> _Amounts:
    read = stage.counted("extract", "read") or stage.counted("clean", "documents")
    documents = stage.in_splits("documents")
    lost = read - documents if not stage.made.get("decided", {}).get("sources") else 0
    duplicates = sum(stage.counted("paragraphs", f"{kind}_duplicates") for kind in ("exact", "near"))
    return (
        (*_amounts((read, "pages or documents")), Amount(shown.size(stage.input_bytes), "of input")),
        (
            *_amounts((documents, "documents"), (stage.in_splits("sentences"), "sentences")),
            Amount(shown.size(stage.bytes_of()), "of text"),
            *_amounts((stage.in_splits("shards"), "shards")),
        ),
        _amounts(
            (max(0, lost), "left out"),
            (duplicates, "duplicate paragraphs dropped"),
            (stage.counted("eval", "documents"), "held out for eval"),
        ),
    )


def _vocabulary(stage: MadeStage) -> _Amounts:
    words, distinct, pieces, left_out = (
        stage.counted("vocabulary", name) for name in ("words", "distinct_words", "pieces", "left_out_distinct_words")
    )
    return (
        _amounts((words, "words"), (distinct, "distinct words")),
        _amounts((pieces, "pieces")),
        _amounts((left_out, "distinct words left out, the rarest")),
    )


def _examples(stage: MadeStage) -> _Amounts:
    tokens = stage.in_splits("tokens")
    unused = share(stage.in_splits("unused_tokens"), tokens)
    unknown = share(stage.in_splits("unknown_words"), stage.in_splits("words"))
    on_the_way = (
        Amount(shown.percent(unused), "of the text in no example"),
        Amount(shown.percent(unknown), "of the words unknown"),
    )
    return (
        _amounts((stage.in_splits("documents"), "documents"), (tokens, "pieces of text")),
        (
            *_amounts(
                (stage.in_splits("examples"), "examples"),
                (stage.in_splits("sequences"), "sequences in them"),
                (stage.in_splits("masked_positions"), "pieces to predict"),
            ),
            Amount(shown.size(stage.bytes_of()), "of records"),
        ),
        on_the_way if tokens else (),
    )


def _picked(stage: MadeStage) -> _Amounts:
    available, picked = (stage.counted("eval", name) for name in ("available", "picked"))
    amounts = ((available, "eval examples"), (picked, "examples"), (available - picked, "not picked"))
    return tuple(_amounts(one) for one in amounts)
