"""The tables that come with the package, against the lists of properties that they are made from."""

import gzip
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from oracles import pretraining as oracle

from maskmill.errors import UnusableInputError
from maskmill.tokenization import unicode_tables
from tools import make_unicode_tables


@pytest.mark.builds
@pytest.mark.parametrize("version", unicode_tables.VERSIONS)
def test_the_tables_are_made_from_the_properties(version: str) -> None:
    packed = resources.files("maskmill.tokenization").joinpath("data", f"unicode-{version}.bin.gz").read_bytes()
    properties = oracle.DATA / "unicode" / f"unicode-{version}.tsv.gz"
    assert gzip.decompress(packed) == make_unicode_tables.build(str(properties))


@pytest.mark.parametrize("version", unicode_tables.VERSIONS)
def test_no_code_point_becomes_more_pieces_than_it_has_bytes(version: str) -> None:
    # The kernels' arrays have room for as many pieces as there are bytes of text.
    table = unicode_tables.load(version, True)
    entries = table.blocks.reshape(-1, 128)[table.pages].ravel()
    points = np.arange(0x110000)
    sizes = 1 + (points > 0x7F) + (points > 0x7FF) + (points > 0xFFFF)
    assert (entries >> unicode_tables.COUNT_SHIFT & 3 <= sizes).all()


@pytest.mark.builds
def test_unicode_11_is_what_the_published_data_was_made_with(shared: Path) -> None:
    properties: dict[int, list[str]] = {}
    with gzip.open(shared / "data" / "unicode11.tsv.gz", "rt") as lines:
        for line in lines:
            if not line.startswith("#"):
                point, *fields = line.rstrip("\n").split("\t")
                properties[int(point, 16)] = fields
    for line in (shared / "data" / "unicode11.ranges").read_text().splitlines():
        if not line.startswith("#"):
            first, last, category = line.split()
            for number in range(int(first, 16), int(last, 16) + 1):
                properties.setdefault(number, [category, "0", "", ""])
    table = oracle.unicode("11.0.0")

    def text(points: str) -> str:
        return "".join(chr(int(p, 16)) for p in points.split())

    for number, (category, _, nfd, lower) in properties.items():
        char = chr(number)
        assert table.category(char) == category
        assert table.nfd(char) == (text(nfd) or char)
        assert char == "Σ" or table.lower(char) == (text(lower) or char)
    hangul = range(0xAC00, 0xD7A4)
    assert all(table.category(chr(n)) == "Cn" for n in range(0x110000) if n not in properties and n not in hangul)


def test_an_unknown_version_is_one_sentence() -> None:
    with pytest.raises(UnusableInputError, match=r"unicode 1: no such tables; there are 11\.0\.0 and 15\.1\.0\."):
        unicode_tables.load("1", True)
