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
        name="create-over-its-text",
        command=f"{CREATE} --input_file={EXISTS} --output_file={EXISTS}",
        says="this output is also the input",
    ),
    Mistake(
        name="create-over-its-text-by-a-link",
        command=f"{CREATE} --input_file={EXISTS} --output_file=link",
        files={"link": link_to_text},
        says="this output is also the input",
    ),
    Mistake(
        name="create-over-its-text-by-a-hard-link",
        command=f"{CREATE} --input_file={EXISTS} --output_file=hard",
        files={"hard": hard_link_to_text},
        says="this output is also the input",
    ),
    Mistake(
        name="create-over-its-vocabulary",
        command=f"{CREATE} --input_file={EXISTS} --output_file=./vocab.txt",
        says="this output is also the input",
    ),
    Mistake(
        name="pick-over-its-records",
        command="pick-eval --input_tfrecord=examples.tfrecord --output_tfrecord=$PWD/../case/examples.tfrecord "
        "--num_examples_to_pick=1",
        says="this output is also the input",
        shell=False,
        process=True,
    ),
    Mistake(
        name="create-into-a-pipe",
        command=f"{CREATE} --input_file={EXISTS} --output_file=pipe",
        files={"pipe": os.mkfifo},
        says="pipe",
    ),
    Mistake(
        name="create-into-a-device",
        command=f"{CREATE} --input_file={EXISTS} --output_file=/dev/full",
        says="/dev/full",
    ),
    Mistake(
        name="create-into-a-directory",
        command=f"{CREATE} --input_file={EXISTS} --output_file=folder",
        files={"folder/x": b""},
        says="folder",
    ),
    Mistake(
        name="create-over-a-text-of-a-glob",
        command=f"{CREATE} --input_file='part-*' --output_file=./{EXISTS}",
        says="this output is also the input",
    ),
    Mistake(
        name="create-over-the-second-of-two-texts",
        command=f"{CREATE} --input_file=book.txt,{EXISTS} --output_file={EXISTS}",
        says="this output is also the input",
    ),
    Mistake(
        name="create-an-index-over-its-text",
        command=f"{CREATE} --input_file=records.idx --output_file=records",
        files={"records.idx": b"A sentence.\nAnother one.\n"},
        says="this output is also the input",
    ),
    Mistake(
        name="pick-over-its-records-by-a-link",
        command="pick-eval --input_tfrecord=examples.tfrecord --output_tfrecord=link --num_examples_to_pick=1",
        files={"link": lambda path: path.symlink_to("examples.tfrecord")},
        says="this output is also the input",
    ),
    Mistake(
        name="pick-over-its-records-by-a-glob",
        command="pick-eval --input_tfrecord='*.tfrecord' --output_tfrecord=examples.tfrecord --num_examples_to_pick=1",
        says="this output is also the input",
    ),
    Mistake(
        name="pick-into-a-pipe",
        command="pick-eval --input_tfrecord=examples.tfrecord --output_tfrecord=pipe --num_examples_to_pick=1",
        files={"pipe": os.mkfifo},
        says="FIFO",
    ),
    Mistake(
        name="index-over-its-records",
        command="index examples.tfrecord --output=examples.tfrecord",
        says="this output is also the input",
    ),
    Mistake(
        name="index-into-a-pipe",
        command="index examples.tfrecord --output=pipe",
        files={"pipe": os.mkfifo},
        says="FIFO",
    ),
    Mistake(
        name="extract-into-the-folder-of-its-dump",
        command="extract --input='dumps/*.xml' --output=dumps",
        files={"dumps/a.xml": lambda path: path.write_bytes((path.parent.parent / "dump.xml").read_bytes())},
        says="holds other files",
    ),
    Mistake(
        name="examples-into-the-folder-of-their-text",
        command="examples --input='text/*' --output=text --vocab_file=vocab.txt",
        files={f"text/{EXISTS}": b"A sentence.\nAnother one.\n"},
        says="holds other files",
    ),
    Mistake(
        name="extract-into-a-file",
        command="extract --input=dump.xml --output=book.txt",
        says=r"extract: book\.txt: this directory cannot be made \(.*/book\.txt is a file\)",
    ),
    Mistake(
        name="extract-into-its-dump",
        command="extract --input=dump.xml --output=dump.xml",
        says="dump.xml",
    ),
    Mistake(
        name="examples-into-a-file",
        command=f"examples --input={EXISTS} --output=vocab.txt --vocab_file=vocab.txt",
        says="vocab.txt",
    ),
    Mistake(
        name="build-into-a-file",
        command="build build.yaml",
        files={
            "build.yaml": b"output: book.txt\nextract: {input: dump.xml}\nexamples: {vocab_file: vocab.txt}\n",
        },
        says="book.txt",
    ),
    Mistake(
        name="build-over-its-dump",
        command="build build.yaml",
        files={
            "build.yaml": b"output: dump.xml\nextract: {input: dump.xml}\nexamples: {vocab_file: vocab.txt}\n",
        },
        says="dump.xml",
    ),
]
