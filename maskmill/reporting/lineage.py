"""What a data set was made from and how: in one line, and as a table of options."""

import dataclasses
import datetime
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from maskmill.reporting import shown
from maskmill.reporting.made_stages import MadeStage
from maskmill.storage import files

_SHOWN_DIGITS = 8
_MOST_VALUE = 200
_VOCABULARIES = ("vocab_file", "tokenizer_file")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Step:
    """A step of the lineage: what came out, and how in a few words."""

    what: str
    how: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Input:
    """A file that the data set was made from; bytes is 0 where the manifest does not say it."""

    path: str
    bytes: int
    sha256: str
    source: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Option:
    """An option of a stage, as text."""

    stage: str
    name: str
    value: str


def inputs_of(stages: Sequence[MadeStage]) -> tuple[Input, ...]:
    """What went into the first stage, and what else was no output of another one."""
    made = {files.base_name(shard["name"]) for stage in stages for shard in stage.shards}
    found: dict[str, Input] = {}
    for place, stage in enumerate(stages):
        for entry in stage.made["inputs"]:
            if place and files.base_name(entry["path"]) in made:
                continue
            digest = str(entry["sha256"])
            found.setdefault(
                digest + str(entry["path"]),
                Input(
                    path=str(entry["path"]),
                    bytes=int(entry.get("bytes") or 0),
                    sha256=digest,
                    source=str(entry.get("source", "")),
                ),
            )
    return tuple(found.values())


def options_of(stages: Sequence[MadeStage]) -> tuple[Option, ...]:
    """The options of all stages; what was decided where one was left open stands behind it."""
    return tuple(
        Option(stage=stage.title, name=name, value=_value(value, decided.get(name)))
        for stage in stages
        for decided in [stage.made.get("decided", {})]
        for name, value in sorted(stage.parameters.items())
    )


def _value(value: Any, decided: Any) -> str:
    text = _json(value)
    if value is None and decided is not None and not isinstance(decided, (list, dict)):
        text = f"{text} ({_json(decided)})"
    return shown.beginning(text, _MOST_VALUE)


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def versions_of(stages: Sequence[MadeStage]) -> Mapping[str, str]:
    """The software that made the stages; where they differ, each version once."""
    found: dict[str, dict[str, None]] = {}
    for stage in stages:
        for name, version in stage.made.get("versions", {}).items():
            if isinstance(version, str):
                found.setdefault(name, {})[version] = None
    return {name: ", ".join(versions) for name, versions in found.items()}


def dump_date(stages: Sequence[MadeStage]) -> str:
    """The day of the dump, as `1 May 2016`; empty where the input has none."""
    for stage in stages:
        date = stage.made.get("decided", {}).get("dump_date") or stage.parameters.get("dump_date")
        if isinstance(date, str):
            return day(date)
    return ""


def day(date: str) -> str:
    """A date such as 2016-05-01 as `1 May 2016`; any other text as it is."""
    try:
        parsed = datetime.date.fromisoformat(date)
    except ValueError:
        return date
    return f"{parsed.day} {parsed:%B %Y}"


def lineage_of(stages: Sequence[MadeStage]) -> tuple[Step, ...]:
    """How the data set was made, a step for each thing that came to be."""
    return tuple(step for stage in stages for step in _STEPS.get(stage.name, _no_steps)(stage, stages))


def _no_steps(stage: MadeStage, stages: Sequence[MadeStage]) -> Iterator[Step]:
    del stage, stages
    return iter(())


def _text_steps(stage: MadeStage, stages: Sequence[MadeStage]) -> Iterator[Step]:
    inputs = stage.made["inputs"]
    date = dump_date(stages)
    total = shown.size(sum(entry.get("bytes", 0) for entry in inputs))
    named = files.base_name(inputs[0]["path"]) if inputs else "nothing"
    more = f" and {shown.count(len(inputs) - 1)} more" if len(inputs) > 1 else ""
    yield Step(
        what=f"{named}{more}", how=", ".join(part for part in (f"dump of {date}" if date else "", total) if part)
    )
    train, eval_documents = stage.counted("train", "documents"), stage.counted("eval", "documents")
    held = f", {shown.count(eval_documents)} held out" if eval_documents else ""
    yield Step(
        what=f"{shown.count(train + eval_documents)} documents",
        how=f"{shown.size(stage.bytes_of())} of text in {plural(stage.counted('train', 'shards'), 'shard')}{held}",
    )


def _vocabulary_steps(stage: MadeStage, stages: Sequence[MadeStage]) -> Iterator[Step]:
    del stages
    pieces = stage.counted("vocabulary", "pieces")
    yield Step(what=f"vocabulary of {shown.count(pieces)}", how=f"{stage.parameter('kind')}, learnt from this text")


def _example_steps(stage: MadeStage, stages: Sequence[MadeStage]) -> Iterator[Step]:
    examples = sum(stage.counted(split, "examples") for split in ("train", "eval"))
    parts = [str(stage.parameter("objective") or "nsp"), f"{stage.parameter('max_seq_length')} pieces"]
    if stage.parameter("dupe_factor"):
        parts.append(f"dupe_factor {stage.parameter('dupe_factor')}")
    parts.append(f"seed {stage.parameter('random_seed')}")
    if not any(other.name == "vocabulary" for other in stages):
        named = next((stage.parameters[name] for name in _VOCABULARIES if stage.parameters.get(name)), None)
        parts += [files.base_name(named)] if named else []
    parts.append(str(stage.made.get("format", "tfrecord")))
    yield Step(what=f"{shown.count(examples)} examples", how=", ".join(parts))


def _eval_steps(stage: MadeStage, stages: Sequence[MadeStage]) -> Iterator[Step]:
    del stages
    yield Step(what=f"{shown.count(stage.counted('eval', 'picked'))} picked for eval", how="at even distance")


_STEPS = {"extract": _text_steps, "vocabulary": _vocabulary_steps, "examples": _example_steps, "eval": _eval_steps}


def plural(number: int, noun: str) -> str:
    """A number with its noun: `1 shard`, `5 shards`."""
    return f"{shown.count(number)} {noun}{'' if number == 1 else 's'}"
