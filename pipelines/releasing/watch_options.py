"""The flags of `maskmill watch` that a build has not."""

import dataclasses

from maskmill.errors import UnusableInputError
from maskmill.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class WatchFlags:
    """What a watch does of its work.

    Raises:
      UnusableInputError: the flags exclude each other.
    """

    check: bool = option(False, help="only look: print the newest complete dump, and whether it is new, as JSON")
    download_only: bool = option(False, help="download a new dump, and leave the rest to maskmill build --release")

    def __post_init__(self) -> None:
        if self.check and self.download_only:
            raise UnusableInputError("--check downloads nothing; leave it or --download_only out.")
