"""Examples opened to be looked at: a data set, the files of one, or TFRecords of any program."""

import contextlib
import dataclasses
import hashlib
import os
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np

from maskmill.arguments import checked
from maskmill.errors import MissingFileError, UnusableInputError
from maskmill.inspection.decoding import DecodedExample, RowDecoder, place_of
from maskmill.inspection.kinds import plain
from maskmill.reading.block_reader import Block, BlockReader, Rows
from maskmill.reading.byte_ranges import ByteRanges, forward
from maskmill.reading.data_set import DataSet
from maskmill.reading.fetching import BlockFetcher
from maskmill.reading.made_examples import parse_examples
from maskmill.reading.opening import find_manifest, open_data_set, reader_of
from maskmill.reading.read_vocabulary import UNKNOWN, KnownVocabulary, NamedVocabulary, load_known
from maskmill.reading.remote import open_ranges
from maskmill.storage import files, paths
from maskmill.tokenization.vocabulary import Vocabulary

Split = Literal["train", "eval"]

_DEPTH = 3  # folders in which a file of a data set is: MDS has train/bin-0/X
_ROWS = 256  # decoded at a time, and kept


@dataclasses.dataclass(frozen=True)
class OpenedExamples:
    """Examples that can be looked at.

    Attributes:
      path: as it was named: of a data set, of a folder or a file of one, or of TFRecords.
      directory: of the data set; None: TFRecords without a manifest.
      made: its manifest; None: there is none.
      split: "train" or "eval".
      first, count: which samples of the data set `path` names, from 0.
      decoder: decodes its rows.
      why_no_words: why the vocabulary is not known, as a sentence; None: it is.
      reader, ranges: read its files.
    """

    path: str
    directory: str | None
    made: Mapping[str, Any] | None
    split: Split
    first: int
    count: int
    decoder: RowDecoder
    why_no_words: str | None
    reader: BlockReader
    ranges: ByteRanges

    @property
    def data_set(self) -> DataSet:
        """All of the split, also if one file of it was named."""
        return self.decoder.data_set

    @property
    def vocabulary(self) -> Vocabulary | None:
        """What the examples were made with; None: not known."""
        return self.decoder.vocabulary

    def rows(self, first: int, count: int) -> Rows:
        """Neighbouring samples of the data set, which has so many.

        Raises:
          DamagedBlockError: a record is damaged.
        """
        data_set, rows = self.data_set, Rows(self.data_set.columns, count)
        fetcher = BlockFetcher(data_set, self.reader, 0)
        done = 0
        while done < count:
            number, record = place_of(data_set, first + done)
            start = record - 1
            block_samples = self.reader.block_samples
            begin = start // block_samples * block_samples
            block = Block(number, begin, min(block_samples, data_set.files[number].samples - begin))
            taken = min(begin + block.count - start, count - done)
            fetcher.ask([block])
            places = np.arange(taken, dtype=np.int64)
            fetcher.decode(places + start - begin, places + done, rows)
            done += taken
        return rows

    def decoded(self, sample: int) -> DecodedExample:
        """A sample of the data set, counted from 0."""
        return self.decoder.decode(self.rows(sample, 1), 0, sample)

    def all_decoded(self, first: int | None = None, count: int | None = None) -> Iterator[DecodedExample]:
        """Samples from a first one on; by default those that `path` names."""
        at = self.first if first is None else first
        end = self.first + self.count if count is None else min(at + count, self.first + self.count)
        while at < end:
            taken = min(_ROWS, end - at)
            rows = self.rows(at, taken)
            for row in range(taken):
                yield self.decoder.decode(rows, row, at + row)
            at += taken

    def close(self) -> None:
        """Closes files and connections."""
        self.reader.close()
        self.ranges.close()


@checked
def open_examples(
    path: str | os.PathLike[str],
    *,
    split: Split | None = None,
    vocab_file: str | None = None,
    seed: int = 0,
    epoch: int = 0,
) -> OpenedExamples:
    """Opens examples to look at them.

    Args:
      path: the directory of examples, of picked ones or of a build; a folder or a file in one of them; or TFRecords
        without a manifest (a file, a glob or a comma list).
      split: "train" or "eval"; None: the one that `path` is in, and "train" of a whole data set, if it has it.
      vocab_file: the vocabulary; None: the copy beside the examples, or the file that they were made with, if it is
        still there.
      seed, epoch: of masks that the reader draws.

    Raises:
      UnusableInputError: there are no examples under this path, or they cannot be read.
    """
    return examples_in(plain(path), split=split, vocab_file=vocab_file, seed=seed, epoch=epoch)


def examples_in(
    path: str,
    *,
    split: Split | None = None,
    vocab_file: str | None = None,
    seed: int = 0,
    epoch: int = 0,
) -> OpenedExamples:
    """As `open_examples`, of a path as maskmill writes it."""
    with contextlib.ExitStack() as stack:
        ranges = open_ranges(path)
        stack.callback(ranges.close)
        found = _find_manifest(path, ranges)
        if found is None:
            data_set = open_data_set(_records_of(path), ranges=ranges, vocab_file=vocab_file)
            vocabulary, why = vocabulary_of(UNKNOWN, path, vocab_file, ranges)
            span, chosen, objective = range(data_set.samples), split or "train", None
        else:
            made, directory = found
            chosen = split or _chosen_split(path, made, directory)
            # A damaged data set can be looked at, too.
            data_set = open_data_set(directory, split=chosen, ranges=ranges, vocab_file=vocab_file, sizes=False)
            examples = parse_examples(made, chosen, directory)
            vocabulary, why = vocabulary_of(examples.vocabulary, directory, vocab_file, ranges)
            span, objective = _span(path, data_set), examples.options.get("objective", "nsp")
        if not any(column.dtype.kind in "iu" for column in data_set.columns):
            raise UnusableInputError(f"{path}: these records have no column of integers, so no pieces; name examples.")
        stack.pop_all()
        return OpenedExamples(
            path=path,
            directory=None if found is None else found[1],
            made=None if found is None else found[0],
            split=chosen,
            first=span.start,
            count=len(span),
            decoder=RowDecoder(data_set=data_set, vocabulary=vocabulary, objective=objective, seed=seed, epoch=epoch),
            why_no_words=why,
            reader=reader_of(data_set, forward(ranges)),
            ranges=ranges,
        )


def _find_manifest(path: str, ranges: ByteRanges) -> tuple[dict[str, Any], str] | None:
    """The manifest of a directory of examples or of a build, or of the data set that a folder or a file is in."""
    found = find_manifest(path, ranges)
    if found is not None:
        return found
    directory = path
    for _ in range(_DEPTH):
        directory = files.parent(directory)
        try:
            found = find_manifest(directory, ranges)
        except UnusableInputError:  # of something else, which happens to lie there
            continue
        if found is not None and any(_files_in(path, *found, split) for split in ("train", "eval")):
            return found
    return None


def _records_of(path: str) -> str:
    """The TFRecords of a directory without a manifest; any other path is what it is."""
    if not files.is_local(path) or not os.path.isdir(path):
        return path
    patterns = [files.join(path, name) for name in ("*.tfrecord", "*.tfrecord.gz")]
    return ",".join(pattern for pattern in patterns if paths.expand(pattern)) or path


def _files_in(path: str, made: Mapping[str, Any], directory: str, split: str) -> list[str]:
    """The files of a split that a path names: the file, or those below the folder."""
    return [file.path for file in parse_examples(made, split, directory).files if _is_in(file.path, path)]


def _is_in(file: str, path: str) -> bool:
    named = files.join(files.parent(path), files.base_name(path))
    return file.removeprefix("./") == named.removeprefix("./") or file.startswith((f"{path}/", f"{named}/"))


def _chosen_split(path: str, made: Mapping[str, Any], directory: str) -> Split:
    """The split that a path is in; of a whole data set, the first that has samples."""
    in_train = _files_in(path, made, directory, "train")
    return "train" if in_train or not _files_in(path, made, directory, "eval") else "eval"


def _span(path: str, data_set: DataSet) -> range:
    """The samples of the files that a path names."""
    first = last = 0
    at, found = 0, False
    for file in data_set.files:
        if _is_in(file.path, path):
            first, last, found = (first if found else at), at + file.samples, True
        at += file.samples
    return range(first, last) if found else range(data_set.samples)


def vocabulary_of(
    known: KnownVocabulary, path: str, vocab_file: str | None, ranges: ByteRanges
) -> tuple[Vocabulary | None, str | None]:
    """The vocabulary of examples, or why there is none."""
    named = NamedVocabulary(path, vocab_file, ranges)
    if vocab_file is not None:
        return load_known(known, named, is_needed=False), None
    if known.copy is not None:
        try:
            return load_known(known, named, is_needed=True), None
        except MissingFileError:
            return None, f"{known.copy}: the copy of the vocabulary is missing; name the vocabulary (--vocab_file)."
        except UnusableInputError as error:
            return None, str(error)
    if known.name is None:
        return None, "The vocabulary is not known; name it (--vocab_file)."
    if files.is_local(known.name) and known.sha256 is not None and os.path.isfile(known.name):
        content = files.read_bytes(known.name)
        if hashlib.sha256(content).hexdigest() == known.sha256:
            return load_known(known, NamedVocabulary(path, known.name, ranges), is_needed=False), None
    return None, (
        f"{known.name}: the vocabulary that these examples were made with is not there any more; name a copy of it "
        "(--vocab_file)."
    )
