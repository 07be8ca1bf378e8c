"""Mistakes with lineages."""

from mistakes.table import Mistake


def row(name: str, command: str, says: str, **more: object) -> Mistake:
    return Mistake(f"tracing-{name}", command, says, **more)  # type: ignore[arg-type]


MISTAKES = [
    row("nothing", "lineage", "PATH is missing; name one checkpoint, shard, release or build"),
    row("two-paths", "lineage dump.xml part-00000-of-00001", "part-00000-of-00001: this is a second path"),
    row("nothing-there", "lineage no-such-file", "no-such-file: this is not a checkpoint, shard, release or build"),
    row("page-below-nothing", "lineage no-such-folder --page 7", "no-such-folder: this input does not exist"),
]
