"""Options classes (transforms/options.py) as flags, as sections of a YAML file, and as a manifest's parameters.

Flags take argparse's forms and absl's: `--x 3`, `--x=3`, `--flag`, `--flag=True`, `--noflag`; a flag is never
abbreviated.
"""

import argparse
import dataclasses
import difflib
import functools
import types
import typing
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from transforms.errors import UnusableInputError
from transforms.options import HELP

T = TypeVar("T")

_TRUE = ("true", "t", "1", "yes", "y")
_FALSE = ("false", "f", "0", "no", "n")


def parse_boolean(text: str) -> bool:
    """Reads `True`, `false`, `1`, `no` and the like, as absl does.

    Raises:
      argparse.ArgumentTypeError: it is none of these.
    """
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")


@dataclasses.dataclass(frozen=True)
class Kind:
    """What an annotation allows: the values' type, fixed choices, whether None and whether a list is meant."""

    type: type
    choices: tuple[Any, ...] | None = None
    optional: bool = False
    is_list: bool = False

    def read(self, text: str) -> Any:
        """The value that a flag's text means.

        Raises:
          ValueError, argparse.ArgumentTypeError: it means none.
        """
        if self.is_list:
            one = dataclasses.replace(self, is_list=False)
            return tuple(one.read(part.strip()) for part in text.split(",") if part.strip())
        return parse_boolean(text) if self.type is bool else self.type(text)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Option:
    """An option of an options class, or of one that is nested in it.

    Attributes:
      name: of the flag, the YAML key and the manifest's entry.
      help: what a user reads of it.
      default: `dataclasses.MISSING` where it is required.
      kind: what values it takes.
      path: the names of the fields that lead to it.
    """

    name: str
    help: str
    default: Any
    kind: Kind
    path: tuple[str, ...]

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is dataclasses.MISSING

    @property
    def full_help(self) -> str:
        """Its help with the default."""
        if self.is_required:
            return f"{self.help} (required)"
        if self.default in (None, (), ""):
            return self.help
        shown = ",".join(map(str, self.default)) if self.kind.is_list else self.default
        return f"{self.help} (default: {shown})"


def _kind(annotation: Any) -> Kind:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        inner = [a for a in arguments if a is not type(None)]
        return dataclasses.replace(_kind(inner[0]), optional=True)
    if origin is Literal:
        return Kind(type(arguments[0]), choices=arguments)
    if origin is tuple:
        return dataclasses.replace(_kind(arguments[0]), is_list=True)
    return Kind(annotation)


def options_of(options_class: type) -> Mapping[str, Option]:
    """The options of an options class by name, those of nested classes in their place."""
    hints = typing.get_type_hints(options_class)
    options: dict[str, Option] = {}
    for field in dataclasses.fields(options_class):
        if dataclasses.is_dataclass(hints[field.name]):
            for name, inner in options_of(hints[field.name]).items():
                options[name] = dataclasses.replace(inner, path=(field.name, *inner.path))
        elif HELP in field.metadata:
            options[field.name] = Option(
                name=field.name,
                help=field.metadata[HELP],
                default=field.default,
                kind=_kind(hints[field.name]),
                path=(field.name,),
            )
    return options


def names(options_class: type) -> list[str]:
    """The names of an options class's options, which are its flags' names."""
    return list(options_of(options_class))


def make(options_class: type[T], values: Mapping[str, Any]) -> T:
    """Makes the options of values by name; what is not among them is at its default.

    Raises:
      UnusableInputError: what the checks of the class, or of one that is nested in it, refuse.
    """
    hints = typing.get_type_hints(options_class)
    arguments: dict[str, Any] = {}
    for field in dataclasses.fields(options_class):  # type: ignore[arg-type]
        if dataclasses.is_dataclass(hints[field.name]):
            arguments[field.name] = make(hints[field.name], values)
        elif field.name in values:
            arguments[field.name] = values[field.name]
    return options_class(**arguments)


def parameters(options: Any, *, without: Iterable[str] = ("output",)) -> dict[str, Any]:
    """The values of all options by name, as a manifest holds them: all but the place of the output."""
    return {
        name: functools.reduce(getattr, option.path, options)
        for name, option in options_of(type(options)).items()
        if name not in without
    }


def option_defaults(options_class: type, *, without: Iterable[str] = ("output",)) -> dict[str, Any]:
    """The defaults by name, of the options that have one."""
    options = options_of(options_class).items()
    return {name: option.default for name, option in options if name not in without and not option.is_required}


def add_flags(parser: argparse.ArgumentParser, options_class: type) -> None:
    """Adds a flag for each option of an options class."""
    for name, option in options_of(options_class).items():
        kind = option.kind
        arguments: dict[str, Any] = {
            "dest": name,
            "default": argparse.SUPPRESS,
            "help": option.full_help.replace("%", "%%"),
        }
        if kind.is_list:
            arguments |= {"type": functools.partial(_read_list, kind), "metavar": "A,B"}
        elif kind.type is bool:
            arguments |= {"type": parse_boolean, "metavar": "BOOL"}
        else:
            arguments |= {"type": kind.type, "choices": kind.choices}
            if kind.choices is None:
                arguments["metavar"] = {int: "N", float: "F"}.get(kind.type, "S")
        parser.add_argument(f"--{name}", **arguments)


def _read_list(kind: Kind, text: str) -> Any:
    try:
        return kind.read(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a comma list of {kind.type.__name__} values") from None


def from_flags(options_class: type[T], namespace: argparse.Namespace) -> T:
    """Makes the options from what argparse read.

    Raises:
      UnusableInputError: a required flag is missing, or what the options' own checks refuse.
    """
    known = options_of(options_class)
    given = {name: getattr(namespace, name) for name in known if hasattr(namespace, name)}
    for name, option in known.items():
        if option.is_required and name not in given:
            raise UnusableInputError(f"--{name} is missing: {option.help}.")
    return make(options_class, given)


def from_mapping(options_class: type[T], mapping: Any, *, where: str, **fixed: Any) -> T:
    """Makes the options from a section of a YAML file.

    Args:
      options_class: the options' class.
      mapping: what YAML gave for the section; None for an empty one.
      where: names the section in messages, like `build.yaml: extract`.
      fixed: values that the section cannot give.

    Raises:
      UnusableInputError: an unknown key, a wrong type, a missing key, or what the options' own checks refuse.
    """
    mapping = {} if mapping is None else mapping
    if not isinstance(mapping, dict):
        raise UnusableInputError(f"{where} must be a mapping of options to values, not {_shown(mapping)}.")
    known = {name: option for name, option in options_of(options_class).items() if name not in fixed}
    values: dict[str, Any] = {}
    for key, value in mapping.items():
        if key not in known:
            raise UnusableInputError(f"{where}.{key}: there is no such option{nearest(str(key), known)}.")
        values[key] = _typed(value, known[key].kind, f"{where}.{key}")
    for name, option in known.items():
        if option.is_required and name not in values:
            raise UnusableInputError(f"{where}.{name} is missing: {option.help}.")
    return make(options_class, values | fixed)


def _typed(value: Any, kind: Kind, where: str) -> Any:
    if value is None and kind.optional:
        return None
    if kind.is_list:
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",") if part.strip()]
        if not isinstance(value, list):
            raise UnusableInputError(f"{where} must be a list, not {_shown(value)}.")
        one = dataclasses.replace(kind, is_list=False)
        return tuple(_typed(v, one, f"{where}[{i}]") for i, v in enumerate(value))
    if kind.type is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind.type) or (kind.type is int and isinstance(value, bool)):
        wanted = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}[kind.type]
        raise UnusableInputError(f"{where} must be {wanted}, not {_shown(value)}.")
    if kind.choices is not None and value not in kind.choices:
        raise UnusableInputError(f"{where} must be one of {', '.join(kind.choices)}, not {_shown(value)}.")
    return value


def _shown(value: Any) -> str:
    return f"{value!r} ({type(value).__name__})"


def describe(options_class: type, *, skip: Container[str] = (), indent: str = "  ") -> str:
    """The section of a YAML file that holds every default, each with a comment."""
    lines = []
    for name, option in options_of(options_class).items():
        if name in skip:
            continue
        choices = f" [{'|'.join(map(str, option.kind.choices))}]" if option.kind.choices else ""
        lines.append(f"{indent}# {option.help}{choices}")
        lines.append(f"{indent}{name}:" if option.is_required else f"{indent}{name}: {_yaml(option.default)}")
    return "\n".join(lines)


def _yaml(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(_yaml(v) for v in value) + "]"
    if isinstance(value, str):
        plain = value and all(c.isalnum() or c in "-_./" for c in value) and not value[0].isdigit()
        return value if plain else f"'{value}'"
    return str(value)


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean X` for the known name nearest to an unknown one, or nothing."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {found[0]}" if found else ""


def absl_forms(parser: argparse.ArgumentParser, argv: Sequence[str]) -> list[str]:
    """Rewrites absl's forms into argparse's: `--f` to `--f=true`, `--nof` to `--f=false`, `-x=3` to `--x=3`."""
    names = {s[2:]: a for a in parser._actions for s in a.option_strings if s.startswith("--")}
    booleans = {n for n, a in names.items() if a.type is parse_boolean}
    out: list[str] = []
    for index, argument in enumerate(argv):
        if argument == "--":
            return out + list(argv[index:])
        flag, equals, _ = argument.partition("=")
        if flag.startswith("-") and not flag.startswith("--") and flag[1:] in names and len(flag) > 2:
            flag, argument = "-" + flag, "-" + argument
        name = flag[2:] if flag.startswith("--") else ""
        if not equals and name in booleans:
            argument = f"--{name}=true"
        elif not equals and name.startswith("no") and name[2:] in booleans:
            argument = f"--{name[2:]}=false"
        out.append(argument)
    return out


def parse(
    parser: argparse.ArgumentParser,
    argv: Sequence[str],
    other_flags: Callable[[], Mapping[str, bool]] | None = None,
) -> tuple[argparse.Namespace, list[str]]:
    """Parses a command line; flags that the parser does not know must be known to Beam.

    Args:
      parser: made with allow_abbrev=False.
      argv: the arguments after the subcommand.
      other_flags: gives Beam's flags, each with whether it takes a value; called only when a flag is unknown.
        None where the command takes none of Beam's.

    Returns:
      What the parser read, and the arguments that go to Beam.

    Raises:
      UnusableInputError: a flag that neither knows, with the nearest name.
    """
    namespace, rest = parser.parse_known_args(absl_forms(parser, argv))
    if not rest:
        return namespace, []
    known = dict(other_flags()) if other_flags else {}
    own = [s[2:] for a in parser._actions for s in a.option_strings if s.startswith("--")]
    passed: list[str] = []
    takes_value = False
    for argument in rest:
        if takes_value and not argument.startswith("--"):
            passed.append(argument)
            takes_value = False
            continue
        name, equals, _ = argument.partition("=")
        bare = name[2:] if name.startswith("--") else ""
        if bare not in known:
            if not name.startswith("-"):
                raise UnusableInputError(f"{argument}: this argument belongs to no flag; see --help.")
            hint = nearest(name.lstrip("-"), [*own, *known])
            raise UnusableInputError(f"{name}: there is no such flag{hint.replace('mean ', 'mean --')}.")
        passed.append(argument)
        takes_value = known[bare] and not equals
    return namespace, passed
