"""Rules for templates that carry text, compiled from data files to programs for the wikitext kernel.

A file `data/templates/<language>.rules` (and `common.rules`, which every language starts from) has two kinds of
section. `[table NAME]` maps keys to texts, `[rules]` maps template names to patterns:

    [table month]
    1|01|january = January

    [rules]
    nowrap|nobr = {1}
    birth date = [{?df}{3} {2@month} {1}||{2@month} {3}, {1}]

Names compare ignoring ASCII case, but for those of two or three capitals: `|` separates names that share a pattern. A
name that ends in `:` is a parser function, whose first argument follows the colon. `{@NAME}` in a name, with `{@}` in
the pattern, makes one rule for each row of table NAME: the key stands in the name, the text in the pattern.

A pattern is literal text with
    {1} {name}         the argument, trimmed; {a|b|"c"}: the first that is not empty, or the literal c
    {2@month}          the argument looked up in a table, or the argument itself if the table has no such key
    {1:number}         the argument formatted: number, integer, lower, upper, first_upper, first_lower, superscript
    [A||B]             the first alternative whose direct arguments are all given; nothing if there is none
    {?^start} {?^bracket}  in an alternative: only if the call starts its line, stands in brackets; {?!^start} if not
    {?a} {?!a} {?a=x} {?a@t}   in an alternative: only if a is given, is not given, is x, is a key of table t
    {*:, } {*:, : and }  all numbered arguments joined; {2*:, } from the second; {2*2:, } every other one
    {!age:1,2,3}       full years from that date to the dump's, or to the date in three further arguments
    {!title}           the page's title; {!year} {!month} {!day} {!hour}: the dump's date, two digits each but the year
    \\n \\s \\[ ...       a line break, a space, the character itself
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from transforms.errors import UnusableInputError
from transforms.extraction.kernels import tables as kernels

_FORMATS = {
    "number": kernels.FORMAT_NUMBER,
    "lower": kernels.FORMAT_LOWER,
    "upper": kernels.FORMAT_UPPER,
    "integer": kernels.FORMAT_INTEGER,
    "superscript": kernels.FORMAT_SUPERSCRIPT,
    "first_upper": kernels.FORMAT_FIRST_UPPER,
    "first_lower": kernels.FORMAT_FIRST_LOWER,
}

_FLAGS = {"start": kernels.FLAG_START, "bracket": kernels.FLAG_BRACKET}

FOLD = np.arange(256, dtype=np.uint8)
FOLD[ord("A") : ord("Z") + 1] += 32
FOLD[ord("_")] = ord(" ")


@dataclass
class WordTable:
    """Collects the strings, names and programs that become the arrays of kernels.tables.Tables."""

    pool: bytearray = field(default_factory=bytearray)
    code: list[int] = field(default_factory=lambda: [0])
    entries: dict[tuple[int, bytes], tuple[int, int]] = field(default_factory=dict)
    _offsets: dict[bytes, int] = field(default_factory=dict)
    _names: dict[bytes, int] = field(default_factory=dict)

    def intern(self, text: bytes) -> int:
        """The offset of `text` in the pool."""
        if text not in self._offsets:
            self._offsets[text] = len(self.pool)
            self.pool += text
        return self._offsets[text]

    def selector(self, argument: str) -> int:
        """The number by which programs name an argument; see kernels.rules.find_argument."""
        if argument.isascii() and argument.isdigit() and argument != "0":
            return int(argument)
        name = argument.encode()
        if name not in self._names:
            self._names[name] = len(self.code)
            self.code += [self.intern(name), len(name)]
        return -1 - self._names[name]

    def add(self, domain: int, name: str, value: int, second: int = 0) -> None:
        """Maps a name of a domain to two numbers; both cases of a first letter beyond ASCII count as the name."""
        forms = {name}
        if name and not name[0].isascii():
            forms |= {name[0].upper() + name[1:], name[0].lower() + name[1:]}
        for form in forms:
            key = form.encode()
            if domain not in (kernels.DOMAIN_ENTITY, kernels.DOMAIN_TEX):
                key = bytes(FOLD[np.frombuffer(key, np.uint8)])
            self.entries[domain, key] = (value, second)

    def add_text(self, domain: int, name: str, text: str) -> None:
        """Maps a name of a domain to a text."""
        encoded = text.encode()
        self.add(domain, name, self.intern(encoded), len(encoded))

    def arrays(self) -> tuple[NDArray[np.void], NDArray[np.uint8], NDArray[np.int32]]:
        """(words, pool, code) as kernels.tables.Tables has them."""
        capacity = 16
        while capacity < 2 * len(self.entries):
            capacity *= 2
        words = np.zeros(capacity, kernels.WORD)
        offsets = {key: self.intern(key) for _, key in self.entries}
        for (domain, key), (value, second) in self.entries.items():
            source = np.frombuffer(key or b"\0", np.uint8)
            code = int(kernels.hash_bytes(FOLD, domain, source, 0, len(key)))
            row = code & (capacity - 1)
            while words["domain"][row] != 0:
                row = (row + 1) & (capacity - 1)
            words[row] = (code, domain, offsets[key], len(key), value, second)
        return words, np.frombuffer(bytes(self.pool) or b"\0", np.uint8).copy(), np.array(self.code, np.int32)


@dataclass(frozen=True)
class RuleFile:
    """What a rule file says: its tables, and (names, pattern, where it stands) of its rules."""

    tables: Mapping[str, Mapping[str, str]]
    rules: list[tuple[list[str], str, str]]


def parse_rules(text: str, where: str) -> RuleFile:
    """Reads a rule file; see the module's comment. Raises UnusableInputError naming the line of a mistake."""
    tables: dict[str, dict[str, str]] = {}
    rules: list[tuple[list[str], str, str]] = []
    table: dict[str, str] | None = None
    section = ""
    for number, line in enumerate(text.split("\n"), 1):
        place = f"{where} line {number}"
        line = line.strip()
        if not line or line.startswith("# "):
            continue
        heading = re.fullmatch(r"\[(rules|table ([\w-]+))\]", line)
        if heading:
            section = heading[1]
            table = tables.setdefault(heading[2], {}) if heading[2] else None
            continue
        split = line.find(" =", 1)
        if not section or split < 0:
            raise UnusableInputError(f"{place} is neither a section nor `name = text`: {line!r}")
        left, right = line[:split], line[split + 2 :].strip()
        names = [name.strip() for name in left.split("|")] if left != "|" else ["|"]
        if table is not None:
            for name in names:
                table[name] = _unescape(right)
        else:
            rules.append((names, right, place))
    return RuleFile(tables, rules)


def load_rules(language: str) -> list[RuleFile]:
    """The rule files that hold for a language code, least specific first."""
    folder = resources.files("transforms.extraction") / "data" / "templates"
    files: list[tuple[str, RuleFile]] = []
    for name in ("common", language.split("-")[0], language):
        path = folder / f"{name}.rules"
        if path.is_file() and all(file[0] != name for file in files):
            files.append((name, parse_rules(path.read_text(encoding="utf-8"), f"{name}.rules")))
    return [file for _, file in files]


def add_rules(words: WordTable, files: list[RuleFile], date: tuple[int, int, int]) -> None:
    """Compiles rule files into `words`; a later file's rules and table rows replace an earlier one's.

    `date` is the dump's (year, month, day).
    """
    tables: dict[str, dict[str, str]] = {}
    for file in files:
        for name, rows in file.tables.items():
            tables.setdefault(name, {}).update(rows)
    domains = {name: kernels.DOMAIN_TABLES + i for i, name in enumerate(tables)}
    for name, rows in tables.items():
        for key, text in rows.items():
            words.add_text(domains[name], key, text)
    compiler = _Compiler(words, tables, domains, date)
    for file in files:
        for names, pattern, where in file.rules:
            for name in names:
                spread = re.search(r"\{@([\w-]+)\}", name)
                if spread:
                    if spread[1] not in tables:
                        raise UnusableInputError(f"{where}: there is no table {spread[1]!r}")
                    for key, text in tables[spread[1]].items():
                        escaped = re.sub(r"([\\{}\[\]])", r"\\\1", text)
                        program = compiler.compile(pattern.replace("{@}", escaped), where)
                        _add_name(words, name.replace(spread[0], key), program)
                else:
                    _add_name(words, name, compiler.compile(pattern, where))


def names_with_rules(words: WordTable) -> Callable[[str], bool]:
    """A function that tells whether a template's name has a rule in `words`."""

    def has_rule(name: str) -> bool:
        encoded = name.strip().encode()
        key = bytes(FOLD[np.frombuffer(encoded, np.uint8)])
        found = words.entries.get((kernels.DOMAIN_TEMPLATE, key))
        if found is None:
            return False
        return not found[1] or words.pool[found[1] - 1 : found[1] - 1 + len(encoded)] == encoded

    return has_rule


def _add_name(words: WordTable, name: str, program: int) -> None:
    if name.endswith(":") and len(name) > 1:
        words.add(kernels.DOMAIN_FUNCTION, name[:-1], program)
    else:
        # {{PER}} is Peru, and {{per}} is not.
        exact = words.intern(name.encode()) + 1 if re.fullmatch("[A-Z]{2,3}", name) else 0
        words.add(kernels.DOMAIN_TEMPLATE, name, program, exact)


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "s": " "}.get(m[1], m[1]), text)


class _Compiler:
    """Turns patterns into programs, appended to words.code."""

    def __init__(
        self,
        words: WordTable,
        tables: Mapping[str, Mapping[str, str]],
        domains: Mapping[str, int],
        date: tuple[int, int, int],
    ) -> None:
        self.words = words
        self.domains = domains
        year, month, day = date
        self.constants = {
            "year": str(year),
            "month": f"{month:02}",
            "day": f"{day:02}",
            "hour": "00",
            "day1": str(day),
            "month1": str(month),
            "monthname": tables.get("month", {}).get(str(month), str(month)),
            "monthgenitive": tables.get("month_genitive", tables.get("month", {})).get(str(month), str(month)),
        }
        self.done: dict[str, int] = {}

    def compile(self, pattern: str, where: str) -> int:
        """The place in words.code where the pattern's program starts."""
        if pattern not in self.done:
            self.where = where
            self.pattern = pattern
            self.position = 0
            tree = self._sequence(top=True)
            program: list[int] = []
            self._emit(tree, program)
            program.append(kernels.OP_END)
            base = len(self.words.code)
            # Jumps were made relative to the program's start.
            self.words.code += program
            for place in self._jumps:
                self.words.code[base + place] += base
            self.done[pattern] = base
        return self.done[pattern]

    def _fail(self, what: str) -> UnusableInputError:
        return UnusableInputError(f"{self.where}: {what} in the pattern {self.pattern!r}")

    # Parsing: a sequence is a list of ("text", str), ("group", [sequence, ...]) and ("expression", str).

    def _sequence(self, top: bool = False) -> list[tuple[str, object]]:
        items: list[tuple[str, object]] = []
        literal = ""
        pattern = self.pattern

        def flush() -> None:
            nonlocal literal
            if literal:
                items.append(("text", literal))
                literal = ""

        if top:
            self._jumps: list[int] = []
        while self.position < len(pattern):
            c = pattern[self.position]
            if c == "\\":
                literal += _unescape(pattern[self.position : self.position + 2])
                self.position += 2
            elif c == "{":
                end = self.position + 1
                while end < len(pattern) and pattern[end] != "}":
                    end += 2 if pattern[end] == "\\" else 1
                if end >= len(pattern):
                    raise self._fail("a { is not closed")
                flush()
                items.append(("expression", pattern[self.position + 1 : end]))
                self.position = end + 1
            elif c == "[":
                flush()
                self.position += 1
                alternatives = [self._sequence()]
                while pattern.startswith("||", self.position):
                    self.position += 2
                    alternatives.append(self._sequence())
                if self.position >= len(pattern):
                    raise self._fail("a [ is not closed")
                self.position += 1
                items.append(("group", alternatives))
            elif not top and (c == "]" or pattern.startswith("||", self.position)):
                break
            else:
                literal += c
                self.position += 1
        flush()
        return items

    # Code

    def _literal(self, text: str) -> tuple[int, int]:
        encoded = text.encode()
        return self.words.intern(encoded), len(encoded)

    def _selectors(self, names: str) -> list[int]:
        return [self.words.selector(name.strip()) for name in names.split("|")]

    def _domain(self, table: str) -> int:
        if table not in self.domains:
            raise self._fail(f"there is no table {table!r}")
        return self.domains[table]

    def _value(self, expression: str) -> tuple[str, str | None, int]:
        """(argument names, literal to fall back to, format) of a value expression."""
        form = kernels.FORMAT_PLAIN
        fallback = None
        quoted = re.search(r'\|?"(.*)"$', expression)
        if quoted:
            fallback = _unescape(quoted[1])
            expression = expression[: quoted.start()]
        at = re.fullmatch(r"(.+)@([\w-]+)", expression)
        colon = re.fullmatch(r"(.+):(\w+)", expression)
        if at:
            expression = at[1]
            form = kernels.FORMAT_TABLES + self._domain(at[2]) - kernels.DOMAIN_TABLES
        elif colon:
            if colon[2] not in _FORMATS:
                raise self._fail(f"there is no format {colon[2]!r}")
            expression = colon[1]
            form = _FORMATS[colon[2]]
        return expression, fallback, form

    def _emit(self, items: list[tuple[str, object]], program: list[int]) -> None:
        for kind, item in items:
            if kind == "text":
                assert isinstance(item, str)
                program += [kernels.OP_LITERAL, *self._literal(item)]
            elif kind == "group":
                assert isinstance(item, list)
                self._emit_group(item, program)
            else:
                assert isinstance(item, str)
                self._emit_expression(item, program)

    def _emit_group(self, alternatives: list[list[tuple[str, object]]], program: list[int]) -> None:
        ends: list[int] = []
        for alternative in alternatives:
            failures: list[int] = []
            for kind, item in alternative:
                if kind == "expression":
                    assert isinstance(item, str)
                    failures += self._emit_test(item, program)
            self._emit(alternative, program)
            program += [kernels.OP_JUMP, 0]
            ends.append(len(program) - 1)
            for place in failures:
                program[place] = len(program)
        for place in ends:
            program[place] = len(program)
            self._jumps.append(place)

    def _emit_test(self, expression: str, program: list[int]) -> list[int]:
        """Emits the test that an expression puts to its alternative; where its jump stands."""
        if expression.startswith(("!", "*")) or re.match(r"\d+\*", expression):
            return []
        flag = re.fullmatch(r"\?(!?)\^(\w+)", expression)
        if flag:
            if flag[2] not in _FLAGS:
                raise self._fail(f"there is no circumstance {flag[2]!r}")
            program += [kernels.OP_FLAG, 0, _FLAGS[flag[2]], int(not flag[1])]
            place = len(program) - 3
        elif expression.startswith("?!"):
            program += [kernels.OP_ABSENT, 0, self.words.selector(expression[2:])]
            place = len(program) - 2
        elif expression.startswith("?"):
            expression = expression[1:]
            if "=" in expression:
                name, value = expression.split("=", 1)
                folded = bytes(FOLD[np.frombuffer(_unescape(value).encode() or b"\0", np.uint8)])
                if not value:
                    raise self._fail("a test for an empty value")
                program += [kernels.OP_EQUAL, 0, self.words.selector(name), self.words.intern(folded), len(folded)]
                place = len(program) - 4
            elif "@" in expression:
                name, table = expression.split("@", 1)
                program += [kernels.OP_IN_TABLE, 0, self.words.selector(name), self._domain(table)]
                place = len(program) - 3
            else:
                selectors = self._selectors(expression)
                program += [kernels.OP_TEST, 0, len(selectors), *selectors]
                place = len(program) - 2 - len(selectors)
        else:
            names, fallback, _ = self._value(expression)
            if fallback is not None:
                return []
            selectors = self._selectors(names)
            program += [kernels.OP_TEST, 0, len(selectors), *selectors]
            place = len(program) - 2 - len(selectors)
        self._jumps.append(place)
        return [place]

    def _emit_expression(self, expression: str, program: list[int]) -> None:
        if expression.startswith("?"):
            return
        joined = re.fullmatch(r"(\d*)\*(\d*):(.*?)(?:(?<!\\):(.*))?", expression, re.DOTALL)
        if joined:
            separator = self._literal(_unescape(joined[3]))
            last = self._literal(_unescape(joined[4])) if joined[4] is not None else separator
            program += [kernels.OP_JOIN, int(joined[1] or 1), int(joined[2] or 1), *separator, *last]
            return
        if expression.startswith("!"):
            name, _, rest = expression[1:].partition(":")
            if name == "age":
                selectors = [self.words.selector(part.strip()) for part in rest.split(",")]
                if len(selectors) not in (3, 6):
                    raise self._fail("an age needs three or six arguments")
                program += [kernels.OP_AGE, *selectors, *([0] * (6 - len(selectors)))]
            elif name == "title":
                program.append(kernels.OP_TITLE)
            elif name in self.constants:
                program += [kernels.OP_LITERAL, *self._literal(self.constants[name])]
            else:
                raise self._fail(f"there is no function {name!r}")
            return
        names, fallback, form = self._value(expression)
        selectors = self._selectors(names)
        if fallback is None:
            program += [kernels.OP_VALUE, form, len(selectors), *selectors]
            return
        program += [kernels.OP_TEST, 0, len(selectors), *selectors]
        failure = len(program) - 2 - len(selectors)
        program += [kernels.OP_VALUE, form, len(selectors), *selectors, kernels.OP_JUMP, 0]
        end = len(program) - 1
        program[failure] = len(program)
        program += [kernels.OP_LITERAL, *self._literal(fallback)]
        program[end] = len(program)
        self._jumps += [failure, end]
