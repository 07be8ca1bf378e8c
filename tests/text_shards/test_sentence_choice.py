"""How the sentences of inputs are split: the choice for each input, training, and what makes one doubt the choice."""

import bz2
import dataclasses
import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from data_sets.shard_builds import DATE, PLAIN, input_file
from made_up.languages import articles, dump_of, paragraphs

from maskmill.errors import UnusableInputError
from maskmill.inputs.units import InputFile
from maskmill.sentences.choice import SentenceChoice, choice_of_dump, choice_of_text, named_choice
from maskmill.storage import completions
from maskmill.text_shards import sentence_choice
from maskmill.text_shards.sentence_choice import choose_sentences, doubts_of

UKRAINIAN = dump_of("uk", articles("uk", 60))
HINDI = "नदी समुद्र तक बहती है। वह लम्बी है।\n" * 3


def write(path: Path, content: bytes, *, is_dump: bool = True) -> InputFile:
    path.write_bytes(content)
    return input_file(path, DATE if is_dump else "")


def choose(output: Path, *inputs: InputFile, language: str = "auto") -> list[SentenceChoice]:
    options = dataclasses.replace(PLAIN, language=language)
    return [SentenceChoice.from_json(f.sentences) for f in choose_sentences(inputs, options, "auto", str(output))]


def test_each_input_goes_by_its_own_language(tmp_path: Path) -> None:
    inputs = [
        write(tmp_path / "en.xml", dump_of("en", articles("hu", 1))),
        write(tmp_path / "zh.xml", dump_of("zh", articles("hu", 1))),
        write(tmp_path / "test.xml", dump_of("test", articles("hu", 1))),
        write(tmp_path / "book.txt", HINDI.encode(), is_dump=False),
        write(tmp_path / "lines.jsonl", json.dumps({"text": HINDI}).encode(), is_dump=False),
    ]
    found = choose(tmp_path / "out", *inputs)
    assert [(one.name, one.why) for one in found] == [
        ("English", "dump"),
        ("Chinese", "dump"),
        ("Latin script", "script"),
        ("Devanagari script", "script"),
        ("Devanagari script", "script"),
    ]
    assert all(one.why == "option" for one in choose(tmp_path / "out", *inputs, language="ja"))


def test_a_dump_that_the_user_gives_a_date_is_still_told_from_a_text(tmp_path: Path) -> None:
    book = write(tmp_path / "book.txt", HINDI.encode())
    assert [one.name for one in choose(tmp_path / "out", book)] == ["Devanagari script"]


CONTAINERS: Mapping[str, Callable[[bytes], bytes]] = {"xml": bytes, "xml.bz2": bz2.compress, "xml.gz": gzip.compress}


def test_training_gives_the_same_bytes_for_every_container(tmp_path: Path) -> None:
    written = []
    for suffix, pack in CONTAINERS.items():
        output = tmp_path / suffix / "out"
        output.mkdir(parents=True)
        (found,) = choose(output, write(tmp_path / suffix / f"dump.{suffix}", pack(UKRAINIAN)))
        assert found.parameters is not None
        assert (found.parameters.path, found.parameters.is_trained_here) == ("punkt/uk", True)
        assert found.text_bytes is not None
        assert found.text_bytes > 100_000
        written.append({path.name: path.read_bytes() for path in (output / "punkt" / "uk").iterdir()})
    assert written[0] == written[1] == written[2]
    assert "прк\n" in written[0]["abbrev_types.txt"].decode()


def test_training_is_done_once(tmp_path: Path) -> None:
    file = write(tmp_path / "dump.xml", UKRAINIAN)
    output = tmp_path / "out"
    first = choose(output, file)
    names = {path: path.stat().st_mtime_ns for path in (output / "punkt" / "uk").iterdir()}
    assert choose(output, file) == first
    assert {path: path.stat().st_mtime_ns for path in names} == names
    (output / "punkt" / "uk" / "abbrev_types.txt").write_text("")
    assert choose(output, file) == first
    assert (output / "punkt" / "uk" / "abbrev_types.txt").read_text()


@pytest.mark.builds
def test_inputs_of_one_language_are_learned_from_together(tmp_path: Path) -> None:
    pages = articles("uk", 60)
    parts = [
        write(tmp_path / f"part{number}.xml", dump_of("uk", pages[20 * number : 20 * number + 20]))
        for number in range(3)
    ]
    other = write(tmp_path / "hu.xml", dump_of("hu", articles("hu", 160)))
    found = choose(tmp_path / "out", *parts, other)
    (whole,) = choose(tmp_path / "whole", write(tmp_path / "whole.xml", dump_of("uk", pages)))
    assert found[0] == found[1] == found[2] == whole
    assert found[3].parameters is not None
    assert found[3].parameters.path == "punkt/hu"


def test_a_text_in_cyrillic_letters_trains_punkt_too(tmp_path: Path) -> None:
    text = "\n\n".join("\n".join(paragraphs("uk", number)) for number in range(60))
    (found,) = choose(tmp_path / "out", write(tmp_path / "book.txt", text.encode(), is_dump=False))
    assert found.parameters is not None
    assert (found.name, found.parameters.path) == ("Cyrillic script", "punkt/text-cyrillic")


def test_little_text_is_not_learned_from(tmp_path: Path) -> None:
    (found,) = choose(tmp_path / "out", write(tmp_path / "dump.xml", dump_of("uk", articles("uk", 3))))
    assert (found.parameters, found.rules.punkt, found.needs_training) == (None, None, False)
    assert found.text_bytes is not None
    assert 0 < found.text_bytes < 100_000
    assert not (tmp_path / "out" / "punkt").exists()


@pytest.mark.builds
def test_parameters_that_no_input_needs_any_more_are_deleted(tmp_path: Path) -> None:
    output = tmp_path / "out"
    (ukrainian,) = choose(output, write(tmp_path / "uk.xml", UKRAINIAN))
    (hungarian,) = choose(output, write(tmp_path / "hu.xml", dump_of("hu", articles("hu", 160))))
    assert ukrainian.parameters is not None
    entry = {"parameters": dataclasses.asdict(ukrainian.parameters), "text_bytes": ukrainian.text_bytes}
    (kept,) = sentence_choice.sweep_trainings([entry], str(output))
    assert kept in completions.keys(str(output), sentence_choice.KIND)
    assert [path.name for path in (output / "punkt" / "hu").glob("*")] == []
    assert len(list((output / "punkt" / "uk").iterdir())) == 4
    assert hungarian != ukrainian


def test_a_name_that_names_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableInputError, match="--language=klingon"):
        choose(tmp_path / "out", write(tmp_path / "dump.xml", UKRAINIAN), language="klingon")


WORDS = Path(__file__).parents[1] / "sentences" / "paragraphs.tsv"
TEXTS = dict(line.split("\t") for line in WORDS.read_text(encoding="utf-8").splitlines())


def chosen(tmp_path: Path, texts: Mapping[str, str]) -> list[InputFile]:
    """Text files with the choices of `choose_sentences`."""
    inputs = [write(tmp_path / name, text.encode(), is_dump=False) for name, text in texts.items()]
    return choose_sentences(inputs, PLAIN, "auto", str(tmp_path / "out"))


def names_of(found: list[InputFile]) -> list[tuple[str, str]]:
    return [(choice.name, choice.why) for choice in (SentenceChoice.from_json(file.sentences) for file in found)]


def test_texts_are_in_the_languages_of_their_words(tmp_path: Path) -> None:
    found = chosen(tmp_path, {"a.txt": TEXTS["fi"], "b.txt": TEXTS["en"], "c.txt": TEXTS["uk"], "d.txt": "Moi."})
    assert names_of(found) == [
        ("Finnish", "text"), ("English", "text"), ("Ukrainian", "text"), ("Latin script", "script")
    ]  # fmt: skip
    assert [file.language for file in found] == ["fi", "en", "uk", ""]
    assert all(file.language_sure >= 0.8 for file in found[:3])


def test_files_too_short_to_tell_are_in_the_language_of_all_together(tmp_path: Path) -> None:
    words = TEXTS["nl"].split()
    pieces = {f"{at:02}.txt": " ".join(words[at : at + 3]) for at in range(0, len(words), 3)}
    assert set(names_of(chosen(tmp_path, pieces))) == {("Dutch", "text")}
    assert names_of(chosen(tmp_path, {"one.txt": pieces["03.txt"]})) == [("Latin script", "script")]


def test_where_a_text_is_cut_into_files_does_not_change_its_language(tmp_path: Path) -> None:
    text = "\n\n".join([TEXTS["pl"]] * 6)
    halves = {"a.txt": text[: len(text) // 2], "b.txt": text[len(text) // 2 :]}
    assert set(names_of(chosen(tmp_path, halves))) == set(names_of(chosen(tmp_path, {"whole.txt": text})))


def lines(median: int) -> dict[str, int]:
    return {"lines": 10, "median_characters": median, "longest_characters": 10 * median}


@pytest.mark.parametrize(
    ("choice", "median", "scripts", "doubts"),
    [
        (choice_of_dump("uk"), 90, {"CYRILLIC": 900, "LATIN": 100}, []),
        (choice_of_dump("uk"), 400, {"CYRILLIC": 900}, ["long_lines"]),
        (choice_of_dump("uk"), 90, {"LATIN": 900, "CYRILLIC": 800}, ["other_script"]),
        (choice_of_dump("uk"), 90, {"LATIN": 900, "CYRILLIC": 800, "GREEK": 400}, []),
        (named_choice("english"), 90, {"DEVANAGARI": 1000}, ["other_script"]),
        (named_choice("english"), 500, {"DEVANAGARI": 1000}, ["long_lines", "other_script"]),
        (named_choice("english"), 90, {"DEVANAGARI": 50}, []),
        (named_choice("ja"), 40, {"CJK": 500, "HIRAGANA": 480}, []),
        (choice_of_text("Hello."), 90, {"CYRILLIC": 500}, ["other_script"]),
        (choice_of_text("ꦲꦤꦕꦫꦏ"), 90, {"JAVANESE": 500}, ["unknown_script"]),
        (choice_of_dump("en"), 90, {}, []),
    ],
)
def test_what_makes_one_doubt_a_choice(
    choice: SentenceChoice, median: int, scripts: dict[str, int], doubts: list[str]
) -> None:
    assert doubts_of(choice, lines(median), scripts) == doubts
