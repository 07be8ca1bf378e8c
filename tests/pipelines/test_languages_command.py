"""`extract` on dumps and texts of many languages: whose rules split their sentences, and what is said of it."""

import bz2
import json
from pathlib import Path
from typing import Any

import pytest
from command_runs.commands import IN_MEMORY
from command_runs.extract_runs import read_manifest
from made_up import dump_files
from made_up.languages import articles, dump_of

from pipelines.commands import cli

pytestmark = pytest.mark.long

# A paragraph of each language, and its sentences.
PARAGRAPHS = {
    "zh": ("河流入海。它很长！你知道吗？\u201c知道。\u201d", 4),
    "ja": ("川は海に流れている。長い川だ！", 2),
    "hi": ("नदी समुद्र तक बहती है। वह लम्बी है।", 2),
    "hy": ("Գետը հոսում է դեպի ծով։ Այն երկար է։", 2),
    "ur": ("دریا سمندر میں گرتا ہے۔ وہ لمبا ہے۔", 2),
    "am": ("ወንዙ ወደ ባሕር ይፈስሳል። ረጅም ነው።", 2),
    "el": ("Ο ποταμός ρέει προς τη θάλασσα. Είναι μακρύς.", 2),
    "de": ("Der Fluss entstand im 13. Jahrhundert. Er ist lang.", 2),
    "uk": ("Річка (лат. Fluvius) тече до моря. Вона довга.", 2),
    "en": ("The river runs to the sea, says Dr. Smith. It is long.", 2),
}


def run(capsys: pytest.CaptureFixture[str], path: Path, output: Path, *flags: str) -> tuple[str, list[str]]:
    """What `extract` prints to stdout, and its warnings."""
    assert (
        cli.main(["extract", f"--input={path}", f"--output={output}", "--num_eval_articles=0", *IN_MEMORY, *flags]) == 0
    )
    printed, errors = capsys.readouterr()
    return " ".join(printed.split()), [line for line in errors.splitlines() if "warning: " in line]


def sentences(output: Path) -> dict[str, Any]:
    (found,) = read_manifest(output)["decided"]["sentences"]
    assert isinstance(found, dict)
    return found


def text_of(output: Path) -> str:
    return "".join(path.read_text() for path in sorted(output.glob("part-*")))


@pytest.mark.builds
@pytest.mark.parametrize("language", PARAGRAPHS)
def test_a_dump_is_split_by_its_language(language: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paragraph, count = PARAGRAPHS[language]
    path = tmp_path / "dump.xml"
    path.write_bytes(dump_of(language, [dump_files.page(1, "A", paragraph)]))
    printed, warnings = run(capsys, path, tmp_path / "out")
    assert len(text_of(tmp_path / "out").split("\n")) == count + 2, text_of(tmp_path / "out")
    assert (sentences(tmp_path / "out")["language"], sentences(tmp_path / "out")["why"]) == (language, "dump")
    assert f"sentences {sentences(tmp_path / 'out')['name']} (the dump's language)" in printed
    assert warnings == []


@pytest.fixture(scope="module")
def ukrainian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("uk")
    (folder / "dump.xml").write_bytes(dump_of("uk", articles("uk", 80)))
    (folder / "dump.xml.bz2").write_bytes(bz2.compress((folder / "dump.xml").read_bytes()))
    return folder


@pytest.mark.builds
def test_punkt_is_trained_where_a_language_has_no_parameters(
    ukrainian: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed, _ = run(capsys, ukrainian / "dump.xml", tmp_path / "out")
    assert "sentences Ukrainian (the dump's language), Punkt trained on 0." in printed
    assert (
        "MB of this corpus, its parameters in punkt/uk, 1 abbreviations beside the known ones, median line" in printed
    )
    found = sentences(tmp_path / "out")
    assert found["parameters"]["path"] == "punkt/uk"
    assert found["parameters"]["sha256"]
    assert (tmp_path / "out" / "punkt" / "uk" / "abbrev_types.txt").read_text() == "прк\n"
    assert "прк.\n" not in text_of(tmp_path / "out")
    again, _ = run(capsys, ukrainian / "dump.xml", tmp_path / "out")
    assert "reused 1 Punkt training, 1 unit," in again
    assert "made nothing" in again


@pytest.mark.builds
def test_trained_parameters_serve_other_builds(
    ukrainian: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, ukrainian / "dump.xml", tmp_path / "out")
    folder = tmp_path / "out" / "punkt" / "uk"
    printed, _ = run(capsys, ukrainian / "dump.xml", tmp_path / "again", f"--language={folder}")
    assert f"sentences Ukrainian (--language), Punkt, its parameters in {folder}, 1 abbreviations" in printed
    assert text_of(tmp_path / "again") == text_of(tmp_path / "out")
    assert not (tmp_path / "again" / "punkt").exists()
    manifest = read_manifest(tmp_path / "again")
    assert manifest["parameters"]["language_sha256"] == sentences(tmp_path / "out")["parameters"]["sha256"]
    (folder / "abbrev_types.txt").write_text("")
    command = ["extract", f"--input={ukrainian}/dump.xml", f"--output={tmp_path}/again", f"--language={folder}"]
    assert cli.main([*command, "--num_eval_articles=0", *IN_MEMORY]) == 2
    assert "the data of language" in capsys.readouterr().err


def test_little_text_is_said_to_be_too_little(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "dump.xml"
    path.write_bytes(dump_of("hu", articles("hu", 2)))
    printed, warnings = run(capsys, path, tmp_path / "out")
    assert "Hungarian (the dump's language), known marks and abbreviations, too little text to train Punkt (" in printed
    assert warnings == []


@pytest.mark.builds
@pytest.mark.parametrize(
    ("language", "flag", "warning"),
    [
        ("hi", "english", "split as English, but most letters of the text are Devanagari; leave --language out"),
        ("zh", "en", "split as English, but most letters of the text are Chinese; leave --language out"),
        ("en", "hi", "split as Hindi, but most letters of the text are Latin; leave --language out"),
    ],
)
def test_a_wrong_language_makes_a_warning(
    language: str, flag: str, warning: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paragraph, _ = PARAGRAPHS[language]
    path = tmp_path / "dump.xml"
    path.write_bytes(dump_of(language, [dump_files.page(1, "A", f"{paragraph} " * 20)]))
    _, warnings = run(capsys, path, tmp_path / "out", f"--language={flag}")
    assert any(warning in line for line in warnings), warnings
    assert sentences(tmp_path / "out")["doubts"][-1] == "other_script"


WORDS = Path(__file__).parents[1] / "sentences" / "paragraphs.tsv"
TEXTS = dict(line.split("\t") for line in WORDS.read_text(encoding="utf-8").splitlines())


def write_records(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def test_each_record_is_split_by_the_language_of_its_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [{"text": TEXTS["en"]}, {"text": f"{TEXTS['de']} Er kam am 5. Mai an."}, {"text": TEXTS["hi"]}]
    printed, warnings = run(capsys, write_records(tmp_path / "x.jsonl", *records), tmp_path / "out")
    assert "of its records 1 English, 1 German, 1 Hindi" in printed
    assert not [line for line in warnings if "language" in line]
    text = text_of(tmp_path / "out").splitlines()
    assert "Er kam am 5. Mai an." in text
    assert sum(line.endswith("।") for line in text) == 2
    assert sentences(tmp_path / "out")["records"] == {"English": 1, "German": 1, "Hindi": 1}


def test_a_column_names_the_language_of_each_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = {"fi": "Hän näki mm. Turun.", "English": "He came on 5. Then he left.", "no such": "Yes. No.", "": "A."}
    records = [{"text": text, "lang": language} for language, text in given.items()]
    path = write_records(tmp_path / "x.jsonl", *records, {"text": "B. C.", "lang": None})
    printed, _ = run(capsys, path, tmp_path / "out", "--language_column=lang")
    assert "of its records 1 English, 1 Finnish" in printed
    assert text_of(tmp_path / "out").split("\n\n")[:2] == ["Hän näki mm. Turun.", "He came on 5.\nThen he left."]
    run(capsys, path, tmp_path / "named", "--language_column=lang", "--language=de")
    assert sentences(tmp_path / "named")["records"] == {"": 3, "English": 1, "Finnish": 1}


def test_records_that_go_on_in_another_language_are_split_by_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = [{"text": TEXTS["en"]}] * 500 + [{"text": TEXTS["hi"]}] * 900
    printed, warnings = run(capsys, write_records(tmp_path / "x.jsonl", *records), tmp_path / "out")
    assert "sentences English (by its words, 100% sure)" in printed
    assert "of its records 900 Hindi" in printed
    assert not [line for line in warnings if "letters" in line or "language" in line]
    assert text_of(tmp_path / "out").count("\n") == 500 * 3 + 900 * 3


def test_a_text_that_goes_on_in_another_script_makes_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.txt"
    path.write_text("\n\n".join([TEXTS["en"]] * 500 + [TEXTS["hi"]] * 400))
    _, warnings = run(capsys, path, tmp_path / "out")
    assert any("the text that was split as English are Devanagari; give each language an input" in w for w in warnings)
    path.write_text("\n\n".join([TEXTS["en"]] * 500 + [TEXTS["hi"]] * 20))
    assert not [line for line in run(capsys, path, tmp_path / "few")[1] if "letters" in line]


def test_text_whose_language_is_not_sure_makes_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.txt"
    path.write_text(f"{TEXTS['Swahili']} {TEXTS['Zulu']}")
    printed, (warning,) = run(capsys, path, tmp_path / "out")
    assert "sentences Latin script (by the text's beginning), Punkt's English parameters" in printed
    assert "the language of the text is not sure (its words are most like " in warning
    assert warning.endswith(
        "so it was split by the rules for Latin script; give --language the code of the text's language."
    )
    for flag in ("--language=english", "--language=sw"):
        assert run(capsys, path, tmp_path / flag[2:], flag)[1] == []


def test_text_in_a_language_is_named_with_how_sure_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.txt"
    path.write_text(f"{TEXTS['fi']} Se oli 5. toukokuuta.")
    printed, warnings = run(capsys, path, tmp_path / "out")
    assert "sentences Finnish (by its words, 9" in printed
    assert "% sure), Punkt's Finnish parameters" in printed
    assert warnings == []
    assert sentences(tmp_path / "out")["language"] == "fi"


@pytest.mark.builds
def test_the_references_keep_english(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "dump.xml"
    paragraph, _ = PARAGRAPHS["hi"]
    path.write_bytes(dump_of("hi", [dump_files.page(1, "A", paragraph)]))
    printed, _ = run(capsys, path, tmp_path / "out", "--compat=google")
    assert "sentences English (--compat google), Punkt's English parameters" in printed
    assert text_of(tmp_path / "out") == f"{paragraph}\n\n"
    assert read_manifest(tmp_path / "out")["decided"]["language"] == "english"
