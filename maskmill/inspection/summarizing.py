"""Summaries of paths: builds, stages, examples, text shards, manifests, vocabularies and checkpoints."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from maskmill.arguments import checked
from maskmill.errors import MissingFileError, UnusableInputError
from maskmill.inspection import checkpoints, kinds
from maskmill.inspection.examples import OpenedExamples, Split, open_examples
from maskmill.inspection.summaries import Fact, Section, Summary, Table, Unit, Value, listed
from maskmill.inspection.text_shards import OpenedTexts, open_texts
from maskmill.inspection.vocabularies import VocabularyFile, open_vocabulary
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.remote import open_ranges
from maskmill.storage import files, manifest, timings

MOST_ROWS = 10  # of a table
TIMINGS = "last run"  # the title of the table of how long that took
_MEASURED = 1024  # rows
_COUNTED_BYTES = 1 << 30  # of text shards without a manifest
_DIGEST = 16  # hexadecimal digits of a sha256 that are shown
_SHORT_DIGEST = 8  # in a table
_INPUTS = 3  # that are named

# Options that stand in a summary of examples, by what they are called there; those that were left open are decided.
_HOW_MADE = {
    "objective": "objective",
    "preset": "preset",
    "compat": "compatible with",
    "max_seq_length": "pieces of a row, at most",
    "max_predictions_per_seq": "masks of a row, at most",
    "masked_lm_prob": "share to predict",
    "mask_unit": "masked together",
    "dupe_factor": "dupe factor",
    "short_seq_prob": "share of short sequences",
    "random_seed": "seed",
    "do_lower_case": "lower case",
    "pack": "packed",
    "bins": "bins",
    "feature_names": "names of features",
}
_OF_NSP = ("short_seq_prob",)
# Counts of a split that are shown, and those of places of its rows.
_COUNTS = ("shards", "documents", "sentences", "tokens", "sequences", "examples")
_PIECES = ("example_tokens", "special_tokens", "padding_tokens")


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
    with explained(named):
        return _summarized(named, split, vocab_file)


@contextlib.contextmanager
def explained(path: str) -> Iterator[None]:
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
            return _of_build(path, ranges)
        if kind == "checkpoint":
            return _of_checkpoint(path)
        if kind == "manifest":
            file = path if files.base_name(path) == manifest.MANIFEST else files.join(path, manifest.MANIFEST)
            return _of_manifest(path, manifest.parse_manifest(file, ranges.read_all(file)))
        if kind == "vocabulary":
            return _of_vocabulary(open_vocabulary(path))
    if kind == "text":
        with open_texts(path) as texts:
            return _of_texts(texts)
    with contextlib.closing(open_examples(path, split=split, vocab_file=vocab_file)) as examples:
        return _of_examples(examples)


def stages_of(path: str, ranges: ByteRanges) -> dict[str, dict[str, Any]]:
    """The manifests of a build by the folders of its stages, in their order."""
    found = {}
    for folder in kinds.STAGE_FOLDERS:
        file = files.join(files.join(path, folder), manifest.MANIFEST)
        with contextlib.suppress(MissingFileError):
            found[folder] = manifest.parse_manifest(file, ranges.read_all(file))
    return found


def _of_build(path: str, ranges: ByteRanges) -> Summary:
    """A build: its stages, and what is known of each."""
    stages = stages_of(path, ranges)
    rows = []
    for folder, made in stages.items():
        listed_files = [file for shard in made["shards"] for file in manifest.files_of_shard(shard)]
        counts = [made["counts"].get(split, {}) for split in ("train", "eval")]
        rows.append(
            (
                folder,
                made["stage"],
                len(listed_files),
                *(sum(count.get(name, 0) for count in counts) or None for name in ("documents", "sentences")),
                sum(count.get("examples", count.get("picked", 0)) for count in counts) or None,
                sum(int(file.get("bytes", 0)) for file in listed_files),
            )
        )
    columns = ("folder", "stage", "files", "documents", "sentences", "examples", "bytes")
    table = Table(title="stages", columns=columns, rows=rows, units=("", "", "", "", "", "", "bytes"))
    sections, tables = [Section(title="lineage", facts=_lineage(stages))], [table]
    if "examples" in stages:
        made = stages["examples"]
        sections += [_how_made(made), _vocabulary_of(made)]
        tables += _splits(made)
    tables += _timings(path, stages)
    return Summary(
        path=path,
        kind="build",
        sections=sections,
        tables=tables,
        notes=tuple(_notes_of_counts(stages.get("text", {}).get("counts", {}))),
    )


def _timings(path: str, stages: Mapping[str, Any]) -> list[Table]:
    """How long the steps of a build took, where that is kept."""
    rows = [
        (
            timing.label,
            timing.pieces,
            timing.bytes,
            round(timing.seconds, 1),
            timing.bytes / timing.seconds if timing.seconds else None,
            timing.memory,
        )
        for folder in stages
        if files.is_local(path)
        for timing in timings.read(files.join(path, folder))
    ]
    columns = ("step", "pieces", "input", "seconds", "input a second", "memory")
    units: tuple[Unit, ...] = ("", "", "bytes", "", "bytes", "bytes")
    return [Table(title=TIMINGS, columns=columns, rows=rows, units=units)] if rows else []


def _lineage(stages: Mapping[str, Mapping[str, Any]]) -> list[Fact]:
    """From what a build was made, and with what."""
    first = next(iter(stages.values()))
    facts = [Fact(f"input {number}", text) for number, text in enumerate(_inputs_of(first), 1)]
    if "text" in stages:
        facts += _of_extract(stages["text"])
    return [*facts, *_versions(first)]


def _inputs_of(made: Mapping[str, Any]) -> list[str]:
    inputs = [
        f"{entry['path']} (sha256 {str(entry['sha256'])[:_DIGEST]}…)" if entry.get("sha256") else str(entry["path"])
        for entry in made["inputs"]
    ]
    left = len(inputs) - _INPUTS
    return inputs if left <= 1 else [*inputs[:_INPUTS], f"and {left:,} more"]


def _versions(made: Mapping[str, Any]) -> list[Fact]:
    version = made.get("versions", {}).get("maskmill")
    return [] if version is None else [Fact("made by", f"maskmill {version}")]


def _of_extract(made: Mapping[str, Any]) -> list[Fact]:
    """How text was taken from a dump."""
    decided, counts = made.get("decided", {}), made["counts"].get("extract", {})
    choices = [entry for entry in decided.get("sentences", ()) if isinstance(entry, dict)]
    facts = [
        Fact("dump's date", decided.get("dump_date")),
        Fact("extractor", decided.get("extractor")),
        Fact("sentences split as", ", ".join(dict.fromkeys(str(entry.get("name")) for entry in choices)) or None),
        Fact("pages or documents read", counts.get("read")),
    ]
    facts += [Fact(name.replace("_", " "), value) for name, value in sorted(counts.items()) if name != "read" and value]
    return [fact for fact in facts if fact.value is not None]


def _notes_of_counts(counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """What the counts of extract give reason to say."""
    rejected = sum(count.get("rejected", 0) for count in counts.values())
    if not rejected:
        return []
    return [f"{rejected:,} documents could not be processed; {manifest.REJECTED} lists each with its reason."]


def _of_manifest(path: str, made: Mapping[str, Any]) -> Summary:
    """What a manifest says; the files that it lists are not looked at."""
    if made["stage"] in ("examples", "eval"):
        sections, tables = _of_made_examples(made, files.parent(path))
    else:
        sections, tables = [], []
        if made["stage"] == "extract":
            sections.append(Section(title="extract", facts=_of_extract(made)))
        tables += _counts_table(made)
    parameters = [Fact(name, plain(value)) for name, value in made["parameters"].items()]
    inputs = [Fact(f"input {number}", text) for number, text in enumerate(_inputs_of(made), 1)]
    return Summary(
        path=path,
        kind=f"manifest of {made['stage']}",
        sections=[
            *sections,
            Section(title="inputs", facts=[*inputs, *_versions(made)]),
            Section(title="parameters", facts=parameters),
        ],
        tables=[*tables, _files_table(made)],
    )


def plain(value: Any) -> Value:
    """A value of a manifest's parameters as a figure."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def _counts_table(made: Mapping[str, Any]) -> list[Table]:
    rows = [
        (f"{step}, {name.replace('_', ' ')}", value)
        for step, counts in made["counts"].items()
        for name, value in counts.items()
    ]
    return [Table(title="counts", columns=("count", "number"), rows=rows)] if rows else []


def _files_table(made: Mapping[str, Any]) -> Table:
    """The files that a manifest lists."""
    rows = []
    for shard in made["shards"]:
        for file in manifest.files_of_shard(shard):
            number = file.get("examples", file.get("documents"))
            digest = f"{file['sha256'][:_SHORT_DIGEST]}…" if file.get("sha256") else None
            rows.append((file["name"], shard.get("kind"), number, file.get("bytes"), digest))
    is_text = made["stage"] == "extract"
    columns = ("file", "split", "documents" if is_text else "examples", "bytes", "sha256")
    return listed("files", columns, rows, ("", "", "", "bytes", ""), MOST_ROWS)


def _of_examples(opened: OpenedExamples) -> Summary:
    """Examples, by their manifest or by their records."""
    data_set, made = opened.data_set, opened.made
    notes = [] if opened.why_no_words is None else [opened.why_no_words]
    measured = list[Section]()
    try:
        measured.append(_measured(opened))
    except UnusableInputError as error:  # they are damaged, which does not keep the rest from being told
        notes.append(str(error))
    if made is None:
        sections = [_of_records(opened)]
        rows = [(files.base_name(file.path), file.samples, file.size) for file in data_set.files]
        columns = [
            (column.name, str(column.dtype), "varies" if column.varies else column.width) for column in data_set.columns
        ]
        tables = [
            Table(title="columns", columns=("column", "type in memory", "values"), rows=columns),
            listed("files", ("file", "examples", "bytes"), rows, ("", "", "bytes"), MOST_ROWS),
        ]
        kind = "examples without a manifest"
    else:
        sections, tables = _of_made_examples(made, opened.directory or opened.path)
        if opened.count != data_set.samples:
            named = Section(title="of these", facts=[Fact("path", opened.path), Fact("examples", opened.count)])
            sections = [named, *sections]
        kind = "picked eval examples" if made["stage"] == "eval" else "examples"
    return Summary(path=opened.path, kind=kind, sections=[*sections, *measured], tables=tables, notes=notes)


def _of_records(opened: OpenedExamples) -> Section:
    data_set = opened.data_set
    facts = [
        Fact("format", data_set.format),
        Fact("files", len(data_set.files)),
        Fact("examples", data_set.samples),
        Fact("size", sum(file.size or 0 for file in data_set.files), "bytes"),
        Fact("pieces of a row, at most", data_set.width),
        Fact("masks of a row, at most", data_set.predictions),
        Fact("packed", data_set.packed),
    ]
    return Section(title="records", facts=facts)


def _of_made_examples(made: Mapping[str, Any], directory: str) -> tuple[list[Section], list[Table]]:
    """What a manifest says of examples."""
    sections = [_how_made(made), _vocabulary_of(made)]
    tables = _splits(made)
    if made.get("schema"):
        rows = [
            (
                column["name"],
                column["dtype"],
                "varies" if column["shape"] == [None] else column["shape"][0],
                column["what"],
            )
            for column in made["schema"]
        ]
        tables.append(Table(title="columns", columns=("column", "type", "values", "what"), rows=rows))
    return sections, [*tables, _files_table(made)]


def _options_of(made: Mapping[str, Any]) -> dict[str, Any]:
    """The options that examples were made with, and what was decided where they leave it open."""
    return {**made.get("examples", made["parameters"]), **made.get("decided", {})}


def _how_made(made: Mapping[str, Any]) -> Section:
    """How examples were made."""
    options = _options_of(made)
    is_dynamic = bool(options.get("dynamic_masking"))
    facts = [Fact("format", made.get("format", "tfrecord"))]
    for name, label in _HOW_MADE.items():
        value = plain(options.get(name))
        is_moot = name in _OF_NSP and options.get("objective", "nsp") != "nsp"
        if value in (None, "none") or is_moot or (name == "dupe_factor" and is_dynamic):
            continue
        # A seed is a name, not a quantity.
        facts.append(Fact(label, str(value) if name == "random_seed" else value, "share" if "share" in label else ""))
    facts.append(Fact("masks", "drawn by the reader, others in each epoch" if is_dynamic else "stored"))
    shares = [options.get(name) for name in ("mask_share", "random_share", "keep_share")]
    if None not in shares:
        facts.append(Fact("of masks: [MASK], random, kept", ", ".join(f"{share:g}" for share in shares)))
    if made["stage"] == "eval":
        facts.append(Fact("picked", made["counts"].get("eval", {}).get("picked")))
        facts.append(Fact("picked from", made["counts"].get("eval", {}).get("available")))
    return Section(title="how they were made", facts=facts)


def _vocabulary_of(made: Mapping[str, Any]) -> Section:
    """The vocabulary of examples."""
    options = _options_of(made)
    option = "tokenizer_file" if options.get("tokenizer_file") else "vocab_file"
    copied = made.get("vocabulary") or {}
    sha256 = copied.get("sha256") or options.get(f"{option}_sha256")
    facts = [
        Fact("file", options.get(option)),
        Fact("copy", copied.get("name")),
        Fact("sha256", None if sha256 is None else f"{sha256[:_DIGEST]}…"),
        Fact("pieces", made.get("vocabulary_size")),
        *(Fact(f"id of {name.removesuffix('_id')}", id) for name, id in made.get("special_ids", {}).items()),
    ]
    return Section(title="vocabulary", facts=[fact for fact in facts if fact.value is not None])


def _splits(made: Mapping[str, Any]) -> list[Table]:
    """The counts of each split, and the shares that follow from them."""
    splits = {
        split: made["counts"][split] for split in ("train", "eval") if "examples" in made["counts"].get(split, {})
    }
    if not splits:
        return []
    pairs = "swapped" if _options_of(made).get("objective") == "sop" else "random"
    rows: list[tuple[Unit, tuple[Value, ...]]] = [
        ("", (name, *(counts.get(name) for counts in splits.values()))) for name in _COUNTS
    ]
    rows.append(("bytes", ("size", *(counts.get("bytes") for counts in splits.values()))))
    shares = {
        "padding": lambda counts: _share(counts.get("padding_tokens"), _places(counts)),
        "to predict": lambda counts: _share(
            counts.get("masked_positions"), _places(counts) - counts.get("padding_tokens", 0)
        ),
        f"pairs that are {pairs}": lambda counts: _share(
            counts.get("random_next", counts.get("swapped")), counts.get("sequences", counts["examples"])
        ),
        "unknown words": lambda counts: _share(counts.get("unknown_words"), counts.get("words", 0)),
        "text that is in no example": lambda counts: _share(counts.get("unused_tokens"), counts.get("tokens", 0)),
    }
    rows += [("share", (name, *map(share, splits.values()))) for name, share in shares.items()]
    kept = [(unit, row) for unit, row in rows if any(value is not None for value in row[1:])]
    return [
        Table(
            title="splits",
            columns=("", *splits),
            rows=[row for _, row in kept],
            row_units=[unit for unit, _ in kept],
        )
    ]


def _places(counts: Mapping[str, int]) -> int:
    """How many places rows have: pieces, special ones and padding."""
    return sum(counts.get(name, 0) for name in _PIECES)


def _share(part: int | None, whole: int) -> float | None:
    return None if part is None or not whole else part / whole


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
        facts.append(Fact("share to predict", _share(int(masks.sum()), int(lengths.sum())), "share"))
    labels = rows.arrays.get("next_sentence_labels")
    if labels is not None and not opened.data_set.packed:
        facts.append(Fact("share of label 1", float(np.mean(labels != 0)), "share"))
    return Section(title="first rows", facts=facts)


def _of_texts(opened: OpenedTexts) -> Summary:
    """Text shards, by their manifest or by their content."""
    if opened.made is not None and opened.documents is not None and len(opened.files) > 1:
        made = opened.made
        inputs = [Fact(f"input {number}", text) for number, text in enumerate(_inputs_of(made), 1)]
        sections = [Section(title="extract", facts=[*inputs, *_of_extract(made), *_versions(made)])]
        counts = [
            (split, *(counts.get(name) for name in ("shards", "documents", "sentences", "bytes")))
            for split, counts in ((split, made["counts"].get(split)) for split in ("train", "eval"))
            if counts is not None
        ]
        columns = ("split", "shards", "documents", "sentences", "bytes")
        tables = [
            Table(title="splits", columns=columns, rows=counts, units=("", "", "", "", "bytes")),
            _files_table(made),
        ]
        return Summary(
            path=opened.path,
            kind="text shards",
            sections=sections,
            tables=tables,
            notes=tuple(_notes_of_counts(made["counts"])),
        )
    facts, note = _counted(opened)
    rows = [(files.base_name(file.path), file.size) for file in opened.files]
    return Summary(
        path=opened.path,
        kind="text shards" if len(rows) > 1 else "text shard",
        sections=[Section(title="text", facts=facts)],
        tables=[listed("files", ("file", "bytes"), rows, ("", "bytes"), MOST_ROWS)],
        notes=note,
    )


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
            "No blank line ends a document, so this is no text shard (a sentence a line, and a blank line behind each "
            "document); make shards of it with `maskmill extract`."
        )
    return facts, notes


def _of_vocabulary(vocabulary: VocabularyFile) -> Summary:
    """A vocabulary: its pieces by kind, and what its report measured."""
    facts = [
        Fact("file", vocabulary.path),
        Fact("kind", vocabulary.kind),
        Fact("size", vocabulary.size, "bytes"),
        Fact("sha256", f"{vocabulary.sha256[:_DIGEST]}…"),
        Fact("pieces", len(vocabulary.pieces)),
        Fact("ids", vocabulary.ids),
        Fact("special or reserved", vocabulary.special),
        Fact("of one character", vocabulary.characters),
        Fact("that start a word", vocabulary.starting),
        Fact("that go on a word", vocabulary.continuing),
        Fact("with a capital letter", vocabulary.capitals),
        Fact("that stand there twice", vocabulary.duplicates or None),
        Fact("longest piece, characters", vocabulary.longest),
    ]
    tables = []
    if vocabulary.roles:
        roles = [(role, piece, id) for role, (piece, id) in vocabulary.roles.items()]
        tables.append(Table(title="special pieces", columns=("role", "piece", "id"), rows=roles))
    scripts = [(script, count, count / max(1, len(vocabulary.pieces))) for script, count in vocabulary.scripts]
    tables.append(listed("scripts", ("script", "pieces", "share"), scripts, ("", "", "share"), MOST_ROWS))
    if vocabulary.report:
        columns = ("vocabulary", "pieces", "pieces_per_word", "bytes_per_token", "unknown_words", "whole_words")
        rows = [[measured.get(name, measured.get("name")) for name in columns] for measured in vocabulary.report]
        names = ("vocabulary", "pieces", "pieces a word", "bytes a token", "unknown words", "whole words")
        units: tuple[Unit, ...] = ("", "", "", "", "share", "share")
        tables.append(listed("measured", names, rows, units, MOST_ROWS))
    return Summary(
        path=vocabulary.named,
        kind="vocabulary",
        sections=[Section(title="pieces", facts=[fact for fact in facts if fact.value is not None])],
        tables=tables,
    )


def _of_checkpoint(path: str) -> Summary:
    """A checkpoint, by its header."""
    header = checkpoints.read_checkpoint_header(path)
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
    sections = [Section(title="checkpoint", facts=[fact for fact in facts if fact.value is not None])]
    if header.config:
        shown = [Fact(name, plain(value)) for name, value in header.config.items()]
        sections.append(Section(title="model", facts=shown))
    run = checkpoints.settings_of(header)
    if run:
        sections.append(Section(title="run", facts=[Fact(name, plain(value)) for name, value in run.items()]))
    largest = sorted(weights, key=lambda array: (-array.size, array.name))
    rows = [(array.name, array.dtype, " × ".join(map(str, array.shape)) or "1", array.size) for array in largest]
    table = listed("largest weights", ("weight", "type", "shape", "parameters"), rows, (), MOST_ROWS)
    return Summary(path=path, kind="checkpoint", sections=sections, tables=[table])
