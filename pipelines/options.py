"""One description of an option serves its flag, its key in a build's YAML file and its line in --print_config.

Options are frozen, keyword-only dataclasses whose fields are made by `option`. Flags take argparse's forms and
absl's: `--x 3`, `--x=3`, `--flag`, `--flag=True`, `--noflag`; a flag is never abbreviated.
"""

import argparse
import dataclasses
import difflib
import functools
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from transforms.errors import UnusableInputError

T = TypeVar("T")

_TRUE = ("true", "t", "1", "yes", "y")
_FALSE = ("false", "f", "0", "no", "n")


def option(default: Any = dataclasses.MISSING, *, help: str) -> Any:
    """A field of an options class. Without a default it is required."""
    return dataclasses.field(default=default, metadata={"help": help})


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
class _Kind:
    """What an annotation allows: the values' type, fixed choices, whether None and whether a list is meant."""

    type: type
    choices: tuple[Any, ...] | None = None
    optional: bool = False
    is_list: bool = False


def _kind(annotation: Any) -> _Kind:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        inner = [a for a in arguments if a is not type(None)]
        return dataclasses.replace(_kind(inner[0]), optional=True)
    if origin is Literal:
        return _Kind(type(arguments[0]), choices=arguments)
    if origin is tuple:
        return dataclasses.replace(_kind(arguments[0]), is_list=True)
    return _Kind(annotation)


def _kinds(options_class: type) -> dict[str, tuple[dataclasses.Field[Any], _Kind]]:
    hints = typing.get_type_hints(options_class)
    return {f.name: (f, _kind(hints[f.name])) for f in dataclasses.fields(options_class)}


def field_names(options_class: type) -> list[str]:
    """The names of an options class's fields, which are its flags' names."""
    return list(_kinds(options_class))


def add_flags(parser: argparse.ArgumentParser, options_class: type, *, skip: Iterable[str] = ()) -> None:
    """Adds a flag for each field of an options class."""
    for name, (field, kind) in _kinds(options_class).items():
        if name in skip:
            continue
        required = field.default is dataclasses.MISSING
        text = field.metadata["help"].replace("%", "%%")
        if required:
            text += " (required)"
        elif field.default not in (None, (), ""):
            default: Any = field.default
            shown = ",".join(map(str, default)) if kind.is_list else default
            text += f" (default: {shown})"
        arguments: dict[str, Any] = {
            "dest": name,
            "default": argparse.SUPPRESS,
            "help": text,
        }
        if kind.is_list:
            arguments |= {"type": functools.partial(_split, kind.type), "metavar": "A,B"}
        elif kind.type is bool:
            arguments |= {"type": parse_boolean, "metavar": "BOOL"}
        else:
            arguments |= {"type": kind.type, "choices": kind.choices}
            if kind.choices is None:
                arguments["metavar"] = {int: "N", float: "F"}.get(kind.type, "S")
        parser.add_argument(f"--{name}", **arguments)


def _split(element: type, text: str) -> tuple[Any, ...]:
    try:
        return tuple(element(part.strip()) for part in text.split(",") if part.strip())
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a comma list of {element.__name__} values") from None


def from_flags(options_class: type[T], namespace: argparse.Namespace, **fixed: Any) -> T:
    """Makes the options from what argparse read.

    Raises:
      UnusableInputError: a required flag is missing, or what the options' own checks refuse.
    """
    given = {n: getattr(namespace, n) for n in field_names(options_class) if hasattr(namespace, n)}
    for name, (field, _) in _kinds(options_class).items():
        if field.default is dataclasses.MISSING and name not in given and name not in fixed:
            raise UnusableInputError(f"--{name} is missing: {field.metadata['help']}.")
    return options_class(**(given | fixed))


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
    kinds = {n: v for n, v in _kinds(options_class).items() if n not in fixed}
    values: dict[str, Any] = {}
    for key, value in mapping.items():
        if key not in kinds:
            raise UnusableInputError(f"{where}.{key}: there is no such option{nearest(str(key), kinds)}.")
        values[key] = _typed(value, kinds[key][1], f"{where}.{key}")
    for name, (field, _) in kinds.items():
        if field.default is dataclasses.MISSING and name not in values:
            raise UnusableInputError(f"{where}.{name} is missing: {field.metadata['help']}.")
    return options_class(**(values | fixed))


def _typed(value: Any, kind: _Kind, where: str) -> Any:
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


def describe(options_class: type, *, skip: Iterable[str] = (), indent: str = "  ") -> str:
    """The section of a YAML file that holds every default, each with a comment."""
    lines = []
    for name, (field, kind) in _kinds(options_class).items():
        if name in skip:
            continue
        help_text = field.metadata["help"]
        choices = f" [{'|'.join(map(str, kind.choices))}]" if kind.choices else ""
        lines.append(f"{indent}# {help_text}{choices}")
        if field.default is dataclasses.MISSING:
            lines.append(f"{indent}{name}:")
        else:
            lines.append(f"{indent}{name}: {_yaml(field.default)}")
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
