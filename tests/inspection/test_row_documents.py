"""From a row of examples to its documents: every objective and format, by documents whose words tell their number."""

import json
from pathlib import Path

import pytest
from command_runs.commands import IN_MEMORY

import maskmill
from maskmill.inspection.decoding import running_text
from pipelines.commands import cli

COUNT = 30


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    names = ["alpha", "beta", "gamma", "delta", "omega", "sigma"]
    with open(folder / "in.jsonl", "w") as file:
        for n in range(COUNT):
            name = f"{names[n % 6]} {names[n // 6]}"
            lines = [f"Here {name} is {k}." for k in range(6)] + ["The end."]
            file.write(json.dumps({"text": "\n".join(lines), "url": f"{name}"}) + "\n")
    flags = ["--metadata_columns=url", "--num_eval_articles=2", "--language=en", "--shard_size_mb=0.002"]
    assert cli.main(["extract", f"--input={folder}/in.jsonl", f"--output={folder}/text", *flags, *IN_MEMORY]) == 0
    return folder


@pytest.mark.builds
@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--objective=nsp", "--format=parquet", "--dynamic_masking"],
        ["--objective=mlm", "--pack", "--format=mds"],
        ["--objective=blocks", "--format=spans", "--dynamic_masking"],
    ],
    ids=["tfrecord", "parquet", "mds", "spans"],
)
def test_each_part_of_a_row_is_of_the_documents_that_have_its_words(
    flags: list[str], text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vocabulary, output = tmp_path / "vocab.txt", tmp_path / "examples"
    words = {word for line in (text / "in.jsonl").read_text().lower().split('"') for word in line.split()}
    pieces = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        ".",
        *"0123456789",
        *sorted(w for w in words if w.isalpha()),
    ]
    vocabulary.write_text("\n".join([*dict.fromkeys([*pieces, "here", "is", "the", "end"])]) + "\n")
    sizes = ["--max_seq_length=32", "--max_predictions_per_seq=5"]
    made = [f"--input={text}/text", f"--output={output}", f"--vocab_file={vocabulary}", *sizes, *flags, *IN_MEMORY]
    assert cli.main(["examples", *made]) == 0
    seen = 0
    with maskmill.open_examples(output) as examples:
        for example in examples.all():
            parts = examples.documents_of(example)
            runs = examples.decoder.runs(examples.rows(example.sample, 1))
            assert len(parts) == len(runs) > 0
            stated = running_text(example.pieces)
            for documents, run in zip(parts, runs, strict=True):
                words = " ".join(examples.decoder.words.piece(int(id)) for id in run)
                assert words in stated.replace(" ##", "")
                together = " ".join(" ".join(d.lines).lower().replace(".", " .") for d in documents)
                assert words in together or len(documents) > 1
                named = [d for d in documents if d.metadata["url"] in words]
                assert named or " end ." in f" {words}" or len(words) < 20
                seen += len(documents) == 1
    assert seen > 10
    capsys.readouterr()
    assert cli.main(["inspect", str(output), "--example=3"]) == 0
    assert "from document " in capsys.readouterr().out
