"""Whether text reads as text: its characters, its marks, its lines; each shard beside the others."""

import collections
import statistics
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from maskmill.verification.findings import Checked, Finding, Severity, finding, looked, makes_check
from maskmill.verification.pieces import PieceResult, TextStatistics
from maskmill.verification.verify_targets import Target

_CHECK = "profile"
_ENOUGH = 20  # of what is found, and
_FOREIGN = 0.1  # of the characters that are not ASCII: broken ones
_MARKED, _FEW_MARKED = 0.01, 5  # of the documents: such with marks, and at least so many; or
_DENSE = 500  # characters for each mark, of all text
_LINES = 100
_LINES_OF_A_KIND = 0.1  # of all lines: such without a space, or twice in a row
_SHARED, _MANY_DOCUMENTS = 0.1, 20  # of the documents: those with one line, where there are so many
# Of a line, on average; sentences have more, but for verse in scripts without spaces.
_WORDS, _CHARACTERS = 1.5, 12
_LEAST_WORD = 2.5  # characters of a word and the space behind it, on average
_CUT = 0.1  # of the lines have the length of the longest, and end in the middle of a sentence
_LEAST_CUT = 20  # characters of such lines
_FEW = 4  # shards; of fewer none can be said to be unlike the others
_BYTES = 3_000  # of a shard, so that it can be compared with others
_RARE = 10  # times rarer or more frequent than in most: not the same kind of text
_RARE_SIGN = 50  # the same for one sign of ASCII
_FREQUENT, _NEW = 0.0001, 0.002  # of all bytes
_FREQUENT_SIGN = 0.005
_EXPECTED = 50  # bytes of a kind that a shard should have, so that it means something if they are missing
_FAR, _TIMES = 0.15, 4  # the distance of two distributions of letters, and how many times the usual one it must be
_FAR_LENGTHS = 0.5  # the same of the lengths of lines
_ONE_LINE, _USUAL_ONE_LINE = 0.9, 0.5  # of the documents

# Bytes by what they stand for, in the order of the code: each byte of ASCII that is neither a letter nor a digit is a
# kind of its own; characters beyond ASCII are told by their first byte.
_KINDS: dict[str, Sequence[int]] = {
    "capital letters": range(ord("A"), ord("Z") + 1),
    "small letters": range(ord("a"), ord("z") + 1),
    "digits": range(ord("0"), ord("9") + 1),
    "letters with accents": range(0xC3, 0xCA),
    "letters of Greek, Cyrillic, Armenian, Hebrew or Arabic": range(0xCD, 0xDF),
    "characters of Asia": [0xE0, 0xE1, *range(0xE3, 0xEF)],
    "other signs beyond ASCII": [0xC2, 0xE2, 0xEF, *range(0xF0, 0xF5)],
}
_SIGNS = [code for code in range(32, 127) if not chr(code).isalnum()]
_LETTERS = np.arange(ord("a"), ord("z") + 1)


@makes_check("data_set", "text")
def check_profile(target: Target, results: Sequence[PieceResult]) -> Checked:
    """Looks at what the text of shards was counted to have. All of it is a guess, so no finding is an error."""
    texts = [(result.piece.path, result.text) for result in results if result.text is not None and result.text.lines]
    # Other text than a wiki's pages may be source code or verse.
    is_prose = target.made is None or "templates" in target.made.get("counts", {})
    severity: Severity = "warning" if is_prose else "note"
    findings: list[Finding] = []
    for path, text in texts:
        findings += [*_characters(path, text), *_lines(path, text, severity)]
    findings += _marks(texts, severity)
    findings += _shared_lines(target.directory, [text for _, text in texts])
    of_split = [(r.piece.path, r.text) for r in results if r.text is not None and r.piece.split == "train"]
    findings += _beside_others([(path, text) for path, text in of_split if text.bytes.sum() >= _BYTES], severity)
    return looked(_CHECK, *findings, count=len(texts))


def _characters(path: str, text: TextStatistics) -> Iterator[Finding]:
    """What is left of a text that was read in another encoding than its own."""
    for name, count in (
        ("U+FFFD, which stands for what could not be decoded", text.replaced),
        ("characters of UTF-8 that was read as Latin-1 (Ã©, â€™)", text.garbled),
    ):
        most = _FOREIGN * text.foreign
        if count >= _ENOUGH and count > most:
            what = f"{count:,} of {text.foreign:,} characters beyond ASCII are {name}"
            yield _found(path, f"at most {most:,.0f}", f"{count:,}", what, "extract it again, from an input in UTF-8")


def _marks(texts: Sequence[tuple[str, TextStatistics]], severity: Severity) -> Iterator[Finding]:
    """Marks that an extraction has left, in all files together; the file that has most of them is named."""
    documents = sum(text.documents for _, text in texts)
    marked: collections.Counter[str] = collections.Counter()
    for _, text in texts:
        marked.update(text.marked)
    dense = sum(text.markup for _, text in texts) >= max(_ENOUGH, sum(text.characters for _, text in texts) / _DENSE)
    least = max(_FEW_MARKED, _MARKED * documents)
    for kind, count in marked.items():
        if count >= least or dense:
            path, most = max(((path, text.marked.get(kind, 0)) for path, text in texts), key=lambda entry: entry[1])
            what = f"{count:,} of {documents:,} documents have {kind} in their text, {most:,} of them are in this file"
            advice = "extract it again, unless it is source code"
            yield _found(path, f"fewer than {least:,.0f}", f"{count:,}", what, advice, severity)


def _lines(path: str, text: TextStatistics, severity: Severity) -> Iterator[Finding]:
    """Lines that are not sentences, are there twice, or are cut."""
    if text.lines < _LINES:
        return
    for count, what, advice in (
        (text.unbroken, "have no space: spaces are lost, or the text is encoded", "extract it again"),
        (text.doubled, "are the same as the line before", "look for what wrote them twice, and make it again"),
        (
            text.cut if text.longest >= _LEAST_CUT else 0,
            f"have {text.longest:,} characters, no line has more, and all of them end within a sentence: they are cut",
            "make it again from its own text, unless it has such lines",
        ),
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


def _shared_lines(directory: str, texts: Sequence[TextStatistics]) -> Iterator[Finding]:
    """Lines that stand under many documents: what pages have around their text."""
    documents: collections.Counter[str] = collections.Counter()
    for text in texts:
        documents.update({line: count for count, line in text.shared_lines})
    every = sum(text.documents for text in texts)
    lines = [(count, line) for line, count in documents.most_common() if count > _SHARED * every]
    if every >= _MANY_DOCUMENTS and lines:
        count, line = lines[0]
        more = f", and {len(lines) - 1:,} other lines likewise" if lines[1:] else ""
        what = f"{count:,} of {every:,} documents have the line “{line[:60]}”{more}"
        expected = f"in at most {_SHARED:.0%}"
        yield _found(directory, expected, f"{count / every:.0%}", what, "leave it out, unless it belongs to the text")


# ---- each shard beside the others


def _beside_others(texts: Sequence[tuple[str, TextStatistics]], severity: Severity) -> Iterator[Finding]:
    """Shards that are unlike the others."""
    if len(texts) < _FEW:
        return
    sizes = np.array([text.bytes.sum() for _, text in texts])
    kinds = np.array([[text.bytes[list(codes)].sum() for codes in _KINDS.values()] for _, text in texts])
    marks = np.array([[text.markup] for _, text in texts])
    signs = np.array([text.bytes[_SIGNS] for _, text in texts])
    named = (*_KINDS, "marks of wikitext, HTML or TeX")
    sign_names = ["spaces" if code == ord(" ") else f"characters {chr(code)!a}" for code in _SIGNS]
    counts, names = np.concatenate([kinds, marks, signs], axis=1), [*named, *sign_names]
    is_sign = np.arange(len(names)) >= len(named)
    unlike = _unlike_counts(counts, sizes, is_sign)
    letters = _distances(np.array([text.bytes[_LETTERS] + text.bytes[_LETTERS - 32] for _, text in texts]))
    lengths = _distances(np.array([text.line_lengths for _, text in texts]))
    one_line = [int(text.document_lines[0]) / max(1, text.documents) for _, text in texts]
    usual_documents = statistics.median(text.documents for _, text in texts)
    for place, (path, text) in enumerate(texts):
        found = np.flatnonzero(unlike[place])
        if len(found):
            shares = counts / sizes[:, None]
            worst = int(found[np.argmax(np.abs(shares[place] - np.median(shares, axis=0))[found])])
            more = f" ({len(found) - 1} other kinds of characters are as unlike)" if len(found) > 1 else ""
            usual = f"{np.median(shares[:, worst]):.2%}{more}"
            yield _unlike(path, f"{shares[place, worst]:.2%} {names[worst]}", usual, severity)
        for what, distances, least in (("letters", letters, _FAR), ("lengths of lines", lengths, _FAR_LENGTHS)):
            usual_distance = float(np.median(distances))
            if distances[place] > max(least, _TIMES * usual_distance):
                is_other = "as of another language" if what == "letters" else "as lines that were wrapped or joined"
                found_is = f"other {what}, {is_other} (a distance of {distances[place]:.2f})"
                yield _unlike(path, found_is, f"{usual_distance:.2f}", severity)
        usually_one = statistics.median(one_line)
        if text.documents >= _ENOUGH and one_line[place] > _ONE_LINE and usually_one < _USUAL_ONE_LINE:
            yield _unlike(path, f"{one_line[place]:.0%} documents of one line", f"{usually_one:.0%}", severity)
        if text.documents == 1 and text.lines >= _LINES and usual_documents >= _MANY_DOCUMENTS:
            found_is, usual = f"{text.lines:,} lines in a single document", f"{usual_documents:,.0f} documents"
            yield _unlike(path, found_is, usual, severity)


def _unlike_counts(
    counts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], is_sign: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Which kinds of characters a shard has far fewer of than the others, or far more.

    A quarter of the shards may be like this one; where more are, the text is a mix, as of two languages.
    """
    shares = counts / sizes[:, None]
    low, high = np.quantile(shares, (0.25, 0.75), axis=0, method="nearest")
    rare = np.where(is_sign, _RARE_SIGN, _RARE)
    is_lost = (low > np.where(is_sign, _FREQUENT_SIGN, _FREQUENT)) & (shares * rare < low)
    is_lost &= low * sizes[:, None] >= _EXPECTED
    is_new = (shares > np.where(is_sign, _FREQUENT_SIGN, _NEW)) & (high * rare < shares) & (counts >= _EXPECTED)
    unlike: npt.NDArray[np.bool_] = is_lost | is_new
    return unlike


def _distances(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """How far the distribution of each shard is from the median one: 0 to 2."""
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    distances: npt.NDArray[np.float64] = np.abs(shares - np.median(shares, axis=0)).sum(axis=1)
    return distances


def _unlike(path: str, found: str, usual: str, severity: Severity = "warning") -> Finding:
    what = f"this shard has {found}, where {usual} are usual in the others"
    return _found(path, usual, found, what, "make it again from its own text", severity)


def _found(path: str, expected: str, found: str, what: str, advice: str, severity: Severity = "warning") -> Finding:
    return finding(_CHECK, path, expected, found, f"{what}; {advice}", severity)
