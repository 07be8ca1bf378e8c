"""Texts of data sets, made safe and short for terminals and pages: they may come from anybody."""

import json
import re
import unicodedata
from typing import Any

# What is not shown as it is, because it changes how the text around it is shown, or cannot be seen: controls (escapes
# of terminals are made of them), marks and orders of direction, other invisible characters, line separators, halves
# of surrogates and places that are not characters. Joiners within words (U+200C, U+200D) stay: Persian needs them.
_HOSTILE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\ud800-\udfff\U000e0000-\U000e0fff]"
)
_NAMED = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}
_MOST_MARKS = 8  # accents on one character; more of them are written over the lines above
_MARKS = re.compile(
    rf"[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f]{{{_MOST_MARKS + 1},}}"
)
_TWO_DIGITS, _FOUR_DIGITS = 0x100, 0x10000


def shown(text: str, most: int | None = None) -> str:
    r"""Return a text with controls, marks of direction and such as escapes (\x1b, \u202e), on one line.

    most: how many of its characters are shown; if it has more, "…" and their number stand after them.
    """
    left = 0
    if most is not None and len(text) > most:
        text, left = text[:most], len(text) - most
    if not text.isascii() or not text.isprintable():
        text = _MARKS.sub(lambda found: found.group()[:_MOST_MARKS] + "…", _HOSTILE.sub(_escaped, text))
    return f"{text}… ({left:,} more characters)" if left else text


def _escaped(found: re.Match[str]) -> str:
    character = found.group()
    point = ord(character)
    if character in _NAMED:
        return _NAMED[character]
    if point < _TWO_DIGITS:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < _FOUR_DIGITS else f"\\U{point:08x}"


def as_json(value: Any, *, indent: int | None = None) -> str:
    r"""Return a value as JSON whose strings have characters that are not safe to print as escapes (\u202e)."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    # Outside of strings JSON has no such characters but the newlines of an indent.
    return _HOSTILE.sub(lambda found: found.group() if found.group() == "\n" else _json_escape(found.group()), text)


def _json_escape(character: str) -> str:
    return json.dumps(character)[1:-1] if ord(character) > 0x7F else f"\\u{ord(character):04x}"


def columns_of(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) != 0 for character in text)
