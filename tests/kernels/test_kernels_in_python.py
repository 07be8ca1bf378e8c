"""Kernels without the compiler, which checks bounds: small cases of every step give the same."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from numba.core.dispatcher import Dispatcher

from maskmill.kernels.compiler import kernel_modules

CASES = ROOT / "tests" / "kernel_cases.py"
PYTHON = {"NUMBA_DISABLE_JIT": "1"}


def run(arguments: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs Python in a process of its own, in which nothing but `environment` tells numba what to do."""
    base = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=base | environment, cwd=ROOT, capture_output=True, text=True, check=False)


def small_cases(folder: Path, **environment: str) -> dict[str, Any]:
    """What kernel_cases.py prints."""
    done = run([str(CASES), str(folder)], environment)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.builds
def test_plain_python_gives_what_the_compiled_kernels_of_every_module_give(tmp_path: Path) -> None:
    compiled = small_cases(tmp_path / "compiled")
    in_python = small_cases(tmp_path / "python", **PYTHON)
    assert in_python["results"].keys() == compiled["results"].keys()
    for case, expected in compiled["results"].items():
        assert in_python["results"][case] == expected, case
    with_kernels = {
        module
        for module in kernel_modules()
        for value in vars(importlib.import_module(module)).values()
        if isinstance(value, Dispatcher) and value.py_func.__module__ == module
    }
    assert with_kernels == {function.rpartition(".")[0] for function in in_python["ran"]}


# Runs programs, each in names of its own, and prints as JSON what each prints or raises.
RUNNER = """
import contextlib, io, json, sys
import numpy as np
from maskmill.kernels import inlined_kernel, kernel, lean_kernel, wraps_around
from maskmill.kernels.compiler import prepare
from maskmill.kernels.memory import *
from maskmill.kernels.memory import exposed_address

is_equal = kernel(lambda a, b: a == b)
outcomes = []
for program in sys.argv[1:]:
    eight, table = np.arange(8, dtype=np.uint8), np.zeros(1, np.int64)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            exec(program)
        except Exception as error:
            print(f"{type(error).__name__}: {error}")
    outcomes.append(printed.getvalue().strip())
print(json.dumps(outcomes))
"""
PROGRAMS = [
    # Places outside of an array.
    ("kernel(lambda a: a[8])(eight)", "IndexError: index 8 is out of bounds for axis 0 with size 8"),
    ("kernel(lambda a, i: a[i])(eight, -1)", "IndexError: index -1 is below 0"),
    ("kernel(lambda a: load_u64(a, 1))(eight)", "IndexError: bytes 1 to 9 of an array of 8 bytes"),
    ("kernel(lambda a: load_u8(address(a), -1))(eight)", "IndexError: bytes -1 to 0 of an array of 8 bytes"),
    ("kernel(lambda a: put_u32(4 + address(a), 1, 0))(eight)", "IndexError: bytes 8 to 12 of an array of 8 bytes"),
    ("kernel(lambda a: copy_32(a, 0, a, 0))(eight)", "IndexError: bytes 0 to 32 of an array of 8 bytes"),
    ("kernel(lambda a: address(a))(np.zeros((4, 4))[:, 1:])", "IndexError: an array with gaps has no address"),
    ("kernel(lambda n: get_i64(n, 0))(12345)", "IndexError: 0x3039 is no address of an array that is alive"),
    ("table[0] = exposed_address(np.zeros(1)); kernel(lambda a: get_i64(a[0], 0))(table)", "IndexError: 0x"),
    # Integers that do not fit.
    ("kernel(lambda n: n * n)(1 << 40)", "FloatingPointError: overflow encountered in scalar multiply"),
    ("kernel(lambda a: a.__setitem__(0, 300))(eight)", "OverflowError: Python integer 300 out of bounds for uint8"),
    # What numba gives.
    ("print(kernel(wraps_around(lambda n: n * n))((1 << 40) + 1))", "2199023255553"),
    ("print(kernel(lambda a, b: a[0] - 1 + a[b])(eight, 7))", "6"),
    ("print(kernel(lambda a, b: is_equal(a, b) + is_equal(b, a))(1, True))", "2"),
    ("kernel(lambda a: print(a, repr(a[2:4])))(eight)", "[0 1 2 3 4 5 6 7] array([2, 3], dtype=uint8)"),
    ("print(lean_kernel(lambda a: (a[1:], a[7] / 0))(eight))", "(array([1, 2, 3, 4, 5, 6, 7], dtype=uint8), inf)"),
    ("f = kernel(lambda a, n: put_u16(a, n, -2)); f(eight, 1); print(eight)", "[  0   1 254 255   4   5   6   7]"),
    ("print(inlined_kernel(lambda a, b=2: a + b)(5), kernel(lambda a: a)(b := 1.5))", "7 1.5"),
    ("print(kernel(lambda w: (trailing_zeros(w), leading_zeros(w)))(np.uint64(8)))", "(3, 60)"),
    ("table[0] = exposed_address(eight); print(kernel(lambda a: load_u8(a[0], 3))(table))", "3"),
    ("print(kernel(lambda n: load_u8(n, 3))(exposed_address(eight)))", "3"),
    ("print(kernel(lambda a: least_of_16(a, 4))(np.arange(20, dtype=np.uint32)[::-1].copy()))", "15"),
    # Nothing is compiled.
    ("print(prepare(['masking']), prepare())", "0 0"),
]


@pytest.mark.builds
def test_what_kernels_in_plain_python_give_and_refuse() -> None:
    done = run(["-c", RUNNER, *(program for program, _ in PROGRAMS)], PYTHON)
    assert done.returncode == 0, done.stderr
    for (program, expected), outcome in zip(PROGRAMS, json.loads(done.stdout), strict=True):
        assert outcome.startswith(expected), program
