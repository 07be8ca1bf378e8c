"""Quality filters: which documents are left out of a build. All are off by default.

A filter is a pure function of one document (`QualityFilter.reject`). Duplicate paragraphs are a decision over a whole
build: transforms/duplicates.py, whose options are here too.
"""

import collections
import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from transforms.errors import UnusableInputError
from transforms.extraction.languages import find_language

Reason = Literal["too_short", "few_letters", "repeated_lines", "list_pages", "stub_pages"]

_ENDS_OF_SENTENCES = tuple(end.encode() for end in '.!?…。！？؟۔।。．:;"”»)）')
_LONG_LINE = 120  # characters from which a line without an end is still prose


@dataclass(frozen=True, kw_only=True)
class QualityOptions:
    """What a document must be like. None, or False, switches a filter off.

    min_characters: the least number of characters of text. min_letter_share: the least share of letters and marks
    among the characters that are not spaces, 0 to 1. max_repeated_share: the most of its text that may stand in
    lines that have occurred in the document before, 0 to 1. max_list_share: the most of its lines that may be short
    and end like no sentence, 0 to 1; a title such as `List of …` counts as a list. drop_stubs: reject pages whose
    templates call them stubs. drop_duplicates, near_duplicate_threshold, min_duplicate_words: paragraphs with so many
    words or more are dropped where the same words, or words whose 5-grams have at least that estimated Jaccard
    similarity, have stood in the build before.
    """

    min_characters: int | None = None
    min_letter_share: float | None = None
    max_repeated_share: float | None = None
    max_list_share: float | None = None
    drop_stubs: bool = False
    drop_duplicates: bool = False
    near_duplicate_threshold: float | None = None
    min_duplicate_words: int = 10

    def __post_init__(self) -> None:
        if self.min_characters is not None and self.min_characters < 1:
            raise UnusableInputError(f"--min_characters must be 1 or more, not {self.min_characters}.")
        for name in ("min_letter_share", "max_repeated_share", "max_list_share"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise UnusableInputError(f"--{name} must be between 0 and 1, not {value}.")
        threshold = self.near_duplicate_threshold
        if threshold is not None and not 0 < threshold <= 1:
            raise UnusableInputError(f"--near_duplicate_threshold must be above 0 and at most 1, not {threshold}.")
        if self.min_duplicate_words < 1:
            raise UnusableInputError(f"--min_duplicate_words must be 1 or more, not {self.min_duplicate_words}.")

    @property
    def filters_documents(self) -> bool:
        """Whether any filter of documents is on."""
        shares = (self.min_letter_share, self.max_repeated_share, self.max_list_share)
        return self.drop_stubs or any(limit is not None for limit in (self.min_characters, *shares))

    @property
    def finds_duplicates(self) -> bool:
        """Whether duplicate paragraphs are dropped."""
        return self.drop_duplicates or self.near_duplicate_threshold is not None


class QualityFilter:
    """Decides on documents one at a time. `language` is the code whose words are looked for, besides English."""

    def __init__(self, options: QualityOptions, language: str = "en") -> None:
        self.options = options
        known = find_language(language)
        titles = sorted(set(known.words("list_title")))
        self._list_title = re.compile("|".join(rf"{re.escape(title)}(?!\w)" for title in titles), re.IGNORECASE)
        stubs = sorted(set(known.words("stub")))
        names = "|".join(re.escape(name) for name in stubs)
        self._stub = re.compile(r"\{\{\s*(?:[^{}|\[\]\n]*[ _-])?(?:" + names + r")\s*[|}]", re.IGNORECASE)

    def reject(self, title: bytes, text: bytes, wikitext: bytes = b"") -> Reason | None:
        """Why a document is left out, or None if it stays.

        text: its plain text, UTF-8, one paragraph or sentence a line. wikitext: its page, for `drop_stubs`.
        """
        options = self.options
        if options.min_characters is not None and len(text.decode("utf-8", "replace")) < options.min_characters:
            return "too_short"
        if options.min_letter_share is not None and letter_share(text) < options.min_letter_share:
            return "few_letters"
        if options.max_repeated_share is not None and repeated_share(text) > options.max_repeated_share:
            return "repeated_lines"
        if options.max_list_share is not None and (
            self._list_title.match(title.decode("utf-8", "replace")) or list_share(text) > options.max_list_share
        ):
            return "list_pages"
        if options.drop_stubs and self._stub.search(wikitext.decode("utf-8", "replace")):
            return "stub_pages"
        return None


def letter_share(text: bytes) -> float:
    """The share of letters and combining marks among a text's characters that are not spaces; 0 for none."""
    numbers = collections.Counter(text.decode("utf-8", "replace"))
    characters = sum(number for c, number in numbers.items() if not c.isspace())
    if not characters:
        return 0.0
    # Combining marks are parts of letters in many scripts.
    return sum(number for c, number in numbers.items() if unicodedata.category(c)[0] in "LM") / characters


def repeated_share(text: bytes) -> float:
    """The share of a text's bytes that stand in lines which have occurred in it before; 0 for an empty text."""
    seen: set[bytes] = set()
    repeated = total = 0
    for line in text.split(b"\n"):
        line = line.strip()
        total += len(line)
        if line in seen:
            repeated += len(line)
        seen.add(line)
    return repeated / total if total else 0.0


def list_share(text: bytes) -> float:
    """The share of a text's lines that read as items of a list: short, without a sentence's end; 0 for no lines."""
    lines = [line.strip() for line in text.split(b"\n") if line.strip()]
    if not lines:
        return 0.0
    items = sum(
        len(line.decode("utf-8", "replace")) < _LONG_LINE and not line.endswith(_ENDS_OF_SENTENCES) for line in lines
    )
    return items / len(lines)
