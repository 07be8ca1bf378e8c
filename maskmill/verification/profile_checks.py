"""Check that text reads as text, by its characters, marks and lines, and compare each shard with the others.

These are guesses, so no finding is an error.
"""

import collections
import statistics
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from maskmill.verification.findings import Checked, Finding, Severity, finding, makes_check, ran
from maskmill.verification.verify_targets import Target
from maskmill.verification.work_items import ItemResult, TextStatistics

_CHECK = "profile"
_ENOUGH = 20  # broken characters, and
_FOREIGN = 0.1  # this share of the characters beyond ASCII, make a finding
_MARKED, _FEW_MARKED = 0.01, 5  # this share of documents with marks, and at least this number of them; or
_DENSE = 500  # characters for each mark, of all text, make a finding
_LINES = 100
_UNBROKEN = 0.1  # this share of lines without a space makes a finding
_SHARED, _MANY_DOCUMENTS = 0.1, 20  # this share of documents with the same line, of at least this number
# Of a line, on average; sentences have more, but for verse in scripts without spaces.
_WORDS, _CHARACTERS = 1.5, 12
_LEAST_WORD = 2.5  # characters of a word and the space after it, on average
_FEW = 4  # shards; fewer cannot be compared with each other
_BYTES = 3_000  # of a shard, so that it can be compared with others
# A shard differs from most by a kind of bytes: the factor, the least share in most shards, the least share in it.
_KIND, _SIGN = (10, 0.0001, 0.01), (50, 0.005, 0.005)
_EXPECTED = 50  # expected bytes of a kind in a shard, from which on their lack is a finding
_TIMES = 4  # times the usual distance of two distributions makes a finding, and at least, of letters and lengths:
_FAR = {"letters, as of another language": 0.15, "lengths of lines, as if wrapped or joined": 0.5}
_ONE_LINE, _USUAL_ONE_LINE = 0.9, 0.5  # of the documents

# Kinds of bytes, in the order of the code; each sign of ASCII is another kind (_SIGNS). Characters beyond ASCII are
# counted by their first byte.
_KINDS: dict[str, Sequence[int]] = {
    "capital letters": range(ord("A"), ord("Z") + 1),
    "small letters": range(ord("a"), ord("z") + 1),
    "digits": range(ord("0"), ord("9") + 1),
    "letters with accents": range(0xC3, 0xCA),
    "letters of Greek, Cyrillic, Armenian, Hebrew or Arabic": range(0xCD, 0xDF),
    "characters of Asia": [0xE0, 0xE1, *range(0xE3, 0xEF)],
    "other signs beyond ASCII": [0xC2, 0xE2, 0xEF, *range(0xF0, 0xF5)],
}
_SIGNS = [code for code in range(1, 127) if not chr(code).isalnum() and chr(code) != "\n"]
_LETTERS = np.arange(ord("a"), ord("z") + 1)

_Texts = Sequence[tuple[str, TextStatistics]]
# The problem and what to do, as clauses; after the path of a file.
_Found = Iterator[tuple[str, str]]


@makes_check("data_set", "text")
def check_profile(target: Target, results: Sequence[ItemResult]) -> Checked:
    """Check the statistics of the text of shards."""
    texts = [(r.item.path, r.text, r.item.split) for r in results if r.text is not None and r.text.lines]
    # Other text than a wiki's pages may be source code or verse.
    is_prose = target.made is None or "templates" in target.made.get("counts", {})
    severity: Severity = "warning" if is_prose else "note"
    findings: list[Finding] = []
    for path, text, _ in texts:
        findings += [finding(_CHECK, path, f"{what}; {do}", "warning") for what, do in _characters(text)]
        findings += [finding(_CHECK, path, f"{what}; {do}", severity) for what, do in _lines(text)]
    all_texts = [(path, text) for path, text, _ in texts]
    findings += _marks(all_texts, severity)
    findings += _shared_lines(target.directory, all_texts)
    long = [(path, text) for path, text, split in texts if split == "train" and text.bytes.sum() >= _BYTES]
    for path, what in _beside_others(long) if len(long) >= _FEW else ():
        what = f"this shard has {what} are usual in the others; make it again from its own text"
        findings.append(finding(_CHECK, path, what, severity))
    return ran(_CHECK, *findings, count=len(texts))


def _characters(text: TextStatistics) -> _Found:
    """Yield signs of text that was read in a wrong encoding."""
    for name, count in (
        ("U+FFFD, which stands for what could not be decoded", text.replaced),
        ("characters of UTF-8 that was read as Latin-1 (Ã©, â€™)", text.garbled),
    ):
        if count >= _ENOUGH and count > _FOREIGN * text.foreign:
            what = f"{count:,} of {text.foreign:,} characters beyond ASCII are {name}"
            yield what, "extract it again, from an input in UTF-8"


def _lines(text: TextStatistics) -> _Found:
    """Yield signs of lines that are not sentences."""
    if text.lines < _LINES:
        return
    if text.unbroken > _UNBROKEN * text.lines:
        what = f"{text.unbroken:,} of {text.lines:,} lines have no space: spaces are lost, or the text is encoded"
        yield what, "extract it again"
    words, characters = text.words / text.lines, text.characters / text.lines
    if words * _LEAST_WORD > characters:
        yield f"words have {characters / words:.1f} characters, so their letters are apart", "extract it again"
    if words < _WORDS and characters < _CHARACTERS and 2 * text.foreign < text.characters:
        what = f"the lines have {words:.1f} words and {characters:.1f} characters on average, so they are no sentences"
        yield what, "make it again, with a sentence a line"


def _marks(texts: _Texts, severity: Severity) -> Iterator[Finding]:
    """Yield marks that an extraction has left in the files; each finding names the file with most of them."""
    documents = sum(text.documents for _, text in texts)
    marked: collections.Counter[str] = collections.Counter()
    for _, text in texts:
        marked.update(text.marked)
    dense = sum(text.markup for _, text in texts) >= max(_ENOUGH, sum(text.characters for _, text in texts) / _DENSE)
    for kind, count in marked.items():
        if count >= max(_FEW_MARKED, _MARKED * documents) or (dense and count):
            path, most = max(((path, text.marked.get(kind, 0)) for path, text in texts), key=lambda entry: entry[1])
            what = f"{count:,} of {documents:,} documents have {kind} in their text, {most:,} of them are in this file"
            yield finding(_CHECK, path, f"{what}; extract it again, unless it is source code", severity)


def _shared_lines(directory: str, texts: _Texts) -> Iterator[Finding]:
    """Yield lines that are in many documents, as pages have them around their text."""
    documents: collections.Counter[str] = collections.Counter()
    for _, text in texts:
        documents.update({line: count for count, line in text.shared_lines})
    every = sum(text.documents for _, text in texts)
    lines = [(count, line) for line, count in documents.most_common() if count > _SHARED * every]
    if every >= _MANY_DOCUMENTS and lines:
        count, line = lines[0]
        more = f", and {len(lines) - 1:,} other lines likewise" if lines[1:] else ""
        what = f"{count:,} of {every:,} documents have the line “{line[:60]}”{more}"
        yield finding(_CHECK, directory, f"{what}; leave it out, unless it belongs to the text", "warning")


def _beside_others(texts: _Texts) -> Iterator[tuple[str, str]]:
    """Yield shards that differ from the others: the path, and a clause about its share and the usual one."""
    sizes = np.array([[text.bytes.sum()] for _, text in texts])
    kinds = np.array([[text.bytes[list(codes)].sum() for codes in _KINDS.values()] for _, text in texts])
    marks, signs = np.array([[text.markup] for _, text in texts]), np.array([text.bytes[_SIGNS] for _, text in texts])
    names = [*_KINDS, "marks of wikitext, HTML or TeX"]
    rules = np.array([_KIND] * len(names) + [_SIGN] * len(_SIGNS)).T
    names += ["spaces" if code == ord(" ") else f"characters {chr(code)!a}" for code in _SIGNS]
    counts = np.concatenate([kinds, marks, signs], axis=1)
    shares, unlike = counts / sizes, _unlike_counts(counts, sizes, rules)
    letters = np.array([text.bytes[_LETTERS] + text.bytes[_LETTERS - 32] for _, text in texts])
    distances = [_distances(letters), _distances(np.array([text.line_lengths for _, text in texts]))]
    one_line = [text.one_line / max(1, text.documents) for _, text in texts]
    usual_documents = statistics.median(text.documents for _, text in texts)
    usually_one, usual = statistics.median(one_line), np.median(shares, axis=0)
    for place, (path, text) in enumerate(texts):
        found = np.flatnonzero(unlike[place])
        if len(found):
            worst = int(found[np.argmax(np.abs(shares[place] - usual)[found])])
            more = f" ({len(found) - 1} other kinds of characters are as unlike)" if len(found) > 1 else ""
            yield path, f"{shares[place, worst]:.2%} {names[worst]}, where {usual[worst]:.2%}{more}"
        for (what, least), of_all in zip(_FAR.items(), distances, strict=True):
            if of_all[place] > max(least, _TIMES * np.median(of_all)):
                yield path, f"other {what}: a distance of {of_all[place]:.2f}, where {np.median(of_all):.2f}"
        if text.documents >= _ENOUGH and one_line[place] > _ONE_LINE and usually_one < _USUAL_ONE_LINE:
            yield path, f"{one_line[place]:.0%} documents of one line, where {usually_one:.0%}"
        if text.documents == 1 and text.lines >= _LINES and usual_documents >= _MANY_DOCUMENTS:
            yield path, f"{text.lines:,} lines in a single document, where {usual_documents:,.0f} documents"


def _unlike_counts(
    counts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], rules: npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    """Return bool[shards, kinds]: True if a shard has far fewer, or far more, characters of a kind than the others.

    Up to a quarter of the shards may be alike in this; if more are, the text is a mix, as of two languages.
    """
    shares, (rare, frequent, new) = counts / sizes, rules
    low, high = np.quantile(shares, (0.25, 0.75), axis=0, method="nearest")
    is_lost = (low > frequent) & (shares * rare < low) & (low * sizes >= _EXPECTED)
    unlike: npt.NDArray[np.bool_] = is_lost | (shares > new) & (high * rare < shares) & (counts >= _EXPECTED)
    return unlike


def _distances(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return float64[shards]: the distance of each shard's distribution from the median one, 0 to 2."""
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    distances: npt.NDArray[np.float64] = np.abs(shares - np.median(shares, axis=0)).sum(axis=1)
    return distances
