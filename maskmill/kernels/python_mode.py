"""Kernels as plain Python, for a debugger: with NUMBA_DISABLE_JIT=1 nothing is compiled (docs/kernels.md).

Results are those of the compiled kernels, and places outside of arrays are errors (maskmill.kernels.checked_memory).
So is an integer that overflows, but in functions that say `wraps_around`. It is some thousand times slower.
"""

import functools
import threading
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.core import config
from numba.extending import intrinsic

from maskmill.kernels.checked_memory import Address, CheckedArray, ExposedAddress, as_number

IN_PYTHON = bool(config.DISABLE_JIT)  # type: ignore[attr-defined]

_OURS = ("maskmill.",)
_MAKE_ARRAYS = frozenset(("arange", "array", "empty", "empty_like", "full", "ones", "zeros", "zeros_like"))


class _Running(threading.local):
    """The state of this thread: whether it is in a kernel, and whether that one's integers wrap around."""

    wraps: bool | None = None


_running = _Running()
_unchecked: list[dict[str, Any]] = []  # namespaces of kernels whose arrays are not CheckedArrays yet


def intrinsic_or(in_python: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Decorate the code generator of an intrinsic: `in_python` is what it does where nothing is compiled."""
    return (lambda typed: in_python) if IN_PYTHON else intrinsic


def wraps_around(function: Callable[..., Any]) -> Callable[..., Any]:
    """Say of a function under `kernel` that its integers are meant to wrap around at 64 bits, as of a hash."""
    function.__dict__["wraps_around"] = True
    return function


def in_python(function: FunctionType) -> Callable[..., Any]:
    """Return what `kernel` gives where nothing is compiled: the function, with arguments and results as numba has
    them.
    """
    wraps = "wraps_around" in function.__dict__
    _unchecked.append(function.__globals__)

    @functools.wraps(function)
    def run(*arguments: Any, **named: Any) -> Any:
        outer = _running.wraps
        if outer is None:
            _check_globals()
            arguments = tuple(map(_from_caller, arguments))
            named = {name: _from_caller(value) for name, value in named.items()}
        else:
            arguments = tuple(map(_inner, arguments))
        if outer is wraps:
            return _truth(function(*arguments, **named))
        _running.wraps = wraps
        try:
            with np.errstate(over="ignore" if wraps else "raise", invalid="ignore", divide="ignore", under="ignore"):
                result = function(*arguments, **named)
        finally:
            _running.wraps = outer
        return _to_caller(result) if outer is None else _truth(result)

    return run


class _NumPyOfKernels:
    """NumPy, whose arrays are CheckedArrays if a kernel makes them."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(np, name)
        if name not in _MAKE_ARRAYS:
            self.__dict__[name] = value
        elif _running.wraps is not None:
            return lambda *arguments, **named: value(*arguments, **named).view(CheckedArray)
        return value


_NUMPY_OF_KERNELS = _NumPyOfKernels()


def _check_globals() -> None:
    """Make the arrays of modules that hold kernels CheckedArrays, once these modules are imported."""
    while _unchecked:
        namespace = _unchecked.pop()
        modules = [vars(v) for v in namespace.values() if isinstance(v, ModuleType) and v.__name__.startswith(_OURS)]
        for names in (namespace, *modules):
            for name, value in names.items():
                values = value if isinstance(value, tuple) else (value,)
                if any(type(v) is np.ndarray for v in values):
                    names[name] = _from_caller(value)
                elif value is np:
                    names[name] = _NUMPY_OF_KERNELS


def _inner(value: Any) -> Any:
    """Return an argument that a kernel gives another."""
    return value.view(CheckedArray) if type(value) is np.ndarray else as_number(value)


def _truth(result: Any) -> Any:
    return bool(result) if type(result) is np.bool_ else result


def _from_caller(value: Any) -> Any:
    """Return an argument as a kernel has it."""
    if isinstance(value, np.ndarray):
        return value.view(CheckedArray)
    if isinstance(value, ExposedAddress):
        return Address(value.array.view(CheckedArray))
    if isinstance(value, tuple):
        return _like(value, map(_from_caller, value))
    return as_number(value)


def _to_caller(value: Any) -> Any:
    """Return a result as numba gives it to Python."""
    if isinstance(value, CheckedArray):
        return value.view(np.ndarray)
    if isinstance(value, tuple):
        return _like(value, map(_to_caller, value))
    return value.item() if isinstance(value, np.generic) else value


def _like(old: tuple[Any, ...], values: Any) -> Any:
    return type(old)(*values) if hasattr(old, "_fields") else tuple(values)
