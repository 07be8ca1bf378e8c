"""Loads and stores of machine words, unchecked, and counts of bits.

A place in memory is an array of any type, or an address of one (int64). Kernels hand addresses to the functions that
they call in their inner loops: handing over an array counts references, atomically, at each call. An address does not
keep its array alive; take addresses of a kernel's arguments, which their caller holds, and of nothing else.

load_ and store_ count from there in bytes, get_ and put_ in elements. Nothing is checked: all bytes must lie inside
the array. Words are little-endian, as on every machine that numba compiles for. Indexes and all values but those of
64 unsigned bits are int64, so that arithmetic on them stays integer.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from maskmill.kernels import checked_memory
from maskmill.kernels.python_mode import IN_PYTHON, intrinsic_or

_I64 = ir.IntType(64)


def exposed_address(array: np.ndarray) -> int:
    """Return the address of an array, for Python to give to a kernel, in an argument or a table. The array must outlive
    it.
    """
    return checked_memory.expose(array) if IN_PYTHON else int(array.ctypes.data)


def _pointer(context: Any, builder: Any, base_type: Any, base: Any, offset: Any, kind: ir.Type) -> Any:
    if isinstance(base_type, types.Array):
        base = cgutils.create_struct_proxy(base_type)(context, builder, value=base).data
        base = builder.bitcast(base, ir.IntType(8).as_pointer())
    else:
        base = builder.inttoptr(base, ir.IntType(8).as_pointer())
    return builder.bitcast(builder.gep(base, [offset]), kind.as_pointer())


def _place(base: Any) -> Any:
    return base if isinstance(base, types.Array) else types.int64


def _load(bits: int, scale: int = 1, signed: bool = False) -> Any:
    kind = ir.IntType(bits)
    result = types.uint64 if bits == 64 and not signed else types.int64

    def typed(typingctx: Any, base: Any, index: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            offset = builder.mul(args[1], ir.Constant(_I64, scale))
            word = builder.load(_pointer(context, builder, signature.args[0], args[0], offset, kind), align=1)
            if bits == 64:
                return word
            return builder.sext(word, _I64) if signed else builder.zext(word, _I64)

        return result(_place(base), types.int64), code

    return intrinsic_or(checked_memory.loader(bits, scale, signed))(typed)


def _store(bits: int, scale: int = 1, signed: bool = False) -> Any:
    kind = ir.IntType(bits)
    stored = types.uint64 if bits == 64 and not signed else types.int64

    def typed(typingctx: Any, base: Any, index: Any, value: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            offset = builder.mul(args[1], ir.Constant(_I64, scale))
            word = builder.trunc(args[2], kind) if bits < 64 else args[2]
            builder.store(word, _pointer(context, builder, signature.args[0], args[0], offset, kind), align=1)
            return context.get_dummy_value()

        return types.void(_place(base), types.int64, stored), code

    return intrinsic_or(checked_memory.storer(bits, scale))(typed)


load_u8 = _load(8)
load_u32 = _load(32)
load_u64 = _load(64)
store_u8 = _store(8)
store_u16 = _store(16)
store_u32 = _store(32)
store_u64 = _store(64)

get_u16 = _load(16, 2)
get_u32 = _load(32, 4)
get_i32 = _load(32, 4, signed=True)
get_i64 = _load(64, 8, signed=True)
get_u64 = _load(64, 8)
put_u16 = _store(16, 2)
put_u32 = _store(32, 4)
put_i32 = _store(32, 4, signed=True)
put_i64 = _store(64, 8, signed=True)
put_u64 = _store(64, 8)


def _vector_copy(size: int) -> Any:
    kind = ir.VectorType(ir.IntType(8), size)

    def typed(typingctx: Any, target: Any, at: Any, source: Any, start: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            read = _pointer(context, builder, signature.args[2], args[2], args[3], kind)
            write = _pointer(context, builder, signature.args[0], args[0], args[1], kind)
            builder.store(builder.load(read, align=1), write, align=1)
            return context.get_dummy_value()

        return types.void(_place(target), types.int64, _place(source), types.int64), code

    return intrinsic_or(checked_memory.copier(size))(typed)


# copy_32(target, at, source, start) copies 32 bytes.
copy_32 = _vector_copy(32)


_SIXTEEN = ir.VectorType(ir.IntType(32), 16)


@intrinsic_or(checked_memory.least_of_16)
def least_of_16(typingctx: Any, base: Any, index: Any) -> Any:
    """Return the least of the 16 uint32 from element `index` on, and the first place that has it: value << 4 |
    place.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        offset = builder.mul(args[1], ir.Constant(_I64, 4))
        block = builder.load(_pointer(context, builder, signature.args[0], args[0], offset, _SIXTEEN), align=1)
        least_of = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_SIXTEEN.element, [_SIXTEEN]), "llvm.vector.reduce.umin.v16i32"
        )
        least = builder.call(least_of, [block])
        first = builder.insert_element(ir.Constant(_SIXTEEN, ir.Undefined), least, ir.Constant(ir.IntType(32), 0))
        spread = builder.shuffle_vector(first, first, ir.Constant(_SIXTEEN, None))
        same = builder.bitcast(builder.icmp_unsigned("==", block, spread), ir.IntType(16))
        place = builder.cttz(builder.zext(same, _I64), ir.Constant(ir.IntType(1), 1))
        return builder.or_(builder.shl(builder.zext(least, _I64), ir.Constant(_I64, 4)), place)

    return types.int64(_place(base), types.int64), code


@intrinsic_or(checked_memory.prefetch)
def prefetch(typingctx: Any, base: Any, offset: Any) -> Any:
    """Ask for the cache line at a byte, to be read soon. The place need not exist."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        i32 = ir.IntType(32)
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1], ir.IntType(8))
        of_prefetch = ir.FunctionType(ir.VoidType(), [pointer.type, i32, i32, i32])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], of_prefetch)
        builder.call(function, [pointer, i32(0), i32(3), i32(1)])
        return context.get_dummy_value()

    return types.void(_place(base), types.int64), code


@intrinsic_or(checked_memory.address)
def address(typingctx: Any, array: Any) -> Any:
    """Return the address of an array's first element. The array must outlive its use, see the module's head."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=args[0]).data
        return builder.ptrtoint(data, _I64)

    return types.int64(array), code


def _count_zeros(instruction: str) -> Any:
    def typed(typingctx: Any, word: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, instruction)(args[0], ir.Constant(ir.IntType(1), 0))

        return types.int64(types.uint64), code

    return typed


# The number of zero bits below the lowest one bit of a uint64, and above the highest one bit; 64 where there is none.
trailing_zeros = intrinsic_or(checked_memory.trailing_zeros)(_count_zeros("cttz"))
leading_zeros = intrinsic_or(checked_memory.leading_zeros)(_count_zeros("ctlz"))
