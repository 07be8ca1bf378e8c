"""The options of `maskmill estimate`. Nothing here imports a kernel, so that `--help` answers at once."""

import dataclasses

from maskmill.errors import UnusableInputError
from maskmill.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class EstimateOptions:
    """The flags of `maskmill estimate` beside those of a build.

    Raises:
      UnusableInputError: a value is out of its range.
    """

    sample_share: float | None = option(
        None, help="share of the input's bytes to read; null: 0.02, but at least 4 MB and at most 32 MB"
    )
    cores: int | None = option(None, help="cores that the build will have (default: this machine's)")
    json: bool = option(False, help="print the estimate as JSON")

    def __post_init__(self) -> None:
        if self.sample_share is not None and not 0 < self.sample_share <= 1:
            raise UnusableInputError(f"--sample_share must be above 0 and at most 1, not {self.sample_share}.")
        if self.cores is not None and self.cores < 1:
            raise UnusableInputError(f"--cores must be 1 or more, not {self.cores}.")
