"""NLTK 3.4.5's Punkt, made from the installed NLTK by putting back the parts that have changed since then.

NLTK 3.10.4 differs in three things. It uses the module `regex` instead of `re`, which has other definitions of white
space and letters. It takes curly quotes as closing marks. And it searches for the word before a possible sentence end
in a separate step, where 3.4.5 had `\\S*` in the same pattern.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from nltk.tokenize import punkt

_NON_WORD = r"(?:[?!)\";}\]\*:@\'\({\[])"
_PARTS = {
    "NonWord": _NON_WORD,
    "MultiChar": punkt.PunktLanguageVars._re_multi_char_punct,
    "WordStart": punkt.PunktLanguageVars._re_word_start,
    "SentEndChars": r"[\.\?!]",
}
_WORD = re.compile(punkt.PunktLanguageVars._word_tokenize_fmt % _PARTS, re.VERBOSE)
_CONTEXT = re.compile(r"\S*" + punkt.PunktLanguageVars._period_context_fmt % _PARTS, re.VERBOSE)


class _LanguageVars(punkt.PunktLanguageVars):
    re_boundary_realignment = re.compile(r'["\')\]}]+?(?:\s+|(?=--)|$)', re.MULTILINE)

    def _word_tokenizer_re(self) -> re.Pattern[str]:
        return _WORD


class _Token(punkt.PunktToken):
    _RE_ELLIPSIS = re.compile(r"\.\.+$")
    _RE_NUMERIC = re.compile(r"^-?[\.,]?\d[\d,\.-]*\.?$")
    _RE_INITIAL = re.compile(r"[^\W\d]\.$")


class _Tokenizer(punkt.PunktSentenceTokenizer):
    def _match_potential_end_contexts(self, text: str) -> Iterator[tuple[re.Match[str], str]]:
        for match in _CONTEXT.finditer(text):
            yield match, match.group() + match.group("after_tok")


def parameters(folder: Path) -> punkt.PunktParameters:
    """The parameters in `folder`. NLTK's own loader opens files on its data path alone, so it is not used."""
    loaded = punkt.PunktParameters()
    with (folder / "abbrev_types.txt").open(encoding="utf-8") as file:
        loaded.abbrev_types = {line.removesuffix("\n") for line in file}
    with (folder / "sent_starters.txt").open(encoding="utf-8") as file:
        loaded.sent_starters = {line.removesuffix("\n") for line in file}
    with (folder / "collocations.tab").open(encoding="utf-8") as file:
        loaded.collocations = {tuple(line.removesuffix("\n").split("\t")) for line in file}
    with (folder / "ortho_context.tab").open(encoding="utf-8") as file:
        for line in file:
            word, context = line.removesuffix("\n").split("\t")
            loaded.ortho_context[word] = int(context)
    return loaded


def tokenizer(loaded: punkt.PunktParameters) -> punkt.PunktSentenceTokenizer:
    """A tokenizer that splits sentences like NLTK 3.4.5."""
    return _Tokenizer(loaded, lang_vars=_LanguageVars(), token_cls=_Token)
