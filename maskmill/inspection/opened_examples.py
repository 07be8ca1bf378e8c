"""Examples opened to be looked at: a data set, the files of one, or TFRecords of any program."""

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self

import numpy as np

from maskmill.arguments import checked
from maskmill.errors import UnusableInputError
from maskmill.inspection.decoding import DecodedExample, RowDecoder, place_of
from maskmill.inspection.kinds import plain
from maskmill.inspection.opened_texts import TextDocument
from maskmill.inspection.row_documents import RowDocuments
from maskmill.inspection.searching import Wanted
from maskmill.reading.block_reader import Block, BlockReader, Rows
from maskmill.reading.byte_ranges import ByteRanges, forward
from maskmill.reading.data_set import DataSet
from maskmill.reading.fetching import BlockFetcher
from maskmill.reading.made_examples import parse_examples
from maskmill.reading.opening import find_manifest, open_data_set, reader_of
from maskmill.reading.read_vocabulary import UNKNOWN, NamedVocabulary, load_known
from maskmill.reading.remote import open_ranges
from maskmill.storage import files, paths

Split = Literal["train", "eval"]

_DEPTH = 3  # folders in which a file of a data set is: MDS has train/bin-0/X


@dataclasses.dataclass(frozen=True)
class OpenedExamples:
    """Examples that can be looked at.

    Attributes:
      path: as it was named: of a data set, of a folder or a file of one, or of TFRecords.
      first, count: which samples of the data set `path` names, from 0.
      decoder: decodes its rows.
      reader, ranges: read its files.
      row_documents: finds the documents of rows; None without a manifest.
    """

    path: str
    first: int
    count: int
    decoder: RowDecoder
    reader: BlockReader
    ranges: ByteRanges
    row_documents: RowDocuments | None = None

    @property
    def data_set(self) -> DataSet:
        """All of the split, also if one file of it was named."""
        return self.decoder.data_set

    def rows(self, first: int, most: int) -> Rows:
        """Return neighbouring samples of the data set: at most so many, all of one block.

        Raises:
          DamagedBlockError: a record is damaged.
        """
        number, record = place_of(self.data_set, first)
        size = self.reader.block_samples
        begin = (record - 1) // size * size
        block = Block(number, begin, min(size, self.data_set.files[number].samples - begin))
        places = np.arange(record - 1 - begin, min(block.count, record - 1 - begin + most), dtype=np.int64)
        rows = Rows(self.data_set.columns, len(places))
        fetcher = BlockFetcher(self.data_set, self.reader, 0)
        fetcher.ask([block])
        fetcher.decode(places, np.arange(len(places), dtype=np.int64), rows)
        return rows

    def decoded(self, sample: int) -> DecodedExample:
        """Return a sample of the data set, counted from 0."""
        return self.decoder.decode(self.rows(sample, 1), 0, sample)

    def all(self, first: int = 0) -> Iterator[DecodedExample]:
        """Yield the samples that `path` names. first: how many of them are left out before."""
        for start, rows in self._blocks(self.first + first):
            for row in range(rows.room):
                yield self.decoder.decode(rows, row, start + row)

    def documents_of(self, example: DecodedExample) -> list[list[TextDocument]]:
        """Return the documents that the parts of an example between its special pieces are of.

        Several for a part whose pieces all of them have; empty if the text shard has no table (--metadata_columns).
        """
        if self.row_documents is None:
            return []
        return self.row_documents.of(example.file, self.decoder.runs(self.rows(example.sample, 1)))

    def search(self, words: str) -> Iterator[DecodedExample]:
        """Yield the samples in whose text the words stand, masks undone.

        Args:
          words: one or several, found in capitals or not, where they begin a word.

        Raises:
          UnusableInputError: there is no word, or a record is damaged.
        """
        wanted = Wanted(words)
        for start, rows in self._blocks(self.first):
            for row, text in enumerate(self.decoder.texts(rows)):
                if wanted.stands_in(text):
                    yield self.decoder.decode(rows, row, start + row)

    def _blocks(self, at: int) -> Iterator[tuple[int, Rows]]:
        """Yield the samples from one on: the number of the first, and some rows."""
        end = self.first + self.count
        while at < end:
            rows = self.rows(at, end - at)
            yield at, rows
            at += rows.room

    def close(self) -> None:
        """Close files and connections."""
        self.reader.close()
        self.ranges.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@checked
def open_examples(
    path: str | os.PathLike[str],
    *,
    split: Split | None = None,
    vocab_file: str | None = None,
    seed: int = 0,
    epoch: int = 0,
) -> OpenedExamples:
    """Open examples to look at them.

    Args:
      path: the directory of examples, of picked ones or of a build; a folder or a file in one of them; or TFRecords
        without a manifest (a file, a glob or a comma list).
      split: "train" or "eval"; None: the one that `path` is in, and "train" of a whole data set, if it has it.
      vocab_file: the vocabulary; None: the copy beside the examples.
      seed, epoch: of masks that the reader draws.

    Raises:
      UnusableInputError: there are no examples under this path, or they cannot be read.
    """
    path = plain(path)
    with contextlib.ExitStack() as stack:
        ranges = open_ranges(path)
        stack.callback(ranges.close)
        made, directory = manifest_of(path, ranges)
        known, span, objective, row_documents = UNKNOWN, None, None, None
        if made is None:
            data_set = open_records(path, ranges)
        else:
            is_eval = _named(path, made, directory, "eval") and not _named(path, made, directory, "train")
            split = split or ("eval" if is_eval else "train")
            # A damaged data set can be looked at, too.
            data_set = open_data_set(directory, split=split, ranges=ranges, vocab_file=vocab_file, sizes=False)
            examples = parse_examples(made, split, directory)
            known, span = examples.vocabulary, _named(path, made, directory, split)
            objective = examples.options.get("objective", "nsp")
            row_documents = RowDocuments(made, directory, vocab_file or known.copy or "")
        if not any(column.dtype.kind in "iu" for column in data_set.columns):
            raise UnusableInputError(f"{path}: these records have no column of integers, so no pieces; name examples.")
        is_there = vocab_file is not None or (known.copy is not None and ranges.exists(known.copy))
        named = NamedVocabulary(path, vocab_file, ranges)
        vocabulary = load_known(known, named, is_needed=True) if is_there else None
        if vocabulary is None:
            where = known.copy or path
            raise UnusableInputError(f"{where}: the vocabulary of these examples is not here; name it (--vocab_file).")
        span = span or range(data_set.samples)
        stack.pop_all()
        decoder = RowDecoder(data_set=data_set, vocabulary=vocabulary, objective=objective, seed=seed, epoch=epoch)
        reader = reader_of(data_set, forward(ranges))
        return OpenedExamples(path, span.start, len(span), decoder, reader, ranges, row_documents)


def manifest_of(path: str, ranges: ByteRanges) -> tuple[dict[str, Any] | None, str]:
    """Return the manifest of a directory of examples or of a build, or of the data set that a folder or a file is
    in.
    """
    directory = path
    for depth in range(_DEPTH + 1):
        with contextlib.suppress(*([UnusableInputError] if depth else [])):  # of something else, which lies above
            found = find_manifest(directory, ranges)
            if found is not None and (not depth or any(_named(path, *found, split) for split in ("train", "eval"))):
                return found
        directory = files.parent(directory)
    return None, ""


def open_records(path: str, ranges: ByteRanges) -> DataSet:
    """Open TFRecords without a manifest, or those of a directory."""
    if files.is_local(path) and os.path.isdir(path):
        patterns = [files.join(path, name) for name in ("*.tfrecord", "*.tfrecord.gz")]
        path = ",".join(pattern for pattern in patterns if paths.expand(pattern)) or path
    return open_data_set(path, ranges=ranges)


def _named(path: str, made: Mapping[str, Any], directory: str, split: str) -> range | None:
    """Return which samples of a split a path names: those of a file or a folder, or all; None if it names none of
    them.
    """
    named = "" if _normal(path) == "." else f"{_normal(path)}/"
    samples: list[range] = []
    at = 0
    for file in parse_examples(made, split, directory).files:
        if f"{_normal(file.path)}/".startswith(named):
            samples.append(range(at, at + file.samples))
        at += file.samples
    return range(samples[0].start, samples[-1].stop) if samples else None


def _normal(path: str) -> str:
    return os.path.normpath(path) if files.is_local(path) else path
