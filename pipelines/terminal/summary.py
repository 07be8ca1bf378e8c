"""What a command says when it is done: what went in, what came out, and what the user should know about it.

It is printed as lines of 80 columns, on a terminal in colours.
"""

import json
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from maskmill.inspection.shown_text import shown
from maskmill.records.file_names import REPORT, REPORT_TABLE
from maskmill.storage import files
from maskmill.storage.outcomes import Outcome, Result
from pipelines.terminal import data_warnings
from pipelines.terminal.console import Coloured
from transforms.extraction import unknown_templates

_MOST_CHOICES = 10  # of how sentences are split: a corpus of many languages has as many; the manifest has all

_SENTENCES = "sentences"  # the label of how they were split
_SOURCE = "source"  # the label of what became of one, in a mix
_MEGABYTE = 1 << 20

# What is shown of a vocabulary's counts; the first are shown if they are 0, too.
_OF_VOCABULARY = ("shards", "pieces", "alphabet", "merges", "distinct_words", "words", "bytes")
_OF_VOCABULARY_IF_ANY = ("long_words", "left_out_distinct_words", "left_out_words")
_MOST_MEASURED = 10  # vocabularies of a report; report.md has all

# The order in which a summary shows the counts of a manifest.
TRAIN_AND_EVAL = ("train", "eval")
_STEPS = ("templates", "extract", "holes", "paragraphs", "clean", *TRAIN_AND_EVAL)
_LITTLE_PACKED = 0.5  # of the padding is left: a user should know what packs better
# The summary shows these counts of shards, in this order; the manifest has more. Of other steps it shows all counts,
# with what went in and what came out first.
_SHOWN = ("shards", "documents", "sentences", "tokens", "sequences", "examples", "available", "picked", "bytes")
# What a user calls a piece of a kind.
_PIECES = {
    "punkt": "Punkt training",
    "templates": "template collection",
    "extract": "unit",
    "duplicates": "duplicate decision",
    "clean": "cleaned batch",
    "text": "text shard",
    "word_counts": "counted shard",
    "merged_counts": "merged table",
    "vocabulary": "vocabulary",
    "vocabulary_report": "report",
    "examples": "example shard",
}
_MOST_LINES = 10  # of what was made again

_COLUMNS = 80
# What is coloured on a terminal.
_HEADING, _LABEL = re.compile(r"^\S+: .*"), re.compile(r"^  [a-z]+ ")
_NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*(?!\w)")


def _lines_of(output: str, result: Result) -> Iterator[str]:
    """What is said of a stage, from its directory and what became of it."""
    manifest = result.made
    counts, decided = manifest["counts"], manifest.get("decided", {})
    choices = decided.get("sentences", ())[:_MOST_CHOICES]
    described = _vocabulary_figures if manifest["stage"] == "vocabulary" else _figures
    width = max(8, *map(len, counts), *(len(_SENTENCES) for _ in choices))
    # A step that is not in the list comes last.
    steps = sorted(counts, key=lambda name: _STEPS.index(name) if name in _STEPS else len(_STEPS))
    yield f"{manifest['stage']}: {output}"
    for label, phrases in [
        *((step, described(step, counts[step])) for step in steps),
        *((_SOURCE, _source_described(source, mixed)) for source, mixed in decided.get("sources", {}).items()),
        *((_SENTENCES, _sentences_described(choice, manifest["parameters"])) for choice in choices),
        *_measured_rows(output, manifest),
    ]:
        yield from _in_columns(f"  {label:<{width}} ", phrases)
    yield from _notes(output, result)


def _notes(output: str, result: Result) -> Iterator[str]:
    """The lines at the end of a summary."""
    manifest = result.made
    yield from _template_lines(output, manifest)
    if manifest["stage"] == "vocabulary":
        yield f"  {files.join(output, REPORT_TABLE)} has more, and how it was measured."
    if manifest["stage"] == "eval":
        yield from _picked_line(manifest["counts"]["eval"], manifest["parameters"]["num_examples_to_pick"])
    yield from _outcome_lines(result.outcome)
    rejected = sum(counts.get("rejected", 0) for counts in manifest["counts"].values())
    if rejected:
        yield f"  {rejected:,} documents could not be processed; {output}/rejected.jsonl lists each with its reason."
    yield from _cut_off_line(manifest["counts"].get("extract", {}))
    yield from _packing_line(manifest["counts"].values(), manifest["parameters"])


def _outcome_lines(outcome: Outcome | None) -> Iterator[str]:
    """What the run found finished, made, and made again, and why; nothing after a first run."""
    if outcome is None:
        return
    has_more = outcome.remade or outcome.changed_inputs
    if not has_more and (outcome.is_first or not (outcome.reused or outcome.made)):
        return
    changed = [f"{path}: it has other content than in the build before" for path in outcome.changed_inputs]
    yield f"  {'reused':<10} {_pieces_text(outcome.reused)}"
    yield f"  {'made':<10} {_pieces_text(outcome.made)}"
    for label, pieces in (("changed", changed), ("made again", outcome.remade)):
        for piece in pieces[:_MOST_LINES]:
            yield f"  {label:<10} {piece}"
        if len(pieces) > _MOST_LINES:
            yield f"  {label:<10} {len(pieces) - _MOST_LINES:,} more"


def _pieces_text(numbers: Mapping[str, int]) -> str:
    texts = [
        f"{numbers[kind]:,} {piece}{'' if numbers[kind] == 1 else 's'}"
        for kind, piece in _PIECES.items()
        if kind in numbers
    ]
    return ", ".join(texts) or "nothing"


def _packing_line(counts: Iterable[Mapping[str, int]], parameters: Mapping[str, Any]) -> Iterator[str]:
    """What a user may do if packing took out little of the padding."""
    padding, unpacked = (
        sum(count.get(name, 0) for count in counts) for name in ("padding_tokens", "unpacked_padding_tokens")
    )
    if not unpacked or padding < _LITTLE_PACKED * unpacked:
        return
    if parameters["full_sentences"]:
        yield "  --pack took out little padding: whole sentences leave gaps that none fills;"
        yield "  with --nofull_sentences a sentence goes on in the next row, and rows are full."
    elif parameters["cross_documents"]:
        yield "  --pack took out little padding: sequences across documents are full already."


def _cut_off_line(counts: Mapping[str, int]) -> Iterator[str]:
    """A line if inputs are cut off; `counts` is that of extract."""
    if counts.get("cut_off_files"):
        inputs = f"{counts['cut_off_files']:,} input{' is' if counts['cut_off_files'] == 1 else 's are'} cut off"
        yield f"  {inputs}: what stands before the cut was taken; pages given up: {counts.get('cut_off_pages', 0):,}."


def _template_lines(output: str, manifest: Mapping[str, Any]) -> Iterator[str]:
    """What a user may do for templates without a rule, and the most frequent of them if they are listed."""
    counts = manifest["counts"].get("templates", {})
    parameters = manifest["parameters"]
    missing = manifest["decided"].get("languages_without_rules", ()) if manifest["stage"] == "extract" else ()
    if counts.get("definitions") and not any(_values(parameters, "expand_templates")):
        if missing:
            yield (
                f"  maskmill has no rules for the templates of {', '.join(missing)}; --expand_templates takes the "
                "dump's own definitions."
            )
        elif unknown := counts.get("unknown_calls"):
            yield (
                f"  no rule knows {unknown:,} call{'' if unknown == 1 else 's'} of templates in the text; "
                "--expand_templates takes the dump's own definitions, which reads the dump twice."
            )
    if not any(_values(parameters, "report_templates")):
        return
    path = files.join(output, unknown_templates.REPORT)
    rows = unknown_templates.read_table(files.read_bytes(path).decode())
    yield f"  {path} lists templates without a rule, by their calls in the text:"
    for row in rows[: unknown_templates.MOST_PRINTED]:
        yield f"    {int(row['calls']):>7,} {row['template']} ({int(row['kept']):,} kept their argument)"


def _measured_rows(output: str, manifest: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[str]]]:
    """What the report of a vocabulary found for it and for each one beside it."""
    if manifest["stage"] != "vocabulary":
        return
    report = json.loads(files.read_bytes(files.join(output, REPORT)))
    label = "held out" if report["text"]["kind"] == "eval" else "measured"
    for measured in report["vocabularies"][:_MOST_MEASURED]:
        yield (
            label,
            [
                f"{measured['name']}: {measured['pieces_per_word']:.4g} pieces a word",
                f"{measured['bytes_per_token']:.3g} bytes a token",
                f"unknown words {data_warnings.percent(measured['unknown_words'])}",
            ],
        )


def _values(parameters: Mapping[str, Any], name: str) -> list[Any]:
    """The values of an option of extract in a manifest's parameters: one, or in a mix one for each source."""
    return [value for key, value in parameters.items() if key == name or key.endswith(f".{name}")]


def _source_described(name: str, mixed: Mapping[str, Any]) -> list[str]:
    """What became of a source of a mix, as phrases; `mixed` is its entry among the manifest's decided sources."""
    return [
        f"{name}: {mixed['read']:,} read",
        f"{mixed['documents']:,} documents",
        f"{mixed['held_out']:,} held out",
        f"{mixed['used']:,} used",
        f"{mixed['bytes']:,} bytes",
        f"{mixed['epochs']:.4g} epochs",
        f"{data_warnings.percent(mixed['share'])} of the mix",
    ]


def _sentences_described(entry: Mapping[str, Any], parameters: Mapping[str, Any]) -> list[str]:
    """How sentences were split and why, and what became of them, as phrases; both arguments are of the manifest."""
    source = entry.get("source")
    language = parameters[f"sources.{source}.language" if source else "language"]
    option = f"--compat {parameters['compat']}" if language == "auto" else "--language"
    why = {"option": option, "dump": "the dump's language", "script": "by the text's beginning"}.get(
        entry["why"], f"by its words, {entry.get('sure') or 0:.0%} sure"
    )
    phrases = [f"{source}: {entry['name']} ({why})" if source else f"{entry['name']} ({why})"]
    folder = entry["parameters"]
    if folder is not None:
        trained = f"Punkt trained on {(entry['text_bytes'] or 0) / _MEGABYTE:.3g} MB of this corpus"
        phrases.append(trained if folder["is_trained_here"] else "Punkt")
        phrases.append(f"its parameters in {folder['path']}")
        phrases.append(f"{folder['abbreviations']:,} abbreviations beside the known ones")
    elif entry["punkt"] is not None:
        phrases.append(f"Punkt's {entry['punkt'].capitalize()} parameters")
    if folder is None and entry["words"]:
        phrases.append("known marks and abbreviations" if entry["stops"] else "known abbreviations")
    if folder is None and entry["text_bytes"] is not None:
        phrases.append(f"too little text to train Punkt ({entry['text_bytes']:,} bytes)")
    records = {name: count for name, count in entry.get("records", {}).items() if name not in ("", entry["name"])}
    if records:
        phrases.append(f"of its records {', '.join(f'{count:,} {name}' for name, count in records.items())}")
    lines = entry.get("lines")
    if lines:
        phrases.append(f"median line {lines['median_characters']:,} characters")
        phrases.append(f"longest {lines['longest_characters']:,}")
    return phrases


def _picked_line(counts: Mapping[str, int], wanted: int) -> Iterator[str]:
    """A line if fewer eval examples were picked than wanted."""
    if not counts["available"]:
        yield "  The eval set is empty, so there was no example to pick."
    elif counts["picked"] < wanted:
        yield f"  There are fewer eval examples than num_examples_to_pick ({wanted:,}): all were taken."


def _figures(step: str, counts: Mapping[str, int]) -> list[str]:
    """The counts of a step."""
    if step in TRAIN_AND_EVAL:
        names = [name for name in _SHOWN if name in counts]
    else:
        names = sorted(counts, key=lambda name: (name not in ("read", "documents"), name == "documents", name))
    figures = [_count(name, counts) for name in names]
    if "unused_tokens" in counts:
        figures += shares(counts)
    return figures


def _vocabulary_figures(step: str, counts: Mapping[str, int]) -> list[str]:
    """The counts of a step of a vocabulary."""
    names = [name for name in _OF_VOCABULARY if name in counts]
    names += [name for name in _OF_VOCABULARY_IF_ANY if counts.get(name)]
    return [_count(name, counts) for name in names]


def _count(name: str, counts: Mapping[str, int]) -> str:
    return f"{counts[name]:,} {name.replace('_', ' ')}"


def shares(counts: Mapping[str, int]) -> list[str]:
    """How much of a text is in examples, how many of its words are [UNK], and how much of the examples is padding.

    counts: as in ExampleCounts.
    """
    percent = data_warnings.percent
    found = [
        f"text used {percent(data_warnings.text_used(counts))}",
        f"unknown words {percent(data_warnings.words_unknown(counts))}",
    ]
    if "padding_tokens" in counts:
        unpacked = ""
        if "unpacked_padding_tokens" in counts:
            unpacked = f" (unpacked {percent(_padding(counts, 'unpacked_padding_tokens'))})"
        found.append(f"padding {percent(_padding(counts, 'padding_tokens'))}{unpacked}")
    return [*found, *(_count(name, counts) for name in ("dropped_tokens", "split_sentences") if counts.get(name))]


def _padding(counts: Mapping[str, int], name: str) -> float:
    """The share of padding in rows, 0 to 1: as they are, or unpacked."""
    places = counts["example_tokens"] + counts["special_tokens"] + counts[name]
    return counts[name] / max(1, places)


def report(output: str, result: Result | None) -> None:
    """Prints the counts of a stage, and on stderr what its data gives reason to warn of.

    output: the stage's directory. result: what became of the stage; None if the job was only described.
    """
    if result is None:
        print(f"{output}: nothing was run, the job was only described.")
        return
    lines = list(_lines_of(output, result))
    if sys.stdout.isatty():
        _print_in_colours(lines)
    else:
        print("\n".join(lines))
    data_warnings.warn(result.made["stage"], data_warnings.warnings_of(result.made))


def _print_in_colours(lines: Iterable[str]) -> None:
    """Prints a summary to a terminal: numbers in bold, labels in a colour."""
    from rich.console import Console
    from rich.text import Text

    console = Console(file=Coloured(), highlight=False)  # type: ignore[arg-type]
    for line in lines:
        text = Text(shown(line))
        text.highlight_regex(_HEADING, "bold")
        text.highlight_regex(_LABEL, "cyan")
        text.highlight_regex(_NUMBER, "bold")
        console.print(text, soft_wrap=True)


def _in_columns(head: str, phrases: Sequence[str]) -> list[str]:
    """Phrases behind a head, broken between them into lines of 80 columns at most."""
    joined = ", ".join(phrase.replace(" ", "\0") for phrase in phrases)
    lines = textwrap.wrap(
        joined,
        _COLUMNS,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in lines]
