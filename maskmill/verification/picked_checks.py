"""Whether picked eval examples are those of the eval shards: they are picked again, and compared."""

import itertools
import tempfile

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.records.eval_picking import pick_examples
from maskmill.records.example_proto import parse_example
from maskmill.records.tfrecord import read_records
from maskmill.storage import files
from maskmill.verification.findings import Checked, Finding
from maskmill.verification.pieces import Piece

_CHECK = "shard_inputs"
_DO = "pick them again, with `maskmill pick-eval` or the command that made the directory"


def check_picked(piece: Piece, ranges: ByteRanges) -> Checked:
    """Picks the examples of a piece again, and compares them with the file."""
    remake = piece.remake
    if remake is None:
        raise ValueError(f"{piece.path}: this piece does not say what its examples were picked of")
    try:
        for path, digest in zip(remake.inputs, remake.sha256, strict=True):
            if ranges.sha256_of(path) != digest:
                return Checked(skipped={_CHECK: f"{path} is not the file that eval examples were picked of"})
        count = piece.expected.counts.get("examples", 0)
        with tempfile.TemporaryDirectory(prefix=files.scratch_prefix()) as directory:
            again = files.join(directory, "picked.tfrecord")
            written = pick_examples(remake.inputs, again, count)
            if ranges.sha256_of(piece.path) == written.sha256:
                return Checked(looked_at={_CHECK: 1})
            differs = _first_difference(again, piece.path)
    except (UnusableInputError, RunFailedError) as error:
        return Checked(skipped={_CHECK: f"eval examples cannot be picked again: {str(error).rstrip('.')}"})
    if differs is None:
        return Checked(looked_at={_CHECK: 1})
    message = (
        f"{piece.path}, record {differs:,}: this is not the example that is picked here of {', '.join(remake.inputs)}; "
        f"{_DO}."
    )
    finding = Finding(
        check=_CHECK, file=piece.path, record=differs, expected="the example picked", found="another", message=message
    )
    return Checked(findings=(finding,), looked_at={_CHECK: 1})


def _first_difference(expected: str, found: str) -> int | None:
    """The number of the first record, from 1, whose features differ; None: there is none."""
    pairs = itertools.zip_longest(read_records(expected), read_records(found))
    for number, (one, other) in enumerate(pairs, 1):
        if one == other:
            continue
        if one is None or other is None:
            return number
        try:
            if parse_example(one, strict=False) != parse_example(other, strict=False):
                return number
        except ValueError:
            return number
    return None
