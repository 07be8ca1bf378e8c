"""Output that would replace an input, or what is no file."""

import os
from pathlib import Path

from mistakes.table import Mistake

CREATE = "create-pretraining-data --vocab_file=vocab.txt"
EXISTS = "part-00000-of-00001"


def link_to_text(path: Path) -> None:
    path.symlink_to(EXISTS)


def hard_link_to_text(path: Path) -> None:
    os.link(path.with_name(EXISTS), path)


MISTAKES = [
    Mistake(
        "create-over-its-text",
        f"{CREATE} --input_file={EXISTS} --output_file={EXISTS}",
        "this output is also the input",
    ),
    Mistake(
        "create-over-its-text-by-a-link",
        f"{CREATE} --input_file={EXISTS} --output_file=link",
        "this output is also the input",
        files={"link": link_to_text},
    ),
    Mistake(
        "create-over-its-text-by-a-hard-link",
        f"{CREATE} --input_file={EXISTS} --output_file=hard",
        "this output is also the input",
        files={"hard": hard_link_to_text},
    ),
    Mistake(
        "create-over-its-vocabulary",
        f"{CREATE} --input_file={EXISTS} --output_file=./vocab.txt",
        "this output is also the input",
    ),
    Mistake(
        "pick-over-its-records",
        (
            "pick-eval --input_tfrecord=examples.tfrecord --output_tfrecord=$PWD/../case/examples.tfrecord "
            "--num_examples_to_pick=1"
        ),
        "this output is also the input",
        shell=False,
        process=True,
    ),
    Mistake(
        "create-into-a-pipe", f"{CREATE} --input_file={EXISTS} --output_file=pipe", "pipe", files={"pipe": os.mkfifo}
    ),
    Mistake("create-into-a-device", f"{CREATE} --input_file={EXISTS} --output_file=/dev/full", "/dev/full"),
    Mistake(
        "create-into-a-directory",
        f"{CREATE} --input_file={EXISTS} --output_file=folder",
        "folder",
        files={"folder/x": b""},
    ),
    Mistake(
        "create-over-a-text-of-a-glob",
        f"{CREATE} --input_file='part-*' --output_file=./{EXISTS}",
        "this output is also the input",
    ),
    Mistake(
        "create-over-the-second-of-two-texts",
        f"{CREATE} --input_file=book.txt,{EXISTS} --output_file={EXISTS}",
        "this output is also the input",
    ),
    Mistake(
        "create-an-index-over-its-text",
        f"{CREATE} --input_file=records.idx --output_file=records",
        "this output is also the input",
        files={"records.idx": b"A sentence.\nAnother one.\n"},
    ),
    Mistake(
        "pick-over-its-records-by-a-link",
        "pick-eval --input_tfrecord=examples.tfrecord --output_tfrecord=link --num_examples_to_pick=1",
        "this output is also the input",
        files={"link": lambda path: path.symlink_to("examples.tfrecord")},
    ),
    Mistake(
        "pick-over-its-records-by-a-glob",
        "pick-eval --input_tfrecord='*.tfrecord' --output_tfrecord=examples.tfrecord --num_examples_to_pick=1",
        "this output is also the input",
    ),
    Mistake(
        "pick-into-a-pipe",
        "pick-eval --input_tfrecord=examples.tfrecord --output_tfrecord=pipe --num_examples_to_pick=1",
        "FIFO",
        files={"pipe": os.mkfifo},
    ),
    Mistake(
        "index-over-its-records", "index examples.tfrecord --output=examples.tfrecord", "this output is also the input"
    ),
    Mistake("index-into-a-pipe", "index examples.tfrecord --output=pipe", "FIFO", files={"pipe": os.mkfifo}),
    Mistake(
        "extract-into-the-folder-of-its-dump",
        "extract --input='dumps/*.xml' --output=dumps",
        "holds other files",
        files={"dumps/a.xml": lambda path: path.write_bytes((path.parent.parent / "dump.xml").read_bytes())},
    ),
    Mistake(
        "examples-into-the-folder-of-their-text",
        "examples --input='text/*' --output=text --vocab_file=vocab.txt",
        "holds other files",
        files={f"text/{EXISTS}": b"A sentence.\nAnother one.\n"},
    ),
    Mistake(
        "extract-into-a-file",
        "extract --input=dump.xml --output=book.txt",
        r"extract: book\.txt: this directory cannot be made \(.*/book\.txt is a file\)",
    ),
    Mistake("extract-into-its-dump", "extract --input=dump.xml --output=dump.xml", "dump.xml"),
    Mistake(
        "examples-into-a-file", f"examples --input={EXISTS} --output=vocab.txt --vocab_file=vocab.txt", "vocab.txt"
    ),
    Mistake(
        "build-into-a-file",
        "build build.yaml",
        "book.txt",
        files={
            "build.yaml": b"output: book.txt\nextract: {input: dump.xml}\nexamples: {vocab_file: vocab.txt}\n",
        },
    ),
    Mistake(
        "build-over-its-dump",
        "build build.yaml",
        "dump.xml",
        files={
            "build.yaml": b"output: dump.xml\nextract: {input: dump.xml}\nexamples: {vocab_file: vocab.txt}\n",
        },
    ),
]
