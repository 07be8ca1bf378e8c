"""Whether text reads as text: its characters, its markup, its lines, its documents; each shard beside the others."""

import collections
import statistics
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from maskmill.verification.findings import Checked, Finding, Severity, finding, looked, makes_check
from maskmill.verification.pieces import PieceResult, TextStatistics
from maskmill.verification.repeat_checks import takes_documents_twice
from maskmill.verification.scratch import merge_tables, runs_of, unpack_row
from maskmill.verification.verify_targets import Target

_CHECK = "profile"
_FEW = 4  # shards; of fewer none can be said to be unlike the others
_ENOUGH = 20  # of what is found, and
_LETTERS = 1000  # letters that were looked at, before a share means something
_FOREIGN = 0.1  # of the characters that are not ASCII: broken ones
_MARKUP = 2e-3  # of all characters
_CAPITALS = 0.6  # of the letters; text has 0.02 to 0.1
_USUAL_CAPITALS = 0.3
_NO_CAPITALS, _SOME_CAPITALS = 0.001, 0.02
_LINES = 100
_LINES_OF_A_KIND = 0.1  # of all lines: such without a space, or twice in a row
# Of a line, on average; sentences have more, but for verse in scripts without spaces.
_WORDS, _CHARACTERS = 1.5, 12
_LEAST_WORD = 2.5  # characters of a word and the space behind it, on average
_RARE = 50  # times rarer than usual: not the same kind of text
_FREQUENT = 0.005  # of all bytes
_CHARACTER_BYTES = 100_000  # of a shard, so that its characters can be compared with others'
_CUT = 0.1  # of the lines have the length of the longest, and end in the middle of a sentence
_ONE_LINE, _USUAL_ONE_LINE = 0.9, 0.5  # of the documents
_MANY_DOCUMENTS = 20  # in a shard; then a shard of a single one has lost what stands between documents
_COPIES, _SHARE_OF_COPIES = 20, 0.01  # of a document
_LONG_DOCUMENT = 20  # words
_ASCII = 128
_DIGITS, _BEYOND = _ASCII, _ASCII + 1
_CHARACTERS_NAMED = (
    *("spaces" if chr(code) == " " else f"characters {chr(code)!a}" for code in range(_ASCII)),
    "digits",
    "characters beyond ASCII",
)


@makes_check("data_set", "text")
def check_profile(target: Target, results: Sequence[PieceResult]) -> Checked:
    """Looks at what the text of shards was counted to have."""
    texts = [(result.piece.path, result.text) for result in results if result.text is not None and result.text.lines]
    # Other text than a wiki's pages may be source code or verse.
    is_prose = target.made is None or "templates" in target.made.get("counts", {})
    severity: Severity = "warning" if is_prose else "note"
    findings: list[Finding] = []
    for path, text in texts:
        findings += [*_encoding(path, text), *_shape(path, text, severity), *_lines(path, text, severity)]
    if len(texts) >= _FEW:
        findings += [*_beside_others(texts), *_characters_beside_others(texts, severity)]
    if not takes_documents_twice(target):
        findings += _copies(results)
    return looked(_CHECK, *findings, count=len(texts))


def _encoding(path: str, text: TextStatistics) -> Iterator[Finding]:
    """What is left of a text that was read in another encoding than its own."""
    for name, count in (
        ("U+FFFD, which stands for what could not be decoded", text.replaced),
        ("characters of UTF-8 that was read as Latin-1 (Ã©, â€™)", text.garbled),
    ):
        most = _FOREIGN * text.foreign
        if count >= _ENOUGH and count > most:
            what = f"{count:,} of {text.foreign:,} characters beyond ASCII are {name}"
            yield _found(path, f"at most {most:,.0f}", f"{count:,}", what, "extract it again, from an input in UTF-8")


def _shape(path: str, text: TextStatistics, severity: Severity) -> Iterator[Finding]:
    """Marks that an extraction has left, and lines that are cut."""
    most = _MARKUP * text.characters
    if text.markup >= _ENOUGH and text.markup > most:
        what = f"this text has {text.markup:,} marks of wikitext or HTML ([[, {{{{, ''', </, &amp;)"
        advice = "extract it again, unless it is source code"
        yield _found(path, f"at most {most:,.0f}", f"{text.markup:,}", what, advice, severity)
    longest = int(np.flatnonzero(text.unended).max(initial=0))
    cut = int(text.unended[longest])
    if text.longest_characters == longest and text.lines >= _LINES and cut > _CUT * text.lines:
        what = (
            f"{cut:,} of {text.lines:,} lines have {longest:,} characters, no line has more, and all of them end within"
        )
        advice = "make it again from its own text, unless it has such lines"
        found = f"{cut:,} of {longest:,} characters"
        yield _found(path, "lines of many lengths", found, f"{what} a sentence: they are cut", advice, severity)


def _lines(path: str, text: TextStatistics, severity: Severity) -> Iterator[Finding]:
    """Lines that are not sentences, or are there twice."""
    if text.lines < _LINES:
        return
    for count, what, advice in (
        (text.unbroken, "have no space: spaces are lost, or the text is encoded", "extract it again"),
        (text.doubled, "are the same as the line before", "look for what wrote them twice, and make it again"),
    ):
        most = _LINES_OF_A_KIND * text.lines
        if count >= _ENOUGH and count > most:
            found = f"{count:,} of {text.lines:,} lines {what}"
            yield _found(path, f"at most {most:,.0f}", f"{count:,}", found, advice, severity)
    words, characters = text.words / text.lines, text.characters / text.lines
    if words * _LEAST_WORD > characters:
        what = (
            f"words have {characters / words:.1f} characters on average, the space counted, so their letters are apart"
        )
        yield _found(path, f"{_LEAST_WORD} or more", f"{characters / words:.1f}", what, "extract it again", severity)
    if words < _WORDS and characters < _CHARACTERS and 2 * text.foreign < text.characters:
        what = f"the lines have {words:.1f} words and {characters:.1f} characters on average, so they are no sentences"
        advice = "make it again, with a sentence a line"
        yield _found(path, f"{_WORDS} words or more", f"{words:.1f}", what, advice, severity)


def _beside_others(texts: Sequence[tuple[str, TextStatistics]]) -> Iterator[Finding]:
    """Shards that are unlike the others."""
    capitals = {path: text.capitals / text.letters for path, text in texts if text.letters >= _LETTERS}
    usual = statistics.median(capitals.values()) if capitals else 0.0
    one_line = [int(text.document_lines[0]) / max(1, text.documents) for _, text in texts]
    usually_one = statistics.median(one_line)
    usual_documents = statistics.median(text.documents for _, text in texts)
    for (path, text), share in zip(texts, one_line, strict=True):
        own = capitals.get(path, usual)
        if own > _CAPITALS and usual < _USUAL_CAPITALS:
            yield _unlike(path, f"{own:.0%} capital letters", f"{usual:.1%}")
        elif own < _NO_CAPITALS and usual > _SOME_CAPITALS:
            yield _unlike(path, f"{own:.1%} capital letters", f"{usual:.1%}")
        if text.documents >= _ENOUGH and share > _ONE_LINE and usually_one < _USUAL_ONE_LINE:
            yield _unlike(path, f"{share:.0%} documents of one line", f"{usually_one:.0%}")
        if text.documents == 1 and text.lines >= _LINES and usual_documents >= _MANY_DOCUMENTS:
            yield _unlike(path, f"{text.lines:,} lines in a single document", f"{usual_documents:,.0f} documents")


def _characters_beside_others(texts: Sequence[tuple[str, TextStatistics]], severity: Severity) -> Iterator[Finding]:
    """Shards without a character that is frequent in the others, or with one that they hardly have."""
    texts = [(path, text) for path, text in texts if text.bytes.sum() >= _CHARACTER_BYTES]
    if len(texts) < _FEW:
        return
    shares = np.array([_character_shares(text) for _, text in texts])
    # A quarter of the shards may be like this one; where more are, the text is a mix, as of two languages.
    low, usual, high = np.quantile(shares, (0.25, 0.5, 0.75), axis=0, method="nearest")
    for (path, _), own in zip(texts, shares, strict=True):
        is_lost = (low > _FREQUENT) & (own * _RARE < low)
        is_new = (own > _FREQUENT) & (high * _RARE < own)
        unlike = np.flatnonzero(is_lost | is_new)
        if len(unlike):
            worst = int(unlike[np.argmax(np.abs(own - usual)[unlike])])
            more = f" (and {len(unlike) - 1} other characters are as unlike)" if len(unlike) > 1 else ""
            share = f"{own[worst]:.2%} {_CHARACTERS_NAMED[worst]}"
            yield _unlike(path, share, f"{usual[worst]:.2%}{more}", severity)


def _character_shares(text: TextStatistics) -> npt.NDArray[np.float64]:
    """float64[number of _CHARACTERS_NAMED], shares of all bytes."""
    is_small = slice(ord("a"), ord("z") + 1)
    counts = np.zeros(len(_CHARACTERS_NAMED), np.int64)
    counts[:_ASCII] = text.bytes[:_ASCII]
    # Capitals are looked at as a share of the letters, and digits are one kind.
    counts[is_small] += text.bytes[ord("A") : ord("Z") + 1]
    counts[ord("A") : ord("Z") + 1] = 0
    counts[ord("0") : ord("9") + 1] = 0
    counts[_DIGITS], counts[_BEYOND] = text.bytes[ord("0") : ord("9") + 1].sum(), text.foreign
    counts[ord("\n")] = 0
    shares: npt.NDArray[np.float64] = counts / text.bytes.sum()
    return shares


def _copies(results: Sequence[PieceResult]) -> Iterator[Finding]:
    """Documents that are there again and again."""
    tables = [result for result in results if "documents" in result.hashes]
    total = sum(result.text.documents for result in tables if result.text is not None)
    worst: dict[int, tuple[int, int]] = {}
    copies: collections.Counter[int] = collections.Counter()
    for merged in merge_tables([result.hashes["documents"] for result in tables]):
        starts, counts = runs_of(merged.table[:, 0])
        numbers, words, _ = unpack_row(merged.table[starts, -1])
        often = (counts >= _COPIES) & (counts > _SHARE_OF_COPIES * total) & (words >= _LONG_DOCUMENT)
        for run in np.flatnonzero(often).tolist():
            owner, found = int(merged.owner[starts[run]]), (int(counts[run]), int(numbers[run]))
            worst[owner] = max(worst.get(owner, (0, 0)), found)
            copies[owner] += 1
    for owner, (count, number) in sorted(worst.items()):
        path = tables[owner].piece.path
        what = f"this document is there {count:,} times among {total:,}; look for it among the inputs"
        expected, at = "once, or a few times", ("document", number)
        yield finding(_CHECK, path, expected, f"{count:,} times", what, "warning", at=at, count=copies[owner])


def _unlike(path: str, found: str, usual: str, severity: Severity = "warning") -> Finding:
    what = f"this shard has {found}, where {usual} are usual in the others"
    return _found(path, usual, found, what, "make it again from its own text", severity)


def _found(path: str, expected: str, found: str, what: str, advice: str, severity: Severity = "warning") -> Finding:
    return finding(_CHECK, path, expected, found, f"{what}; {advice}", severity)
