"""What a command prints when it is done: what went in, what came out, and what the user should know about it."""

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from pipelines import data_warnings, outcome_summary
from transforms.extraction import unknown_templates
from transforms.storage import files
from transforms.vocabularies.options import REPORT, REPORT_TABLE

_COLUMNS = 80
_MOST_CHOICES = 10  # of how sentences are split: a corpus of many languages has as many; the manifest has all

_SENTENCES = "sentences"  # the label of how they were split
_SOURCE = "source"  # the label of what became of one, in a mix
_MEGABYTE = 1 << 20

# What is shown of a vocabulary's counts; the first are shown where they are 0, too.
_OF_VOCABULARY = ("shards", "pieces", "alphabet", "merges", "distinct_words", "words", "bytes")
_OF_VOCABULARY_IF_ANY = ("long_words", "left_out_distinct_words", "left_out_words")
_MOST_MEASURED = 10  # vocabularies of a report; report.md has all

# The order in which a summary shows the counts of a manifest.
_STEPS = ("templates", "extract", "paragraphs", "clean", "train", "eval")
# The summary shows these counts of shards, in this order; the manifest has more. Of other steps it shows all counts,
# with what went in and what came out first.
_SHOWN = ("shards", "documents", "sentences", "tokens", "sequences", "examples", "available", "picked", "bytes")


def report(output: str, manifest: Mapping[str, Any]) -> None:
    """Prints the counts of a stage, and on stderr what its data gives reason to warn of.

    Args:
      output: the stage's directory.
      manifest: the stage's manifest; empty where the job was only described.
    """
    if not manifest:
        print(f"{output}: nothing was run, the job was only described.")
        return
    print(f"{manifest['stage']}: {output}")
    choices = manifest.get("decided", {}).get("sentences", ())[:_MOST_CHOICES]
    width = max(8, *map(len, manifest["counts"]), *(len(_SENTENCES) for _ in choices))
    # A step that is not in the list comes last.
    for step in sorted(manifest["counts"], key=lambda name: _STEPS.index(name) if name in _STEPS else len(_STEPS)):
        described = _vocabulary_described if manifest["stage"] == "vocabulary" else _described
        print(_in_columns(f"  {step:<{width}} ", described(step, manifest["counts"][step])))
    for source, mixed in manifest.get("decided", {}).get("sources", {}).items():
        print(_in_columns(f"  {_SOURCE:<{width}} ", _source_described(source, mixed)))
    for choice in choices:
        print(_in_columns(f"  {_SENTENCES:<{width}} ", _sentences_described(choice, manifest["parameters"])))
    for line in _template_lines(output, manifest):
        print(line)
    for line in _report_lines(output, manifest, width):
        print(line)
    if manifest["stage"] == "eval":
        print(_picked_text(manifest["counts"]["eval"], manifest["parameters"]["num_examples_to_pick"]), end="")
    outcome_summary.report(output)
    rejected = sum(counts.get("rejected", 0) for counts in manifest["counts"].values())
    if rejected:
        print(f"  {rejected:,} documents could not be processed; {output}/rejected.jsonl lists each with its reason.")
    print(_cut_off_text(manifest["counts"].get("extract", {})), end="")
    data_warnings.warn(manifest["stage"], data_warnings.warnings_of(manifest))


def _cut_off_text(counts: Mapping[str, int]) -> str:
    """A line where inputs are cut off; `counts` is that of extract."""
    if not counts.get("cut_off_files"):
        return ""
    inputs = f"{counts['cut_off_files']:,} input{' is' if counts['cut_off_files'] == 1 else 's are'} cut off"
    return f"  {inputs}: what stands before the cut was taken; pages given up: {counts.get('cut_off_pages', 0):,}.\n"


def _template_lines(output: str, manifest: Mapping[str, Any]) -> Iterator[str]:
    """What a user may do for templates without a rule, and the most frequent of them where they are listed."""
    counts = manifest["counts"].get("templates", {})
    parameters = manifest["parameters"]
    missing = manifest["decided"].get("languages_without_rules", ()) if manifest["stage"] == "extract" else ()
    if missing and counts.get("definitions") and not any(_values(parameters, "expand_templates")):
        yield (
            f"  maskmill has no rules for the templates of {', '.join(missing)}; --expand_templates takes the dump's "
            "own definitions."
        )
    if not any(_values(parameters, "report_templates")):
        return
    path = files.join(output, unknown_templates.REPORT)
    rows = unknown_templates.read_table(files.read_bytes(path).decode())
    yield f"  {path} lists templates without a rule, by their calls in the text:"
    for row in rows[: unknown_templates.MOST_PRINTED]:
        yield f"    {int(row['calls']):>7,} {row['template']} ({int(row['kept']):,} kept their argument)"


def _report_lines(output: str, manifest: Mapping[str, Any], width: int) -> Iterator[str]:
    """What the report of a vocabulary found for it and for each one beside it."""
    if manifest["stage"] != "vocabulary":
        return
    report = json.loads(files.read_bytes(files.join(output, REPORT)))
    label = "held out" if report["text"]["kind"] == "eval" else "measured"
    for measured in report["vocabularies"][:_MOST_MEASURED]:
        phrases = [
            f"{measured['name']}: {measured['pieces_per_word']:.4g} pieces a word",
            f"{measured['bytes_per_token']:.3g} bytes a token",
            f"unknown words {data_warnings.percent(measured['unknown_words'])}",
        ]
        yield _in_columns(f"  {label:<{width}} ", phrases)
    yield f"  {files.join(output, REPORT_TABLE)} has more, and how it was measured."


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
    why = {"option": option, "dump": "the dump's language", "script": "by the text's beginning"}[entry["why"]]
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
        phrases.append("known marks and abbreviations")
    if folder is None and entry["text_bytes"] is not None:
        phrases.append(f"too little text to train Punkt ({entry['text_bytes']:,} bytes)")
    lines = entry.get("lines")
    if lines:
        phrases.append(f"median line {lines['median_characters']:,} characters")
        phrases.append(f"longest {lines['longest_characters']:,}")
    return phrases


def _picked_text(counts: Mapping[str, int], wanted: int) -> str:
    """A line where fewer eval examples were picked than wanted."""
    if not counts["available"]:
        return "  The eval set is empty, so there was no example to pick.\n"
    if counts["picked"] < wanted:
        return f"  There are fewer eval examples than num_examples_to_pick ({wanted:,}): all were taken.\n"
    return ""


def _described(step: str, counts: Mapping[str, int]) -> list[str]:
    """The counts of a step as phrases: `12 shards`."""
    if step in ("train", "eval"):
        names = [name for name in _SHOWN if name in counts]
    else:
        names = sorted(counts, key=lambda name: (name not in ("read", "documents"), name == "documents", name))
    phrases = [f"{counts[name]:,} {name.replace('_', ' ')}" for name in names]
    if "unused_tokens" in counts:
        phrases += shares(counts)
    return phrases


def _vocabulary_described(step: str, counts: Mapping[str, int]) -> list[str]:
    """The counts of a step of a vocabulary as phrases."""
    names = [name for name in _OF_VOCABULARY if name in counts]
    names += [name for name in _OF_VOCABULARY_IF_ANY if counts.get(name)]
    return [f"{counts[name]:,} {name.replace('_', ' ')}" for name in names]


def shares(counts: Mapping[str, int]) -> list[str]:
    """How much of a text is in examples, how many of its words are [UNK], and how much of the examples is padding.

    counts: as in ExampleCounts.
    """
    percent = data_warnings.percent
    phrases = [
        f"text used {percent(data_warnings.text_used(counts))}",
        f"unknown words {percent(data_warnings.words_unknown(counts))}",
    ]
    if "padding_tokens" in counts:
        padding = f"padding {percent(_padding(counts, 'padding_tokens'))}"
        if "unpacked_padding_tokens" in counts:
            padding += f" (unpacked {percent(_padding(counts, 'unpacked_padding_tokens'))})"
        phrases.append(padding)
    return phrases + [
        f"{counts[name]:,} {name.replace('_', ' ')}"
        for name in ("dropped_tokens", "split_sentences")
        if counts.get(name)
    ]


def _padding(counts: Mapping[str, int], name: str) -> float:
    """The share of padding in rows, 0 to 1: as they are, or unpacked."""
    places = counts["example_tokens"] + counts["special_tokens"] + counts[name]
    return counts[name] / max(1, places)


def _in_columns(head: str, phrases: list[str]) -> str:
    """Phrases behind a head, broken between them into lines of 80 columns at most."""
    joined = ", ".join(phrase.replace(" ", "\0") for phrase in phrases)
    lines = textwrap.fill(
        joined,
        _COLUMNS,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines.replace("\0", " ")
