"""What went into each stage, what came out, and what was lost on the way."""

import dataclasses
from collections.abc import Iterator, Sequence

from maskmill.reporting import figures, shown
from maskmill.reporting.made_stages import MadeStage

_SPLITS = ("train", "eval")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Amount:
    """A number with what it is of, as text."""

    number: str
    of: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class StageCounts:
    """A stage: what went in, what came out, and what was lost or is worth knowing, the chief number first."""

    title: str
    went_in: tuple[Amount, ...]
    came_out: tuple[Amount, ...]
    on_the_way: tuple[Amount, ...] = ()


def stage_counts_of(stages: Sequence[MadeStage]) -> tuple[StageCounts, ...]:
    """The counts in and out of stages, in their order."""
    makers = {"extract": _text, "vocabulary": _vocabulary, "examples": _examples, "eval": _picked}
    return tuple(makers[stage.name](stage) for stage in stages if stage.name in makers)


def _amounts(*pairs: tuple[float, str]) -> Iterator[Amount]:
    """Numbers of things, without those that are 0; the noun is that of several."""
    for number, of in pairs:
        if number:
            yield Amount(number=shown.count(number), of=of.removesuffix("s") if number == 1 else of)


def _both(stage: MadeStage, name: str) -> int:
    return sum(stage.counted(split, name) for split in _SPLITS)


def _text(stage: MadeStage) -> StageCounts:
    read = stage.counted("extract", "read") or stage.counted("clean", "documents")
    documents = _both(stage, "documents")
    size = sum(int(entry.get("bytes") or 0) for entry in stage.made["inputs"])
    lost = read - documents if not stage.made.get("decided", {}).get("sources") else 0
    duplicates = sum(stage.counted("paragraphs", f"{kind}_duplicates") for kind in ("exact", "near"))
    return StageCounts(
        title=stage.title,
        went_in=(*_amounts((read, "pages or documents")), Amount(number=shown.size(size), of="of input")),
        came_out=(
            *_amounts((documents, "documents"), (_both(stage, "sentences"), "sentences")),
            Amount(number=shown.size(stage.bytes_of()), of="of text"),
            *_amounts((_both(stage, "shards"), "shards")),
        ),
        on_the_way=tuple(
            _amounts(
                (max(0, lost), "left out"),
                (duplicates, "duplicate paragraphs dropped"),
                (stage.counted("eval", "documents"), "held out for eval"),
            )
        ),
    )


def _vocabulary(stage: MadeStage) -> StageCounts:
    return StageCounts(
        title=stage.title,
        went_in=tuple(
            _amounts(
                (stage.counted("vocabulary", "words"), "words"),
                (stage.counted("vocabulary", "distinct_words"), "distinct words"),
            )
        ),
        came_out=tuple(_amounts((stage.counted("vocabulary", "pieces"), "pieces"))),
        on_the_way=tuple(
            _amounts((stage.counted("vocabulary", "left_out_distinct_words"), "distinct words left out, the rarest"))
        ),
    )


def _examples(stage: MadeStage) -> StageCounts:
    tokens = _both(stage, "tokens")
    unused = figures.share(_both(stage, "unused_tokens"), tokens)
    unknown = figures.share(_both(stage, "unknown_words"), _both(stage, "words"))
    way = []
    if tokens:
        way.append(Amount(number=shown.percent(unused), of="of the text in no example"))
        way.append(Amount(number=shown.percent(unknown), of="of the words unknown"))
    return StageCounts(
        title=stage.title,
        went_in=tuple(_amounts((_both(stage, "documents"), "documents"), (tokens, "pieces of text"))),
        came_out=(
            *_amounts(
                (_both(stage, "examples"), "examples"),
                (_both(stage, "sequences"), "sequences in them"),
                (_both(stage, "masked_positions"), "pieces to predict"),
            ),
            Amount(number=shown.size(stage.bytes_of()), of="of records"),
        ),
        on_the_way=tuple(way),
    )


def _picked(stage: MadeStage) -> StageCounts:
    available, picked = (stage.counted("eval", name) for name in ("available", "picked"))
    return StageCounts(
        title=stage.title,
        went_in=tuple(_amounts((available, "eval examples"))),
        came_out=tuple(_amounts((picked, "examples"))),
        on_the_way=tuple(_amounts((available - picked, "not picked"))),
    )
