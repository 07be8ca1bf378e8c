"""Splits paragraphs into sentences by Punkt, with the decisions of NLTK's `sent_tokenize`, compiled.

The parameters are NLTK's own (`punkt_tab`) and come with the package; others of that form are read from NLTK's data
path. A language's rules (maskmill/sentences/rules.py) add marks, abbreviations and ordinals to Punkt's decisions.
Source: nltk/tokenize/punkt.py; Kiss & Strunk, Computational Linguistics 32 (2006).
"""

import functools
import hashlib
import lzma
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskmill.characters.classes import CharacterRules, character_tables
from maskmill.characters.kernels.characters import first_invalid
from maskmill.errors import UnusableInputError
from maskmill.sentences.kernels import boundaries, punkt
from maskmill.sentences.kernels import words as words_kernels
from maskmill.sentences.rules import TRAINED, SentenceRules, Words, character_classes, words_of

# The files of NLTK's `punkt_tab` for a language, in the order of a bundle.
PARAMETER_FILES = ("collocations.tab", "ortho_context.tab", "abbrev_types.txt", "sent_starters.txt")
_DATA = Path(__file__).parent / "data"
_NUMBER = "##number##"  # the word that stands for every number
_COLLECTION = "tokenizers/punkt_tab"
# NLTK 3.6.6 changed the search for the word before a candidate: it starts after ASCII white space only.
_ASCII_WORDS: dict[CharacterRules, bool] = {"nltk-3.4": False, "nltk-3.10.4": True}


class PunktParameters(NamedTuple):
    """Punkt's parameters of a language, as its four files hold them.

    abbreviations: words without their full stop. starters: words that often start a sentence. collocations: pairs of
    words with a full stop between them that ends no sentence. contexts: NLTK's orthographic contexts of words, as bits.
    """

    abbreviations: frozenset[str]
    starters: frozenset[str]
    collocations: frozenset[tuple[str, str]]
    contexts: dict[str, int]


def parse_parameters(read: Callable[[str], str]) -> PunktParameters:
    """Return the parameters in the four files; `read` returns a file's text by its name."""

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
    return PunktParameters(
        abbreviations=frozenset(lines("abbrev_types.txt")),
        starters=frozenset(lines("sent_starters.txt")),
        collocations=frozenset(collocations),
        contexts=contexts,
    )


def is_bundled(language: str) -> bool:
    """Return whether Punkt parameters of this name come with the package."""
    return (_DATA / "punkt_tab" / language).is_dir() or (_DATA / "punkt_tab" / f"{language}.xz").is_file()


def _read_bundled(language: str) -> Callable[[str], str]:
    """Return a function that returns the text of a bundled language's file by its name."""
    folder = _DATA / "punkt_tab" / language
    if folder.is_dir():
        return lambda name: (folder / name).read_text(encoding="utf-8")
    texts = lzma.decompress(folder.with_suffix(".xz").read_bytes()).decode("utf-8").split("\0")
    return dict(zip(PARAMETER_FILES, texts, strict=True)).__getitem__


def _read_nltk_data(language: str, name: str) -> str:
    import nltk.data

    with nltk.data.find(f"{_COLLECTION}/{language}/{name}").open() as file:
        content: bytes = file.read()
    return content.decode("utf-8")


def installed_checksum(language: str) -> str | None:
    """Return the sha256, in hexadecimal, of a language's parameters in NLTK's data on this machine.

    None for a language that comes with the package (the package's version covers its parameters), and for one that this
    machine does not have.
    """
    if not language.isidentifier() or is_bundled(language):
        return None
    try:
        contents = [_read_nltk_data(language, name) for name in PARAMETER_FILES]
    except LookupError:
        return None
    return hashlib.sha256("\0".join(contents).encode()).hexdigest()


def _parameters(language: str) -> PunktParameters:
    if not language.isidentifier():
        raise UnusableInputError(f"--language={language} is not the name of a Punkt language, such as german.")
    if is_bundled(language):
        return parse_parameters(_read_bundled(language))
    try:
        return parse_parameters(functools.partial(_read_nltk_data, language))
    except LookupError as error:
        raise UnusableInputError(
            f"There are no Punkt parameters for --language={language} on this machine: fetch NLTK's with "
            "`python -m nltk.downloader punkt_tab` (on every machine that runs workers; NLTK_DATA names the folder "
            "if it is not the usual one), or name one of its languages."
        ) from error


def _hashes(words: Sequence[str]) -> NDArray[np.uint64]:
    """Return the kernel's hash of each word: 64-bit FNV-1a over code points, upper half folded onto the lower."""
    characters = np.frombuffer("".join(words).encode("utf-32-le"), np.uint32).astype(np.uint64)
    lengths = np.array([len(word) for word in words])
    starts = np.cumsum(lengths) - lengths
    hashed = np.full(len(words), punkt.HASH_START, np.uint64)
    for place in range(int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > place)
        hashed[longer] = (hashed[longer] ^ characters[starts[longer] + place]) * np.uint64(punkt.HASH_FACTOR)
    return hashed ^ hashed >> np.uint64(32)


def _word_bits(parameters: PunktParameters) -> dict[str, int]:
    """Return all words of the parameters with their bits; a word's number is its place in this order."""
    bits: dict[str, int] = {_NUMBER: 0, **parameters.contexts}
    for words, bit in (
        (parameters.abbreviations, punkt.ABBREVIATION),
        (parameters.starters, punkt.STARTER),
        ({first for first, _ in parameters.collocations}, punkt.COLLOCATES),
        ({second for _, second in parameters.collocations}, 0),
    ):
        for word in sorted(words):
            bits[word] = bits.get(word, 0) | bit
    return bits


def _hash_table(words: Iterable[str]) -> NDArray[np.int32]:
    """Return an open hash table of word numbers, int32, a power of two in size, half full at most, -1 in free slots."""
    words = list(words)
    last = (1 << (2 * len(words)).bit_length()) - 1
    slots = [-1] * (last + 1)
    for number, slot in enumerate((_hashes(words) & np.uint64(last)).tolist()):
        while slots[slot] >= 0:
            slot = slot + 1 & last
        slots[slot] = number
    return np.array(slots, np.int32)


_NO_PARAMETERS = PunktParameters(frozenset(), frozenset(), frozenset(), {})


@functools.cache
def _model(rules: SentenceRules, characters: CharacterRules) -> NDArray[np.int32]:
    """Return the model of rules whose Punkt parameters, if any, have a name."""
    return _build_model(
        _NO_PARAMETERS if rules.punkt is None else _parameters(rules.punkt), words_of(rules), characters
    )


def _build_model(parameters: PunktParameters, words: Words, rules: CharacterRules) -> NDArray[np.int32]:
    """Return the model of a language, int32, laid out as maskmill/sentences/kernels/punkt.py says."""
    bits = _word_bits(parameters)
    for word, more in words.bits.items():
        bits[word] = bits.get(word, 0) | more
    numbers = {word: number for number, word in enumerate(bits)}
    slots = _hash_table(bits)
    lengths = [len(word) for word in bits]
    head = character_tables(rules).copy()
    model = [head]

    def append(field: int, values: Iterable[int] | NDArray[np.int32]) -> None:
        head[field] = sum(part.size for part in model)
        model.append(np.asarray(values, np.int32))

    append(punkt.SLOTS_AT, slots)
    append(punkt.STARTS_AT, np.concatenate(([0], np.cumsum(lengths))))
    append(punkt.LETTERS_AT, np.frombuffer("".join(bits).encode("utf-32-le"), np.int32))
    append(punkt.BITS_AT, list(bits.values()))
    pairs = sorted((numbers[first], numbers[second]) for first, second in parameters.collocations)
    append(punkt.COLLOCATIONS_AT, [number for pair in pairs for number in pair])
    head[punkt.SLOTS_MASK] = slots.size - 1
    head[punkt.NUM_COLLOCATIONS] = len(pairs)
    head[punkt.NUMBER_WORD] = numbers[_NUMBER]
    head[punkt.LONGEST_WORD] = max(lengths)
    head[punkt.ASCII_WORDS] = _ASCII_WORDS[rules]
    head[words_kernels.LONGEST_ABBREVIATION] = words.longest_abbreviation
    head[words_kernels.FLAGS] = words.flags | (words_kernels.CONTEXTS if parameters.contexts else 0)
    return np.concatenate(model)


def model_of_words(bits: Mapping[str, int]) -> NDArray[np.int32]:
    """Return a model that holds only words with their bits, for look-ups in kernels (punkt.look_up)."""
    return _build_model(_NO_PARAMETERS, Words(bits, 0), "nltk-3.10.4")


def _as_array(text: bytes, what: str) -> NDArray[np.uint8]:
    """Return a text's bytes as an array, checked to be UTF-8, because the kernel trusts characters' first bytes."""
    data = np.frombuffer(text, np.uint8)
    at = first_invalid(data, data[: data.size & -8].view(np.uint64))
    if at >= 0:
        raise UnusableInputError(f"{what} is not valid UTF-8 at byte {at}: convert it to UTF-8 first.")
    return data


class SentenceSplitter:
    """Splits text into sentences by NLTK's Punkt, alone or together with a language's rules.

    `language` is a name of Punkt parameters, which gives the sentences of NLTK's `sent_tokenize`, or rules
    (`rules_for("uk")`, `rules_for_script(sample)`). `rules` names the version of NLTK to agree with: "nltk-3.10.4" (the
    default), or "nltk-3.4", which made MLPerf's data and takes curly quotes for parts of words. Each has a pinned
    Unicode version (15.1 and 11), whatever Python runs. `parameters` are the trained parameters, for rules whose
    `punkt` is "trained".

    A pickled splitter holds only its arguments; each process builds the tables once (about 0.1 s).
    Raises UnusableInputError for a name without parameters, ValueError if trained parameters are missing.
    """

    def __init__(
        self,
        language: str | SentenceRules = "english",
        *,
        rules: CharacterRules = "nltk-3.10.4",
        parameters: PunktParameters | None = None,
    ) -> None:
        if isinstance(language, str):
            language = SentenceRules(language="", punkt=language)
        if (language.punkt == TRAINED) != (parameters is not None):
            raise ValueError('parameters are for rules whose punkt is "trained", and only for those')
        self.language = language
        self.rules = rules
        self._parameters = parameters
        self._model = (
            _model(language, rules) if parameters is None else _build_model(parameters, words_of(language), rules)
        )
        # The module of the kernels that split, and the arguments of its functions that come before the text.
        self._kernels = punkt if language.is_plain_punkt else boundaries
        self._tables = (self._model,) if language.is_plain_punkt else (self._model, character_classes(language))

    def __reduce__(self) -> "tuple[functools.partial[SentenceSplitter], tuple[()]]":
        language = (
            self.language.punkt if self.language == SentenceRules(language="", punkt=self.language.punkt) else None
        )
        return functools.partial(
            SentenceSplitter, language or self.language, rules=self.rules, parameters=self._parameters
        ), ()

    def split(self, line: bytes) -> list[bytes]:
        """Return the sentences of one line, with the white space inside them.

        Punkt alone gives the result of `nltk.sent_tokenize(line)`.

        Raises ValueError for a newline before the end, UnusableInputError for text that is not UTF-8.
        """
        if b"\n" in line[:-1]:
            raise ValueError("split() takes one line; split_lines() takes several")
        data = _as_array(line, "a line")
        spans = self._kernels.spans_of_line(*self._tables, data)
        return [line[start:end] for start, end in spans.tolist()]

    def split_lines(self, text: bytes) -> bytes:
        """Split each line of UTF-8 `text`; return the sentences, one a line.

        Sentences are stripped as `str.strip` does, and empty ones dropped. Lines end with `\\n` alone.
        Raises UnusableInputError for text that is not UTF-8.
        """
        return self._split_lines(text, keep_blank=False)

    def split_lines_keeping_blank(self, text: bytes) -> bytes:
        """Split like `split_lines`, but keep empty sentences, and write a blank line for each line of one character.

        MLPerf's do_sentence_segmentation.py writes the same, except for the blank line at its end: empty lines stay,
        and a last line of one character without a newline gives a blank line and its sentence. It needs Punkt alone:
        ValueError for a language's rules.
        """
        if not self.language.is_plain_punkt:
            raise ValueError("blank lines are kept with Punkt alone, not with a language's rules")
        return self._split_lines(text, keep_blank=True)

    def _split_lines(self, text: bytes, *, keep_blank: bool) -> bytes:
        data = _as_array(text, "the text")
        out = np.empty(2 * data.size + 2, np.uint8)
        if self._kernels is punkt:
            written = punkt.split_lines(self._model, data, keep_blank, out)
        else:
            written = self._kernels.split_lines(*self._tables, data, out)
        return out[:written].tobytes()
