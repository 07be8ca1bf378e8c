"""Samples of the data: the beginning of some texts, and some examples."""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.inspection.decoding import DecodedExample
from maskmill.inspection.opened_examples import Split, open_examples
from maskmill.inspection.shown_text import shown as harmless
from maskmill.reporting.made_stages import MadeStage
from maskmill.storage import files

_MOST_BYTES = 1 << 20
_MOST_LINES = 8
_MOST_CHARACTERS = 400


class SampleText(NamedTuple):
    """The first document of a text shard: the shard's path, the first sentences, how many follow (None: unknown)."""

    file: str
    lines: tuple[str, ...]
    more: int | None


@dataclasses.dataclass(frozen=True)
class Samples:
    """Samples of the data of each stage.

    Attributes:
      texts: the beginning of some documents.
      examples: some rows.
      unread: why some of it cannot be shown, a sentence each: files that are missing or damaged.
    """

    texts: tuple[SampleText, ...] = ()
    examples: tuple[DecodedExample, ...] = ()
    unread: tuple[str, ...] = ()


def samples_of(stages: Sequence[MadeStage], path: str) -> Samples:
    """Return samples of the data of stages; a file that cannot be read is reported on the page instead.

    Args:
      stages: of a build.
      path: the build's directory, or that of the only stage.
    """
    takes: list[Callable[[], Iterator[Any]]] = []
    for stage in stages:
        if stage.name == "extract":
            takes.append(functools.partial(_texts, stage))
        if stage.name == "examples":
            takes += [functools.partial(_examples, stage, "train"), functools.partial(_examples, stage, "eval")]
    taken = files.each(path, _tried, takes)  # each reads other files, and waits for a store
    found = [one for some, _ in taken for one in some]
    return Samples(
        texts=tuple(one for one in found if isinstance(one, SampleText)),
        examples=tuple(one for one in found if isinstance(one, DecodedExample)),
        unread=tuple(dict.fromkeys(why for _, why in taken if why)),
    )


def _tried(take: Callable[[], Iterator[Any]]) -> tuple[list[Any], str]:
    """Return the samples that `take` yields, or the reason why they cannot be read."""
    try:
        return list(take()), ""
    except (UnusableInputError, RunFailedError) as error:
        return [], str(error)


def _texts(stage: MadeStage) -> Iterator[SampleText]:
    """Yield the first document of the first training shard, and of the first eval shard."""
    first: dict[str, str] = {}
    for shard in stage.shards:
        if shard.get("documents", 1):
            first.setdefault(str(shard.get("kind")), files.join(stage.directory, str(shard["name"])))
    for path in first.values():
        try:
            content = files.read_range(path, 0, _MOST_BYTES)
        except MissingFileError:
            continue
        document, end, _ = content.lstrip(b"\n").partition(b"\n\n")
        lines = document.decode("utf-8", "replace").split("\n")
        beginning = tuple(harmless(line, _MOST_CHARACTERS) for line in lines[:_MOST_LINES])
        yield SampleText(path, beginning, max(0, len(lines) - _MOST_LINES) if end else None)


def _examples(stage: MadeStage, split: Split) -> Iterator[DecodedExample]:
    """Yield the first and the middle row of training, or the first of eval."""
    if stage.counted(split, "examples"):
        with open_examples(stage.directory, split=split) as opened:
            for sample in (0, opened.count // 2) if split == "train" else (0,):
                yield opened.decoded(sample)
