"""Paragraphs to sentences by Punkt, with the decisions of NLTK's `sent_tokenize`, compiled.

The parameters are NLTK's own (`punkt_tab`); English comes with the package, other languages are taken from where
`python -m nltk.downloader punkt_tab` puts them. Source: nltk/tokenize/punkt.py; Kiss & Strunk, Computational
Linguistics 32 (2006).
"""

import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transforms import punkt_unicode
from transforms.errors import UnusableInputError
from transforms.kernels import punkt

PunktRules = Literal["nltk-3.10", "nltk-3.4"]

_DATA = Path(__file__).parent / "data"
_PAGE = 256  # code points a page of the character tables
_NUMBER = "##number##"
_COLLECTION = "tokenizers/punkt_tab"

_UNICODE_SPACES = "\x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
_SPACES = "\t\n\x0b\x0c\r " + _UNICODE_SPACES
_SEPARATORS = "\x1c\x1d\x1e\x1f"  # white space for str and for the module re, not for the module regex
_CURLY_QUOTES = "‘’“”«»"
_ASCII_NON_WORD = "?!)\";}]*:@'({["
_ASCII_CLOSERS = "\"')]}"
_NO_WORD_START = '("`{[:;&#*@)}]-,'


class _Rules(NamedTuple):
    """What differs between the versions of NLTK."""

    spaces: str
    non_word: str
    closers: str
    ascii_words: bool


# NLTK 3.4.5 compiles its regular expressions with the module re, 3.10 with regex; 3.6.6 changed the search for the
# word before a candidate; 3.10 counts curly quotes as closing marks.
_RULES: dict[PunktRules, _Rules] = {
    "nltk-3.4": _Rules(_SPACES + _SEPARATORS, _ASCII_NON_WORD, _ASCII_CLOSERS, ascii_words=False),
    "nltk-3.10": _Rules(_SPACES, _ASCII_NON_WORD + _CURLY_QUOTES, _ASCII_CLOSERS + _CURLY_QUOTES, ascii_words=True),
}
_PROPERTY_BITS = dict(
    zip(
        punkt_unicode.PROPERTIES,
        (punkt.ALPHA, punkt.DIGIT, punkt.UPPER, punkt.LOWER, punkt.CASED, punkt.IGNORABLE),
        strict=True,
    )
)


class _Characters(NamedTuple):
    page_of: NDArray[np.uint16]
    properties: NDArray[np.uint16]
    lower_delta: NDArray[np.int32]


@functools.cache
def _characters(rules: PunktRules) -> _Characters:
    """The character tables of one version, see transforms/kernels/punkt.py for their layout."""
    properties = np.zeros(punkt_unicode.NUM_CODE_POINTS, np.uint16)
    delta = np.zeros(punkt_unicode.NUM_CODE_POINTS, np.int32)
    table = (_DATA / "punkt_unicode" / f"{rules}.tsv").read_text(encoding="ascii")
    used = {0}
    for run in punkt_unicode.read_runs(table):
        properties[run.first : run.last + 1] = sum(int(_PROPERTY_BITS[letter]) for letter in run.letters)
        delta[run.first : run.last + 1] = run.delta
        used.update(range(run.first // _PAGE, run.last // _PAGE + 1))
    held = _RULES[rules]
    for bit, characters in (
        (punkt.SPACE, held.spaces),
        (punkt.STRIPPED, _SPACES + _SEPARATORS),
        (punkt.NON_WORD, held.non_word),
        (punkt.CLOSER, held.closers),
        (punkt.NO_WORD_START, _NO_WORD_START),
    ):
        for character in characters:
            properties[ord(character)] |= bit
            used.add(ord(character) // _PAGE)
    # Equal pages are kept once: most of the planes are empty or all letters.
    pages: dict[bytes, int] = {}
    page_of = np.zeros(punkt_unicode.NUM_CODE_POINTS // _PAGE, np.uint16)
    kept: list[int] = []
    for page in range(page_of.size):
        if page in used:
            block = slice(page * _PAGE, (page + 1) * _PAGE)
            content = properties[block].tobytes() + delta[block].tobytes()
        else:
            content = b""
        if content not in pages:
            pages[content] = len(kept)
            kept.append(page)
        page_of[page] = pages[content]
    return _Characters(page_of, properties.reshape(-1, _PAGE)[kept], delta.reshape(-1, _PAGE)[kept])


class _Parameters(NamedTuple):
    """Punkt's parameters of a language as its four files hold them."""

    abbreviations: frozenset[str]
    starters: frozenset[str]
    collocations: frozenset[tuple[str, str]]
    contexts: dict[str, int]


def _parse_parameters(read: Callable[[str], str]) -> _Parameters:
    def lines(name: str) -> list[str]:
        return [line for line in read(name).split("\n") if line]

    collocations = []
    for line in lines("collocations.tab"):
        first, second = line.split("\t")
        collocations.append((first, second))
    contexts = {}
    for line in lines("ortho_context.tab"):
        word, context = line.rsplit("\t", 1)
        contexts[word] = int(context)
    return _Parameters(
        abbreviations=frozenset(lines("abbrev_types.txt")),
        starters=frozenset(lines("sent_starters.txt")),
        collocations=frozenset(collocations),
        contexts=contexts,
    )


def _read_bundled(language: str, name: str) -> str:
    return (_DATA / "punkt_tab" / language / name).read_text(encoding="utf-8")


def _read_nltk_data(language: str, name: str) -> str:
    import nltk.data

    with nltk.data.find(f"{_COLLECTION}/{language}/{name}").open() as file:
        content: bytes = file.read()
    return content.decode("utf-8")


def _parameters(language: str) -> _Parameters:
    if not language.isidentifier():
        raise UnusableInputError(f"--language={language} is not the name of a Punkt language, such as german.")
    if (_DATA / "punkt_tab" / language).is_dir():
        return _parse_parameters(functools.partial(_read_bundled, language))
    try:
        return _parse_parameters(functools.partial(_read_nltk_data, language))
    except LookupError as error:
        raise UnusableInputError(
            f"There are no Punkt parameters for --language={language} on this machine: fetch NLTK's with "
            "`python -m nltk.downloader punkt_tab` (on every machine that runs workers; NLTK_DATA names the folder "
            "if it is not the usual one), or name one of its languages."
        ) from error


def _code_points(words: Iterable[str]) -> NDArray[np.int32]:
    return np.frombuffer("".join(words).encode("utf-32-le"), np.int32)


def _hash(word: str) -> int:
    """The kernel's hash of a word (FNV-1a over code points, folded)."""
    hashed = 14695981039346656037
    for character in word:
        hashed = (hashed ^ ord(character)) * 1099511628211 & 0xFFFFFFFFFFFFFFFF
    return hashed ^ hashed >> 32


@functools.cache
def _model(language: str, rules: PunktRules) -> punkt.Model:
    held = _parameters(language)
    bits: dict[str, int] = {_NUMBER: 0, **held.contexts}
    for words, bit in (
        (held.abbreviations, punkt.ABBREVIATION),
        (held.starters, punkt.STARTER),
        ({first for first, _ in held.collocations}, punkt.COLLOCATES),
        ({second for _, second in held.collocations}, 0),
    ):
        for word in sorted(words):
            bits[word] = bits.get(word, 0) | bit
    numbers = {word: number for number, word in enumerate(bits)}
    slots = np.full(1 << (2 * len(bits)).bit_length(), -1, np.int32)
    for word, number in numbers.items():
        slot = _hash(word) & slots.size - 1
        while slots[slot] >= 0:
            slot = slot + 1 & slots.size - 1
        slots[slot] = number
    lengths = [len(word) for word in bits]
    characters = _characters(rules)
    return punkt.Model(
        page_of=characters.page_of,
        properties=characters.properties,
        lower_delta=characters.lower_delta,
        slots=slots,
        starts=np.concatenate(([0], np.cumsum(lengths))).astype(np.int32),
        letters=_code_points(bits),
        bits=np.fromiter(bits.values(), np.int32, len(bits)),
        collocations=np.sort(
            np.array([numbers[first] << 32 | numbers[second] for first, second in held.collocations], np.int64)
        ),
        number_word=numbers[_NUMBER],
        longest_word=max(lengths),
        ascii_words=_RULES[rules].ascii_words,
    )


def _as_array(text: bytes, what: str) -> NDArray[np.uint8]:
    if not text.isascii():
        try:
            text.decode("utf-8")  # the kernel trusts its lead bytes
        except UnicodeDecodeError as error:
            raise UnusableInputError(
                f"{what} is not valid UTF-8 at byte {error.start}: convert it to UTF-8 first."
            ) from error
    return np.frombuffer(text, np.uint8)


class SentenceSplitter:
    """Splits text into sentences as NLTK's `sent_tokenize` does, some twenty times faster.

    `language` names a set of Punkt parameters: "english" is bundled, others come from NLTK's data path.
    `rules` names the version of NLTK whose decisions are made: "nltk-3.10" (the default), or "nltk-3.4", which
    MLPerf's data was made with and which takes curly quotes for parts of words. Each has its Unicode version pinned
    (15.1 and 11), whatever Python runs.

    A splitter pickles as its two names; the tables are built once in a process (about 0.1 s).
    Raises UnusableInputError for a language without parameters.
    """

    def __init__(self, language: str = "english", *, rules: PunktRules = "nltk-3.10") -> None:
        self.language = language
        self.rules = rules
        self._model = _model(language, rules)

    def __reduce__(self) -> "tuple[functools.partial[SentenceSplitter], tuple[()]]":
        return functools.partial(SentenceSplitter, self.language, rules=self.rules), ()

    def split(self, line: bytes) -> list[bytes]:
        """The sentences of one line, as `nltk.sent_tokenize(line)` gives them: white space inside them is kept.

        Raises ValueError for a newline before the end, UnusableInputError for text that is not UTF-8.
        """
        if b"\n" in line[:-1]:
            raise ValueError("split() takes one line; split_lines() takes several")
        spans = punkt.spans_of_line(self._model, _as_array(line, "a line"))
        return [line[start:end] for start, end in spans.tolist()]

    def split_lines(self, text: bytes) -> bytes:
        """Splits each line of UTF-8 `text`; returns the sentences, one a line.

        Sentences are stripped as `str.strip` does, and empty ones dropped. Lines end with `\\n` alone.
        Raises UnusableInputError for text that is not UTF-8.
        """
        return self._split_lines(text, keep_blank=False)

    def split_lines_keeping_blank(self, text: bytes) -> bytes:
        """As `split_lines`, but keeps empty sentences, and writes a blank line for each line of one character.

        That is what MLPerf's do_sentence_segmentation.py writes (before the blank line at its end): empty lines stay,
        and a last line of one character without newline gives a blank line and its sentence.
        """
        return self._split_lines(text, keep_blank=True)

    def _split_lines(self, text: bytes, *, keep_blank: bool) -> bytes:
        data = _as_array(text, "the text")
        out = np.empty(2 * data.size + 2, np.uint8)
        return out[: punkt.split_lines(self._model, data, keep_blank, out)].tobytes()
