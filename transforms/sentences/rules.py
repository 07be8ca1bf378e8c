"""Which rules split the sentences of a language: Punkt's parameters, marks that end sentences, words, ordinals.

They stand in data/languages.toml, which says what each of its keys means.
"""

import dataclasses
import functools
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

TRAINED = "trained"  # SentenceRules.punkt where parameters were trained on the corpus
_ENGLISH = "en"
_VARIANT_SEPARATOR = "-"  # in codes such as zh-hans, whose language is zh
_UNKNOWN = "common"  # the entry of languages that have none
_SAMPLE = 100_000  # characters that are looked at to tell a script
_LATIN, _IDEOGRAPHS, _KANA = "LATIN", "CJK", "HIRAGANA"
_LEAST_KANA = 20  # of so many ideographs in Japanese text one is kana, at least


@dataclass(frozen=True, kw_only=True)
class SentenceRules:
    """How the text of one language is split into sentences.

    language: the code of its Wikipedia, "en", "uk", "zh", …; "" where only the script is known.
    punkt: NLTK's name of Punkt parameters ("english"), "trained" where the splitter is given its parameters, or None:
      there are none, and the words of the data file are all that is known.
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
        """Whether Punkt alone decides, as NLTK's `sent_tokenize` does.

        With words and no stops, as in English, Punkt finds the ends, and abbreviations take some of them back.
        """
        return not self.words and not self.stops


@functools.cache
def data() -> Mapping[str, Any]:
    """The content of data/languages.toml."""
    path = resources.files("transforms.sentences") / "data" / "languages.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def codes_of(language_code: str) -> tuple[str, str]:
    """A code as data files have it, and that of its language: `zh-hans` and `zh`."""
    code = language_code.lower().replace("_", _VARIANT_SEPARATOR)
    return code, code.split(_VARIANT_SEPARATOR)[0]


def scripts_of(text: str) -> dict[str, int]:
    """How many letters of each script a text has, by the first word of the letters' names in Unicode: `LATIN`."""
    scripts: Counter[str] = Counter()
    for character, number in Counter(text).items():
        if character.isalpha():
            scripts[unicodedata.name(character, "unknown").split(" ")[0]] += number
    return dict(scripts)


def _code(language_code: str) -> str:
    """The code under which a language's entry stands: of its alias, of `zh` for `zh-hans`, or of no known language."""
    found = (data()["aliases"].get(candidate, candidate) for candidate in codes_of(language_code))
    return next((str(code) for code in found if code in data()["language"]), _UNKNOWN)


def _rules(language: str, codes: Sequence[str], punkt: str | None) -> SentenceRules:
    """The rules that these entries and those that they are like make together."""
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
    """The rules of a language by the code of its Wikipedia or by its ISO 639 code; `zh-hans` counts as `zh`.

    A language that the data file does not know has no parameters and a few abbreviations: a full stop ends its
    sentences unless a lower-case letter, an initial or such forbids it, and so do the marks of all scripts.
    """
    code = _code(language_code)
    punkt = data()["language"][code].get("punkt")
    if code == _ENGLISH:
        return SentenceRules(language=language_code, punkt=punkt, words=(_ENGLISH,))
    return _rules(language_code, (code,), punkt)


def rules_for_script(sample: str) -> SentenceRules:
    """The rules for a text of an unknown language, by the script that most of its letters have.

    Latin letters, and none, give the rules of English.
    """
    counts = Counter(scripts_of(sample[:_SAMPLE]))
    entries: Mapping[str, Sequence[str]] = data()["script"]
    script = max(entries, key=lambda name: counts[name])
    if counts[_LATIN] >= counts[script]:
        return dataclasses.replace(rules_for(_ENGLISH), language="")
    if script == _IDEOGRAPHS and counts[_KANA] * _LEAST_KANA > counts[script]:
        script = _KANA
    return _rules("", entries[script], None)
