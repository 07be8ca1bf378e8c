"""Finds the documents that a row of examples was made of."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.arguments import checked
from maskmill.errors import UnusableInputError
from maskmill.inspection.decoding import DecodedExample
from maskmill.inspection.opened_examples import OpenedExamples
from maskmill.inspection.opened_texts import TextDocument, open_texts
from maskmill.masking.options import MaskingOptions
from maskmill.options import of_parameters
from maskmill.reading.read_vocabulary import NamedVocabulary
from maskmill.records.tokenizing import tokenization_in
from maskmill.storage import files, manifest
from maskmill.storage.paths import is_web
from maskmill.tokenization.tokenized_text import LoadedTokenizer

_OLD_VERSION = 2  # of examples; those before it read text as it did
_PROBE = 16  # pieces in a row that tell a document from others


@checked
def documents_of(opened: OpenedExamples, example: DecodedExample) -> list[TextDocument]:
    """The documents that the parts of a row come from, each once, in the order of the text.

    The text shard is tokenized until all parts are found, some 50 MB a second. A part whose text was changed since is
    not found; of a passage that several documents share the first one counts.

    Args:
      opened: the examples; their vocabulary and the text that they were made of must be there.
      example: a row of them.

    Raises:
      UnusableInputError: the manifest does not say which text it was, the text is not there any more or is another
        one, or the vocabulary is not known.
    """
    path = _text_of(opened, example)
    wanted = _probes(opened, example)
    tokenize = tokenizer_of(opened).tokenizer().tokenize_bytes
    found: list[TextDocument] = []
    with open_texts(path) as texts:
        for document in texts.all():
            if not wanted:
                break
            lines = "".join(f"{line}\n" for line in document.lines)
            ids = tokenize(lines.encode(errors="surrogatepass"), path).ids
            held = [part for part, probes in wanted.items() if any(_holds(ids, probe) for probe in probes)]
            for part in held:
                del wanted[part]
            if held:
                found.append(document)
    return found


def tokenizer_of(opened: OpenedExamples) -> LoadedTokenizer:
    """What the examples were tokenized with.

    Raises:
      UnusableInputError: their vocabulary is not there.
    """
    vocabulary = opened.vocabulary
    if vocabulary is None:
        raise UnusableInputError(opened.why_no_words or "The vocabulary is not known; name it (--vocab_file).")
    made = opened.made or {"parameters": {}}
    masking = of_parameters(MaskingOptions, dict(made["parameters"]) | dict(made.get("decided", {})))
    content = NamedVocabulary(opened.path, None, opened.ranges).read(vocabulary.path)
    version = manifest.format_version(made, "examples")
    by_version_2 = version is not None and version <= _OLD_VERSION
    return tokenization_in(vocabulary.path, content, masking, vocabulary.special_ids, by_version_2=by_version_2)


def _text_of(opened: OpenedExamples, example: DecodedExample) -> str:
    """The text shard that a row was made of: where it was, or in the build that the examples are in."""
    made, directory = opened.made, opened.directory
    shards = () if made is None else made["shards"]
    inputs: dict[str, str] = next(
        (
            shard.get("inputs", {})
            for shard in shards
            if any(files.join(str(directory), file["name"]) == example.file for file in manifest.files_of_shard(shard))
        ),
        {},
    )
    if directory is None or not inputs:
        raise UnusableInputError("no manifest says which text it was made of")
    if is_web(directory):
        raise UnusableInputError("text is not looked for on web servers")
    beside = files.join(files.parent(directory), "text")
    for recorded, sha256 in inputs.items():
        for path in (recorded, files.join(beside, files.base_name(recorded))):
            if files.exists(path) and files.sha256_of(path) == sha256:
                return path
    raise UnusableInputError(f"{', '.join(inputs)} is not there any more, or has other content")


def _probes(opened: OpenedExamples, example: DecodedExample) -> dict[tuple[int, int], list[npt.NDArray[np.int32]]]:
    """The first and the last pieces of each part of a row, masks undone, by its sequence and segment."""
    row = opened.rows(example.sample, 1).original_pieces(slice(1))[0]
    pieces = [piece for piece in example.pieces if piece.role not in ("special", "padding")]
    parts: Iterator[tuple[tuple[int, int], Any]] = itertools.groupby(pieces, key=lambda p: (p.sequence, p.segment))
    ids = {part: row[[piece.position for piece in group]].astype(np.int32) for part, group in parts}
    return {part: [own[:_PROBE], own[-_PROBE:]] for part, own in ids.items()}


def _holds(ids: npt.NDArray[np.int32], probe: npt.NDArray[np.int32]) -> bool:
    """Whether pieces stand in others in this order, one behind the other."""
    places = np.flatnonzero(ids[: len(ids) - len(probe) + 1] == probe[0]) if len(ids) >= len(probe) else ()
    return any(np.array_equal(ids[at : at + len(probe)], probe) for at in places)
