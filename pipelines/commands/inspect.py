"""inspect: what is in a data set, a text shard, a vocabulary or a checkpoint. Without Beam."""

import contextlib
import dataclasses
import itertools
import os
import random
from collections.abc import Iterable, Iterator, Sequence

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.inspection import kinds, searching
from maskmill.inspection.decoding import DecodedExample
from maskmill.inspection.opened_examples import OpenedExamples, open_examples
from maskmill.inspection.opened_texts import OpenedTexts, TextDocument, open_texts
from maskmill.inspection.shown_text import as_json
from maskmill.inspection.summarizing import summarize
from maskmill.inspection.vocabularies import VocabularyFile, open_vocabulary
from maskmill.reading.remote import open_ranges
from maskmill.storage import files, paths
from pipelines.commands import inspect_text
from pipelines.running import interruption
from pipelines.settings.command_options import RANDOM, SEARCH, InspectOptions
from pipelines.settings.flags import only_path
from pipelines.stages import kernels
from pipelines.terminal import console

_TAKES_ONE = "name one path: a build, a data set, text shards, a manifest, a vocabulary or a checkpoint"


@interruption.going_on(interruption.START_ANEW)
def run(names: Sequence[str], options: InspectOptions) -> None:
    """Prints what is in a path.

    names: the path and, with --example search, the words behind it.

    Raises:
      UnusableInputError: there is nothing that can be shown.
      RunFailedError: it cannot be read.
    """
    path, words = _named(names, options)
    if options.html is not None:
        _write_page(path, options.html, options)
    elif options.example is None and options.head is None:
        summary = summarize(path, split=options.split, vocab_file=options.vocab_file)
        if options.format == "json":
            print(as_json(summary.as_dict(), indent=1))
        else:
            inspect_text.print_summary(summary)
    else:
        _show_some(path, words, options)


def _named(names: Sequence[str], options: InspectOptions) -> tuple[str, str]:
    """The path, and the words to search for: they may stand before or behind it."""
    if options.example != SEARCH:
        return only_path(names, _TAKES_ONE), ""
    if len(names) < 2:
        raise UnusableInputError("The word to search for is missing; give PATH --example search WORD.")
    if not _is_there(names[0]) and _is_there(names[-1]):
        return names[-1], " ".join(names[:-1])
    return names[0], " ".join(names[1:])


def _is_there(path: str) -> bool:
    return not files.is_local(path) or os.path.exists(os.path.expanduser(path))


def _write_page(path: str, html: str, options: InspectOptions) -> None:
    """Writes the report on a path, or on two side by side."""
    from maskmill.reporting import page
    from pipelines.building import build_report

    files.check_outputs([], [html])
    paths.refuse_missing(path)
    kernels.prepare(None)  # verify uses all
    facts, _ = build_report.collect(path, options.verified)
    other = None if options.diff is None else build_report.collect(options.diff, options.verified)[0]
    content = page.render(facts, other).encode()
    files.write_bytes(html, content)
    print(f"{html}: {len(content):,} bytes")


def _show_some(path: str, words: str, options: InspectOptions) -> None:
    """Prints examples, documents or pieces."""
    path = kinds.plain(path)
    with contextlib.closing(open_ranges(path)) as ranges:
        kind = kinds.kind_of(path, ranges)
        if kind == "vocabulary":
            _show_pieces(open_vocabulary(path), words, options)
            return
    if kind == "text":
        with open_texts(path) as texts:
            _print_all(_documents(texts, words, options), words, options, texts.path)
        return
    if kind in ("manifest", "checkpoint"):
        what = "--example" if options.example is not None else "--head"
        raise UnusableInputError(f"{path}: a {kind} has no examples; leave out {what}.")
    one = options.example not in (None, SEARCH)
    if one:
        kernels.prepare((*kernels.OF_READING, "tokenization.kernels"))  # it looks for the example's text
    opened = open_examples(
        path, split=options.split, vocab_file=options.vocab_file, seed=options.seed, epoch=options.epoch
    )
    with contextlib.closing(opened):
        _print_all(_examples(opened, words, options), words, options, opened.path, opened if one else None)


def _print_all(
    found: Iterable[DecodedExample | TextDocument],
    words: str,
    options: InspectOptions,
    path: str,
    examples: OpenedExamples | None = None,
) -> None:
    """Prints what was found, each as soon as it is; `examples`: in which to find the documents of an example."""
    none, pattern = True, searching.pattern_of(words) if words else None
    for one in found:
        source = _source_of(examples, one) if examples is not None and isinstance(one, DecodedExample) else None
        if options.format == "json":
            values = inspect_text.example_dict(one) if isinstance(one, DecodedExample) else dataclasses.asdict(one)
            if source is not None:
                values["documents"] = [dataclasses.asdict(document) for document in source[0]]
            print(as_json(values))
        elif isinstance(one, DecodedExample):
            inspect_text.print_example(one, is_first=none, found=pattern)
            if source is not None:
                inspect_text.print_source(*source)
        else:
            inspect_text.print_text(one, is_first=none, found=pattern)
        none = False
        if console.reader_is_gone():
            return
    if none:
        raise RunFailedError(f"{path}: nothing in it has these words; search for others.")


def _source_of(opened: OpenedExamples, example: DecodedExample) -> tuple[Sequence[TextDocument], str]:
    """The documents that an example was made of; if there are none, why not."""
    from maskmill.inspection.sources_of_rows import documents_of

    try:
        return documents_of(opened, example), "no document of its text has its pieces"
    except UnusableInputError as error:
        return (), str(error)


def _examples(opened: OpenedExamples, words: str, options: InspectOptions) -> Iterator[DecodedExample]:
    """The examples that were asked for."""
    if not opened.count:
        raise UnusableInputError(f"{opened.path}: there are no examples in it.")
    if opened.why_no_words is not None:
        inspect_text.warn(opened.why_no_words)
    if options.example == SEARCH:
        for sample in itertools.islice(searching.search_examples(opened, words), options.head or 1):
            yield opened.decoded(sample)
    elif options.example is None:
        yield from opened.all_decoded(count=options.head)
    else:
        yield opened.decoded(opened.first + _chosen(options.example, opened.count, opened.path, "example") - 1)


def _documents(opened: OpenedTexts, words: str, options: InspectOptions) -> Iterator[TextDocument]:
    """The documents that were asked for."""
    if options.example == SEARCH:
        yield from itertools.islice(searching.search_texts(opened, words), options.head or 1)
        return
    if options.example is None:
        yield from itertools.islice(opened.all(), options.head)
        return
    count = opened.documents
    if count is None:
        count = sum(1 for _ in opened.all())
    document = opened.numbered(_chosen(options.example, count, opened.path, "document"))
    if document is None:
        raise RunFailedError(f"{opened.path}: the shards have fewer documents than their manifest says.")
    yield document


def _show_pieces(vocabulary: VocabularyFile, words: str, options: InspectOptions) -> None:
    """Prints pieces of a vocabulary with their ids."""
    pieces = list(vocabulary.pieces)
    if options.example == SEARCH:
        pieces = [(id, piece) for id, piece in pieces if words.casefold() in piece.casefold()]
        if options.head is not None:
            pieces = pieces[: options.head]
        if not pieces:
            raise RunFailedError(f"{vocabulary.path}: no piece has {words!r} in it.")
    elif options.example is None:
        pieces = pieces[: options.head]
    else:
        number = _chosen(options.example, len(pieces), vocabulary.path, "piece")
        pieces = pieces[number - 1 : number]
    if options.format == "json":
        for id, piece in pieces:
            print(as_json({"id": id, "piece": piece}))
    else:
        inspect_text.print_pieces(pieces)


def _chosen(example: str, count: int, path: str, what: str) -> int:
    """The number of an example, from 1."""
    if not count:
        raise UnusableInputError(f"{path}: there is no {what} in it.")
    # Which one is printed, so that it can be looked at again.
    number = random.randrange(count) + 1 if example == RANDOM else int(example)
    if number > count:
        raise UnusableInputError(f"{path}: there is no {what} {number:,}, only 1 to {count:,}; choose one of them.")
    return number
