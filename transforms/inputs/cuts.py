"""Files that are cut off: what is said of them, and what a reader gives at a cut whose front is taken."""

import dataclasses

from maskmill.errors import UnusableInputError

OR_KEEP = "or take what stands before the cut with --keep_truncated"


class CutOffError(UnusableInputError):
    """A file ends in the middle of its data."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class CutOff:
    """The end of a file that is cut off: the title of the page or document that the cut is in; None if in none."""

    title: str | None


def cut_off(path: str, byte: int, packing: str) -> CutOffError:
    """The error of a packed file that ends at a byte in the middle of its data; `packing` is its container's name."""
    return CutOffError(
        f"{path}: the file is cut off: it ends at byte {byte} in the middle of its {packing} data; "
        f"fetch it again, {OR_KEEP}."
    )
