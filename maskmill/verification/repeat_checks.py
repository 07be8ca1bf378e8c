"""Records that are there more often than they may be, shards that are the same, or nearly, or of suspicious size."""

import collections
import dataclasses
import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.storage import files, manifest
from maskmill.text.text_shards import DEFAULT_SHARD_SIZE_MB
from maskmill.verification.bounds import poisson_tail
from maskmill.verification.findings import Checked, Finding, Severity, finding, looked, makes_check, skipped
from maskmill.verification.pieces import PieceResult
from maskmill.verification.row_rules import RowRules
from maskmill.verification.scratch import Merged, merge_tables, runs_of, unpack_row
from maskmill.verification.verify_targets import Target

# Where words or spans are masked as a whole, there are fewer ways to mask a row than its pieces alone would allow: the
# logarithm of their number is at least this part of it, with words of a piece or two, n-grams of up to three words and
# spans of four on average.
_PART_OF_WAYS = {"piece": 1.0, "whole_word": 0.3, "word": 0.3, "ngram": 0.15, "span": 0.1}
# A tokenizer.json may cut words into single characters.
_PART_OF_WORDS_IN_ANY_PIECES = 0.03

# How likely a false alarm may be, for all records of a class together. It is more than elsewhere, so that a single row
# of 60 pieces that is there twice is found: two of the same text have the same 10 masks with 2**-42.
_FALSE_ALARM = 1e-9
_MUCH = 0.1  # share of the records of a shard
_CLASSES = 64  # of rows, by in how many ways they can be masked
_STEP = 4  # bits between two of them
_SAME = 0.9  # share of what two shards have in common from which on they are the same
_SIMILAR = 0.4
_WORTH_A_NOTE = 0.5  # of examples: pages of a bot are alike, too, but not the same
_LEAST = 8  # hashes in common; fewer may be chance in small shards
_COMMON = 24  # what so many shards have is boilerplate
_SKETCH = 1024
_MEGABYTE = 1 << 20
_TEXT = "text"  # folder of a build
_FACTOR = 8  # how much smaller or larger than the median a shard may be, where nothing says more
_FEW = 4  # shards; of fewer none can be said to be unlike the others
Pair = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class _Repeat:
    """A record that is there before.

    ways: its class. owner, number: the place of its file, and its number there. first_owner, first_number: the same of
    the record that it repeats.
    """

    ways: int
    owner: int
    number: int
    first_owner: int
    first_number: int


@dataclasses.dataclass
class _Repeats:
    """What repeats in the rows of a data set.

    rows: how many there are. expected, pairs: by class, how many pairs of equal records there would be by chance, and
    how many there are. found: the records that are there before.
    """

    rows: int = 0
    expected: npt.NDArray[np.float64] = dataclasses.field(default_factory=lambda: np.zeros(_CLASSES))
    pairs: npt.NDArray[np.int64] = dataclasses.field(default_factory=lambda: np.zeros(_CLASSES, np.int64))
    found: list[_Repeat] = dataclasses.field(default_factory=list)


@makes_check("data_set", "examples", "eval")
def check_repeats(_target: Target, results: Sequence[PieceResult]) -> Checked:
    """Looks for records that are there twice, masks and all.

    Two rows of the same text have the same masks with a probability that follows from how many ways there are to mask
    them. So the number of equal records that chance gives is known, whatever the text repeats; it is tested for the
    rows that can be masked in the most ways, then with those of fewer ways, as far as chance does not explain it.
    """
    tables = [result for result in results if "rows" in result.hashes]
    if not tables:
        return skipped("no rows could be read", "repeated_records")
    found = _find(tables)
    expected = np.cumsum(found.expected[::-1])[::-1].tolist()
    pairs = np.cumsum(found.pairs[::-1])[::-1].tolist()
    least = next((k for k in range(_CLASSES) if pairs[k] and poisson_tail(pairs[k], expected[k]) < _FALSE_ALARM), None)
    repeats = [] if least is None else [repeat for repeat in found.found if repeat.ways >= least]
    return looked("repeated_records", *_describe(repeats, tables), *_similar_files(repeats, tables), count=found.rows)


def _find(tables: Sequence[PieceResult]) -> _Repeats:
    found = _Repeats()
    factor = min(_part_of_ways(result.piece.rules) for result in tables)
    for merged in merge_tables([result.hashes["rows"] for result in tables]):
        starts, counts = runs_of(merged.table[:, 0])
        found.rows += len(merged.table)
        # Rows of the same text can be masked in nearly the same number of ways; those of the first stand for all.
        bits = unpack_row(merged.table[starts, -1])[2]
        repeated = np.flatnonzero((counts > 1) & (bits > 0))
        many, of_repeated = counts[repeated].astype(np.float64), bits[repeated]
        chance = many * (many - 1) / 2 * np.exp2(-of_repeated * factor)
        found.expected += np.bincount(of_repeated // _STEP, chance, minlength=_CLASSES)
        for run in repeated.tolist():
            _add_run(found, merged, int(starts[run]), int(counts[run]), int(bits[run]) // _STEP)
    return found


def _part_of_ways(rules: RowRules) -> float:
    unit = rules.mask_unit or "piece"  # the reference masks pieces, unless it is asked for words
    return _PART_OF_WORDS_IN_ANY_PIECES if rules.is_tokenizer and unit != "piece" else _PART_OF_WAYS[unit]


def _add_run(found: _Repeats, merged: Merged, start: int, count: int, ways: int) -> None:
    """Adds the records of a run of equal texts that are equal themselves."""
    records = merged.table[start : start + count, 1]
    order = np.argsort(records, kind="stable")
    first_of, sizes = runs_of(records[order])
    for first, size in zip(first_of[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
        members = order[first : first + size] + start
        found.pairs[ways] += size * (size - 1) // 2
        numbers = unpack_row(merged.table[members, -1])[0].tolist()
        (first_owner, first_number), *others = sorted(zip(merged.owner[members].tolist(), numbers, strict=True))
        found.found += [_Repeat(ways, owner, number, first_owner, first_number) for owner, number in others]


def _similar_files(repeats: Sequence[_Repeat], tables: Sequence[PieceResult]) -> list[Finding]:
    """Files that have much of their records in common with a file of another shard."""
    findings = []
    common = collections.Counter((repeat.owner, repeat.first_owner) for repeat in repeats)
    for (owner, other), count in sorted(common.items()):
        piece, first, rows = tables[owner].piece, tables[other].piece, tables[owner].rows
        if (piece.split, piece.shard) == (first.split, first.shard) or rows is None or tables[owner].sha256 is None:
            continue
        share = count / max(1, rows.rows)
        if share >= _MUCH and tables[owner].sha256 != tables[other].sha256:
            what = f"{share:.0%} of the records of this shard are in {first.path}, too; make it again from its own text"
            found = f"{share:.0%} as in {first.path}"
            findings.append(finding("similar_shards", piece.path, "records of its own", found, what))
    return findings


def _describe(repeats: Sequence[_Repeat], tables: Sequence[PieceResult]) -> list[Finding]:
    by_file: dict[int, list[_Repeat]] = {}
    for repeat in sorted(repeats, key=lambda repeat: (repeat.owner, repeat.number)):
        by_file.setdefault(repeat.owner, []).append(repeat)
    findings = []
    for owner, of_file in by_file.items():
        first = of_file[0]
        path, other = tables[owner].piece.path, tables[first.first_owner].piece.path
        more = f" ({len(of_file):,} such records in this file)" if len(of_file) > 1 else ""
        found, at = f"record {first.first_number:,} of {other}", ("record", first.number)
        what = f"this is {found} once more, with the same masks{more}; make the shard again"
        count = len(of_file)
        findings.append(finding("repeated_records", path, "a record of its own", found, what, at=at, count=count))
    return findings


@makes_check("data_set", "text", "examples")
def check_similar(target: Target, results: Sequence[PieceResult]) -> Checked:
    """Looks for files of different shards that have the same content, or nearly."""
    repeats = takes_documents_twice(target)
    shards = [(result.piece.split, result.piece.shard) for result in results]
    same: dict[Pair, float] = {}
    by_digest: dict[str, list[int]] = {}
    for place, result in enumerate(results):
        if result.size and result.sha256:
            by_digest.setdefault(result.sha256, []).append(place)
    for places in by_digest.values():
        first, *others = places  # the bins of a shard, or its MDS files, have the same text
        same |= {(first, place): 1.0 for place in others if shards[place] != shards[first]}
    if not repeats:
        shared = _shared_documents(results) if any(r.piece.kind == "text" for r in results) else _sketched(results)
        for pair, share in shared.items():
            one, other = (results[place].piece for place in pair)
            # What the splits share is a leak, which another check names.
            if pair not in same and share >= _SIMILAR and one.split == other.split and one.shard != other.shard:
                same[pair] = share
    findings = [_similar(results, pair, share) for pair, share in sorted(same.items())]
    checked = looked("similar_shards", *findings, count=sum(map(len, by_digest.values())))
    why = "the mix takes documents several times, so only files that are the same are found"
    return dataclasses.replace(checked, skipped={"similar_shards": why} if repeats else {})


def _shared_documents(results: Sequence[PieceResult]) -> dict[Pair, float]:
    """By pair of text shards: the share of the smaller one's documents that is in the other, too."""
    places = [place for place, result in enumerate(results) if "documents" in result.hashes]
    distinct: collections.Counter[int] = collections.Counter()
    common: collections.Counter[Pair] = collections.Counter()
    for merged in merge_tables([results[place].hashes["documents"] for place in places]):
        _count_shared(merged.table[:, 0], merged.owner, distinct, common)
    return {
        (places[one], places[other]): count / min(distinct[one], distinct[other])
        for (one, other), count in common.items()
        if count > 1 or min(distinct[one], distinct[other]) == 1
    }


def _count_shared(
    hashes: npt.NDArray[np.uint64],
    owner: npt.NDArray[np.int64],
    distinct: collections.Counter[int],
    common: collections.Counter[Pair],
) -> None:
    """Counts the different hashes of each owner, and those that two have in common; hashes ascend."""
    starts, counts = runs_of(hashes)
    once = starts[counts == 1]
    for member, count in zip(*np.unique(owner[once], return_counts=True), strict=True):
        distinct[int(member)] += int(count)
    for start, count in zip(starts[counts > 1].tolist(), counts[counts > 1].tolist(), strict=True):
        members = sorted(set(owner[start : start + count].tolist()))
        distinct.update(members)
        if 1 < len(members) <= _COMMON:
            common.update(itertools.combinations(members, 2))


def _sketched(results: Sequence[PieceResult]) -> dict[Pair, float]:
    """By pair of files of examples: the share of their text that is in both, of all of it (Jaccard's), estimated."""
    sketches = [np.zeros(0, np.uint64) if result.rows is None else result.rows.sketch for result in results]
    owner = np.repeat(np.arange(len(sketches)), [len(sketch) for sketch in sketches])
    hashes = np.concatenate([*sketches, np.zeros(0, np.uint64)])
    order = np.argsort(hashes, kind="stable")
    common: collections.Counter[Pair] = collections.Counter()
    _count_shared(hashes[order], owner[order], collections.Counter(), common)
    return {
        pair: share
        for pair, count in common.items()
        if count >= _LEAST and (share := _resemblance(sketches[pair[0]], sketches[pair[1]])) >= _WORTH_A_NOTE
    }


def _resemblance(one: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64]) -> float:
    """The share of the smallest hashes of both that each of the two has (Broder 1997)."""
    union = np.union1d(one, other)[: max(_SKETCH, 1)]
    # A sketch that is full says nothing of hashes beyond its last one.
    ends = [sketch[-1] for sketch in (one, other) if len(sketch) >= _SKETCH]
    if ends:
        union = union[union <= min(ends)]
    return float((np.isin(union, one) & np.isin(union, other)).mean()) if len(union) else 0.0


def _similar(results: Sequence[PieceResult], pair: Pair, share: float) -> Finding:
    one, other = (results[place].piece.path for place in pair)
    if share == 1.0 and results[pair[0]].sha256 == results[pair[1]].sha256:
        what = "is the same file as"
    elif share >= _SAME:
        what = "has the same text as"
    else:
        what = f"has {share:.0%} of its text in common with"
    is_text = results[pair[0]].piece.kind == "text"
    is_same = share >= _SAME
    advice = "make it again from its own text" if is_text or is_same else "look whether the text repeats itself"
    severity: Severity = "error" if is_same else "warning" if is_text else "note"
    what = f"this shard {what} {one}; {advice}"
    return finding("similar_shards", other, "text of its own", f"{share:.0%} as in {one}", what, severity)


@makes_check("data_set", "text", "examples")
def check_sizes(target: Target, results: Sequence[PieceResult]) -> Checked:
    """Looks for shards that are too small or too large beside the others of their split."""
    if not target.is_whole:
        return skipped("only some of the shards are verified", "shard_size")
    if any(result.size is None for result in results):
        return skipped("a file is not there", "shard_size")
    findings: list[Finding] = []
    made: Mapping[str, object] = target.made["parameters"] if target.made else {}
    for split in ("train", "eval"):
        of_split = sorted((r for r in results if r.piece.split == split), key=lambda result: result.piece.shard)
        if target.kind == "text" and target.made and _is_cut_evenly(target):
            megabytes = made.get("shard_size_mb")
            findings += _uneven(of_split, float(megabytes or DEFAULT_SHARD_SIZE_MB) * _MEGABYTE)  # type: ignore[arg-type]
        else:
            findings += _outliers(of_split)
    return looked("shard_size", *findings, count=len(results))


def takes_documents_twice(target: Target) -> bool:
    """Whether text, or that of examples where its manifest is there, is of a mix that takes a source several times."""
    made = target.made or {}
    if target.kind != "text":
        text = files.join(files.parent(target.directory), _TEXT)
        places = {files.parent(entry["path"]) for entry in made.get("inputs", [])} | {text}
        found = [files.join(place, manifest.MANIFEST) for place in places]
        return any(_repeats_sources(manifest.find_manifest(files.parent(path))) for path in found if _is_there(path))
    return _repeats_sources(made)


def _is_there(path: str) -> bool:
    try:
        return files.exists(path)
    except (UnusableInputError, RunFailedError, ValueError):
        return False


def _repeats_sources(made: Mapping[str, Any] | None) -> bool:
    decided = (made or {}).get("decided", {})
    sources = decided.get("sources", {}) if isinstance(decided, dict) else {}
    return any(source.get("epochs", 1) > 1 for source in sources.values() if isinstance(source, dict))


def _is_cut_evenly(target: Target) -> bool:
    """Whether a shard is a share of all text of one source (shards/planning.py: shares_of)."""
    made = target.made or {}
    return made["parameters"].get("compat", "none") != "mlperf" and "sources" not in made.get("decided", {})


def _uneven(results: Sequence[PieceResult], shard_bytes: float) -> Iterable[Finding]:
    """Shards of a text that do not start in a share of their own, although documents were dealt out by shares."""
    sizes = [result.size or 0 for result in results]
    total = sum(sizes)
    shares = max(1, math.ceil(total / shard_bytes))
    starts = list(itertools.accumulate(sizes, initial=0))[:-1]
    numbers = [start * shares // max(1, total) for start in starts]
    for place in range(1, len(results)):
        if numbers[place] <= numbers[place - 1] and sizes[place]:
            # The shard before it is too short, or some shard is too long.
            median = statistics.median(sizes)
            worst = max(range(len(sizes)), key=lambda k: abs(sizes[k] - median))
            yield _odd_size(results[worst], f"{round(median):,} bytes or so")
            return


def _outliers(results: Sequence[PieceResult]) -> Iterable[Finding]:
    """Files that are far smaller or larger than the others; the last one may be small."""
    sizes = {result.piece.path: result.size for result in results if result.size}
    by_shard: collections.Counter[int] = collections.Counter()
    for result in results:
        by_shard[result.piece.shard] += result.size or 0
    if len(by_shard) < _FEW or len(sizes) < _FEW:
        return
    median = statistics.median(by_shard.values())
    last = max(by_shard)
    for shard, size in by_shard.items():
        if size > _FACTOR * median or (size * _FACTOR < median and shard != last):
            of_shard = next(result for result in results if result.piece.shard == shard)
            yield _odd_size(of_shard, f"{round(median):,} bytes or so", size)


def _odd_size(result: PieceResult, expected: str, size: int | None = None) -> Finding:
    path, size = result.piece.path, size or result.size or 0
    what = f"this shard has {size:,} bytes where {expected} are expected; check that it is whole"
    return finding("shard_size", path, expected, f"{size:,} bytes", what, "warning")
