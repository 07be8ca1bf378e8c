"""Summaries of paths: builds, stages, examples, text shards, manifests, vocabularies and checkpoints."""

import contextlib
import dataclasses
import hashlib
import itertools
import json
import os
from collections.abc import Sequence
from typing import Any

from maskmill.arguments import checked
from maskmill.errors import UnusableInputError
from maskmill.inspection import kinds
from maskmill.inspection.checkpoint_headers import read_checkpoint_header
from maskmill.inspection.decoding import Words
from maskmill.inspection.manifest_summaries import Bytes, Facts, Parts, Rows, known, of_stage
from maskmill.inspection.opened_examples import manifest_of, open_records
from maskmill.inspection.opened_texts import OpenedTexts, open_texts
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.made_examples import manifest_in
from maskmill.reading.remote import open_ranges
from maskmill.storage import files, manifest
from maskmill.tokenization.special_tokens import roles_of
from maskmill.tokenization.tokenizer_json import token_ids
from maskmill.tokenization.vocabulary import is_tokenizer, vocabulary_lines

_VOCABULARIES = ("tokenizer.json", "vocab.txt")
_COUNTED_BYTES = 1 << 30  # of text shards without a manifest


@dataclasses.dataclass(frozen=True)
class Summary:
    """The known facts about a path.

    Attributes:
      path: as the user named it.
      kind: what it is, as a title: "examples", "text shards", "vocabulary" …
      parts: by their titles, in the order in which they are shown: figures by name, or rows with a value for each
        column. Sizes are `Bytes` and shares from 0 to 1 are `Share`, which distinguishes them from other numbers.
      notes: sentences.
    """

    path: str
    kind: str
    parts: Parts
    notes: Sequence[str] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as JSON has it."""
        return {"path": self.path, "kind": self.kind, **self.parts, "notes": list(self.notes)}


@checked
def summarize(path: str | os.PathLike[str]) -> Summary:
    """Return what is known of a path, from its manifests and headers and, if there are none, from its content.

    Args:
      path: of a build, a stage, examples, text shards, a manifest, a vocabulary or a checkpoint. Local, gs:// or
        http(s)://.

    Raises:
      UnusableInputError: there is nothing that is known.
      RunFailedError: it cannot be read.
    """
    path = kinds.plain(path)
    try:
        with contextlib.closing(open_ranges(path)) as ranges:
            kind = kinds.kind_of(path, ranges)
            if kind == "build":
                return Summary(path, kind, _of_build(path, ranges))
            if kind == "text" and (made := manifest_in(path, ranges)) is not None:
                return Summary(path, "text shards", of_stage(made))
            if kind == "examples":
                return _of_examples(path, ranges)
            if kind == "vocabulary":
                return Summary(path, kind, _of_vocabulary(path, ranges))
            if kind == "manifest":
                file = path if files.base_name(path) == manifest.MANIFEST else files.join(path, manifest.MANIFEST)
                made = manifest.parse_manifest(file, ranges.read_all(file))
                return Summary(path, f"manifest of {made['stage']}", of_stage(made))
        if kind == "checkpoint":
            return Summary(path, kind, _of_checkpoint(path))
        with open_texts(path) as texts:
            return _of_texts(texts)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise UnusableInputError(
            f"{path}: an entry of its manifest is missing or not as maskmill writes it "
            f"({type(error).__name__}: {error}); run the command that made it again."
        ) from None


def _of_build(path: str, ranges: ByteRanges) -> Parts:
    """Return a build: each of its stages."""
    found = {folder: manifest_in(files.join(path, folder), ranges) for folder in kinds.STAGE_FOLDERS}
    stages = {folder: of_stage(made) for folder, made in found.items() if made is not None}
    return {f"{folder}: {title}": part for folder, parts in stages.items() for title, part in parts.items()}


def _of_examples(path: str, ranges: ByteRanges) -> Summary:
    """Examples, by their manifest or by their columns."""
    made, _ = manifest_of(path, ranges)
    if made is not None:
        return Summary(path, "picked eval examples" if made["stage"] == "eval" else "examples", of_stage(made))
    data_set = open_records(path, ranges)
    records: Facts = {
        "format": data_set.format,
        "files": len(data_set.files),
        "examples": data_set.samples,
        "size": Bytes(sum(file.size or 0 for file in data_set.files)),
        "pieces of a row, at most": data_set.width,
        "masks of a row, at most": data_set.predictions,
    }
    columns: Rows = [
        {"column": one.name, "type in memory": str(one.dtype), "values": "varies" if one.varies else one.width}
        for one in data_set.columns
    ]
    return Summary(path, "examples without a manifest", {"records": records, "columns": columns})


def _of_texts(opened: OpenedTexts) -> Summary:
    """Return text shards without a manifest, by their content: that of the first gigabyte is counted."""
    sizes = opened.ranges.sizes(opened.files)
    read = [sum(sizes[: place + 1]) for place in range(len(sizes))]
    counted = [file for place, file in enumerate(opened.files) if not place or read[place] <= _COUNTED_BYTES]
    documents = lines = words = longest = 0
    for document in itertools.chain.from_iterable(map(opened.of, counted)):
        documents += 1
        lines += len(document.lines)
        words += sum(len(line.split()) for line in document.lines)
        longest = max(longest, *map(len, document.lines))
    facts: Facts = {
        "files": len(opened.files),
        "size": Bytes(sum(sizes)),
        "documents": documents,
        "sentences (lines)": lines,
        "words": words,
        "sentences of a document, mean": round(lines / documents, 1) if documents else None,
        "words of a sentence, mean": round(words / lines, 1) if lines else None,
        "longest sentence, characters": longest,
    }
    notes = [f"Counted in the first {len(counted):,} files."] if len(counted) < len(sizes) else []
    rows: Rows = [
        {"file": files.base_name(f), "bytes": Bytes(size)} for f, size in zip(opened.files, sizes, strict=True)
    ]
    kind = "text shards" if len(sizes) > 1 else "text shard"
    return Summary(opened.path, kind, {"text": facts, "files": rows}, notes)


def _of_vocabulary(path: str, ranges: ByteRanges) -> Parts:
    """Return a vocabulary, or the one in a directory: its pieces by kind."""
    is_directory = files.is_local(path) and os.path.isdir(path)
    names = [files.join(path, name) for name in _VOCABULARIES] if is_directory else [path]
    file = next(filter(ranges.exists, names), names[-1])
    content = ranges.read_all(file)
    if is_tokenizer(content):
        try:
            saved = json.loads(content)
            kind = f"{saved['model'].get('type') or 'a model'} (tokenizer.json)"
            pieces = {int(id): str(piece) for piece, id in token_ids(saved).items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UnusableInputError(f"{file}: this is no tokenizer.json, or it is damaged; save it again.") from None
    else:
        kind, pieces = "WordPiece (vocab.txt)", dict(enumerate(vocabulary_lines(file, content)))
    ids = {piece: id for id, piece in pieces.items()}
    words = Words(pieces, marks_words=not is_tokenizer(content))
    text = [id for id, piece in pieces.items() if (piece[:1], piece[-1:]) not in (("[", "]"), ("<", ">"))]
    starts = sum(not words.goes_on(id) for id in text)
    facts: Facts = {
        "file": file,
        "kind": kind,
        "size": Bytes(len(content)),
        "sha256": hashlib.sha256(content).hexdigest(),
        "pieces": len(pieces),
        "ids": max(pieces, default=-1) + 1,
        "special or reserved": len(pieces) - len(text),
        "that start a word": starts,
        "that go on a word": len(text) - starts,
        "that stand there twice": len(pieces) - len(ids),
    }
    roles: Rows = [{"role": role, "piece": piece, "id": ids[piece]} for role, piece in roles_of(ids).items()]
    return {"pieces": facts, "special pieces": roles}


def _of_checkpoint(path: str) -> Parts:
    """Return a checkpoint, by its header."""
    header = read_checkpoint_header(path)
    weights = [array for array in header.arrays if array.is_weight]
    facts: Facts = {
        "file": header.path,
        "format": header.format,
        "step": header.metadata.get("step"),
        "size": Bytes(header.size),
        "weights": len(weights),
        "parameters": sum(array.size for array in weights),
        "type": ", ".join(dict.fromkeys(array.dtype for array in weights)),
        "other arrays (of the optimizer)": len(header.arrays) - len(weights),
    }
    largest: Rows = [
        {"weight": one.name, "type": one.dtype, "shape": " × ".join(map(str, one.shape)) or "1", "parameters": one.size}
        for one in sorted(weights, key=lambda array: (-array.size, array.name))
    ]
    return {
        "checkpoint": known(facts),
        "model": known(header.config),
        "run": known(header.settings),
        "largest weights": largest,
    }
