"""Summaries of paths: builds, stages, examples, text shards, manifests, vocabularies and checkpoints."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from maskmill.arguments import checked
from maskmill.errors import UnusableInputError
from maskmill.inspection import checkpoint_headers, kinds, manifest_summaries
from maskmill.inspection.manifest_summaries import plain, share
from maskmill.inspection.opened_examples import OpenedExamples, Split, open_examples
from maskmill.inspection.opened_texts import OpenedTexts, open_texts
from maskmill.inspection.summaries import Fact, Section, Summary, Table, known, listed
from maskmill.inspection.vocabularies import VocabularyFile, open_vocabulary
from maskmill.reading.remote import open_ranges
from maskmill.storage import files, manifest

_MEASURED = 1024  # rows
_COUNTED_BYTES = 1 << 30  # of text shards without a manifest


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
    named = kinds.plain(path)
    with _explained(named):
        return _summarized(named, split, vocab_file)


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    """Turns what an odd entry of a manifest leads to into a sentence.

    Raises:
      UnusableInputError: the code in the block found a manifest that is not as maskmill writes it.
    """
    try:
        yield
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise UnusableInputError(
            f"{path}: an entry of its manifest is missing or not as maskmill writes it "
            f"({type(error).__name__}: {error}); run the command that made it again."
        ) from None


def _summarized(path: str, split: Split | None, vocab_file: str | None) -> Summary:
    """`summarize`, of a path without `~`.

    Raises:
      KeyError, IndexError, TypeError, AttributeError, ValueError: a manifest is not as maskmill writes it.
    """
    with contextlib.closing(open_ranges(path)) as ranges:
        kind = kinds.kind_of(path, ranges)
        if kind == "build":
            return manifest_summaries.summary_of_build(path, ranges)
        if kind == "checkpoint":
            return _of_checkpoint(path)
        if kind == "manifest":
            file = path if files.base_name(path) == manifest.MANIFEST else files.join(path, manifest.MANIFEST)
            return manifest_summaries.summary_of_manifest(path, manifest.parse_manifest(file, ranges.read_all(file)))
        if kind == "vocabulary":
            return _of_vocabulary(open_vocabulary(path))
    if kind == "text":
        with open_texts(path) as texts:
            return _of_texts(texts)
    with contextlib.closing(open_examples(path, split=split, vocab_file=vocab_file)) as examples:
        return _of_examples(examples)


def _of_examples(opened: OpenedExamples) -> Summary:
    """Examples, by their manifest or by their records."""
    data_set, made = opened.data_set, opened.made
    notes = [] if opened.why_no_words is None else [opened.why_no_words]
    if made is None:
        facts = [
            Fact("format", data_set.format),
            Fact("files", len(data_set.files)),
            Fact("examples", data_set.samples),
            Fact("size", sum(file.size or 0 for file in data_set.files), "bytes"),
            Fact("pieces of a row, at most", data_set.width),
            Fact("masks of a row, at most", data_set.predictions),
        ]
        sections = [Section("records", facts)]
        columns = [
            (column.name, str(column.dtype), "varies" if column.varies else column.width) for column in data_set.columns
        ]
        tables = [Table("columns", ("column", "type in memory", "values"), columns), _files(data_set.files)]
        kind = "examples without a manifest"
    else:
        sections, tables = manifest_summaries.of_stage(made)
        if opened.count != data_set.samples:
            named = Section("of these", [Fact("path", opened.path), Fact("examples", opened.count)])
            sections = [named, *sections]
        kind = "picked eval examples" if made["stage"] == "eval" else "examples"
    try:
        sections.append(_measured(opened))
    except UnusableInputError as error:  # they are damaged, which does not keep the rest from being told
        notes.append(str(error))
    return Summary(opened.path, kind, sections, tables, notes)


def _files(listed_files: Iterable[Any]) -> Table:
    """Files without a manifest, by their paths and sizes."""
    rows = [(files.base_name(file.path), file.size) for file in listed_files]
    return listed("files", ("file", "bytes"), rows, ("", "bytes"))


def _measured(opened: OpenedExamples) -> Section:
    """What the first rows look like."""
    count = min(_MEASURED, opened.count)
    rows = opened.rows(opened.first, count)
    lengths = opened.decoder.lengths(rows)
    facts = [
        Fact("rows looked at", count),
        Fact("pieces of a row, mean", round(float(lengths.mean()), 1)),
        Fact("shortest", int(lengths.min())),
        Fact("longest", int(lengths.max())),
    ]
    weights = rows.arrays.get("masked_lm_weights")
    if weights is not None and opened.data_set.mask_rules is None:
        masks = np.not_equal(weights, 0).sum(axis=1)
        facts.append(Fact("masks of a row, mean", round(float(masks.mean()), 1)))
        facts.append(Fact("share to predict", share(int(masks.sum()), int(lengths.sum())), "share"))
    labels = rows.arrays.get("next_sentence_labels")
    if labels is not None and not opened.data_set.packed:
        facts.append(Fact("share of label 1", float(np.mean(labels != 0)), "share"))
    return Section("first rows", facts)


def _of_texts(opened: OpenedTexts) -> Summary:
    """Text shards, by their manifest or by their content."""
    made = opened.made
    if made is not None and opened.documents is not None and len(opened.files) > 1:
        return Summary(opened.path, "text shards", *manifest_summaries.of_stage(made))
    facts, notes = _counted(opened)
    kind = "text shards" if len(opened.files) > 1 else "text shard"
    return Summary(opened.path, kind, [Section("text", facts)], [_files(opened.files)], notes)


def _counted(opened: OpenedTexts) -> tuple[list[Fact], list[str]]:
    """What is in text shards: those of the first gigabyte are counted."""
    counted, read = list[Any](), 0
    for file in opened.files:
        if read and read + file.size > _COUNTED_BYTES:
            break
        counted.append(file)
        read += file.size
    documents = lines = words = longest = 0
    for file in counted:
        for document in opened.of(file):
            documents += 1
            lines += len(document.lines)
            words += sum(len(line.split()) for line in document.lines)
            longest = max(longest, *map(len, document.lines))
    facts = [
        Fact("files", len(opened.files)),
        Fact("size", sum(file.size for file in opened.files), "bytes"),
        Fact("documents", documents),
        Fact("sentences (lines)", lines),
        Fact("words", words),
        Fact("sentences of a document, mean", round(lines / documents, 1) if documents else None),
        Fact("words of a sentence, mean", round(words / lines, 1) if lines else None),
        Fact("longest sentence, characters", longest),
    ]
    notes = [f"Counted in the first {len(counted):,} files."] if len(counted) < len(opened.files) else []
    if opened.made is None and documents == len(counted) and not any(map(opened.ends_document, counted)):
        notes.append(
            "No blank line ends a document, so this is not a text shard (a sentence a line, and a blank line behind "
            "each document); make shards of it with `maskmill extract`."
        )
    return facts, notes


def _of_vocabulary(vocabulary: VocabularyFile) -> Summary:
    """A vocabulary: its pieces by kind."""
    facts = [
        Fact("file", vocabulary.path),
        Fact("kind", vocabulary.kind),
        Fact("size", vocabulary.size, "bytes"),
        Fact("sha256", vocabulary.sha256),
        Fact("pieces", len(vocabulary.pieces)),
        Fact("ids", vocabulary.ids),
        *(Fact(name, count) for name, count in vocabulary.counts.items()),
    ]
    tables = []
    if vocabulary.roles:
        roles = [(role, piece, id) for role, (piece, id) in vocabulary.roles.items()]
        tables.append(Table("special pieces", ("role", "piece", "id"), roles))
    scripts = [(script, count, count / max(1, len(vocabulary.pieces))) for script, count in vocabulary.scripts]
    tables.append(listed("scripts", ("script", "pieces", "share"), scripts, ("", "", "share")))
    return Summary(vocabulary.named, "vocabulary", [known("pieces", facts)], tables)


def _of_checkpoint(path: str) -> Summary:
    """A checkpoint, by its header."""
    header = checkpoint_headers.read_checkpoint_header(path)
    weights = [array for array in header.arrays if array.is_weight]
    types = dict.fromkeys(array.dtype for array in weights)
    facts = [
        Fact("file", header.path),
        Fact("format", header.format),
        Fact("step", header.metadata.get("step")),
        Fact("size", header.size, "bytes"),
        Fact("weights", len(weights)),
        Fact("parameters", sum(array.size for array in weights)),
        Fact("type", ", ".join(types)),
        Fact("other arrays (of the optimizer)", len(header.arrays) - len(weights) or None),
        Fact("older checkpoints beside it", len(header.others) or None),
    ]
    sections = [known("checkpoint", facts)]
    if header.config:
        shown = [Fact(name, plain(value)) for name, value in header.config.items()]
        sections.append(Section("model", shown))
    run = checkpoint_headers.settings_of(header)
    if run:
        sections.append(Section("run", [Fact(name, plain(value)) for name, value in run.items()]))
    largest = sorted(weights, key=lambda array: (-array.size, array.name))
    rows = [(array.name, array.dtype, " × ".join(map(str, array.shape)) or "1", array.size) for array in largest]
    table = listed("largest weights", ("weight", "type", "shape", "parameters"), rows)
    return Summary(path, "checkpoint", sections, [table])
