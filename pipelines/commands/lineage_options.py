"""The options of `maskmill lineage`. Nothing here imports a reader, so that `--help` answers at once."""

import dataclasses

from maskmill.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class LineageOptions:
    """The flags of `maskmill lineage`."""

    root: str | None = option(
        None,
        help="below which directory to look for what was made of it: of releases or of builds (default: that of PATH)",
    )
    checksums: bool = option(False, help="read every file on the way, and compare its sha256; without, their sizes")
    json: bool = option(False, help="print one JSON object")
