"""A local file that is replaced while it is read is not read on: its rows would be other ones."""

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from maskmill.errors import MissingFileError, UnusableInputError
from maskmill.reading.byte_ranges import LocalRanges

CONTENT = bytes(range(200))


def replace(path: Path, content: bytes) -> None:
    other = path.with_name("other")
    other.write_bytes(content)
    os.utime(other, ns=(0, 7))
    other.rename(path)


def write_over(path: Path, content: bytes) -> None:
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()
    os.utime(path, ns=(0, 8))


CHANGES: dict[str, Callable[[Path], object]] = {
    "replaced by another one": lambda path: replace(path, CONTENT[::-1]),
    "replaced by one of the same content": lambda path: replace(path, CONTENT),
    "replaced by one of the same time": lambda path: (replace(path, CONTENT), os.utime(path, ns=(0, 1))),
    "written over": lambda path: write_over(path, CONTENT[::-1]),
    "written over at the same time": lambda path: (write_over(path, CONTENT + b"1"), os.utime(path, ns=(0, 1))),
    "cut": lambda path: os.truncate(path, 150),
    "longer": lambda path: write_over(path, 2 * CONTENT),
    "touched": lambda path: os.utime(path, ns=(0, 9)),
    "a link to another one": lambda path: (path.rename(path.with_name("a")), path.symlink_to(replaced(path))),
    "a folder on the way is another one": lambda path: (
        path.parent.rename(path.parent.with_name("old")),
        path.parent.mkdir(),
        path.write_bytes(CONTENT),
    ),
}


def replaced(path: Path) -> Path:
    other = path.with_name("b")
    other.write_bytes(CONTENT)
    return other


@pytest.mark.parametrize("look", ["size", "read", "another process"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_a_file_that_changes_once_it_was_looked_at_is_refused(
    change: Callable[[Path], object], look: str, tmp_path: Path
) -> None:
    path = tmp_path / "folder" / "x"
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    os.utime(path, ns=(0, 1))
    ranges = LocalRanges()
    if look == "read":
        assert ranges.read(str(path), 3, 5).tolist() == [3, 4]
    else:
        assert ranges.size(str(path)) == 200
    if look == "another process":
        ranges = pickle.loads(pickle.dumps(ranges))
    assert ranges.read(str(path), 3, 5).tolist() == [3, 4]
    change(path)
    for again in (lambda: ranges.read(str(path), 3, 5), lambda: ranges.size(str(path))):
        with pytest.raises(UnusableInputError, match="x: this file was changed while it was read; open the data set"):
            again()
    LocalRanges().read(str(path), 3, 5)  # which opens it again


def test_a_file_that_is_gone_is_missing(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(CONTENT)
    ranges = LocalRanges()
    assert ranges.size(str(tmp_path / "x")) == 200
    (tmp_path / "x").unlink()
    with pytest.raises(MissingFileError):
        ranges.read(str(tmp_path / "x"), 0, 1)
