"""The inputs, options, steps and figures of a data set, from its manifests."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from maskmill.inspection.shown_text import shown as harmless
from maskmill.reporting import shown
from maskmill.reporting.made_stages import MadeStage
from maskmill.storage import files

_MOST_VALUE = 200
# The options that describe how examples were made.
_HOW = {
    "objective": "{}", "max_seq_length": "{} pieces", "dupe_factor": "dupe_factor {}", "random_seed": "seed {}",
    "vocab_file": "{}", "tokenizer_file": "{}",
}  # fmt: skip
Unit = Literal["count", "bytes", "share", "number"]
_SHOWN = {"count": shown.count, "bytes": shown.size, "share": shown.percent, "number": shown.number}

# The counts of shards that are figures, with their names.
_SHARD_COUNTS: Mapping[str, str] = {
    **{name: name for name in ("shards", "documents", "sentences", "examples", "sequences")},
    "tokens": "pieces of the text",
    "picked": "examples picked",
}
SPLITS: Mapping[str, str] = {"train": "training", "eval": "eval"}


class Figure(NamedTuple):
    """A number of a data set: its group ("Text, training"), its name ("sentences"), and its unit.

    value: the number; shares are 0 to 1.
    """

    group: str
    name: str
    value: float
    unit: Unit = "count"

    @property
    def text(self) -> str:
        """The number as the page shows it."""
        return _SHOWN[self.unit](self.value)


class Input(NamedTuple):
    """A file that the data set was made from; bytes is 0 if the manifest does not say it."""

    path: str
    bytes: int
    sha256: str


class Option(NamedTuple):
    """An option of a stage, as text."""

    stage: str
    name: str
    value: str


def inputs_of(stages: Sequence[MadeStage]) -> tuple[Input, ...]:
    """Return the inputs of the first stage, and all other inputs that are not the output of another stage."""
    outputs = {files.base_name(shard["name"]) for stage in stages for shard in stage.shards}
    found: dict[str, Input] = {}
    for place, stage in enumerate(stages):
        for entry in stage.manifest["inputs"]:
            if place and files.base_name(entry["path"]) in outputs:
                continue
            path, digest = str(entry["path"]), str(entry["sha256"])
            found.setdefault(digest + path, Input(path, int(entry.get("bytes") or 0), digest))
    return tuple(found.values())


def options_of(stages: Sequence[MadeStage]) -> tuple[Option, ...]:
    """Return the options of all stages; an option that was left open is followed by its decided value."""
    return tuple(
        Option(stage.title, name, _text(value, stage.parameter(name)))
        for stage in stages
        for name, value in sorted(stage.parameters.items())
    )


def _text(value: Any, decided: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if value is None and isinstance(decided, (str, int, float)):
        text = f"{text} ({_text(decided, None)})"
    return harmless(text, _MOST_VALUE)


def versions_of(stages: Sequence[MadeStage]) -> Mapping[str, str]:
    """Return the software that made the stages; if they differ, each version once."""
    found: dict[str, dict[str, None]] = {}
    for stage in stages:
        for name, version in stage.manifest.get("versions", {}).items():
            if isinstance(version, str):
                found.setdefault(name, {})[version] = None
    return {name: ", ".join(versions) for name, versions in found.items()}


def dump_date(stages: Sequence[MadeStage]) -> str:
    """Return the day of the dump, such as `1 May 2016`; empty if the input has none."""
    dates = (stage.parameter("dump_date") for stage in stages)
    return next((shown.day(date) for date in dates if isinstance(date, str)), "")


def steps_of(stage: MadeStage) -> Iterator[tuple[str, str]]:
    """Yield the results of a stage, each with a few words on how it was made."""
    if stage.name == "extract":
        inputs, date = stage.manifest["inputs"], dump_date([stage])
        more = f" and {shown.count(len(inputs) - 1)} more" if len(inputs) > 1 else ""
        yield (
            f"{files.base_name(inputs[0]['path'])}{more}" if inputs else "nothing",
            f"{f'dump of {date}, ' if date else ''}{shown.size(stage.input_bytes)}",
        )
        held = f", {shown.count(stage.counted('eval', 'documents'))} held out" if "eval" in stage.counts else ""
        shards = shown.plural(stage.counted("train", "shards"), "shard")
        documents = stage.counted("train", "documents") + stage.counted("eval", "documents")
        yield f"{shown.count(documents)} documents", f"{shown.size(stage.bytes_of())} of text in {shards}{held}"
    elif stage.name == "vocabulary":
        pieces = shown.count(stage.counted("vocabulary", "pieces"))
        yield f"vocabulary of {pieces}", f"{stage.parameter('kind')}, learnt from this text"
    elif stage.name == "examples":
        examples = stage.counted("train", "examples") + stage.counted("eval", "examples")
        chosen = ((form, stage.parameter(name)) for name, form in _HOW.items())
        how = [form.format(files.base_name(str(value))) for form, value in chosen if value is not None]
        yield f"{shown.count(examples)} examples", ", ".join([*how, str(stage.manifest.get("format", "tfrecord"))])
    elif stage.name == "eval":
        yield f"{shown.count(stage.counted('eval', 'picked'))} picked for eval", "at even distance"


def share(part: float, whole: float) -> float:
    """Return a part as a share of the whole, 0 to 1; 0 if the whole is 0."""
    return part / whole if whole else 0.0


def figures_of(stage: MadeStage) -> Iterator[Figure]:
    """Yield the figures of a stage."""
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


def places_of(stage: MadeStage) -> dict[str, int]:
    """Return the number of positions of training rows by content; none is predicted if the reader draws the masks."""
    counts = stage.counts.get("train", {})
    if not counts.get("examples") or counts.get("padding_tokens") is None:
        return {}
    predicted = counts.get("masked_positions") or 0
    return {
        "pieces of text": counts["example_tokens"] - predicted,
        "pieces to predict": predicted,
        "[CLS], [SEP] and the like": counts["special_tokens"],
        "padding": counts["padding_tokens"],
    }


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
