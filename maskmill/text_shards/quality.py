"""Quality filters: which documents are left out of a build. All are off by default.

A filter is a pure function of one document (`QualityFilter.reject`). What stands in the build more than once is dropped
by paragraph, in `duplicates`.
"""

import collections
import re
import unicodedata
from typing import Literal

from maskmill.extraction.languages import Language, find_language
from maskmill.text_shards.options import QualityOptions

Reason = Literal["too_short", "few_letters", "repeated_lines", "list_pages", "stub_pages"]

_ENDS_OF_SENTENCES = tuple(end.encode() for end in '.!?…。！？؟۔।。．:;"”»)）')
_LONG_LINE = 120  # characters: a line of so many is prose even if no sentence ends with it


# Scripts whose words stand without spaces: Thai, Lao, Burmese, Khmer, kana, Chinese characters.
_WITHOUT_SPACES = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


_NAME = r"[^{}|\[\]\n]*"  # the rest of a template's name


def _any_of(words: tuple[str, ...], before: tuple[str, str] = ("", ""), behind: tuple[str, str] = ("", "")) -> str:
    """Return a pattern that matches one of some words; nothing if there are none.

    `before`, `behind`: patterns of what may stand there, in scripts that write spaces between words and in others.
    """
    patterns = [
        before[_WITHOUT_SPACES.match(word[0]) is not None]
        + re.escape(word)
        + behind[_WITHOUT_SPACES.match(word[-1]) is not None]
        for word in sorted(set(words))
    ]
    return "(?:" + "|".join(patterns) + ")" if patterns else r"(?!)"


def _list_title(language: Language) -> re.Pattern[str]:
    """Match the title of a list. Its last word may stand before a bracket: `世界遺産の一覧 (日本)`."""
    starts = _any_of(language.words("list_title"), behind=(r"(?!\w)", ""))
    ends = _any_of(language.words("list_title_end"))
    return re.compile(rf"{starts}|.*{ends}(?: ?[(（][^()（）]*[)）])?$", re.IGNORECASE)


def _stub(language: Language) -> re.Pattern[str]:
    """Match the call of a stub template, by the last words of its name or by the first ones."""
    ends = _any_of(language.words("stub"), before=(rf"(?:{_NAME}[ _-])?", _NAME))
    starts = _any_of(language.words("stub_start"), behind=(rf"(?:[ _/-]{_NAME})?", _NAME))
    return re.compile(rf"\{{\{{\s*(?:{ends}|{starts})\s*[|}}]", re.IGNORECASE)


class QualityFilter:
    """Decides on documents one at a time.

    language: the wiki's language code; its words for lists and stubs count beside the English ones.
    """

    def __init__(self, options: QualityOptions, language: str = "en") -> None:
        self.options = options
        known = find_language(language)
        self._list_title = _list_title(known)
        self._stub = _stub(known)

    def reject(self, title: bytes, text: bytes, wikitext: bytes = b"") -> Reason | None:
        """Return why a document is left out, or None if it stays.

        All arguments are UTF-8. text: one paragraph or sentence a line. wikitext: of the page, for `drop_stubs`.
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
    """Return the share of letters and combining marks among a text's characters that are not spaces; 0 for none."""
    numbers = collections.Counter(text.decode("utf-8", "replace"))
    characters = sum(number for c, number in numbers.items() if not c.isspace())
    if not characters:
        return 0.0
    # Combining marks are parts of letters in many scripts.
    return sum(number for c, number in numbers.items() if unicodedata.category(c)[0] in "LM") / characters


def repeated_share(text: bytes) -> float:
    """Return the share of a text's bytes in lines that have occurred in it before; 0 for an empty text."""
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
    """Return the share of a text's lines that read as items of a list: short, no sentence's end; 0 for a text of no
    lines.
    """
    lines = [line.strip() for line in text.split(b"\n") if line.strip()]
    if not lines:
        return 0.0
    items = sum(
        len(line.decode("utf-8", "replace")) < _LONG_LINE and not line.endswith(_ENDS_OF_SENTENCES) for line in lines
    )
    return items / len(lines)
