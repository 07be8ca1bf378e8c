"""Whether examples use the whole text, and no text more often than dupe_factor."""

import collections
import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maskmill.verification.findings import Checked, Finding, Severity, finding, makes_check, skipped
from maskmill.verification.pieces import PieceResult
from maskmill.verification.row_rules import parameters_of
from maskmill.verification.scratch import merge_tables, runs_of, unpack_row
from maskmill.verification.verify_targets import Target

_UNKNOWN = "it is not known how the examples were made"
_MOST_LEFT_OUT = 0.8  # a shard of pairs uses less of its text than this share of what the others use
_FEW = 3  # shards
_FEW_UNUSED = 0.01  # share of the pieces that are in no pair; there are more where lines are longer than a row
_MANY_PIECES = 20_000  # of a shard's text, before its share means something
_LONG = 48  # pieces; shorter examples may well be the same by chance
_MANY = 0.2  # share of the rows
_LEAST_USED = 0.5  # of the text, in each pass; good data uses 0.8 and more
_SHORT_LINES = 2  # lines of at most half a row on average


@dataclasses.dataclass
class _Shard:
    """A shard: pieces of text in its rows (None: they cannot be told from special ones), those that a pass uses up.

    path: of its first file. counts: the manifest's.
    """

    path: str
    split: str
    counts: Mapping[str, int]
    all: int | None
    used: int


@makes_check("data_set", "examples")
def check_usage(target: Target, results: Sequence[PieceResult]) -> Checked:
    """Compares the pieces of text in the rows of each shard with those that its text has, by the manifest.

    Rows of mlm and blocks have each piece dupe_factor times. The first part of a pair, and the second one unless it
    is random, use up the text, so each piece is in them dupe_factor times, or less often where a pair was too long.
    """
    if target.made is None:
        return skipped(_UNKNOWN, "text_used", "repeated_examples")
    options = parameters_of(target.made)
    dupes = int(options.get("dupe_factor", 1))
    is_pairs = options.get("objective", "nsp") in ("nsp", "sop")
    shards = _shards(target, results, options)
    width = int(options.get("max_seq_length", 0))
    found = _used_pairs(target.directory, shards, dupes, width) if is_pairs else _used_exactly(shards, dupes)
    repeated = _repeated_pairs(results, dupes) if is_pairs else _repeated_exactly(results, dupes)
    looked_at = {"text_used": len(shards), "repeated_examples": sum(r.rows.rows for r in results if r.rows is not None)}
    return Checked(findings=[*found, *repeated], looked_at=looked_at)


def _shards(target: Target, results: Sequence[PieceResult], options: Mapping[str, Any]) -> list[_Shard]:
    """The shards whose files are all there, and of whose text the manifest says how many pieces it has."""
    by_path = {result.piece.path: result for result in results if result.rows is not None}
    numbers = collections.Counter((shard.kind, shard.number) for shard in target.shards)
    shards = []
    for shard in (shard for shard in target.shards if numbers[shard.kind, shard.number] == 1):
        found = [by_path.get(target.file(file.name)) for file in shard.files]
        files = [(result, result.rows) for result in found if result is not None and result.rows is not None]
        if "tokens" not in shard.counts or not files or len(files) < len(found):
            continue
        parts = np.sum([rows.part_pieces for _, rows in files], axis=0)
        used = int(parts.sum() - (parts[1, 1] if options.get("objective", "nsp") == "nsp" else 0))
        pieces = [result.counts["example_tokens"] for result, _ in files if "example_tokens" in result.counts]
        every = sum(pieces) if len(pieces) == len(files) else None
        shards.append(_Shard(files[0][0].piece.path, shard.kind, shard.counts, every, used))
    return shards


def _used_exactly(shards: Sequence[_Shard], dupes: int) -> list[Finding]:
    findings = []
    for shard in shards:
        expected = dupes * (shard.counts["tokens"] - shard.counts.get("unused_tokens", 0))
        if shard.all is not None and shard.all != expected:
            findings.append(_other_use(shard, shard.all, expected, "error"))
    return findings


def _used_pairs(directory: str, shards: Sequence[_Shard], dupes: int, width: int) -> list[Finding]:
    findings = [
        found
        for split in ("train", "eval")
        for found in _used_by_halves(directory, [shard for shard in shards if shard.split == split], dupes, width)
    ]
    shares = {id(shard): shard.used / max(1, dupes * shard.counts["tokens"]) for shard in shards}
    usual = statistics.median(shares.values()) if shares else 0.0
    for shard in shards:
        expected = dupes * shard.counts["tokens"]
        if shard.used > expected:
            findings.append(_other_use(shard, shard.used, expected, "error"))
        elif (
            len(shards) >= _FEW
            and shard.counts["tokens"] >= _MANY_PIECES
            and shard.counts.get("unused_tokens", 0) < _FEW_UNUSED * shard.counts["tokens"]
            and shares[id(shard)] < _MOST_LEFT_OUT * usual
        ):
            findings.append(_other_use(shard, shard.used, round(expected * usual), "warning"))
    return findings


def _used_by_halves(directory: str, shards: Sequence[_Shard], dupes: int, width: int) -> list[Finding]:
    """Pairs that use half of the text or less, in all shards of a split: where lines are short pairs take nearly all.

    Pieces that are in no pair do not count; the manifest says how many these are.
    """
    tokens, sentences, unused = (
        sum(shard.counts.get(name, 0) for shard in shards) for name in ("tokens", "sentences", "unused_tokens")
    )
    used, expected = sum(shard.used for shard in shards), dupes * (tokens - unused)
    if tokens < _MANY_PIECES or tokens * _SHORT_LINES > width * sentences or used >= _LEAST_USED * expected:
        return []
    what = (
        f"the pairs use {used:,} pieces of the text, where nearly {expected:,} are expected (its text, dupe_factor "
        "times): examples are missing in all shards alike; make the examples again"
    )
    return [finding("text_used", directory, f"nearly {expected:,} pieces of the text", f"{used:,}", what, "warning")]


def _other_use(shard: _Shard, found: int, expected: int, severity: Severity) -> Finding:
    wanted = f"{'about ' if severity == 'warning' else ''}{expected:,}"
    what = (
        f"the examples of this shard use {found:,} pieces of the text, where {wanted} are expected (all of its text, "
        "dupe_factor times); make the shard again"
    )
    return finding("text_used", shard.path, f"{wanted} pieces of the text", f"{found:,}", what, severity)


def _repeated_exactly(results: Sequence[PieceResult], dupes: int) -> list[Finding]:
    """Rows of mlm or blocks that are not there dupe_factor times, or a multiple of that where the text repeats."""
    tables = [result for result in results if "rows" in result.hashes]
    others: dict[int, list[tuple[int, int]]] = {}
    for merged in merge_tables([result.hashes["rows"] for result in tables]):
        starts, counts = runs_of(merged.table[:, 0])
        for run in np.flatnonzero(counts % dupes).tolist():
            start = int(starts[run])
            number = int(unpack_row(merged.table[start : start + 1, -1])[0][0])
            others.setdefault(int(merged.owner[start]), []).append((number, int(counts[run])))
    findings = []
    for owner, places in sorted(others.items()):
        number, count = min(places)
        path, wanted = tables[owner].piece.path, f"{dupes:,} times, or a multiple of it"
        what = (
            f"the text of this example is in {count:,} examples, where each text is in dupe_factor ({dupes:,}) of "
            "them, or in a multiple of that; make the shard again"
        )
        at = ("record", number)
        findings.append(finding("repeated_examples", path, wanted, f"{count:,} times", what, at=at, count=len(places)))
    return findings


def _repeated_pairs(results: Sequence[PieceResult], dupes: int) -> list[Finding]:
    """Pairs that are there more often than dupe_factor.

    A pass over the text uses each sentence once as the beginning of a pair, so a pair that is there more often comes
    from text that is there more often. Text that repeats itself here and there is worth a note; where much of the data
    is like that, the same text went in twice.
    """
    tables = [result for result in results if "rows" in result.hashes]
    first: tuple[int, int, int] | None = None
    rows = repeated = runs_repeated = 0
    for merged in merge_tables([result.hashes["rows"] for result in tables]):
        starts, counts = runs_of(merged.table[:, 0])
        numbers, lengths, _ = unpack_row(merged.table[starts, -1])
        often = np.flatnonzero((counts > dupes) & (lengths >= _LONG))
        rows += len(merged.table)
        repeated += int(counts[often].sum())
        runs_repeated += len(often)
        if len(often):
            place = often[np.argmax(counts[often])]
            if first is None or counts[place] > first[0]:
                first = (int(counts[place]), int(merged.owner[starts[place]]), int(numbers[place]))
    if first is None:
        return []
    count, owner, number = first
    path = tables[owner].piece.path
    is_much = repeated > _MANY * rows
    advice = "the same text went in twice, so look for it among the inputs" if is_much else "the text repeats itself"
    severity: Severity = "warning" if is_much else "note"
    expected, found, at = f"{dupes:,} times or fewer", f"{count:,} times", ("record", number)
    what = (
        f"this example is there {count:,} times, whatever its masks, where dupe_factor is {dupes:,} "
        f"({repeated / rows:.1%} of all examples are such); {advice}"
    )
    return [finding("repeated_examples", path, expected, found, what, severity, at=at, count=runs_repeated)]
