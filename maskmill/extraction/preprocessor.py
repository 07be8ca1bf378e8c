"""Reads wikitext like MediaWiki's preprocessor: text, template calls and parameters.

Source: https://www.mediawiki.org/wiki/Preprocessor_ABNF. Reading takes time linear in the text.
"""

import enum
import re
from dataclasses import dataclass, field

# Elements whose content the preprocessor does not parse.
_OPAQUE = "nowiki|pre|math|ref|source|syntaxhighlight|gallery|timeline|score|chem|ce|hiero|imagemap|templatedata"
_TOKENS = re.compile(
    rf"\{{\{{+|\}}\}}+|\[\[|\]\]|\||=|<!--.*?(?:-->|\Z)|<({_OPAQUE})\b[^<>]*>", re.DOTALL | re.IGNORECASE
)
_CLOSERS = {name: re.compile(rf"</{name}\s*>", re.IGNORECASE) for name in _OPAQUE.split("|")}

_CALL_BRACES = 2
_PARAMETER_BRACES = 3

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_ONLY_INCLUDED = re.compile(r"<onlyinclude>(.*?)(?:</onlyinclude>|\Z)", re.DOTALL | re.IGNORECASE)
_NOT_INCLUDED = re.compile(r"<noinclude>.*?(?:</noinclude\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_INCLUSION_TAG = re.compile(r"</?(?:includeonly|onlyinclude|noinclude)\s*/?>", re.IGNORECASE)


class Separator(enum.Enum):
    """A character between nodes that has a meaning of its own."""

    EQUALS = "="  # may end the name of an argument


@dataclass
class Call:
    """A template call `{{…}}`, or a parameter `{{{…}}}`: the parts between its pipes."""

    parts: "list[list[Node]]"
    is_parameter: bool = False


Node = str | Call | Separator


@dataclass
class _OpenBraces:
    """Open braces: how many are unmatched, and the parts read since."""

    count: int
    parts: list[list[Node]] = field(default_factory=lambda: [[]])


def parse(text: str) -> list[Node]:
    """Return the nodes of a page."""
    return _Parser(text).parse()


def plain_text(node: str | Separator) -> str:
    """Return a node that is not a call as in the page's text."""
    return node.value if isinstance(node, Separator) else node


def transcluded_text(text: str) -> str:
    """Return the part of a template's page that calls show: without `<noinclude>`, or only `<onlyinclude>`."""
    # Comments go first, because tags in them do not count.
    text = _COMMENT.sub("", text)
    only = _ONLY_INCLUDED.findall(text)
    if only:
        text = "".join(only)
    return _INCLUSION_TAG.sub("", _NOT_INCLUDED.sub("", text))


class _Parser:
    """Reads one page from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._root: list[Node] = []
        self._braces: list[_OpenBraces] = []
        # For the page and for each of the open braces: the number of links open in it. While a link is open, pipes and
        # equals signs belong to it.
        self._links = [0]
        # The list for the next node.
        self._current = self._root
        self._never_closed: set[str] = set()

    def parse(self) -> list[Node]:
        """Return the nodes of the page."""
        at = 0
        while token := _TOKENS.search(self._text, at):
            if token.start() > at:
                self._current.append(self._text[at : token.start()])
            at = self._take(token)
        self._current.append(self._text[at:])
        # Braces that are never closed are text.
        for braces in self._braces:
            self._root.append("{" * braces.count)
            for number, part in enumerate(braces.parts):
                self._root += ["|", *part] if number else part
        return self._root

    def _take(self, token: re.Match[str]) -> int:
        """Take a token; return the position where reading continues."""
        text = token[0]
        if text.startswith("<!--"):
            return token.end()
        if token[1] and not text.endswith("/>"):
            return self._take_element(token)
        if text.startswith("{"):
            self._open(_OpenBraces(len(text)))
        elif text.startswith("}"):
            self._close(len(text))
        elif text == "|" and self._braces and not self._links[-1]:
            self._current = []
            self._braces[-1].parts.append(self._current)
        elif text == "=" and self._braces and not self._links[-1]:
            self._current.append(Separator.EQUALS)
        else:
            if text == "[[":
                self._links[-1] += 1
            elif text == "]]" and self._links[-1]:
                self._links[-1] -= 1
            self._current.append(text)
        return token.end()

    def _take_element(self, opening: re.Match[str]) -> int:
        """Take an opaque element, from its opening to its closing tag, as text; return where reading continues."""
        name = opening[1].lower()
        closing = None if name in self._never_closed else _CLOSERS[name].search(self._text, opening.end())
        if closing is None:
            # A tag without a closing tag is text, and so are all later ones of its name.
            self._never_closed.add(name)
            end = opening.start() + 1
        else:
            end = closing.end()
        self._current.append(self._text[opening.start() : end])
        return end

    def _open(self, braces: _OpenBraces) -> None:
        self._braces.append(braces)
        self._links.append(0)
        self._current = braces.parts[0]

    def _close(self, left: int) -> None:
        """Close as many open braces as `left` closing ones permit."""
        while left >= _CALL_BRACES and self._braces:
            braces = self._braces.pop()
            self._links.pop()
            count = _PARAMETER_BRACES if min(braces.count, left) >= _PARAMETER_BRACES else _CALL_BRACES
            left -= count
            opened = braces.count - count
            call = Call(braces.parts, is_parameter=count == _PARAMETER_BRACES)
            if opened >= _CALL_BRACES:
                self._open(_OpenBraces(opened, [[call]]))
            else:
                self._current = self._braces[-1].parts[-1] if self._braces else self._root
                self._current += ["{" * opened, call]
        self._current.append("}" * left)
