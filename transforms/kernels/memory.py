"""Loads and stores of whole machine words at any byte of a uint8 array, and counts of bits.

All are unchecked: an index must lie inside the array, with the word's size to spare. Words are little-endian, as on
every machine that numba compiles for. Indexes and small results are int64, so that arithmetic on them stays integer.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_I64 = ir.IntType(64)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any, kind: ir.Type) -> Any:
    data = cgutils.create_struct_proxy(array_type)(context, builder, value=array).data
    data = builder.bitcast(data, ir.IntType(8).as_pointer())
    return builder.bitcast(builder.gep(data, [index]), kind.as_pointer())


def _load(number: int, result: Any) -> Any:
    kind = ir.IntType(number)

    def typed(typingctx: Any, array: Any, index: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = builder.load(_pointer(context, builder, signature.args[0], args[0], args[1], kind), align=1)
            return builder.zext(word, _I64) if number < 64 else word

        return result(array, types.int64), code

    return typed


def _store(number: int) -> Any:
    kind = ir.IntType(number)

    def typed(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = builder.trunc(args[2], kind) if number < 64 else args[2]
            builder.store(word, _pointer(context, builder, signature.args[0], args[0], args[1], kind), align=1)
            return context.get_dummy_value()

        return types.void(array, types.int64, types.uint64 if number == 64 else types.int64), code

    return typed


load_u8 = intrinsic(_load(8, types.int64))
load_u16 = intrinsic(_load(16, types.int64))
load_u32 = intrinsic(_load(32, types.int64))
load_u64 = intrinsic(_load(64, types.uint64))
store_u8 = intrinsic(_store(8))
store_u32 = intrinsic(_store(32))
store_u64 = intrinsic(_store(64))


@intrinsic
def copy_32(typingctx: Any, target: Any, at: Any, source: Any, start: Any) -> Any:
    """Copies 32 bytes from source[start:] to target[at:], which must not overlap."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.VectorType(ir.IntType(8), 32)
        block = builder.load(_pointer(context, builder, signature.args[2], args[2], args[3], kind), align=1)
        builder.store(block, _pointer(context, builder, signature.args[0], args[0], args[1], kind), align=1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64), code


@intrinsic
def trailing_zeros(typingctx: Any, word: Any) -> Any:
    """The number of zero bits below the lowest one bit of a uint64; 64 where there is none."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), code
