"""The figures of a data set, each with a name, which the page compares with those of another one."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Literal

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
