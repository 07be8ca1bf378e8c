"""The declaration of the options of a step or stage: once, with what a user reads of them.

Options are frozen, keyword-only dataclasses. A field made by `option` is a flag, a key of a build's YAML file and an
entry of the manifest at once (pipelines/settings/options.py makes these of it); if its name is a keyword of Python,
the field has an underscore after it (`from_`). A field made by `nested` holds the options of a step; its fields count
as if they stood in its place. A plain field is internal: users cannot set it. A class with many options groups them for
`--help`: its `GROUPS` names the first option of each group. If defaults depend on what was given, a class method
`completed` takes the given values by name and returns them with those that follow from them.

Modules that declare options import neither NumPy nor Beam, so that `--help` answers at once.
"""

import dataclasses
import typing
from collections.abc import Collection, Mapping
from typing import Any, Literal, TypeVar

_Options = TypeVar("_Options")

HELP, CHOICES = "help", "choices"

# An options class may have a mapping of this name, from the first option of each group to its heading in --help.
GROUPS = "GROUPS"
# An options class may have a class method of this name, which adds to the given values what follows from them.
COMPLETED = "completed"


def option(default: Any = dataclasses.MISSING, *, help: str, choices: Collection[Any] | None = None) -> Any:
    """Return a field that a user sets. Without a default it is required.

    choices: the values that it takes, if its annotation, which may be a Literal, cannot say them; more may become known
      while the program runs.
    """
    return dataclasses.field(default=default, metadata={HELP: help, CHOICES: choices})


def hints_of(options_class: type) -> dict[str, Any]:
    """Return the annotations of an options class by field; that of one with choices of its own has them as a
    Literal.
    """
    hints = typing.get_type_hints(options_class)
    for field in dataclasses.fields(options_class):
        if field.metadata.get(CHOICES) is not None:
            chosen: Any = Literal[tuple(field.metadata[CHOICES])]
            hints[field.name] = chosen | None if type(None) in typing.get_args(hints[field.name]) else chosen
    return hints


def nested(options_class: type) -> Any:
    """Return a field that holds the options of a step, all at their defaults unless they are given."""
    return dataclasses.field(default_factory=options_class)


def of_parameters(kind: type[_Options], parameters: Mapping[str, Any]) -> _Options:
    """Return options from a manifest's parameters, nested ones too; those that it does not have keep their defaults.

    Raises:
      UnusableInputError: a value cannot be meant.
    """
    values: dict[str, Any] = {}
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        if dataclasses.is_dataclass(hints[field.name]):
            values[field.name] = of_parameters(hints[field.name], parameters)
        elif field.name in parameters:
            value = parameters[field.name]
            values[field.name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)
