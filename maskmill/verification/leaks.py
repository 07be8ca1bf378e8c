"""Articles of the eval set that are in the training data, and whether eval.md5 lists the eval set."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.storage import files
from maskmill.text.text_shards import EVAL_MD5
from maskmill.verification.bounds import is_too_many, upper_tail
from maskmill.verification.findings import SEVERITIES, Checked, Finding, Severity, joined
from maskmill.verification.kernels.word_grams import WORDS
from maskmill.verification.near_copies import LEAST_SHARE, TABLE, NearCopies, find_near_copies, write_near_copies
from maskmill.verification.pieces import Piece, PieceResult
from maskmill.verification.scratch import Merged, merge_tables, runs_of, unpack_row
from maskmill.verification.targets import Target

# Shorter articles, and rows, may well be written twice: "X is a village in Y."
_MIN_WORDS = 32
_MIN_PIECES = 48
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


def check_documents(results: Sequence[PieceResult]) -> Checked:
    """Looks for the articles of the eval set among the training articles of text shards."""
    exact = _check([result for result in results if "documents" in result.hashes], "documents", 1)
    return joined([exact, Checked(findings=tuple(_describe_near(find_near_copies(results), results)))])


def look_for_articles(piece: Piece, ranges: ByteRanges) -> tuple[Checked, Mapping[str, str]]:
    """Looks for the eval articles that a training file has in part, or changed; gives the file of what was found."""
    try:
        path = write_near_copies(piece, ranges)
    except (UnusableInputError, RunFailedError) as error:
        return Checked(skipped={"eval_leak": str(error).rstrip(".")}), {}
    return Checked(), {} if path is None else {TABLE: path}


def check_rows(results: Sequence[PieceResult], dupes: int) -> Checked:
    """Looks for eval examples among the training examples of data whose text is not there."""
    return _check([result for result in results if "rows" in result.hashes], "rows", dupes)


def _check(tables: Sequence[PieceResult], what: str, dupes: int) -> Checked:
    splits = {result.piece.split for result in tables}
    if splits != {"train", "eval"}:
        name = "training" if "train" not in splits else "eval"
        return Checked(skipped={"eval_leak": f"no {name} data is among what is verified"})
    found = _find(tables, what, _MIN_WORDS if what == "documents" else _MIN_PIECES, dupes)
    passages = dupes if what == "rows" else None
    return Checked(findings=tuple(_describe(found, tables, what, passages)), looked_at={"eval_leak": found.held_out})


def _find(tables: Sequence[PieceResult], what: str, least: int, dupes: int) -> _Found:
    """Merges the tables of both splits."""
    is_eval = np.array([result.piece.split == "eval" for result in tables])
    leaks: list[_Leak] = []
    held_out = trained = twins = 0
    for merged in merge_tables([result.hashes[what] for result in tables]):
        sizes = unpack_row(merged.table[:, -1])[1]
        starts, counts = runs_of(merged.table[:, 0])
        evals = np.add.reduceat(is_eval[merged.owner], starts, dtype=np.int64)
        is_long = sizes[starts] >= least
        held_out += int((evals > 0).sum())
        trained += int(((counts > evals) & is_long).sum())
        twins += int(((counts - evals > dupes) & is_long).sum())
        shared = np.flatnonzero((evals > 0) & (counts > evals))
        leaks += [_leak(merged, is_eval, int(starts[run]), int(counts[run])) for run in shared]
    return _Found(leaks, held_out, trained, twins)


def _leak(merged: Merged, is_eval: npt.NDArray[np.bool_], start: int, count: int) -> _Leak:
    """The first places of a text in the training data and in the eval set."""
    numbers, sizes, _ = unpack_row(merged.table[start : start + count, -1])
    owners = merged.owner[start : start + count]
    of_eval = is_eval[owners]
    trained, held_out = int(np.flatnonzero(~of_eval)[0]), int(np.flatnonzero(of_eval)[0])
    return _Leak(
        int(owners[trained]), int(numbers[trained]), int(owners[held_out]), int(numbers[held_out]), int(sizes[trained])
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
    noun, least = ("article", _MIN_WORDS) if what == "documents" else ("example", _MIN_PIECES)
    unit = "words" if what == "documents" else "pieces"
    severity = _severity(found, least, dupes)
    by_file: dict[tuple[int, bool], list[_Leak]] = {}
    for leak in sorted(found.leaks, key=lambda leak: (leak.owner, leak.number)):
        is_long = leak.size >= least
        by_file.setdefault((leak.owner if is_long else -1, is_long), []).append(leak)
    findings = []
    for (_, is_long), leaks in by_file.items():
        first = leaks[0]
        path, eval_path = tables[first.owner].piece.path, tables[first.eval_owner].piece.path
        place = "document" if what == "documents" else "record"
        more = f" and {len(leaks) - 1:,} more are, too" if len(leaks) > 1 else ""
        advice = _ADVICE if is_long else "it is so short that this may be chance"
        findings.append(
            Finding(
                check="eval_leak",
                severity=severity if is_long else "note",
                file=path,
                record=first.number,
                expected=f"no {noun} of the eval set",
                found=f"{place} {first.eval_number:,} of {files.base_name(eval_path)}",
                message=f"{path}, {place} {first.number:,}: this is eval {noun} {first.eval_number:,} of {eval_path} "
                f"({first.size:,} {unit}){more}; {advice}.",
                count=len(leaks),
            )
        )
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
    if is_too_many(count, held_out, max(1, twins) / trained):
        return "error"
    return "warning" if count > _MOST_SHARE * held_out else "note"


def _near_finding(found: NearCopies, severity: Severity, path: str, of_file: Sequence[int]) -> Finding:
    articles, first = found.articles, min(of_file, key=lambda article: found.numbers[article])
    number, eval_number = int(found.numbers[first]), int(articles.numbers[first])
    eval_path, share = articles.paths[articles.files[first]], f"{found.shares[first]:.0%}"
    more = f", and {len(of_file) - 1:,} more are here in part" if len(of_file) > 1 else ""
    return Finding(
        check="eval_leak",
        severity=severity,
        file=path,
        record=number,
        expected="no article of the eval set",
        found=f"{share} of document {eval_number:,} of {files.base_name(eval_path)}",
        message=f"{path}, document {number:,}: {share} of eval article {eval_number:,} of {eval_path} is here, "
        f"counted by passages of {WORDS} words without case and punctuation{more}; {_ADVICE}.",
        count=len(of_file),
    )


def check_eval_list(target: Target, results: Sequence[PieceResult], ranges: ByteRanges) -> Checked:
    """Compares eval.md5 with the articles of the eval text, in their order."""
    held_out = sorted((r for r in results if r.piece.split == "eval"), key=lambda result: result.piece.shard)
    if not held_out:
        return Checked(skipped={"eval_list": "no eval text is among what is verified"})
    path = files.join(target.directory, EVAL_MD5)
    try:
        listed = ranges.read_all(path).decode("ascii", "replace").split()
    except MissingFileError:
        if target.made is None:
            return Checked(skipped={"eval_list": f"there is no {EVAL_MD5}"})
        message = f"{path}: the list of the eval articles is missing; run the command that made the directory again."
        finding = Finding(check="eval_list", file=path, expected="a file", found="nothing", message=message)
        return Checked(findings=(finding,), looked_at={"eval_list": 1})
    if any("md5" not in result.hashes for result in held_out):
        return Checked(skipped={"eval_list": "the eval text could not be read"})
    articles = [(result.piece.path, _md5s(result)) for result in held_out]
    checked = _compare_lists(path, listed, articles, target.is_whole)
    notes = [_empty_article(path, listed)] if _EMPTY_MD5 in listed else []
    return Checked(findings=tuple(checked + notes), looked_at={"eval_list": len(listed)})


def _md5s(result: PieceResult) -> list[str]:
    return files.read_bytes(result.hashes["md5"]).decode().split()


def _compare_lists(
    path: str, listed: Sequence[str], articles: Sequence[tuple[str, Sequence[str]]], is_whole: bool
) -> list[Finding]:
    """What is wrong with eval.md5: the first article that differs or, of a part of the eval text, is not listed."""
    if not is_whole:
        known = set(listed)
        expected = [(file, md5) for file, md5s in articles for md5 in md5s]
        number = next((k for k, (_, md5) in enumerate(expected) if md5 not in known), None)
        if number is None:
            return []
        file = expected[number][0]
        return [_other_article(path, None, file, "a hash of this article", "none")]
    expected = [(file, md5) for file, md5s in articles for md5 in md5s]
    for number, ((file, md5), other) in enumerate(zip(expected, listed, strict=False), 1):
        if md5 != other:
            return [_other_article(path, number, file, md5, other)]
    if len(expected) == len(listed):
        return []
    file = articles[-1][0]
    number = min(len(expected), len(listed)) + 1
    return [_other_article(path, number, file, f"{len(expected):,} hashes", f"{len(listed):,}")]


def _other_article(path: str, number: int | None, file: str, expected: str, found: str) -> Finding:
    where = path if number is None else f"{path}, line {number:,}"
    return Finding(
        check="eval_list",
        file=path,
        record=number,
        expected=expected,
        found=found,
        message=f"{where}: the list does not have the articles of {file} ({expected} expected, {found} found); one of "
        "the two is damaged or of another build, so make the text again.",
    )


def _empty_article(path: str, listed: Sequence[str]) -> Finding:
    number = listed.index(_EMPTY_MD5) + 1
    return Finding(
        check="eval_list",
        severity="note",
        file=path,
        record=number,
        expected="articles with text",
        found="an empty one",
        message=f"{path}, line {number:,}: this is the hash of an empty article, as the reference's chain draws some; "
        "it gives no example.",
        count=listed.count(_EMPTY_MD5),
    )
