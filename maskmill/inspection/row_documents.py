"""From a row of examples to the documents that its pieces are of, by the tables beside the text shards."""

import bisect
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.inspection.opened_texts import TextDocument, open_texts
from maskmill.masking.options import MaskingOptions
from maskmill.options import of_parameters
from maskmill.records.tokenizing import load_tokenization
from maskmill.storage import files, manifest
from maskmill.tokenization.tokenized_text import TokenizedText

_Text = tuple[TokenizedText, Sequence[TextDocument]]  # the pieces of a text shard, and its documents


class RowDocuments:
    """Finds the documents of rows. It holds the text shard that was asked for last."""

    def __init__(self, made: Mapping[str, Any], directory: str, vocabulary: str) -> None:
        """made, directory: the manifest of examples, and where it lies. vocabulary: the path of theirs."""
        self._made, self._directory, self._vocabulary = made, directory, vocabulary
        self._held: tuple[str, _Text | None] = "", None

    def of(self, file: str, runs: Sequence[npt.NDArray[np.int32]]) -> list[list[TextDocument]]:
        """Return, for each run of pieces of a row of a file, the documents of its text shard in which it stands.

        Several if all of them have these pieces; nothing at all if the shard has no table, or is not there any more.
        """
        if self._held[0] != file:
            self._held = file, self._text_of(file)
        text = self._held[1]
        return [] if text is None else [_holding(*text, run) for run in runs]

    def _text_of(self, file: str) -> _Text | None:
        for shard in self._made["shards"]:
            names = [files.join(self._directory, listed["name"]) for listed in manifest.files_of_shard(shard)]
            for path, sha256 in shard.get("inputs", {}).items() if file in names else ():
                for place in (files.join(files.parent(self._directory), f"text/{files.base_name(path)}"), path):
                    with contextlib.suppress(UnusableInputError):
                        return self._read(place, sha256)
        return None

    def _read(self, path: str, sha256: str) -> _Text | None:
        with open_texts(path) as texts:
            if path not in texts.tables or texts.ranges.sha256_of(path) != sha256:
                return None
            options = self._made["parameters"] | self._made["decided"]
            is_tokenizer = options.get("tokenizer_file") is not None
            masking = of_parameters(MaskingOptions, options)
            tokenizer = load_tokenization(self._vocabulary, masking, is_tokenizer=is_tokenizer).tokenizer()
            return tokenizer.tokenize_bytes(texts.ranges.read_all(path)), list(texts.of(path))


def _holding(text: TokenizedText, documents: Sequence[TextDocument], run: npt.NDArray[np.int32]) -> list[TextDocument]:
    """Return the documents in which these pieces stand one after the other."""
    starts = [document.line - 1 for document in documents]
    found: dict[int, None] = {}
    for place in _places(text.ids.tobytes(), run.tobytes()):
        ends = np.searchsorted(text.segment_ends, (place, place + len(run) - 1), "right")
        first, last = (bisect.bisect(starts, line) - 1 for line in text.segment_lines[ends].tolist())
        found |= dict.fromkeys(range(first, last + 1))
    return [documents[number] for number in found]


def _places(pieces: bytes, wanted: bytes) -> Iterator[int]:
    """Yield where int32 values stand among others."""
    at, size = pieces.find(wanted), np.dtype(np.int32).itemsize
    while at >= 0:
        if at % size == 0:
            yield at // size
        at = pieces.find(wanted, at + 1)
