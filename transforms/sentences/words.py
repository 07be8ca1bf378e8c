"""The words of a language's rules: abbreviations, words behind ordinals and such, as bits for the kernels."""

import functools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from transforms.extraction.template_rules import load_rules
from transforms.sentences.kernels import words as kernels
from transforms.sentences.rules import SentenceRules, data

_BITS = {
    "never": kernels.NEVER,
    "before_number": kernels.BEFORE_NUMBER,
    "may_end": kernels.MAY_END,
    "rarely_ends": kernels.RARELY_ENDS,
    "ordinary": kernels.ORDINARY,
    "follows_ordinal": kernels.FOLLOWS_ORDINAL,
    "joins": kernels.JOINING,
    "starts": kernels.STARTING,
    "pending": kernels.PENDING,
    "verbs": kernels.VERB,
    "relatives": kernels.RELATIVE,
    "nominals": kernels.NOMINAL,
    "fronts": kernels.FRONTING,
    "opens": kernels.OPENING,
    "plain": kernels.PLAIN,
    "finites": kernels.FINITE,
    "subordinates": kernels.SUBORDINATE,
}
_FLAGS = {
    "ordinals": kernels.ORDINALS,
    "roman": kernels.ROMAN,
    "years": kernels.YEARS,
    "dates": kernels.DATES,
    "nouns": kernels.NOUNS,
    "no_full_stops": kernels.NO_FULL_STOPS,
    "clauses": kernels.CLAUSES,
    "punkt_letters": kernels.PUNKT_LETTERS,
}
_OTHER_SPACE = "\u00a0"
_LANGUAGES = "language"  # the table of rules files that holds the words before a foreign name: "lat.", "engl."


class Words(NamedTuple):
    """Words in lower case without their full stop, with their bits, and the flags of a language."""

    bits: Mapping[str, int]
    flags: int

    @property
    def longest_abbreviation(self) -> int:
        """The bytes of the longest abbreviation, or word that looks like one, in either case."""
        told = [word for word, bits in self.bits.items() if bits & (kernels.ABBREVIATES | kernels.ORDINARY)]
        return max((len(form.encode()) for word in told for form in (word, word.upper())), default=0)


def _bracket_words(code: str) -> Iterator[str]:
    """The abbreviations that templates write before foreign names: of "дав.-гр." both parts."""
    for file in load_rules(code):
        for text in file.tables.get(_LANGUAGES, {}).values():
            for word in text.replace("-", " ").split():
                if word.endswith("."):
                    yield word[:-1].lower()


def _own_bits(entry: Mapping[str, Any]) -> dict[str, int]:
    """The words of one entry with their bits; those with a space once with a plain one and once with a fixed one."""
    bits: dict[str, int] = {}
    for key, bit in _BITS.items():
        for name in entry.get(key, "").split():
            for word in {name.lower().replace("_", space) for space in (" ", _OTHER_SPACE)}:
                bits[word] = bits.get(word, 0) | bit
    return bits


@functools.cache
def words_of(rules: SentenceRules) -> Words:
    """The words of all entries of data/languages.toml that rules name; none for plain Punkt.

    Where entries say different things of a word, or of a flag, the first holds.
    """
    bits = dict.fromkeys(data()["follows_ordinal"].split(), kernels.FOLLOWS_ORDINAL) if rules.words else {}
    entries: list[Mapping[str, Any]] = [data()["language"][code] for code in rules.words]
    for code, entry in zip(rules.words, entries, strict=True):
        own = _own_bits(entry)
        ordinary = entry.get("ordinary", "").split()
        for word in _bracket_words(code):
            if word not in ordinary and not own.get(word, 0) & kernels.MAY_END:
                own[word] = own.get(word, 0) | kernels.NEVER
        bits = {**own, **bits}
    flags = sum(flag for key, flag in _FLAGS.items() if next((entry[key] for entry in entries if key in entry), False))
    return Words(bits, flags)
