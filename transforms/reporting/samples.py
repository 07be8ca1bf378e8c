"""How the data looks: the beginning of some texts and some examples."""

import dataclasses
from collections.abc import Iterator, Sequence

from transforms.inspection.decoded import DecodedExample
from transforms.inspection.examples import open_examples
from transforms.reporting import shown
from transforms.reporting.made_stages import MadeStage
from transforms.storage import files

_MOST_BYTES = 1 << 20
_MOST_LINES = 8
_MOST_CHARACTERS = 400
_TEXTS = 2
_EXAMPLES = {"train": 2, "eval": 1}


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampleText:
    """The first document of a text shard.

    Attributes:
      file: its path.
      lines: its first sentences.
      more: how many sentences it has behind them; None: it is not known.
    """

    file: str
    lines: tuple[str, ...]
    more: int | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Samples:
    """How the data looks at each stage."""

    texts: tuple[SampleText, ...] = ()
    examples: tuple[DecodedExample, ...] = ()


def samples_of(stages: Sequence[MadeStage]) -> Samples:
    """How the data of stages looks.

    Raises:
      UnusableInputError: a file is missing or damaged.
    """
    return Samples(
        texts=tuple(text for stage in stages if stage.name == "extract" for text in _texts(stage)),
        examples=tuple(row for stage in stages if stage.name == "examples" for row in _examples(stage)),
    )


def _texts(stage: MadeStage) -> Iterator[SampleText]:
    """The first documents of the first shard, and of the first of the eval set."""
    first = {}
    for shard in stage.shards:
        if shard.get("documents", 1):
            first.setdefault(shard.get("kind"), shard["name"])
    for name in list(first.values())[:_TEXTS]:
        path = files.join(stage.directory, name)
        if files.exists(path):
            yield _first_document(path)


def _first_document(path: str) -> SampleText:
    content = files.read_range(path, 0, min(_MOST_BYTES, files.size(path)))
    document, end, _ = content.lstrip(b"\n").partition(b"\n\n")
    lines = document.decode("utf-8", "replace").split("\n")
    return SampleText(
        file=path,
        lines=tuple(shown.beginning(line, _MOST_CHARACTERS) for line in lines[:_MOST_LINES]),
        more=max(0, len(lines) - _MOST_LINES) if end else None,
    )


def _examples(stage: MadeStage) -> Iterator[DecodedExample]:
    """The first and the middle row of training, and the first of eval."""
    for split in ("train", "eval"):
        if not stage.counted(split, "examples"):
            continue
        opened = open_examples(stage.directory, split=split)
        try:
            for sample in (0, opened.count // 2)[: _EXAMPLES[split]]:
                yield opened.decoded(sample)
        finally:
            opened.close()
