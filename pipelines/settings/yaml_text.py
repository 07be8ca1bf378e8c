"""YAML by the rules of YAML 1.2's core schema, as far as a build's file needs it, and strictly.

PyYAML reads YAML 1.1, where `5e-05` is text, `no` is false, `0123` is 83, `12:30` is 750 and `2024-05-01` is a date,
and where the last of two equal keys counts. Here scanner and parser are PyYAML's, while what a plain value means, and
which documents are taken at all, is decided below: no key twice, no tag of its own, no document that is deep or long,
and aliases only for single values, so that a short text cannot stand for an endless one.
"""

import math
import re
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from maskmill.errors import UnusableInputError
from maskmill.storage import files

# A build with a comment for every option has 12 kB and three levels.
_LARGEST = 128 << 10
_DEEPEST = 16

_TAG = "tag:yaml.org,2002:"
_NULL, _BOOL, _INT, _FLOAT, _TEXT = (_TAG + name for name in ("null", "bool", "int", "float", "str"))
# The core schema: YAML 1.2.2, section 10.3.2.
_PLAIN = {
    _NULL: r"null|Null|NULL|~|",
    _BOOL: r"true|True|TRUE|false|False|FALSE",
    _INT: r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
    _FLOAT: r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
}


class _Refused(Exception):
    """An error for YAML that is no part of a build; `place` is a node or an event."""

    def __init__(self, place: Any, problem: str) -> None:
        super().__init__(problem)
        self.line = place.start_mark.line + 1
        self.problem = problem


class Mapping(dict[Any, Any]):
    """A mapping that knows where it was read.

    Attributes:
      lines: the line of each key, from 1.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[Any, int] = {}


def read(path: str) -> Any:
    """Return the content of a YAML file: None, booleans, numbers, texts, lists and `Mapping`s.

    Raises:
      UnusableInputError: it cannot be read, is not UTF-8, is too long for a build, or is not YAML; the message names
        the line.
    """
    with files.open_input(path) as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise UnusableInputError(
            f"{path}: this file is longer than any build ({_LARGEST >> 10} KiB); give the YAML file of a build, which "
            "maskmill build --print_config shows."
        )
    return parse(content, where=path)


def parse(content: bytes, *, where: str) -> Any:
    """As `read`, of bytes; `where` names them in messages."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UnusableInputError(f"{where}, line {line}: this is not UTF-8 text; save the file as UTF-8.") from None
    try:
        node = _Loader(text).get_single_node()
        return None if node is None else _value(node)
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise UnusableInputError(
            f"{where}, line {line}: this is not YAML (it has the control character U+{error.character:04X})."
        ) from None
    except _Refused as error:
        raise UnusableInputError(f"{where}, line {error.line}: {error.problem}.") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f", line {mark.line + 1}" if mark is not None else ""
        if error.problem == "but found another document":
            raise UnusableInputError(
                f"{where}{place}: a second document begins here, and a file holds one; take it into a file of its own."
            ) from None
        problem = error.problem or error.context
        hint = "; indent with spaces, not tabs" if "'\\t'" in str(problem) else ""
        raise UnusableInputError(f"{where}{place}: this is not YAML ({problem}){hint}.") from None


def write(value: Any) -> str:
    """Return the text of a single value, or of a list of those, that reads back as the same value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(write, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else f"{'-' if value < 0 else ''}.inf"
    if isinstance(value, str):
        if re.fullmatch(r"[A-Za-z./][\w./-]*", value, re.ASCII) and _Loader("").resolve_plain(value) == _TEXT:
            return value
        return yaml.dump(value, Dumper=yaml.SafeDumper, default_style='"', allow_unicode=True, width=math.inf).strip()
    return repr(value)


class _Loader(Reader, Scanner, Parser, Composer, BaseResolver):
    """PyYAML's way from text to nodes, with the core schema and our limits."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        BaseResolver.__init__(self)
        self._depth = 0

    def resolve_plain(self, text: str) -> str:
        """Return the tag of a plain scalar."""
        return str(self.resolve(ScalarNode, text, (True, False)))  # type: ignore[no-untyped-call]

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        """Return a node and what is in it; refuses what is too deep, and aliases for more than a single value."""
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call]
            if isinstance(self.anchors.get(event.anchor), (MappingNode, SequenceNode)):
                raise _Refused(event, "an alias can only stand for a single value here")
        if self._depth == _DEEPEST:
            place = self.peek_event()  # type: ignore[no-untyped-call]
            raise _Refused(place, "this is nested deeper than any build")
        self._depth += 1
        node: Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node


for _tag, _pattern in _PLAIN.items():
    _Loader.add_implicit_resolver(_tag, re.compile(rf"(?:{_pattern})\Z"), None)


def _value(node: Node) -> Any:
    """Return the value of a node."""
    if isinstance(node, ScalarNode):
        return _scalar(node)
    if isinstance(node, SequenceNode) and node.tag == _TAG + "seq":
        return [_value(item) for item in node.value]
    if not isinstance(node, MappingNode) or node.tag != _TAG + "map":
        raise _Refused(node, f"the tag {node.tag.replace(_TAG, '!!')} has no meaning in a build")
    mapping = Mapping()
    for key_node, value_node in node.value:
        if not isinstance(key_node, ScalarNode):
            raise _Refused(key_node, "a list or a mapping cannot be a key")
        key, line = _scalar(key_node), key_node.start_mark.line + 1
        if key in mapping:
            raise _Refused(
                key_node, f"the key {key!r} was given in line {mapping.lines[key]} already; keep one of them"
            )
        mapping[key] = _value(value_node)
        mapping.lines[key] = line
    return mapping


def _scalar(node: ScalarNode) -> Any:
    text = str(node.value)
    try:
        if node.tag == _NULL:
            return None
        if node.tag == _BOOL and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if node.tag == _INT:
            return int(text[2:], {"o": 8, "x": 16}[text[1]]) if text[1:2] in ("o", "x") else int(text)
        if node.tag == _FLOAT:
            # Python writes infinity and NaN without the point.
            return float(re.sub(r"\.(?=[iInN])", "", text))
    except ValueError:
        raise _Refused(node, f"{text[:20]!r} is no such number, or too long") from None
    if node.tag != _TEXT:
        raise _Refused(node, f"the tag {node.tag.replace(_TAG, '!!')} has no meaning in a build")
    return text
