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
]
