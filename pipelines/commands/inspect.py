"""inspect: what is in a data set, a text shard, a vocabulary or a checkpoint. Without Beam."""

import contextlib
import itertools
import random
from collections.abc import Iterator, Sequence

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.inspection import kinds
from maskmill.inspection.decoding import DecodedExample
from maskmill.inspection.opened_examples import OpenedExamples, open_examples
from maskmill.inspection.opened_texts import OpenedTexts, open_texts
from maskmill.inspection.searching import Wanted
from maskmill.inspection.shown_text import as_json
from maskmill.inspection.summaries import summarize
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
    """Print what is in a path.

    names: the path and, with --example search, the words after it.

    Raises:
      UnusableInputError: there is nothing that can be shown.
      RunFailedError: it cannot be read.
    """
    path, words = _named(names, options)
    if options.html is not None:
        _write_page(path, options.html, options)
    elif options.example is None and options.head is None:
        summary = summarize(path)
        if options.format == "json":
            print(as_json(summary.as_dict(), indent=1))
        else:
            inspect_text.print_summary(summary)
    else:
        _show_some(path, words, options)


def _named(names: Sequence[str], options: InspectOptions) -> tuple[str, str]:
    """Return the path, and the words to search for, which stand after it."""
    if options.example != SEARCH:
        return only_path(names, _TAKES_ONE), ""
    if len(names) < 2:
        raise UnusableInputError("The word to search for is missing; give PATH --example search WORD.")
    return names[0], " ".join(names[1:])


def _write_page(path: str, html: str, options: InspectOptions) -> None:
    """Write the report on a path, or on two side by side."""
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
    """Print examples or documents, each as soon as it is found."""
    with _opened(path, options) as opened:
        found = Wanted(words).pattern if words else None
        shown = 0
        for shown, item in enumerate(_chosen(opened, words, options), 1):
            documents: inspect_text.Documents = []
            if isinstance(opened, OpenedExamples) and isinstance(item, DecodedExample):
                documents = opened.documents_of(item)
            if options.format == "json":
                print(as_json(inspect_text.as_values(item, documents)))
            else:
                inspect_text.print_item(item, documents, is_first=shown == 1, found=found)
            if console.reader_is_gone():
                return
    if not shown and words:
        raise RunFailedError(f"{path}: nothing in it has these words; search for others.")
    if not shown:
        raise UnusableInputError(f"{path}: there is nothing in it.")


def _opened(path: str, options: InspectOptions) -> OpenedExamples | OpenedTexts:
    """Return what has examples or documents."""
    path = kinds.plain(path)
    with contextlib.closing(open_ranges(path)) as ranges:
        kind = kinds.kind_of(path, ranges)
    if kind == "text":
        return open_texts(path)
    if kind in ("examples", "build"):
        return open_examples(
            path, split=options.split, vocab_file=options.vocab_file, seed=options.seed, epoch=options.epoch
        )
    what = "--example" if options.example is not None else "--head"
    raise UnusableInputError(f"{path}: a {kind} has no examples; leave out {what}.")


def _chosen(opened: OpenedExamples | OpenedTexts, words: str, options: InspectOptions) -> Iterator[inspect_text.Item]:
    """Return the examples or documents that were asked for."""
    if options.example == SEARCH:
        return itertools.islice(opened.search(words), options.head or 1)
    if options.example is None:
        return itertools.islice(opened.all(), options.head)
    count = opened.count
    number = random.randrange(max(1, count)) + 1 if options.example == RANDOM else int(options.example)
    if number > count:
        raise UnusableInputError(
            f"{opened.path}: there is no number {number:,}, only 1 to {count:,}; choose one of them."
        )
    return itertools.islice(opened.all(number - 1), 1)
