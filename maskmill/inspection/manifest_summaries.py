"""Summaries of what manifests say: of a build, of one stage, and of examples."""

from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.inspection import kinds
from maskmill.inspection.summaries import DIGEST, Fact, Section, Summary, Table, Unit, Value, known, listed
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.made_examples import manifest_in
from maskmill.storage import files, manifest, timings

_SHORT_DIGEST = 8  # hexadecimal digits of a sha256, in a table
_INPUTS = 3  # that are named
# Options that stand in a summary of examples.
_SHOWN = (
    "objective", "preset", "compat", "max_seq_length", "max_predictions_per_seq", "masked_lm_prob", "mask_unit",
    "mask_share", "random_share", "keep_share", "dynamic_masking", "dupe_factor", "short_seq_prob", "random_seed",
    "do_lower_case", "pack", "bins", "feature_names",
)  # fmt: skip
# Counts of a split that are shown, and those of places of its rows.
_COUNTS = ("shards", "documents", "sentences", "tokens", "sequences", "examples")
_PIECES = ("example_tokens", "special_tokens", "padding_tokens")


def summary_of_build(path: str, ranges: ByteRanges) -> Summary:
    """A build: its stages, and what is known of each."""
    found = {folder: manifest_in(files.join(path, folder), ranges) for folder in kinds.STAGE_FOLDERS}
    stages = {folder: made for folder, made in found.items() if made is not None}
    rows = []
    for folder, made in stages.items():
        sizes = [int(file.get("bytes", 0)) for shard in made["shards"] for file in manifest.files_of_shard(shard)]
        counts = [made["counts"].get(split, {}) for split in ("train", "eval")]
        sums = [sum(count.get(name, 0) for count in counts) or None for name in ("documents", "sentences", "examples")]
        rows.append((folder, len(sizes), *sums, sum(sizes)))
    columns = ("stage", "files", "documents", "sentences", "examples", "bytes")
    sections = [made_from(next(iter(stages.values())))]
    tables = [Table("stages", columns, rows, ("",) * 5 + ("bytes",))]
    if "text" in stages:
        sections.append(of_extract(stages["text"]))
    if "examples" in stages:
        sections += _options(stages["examples"])
        tables += _splits(stages["examples"])
    timed = [timing for folder in stages if files.is_local(path) for timing in timings.read(files.join(path, folder))]
    if timed:
        steps = [(one.label, one.pieces, one.bytes, round(one.seconds, 1)) for one in timed]
        names = ("step", "pieces", "input", "seconds")
        tables.append(Table("last run", names, steps, ("", "", "bytes", "")))
    return Summary(path, "build", sections, tables)


def made_from(made: Mapping[str, Any]) -> Section:
    """What a stage was made from: its first inputs and the version of maskmill."""
    inputs = [
        f"{entry['path']} (sha256 {str(entry['sha256'])[:DIGEST]}…)" if entry.get("sha256") else str(entry["path"])
        for entry in made["inputs"]
    ]
    left = len(inputs) - _INPUTS
    inputs = inputs if left <= 1 else [*inputs[:_INPUTS], f"and {left:,} more"]
    facts = [Fact(f"input {number}", text) for number, text in enumerate(inputs, 1)]
    return known("made from", [*facts, Fact("made by maskmill", made.get("versions", {}).get("maskmill"))])


def of_extract(made: Mapping[str, Any]) -> Section:
    """How text was taken from a dump, and what was left out."""
    decided, counts = made.get("decided", {}), made["counts"].get("extract", {})
    choices = [str(entry.get("name")) for entry in decided.get("sentences", ()) if isinstance(entry, dict)]
    facts = [
        Fact("dump's date", decided.get("dump_date")),
        Fact("extractor", decided.get("extractor")),
        Fact("sentences split as", ", ".join(dict.fromkeys(choices)) or None),
        *(Fact(name.replace("_", " "), value or None) for name, value in sorted(counts.items())),
    ]
    return known("extract", facts)


def summary_of_manifest(path: str, made: Mapping[str, Any]) -> Summary:
    """What a manifest says; the files that it lists are not looked at."""
    sections, tables = of_stage(made)
    parameters = Section("parameters", [Fact(name, plain(value)) for name, value in made["parameters"].items()])
    return Summary(path, f"manifest of {made['stage']}", [*sections, parameters], tables)


def plain(value: Any) -> Value:
    """A value of a manifest's parameters as a figure."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def of_stage(made: Mapping[str, Any]) -> tuple[list[Section], list[Table]]:
    """What a manifest says of its stage."""
    sections, tables = [made_from(made)], list[Table]()
    if made["stage"] in ("examples", "eval"):
        sections += _options(made)
        tables += _splits(made)
    elif made["stage"] == "extract":
        sections.append(of_extract(made))
    if not tables:
        counts = [
            (f"{step}, {name.replace('_', ' ')}", value)
            for step, counts in made["counts"].items()
            for name, value in counts.items()
        ]
        tables = [Table("counts", ("count", "number"), counts)] if counts else []
    columns = [
        (column["name"], column["dtype"], "varies" if column["shape"] == [None] else column["shape"][0], column["what"])
        for column in made.get("schema") or ()
    ]
    if columns:
        tables.append(Table("columns", ("column", "type", "values", "what"), columns))
    return sections, [*tables, _files(made)]


def _files(made: Mapping[str, Any]) -> Table:
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


def _options(made: Mapping[str, Any]) -> Sequence[Section]:
    """How examples were made, and with which vocabulary."""
    options = {**made.get("examples", made["parameters"]), **made.get("decided", {})}
    # A seed is a name, not a quantity.
    shown = {name: str(value) if name == "random_seed" else plain(value) for name, value in options.items()}
    copied = made.get("vocabulary") or {}
    vocabulary = [
        Fact("file", options.get("tokenizer_file") or options.get("vocab_file")),
        Fact("sha256", copied.get("sha256")),
        Fact("pieces", made.get("vocabulary_size")),
    ]
    facts = [Fact("format", made.get("format", "tfrecord")), *(Fact(name, shown.get(name)) for name in _SHOWN)]
    return known("options", facts), known("vocabulary", vocabulary)


def _splits(made: Mapping[str, Any]) -> list[Table]:
    """The counts of each split, and the shares that follow from them."""
    splits = {
        split: made["counts"][split] for split in ("train", "eval") if "examples" in made["counts"].get(split, {})
    }
    rows: list[tuple[Unit, tuple[Value, ...]]] = [
        ("", (name, *(counts.get(name) for counts in splits.values()))) for name in _COUNTS
    ]
    rows.append(("bytes", ("size", *(counts.get("bytes") for counts in splits.values()))))
    shares = {
        "padding": lambda counts: share(counts.get("padding_tokens"), _places(counts)),
        "to predict": lambda counts: share(
            counts.get("masked_positions"), _places(counts) - counts.get("padding_tokens", 0)
        ),
        "random or swapped pairs": lambda counts: share(
            counts.get("random_next", counts.get("swapped")), counts.get("sequences", counts["examples"])
        ),
        "unknown words": lambda counts: share(counts.get("unknown_words"), counts.get("words", 0)),
        "text that is in no example": lambda counts: share(counts.get("unused_tokens"), counts.get("tokens", 0)),
    }
    rows += [("share", (name, *map(share, splits.values()))) for name, share in shares.items()]
    kept = [(unit, row) for unit, row in rows if any(value is not None for value in row[1:])]
    table = Table("splits", ("", *splits), [row for _, row in kept], row_units=[unit for unit, _ in kept])
    return [table] if splits else []


def _places(counts: Mapping[str, int]) -> int:
    """How many places rows have: pieces, special ones and padding."""
    return sum(counts.get(name, 0) for name in _PIECES)


def share(part: int | None, whole: int) -> float | None:
    """A part of a whole; None if either is not known."""
    return None if part is None or not whole else part / whole
