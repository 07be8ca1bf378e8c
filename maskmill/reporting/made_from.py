"""What a data set was made from and how: in one line, and as a table of options."""

import datetime
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from maskmill.reporting import shown
from maskmill.reporting.made_stages import MadeStage
from maskmill.storage import files

_MOST_VALUE = 200
_VOCABULARIES = ("vocab_file", "tokenizer_file")


class Step(NamedTuple):
    """A step on the way: what came out, and how in a few words."""

    what: str
    how: str = ""


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
    """What went into the first stage, and what else was not an output of another one."""
    made = {files.base_name(shard["name"]) for stage in stages for shard in stage.shards}
    found: dict[str, Input] = {}
    for place, stage in enumerate(stages):
        for entry in stage.made["inputs"]:
            if place and files.base_name(entry["path"]) in made:
                continue
            path, digest = str(entry["path"]), str(entry["sha256"])
            found.setdefault(digest + path, Input(path, int(entry.get("bytes") or 0), digest))
    return tuple(found.values())


def options_of(stages: Sequence[MadeStage]) -> tuple[Option, ...]:
    """The options of all stages; what was decided if one was left open stands behind it."""
    return tuple(
        Option(stage.title, name, _value(value, decided.get(name)))
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
    """The software that made the stages; if they differ, each version once."""
    found: dict[str, dict[str, None]] = {}
    for stage in stages:
        for name, version in stage.made.get("versions", {}).items():
            if isinstance(version, str):
                found.setdefault(name, {})[version] = None
    return {name: ", ".join(versions) for name, versions in found.items()}


def dump_date(stages: Sequence[MadeStage]) -> str:
    """The day of the dump, as `1 May 2016`; empty if the input has none."""
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


def steps_of(stages: Sequence[MadeStage]) -> tuple[Step, ...]:
    """How the data set was made, a step for each thing that came to be."""
    return tuple(Step(*step) for stage in stages for step in _steps(stage, stages))


def _steps(stage: MadeStage, stages: Sequence[MadeStage]) -> Iterator[tuple[str, str]]:
    """What came out of a stage, and how."""
    if stage.name == "extract":
        inputs, date = stage.made["inputs"], dump_date(stages)
        named = files.base_name(inputs[0]["path"]) if inputs else "nothing"
        more = f" and {shown.count(len(inputs) - 1)} more" if len(inputs) > 1 else ""
        yield f"{named}{more}", f"{f'dump of {date}, ' if date else ''}{shown.size(stage.input_bytes)}"
        eval_documents = stage.counted("eval", "documents")
        held = f", {shown.count(eval_documents)} held out" if eval_documents else ""
        shards = shown.plural(stage.counted("train", "shards"), "shard")
        yield (
            f"{shown.count(stage.in_splits('documents'))} documents",
            f"{shown.size(stage.bytes_of())} of text in {shards}{held}",
        )
    elif stage.name == "vocabulary":
        pieces = shown.count(stage.counted("vocabulary", "pieces"))
        yield f"vocabulary of {pieces}", f"{stage.parameter('kind')}, learnt from this text"
    elif stage.name == "examples":
        yield f"{shown.count(stage.in_splits('examples'))} examples", ", ".join(_of_examples(stage, stages))
    elif stage.name == "eval":
        yield f"{shown.count(stage.counted('eval', 'picked'))} picked for eval", "at even distance"


def _of_examples(stage: MadeStage, stages: Sequence[MadeStage]) -> Iterator[str]:
    yield str(stage.parameter("objective") or "nsp")
    yield f"{stage.parameter('max_seq_length')} pieces"
    if stage.parameter("dupe_factor"):
        yield f"dupe_factor {stage.parameter('dupe_factor')}"
    yield f"seed {stage.parameter('random_seed')}"
    if not any(other.name == "vocabulary" for other in stages):
        named = next((stage.parameters[name] for name in _VOCABULARIES if stage.parameters.get(name)), None)
        if named:
            yield files.base_name(named)
    yield str(stage.made.get("format", "tfrecord"))
