"""What a reader asks first, answered in a sentence each."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from maskmill.reporting import shown
from maskmill.reporting.facts import Facts
from maskmill.reporting.made_from import day
from maskmill.reporting.shown import plural
from maskmill.storage import files

_SHOWN_DIGITS = 12
_MOST_REASONS = 4


class Answer(NamedTuple):
    """A question with its answer, and the id of the section that has more; empty: there is none."""

    question: str
    answer: str
    section: str = ""


def answers_of(facts: Facts) -> tuple[Answer, ...]:
    """The questions that this data set answers."""
    return tuple(Answer(*found) for ask in _QUESTIONS for found in ask(facts))


_Answers = Iterator[tuple[str, str, str]]


def _inputs(facts: Facts) -> _Answers:
    if not facts.inputs:
        return
    if facts.documents is not None and facts.documents.sources:
        named = []
        for source in facts.documents.sources:
            dump = f", the dump of {day(source.dump_date)}" if source.dump_date else ""
            named.append(f"{source.name}{dump}, {shown.percent(source.share)} of the text")
        yield "What was it made from?", f"{plural(len(named), 'source')}: {'; '.join(named)}.", "documents"
        return
    first, *others = facts.inputs
    parts = [files.base_name(first.path)]
    if facts.dump_date:
        parts.append(f"the dump of {facts.dump_date}")
    if first.bytes:
        parts.append(shown.size(first.bytes))
    parts.append(f"sha256 {first.sha256[:_SHOWN_DIGITS]}…")
    more = f"; and {plural(len(others), 'more file')}" if others else ""
    if len(others) == 1:
        more = f"; and {files.base_name(others[0].path)}"
    yield "Which dump?" if facts.dump_date else "What was it made from?", f"{', '.join(parts)}{more}.", "made"


def _language(facts: Facts) -> _Answers:
    if facts.documents is not None and facts.documents.languages:
        named = ", ".join(facts.documents.languages)
        yield "Which language?", f"{named}, by whose rules sentences are told.", "made"


def _lost(facts: Facts) -> _Answers:
    documents = facts.documents
    if documents is None or not documents.read:
        return
    answer = f"None: all {shown.count(documents.read)} that were read are in the text."
    if documents.lost:
        reasons = sorted(documents.set_aside, key=lambda reason: -reason.count)
        listed = [f"{reason.reason} ({shown.count(reason.count)})" for reason in reasons[:_MOST_REASONS]]
        if len(reasons) > _MOST_REASONS:
            listed.append(f"other reasons ({shown.count(sum(r.count for r in reasons[_MOST_REASONS:]))})")
        answer = (
            f"{shown.count(documents.lost)} of {shown.count(documents.read)} pages or documents that were read are not "
            f"in the text: {', '.join(listed)}."
        )
    yield "How many articles were lost, and why?", answer, "documents"


def _left(facts: Facts) -> _Answers:
    """Markup and repetitions, of the text that was read."""
    texts = facts.texts.values()
    characters = sum(text.characters for text in texts)
    if not characters:
        return
    marks = plural(sum(text.markup for text in texts), "mark")
    often = max((count for text in texts for count, _ in text.repeated), default=1)
    repeated = (
        f"a line of ten words and more is there {plural(often, 'time')}" if often > 1 else "no long line is there twice"
    )
    answer = f"{marks} of wikitext or HTML in {shown.count(characters)} characters; {repeated}."
    yield "Is there markup left, or the same text twice?", answer, "words"


def _masks(facts: Facts) -> _Answers:
    predicted = facts.figure("Examples, training", "predicted pieces")
    if predicted is not None:
        yield "How much is masked?", f"{predicted.text} of the pieces in the training examples.", "rows"


def _padding(facts: Facts) -> _Answers:
    shares = [(split, facts.figure(f"Examples, {split}", "padding")) for split in ("training", "eval")]
    known = [f"{figure.text} of the places in the {split} examples" for split, figure in shares if figure is not None]
    if known:
        yield "What share is padding?", f"{', '.join(known)}.", "rows"


def _eval(facts: Facts) -> _Answers:
    documents, section = facts.documents, "checks"
    line = None if facts.checked is None else facts.checked.line("eval_leak")
    if documents is not None and not documents.eval:
        answer = "There is no eval set."
    elif line is None or not line.looked_at:
        answer = f"This was not verified{f': {line.skipped}' if line is not None and line.skipped else ''}."
    elif line.mark == "passed":
        held = "" if documents is None else f" {plural(documents.eval, 'article')} held out,"
        part = f" ({line.skipped})" if line.skipped else ""
        answer = (
            f"Yes:{held} none of which is in a training shard{part}. Whole articles were compared, and passages of 13 "
            "words in a row."
        )
        section = "eval-leak"
    else:
        answer = f"No: eval articles were found in training shards ({plural(line.findings, 'finding')})."
    yield "Is the eval set clean?", answer, section


def _looks(facts: Facts) -> _Answers:
    if not facts.samples.examples:
        return
    example = facts.samples.examples[0]
    masked = sum(piece.label is not None for piece in example.pieces)
    label = f", labelled “{example.label}”" if example.label else ""
    answer = (
        f"The first has {len(example.pieces)} pieces in a row of {example.width}, {masked} of them to be predicted"
        f"{label}; it is shown below as words."
    )
    yield "What does an example look like?", answer, "first-example"


_QUESTIONS: tuple[Callable[[Facts], _Answers], ...] = (
    _inputs, _language, _lost, _left, _masks, _padding, _eval, _looks
)  # fmt: skip
