"""Documents of records, and the reasons of rejected ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up.input_files import READING, record

from maskmill.inputs.items import RejectedPage, document_of_record, rejected, too_large
from maskmill.inputs.options import ReadOptions
from maskmill.inputs.plain_text import plain_text

WITH_ID = ReadOptions(text_column="body", id_column="key")


@given(st.text(st.characters(exclude_categories=["Cs"])), st.one_of(st.integers(), st.text("ab1")))
def test_a_record_is_its_text_and_id(text: str, key: int | str) -> None:
    found = document_of_record({"body": text, "key": key}, b"", WITH_ID)
    assert found == record(plain_text(text.encode()).decode(), str(key))


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({}, 'the column "body" is missing'),
        ({"body": None, "key": 1}, 'the column "body" is no text'),
        ({"body": 3, "key": 1}, 'the column "body" is no text'),
        ({"body": "x"}, 'the column "key" is missing, or neither text nor a whole number'),
        ({"body": "x", "key": True}, 'the column "key" is missing, or neither text nor a whole number'),
        ({"body": "x", "key": 0.5}, 'the column "key" is missing, or neither text nor a whole number'),
        ({"body": "\ud800", "key": 1}, "it holds half a surrogate pair, which is no character"),
        ({"body": "x", "key": "\udfff"}, "it holds half a surrogate pair, which is no character"),
    ],
)
def test_a_bad_record_is_rejected_under_its_beginning(record: dict[str, object], reason: str) -> None:
    assert document_of_record(record, b"the line", WITH_ID) == RejectedPage(title="the line", reason=reason)


def test_without_an_id_column_the_id_is_empty() -> None:
    assert document_of_record({"text": "x", "id": 5}, b"", READING) == record("x")


def test_a_rejected_document_shows_how_it_begins() -> None:
    assert rejected(b"  two \n\t words\xff ", "why") == RejectedPage(title="two words\ufffd", reason="why")
    assert rejected(b"x" * 1000, "why").title == "x" * 60
    assert too_large(ReadOptions(largest_page=7)) == "the document is larger than 7 bytes"
