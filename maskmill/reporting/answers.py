"""What a reader asks first, answered in a sentence each."""

import dataclasses
from collections.abc import Iterator

from maskmill.reporting import shown
from maskmill.reporting.documents import MixedSource
from maskmill.reporting.facts import Facts
from maskmill.reporting.lineage import day, plural
from maskmill.storage import files

_SHOWN_DIGITS = 12
_MOST_REASONS = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """A question with its answer, and the id of the section that has more; empty: there is none."""

    question: str
    answer: str
    section: str = ""


def answers_of(facts: Facts) -> tuple[Answer, ...]:
    """The questions that this data set answers."""
    return tuple(
        answer
        for answers in (
            _inputs(facts),
            _language(facts),
            _lost(facts),
            _left(facts),
            _masks(facts),
            _padding(facts),
            _eval(facts),
            _looks(facts),
        )
        for answer in answers
    )


def _inputs(facts: Facts) -> Iterator[Answer]:
    if not facts.inputs:
        return
    if facts.documents is not None and facts.documents.sources:
        named = [_source(source) for source in facts.documents.sources]
        answer = f"{plural(len(named), 'source')}: {'; '.join(named)}."
        yield Answer(question="What was it made from?", answer=answer, section="documents")
        return
    first = facts.inputs[0]
    parts = [files.base_name(first.path)]
    if facts.dump_date:
        parts.append(f"the dump of {facts.dump_date}")
    if first.bytes:
        parts.append(shown.size(first.bytes))
    parts.append(f"sha256 {first.sha256[:_SHOWN_DIGITS]}…")
    others = facts.inputs[1:]
    more = f"; and {plural(len(others), 'more file')}" if others else ""
    if len(others) == 1:
        more = f"; and {files.base_name(others[0].path)}"
    question = "Which dump?" if facts.dump_date else "What was it made from?"
    yield Answer(question=question, answer=f"{', '.join(parts)}{more}.", section="made")


def _source(source: MixedSource) -> str:
    dump = f", the dump of {day(source.dump_date)}" if source.dump_date else ""
    return f"{source.name}{dump}, {shown.percent(source.share)} of the text"


def _language(facts: Facts) -> Iterator[Answer]:
    if facts.documents is not None and facts.documents.languages:
        named = ", ".join(facts.documents.languages)
        yield Answer(question="Which language?", answer=f"{named}, by whose rules sentences are told.", section="made")


def _left(facts: Facts) -> Iterator[Answer]:
    """Markup and repetitions, of the text that was read."""
    texts = facts.texts.values()
    characters = sum(text.characters for text in texts)
    if not characters:
        return
    marks = sum(text.markup for text in texts)
    often = max((count for text in texts for count, _ in text.repeated), default=1)
    repeated = (
        f"a line of ten words and more is there {plural(often, 'time')}" if often > 1 else "no long line is there twice"
    )
    yield Answer(
        question="Is there markup left, or the same text twice?",
        answer=f"{plural(marks, 'mark')} of wikitext or HTML in {shown.count(characters)} characters; {repeated}.",
        section="words",
    )


def _masks(facts: Facts) -> Iterator[Answer]:
    predicted = facts.figure("Examples, training", "predicted pieces")
    if predicted is not None:
        answer = f"{predicted.text} of the pieces in the training examples."
        yield Answer(question="How much is masked?", answer=answer, section="rows")


def _lost(facts: Facts) -> Iterator[Answer]:
    documents = facts.documents
    if documents is None or not documents.read:
        return
    if not documents.lost:
        yield Answer(
            question="How many articles were lost, and why?",
            answer=f"None: all {shown.count(documents.read)} that were read are in the text.",
            section="documents",
        )
        return
    reasons = sorted(documents.set_aside, key=lambda reason: -reason.count)
    listed = [f"{reason.reason} ({shown.count(reason.count)})" for reason in reasons[:_MOST_REASONS]]
    if len(reasons) > _MOST_REASONS:
        listed.append(f"other reasons ({shown.count(sum(r.count for r in reasons[_MOST_REASONS:]))})")
    yield Answer(
        question="How many articles were lost, and why?",
        answer=f"{shown.count(documents.lost)} of {shown.count(documents.read)} pages or documents that were read are "
        f"not in the text: {', '.join(listed)}.",
        section="documents",
    )


def _padding(facts: Facts) -> Iterator[Answer]:
    shares = [(split, facts.figure(f"Examples, {split}", "padding")) for split in ("training", "eval")]
    known = [f"{figure.text} of the places in the {split} examples" for split, figure in shares if figure is not None]
    if known:
        yield Answer(question="What share is padding?", answer=f"{', '.join(known)}.", section="rows")


def _eval(facts: Facts) -> Iterator[Answer]:
    documents = facts.documents
    question = "Is the eval set clean?"
    if documents is not None and not documents.eval:
        yield Answer(question=question, answer="There is no eval set.", section="checks")
        return
    line = None if facts.checked is None else facts.checked.line("eval_leak")
    if line is None or not line.looked_at:
        why = f": {line.skipped}" if line is not None and line.skipped else ""
        yield Answer(question=question, answer=f"This was not verified{why}.", section="checks")
        return
    held = "" if documents is None else f" {plural(documents.eval, 'article')} held out,"
    if line.mark == "passed":
        part = f" ({line.skipped})" if line.skipped else ""
        yield Answer(
            question=question,
            answer=f"Yes:{held} none of which is in a training shard{part}. Whole articles were compared, and "
            "passages of 13 words in a row.",
            section="eval-leak",
        )
        return
    yield Answer(
        question=question,
        answer=f"No: eval articles were found in training shards ({plural(line.findings, 'finding')}).",
        section="checks",
    )


def _looks(facts: Facts) -> Iterator[Answer]:
    if not facts.samples.examples:
        return
    example = facts.samples.examples[0]
    masked = sum(piece.label is not None for piece in example.pieces)
    label = f", labelled “{example.label}”" if example.label else ""
    yield Answer(
        question="What does an example look like?",
        answer=f"The first has {len(example.pieces)} pieces in a row of {example.width}, {masked} of them to be "
        f"predicted{label}; it is shown below as words.",
        section="first-example",
    )
