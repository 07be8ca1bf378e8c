"""`maskmill.build` and the functions beside it: they do what the commands do, and say it as Python does."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_runs.commands import DUMP, VOCAB, digests, leftovers
from conftest import ROOT

import maskmill
from maskmill.results import BuildResult
from pipelines.commands import cli

PROGRAMS = ("build", "create_pretraining_data", "examples", "extract", "vocabulary")
TEXT = "The first sentence of it.\nThe second one is here.\n\nAnother document begins.\nIts end has come.\n\n" * 20
EXTRACT = {"input": "text.txt", "input_format": "text", "num_eval_articles": 2}
CONFIG = {"output": "out", "extract": EXTRACT, "examples": {"vocab_file": "vocab.txt", "dupe_factor": 2}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a text and a vocabulary."""
    (tmp_path / "text.txt").write_text(TEXT)
    (tmp_path / "vocab.txt").write_bytes(VOCAB.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def of_command(name: str, options: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, str], str]:
    """The files that a command writes into `out`, which is moved away, and what it prints."""
    capsys.readouterr()
    assert cli.main([name, *(f"--{option}={value}" for option, value in options.items())]) == 0
    found = digests(Path("out"))
    Path("out").rename(f"of-{name}")
    return found, capsys.readouterr().out


def test_stages_give_the_bytes_and_the_summary_of_their_commands(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written, printed = of_command("extract", EXTRACT | {"output": "out"}, capsys)
    made = maskmill.extract(**EXTRACT, output=Path("out"))
    assert capsys.readouterr() == ("", "")
    assert digests(folder / "out") == written
    assert printed.startswith(f"{made}\n")
    assert (made.stage, made.directory, made.files[-1]) == ("extract", "out", "out/eval.txt")
    assert made.counts["eval"]["documents"] == 2

    (folder / "out").rename("text")
    options = {"input": "text", "output": "out", "vocab_file": "vocab.txt", "dupe_factor": 2}
    written, printed = of_command("examples", options, capsys)
    made = maskmill.examples(**options | {"input": ["text"]}, workers=2)
    assert digests(folder / "out") == written
    assert printed.startswith(f"{made}\n")
    assert {Path(path).suffix for path in made.files} == {".tfrecord"}

    (folder / "out").rename("examples")
    options = {"input": "text", "output": "out", "size": 128}
    written, printed = of_command("vocabulary", options, capsys)
    made = maskmill.vocabulary(**options)
    assert digests(folder / "out") == written
    assert "out/vocab.txt" in made.files


def test_create_pretraining_data_gives_the_bytes_and_the_summary_of_its_command(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"input_file": "text.txt", "output_file": "out/a,out/b", "vocab_file": "vocab.txt"}
    (folder / "out").mkdir()
    written, printed = of_command("create-pretraining-data", options, capsys)
    (folder / "out").mkdir()
    made = maskmill.create_pretraining_data(**options | {"output_file": ["out/a", Path("out/b")]})
    assert capsys.readouterr().out == ""
    assert digests(folder / "out") == written
    assert printed == f"{made}\n"
    assert made.files == ("out/a", "out/b")
    assert made.counts["examples"]["documents"] == 40


def test_a_build_gives_the_bytes_and_the_summary_of_its_command(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "build.yaml").write_text(json.dumps(CONFIG))
    assert cli.main(["build", "build.yaml", "--workers=2"]) == 0
    printed = capsys.readouterr().out
    written = digests(folder / "out")
    (folder / "out").rename("of-command")
    made = maskmill.build(CONFIG)
    assert capsys.readouterr() == ("", "")
    assert digests(folder / "out") == written
    assert f"{made}\n" == printed
    assert made.report == "out/report.html"
    assert list(made.stages) == ["extract", "examples", "eval"]
    assert made.stages["eval"].files == ("out/eval/eval.tfrecord",)
    # A file, and keys and sections that count instead of its own.
    again = maskmill.build("build.yaml", output="other", report="off", examples={"dupe_factor": 1})
    assert (again.directory, again.report) == ("other", None)
    assert again.stages["examples"].counts["train"]["examples"] < made.stages["examples"].counts["train"]["examples"]


def test_what_is_finished_is_found_again(folder: Path) -> None:
    first = maskmill.extract(**EXTRACT, output="out")
    assert "reused" in maskmill.extract(**EXTRACT, output="out").summary
    assert "reused" not in first.summary


def test_progress_and_notices_are_shown_if_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    maskmill.extract(**EXTRACT, output="out", progress=True)
    shown = capsys.readouterr().err
    assert shown.startswith("extract: 1 file, 1.9 kB, into out\n")
    assert "extract 1/1" in shown


def test_warnings_are_logged(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    maskmill.extract(**EXTRACT | {"num_eval_articles": 0}, output="text")
    maskmill.vocabulary(input="text", output="out", size=100)
    assert "--size 100 is not a multiple of 64" in caplog.text
    assert {record.levelname for record in caplog.records} == {"WARNING"}


MISTAKES: list[tuple[Callable[[], object], str]] = [
    (lambda: maskmill.extract(input="text.txt", outptu="out"),
     "maskmill.extract: there is no option outptu; did you mean output?"),
    (lambda: maskmill.extract(input="text.txt"),
     "maskmill.extract: missing a required argument: 'output'; help(maskmill.extract) says what it takes."),
    (lambda: maskmill.extract(input="there is none", output="out"),
     "there is none: this input does not exist; check the path."),
    (lambda: maskmill.extract(input="text.txt", output=""),
     "maskmill.extract: output is empty; give a value, or leave it out."),
    (lambda: maskmill.extract(input="text.txt", output="out", workers=0), "--workers must be 1 or more, not 0."),
    (lambda: maskmill.extract(input="text.txt", output="out", beam={"rnner": "FlinkRunner"}),
     "--rnner: there is no such flag; did you mean --runner?"),
    (lambda: maskmill.extract(input="text.txt", output="out", beam={"project": "p"}),
     "--project has no use with LocalRunner; leave it out, or name another --runner."),
    (lambda: maskmill.examples(input="text.txt", output="out"),
     "--vocab_file is missing: name a WordPiece vocabulary, one piece a line; or give --tokenizer_file, the "
     "tokenizer.json of another tokenizer."),
    (lambda: maskmill.build("none.yaml"), "none.yaml: this input does not exist; check the path."),
    (lambda: maskmill.build(CONFIG, exmples={}), "maskmill.build: there is no option exmples; did you mean examples?"),
    (lambda: maskmill.build(CONFIG, examples={"dupe_fctor": 3}),
     "--examples.dupe_fctor: there is no such option; did you mean dupe_factor?"),
    (lambda: maskmill.build({**CONFIG, "exmples": {}}),
     "maskmill.build: there is no section 'exmples'; did you mean examples?"),
    (lambda: maskmill.build({**CONFIG, "examples": {"dupe_factor": "3"}}),
     "maskmill.build: examples.dupe_factor must be a whole number, not '3' (str)."),
]  # fmt: skip


@pytest.mark.parametrize(("call", "sentence"), MISTAKES, ids=[sentence[:60] for _, sentence in MISTAKES])
def test_a_mistake_is_one_sentence(call: Callable[[], object], sentence: str, folder: Path) -> None:
    with pytest.raises(maskmill.UnusableInputError) as raised:
        call()
    assert str(raised.value) == sentence
    assert not (folder / "out").exists()


def test_a_run_that_fails_raises_what_the_command_prints(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "text.txt").write_bytes(b"\xff\xfe\n")
    command = [f"--{name}={value}" for name, value in (EXTRACT | {"output": "out"}).items()]
    assert cli.main(["extract", *command]) == 2
    printed = capsys.readouterr().err.splitlines()[-1]
    with pytest.raises(maskmill.UnusableInputError) as raised:
        maskmill.extract(**EXTRACT, output="out")
    assert printed == f"maskmill extract: {raised.value}"


def test_a_build_whose_training_fails_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipelines.building import build

    for code, error in ((130, KeyboardInterrupt), (143, maskmill.RunFailedError)):
        monkeypatch.setattr(build, "build", lambda *_, code=code, **__: (code, {}))
        with pytest.raises(error):
            maskmill.build(CONFIG)


# ---- in processes of their own


def run(program: str, *arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


ALL_MODULES = """
import importlib, pkgutil, maskmill
for found in pkgutil.walk_packages(maskmill.__path__, "maskmill."):
    if not found.name.startswith(("maskmill.loaders.", "maskmill.vocabularies.transform_fn")):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
for name in maskmill.__all__:
    assert type(getattr(maskmill, name)).__name__ != "module", name
for name in "build create_pretraining_data examples extract vocabulary".split():
    try:
        getattr(maskmill, name)(wrong=1)
    except maskmill.UnusableInputError as error:
        print(error)
"""


@pytest.mark.long
def test_submodules_stand_before_no_function(folder: Path) -> None:
    done = run(ALL_MODULES, folder=folder)
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [f"maskmill.{name}" for name in PROGRAMS], (
        done.stderr
    )


def test_a_mistake_imports_neither_beam_nor_numpy(folder: Path) -> None:
    program = (
        "import sys, maskmill\n"
        "try: maskmill.extract(input='there is none', output='out')\n"
        "except maskmill.UnusableInputError: print(sorted({'apache_beam', 'numba', 'numpy'} & set(sys.modules)))"
    )
    done = run(program, folder=folder)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_somebody_else_s_package_of_the_same_name_is_named(folder: Path) -> None:
    (folder / "pipelines").mkdir()
    (folder / "pipelines" / "__init__.py").write_text("")
    done = run("import maskmill; maskmill.open; maskmill.build", folder=folder)
    assert done.returncode == 1
    assert "ImportError: Python finds another package named 'pipelines'" in done.stderr.splitlines()[-1]


# In IPython Beam imports its interactive runner, which fails with the pandas of the lock file.
IPYTHON = """
class Shell:
    execution_count, config = 1, {"IPKernelApp": {}}

def get_ipython():
    return Shell()
"""


def test_a_notebook_builds_as_a_script(folder: Path) -> None:
    (folder / "IPython.py").write_text(IPYTHON)
    options = EXTRACT | {"output": "out"}
    done = run(f"import maskmill; print(maskmill.extract(**{options}).stage)", folder=folder)
    assert (done.returncode, done.stdout) == (0, "extract\n"), done.stderr


# Threads that print, log, allocate and import, as a notebook has them, while workers are forked.
THREADED = """
import json, logging, sys, threading, time, maskmill
done = threading.Event()
def busy():
    while not done.is_set():
        logging.getLogger("other").warning("%s", [bytes(100) for _ in range(100)][:1])
        print("x" * 10, flush=True)
        json.dumps(list(range(1000)))
        time.sleep(0.001)
threads = [threading.Thread(target=busy) for _ in range(4)]
for thread in threads: thread.start()
try:
    for number in range(3):
        maskmill.extract(input=sys.argv[1], output=f"threaded-{number}", shard_size_mb=0.5, workers=2)
finally:
    done.set()
"""


@pytest.mark.long
def test_workers_are_forked_beside_other_threads(folder: Path) -> None:
    assert run(THREADED, DUMP, folder=folder).returncode == 0
    alone = maskmill.extract(input=DUMP, output="alone", shard_size_mb=0.5, workers=1)
    for number in range(3):
        assert digests(folder / f"threaded-{number}") == digests(Path(alone.directory or ""))


# Ctrl-C while two workers are at work: it is raised, the workers are gone, and the next call goes on.
INTERRUPTED = """
import multiprocessing, os, pathlib, signal, sys, threading, time, maskmill
signal.signal(signal.SIGINT, signal.default_int_handler)
def interrupt():
    while not multiprocessing.active_children():  # the second worker may be in the middle of its fork
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
options = dict(input=sys.argv[1], output="out", shard_size_mb=0.5, workers=2)
try:
    maskmill.extract(**options)
except KeyboardInterrupt:
    print("interrupted", len(multiprocessing.active_children()), pathlib.Path("out/manifest.json").exists())
maskmill.extract(**options)
"""


@pytest.mark.long
def test_ctrl_c_is_a_keyboard_interrupt_and_the_next_call_goes_on(folder: Path) -> None:
    done = run(INTERRUPTED, DUMP, folder=folder)
    assert (done.returncode, done.stdout) == (0, "interrupted 0 False\n"), done.stderr
    assert leftovers(folder) == []
    maskmill.extract(input=DUMP, output="whole", shard_size_mb=0.5, workers=1)
    assert digests(folder / "out") == digests(folder / "whole")


def test_results_are_small(folder: Path) -> None:
    made = BuildResult(directory="b", stages={}, report=None, summary="b: nothing")
    assert repr(made) == "b: nothing"
