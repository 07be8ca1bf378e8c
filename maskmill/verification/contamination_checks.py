"""Text of other test sets in the training text: whether 13 words in a row of a test set are in it.

This is how Brown et al. 2020 (GPT-3, appendix C) look for test sets in training data.
"""

import dataclasses
import functools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.storage import files
from maskmill.tokenization.text_blocks import BLOCK_BYTES
from maskmill.verification.findings import Checked, Finding, finding, looked, makes_check, skipped
from maskmill.verification.kernels.word_grams import WORDS
from maskmill.verification.passages import PassageHasher, PassageIndex
from maskmill.verification.pieces import Piece

_CHECK = "contamination"
_SHOWN = 100  # characters of the text that is shown


@dataclasses.dataclass(frozen=True, eq=False)
class TestPassages:
    """The passages of test sets.

    Attributes:
      index: of the passages.
      files: int64[passages], which file each is in, the first that has it. lines: int64[passages], where, from 1.
      paths: of the files.
    """

    index: PassageIndex
    files: npt.NDArray[np.int64]
    lines: npt.NDArray[np.int64]
    paths: tuple[str, ...]


@functools.lru_cache(maxsize=1)
def load_passages(paths: tuple[str, ...]) -> TestPassages:
    """Reads test sets: text files, as UTF-8. Memory: some 30 bytes for each of their words.

    Raises:
      UnusableInputError: a file is missing, or none has 13 words in a row.
    """
    hasher, found = PassageHasher(), []
    for number, path in enumerate(paths):
        for text, lines_before in _text_blocks(path):
            hashes, places = hasher.hash_text(text)
            lines = np.searchsorted(np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")), places) + lines_before
            found.append((hashes.copy(), np.full(len(hashes), number), lines + 1))
    joined = [np.concatenate(parts) for parts in zip(*found, strict=True)]
    if not joined or not len(joined[0]):
        raise UnusableInputError(
            f"{', '.join(paths)}: there are no {WORDS} words in a row in these files, so nothing can be compared with "
            "them; name text files with --contamination."
        )
    hashes, first = np.unique(joined[0], return_index=True)
    return TestPassages(PassageIndex(hashes), joined[1][first], joined[2][first], paths)


def _text_blocks(path: str) -> Iterator[tuple[bytes, int]]:
    """Blocks of whole documents of a text file, and the lines before each; what is not UTF-8 is replaced."""
    pending, lines = b"", 0
    with files.open_input(path) as file:
        while content := file.read(BLOCK_BYTES):
            pending += content
            end = pending.rfind(b"\n\n") + 2
            if end > 1:
                yield pending[:end].decode("utf-8", "replace").encode(), lines
                lines += pending.count(b"\n", 0, end)
                pending = pending[end:]
    if pending:
        yield pending.decode("utf-8", "replace").encode(), lines


@makes_check("file", "text")
def check_contamination(piece: Piece, _ranges: ByteRanges) -> Checked:
    """Looks for the test sets of a piece in its text, where this is of the training data.

    Raises:
      UnusableInputError: a test set cannot be used.
    """
    if not piece.contamination or piece.split == "eval":
        return Checked()  # nobody trains on eval data, and it may be the test set itself
    tests, hasher = load_passages(piece.contamination), PassageHasher()
    first: tuple[int, int, str] | None = None  # the line, which passage of the test sets, and the words
    passages: set[int] = set()
    lines = 0
    try:
        for text, lines_before in _text_blocks(piece.path):
            hashes, places = hasher.hash_text(text)
            found, of_test = tests.index.find(hashes)
            lines += text.count(b"\n")
            passages.update(of_test.tolist())
            if len(found) and first is None:
                start = int(places[found[0]])
                first = lines_before + text.count(b"\n", 0, start) + 1, int(of_test[0]), _shown(text[start:])
    except (UnusableInputError, RunFailedError) as error:
        return dataclasses.replace(skipped(error, _CHECK), looked_at={_CHECK: lines})
    return looked(_CHECK, *([] if first is None else [_finding(piece, tests, passages, *first)]), count=lines)


def _shown(text: bytes) -> str:
    """The beginning of a text, on one line."""
    words = text[: 4 * _SHOWN].decode("utf-8", "ignore").split()
    shown = " ".join(words[:WORDS])
    return shown[:_SHOWN] + ("…" if len(shown) > _SHOWN else "")


def _finding(piece: Piece, tests: TestPassages, passages: set[int], line: int, passage: int, shown: str) -> Finding:
    """One finding, for all that a file has of the test sets."""
    places = np.array(sorted(passages))
    counts, sizes = (np.bincount(files, minlength=len(tests.paths)) for files in (tests.files[places], tests.files))
    shares = [
        f"{count / size:.1%} of {files.base_name(path)}"
        for count, size, path in zip(counts.tolist(), sizes.tolist(), tests.paths, strict=True)
        if count
    ]
    what = (
        f'"{shown}" is in {tests.paths[int(tests.files[passage])]}, too (line {int(tests.lines[passage]):,}); the file '
        f"has {', '.join(shares)}, so leave this text out, or do not test with it"
    )
    found = f"{len(passages):,} times {WORDS} words in a row of them"
    expected, at = "no text of the test sets", ("line", line)
    return finding(_CHECK, piece.path, expected, found, what, "warning", at=at, count=len(passages))
