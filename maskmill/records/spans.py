"""Write rows as spans: an index of the ranges of a text shard that each row consists of, without pieces and masks.

A span is a range of lines, the number of their first pieces that it skips, and the number of pieces that it has. A
reader tokenizes these lines to get the pieces (reading/spans.py).

A file, all numbers little-endian:

  head      MAGIC; uint32: rows, blocks, parts, bytes of the description and of the table; CRC-32C of
            these numbers, and of all bytes between them and the first block
  ends      uint32[blocks], the end of each block, counted from the start of the first
  description
            JSON, deflated: the text (bytes, sha256), the vocabulary's sha256 and special ids, the options that decide
            the rows, and the sha256 of the TFRecord with the same rows
  table     packed numbers (`pack`) of the parts of the text, runs of lines of some PART_BYTES bytes: the number of
            the first line and the first byte, both as the difference to the part before, and the part's CRC-32C
  blocks    of BLOCK_ROWS rows each, the last of fewer: CRC-32C, then encoded `Spans` (`encode`)
"""

import dataclasses
import hashlib
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maskmill.masking.kernels.sequences import Sequences
from maskmill.records.kernels.text_parts import checksums_of
from maskmill.records.serialization import Serializer
from maskmill.records.tfrecord import written_file
from maskmill.storage import files
from maskmill.tokenization.vocabulary import Vocabulary

if TYPE_CHECKING:
    from maskmill.records.examples import Blocks, ExampleFile, RowOrigin, Writing

MAGIC = b"spans-2\n"
MAGIC_OF_VERSION_2 = b"spans-1\n"  # of version 2 of examples (`tokenization_in` of tokenizing.py)
HEAD = struct.Struct("<8s6I")
CHECKSUM = struct.Struct("<I")
BLOCK_ROWS = 256
PART_BYTES = 4096
_FAR = 255  # steps of this size and more are stored apart: they are as good as random, and deflate badly
_LOWER_BITS = 16
_COLUMNS = 11

# The kinds of spans in `Spans.kinds`; SECOND is added if the pieces are of segment 1.
TEXT, CLS, SEP = range(3)
SECOND = 4

Numbers = npt.NDArray[np.int64]


class Spans(NamedTuple):
    """Some rows as runs of text and special pieces, int64 each.

    members: [rows], the sequences of each row. spans: [sequences], the spans of each. labels: [sequences],
    next_sentence_labels; empty for objectives without it. kinds: [spans], TEXT, CLS or SEP, and SECOND.
    The others are of the spans of text. steps: the distance n from the last line of the span before to the first line
    (of the first span, its number), as 2 n, or -2 n - 1 if n is negative. lines: their number, less one. fronts: the
    first pieces of these lines that are skipped. sizes: the pieces after them.
    """

    members: Numbers
    spans: Numbers
    labels: Numbers
    kinds: Numbers
    steps: Numbers
    lines: Numbers
    fronts: Numbers
    sizes: Numbers


def pack(columns: Sequence[npt.NDArray[Any]]) -> bytes:
    """Return columns of uint32, deflated: the lengths of all columns, the bytes that a number of each needs (uint32),
    then, column by column, the lowest bytes of all numbers, the next lowest, …."""
    needed = [-(-int(column.max(initial=0)).bit_length() // 8) for column in columns]
    parts = [np.array([*map(len, columns), *needed], "<u4").tobytes()]
    for column, planes in zip(columns, needed, strict=True):
        parts.append(np.ascontiguousarray(column.astype("<u4").view(np.uint8).reshape(-1, 4).T[:planes]).tobytes())
    return zlib.compress(b"".join(parts))


def unpack(packed: bytes, columns: int) -> list[Numbers]:
    """Return the columns that `pack` packed, int64 each.

    Raises:
      ValueError: these are no such bytes.
    """
    try:
        data = np.frombuffer(zlib.decompress(packed), np.uint8)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    counts = data[: 8 * columns].view("<u4").reshape(2, -1).T.astype(np.int64).tolist()
    if len(counts) != columns or 8 * columns + sum(count * planes for count, planes in counts) != len(data):
        raise ValueError("its columns do not fit its size")
    found, at = [], 8 * columns
    for count, planes in counts:
        numbers = np.zeros(count, np.int64)
        for plane in range(planes):
            numbers |= data[at : at + count].astype(np.int64) << 8 * plane
            at += count
        found.append(numbers)
    return found


def encode(spans: Spans) -> bytes:
    """Return the bytes of some rows: the size of the packed columns (uint32), these, and the lower bits of far steps.

    The packed columns are those of Spans, with _FAR in place of each far step and without the last size of each
    sequence; then for each sequence, how many pieces fewer than the longest it has; the pieces of the longest; and the
    upper bits of far steps. The lower 16 bits follow as uint16.
    """
    is_last, pieces = _last_of_text(spans), np.ones(len(spans.kinds), np.int64)
    pieces[spans.kinds % SECOND == TEXT] = spans.sizes
    lengths = np.bincount(_sequences_of(spans), pieces, len(spans.spans)).astype(np.int64)
    longest = lengths.max(keepdims=True)
    near = np.minimum(spans.steps, _FAR)
    far = spans.steps[near == _FAR]
    sizes, shorter = spans.sizes[~is_last], longest - lengths
    packed = pack([*spans[:4], near, *spans[5:7], sizes, shorter, longest, far >> _LOWER_BITS])
    lower: bytes = far.astype("<u2").tobytes()
    return CHECKSUM.pack(len(packed)) + packed + lower


def decode(data: bytes) -> Spans:
    """Return the spans that `encode` encoded.

    Raises:
      ValueError: these are no such bytes.
    """
    end = CHECKSUM.size + CHECKSUM.unpack_from(data)[0]
    *columns, sizes, shorter, longest, upper = unpack(data[CHECKSUM.size : end], _COLUMNS)
    far = (upper << _LOWER_BITS) + np.frombuffer(data[end:], "<u2")
    members, of_sequences, labels, kinds, steps, lines, fronts = columns
    spans = Spans(members, of_sequences, labels, kinds, steps, lines, fronts, np.zeros(len(steps), np.int64))
    is_text, is_last = spans.kinds % SECOND == TEXT, _last_of_text(spans)
    if is_text.sum() != len(steps) or len(shorter) != len(spans.spans) or spans.spans.sum() != len(spans.kinds):
        raise ValueError("its columns do not fit each other")
    steps[steps == _FAR] = far
    spans.sizes[~is_last] = sizes
    pieces, sequences = np.ones(len(spans.kinds), np.int64), _sequences_of(spans)
    pieces[is_text] = spans.sizes
    left = longest - shorter - np.bincount(sequences, pieces, len(spans.spans)).astype(np.int64)
    spans.sizes[is_last] = left[sequences[is_text][is_last]]
    return spans


def _sequences_of(spans: Spans) -> Numbers:
    """Return int64[spans]: the sequence of each."""
    return np.repeat(np.arange(len(spans.spans)), spans.spans)


def _last_of_text(spans: Spans) -> npt.NDArray[np.bool_]:
    """Return bool[spans of text]: True for the last of each sequence."""
    sequences = _sequences_of(spans)[spans.kinds % SECOND == TEXT]
    return np.append(sequences[1:] != sequences[:-1], True)[: len(sequences)]


def checksum_of(data: bytes) -> int:
    """Return the CRC-32C of bytes."""
    checksum = np.empty(1, np.uint32)
    checksums_of(np.frombuffer(bytearray(data), np.uint8), np.zeros(1, np.int64), np.array([len(data)]), checksum)
    return int(checksum[0])


def places_in(starts: Numbers, counts: Numbers) -> Numbers:
    """Return int64[sum of counts]: starts[0], starts[0] + 1, … (counts[0] numbers), then the next run."""
    before = np.cumsum(counts) - counts
    places: Numbers = np.repeat(starts - before, counts) + np.arange(counts.sum(), dtype=np.int64)
    return places


def write_spans(prefix: str, blocks: "Blocks", writing: "Writing") -> "ExampleFile":
    """Write the index of rows; see ShardFormat.write.

    The rows are laid out as for a TFRecord, and named by its sha256. So both formats are read in the same order, and a
    loader resumes either of them from the same state.

    Raises:
      ValueError: masks are stored, or the rows are of several texts.
    """
    origin = writing.origin
    if origin is None or not writing.plan.objective.dynamic_masking or len(origin.paths) != 1:
        raise ValueError("spans are written of one text, and their masks are drawn by the reader")
    text = np.frombuffer(files.read_bytes(origin.paths[0]), np.uint8)
    described = _description(text, blocks, writing)
    description = zlib.compress(json.dumps(described, sort_keys=True).encode())
    firsts, starts, checksums = parts_of(text)
    table = pack([np.diff(firsts, prepend=0), np.diff(starts, prepend=0), checksums])
    packed = _packed_blocks(origin, writing.vocabulary)
    ends = np.cumsum([len(block) for block in packed]).astype("<u4").tobytes()
    counts = MAGIC, writing.examples, len(packed), len(firsts), len(description), len(table)
    between = ends + description + table
    head = HEAD.pack(*counts, checksum_of(HEAD.pack(*counts, 0) + between))
    path = f"{prefix}.spans"
    with files.new_file(path, checksum=writing.checksum) as file:
        for part in (head, between, *packed):
            file.write(part)
    written = written_file(file, writing.checksum)
    return dataclasses.replace(writing.file(written), records_sha256=described["records_sha256"])


def _description(text: npt.NDArray[np.uint8], blocks: "Blocks", writing: "Writing") -> Mapping[str, Any]:
    plan, vocabulary = writing.plan, writing.vocabulary
    serializer = Serializer(writing.columns, vocabulary, writing.width, plan.masking.max_predictions_per_seq)
    records = hashlib.sha256()
    for block in serializer.blocks(blocks):
        records.update(block.data)
    return {
        "text": {"bytes": len(text), "sha256": hashlib.sha256(text.data).hexdigest()},
        "vocabulary": {"sha256": vocabulary.sha256, "special_ids": vocabulary.special_ids},
        "masking": dataclasses.asdict(plan.masking),
        "objective": dataclasses.asdict(plan.objective),
        "records_sha256": records.hexdigest(),
    }


def parts_of(text: npt.NDArray[np.uint8]) -> tuple[Numbers, Numbers, npt.NDArray[np.uint32]]:
    """Return the parts of a text: their first lines, int64[parts], first bytes, int64, and checksums, uint32."""
    ends = np.flatnonzero(text == ord("\n")) + 1
    line_starts = np.concatenate([np.zeros(1, np.int64), ends])
    line_starts = line_starts[line_starts < len(text)]
    firsts = np.flatnonzero(np.diff(line_starts // PART_BYTES, prepend=-1))
    starts = line_starts[firsts]
    checksums = np.zeros(len(starts), np.uint32)
    # A copy, because numba compiles anew for arrays that cannot be written to.
    checksums_of(text.copy(), starts, np.append(starts[1:], len(text)), checksums)
    return firsts, starts, checksums


def _packed_blocks(origin: "RowOrigin", vocabulary: Vocabulary) -> list[bytes]:
    """Return the encoded blocks of the rows of an origin, each after its checksum."""
    packed = []
    for first in range(0, len(origin.order), BLOCK_ROWS):
        block = encode(spans_of(origin, origin.order[first : first + BLOCK_ROWS], vocabulary))
        packed.append(CHECKSUM.pack(checksum_of(block)) + block)
    return packed


def spans_of(origin: "RowOrigin", order: Numbers, vocabulary: Vocabulary) -> Spans:
    """Return the rows that `order` names, as spans of the text's lines."""
    sequences, rows, text = origin.sequences, origin.rows, origin.text
    members = _sizes(rows.ends, order)
    chosen = rows.members[places_in(rows.ends[order] - members, members)]
    counts = _sizes(sequences.ends, chosen)
    spans = places_in(sequences.ends[chosen] - counts, counts)
    starts, sizes = sequences.starts[spans], sequences.sizes[spans].astype(np.int64)
    of_text = starts >= 0
    first_pieces, of_lines = starts[of_text], sizes[of_text]
    segments = np.searchsorted(text.segment_ends, first_pieces, side="right")
    last_segments = np.searchsorted(text.segment_ends, first_pieces + of_lines - 1, side="right")
    first, last = text.segment_lines[segments], text.segment_lines[last_segments]
    steps = np.diff(first, prepend=0)
    steps[1:] = first[1:] - last[:-1]
    return Spans(
        members=members,
        spans=counts,
        labels=sequences.labels[chosen].astype(np.int64) if len(sequences.labels) else np.zeros(0, np.int64),
        kinds=_kinds(sequences, spans, starts, vocabulary),
        steps=np.where(steps < 0, -2 * steps - 1, 2 * steps),
        lines=last - first,
        fronts=first_pieces - np.where(segments > 0, text.segment_ends[segments - 1], 0),
        sizes=of_lines,
    )


def _kinds(sequences: Sequences, spans: Numbers, starts: Numbers, vocabulary: Vocabulary) -> Numbers:
    """Return Spans.kinds of some spans of sequences, which start at `starts`."""
    special = -1 - starts
    kinds = np.where(starts >= 0, TEXT, np.where(special == vocabulary.cls_id, CLS, SEP))
    if (special[kinds == SEP] != vocabulary.sep_id).any():
        raise ValueError("a sequence has a special piece that is neither the first nor a separator")
    found: Numbers = kinds + SECOND * sequences.segments[spans].astype(np.int64)
    return found


def _sizes(ends: Numbers, which: Numbers) -> Numbers:
    """Return int64[n]: the sizes of the runs `which`, of consecutive runs that end at `ends`."""
    return ends[which] - np.where(which > 0, ends[which - 1], 0)
