"""Quality filters: documents rejected with a reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from maskmill.text_shards import quality
from maskmill.text_shards.options import QualityOptions
from maskmill.text_shards.quality import QualityFilter

PROSE = "The quick brown fox jumps over the lazy dog near the old stone bridge every morning."


def test_everything_passes_by_default() -> None:
    quality_filter = QualityFilter(QualityOptions())
    for text in (b"", b"1234", b"a\na\na\na", PROSE.encode()):
        assert quality_filter.reject(b"List of things", text, b"{{stub}}") is None


def test_minimum_length_counts_characters() -> None:
    quality_filter = QualityFilter(QualityOptions(min_characters=5))
    assert quality_filter.reject(b"", "äöüß".encode()) == "too_short"
    assert quality_filter.reject(b"", "äöüßé".encode()) is None


def test_share_of_letters() -> None:
    quality_filter = QualityFilter(QualityOptions(min_letter_share=0.5))
    assert quality_filter.reject(b"", b"12 34 56 ab") == "few_letters"
    assert quality_filter.reject(b"", b"abc 12") is None
    assert quality_filter.reject(b"", b"") == "few_letters"


def test_letters_of_all_scripts_count() -> None:
    for text in ("漢字かな", "हिन्दी", "עִבְרִית", "العربية", "Ελληνικά", "ไทยดี"):
        assert quality.letter_share(text.encode()) == 1.0, text


def test_repeated_lines() -> None:
    quality_filter = QualityFilter(QualityOptions(max_repeated_share=0.4))
    assert quality_filter.reject(b"", b"same line\nsame line\nsame line\n") == "repeated_lines"
    assert quality_filter.reject(b"", b"same line\nsame line\nanother line\n") is None
    assert quality.repeated_share(b"") == 0.0


def test_list_pages() -> None:
    quality_filter = QualityFilter(QualityOptions(max_list_share=0.5))
    assert quality_filter.reject(b"Rivers", b"Some rivers are:\nElbe\nOder\nRhine") == "list_pages"
    assert quality_filter.reject(b"Rivers", b"A river flows.\nIt ends in the sea.\nElbe") is None
    assert quality_filter.reject(b"List of rivers", PROSE.encode()) == "list_pages"
    assert quality_filter.reject(b"Lists of rivers", PROSE.encode()) == "list_pages"
    assert quality_filter.reject(b"List officers", PROSE.encode()) is None
    # A long line without an end is prose, and so is one that ends in another script's full stop.
    assert quality.list_share(("word " * 40).encode()) == 0.0
    assert quality.list_share("これは文です。".encode()) == 0.0


@pytest.mark.parametrize("call", ["{{stub}}", "{{ Geo-stub }}", "{{Sect-stub|date=x}}", "{{Albania stub}}"])
def test_stubs(call: str) -> None:
    quality_filter = QualityFilter(QualityOptions(drop_stubs=True))
    assert quality_filter.reject(b"", PROSE.encode(), f"text {call} text".encode()) == "stub_pages"


def test_what_is_no_stub() -> None:
    quality_filter = QualityFilter(QualityOptions(drop_stubs=True))
    for wikitext in (b"a stub", b"{{stubborn}}", b"{{quote|a stub}}", b"[[stub]]"):
        assert quality_filter.reject(b"", PROSE.encode(), wikitext) is None


@tries(100)
@given(st.binary(), st.binary())
def test_any_bytes_are_decided(text: bytes, wikitext: bytes) -> None:
    options = QualityOptions(
        min_characters=3, min_letter_share=0.5, max_repeated_share=0.5, max_list_share=0.5, drop_stubs=True
    )
    reason = QualityFilter(options).reject(b"title", text, wikitext)
    assert reason in (None, "too_short", "few_letters", "repeated_lines", "list_pages", "stub_pages")
    for share in (quality.letter_share(text), quality.repeated_share(text), quality.list_share(text)):
        assert 0 <= share <= 1
