"""Options classes (maskmill/options.py) by name: what values an option takes, and options made of values.

Flags (flags.py), a build's file (build_options.py, yaml_text.py), manifests and the Dataflow template all read this.
"""

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeVar

from maskmill.errors import UnusableInputError
from maskmill.options import CHOICES, COMPLETED, GROUPS, HELP
from maskmill.storage import paths

T = TypeVar("T")

TRUE = ("true", "t", "1", "yes", "y")
FALSE = ("false", "f", "0", "no", "n")
OFF = "off"

# Compiled code and manifests hold whole numbers in 64 bits.
_LARGEST = 2**63 - 1
_SHOWN_CHARACTERS = 60

_ONE = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
_MANY = {int: "whole numbers separated by commas", float: "numbers separated by commas", str: "a comma list"}


@dataclasses.dataclass(frozen=True)
class Kind:
    """The values that an annotation allows: their type, fixed choices, whether None and whether a list is meant.

    can_be_off: whether False is meant, too, which `off` stands for; True then stands for the first of the choices.
    """

    type: type
    choices: tuple[Any, ...] | None = None
    optional: bool = False
    is_list: bool = False
    can_be_off: bool = False

    @property
    def is_switch(self) -> bool:
        """True if its flag may stand without a value: a truth value, or choices of which the first is then meant."""
        return self.type is bool or self.can_be_off

    @property
    def words_of_choices(self) -> tuple[str, ...]:
        """The choices as a flag has them, `off` among them; none if any value of the type is meant."""
        return ((OFF,) if self.can_be_off else ()) + tuple(map(str, self.choices or ()))

    @property
    def words(self) -> tuple[str, ...]:
        """The values of a switch as its flag may have them."""
        return (*TRUE, *FALSE, *self.words_of_choices)

    @property
    def wanted(self) -> str:
        """The values that it takes, as a sentence names them."""
        if self.choices is not None:
            return f"one of {', '.join(self.words_of_choices)}"
        return (_MANY if self.is_list else _ONE)[self.type]

    def read(self, text: str, name: str) -> Any:
        """Return the value that a flag's text means; `name` is what messages call the flag.

        Raises:
          UnusableInputError: it means none.
        """
        if not text.strip():
            raise UnusableInputError(f"{name} is empty; give a value, or leave it out.")
        try:
            value = self._parse(text)
        except ValueError:
            raise UnusableInputError(f"{name} must be {self.wanted}, not {shown(text)}.") from None
        return self.check(value, name)

    def _parse(self, text: str) -> Any:
        if self.is_list:
            one = dataclasses.replace(self, is_list=False)
            return [one._parse(part.strip()) for part in text.split(",") if part.strip()]
        if self.type is bool:
            if text.lower() not in TRUE + FALSE:
                raise ValueError(text)
            return text.lower() in TRUE
        if self.can_be_off and text.lower() in TRUE + FALSE:
            return text.lower() in TRUE
        return self.type(text)

    def check(self, value: Any, name: str) -> Any:
        """Return the value itself, with lists as tuples and numbers as floats if those are meant.

        value: as YAML gives it. name: what messages call it.

        Raises:
          UnusableInputError: the value is of another type or none of the choices, is empty or out of range.
        """
        if value is None and self.optional:
            return None
        if self.can_be_off and (value == OFF or isinstance(value, bool)):
            return (self.choices or (True,))[0] if value is True else False
        if self.is_list:
            if isinstance(value, str):
                value = [part.strip() for part in value.split(",") if part.strip()]
            if not isinstance(value, list):
                raise UnusableInputError(f"{name} must be a list, not {_typed(value)}.")
            one = dataclasses.replace(self, is_list=False)
            places = [name] if len(value) == 1 else [f"{name}[{place}]" for place in range(len(value))]
            return tuple(one.check(item, place) for place, item in zip(places, value, strict=True))
        if self.type is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST:
            value = float(value)
        if not isinstance(value, self.type) or (self.type is int and isinstance(value, bool)):
            hint = "; quote it" if self.type is str and isinstance(value, (bool, int, float)) else ""
            raise UnusableInputError(f"{name} must be {_ONE[self.type]}, not {_typed(value)}{hint}.")
        if self.choices is not None and value not in self.choices:
            hint = nearest(str(value), self.choices)
            raise UnusableInputError(f"{name} must be {self.wanted}, not {shown(value)}{hint}")
        if isinstance(value, str):
            _check_text(value, name)
        elif isinstance(value, float) and not math.isfinite(value):
            raise UnusableInputError(f"{name} must be a finite number, not {value}.")
        elif isinstance(value, int) and abs(value) > _LARGEST:
            raise UnusableInputError(f"{name} must be a whole number of at most 64 bits, not {shown(value)}.")
        return value


def _check_text(text: str, name: str) -> None:
    if not text.strip():
        raise UnusableInputError(f"{name} is empty; give a value, or leave it out.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UnusableInputError(
            f"{name}: the name {shown(text)} is not UTF-8; rename the file or directory."
        ) from None
    if "\0" in text:
        raise UnusableInputError(f"{name}: {shown(text)} has a NUL character in it, which no name has.")


def shown(value: Any) -> str:
    """Return a value in a message, cut if it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _typed(value: Any) -> str:
    return f"{shown(value)} ({type(value).__name__})"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Option:
    """An option of an options class, or of one that is nested in it.

    Attributes:
      name: of the flag, the YAML key and the manifest's entry.
      help: what a user reads of it.
      default: `dataclasses.MISSING` if it is required.
      kind: what values it takes.
      path: the names of the fields that lead to it.
      group: the heading that it stands under in --help.
    """

    name: str
    help: str
    default: Any
    kind: Kind
    path: tuple[str, ...] = ()
    group: str = ""

    @property
    def is_required(self) -> bool:
        """True if it has no default."""
        return self.default is dataclasses.MISSING

    @property
    def full_help(self) -> str:
        """Its help with the default."""
        if self.is_required:
            return f"{self.help} (required)"
        if self.default in (None, (), ""):
            return self.help
        default = ",".join(map(str, self.default)) if self.kind.is_list else self.default
        default = OFF if self.kind.can_be_off and default is False else default
        return f"{self.help} (default: {default})"


def _kind(annotation: Any, choices: tuple[Any, ...] | None = None) -> Kind:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        inner = [a for a in arguments if a is not type(None)]
        return dataclasses.replace(_kind(inner[0], choices), optional=True)
    if origin is Literal and arguments[0] is False:
        return Kind(type(arguments[1]), choices=arguments[1:], can_be_off=True)
    if origin is Literal:
        return Kind(type(arguments[0]), choices=arguments)
    if origin is tuple:
        return dataclasses.replace(_kind(arguments[0]), is_list=True)
    return Kind(annotation, choices=choices)


def options_of(options_class: type) -> Mapping[str, Option]:
    """Return the options of an options class by name, those of nested classes in their place."""
    hints = typing.get_type_hints(options_class)
    options: dict[str, Option] = {}
    groups: Mapping[str, str] = getattr(options_class, GROUPS, {})
    group = ""
    for field in dataclasses.fields(options_class):
        group = groups.get(field.name, group)
        if dataclasses.is_dataclass(hints[field.name]):
            for name, inner in options_of(hints[field.name]).items():
                options[name] = dataclasses.replace(inner, path=(field.name, *inner.path), group=inner.group or group)
        elif HELP in field.metadata:
            options[_name_of(field)] = Option(
                name=_name_of(field),
                help=field.metadata[HELP],
                default=field.default,
                kind=_kind(hints[field.name], tuple(field.metadata.get(CHOICES) or ()) or None),
                path=(field.name,),
                group=group,
            )
    return options


def _name_of(field: dataclasses.Field[Any]) -> str:
    """Return the name of a field's option: `from` of the field `from_`, because a field cannot be a keyword of
    Python.
    """
    return field.name.removesuffix("_")


def names(options_class: type) -> list[str]:
    """Return the names of an options class's options, which are its flags' names."""
    return list(options_of(options_class))


def make(options_class: type[T], values: Mapping[str, Any]) -> T:
    """Make the options of values by name; what is not among them is at its default, or follows from the others.

    Raises:
      UnusableInputError: what the checks of the class, or of one that is nested in it, refuse.
    """
    if hasattr(options_class, COMPLETED):
        values = getattr(options_class, COMPLETED)(values)
    hints = typing.get_type_hints(options_class)
    arguments: dict[str, Any] = {}
    for field in dataclasses.fields(options_class):  # type: ignore[arg-type]
        if dataclasses.is_dataclass(hints[field.name]):
            arguments[field.name] = make(hints[field.name], values)
        elif _name_of(field) in values:
            arguments[field.name] = paths.as_written(values[_name_of(field)])
    return options_class(**arguments)


def parameters(options: Any, *, without: Iterable[str] = ("output",)) -> dict[str, Any]:
    """Return the values of all options by name, as a manifest holds them: all but the place of the output.

    The options of a mix stand under the names of its sources.
    """
    own = getattr(options, "parameters", None)
    if own is not None:
        return dict(own)
    return {
        name: functools.reduce(getattr, option.path, options)
        for name, option in options_of(type(options)).items()
        if name not in without
    }


def changed(options: T, values: Mapping[str, Any]) -> T:
    """Return the options with other values, by name; names that the class does not have are passed over.

    Raises:
      UnusableInputError: what the checks of the class refuse.
    """
    known = options_of(type(options))
    for name, value in values.items():
        if name in known:
            options = _with_value(options, known[name].path, value)
    return options


def _with_value(options: Any, path: tuple[str, ...], value: Any) -> Any:
    name, *rest = path
    own = _with_value(getattr(options, name), tuple(rest), value) if rest else value
    return dataclasses.replace(options, **{name: own})


def option_defaults(options: Any, *, without: Iterable[str] = ("output",)) -> dict[str, Any]:
    """Return the defaults by name, of the options that have one.

    options: a class of options, or options of one; of a mix the latter.
    """
    if not isinstance(options, type):
        own = getattr(options, "defaults", None)
        if own is not None:
            return dict(own)
        options = type(options)
    options = options_of(options).items()
    return {name: option.default for name, option in options if name not in without and not option.is_required}


def from_flags(options_class: type[T], given: Mapping[str, Any]) -> T:
    """Make the options of the values of flags by name; flags of others may be among them.

    Raises:
      UnusableInputError: required flags are missing, or what the options' own checks refuse.
    """
    known = options_of(options_class)
    missing = [option for name, option in known.items() if option.is_required and name not in given]
    if len(missing) == 1:
        raise UnusableInputError(f"--{missing[0].name} is missing: {missing[0].help}.")
    if missing:
        named = [f"--{option.name} ({option.help})" for option in missing]
        raise UnusableInputError(f"{', '.join(named[:-1])} and {named[-1]} are missing.")
    return make(options_class, given)


def from_mapping(
    options_class: type[T], mapping: Any, *, where: str, label: Callable[[str], str] | None = None, **fixed: Any
) -> T:
    """Make the options from a section of a build's file.

    Args:
      options_class: the options' class.
      mapping: what YAML gave for the section; None for an empty one. A required option that is None is missing.
      where: names the section in messages, like `build.yaml: extract`.
      label: what messages call an option of the section; None: `where.NAME`.
      fixed: values that the section cannot give otherwise.

    Raises:
      UnusableInputError: an unknown key, a wrong type, a missing key, or what the options' own checks refuse.
    """
    mapping = as_mapping(mapping, where=where)
    label = label or (lambda name: f"{where}.{name}")
    options = options_of(options_class)
    known = {name: option for name, option in options.items() if name not in fixed}
    values: dict[str, Any] = {}
    for key, value in mapping.items():
        if key in fixed and key in options:
            # What --print_config prints for an option may stand there.
            if value is None or options[key].kind.check(value, label(key)) == fixed[key]:
                continue
            raise UnusableInputError(f"{label(key)}: a build decides this itself; leave it out.")
        if key not in known:
            raise UnusableInputError(f"{label(str(key))}: there is no such option{nearest(str(key), known)}")
        if value is not None or not known[key].is_required:
            values[key] = known[key].kind.check(value, label(key))
    for name, option in known.items():
        if option.is_required and name not in values:
            raise UnusableInputError(f"{label(name)} is missing: {option.help}.")
    try:
        return make(options_class, values | fixed)
    except UnusableInputError as error:
        raise UnusableInputError(f"{where}: {error}") from None


def as_mapping(value: Any, *, where: str) -> dict[Any, Any]:
    """Return a section of a build's file as a mapping; an empty section has no options.

    Raises:
      UnusableInputError: it is something else.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UnusableInputError(f"{where} must be a mapping of options to values, not {_typed(value)}.")
    return value


def nearest(name: str, known: Iterable[Any], *, prefix: str = "", otherwise: str = "", cutoff: float = 0.6) -> str:
    """Return how a sentence ends about a name that nobody knows: `; did you mean X?` for the nearest of the known ones.

    prefix: goes in front of the nearest. otherwise: the end, without its full stop, if none is near. cutoff: how near
    it must be, as difflib counts.
    """
    import difflib

    found = difflib.get_close_matches(name, list(map(str, known)), n=1, cutoff=cutoff)
    return f"; did you mean {prefix}{found[0]}?" if found else f"{otherwise}."
