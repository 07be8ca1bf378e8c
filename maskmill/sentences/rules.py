"""The rules that split a language's sentences: Punkt's parameters, marks that end sentences, words, ordinals.

They are in data/languages.toml, which explains its keys.
"""

import dataclasses
import functools
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskmill.extraction.template_rules import load_rules
from maskmill.sentences.kernels import boundaries, words

TRAINED = "trained"  # SentenceRules.punkt where parameters were trained on the corpus
_ENGLISH = "en"
_VARIANT_SEPARATOR = "-"  # in codes such as zh-hans, whose language is zh
_UNKNOWN = "common"  # the entry for languages without one
_SAMPLE = 100_000  # characters from which a script is detected
_LATIN, _IDEOGRAPHS, _KANA = "LATIN", "CJK", "HIRAGANA"
_LEAST_KANA = 20  # Japanese text has at least one kana for so many ideographs


@dataclass(frozen=True, kw_only=True)
class SentenceRules:
    """The rules that split the text of one language into sentences.

    language: the code of its Wikipedia, "en", "uk", "zh", …; "" if only the script is known.
    punkt: NLTK's name of Punkt parameters ("english"); "trained" if the splitter gets its parameters; None for a
    language without parameters, which has only the words of the data file.
    stops: the marks that end a sentence besides `.`, `?` and `!`, each one character, such as "。।։"; "" for none.
    by_spaces: the language has no marks, and ends its sentences with spaces, as Thai and Lao do.
    words: the entries of data/languages.toml that hold abbreviations, ordinals and such; none for plain Punkt.
    """

    language: str
    punkt: str | None
    stops: str = ""
    by_spaces: bool = False
    words: tuple[str, ...] = ()

    @property
    def is_plain_punkt(self) -> bool:
        """True if Punkt alone decides, as NLTK's `sent_tokenize` does."""
        return not self.words and not self.stops


@functools.cache
def data() -> Mapping[str, Any]:
    """Return the content of data/languages.toml."""
    path = resources.files("maskmill.sentences") / "data" / "languages.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def codes_of(language_code: str) -> tuple[str, str]:
    """Return a code as the data files spell it, and its language's code: `zh-hans` and `zh`."""
    code = language_code.lower().replace("_", _VARIANT_SEPARATOR)
    return code, code.split(_VARIANT_SEPARATOR)[0]


def scripts_of(text: str) -> dict[str, int]:
    """Return the number of letters of each script, by the first word of the letters' names in Unicode (`LATIN`)."""
    scripts: Counter[str] = Counter()
    for character, number in Counter(text).items():
        if character.isalpha():
            scripts[unicodedata.name(character, "unknown").split(" ")[0]] += number
    return dict(scripts)


def entry_of(language_code: str) -> str:
    """Return the code of a language's entry: that of its alias, of `zh` for `zh-hans`, or of unknown languages."""
    found = (data()["aliases"].get(candidate, candidate) for candidate in codes_of(language_code))
    return next((str(code) for code in found if code in data()["language"]), _UNKNOWN)


def _rules(language: str, codes: Sequence[str], punkt: str | None) -> SentenceRules:
    """Return the rules of the entries `codes`, together with the entries that these name as `like`."""
    entries = data()["language"]
    found = list(codes)
    for code in found:  # grows
        found += [other for other in entries[code].get("like", ()) if other not in found]
    return SentenceRules(
        language=language,
        punkt=punkt,
        stops=data()["stops"] + "".join(entries[code].get("stops", "") for code in codes),
        by_spaces=any(entries[code].get("by_spaces", False) for code in codes),
        words=tuple(found),
    )


def rules_for(language_code: str) -> SentenceRules:
    """Return the rules of a language by the code of its Wikipedia or by its ISO 639 code; `zh-hans` counts as `zh`.

    A language without an entry has no parameters and a few abbreviations: its sentences end at a full stop, unless a
    lower-case letter, an initial or such forbids it, and at the marks of all scripts.
    """
    code = entry_of(language_code)
    punkt = data()["language"][code].get("punkt")
    return _rules(language_code, (code,), punkt)


def rules_for_script(sample: str) -> SentenceRules:
    """Return the rules for a text of an unknown language, by the script of most of its letters.

    A text of Latin letters, or without letters, gets the rules of English.
    """
    counts = Counter(scripts_of(sample[:_SAMPLE]))
    entries: Mapping[str, Sequence[str]] = data()["script"]
    script = max(entries, key=lambda name: counts[name])
    if counts[_LATIN] >= counts[script]:
        return dataclasses.replace(rules_for(_ENGLISH), language="")
    if script == _IDEOGRAPHS and counts[_KANA] * _LEAST_KANA > counts[script]:
        script = _KANA
    return _rules("", entries[script], None)


_TABLE_SIZE = 1 << 16  # marks and brackets are all in the basic plane
# Marks that end a sentence only before white space or before text of their own script: they are also used in
# abbreviations (Urdu), and between the letters of a number or a name.
_SPACED_STOPS = "۔ـ;\u037e؟:"
_FULL_WIDTH_POINTS = "．"
# The characters before the blank open a group, those after it close the group. Width does not matter.
_BRACKETS = ("(（ )）", "[［ ]］", "{｛ }｝", "【〖 】〗", "〔 〕")
_QUOTES = ("「｢ 」｣", "『 』", "《 》", "〈 〉", "„ ", "‹ ›", "﹁ ﹂", "﹃ ﹄")
_CURLY = 4  # the number of the group of „, which “ and ” close, too
_GUILLEMETS = len(_QUOTES)
# Right after a mark, without white space, these continue the sentence.
_JOINING_MARKS = "&,;:，、；：､—–―…‥·・～〜~-%％№"
# After a mark and a closing quotation mark, these do so as well: Japanese particles, Chinese 的 and such.
_JOINING_QUOTES = "とっはがをにもでやなへのか的之等是和與与及或為为"
_APOSTROPHES = "'’‘"


def _groups(table: NDArray[np.uint16], groups: tuple[str, ...], first: int) -> None:
    for number, group in enumerate(groups, first):
        openers, _, closers = group.partition(" ")
        for characters, kind in ((openers, boundaries.OPENS), (closers, boundaries.CLOSES)):
            for character in characters:
                table[ord(character)] = kind | number


@functools.cache
def character_classes(rules: SentenceRules) -> NDArray[np.uint16]:
    """Return the classes of all characters of the basic plane for a language, uint16 [65536], indexed by code point."""
    table = np.zeros(_TABLE_SIZE, np.uint16)
    for character in rules.stops:
        is_spaced = character in _SPACED_STOPS
        table[ord(character)] = boundaries.SPACED_STOP if is_spaced else boundaries.STOP
    for characters, kind in (
        (".?!", boundaries.MARK),
        ("…‥", boundaries.ELLIPSIS),
        (_FULL_WIDTH_POINTS, boundaries.FULL_WIDTH_POINT),
        (_APOSTROPHES, boundaries.APOSTROPHE),
        (boundaries.BULLETS, boundaries.BULLET),
        (" \u00a0\u3000" if rules.by_spaces else "", boundaries.SPACE_EVENT),
    ):
        for character in characters:
            table[ord(character)] = kind
    _groups(table, _BRACKETS, 0)
    _groups(table, _QUOTES, boundaries.FIRST_QUOTE)
    curly, guillemets = boundaries.FIRST_QUOTE + _CURLY, boundaries.FIRST_QUOTE + _GUILLEMETS
    either = boundaries.OPENS | boundaries.CLOSES
    table[ord("“")] = either | curly
    table[ord("”")] = either | boundaries.SELF | curly
    table[ord("«")] = either | guillemets
    table[ord("»")] = either | boundaries.SELF | guillemets
    table[ord('"')] = either | boundaries.SELF | boundaries.STRAIGHT
    for character in _JOINING_MARKS:
        table[ord(character)] |= boundaries.JOINS
    for character in _JOINING_QUOTES:
        table[ord(character)] |= boundaries.JOINS_QUOTE
    return table


_BITS = {
    "never": words.NEVER,
    "before_number": words.BEFORE_NUMBER,
    "may_end": words.MAY_END,
    "rarely_ends": words.RARELY_ENDS,
    "ordinary": words.ORDINARY,
    "follows_ordinal": words.FOLLOWS_ORDINAL,
    "joins": words.JOINING,
    "starts": words.STARTING,
    "pending": words.PENDING,
    "verbs": words.VERB,
    "relatives": words.RELATIVE,
    "nominals": words.NOMINAL,
    "fronts": words.FRONTING,
    "opens": words.OPENING,
    "plain": words.PLAIN,
    "finites": words.FINITE,
    "subordinates": words.SUBORDINATE,
}
_FLAGS = {
    "ordinals": words.ORDINALS,
    "roman": words.ROMAN,
    "years": words.YEARS,
    "dates": words.DATES,
    "nouns": words.NOUNS,
    "no_full_stops": words.NO_FULL_STOPS,
    "clauses": words.CLAUSES,
    "punkt_letters": words.PUNKT_LETTERS,
}
_OTHER_SPACE = "\u00a0"
_LANGUAGES = "language"  # the table of rules files that holds the words before foreign names: "lat.", "engl."


class Words(NamedTuple):
    """Words in lower case without their full stop, with their bits; and the flags of a language."""

    bits: Mapping[str, int]
    flags: int

    @property
    def longest_abbreviation(self) -> int:
        """The length in bytes of the longest abbreviation, or word that looks like one, in either case."""
        abbreviations = [word for word, bits in self.bits.items() if bits & (words.ABBREVIATES | words.ORDINARY)]
        return max((len(form.encode()) for word in abbreviations for form in (word, word.upper())), default=0)


def _bracket_words(code: str) -> Iterator[str]:
    """Yield the abbreviations that templates write before foreign names; "дав.-гр." gives both its parts."""
    for file in load_rules(code):
        for text in file.tables.get(_LANGUAGES, {}).values():
            for word in text.replace("-", " ").split():
                if word.endswith("."):
                    yield word[:-1].lower()


def _own_bits(entry: Mapping[str, Any]) -> dict[str, int]:
    """Return one entry's words with their bits; a word with a space appears with a plain and with a fixed one."""
    bits: dict[str, int] = {}
    for key, bit in _BITS.items():
        for name in entry.get(key, "").split():
            for word in {name.lower().replace("_", space) for space in (" ", _OTHER_SPACE)}:
                bits[word] = bits.get(word, 0) | bit
    return bits


@functools.cache
def words_of(rules: SentenceRules) -> Words:
    """Return the words of all entries of data/languages.toml that the rules name; none for plain Punkt.

    If entries disagree about a word or a flag, the first one counts.
    """
    bits = dict.fromkeys(data()["follows_ordinal"].split(), words.FOLLOWS_ORDINAL) if rules.words else {}
    entries: list[Mapping[str, Any]] = [data()["language"][code] for code in rules.words]
    for code, entry in zip(rules.words, entries, strict=True):
        own = _own_bits(entry)
        ordinary = entry.get("ordinary", "").split()
        for word in _bracket_words(code):
            if word not in ordinary and not own.get(word, 0) & words.MAY_END:
                own[word] = own.get(word, 0) | words.NEVER
        bits = {**own, **bits}
    if rules.words:
        bits |= {word: bits.get(word, 0) | words.FIRM for word in data()["firms"].split()}
    flags = sum(flag for key, flag in _FLAGS.items() if next((entry[key] for entry in entries if key in entry), False))
    return Words(bits, flags)
