"""What a command that found an output directory in use prints of it: what it reused, made, and made again and why."""

from collections.abc import Iterator, Mapping

from maskmill.storage import outcomes, reuse

# What a user calls a piece of a kind.
_PIECES = {
    "punkt": "Punkt training",
    "templates": "template collection",
    "extract": "unit",
    "duplicates": "duplicate decision",
    "clean": "cleaned file",
    "text": "text shard",
    "word_counts": "counted shard",
    "merged_counts": "merged table",
    "vocabulary": "vocabulary",
    "vocabulary_report": "report",
    "examples": "example shard",
}
_MOST_LINES = 10


def lines(output: str) -> Iterator[str]:
    """What the run found finished, made, and made again, and why; nothing after a first run that took nothing."""
    yield from _taken_lines(reuse.read_reused(output))
    outcome = outcomes.last_outcome(output)
    if outcome is None:
        return
    has_more = outcome.remade or outcome.changed_inputs
    if not has_more and (outcome.is_first or not (outcome.reused or outcome.made)):
        return
    changed = [f"{path}: it has other content than in the build before" for path in outcome.changed_inputs]
    yield f"  {'reused':<10} {_pieces_text(outcome.reused)}"
    yield f"  {'made':<10} {_pieces_text(outcome.made)}"
    for label, pieces in (("changed", changed), ("made again", outcome.remade)):
        for piece in pieces[:_MOST_LINES]:
            yield f"  {label:<10} {piece}"
        if len(pieces) > _MOST_LINES:
            yield f"  {label:<10} {len(pieces) - _MOST_LINES:,} more"


def _taken_lines(reused: reuse.Reused | None) -> Iterator[str]:
    """What a release took from the one before; nothing where there was none."""
    if reused is None or not reused.previous:
        return
    pages = f"{reused.reused_pages:,} of {reused.pages:,} pages" if reused.pages else ""
    shards = f"{reused.reused_shards:,} of {reused.shards:,} shards"
    yield f"  {'taken':<10} {', '.join(filter(None, (pages, shards)))} from the release before"


def _pieces_text(numbers: Mapping[str, int]) -> str:
    texts = [
        f"{numbers[kind]:,} {piece}{'' if numbers[kind] == 1 else 's'}"
        for kind, piece in _PIECES.items()
        if kind in numbers
    ]
    return ", ".join(texts) or "nothing"
