"""Whether masks, labels and lengths are there in the shares that were asked for, within what chance allows."""

import collections
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from maskmill.verification.bounds import is_too_few, is_too_many
from maskmill.verification.findings import Checked, Finding, finding, makes_check
from maskmill.verification.kernels.row_checking import CLOSES, CONTINUES, SHARE_BITS
from maskmill.verification.pieces import PieceResult, RowStatistics
from maskmill.verification.row_results import add_statistics
from maskmill.verification.row_rules import RowRules, parameters_of
from maskmill.verification.verify_targets import Target

_TESTS = 32  # of a file
_UNEVEN = 0.1  # how much more or less of the masks may be in a half of a row where words are masked
_OTHER_ROWS = 0.25  # how much the share of a kind of pieces may differ in short rows, of which a larger part is masked
_MOST_TOGETHER = 2  # times as many neighbours may be masked together as by chance
_CLOSED = (0.05, 3)  # share of texts that may start with the end of a sentence, and for each such piece of the text
_SAME_LENGTH = 0.05  # how many more neighbouring rows may have the same length than by chance
_HALF = 0.5
_LEAST_PREDICTIONS = 10  # of a row on average; of fewer, words that are too long may leave none
_LEAST_SHARE = 0.25  # of the predictions asked for, with masks of words
_UNKNOWN = "it is not known how the examples were made"


@makes_check("data_set", "examples", "eval")
def check_shares(target: Target, results: Sequence[PieceResult]) -> Checked:
    """Compares what the rows of files were counted to have with the options, for each file and for all of a split."""
    counted = [r for r in results if r.rows is not None and r.rows.rows and r.piece.rules is not None]
    findings: list[Finding] = []
    looked_at: collections.Counter[str] = collections.Counter()
    skipped: dict[str, str] = {}
    options = parameters_of(target.made) if target.made else {}
    tests = _TESTS * (len(counted) + 1)
    paths = {result.piece.path for result in counted}
    for path, rows, rules, counts in _parts(target, counted, options):
        for check, found in (
            ("mask_share", _masks(path, rows, rules, tests)),
            ("mask_share", _places(path, rows, rules, tests)),
            ("pair_share", _pairs(path, rows, rules, options, counts, tests)),
            ("words", _openings(path, rows, rules, tests)),
            # Shards, and files of bins, have rows of different lengths; each file has an order of its own.
            ("row_order", _order(path, rows, rules, tests) if path in paths else []),
        ):
            if isinstance(found, str):
                skipped[check] = found
            else:
                looked_at[check] += 1
                findings += found
    lengths = _lengths(counted, options)
    if isinstance(lengths, str):
        skipped["length_share"] = lengths
    else:
        looked_at["length_share"] = len(counted)
        findings += lengths
    return Checked(findings=findings, looked_at=dict(looked_at), skipped=skipped if counted else {})


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
    """Looks at what stands at masked positions, and at how many there are where words are masked."""
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
        trials, successes = rows.masked // drawn_together, found // drawn_together
        if _is_unlikely(successes, trials, least, most, tests):
            findings.append(_share(path, "mask_share", f"masked positions with {name}", found, rows.masked, least))
    return findings + _too_few_masks(path, rows, rules)


def _places(path: str, rows: RowStatistics, rules: RowRules, tests: int) -> list[Finding] | str:
    """Looks where in the rows masks are, in which parts of words, and of which ids random pieces are."""
    if rules.is_dynamic or not rows.masked or not rows.half_masks[0, 1]:
        return "where masks belong is not known"
    together = 1 if rules.mask_unit == "piece" else int(np.flatnonzero(rows.masks).max(initial=1))
    slack = 0.0 if rules.mask_unit == "piece" else _UNEVEN
    findings = []
    for name, (found, scaled) in zip(("first half", "middle half"), rows.half_masks.tolist(), strict=True):
        expected = scaled / (1 << SHARE_BITS) / rows.masked
        if _is_unlikely(found // together, rows.masked // together, expected - slack, expected + slack, tests):
            what = f"masked positions in the {name} of their row"
            findings.append(_share(path, "mask_share", what, found, rows.masked, expected))
    return findings + _parts_of_words(path, rows, rules, tests) + _random_pieces(path, rows, rules, tests)


def _parts_of_words(path: str, rows: RowStatistics, rules: RowRules, tests: int) -> list[Finding]:
    """Where pieces are masked one by one: pieces that go on a word, masked as often as others, alone or not."""
    if rules.mask_unit != "piece" or not rules.continues_word or rules.piece_kinds is None:
        return []
    specials = {rules.data_set.special_ids.get(name) for name in ("cls_id", "sep_id")} - {None}
    pieces = int(rows.piece_counts.sum() - rows.piece_counts[sorted(specials)].sum())  # type: ignore[type-var]
    kinds = rules.piece_kinds[: len(rows.piece_counts)]
    share = int(rows.piece_counts[: len(kinds)][kinds & CONTINUES > 0].sum()) / max(1, pieces)
    found, together = rows.continued.tolist()
    findings = []
    what = "masked pieces that go on a word (##)"
    if _is_unlikely(found, rows.masked, share * (1 - _OTHER_ROWS), share * (1 + _OTHER_ROWS), tests):
        findings.append(_share(path, "mask_share", what, found, rows.masked, share))
    usual = rows.masked / max(1, pieces)
    if is_too_many(together, found, min(1.0, _MOST_TOGETHER * usual), tests):
        what = "masked pieces that go on a word (##) and are masked together with the piece in front"
        findings.append(_share(path, "mask_share", what, together, found, usual))
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
        if _is_unlikely(found, trials, share - slack, share + slack, tests):
            low, high = (-(-place * size // len(parts)) for place in (part, part + 1))
            what = f"random pieces at masked positions with ids from {low:,} to {high - 1:,}"
            return [_share(path, "mask_share", what, found, trials, share)]
    return []


def _is_unlikely(successes: int, trials: int, least: float, most: float, tests: int) -> bool:
    """Whether so many successes cannot be chance, whichever of these shares is the right one."""
    return is_too_few(successes, trials, max(0.0, least), tests) or is_too_many(
        successes, trials, min(1.0, most), tests
    )


def _openings(path: str, rows: RowStatistics, rules: RowRules, tests: int) -> list[Finding] | str:
    """Texts that start with what ends a sentence: where words are in the reverse order."""
    texts, closed = rows.openings.tolist()
    if rules.piece_kinds is None or not texts:
        return "the vocabulary is not known"
    kinds = rules.piece_kinds[: len(rows.piece_counts)]
    counts = rows.piece_counts[: len(kinds)]
    share = int(counts[kinds & CLOSES > 0].sum()) / max(1, int(counts.sum()))
    most, dupes = min(1.0, _CLOSED[0] + _CLOSED[1] * share), rules.dupe_factor or 1
    if is_too_many(closed // dupes, texts // dupes, most, tests):
        return [_share(path, "words", "texts that start with the end of a sentence", closed, texts, share)]
    return []


def _order(path: str, rows: RowStatistics, rules: RowRules, tests: int) -> list[Finding] | str:
    """Rows that stand by their length: they are written in a random order, unless the reader draws masks of a text."""
    if rules.objective is None or (rules.is_dynamic and rules.objective in ("mlm", "blocks")):
        return "rows stand in the order of the text"
    longer, shorter, same = rows.order.tolist()
    all_rows = max(2, rows.rows)
    by_chance = float((rows.lengths * (rows.lengths - 1)).sum()) / (all_rows * (all_rows - 1))
    pairs = longer + shorter + same
    if is_too_many(same, pairs, min(1.0, by_chance + _SAME_LENGTH), tests):
        return [_share(path, "row_order", "neighbouring rows of one length", same, pairs, by_chance)]
    if is_too_many(max(longer, shorter), longer + shorter, _HALF, tests):
        what = f"neighbouring rows of which the second is {'longer' if longer > shorter else 'shorter'}"
        return [_share(path, "row_order", what, max(longer, shorter), longer + shorter, _HALF)]
    return []


def _too_few_masks(path: str, rows: RowStatistics, rules: RowRules) -> list[Finding]:
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
    return [_share(path, "mask_share", "pieces that are predicted", rows.masked, pieces, wanted / pieces)]


def _pairs(
    path: str,
    rows: RowStatistics,
    rules: RowRules,
    options: Mapping[str, Any],
    counts: Mapping[str, int],
    tests: int,
) -> list[Finding] | str:
    """Looks at the labels of pairs."""
    if rules.objective not in ("nsp", "sop"):
        return "there are no pairs"
    if rules.objective == "sop":
        if _is_unlikely(rows.second_label, rows.sequences, _HALF, _HALF, tests):
            return [_share(path, "pair_share", "swapped pairs", rows.second_label, rows.sequences, _HALF)]
        return []
    if options.get("strict_labels") and (counts.get("single_document_shards") != 0):
        return "with strict labels, the pairs of a shard of one document are never random"
    # A pair is random with 1/2, and in any case where its document has no sentence left for the second part.
    if is_too_few(rows.second_label, rows.sequences, _HALF, tests):
        return [_share(path, "pair_share", "random pairs", rows.second_label, rows.sequences, _HALF)]
    return []


def _lengths(results: Sequence[PieceResult], options: Mapping[str, Any]) -> list[Finding] | str:
    """Rows that are not full, where text is cut into rows: there is one for each pass over a shard at most."""
    if not options:
        return _UNKNOWN
    is_cut = not options.get("pack") and (
        options.get("objective") == "blocks"
        or (
            options.get("objective") == "mlm"
            and not options.get("full_sentences", True)
            and options.get("cross_documents", True)
        )
    )
    if not is_cut:
        return "how long the rows are follows from the text"
    width = int(options["max_seq_length"])
    drops = options.get("objective") == "blocks" and options.get("block_remainder") == "drop"
    most = 0 if drops else int(options.get("dupe_factor", 1))
    short: collections.Counter[tuple[str, int]] = collections.Counter()
    files: dict[tuple[str, int], PieceResult] = {}
    for result in results:
        shard = (result.piece.split, result.piece.shard)
        files.setdefault(shard, result)
        if result.rows is not None:
            short[shard] += int(result.rows.lengths[:width].sum())
    findings = []
    for shard, count in short.items():
        if count > most:
            expected = f"{most:,} rows or fewer below {width:,} pieces"
            what = (
                f"{count:,} rows of this shard are shorter than {width:,} pieces, but only the last row of each pass "
                f"over the text may be ({most:,}); make the shard again"
            )
            findings.append(finding("length_share", files[shard].piece.path, expected, f"{count:,}", what))
    return findings


def _share(path: str, check: str, what: str, found: int, trials: int, expected: float) -> Finding:
    share, wanted = f"{found / max(1, trials):.2%}", f"{expected:.2%}"
    told = (
        f"{share} are {what} ({found:,} of {trials:,}) where {wanted} are expected, which cannot be chance; check the "
        "options that the data was made with"
    )
    return finding(check, path, f"{wanted} {what}", share, told)
