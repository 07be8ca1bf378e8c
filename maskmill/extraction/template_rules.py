"""Rules for templates that carry text, compiled from data files to programs for the wikitext kernel.

A file `data/templates/<language>.rules` (and `common.rules`, with which every language starts) has four kinds of
section. `[table NAME]` maps keys to texts, `[rules]` maps template names to patterns, `[guesses]` does so for templates
whose definition in the dump is better, if it is used, `[forms]` names parts of patterns that differ between languages:

    [table month]
    1|01|january = January

    [rules]
    nowrap|nobr = {1}
    birth date = [{&date:1,2,3}||{1}]
    [forms]
    date = {$3} {$2@month} {$1}

Names compare without ASCII case, except those of two or three capitals; `|` separates names that share a pattern. A
name that ends in `:` is a parser function, whose first argument follows the colon. `{@NAME}` in a name, with `{@}` in
the pattern, makes one rule for each row of table NAME: the key is put into the name, and the text into the pattern.

A pattern is literal text with
    {1} {name}         the argument, trimmed; {a|b|"c"}: the first that is not empty, or the literal c
    {2@month}          the argument looked up in a table, or the argument itself if the table has no such key
    {1:number}         the argument formatted: number, integer, lower, upper, first_upper, first_lower, superscript,
                       numeral (a number without its sign), chemistry (arguments of {{chem2}}), formula (TeX), title
                       (as in a link to such a page: without a bracket or a hyphen at its end)
    [A||B]             the first alternative whose direct arguments are all given; nothing if there is none
    {?^start} {?^bracket}  in an alternative: only if the call starts its line, is in brackets; {?!^start} if not
    {?^digit}          only after a digit
    {?^after_word}     only after a word, a slash or an arrow
    {?^glued}          only where a footnote's mark would be: right after a word, and not right before one
    {?a} {?!a} {?a=x} {?a@t}   in an alternative: only if a is given, is not given, is x, is a key of table t
    {?a:word}          in an alternative: only if a does not start like a number
    {?a^t}             in an alternative: only if a starts with a key of table t, in letters of any case
    {?3} {?*}          outside alternatives: the call may have a third argument, or any number, that are not shown
    {*:, } {*:, : and }  all numbered arguments joined; {2*:, } from the second; {2*2:, } every other one
    {!age:1,2,3}       full years from that date to the dump's, or to the date in three further arguments
    {!converted:1 2 3 4@symbol}  value 1 of unit 2 in the units that 3 names, or that table `target` has for 2, rounded
                       to 4 digits or as {{convert}} rounds, with the units' names in a table; 1/5 is the first value of
                       a range to 5. Tables: `factor` (see kernels.quantities), `target`, `unit_one` for one `unit`
    {?converted:1 2 3 4}  in an alternative: only if the conversion is possible
    {&date:1,2,3}      the form `date`, in which $1, $2 and $3 are the parts after the colon
    {!unknown}         nothing, and the call counts as one without a rule
    {!bracket}         nothing, and the bracket around the call is dropped with its content
    {!title}           the page's title; {!year} {!month} {!day} {!hour}: the dump's date, two digits each but the year
    \\n \\s \\[ ...       a line break, a space, the character itself

An argument without a name is text only if a pattern says so. A call with numbered arguments beyond those in the pattern
gives nothing, and counts as one without a rule: in `{{IPA|it|ˈroːma}}` the first is not text.

A pattern with a number, a numeral or a superscript shows a value, and so may a pattern of only a word or a sign (`km² =
km²` is called as `5 {{km²}}` on one wiki, and as `{{km²|5}}` on another); a wrong value is worse than none. So such a
call also gives nothing if a number or an exponent has no digit or a unit starts like one, or if a value outside
brackets is missing. Parser functions accept anything.
"""

import datetime
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskmill.errors import UnusableInputError
from maskmill.extraction import language_tables
from maskmill.extraction.kernels import codes, tables
from maskmill.extraction.kernels.text import BRACKET_MARK


def _codes(prefix: str, names: str) -> dict[str, int]:
    """Return the numbers of names: for the prefix FORMAT, that of `lower` is codes.FORMAT_LOWER."""
    return {name: getattr(codes, f"{prefix}_{name.upper()}") for name in names.split()}


_FORMATS = _codes(
    "FORMAT", "number lower upper integer superscript numeral chemistry formula title first_upper first_lower"
)
_FLAGS = _codes("FLAG", "start bracket digit glued after_word")
# Tables whose keys the kernels find in a domain of their own.
_KNOWN_TABLES = _codes("DOMAIN", "unread looked_up computed quoted")

# The comparison of names, uint8 [256]: ASCII letters in lower case, underscores as spaces.
FOLD = np.arange(256, dtype=np.uint8)
FOLD[ord("A") : ord("Z") + 1] += ord("a") - ord("A")
FOLD[ord("_")] = ord(" ")

_DATA = resources.files("maskmill.extraction") / "data"
_SECTION = re.compile(r"\[(rules|guesses|forms|table ([\w-]+))\]")
_FORM = re.compile(r"\{&(\w+)(?::((?:[^{}]|\{[^{}]*\})*))?\}")  # in a pattern: the form's name, and its arguments
_FORM_DEPTH = 4  # forms within forms
_ROW_KEY = re.compile(r"\{@([\w-]+)\}")  # in a rule's name, which is repeated for each key of a table
_EXACT_NAME = re.compile("[A-Z]{2,3}")  # {{PER}} is Peru, and {{per}} is not

_VALUE_FORMATS = frozenset((codes.FORMAT_NUMBER, codes.FORMAT_NUMERAL, codes.FORMAT_SUPERSCRIPT))
_UNIT_TABLES = frozenset(("unit", "unit_adjective", "unit_one", "symbol"))  # their rules take many more arguments

_CONVERSION_ARGUMENTS = 4
_AGE_ARGUMENTS = (3, 6)  # of {!age:…}: a date, or two


def _fold(text: bytes) -> bytes:
    return bytes(FOLD[np.frombuffer(text, np.uint8)])


@dataclass
class WordTable:
    """Collects the strings, names and programs that become the arrays of kernels.tables.Tables."""

    pool: bytearray = field(default_factory=bytearray)
    code: list[int] = field(default_factory=lambda: [0])
    entries: dict[tuple[int, bytes], tuple[int, int]] = field(default_factory=dict)
    _offsets: dict[bytes, int] = field(default_factory=dict)
    _names: dict[bytes, int] = field(default_factory=dict)
    template_names: list[str] = field(default_factory=list)  # with rules

    def intern(self, text: bytes) -> int:
        """Return the offset of `text` in the pool."""
        if text not in self._offsets:
            self._offsets[text] = len(self.pool)
            self.pool += text
        return self._offsets[text]

    def selector(self, argument: str) -> int:
        """Return the number of an argument in programs; see kernels.rules.find_argument."""
        if argument.isascii() and argument.isdigit() and argument != "0":
            return int(argument)
        name = argument.encode()
        if name not in self._names:
            self._names[name] = len(self.code)
            self.code += [self.intern(name), len(name)]
        return -1 - self._names[name]

    def add(self, domain: int, name: str, value: int, second: int = 0) -> None:
        """Map a name of a domain to two numbers; a first letter beyond ASCII may be upper or lower case."""
        forms = {name}
        if name and not name[0].isascii():
            forms |= {name[0].upper() + name[1:], name[0].lower() + name[1:]}
        for form in forms:
            key = form.encode()
            if not tables.has_exact_names(domain):
                key = _fold(key)
            self.entries[domain, key] = (value, second)

    def add_text(self, domain: int, name: str, text: str) -> None:
        """Map a name of a domain to a text."""
        encoded = text.encode()
        self.add(domain, name, self.intern(encoded), len(encoded))

    def arrays(self) -> tuple[NDArray[np.void], NDArray[np.uint8], NDArray[np.int32]]:
        """Return (words, pool, code) for kernels.tables.Tables."""
        capacity = 16
        while capacity < 2 * len(self.entries):
            capacity *= 2
        words = np.zeros(capacity, tables.WORD)
        offsets = {key: self.intern(key) for _, key in self.entries}
        for (domain, key), (value, second) in self.entries.items():
            source = np.frombuffer(key or b"\0", np.uint8)
            code = int(tables.hash_bytes(FOLD, domain, source, 0, len(key)))
            row = code & (capacity - 1)
            while words["domain"][row] != 0:
                row = (row + 1) & (capacity - 1)
            words[row] = (code, domain, offsets[key], len(key), value, second)
        return words, np.frombuffer(bytes(self.pool) or b"\0", np.uint8).copy(), np.array(self.code, np.int32)


@dataclass(frozen=True)
class Rule:
    """A line of a rule file: template names that share a pattern. where: the file and the line, for messages. is_guess:
    whether a definition in the dump takes precedence.
    """

    names: tuple[str, ...]
    pattern: str
    where: str
    is_guess: bool = False


@dataclass(frozen=True)
class RuleFile:
    """A rule file: its tables by name, each from keys to texts, its rules in order, its forms by name."""

    tables: Mapping[str, Mapping[str, str]]
    rules: tuple[Rule, ...]
    forms: Mapping[str, str] = field(default_factory=dict)


def parse_rules(text: str, file_name: str) -> RuleFile:
    """Read a rule file; see the module's docstring. Raise UnusableInputError, which names the line, for a mistake."""
    tables: dict[str, dict[str, str]] = {}
    rules: list[Rule] = []
    forms: dict[str, str] = {}
    table: dict[str, str] | None = None
    section = ""
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{file_name} line {number}"
        line = line.strip()
        if not line or line.startswith("# "):
            continue
        heading = _SECTION.fullmatch(line)
        if heading:
            section = heading[1]
            table = tables.setdefault(heading[2], {}) if heading[2] else None
            continue
        split = line.find(" =", 1)
        if not section or split < 0:
            raise UnusableInputError(f"{where} is neither a section nor `name = text`: {line!r}.")
        left, right = line[:split], line[split + 2 :].strip()
        names = tuple(name.strip() for name in left.split("|")) if left != "|" else ("|",)
        if table is not None:
            table.update(dict.fromkeys(names, _unescape(right)))
        elif section == "forms":
            forms.update(dict.fromkeys(names, right))
        else:
            rules.append(Rule(names, right, where, is_guess=section == "guesses"))
    return RuleFile(tables, tuple(rules), forms)


def load_rules(language: str) -> list[RuleFile]:
    """Return the rule files for a language code, least specific first.

    They are common.rules, those of language_tables, the language's rows of data/forms.tsv and data/identities.tsv, and
    for `zh-hans` the files of `zh` and of `zh-hans`.
    """
    general = language.split("-")[0]
    common, *own = (_DATA / "templates" / f"{name}.rules" for name in dict.fromkeys(("common", general, language)))
    files = [parse_rules(common.read_text(encoding="utf-8"), common.name)]
    shared = [
        RuleFile({}, _local_names(code, files[0].rules), dict(_rows("forms.tsv", code)))
        for code in dict.fromkeys((general, language))
    ]
    files += [parse_rules(text, name) for name, text in language_tables.language_tables(language)]
    files += [file for file in shared if file.rules or file.forms]
    files += [parse_rules(path.read_text(encoding="utf-8"), path.name) for path in own if path.is_file()]
    return files


def has_rules(language: str) -> bool:
    """Return whether there is a rule file for a language code, or for its general form (`zh` for `zh-hans`)."""
    return any((_DATA / "templates" / f"{name}.rules").is_file() for name in (language, language.split("-")[0]))


def check_rules(text: str, file_name: str, languages: Iterable[str]) -> None:
    """Raise UnusableInputError, which names the line, for a rule file that cannot be used with these languages."""
    own = parse_rules(text, file_name)
    for language in languages:
        add_rules(WordTable(), [*load_rules(language), own], datetime.date(2000, 1, 1))


def _rows(file_name: str, language: str) -> list[tuple[str, str]]:
    """Return the language's rows of a data file, (first column, third column); the second column is the language."""
    lines = (_DATA / file_name).read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return [(first, text) for first, of_language, text in rows if of_language == language]


def _local_names(language: str, rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return the rules under their templates' names in a language, by data/identities.tsv."""
    names: dict[str, list[str]] = {}
    for meaning, name in _rows("identities.tsv", language):
        names.setdefault(meaning, []).append(name)
    return tuple(
        Rule(tuple(name for meaning in rule.names for name in names.get(meaning, ())), rule.pattern, rule.where)
        for rule in rules
        if any(meaning in names for meaning in rule.names)
    )


def add_rules(
    words: WordTable,
    files: Sequence[RuleFile],
    date: datetime.date,
    is_defined: Callable[[str], bool] = lambda name: False,
) -> None:
    """Compile rule files into `words`; a later file's rules and table rows replace an earlier one's.

    date: the dump's. is_defined: whether a template has a definition that is used; its guesses are skipped. Raises
    UnusableInputError, which names the line, for an invalid pattern.
    """
    tables: dict[str, dict[str, str]] = {}
    forms: dict[str, str] = {}
    for file in files:
        forms.update(file.forms)
        for name, rows in file.tables.items():
            tables.setdefault(name, {}).update(rows)
    domains = {name: codes.DOMAIN_TABLES + i for i, name in enumerate(tables)}
    for name, rows in tables.items():
        _add_rows(words, domains[name], rows)
    for table, domain in _KNOWN_TABLES.items():
        for name in tables.get(table, ()):
            words.add(domain, name, 1)
    compiler = _Compiler(words, domains, _constants(tables, date))
    for file in files:
        for rule in file.rules:
            for name, pattern in _spread(_with_forms(rule, forms), tables):
                if rule.is_guess and is_defined(name):
                    continue
                is_function = name.endswith(":") and len(name) > 1
                _add_name(words, name, compiler.compile(pattern, rule.where, is_function=is_function), is_function)


def _add_rows(words: WordTable, domain: int, rows: Mapping[str, str]) -> None:
    """Add the rows of a table. Keys that differ only in the case of ASCII letters, such as MW and mW, stay separate."""
    texts: dict[bytes, str] = {}
    for key, text in rows.items():
        words.add_text(domain, key, text)
        if texts.setdefault(_fold(key.encode()), text) != text:
            exact = codes.DOMAIN_EXACT_TABLES + domain - codes.DOMAIN_TABLES
            for other, other_text in rows.items():
                if _fold(other.encode()) == _fold(key.encode()):
                    words.add_text(exact, other, other_text)


def names_with_rules(words: WordTable) -> Callable[[str], bool]:
    """Return a function that returns whether a template's name has a rule in `words`."""

    def has_rule(name: str) -> bool:
        encoded = name.strip().encode()
        keys = ((codes.DOMAIN_EXACT_TEMPLATE, encoded), (codes.DOMAIN_TEMPLATE, _fold(encoded)))
        return any(key in words.entries for key in keys)

    return has_rule


def _with_forms(rule: Rule, forms: Mapping[str, str]) -> Rule:
    """Return the rule with `{&form:…}` replaced by the texts of forms."""

    def replace(call: re.Match[str]) -> str:
        if call[1] not in forms:
            raise UnusableInputError(f"{rule.where}: there is no form {call[1]!r}.")
        arguments = (call[2] or "").split(",")
        if int(max(re.findall(r"\$([1-9])", forms[call[1]]), default="1")) > len(arguments):
            raise UnusableInputError(f"{rule.where}: the form {call[1]!r} needs more arguments than {len(arguments)}.")
        return re.sub(r"\$([1-9])", lambda m: arguments[int(m[1]) - 1].strip(), forms[call[1]])

    pattern = rule.pattern
    for _ in range(_FORM_DEPTH):
        if "{&" not in pattern:
            break
        pattern = _FORM.sub(replace, pattern)
    return rule if pattern == rule.pattern else Rule(rule.names, pattern, rule.where)


def _spread(rule: Rule, tables: Mapping[str, Mapping[str, str]]) -> list[tuple[str, str]]:
    """Return the names and patterns of a rule: one for each row of the table if a name has `{@table}`."""
    spread = []
    for name in rule.names:
        row_key = _ROW_KEY.search(name)
        if row_key is None:
            spread.append((name, rule.pattern))
            continue
        if row_key[1] not in tables:
            raise UnusableInputError(f"{rule.where}: there is no table {row_key[1]!r}.")
        for key, text in tables[row_key[1]].items():
            spread.append((name.replace(row_key[0], key), rule.pattern.replace("{@}", _escape(text))))
    return spread


def _constants(tables: Mapping[str, Mapping[str, str]], date: datetime.date) -> dict[str, str]:
    """Return the texts of the functions of the clock: `{!year}` and so on."""
    month = str(date.month)
    names = tables.get("month", {})
    return {
        "year": str(date.year),
        "month": f"{date.month:02}",
        "day": f"{date.day:02}",
        "hour": "00",
        "day1": str(date.day),
        "month1": month,
        "monthname": names.get(month, month),
        "monthgenitive": tables.get("month_genitive", names).get(month, month),
    }


def _add_name(words: WordTable, name: str, program: int, is_function: bool) -> None:
    if is_function:
        words.add(codes.DOMAIN_FUNCTION, name[:-1], program)
    else:
        is_exact = _EXACT_NAME.fullmatch(name)
        words.add(codes.DOMAIN_EXACT_TEMPLATE if is_exact else codes.DOMAIN_TEMPLATE, name, program)
        words.template_names.append(name)


def _escape(text: str) -> str:
    """Return a text escaped for a pattern."""
    return re.sub(r"([\\{}\[\]])", r"\\\1", text)


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "s": " "}.get(m[1], m[1]), text)


class _Expression(NamedTuple):
    """The text between braces."""

    source: str


# Literal text, an expression, or a group: alternatives in brackets.
_Node = str | _Expression | list["list[_Node]"]


def _expressions(nodes: list[_Node]) -> Iterator[str]:
    """Yield the texts between the braces of a pattern's nodes, groups included."""
    for node in nodes:
        if isinstance(node, _Expression):
            yield node.source
        elif isinstance(node, list):
            for alternative in node:
                yield from _expressions(alternative)


class _PatternError(Exception):
    """A pattern has a mistake."""


# An escaped character, an expression, a mark of groups, other text.
_TOKENS = re.compile(r"\\.|\{((?:[^}\\]|\\.)*)\}|\|\||[^\\{\[\]|]+|.", re.DOTALL)


def _parse_pattern(pattern: str) -> list[_Node]:
    """Return the nodes of a pattern. Raise _PatternError for a brace or bracket that is not closed."""
    open_groups: list[list[list[_Node]]] = [[[]]]  # the first is the pattern itself
    for token in _TOKENS.finditer(pattern):
        nodes = open_groups[-1][-1]
        if token[1] is not None:
            nodes.append(_Expression(token[1]))
        elif token[0] == "{":
            raise _PatternError("a { is not closed")
        elif token[0] == "[":
            open_groups.append([[]])
        elif token[0] == "]" and len(open_groups) > 1:
            group = open_groups.pop()
            open_groups[-1][-1].append(group)
        elif token[0] == "||" and len(open_groups) > 1:
            open_groups[-1].append([])
        elif nodes and isinstance(nodes[-1], str):
            nodes[-1] += _unescape(token[0])
        else:
            nodes.append(_unescape(token[0]))
    if len(open_groups) > 1:
        raise _PatternError("a [ is not closed")
    return open_groups[0][0]


class _Value(NamedTuple):
    """A value expression: argument names joined by `|`, a literal as fallback, a format, whether it is a unit."""

    names: str
    fallback: str | None
    form: int
    is_unit: bool = False


class _Compiler:
    """Compiles patterns to programs, appended to words.code; rules with the same pattern share its program."""

    def __init__(self, words: WordTable, domains: Mapping[str, int], constants: Mapping[str, str]) -> None:
        self._words = words
        self._domains = domains
        self._constants = constants
        self._compiled: dict[tuple[str, bool], int] = {}
        # For the pattern that is being compiled: its program, the places of jump targets in it, among these the targets
        # for calls that the pattern does not describe, whether it shows a value, and whether it is one expression,
        # whose superscripts need not be exponents.
        self._program: list[int] = []
        self._jumps: list[int] = []
        self._unknown: list[int] = []
        self._is_value = False
        self._is_script = False

    def compile(self, pattern: str, where: str, *, is_function: bool) -> int:
        """Return the place in words.code where the pattern's program starts."""
        if (pattern, is_function) not in self._compiled:
            self._program = []
            self._jumps = []
            self._unknown = []
            try:
                nodes = _parse_pattern(pattern)
                self._is_value = not is_function and self._shows_value(nodes)
                self._is_script = len(nodes) == 1 and isinstance(nodes[0], _Expression)
                shown = [] if self._is_value else self._emit_shown(nodes)
                if not is_function:
                    self._emit_known(nodes)
                self._emit(nodes)
                self._land(*shown)
            except _PatternError as error:
                raise UnusableInputError(f"{where}: {error} in the pattern {pattern!r}.") from None
            self._program.append(codes.OP_END)
            self._land(*self._unknown)
            self._program.append(codes.OP_UNKNOWN)
            base = len(self._words.code)
            # Targets were relative to the program's start.
            for place in self._jumps:
                self._program[place] += base
            self._words.code += self._program
            self._compiled[pattern, is_function] = base
        return self._compiled[pattern, is_function]

    def _shows_value(self, nodes: list[_Node]) -> bool:
        """Return whether the pattern shows a number, or only a unit or a word, before which a number may be."""
        texts = [node for node in nodes if isinstance(node, str)]
        if len(texts) == len(nodes):
            return any(c.isalnum() or unicodedata.category(c)[0] == "S" for c in "".join(texts))
        return any(
            self._value(source).form in _VALUE_FORMATS for source in _expressions(nodes) if source[0] not in "?!"
        )

    def _emit_known(self, nodes: list[_Node]) -> None:
        """Emit the tests that the pattern describes the call; see the module's docstring."""
        everywhere = list(_expressions(nodes))
        for node in nodes if self._is_value else ():
            if isinstance(node, _Expression) and node.source[0] not in "?!*":
                value = self._value(node.source)
                if value.form in _VALUE_FORMATS and value.fallback is None:
                    # Without arguments a number may be missing, as in {{km}}, but an exponent may not.
                    test = codes.OP_TEST if value.form == codes.FORMAT_SUPERSCRIPT else codes.OP_SHOWN
                    self._unknown.append(self._emit_given(value.names, test))
        lookups = {name for source in everywhere for name in re.findall(r"@([\w-]+)", source)}
        shows = self._is_value or any(source[0] not in "?!" or source.startswith("!age") for source in everywhere)
        if shows and not any("*" in source for source in everywhere) and lookups.isdisjoint(_UNIT_TABLES):
            # The arguments of {!age:…} follow the colon.
            named = "|".join(source if source[0] == "!" else re.split('[=:@"^]', source)[0] for source in everywhere)
            numbers = [int(number) for number in re.findall(r"\b\d+\b", named)]
            self._unknown.append(self._emit_jump(codes.OP_KNOWN, max(numbers, default=0)))

    def _emit(self, nodes: list[_Node]) -> None:
        for node in nodes:
            if isinstance(node, str):
                self._program += [codes.OP_LITERAL, *self._literal(node)]
            elif isinstance(node, _Expression):
                self._emit_expression(node.source)
            else:
                self._emit_group(node)

    def _emit_shown(self, nodes: list[_Node]) -> list[int]:
        """Emit the test that a call with arguments has one to show, for a pattern that shows some unconditionally.

        `(lat. {{lang-la|}})` must not leave the language's name. Return the places of jumps to the end.
        """
        sources = [node.source for node in nodes if isinstance(node, _Expression)]
        everywhere = list(_expressions(nodes))
        has_text = any(isinstance(node, str) and node.strip() for node in nodes)
        if not sources or not has_text or any("*" in source or source[0] == "!" for source in everywhere):
            return []
        values = [self._value(source) for source in everywhere if source[0] != "?"]
        if any(value.fallback is not None for value in values):
            return []
        selectors = list(dict.fromkeys(itertools.chain.from_iterable(self._selectors(value.names) for value in values)))
        return [self._emit_jump(codes.OP_SHOWN, len(selectors), *selectors)]

    def _emit_group(self, alternatives: list[list[_Node]]) -> None:
        ends = []
        for alternative in alternatives:
            tests = [self._emit_test(node.source) for node in alternative if isinstance(node, _Expression)]
            self._emit(alternative)
            ends.append(self._emit_jump(codes.OP_JUMP))
            self._land(*(place for place in tests if place is not None))
        self._land(*ends)

    def _emit_jump(self, operation: int, *operands: int) -> int:
        """Emit an operation that may jump; return the place of its target, for `_land`."""
        place = len(self._program) + 1
        self._program += [operation, 0, *operands]
        self._jumps.append(place)
        return place

    def _land(self, *places: int) -> None:
        """Make the end of the program so far the target of jumps."""
        for place in places:
            self._program[place] = len(self._program)

    def _emit_test(self, expression: str) -> int | None:
        """Emit an expression's test of its alternative; return the place of its jump, or None if it has none."""
        if expression.startswith(("!", "*")) or re.match(r"\d+\*", expression):
            return None
        if expression.startswith("?"):
            return self._emit_condition(expression)
        value = self._value(expression)
        if value.fallback is not None:
            return None
        return self._emit_given(value.names)

    def _emit_given(self, names: str, test: int = codes.OP_TEST) -> int:
        """Emit the test that one of the arguments is present."""
        selectors = self._selectors(names)
        return self._emit_jump(test, len(selectors), *selectors)

    def _emit_condition(self, expression: str) -> int:
        """Emit the test of an expression that starts with a question mark."""
        flag = re.fullmatch(r"\?(!?)\^(\w+)", expression)
        if flag:
            if flag[2] not in _FLAGS:
                raise _PatternError(f"there is no circumstance {flag[2]!r}")
            return self._emit_jump(codes.OP_FLAG, _FLAGS[flag[2]], int(not flag[1]))
        if expression.startswith("?converted:"):
            return self._emit_conversion(codes.OP_CONVERTIBLE, expression.removeprefix("?converted:"))
        if expression.startswith("?!"):
            return self._emit_jump(codes.OP_ABSENT, self._words.selector(expression[2:]))
        expression = expression[1:]
        if expression.endswith(":word"):
            return self._emit_jump(codes.OP_WORD, self._words.selector(expression.removesuffix(":word")))
        if "=" in expression:
            name, value = expression.split("=", 1)
            if not value:
                raise _PatternError("a test for an empty value")
            selector = self._words.selector(name)
            folded = _fold(_unescape(value).encode())
            return self._emit_jump(codes.OP_EQUAL, selector, self._words.intern(folded), len(folded))
        for sign, test in (("@", codes.OP_IN_TABLE), ("^", codes.OP_STARTS)):
            if sign in expression:
                name, table = expression.split(sign, 1)
                return self._emit_jump(test, self._words.selector(name), self._domain(table))
        return self._emit_given(expression)

    def _emit_expression(self, expression: str) -> None:
        """Emit an expression's text; tests have none."""
        if expression.startswith("?"):
            return
        numbered = re.fullmatch(r"(\d*)\*(\d*):(.*?)(?:(?<!\\):(.*))?", expression, re.DOTALL)
        if numbered:
            separator = self._literal(_unescape(numbered[3]))
            last = self._literal(_unescape(numbered[4])) if numbered[4] is not None else separator
            self._program += [codes.OP_JOIN, int(numbered[1] or 1), int(numbered[2] or 1), *separator, *last]
        elif expression.startswith("!"):
            self._emit_function(expression[1:])
        else:
            self._emit_value(self._value(expression))

    def _emit_function(self, source: str) -> None:
        name, _, arguments = source.partition(":")
        if name == "age":
            selectors = [self._words.selector(part.strip()) for part in arguments.split(",")]
            if len(selectors) not in _AGE_ARGUMENTS:
                raise _PatternError("an age needs three or six arguments")
            self._program += [codes.OP_AGE, *selectors, *([0] * (max(_AGE_ARGUMENTS) - len(selectors)))]
        elif name == "converted":
            self._emit_conversion(codes.OP_CONVERTED, arguments)
        elif name == "title":
            self._program.append(codes.OP_TITLE)
        elif name == "unknown":
            self._program.append(codes.OP_UNKNOWN)
        elif name == "bracket":
            self._program += [codes.OP_LITERAL, *self._literal(chr(BRACKET_MARK))]
        elif name in self._constants:
            self._program += [codes.OP_LITERAL, *self._literal(self._constants[name])]
        else:
            raise _PatternError(f"there is no function {name!r}")

    def _emit_conversion(self, operation: int, source: str) -> int:
        """Emit a value in another unit, or the test that it can be converted; see OP_CONVERTED."""
        names, _, table = source.partition("@")
        parts = [part.partition("/") for part in names.split()]
        if len(parts) != _CONVERSION_ARGUMENTS:
            raise _PatternError("a conversion needs a value, its unit, the wanted unit and the precision")
        selectors = [self._words.selector(part[0]) for part in parts]
        other = self._words.selector(parts[0][2]) if parts[0][2] else 0
        named = self._domain(table) if table else 0
        one = self._domain("unit_one") if table == "unit" else 0
        tables = (self._domain("factor"), self._domain("target"), named, one)
        return self._emit_jump(operation, selectors[0], other, *selectors[1:], *tables)

    def _emit_value(self, value: _Value) -> None:
        selectors = self._selectors(value.names)
        form = value.form
        if self._is_value and form == codes.FORMAT_NUMBER:
            form = codes.FORMAT_SURE_NUMBER
        if self._is_value and form == codes.FORMAT_SUPERSCRIPT and not self._is_script:
            form = codes.FORMAT_EXPONENT
        if self._is_value and value.is_unit:
            self._unknown += [self._emit_jump(codes.OP_WORD, selector) for selector in selectors]
        operation = [codes.OP_VALUE, form, len(selectors), *selectors]
        if value.fallback is None:
            self._program += operation
            return
        not_given = self._emit_given(value.names)
        self._program += operation
        end = self._emit_jump(codes.OP_JUMP)
        self._land(not_given)
        self._program += [codes.OP_LITERAL, *self._literal(value.fallback)]
        self._land(end)

    def _value(self, expression: str) -> _Value:
        fallback = None
        quoted = re.search(r'\|?"(.*)"$', expression)
        if quoted:
            fallback = _unescape(quoted[1])
            expression = expression[: quoted.start()]
        lookup = re.fullmatch(r"(.+)@([\w-]+)", expression)
        if lookup:
            form = codes.FORMAT_TABLES + self._domain(lookup[2]) - codes.DOMAIN_TABLES
            return _Value(lookup[1], fallback, form, lookup[2] in _UNIT_TABLES)
        formatted = re.fullmatch(r"(.+):(\w+)", expression)
        if formatted:
            if formatted[2] not in _FORMATS:
                raise _PatternError(f"there is no format {formatted[2]!r}")
            return _Value(formatted[1], fallback, _FORMATS[formatted[2]])
        return _Value(expression, fallback, codes.FORMAT_PLAIN)

    def _literal(self, text: str) -> tuple[int, int]:
        """Return the offset and the length of a text in the pool."""
        encoded = text.encode()
        return self._words.intern(encoded), len(encoded)

    def _selectors(self, names: str) -> list[int]:
        return [self._words.selector(name.strip()) for name in names.split("|")]

    def _domain(self, table: str) -> int:
        if table not in self._domains:
            raise _PatternError(f"there is no table {table!r}")
        return self._domains[table]
