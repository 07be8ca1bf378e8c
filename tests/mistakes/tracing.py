"""Mistakes with lineages."""

from mistakes.table import Mistake


def row(name: str, command: str, says: str, **more: object) -> Mistake:
    return Mistake(name=f"tracing-{name}", command=command, says=says, **more)  # type: ignore[arg-type]


MISTAKES = [
    row("nothing", "lineage", "PATH is missing; name one checkpoint, shard, release or build"),
    row("two-paths", "lineage dump.xml part-00000-of-00001", "part-00000-of-00001: this is a second path"),
    row("nothing-there", "lineage no-such-file", "no-such-file: this is not a checkpoint, shard, release or build"),
    row("page-zero", "lineage . --page 0", "--page must be 1 or more, not 0"),
    row("page-below-nothing", "lineage no-such-folder --page 7", "no-such-folder: this input does not exist"),
]
