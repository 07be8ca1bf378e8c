"""Summaries of paths: builds, stages, examples, text shards, manifests, vocabularies and checkpoints."""

import contextlib
import dataclasses
import itertools
import os
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.arguments import checked
from maskmill.errors import UnusableInputError
from maskmill.inspection import kinds
from maskmill.inspection.checkpoint_headers import read_checkpoint_header
from maskmill.inspection.decoding import Words
from maskmill.inspection.manifest_summaries import Bytes, Facts, Rows, known, of_build, of_stage, plain, share
from maskmill.inspection.opened_examples import OpenedExamples, Split, open_examples
from maskmill.inspection.opened_texts import OpenedTexts, open_texts
from maskmill.inspection.vocabularies import VocabularyFile, open_vocabulary
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.remote import open_ranges
from maskmill.storage import files, manifest
from maskmill.tokenization.special_tokens import roles_of

_MEASURED = 256  # rows
_COUNTED_BYTES = 1 << 30  # of text shards without a manifest


@dataclasses.dataclass(frozen=True)
class Summary:
    """What is known of a path.

    Attributes:
      path: as the user named it.
      kind: what it is, as a title: "examples", "text shards", "vocabulary" …
      parts: by their titles, in the order in which they are shown: figures by name, or rows with a value for each
        column. Sizes are `Bytes` and shares from 0 to 1 are `Share`, so they can be told from other numbers.
      notes: sentences.
    """

    path: str
    kind: str
    parts: Mapping[str, Facts | Rows]
    notes: Sequence[str] = ()

    def as_dict(self) -> dict[str, Any]:
        """The summary as JSON has it."""
        return {"path": self.path, "kind": self.kind, **self.parts, "notes": list(self.notes)}


@checked
def summarize(path: str | os.PathLike[str], *, split: Split | None = None, vocab_file: str | None = None) -> Summary:
    """What is known of a path, from its manifests and headers and, if there are none, from its content.

    Args:
      path: of a build, a stage, examples, text shards, a manifest, a vocabulary or a checkpoint. Local, gs:// or
        http(s)://.
      split: of examples, for the rows that are looked at; None: the one that the path is in.
      vocab_file: the vocabulary of examples without a copy of it.

    Raises:
      UnusableInputError: there is nothing that is known.
      RunFailedError: it cannot be read.
    """
    path = kinds.plain(path)
    try:
        with contextlib.closing(open_ranges(path)) as ranges:
            kind = kinds.kind_of(path, ranges)
            if kind == "build":
                return Summary(path, kind, of_build(path, ranges))
            if kind == "manifest":
                return _of_manifest(path, ranges)
        if kind == "checkpoint":
            return Summary(path, kind, _of_checkpoint(path))
        if kind == "vocabulary":
            return Summary(path, kind, _of_vocabulary(open_vocabulary(path)))
        if kind == "text":
            with open_texts(path) as texts:
                return _of_texts(texts)
        with open_examples(path, split=split, vocab_file=vocab_file) as examples:
            return _of_examples(examples)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise UnusableInputError(
            f"{path}: an entry of its manifest is missing or not as maskmill writes it "
            f"({type(error).__name__}: {error}); run the command that made it again."
        ) from None


def _of_manifest(path: str, ranges: ByteRanges) -> Summary:
    """What a manifest says; the files that it lists are not looked at."""
    file = path if files.base_name(path) == manifest.MANIFEST else files.join(path, manifest.MANIFEST)
    made = manifest.parse_manifest(file, ranges.read_all(file))
    parameters = {name: plain(value) for name, value in made["parameters"].items()}
    return Summary(path, f"manifest of {made['stage']}", {**of_stage(made), "parameters": parameters})


def _of_examples(opened: OpenedExamples) -> Summary:
    """Examples, by their manifest or by their records."""
    data_set, made = opened.data_set, opened.made
    notes = [] if opened.why_no_words is None else [opened.why_no_words]
    parts: dict[str, Facts | Rows] = {}
    if made is None:
        kind = "examples without a manifest"
        parts["records"] = {
            "format": data_set.format,
            "files": len(data_set.files),
            "examples": data_set.samples,
            "size": Bytes(sum(file.size or 0 for file in data_set.files)),
            "pieces of a row, at most": data_set.width,
            "masks of a row, at most": data_set.predictions,
        }
        parts["columns"] = [
            {"column": one.name, "type in memory": str(one.dtype), "values": "varies" if one.varies else one.width}
            for one in data_set.columns
        ]
    else:
        kind = "picked eval examples" if made["stage"] == "eval" else "examples"
        if opened.count != data_set.samples:
            parts["of these"] = {"path": opened.path, "examples": opened.count}
        parts |= of_stage(made)
    try:
        parts["first rows"] = _measured(opened)
    except UnusableInputError as error:  # they are damaged, which does not keep the rest from being told
        notes.append(str(error))
    return Summary(opened.path, kind, parts, notes)


def _measured(opened: OpenedExamples) -> Facts:
    """What the first rows look like."""
    rows = list(itertools.islice(opened.all(), _MEASURED))
    lengths = [len(row.pieces) for row in rows]
    masks = [sum(piece.label is not None for piece in row.pieces) for row in rows]
    facts: Facts = {
        "rows looked at": len(rows),
        "pieces of a row, mean": round(statistics.fmean(lengths), 1),
        "shortest": min(lengths),
        "longest": max(lengths),
    }
    if any(masks):
        facts |= {"masks of a row, mean": round(statistics.fmean(masks), 1)}
        facts |= {"share to predict": share(sum(masks), sum(lengths))}
    return facts


def _of_texts(opened: OpenedTexts) -> Summary:
    """Text shards, by their manifest or by their content: that of the first gigabyte is counted."""
    if opened.made is not None:
        return Summary(opened.path, "text shards", of_stage(opened.made))
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
    if documents == len(counted) and not any(_ends_document(opened.ranges, file) for file in counted):
        notes.append(
            "No blank line ends a document, so this is not a text shard (a sentence a line, and a blank line after "
            "each document); make shards of it with `maskmill extract`."
        )
    rows: Rows = [
        {"file": files.base_name(f), "bytes": Bytes(size)} for f, size in zip(opened.files, sizes, strict=True)
    ]
    kind = "text shards" if len(sizes) > 1 else "text shard"
    return Summary(opened.path, kind, {"text": facts, "files": rows}, notes)


def _ends_document(ranges: ByteRanges, file: str) -> bool:
    """Whether a blank line stands at the end of a file."""
    size = ranges.size(file)
    return ranges.read(file, max(0, size - 2), size).tobytes() == b"\n\n"


def _of_vocabulary(vocabulary: VocabularyFile) -> dict[str, Facts | Rows]:
    """A vocabulary: its pieces by kind."""
    ids = {piece: id for id, piece in vocabulary.pieces}
    pieces = dict(vocabulary.pieces)
    words = Words(pieces, marks_words=vocabulary.kind.startswith("WordPiece"))
    special = {piece for piece in ids if (piece[:1], piece[-1:]) in (("[", "]"), ("<", ">"))}
    text = [piece for piece in pieces.values() if piece not in special]
    starts = sum(not words.goes_on(id) for id, piece in pieces.items() if piece not in special)
    bare = [piece.removeprefix(words.mark) or piece for piece in text]
    facts: Facts = {
        "file": vocabulary.path,
        "kind": vocabulary.kind,
        "size": Bytes(vocabulary.size),
        "sha256": vocabulary.sha256,
        "pieces": len(pieces),
        "ids": max(pieces, default=-1) + 1,
        "special or reserved": len(pieces) - len(text),
        "that start a word": starts,
        "that go on a word": len(text) - starts,
        "of one character": sum(len(piece) == 1 for piece in bare),
        "that stand there twice": len(pieces) - len(ids),
        "longest, in characters": max(map(len, bare), default=0),
    }
    roles: Rows = [{"role": role, "piece": piece, "id": ids[piece]} for role, piece in roles_of(ids).items()]
    return {"pieces": facts, "special pieces": roles}


def _of_checkpoint(path: str) -> dict[str, Facts | Rows]:
    """A checkpoint, by its header."""
    header = read_checkpoint_header(path)
    weights = [array for array in header.arrays if array.is_weight]
    facts = known(
        {
            "file": header.path,
            "format": header.format,
            "step": header.metadata.get("step"),
            "size": Bytes(header.size),
            "weights": len(weights),
            "parameters": sum(array.size for array in weights),
            "type": ", ".join(dict.fromkeys(array.dtype for array in weights)),
            "other arrays (of the optimizer)": len(header.arrays) - len(weights) or None,
        }
    )
    largest: Rows = [
        {
            "weight": one.name,
            "type": one.dtype,
            "shape": " × ".join(map(str, one.shape)) or "1",
            "parameters": one.size,
        }
        for one in sorted(weights, key=lambda array: (-array.size, array.name))
    ]
    told = {"model": header.config, "run": header.settings}
    parts = {title: {name: plain(value) for name, value in some.items()} for title, some in told.items() if some}
    return {"checkpoint": facts, **parts, "largest weights": largest}
