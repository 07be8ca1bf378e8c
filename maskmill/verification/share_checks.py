"""Whether masks and labels are in the shares and places that were asked for, within what chance allows.

Shards that were made again, and are equal, need no such guess: of them nothing is compared here.
"""

import collections
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from maskmill.verification.bounds import is_too_many, is_unlikely
from maskmill.verification.findings import Checked, Finding, Severity, finding, makes_check, skipped
from maskmill.verification.pieces import PieceResult, RowStatistics, add_statistics
from maskmill.verification.row_rules import RowRules, parameters_of
from maskmill.verification.row_structure import PAIRS
from maskmill.verification.verify_targets import Target

_TESTS = 32  # of a file
_HALF = 0.5
_LEAST_PREDICTIONS = 10  # of a row on average; of fewer, words that are too long may leave none
_LEAST_SHARE = 0.25  # of the predictions asked for, with masks of words
_UNKNOWN = "it is not known how the examples were made"
_REMADE = "all shards were made again"


@makes_check("data_set", "examples", "eval")
def check_shares(target: Target, results: Sequence[PieceResult]) -> Checked:
    """Compares what the rows of files were counted to have with the options, for each file and for all of a split."""
    counted = [r for r in results if r.rows is not None and r.rows.rows and r.piece.rules is not None]
    open_files = [result for result in counted if not result.is_remade]
    if counted and not open_files:
        return skipped(_REMADE, "mask_share", "pair_share")
    findings: list[Finding] = []
    looked_at: collections.Counter[str] = collections.Counter()
    why: dict[str, str] = {}
    options = parameters_of(target.made) if target.made else {}
    for path, rows, rules, counts in _parts(target, open_files, options):
        tests = _TESTS * (len(open_files) + 1)
        for check, found in (
            ("mask_share", _masks(path, rows, rules, tests)),
            ("pair_share", _pairs(path, rows, rules, options, counts, tests)),
        ):
            if isinstance(found, str):
                why[check] = found
            else:
                looked_at[check] += 1
                findings += found
    return Checked(findings=findings, looked_at=dict(looked_at), skipped=why)


def _parts(
    target: Target, results: Sequence[PieceResult], options: Mapping[str, Any]
) -> Iterator[tuple[str, RowStatistics, RowRules, Mapping[str, int]]]:
    """What is tested: each file, and the files of each split together, where each shard has a seed of its own.

    With one seed for all shards, as in the reference, their draws may be the same ones.
    """
    for result in results:
        if result.rows is not None:
            yield result.piece.path, result.rows, result.piece.rules, result.piece.expected.counts
    for split in ("train", "eval"):
        of_split = [r for r in results if r.piece.split == split and r.rows is not None]
        if len(of_split) > 1 and options.get("one_seed") is False:
            rows = add_statistics([r.rows for r in of_split if r.rows is not None])
            counts: collections.Counter[str] = collections.Counter()
            for result in of_split:
                counts.update(result.piece.expected.counts)
            yield f"{target.directory} ({split})", rows, of_split[0].piece.rules, counts


def _masks(path: str, rows: RowStatistics, rules: RowRules, tests: int) -> list[Finding] | str:
    """Looks at what stands at masked positions, at how many there are, and where."""
    if rules.is_dynamic:
        return "the reader draws the masks"
    if rules.mask_share is None or rules.keep_share is None or rules.random_share is None:
        return _UNKNOWN
    if not rows.masked or not rules.data_set.special_ids:
        return "the vocabulary is not known" if rows.masked else "nothing is masked"
    # With these units one draw may decide about all masks of a row, so they count as one.
    drawn_together = int(np.flatnonzero(rows.masks).max(initial=1)) if rules.mask_unit in ("word", "span") else 1
    # A random piece is the original one, or [MASK], by chance.
    slack = 2 * rules.random_share / max(1, rules.data_set.vocabulary_size or 1)
    with_mask = rows.masked - rows.masked_kept - rows.masked_random
    findings = []
    for name, found, least, most in (
        ("[MASK]", with_mask, rules.mask_share, rules.mask_share + slack),
        ("the piece that was there", rows.masked_kept, rules.keep_share, rules.keep_share + slack),
        ("a random piece", rows.masked_random, max(0.0, rules.random_share - 2 * slack), rules.random_share),
    ):
        if is_unlikely(found // drawn_together, rows.masked // drawn_together, least, most, tests):
            findings.append(_share(path, "mask_share", f"masked positions with {name}", found, rows.masked, least))
    return (
        findings
        + _places(path, rows, rules, tests)
        + _random_pieces(path, rows, rules, tests)
        + _few(path, rows, rules)
    )


def _places(path: str, rows: RowStatistics, rules: RowRules, tests: int) -> list[Finding]:
    """Looks where in the rows masks are, where each piece is drawn: the places of a row are as likely as each other."""
    findings = []
    for name, (found, by_chance) in zip(("first half", "middle half"), rows.halves.tolist(), strict=True):
        expected = by_chance / rows.masked
        if rules.mask_unit == "piece" and is_unlikely(int(found), rows.masked, expected, expected, tests):
            what = f"masked positions in the {name} of their row"
            findings.append(_share(path, "mask_share", what, int(found), rows.masked, expected))
    return findings


def _random_pieces(path: str, rows: RowStatistics, rules: RowRules, tests: int) -> list[Finding]:
    """Random pieces are drawn from all of the vocabulary: each part of it has as many as it has ids."""
    size, drawn = rules.data_set.vocabulary_size, rules.drawn_from
    if not size or drawn is None or not len(drawn):
        return []
    parts = np.bincount(drawn[drawn < size].astype(np.int64) * len(rows.redrawn) // size, minlength=len(rows.redrawn))
    trials = int(rows.redrawn.sum())
    for part, (found, ids) in enumerate(zip(rows.redrawn.tolist(), parts.tolist(), strict=True)):
        share, slack = ids / len(drawn), 2 / len(drawn)  # what is drawn may be what was there, or [MASK]
        if is_unlikely(found, trials, share - slack, share + slack, tests):
            low, high = (-(-place * size // len(parts)) for place in (part, part + 1))
            what = f"random pieces at masked positions with ids from {low:,} to {high - 1:,}"
            return [_share(path, "mask_share", what, found, trials, share)]
    return []


def _few(path: str, rows: RowStatistics, rules: RowRules) -> list[Finding]:
    """Far fewer masks than were asked for, where words are masked: each must fit as a whole."""
    if rules.is_exact or rules.masked_lm_prob is None or rules.max_predictions_per_seq is None:
        return []
    wanted = sum(
        int(count) * min(rules.max_predictions_per_seq, max(1, round(length * rules.masked_lm_prob)))
        for length, count in enumerate(rows.lengths.tolist())
        if count
    )
    if wanted < _LEAST_PREDICTIONS * rows.rows or rows.masked >= _LEAST_SHARE * wanted:
        return []
    pieces = int((rows.lengths * np.arange(len(rows.lengths))).sum())
    return [_share(path, "mask_share", "pieces that are predicted", rows.masked, pieces, wanted / pieces, "warning")]


def _pairs(
    path: str,
    rows: RowStatistics,
    rules: RowRules,
    options: Mapping[str, Any],
    counts: Mapping[str, int],
    tests: int,
) -> list[Finding] | str:
    """Looks at the labels of pairs."""
    if rules.objective not in PAIRS:
        return "there are no pairs"
    if rules.objective == "sop":
        if is_unlikely(rows.second_label, rows.sequences, _HALF, _HALF, tests):
            return [_share(path, "pair_share", "swapped pairs", rows.second_label, rows.sequences, _HALF)]
        return []
    if options.get("strict_labels") and (counts.get("single_document_shards") != 0):
        return "with strict labels, the pairs of a shard of one document are never random"
    # A pair is random with 1/2, and in any case where its document has no sentence left for the second part.
    if is_too_many(rows.sequences - rows.second_label, rows.sequences, _HALF, tests):
        return [_share(path, "pair_share", "random pairs", rows.second_label, rows.sequences, _HALF)]
    return []


def _share(
    path: str, check: str, what: str, found: int, trials: int, expected: float, severity: Severity = "error"
) -> Finding:
    share, wanted = f"{found / max(1, trials):.2%}", f"{expected:.2%}"
    told = (
        f"{share} are {what} ({found:,} of {trials:,}) where {wanted} are expected, which cannot be chance; check the "
        "options that the data was made with"
    )
    return finding(check, path, f"{wanted} {what}", share, told, severity)
