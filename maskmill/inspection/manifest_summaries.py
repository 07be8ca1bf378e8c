"""The facts in a manifest about its stage, as figures and rows."""

from collections.abc import Mapping
from typing import Any

from maskmill.storage import manifest

Value = str | int | float | bool | None
Facts = dict[str, Value]
Rows = list[dict[str, Value]]
Parts = dict[str, Facts | Rows]

_INPUTS = 3  # that are named
_DIGITS, _SHORT_DIGITS = 16, 8  # of a sha256
# Counts of a split that are shown, and those of places of its rows.
_COUNTS = ("shards", "documents", "sentences", "tokens", "sequences", "examples")
_PLACES = ("example_tokens", "special_tokens", "padding_tokens")


class Bytes(int):
    """A number of bytes."""


class Share(float):
    """A share, from 0 to 1."""


def known(facts: Mapping[str, Any]) -> Facts:
    """Return those figures that have a value; a list is text, and what has parts of its own is left out."""
    plain = {name: ", ".join(map(str, v)) if isinstance(v, (list, tuple)) else v for name, v in facts.items()}
    return {name: value for name, value in plain.items() if isinstance(value, (str, int, float))}


def share(part: int | None, whole: int) -> Share | None:
    """Return a part of a whole; None if either is not known."""
    return None if part is None or not whole else Share(part / whole)


def of_stage(made: Mapping[str, Any]) -> Parts:
    """Return what a manifest says of its stage."""
    decided = {name: value for name, value in made.get("decided", {}).items() if not isinstance(value, list)}
    options = known({**made.get("examples", {}), **made["parameters"], **decided})
    if "random_seed" in options:  # a name, not a quantity
        options["random_seed"] = str(options["random_seed"])
    counts = made["counts"]
    parts: Parts = {"made from": _made_from(made), "options": known({"format": made.get("format")}) | options}
    if splits := [split for split in ("train", "eval") if "examples" in counts.get(split, {})]:
        columns = {split: _of_split(counts[split]) for split in splits}
        rows: Rows = [{"": name, **{split: columns[split][name] for split in splits}} for name in _of_split({})]
        parts["splits"] = [row for row in rows if any(row[split] is not None for split in splits)]
    else:
        parts["counts"] = [
            {"count": f"{step}, {name.replace('_', ' ')}", "number": value}
            for step, some in counts.items()
            for name, value in some.items()
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
    """Return what a stage was made from: its first inputs, its vocabulary, and the version of maskmill."""
    inputs = [f"{entry['path']} (sha256 {str(entry.get('sha256'))[:_DIGITS]}…)" for entry in made["inputs"]]
    if len(inputs) > _INPUTS + 1:
        inputs = [*inputs[:_INPUTS], f"and {len(inputs) - _INPUTS:,} more"]
    facts = {f"input {number}": text for number, text in enumerate(inputs, 1)}
    version = made.get("versions", {}).get("maskmill")
    return known({**facts, "pieces of the vocabulary": made.get("vocabulary_size"), "made by maskmill": version})


def _of_split(counts: Mapping[str, int]) -> Facts:
    """Return the counts of a split, and the shares that follow from them."""
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
