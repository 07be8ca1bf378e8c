"""What manifests say of a build, of one stage, and of examples, as figures and rows."""

from collections.abc import Mapping
from typing import Any

from maskmill.inspection import kinds
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.made_examples import manifest_in
from maskmill.storage import files, manifest, timings

Value = str | int | float | bool | None
Facts = dict[str, Value]
Rows = list[dict[str, Value]]

_INPUTS = 3  # that are named
_DIGITS, _SHORT_DIGITS = 16, 8  # of a sha256
# Options that stand in a summary of examples.
_SHOWN = (
    "objective", "preset", "compat", "max_seq_length", "max_predictions_per_seq", "masked_lm_prob", "mask_unit",
    "mask_share", "random_share", "keep_share", "dynamic_masking", "dupe_factor", "short_seq_prob", "random_seed",
    "do_lower_case", "pack", "bins", "feature_names",
)  # fmt: skip
# Counts of a split that are shown, and those of places of its rows.
_COUNTS = ("shards", "documents", "sentences", "tokens", "sequences", "examples")
_PLACES = ("example_tokens", "special_tokens", "padding_tokens")


class Bytes(int):
    """A number of bytes."""


class Share(float):
    """A share, from 0 to 1."""


def known(facts: Mapping[str, Value]) -> Facts:
    """Those figures that have a value."""
    return {name: value for name, value in facts.items() if value is not None}


def share(part: int | None, whole: int) -> Share | None:
    """A part of a whole; None if either is not known."""
    return None if part is None or not whole else Share(part / whole)


def plain(value: Any) -> Value:
    """A value of a manifest's parameters as a figure."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def of_build(path: str, ranges: ByteRanges) -> dict[str, Facts | Rows]:
    """A build: its stages, and what is known of each."""
    found = {folder: manifest_in(files.join(path, folder), ranges) for folder in kinds.STAGE_FOLDERS}
    stages = {folder: made for folder, made in found.items() if made is not None}
    rows: Rows = []
    for folder, made in stages.items():
        sizes = [int(file.get("bytes", 0)) for shard in made["shards"] for file in manifest.files_of_shard(shard)]
        counts = [made["counts"].get(split, {}) for split in ("train", "eval")]
        sums = {
            name: sum(one.get(name, 0) for one in counts) or None for name in ("documents", "sentences", "examples")
        }
        rows.append({"stage": folder, "files": len(sizes), **sums, "bytes": Bytes(sum(sizes))})
    parts: dict[str, Facts | Rows] = {"made from": _made_from(next(iter(stages.values()))), "stages": rows}
    if "text" in stages:
        parts["extract"] = _of_extract(stages["text"])
    if "examples" in stages:
        parts |= _of_examples(stages["examples"])
    timed = [timing for folder in stages if files.is_local(path) for timing in timings.read(files.join(path, folder))]
    if timed:
        parts["last run"] = [
            {
                "step": one.label,
                "pieces": one.pieces,
                "input": None if one.bytes is None else Bytes(one.bytes),
                "seconds": round(one.seconds, 1),
            }
            for one in timed
        ]
    return parts


def of_stage(made: Mapping[str, Any]) -> dict[str, Facts | Rows]:
    """What a manifest says of its stage."""
    parts: dict[str, Facts | Rows] = {"made from": _made_from(made)}
    if made["stage"] in ("examples", "eval"):
        parts |= _of_examples(made)
    elif made["stage"] == "extract":
        parts["extract"] = _of_extract(made)
    if "splits" not in parts:
        parts["counts"] = [
            {"count": f"{step}, {name.replace('_', ' ')}", "number": value}
            for step, counts in made["counts"].items()
            for name, value in counts.items()
        ]
    parts["columns"] = [
        {
            "column": one["name"],
            "type": one["dtype"],
            "values": "varies" if one["shape"] == [None] else one["shape"][0],
            "what": one["what"],
        }
        for one in made.get("schema") or ()
    ]
    counted = "documents" if made["stage"] == "extract" else "examples"
    parts["files"] = [
        {
            "file": file["name"],
            "split": shard.get("kind"),
            counted: file.get(counted),
            "bytes": None if file.get("bytes") is None else Bytes(file["bytes"]),
            "sha256": f"{file['sha256'][:_SHORT_DIGITS]}…" if file.get("sha256") else None,
        }
        for shard in made["shards"]
        for file in manifest.files_of_shard(shard)
    ]
    return {title: part for title, part in parts.items() if part}


def _made_from(made: Mapping[str, Any]) -> Facts:
    """What a stage was made from: its first inputs and the version of maskmill."""
    inputs = [
        f"{entry['path']} (sha256 {str(entry['sha256'])[:_DIGITS]}…)" if entry.get("sha256") else str(entry["path"])
        for entry in made["inputs"]
    ]
    if len(inputs) > _INPUTS + 1:
        inputs = [*inputs[:_INPUTS], f"and {len(inputs) - _INPUTS:,} more"]
    facts: Facts = {f"input {number}": text for number, text in enumerate(inputs, 1)}
    return known(facts | {"made by maskmill": made.get("versions", {}).get("maskmill")})


def _of_extract(made: Mapping[str, Any]) -> Facts:
    """How text was taken from a dump, and what was left out."""
    decided, counts = made.get("decided", {}), made["counts"].get("extract", {})
    choices = [str(entry.get("name")) for entry in decided.get("sentences", ()) if isinstance(entry, dict)]
    facts: Facts = {
        "dump's date": decided.get("dump_date"),
        "extractor": decided.get("extractor"),
        "sentences split as": ", ".join(dict.fromkeys(choices)) or None,
    }
    return known(facts | {name.replace("_", " "): value or None for name, value in sorted(counts.items())})


def _of_examples(made: Mapping[str, Any]) -> dict[str, Facts | Rows]:
    """How examples were made, with which vocabulary, and the counts and shares of each split."""
    options = {**made.get("examples", made["parameters"]), **made.get("decided", {})}
    shown = {name: plain(options.get(name)) for name in _SHOWN}
    if shown["random_seed"] is not None:  # a name, not a quantity
        shown["random_seed"] = str(shown["random_seed"])
    vocabulary: Facts = {
        "file": options.get("tokenizer_file") or options.get("vocab_file"),
        "sha256": (made.get("vocabulary") or {}).get("sha256"),
        "pieces": made.get("vocabulary_size"),
    }
    splits = [split for split in ("train", "eval") if "examples" in made["counts"].get(split, {})]
    columns = [_of_split(made["counts"][split]) for split in splits]
    rows: Rows = [{"": name, **{s: c[name] for s, c in zip(splits, columns, strict=True)}} for name in _of_split({})]
    return {
        "options": known({"format": made.get("format", "tfrecord"), **shown}),
        "vocabulary": known(vocabulary),
        "splits": [row for row in rows if any(row[split] is not None for split in splits)],
    }


def _of_split(counts: Mapping[str, int]) -> Facts:
    """The counts of a split, and the shares that follow from them."""
    places = sum(counts.get(name, 0) for name in _PLACES)
    sequences = counts.get("sequences", counts.get("examples", 0))
    return {
        **{name: counts.get(name) for name in _COUNTS},
        "size": Bytes(counts["bytes"]) if "bytes" in counts else None,
        "padding": share(counts.get("padding_tokens"), places),
        "to predict": share(counts.get("masked_positions"), places - counts.get("padding_tokens", 0)),
        "random or swapped pairs": share(counts.get("random_next", counts.get("swapped")), sequences),
        "unknown words": share(counts.get("unknown_words"), counts.get("words", 0)),
        "text that is in no example": share(counts.get("unused_tokens"), counts.get("tokens", 0)),
    }
