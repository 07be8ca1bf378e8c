"""What a finished data set makes one doubt: text that is cut off, words that the vocabulary lacks, no eval set."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipelines.terminal import console

if TYPE_CHECKING:
    from maskmill.tokenization.vocabulary import Vocabulary

# A text with a sentence a line is in examples whole, but for some thousandths (7 % at --dupe_factor 1, 29 % where
# max_seq_length is only 32); of one with a document a line, less than a tenth is.
_LITTLE_USED = 0.5
# One word in 1,000 to 10,000 is unknown where vocabulary and text fit, and one in 7 where an uncased vocabulary meets
# English with its capitals.
_MANY_UNKNOWN = 0.05
# The reference's 76 of 512 are 0.99 of what 15 % are.
_FEW_PREDICTIONS = 0.9
# Pieces a word, as tokenizers split text into words: 1.1 to 3 in languages with spaces, and many where a line without
# spaces, or any line, is one word to the tokenizer.
_LONG_WORDS = 5
# Of the calls of templates in the text 3 % have no rule in ltgwiki, 8 % in enwik8, and 98 % in ltgwiki under an English
# header.
_MANY_UNKNOWN_CALLS = 0.5
_FEWEST_UNKNOWN_CALLS = 200
# Of an uncased vocabulary no piece has a capital letter, of a cased one for English a third.
_MANY_CAPITALS = 0.05
_FEWEST_PAIRS = 20  # of fewer, all may have the same label by chance


def text_used(counts: Mapping[str, int]) -> float:
    """The share of a text's tokens that are in at least one example, 0 to 1; `counts` is as in ExampleCounts."""
    return 1 - counts["unused_tokens"] / max(1, counts["tokens"])


def words_unknown(counts: Mapping[str, int]) -> float:
    """The share of a text's words that became [UNK], 0 to 1; `counts` is as in ExampleCounts."""
    return counts["unknown_words"] / max(1, counts["words"])


def percent(share: float) -> str:
    """A share with three digits as `99.9 %`, or below 1 % with one, as `0.03 %`."""
    return f"{100 * share:.3g} %" if share >= 0.01 else f"{100 * share:.1g} %"


def warn(command: str, warnings: Sequence[str]) -> None:
    """Prints warnings to stderr, a line each."""
    for warning in warnings:
        console.tell(f"maskmill {command}: warning: {warning}", level="WARNING")


def warnings_of_vocabulary(vocabulary: "Vocabulary", *, do_lower_case: bool) -> list[str]:
    """What a vocabulary says, before anything is done, that its user should be warned of, a sentence each.

    do_lower_case: as the option says; it has no effect on the vocabulary of a tokenizer.json.
    """
    if not (do_lower_case and vocabulary.marks_words) or vocabulary.capital_share < _MANY_CAPITALS:
        return []
    return [
        f"{percent(vocabulary.capital_share)} of the pieces of {vocabulary.path} have capital letters, which are never "
        "used when the text is lower-cased; give --do_lower_case False for a cased vocabulary."
    ]


def warnings_of(manifest: Mapping[str, Any]) -> list[str]:
    """What the manifest of a stage says that its user should be warned of, a sentence each."""
    if manifest["stage"] == "extract":
        return [
            *_equal_inputs(manifest.get("inputs", ())),
            *_doubtful_text(manifest),
            *_doubtful_sentences(manifest),
            *_without_eval_set(manifest),
        ]
    if manifest["stage"] == "examples":
        parameters = manifest["parameters"]
        return [
            *_equal_labels(manifest),
            *_few_predictions(parameters),
            *_long_words(manifest),
            *warnings_of_examples(
                {next(iter(shard["inputs"])): shard for shard in manifest["shards"]},
                max_seq_length=parameters["max_seq_length"],
                do_lower_case=parameters["do_lower_case"],
            ),
        ]
    if manifest["stage"] == "vocabulary":
        return [*_small_vocabulary(manifest), *_rare_words_left_out(manifest)]
    return []


def _equal_inputs(inputs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Whether inputs have the content of others; large ones and dumps are refused."""
    first: dict[str, str] = {}
    equal = [
        (entry["path"], before)
        for entry in inputs
        if entry["bytes"] and (before := first.setdefault(entry["sha256"], entry["path"])) != entry["path"]
    ]
    if equal:
        path, before = equal[0]
        yield (
            f"{len(equal):,} input{'s have' if len(equal) > 1 else ' has'} the content of another, so their text is "
            f"there more than once ({path} has that of {before}); leave them out, or drop what repeats with "
            "--drop_duplicates."
        )


def _small_vocabulary(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Whether the text had too few pairs for the size that was asked for."""
    pieces, parameters = manifest["counts"]["vocabulary"]["pieces"], manifest["parameters"]
    size = manifest["decided"].get("size", parameters["size"])
    if pieces < size:
        yield (
            f"the vocabulary has {pieces:,} pieces and not {size:,}, because no other pair occurs "
            f"{parameters['min_frequency']:,} times in this text; take more text, or a smaller --size."
        )


def _rare_words_left_out(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Whether the text had more distinct words than a vocabulary is learnt from."""
    counts = manifest["counts"]["vocabulary"]
    if counts["left_out_distinct_words"]:
        yield (
            f"the vocabulary was learnt from the {counts['distinct_words']:,} distinct words that occur "
            f"{counts['rarest_words']:,} times or more; {counts['left_out_distinct_words']:,} rarer ones were left out."
        )


def _equal_labels(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Whether the labels of all pairs are equal, so that a model learns nothing from them."""
    for kind, counts in manifest["counts"].items():
        pairs = counts.get("sequences", counts["examples"])
        if pairs < _FEWEST_PAIRS or counts.get("random_next", 1) not in (0, pairs):
            continue
        if not counts["random_next"]:
            yield f"no {kind} example has a random next sentence; take text of several documents to a shard."
            continue
        why = "its lines are longer than a pair has room for"
        remedy = "put one sentence on each line"
        if counts["sentences"] == counts["documents"]:
            why = "each sentence is a document of its own"
            remedy = "let documents have several sentences (a blank line ends a document)"
        yield (
            f"the second part of every {kind} example is a random sentence, because {why}, so next_sentence_labels "
            f"are all 1; {remedy}, or give an objective without pairs (--objective mlm)."
        )


def _few_predictions(parameters: Mapping[str, Any]) -> Iterator[str]:
    """Whether max_predictions_per_seq leaves much less masked than masked_lm_prob says, as where only a length grew."""
    length, most, share = (parameters[name] for name in ("max_seq_length", "max_predictions_per_seq", "masked_lm_prob"))
    if most < _FEW_PREDICTIONS * length * share:
        yield (
            f"max_predictions_per_seq {most} lets {percent(most / length)} of {length} pieces be masked, and "
            f"masked_lm_prob is {share:g}; give --max_predictions_per_seq {round(length * share)}."
        )


def _long_words(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Whether masks of words are wanted of a tokenizer that hardly splits text into words."""
    counts, unit = manifest["counts"].get("train", {}), manifest["decided"]["mask_unit"]
    length = counts.get("tokens", 0) / max(1, counts.get("words", 0))
    if unit != "piece" and length > _LONG_WORDS:
        yield (
            f"a word has {length:.3g} pieces on average, because the tokenizer takes text without spaces for one word, "
            f"so --mask_unit {unit} masks long stretches or, where none fits, nothing; give --mask_unit piece."
        )


def warnings_of_examples(
    texts: Mapping[str, Mapping[str, int]], *, max_seq_length: int, do_lower_case: bool
) -> list[str]:
    """What the counts of examples say that a user should be warned of, a sentence each.

    texts: for the path of each text, the fields of ExampleCounts.
    """
    return [*_little_used(texts, max_seq_length), *_many_unknown(texts, do_lower_case)]


def _little_used(texts: Mapping[str, Mapping[str, int]], max_seq_length: int) -> list[str]:
    cut = {name: counts for name, counts in texts.items() if text_used(counts) < _LITTLE_USED}
    if not cut:
        return []
    worst, counts = min(cut.items(), key=lambda text: text_used(text[1]))
    if counts.get("dropped_tokens", 0) > counts["unused_tokens"] / 2:
        return [
            f"only {percent(text_used(counts))} of the text of {worst}{_others(cut)} is in examples, because "
            f"--block_remainder drop leaves out what does not fill a row of {max_seq_length}; give --block_remainder "
            "carry, or shorter rows."
        ]
    average = counts["tokens"] / max(1, counts["sentences"])
    return [
        f"only {percent(text_used(counts))} of the text of {worst}{_others(cut)} is in examples, "
        f"because its lines have {average:,.0f} tokens on average and max_seq_length is {max_seq_length}; put one "
        "sentence on each line (`maskmill extract` does so for dumps, JSON lines, Parquet and text)."
    ]


def _many_unknown(texts: Mapping[str, Mapping[str, int]], do_lower_case: bool) -> list[str]:
    many = {name: counts for name, counts in texts.items() if words_unknown(counts) > _MANY_UNKNOWN}
    if not many:
        return []
    worst, counts = max(many.items(), key=lambda text: words_unknown(text[1]))
    remedy = "check that the vocabulary is for the text's language"
    if not do_lower_case:
        remedy += ", and give --do_lower_case True if it is for lower-cased (uncased) text"
    return [
        f"{percent(words_unknown(counts))} of the words of {worst}{_others(many)} are not in the "
        f"vocabulary and became [UNK]; {remedy}."
    ]


def _others(texts: Mapping[str, object]) -> str:
    if len(texts) < 2:
        return ""
    return f" (likewise {len(texts) - 1:,} other shard{'s' if len(texts) > 2 else ''})"


def _doubtful_text(manifest: Mapping[str, Any]) -> list[str]:
    """What was lost of dumps of other projects; or dumps whose templates make one doubt their header's language."""
    decided, counts = manifest["decided"], manifest["counts"]
    total = counts.get("extract", {}) | counts.get("templates", {})
    if projects := decided.get("other_projects"):
        splits = [counts[name] for name in ("train", "eval") if name in counts]
        documents, size = (sum(split.get(name, 0) for split in splits) for name in ("documents", "bytes"))
        known, unknown = total.get("known_calls", 0), total.get("unknown_calls", 0)
        return [
            f"of {', '.join(projects)}, {total.get('empty', 0):,} of {total['read']:,} pages gave no text, and "
            f"{documents:,} gave {size / max(1, documents):,.0f} bytes each; of the {known + unknown:,} calls of "
            f"templates in the text {unknown:,} had no rule. maskmill's rules are those of Wikipedia: tags and "
            "templates that hold text of another project are dropped like Wikipedia's boxes, and not counted."
        ]
    if decided.get("languages_without_rules"):
        return []
    of_sources = {name: source["extract"] for name, source in decided.get("sources", {}).items()} or {"": total}
    languages = {entry.get("source", ""): entry["name"] for entry in decided.get("sentences", ())}
    return [
        f"{percent(_calls_unknown(counts))} of the calls of templates in the text{' of ' + name if name else ''} have "
        f"no rule for {languages.get(name, 'its language')}; look at the text: if it is in another language, the "
        "header of the dump (xml:lang, <base>) names the wrong one; if not, --report_templates lists what has no rule."
        for name, counts in of_sources.items()
        if counts.get("unknown_calls", 0) >= _FEWEST_UNKNOWN_CALLS and _calls_unknown(counts) > _MANY_UNKNOWN_CALLS
    ]


def _calls_unknown(counts: Mapping[str, int]) -> float:
    """The share of the calls of templates in a text that no rule describes, 0 to 1."""
    unknown = counts.get("unknown_calls", 0)
    return unknown / max(1, unknown + counts.get("known_calls", 0))


def _doubtful_sentences(manifest: Mapping[str, Any]) -> list[str]:
    """What makes one doubt that sentences were split by the rules of the right language."""
    return [
        _doubt_text(entry, doubt) for entry in manifest["decided"].get("sentences", ()) for doubt in entry["doubts"]
    ]


def _doubt_text(entry: Mapping[str, Any], doubt: str) -> str:
    """A sentence about a doubt; `entry` is of the manifest's decided sentences."""
    script = entry["script"]
    if doubt == "cut_lines":
        return cut_lines(entry["lines"])
    if doubt == "unknown_script":
        return (
            f"maskmill does not know the marks that end sentences in {script} letters; look at the text, and put one "
            "sentence on each line of the input if it is wrong."
        )
    language = "the code of the text's language"
    remedy = (
        f"leave --language out, or give it {language}" if entry["why"] == "option" else f"give --language {language}"
    )
    if doubt == "unsure_language":
        return (
            f"the language of the text is not sure (its words are most like {entry['likely']}, "
            f"{entry['sure']:.0%}), so it was split by the rules for {entry['name']}; {remedy}."
        )
    if doubt == "part_other_script":
        return (
            f"a large part of the letters of the text that was split as {entry['name']} are {entry['part']}; give each "
            "language an input of its own, or make a record of each document, whose language is then found by itself."
        )
    if doubt == "other_script":
        return f"sentences were split as {entry['name']}, but most letters of the text are {script}; {remedy}."
    return (
        f"half of the lines of the text that was split as {entry['name']} have "
        f"{entry['lines']['median_characters']:,} characters or more, so many hold several sentences; {remedy}, or a "
        "folder of Punkt parameters."
    )


def cut_lines(lines: Mapping[str, int]) -> str:
    """A sentence about lines that are cut at a width, counted as by text_profile.add_up."""
    return (
        f"{percent(lines['begin_small'] / lines['lines'])} of the lines of the text begin with a small letter: its "
        "paragraphs are cut into lines of some width, and each line counts as a sentence; join the lines of a "
        "paragraph first."
    )


def _without_eval_set(manifest: Mapping[str, Any]) -> Iterator[str]:
    counts = manifest["counts"]
    share = manifest["parameters"]["eval_fraction"] or manifest["decided"].get("eval_fraction")
    if share and not counts["eval"]["documents"]:
        yield (
            f"the eval set is empty, because its share is {share} and there are only {counts['train']['documents']:,} "
            "articles; give --num_eval_articles the number to hold out, or 0 for no eval set."
        )
