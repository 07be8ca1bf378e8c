"""CRC-32C, computed with the CPU's instruction and with tables, agrees with Google's library."""

import os
import subprocess
import sys
from pathlib import Path

import google_crc32c
import numpy as np
import pytest
import skips
from oracles import pretraining as oracle

from maskmill.kernels.crc32c import LANE, crc32c, masked_crc32c

CHECK = """
import numpy as np, sys
from maskmill.kernels.crc32c import crc32c
data = np.frombuffer(bytearray(range(256)) * 8, np.uint8)
print([crc32c(data, start, end) for start, end in ((0, 0), (0, 9), (3, 1000), (5, 2048))])
"""


def test_published_values() -> None:
    # These are from RFC 3720, B.4.
    for content, value in (
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (b"123456789", 0xE3069283),
    ):
        assert crc32c(np.frombuffer(bytearray(content), np.uint8), 0, len(content)) == value


def test_any_part_of_any_bytes() -> None:
    rng = np.random.default_rng(1)
    data = rng.integers(0, 256, 7 * LANE, np.uint8)
    content = data.tobytes()
    for size in [*range(20), 3 * LANE - 1, 3 * LANE, 3 * LANE + 1, 6 * LANE + 17]:
        start = int(rng.integers(0, len(content) - size + 1))
        assert crc32c(data, start, start + size) == google_crc32c.value(content[start : start + size])
        assert masked_crc32c(data, start, start + size) == oracle.masked_crc(content[start : start + size])


@pytest.mark.builds
@pytest.mark.parametrize("cpu", ["generic", "x86-64-v2"])
def test_other_cpus_give_the_same_values(cpu: str, tmp_path: Path) -> None:
    if cpu != "generic" and os.uname().machine != "x86_64":
        pytest.skip(f"{skips.OTHER_PROCESSOR}: {os.uname().machine}")
    environment = {**os.environ, "NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path)}
    root = Path(__file__).parent.parent.parent
    done = subprocess.run([sys.executable, "-c", CHECK], env=environment, cwd=root, capture_output=True, text=True)
    content = bytes(range(256)) * 8
    parts = ((0, 0), (0, 9), (3, 1000), (5, 2048))
    assert done.stdout.strip() == str([google_crc32c.value(content[a:b]) for a, b in parts])
    assert all(line.startswith("maskmill: compiling") for line in done.stderr.splitlines()), done.stderr
