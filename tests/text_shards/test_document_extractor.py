"""Pages and documents, one at a time: the documents that they become, or the count to which they go."""

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import pytest
from data_sets.shard_builds import PLAIN, input_file, write_dump
from made_up import dump_files

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.inputs.items import Document, RejectedPage
from maskmill.inputs.mediawiki import Page
from maskmill.text_shards.document_extractor import (
    DocumentExtractor,
    ExtractedDocument,
    Origin,
    PlainDocument,
    document_extractor,
    or_rejected,
    origin_of,
)
from maskmill.text_shards.options import ExtractionOptions, QualityOptions

PROSE = b"The river runs to the sea. It is long and wide.\n\nA bridge of stone stands near its mouth today."


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Origin:
    """A dump of no pages: an extractor reads the site from its head."""
    return origin_of(input_file(write_dump(tmp_path_factory.mktemp("dump"), [])))


def page(text: bytes = PROSE, **given: Any) -> Page:
    river = Page(
        title=b"River", namespace=0, page_id=12, revision_id=3, is_redirect=False, timestamp=b"", model=b"wikitext",
        text=text,
    )  # fmt: skip
    return dataclasses.replace(river, **given)


def test_a_carriage_return_of_a_page_ends_a_line(origin: Origin) -> None:
    """`&#13;` of a dump; WikiExtractor keeps it, as the reference has it."""
    text = b"== Course ==\r\nThe river runs past the sun\rset hills.\r\rIt is long.\xc2\x85It is wide.\r\n"
    made = extracted(DocumentExtractor(PLAIN, origin).extract(page(text)))
    assert made.text == b"The river runs past the sun set hills.\nIt is long.\nIt is wide.\n\n"
    compat = DocumentExtractor(with_options(extractor="wikiextractor"), origin).read(page(text))
    assert isinstance(compat, PlainDocument)
    assert b"sun\rset" in compat.text


def with_options(**options: Any) -> ExtractionOptions:
    return dataclasses.replace(PLAIN, **options)


def extracted(document: object) -> ExtractedDocument:
    assert isinstance(document, ExtractedDocument)
    return document


def test_a_page_becomes_its_sentences_and_a_blank_line(origin: Origin) -> None:
    document = extracted(DocumentExtractor(PLAIN, origin).extract(page()))
    assert document.identity == "12"
    assert document.text == (
        b"The river runs to the sea.\nIt is long and wide.\nA bridge of stone stands near its mouth today.\n\n"
    )
    assert document.paragraphs is None


@pytest.mark.parametrize(
    ("given", "count"),
    [
        ({"namespace": 1}, "other_namespaces"),
        ({"is_redirect": True}, "redirects"),
        ({"text": b"#REDIRECT [[Sea]]"}, "redirects"),
        ({"model": b"css"}, "other_content_models"),
        ({"text": b"'''River''' may refer to:\n* [[A]]\n* [[B]]\n{{disambiguation}}"}, "disambiguation_pages"),
        ({"text": b"{{infobox}}"}, "empty"),
        ({"text": b""}, "empty"),
    ],
)
def test_a_page_that_is_left_out_is_counted_by_name(given: dict[str, Any], count: str, origin: Origin) -> None:
    assert DocumentExtractor(PLAIN, origin).extract(page(**given)) == count


@pytest.mark.parametrize(
    ("options", "given"),
    [
        ({"namespaces": (0, 1)}, {"namespace": 1}),
        ({"keep_redirects": True}, {"is_redirect": True}),
        ({"keep_disambiguation": True}, {"text": PROSE + b"\n{{disambiguation}}"}),
    ],
)
def test_options_keep_what_is_left_out_otherwise(
    options: dict[str, Any], given: dict[str, Any], origin: Origin
) -> None:
    document = extracted(DocumentExtractor(with_options(**options), origin).extract(page(**given)))
    assert document.text.startswith(b"The river runs to the sea.\n")


def test_titles_are_the_first_sentence_where_they_are_kept(origin: Origin) -> None:
    extractor = DocumentExtractor(with_options(keep_titles=True), origin)
    assert extracted(extractor.extract(page())).text.startswith(b"River\nThe river runs to the sea.\n")
    # A title alone is no document, and a document without a title has none.
    assert extractor.extract(page(text=b"")) == "empty"
    untitled = Document(document_id="", title=b"", text=b"A text.")
    assert extracted(extractor.extract(untitled)).text == b"A text.\n\n"


def test_a_document_is_identified_by_its_id_or_its_text(origin: Origin) -> None:
    extractor = DocumentExtractor(PLAIN, dataclasses.replace(origin, date=""))
    named = Document(document_id="a-7", title=b"", text=b"A text.")
    assert extracted(extractor.extract(named)).identity == "a-7"
    nameless = Document(document_id="", title=b"", text=b"A text.")
    assert extracted(extractor.extract(nameless)).identity == hashlib.sha256(b"A text.").hexdigest()


def test_the_quality_filters_reason_is_the_count(origin: Origin) -> None:
    extractor = DocumentExtractor(with_options(quality=QualityOptions(min_characters=40, drop_stubs=True)), origin)
    assert extractor.extract(page(text=b"Too short a text.")) == "too_short"
    assert extractor.extract(page(text=PROSE + b"\n{{geo-stub}}")) == "stub_pages"
    assert extractor.extract(page(text=b" \n")) == "empty"
    extracted(extractor.extract(page()))


@pytest.mark.parametrize("keep_titles", [False, True])
def test_paragraphs_are_signed_where_they_stand(keep_titles: bool, origin: Origin) -> None:
    quality = QualityOptions(drop_duplicates=True, min_duplicate_words=5)
    text = PROSE + b"\n\nA short one.\n\n" + PROSE.split(b"\n\n")[0]
    document = extracted(
        DocumentExtractor(with_options(quality=quality, keep_titles=keep_titles), origin).extract(page(text=text))
    )
    rows = document.paragraphs
    assert rows is not None
    first = b"The river runs to the sea.\nIt is long and wide.\n"
    second = b"A bridge of stone stands near its mouth today.\n"
    starts, sizes = rows["offset"].tolist(), rows["size"].tolist()
    assert [document.text[start : start + size] for start, size in zip(starts, sizes, strict=True)] == [
        first,
        second,
        first,
    ]
    assert rows["sentences"].tolist() == [2, 1, 2]
    assert rows["body"].tolist() == [6, 6, 6]  # lines of the document; the title is none
    assert rows["exact"][0] == rows["exact"][2] != rows["exact"][1]


def test_signing_paragraphs_changes_no_text(origin: Origin) -> None:
    quality = QualityOptions(drop_duplicates=True)
    signing = DocumentExtractor(with_options(quality=quality), origin)
    assert extracted(signing.extract(page())).text == extracted(DocumentExtractor(PLAIN, origin).extract(page())).text


def test_wikiextractors_text_and_its_doc_blocks(origin: Origin) -> None:
    text = b"'''Rivers''' run.\n==History==\n* old\nThey are old."
    options = with_options(extractor="wikiextractor")
    # WikiExtractor leaves out headings of sections without text and items of lists.
    assert extracted(DocumentExtractor(options, origin).extract(page(text=text))).text.startswith(b"Rivers run.\n")
    blocks = DocumentExtractor(dataclasses.replace(options, doc_blocks=True), origin)
    block = extracted(blocks.extract(page(text=text)))
    assert block.text.startswith(
        b'<doc id="12" url="https://test.wikipedia.org/wiki?curid=12" title="River">\nRiver\n\nRivers run.'
    )
    assert block.text.endswith(b"\n</doc>\n")
    # It knows redirects by the dump's <redirect/> alone.
    assert blocks.extract(page(is_redirect=True)) == "redirects"
    extracted(blocks.extract(page(text=b"#REDIRECT [[Sea]]")))


def test_mlperfs_chain_takes_no_other_documents(origin: Origin) -> None:
    extractor = DocumentExtractor(with_options(extractor="wikiextractor", doc_blocks=True), origin)
    document = Document(document_id="1", title=b"", text=b"A text.")
    with pytest.raises(UnusableInputError, match="MLPerf's clean-up takes a dump or WikiExtractor's files"):
        extractor.extract(document)
    # It ends the run, and is no bad page.
    with pytest.raises(UnusableInputError):
        or_rejected(extractor.extract, document)


def test_a_page_that_cannot_be_processed_is_rejected_with_the_reason(origin: Origin) -> None:
    extractor = DocumentExtractor(PLAIN, origin)
    assert or_rejected(extractor.extract, RejectedPage(title="T", reason="not UTF-8")) == RejectedPage(
        title="T", reason="not UTF-8"
    )
    rejected = or_rejected(extractor.extract, page(text=None, title=b"Bad \xff"))
    assert isinstance(rejected, RejectedPage)
    assert rejected.title == "Bad \ufffd"
    assert rejected.reason.startswith("extraction failed: TypeError: ")


@pytest.mark.parametrize(
    "error", [OSError(24, "Too many open files"), ImportError("no memory"), RunFailedError("no disk")]
)
def test_a_machine_that_fails_ends_the_run_and_rejects_no_page(error: Exception, origin: Origin) -> None:
    class Failing(DocumentExtractor):
        def extract(self, *_: object) -> Any:
            raise error

    with pytest.raises(RunFailedError, match=r"Too many open files|no memory|no disk"):
        or_rejected(Failing(PLAIN, origin).extract, page())


def test_an_extractor_is_kept_for_its_origin_and_options(origin: Origin) -> None:
    extractor = document_extractor(PLAIN, origin, "", "")
    assert document_extractor(with_options(), origin, "", "") is extractor
    assert document_extractor(with_options(keep_titles=True), origin, "", "") is not extractor
    assert document_extractor(PLAIN, dataclasses.replace(origin, date="2011-01-01"), "", "") is not extractor


def test_pages_without_a_date_take_the_day_on_which_wikipedia_began(tmp_path: Path, origin: Origin) -> None:
    clock = page(text=b"It is {{CURRENTYEAR}} here.")
    assert extracted(DocumentExtractor(PLAIN, origin).extract(clock)).text == b"It is 2010 here.\n\n"
    dateless = dataclasses.replace(origin, date="")
    assert extracted(DocumentExtractor(PLAIN, dateless).extract(clock)).text == b"It is 2001 here.\n\n"


def test_dumps_of_one_wiki_and_inputs_that_are_no_dump_share_an_extractor(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    parts = [input_file(write_dump(tmp_path / name, [dump_files.page(1, name, "Text.")])) for name in ("a", "b")]
    assert parts[0] != parts[1]
    first, second = (document_extractor(PLAIN, origin_of(part), "", "") for part in parts)
    assert first is second
    texts = [dataclasses.replace(part, date="") for part in parts]
    first, second = (document_extractor(PLAIN, origin_of(text), "", "") for text in texts)
    assert first is second
