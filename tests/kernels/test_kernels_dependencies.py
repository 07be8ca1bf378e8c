"""The stamp of a kernel changes with everything that the machine code depends on, and with nothing else."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import typeof
from numba.core.dispatcher import Dispatcher

from transforms.kernels import dependencies
from transforms.kernels.compiler import kernel_modules

SOURCES = {
    "shared_values.py": """
LIMIT = 3
OFFSET = 4
UNUSED = 5
""",
    "kernels_of_test.py": '''
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

import shared_values
from shared_values import LIMIT
from transforms.kernels import kernel

TABLE = np.array([1, 2, 3], np.uint8)
FACTORS = (1, 2.5, np.uint64(9), b"ab")
WORD = np.dtype(np.uint32)


class Row(NamedTuple):
    start: int
    end: int


def word_type(bits):
    return ir.IntType(bits)


def constant(value):
    kind = types.int64

    def typed(typing_context):
        def code(context, builder, signature, arguments):
            return ir.Constant(word_type(64), value + 0)

        return kind(), code

    return intrinsic(typed)


seven = constant(7)


@kernel
def entry(x):
    """Adds up all that a kernel can depend on."""
    row = Row(x, LIMIT)
    total = np.int64(0)
    for i in range(3):
        total += TABLE[i]
    return total + helper(row.start) + row.end + seven() + shared_values.OFFSET + FACTORS[0] + WORD.type(1)


@kernel
def helper(x, more=1):
    return helper(x - 1) + more if x > 0 else 2
''',
}

Stamp = Callable[..., str]


@pytest.fixture
def stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stamp]:
    """Replaces a text in one of the modules, imports them again, and returns the stamp of `entry`."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def stamp_of(file: str = "kernels_of_test.py", old: str = "", new: str = "") -> str:
        for name, source in SOURCES.items():
            if name == file:
                assert old in source
                source = source.replace(old, new)
            (tmp_path / name).write_text(source)
            sys.modules.pop(name.removesuffix(".py"), None)
        importlib.invalidate_caches()
        return dependencies.stamp(importlib.import_module("kernels_of_test").entry)

    yield stamp_of
    for name in SOURCES:
        sys.modules.pop(name.removesuffix(".py"), None)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        pytest.param("shared_values.py", "LIMIT = 3", "LIMIT = 4", id="a constant of another module"),
        pytest.param("shared_values.py", "OFFSET = 4", "OFFSET = 5", id="a constant used through its module's name"),
        pytest.param("shared_values.py", "LIMIT = 3", "LIMIT = 3.0", id="a constant's type"),
        pytest.param("kernels_of_test.py", "[1, 2, 3]", "[1, 2, 4]", id="an array's content"),
        pytest.param("kernels_of_test.py", "np.uint8)", "np.int8)", id="an array's dtype"),
        pytest.param("kernels_of_test.py", "[1, 2, 3]", "[[1, 2, 3]]", id="an array's shape"),
        pytest.param("kernels_of_test.py", "np.uint64(9)", "np.int64(9)", id="a scalar's dtype"),
        pytest.param("kernels_of_test.py", 'b"ab"', 'b"ac"', id="bytes in a tuple"),
        pytest.param("kernels_of_test.py", "dtype(np.uint32)", "dtype(np.uint16)", id="a dtype"),
        pytest.param(
            "kernels_of_test.py", "    start: int\n    end: int", "    end: int\n    start: int", id="a tuple's fields"
        ),
        pytest.param("kernels_of_test.py", "> 0 else 2", "> 0 else 3", id="a kernel that is called"),
        pytest.param("kernels_of_test.py", "helper(x, more=1)", "helper(x, more=2)", id="a default"),
        pytest.param("kernels_of_test.py", "value + 0", "value + 1", id="the code that an intrinsic makes"),
        pytest.param("kernels_of_test.py", "constant(7)", "constant(8)", id="the argument of an intrinsic"),
        pytest.param("kernels_of_test.py", "kind = types.int64", "kind = types.uint64", id="an intrinsic's type"),
        pytest.param(
            "kernels_of_test.py", "IntType(bits)", "IntType(bits * 2)", id="a function that an intrinsic calls"
        ),
        pytest.param("kernels_of_test.py", "np.int64(0)", "np.uint64(0)", id="a function of NumPy"),
        pytest.param("kernels_of_test.py", "range(3)", "range(2)", id="a constant in the code"),
        pytest.param(
            "kernels_of_test.py",
            "from transforms.kernels import kernel",
            "import numba\n\ndef kernel(function):\n    return numba.njit(function, fastmath=True)",
            id="how numba compiles",
        ),
    ],
)
def test_a_change_of_the_machine_code_changes_the_stamp(file: str, old: str, new: str, stamp: Stamp) -> None:
    assert stamp(file, old, new) != stamp()


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        pytest.param("shared_values.py", "UNUSED = 5", "UNUSED = 6", id="a constant that no kernel reads"),
        pytest.param("shared_values.py", "LIMIT = 3", "# The most.\n\nLIMIT = 1 + 2", id="how a constant is written"),
        pytest.param("kernels_of_test.py", "Adds up all that", "Sums what", id="a docstring"),
        pytest.param("kernels_of_test.py", "    return total", "\n    # The sum.\n    return total", id="a comment"),
        pytest.param(
            "kernels_of_test.py", "class Row", "def unused():\n    pass\n\n\nclass Row", id="another function"
        ),
        pytest.param(
            "kernels_of_test.py",
            "import shared_values\nfrom shared_values import LIMIT",
            "import shared_values\n\nLIMIT = shared_values.LIMIT",
            id="how a value is imported",
        ),
    ],
)
def test_a_change_of_anything_else_keeps_the_stamp(file: str, old: str, new: str, stamp: Stamp) -> None:
    assert stamp(file, old, new) == stamp()


def test_a_docstring_counts_if_the_code_uses_its_text(stamp: Stamp) -> None:
    def with_text(text: str) -> str:
        body = "    return helper(x - 1) + more if x > 0 else "
        return stamp("kernels_of_test.py", f"{body}2", f'    "{text}"\n{body}len("{text}")')

    assert with_text("ab") != with_text("abc")


@pytest.mark.parametrize(("name", "value"), [("LIMIT", 3), ("shared_values.OFFSET", 4)])
def test_the_error_names_a_value_of_an_unknown_type(name: str, value: int, stamp: Stamp) -> None:
    attribute = name.rpartition(".")[2]
    with pytest.raises(
        TypeError, match=rf"^kernels_of_test\.entry: {name} is of type builtins\.object, which a kernel"
    ):
        stamp("shared_values.py", f"{attribute} = {value}", f"{attribute} = object()")


def test_the_error_names_the_function_that_reads_a_value_of_an_unknown_type(stamp: Stamp) -> None:
    with pytest.raises(TypeError, match=r"^kernels_of_test\.word_type: bits_of is of type functools\.partial"):
        stamp(
            "kernels_of_test.py",
            "def word_type(bits):\n",
            "import functools\n\nbits_of = functools.partial(int)\n\ndef word_type(bits):\n    bits = bits_of(bits)\n",
        )


@pytest.mark.parametrize("module", kernel_modules())
def test_every_kernel_of_the_package_has_a_stamp_of_its_own(module: str) -> None:
    kernels = [value for value in vars(importlib.import_module(module)).values() if isinstance(value, Dispatcher)]
    stamps = {dependencies.stamp(kernel) for kernel in kernels}
    assert len(stamps) == len(kernels)


class Forward(NamedTuple):
    first: Any
    second: Any


class Backward(NamedTuple):
    second: Any
    first: Any


def test_argument_types_with_the_same_name_in_numba_are_told_apart() -> None:
    array = np.zeros(1, np.uint8)
    frozen = array.copy()
    frozen.flags.writeable = False
    values = [
        array, frozen, array.astype(np.int8), array.reshape(1, 1), 1, np.uint64(1), 1.0, (1, 1), (1, (1,)),
        Forward(1, 1), Backward(1, 1), Forward(1, array), Forward(Forward(1, 1), 1), Forward(Backward(1, 1), 1),
    ]  # fmt: skip
    descriptions = [dependencies.describe_types([typeof(value)]) for value in values]
    assert len(set(descriptions)) == len(values)
    assert dependencies.describe_types([typeof(Forward(1, 1))]) == dependencies.describe_types([typeof(Forward(2, 2))])
