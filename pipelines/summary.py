"""What a command prints when it is done: what went in, what came out, and what the user should know about it."""

from collections.abc import Mapping
from typing import Any

from transforms.storage import outcomes

# The order in which a summary shows the counts of a manifest.
_STEPS = ("templates", "extract", "paragraphs", "clean", "train", "eval")
# The summary shows these counts of shards, in this order; the manifest has more. Of other steps it shows all counts,
# with what went in and what came out first.
_SHOWN = ("shards", "documents", "sentences", "tokens", "examples", "available", "picked", "bytes")


# What a user calls a piece of a kind.
_PIECES = {
    "templates": "template collection",
    "extract": "unit",
    "duplicates": "duplicate decision",
    "clean": "cleaned file",
    "text": "text shard",
    "examples": "example shard",
}
_MOST_LINES = 10


def report(output: str, manifest: Mapping[str, Any]) -> None:
    """Prints the counts of a stage.

    Args:
      output: the stage's directory.
      manifest: the stage's manifest; empty where the job was only described.
    """
    if not manifest:
        print(f"{output}: nothing was run, the job was only described.")
        return
    print(f"{manifest['stage']}: {output}")
    width = max(8, *map(len, manifest["counts"]))
    # A step that is not in the list comes last.
    for step in sorted(manifest["counts"], key=lambda name: _STEPS.index(name) if name in _STEPS else len(_STEPS)):
        counts = manifest["counts"][step]
        names = (
            _SHOWN
            if step in ("train", "eval")
            else sorted(counts, key=lambda name: (name not in ("read", "documents"), name == "documents", name))
        )
        shown = ", ".join(f"{counts[name]:,} {name.replace('_', ' ')}" for name in names if name in counts)
        print(f"  {step:<{width}} {shown}")
    _report_outcome(output)
    rejected = sum(counts.get("rejected", 0) for counts in manifest["counts"].values())
    if rejected:
        print(f"  {rejected:,} documents could not be processed; {output}/rejected.jsonl lists each with its reason.")


def _report_outcome(output: str) -> None:
    """Prints what the run found finished, made, and made again, and why; nothing after a first run."""
    outcome = outcomes.last_outcome(output)
    if outcome is None:
        return
    has_more = outcome.remade or outcome.changed_inputs
    if not has_more and (outcome.is_first or not (outcome.reused or outcome.made)):
        return
    changed = [f"{path}: it has other content than in the build before" for path in outcome.changed_inputs]
    print(f"  {'reused':<10} {_pieces_text(outcome.reused)}")
    print(f"  {'made':<10} {_pieces_text(outcome.made)}")
    for label, lines in (("changed", changed), ("made again", outcome.remade)):
        for line in lines[:_MOST_LINES]:
            print(f"  {label:<10} {line}")
        if len(lines) > _MOST_LINES:
            print(f"  {label:<10} {len(lines) - _MOST_LINES:,} more")


def _pieces_text(numbers: Mapping[str, int]) -> str:
    texts = [
        f"{numbers[kind]:,} {piece}{'' if numbers[kind] == 1 else 's'}"
        for kind, piece in _PIECES.items()
        if kind in numbers
    ]
    return ", ".join(texts) or "nothing"
