"""Output that would replace an input, or what is no file."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from mistakes.table import Mistake

CREATE = "create-pretraining-data --vocab_file=vocab.txt --input_file"
PICK = "pick-eval --num_examples_to_pick=1 --input_tfrecord"
TEXT = "part-00000-of-00001"
TEXT_LINES = b"A sentence.\nAnother one.\n"
ALSO_THE_INPUT = "this output is also the input"
Files = Mapping[str, bytes | Callable[[Path], object]]


def link(target: str) -> Files:
    return {"link": lambda path: path.symlink_to(target)}


def build_into(output: str) -> Files:
    content = f"output: {output}\nextract: {{input: dump.xml}}\nexamples: {{vocab_file: vocab.txt}}\n"
    return {"build.yaml": content.encode()}


HARD = {"hard": lambda path: os.link(path.with_name(TEXT), path)}
PIPE = {"pipe": os.mkfifo}
COPIED = {"dumps/a.xml": lambda path: path.write_bytes((path.parent.parent / "dump.xml").read_bytes())}
ROWS: list[tuple[str, str, str, Files]] = [
    ("create-over-its-text", f"{CREATE}={TEXT} --output_file={TEXT}", ALSO_THE_INPUT, {}),
    ("create-over-its-text-by-a-link", f"{CREATE}={TEXT} --output_file=link", ALSO_THE_INPUT, link(TEXT)),
    ("create-over-its-text-by-a-hard-link", f"{CREATE}={TEXT} --output_file=hard", ALSO_THE_INPUT, HARD),
    ("create-over-its-vocabulary", f"{CREATE}={TEXT} --output_file=./vocab.txt", ALSO_THE_INPUT, {}),
    ("create-over-a-text-of-a-glob", f"{CREATE}='part-*' --output_file=./{TEXT}", ALSO_THE_INPUT, {}),
    ("create-over-the-second-of-two-texts", f"{CREATE}=book.txt,{TEXT} --output_file={TEXT}", ALSO_THE_INPUT, {}),
    (
        "create-an-index-over-its-text",
        f"{CREATE}=records.idx --output_file=records",
        ALSO_THE_INPUT,
        {"records.idx": TEXT_LINES},
    ),
    ("create-into-a-pipe", f"{CREATE}={TEXT} --output_file=pipe", "pipe", PIPE),
    ("create-into-a-device", f"{CREATE}={TEXT} --output_file=/dev/full", "/dev/full", {}),
    ("create-into-a-directory", f"{CREATE}={TEXT} --output_file=folder", "folder", {"folder/x": b""}),
    (
        "pick-over-its-records",
        f"{PICK}=examples.tfrecord --output_tfrecord=../case/examples.tfrecord",
        ALSO_THE_INPUT,
        {},
    ),
    (
        "pick-over-its-records-by-a-link",
        f"{PICK}=examples.tfrecord --output_tfrecord=link",
        ALSO_THE_INPUT,
        link("examples.tfrecord"),
    ),
    ("pick-over-its-records-by-a-glob", f"{PICK}='*.tfrecord' --output_tfrecord=examples.tfrecord", ALSO_THE_INPUT, {}),
    ("pick-into-a-pipe", f"{PICK}=examples.tfrecord --output_tfrecord=pipe", "FIFO", PIPE),
    ("index-over-its-records", "index examples.tfrecord --output=examples.tfrecord", ALSO_THE_INPUT, {}),
    ("index-into-a-pipe", "index examples.tfrecord --output=pipe", "FIFO", PIPE),
    (
        "extract-into-the-folder-of-its-dump",
        "extract --input='dumps/*.xml' --output=dumps",
        "holds other files",
        COPIED,
    ),
    (
        "examples-into-the-folder-of-their-text",
        "examples --input='text/*' --output=text --vocab_file=vocab.txt",
        "holds other files",
        {f"text/{TEXT}": TEXT_LINES},
    ),
    (
        "extract-into-a-file",
        "extract --input=dump.xml --output=book.txt",
        r"extract: book\.txt: this directory cannot be made \(.*/book\.txt is a file\)",
        {},
    ),
    ("extract-into-its-dump", "extract --input=dump.xml --output=dump.xml", "dump.xml", {}),
    ("examples-into-a-file", f"examples --input={TEXT} --output=vocab.txt --vocab_file=vocab.txt", "vocab.txt", {}),
    ("build-into-a-file", "build build.yaml", "book.txt", build_into("book.txt")),
    ("build-over-its-dump", "build build.yaml", "dump.xml", build_into("dump.xml")),
]
MISTAKES = [Mistake(name, command, says, files=files) for name, command, says, files in ROWS]
