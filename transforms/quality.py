"""Quality filters: which documents, and which of their paragraphs, are left out of a build. All are off by default.

A filter of documents is a pure function of one document (`QualityFilter.reject`). Duplicate paragraphs are a decision
over a whole build, in three plain steps that a pipeline can wire: a signature of each paragraph (`exact_signature`,
`near_signature`), one decision over all signatures in the build's order (`decide_exact`, `decide_near`), and the
removal (`drop_paragraphs`). The first paragraph of its kind stays, so the result depends on the order of the documents
alone, never on workers.
"""

import hashlib
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from transforms.errors import UnusableInputError

Reason = Literal["too_short", "few_letters", "repeated_lines", "list", "stub"]

_ENDS_OF_SENTENCES = tuple(end.encode() for end in '.!?…。！？؟۔।。．:;"”»)）')
_LONG_LINE = 120  # characters from which a line without an end is still prose


@dataclass(frozen=True, kw_only=True)
class QualityOptions:
    """What a document must be like. None, or False, switches a filter off.

    min_characters: the least number of characters of text. min_letter_share: the least share of letters and marks
    among the characters that are not spaces, 0 to 1. max_repeated_share: the most of its characters that may stand in
    lines that have occurred in the document before, 0 to 1. max_list_share: the most of its lines that may be short
    and end like no sentence, 0 to 1; a title such as `List of …` counts as a list. drop_stubs: reject pages whose
    templates call them stubs. language: the code whose words for lists and stubs are looked for, besides English.
    min_duplicate_words: paragraphs with fewer words are never duplicates. near_duplicate_threshold: the least
    estimated Jaccard similarity of two paragraphs' word 5-grams at which the second is a near duplicate, 0 to 1.
    """

    min_characters: int | None = None
    min_letter_share: float | None = None
    max_repeated_share: float | None = None
    max_list_share: float | None = None
    drop_stubs: bool = False
    language: str = "en"
    drop_exact_duplicates: bool = False
    near_duplicate_threshold: float | None = None
    min_duplicate_words: int = 10

    def __post_init__(self) -> None:
        if self.min_characters is not None and self.min_characters < 1:
            raise UnusableInputError(f"min_characters is {self.min_characters}; it must be at least 1")
        for name in ("min_letter_share", "max_repeated_share", "max_list_share", "near_duplicate_threshold"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise UnusableInputError(f"{name} is {value}; it must be between 0 and 1")
        if self.min_duplicate_words < 1:
            raise UnusableInputError(f"min_duplicate_words is {self.min_duplicate_words}; it must be at least 1")


class QualityFilter:
    """Decides on documents one at a time."""

    def __init__(self, options: QualityOptions) -> None:
        self.options = options
        path = resources.files("transforms") / "data" / "languages.toml"
        languages: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))["language"]
        english = languages["en"]
        own = languages.get(options.language) or languages.get(options.language.split("-")[0], {})
        titles = sorted({*own.get("list_title", ()), *english["list_title"]})
        self._list_title = re.compile("|".join(rf"{re.escape(title)}(?!\w)" for title in titles), re.IGNORECASE)
        stubs = sorted({*own.get("stub", ()), *english["stub"]})
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
            return "list"
        if options.drop_stubs and self._stub.search(wikitext.decode("utf-8", "replace")):
            return "stub"
        return None


def letter_share(text: bytes) -> float:
    """The share of letters and combining marks among a text's characters that are not spaces; 0 for none."""
    characters = [c for c in text.decode("utf-8", "replace") if not c.isspace()]
    if not characters:
        return 0.0
    # Combining marks are parts of letters in many scripts.
    return sum(unicodedata.category(c)[0] in "LM" for c in characters) / len(characters)


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


def _words(paragraph: bytes) -> list[str]:
    return re.findall(r"\w+", paragraph.decode("utf-8", "replace").casefold())


def exact_signature(paragraph: bytes, options: QualityOptions) -> int | None:
    """64 bits that are equal for paragraphs of the same words, case and punctuation aside; None for short ones."""
    words = _words(paragraph)
    if len(words) < options.min_duplicate_words:
        return None
    return int.from_bytes(hashlib.sha256(" ".join(words).encode()).digest()[:8], "big")


PERMUTATIONS = 128
_SHINGLE = 5
_SCHEME = "affine32"


def near_signature(paragraph: bytes, options: QualityOptions) -> NDArray[np.uint32] | None:
    """The MinHash of a paragraph's word 5-grams, uint32[128] (datasketch's); None for short paragraphs.

    Raises UnusableInputError if datasketch is not installed.
    """
    words = _words(paragraph)
    if len(words) < options.min_duplicate_words:
        return None
    shingles = {" ".join(words[i : i + _SHINGLE]).encode() for i in range(max(1, len(words) - _SHINGLE + 1))}
    sketch = _datasketch().MinHash(num_perm=PERMUTATIONS, seed=1, scheme=_SCHEME)
    sketch.update_batch(sorted(shingles))
    return np.array(sketch.hashvalues, np.uint32)


def decide_exact(signatures: Iterable[int | None]) -> set[int]:
    """The positions of the paragraphs to drop: those whose signature has occurred before."""
    seen: set[int] = set()
    dropped: set[int] = set()
    for position, signature in enumerate(signatures):
        if signature is None:
            continue
        if signature in seen:
            dropped.add(position)
        seen.add(signature)
    return dropped


def decide_near(signatures: Sequence[NDArray[np.uint32] | None], threshold: float) -> set[int]:
    """The positions of the paragraphs to drop: those at least `threshold` similar to one before them that stays.

    Candidates come from locality-sensitive hashing (datasketch.MinHashLSH), so a pair just at the threshold may be
    missed; a candidate is dropped only if its whole signature agrees. Memory: about 2 kB a paragraph.
    """
    datasketch = _datasketch()
    index = datasketch.MinHashLSH(threshold=min(max(threshold, 0.05), 0.95), num_perm=PERMUTATIONS)
    dropped: set[int] = set()
    for position, signature in enumerate(signatures):
        if signature is None:
            continue
        sketch = datasketch.MinHash(num_perm=PERMUTATIONS, seed=1, scheme=_SCHEME, hashvalues=signature)
        # What stays was inserted under its position.
        if any(np.mean(signatures[other] == signature) >= threshold for other in index.query(sketch)):
            dropped.add(position)
        else:
            index.insert(position, sketch)
    return dropped


def drop_paragraphs(text: bytes, positions: Iterable[int]) -> bytes:
    """A text without some of its lines, which are counted from 0."""
    dropped = set(positions)
    return b"\n".join(line for position, line in enumerate(text.split(b"\n")) if position not in dropped)


def _datasketch() -> Any:
    try:
        import datasketch
    except ImportError:
        raise UnusableInputError("near_duplicate_threshold needs datasketch: install maskmill[quality]") from None
    return datasketch
