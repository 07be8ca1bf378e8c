"""Warnings about a finished data set, from its manifest: each is a condition and a sentence."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pipelines.terminal import console

if TYPE_CHECKING:
    from maskmill.tokenization.vocabulary import Vocabulary

# Examples use the whole text, but for some thousandths, if it has a sentence a line (93 % at --dupe_factor 1, 71 % if
# max_seq_length is only 32); with a document a line, they use less than a tenth.
_LITTLE_USED = 0.5
# One word in 1,000 to 10,000 is unknown if vocabulary and text match, and one in 7 if an uncased vocabulary is used for
# English with its capitals.
_MANY_UNKNOWN = 0.05
# The reference's 76 of 512 tokens are 0.99 of 15 %.
_FEW_PREDICTIONS = 0.9
# Tokens a word, as tokenizers split text into words: 1.1 to 3 in languages with spaces, and many if the tokenizer takes
# a line without spaces, or any line, for one word.
_LONG_WORDS = 5
# Of the calls of templates in the text, 3 % have no rule in ltgwiki, 8 % in enwik8, and 98 % in ltgwiki under an
# English header.
_MANY_UNKNOWN_CALLS = 0.5
_FEWEST_UNKNOWN_CALLS = 200
# The share of tokens with a capital letter is 0 in an uncased vocabulary, and a third in a cased one for English.
_MANY_CAPITALS = 0.05
_FEWEST_PAIRS = 20  # of fewer, all may have the same label by chance

# Doubts about how sentences were split, by their names in the manifest's decided sentences.
_OF_SENTENCES = {
    "unknown_script": "maskmill does not know the marks that end sentences in {script} letters; look at the text, and "
    "put one sentence on each line of the input if it is wrong.",
    "unsure_language": "the language of the text is not sure (its words are most like {likely}, {sure:.0%}), so it "
    "was split by the rules for {name}; {remedy}.",
    "part_other_script": "a large part of the letters of the text that was split as {name} are {part}; give each "
    "language an input of its own, or make a record of each document, whose language is then found by itself.",
    "other_script": "sentences were split as {name}, but most letters of the text are {script}; {remedy}.",
    "long_lines": "half of the lines of the text that was split as {name} have {lines[median_characters]:,} characters "
    "or more, so many hold several sentences; {remedy}, or a folder of Punkt parameters.",
}


def text_used(counts: Mapping[str, int]) -> float:
    """Return the share of a text's tokens that are in at least one example, 0 to 1; `counts` is as in ExampleCounts."""
    return 1 - counts["unused_tokens"] / max(1, counts["tokens"])


def words_unknown(counts: Mapping[str, int]) -> float:
    """Return the share of a text's words that became [UNK], 0 to 1; `counts` is as in ExampleCounts."""
    return counts["unknown_words"] / max(1, counts["words"])


def percent(share: float) -> str:
    """Return a share with three digits, such as `99.9 %`; below 1 % with one, such as `0.03 %`."""
    return f"{100 * share:.3g} %" if share >= 0.01 else f"{100 * share:.1g} %"


def warn(command: str, warnings: Iterable[str]) -> None:
    """Print warnings to stderr, a line each."""
    for warning in warnings:
        console.tell(f"maskmill {command}: warning: {warning}", level="WARNING")


def warnings_of(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield the warnings about a stage's data, a sentence each."""
    stages = {"extract": _of_extract, "vocabulary": _of_vocabulary, "examples": _of_examples}
    if (stage := manifest["stage"]) in stages:
        yield from stages[stage](manifest)


def _of_extract(manifest: Mapping[str, Any]) -> Iterator[str]:
    counts, decided = manifest["counts"], manifest["decided"]
    first: dict[str, str] = {}  # path by content; equal dumps and equal large inputs were refused before
    equal = [
        (entry["path"], before)
        for entry in manifest.get("inputs", ())
        if entry["bytes"] and (before := first.setdefault(entry["sha256"], entry["path"])) != entry["path"]
    ]
    if equal:
        yield (
            f"{len(equal):,} input{'s have' if len(equal) > 1 else ' has'} the content of another, so their text is "
            f"there more than once ({equal[0][0]} has that of {equal[0][1]}); leave them out, or drop what repeats "
            "with --drop_duplicates."
        )
    languages = {entry.get("source", ""): entry["name"] for entry in decided.get("sentences", ())}
    has_rules = not (decided.get("other_projects") or decided.get("languages_without_rules"))
    total = counts.get("extract", {}) | counts.get("templates", {})
    of_sources = {name: source["extract"] for name, source in decided.get("sources", {}).items()} or {"": total}
    for name, calls in of_sources.items():
        unknown = calls.get("unknown_calls", 0)
        share = unknown / max(1, unknown + calls.get("known_calls", 0))
        if has_rules and unknown >= _FEWEST_UNKNOWN_CALLS and share > _MANY_UNKNOWN_CALLS:
            yield (
                f"{percent(share)} of the calls of templates in the text{' of ' + name if name else ''} have no rule "
                f"for {languages.get(name, 'its language')}; look at the text: if it is in another language, the "
                "header of the dump (xml:lang, <base>) names the wrong one; if not, --report_templates lists what has "
                "no rule."
            )
    for entry in decided.get("sentences", ()):
        remedy = "give --language the code of the text's language"
        if entry["why"] == "option":
            remedy = "leave --language out, or give it the code of the text's language"
        for doubt in entry["doubts"]:
            if doubt == "cut_lines":
                yield cut_lines(entry["lines"])
            else:
                yield _OF_SENTENCES[doubt].format(**entry, remedy=remedy)
    for name, kind in decided.get("columns", {}).items():
        if kind == "null":
            yield f'no document has the column "{name}" of --metadata_columns; look at the names of the columns.'
    share = manifest["parameters"]["eval_fraction"] or decided.get("eval_fraction")
    if share and not counts["eval"]["documents"]:
        yield (
            f"the eval set is empty, because its share is {share} and there are only {counts['train']['documents']:,} "
            "articles; give --num_eval_articles the number to hold out, or 0 for no eval set."
        )


def cut_lines(lines: Mapping[str, int]) -> str:
    """Return a sentence about lines that are cut at a width, from the counts of text_profile.add_up."""
    return (
        f"{percent(lines['begin_small'] / lines['lines'])} of the lines of the text begin with a small letter: its "
        "paragraphs are cut into lines of some width, and each line counts as a sentence; join the lines of a "
        "paragraph first."
    )


def _of_vocabulary(manifest: Mapping[str, Any]) -> Iterator[str]:
    counts, parameters = manifest["counts"]["vocabulary"], manifest["parameters"]
    size = manifest["decided"].get("size", parameters["size"])
    if counts["pieces"] < size:
        yield (
            f"the vocabulary has {counts['pieces']:,} pieces and not {size:,}, because no other pair occurs "
            f"{parameters['min_frequency']:,} times in this text; take more text, or a smaller --size."
        )
    if counts["left_out_distinct_words"]:
        yield (
            f"the vocabulary was learnt from the {counts['distinct_words']:,} distinct words that occur "
            f"{counts['rarest_words']:,} times or more; {counts['left_out_distinct_words']:,} rarer ones were left out."
        )


def warnings_of_vocabulary(vocabulary: "Vocabulary", *, do_lower_case: bool) -> Iterator[str]:
    """Yield the warnings about the vocabulary of examples, before the run.

    do_lower_case: the option's value; it has no effect on the vocabulary of a tokenizer.json.
    """
    if do_lower_case and vocabulary.marks_words and vocabulary.capital_share >= _MANY_CAPITALS:
        yield (
            f"{percent(vocabulary.capital_share)} of the pieces of {vocabulary.path} have capital letters, which are "
            "never used when the text is lower-cased; give --do_lower_case False for a cased vocabulary."
        )


def _of_examples(manifest: Mapping[str, Any]) -> Iterator[str]:
    parameters = manifest["parameters"]
    for kind, counts in manifest["counts"].items():
        pairs = counts.get("sequences", counts["examples"])
        labels = counts.get("random_next", 1)
        if pairs >= _FEWEST_PAIRS and not labels:
            yield f"no {kind} example has a random next sentence; take text of several documents to a shard."
        if pairs >= _FEWEST_PAIRS and labels == pairs:
            why, remedy = "its lines are longer than a pair has room for", "put one sentence on each line"
            if counts["sentences"] == counts["documents"]:
                why = "each sentence is a document of its own"
                remedy = "let documents have several sentences (a blank line ends a document)"
            yield (
                f"the second part of every {kind} example is a random sentence, because {why}, so "
                f"next_sentence_labels are all 1; {remedy}, or give an objective without pairs (--objective mlm)."
            )
    length, most, share = (parameters[name] for name in ("max_seq_length", "max_predictions_per_seq", "masked_lm_prob"))
    if most < _FEW_PREDICTIONS * length * share:
        yield (
            f"max_predictions_per_seq {most} lets {percent(most / length)} of {length} pieces be masked, and "
            f"masked_lm_prob is {share:g}; give --max_predictions_per_seq {round(length * share)}."
        )
    train, unit = manifest["counts"].get("train", {}), manifest["decided"]["mask_unit"]
    pieces = train.get("tokens", 0) / max(1, train.get("words", 0))
    if unit != "piece" and pieces > _LONG_WORDS:
        yield (
            f"a word has {pieces:.3g} pieces on average, because the tokenizer takes text without spaces for one word, "
            f"so --mask_unit {unit} masks long stretches or, where none fits, nothing; give --mask_unit piece."
        )
    texts = {next(iter(shard["inputs"])): shard for shard in manifest["shards"]}
    yield from warnings_of_texts(texts, max_seq_length=length, do_lower_case=parameters["do_lower_case"])


def warnings_of_texts(
    texts: Mapping[str, Mapping[str, int]], *, max_seq_length: int, do_lower_case: bool
) -> Iterator[str]:
    """Yield the warnings about the texts of examples, a sentence each.

    texts: the fields of ExampleCounts for the path of each text.
    """
    cut = {name: counts for name, counts in texts.items() if text_used(counts) < _LITTLE_USED}
    if cut:
        worst, counts = min(cut.items(), key=lambda text: text_used(text[1]))
        average = counts["tokens"] / max(1, counts["sentences"])
        why = f"its lines have {average:,.0f} tokens on average and max_seq_length is {max_seq_length}; put one "
        why += "sentence on each line (`maskmill extract` does so for dumps, JSON lines, Parquet and text)"
        if counts.get("dropped_tokens", 0) > counts["unused_tokens"] / 2:
            why = f"--block_remainder drop leaves out what does not fill a row of {max_seq_length}; give "
            why += "--block_remainder carry, or shorter rows"
        yield f"only {percent(text_used(counts))} of the text of {worst}{_others(cut)} is in examples, because {why}."
    many = {name: counts for name, counts in texts.items() if words_unknown(counts) > _MANY_UNKNOWN}
    if many:
        worst, counts = max(many.items(), key=lambda text: words_unknown(text[1]))
        remedy = "" if do_lower_case else ", and give --do_lower_case True if it is for lower-cased (uncased) text"
        yield (
            f"{percent(words_unknown(counts))} of the words of {worst}{_others(many)} are not in the vocabulary and "
            f"became [UNK]; check that the vocabulary is for the text's language{remedy}."
        )


def _others(texts: Mapping[str, object]) -> str:
    if len(texts) < 2:
        return ""
    return f" (likewise {len(texts) - 1:,} other shard{'s' if len(texts) > 2 else ''})"
