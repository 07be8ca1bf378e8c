"""What a row of the tables of mistakes is, and the small good inputs that each row finds in its folder."""

import bz2
import dataclasses
import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from command_runs.commands import VOCAB
from made_up import dump_files

from pipelines.commands import cli


@dataclasses.dataclass(frozen=True)
class Mistake:
    """A command with a mistake in it, and what must come of it.

    Attributes:
      name: unique among all tables, in kebab-case.
      command: what follows `maskmill`, quoted as for a shell; it runs in a folder that holds the good inputs.
      says: a regular expression that the one sentence matches.
      code: the exit code. 2 is a command or an input that is unusable, 1 a run that failed, 0 a run that warns.
      files: more files of the folder: the content, or a function that makes the file at the path.
      leaves: names in the folder that may be new or changed; a directory stands for all that is below it.
      process: run it as a process of its own.
      shell: `command` is a line for bash, in which `maskmill` is the command; it also runs as a process.
    """

    name: str
    command: str
    says: str
    _: dataclasses.KW_ONLY
    code: int = 2
    files: Mapping[str, bytes | Callable[[Path], object]] = dataclasses.field(default_factory=dict)
    leaves: tuple[str, ...] = ()
    process: bool = False
    shell: bool = False


def each_flag_once(command: str) -> str:
    """A command line with only the last of each flag: a list may not be given twice."""
    parts = re.split(r" (?=--)", command)
    names = [re.split("[= ]", part)[0] for part in parts]
    return " ".join(part for place, part in enumerate(parts) if names[place] not in names[place + 1 :])


_ARTICLES = {
    "Apple": "An '''apple''' is a round fruit. It grows on trees in many countries.\n\nPeople eat it raw or cooked.",
    "Pear": "A '''pear''' is a sweet fruit. It is longer than an apple.\n\nIts tree blooms in spring.",
    "Plum": "The '''plum''' is a stone fruit. Dried plums are called prunes.\n\nMany are made into jam.",
    "Quince": "The '''quince''' is hard and sour. It is cooked before it is eaten.\n\nIt keeps through the winter.",
}
_SENTENCES = [
    sentence for text in _ARTICLES.values() for sentence in text.replace("'''", "").replace("\n\n", " ").split(". ")
]
_BUILD = """output: build
extract:
  input: dump.xml
  num_eval_articles: 1
examples:
  vocab_file: vocab.txt
  max_seq_length: 32
  max_predictions_per_seq: 5
eval:
  num_examples_to_pick: 2
"""


def make_good_inputs(folder: Path) -> None:
    """Writes one small good input of each kind into a folder.

    dump.xml, dump.xml.bz2, articles.jsonl, articles.parquet, book.txt, part-00000-of-00001 (a text shard), vocab.txt,
    examples.tfrecord, demo.yaml (a build of dump.xml).
    """
    dump = dump_files.dump([dump_files.page(k, *article) for k, article in enumerate(_ARTICLES.items(), 1)])
    (folder / "dump.xml").write_bytes(dump)
    (folder / "dump.xml.bz2").write_bytes(bz2.compress(dump))
    rows = [{"id": str(k), "title": title, "text": text} for k, (title, text) in enumerate(_ARTICLES.items(), 1)]
    (folder / "articles.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), folder / "articles.parquet")
    (folder / "book.txt").write_text("\n\n".join(_ARTICLES.values()).replace("'''", "") + "\n")
    (folder / "part-00000-of-00001").write_text("\n".join(_SENTENCES[:6]) + "\n\n" + "\n".join(_SENTENCES[6:]) + "\n")
    shutil.copyfile(VOCAB, folder / "vocab.txt")
    (folder / "demo.yaml").write_text(_BUILD)
    made = cli.main(
        [
            "create-pretraining-data",
            f"--input_file={folder}/part-00000-of-00001",
            f"--output_file={folder}/examples.tfrecord",
            f"--vocab_file={folder}/vocab.txt",
            "--max_seq_length=32",
            "--max_predictions_per_seq=5",
        ]
    )
    assert made == 0
