"""Merges the counts of text shards into the counts of all text.

Runs are merged by buckets: neighbouring buckets whose records have up to _GROUP_BYTES in all runs are one work item,
which any worker can process in bounded memory. A larger bucket is divided into parts by other bits of the words'
hashes. The result of a work item, the sum of each word's counts, is a file of records like a run's. These files stay,
because making a vocabulary again needs them; the runs are deleted when the vocabulary is made.
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

# The most words that a vocabulary is learnt from, and their most bytes. In Japanese a word of BPE is a whole clause, so
# that the number of words alone would not limit a learner's memory.
MAX_WORDS = 10_000_000
MAX_WORD_BYTES = 1 << 27

_GROUP_BYTES = 1 << 24


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunPart:
    """Some buckets of a run.

    key, path, rules: of the shard whose words it counts, as in CountedShard. name: of the run's file, relative to the
    output directory. start, end: the bytes of the buckets.
    """

    key: str
    path: str
    rules: WordRules
    name: str
    start: int
    end: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class MergePlan:
    """A work item of merging.

    first, end: the buckets, [first, end). part, parts: the part of their words, by the words' hashes. runs: the files
    with the words.
    """

    first: int
    end: int
    part: int
    parts: int
    runs: tuple[RunPart, ...]

    @property
    def key(self) -> str:
        """The key of the completion record: a digest of the fields that determine the words and their counts."""
        shards = sorted(run.key for run in self.runs)
        return completions.fingerprint(
            KIND, completions.FORMAT_VERSIONS[KIND], shards, self.first, self.end, self.part, self.parts
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class MergedWords:
    """The description of merged counts: of all words of some buckets, or of a part of them.

    key: of the completion record. name, size, sha256: of the file, its name relative to the output directory, its size
    in bytes. counts: the numbers of `distinct_words` and of `words`.
    """

    key: str
    name: str
    size: int
    sha256: str
    counts: Mapping[str, int]


@dataclasses.dataclass(frozen=True, kw_only=True)
class CountedWords:
    """The words of all text that a vocabulary is learnt from.

    words: those that occur at least `threshold` times. threshold: the smallest one that respects the limits of words
    and of their bytes. left_out_words: the number of rarer distinct words. left_out_occurrences: how often they occur,
    together.
    """

    words: WordCounts
    threshold: int
    left_out_words: int
    left_out_occurrences: int


def plan_merges(shards: Sequence[CountedShard]) -> list[MergePlan]:
    """Divide the merging into work items, by the sizes of the buckets; the order of the shards does not matter."""
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
    """Plan the merging, and announce its work items for the progress."""
    plans = plan_merges(shards)
    size = sum(run.end - run.start for plan in plans for run in plan.runs)
    progress.announce(output, KIND, pieces=len(plans), size=size)
    return plans


def merge_runs(plan: MergePlan, output: str) -> MergedWords:
    """Add up the counts of a work item's words, unless that is done already.

    Raises:
      UnusableInputError, RunFailedError: a run is missing, and its text cannot be counted again.
    """
    key = plan.key
    name = completions.work_name(KIND, f"{key}.words")
    record = completions.once(
        output,
        KIND,
        key,
        lambda: _merge(plan, name, output),
        lambda record: completions.ItemFiles(written=[(name, record["size"], record["sha256"])]),
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
    """Write a work item's words; return the completion record.

    size, sha256: of the file. histogram: each count of words, with the number of words that have it, and their bytes.
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
    """Add up the words and bytes of a histogram's rows, int64[n, 3], that have the same count; return them sorted."""
    counts, places = np.unique(rows[:, 0], return_inverse=True)
    sums = np.zeros((len(counts), 2), np.int64)
    np.add.at(sums, places, rows[:, 1:])
    return np.concatenate([counts[:, np.newaxis], sums], axis=1)


def _padded(content: bytes) -> npt.NDArray[np.uint8]:
    """Return records with PADDING bytes after them."""
    return np.frombuffer(bytearray().join((content, bytes(PADDING))), np.uint8)


def read_words(
    merged: Sequence[MergedWords], output: str, most: int = MAX_WORDS, most_bytes: int = MAX_WORD_BYTES
) -> CountedWords:
    """Read the words of merged counts, without the rarest if there are too many.

    Memory: the words twice, 16 bytes a word twice, and one file.

    most, most_bytes: the most distinct words to read, and their most bytes.

    Raises:
      RunFailedError: a file was deleted or damaged during the run.
    """
    records = completions.all_finished(output, KIND, [part.key for part in merged])
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
    """Return the smallest count, 1 or more, such that the words with it or a larger one respect both limits."""
    words, sizes = histogram[::-1, 1:].cumsum(axis=0)[::-1].T  # of the words with this count or a larger one
    too_many = np.flatnonzero((words > most) | (sizes > most_bytes))
    return int(histogram[too_many[-1], 0]) + 1 if len(too_many) else 1


def _read_sorted(merged: Sequence[MergedWords], output: str, threshold: int, *, words: int, size: int) -> WordCounts:
    """Return the `words` words that occur at least `threshold` times, which have `size` bytes."""
    read = kernels.WordTable(
        slots=np.empty(0, np.uint64),
        text=np.empty(size + PADDING, np.uint8),
        ends=np.zeros(words + 1, np.int64),
        counts=np.empty(words, np.int64),
    )
    state = np.zeros(kernels.STATE, np.int64)
    for part in merged:
        path = files.join(output, part.name)
        if not completions.is_intact(path, part.size, part.sha256):
            raise completions.lost_meanwhile(path)
        content = files.read_bytes(path)
        kernels.take_records(_padded(content), len(content), threshold, read, state)
    return sorted_words(read.text, read.ends, read.counts)
