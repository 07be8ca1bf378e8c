"""Which files the inputs are, told before Beam is imported."""

import dataclasses
from collections.abc import Sequence

from maskmill.storage import files
from transforms.inputs.formats import lies_beside_dump


@dataclasses.dataclass(frozen=True, kw_only=True)
class FoundInputs:
    """The inputs that patterns name, in order, and what was skipped beside them: the path and what it is."""

    files: tuple[files.FileInfo, ...]
    skipped: tuple[tuple[str, str], ...] = ()

    @property
    def skipped_text(self) -> str:
        """The sentence that names what was skipped."""
        path, kind = self.skipped[0]
        more = f", and {len(self.skipped) - 1} more of its kind" if len(self.skipped) > 1 else ""
        return (
            f"{path}: skipped, because it looks like {kind}{more}; name it alone with --input_format text to take it "
            "as text."
        )


def find_inputs(patterns: Sequence[str], input_format: str, *, may_be_missing: bool = False) -> FoundInputs:
    """Finds the inputs; skips the indexes and checksums that Wikimedia publishes beside a dump.

    patterns: as `files.match` takes them. input_format: "auto" or the format that the user names; a named format that
    any text can have skips nothing. may_be_missing: whether there may be none.

    Raises:
      UnusableInputError: there are no inputs.
    """
    matched = files.match(patterns, may_be_missing=may_be_missing)
    if input_format in ("text", "jsonl"):
        return FoundInputs(files=tuple(matched))
    kinds = {file.path: lies_beside_dump(file.path) for file in matched}
    taken = tuple(file for file in matched if kinds[file.path] is None)
    if not taken:
        return FoundInputs(files=tuple(matched))  # planning refuses them
    return FoundInputs(files=taken, skipped=tuple((path, kind) for path, kind in kinds.items() if kind is not None))
