"""What a command prints when it is done: what went in, what came out, and what the user should know about it."""

from collections.abc import Mapping
from typing import Any

from pipelines import outcome_summary

# The order in which a summary shows the counts of a manifest.
_STEPS = ("templates", "extract", "paragraphs", "clean", "train", "eval")
# The summary shows these counts of shards, in this order; the manifest has more. Of other steps it shows all counts,
# with what went in and what came out first.
_SHOWN = ("shards", "documents", "sentences", "tokens", "examples", "available", "picked", "bytes")


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
    outcome_summary.report(output)
    rejected = sum(counts.get("rejected", 0) for counts in manifest["counts"].values())
    if rejected:
        print(f"  {rejected:,} documents could not be processed; {output}/rejected.jsonl lists each with its reason.")
