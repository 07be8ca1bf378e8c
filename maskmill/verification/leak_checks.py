"""Articles of the eval set that are in the training data, and whether eval.md5 lists the eval set."""

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.remote import open_ranges
from maskmill.storage import files
from maskmill.text.text_shards import EVAL_MD5
from maskmill.verification.bounds import is_too_many, upper_tail
from maskmill.verification.findings import SEVERITIES, Checked, Finding, Severity, finding, looked, makes_check, skipped
from maskmill.verification.kernels.word_grams import WORDS
from maskmill.verification.passages import LEAST_SHARE, NearCopies, Numbers, find_near_copies, write_near_copies
from maskmill.verification.pieces import Piece, PieceResult
from maskmill.verification.scratch import Merged, merge
from maskmill.verification.verify_targets import Target, VerifyPlan

# By what is compared: what it is called, as its place is, what its size counts, and the least size: shorter articles,
# and rows, may well be written twice ("X is a village in Y.").
_NUMBER, _SIZE = {"documents": 1, "rows": 2}, {"documents": 2, "rows": 3}  # columns of the tables
_NOUNS = {"documents": ("article", "document", "bytes", 120), "rows": ("example", "record", "pieces", 48)}
_MOST_SHARE = 0.01  # of the eval articles; where more are in the training text, the eval set is of little use
_SHARES = (LEAST_SHARE, 0.5, 0.75, 0.95)  # of an article that is there in part
_UNLIKELY = 0.01
_LEAST_TRAINED = 10  # training articles; fewer do not tell how many have near copies
_ADVICE = "take it out of the training text and make the examples again, or do not evaluate on it"
_EMPTY_MD5 = "d41d8cd98f00b204e9800998ecf8427e"


@dataclasses.dataclass(frozen=True)
class _Leak:
    """A text of the eval set that is in the training data.

    owner: the place of the training file among the tables. number: of the document or record there, from 1. eval_owner,
    eval_number: the same of the eval set. size: words or pieces.
    """

    owner: int
    number: int
    eval_owner: int
    eval_number: int
    size: int


@dataclasses.dataclass(frozen=True)
class _Found:
    """What two splits share.

    held_out, trained, twins: how many different texts the eval set has; of at least the least size, how many the
    training data has, and how many of these are there more than `dupes` times.
    """

    leaks: Sequence[_Leak]
    held_out: int
    trained: int
    twins: int


@makes_check("all")
def check_leaks(plan: VerifyPlan, results: Sequence[PieceResult]) -> Checked:
    """Looks for eval articles in the training data: in the text, where it is among the targets, else in the rows."""
    of_files = [result for result in results if result.piece.kind in ("text", "examples")]
    text = [result for result in of_files if result.piece.kind == "text"]
    if text:
        exact = _check([result for result in text if "documents" in result.hashes], "documents", 1)
        near = _describe_near(find_near_copies(text), text)
        return dataclasses.replace(exact, findings=[*exact.findings, *near])
    if not of_files:
        return Checked()
    dupes = max((result.piece.rules.dupe_factor or 1 for result in of_files if result.piece.rules), default=1)
    return _check([result for result in of_files if "rows" in result.hashes], "rows", dupes)


@makes_check("file", "text")
def look_for_articles(piece: Piece, ranges: ByteRanges) -> Checked:
    """Looks for the eval articles that a training file has in part, or changed; gives the file of what was found."""
    if not piece.eval_texts:
        return Checked()
    try:
        return PieceResult(piece=piece, hashes=write_near_copies(piece, ranges))
    except (UnusableInputError, RunFailedError) as error:
        return skipped(error, "eval_leak")


def _check(tables: Sequence[PieceResult], what: str, dupes: int) -> Checked:
    splits = {result.piece.split for result in tables}
    if splits != {"train", "eval"}:
        name = "training" if "train" not in splits else "eval"
        return skipped(f"no {name} data is among what is verified", "eval_leak")
    found = _find(tables, what, dupes)
    passages = dupes if what == "rows" else None
    return looked("eval_leak", *_describe(found, tables, what, passages), count=found.held_out)


def _find(tables: Sequence[PieceResult], what: str, dupes: int) -> _Found:
    """Merges the tables of both splits."""
    least = _NOUNS[what][-1]
    is_eval = np.array([result.piece.split == "eval" for result in tables])
    leaks: list[_Leak] = []
    held_out = trained = twins = 0
    for merged in merge(tables, what):
        starts, counts, sizes = merged.starts, merged.counts, merged.column(_SIZE[what])
        evals = np.add.reduceat(is_eval[merged.owner], starts, dtype=np.int64)
        is_long = sizes[starts] >= least
        held_out += int((evals > 0).sum())
        trained += int(((counts > evals) & is_long).sum())
        twins += int(((counts - evals > dupes) & is_long).sum())
        shared = np.flatnonzero((evals > 0) & (counts > evals))
        numbers = merged.column(_NUMBER[what])
        leaks += [_leak(merged, numbers, sizes, is_eval, int(starts[run]), int(counts[run])) for run in shared]
    return _Found(leaks, held_out, trained, twins)


def _leak(
    merged: Merged, numbers: Numbers, sizes: Numbers, is_eval: npt.NDArray[np.bool_], start: int, count: int
) -> _Leak:
    """The first places of a text in the training data and in the eval set."""
    members = slice(start, start + count)
    owners, of_eval = merged.owner[members], is_eval[merged.owner[members]]
    trained, held_out = int(np.flatnonzero(~of_eval)[0]), int(np.flatnonzero(of_eval)[0])
    return _Leak(
        owner=int(owners[trained]),
        number=int(numbers[start + trained]),
        eval_owner=int(owners[held_out]),
        eval_number=int(numbers[start + held_out]),
        size=int(sizes[start]),
    )


def _severity(found: _Found, least: int, dupes: int | None) -> Severity:
    """How bad leaks of texts of the least size are.

    Texts that are in the training data twice tell how likely it is that an eval article has a twin there by nature: the
    eval set is drawn from the same articles. Rows do not leak one by one: a passage that two articles share is cut anew
    for each of the dupes, so it may be in as many rows, and one passage may always be shared; dupes: None of articles.
    """
    long = sum(leak.size >= least for leak in found.leaks)
    rate = found.twins / max(1, found.trained)
    if dupes is None:
        is_certain = is_too_many(long, found.held_out, rate)
    else:
        passages, held_out = -(-long // dupes), max(1, found.held_out // dupes)
        is_certain = is_too_many(passages, held_out, max(rate, dupes / max(dupes, found.trained)))
    if is_certain:
        return "error"
    return "warning" if long > _MOST_SHARE * found.held_out else "note"


def _describe(found: _Found, tables: Sequence[PieceResult], what: str, dupes: int | None) -> list[Finding]:
    """A finding for each training file that has eval articles, and one for those that are short in all files."""
    noun, place, unit, least = _NOUNS[what]
    severity = _severity(found, least, dupes)
    by_file: dict[tuple[int, bool], list[_Leak]] = {}
    for leak in sorted(found.leaks, key=lambda leak: (leak.owner, leak.number)):
        is_long = leak.size >= least
        by_file.setdefault((leak.owner if is_long else -1, is_long), []).append(leak)
    findings = []
    for (_, is_long), leaks in by_file.items():
        first = leaks[0]
        path, eval_path = tables[first.owner].piece.path, tables[first.eval_owner].piece.path
        more = f" and {len(leaks) - 1:,} more are, too" if len(leaks) > 1 else ""
        advice = _ADVICE if is_long else "it is so short that this may be chance"
        told = f"this is eval {noun} {first.eval_number:,} of {eval_path} ({first.size:,} {unit}){more}; {advice}"
        expected, shown = f"no {noun} of the eval set", f"{place} {first.eval_number:,} of {files.base_name(eval_path)}"
        how_bad: Severity = severity if is_long else "note"
        at = (place, first.number)
        findings.append(finding("eval_leak", path, expected, shown, told, how_bad, at=at, count=len(leaks)))
    return findings


def _describe_near(found: NearCopies | None, results: Sequence[PieceResult]) -> list[Finding]:
    """A finding for each training file that has eval articles in part, or changed, and more of them than by nature."""
    if found is None:
        return []
    articles = found.articles
    held_out, shares = slice(articles.held_out), np.where(articles.are_long, found.shares, 0)
    natural, trained = shares[articles.held_out :], articles.are_long[articles.held_out :].sum()
    judged = []
    for share in _SHARES:
        count, twins = int((shares[held_out] >= share).sum()), int((natural >= share).sum())
        severity = _near_severity(count, int(articles.are_long[held_out].sum()), twins, int(trained))
        if severity is not None:
            judged.append((severity, share))
    if not judged:
        return []
    severity, least = min(judged, key=lambda one: SEVERITIES.index(one[0]))
    by_file: dict[int, list[int]] = {}
    for article in np.flatnonzero(shares[held_out] >= least).tolist():
        by_file.setdefault(int(found.owners[article]), []).append(article)
    return [_near_finding(found, severity, results[owner].piece.path, of_file) for owner, of_file in by_file.items()]


def _near_severity(count: int, held_out: int, twins: int, trained: int) -> Severity | None:
    """How bad it is that so many eval articles have near copies, where so many training ones have; None: not at all."""
    if not count or trained < _LEAST_TRAINED or upper_tail(count, held_out, twins / trained) > _UNLIKELY:
        return None
    is_certain = is_too_many(count, held_out, max(1, twins) / trained)
    return "warning" if is_certain or count > _MOST_SHARE * held_out else "note"


def _near_finding(found: NearCopies, severity: Severity, path: str, of_file: Sequence[int]) -> Finding:
    articles, first = found.articles, min(of_file, key=lambda article: found.numbers[article])
    number, eval_number = int(found.numbers[first]), int(articles.numbers[first])
    eval_path, share = articles.paths[articles.files[first]], f"{found.shares[first]:.0%}"
    more = f", and {len(of_file) - 1:,} more are here in part" if len(of_file) > 1 else ""
    what = (
        f"{share} of eval article {eval_number:,} of {eval_path} is here, counted by passages of {WORDS} words without "
        f"case and punctuation{more}; {_ADVICE}"
    )
    found_is = f"{share} of document {eval_number:,} of {files.base_name(eval_path)}"
    expected, at = "no article of the eval set", ("document", number)
    return finding("eval_leak", path, expected, found_is, what, severity, at=at, count=len(of_file))


@makes_check("data_set", "text")
def check_eval_list(target: Target, results: Sequence[PieceResult]) -> Checked:
    """Compares eval.md5 with the articles of the eval text, in their order."""
    held_out = sorted((r for r in results if r.piece.split == "eval"), key=lambda result: result.piece.shard)
    if not held_out:
        return skipped("no eval text is among what is verified", "eval_list")
    path = target.file(EVAL_MD5)
    try:
        with contextlib.closing(open_ranges(target.directory, cache_bytes=0)) as ranges:
            listed = ranges.read_all(path).decode("ascii", "replace").split()
    except MissingFileError:
        if target.made is None:
            return skipped(f"there is no {EVAL_MD5}", "eval_list")
        what = "the list of the eval articles is missing; run the command that made the directory again"
        return looked("eval_list", finding("eval_list", path, "a file", "nothing", what))
    if any("md5" not in result.hashes for result in held_out):
        return skipped("the eval text could not be read", "eval_list")
    articles = [
        (result.piece.path, md5)
        for result in held_out
        for md5 in files.read_bytes(result.hashes["md5"]).decode().split()
    ]
    findings = [*_compare_lists(path, listed, articles, target.is_whole)]
    if _EMPTY_MD5 in listed:
        what = "this is the hash of an empty article, as the reference's chain draws some; it gives no example"
        expected, at, count = "articles with text", ("line", listed.index(_EMPTY_MD5) + 1), listed.count(_EMPTY_MD5)
        findings.append(finding("eval_list", path, expected, "an empty one", what, "note", at=at, count=count))
    return looked("eval_list", *findings, count=len(listed))


def _compare_lists(
    path: str, listed: Sequence[str], articles: Sequence[tuple[str, str]], is_whole: bool
) -> Iterator[Finding]:
    """What is wrong with eval.md5: the first article that differs or, of a part of the eval text, is not listed."""
    if not is_whole:
        known = set(listed)
        file = next((file for file, md5 in articles if md5 not in known), None)
        if file is not None:
            yield _other_article(path, None, file, "a hash of this article", "none")
        return
    for number, ((file, md5), other) in enumerate(zip(articles, listed, strict=False), 1):
        if md5 != other:
            yield _other_article(path, number, file, md5, other)
            return
    if len(articles) != len(listed):
        number = min(len(articles), len(listed)) + 1
        yield _other_article(path, number, articles[-1][0], f"{len(articles):,} hashes", f"{len(listed):,}")


def _other_article(path: str, number: int | None, file: str, expected: str, found: str) -> Finding:
    what = (
        f"the list does not have the articles of {file} ({expected} expected, {found} found); one of the two is "
        "damaged or of another build, so make the text again"
    )
    return finding("eval_list", path, expected, found, what, at=None if number is None else ("line", number))
