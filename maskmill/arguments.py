"""Compares what a caller gives with annotations: a value of a wrong type gets one sentence, before any work.

A function of the API is marked with `checked`, an options class calls `check_fields`. Neither imports NumPy or Beam.
"""

import dataclasses
import difflib
import functools
import inspect
import numbers
import reprlib
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, ParamSpec, TypeVar

from maskmill.errors import UnusableInputError
from maskmill.options import hints_of

_P = ParamSpec("_P")
_R = TypeVar("_R")

# How a wanted type is called if its name does not say it, and what is taken for it: NumPy's numbers, too.
_WORDS: Mapping[Any, str] = {float: "a number", bool: "True or False", types.NoneType: "None"}
_TAKEN: Mapping[Any, type] = {int: numbers.Integral, float: numbers.Real}


def checked(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Mark a function of `maskmill` whose arguments are compared with its annotations at each call.

    The function raises UnusableInputError for an argument that it does not have, one that is missing, and one of a
    wrong type.
    """

    @functools.wraps(function)
    def checking(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        _check_call(function, args, kwargs)
        return function(*args, **kwargs)

    return checking


def _check_call(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    name, signature = f"maskmill.{function.__name__}", inspect.signature(function)
    for given in kwargs:
        if given not in signature.parameters:
            nearest = difflib.get_close_matches(given, signature.parameters, n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else f"help({name}) lists those that there are."
            raise UnusableInputError(f"{name}: there is no option {given}; {hint}")
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        wrong = str(error).replace("keyword-only ", "")  # which Python says from 3.12 on
        raise UnusableInputError(f"{name}: {wrong}; help({name}) says what it takes.") from None
    hints = typing.get_type_hints(function)
    for argument, value in bound.arguments.items():
        _check(name, argument, value, hints[argument])


def check_fields(options: Any) -> None:
    """Compare the fields of options with their annotations.

    Raises:
      UnusableInputError: a value has another type, or is not one of the choices of a Literal.
    """
    hints = hints_of(type(options))
    for field in dataclasses.fields(options):
        _check(type(options).__name__, field.name, getattr(options, field.name), hints[field.name])


def check_at_least(least: int, options: Any, *names: str) -> None:
    """Check these fields, but for those that are None.

    Raises:
      UnusableInputError: a value is less than `least`.
    """
    for name in names:
        value = getattr(options, name)
        if value is not None and value < least:
            raise UnusableInputError(f"--{name} must be {least} or more, not {value}.")


def _check(where: str, name: str, value: Any, hint: Any) -> None:
    if fits(value, hint):
        return
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Sequence and isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for place, item in enumerate(value):
            _check(where, f"{name}[{place}]", item, inner[0])
    choices = [
        choice for one in _alternatives(hint) for choice in typing.get_args(one) if typing.get_origin(one) is Literal
    ]
    if choices and isinstance(value, str):
        raise UnusableInputError(f"{name} is {value!r}; it must be one of {', '.join(map(str, choices))}.")
    kind = "" if value is None else f", {_called(type(value))}"
    raise UnusableInputError(f"{where}: {name} is {reprlib.repr(value)}{kind}; give {_described(hint)}.")


def _alternatives(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union; any other type is the only one."""
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of an annotated type. A list counts as a tuple, and no truth value as a number."""
    alternatives, origin, inner = _alternatives(hint), typing.get_origin(hint), typing.get_args(hint)
    if len(alternatives) > 1:
        return any(fits(value, one) for one in alternatives)
    if origin is Literal:
        return value in inner
    if origin is tuple and inner[1:] != (Ellipsis,):
        return isinstance(value, tuple | list) and len(value) == len(inner) and all(map(fits, value, inner))
    if origin in (tuple, Sequence):
        return (
            isinstance(value, Sequence)
            and not isinstance(value, str | bytes)
            and all(fits(item, inner[0]) for item in value)
        )
    if hint in _TAKEN and isinstance(value, bool):
        return False
    return hint is Any or isinstance(value, _TAKEN.get(hint, origin or hint))


def _described(hint: Any) -> str:
    """Return a type in words."""
    origin, inner, alternatives = typing.get_origin(hint), typing.get_args(hint), _alternatives(hint)
    if len(alternatives) > 1:
        words = [_described(one) for one in alternatives]
        return f"{', '.join(words[:-1])} or {words[-1]}"
    if origin is Literal:
        return f"one of {', '.join(map(str, inner))}"
    if origin is tuple and inner[1:] != (Ellipsis,):
        return f"a tuple ({', '.join(map(_described, inner))})"
    if origin in (tuple, Sequence):
        return f"a list [{_described(inner[0])}, …]"
    return _WORDS.get(hint) or _called(origin or hint)


def _called(kind: type) -> str:
    return f"{'an' if kind.__name__[0].lower() in 'aeiou' else 'a'} {kind.__name__}"
