"""CRC-32C (Castagnoli), as TFRecords mask it.

One instruction for eight bytes where the CPU that numba compiles for has SSE 4.2; tables elsewhere, which give the
same. The instruction takes three cycles but can start at each, so three lanes of a block are computed side by side
and joined: advancing a checksum over a fixed number of zero bytes is a linear map, four lookups.

Arrays
  TABLES      uint32[8, 256]: TABLES[k, b] is the checksum of byte b followed by k zero bytes.
  ADVANCE     uint32[2, 4, 256]: ADVANCE[j, k, b] is what byte k (value b) of a checksum gives after (j + 1) * LANE zero
              bytes.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from maskmill.kernels import kernel
from maskmill.kernels.memory import load_u8, load_u64
from maskmill.kernels.python_mode import intrinsic_or

LANE = 256

_POLYNOMIAL = 0x82F63B78
# CPU names that have SSE 4.2 without saying so among their features, for NUMBA_CPU_NAME.
_NAMES = ("x86-64-v2", "x86-64-v3", "x86-64-v4")


def _make_tables() -> np.ndarray:
    tables = np.zeros((8, 256), np.uint32)
    values = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        values = values >> np.uint32(1) ^ np.uint32(_POLYNOMIAL) * (values & np.uint32(1))
    tables[0] = values
    for k in range(1, 8):
        tables[k] = tables[k - 1] >> 8 ^ values[tables[k - 1] & 255]
    return tables


def _make_advance(tables: np.ndarray) -> np.ndarray:
    values = np.arange(256, dtype=np.uint32) << (np.arange(4, dtype=np.uint32) * np.uint32(8))[:, None]
    for _ in range(LANE):
        values = values >> np.uint32(8) ^ tables[0][values & np.uint32(255)]
    twice = np.zeros_like(values)
    for k in range(4):
        twice ^= values[k][values >> np.uint32(8 * k) & np.uint32(255)]
    return np.stack([values, twice])


TABLES = _make_tables()
ADVANCE = _make_advance(TABLES)


def _has_instruction(context: Any) -> bool:
    triple, name, features = context.codegen().magic_tuple()
    return triple.startswith("x86_64") and ("+sse4.2" in features.split(",") or name in _NAMES)


@kernel
def _table_word(crc, word):
    """Return the checksum (uint64) after eight bytes more, with tables."""
    word ^= crc
    result = np.uint32(0)
    for k in range(8):
        result ^= TABLES[7 - k, np.int64((word >> np.uint64(8 * k)) & np.uint64(255))]
    return np.uint64(result)


@intrinsic_or(lambda: True)  # so that a debugger gets to the lanes
def _instruction_exists(typingctx: Any) -> Any:
    """Return whether the CPU that is compiled for has the instruction: a constant in the machine code."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(ir.IntType(1), int(_has_instruction(context)))

    return types.boolean(), code


@intrinsic_or(_table_word)
def _instruction(typingctx: Any, crc: Any, word: Any) -> Any:
    """Return what _table_word does. Only if _instruction_exists."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if not _has_instruction(context):
            return args[0]
        word_type = ir.IntType(64)
        function_type = ir.FunctionType(word_type, [word_type, word_type])
        function = builder.module.declare_intrinsic("llvm.x86.sse42.crc32.64.64", fnty=function_type)
        return builder.call(function, args)

    return types.uint64(types.uint64, types.uint64), code


@kernel
def _advance(crc, lanes):
    """Return a checksum after `lanes` (1 or 2) lanes of zero bytes."""
    result = np.uint32(0)
    for k in range(4):
        result ^= ADVANCE[lanes - 1, k, np.int64((crc >> np.uint64(8 * k)) & np.uint64(255))]
    return np.uint64(result)


@kernel
def crc32c(data, start, end):
    """Return the checksum of data[start:end] (uint8), as int64. Nothing beyond `end` is read."""
    crc = np.uint64(0xFFFFFFFF)
    i = start
    if _instruction_exists():
        while i + 3 * LANE <= end:
            second = np.uint64(0)
            third = np.uint64(0)
            for j in range(i, i + LANE, 8):
                crc = _instruction(crc, load_u64(data, j))
                second = _instruction(second, load_u64(data, j + LANE))
                third = _instruction(third, load_u64(data, j + 2 * LANE))
            crc = _advance(crc, 2) ^ _advance(second, 1) ^ third
            i += 3 * LANE
        while i + 8 <= end:
            crc = _instruction(crc, load_u64(data, i))
            i += 8
    else:
        while i + 8 <= end:
            crc = _table_word(crc, load_u64(data, i))
            i += 8
    while i < end:
        crc = (crc >> np.uint64(8)) ^ np.uint64(
            TABLES[0, np.int64((crc ^ np.uint64(load_u8(data, i))) & np.uint64(255))]
        )
        i += 1
    return np.int64(crc ^ np.uint64(0xFFFFFFFF))


@kernel
def masked_crc32c(data, start, end):
    """Return the checksum as TFRecords store it: rotated, and a constant added, so that data may hold checksums."""
    crc = crc32c(data, start, end)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def warm_up() -> None:
    """Compile the entry kernel of this module."""
    masked_crc32c(np.zeros(8, np.uint8), 0, 8)
