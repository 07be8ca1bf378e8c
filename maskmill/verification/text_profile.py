"""Whether text reads as text: its characters, its markup, its lines, its documents; each shard beside the others."""

import collections
import statistics
from collections.abc import Iterator, Sequence

import numpy as np

from maskmill.verification.findings import Checked, Finding, Severity, finding
from maskmill.verification.pieces import PieceResult, TextStatistics
from maskmill.verification.scratch import merge_tables, runs_of, unpack_row

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
_CUT = 0.1  # of the lines have the length of the longest, and end in the middle of a sentence
_ONE_LINE, _USUAL_ONE_LINE = 0.9, 0.5  # of the documents
_MANY_DOCUMENTS = 20  # in a shard; then a shard of a single one has lost what stands between documents
_COPIES, _SHARE_OF_COPIES = 20, 0.01  # of a document
_LONG_DOCUMENT = 20  # words


def check_profile(results: Sequence[PieceResult], *, repeats: bool, is_prose: bool) -> Checked:
    """Looks at what the text of shards was counted to have.

    Args:
      results: of a data set of text.
      repeats: whether documents may be there several times, as in a mix that takes a source several times.
      is_prose: whether it was a wiki's pages, or may have been; other text may be source code or verse.
    """
    texts = [(result.piece.path, result.text) for result in results if result.text is not None and result.text.lines]
    severity: Severity = "warning" if is_prose else "note"
    findings = [found for path, text in texts for found in (*_encoding(path, text), *_shape(path, text, severity))]
    if len(texts) >= _FEW:
        findings += _beside_others(texts)
    if not repeats:
        findings += _copies(results)
    return Checked(findings=tuple(findings), looked_at={_CHECK: len(texts)})


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
        what = f"this text has {text.markup:,} marks of wikitext or HTML ([[, {{{{, ''', </)"
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
        yield Finding(
            check=_CHECK,
            severity="warning",
            file=path,
            record=number,
            expected="once, or a few times",
            found=f"{count:,} times",
            message=f"{path}, document {number:,}: this document is there {count:,} times among {total:,}; look for it "
            "among the inputs.",
            count=copies[owner],
        )


def _unlike(path: str, found: str, usual: str) -> Finding:
    what = f"this shard has {found}, where {usual} are usual in the others"
    return _found(path, usual, found, what, "make it again from its own text")


def _found(path: str, expected: str, found: str, what: str, advice: str, severity: Severity = "warning") -> Finding:
    return finding(_CHECK, path, expected, found, f"{path}: {what}; {advice}.", severity=severity)
