"""Inline calls of a dump's articles and their text by another program: wikitextprocessor, and plain scanning of lines.

    python tests/oracles/field_expansion.py DUMP [--expand_templates all] [--sample 40] [--seed 1]

extracts DUMP (bz2) and prints which calls lost their text, and which lines with calls are left out. `--sample` prints
so many calls, of as many templates as there are, with the wikitext and the extracted text around them, to be read. The
dump's date is today for both programs.

Nothing here is maskmill's. The library is patched where it does not run under Python 3.11 or newer, and it is given
titles that it understands: English namespaces, redirects that are followed, both cases of a first letter.
"""

import argparse
import bz2
import collections
import contextlib
import datetime
import html
import io
import random
import re
import subprocess
import sys
import tempfile
import types
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

_NOT_PROSE = tuple("{|!*#:;=<[ \n")
_CALL_FIRST = re.compile(r"\{\{(?!!\}\})[^{}]*\}\} ?\w")  # begins a line of prose all the same
_BLOCK = re.compile(r"<(?:div|table|ul|li|center|p)\b|\{\||\n\n|class=\"error\"|<ref", re.IGNORECASE)
# An element of an extension, which shows a player, a map, a graph.
_EXTENSION = re.compile(
    r"<(?!/?(?:abbr|b|bdi|big|br|cite|code|data|del|dfn|em|font|i|ins|kbd|mark|nowiki|q|r[bpt]|ruby|s|samp|small|span"
    r"|strike|strong|su[bp]|time|tt|u|var|wbr)\b)/?[a-z]\w*",
    re.IGNORECASE,
)
# What is not displayed, or no text: pronunciation and remarks for readers of the page.
_HIDDEN = re.compile(r"""<(\w+)\b[^<>]*(?:display:\s*none|class="[^"]*\b(?:IPA|metadata|noprint)\b)[^<>]*>""")
# Marks for readers of the page: in raised brackets, and a link to the page in another language.
_MARK = re.compile(
    r"<sup\b[^<>]*>['\s]*(?:\[(?!\[)|&#91;)(?:(?!</?sup\b).)*(?:\]|&#93;)['\s]*</sup>|\(\[\[:[\w-]{2,12}:[^\[\]]*\]\]\)"
)
_FAILED = re.compile(r"expressionerror|luaexecutionerror")  # also where it was taken for a number
_REDIRECT = re.compile(r"\s*#\w+\s*:?\s*\[\[[^:\]|]*:([^\]|#]+)")
# What is not read as wikitext, or not shown where it stands.
_UNREAD = re.compile(
    r"<!--.*?-->|<ref[^<>]*/>|<(ref|pre|nowiki|syntaxhighlight|source|math|gallery)\b.*?</\1\s*>",
    re.DOTALL | re.IGNORECASE,
)
_TABLE = re.compile(r"^[:*]*\{\|(?:(?!^[:*]*\{\|).)*?^\|\}", re.DOTALL | re.MULTILINE)
_NOT_KNOWN = "\ue000"  # stands for what a call gives that is no text, such as a list or an error
_MARKS = 0xE001  # the first of the characters that stand around the calls of a line, two for each
_FILE, _TEMPLATE, _CATEGORY, _MODULE = 6, 10, 14, 828
_BESIDE = 10  # letters beside a call by which it is found in the extracted text
_OF_LINE, _FEWEST_OWN = 20, 4  # letters by which a line is found there, and the fewest
_SHOWN = 160  # characters of the texts around a call that are printed


class Call(NamedTuple):
    """A call within a line of an article, and its text.

    line: its wikitext. before, after: its text on both sides of the call, as far as it is known. own: its text outside
    all calls, in pieces.
    """

    title: str
    call: str
    text: str
    line: str
    before: str
    after: str
    own: tuple[str, ...]

    @property
    def template(self) -> str:
        """The template's name."""
        return re.split(r"[|}]", self.call[2:], maxsplit=1)[0].strip().lower()


def _pages(dump: Path) -> Iterator[tuple[int, str, str, bool]]:
    """(namespace, title, text, whether it redirects) of each page."""
    with bz2.open(dump) as file:
        for _, element in ElementTree.iterparse(file):
            if element.tag.endswith("}page"):
                fields = {child.tag.split("}")[1]: child for child in element.iter()}
                text = fields["text"].text or ""
                yield int(fields["ns"].text or 0), fields["title"].text or "", text, "redirect" in fields
                element.clear()


def _unseen(dump: Path) -> re.Pattern[str]:
    """Comments, files and categories, by the names that the dump has for them."""
    with bz2.open(dump, "rt", encoding="utf-8") as file:
        header = file.read(1 << 16).partition("</siteinfo>")[0]
    names = {"File", "Image", "Category"}
    names |= {html.unescape(found[2]) for found in re.finditer(r'<namespace key="(6|14)"[^<>]*>([^<>]+)<', header)}
    return re.compile(rf"<!--.*?-->|\[\[\s*(?:{'|'.join(map(re.escape, names))}):[^\]]*\]\]", re.DOTALL | re.IGNORECASE)


def _library() -> Any:
    """The library's context, made to run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import lupa.lua53
        from wikitextprocessor import Wtp, luaexec

    pattern = types.SimpleNamespace(**vars(re))
    pattern.match = lambda expression, *given: re.match(expression.replace("^(?s)", "(?s)^"), *given)
    luaexec.re = pattern
    luaexec.LuaRuntime = lupa.lua53.LuaRuntime
    luaexec.lupa = types.SimpleNamespace(_lupa=lupa.lua53, lua_type=lupa.lua53.lua_type)
    return Wtp(quiet=True, num_threads=1)


def _add_templates(library: Any, templates: Mapping[str, str]) -> None:
    for name, text in templates.items():
        for _ in range(3):
            redirect = _REDIRECT.match(text)
            if redirect:
                target = redirect[1].strip().replace("_", " ")
                text = templates.get(target[:1].upper() + target[1:], "")
        for form in {name, name[:1].lower() + name[1:]}:
            library.add_page("wikitext", f"Template:{form}", text)


def _expand(library: Any, call: str) -> str:
    """What a call gives; an error where it breaks the library, which begins anew then."""
    try:
        expanded = str(library.expand(call))
    except Exception as error:  # noqa: BLE001 - it is the library's, of many kinds
        expanded = f'<span class="error">{error}</span>'
    if 'class="error"' in expanded:
        library.lua, library.lua_depth = None, 0
    return expanded


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the outermost calls of a text start and end."""
    depth = start = 0
    for found in re.finditer(r"\{\{|\}\}", text):
        if found[0] == "{{":
            start = found.start() if depth == 0 else start
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                yield start, found.end()


def _lines(text: str) -> Iterator[str]:
    """The lines of prose of an article: those outside tables and calls of several lines."""
    text = _UNREAD.sub("", text)
    for start, end in reversed(list(_spans(text))):
        if "\n" in text[start:end]:
            text = text[:start] + text[end:]
    before = ""
    while before != text:
        before, text = text, _TABLE.sub("", text)
    for line in text.split("\n"):
        if not line.startswith(_NOT_PROSE) or _CALL_FIRST.match(line):
            yield line


def _without_hidden(text: str) -> str:
    """A text without the elements that are no text."""
    while found := _HIDDEN.search(text):
        depth, end = 1, len(text)
        for tag in re.finditer(rf"<(/?){found[1]}\b[^<>]*>", text[found.end() :]):
            depth += -1 if tag[1] else 1
            if depth == 0:
                end = found.end() + tag.end()
                break
        text = text[: found.start()] + text[end:]
    return text


def _plain(text: str, unseen: re.Pattern[str]) -> str:
    """The text of a line of wikitext: without links, marks of bold type, tags."""
    text = unseen.sub("", _MARK.sub("", _without_hidden(text)))
    text = re.sub(r"\[\[(?:[^\[\]|]*\|)?(\[?[^\[\]]*\]?)\]\]", r"\1", text)
    text = re.sub(r"\[(?:\w+:)?//[^\s\[\]]*\s*([^\[\]]*)\]", r"\1", text)
    text = re.sub(r"<br[^<>]*>", " ", text, flags=re.IGNORECASE)
    return " ".join(html.unescape(re.sub(r"'{2,}|<[^<>]*>", "", text)).split())


def _calls_of(library: Any, title: str, line: str, unseen: re.Pattern[str]) -> Iterator[Call]:
    """The calls of a line whose text it shows."""
    spans = list(_spans(line))
    marks = [(chr(_MARKS + 2 * number), chr(_MARKS + 2 * number + 1)) for number in range(len(spans))]
    marked, at = "", 0
    for (start, end), (opening, closing) in zip(spans, marks, strict=True):
        expanded = _expand(library, line[start:end])
        is_text = not (_BLOCK.search(expanded) or _EXTENSION.search(expanded) or _FAILED.search(letters(expanded)))
        is_text = is_text and "{{" not in expanded
        marked += line[at:start] + opening + (expanded if is_text else _NOT_KNOWN) + closing
        at = end
    plain = _plain(marked + line[at:], unseen)
    own = tuple(re.split(f"[{chr(_MARKS)}-\uf8ff][^{chr(_MARKS)}-\uf8ff]*.", plain))
    for (start, end), (opening, closing) in zip(spans, marks, strict=True):
        before, is_shown, rest = plain.partition(opening)
        text, _, after = rest.partition(closing)
        if is_shown and re.search(r"\w", text):
            before = before.rpartition(_NOT_KNOWN)[2]
            after = after.partition(_NOT_KNOWN)[0]
            yield Call(title, line[start:end], text.strip(), line, before, after, own)


def inline_calls(dump: Path) -> list[Call]:
    """The calls within lines of prose that have text, each with it."""
    library = _library()
    templates: dict[str, str] = {}
    articles: list[tuple[str, str]] = []
    for namespace, title, text, redirects in _pages(dump):
        name = title.partition(":")[2]
        if namespace == _TEMPLATE:
            templates[name] = text
        elif namespace == _MODULE:
            library.add_page("Scribunto", f"Module:{name}", text)
        elif namespace == 0 and not redirects:
            articles.append((title, text))
    _add_templates(library, templates)
    library.analyze_templates()
    unseen = _unseen(dump)
    found: list[Call] = []
    for title, text in articles:
        library.start_page(title)
        for line in _lines(text):
            found += _calls_of(library, title, line, unseen)
    return found


def letters(text: str) -> str:
    """A text without what extraction mends: spaces and punctuation."""
    return re.sub(r"[\W_]+", "", text).lower()


class Extracted:
    """The documents that `maskmill extract --keep_titles` wrote, by their titles."""

    def __init__(self, output: Path) -> None:
        documents = "".join(path.read_text() for path in sorted(output.glob("part-*"))).split("\n\n")
        self._texts = {title: body for title, _, body in (text.partition("\n") for text in documents)}
        self._letters = {title: letters(body) for title, body in self._texts.items()}

    def place_of(self, call: Call) -> int | None:
        """Where the text of a call, beside that of its line, starts in the letters of its article; -1: it is lost.

        None: extraction left the article or the line out.
        """
        body = self._letters.get(call.title)
        if body is None:
            return None
        before, text, after = letters(call.before)[-_BESIDE:], letters(call.text), letters(call.after)[:_BESIDE]
        for left, right in ((before, after), (before, ""), ("", after)):
            if (left or right or not before + after) and left + text + right in body:
                return body.index(left + text + right) + len(left)
        own = [piece for piece in map(letters, call.own) if len(piece) >= _FEWEST_OWN]
        parts = [p[start : start + _OF_LINE] for p in own for start in range(max(len(p) - _OF_LINE, 0) + 1)]
        return -1 if 2 * sum(part in body for part in parts) >= len(parts) else None

    def shown(self, call: Call, place: int) -> str:
        """The extracted text around a place."""
        text = self._texts[call.title]
        starts = [found.start() for found in re.finditer(r"[^\W_]", text)]
        at = starts[min(place, len(starts) - 1)]
        return text[max(at - _SHOWN // 3, 0) : at + _SHOWN].replace("\n", " / ")


def sample(found: Sequence[tuple[Call, int]], count: int, seed: int) -> list[tuple[Call, int]]:
    """So many of the calls, in an order that the seed decides: one of each template, then the second of each, …"""
    ranks: collections.Counter[str] = collections.Counter()
    ranked = []
    for call, place in random.Random(seed).sample(found, len(found)):
        ranks[call.template] += 1
        ranked.append((ranks[call.template], call, place))
    return [(call, place) for _, call, place in sorted(ranked, key=lambda one: one[0])[:count]]


def main() -> None:
    """Compares the dump that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump", type=Path)
    parser.add_argument("--expand_templates", default="all", choices=("off", "unknown", "all"))
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with contextlib.redirect_stdout(io.StringIO()):  # where the library says what it does not know
        calls = inline_calls(arguments.dump)
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / "text"
        done = subprocess.run(
            [sys.executable, "-m", "maskmill", "extract", f"--input={arguments.dump}", f"--output={output}",
             "--num_eval_articles=0", "--keep_titles", f"--expand_templates={arguments.expand_templates}",
             f"--dump_date={datetime.date.today()}"],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(done.stderr)
        extracted = Extracted(output)
    found = [(call, place) for call in calls if (place := extracted.place_of(call)) is not None]
    lost = [call for call, place in found if place < 0]
    for title, line in dict.fromkeys((call.title, call.line) for call in calls if extracted.place_of(call) is None):
        print(f"LEFT  {title}: {line}")
    for call in lost:
        print(f"LOST  {call.title}: {call.call} gives: {call.text}\n      line: {call.line}")
    for call, place in sample(found, arguments.sample, arguments.seed):
        print(f"READ  {call.title}: {call.call} gives: {call.text}\n      line: {call.line}")
        print(f"      text: {'(lost)' if place < 0 else extracted.shown(call, place)}")
    print(f"{len(found):,} calls, {len(lost):,} lost; {len(calls) - len(found):,} in lines that extraction leaves out")


if __name__ == "__main__":
    main()
