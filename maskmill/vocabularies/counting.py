"""Counts how often each word occurs in a text shard, into tables on disk.

The words are counted in a hash table of bounded memory. When it is full, and at the end, its words are written to a
run: records in the order of their buckets (kernels/word_counts.py), which merging.py reads by buckets. Runs are a
cache: a missing one is made again from the text, with the same bytes.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.storage import completions, files
from maskmill.text.shards import TextShard
from maskmill.tokenization import line_joints, pre_token_classes, unicode_tables
from maskmill.tokenization.kernels import wordpiece as wordpiece_kernels
from maskmill.tokenization.kernels.word_hashes import CodePointArrays
from maskmill.tokenization.text_blocks import PaddedText, TextBlock, not_utf8, read_blocks
from maskmill.vocabularies.kernels import word_counts as kernels
from maskmill.vocabularies.options import VocabularyKind, VocabularyOptions
from maskmill.vocabularies.word_tables import WordTable

KIND = "word_counts"
KERNELS = ("vocabularies.kernels.word_counts",)  # for counting and merging

UNICODE = "15.1.0"  # the Unicode version that normalises WordPiece's words

# Limits of the table in which a shard is counted: with its slots it takes up to 64 MB, and its records take as much
# while they are written.
_MOST_WORDS = 1 << 20
_MOST_BYTES = 1 << 25
_LEAD = 1  # bytes before a block, for the space that its first line may get


@dataclasses.dataclass(frozen=True, kw_only=True)
class WordRules:
    """The options that determine the words of a text: fields of VocabularyOptions."""

    kind: VocabularyKind
    do_lower_case: bool
    add_prefix_space: bool

    @classmethod
    def of(cls, options: VocabularyOptions) -> "WordRules":
        """Return the rules in options."""
        decided = options.decided
        return cls(
            kind=decided.kind,
            do_lower_case=bool(decided.do_lower_case) and decided.kind == "wordpiece",
            add_prefix_space=decided.add_prefix_space and decided.kind == "bpe",
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class WordRun:
    """The description of a run.

    name: of its file, relative to the output directory. starts: the offset of each bucket in it, in bytes; the last one
    is its size.
    """

    name: str
    starts: tuple[int, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class CountedShard:
    """The description of the counts of a text shard.

    Attributes:
      key: of the completion record.
      path, sha256: of the text.
      rules: that determined its words.
      runs: the tables on disk.
      counts: `bytes` of the text without carriage returns; its `words`; and the number of `long_words` among them,
        which are left out.
    """

    key: str
    path: str
    sha256: str
    rules: WordRules
    runs: tuple[WordRun, ...]
    counts: Mapping[str, int]

    @property
    def inputs(self) -> dict[str, str]:
        """The text's path, and its sha256."""
        return {self.path: self.sha256}


def count_shard(shard: TextShard, rules: WordRules, output: str) -> CountedShard:
    """Count the words of a text shard into runs below `output`, unless the counts exist already.

    Raises:
      UnusableInputError: the text is missing or not UTF-8.
      RunFailedError: a run cannot be written.
    """
    key = completions.fingerprint(KIND, completions.FORMAT_VERSIONS[KIND], shard.sha256, rules)

    def count() -> dict[str, Any]:
        record = write_runs(shard.path, rules, key, output)
        shard.check_unchanged()
        return record

    name = f"the counts of {files.base_name(shard.path)}"
    record = completions.once(output, KIND, key, count, _files_of, name=name)
    return CountedShard(
        key=key,
        path=shard.path,
        sha256=shard.sha256,
        rules=rules,
        runs=tuple(WordRun(name=name, starts=tuple(starts)) for name, _, _, starts in record["runs"]),
        counts=record["counts"],
    )


def _files_of(record: dict[str, Any]) -> completions.ItemFiles:
    return completions.ItemFiles(cached=[(name, size, sha256) for name, size, sha256, _ in record["runs"]])


def write_runs(path: str, rules: WordRules, key: str, output: str) -> dict[str, Any]:
    """Write the runs of a text file; return the completion record.

    runs: name relative to `output`, size, checksum and the buckets' offsets of each. counts: as in CountedShard.
    """
    counter = WordCounter(rules)
    runs: list[tuple[str, int, str, list[int]]] = []
    for table in counter.full_tables(read_blocks(path)):
        name = completions.work_name(KIND, f"{key}.{len(runs)}.words")
        file, starts = write_table(table, files.join(output, name))
        runs.append((name, file.size, file.sha256, starts))
    return {"runs": runs, "counts": counter.counts}


def write_table(table: WordTable, path: str) -> tuple[files.OutputFile, list[int]]:
    """Write a table's words as records; return the file, and the buckets' offsets."""
    records, starts = table.records()
    with files.new_file(path) as file:
        file.write(records.data)
    return file, starts.tolist()


class WordCounter:
    """Counts the words of text in bounded memory."""

    def __init__(self, rules: WordRules) -> None:
        """Make an empty counter; `rules` determine the words."""
        self._table = WordTable(_MOST_WORDS, _MOST_BYTES)
        self._text = PaddedText(_LEAD)
        self._count = _kernel_of(rules)
        self._bytes = 0

    @property
    def counts(self) -> dict[str, int]:
        """The `counts` of a CountedShard."""
        state = self._table.state
        return {"bytes": self._bytes, "words": int(state[kernels.READ]), "long_words": int(state[kernels.LONG])}

    def full_tables(self, blocks: Iterable[TextBlock]) -> Iterator[WordTable]:
        """Count the words of text; yield the table whenever it is full, and at the end if it has any words.

        The table is cleared afterwards, and used for the following words.

        Raises:
          UnusableInputError: the text is not UTF-8.
        """
        table = self._table
        for block in blocks:
            end = self._text.load(block.content)
            self._bytes += len(block.content)
            at = _LEAD
            while at < end:
                self._count(self._text.text, end, at, table)
                at = int(table.state[kernels.AT])
                if table.state[kernels.BAD_BYTE] >= 0:
                    raise not_utf8(block, int(table.state[kernels.BAD_BYTE]) - _LEAD)
                if at < end and not table.grow():
                    yield table
                    table.clear()
        if len(table):
            yield table
            table.clear()


def _kernel_of(rules: WordRules) -> Callable[[npt.NDArray[np.uint8], int, int, WordTable], None]:
    """Return a function that counts the words of text[at:end] into a table, whose state then has the position reached.

    It is called with text, end, at and the table.
    """
    if rules.kind == "bpe":
        classes, joints = pre_token_classes.load(), line_joints.load()
        return lambda text, end, at, table: kernels.count_pre_tokens(
            text, end, at, classes, joints, rules.add_prefix_space, table.arrays, table.state
        )
    points = unicode_tables.load(UNICODE, rules.do_lower_case)
    arrays = CodePointArrays(
        pages=points.pages,
        blocks=points.blocks,
        pool=points.pool,
        scratch=np.empty(wordpiece_kernels.SCRATCH, np.uint8),
        do_lower_case=rules.do_lower_case,
    )
    return lambda text, end, at, table: kernels.count_words(text, end, at, arrays, table.arrays, table.state)


def read_run(shard_path: str, rules: WordRules, key: str, name: str, start: int, end: int, output: str) -> bytes:
    """Return bytes [start, end) of a run; if the run is missing, its shard is counted again."""
    path = files.join(output, name)
    if not files.exists(path):
        write_runs(shard_path, rules, key, output)
    return files.read_range(path, start, end)


def drop_runs(shards: Iterable[CountedShard], output: str) -> None:
    """Delete the runs of shards after merging."""
    paths = [files.join(output, run.name) for shard in shards for run in shard.runs]
    files.delete([path for path in paths if files.exists(path)])
