"""Summaries of what manifests say: of a build, of one stage, and of examples."""

from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.inspection import kinds
from maskmill.inspection.summaries import DIGEST, Fact, Section, Summary, Table, Unit, Value, known, listed
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.made_examples import manifest_in
from maskmill.storage import files, manifest, timings

TIMINGS = "last run"  # the title of the table of how long that took
_SHORT_DIGEST = 8  # hexadecimal digits of a sha256, in a table
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


def stages_of(path: str, ranges: ByteRanges) -> dict[str, dict[str, Any]]:
    """The manifests of a build by the folders of its stages, in their order."""
    found = {folder: manifest_in(files.join(path, folder), ranges) for folder in kinds.STAGE_FOLDERS}
    return {folder: made for folder, made in found.items() if made is not None}


def summary_of_build(path: str, ranges: ByteRanges) -> Summary:
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
    first = next(iter(stages.values()))
    lineage = [*inputs_of(first), *(facts_of_extract(stages["text"]) if "text" in stages else ()), *versions_of(first)]
    sections, tables = [Section("lineage", lineage)], [Table("stages", columns, rows, ("",) * 6 + ("bytes",))]
    if "examples" in stages:
        made = stages["examples"]
        sections += [_how_made(made), _vocabulary_of(made)]
        tables += _splits(made)
    tables += _timings(path, stages)
    return Summary(path, "build", sections, tables, notes_of_counts(stages.get("text", {}).get("counts", {})))


def _timings(path: str, stages: Mapping[str, Any]) -> list[Table]:
    """How long the steps of a build took, if that is kept."""
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
    return [Table(TIMINGS, columns, rows, units)] if rows else []


def inputs_of(made: Mapping[str, Any]) -> list[Fact]:
    """What a stage was made from: the first inputs."""
    inputs = [
        f"{entry['path']} (sha256 {str(entry['sha256'])[:DIGEST]}…)" if entry.get("sha256") else str(entry["path"])
        for entry in made["inputs"]
    ]
    left = len(inputs) - _INPUTS
    inputs = inputs if left <= 1 else [*inputs[:_INPUTS], f"and {left:,} more"]
    return [Fact(f"input {number}", text) for number, text in enumerate(inputs, 1)]


def versions_of(made: Mapping[str, Any]) -> list[Fact]:
    """With what a stage was made."""
    version = made.get("versions", {}).get("maskmill")
    return [] if version is None else [Fact("made by", f"maskmill {version}")]


def facts_of_extract(made: Mapping[str, Any]) -> Sequence[Fact]:
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
    return known("extract", facts).facts


def notes_of_counts(counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """What the counts of extract give reason to say."""
    rejected = sum(count.get("rejected", 0) for count in counts.values())
    if not rejected:
        return []
    return [f"{rejected:,} documents could not be processed; {manifest.REJECTED} lists each with its reason."]


def summary_of_manifest(path: str, made: Mapping[str, Any]) -> Summary:
    """What a manifest says; the files that it lists are not looked at."""
    sections: list[Section] = []
    tables: list[Table] = []
    if made["stage"] in ("examples", "eval"):
        sections, tables = of_made_examples(made)
    else:
        if made["stage"] == "extract":
            sections = [Section("extract", facts_of_extract(made))]
        counts = [
            (f"{step}, {name.replace('_', ' ')}", value)
            for step, counts in made["counts"].items()
            for name, value in counts.items()
        ]
        tables = [*([Table("counts", ("count", "number"), counts)] if counts else ()), files_table(made)]
    inputs = Section("inputs", [*inputs_of(made), *versions_of(made)])
    parameters = Section("parameters", [Fact(name, plain(value)) for name, value in made["parameters"].items()])
    return Summary(path, f"manifest of {made['stage']}", [*sections, inputs, parameters], tables)


def plain(value: Any) -> Value:
    """A value of a manifest's parameters as a figure."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def files_table(made: Mapping[str, Any]) -> Table:
    """The files that a manifest lists."""
    rows = []
    for shard in made["shards"]:
        for file in manifest.files_of_shard(shard):
            number = file.get("examples", file.get("documents"))
            digest = f"{file['sha256'][:_SHORT_DIGEST]}…" if file.get("sha256") else None
            rows.append((file["name"], shard.get("kind"), number, file.get("bytes"), digest))
    is_text = made["stage"] == "extract"
    columns = ("file", "split", "documents" if is_text else "examples", "bytes", "sha256")
    return listed("files", columns, rows, ("", "", "", "bytes", ""))


def of_made_examples(made: Mapping[str, Any]) -> tuple[list[Section], list[Table]]:
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
        tables.append(Table("columns", ("column", "type", "values", "what"), rows))
    return sections, [*tables, files_table(made)]


def _options_of(made: Mapping[str, Any]) -> dict[str, Any]:
    """The options that examples were made with, and what was decided if they leave it open."""
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
    return Section("how they were made", facts)


def _vocabulary_of(made: Mapping[str, Any]) -> Section:
    """The vocabulary of examples."""
    options = _options_of(made)
    option = "tokenizer_file" if options.get("tokenizer_file") else "vocab_file"
    copied = made.get("vocabulary") or {}
    sha256 = copied.get("sha256") or options.get(f"{option}_sha256")
    facts = [
        Fact("file", options.get(option)),
        Fact("copy", copied.get("name")),
        Fact("sha256", None if sha256 is None else f"{sha256[:DIGEST]}…"),
        Fact("pieces", made.get("vocabulary_size")),
        *(Fact(f"id of {name.removesuffix('_id')}", id) for name, id in made.get("special_ids", {}).items()),
    ]
    return known("vocabulary", facts)


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
        "padding": lambda counts: share(counts.get("padding_tokens"), _places(counts)),
        "to predict": lambda counts: share(
            counts.get("masked_positions"), _places(counts) - counts.get("padding_tokens", 0)
        ),
        f"pairs that are {pairs}": lambda counts: share(
            counts.get("random_next", counts.get("swapped")), counts.get("sequences", counts["examples"])
        ),
        "unknown words": lambda counts: share(counts.get("unknown_words"), counts.get("words", 0)),
        "text that is in no example": lambda counts: share(counts.get("unused_tokens"), counts.get("tokens", 0)),
    }
    rows += [("share", (name, *map(share, splits.values()))) for name, share in shares.items()]
    kept = [(unit, row) for unit, row in rows if any(value is not None for value in row[1:])]
    return [
        Table(
            "splits",
            ("", *splits),
            [row for _, row in kept],
            row_units=[unit for unit, _ in kept],
        )
    ]


def _places(counts: Mapping[str, int]) -> int:
    """How many places rows have: pieces, special ones and padding."""
    return sum(counts.get(name, 0) for name in _PIECES)


def share(part: int | None, whole: int) -> float | None:
    """A part of a whole; None if either is not known."""
    return None if part is None or not whole else part / whole
