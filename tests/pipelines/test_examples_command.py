"""The commands `examples`, `create-pretraining-data`, `pick-eval` and `index`."""

import gzip
import json
from pathlib import Path

import pytest
from command_runs.commands import IN_MEMORY, VOCAB
from conftest import ROOT
from oracles.pretraining import digest, read_examples, split_tfrecord

import maskmill
from pipelines.commands import cli

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def texts(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the reference's text shards, unpacked, and the made-up texts."""
    folder = tmp_path_factory.mktemp("texts")
    for packed in (data / "gold" / "cleanup").glob("*.gz"):
        (folder / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    for made_up in (data / "gold" / "pretraining").glob("*.txt"):
        (folder / made_up.name).write_bytes(made_up.read_bytes())
    return folder


@pytest.mark.parametrize(
    ("compat", "ids"), [("none", [2, 5, 10, 9, 3]), ("google", [2, 5, 10, 9, 3]), ("mlperf", [2, 5, 7, 8, 3])]
)
def test_a_vocabulary_with_blank_and_repeated_lines(
    compat: str, ids: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Everybody but MLPerf counts lines, and the last of equal ones; all commands count as the examples do."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "", "", "cat", "sat", "cat"]
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    (tmp_path / "text").write_text("the cat sat\nthe\n\n" * 9)
    made = tmp_path / "examples"
    flags = [f"--vocab_file={tmp_path}/vocab.txt", "--max_seq_length=16", "--max_predictions_per_seq=1", "--quiet"]
    assert cli.main(["examples", f"--input={tmp_path}/text", f"--output={made}", f"--compat={compat}", *flags]) == 0
    wrote = json.loads((made / "manifest.json").read_text())
    assert wrote["vocabulary_size"] == max(ids) + 1
    rows = read_examples(made / "text.tfrecord")
    found = {id for row in rows for name in ("input_ids", "masked_lm_ids") for id in row[name]}
    blank = 6 if compat == "mlperf" else 7
    assert set(ids) <= found <= {0, 1, 2, 3, 4, blank, *ids}
    capsys.readouterr()
    assert cli.main(["verify", str(made)]) == 0
    assert cli.main(["inspect", str(made), "--example=1"]) == 0
    assert "cat" in capsys.readouterr().out
    with maskmill.open(made, batch_size=4) as data:
        assert {int(id) for batch in data for id in batch["input_ids"].ravel()} <= found


SENTENCE = "the people of the movement were here now .\n"


@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [
        (
            SENTENCE * 11,
            "--preset=group-texts",
            "99 tokens: with --block_remainder drop, what does not fill a row of 512",
        ),
        ("the\n\nof\n", "--objective=sop", "2 tokens: a pair takes two tokens of a document"),
    ],
)
def test_a_text_that_gives_no_example_fails(
    text: str, flags: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text(text)
    made = tmp_path / "examples"
    assert cli.main(["examples", f"--input={tmp_path}/text", f"--output={made}", f"--vocab_file={VOCAB}", flags]) == 1
    assert f"no example was made of the text, which has {message}" in capsys.readouterr().err
    assert not (made / "manifest.json").exists()


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (f"{SENTENCE}\n" * 30, "because each sentence is a document of its own, so next_sentence_labels are all 1"),
        (f"{SENTENCE[:-1] * 20}\n" * 8, "because its lines are longer than a pair has room for"),
        (SENTENCE * 4 + "\n" + SENTENCE * 4, ""),
        (f"{SENTENCE}\n", ""),  # a few examples say nothing
        (
            "It was the best of\ntimes, it was the\nworst of times.\n" * 9,
            "66.7 % of the lines of the text begin with a small",
        ),
    ],
    ids=["sentences", "long lines", "documents", "short", "cut lines"],
)
def test_text_that_is_no_text_of_sentences_is_a_warning(
    text: str, warning: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text(text)
    flags = [f"--vocab_file={VOCAB}", "--max_seq_length=32", "--max_predictions_per_seq=5", "--dupe_factor=4"]
    assert cli.main(["examples", f"--input={tmp_path}/text", f"--output={tmp_path}/examples", *flags]) == 0
    errors = capsys.readouterr().err
    assert warning in errors
    assert warning or "warning" not in errors


# ---- create-pretraining-data


def cases() -> dict[str, dict[str, object]]:
    """The flags of each gold case, by the case's name."""
    flags: dict[str, dict[str, object]] = json.loads((ROOT / "tests/data/gold/pretraining/cases.json").read_text())
    return flags


@pytest.mark.parametrize("name", cases())
def test_the_flags_of_the_reference_give_its_records(name: str, data: Path, texts: Path, tmp_path: Path) -> None:
    case = cases()[name]
    script, inputs, outputs = case.pop("script"), case.pop("input"), case.pop("outputs")
    assert isinstance(inputs, list)
    assert isinstance(outputs, list)
    flags = [f"--{flag}={value}" for flag, value in case.items()]
    if script == "google-research/bert":
        flags.append("--compat=google")
    code = cli.main(
        [
            "create-pretraining-data",
            f"--input_file={','.join(str(texts / Path(i).name) for i in inputs)}",
            f"--output_file={','.join(str(tmp_path / o) for o in outputs)}",
            f"--vocab_file={VOCAB}",
            *flags,
        ]
    )
    assert code == 0
    gold = [json.loads(line) for line in (data / "gold/pretraining/digests.jsonl").read_text().splitlines()]
    expected = {entry["file"]: entry["sha256"] for entry in gold}
    assert {o: digest(read_examples(tmp_path / o)) for o in outputs} == {o: expected[o] for o in outputs}


def test_a_link_keeps_its_place(texts: Path, tmp_path: Path) -> None:
    """tests/mistakes/overwriting.py has what is not written over."""
    target, link = tmp_path / "elsewhere" / "records", tmp_path / "records"
    target.parent.mkdir()
    target.write_text("old")
    link.symlink_to(target)
    arguments = [f"--input_file={texts}/eval.txt", f"--output_file={link}", f"--vocab_file={VOCAB}", "--dupe_factor=1"]
    assert cli.main(["create-pretraining-data", *arguments]) == 0
    assert link.is_symlink()
    assert target.stat().st_size > 1000
    assert [p.name for p in target.parent.iterdir()] == ["records"]


# ---- pick-eval and index


def test_pick_eval_gives_the_records_of_the_reference(data: Path, tmp_path: Path, texts: Path) -> None:
    source = tmp_path / "mlperf512.tfrecord"
    flags = ["--max_seq_length=512", "--max_predictions_per_seq=76"]
    create = ["create-pretraining-data", f"--input_file={texts}/eval.txt", f"--output_file={source}", *flags]
    assert cli.main([*create, f"--vocab_file={VOCAB}"]) == 0
    picked = tmp_path / "picked.tfrecord"
    command = ["pick-eval", f"--input_tfrecord={source}", f"--output_tfrecord={picked}", *flags]
    assert cli.main([*command, "--num_examples_to_pick=300"]) == 0
    expected = read_examples(data / "gold/pretraining/mlperf512.pick300.tfrecord.gz")
    assert read_examples(picked) == expected
    assert cli.main([*command, "--num_examples_to_pick=30000"]) == 2


def test_an_index_of_any_tfrecord(data: Path, tmp_path: Path) -> None:
    content = gzip.decompress((data / "gold/pretraining/edge128.tfrecord.gz").read_bytes())
    (tmp_path / "edge.tfrecord").write_bytes(content)
    assert cli.main(["index", str(tmp_path / "edge.tfrecord")]) == 0
    lines = [tuple(map(int, x.split())) for x in (tmp_path / "edge.tfrecord.idx").read_text().splitlines()]
    sizes = [len(record) + 16 for record in split_tfrecord(content)]
    assert lines == [(sum(sizes[:i]), size) for i, size in enumerate(sizes)]


# ---- examples


def examples(input_path: object, output: Path, *flags: str) -> int:
    """Runs `examples` in this process. Returns the exit code."""
    return cli.main(
        ["examples", f"--input={input_path}", f"--output={output}", f"--vocab_file={VOCAB}", *IN_MEMORY, *flags]
    )


SMALL = ("--max_seq_length=128", "--dupe_factor=1")


@pytest.mark.parametrize("compat", ["mlperf", "google"])
def test_the_compatible_modes_use_the_seed_itself(compat: str, texts: Path, tmp_path: Path) -> None:
    assert examples(f"{texts}/part-00001*", tmp_path / "out", *SMALL, f"--compat={compat}") == 0
    single = tmp_path / "single.tfrecord"
    flags = [f"--input_file={texts}/part-00001-of-00500", f"--output_file={single}", f"--vocab_file={VOCAB}"]
    assert cli.main(["create-pretraining-data", *flags, *SMALL, f"--compat={compat}"]) == 0
    assert (tmp_path / "out" / "part-00001-of-00500.tfrecord").read_bytes() == single.read_bytes()
