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
from pipelines.commands import cli
from pipelines.settings.stage_options import ExtractOptions
from pipelines.terminal import data_warnings, summary
from transforms.shards.options import SplitOptions

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


def as_long_lines(text: Path, path: Path) -> Path:
    """A text with an article a line, as it is in JSON lines."""
    articles = text.read_text().strip().split("\n\n")
    return write(path, "".join(article.replace("\n", " ") + "\n" for article in articles))


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[str, list[str]]:
    """What a command prints to stdout, and its warnings."""
    assert cli.main([*map(str, arguments), *IN_MEMORY]) == 0
    printed, errors = capsys.readouterr()
    assert all(len(line) <= 80 for line in printed.splitlines() if line.startswith("  "))
    return printed, [line for line in errors.splitlines() if "warning: " in line]


def examples(
    capsys: pytest.CaptureFixture[str], text: Path, output: Path, *flags: str, vocab: Path = VOCAB
) -> tuple[dict[str, Any], str, list[str]]:
    """Makes examples; returns the counts of the manifest, what was printed, and the warnings."""
    printed, warnings = run(
        capsys, "examples", f"--input={text}", f"--output={output}", f"--vocab_file={vocab}", *flags
    )
    manifest = json.loads((output / "manifest.json").read_text())
    (shard,) = manifest["shards"]
    (counts,) = manifest["counts"].values()
    assert manifest["decided"] == {
        "duplicate_pieces": "last",
        "mask_unit": "piece",
        "one_seed": False,
        "unicode": "15.1.0",
    }
    assert {name: shard[name] for name in counts if name in shard and name != "bytes"} == {
        name: value for name, value in counts.items() if name not in ("shards", "bytes")
    }
    return counts, printed, warnings


def test_a_text_of_sentences_is_used_and_known(
    capsys: pytest.CaptureFixture[str], real_text: Path, tmp_path: Path
) -> None:
    counts, printed, warnings = examples(capsys, real_text, tmp_path / "out")
    assert counts["unused_tokens"] < 0.01 * counts["tokens"]
    # A pair with a random second part puts the text that it does not use back.
    assert 1.1 < counts["example_tokens"] / counts["tokens"] / 10 < 1.4
    assert counts["unknown_words"] < 0.01 * counts["words"]
    assert counts["words"] <= counts["tokens"]
    assert "text used 9" in printed or "text used 100" in printed
    assert "unknown words 0" in printed
    assert warnings == []


def test_an_article_a_line_is_hardly_used(capsys: pytest.CaptureFixture[str], real_text: Path, tmp_path: Path) -> None:
    lines = as_long_lines(real_text, tmp_path / "lines")
    counts, printed, (labels, warning) = examples(capsys, lines, tmp_path / "out")
    assert counts["unused_tokens"] > 0.9 * counts["tokens"]
    assert "because its lines are longer" in labels
    used = summary.shares(counts)[0].removeprefix("text used ")
    assert f"text used {used}" in printed
    assert warning.startswith(f"maskmill examples: warning: only {used} of the text of {lines} is in examples, because")
    assert "tokens on average and max_seq_length is 128; put one sentence on each line" in warning


def test_a_text_that_nothing_has_split_is_hardly_used(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    paragraphs = ["".join(CHINESE[(k + j) % 2] for j in range(8)) for k in range(20)]
    text = write(tmp_path / "text", "\n\n".join(paragraphs) + "\n")
    counts, _, warnings = examples(capsys, text, tmp_path / "out")
    assert counts["unused_tokens"] > 0.5 * counts["tokens"]
    assert any("of the text" in warning for warning in warnings)
    assert "because each sentence is a document" in warnings[0]


def test_a_vocabulary_of_another_language_makes_a_warning(
    capsys: pytest.CaptureFixture[str], real_text: Path, tmp_path: Path
) -> None:
    letters = sorted({letter for line in CHINESE for letter in line})
    vocab = write(tmp_path / "vocab.txt", "\n".join([*SPECIAL, *letters]))
    counts, printed, (warning,) = examples(capsys, real_text, tmp_path / "out", vocab=vocab)
    assert counts["unknown_words"] > 0.8 * counts["words"]
    assert f"% of the words of {real_text} are not in the vocabulary" in warning
    assert warning.endswith("check that the vocabulary is for the text's language.")
    assert f"unknown words {summary.shares(counts)[1].removeprefix('unknown words ')}" in printed


def test_capitals_that_an_uncased_vocabulary_lacks_make_a_warning(
    capsys: pytest.CaptureFixture[str], real_text: Path, tmp_path: Path
) -> None:
    counts, _, (warning,) = examples(capsys, real_text, tmp_path / "out", "--do_lower_case=False")
    assert 0.05 < counts["unknown_words"] / counts["words"] < 0.25
    assert warning.endswith("and give --do_lower_case True if it is for lower-cased (uncased) text.")


def test_a_cased_vocabulary_and_lower_cased_text_make_a_warning(
    capsys: pytest.CaptureFixture[str], real_text: Path, tmp_path: Path
) -> None:
    pieces = VOCAB.read_text().splitlines()
    vocab = write(tmp_path / "vocab.txt", "\n".join([*pieces, *(piece.title() for piece in pieces if piece.isalpha())]))
    _, _, (warning,) = examples(capsys, real_text, tmp_path / "out", vocab=vocab)
    assert f"% of the pieces of {vocab} have capital letters, which are never used" in warning
    assert warning.endswith("give --do_lower_case False for a cased vocabulary.")
    assert examples(capsys, real_text, tmp_path / "cased", "--do_lower_case=False", vocab=vocab)[2] == []


def test_the_worst_of_several_shards_is_named(
    capsys: pytest.CaptureFixture[str], real_text: Path, tmp_path: Path
) -> None:
    few = write(tmp_path / "few", real_text.read_text()[:20_000])
    worst = as_long_lines(real_text, tmp_path / "worst")
    bad = as_long_lines(few, tmp_path / "bad")
    printed, (warning,) = run(
        capsys,
        "examples",
        f"--input={few},{worst},{bad}",
        f"--output={tmp_path}/out",
        f"--vocab_file={VOCAB}",
    )
    assert "3 shards" in printed
    assert f"of the text of {worst} (likewise 1 other shard) is in examples" in warning


def test_create_pretraining_data_warns_too(capsys: pytest.CaptureFixture[str], real_text: Path, tmp_path: Path) -> None:
    lines = as_long_lines(real_text, tmp_path / "lines")
    arguments = [f"--input_file={lines}", f"--output_file={tmp_path}/new.tfrecord", f"--vocab_file={VOCAB}"]
    assert cli.main(["create-pretraining-data", *arguments]) == 0
    printed, errors = capsys.readouterr()
    assert "  text used " in printed
    assert errors.startswith("maskmill create-pretraining-data: warning: only ")
    assert errors.count("\n") == 1


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


@pytest.mark.parametrize(
    ("available", "picked", "says"),
    [
        (0, 0, "The eval set is empty, so there was no example to pick."),
        (15, 15, "There are fewer eval examples than num_examples_to_pick (100): all were taken."),
        (100, 100, ""),
        (2000, 100, ""),
    ],
)
def test_fewer_eval_examples_than_wanted_are_explained(
    available: int, picked: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = {"eval": {"available": available, "picked": picked, "bytes": 7}}
    made = {"stage": "eval", "parameters": {"num_examples_to_pick": 100}, "counts": counts}
    summary.report("out", Result(made=made))
    _, _, *rest = capsys.readouterr().out.splitlines()
    assert [line.strip() for line in rest] == ([says] if says else [])


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--full_sentences",), "with --nofull_sentences a sentence goes on in the next row, and rows are full."),
        ((), "--pack took out little padding: sequences across documents are full already."),
        (("--nocross_documents",), ""),
    ],
)
def test_packing_without_gain_is_explained(
    flags: tuple[str, ...], says: str, real_text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["examples", f"--input={real_text}", f"--output={tmp_path}/o", f"--vocab_file={VOCAB}", "--objective=mlm"]
    printed, _ = run(capsys, *command, "--pack", "--dupe_factor=1", *flags)
    assert ("--pack took out little padding" in printed) == bool(says)
    assert says in printed


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
    counts = {"eval": {"available": 907, "picked": 300}}
    made = {"stage": "eval", "parameters": {"num_examples_to_pick": 300}, "counts": counts}
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", stream := Terminal())
    summary.report("out\x1b[2J", Result(made=made))
    written = stream.getvalue()
    assert re.sub(r"\x1b\[[0-9;]*m", "", written) == "eval: out\\x1b[2J\n  eval     907 available, 300 picked\n"
    assert ("\x1b[36m" in written) == (not no_color)


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


@pytest.mark.parametrize(("pages", "warned"), [(50, True), (10, False)])
def test_a_language_whose_templates_are_unknown_is_doubted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pages: int, warned: bool
) -> None:
    text = write(tmp_path / "dump.xml", dump([page(i, f"P {i}", FRENCH) for i in range(1, pages + 1)]).decode())
    source = text.read_text().replace("test.wikipedia", "en.wikipedia")
    _, warnings = run(capsys, "extract", f"--input={write(text, source)}", f"--output={tmp_path}/o", *NO_EVAL)
    assert len(warnings) == warned
    if warned:
        assert "of the calls of templates in the text have no rule for English; look at the text" in warnings[0]


def test_the_rules_language_is_not_doubted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = write(tmp_path / "dump.xml", dump([page(i, f"P {i}", FRENCH) for i in range(1, 51)]).decode())
    source = text.read_text().replace("test.wikipedia", "fr.wikipedia")
    assert run(capsys, "extract", f"--input={write(text, source)}", f"--output={tmp_path}/o", *NO_EVAL)[1] == []


def test_a_dump_of_another_project_is_named_at_once_and_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = [
        page(1, "Word", "The {{gloss2|x}} thing is of a kind.\n"),
        page(2, "Page", '<pages index="A.djvu" from=1 to=9 />'),
    ]
    source = dump(pages).decode().replace("test.wikipedia", "en.wiktionary").replace("Testwiki", "Wiktionary")
    text = write(tmp_path / "dump.xml", source)
    _, (first, last) = run(capsys, "extract", f"--input={text}", f"--output={tmp_path}/o", *NO_EVAL)
    assert f"{text} is a dump of Wiktionary (en.wiktionary.org), and maskmill's rules are those of Wikipedia" in first
    assert "of Wiktionary (en.wiktionary.org), 1 of 2 pages gave no text, and 1 gave " in last
    assert " bytes each; of the 1 calls of templates in the text 1 had no rule. " in last
