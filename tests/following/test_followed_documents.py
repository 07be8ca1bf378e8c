import json
import shutil
from pathlib import Path

import pytest
import yaml
from command_runs.commands import DUMP, IN_MEMORY, VOCAB
from command_runs.extract_runs import extract
from made_up import dump_files

from maskmill.errors import UnusableInputError
from pipelines.commands import cli
from transforms.following.followed_articles import find_document


def _article(number: int, title: str, **options: str) -> str:
    words = ["river", "bridge", "church", "album", "village", "league", "island", "season"]
    sentences = [
        f"'''{title}''' has [[{words[(number + n) % 8]}]] number {number * n} near the {words[(number * n) % 8]}."
        for n in range(1, 30)
    ]
    return dump_files.page(
        number, title, "\n\n".join(" ".join(sentences[n : n + 5]) for n in range(0, 29, 5)), **options
    )


PAGES = [
    *(_article(number, f"Town {number}") for number in range(10, 30)),
    _article(30, "1984"),
    _article(1984, "Crème & <brûlée>"),
    dump_files.page(31, "Old Town", "#REDIRECT [[Town 10]]", redirect="Town 10"),
    dump_files.page(32, "Town (disambiguation)", "* [[Town 10]]\n* [[Town 11]]\n{{disambiguation}}"),
    dump_files.page(33, "Talk:Town 10", "Nobody.", namespace=1),
]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The text and the examples of a small dump."""
    folder = tmp_path_factory.mktemp("document")
    (folder / "dump.xml").write_bytes(dump_files.dump(PAGES))
    flags = ("--dump_date=2010-01-02", "--num_eval_articles=3", "--shard_size_mb=0.01")
    assert extract(folder, folder / "build" / "text", *flags) == 0
    _make_examples(folder / "build")
    return folder / "build"


def _make_examples(build: Path) -> None:
    arguments = [f"--input={build}/text", f"--output={build}/examples", f"--vocab_file={VOCAB}"]
    lengths = ["--max_seq_length=64", "--max_predictions_per_seq=10", "--dupe_factor=2"]
    assert cli.main(["examples", *arguments, *lengths, *IN_MEMORY]) == 0


def test_an_article_is_followed_through_all_stages(build: Path) -> None:
    found = find_document(str(build), "Town 12")
    assert (found.title, found.id) == ("Town 12", "12")
    assert found.wikitext.startswith("'''Town 12''' has [[")
    assert found.text.startswith("Town 12 has ")
    assert found.outcome in ("train", "eval")
    assert found.document is not None
    assert len(found.document.lines) == 29
    shard = Path(found.document.file).read_text().split("\n")
    assert tuple(shard[found.document.line - 1 :][:29]) == found.document.lines
    documents = "\n".join(shard).split("\n\n")
    assert tuple(documents[found.document.document - 1].strip("\n").split("\n")) == found.document.lines
    assert found.pieces[0][:3] == ("town", "12", "has")
    assert len(found.pieces) == 29
    assert found.rows is not None
    assert len(found.examples) == 3
    assert found.rows.count < found.rows.searched
    for example in found.examples:
        assert "town" in {piece.surface for piece in example.pieces}
        assert any(piece.label is not None for piece in example.pieces)
    assert found.skipped == ()


def test_articles_are_found_where_they_stand(build: Path) -> None:
    places = set()
    for number in (10, 14, 21, 29):
        found = find_document(str(build / "text"), str(number), most_examples=1)
        assert found.title == f"Town {number}"
        assert found.document is not None
        places.add((found.document.file, found.document.document))
        assert found.outcome == ("eval" if found.document.file.endswith("eval.txt") else "train")
        assert found.rows is not None
        assert found.rows.count > 0
    assert len(places) == 4


@pytest.mark.parametrize("name", ["Crème & <brûlée>", "crème_&_<brûlée>"])
def test_titles_may_be_written_as_people_do(build: Path, name: str) -> None:
    assert find_document(str(build), name).id == "1984"


def test_a_number_is_an_id_before_it_is_a_title(build: Path) -> None:
    assert find_document(str(build), "1984").title == "Crème & <brûlée>"
    assert find_document(str(build), "30").title == "1984"


@pytest.mark.parametrize(
    ("name", "outcome"),
    [("Old Town", "redirects"), ("32", "disambiguation_pages"), ("Talk:Town 10", "other_namespaces")],
)
def test_pages_that_were_left_out_say_why(build: Path, name: str, outcome: str) -> None:
    found = find_document(str(build), name)
    assert (found.outcome, found.document, found.examples) == (outcome, None, ())
    assert found.wikitext


def test_what_is_not_there_is_refused(build: Path, tmp_path: Path) -> None:
    with pytest.raises(UnusableInputError, match="no page has the title or id 'Atlantis'"):
        find_document(str(build), "Atlantis")
    text = tmp_path / "text"
    shutil.copytree(build / "text", text)
    made = (text / "manifest.json").read_text()
    (text / "manifest.json").write_text(made.replace("dump.xml", "gone.xml"))
    with pytest.raises(UnusableInputError, match=r"gone\.xml: the inputs of this data set are not there"):
        find_document(str(tmp_path), "Town 12")
    (tmp_path / "gone.xml").write_bytes(dump_files.dump(PAGES))
    found = find_document(str(tmp_path), "Town 12")
    assert found.document is not None
    assert found.rows is None
    assert len(found.skipped) == 1


@pytest.mark.builds
@pytest.mark.long
def test_an_index_beside_a_dump_leads_to_the_page(tmp_path: Path) -> None:
    for name in (DUMP.name, DUMP.name.replace("multistream.xml", "multistream-index.txt")):
        shutil.copy(DUMP.parent / name, tmp_path / name)
    arguments = [f"--input={tmp_path / DUMP.name}", f"--output={tmp_path}/text", "--max_documents=3"]
    assert cli.main(["extract", *arguments, "--num_eval_articles=1", *IN_MEMORY]) == 0
    with_index = [find_document(str(tmp_path), name) for name in ("Anarchism", "AccessibleComputing")]
    (tmp_path / DUMP.name.replace("multistream.xml", "multistream-index.txt")).unlink()
    assert [find_document(str(tmp_path), name) for name in ("Anarchism", "AccessibleComputing")] == with_index
    assert with_index[0].document is not None
    assert with_index[1].outcome == "redirects"


@pytest.mark.builds
@pytest.mark.long
def test_sources_of_a_mix_are_read_with_their_own_options(tmp_path: Path) -> None:
    notes = [{"text": f"Note {n} is here. It tells of {n} things.", "key": f"note-{n}"} for n in range(30)]
    (tmp_path / "notes.jsonl").write_text("".join(f"{json.dumps(note)}\n" for note in notes))
    (tmp_path / "dump.xml").write_bytes(dump_files.dump(PAGES))
    sources = {
        "notes": {"input": str(tmp_path / "notes.jsonl"), "id_column": "key", "language": "en"},
        "wiki": {"input": str(tmp_path / "dump.xml"), "dump_date": "2010-01-02", "keep_titles": True},
    }
    examples = {"vocab_file": str(VOCAB), "max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 1}
    sections = {"extract": {"num_eval_articles": 3}, "examples": examples, "eval": {"num_examples_to_pick": 5}}
    config = tmp_path / "mix.yaml"
    config.write_text(
        yaml.safe_dump({"output": str(tmp_path / "out"), "report": "off", "sources": sources, **sections})
    )
    assert cli.main(["build", str(config), *IN_MEMORY]) == 0
    note, town = (find_document(str(tmp_path / "out"), name) for name in ("note-7", "Town 12"))
    assert note.document is not None
    assert note.document.lines == ("Note 7 is here.", "It tells of 7 things.")
    assert town.document is not None
    assert town.document.lines[0] == "Town 12"
    assert town.rows is not None
    assert town.rows.count > 0


def test_the_command_shows_the_first_lines_of_each_stage(
    build: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["inspect", str(build), "--document", "Town 12"]) == 0
    printed = capsys.readouterr().out
    for heading in ("as wikitext", "as text", "as sentences: document", "as pieces"):
        assert f"\n{heading}" in printed
    assert "… and 19 more lines; --format json has all" in printed
    assert "[MASK=" in printed
    assert max(len(line) for line in printed.splitlines() if line.startswith("  ")) <= 2 * 80
    assert cli.main(["inspect", str(build), "--document", "12", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["document"]["lines"]) == 29
    assert found["outcome"] in ("train", "eval")
