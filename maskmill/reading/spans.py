"""Read spans (records/spans.py): read the lines of the text shard that rows consist of, and tokenize them."""

import collections
import dataclasses
import json
import threading
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.masking.kernels.rows import Rows as RowSet
from maskmill.masking.kernels.sequences import Sequences
from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.masking.options import MaskingOptions
from maskmill.masking.rows import sequence_blocks
from maskmill.options import of_parameters
from maskmill.reading.block_reader import Block, BlockReader, DamagedBlockError, Rows, WrongChecksumError
from maskmill.reading.byte_ranges import ByteRanges, is_beside
from maskmill.reading.data_set import DataFile, DataSet, ReadColumn
from maskmill.reading.read_vocabulary import NamedVocabulary
from maskmill.reading.text_parts import LineRuns, PreloadedRanges, TextParts, line_runs_of, parts_and_ranges, read_lines
from maskmill.records.columns import Column, ColumnValues, column_values, up_to
from maskmill.records.features import FEATURES
from maskmill.records.spans import (
    BLOCK_ROWS,
    CHECKSUM,
    CLS,
    HEAD,
    MAGIC,
    MAGIC_OF_VERSION_2,
    SECOND,
    TEXT,
    Numbers,
    Spans,
    checksum_of,
    decode,
    places_in,
    unpack,
)
from maskmill.records.tokenizing import tokenization_in
from maskmill.tokenization.tokenized_text import TextTokenizer, TokenizedText
from maskmill.tokenization.vocabulary import Vocabulary

_AGAIN = "make or fetch it again"
_KEPT_BYTES = 48 << 20  # of the tables of texts
_MOST_PIECES = 1 << 19  # of the rows that are made at a time


@dataclasses.dataclass(frozen=True)
class _Index:
    """The index of a file.

    blocks: int64[blocks + 1], the start of each block in the file, and the end of the last one. parts: of the text.
    description: see records/spans.py; and "by_version_2", whether text is read as version 2 of examples read it.
    """

    blocks: Numbers
    parts: TextParts
    description: Mapping[str, Any]

    def line_runs(self, firsts: Numbers, stops: Numbers) -> LineRuns:
        """Return the runs of lines to tokenize for ranges [firsts, stops), each with the line before, which matters."""
        return line_runs_of(firsts if self.description["by_version_2"] else np.maximum(firsts - 1, 0), stops)


@dataclasses.dataclass(frozen=True)
class _Fetched:
    """The bytes of a block, decoded to spans.

    index: of its file. firsts: int64[spans of text], the first line of each. ranges: reads the text.
    """

    index: _Index
    spans: Spans
    firsts: Numbers
    ranges: ByteRanges


@dataclasses.dataclass(frozen=True)
class _Tokenization:
    """The options and the tokenizer of a data set's rows; description: the part that all files must share."""

    masking: MaskingOptions
    objective: ObjectiveOptions
    vocabulary: Vocabulary
    tokenizer: TextTokenizer
    description: Mapping[str, Any]


class SpansReader(BlockReader):
    """Read spans. A block is 256 rows; the places of blocks and of the text's parts are kept of each file."""

    block_samples = BLOCK_ROWS
    makes_rows = True
    kernels = ("tokenization.kernels", "masking.kernels.rows", "records.kernels.text_parts")

    def __init__(self, data_set: DataSet, ranges: ByteRanges) -> None:
        """Take a data set, without reading it yet."""
        self._data_set, self._ranges = data_set, ranges
        self._locks = [threading.Lock() for _ in data_set.files]
        self._indexes: collections.OrderedDict[int, _Index] = collections.OrderedDict()
        self._keeping = threading.Lock()
        self._tokenizing = threading.Lock()  # a tokenizer serves one thread at a time
        self._loaded: _Tokenization | None = None
        self._other_ranges: ByteRanges | None = None  # of text with another scheme than the data set's

    def fetch(self, block: Block) -> Any:
        file, index = self._data_set.files[block.file], self._index(block.file)
        number = block.first // BLOCK_ROWS
        start, end = index.blocks[number : number + 2].tolist()
        data = self._ranges.read(file.path, start, end).tobytes()
        try:
            spans = _spans_in(data, block, file.path)
        except DamagedBlockError as error:
            return error  # `decode` raises it, so that verification continues after the block
        steps = np.where(spans.steps & 1, -(spans.steps + 1 >> 1), spans.steps >> 1)
        firsts = np.cumsum(steps) + np.cumsum(spans.lines) - spans.lines
        ranges = self._text_ranges(file)
        if ranges.parallel_reads and len(firsts):
            runs = index.line_runs(firsts, firsts + spans.lines + 1)
            ranges = PreloadedRanges(_text_of(file), *parts_and_ranges(index.parts, runs)[1:], ranges)
        return _Fetched(index, spans, firsts, ranges)

    def decode(
        self, fetched: Any, block: Block, samples: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], into: Rows
    ) -> None:
        if isinstance(fetched, DamagedBlockError):
            raise fetched
        if not len(samples):
            return
        file = self._data_set.files[block.file]
        tokenization = self._tokenization(file, fetched.index)
        count = max(1, _MOST_PIECES // file.width)
        for first in range(0, len(samples), count):
            with self._tokenizing:
                try:
                    sequences = self._sequences(fetched, file, samples[first : first + count], tokenization)
                except WrongChecksumError as error:
                    raise DamagedBlockError(f"{error}.") from error
                except UnusableInputError as error:
                    raise DamagedBlockError(str(error)) from None
            self._lay_out(sequences, file, tokenization, np.asarray(rows[first : first + count]), into)

    def _sequences(
        self, fetched: _Fetched, file: DataFile, samples: Numbers, tokenization: _Tokenization
    ) -> tuple[TokenizedText, Sequences, RowSet]:
        """Return the tokenized text of some rows of a block, and these rows as spans of it."""
        chosen, firsts = _chosen(fetched.spans, fetched.firsts, samples)
        lasts = firsts + chosen.lines
        is_text = chosen.kinds % SECOND == TEXT
        vocabulary = tokenization.vocabulary
        starts = np.where(chosen.kinds % SECOND == CLS, -1 - vocabulary.cls_id, -1 - vocabulary.sep_id)
        sizes = np.ones(len(starts), np.int32)
        text = tokenization.tokenizer.tokenize_bytes(b"")
        if len(firsts):
            runs = fetched.index.line_runs(firsts, lasts + 1)
            path = _text_of(file)
            text = tokenization.tokenizer.tokenize_bytes(read_lines(path, fetched.ranges, fetched.index.parts, runs))
            starts[is_text] = _pieces_before(text, runs.place_of(firsts)) + chosen.fronts
            sizes[is_text] = chosen.sizes
            ends = _pieces_before(text, runs.place_of(lasts) + 1)
            if (starts[is_text] + chosen.sizes > ends).any():
                raise UnusableInputError(
                    f"{path}: a line of this text has fewer pieces than a row of {file.path} needs, so another "
                    "version of the tokenizer made it; make the examples again."
                )
        ends = np.cumsum(chosen.spans)
        sequences = Sequences(
            starts=starts,
            sizes=sizes,
            segments=(chosen.kinds // SECOND).astype(np.uint8),
            ends=ends,
            lengths=np.add.reduceat(sizes, ends - chosen.spans).astype(np.int32),
            labels=chosen.labels.astype(np.uint8),
        )
        zeros = np.zeros(len(samples), np.int64)
        return text, sequences, RowSet(np.arange(len(ends)), np.cumsum(chosen.members), zeros, zeros)

    def _lay_out(
        self,
        sequences: tuple[TokenizedText, Sequences, RowSet],
        file: DataFile,
        tokenization: _Tokenization,
        rows: Numbers,
        into: Rows,
    ) -> None:
        """Write rows of sequences to the arrays of the data set's columns."""
        masking = dataclasses.replace(tokenization.masking, max_seq_length=file.width)
        vocabulary, objective = tokenization.vocabulary, tokenization.objective
        special_ids = vocabulary.cls_id, vocabulary.sep_id
        columns = [(column, _written(column, file.width, packed=objective.pack)) for column in self._data_set.columns]
        order, done = np.arange(len(rows), dtype=np.int64), 0
        for arrays, count in sequence_blocks(*sequences, order, vocabulary, masking, objective, None):
            for column, written in columns:
                values = column_values(written, arrays, count, special_ids, file.width)
                _put(column, values, rows[done : done + count], into)
            done += count

    def forget(self, block: Block) -> bool:
        file = self._data_set.files[block.file]
        with self._keeping:
            self._indexes.pop(block.file, None)
        may_change = self._ranges.forget(file.path)
        return (file.text is not None and self._text_ranges(file).forget(file.text)) or may_change

    def close(self) -> None:
        if self._other_ranges is not None:
            self._other_ranges.close()

    @staticmethod
    def count_samples(path: str, ranges: ByteRanges) -> int:
        return _head_of(path, ranges)[1][0]

    @staticmethod
    def why_unchecked(path: str, ranges: ByteRanges) -> str | None:
        return None

    def _text_ranges(self, file: DataFile) -> ByteRanges:
        """Return the ranges that read the text of a file's rows."""
        if is_beside(_text_of(file), file.path):
            return self._ranges
        with self._keeping:
            if self._other_ranges is None:
                from maskmill.reading.remote import open_ranges

                self._other_ranges = open_ranges(_text_of(file))
            return self._other_ranges

    def _index(self, number: int) -> _Index:
        """Return the index of a file; the most recently used ones are kept."""
        with self._locks[number]:
            with self._keeping:
                found = self._indexes.get(number)
                if found is not None:
                    self._indexes.move_to_end(number)
                    return found
            index = _read_index(self._data_set.files[number], self._ranges)
            with self._keeping:
                self._indexes[number] = index
                while len(self._indexes) > 1 and sum(one.parts.bytes for one in self._indexes.values()) > _KEPT_BYTES:
                    self._indexes.popitem(last=False)
            return index

    def _tokenization(self, file: DataFile, index: _Index) -> _Tokenization:
        """Return the tokenization of the data set, loaded once; raise UnusableInputError if a file has another."""
        description = _common(index.description)
        with self._tokenizing:
            if self._loaded is None:
                self._loaded = self._load(file, description)
            if self._loaded.description != description:
                raise UnusableInputError(
                    f"{file.path}: the rows of this file were made with another vocabulary or other options than those "
                    "before it; make the examples again."
                )
            return self._loaded

    def _load(self, file: DataFile, description: Mapping[str, Any]) -> _Tokenization:
        path, saved = self._data_set.vocabulary, description["vocabulary"]
        if path is None:
            raise UnusableInputError(
                f"{file.path}: the text of its rows is tokenized by the vocabulary, which is not there; give it as "
                "vocab_file."
            )
        masking = of_parameters(MaskingOptions, description["masking"])
        content = NamedVocabulary(file.path, path, self._ranges).read(path)
        loaded = tokenization_in(path, content, masking, saved["special_ids"], by_version_2=description["by_version_2"])
        if loaded.vocabulary.sha256 != saved["sha256"]:
            raise UnusableInputError(
                f"{path}: the rows of {file.path} were made with another vocabulary, whose sha256 is "
                f"{saved['sha256']}; name that one."
            )
        objective = of_parameters(ObjectiveOptions, description["objective"])
        return _Tokenization(masking, objective, loaded.vocabulary, loaded.tokenizer(), description)


def _text_of(file: DataFile) -> str:
    if file.text is None:
        raise UnusableInputError(
            f"{file.path}: the text of its rows is not there; say where its shards are (text), or make the examples "
            "again."
        )
    return file.text


def _common(description: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of a description that all files of a data set share: all but the text and the seed."""
    masking = {name: value for name, value in description["masking"].items() if name != "random_seed"}
    return {"masking": masking, **{name: description[name] for name in ("objective", "vocabulary", "by_version_2")}}


# ---- files


def _head_of(path: str, ranges: ByteRanges) -> tuple[bytes, tuple[int, ...]]:
    """Return a file's magic and numbers: rows, blocks, parts, bytes of the description and of the table, checksum.

    Raises:
      UnusableInputError: the file is no index of spans.
    """
    if ranges.size(path) < HEAD.size:
        raise UnusableInputError(f"{path}: this file is too short for an index of spans; {_AGAIN}.")
    magic, *numbers = HEAD.unpack(ranges.read(path, 0, HEAD.size).tobytes())
    if magic not in (MAGIC, MAGIC_OF_VERSION_2):
        raise UnusableInputError(f"{path}: this file is no index of spans; {_AGAIN}.")
    return magic, tuple(numbers)


def _read_index(file: DataFile, ranges: ByteRanges) -> _Index:
    """Read all of a file except its blocks.

    Raises:
      DamagedBlockError: it is damaged.
    """
    size = ranges.size(file.path) if file.size is None else file.size
    try:
        magic, (*counts, checksum) = _head_of(file.path, ranges)
    except UnusableInputError as error:
        raise DamagedBlockError(str(error)) from None
    rows, blocks, parts, description_bytes, table_bytes = counts
    end = HEAD.size + 4 * blocks + description_bytes + table_bytes
    if rows != file.samples or blocks != -(-rows // BLOCK_ROWS) or end > size:
        raise DamagedBlockError(
            f"{file.path}: this index says that it has {rows:,} records, but it must have {file.samples:,}; {_AGAIN}."
        )
    between = ranges.read(file.path, HEAD.size, end).tobytes()
    if checksum_of(HEAD.pack(magic, *counts, 0) + between) != checksum:
        what = f"{file.path}: the head of this index does not fit its checksum; {_AGAIN}."
        raise DamagedBlockError(what) from WrongChecksumError(what)
    ends = np.frombuffer(between, "<u4", blocks).astype(np.int64)
    description = json.loads(zlib.decompress(between[4 * blocks : 4 * blocks + description_bytes]))
    lines, starts, checksums = unpack(between[-table_bytes:], 3)
    table = TextParts(
        firsts=np.cumsum(lines).astype(np.int32),
        starts=np.append(np.cumsum(starts), description["text"]["bytes"]),
        checksums=checksums.astype(np.uint32),
    )
    if not description["records_sha256"].startswith(file.digest):
        raise DamagedBlockError(
            f"{file.path}: this index is of other rows than the manifest says (another records_sha256); {_AGAIN}."
        )
    if len(lines) != parts or end + ends[-1] != size:
        raise DamagedBlockError(f"{file.path}: the places of this index's records do not fit the file; {_AGAIN}.")
    description["by_version_2"] = magic == MAGIC_OF_VERSION_2
    return _Index(np.append(end, end + ends), table, description)


# ---- rows


def _spans_in(data: bytes, block: Block, path: str) -> Spans:
    """Return the rows of a block from its bytes.

    Raises:
      DamagedBlockError: the bytes are damaged.
    """
    where = f"{path}: records {block.first + 1:,} to {block.first + block.count:,}"
    if len(data) < CHECKSUM.size or CHECKSUM.unpack_from(data)[0] != checksum_of(data[CHECKSUM.size :]):
        what = f"{where} do not fit their checksum, so the file is damaged; {_AGAIN}."
        raise DamagedBlockError(what) from WrongChecksumError(what)
    try:
        spans = decode(data[CHECKSUM.size :])
    except ValueError as error:
        raise DamagedBlockError(f"{where} cannot be read ({error}); {_AGAIN}.") from None
    if len(spans.members) != block.count:
        raise DamagedBlockError(f"{where} are {len(spans.members):,}; {_AGAIN}.")
    return spans


def _chosen(spans: Spans, firsts: Numbers, samples: Numbers) -> tuple[Spans, Numbers]:
    """Return some rows of a block, and the first lines of their spans of text."""
    sequence_ends = np.cumsum(spans.members)
    span_ends = np.append(0, np.cumsum(spans.spans))
    is_text = spans.kinds % SECOND == TEXT
    text_before = np.append(0, np.cumsum(is_text))
    members = spans.members[samples]
    sequences = places_in(sequence_ends[samples] - members, members)
    counts = spans.spans[sequences]
    chosen = places_in(span_ends[sequences], counts)
    of_text = text_before[chosen[is_text[chosen]]]
    return Spans(
        members=members,
        spans=counts,
        labels=spans.labels[sequences] if len(spans.labels) else spans.labels,
        kinds=spans.kinds[chosen],
        steps=of_text,  # not used here
        lines=spans.lines[of_text],
        fronts=spans.fronts[of_text],
        sizes=spans.sizes[of_text],
    ), firsts[of_text]


def _pieces_before(text: TokenizedText, lines: Numbers) -> Numbers:
    """Return int64[n]: the number of pieces of a text before each line."""
    segments = np.searchsorted(text.segment_lines, lines)
    before: Numbers = np.append(0, text.segment_ends)[segments]
    return before


def _written(column: ReadColumn, width: int, *, packed: bool) -> Column:
    """Return the column as written, for rows of a file of this width."""
    feature = FEATURES.get(column.feature)
    if feature is None or feature.per == "mask":
        raise UnusableInputError(f"{column.name}: rows of spans have no such column; make the examples again.")
    length = {"piece": width, "sequence": None if packed else 1, "border": None}[feature.per]
    largest = None if column.high is None else int(column.high)
    return Column(name=column.name, feature=column.feature, length=length, largest=largest)


def _put(column: ReadColumn, values: ColumnValues, rows: Numbers, into: Rows) -> None:
    """Write the values of a column to rows, and pad these."""
    array, counts = into.arrays[column.feature], np.diff(values.offsets).astype(np.int32)
    if not column.varies:
        array[rows] = values.values.reshape(len(rows), column.width)
        return
    if column.fill is None:
        filled = np.repeat(values.values[values.offsets[1:] - 1], column.width).reshape(len(rows), column.width)
    else:
        filled = np.full((len(rows), column.width), column.fill, array.dtype)
    filled[up_to(counts, column.width)] = values.values
    array[rows] = filled
    into.counts[column.feature][rows] = counts
