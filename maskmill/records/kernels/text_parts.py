"""Checksums of the parts of a text, so that whoever reads some of them knows that they are what they were."""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from maskmill.kernels import kernel
from maskmill.kernels.crc32c import crc32c


@kernel
def checksums_of(data, starts, ends, checksums):
    """Write the CRC-32C of data[starts[k]:ends[k]] (uint8; int64) to checksums[k] (uint32)."""
    for part in range(len(starts)):
        checksums[part] = np.uint32(crc32c(data, starts[part], ends[part]))


def warm_up() -> None:
    """Compile the entry kernel of this module."""
    starts = np.zeros(1, np.int64)
    checksums_of(np.zeros(8, np.uint8), starts, starts + 8, np.zeros(1, np.uint32))
