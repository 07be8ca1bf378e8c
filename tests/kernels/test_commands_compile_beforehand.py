"""A command runs only kernels that it compiles before it starts: nobody waits twice, and no worker compiles."""

import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from command_runs.commands import DUMP, VOCAB
from conftest import ROOT
from made_up.trained_tokenizers import trained

pytestmark = [pytest.mark.builds, pytest.mark.long]

# Imports what commands import, and runs each command that it is told of in a fork of itself, so that none finds what
# another has loaded. It notes what a command had compiled beforehand, or would have, and which machine code it looked
# for. All of it is compiled already, so that this takes no time.
PROGRAM = """
import contextlib, json, os, sys, traceback
import maskmill
from maskmill import compilation
from maskmill.kernels import cache, compiler
from pipelines.commands import cli
import pipelines.building.build, pipelines.commands.estimate, pipelines.commands.inspect, pipelines.running.runner
import pipelines.releasing.watch, pipelines.verifying.verify_graph, maskmill.example_shards.example_shards

def run(arguments):
    prepared = set()
    real = compiler.prepare

    def prepare(only=None, progress=None):
        prepared.update(compiler.chosen_modules(only))
        return real(only, progress)

    compiler.prepare = prepare
    if arguments[0] == "open":
        batches = maskmill.open(arguments[1], batch_size=4)
        next(iter(batches))
        batches.close()
        code = 0
    else:
        code = cli.main(arguments)
    used = {name for name in cache._used if name.startswith("maskmill.")}
    compiled = sorted(prepared)
    compilation.begin()  # what it would have compiled, if a check had run a kernel
    ready = {name for module in prepared for name in cache.ready_files(module)}
    return {"code": code, "compiled": compiled, "missing": sorted(used - ready)}

if cache._used:
    sys.exit("what commands import runs kernels")
for line in sys.stdin:
    folder, printed, *arguments = json.loads(line)
    child = os.fork()
    if child == 0:
        with open(printed, "wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        os.chdir(folder)
        try:
            with open("kernels.json", "w") as report:
                json.dump(run(arguments), report)
            sys.stdout.flush()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@functools.cache
def runner() -> subprocess.Popen[str]:
    """The process that runs commands; it ends with this one, which closes what it reads."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def run(folder: Path, *arguments: object) -> list[str]:
    """Runs a command in `folder`; fails where it runs a kernel that was not compiled beforehand.

    Returns the modules that it compiled, or found compiled.
    """
    words = [str(argument) for argument in arguments]
    printed = folder / "printed.txt"
    process = runner()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps([str(folder), str(printed), *words]) + "\n")
    process.stdin.flush()
    assert process.stdout.readline() == "0\n", printed.read_text()
    found = json.loads((folder / "kernels.json").read_text())
    # verify may find something in data as odd as this.
    assert found["code"] == 0 or words[0] == "verify", printed.read_text()
    assert not found["missing"], words
    compiled: list[str] = found["compiled"]
    return compiled


IN_MEMORY = ("--workers=1",)
SMALL = ("--max_seq_length=64", "--max_predictions_per_seq=10", "--dupe_factor=2")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with plain text, a tokenizer, and text shards and examples of the text."""
    folder = tmp_path_factory.mktemp("data")
    long = "A first sentence is here, and it has more than thirteen words in a row, as it must."
    text = f"{long} And a second one.\n\nAnother document begins. Its end is near.\n\n" * 40
    (folder / "plain.txt").write_text(text)
    lines = [json.dumps({"text": part}) for part in text.split("\n\n") if part]
    (folder / "lines.jsonl").write_text("\n".join(lines))
    (folder / "tokenizer.json").write_text(trained("bpe"))
    run(folder, "extract", "--input=plain.txt", "--output=text", "--num_eval_articles=2", *IN_MEMORY)
    run(folder, "examples", "--input=text", "--output=examples", f"--vocab_file={VOCAB}", *SMALL, *IN_MEMORY)
    return folder


EXTRACTIONS: Sequence[tuple[object, ...]] = (
    (f"--input={DUMP}",),
    (f"--input={DUMP}", "--compat=mlperf", "--num_eval_articles=7", "--dump_date=20170101"),
    (f"--input={DUMP}", "--extractor=wikiextractor"),
    (f"--input={DUMP}", "--expand_templates", "--report_templates=true"),
    ("--input=lines.jsonl",),
    ("--input=lines.jsonl", "--drop_duplicates", "--near_duplicate_threshold=0.7"),
)


@pytest.mark.parametrize("flags", EXTRACTIONS, ids=lambda flags: " ".join(map(str, flags[1:])) or Path(flags[0]).name)
def test_extract(flags: tuple[object, ...], data: Path, tmp_path: Path) -> None:
    run(data, "extract", *flags, f"--output={tmp_path}/out", *IN_MEMORY)


OURS, PAIRS = f"--vocab_file={VOCAB}", "--tokenizer_file=tokenizer.json"
EXAMPLES: Sequence[tuple[str, ...]] = (
    (OURS, "--compat=google", "--dupe_factor=2"),
    (OURS, "--packed", "--dupe_factor=2"),
    (OURS, "--objective=mlm", "--bins=2", "--dupe_factor=2"),
    (OURS, "--objective=sop", "--mask_unit=whole_word", "--dupe_factor=2", "--format=mds"),
    (PAIRS, "--objective=mlm", "--pack", "--mask_unit=span", "--format=mds", "--dupe_factor=2"),
    (PAIRS, "--objective=blocks", "--format=parquet", "--dynamic_masking"),
)


@pytest.mark.parametrize("flags", EXAMPLES, ids=" ".join)
def test_examples_and_what_reads_them(flags: tuple[str, ...], data: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    run(data, "examples", "--input=text/part-*", f"--output={output}", "--max_seq_length=64", *flags, *IN_MEMORY)
    run(data, "verify", output, "--remake=1")
    run(data, "inspect", output, "--example=1")
    run(data, "open", output)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_vocabulary(kind: str, data: Path, tmp_path: Path) -> None:
    run(data, "vocabulary", "--input=text/part-*", f"--output={tmp_path}/v", f"--kind={kind}", "--size=512", *IN_MEMORY)
    run(data, "inspect", f"{tmp_path}/v/{'vocab.txt' if kind == 'wordpiece' else 'tokenizer.json'}")


def test_commands_of_single_files(data: Path, tmp_path: Path) -> None:
    made = f"{tmp_path}/made.tfrecord"
    part = "text/part-00000-of-00001"
    run(
        data,
        "create-pretraining-data",
        f"--input_file={part}",
        f"--output_file={made}",
        f"--vocab_file={VOCAB}",
        *SMALL,
    )
    run(data, "index", made, f"--output={tmp_path}/made.idx")
    run(data, "verify", made, f"--vocab_file={VOCAB}")
    run(
        data,
        "pick-eval",
        f"--input_tfrecord={made}",
        f"--output_tfrecord={tmp_path}/picked",
        "--num_examples_to_pick=4",
    )
    run(data, "inspect", made, f"--vocab_file={VOCAB}", "--example=random")
    run(data, "inspect", "text")
    run(data, "verify", "text")


def test_builds_and_what_looks_at_them(data: Path, tmp_path: Path) -> None:
    (tmp_path / "build.yaml").write_text(
        f"output: {tmp_path}/build\n"
        f"extract:\n  input: {DUMP}\n  num_eval_articles: 4\n  max_documents: 30\n"
        f"examples:\n  vocab_file: {VOCAB}\n  max_seq_length: 64\n  max_predictions_per_seq: 10\n  dupe_factor: 2\n"
        "eval:\n  num_examples_to_pick: 20\n"
    )
    run(data, "estimate", tmp_path / "build.yaml")
    compiled = run(data, "warm-up", tmp_path / "build.yaml")
    assert run(data, "build", tmp_path / "build.yaml", *IN_MEMORY) == compiled
    run(data, "verify", tmp_path / "build")
    run(data, "lineage", tmp_path / "build")
    run(data, "inspect", tmp_path / "build")
    run(data, "inspect", tmp_path / "build", "--example=search", "the")
    run(data, "inspect", tmp_path / "build", f"--html={tmp_path}/report.html")
    run(data, "build", tmp_path / "build.yaml", "--release", f"--output={tmp_path}/releases", *IN_MEMORY)


def test_watch(data: Path, tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    folder = mirror / "other/mediawiki_content_current/enwiki/2026-03-01/xml/bzip2"
    folder.mkdir(parents=True)
    dump = shutil.copy(DUMP, folder / "enwiki-2026-03-01-p1p9.xml.bz2")
    (folder / "SHA256SUMS").write_text(f"{hashlib.sha256(dump.read_bytes()).hexdigest()}  {dump.name}\n")
    (folder / "_SUCCESS").touch()
    (tmp_path / "watch.yaml").write_text(
        f"output: {tmp_path}/watched\n"
        f"watch:\n  source: {mirror}\n  wiki: enwiki\n"
        "extract:\n  num_eval_articles: 4\n  max_documents: 30\n"
        f"examples:\n  vocab_file: {VOCAB}\n  max_seq_length: 64\n  max_predictions_per_seq: 10\n  dupe_factor: 1\n"
    )
    run(data, "watch", tmp_path / "watch.yaml", *IN_MEMORY)
