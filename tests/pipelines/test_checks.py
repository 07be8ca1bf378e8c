"""What is wrong with options, paths and vocabularies is said before anything is done, and before Beam is imported."""

import subprocess
import sys
from pathlib import Path

import pytest
from command_runs.commands import VOCAB
from conftest import ROOT
from made_up import dump_files

PROGRAM = """
import sys
from pipelines.commands import cli
code = cli.main(sys.argv[1:])
loaded = {"apache_beam", "tensorflow"} & set(sys.modules)
sys.exit(f"imported: {loaded}" if loaded else code)
"""

EXTRACT = "extract --input dump.xml --output out"
EXAMPLES = "examples --input text.txt --output out --vocab_file vocab.txt"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "dump.xml").write_bytes(dump_files.dump([dump_files.page(1, "Apple", "An apple is a fruit.")]))
    (tmp_path / "text.txt").write_text("One sentence.\n")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "cut.xml").write_bytes((tmp_path / "dump.xml").read_bytes()[:-20])
    (tmp_path / "pieces.txt").write_text("[CLS]\n[SEP]\n[UNK]\nan\n")
    (tmp_path / "vocab.txt").write_bytes(VOCAB.read_bytes())
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    (tmp_path / "b.yaml").write_text("output: out\nextract:\n  input: dump.xml\nexamples:\n  vocab_file: vocab.txt\n")
    return tmp_path


REFUSALS = [
    (f"{EXTRACT} --shard_size_mb 0", "--shard_size_mb must be positive"),
    (f"{EXTRACT} --keep_titel", "did you mean --keep_titles"),
    (f"{EXTRACT} --runner Nobody", "--runner must be one of"),
    (f"{EXTRACT} --language klingon", "--language=klingon"),
    ("extract --input text.txt --output out --drop_stubs", "--drop_stubs needs the templates of a dump"),
    ("extract --input none.xml --output out", "none.xml: this input does not exist"),
    ("extract --input empty.txt --output out", "empty.txt: this input is empty"),
    ("extract --input cut.xml --output out", "cut.xml"),
    ("extract --input dump.xml --output full", "this directory holds other files (thesis.tex"),
    ("examples --input none --output out --vocab_file vocab.txt", "none: this input does not exist"),
    ("examples --input text.txt --output out --vocab_file none.txt", "none.txt: this input does not exist"),
    ("examples --input text.txt --output out --vocab_file pieces.txt", "[MASK] is missing from this vocabulary"),
    ("examples --input text.txt --output full --vocab_file vocab.txt", "this directory holds other files"),
    (f"{EXAMPLES} --dupe_factor 0", "dupe_factor 0"),
    ("build b.yaml --examples.vocab_file pieces.txt", "[MASK] is missing from this vocabulary"),
    ("build b.yaml --extract.input none.xml", "none.xml: this input does not exist"),
    ("build b.yaml --eval.num_examples_to_pick -5", "--num_examples_to_pick must be 1 or more, not -5"),
    ("build b.yaml --train.train_batch_size 0", "--train_batch_size is 0"),
    ("build b.yaml --train.learning_rate fast", "--train.learning_rate must be a number"),
    ("train --output_dir out --input_file x --train_batch_size 0", "--train_batch_size is 0"),
    ("pick-eval --input_tfrecord none --output_tfrecord out", "none: this input does not exist"),
    ("create-pretraining-data --input_file none --output_file out --vocab_file vocab.txt", "none: this input"),
]


@pytest.mark.parametrize(
    ("command", "sentence"),
    [pytest.param(*row, marks=pytest.mark.builds if number % 7 else ()) for number, row in enumerate(REFUSALS)],
)
def test_a_refusal_imports_no_beam_and_leaves_nothing(command: str, sentence: str, folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{PROGRAM}"
    done = subprocess.run(
        [sys.executable, "-c", program, *command.split()], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert sentence in line
    assert sorted(folder.rglob("*")) == before
