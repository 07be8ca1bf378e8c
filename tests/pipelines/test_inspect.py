"""maskmill inspect: what it prints of every kind of path, for people, for programs and on a terminal."""

import hashlib
import json
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from data_sets.example_sets import setup_of, write_set
from data_sets.gold_examples import VOCABULARY
from servers import file_server

from maskmill.inspection.decoding import running_text
from maskmill.inspection.opened_examples import open_examples
from pipelines.commands import cli

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")

Run = Callable[..., str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command; returns what it prints, or with a code the one sentence of its failure."""

    def inspected(*arguments: object, code: int = 0) -> str:
        assert cli.main(["inspect", *map(str, arguments)]) == code
        printed = capsys.readouterr()
        if not code:
            return printed.out
        (sentence,) = printed.err.splitlines()
        return sentence.removeprefix("maskmill inspect: ")

    return inspected


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with text/, examples/ and eval/."""
    folder = tmp_path_factory.mktemp("data")
    write_set(folder, setup_of(), picked=3)
    return folder


def test_build_is_summarized_from_its_manifests(run: Run, data: Path) -> None:
    text = run(data)
    assert text.startswith(f"build: {data}\n")
    assert re.search(r"^  objective +nsp$", text, re.M)
    made = json.loads((data / "examples" / "manifest.json").read_text())
    summary = json.loads(run(data, "--format=json"))
    assert (summary["kind"], summary["path"]) == ("build", str(data))
    splits = {row[""]: row for row in summary["examples: splits"]}
    for split in ("train", "eval"):
        assert splits["examples"][split] == made["counts"][split]["examples"]
        assert splits["size"][split] == made["counts"][split]["bytes"]
    assert splits["padding"]["train"] == pytest.approx(
        made["counts"]["train"]["padding_tokens"] / (32 * made["counts"]["train"]["examples"])
    )


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("examples", "examples"),
        ("examples/part-00001-of-00002.tfrecord", "examples"),
        ("eval", "picked eval examples"),
        ("eval/manifest.json", "manifest of eval"),
        ("examples/manifest.json", "manifest of examples"),
        ("examples/vocab.txt", "vocabulary"),
        ("text", "text shards"),
        ("text/eval.txt", "text shard"),
        ("text/part-*", "text shards"),
    ],
)
def test_every_kind_of_path_has_a_summary(path: str, kind: str, run: Run, data: Path) -> None:
    summary = json.loads(run(data / path, "--format=json"))
    assert summary["kind"] == kind
    assert run(data / path).startswith(f"{kind}: {data / path}\n")


def test_checkpoint_has_a_summary(run: Run, tmp_path: Path) -> None:
    entry = {"dtype": "F32", "shape": [7, 3], "data_offsets": [0, 84]}
    header = json.dumps({"__metadata__": {"step": "20"}, "weight": entry}).encode()
    (tmp_path / "m.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(84))
    summary = json.loads(run(tmp_path / "m.safetensors", "--format=json"))
    assert (summary["checkpoint"]["parameters"], summary["checkpoint"]["step"]) == (21, "20")
    assert summary["largest weights"][0]["shape"] == "7 × 3"


def test_text_without_manifest_is_counted(run: Run, tmp_path: Path) -> None:
    (tmp_path / "part-00000-of-00001").write_text("One two.\nThree.\n\n\nFour five six.")
    facts = json.loads(run(tmp_path, "--format=json"))["text"]
    assert (facts["documents"], facts["sentences (lines)"], facts["words"]) == (2, 3, 6)
    assert facts["longest sentence, characters"] == 14


def test_head_as_json_is_the_examples(run: Run, data: Path) -> None:
    lines = run(data, "--head", 3, "--format", "json").splitlines()
    with open_examples(data / "examples") as opened:
        examples = [opened.decoded(number) for number in range(3)]
    for number, (line, example) in enumerate(zip(lines, examples, strict=True)):
        shown = json.loads(line)
        assert (shown["record"], shown["sample"], shown["label"]) == (number + 1, number, example.label)
        assert shown["text"] == running_text(example.pieces)
        assert [(piece["id"], piece["role"], piece["label"]) for piece in shown["pieces"]] == [
            (piece.id, piece.role, piece.label) for piece in example.pieces
        ]


def test_example_is_shown_as_words(run: Run, data: Path) -> None:
    file = data / "examples" / "part-00001-of-00002.tfrecord"
    text = run(file, "--example", 2)
    assert text.startswith(f"example 2 of {file}\n")
    assert "\nsegment A\n[CLS] " in text
    with open_examples(file) as opened:
        example = opened.decoded(opened.first + 1)
    body = " ".join(text[text.index("[CLS]") :].split())
    undone = re.sub(r"\[[^\s\]=]*=([^\s\]]*)\]", r"\1", body).replace("segment B", "")
    assert undone.split() == running_text(example.pieces, special=True).split()
    assert sum(piece.label is not None for piece in example.pieces) == len(re.findall(r"\[[^\s\]=]*=", body))


def test_random_example_can_be_shown_again(run: Run, data: Path) -> None:
    text = run(data, "--example", "random")
    found = re.match(r"example (\d+) of (.*)\n", text)
    assert found is not None
    assert run(found[2], "--example", found[1]) == text


def test_search_takes_its_words_from_after_it(run: Run, data: Path) -> None:
    text = run(data, "--example", "search", "sentence", "5", "--head", 2, "--format", "json")
    assert all("sentence 5 of" in json.loads(line)["text"] for line in text.splitlines())
    assert len(text.splitlines()) == 2


def test_documents_are_shown(run: Run, data: Path) -> None:
    assert run(data / "text", "--example", 4).splitlines()[0] == (
        f"document 1 of {data}/text/part-00001-of-00002, from line 1 on, 20 sentences"
    )
    found = [json.loads(line) for line in run(data / "text", "--head=2", "--format=json").splitlines()]
    assert [(document["document"], len(document["lines"])) for document in found] == [(1, 20), (2, 20)]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["{data}/none"], 2, "{data}/none: there is no such file or directory; check the path."),
        (["{data}", "{data}"], 2, "this is a second path"),
        ([], 2, "PATH is missing"),
        (["{data}", "--example", "0"], 2, "--example must be a number from 1 on"),
        (["{data}", "--example", "999"], 2, "there is no number 999, only 1 to "),
        (["{data}/text", "--example", "10"], 2, "there is no number 10, only 1 to 9"),
        (["{data}", "--example", "search"], 2, "The word to search for is missing"),
        (["{data}", "--example", "search", "zebra"], 1, "nothing in it has these words"),
        (["{data}", "--example", "1", "--diff", "{data}"], 2, "--example and --diff exclude each other"),
        (["{data}", "--head", "0"], 2, "--head must be from 1"),
        (["{data}/eval/manifest.json", "--head", "1"], 2, "a manifest has no examples"),
        (["{data}/examples/vocab.txt", "--head", "1"], 2, "a vocabulary has no examples"),
        (["{data}/examples/eval.txt.tfrecord.idx"], 2, "this is the index of {data}/examples/eval.txt.tfrecord"),
        (["{data}", "--diff", "{data}/text"], 2, "needs --html FILE"),
        (["{data}", "--split", "eval", "--example", "99999"], 2, "there is no number 99,999"),
    ],
)
def test_what_cannot_be_shown_is_one_sentence(arguments: list[str], code: int, said: str, run: Run, data: Path) -> None:
    sentence = run(*(argument.format(data=data) for argument in arguments), code=code)
    assert said.format(data=data) in sentence


def test_hostile_texts_reach_no_terminal(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = "\x1b]0;owned\x07 <script>alert(1)</script> \u202egpj.exe [bold red]x[/] \x9b31m :smile:"
    pieces = Path(VOCABULARY).read_text().splitlines()
    pieces[1996] = "\x1b[31mthe\u202e"  # "the"
    pieces[2001] = "a" * 1_000_000
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join(pieces) + "\n")
    texts = {"part-00000-of-00001": f"{hostile}\nThe end of the line.\nAnother one.\n{'x' * 1_000_000}\n\n" * 3}
    write_set(tmp_path, setup_of(), texts=texts)
    examples = tmp_path / "examples"
    shutil.copyfile(vocabulary, examples / "vocab.txt")
    manifest = json.loads((examples / "manifest.json").read_text())
    manifest["vocabulary"] |= {"sha256": hashlib.sha256(vocabulary.read_bytes()).hexdigest()}
    (examples / "manifest.json").write_text(json.dumps(manifest))
    for is_terminal in (False, True):
        monkeypatch.setattr("pipelines.commands.inspect_text.is_terminal", lambda terminal=is_terminal: terminal)
        for arguments in (
            [examples],
            [examples, "--head", "3"],
            [vocabulary],
            [tmp_path / "text", "--head", "1"],
            [examples, "--head", "2", "--format", "json"],
        ):
            text = run(*arguments)
            left = ESCAPES.sub("", text)
            assert not {c for c in left if not (c.isprintable() or c == "\n")}
            assert len(text) < 200_000 or "json" in arguments
    assert "[bold red]x[/]" in run(tmp_path / "text", "--head", "1")
    assert ":smile:" in run(tmp_path / "text", "--head", "1")


def test_terminal_gets_colours_and_the_same_words(run: Run, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = run(data, "--example", 3)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("pipelines.commands.inspect_text.is_terminal", lambda: True)
    shown = run(data, "--example", 3)
    assert "\x1b[1;31m[MASK=" in shown
    assert ESCAPES.sub("", shown).split() == plain.split()


def test_one_damaged_file_does_not_hide_the_others(run: Run, data: Path, tmp_path: Path) -> None:
    copy = tmp_path / "examples"
    shutil.copytree(data / "examples", copy)
    whole = run(copy / "part-00001-of-00002.tfrecord", "--example", 1)
    (copy / "part-00000-of-00002.tfrecord").write_bytes(b"damaged")
    assert run(copy / "part-00001-of-00002.tfrecord", "--example", 1) == whole
    assert "part-00000-of-00002.tfrecord" in run(copy, "--example", 1, code=2)


def test_drawn_masks_name_their_epoch(run: Run, tmp_path: Path) -> None:
    path = write_set(tmp_path, setup_of(objective="mlm", dynamic_masking=True, format="parquet"))
    first, second = (run(path, "--example", 1, "--epoch", epoch) for epoch in (0, 1))
    assert "(drawn by the reader in epoch 1, from 0)" in " ".join(second.split())
    assert first != second


def test_data_on_a_web_server(run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with file_server.serve() as server:
        for path in data.rglob("*"):
            if path.is_file():
                server.files[str(path.relative_to(data))] = path.read_bytes()
        local = run(data / "examples", "--example", 2).splitlines()
        remote = run(f"{server.url}/examples", "--example", 2).splitlines()
        assert remote[1:] == local[1:]
        assert json.loads(run(f"{server.url}/examples", "--format=json"))["kind"] == "examples"
        assert json.loads(run(server.url, "--format=json"))["kind"] == "build"
        assert (
            run(f"{server.url}/text/eval.txt", "--head", 1)
            .splitlines()[1]
            .endswith("1  Sentence 0 of shard 2 is about .")
        )


@pytest.mark.builds
def test_neither_beam_nor_rich_is_imported(data: Path) -> None:
    code = (
        "import sys; from pipelines.commands import cli; cli.main(['inspect', '--help']); "
        "cli.main(['inspect', sys.argv[1], '--example', '1']); "
        "sys.exit(bool({'apache_beam', 'rich', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(data)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
