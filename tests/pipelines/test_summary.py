"""What a command says of its data when it is done: the counts, and what makes one doubt the data set."""

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from command_runs.commands import DUMP, IN_MEMORY, VOCAB
from data_sets.gold_examples import unpacked
from made_up.dump_files import dump, page

from maskmill.storage.outcomes import Result
from maskmill.text_shards.options import SplitOptions
from pipelines.commands import cli
from pipelines.settings.stage_options import ExtractOptions
from pipelines.terminal import data_warnings, summary

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

# One line of a Chinese text is a paragraph: nothing splits its sentences.
CHINESE = [
    "苹果是蔷薇科苹果属的落叶乔木,它的果实是世界上最常见的水果之一。人们在温带地区种植苹果已经有几千年的历史。"
    "苹果可以生吃,也可以做成果汁、果酱和苹果酒。不同的品种在颜色、大小和味道上有很大的差别。",
    "长江是亚洲第一长河,发源于青藏高原,自西向东流经中国的十一个省级行政区,最后注入东海。长江流域人口众多,"
    "农业和工业都很发达。沿江的主要城市有重庆、武汉、南京和上海。三峡水电站是世界上最大的水电站。",
]


@pytest.fixture(scope="module")
def real_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The text of articles of the English Wikipedia, a sentence a line."""
    return Path(unpacked("cleanup/eval.txt", tmp_path_factory.mktemp("text")))


def write(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


@pytest.fixture(scope="module")
def inputs(real_text: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Texts and vocabularies that fit each other, and that do not."""
    folder = tmp_path_factory.mktemp("inputs")
    articles = real_text.read_text().strip().split("\n\n")
    pieces = VOCAB.read_text().splitlines()
    paragraphs = ["".join(CHINESE[(k + j) % 2] for j in range(8)) for k in range(20)]
    contents = {
        "lines": "".join(article.replace("\n", " ") + "\n" for article in articles),  # as in JSON lines
        "Chinese": "\n\n".join(paragraphs) + "\n",
        "of Chinese": "\n".join([*SPECIAL, *sorted({letter for line in CHINESE for letter in line})]),
        "cased": "\n".join([*pieces, *(piece.title() for piece in pieces if piece.isalpha())]),
    }
    made = {name: write(folder / name.replace(" ", "-"), content) for name, content in contents.items()}
    return {"sentences": real_text, "uncased": VOCAB, **made}


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[str, list[str]]:
    """What a command prints to stdout, and its warnings."""
    assert cli.main([*map(str, arguments), *IN_MEMORY]) == 0
    printed, errors = capsys.readouterr()
    assert all(len(line) <= 80 for line in printed.splitlines() if line.startswith("  "))
    return printed, [line for line in errors.splitlines() if "warning: " in line]


FEW, MOST, ANY = (0, 0.05), (0.99, 1), (0, 1)
CASED = "--do_lower_case=False"
LITTLE_USED = r"warning: only {used} of the text of {text} is in .* tokens on average .* is 128; put one sentence on"
UNKNOWN = r"{unknown} of the words of {text} are not in the vocabulary .* for the text's language\.$"
CAPITALS = r"% of the pieces of {vocab} have capital letters, .* give --do_lower_case False for a cased"


@pytest.mark.parametrize(
    ("text", "vocab", "flags", "used", "unknown", "says"),
    [
        ("sentences", "uncased", (), MOST, (0, 0.01), []),
        ("lines", "uncased", (), (0, 0.1), FEW, ["its lines are longer than a pair has room for", LITTLE_USED]),
        ("Chinese", "uncased", (), (0, 0.5), ANY, ["because each sentence is a document", "of the (text|words)"]),
        ("sentences", "of Chinese", (), MOST, (0.8, 1), [UNKNOWN]),
        ("sentences", "uncased", (CASED,), MOST, (0.05, 0.25), ["give --do_lower_case True if it is for lower-cased"]),
        ("sentences", "cased", (), MOST, FEW, [CAPITALS]),
        ("sentences", "cased", (CASED,), MOST, FEW, []),
    ],
)
def test_a_text_that_does_not_fit_makes_a_warning(
    text: str,
    vocab: str,
    flags: tuple[str, ...],
    used: tuple[float, float],
    unknown: tuple[float, float],
    says: list[str],
    inputs: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ("examples", f"--input={inputs[text]}", f"--output={tmp_path}", f"--vocab_file={inputs[vocab]}", *flags)
    printed, warnings = run(capsys, *command)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (shard,), (counts,) = manifest["shards"], manifest["counts"].values()
    assert all(shard[name] == count for name, count in counts.items() if name in shard and name != "bytes")
    assert used[0] <= data_warnings.text_used(counts) <= used[1]
    assert unknown[0] <= data_warnings.words_unknown(counts) <= unknown[1]
    assert 0 < counts["words"] <= counts["tokens"]
    if (text, vocab) == ("sentences", "uncased"):
        # A pair with a random second part puts the text that it does not use back.
        assert 1.1 < counts["example_tokens"] / counts["tokens"] / 10 < 1.4
    shares = summary.shares(counts)
    assert all(share in printed for share in shares)
    names = {"used": shares[0].rpartition("used ")[2], "unknown": shares[1].rpartition("words ")[2]}
    names |= {"text": re.escape(str(inputs[text])), "vocab": re.escape(str(inputs[vocab]))}
    assert len(warnings) >= len(says)
    assert bool(warnings) == bool(says)
    assert all(re.search(said.format(**names), warning) for warning, said in zip(warnings, says, strict=False))


def test_the_worst_of_several_shards_is_named() -> None:
    counts = {"tokens": 1000, "unused_tokens": 900, "sentences": 2, "words": 500, "unknown_words": 0}
    texts = {"few": counts | {"unused_tokens": 10}, "bad": counts | {"unused_tokens": 700}, "worst": counts}
    (warning,) = data_warnings.warnings_of_texts(texts, max_seq_length=128, do_lower_case=True)
    assert warning.startswith(
        "only 10 % of the text of worst (likewise 1 other shard) is in examples, because its lines"
    )
    dropped = {"worst": counts | {"dropped_tokens": 800}}
    (warning,) = data_warnings.warnings_of_texts(dropped, max_seq_length=128, do_lower_case=True)
    assert "--block_remainder drop leaves out what does not fill a row of 128" in warning


# ---- the eval set, and what was decided


def extract(capsys: pytest.CaptureFixture[str], output: Path, *flags: str) -> tuple[dict[str, Any], list[str]]:
    _, warnings = run(capsys, "extract", f"--input={DUMP}", f"--output={output}", *flags)
    manifest: dict[str, Any] = json.loads((output / "manifest.json").read_text())
    return manifest, warnings


@pytest.mark.builds
def test_an_eval_set_that_is_empty_makes_a_warning(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    manifest, (warning,) = extract(capsys, tmp_path / "out")
    assert manifest["counts"]["eval"]["documents"] == 0
    assert warning == (
        "maskmill extract: warning: the eval set is empty, because its share is 0.005 and there are only 98 articles; "
        "give --num_eval_articles the number to hold out, or 0 for no eval set."
    )
    parameters, decided = manifest["parameters"], manifest["decided"]
    assert [parameters[name] for name in ("eval_fraction", "shard_size_mb", "extractor")] == [None, None, None]
    assert decided["eval_fraction"] == 0.005
    assert decided["shard_size_mb"] == 27.0
    assert decided["extractor"] == "maskmill"
    assert decided["dump_date"][:2] == "20"


def test_what_mlperf_decides() -> None:
    decided = ExtractOptions(input=("dump.xml",), output="out", compat="mlperf").decided
    assert decided.split == SplitOptions(num_eval_articles=10000, shard_size_mb=26.92)
    assert (decided.extraction.extractor, decided.extraction.doc_blocks) == ("wikiextractor", True)
    given = SplitOptions(num_eval_articles=7, shard_size_mb=1.5, max_documents=9)
    options = ExtractOptions(input=("dump.xml",), output="out", compat="mlperf", split=given)
    assert options.decided.split == given


@pytest.mark.builds
def test_who_wants_no_eval_set_or_has_one_is_not_warned(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    manifest, warnings = extract(capsys, tmp_path / "none", "--num_eval_articles=0", "--dump_date=2020-01-31")
    assert warnings == []
    assert "eval_fraction" not in manifest["decided"]
    assert manifest["decided"]["dump_date"] == manifest["parameters"]["dump_date"] == "2020-01-31"
    manifest, warnings = extract(capsys, tmp_path / "some", "--eval_fraction=0.1")
    assert warnings == []
    assert manifest["counts"]["eval"]["documents"] > 0
    assert manifest["parameters"]["eval_fraction"] == 0.1


def extracted(**steps: dict[str, int]) -> dict[str, Any]:
    parameters = {"eval_fraction": 0.1, "expand_templates": False}
    return {"stage": "extract", "parameters": parameters, "decided": {}, "counts": {"eval": {"documents": 1}} | steps}


def picked(available: int, picked: int) -> dict[str, Any]:
    counts = {"eval": {"available": available, "picked": picked, "bytes": 7}}
    return {"stage": "eval", "parameters": {"num_examples_to_pick": 100}, "counts": counts}


def packed(padding: int, **parameters: bool) -> dict[str, Any]:
    counts = {"train": {"padding_tokens": padding, "unpacked_padding_tokens": 100}}
    return {"stage": "packed", "parameters": parameters, "counts": counts}


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (picked(0, 0), "The eval set is empty, so there was no example to pick."),
        (picked(15, 15), "There are fewer eval examples than num_examples_to_pick (100): all were taken."),
        (picked(100, 100), ""),
        (picked(2000, 100), ""),
        (packed(60, full_sentences=True), "whole sentences leave gaps that none fills;"),
        (packed(60, full_sentences=False, cross_documents=True), "sequences across documents are full already."),
        (packed(60, full_sentences=False, cross_documents=False), ""),
        (packed(40, full_sentences=True), ""),
        (extracted(extract={"rejected": 2}), "2 documents could not be processed; out/rejected.jsonl lists each"),
        (extracted(extract={"cut_off_files": 1}), "1 input is cut off: what stands before the cut was taken; pages"),
        (extracted(templates={"definitions": 9, "unknown_calls": 1}), "no rule knows 1 call of templates in the text;"),
        (extracted(templates={"unknown_calls": 1}), ""),
    ],
)
def test_notes_say_what_to_know_of_a_stage(made: dict[str, Any], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    summary.report("out", Result(made=made))
    notes = [line for line in capsys.readouterr().out.splitlines()[1:] if not line.startswith(("  e", "  t", "   "))]
    assert says in "\n".join(notes)
    assert bool(notes) == bool(says)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0 %"), (0.000291, "0.03 %"), (0.0057, "0.6 %"), (0.0299, "2.99 %"), (0.99931, "99.9 %"), (1, "100 %")],
)
def test_shares_are_short(share: float, text: str) -> None:
    assert data_warnings.percent(share) == text


class Terminal(io.StringIO):
    """A terminal without a file descriptor."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("no_color", ["", "1"])
def test_a_terminal_gets_the_same_lines_in_colours(no_color: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = picked(907, 100)
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", stream := Terminal())
    summary.report("out\x1b[2J", Result(made=made))
    written = stream.getvalue()
    assert (
        re.sub(r"\x1b\[[0-9;]*m", "", written) == "eval: out\\x1b[2J\n  eval     907 available, 100 picked, 7 bytes\n"
    )
    assert ("\x1b[1;36m" in written) == (not no_color)


def test_a_summary_names_all_counts_in_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    counts = {
        "extract": dict.fromkeys(("read", "documents", "redirects", "disambiguation_pages", "empty"), 10**11),
        "train": dict.fromkeys(("shards", "documents", "sentences", "bytes"), 10**11),
        "eval": dict.fromkeys(("shards", "documents", "sentences", "bytes"), 10),
    }
    made = {"stage": "extract", "parameters": {"eval_fraction": 0.1}, "decided": {}, "counts": counts, "shards": []}
    summary.report("out", Result(made=made))
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert printed.count("100,000,000,000 ") == 9
    assert "\n           100,000,000,000 " in printed


NO_EVAL = ("--num_eval_articles=0",)
FRENCH = (
    "Le {{date-|5|mai|1801|en France}}, {{nobr romains|Louis|XIV}} écrit au {{s|XIX|e}}. "
    "Il a {{nombre|300|soldats}} et {{unité|12|lieues}} de {{terme défini|remparts}} devant {{page h'|lui}}, dit-il. "
    "Il est mort loin de là."
)


@pytest.mark.parametrize(("wiki", "pages", "warned"), [("en", 50, True), ("en", 10, False), ("fr", 50, False)])
def test_a_language_whose_templates_are_unknown_is_doubted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wiki: str, pages: int, warned: bool
) -> None:
    source = dump([page(i, f"P {i}", FRENCH) for i in range(1, pages + 1)]).decode()
    text = write(tmp_path / "dump.xml", source.replace("test.wikipedia", f"{wiki}.wikipedia"))
    _, warnings = run(capsys, "extract", f"--input={text}", f"--output={tmp_path}/o", *NO_EVAL)
    says = "of the calls of templates in the text have no rule for English; look at the text"
    assert [says in warning for warning in warnings] == [True] * warned


def test_a_dump_of_another_project_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pages = [
        page(1, "Word", "The {{gloss2|x}} thing is of a kind.\n"),
        page(2, "Page", '<pages index="A.djvu" from=1 to=9 />'),
    ]
    source = dump(pages).decode().replace("test.wikipedia", "en.wiktionary").replace("Testwiki", "Wiktionary")
    text = write(tmp_path / "dump.xml", source)
    _, (first,) = run(capsys, "extract", f"--input={text}", f"--output={tmp_path}/o", *NO_EVAL)
    assert f"{text} is a dump of Wiktionary (en.wiktionary.org), and maskmill's rules are those of Wikipedia" in first
