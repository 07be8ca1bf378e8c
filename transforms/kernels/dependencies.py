"""What the machine code of a kernel depends on, as one hash.

numba compiles into a kernel all that it reaches: the functions that it calls and the values of the names that it
reads, in its own module and in others. The hash covers all of that, read from the code objects: a comment, a
docstring, the place of a line or of an import does not count.
"""

import functools
import hashlib
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from opcode import opmap
from typing import Any

import llvmlite
import numba
import numpy as np
from llvmlite import ir
from numba.core.dispatcher import Dispatcher
from numba.core.types import BaseNamedTuple, BaseTuple, Type

# Packages whose functions are known by their names: the versions of the first three are part of the hash.
_LIBRARIES = frozenset({"numba", "llvmlite", "numpy", *sys.stdlib_module_names})

_VERSIONS = (
    f"numba {numba.__version__}, llvmlite {llvmlite.__version__}, numpy {np.__version__}, "
    f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
)

# A function's docstring is its first constant; no instruction loads it.
_LOADS_OF_FIRST_CONSTANT = tuple(bytes((opmap[name], 0)) for name in ("LOAD_CONST", "RETURN_CONST") if name in opmap)

_HELP = (
    "numbers, strings, tuples, NamedTuple classes, NumPy arrays and dtypes, functions, other kernels and intrinsics "
    "can be compiled in"
)


def stamp(kernel: Dispatcher) -> str:
    """A hash, in hexadecimal digits, of all that the machine code of a kernel depends on, but its arguments' types.

    Args:
      kernel: what `kernel` made. The names that it reads must have their final values.

    Raises:
      TypeError: the kernel depends on a value of a kind that cannot be hashed by what it means; says which.
    """
    nodes: list[Any] = [kernel]
    numbers = {id(kernel): 0}
    digest = hashlib.sha256(_VERSIONS.encode())
    for node in nodes:  # grows meanwhile
        content, references = _described(node)
        for reference in references:
            if id(reference) not in numbers:
                numbers[id(reference)] = len(nodes)
                nodes.append(reference)
        # Functions are told apart by the order in which they are reached, not by their names.
        digest.update(repr((content, [numbers[id(reference)] for reference in references])).encode())
    return digest.hexdigest()


def describe_types(numba_types: Iterable[Any]) -> str:
    """A text that two lists of numba's types share only where they give the same machine code."""
    return ", ".join(map(_describe_type, numba_types))


def _describe_type(numba_type: Any) -> str:
    kind = type(numba_type)
    if not issubclass(kind, BaseTuple):
        return f"{kind.__qualname__} {numba_type}"
    text = f"{kind.__qualname__}({describe_types(numba_type.types)})"
    if issubclass(kind, BaseNamedTuple):
        # numba's own text leaves out the module of the class and the order of its fields.
        record = numba_type.instance_class
        text += f" {record.__module__}.{record.__qualname__}{record._fields}"
    return text


@functools.cache
def _described(node: Any) -> tuple[str, tuple[Any, ...]]:
    """A text for one function, kernel or intrinsic, and what it refers to, in the order of the text's references."""
    if isinstance(node, Dispatcher):
        description = _Description(node.py_func)
        description.add("kernel", node.targetoptions)
        description.add("function", node.py_func)
    elif isinstance(node, types.FunctionType):
        description = _Description(node)
        description.add_function(node)
    else:
        description = _Description(node.__wrapped__)
        description.add("wrapper", type(node))
        description.add("literal arguments", getattr(node, "_prefer_literal", None))
        description.add("function", node.__wrapped__)
    return "".join(description.parts), tuple(description.references)


class _Description:
    """Collects the text for one function and the functions that it refers to."""

    def __init__(self, function: types.FunctionType) -> None:
        self._function = function
        self._names = tuple(dict.fromkeys(_names_in(function.__code__)))
        self.parts: list[str] = []
        self.references: list[Any] = []

    def add_function(self, function: types.FunctionType) -> None:
        """Adds the code, the defaults, and the values of all names that the code reads."""
        self._add_code(function.__code__)
        self.add("defaults", function.__defaults__)
        self.add("keyword defaults", function.__kwdefaults__)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self.add(name, _content(cell))
        for path, value in self._named(function.__globals__, "", set()):
            self.add(path, value)

    def add(self, path: str, value: Any) -> None:
        """Adds a value; `path` is what the code calls it."""
        self.parts.append(f"{path}=")
        self._add_value(path, value)
        self.parts.append("\n")

    def _named(self, namespace: Mapping[str, Any], prefix: str, seen: set[str]) -> Iterator[tuple[str, Any]]:
        """What the names in the code stand for in a namespace and, behind a module, in the module's.

        Attributes of other things are looked up too, where they are called as a global is: a dependency too many.
        """
        for name in self._names:
            if name not in namespace:
                continue
            value = namespace[name]
            if not isinstance(value, types.ModuleType):
                yield prefix + name, value
            elif value.__name__.partition(".")[0] not in _LIBRARIES and value.__name__ not in seen:
                seen.add(value.__name__)
                yield from self._named(vars(value), f"{prefix}{name}.", seen)

    def _add_code(self, code: types.CodeType) -> None:
        constants = code.co_consts
        if constants and isinstance(constants[0], str) and not _loads_first_constant(code.co_code):
            constants = constants[1:]
        self.parts.append(
            f"code {code.co_code!r} {code.co_exceptiontable!r} {code.co_flags} {code.co_argcount} "
            f"{code.co_posonlyargcount} {code.co_kwonlyargcount} {code.co_names} {code.co_varnames} "
            f"{code.co_freevars} {code.co_cellvars} "
        )
        self._add_items("constants", constants)

    def _add_items(self, path: str, values: Iterable[Any]) -> None:
        self.parts.append("(")
        for value in values:
            self._add_value(path, value)
            self.parts.append(",")
        self.parts.append(")")

    def _add_value(self, path: str, value: Any) -> None:
        parts = self.parts
        library_name = _library_name(value)
        if library_name is not None:
            parts.append(library_name)
        elif isinstance(value, types.CodeType):
            self._add_code(value)
        elif isinstance(value, Dispatcher | types.FunctionType):
            parts.append("@")
            self.references.append(value)
        elif isinstance(value, np.ndarray) and value.dtype != object:
            content = hashlib.sha256(value.tobytes()).hexdigest()
            parts.append(f"array {value.dtype!r} {value.shape} {value.strides} {content}")
        elif isinstance(value, np.generic):
            parts.append(f"scalar {value.dtype!r} {value.tobytes()!r}")
        elif value is None or value is ... or isinstance(value, bool | int | float | complex | str | bytes):
            parts.append(f"{type(value).__name__} {value!r}")
        elif isinstance(value, np.dtype | Type | ir.Type | ir.Constant):
            parts.append(f"{type(value).__name__} {value}")
        elif _is_named_tuple_class(value):
            parts.append(f"class {value.__name__} {value._fields} ")
            self._add_value(path, value._field_defaults)
        elif isinstance(value, tuple | list):
            if hasattr(value, "_fields"):
                self._add_value(path, type(value))
            self._add_items(path, value)
        elif isinstance(value, frozenset | set):
            self._add_items(path, sorted(value, key=repr))
        elif isinstance(value, dict):
            self._add_items(path, value.items())
        elif isinstance(getattr(value, "__wrapped__", None), types.FunctionType):
            parts.append("@")
            self.references.append(value)
        else:
            raise TypeError(
                f"{self._function.__module__}.{self._function.__qualname__}: {path} is of type "
                f"{type(value).__module__}.{type(value).__qualname__}, which a kernel cannot depend on; {_HELP}."
            )


def _is_named_tuple_class(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields")


def _names_in(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a function that is defined later
        return None


def _loads_first_constant(instructions: bytes) -> bool:
    return any(load in instructions for load in _LOADS_OF_FIRST_CONSTANT)


def _library_name(value: Any) -> str | None:
    """The full name of a library's function or class; None for anything else."""
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None) or (value.__name__ if isinstance(value, np.ufunc) else None)
    if isinstance(module, str) and isinstance(name, str) and module.partition(".")[0] in _LIBRARIES:
        return f"{module}.{name}"
    return None
