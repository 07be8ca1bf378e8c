"""Articles, documents and examples as elements: the same as `extract` and `examples` make, on each runner."""

import dataclasses
import gzip
import hashlib
import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import cloudpickle
import pyarrow
import pyarrow.parquet
import pytest
from apache_beam.internal import pickler
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from command_runs.commands import DUMP, VOCAB, digests
from data_sets.steps import STRICT, check_elements, counters, equal_to, run_step
from made_up.dump_files import dump, page
from oracles import pretraining as oracle

import maskmill
import transforms
from maskmill import testing
from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.extraction.options import WikitextOptions
from maskmill.inputs.articles import HOLE, Article, Document, Rejected
from maskmill.inputs.options import ReadOptions
from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.masking.options import MaskingOptions
from maskmill.masking.seeds import shard_seed
from maskmill.records.options import FormatOptions
from maskmill.sentences.choice import named_choice
from maskmill.text.shards import TextShard
from maskmill.text_shards.options import ExtractionOptions, QualityOptions
from pipelines.commands import cli
from pipelines.running.local_runner import LocalRunner
from transforms.elements.articles import split_article
from transforms.elements.groups import group_of
from transforms.elements.steps import (
    CreateExamples,
    FilterQuality,
    PickEval,
    ReadArticles,
    SplitSentences,
    WriteExamples,
    WriteText,
)

RUNNERS: Mapping[str, Callable[[], beam.runners.PipelineRunner]] = {
    "FnApiRunner": FnApiRunner,
    "LocalRunner(0)": lambda: LocalRunner(0),
    "LocalRunner(2)": lambda: LocalRunner(2),
}
MASKING = MaskingOptions(max_seq_length=64, max_predictions_per_seq=10, dupe_factor=2)
SHARDS = 3


def article(text: str, title: str = "", page_id: str = "1", wiki: str = "", **metadata: str) -> Article:
    return Article(wiki, page_id, title, text, metadata)


def run(runner: str, build: Callable[[beam.Pipeline], object]) -> dict[str, int]:
    """Run a pipeline with all of Beam's checks of types; return what it counted."""
    with beam.Pipeline(runner=RUNNERS[runner](), options=PipelineOptions(list(STRICT))) as pipeline:
        build(pipeline)
    return counters(pipeline)


def documents_in(folder: Path) -> set[str]:
    """The documents of the text shards in a folder."""
    texts = [path.read_text() for path in folder.iterdir() if path.name.startswith(("part", "eval-", "eval.txt"))]
    return {document for text in texts for document in text.split("\n\n") if document}


# ---- maskmill.testing


@pytest.mark.parametrize("wiki", ["enwiki", "dewiki"])
def test_a_sample_dump_becomes_the_sample_documents_and_the_vocabulary_knows_their_words(
    wiki: str, tmp_path: Path
) -> None:
    dumped, vocabulary = tmp_path / "sample.xml", tmp_path / "vocab.txt"
    testing.write_dump(dumped, wiki)
    testing.write_vocabulary(vocabulary)
    expected = [one[:4] for one in testing.DOCUMENTS if one.wiki == wiki]

    def build(pipeline: beam.Pipeline) -> None:
        documents = (pipeline | ReadArticles(str(dumped))).articles | SplitSentences()
        check_elements(documents, lambda found: equal_to(expected)([one[:4] for one in found]))
        examples = documents | WriteExamples(str(tmp_path / "out"), str(vocabulary), 1, masking=MASKING)
        check_elements(examples, lambda found: equal_to([0])([one.counts["unknown_words"] for one in found]), "Words")

    assert run("LocalRunner(0)", build)["redirects"] == 1


# ---- ReadArticles

PROSE = "An apple is a fruit. It isn't a pear."
DUMPED = dump(
    [
        page(1, "Apple", f"'''{PROSE}'''"),
        page(2, "Apfel", "#REDIRECT [[Apple]]", redirect="Apple"),
        page(3, "Empty", ""),
        page(4, "Talk:Apple", "x", namespace=1),
    ]
)
LINES = [{"text": PROSE, "key": 7, "lang": "en"}, {"text": "Ein Apfel.", "key": 8, "lang": "German"}]
JSON_LINES = "\n".join(map(json.dumps, LINES)).encode() + b'\n{"text": 1, "key": 9}\n{"broken\n'
READING = ReadOptions(id_column="key", language_column="lang")


def parquet_of(records: Sequence[Mapping[str, Any]]) -> bytes:
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(records)), sink)
    return sink.getvalue().to_pybytes()


def text(content: str) -> tuple[Any, ...]:
    """The fields of an article of plain text."""
    return "", hashlib.sha256(content.encode()).hexdigest(), "", content, {}


DOC_FILE = b'<doc id="5" url="u" title="Pear">\nPear\n\nA pear.\n</doc>\n'
RECORDS = [
    ("", "7", "", PROSE, {"key": 7, "lang": "en", "language": "en"}),
    ("", "8", "", "Ein Apfel.", {"key": 8, "lang": "German", "language": "German"}),
]
OF_APPLE = {"language": "test", "date": "2020-01-31", "url": "https://test.wikipedia.org/wiki?curid=1"}
IN_DUMP = ("testwiki", "1", "Apple", PROSE, OF_APPLE)
READ: list[tuple[str, bytes, ExtractionOptions, list[tuple[Any, ...]], dict[str, str]]] = [
    ("x-20200131.xml", DUMPED, ExtractionOptions(), [IN_DUMP], {}),
    ("x-20200131.xml.gz", gzip.compress(DUMPED), ExtractionOptions(), [IN_DUMP], {}),
    ("x.txt", b"One.\nTwo.\n\nThree.\n", ExtractionOptions(), [text("One.\nTwo."), text("Three.")], {}),
    ("x", DOC_FILE, ExtractionOptions(), [("", "5", "Pear", "A pear.", {})], {}),
    ("x.parquet", parquet_of(LINES), ExtractionOptions(reading=READING), RECORDS, {}),
    (
        "x.jsonl",
        JSON_LINES,
        ExtractionOptions(reading=READING),
        RECORDS,
        {'{"text": 1, "key": 9}': 'the column "text" is no text', '{"broken': "the line is not JSON"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "options", "expected", "rejected"), READ, ids=[read[0] for read in READ])
def test_each_format_becomes_articles(
    name: str,
    content: bytes,
    options: ExtractionOptions,
    expected: list[tuple[Any, ...]],
    rejected: dict[str, str],
    tmp_path: Path,
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    made = [Article(*fields, metadata={"input": str(path), **metadata}) for *fields, metadata in expected]

    def check_rejected(found: list[Rejected]) -> None:
        assert sorted((one.input, one.title) for one in found) == sorted((str(path), title) for title in rejected)
        assert all(one.reason.startswith(rejected[one.title]) for one in found)

    def build(pipeline: beam.Pipeline) -> None:
        read = pipeline | ReadArticles(str(path), options=options)
        check_elements(read.articles, equal_to(made))
        check_elements(read.rejected, check_rejected, "Rejected")

    for runner in ("FnApiRunner", "LocalRunner(0)"):
        counted = run(runner, build)
        left_out = {"redirects": 1, "empty": 1, "other_namespaces": 1} if "xml" in name else {}
        some = {"rejected": len(rejected)} if rejected else {}
        pages = len(expected) + sum(left_out.values()) + len(rejected)
        assert counted == {"articles": len(expected), "pages_read": pages, **left_out, **some}


def test_what_extract_refuses_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(UnusableInputError, match="ReadArticles reads each page alone"):
        ReadArticles("x", options=ExtractionOptions(wikitext=WikitextOptions(expand_templates="all")))
    with pytest.raises(UnusableInputError, match="this input matches no file"):
        run("LocalRunner(0)", lambda pipeline: pipeline | ReadArticles(str(tmp_path / "missing*")))
    (tmp_path / "cut.xml").write_bytes(DUMPED[:-20])
    with pytest.raises(UnusableInputError, match=r"cut\.xml: the XML is cut off"):
        run("LocalRunner(0)", lambda pipeline: pipeline | ReadArticles(str(tmp_path / "cut.xml")))


@pytest.mark.builds
def test_the_sample_dump_gives_what_extract_gives(tmp_path: Path) -> None:
    quality = QualityOptions(min_characters=20000, max_list_share=0.3)
    flags = ["--quiet", "--min_characters=20000", "--max_list_share=0.3", "--workers=1"]
    assert cli.main(["extract", f"--input={DUMP}", f"--output={tmp_path / 'extracted'}", *flags]) == 0
    counts = json.loads((tmp_path / "extracted" / "manifest.json").read_text())["counts"]
    sentences, counts = counts["train"]["sentences"] + counts["eval"]["sentences"], counts["extract"]
    for runner in RUNNERS:
        output = tmp_path / runner

        def build(pipeline: beam.Pipeline, output: str = str(output)) -> None:
            documents = (pipeline | ReadArticles([str(DUMP)])).articles | FilterQuality(quality) | SplitSentences()
            documents | WriteText(output, SHARDS)

        counted = run(runner, build)
        assert documents_in(output) == documents_in(tmp_path / "extracted")
        assert digests(output) == digests(tmp_path / "FnApiRunner")
        assert counted.pop("articles") == counts["documents"] + counts["too_short"] + counts["list_pages"]
        assert counted.pop("pages_read") == counts["read"]
        assert counted.pop("sentences") == sentences
        assert counted == {name: count for name, count in counts.items() if name != "read"}


# ---- FilterQuality, SplitSentences

STAYS = article("Letters and words.\nThey are long.", "A title")


@pytest.mark.parametrize(
    ("options", "dropped"),
    [
        ({}, article("")),
        ({"min_characters": 10}, article(f"Too{HOLE} short")),
        ({"min_letter_share": 0.8}, article("1 2 3 4 5 6 x")),
        ({"max_repeated_share": 0.3}, article("one\none\none")),
        ({"max_list_share": 0.9}, article("A sentence.", "Liste de mots", language="fr")),
    ],
)
def test_articles_are_dropped_by_quality(options: dict[str, float], dropped: Article) -> None:
    expected = [STAYS, dropped] if not options or not dropped.text else [STAYS]
    run_step([STAYS, dropped], FilterQuality(QualityOptions(**options)), equal_to(expected))


def test_filters_that_need_more_than_a_text_are_refused() -> None:
    for options in ({"drop_stubs": True}, {"drop_duplicates": True}, {"near_duplicate_threshold": 0.8}):
        with pytest.raises(UnusableInputError, match="FilterQuality sees one text"):
            FilterQuality(QualityOptions(**options))


@pytest.mark.parametrize(
    ("language", "given", "sentences"),
    [
        ("auto", article("Dr. Who came. He left.\nA line.", language="en"), ["Dr. Who came.", "He left.", "A line."]),
        ("auto", article("これは文です。次の文です。"), ["これは文です。", "次の文です。"]),
        ("auto", article("Das ist z. B. einer. Ja.", language="German"), ["Das ist z. B. einer.", "Ja."]),
        ("de", article("Das ist z. B. einer. Ja."), ["Das ist z. B. einer.", "Ja."]),
        ("auto", article("Tys ir teikums. Vēļ vīns.", language="ltg"), ["Tys ir teikums.", "Vēļ vīns."]),
        ("en", article(f"It rose to {HOLE} million. It fell.{HOLE}\nIt ends."), ["It fell.", "It ends."]),
        ("en", article(" \n"), []),
    ],
)  # fmt: skip
def test_articles_become_sentences(language: str, given: Article, sentences: list[str]) -> None:
    expected = [Document(given.wiki, given.page_id, given.title, sentences, given.metadata)] if sentences else []
    run_step([given], SplitSentences(language), equal_to(expected))


def test_a_field_that_is_no_text_is_refused() -> None:
    with pytest.raises(UnusableInputError, match="page_id of Article is int, 7; it must be str"):
        split_article(STAYS._replace(page_id=7), named_choice("en").splitter())
    with pytest.raises(UnusableInputError, match="wiki of Document is NoneType, None; it must be str"):
        group_of(Document(None, "1", "", ["A sentence."], {}), 5)  # type: ignore[arg-type]


def test_a_language_that_nobody_knows_is_refused() -> None:
    with pytest.raises(UnusableInputError, match="--language=klingonese names no language"):
        SplitSentences("klingonese")


# ---- WriteText, WriteExamples, CreateExamples


def document(number: int, wiki: str = "testwiki") -> Document:
    sentences = [f"Sentence {n} of page {number} is about foxes and {n * number} dogs." for n in range(12)]
    return Document(wiki, str(number), f"Page {number}", sentences, {})


DOCUMENTS = [document(number) for number in range(20)]


def test_a_group_is_named_by_wiki_and_page() -> None:
    assert len({group_of(one, 1 << 40)[0] for one in [*DOCUMENTS, document(1, "otherwiki")]}) == len(DOCUMENTS) + 1
    odd = Document("w", "1", "", ["One\nline.", " \u3000", "", "Two\nmore lines."], {})
    assert group_of(odd, 5)[1][1] == b"One line.\nTwo more lines.\n\n"
    assert group_of(odd._replace(sentences=["\n"]), 5)[1][1] == b""


def test_the_eval_set_is_that_of_extract(tmp_path: Path) -> None:
    flags = ["--quiet", "--eval_fraction=0.2", "--random_seed=7", "--shard_size_mb=9"]
    assert cli.main(["extract", f"--input={DUMP}", f"--output={tmp_path / 'extracted'}", *flags]) == 0
    for runner in RUNNERS:
        folder = tmp_path / runner

        def build(pipeline: beam.Pipeline, folder: Path = folder) -> None:
            documents = (pipeline | ReadArticles(str(DUMP))).articles | SplitSentences()
            picked = documents | PickEval(0.2, random_seed=7)
            picked.train | "Train" >> WriteText(str(folder / "train"), 1)
            picked.eval | "Eval" >> WriteText(str(folder / "eval"), 1)

        counted = run(runner, build)
        held_out = documents_in(folder / "eval")
        assert len(held_out) == counted["held_out"] > 9
        assert held_out == {d for d in (tmp_path / "extracted" / "eval.txt").read_text().split("\n\n") if d}
        assert held_out | documents_in(folder / "train") == documents_in(tmp_path / "extracted")
    with pytest.raises(UnusableInputError, match="eval_fraction must be at least 0 and below 1"):
        PickEval(1.5)


def test_text_shards_are_described(tmp_path: Path) -> None:
    def check(shards: list[TextShard]) -> None:
        assert len(shards) == SHARDS
        for shard in shards:
            content = Path(shard.path).read_bytes()
            assert Path(shard.path).name == f"part-{shard.number:05d}-of-{SHARDS:05d}"
            assert (shard.size, shard.sha256) == (len(content), hashlib.sha256(content).hexdigest())
            assert (shard.documents, shard.sentences) == (content.count(b"\n\n"), 12 * content.count(b"\n\n"))

    run_step([*DOCUMENTS, DOCUMENTS[0]._replace(page_id="x", sentences=[""])], WriteText(str(tmp_path), SHARDS), check)
    assert documents_in(tmp_path) == {"\n".join(one.sentences) for one in DOCUMENTS}
    with pytest.raises(UnusableInputError, match="num_shards is 0"):
        WriteText(str(tmp_path), 0)


def write_examples(runner: str, output: Path, documents: Sequence[Document], **options: Any) -> dict[str, int]:
    step = WriteExamples(str(output), str(VOCAB), **{"num_shards": SHARDS, "masking": MASKING, **options})
    created = beam.Create(list(documents)).with_output_types(Document)
    return run(runner, lambda pipeline: pipeline | "Documents" >> created | step)


@pytest.mark.builds
def test_examples_are_the_oracles_on_each_runner(tmp_path: Path) -> None:
    for place, runner in enumerate(RUNNERS):
        ordered = DOCUMENTS[place:] + DOCUMENTS[:place]
        counted = write_examples(runner, tmp_path / runner, ordered)
        assert digests(tmp_path / runner, manifests=False) == digests(tmp_path / "FnApiRunner", manifests=False)
    made = tmp_path / "FnApiRunner" / "examples"
    records: list[bytes] = []
    masked = 0
    for number in range(SHARDS):
        name = f"part-{number:05d}-of-{SHARDS:05d}"
        masking = dataclasses.replace(MASKING, random_seed=shard_seed(MASKING.random_seed, "train", number))
        fields = {field.name for field in dataclasses.fields(oracle.Settings)}
        values = {name: value for name, value in vars(masking).items() if name in fields}
        settings = oracle.Settings(**{**values, "unicode": "15.1.0"})
        text = (tmp_path / "FnApiRunner" / "text" / name).read_bytes()
        (expected,) = oracle.make_files([text], VOCAB.read_bytes(), settings, 1)
        assert oracle.read_examples(made / f"{name}.tfrecord") == expected
        records += oracle.split_tfrecord((made / f"{name}.tfrecord").read_bytes())
        masked += sum(round(sum(features["masked_lm_weights"])) for features in expected)
    listed = json.loads((made / "manifest.json").read_text())
    assert listed["parameters"]["num_shards"] == SHARDS
    assert listed["counts"]["train"]["masked_positions"] == masked
    train = listed["counts"]["train"]
    assert {name: counted[name] for name in ("tokens", "examples", "masked_positions")}.items() <= train.items()
    run_step(DOCUMENTS, CreateExamples(str(VOCAB), SHARDS, MASKING), equal_to(records))


@pytest.mark.parametrize(
    ("objective", "format"),
    [("nsp", "tfrecord"), ("mlm", "parquet"), ("mlm", "mds"), ("blocks", "spans")],
)
def test_what_is_written_is_a_data_set(objective: Any, format: str, tmp_path: Path) -> None:
    chosen = ObjectiveOptions(objective=objective, dynamic_masking=format == "spans")
    plain = {} if objective == "nsp" else {"short_seq_prob": 0.0}
    masking = dataclasses.replace(MASKING, **plain, dupe_factor=1 if format == "spans" else 2)
    options = {"masking": masking, "objective": chosen, "format": FormatOptions(format=format)}
    write_examples("LocalRunner(0)", tmp_path, DOCUMENTS, **options)
    assert maskmill.verify(str(tmp_path / "examples")).findings == ()
    with maskmill.open(str(tmp_path / "examples"), batch_size=4) as loader:
        assert next(iter(loader))["input_ids"].shape[0] == 4


def test_what_examples_cannot_be_made_of(tmp_path: Path) -> None:
    with pytest.raises(UnusableInputError, match=r"nowhere\.txt"):
        CreateExamples(str(tmp_path / "nowhere.txt"), 1)
    with pytest.raises(UnusableInputError, match="do_whole_word_mask does not go"):
        masking, objective = MaskingOptions(do_whole_word_mask=True), ObjectiveOptions(mask_unit="span")
        WriteExamples(str(tmp_path), str(VOCAB), 1, masking, objective)
    with pytest.raises(RunFailedError, match="no example was made"):
        blocks = ObjectiveOptions(objective="blocks", block_remainder="drop")
        masking = dataclasses.replace(MASKING, short_seq_prob=0.0)
        write_examples(
            "LocalRunner(0)",
            tmp_path,
            [document(1)._replace(sentences=["a"])],
            masking=masking,
            objective=blocks,
            num_shards=1,
        )


# ---- as Beam's users take them


@pytest.mark.parametrize("element", [STAYS, DOCUMENTS[0], Rejected("x", "title", "reason")])
def test_elements_have_schemas(element: Any) -> None:
    kind = type(element)
    coder = beam.coders.registry.get_coder(kind)
    assert isinstance(coder, beam.coders.RowCoder)
    assert coder.decode(coder.encode(element)) == element
    run_step(
        [element], beam.Map(lambda one: one._asdict()).with_output_types(dict[str, Any]), equal_to([element._asdict()])
    )


def test_steps_are_pickled() -> None:
    for step in (
        ReadArticles("x"),
        FilterQuality(QualityOptions()),
        SplitSentences(),
        WriteText("x", 1),
        WriteExamples("x", str(VOCAB), 1),
        CreateExamples(str(VOCAB), 1),
        PickEval(),
    ):
        assert type(pickler.loads(pickler.dumps(step))) is type(step)
        assert pickle.loads(cloudpickle.dumps(step)).__dict__ == step.__dict__


def test_the_package_lists_its_steps_without_beam() -> None:
    program = (
        "import sys, transforms; assert 'apache_beam' not in sys.modules; print(transforms.__all__ == dir(transforms))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    for name in transforms.__all__:
        assert getattr(transforms, name).__name__ == name
        assert name.endswith("Options") or name in str(transforms.__doc__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        transforms.Nothing  # noqa: B018
