"""The summary of a command: the input, the output, and notes for the user.

It is made from the stage's manifest, and printed as lines of 80 columns, on a terminal in colours.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from maskmill.extraction import unknown_templates
from maskmill.records.file_names import REPORT_TABLE
from maskmill.storage import files
from maskmill.storage.outcomes import Outcome, Result
from pipelines.terminal import console, data_warnings
from pipelines.terminal.data_warnings import percent

_COLUMNS = 80
_MOST_LINES = 10  # for ways of splitting sentences, and for reasons of repeated work
_MEGABYTE = 1 << 20
_LITTLE_PACKED = 0.5  # so much of the padding is left that a user should know a better way to pack

# The order in which a summary shows the steps of a manifest, and their counts. For train, eval and a vocabulary it
# shows
# only these counts; for other steps all counts, those of input and output first.
_STEPS = ("templates", "extract", "holes", "paragraphs", "clean", "train", "eval")
_OF_TEXT = ("shards", "documents", "sentences", "tokens", "sequences", "examples", "available", "picked", "bytes")
_OF_VOCABULARY = ("shards", "pieces", "alphabet", "merges", "distinct_words", "words", "bytes")
# The name of a kind's work items for users.
_WORK_ITEMS = {
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


def report(output: str, result: Result | None, say: console.Say = console.say) -> None:
    """Say the counts of a stage, and warn about its data.

    output: the stage's directory. result: the stage's result; None if the job was only described. say: takes a line.
    """
    if result is None:
        say(f"{output}: nothing was run, the job was only described.")
        return
    for line in lines_of(output, result):
        say(line)
    data_warnings.warn(result.made["stage"], data_warnings.warnings_of(result.made))


def lines_of(output: str, result: Result) -> Iterator[str]:
    """Yield the heading, a row for each step and each decision, and the notes below them."""
    manifest = result.made
    counts, decided = manifest["counts"], manifest.get("decided", {})
    rows = [
        (step, _figures(step, counts[step]))
        for step in sorted(counts, key=lambda name: _STEPS.index(name) if name in _STEPS else len(_STEPS))
    ]
    rows += [("source", _source_described(name, mixed)) for name, mixed in decided.get("sources", {}).items()]
    choices = decided.get("sentences", ())[:_MOST_LINES]
    rows += [("sentences", _sentences_described(choice, manifest["parameters"])) for choice in choices]
    width = max(8, *(len(label) for label, _ in rows if label != "source"))
    yield f"{manifest['stage']}: {output}"
    for label, phrases in rows:
        # Lines break between phrases, not in them.
        text = ", ".join(phrase.replace(" ", "\0") for phrase in phrases)
        head = f"  {label:<{width}} "
        indent = " " * len(head)
        how: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
        for line in textwrap.wrap(text, _COLUMNS, initial_indent=head, subsequent_indent=indent, **how):
            yield line.replace("\0", " ")
    yield from (f"  {note}" for note in _notes(output, manifest))
    yield from (f"  {line}" for line in _outcome_lines(result.outcome))


def _figures(step: str, counts: Mapping[str, int]) -> list[str]:
    """Return the counts of a step."""
    if step in ("train", "eval"):
        names: Sequence[str] = _OF_TEXT
    elif step in ("text", "vocabulary"):
        names = _OF_VOCABULARY
    else:
        names = sorted(counts, key=lambda name: (name not in ("read", "documents"), name == "documents", name))
    figures = [_count(name, counts) for name in names if name in counts]
    return [*figures, *shares(counts)] if "unused_tokens" in counts else figures


def _count(name: str, counts: Mapping[str, int]) -> str:
    return f"{counts[name]:,} {name.replace('_', ' ')}"


def shares(counts: Mapping[str, int]) -> list[str]:
    """Return the share of a text in examples, the share of its words that are [UNK], and the share of padding.

    counts: as in ExampleCounts.
    """
    found = [
        f"text used {percent(data_warnings.text_used(counts))}",
        f"unknown words {percent(data_warnings.words_unknown(counts))}",
    ]
    full = counts.get("example_tokens", 0) + counts.get("special_tokens", 0)
    padding, unpacked = (
        percent(counts[name] / max(1, full + counts[name])) if name in counts else ""
        for name in ("padding_tokens", "unpacked_padding_tokens")
    )
    if padding:
        found.append(f"padding {padding} (unpacked {unpacked})" if unpacked else f"padding {padding}")
    return [*found, *(_count(name, counts) for name in ("dropped_tokens", "split_sentences") if counts.get(name))]


def _source_described(name: str, mixed: Mapping[str, Any]) -> list[str]:
    """Return phrases about a source of a mix; `mixed` is its entry among the manifest's decided sources."""
    figures = [_count(key, mixed) for key in ("read", "documents", "held_out", "used", "bytes")]
    share = f"{percent(mixed['share'])} of the mix"
    return [f"{name}: {figures[0]}", *figures[1:], f"{mixed['epochs']:.4g} epochs", share]


def _sentences_described(entry: Mapping[str, Any], parameters: Mapping[str, Any]) -> list[str]:
    """Return phrases about how and why sentences were split as they were; both arguments are from the manifest."""
    source, folder, lines = entry.get("source"), entry["parameters"], entry.get("lines")
    language = parameters[f"sources.{source}.language" if source else "language"]
    option = f"--compat {parameters['compat']}" if language == "auto" else "--language"
    why = {"option": option, "dump": "the dump's language", "script": "by the text's beginning"}.get(
        entry["why"], f"by its words, {entry.get('sure') or 0:.0%} sure"
    )
    phrases = [f"{f'{source}: ' if source else ''}{entry['name']} ({why})"]
    if folder is not None:
        trained = f" trained on {(entry['text_bytes'] or 0) / _MEGABYTE:.3g} MB of this corpus"
        phrases += [f"Punkt{trained if folder['is_trained_here'] else ''}", f"its parameters in {folder['path']}"]
        phrases.append(f"{folder['abbreviations']:,} abbreviations beside the known ones")
    else:
        known = "known marks and abbreviations" if entry["stops"] else "known abbreviations"
        phrases += [f"Punkt's {entry['punkt'].capitalize()} parameters"] if entry["punkt"] is not None else []
        phrases += [known] if entry["words"] else []
        if entry["text_bytes"] is not None:
            phrases.append(f"too little text to train Punkt ({entry['text_bytes']:,} bytes)")
    records = [f"{n:,} {name}" for name, n in entry.get("records", {}).items() if name not in ("", entry["name"])]
    phrases += [f"of its records {', '.join(records)}"] if records else []
    if lines:
        phrases.append(f"median line {lines['median_characters']:,} characters")
        phrases.append(f"longest {lines['longest_characters']:,}")
    return phrases


def _notes(output: str, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield notes about a stage for the user, a line each."""
    counts, parameters, stage = manifest["counts"], manifest["parameters"], manifest["stage"]
    of_templates, extracted, picked = (counts.get(step, {}) for step in ("templates", "extract", "eval"))
    if stage == "extract" and of_templates.get("definitions") and not _any(parameters, "expand_templates"):
        remedy = "--expand_templates takes the dump's own definitions"
        if missing := manifest["decided"].get("languages_without_rules"):
            yield f"maskmill has no rules for the templates of {', '.join(missing)}; {remedy}."
        elif unknown := of_templates.get("unknown_calls"):
            calls = f"{unknown:,} call{'' if unknown == 1 else 's'}"
            yield f"no rule knows {calls} of templates in the text; {remedy}, which reads the dump twice."
    if _any(parameters, "report_templates"):
        yield f"{files.join(output, unknown_templates.REPORT)} lists templates without a rule."
    if stage == "vocabulary":
        yield f"{files.join(output, REPORT_TABLE)} says how well it cuts words."
    if stage == "eval" and not picked["available"]:
        yield "The eval set is empty, so there was no example to pick."
    elif stage == "eval" and picked["picked"] < parameters["num_examples_to_pick"]:
        asked = parameters["num_examples_to_pick"]
        yield f"There are fewer eval examples than num_examples_to_pick ({asked:,}): all were taken."
    if rejected := sum(step.get("rejected", 0) for step in counts.values()):
        yield f"{rejected:,} documents could not be processed; {output}/rejected.jsonl lists each with its reason."
    if cut := extracted.get("cut_off_files"):
        inputs, pages = f"{cut:,} input{' is' if cut == 1 else 's are'} cut off", extracted.get("cut_off_pages", 0)
        yield f"{inputs}: what stands before the cut was taken; pages given up: {pages:,}."
    padding, unpacked = (
        sum(step.get(name, 0) for step in counts.values()) for name in ("padding_tokens", "unpacked_padding_tokens")
    )
    if unpacked and padding >= _LITTLE_PACKED * unpacked:
        if parameters["full_sentences"]:
            yield "--pack took out little padding: whole sentences leave gaps that none fills;"
            yield "with --nofull_sentences a sentence goes on in the next row, and rows are full."
        elif parameters["cross_documents"]:
            yield "--pack took out little padding: sequences across documents are full already."


def _any(parameters: Mapping[str, Any], name: str) -> bool:
    """Return whether an option of extract is set: for all, or in a mix for a source."""
    return any(value for key, value in parameters.items() if key == name or key.endswith(f".{name}"))


def _outcome_lines(outcome: Outcome | None) -> Iterator[str]:
    """Yield the work items that the run reused, made, and made again with the reasons; nothing after a first run."""
    if outcome is None:
        return
    for label, numbers in (("reused", outcome.reused), ("made", outcome.made)):
        items = [
            f"{n:,} {name}{'' if n == 1 else 's'}" for kind, name in _WORK_ITEMS.items() if (n := numbers.get(kind))
        ]
        yield f"{label:<10} {', '.join(items) or 'nothing'}"
    changed = [f"{path}: it has other content than in the build before" for path in outcome.changed_inputs]
    for label, reasons in (("changed", changed), ("made again", outcome.remade)):
        for reason in reasons[:_MOST_LINES]:
            yield f"{label:<10} {reason}"
        if len(reasons) > _MOST_LINES:
            yield f"{label:<10} {len(reasons) - _MOST_LINES:,} more"
