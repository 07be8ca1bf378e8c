"""Compare the shares and places of masks and labels with the options, within what chance allows.

Shards that are equal when made again are proven right, and not compared here.
"""

import collections
from collections.abc import Sequence

import numpy as np

from maskmill.verification.bounds import is_too_many, is_unlikely
from maskmill.verification.findings import Checked, Finding, finding, makes_check, skipped
from maskmill.verification.listed_shards import options_of
from maskmill.verification.row_rules import RowRules
from maskmill.verification.row_structure import PAIRS
from maskmill.verification.verify_targets import Target
from maskmill.verification.work_items import ItemResult, RowStatistics

_TESTS = 16  # of a file
_UNKNOWN = "it is not known how the examples were made"


@makes_check("data_set", "examples", "eval")
def check_shares(target: Target, results: Sequence[ItemResult]) -> Checked:
    """Compare the statistics of the rows of each file with the options."""
    counted = [(result.item, result.rows, result.is_remade) for result in results if result.rows and result.rows.rows]
    unproven = [(item, rows) for item, rows, is_remade in counted if not is_remade]
    if counted and not unproven:
        return skipped("all shards were made again", "mask_share", "pair_share")
    findings: list[Finding] = []
    looked_at: collections.Counter[str] = collections.Counter()
    why: dict[str, str] = {}
    options, tests = options_of(target.made) if target.made else {}, _TESTS * (len(unproven) + 1)
    for item, rows in unproven:
        is_strict = options.get("strict_labels") and item.expected.counts.get("single_document_shards") != 0
        for check, found in (
            ("mask_share", _masks(item.path, rows, item.rules, tests)),
            ("pair_share", _pairs(item.path, rows, item.rules, tests, is_strict=bool(is_strict))),
        ):
            if isinstance(found, str):
                why[check] = found
            else:
                looked_at[check] += 1
                findings += found
    return Checked(findings=findings, looked_at=dict(looked_at), skipped=why)


def _masks(path: str, rows: RowStatistics, rules: RowRules, tests: int) -> list[Finding] | str:
    """Check the pieces at masked positions, and the places of these in rows."""
    if rules.is_dynamic:
        return "the reader draws the masks"
    if rules.mask_share is None or rules.keep_share is None or rules.random_share is None:
        return _UNKNOWN
    if not rows.masked or not rules.data_set.special_ids:
        return "the vocabulary is not known" if rows.masked else "nothing is masked"
    # With these units one draw may decide all masks of a row, so they count as one.
    drawn_together = int(np.flatnonzero(rows.masks).max(initial=1)) if rules.mask_unit in ("word", "span") else 1
    # A random piece is the original one, or [MASK], by chance.
    slack = 2 * rules.random_share / max(1, rules.data_set.vocabulary_size or 1)
    with_mask = rows.masked - rows.masked_kept - rows.masked_random
    findings = []
    for name, found, least, most in (
        ("with [MASK]", with_mask, rules.mask_share, rules.mask_share + slack),
        ("with the piece that was there", rows.masked_kept, rules.keep_share, rules.keep_share + slack),
        ("with a random piece", rows.masked_random, max(0.0, rules.random_share - 2 * slack), rules.random_share),
    ):
        if is_unlikely(found // drawn_together, rows.masked // drawn_together, least, most, tests):
            findings.append(_share(path, "mask_share", f"masked positions {name}", found, rows.masked, least))
    # If pieces are drawn one by one, all places of a row are equally likely.
    for name, (found, by_chance) in zip(("first", "middle"), rows.halves.tolist(), strict=True):
        expected = by_chance / rows.masked
        if rules.mask_unit == "piece" and is_unlikely(int(found), rows.masked, expected, expected, tests):
            what = f"masked positions in the {name} half of their row"
            findings.append(_share(path, "mask_share", what, int(found), rows.masked, expected))
    return findings


def _pairs(path: str, rows: RowStatistics, rules: RowRules, tests: int, *, is_strict: bool) -> list[Finding] | str:
    """Check the labels of pairs."""
    if rules.objective not in PAIRS:
        return "there are no pairs"
    second, count = rows.second_label, rows.sequences
    if rules.objective == "sop":
        is_wrong = is_unlikely(second, count, 0.5, 0.5, tests)
    elif is_strict:
        return "with strict labels, the pairs of a shard of one document are never random"
    else:  # a pair is random with probability 1/2, and always if its document has no sentence left for the second part
        is_wrong = is_too_many(count - second, count, 0.5, tests)
    what = "swapped pairs" if rules.objective == "sop" else "random pairs"
    return [_share(path, "pair_share", what, second, count, 0.5)] if is_wrong else []


def _share(path: str, check: str, what: str, found: int, trials: int, expected: float) -> Finding:
    clause = (
        f"{found / max(1, trials):.2%} are {what} ({found:,} of {trials:,}) where {expected:.2%} are expected, which "
        "cannot be chance; check the options that the data was made with"
    )
    return finding(check, path, clause)
