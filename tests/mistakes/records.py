"""TFRecords that are damaged or none, and mistakes in the commands that read or write them."""

import bz2
import gzip
import lzma
import struct
from collections.abc import Mapping

from oracles import pretraining as oracle

from mistakes.table import Mistake

RECORDS = [
    oracle.encode_example({"input_ids": [k] * 8, "input_mask": [1] * 8, "segment_ids": [0] * 8}) for k in range(4)
]
PLAIN = b"".join(map(oracle.encode_tfrecord, RECORDS))
SIZE = len(PLAIN) // len(RECORDS)  # of a record with its frame


def flipped(content: bytes, place: int) -> bytes:
    """The content with one bit of a byte flipped."""
    damaged = bytearray(content)
    damaged[place] ^= 4
    return bytes(damaged)


def with_length(length: int) -> bytes:
    """A record of a length that it does not have, with the right checksum of the length."""
    coded = struct.pack("<Q", length)
    return coded + struct.pack("<I", oracle.masked_crc(coded)) + bytes(100)


_NO_RECORD = "has (a length|data) that does not fit its checksum: the file is damaged, or no TFRecord"
_TOO_LARGE = "has [0-9,]+ bytes; no reader takes so large a record"
_PACKED = "this file is packed with {}; a TFRecord is read plain or gzipped, so unpack it first"
_GZIP = r"this gzip file is truncated or damaged \(.*\); make or fetch it again"

# What both `index` and `pick-eval` say of a file x.
DAMAGED: Mapping[str, tuple[bytes, str]] = {
    "cut-in-a-length": (PLAIN[: SIZE + 5], rf"record 2 at byte {SIZE} is truncated; make or fetch the file again"),
    "cut-in-the-middle": (PLAIN[: SIZE + SIZE // 2], rf"record 2 at byte {SIZE} is truncated"),
    "with-a-flipped-length": (flipped(PLAIN, 2 * SIZE), rf"record 3 at byte {2 * SIZE} {_NO_RECORD}"),
    "with-flipped-data": (flipped(PLAIN, 2 * SIZE + 30), rf"record 3 at byte {2 * SIZE} {_NO_RECORD}"),
    "with-garbage-after-it": (PLAIN + b"some more garbage", rf"record 5 at byte {4 * SIZE} {_NO_RECORD}"),
    "with-a-length-of-a-terabyte": (with_length(1 << 40), f"record 1 at byte 0 {_TOO_LARGE}"),
    "packed-with-bz2": (bz2.compress(PLAIN), _PACKED.format("bzip2")),
    "packed-with-xz": (lzma.compress(PLAIN), _PACKED.format("xz")),
    "in-a-zip": (b"PK\x03\x04" + bytes(100), _PACKED.format("zip")),
    "packed-with-zstd": (b"\x28\xb5\x2f\xfd" + bytes(100), _PACKED.format("zstd")),
}
# What only `pick-eval` says: `index` takes no packed file.
DAMAGED_PACKED: Mapping[str, tuple[bytes, str]] = {
    "packed-and-cut": (gzip.compress(PLAIN)[:-20], _GZIP),
    "packed-with-garbage-after-it": (gzip.compress(PLAIN) + b"garbage", _GZIP),
    "packed-when-cut": (gzip.compress(PLAIN[:-1]), rf"record 4 at byte {3 * SIZE} is truncated"),
}

PICK = "pick-eval --input_tfrecord={} --output_tfrecord=picked --num_examples_to_pick=1"
_PICK_GOOD = "pick-eval --input_tfrecord=examples.tfrecord --output_tfrecord="


def commands_on(command: str, cases: Mapping[str, tuple[bytes, str]]) -> list[Mistake]:
    """A command on each of some files x."""
    return [
        Mistake(f"{command.split()[0]}-{case}", command.format("x"), f"x: {says}", files={"x": content})
        for case, (content, says) in cases.items()
    ]


INDEX = [
    *commands_on("index {}", DAMAGED),
    Mistake("index-an-empty-name", "index ''", "No input was named"),
    Mistake("index-a-glob-of-nothing", "index 'x-*'", r"x-\*: this input matches no file"),
    Mistake(
        "index-one-that-is-there-and-one-that-is-not",
        "index examples.tfrecord,x.tfrecord",
        "x.tfrecord: this input does not exist",
    ),
    Mistake("index-a-directory", "index folder", "is a directory", files={"folder/x": PLAIN}),
    Mistake("index-an-empty-file", "index x", "x: this file is empty", files={"x": b""}),
    Mistake(
        "index-a-packed-file",
        "index x.gz",
        "x.gz: this TFRecord is packed with gzip, and an index is of use only for one that is not; unpack it",
        files={"x.gz": gzip.compress(PLAIN)},
    ),
    Mistake("index-a-dump", "index dump.xml", f"dump.xml: record 1 at byte 0 {_NO_RECORD}"),
    Mistake(
        "index-two-files-under-one-name",
        "index a b --output=index",
        "--output names one index, and there are 2 files; leave it out",
        files={"a": PLAIN, "b": PLAIN},
    ),
    Mistake("index-over-the-records", "index x --output=./x", "also the input x", files={"x": PLAIN}),
    Mistake(
        "index-below-a-file",
        "index x --output=book.txt/index",
        "book.txt: this directory cannot be made",
        files={"x": PLAIN},
    ),
    Mistake(
        "index-on-a-disk-that-fails",
        "index /proc/self/mem --output=index",
        r"/proc/self/mem: this input cannot be read on \(Input/output error\); run the same command again",
        code=1,
    ),
]

PICK_EVAL = [
    *commands_on(PICK, DAMAGED),
    *commands_on(PICK, DAMAGED_PACKED),
    Mistake(
        "pick-more-records-than-there-are",
        f"{_PICK_GOOD}x --num_examples_to_pick=100000",
        r"examples.tfrecord: there are [0-9]+ examples, 100,000 cannot be picked; pick fewer, or make more",
    ),
    Mistake("pick-without-input", "pick-eval --output_tfrecord=x", "--input_tfrecord"),
    Mistake("pick-without-output", "pick-eval --input_tfrecord=examples.tfrecord", "output_tfrecord"),
    Mistake("pick-from-what-is-not-there", PICK.format("nothing"), "nothing: .* does not exist"),
    Mistake(
        "pick-from-a-directory", PICK.format("folder"), "folder: this input is a directory", files={"folder/x": PLAIN}
    ),
    Mistake("pick-from-an-empty-file", PICK.format("x"), "x: there is no example to pick from", files={"x": b""}),
    Mistake(
        "pick-from-records-that-are-no-examples",
        PICK.format("x"),
        r"x: record 1 is not a tf\.train\.Example \(it cannot be decoded\)",
        files={"x": oracle.encode_tfrecord(b"\xff" * 12)},
    ),
    Mistake(
        "pick-examples-with-another-number-of-predictions",
        f"{_PICK_GOOD}x --num_examples_to_pick=1 --max_predictions_per_seq=20",
        "record 1 has 5 values in masked_lm_positions, not 20",
    ),
    Mistake(
        "pick-examples-that-lack-a-feature",
        PICK.format("x") + " --max_predictions_per_seq=5",
        "x: record 1 has no such feature in masked_lm_positions, not 5",
        files={"x": PLAIN},
    ),
    Mistake(
        "pick-into-a-directory",
        f"{_PICK_GOOD}folder --num_examples_to_pick=1",
        "folder: this output is a directory; name a file",
        files={"folder/x": b""},
    ),
    Mistake(
        "pick-over-one-of-a-glob",
        "pick-eval --input_tfrecord='x*' --output_tfrecord=x2 --num_examples_to_pick=1",
        "x2: this output is also the input",
        files={"x1": PLAIN, "x2": PLAIN},
    ),
    Mistake(
        "pick-on-a-disk-that-fails",
        PICK.format("/proc/self/mem"),
        r"/proc/self/mem: this input cannot be read on \(Input/output error\)",
        code=1,
    ),
]

TEXT = b"A first sentence.\nA second one.\n\nAnother document.\n" * 20
# What the commands that make examples say of a file x that is no text shard.
NO_TEXT: Mapping[str, tuple[bytes, str]] = {
    "of-packed-text": (gzip.compress(TEXT), "x.*(not UTF-8|packed)"),
    "of-text-packed-with-bz2": (bz2.compress(TEXT), "x.*(not UTF-8|packed)"),
    "of-records": (PLAIN + oracle.encode_tfrecord(b"\xff\xfe" * 20), "x.*(not UTF-8|TFRecord)"),
    "of-an-empty-file": (b"", "x: there is no sentence in this text"),
}
_MAKERS = {
    "create-pretraining-data": "create-pretraining-data --vocab_file=vocab.txt --output_file=out --input_file={}",
    "examples": "examples --vocab_file=vocab.txt --output=out --input={}",
}
EXAMPLES = [
    row
    for command, line in _MAKERS.items()
    for row in (
        *(
            Mistake(f"{command}-{case}", line.format("x"), says, files={"x": content}, leaves=("out",))
            for case, (content, says) in NO_TEXT.items()
        ),
        Mistake(f"{command}-of-nothing", line.format("nothing"), "nothing: .* does not exist"),
        Mistake(
            f"{command}-on-a-disk-that-fails",
            line.format("/proc/self/mem"),
            r"/proc/self/mem: this input cannot be read on \(Input/output error\)",
            code=1,
            leaves=("out",),
        ),
    )
]

CREATE = "create-pretraining-data --vocab_file=vocab.txt --input_file=part-00000-of-00001 --output_file="
OUTPUTS = [
    Mistake(
        "create-two-outputs-that-are-one",
        f"{CREATE}a,./a",
        "./a: this output, or an index beside it, is the same file as the output a; the outputs must be",
    ),
    Mistake(
        "create-two-outputs-that-are-one-by-a-link",
        f"{CREATE}a,b",
        "b: this output, or an index beside it, is the same file as the output a",
        files={"a": b"old", "b": lambda path: path.symlink_to("a")},
    ),
    Mistake(
        "create-an-output-that-is-the-index-of-another",
        f"{CREATE}a,a.idx",
        "a.idx: this output, or an index beside it, is the same file as the output a.idx",
    ),
    Mistake("create-the-same-output-twice", f"{CREATE}a,a", "a: this output, or an index beside it, is the same file"),
    Mistake("create-an-output-that-ends-like-a-directory", f"{CREATE}a/", '"a/" as output names no'),
    Mistake(
        "create-packed-and-plain-outputs",
        f"{CREATE}a.gz,b",
        "Of the outputs some end in .gz and some do not; name all of them with .gz, to pack them, or none",
    ),
    Mistake("pick-into-a-name-of-a-directory", f"{_PICK_GOOD}new/", '"new/" as output names no file'),
    Mistake(
        "index-over-another-input",
        "index x x.idx",
        "x.idx: this output is also the input x.idx",
        files={"x": PLAIN, "x.idx": PLAIN},
    ),
]

MISTAKES = [*INDEX, *PICK_EVAL, *EXAMPLES, *OUTPUTS]
