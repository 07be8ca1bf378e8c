"""The counts of text shards → the counts of all text.

Runs are merged by buckets: neighbouring buckets whose records have up to _GROUP_BYTES in all runs are one piece of
work, which any worker can do in bounded memory. A bucket with more is cut into parts by other bits of the words'
hashes. What a piece gives, the sum of each word's counts, is a file of records like a run's. These files stay, because
a vocabulary that has to be made again needs them; the runs are deleted when the vocabulary is made.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.storage import completions, files, progress
from maskmill.tokenization.text_blocks import PADDING
from maskmill.vocabularies.counting import CountedShard, WordRules, read_run, write_table
from maskmill.vocabularies.kernels import word_counts as kernels
from maskmill.vocabularies.learning import WordCounts
from maskmill.vocabularies.word_tables import WordTable, sorted_words

KIND = "merged_counts"

# The most words that a vocabulary is learnt from, and the most bytes that they have. In Japanese a word of BPE is a
# whole clause, so that the number of words alone would not bound a learner's memory.
MAX_WORDS = 10_000_000
MAX_WORD_BYTES = 1 << 27

_GROUP_BYTES = 1 << 24


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunPart:
    """Some buckets of a run.

    key, path, rules: of the shard whose words it counts, as in CountedShard. name: of the run's file, below the output
    directory. start, end: the bytes of the buckets.
    """

    key: str
    path: str
    rules: WordRules
    name: str
    start: int
    end: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class MergePlan:
    """A piece of the work of merging.

    first, end: the buckets, [first, end). part, parts: of the words in them, by their hashes. runs: where the words
    are.
    """

    first: int
    end: int
    part: int
    parts: int
    runs: tuple[RunPart, ...]

    @property
    def key(self) -> str:
        """That of the completion record: what decides which words there are, and how often."""
        shards = sorted(run.key for run in self.runs)
        return completions.fingerprint(
            KIND, completions.FORMAT_VERSIONS[KIND], shards, self.first, self.end, self.part, self.parts
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class MergedWords:
    """The description of merged counts: those of all words of some buckets, or of a part of them.

    key: of the completion record. name, size, sha256: of the file, its name below the output directory, its size in
    bytes. counts: how many `distinct_words` there are, and how many `words`.
    """

    key: str
    name: str
    size: int
    sha256: str
    counts: Mapping[str, int]


@dataclasses.dataclass(frozen=True, kw_only=True)
class CountedWords:
    """The words of all text that a vocabulary is learnt from.

    words: those that occur at least `threshold` times. threshold: the smallest one that leaves no more words, and no
    more bytes of them, than were asked for. left_out_words: how many distinct words are rarer. left_out_occurrences:
    how often they occur, together.
    """

    words: WordCounts
    threshold: int
    left_out_words: int
    left_out_occurrences: int


def plan_merges(shards: Sequence[CountedShard]) -> list[MergePlan]:
    """Cut the work of merging into pieces, by the sizes of the buckets; the order of the shards does not matter."""
    runs = [(shard, run) for shard in sorted(shards, key=lambda s: (s.key, s.path)) for run in shard.runs]
    sizes = np.zeros(kernels.BUCKETS, np.int64)
    for _, run in runs:
        sizes += np.diff(run.starts)
    plans = []
    first = 0
    while first < kernels.BUCKETS:
        end = first + 1
        while end < kernels.BUCKETS and sizes[first : end + 1].sum() <= _GROUP_BYTES:
            end += 1
        parts = max(1, -(-int(sizes[first:end].sum()) // _GROUP_BYTES))
        of_runs = tuple(
            RunPart(
                key=shard.key,
                path=shard.path,
                rules=shard.rules,
                name=run.name,
                start=run.starts[first],
                end=run.starts[end],
            )
            for shard, run in runs
        )
        plans += [MergePlan(first=first, end=end, part=part, parts=parts, runs=of_runs) for part in range(parts)]
        first = end
    return plans


def announce_merges(shards: Sequence[CountedShard], output: str) -> list[MergePlan]:
    """Plan the work of merging, and announce it for the progress."""
    plans = plan_merges(shards)
    size = sum(run.end - run.start for plan in plans for run in plan.runs)
    progress.announce(output, KIND, pieces=len(plans), size=size)
    return plans


def merge_runs(plan: MergePlan, output: str) -> MergedWords:
    """Add up the counts of a piece's words, unless that is done already.

    Raises:
      UnusableInputError, RunFailedError: a run is gone, and its text cannot be counted again.
    """
    key = plan.key
    name = completions.work_name(KIND, f"{key}.words")
    record = completions.once(
        output,
        KIND,
        key,
        lambda: _merge(plan, name, output),
        lambda record: completions.PieceFiles(written=[(name, record["size"], record["sha256"])]),
        name=f"the merged counts of buckets {plan.first} to {plan.end - 1}",
    )
    return MergedWords(
        key=key,
        name=name,
        size=record["size"],
        sha256=record["sha256"],
        counts={
            "distinct_words": sum(words for _, words, _ in record["histogram"]),
            "words": sum(count * words for count, words, _ in record["histogram"]),
        },
    )


def _merge(plan: MergePlan, name: str, output: str) -> dict[str, Any]:
    """Write a piece's words; return the completion record.

    size, sha256: of the file. histogram: each count that words have, how many words have it, and how many bytes they
    have together.
    """
    table = WordTable()
    for run in plan.runs:
        if run.end > run.start:
            content = read_run(run.path, run.rules, run.key, run.name, run.start, run.end, output)
            table.add(_padded(content), len(content), plan.part, plan.parts)
    file, _ = write_table(table, files.join(output, name))
    rows = np.stack([table.counts, np.ones(len(table), np.int64), table.sizes], axis=1)
    histogram = _added_up(rows).tolist()
    return {"size": file.size, "sha256": file.sha256, "histogram": histogram}


def _added_up(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Add up the words and bytes of the rows of a histogram, int64[n, 3], that have the same count; sorts them."""
    counts, places = np.unique(rows[:, 0], return_inverse=True)
    sums = np.zeros((len(counts), 2), np.int64)
    np.add.at(sums, places, rows[:, 1:])
    return np.concatenate([counts[:, np.newaxis], sums], axis=1)


def _padded(content: bytes) -> npt.NDArray[np.uint8]:
    """Records, and PADDING bytes after them."""
    return np.frombuffer(bytearray().join((content, bytes(PADDING))), np.uint8)


def read_words(
    merged: Sequence[MergedWords], output: str, most: int = MAX_WORDS, most_bytes: int = MAX_WORD_BYTES
) -> CountedWords:
    """Read the words of merged counts, leaving out the rarest where there are too many.

    Memory: the words twice, 16 bytes a word twice, and one file.

    most, most_bytes: how many distinct words to read at most, and how many bytes they may have together.

    Raises:
      RunFailedError: a file was deleted or damaged meanwhile.
    """
    records = completions.all_finished(output, KIND, [piece.key for piece in merged])
    rows = [row for record in records for row in record["histogram"]]
    histogram = _added_up(np.array(rows, np.int64).reshape(-1, 3))
    threshold = _threshold(histogram, most, most_bytes)
    is_rare = histogram[:, 0] < threshold
    rare, kept = histogram[is_rare], histogram[~is_rare]
    return CountedWords(
        words=_read_sorted(merged, output, threshold, words=int(kept[:, 1].sum()), size=int(kept[:, 2].sum())),
        threshold=threshold,
        left_out_words=int(rare[:, 1].sum()),
        left_out_occurrences=int((rare[:, 0] * rare[:, 1]).sum()),
    )


def _threshold(histogram: npt.NDArray[np.int64], most: int, most_bytes: int) -> int:
    """Return the smallest count, 1 or more, so that the words that have it or a larger one are within both limits."""
    words, sizes = histogram[::-1, 1:].cumsum(axis=0)[::-1].T  # of the words with this count or a larger one
    too_many = np.flatnonzero((words > most) | (sizes > most_bytes))
    return int(histogram[too_many[-1], 0]) + 1 if len(too_many) else 1


def _read_sorted(merged: Sequence[MergedWords], output: str, threshold: int, *, words: int, size: int) -> WordCounts:
    """Return the words that occur at least `threshold` times; there are `words` of them, with `size` bytes."""
    read = kernels.WordTable(
        slots=np.empty(0, np.uint64),
        text=np.empty(size + PADDING, np.uint8),
        ends=np.zeros(words + 1, np.int64),
        counts=np.empty(words, np.int64),
    )
    state = np.zeros(kernels.STATE, np.int64)
    for piece in merged:
        path = files.join(output, piece.name)
        if not completions.is_intact(path, piece.size, piece.sha256):
            raise completions.lost_meanwhile(path)
        content = files.read_bytes(path)
        kernels.take_records(_padded(content), len(content), threshold, read, state)
    return sorted_words(read.text, read.ends, read.counts)
