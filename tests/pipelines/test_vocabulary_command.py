"""`maskmill vocabulary`, and builds that make their vocabulary: whole commands."""

import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from command_runs.commands import IN_MEMORY, ROOT, TWO_PROCESSES, VOCAB, digests, leftovers

from pipelines.building import next_step
from pipelines.commands import cli
from pipelines.settings.options import make
from pipelines.settings.stage_options import VocabularyStageOptions
from pipelines.stages.vocabulary_stage import VocabularyStage

pytestmark = pytest.mark.long

KINDS = {"wordpiece": ("--kind=wordpiece", "--size=2048"), "bpe": ("--kind=bpe", "--size=1024")}


@pytest.fixture(scope="module")
def texts(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with text shards of real articles, some of them held out."""
    folder = tmp_path_factory.mktemp("texts")
    for packed in (data / "gold" / "cleanup").glob("*.gz"):
        (folder / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    return folder


def arguments(texts: object, output: Path, *flags: str) -> list[str]:
    """A command line that makes a vocabulary."""
    return ["vocabulary", f"--input={texts}", f"--output={output}", *flags]


def vocabulary(texts: object, output: Path, *flags: str) -> int:
    """Makes a vocabulary in this process; returns the exit code."""
    return cli.main(arguments(texts, output, *flags, *IN_MEMORY))


@pytest.fixture(scope="module", params=KINDS)
def made(request: pytest.FixtureRequest, texts: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A kind, and the directory of a vocabulary of that kind, which tests only read."""
    output = tmp_path_factory.mktemp(request.param) / "out"
    assert vocabulary(f"{texts}/*", output, *KINDS[request.param]) == 0
    return request.param, output


@pytest.mark.builds
def test_the_manifest_describes_files_inputs_and_counts(made: tuple[str, Path], texts: Path) -> None:
    kind, output = made
    manifest = json.loads((output / "manifest.json").read_text())
    names = {"wordpiece": {"vocab.txt", "tokenizer.json"}, "bpe": {"tokenizer.json", "vocab.json", "merges.txt"}}[kind]
    assert {entry["name"] for entry in manifest["shards"]} == names | {"report.json", "report.md"}
    assert set(digests(output)) == names | {"report.json", "report.md", "manifest.json"}
    for entry in manifest["shards"]:
        content = (output / entry["name"]).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (entry["bytes"], entry["sha256"])
    assert {Path(entry["path"]).name for entry in manifest["inputs"]} == {path.name for path in texts.iterdir()}
    counts = manifest["counts"]
    assert counts["text"]["shards"] == 2
    assert counts["vocabulary"]["pieces"] == {"wordpiece": 2048, "bpe": 1024}[kind]
    assert counts["vocabulary"]["words"] == counts["text"]["words"]
    assert manifest["decided"]["special_tokens"]
    assert "model_dir" not in manifest["parameters"]
    assert leftovers(output) == []


@pytest.mark.builds
@pytest.mark.parametrize("made", ["wordpiece"], indirect=True)
def test_two_processes_that_are_killed_and_run_again_give_the_same_files(
    made: tuple[str, Path], texts: Path, tmp_path: Path
) -> None:
    kind, expected = made
    output = tmp_path / "out"
    command = [sys.executable, "-m", "maskmill", *arguments(f"{texts}/*", output, *KINDS[kind]), *TWO_PROCESSES]
    killed = subprocess.Popen(command, cwd=ROOT, start_new_session=True, stderr=subprocess.DEVNULL)
    while killed.poll() is None and not list(output.rglob(".maskmill/word_counts/*.json")):
        time.sleep(0.01)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert digests(output) == digests(expected)
    assert leftovers(output) == []


def test_a_second_run_makes_again_only_what_is_damaged(
    texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    assert vocabulary(f"{texts}/*", output, *KINDS["wordpiece"]) == 0
    before = digests(output)
    (output / "vocab.txt").write_text("[MASK]\n")
    (output / "report.md").unlink()
    capsys.readouterr()
    assert vocabulary(f"{texts}/*", output, *KINDS["wordpiece"]) == 0
    said = capsys.readouterr().out
    assert "reused     2 counted shards, 1 merged table\n" in said
    assert "made again vocabulary: the content of vocab.txt had changed\n" in said
    assert "made again report.json: report.md was gone\n" in said
    assert digests(output) == before


@pytest.mark.builds
def test_what_is_only_added_may_change(texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output, model = tmp_path / "out", tmp_path / "model"
    assert vocabulary(f"{texts}/*", output, *KINDS["wordpiece"]) == 0
    before = digests(output)
    assert vocabulary(f"{texts}/*", output, *KINDS["wordpiece"], f"--compare={VOCAB}", f"--model_dir={model}") == 0
    assert str(VOCAB) in (output / "report.md").read_text()
    assert "made       1 report\n" in capsys.readouterr().out
    assert digests(output)["vocab.txt"] == before["vocab.txt"]
    assert {"config.json", "tokenizer_config.json", "vocab.txt"} <= {path.name for path in model.iterdir()}
    assert (model / "vocab.txt").read_bytes() == (output / "vocab.txt").read_bytes()
    # The same again is fine; another's file is not written over.
    assert vocabulary(f"{texts}/*", output, *KINDS["wordpiece"], f"--model_dir={model}") == 0
    (model / "config.json").write_text("{}")
    capsys.readouterr()
    assert vocabulary(f"{texts}/*", output, *KINDS["wordpiece"], f"--model_dir={model}") == 2
    assert "no run into" in capsys.readouterr().err


# ---- refused


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--size=3",), "--size"),
        (("--kind=bpe", "--size=260"), "--size"),
        (("--kind=bpe", "--do_lower_case"), "--do_lower_case"),
        (("--kind=bpe", "--limit_alphabet=100"), "--limit_alphabet"),
        (("--add_prefix_space",), "--add_prefix_space"),
        (("--special_tokens=[PAD],[UNK],[CLS],[SEP],[MASK],[MASK]",), "[MASK]"),
        (("--special_tokens=[PAD],[UNK],[CLS],[SEP]",), "[MASK]"),
        (("--kind=sentencepiece",), "one of wordpiece, bpe"),
        (("--input=/no/such/text",), "/no/such/text"),
        ((f"--input={VOCAB.parent}/dump/*",), "not like a text shard"),
        (("--compare=/no/such/vocab.txt",), "/no/such/vocab.txt"),
        ((f"--compare={ROOT}/setup.py",), "setup.py"),
    ],
    ids=lambda value: None if isinstance(value, str) else value[-1],
)
def test_what_cannot_be_meant_is_refused_before_any_work(
    flags: tuple[str, ...], message: str, texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [f"--input={texts}/part-*"] if not flags[0].startswith("--input") else []
    assert cli.main(["vocabulary", *given, f"--output={tmp_path}/out", *flags, *IN_MEMORY]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.builds
@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [
        ("", (), "no text"),
        ("\n\n", (), "no word"),
        ("word\n", (), "word"),
        ("word\n", ("--kind=bpe",), "word"),
        ("The quick brown fox jumps over the lazy dog.\n" * 9, ("--size=16",), "alphabet"),
    ],
    ids=["empty", "blank", "one word", "one word of bpe", "alphabet"],
)
def test_texts_of_which_no_vocabulary_can_be_made_are_refused(
    text: str, flags: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.txt").write_text(text)
    assert vocabulary(tmp_path / "text.txt", tmp_path / "out", *flags) == 2
    sentences = [line for line in capsys.readouterr().err.splitlines() if line.startswith("maskmill vocabulary: ")]
    assert message in sentences[-1]
    assert "Traceback" not in sentences[-1]
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("values", "follows"),
    [
        ({}, "--vocab_file=o/vocab.txt"),
        ({"do_lower_case": False}, "--vocab_file=o/vocab.txt --do_lower_case=False"),
        ({"kind": "bpe"}, "--tokenizer_file=o/tokenizer.json"),
    ],
    ids=["uncased", "cased", "bpe"],
)
def test_the_next_command_takes_the_vocabulary(values: dict[str, object], follows: str) -> None:
    options = make(VocabularyStageOptions, {"input": ("text",), "output": "o", **values})
    command = f"maskmill examples --input=text --output=DIRECTORY {follows}"
    assert next_step.of({VocabularyStage: options}, {}) == command


def test_held_out_text_alone_is_refused(texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert vocabulary(texts / "eval.txt", tmp_path / "out") == 2
    assert "held out (eval.txt)" in capsys.readouterr().err


def test_a_size_that_is_no_multiple_of_64_gets_a_note(
    texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert vocabulary(f"{texts}/part-00000*", tmp_path / "out", "--size=1000") == 0
    assert "--size 1,000 is not a multiple of 64, and models train faster with one: 1,024." in capsys.readouterr().err
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["text"]["kind"] == "train", "nothing is held out"


# ---- builds


def build(folder: Path, texts: Path, kind: str, **sections: dict[str, object]) -> Path:
    """Writes the file of a build that makes its vocabulary from text that exists."""
    content = {
        "output": str(folder / "out"),
        "report": "off",
        "extract": {"from": [f"{texts}/*"]},
        "vocabulary": {"kind": kind, "size": {"wordpiece": 2048, "bpe": 1024}[kind]},
        "examples": {"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 1},
        "eval": {"num_examples_to_pick": 20},
    }
    path = folder / "build.yaml"
    path.write_text(yaml.safe_dump(content | sections))
    return path


@pytest.mark.builds
def test_a_build_makes_its_vocabulary_and_uses_it(
    made: tuple[str, Path], texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kind, alone = made
    assert cli.main(["build", str(build(tmp_path, texts, kind)), *IN_MEMORY]) == 0
    said = capsys.readouterr().out
    assert [line for line in said.splitlines() if not line.startswith(" ")][:3] == [
        f"{name}: {tmp_path}/out/{name}" for name in ("vocabulary", "examples", "eval")
    ]
    output = tmp_path / "out"
    name, option = {"wordpiece": ("vocab.txt", "vocab_file"), "bpe": ("tokenizer.json", "tokenizer_file")}[kind]
    assert (output / "vocabulary" / name).read_bytes() == (alone / name).read_bytes()
    examples = json.loads((output / "examples" / "manifest.json").read_text())
    assert examples["parameters"][option] == f"{output}/vocabulary/{name}"
    assert examples["parameters"][f"{option}_sha256"] == digests(alone)[name]
    assert examples["counts"]["train"]["examples"] > 0
    assert leftovers(output) == []
    # Again, nothing is made.
    before = digests(output)
    assert cli.main(["build", str(tmp_path / "build.yaml"), *IN_MEMORY]) == 0
    assert capsys.readouterr().out.count("made       nothing\n") == 2
    assert digests(output) == before


@pytest.mark.builds
def test_with_other_text_a_build_makes_vocabulary_and_examples_again(texts: Path, tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    for path in texts.glob("part-*"):
        (folder / path.name).write_bytes(path.read_bytes()[:200_000])
    config = build(tmp_path, folder, "wordpiece")
    assert cli.main(["build", str(config), *IN_MEMORY]) == 0
    before = digests(tmp_path / "out")
    (folder / "part-00000-of-00500").write_text("Other words, of another text. They come again and again.\n" * 500)
    assert cli.main(["build", str(config), *IN_MEMORY]) == 0
    after = digests(tmp_path / "out")
    assert {name for name in before if before[name] != after[name]} >= {
        "vocabulary/vocab.txt", "examples/part-00001-of-00500.tfrecord",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"examples": {"vocab_file": "v"}}, "examples.vocab_file: a build decides this itself; leave it out"),
        ({"compat": "mlperf"}, "compat mlperf reproduces data of a vocabulary that exists"),
        ({"vocabulary": {"size": 2}}, "--size 2"),
    ],
    ids=["vocab_file", "compat", "size"],
)
def test_sections_that_do_not_go_together_are_refused(
    changes: dict[str, object], message: str, texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = build(tmp_path, texts, "wordpiece")
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | changes))
    assert cli.main(["build", str(path), *IN_MEMORY]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_the_examples_cannot_use_is_said_before_the_vocabulary_is_made(
    texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out" / "examples").mkdir(parents=True)
    (tmp_path / "out" / "examples" / "thesis.txt").write_text("mine\n")
    assert cli.main(["build", str(build(tmp_path, texts, "wordpiece")), *IN_MEMORY]) == 2
    assert "thesis.txt" in capsys.readouterr().err
    assert not (tmp_path / "out" / "vocabulary").exists()
