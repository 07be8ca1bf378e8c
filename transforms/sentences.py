"""Sentences by Punkt, exactly as NLTK splits them."""

from collections.abc import Iterator
from pathlib import Path
import re
from typing import Any

from nltk.tokenize import punkt

from transforms.errors import UnusableInputError

BUNDLED = Path(__file__).parent / "data" / "punkt_tab"


class _Vars34(punkt.PunktLanguageVars):
    _re_non_word_chars = r"(?:[?!)\";}\]\*:@\'\({\[])"
    re_boundary_realignment = re.compile(r'["\')\]}]+?(?:\s+|(?=--)|$)', re.MULTILINE)

    def period_context_re(self):
        return _CONTEXT34

    def _word_tokenizer_re(self):
        return _WORD34


_FMT = dict(
    NonWord=_Vars34._re_non_word_chars,
    MultiChar=punkt.PunktLanguageVars._re_multi_char_punct,
    WordStart=punkt.PunktLanguageVars._re_word_start,
    SentEndChars=r"[\.\?!]",
)
_WORD34 = re.compile(punkt.PunktLanguageVars._word_tokenize_fmt % _FMT, re.VERBOSE)
_CONTEXT34 = re.compile(r"\S*" + punkt.PunktLanguageVars._period_context_fmt % _FMT, re.VERBOSE)


class _Token34(punkt.PunktToken):
    _RE_ELLIPSIS = re.compile(r"\.\.+$")
    _RE_NUMERIC = re.compile(r"^-?[\.,]?\d[\d,\.-]*\.?$")
    _RE_INITIAL = re.compile(r"[^\W\d]\.$")


class _Tokenizer34(punkt.PunktSentenceTokenizer):
    def _match_potential_end_contexts(self, text: str) -> Iterator[tuple[Any, str]]:
        for match in _CONTEXT34.finditer(text):
            yield match, match.group() + match.group("after_tok")


def _params(folder: Path) -> punkt.PunktParameters:
    params = punkt.PunktParameters()

    def lines(name: str) -> list[str]:
        text = (folder / name).read_text(encoding="utf-8")
        return text.removesuffix("\n").split("\n") if text else []

    params.abbrev_types = set(lines("abbrev_types.txt"))
    params.sent_starters = set(lines("sent_starters.txt"))
    params.collocations = {tuple(line.split("\t")) for line in lines("collocations.tab")}
    for line in lines("ortho_context.tab"):
        word, context = line.split("\t")
        params.ortho_context[word] = int(context)
    return params


class SentenceSplitter:
    def __init__(self, language: str = "english", *, rules: str = "nltk-3.10") -> None:
        folder = BUNDLED / language
        if not folder.is_dir():
            raise UnusableInputError(f"No Punkt parameters for language {language!r}.")
        params = _params(folder)
        if rules == "nltk-3.4":
            self._tokenizer = _Tokenizer34(params, lang_vars=_Vars34(), token_cls=_Token34)
        else:
            self._tokenizer = punkt.PunktSentenceTokenizer(params)

    def split(self, line: bytes) -> list[bytes]:
        return [s.encode() for s in self._tokenizer.tokenize(line.decode())]

    def split_lines(self, text: bytes) -> bytes:
        out = []
        for line in text.decode().split("\n"):
            for sentence in self._tokenizer.tokenize(line):
                if sentence.strip():
                    out.append(sentence.strip() + "\n")
        return "".join(out).encode()

    def split_lines_keeping_blank(self, text: bytes) -> bytes:
        out = []
        for line in re.findall(r"[^\n]*\n|[^\n]+$", text.decode()):
            if len(line) == 1:
                out.append("\n")
            for sentence in self._tokenizer.tokenize(line):
                out.append(sentence.strip() + "\n")
        return "".join(out).encode()
