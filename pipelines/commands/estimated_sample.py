"""A sample of the input of a build, in files of the formats that it has, so that the build can run on it."""

import dataclasses
import json
import os
import re
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from maskmill.inputs.found_inputs import find_inputs
from maskmill.inputs.items import Document
from maskmill.inputs.mediawiki import Page, read_header
from maskmill.inputs.options import ReadOptions
from maskmill.inputs.sources import is_splittable
from maskmill.inputs.units import EMPTY, Unit, plan_units, read_unit
from maskmill.mirrors.dump_names import date_in_name
from maskmill.storage import files
from maskmill.text.text_files import find_texts
from maskmill.text_shards.options import SplitOptions
from pipelines.building.build_options import BuildOptions, rebased
from pipelines.settings.stage_options import ExtractOptions
from pipelines.stages.extract_stage import ExtractStage
from pipelines.stages.mix_stage import MixStage, extracts_of
from pipelines.stages.vocabulary_stage import VocabularyStage

# What is read unless the user names a share.
_SHARE = 0.02
_LEAST_READ, _MOST_READ = 4 << 20, 16 << 20
_UNIT_BYTES = 256 << 10  # of bz2, about a block of it; four times as much of plain files
_BLANK_LINES = re.compile(rb"\n\s*\n")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sample:
    """A build on a sample of its input.

    build: reads the sample, and writes below the sample's directory. files, size: of the input. taken: bytes of the
    input that the sample stands for. names: the inputs by the paths of their samples.
    """

    build: BuildOptions
    files: int
    size: int
    taken: int
    names: dict[str, str]

    @property
    def share(self) -> float:
        """The share of the input's bytes that the sample stands for."""
        return self.taken / self.size


def sample_of(build: BuildOptions, share: float | None, folder: str) -> Sample:
    """Write a sample of a build's input into a folder.

    share: of the input's bytes to read; None: 2 %, at least 4 MB and at most 16 MB.

    Raises:
      UnusableInputError: an input cannot be used.
    """
    writer = _Writer(folder)
    found: dict[str, tuple[ReadOptions, str, Sequence[files.FileInfo]]] = {}
    for name, own in extracts_of(build).items():
        inputs = find_inputs(files.match(own.input), own.input_format).files
        found[name] = (own.decided_extraction.reading, own.input_format, inputs)
    if build.texts is not None:
        found[""] = (ReadOptions(), "text", [text for text in find_texts(build.texts) if text.size])
    size = sum(file.size for _, _, inputs in found.values() for file in inputs)
    if share is None:
        share = min(1.0, max(_LEAST_READ, min(_SHARE * size, _MOST_READ)) / max(1, size))
    written = {name: writer.write(*of_source, share) for name, of_source in found.items()}
    small = dataclasses.replace(build, report="off", texts=None if build.texts is None else tuple(written[""]))
    small = rebased(small, files.join(folder, "build"))
    part = writer.taken / max(1, size)
    if (mix := small.get(MixStage)) is not None:
        sources = [
            dataclasses.replace(source, extract=_on_sample(source.extract, written[source.name], part))
            for source in mix.sources
        ]
        small = small.having(MixStage, dataclasses.replace(mix, sources=tuple(sources), split=_part(mix.split, part)))
    elif ExtractStage in small:
        small = small.having(ExtractStage, _on_sample(small[ExtractStage], written[""], part))
    if (vocabulary := small.get(VocabularyStage)) is not None:
        alone = dataclasses.replace(vocabulary, compare=(), model_dir=None, transform_fn=False)
        small = small.having(VocabularyStage, alone)
    count = sum(len(inputs) for _, _, inputs in found.values())
    return Sample(build=small, files=count, size=size, taken=writer.taken, names=writer.names)


def _on_sample(options: ExtractOptions, inputs: Sequence[str], share: float) -> ExtractOptions:
    """Return the options for a sample that stands for a share of the input."""
    extraction = options.extraction
    reading = dataclasses.replace(extraction.reading, text_documents="blank_line", metadata_columns=())
    return dataclasses.replace(
        options,
        input=tuple(inputs),
        input_format="jsonl" if options.input_format == "parquet" else options.input_format,
        extraction=dataclasses.replace(extraction, reading=reading),
        split=_part(options.decided.split, share),
    )


def _part(split: SplitOptions, share: float) -> SplitOptions:
    """Return the numbers of documents in proportion to a share of the input."""
    counts = {name: getattr(split, name) for name in ("num_eval_articles", "max_documents")}
    return dataclasses.replace(split, **{name: n and max(1, round(n * share)) for name, n in counts.items()})


class _Writer:
    """Writes samples, and counts the bytes of the inputs that they stand for."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.taken = 0
        self.names: dict[str, str] = {}

    def write(
        self, reading: ReadOptions, input_format: str, inputs: Sequence[files.FileInfo], share: float
    ) -> list[str]:
        """Write units at even distance over all inputs, a file for each input that has some; return their paths."""
        planned = plan_units(
            inputs, input_format=input_format, reading=reading, unit_bytes=_UNIT_BYTES, allow_empty=len(inputs) > 1
        )
        units = [unit for unit in planned if unit.format != EMPTY]
        count = max(1, round(len(units) * share))
        most = max(_UNIT_BYTES, int(share * sum(file.size for file in inputs) / count))
        by_path: dict[str, list[Unit]] = {}
        for number in range(min(count, len(units))):
            unit = units[(2 * number + 1) * len(units) // (2 * count)]
            by_path.setdefault(unit.path, []).append(unit)
        return [self._write_file(path, of_file, reading, most) for path, of_file in by_path.items()]

    def _write_file(self, path: str, units: Sequence[Unit], reading: ReadOptions, most: int) -> str:
        first = units[0]
        date = date_in_name(path)
        folder = os.path.join(self._folder, str(len(self.names)))
        os.mkdir(folder)
        ending = {"mediawiki": ".xml", "text": ".txt", "wikiextractor": ""}.get(first.format, ".jsonl")
        target = os.path.join(folder, f"sample{len(self.names)}{date and f'-{date}'}{ending}")
        self.names[target] = path
        header = read_header(path) if first.format == "mediawiki" else b""
        with open(target, "wb") as file:
            file.write(header)
            for unit in units:
                for item in self._items(unit, reading, most, folder):
                    file.write(_encoded(item, unit.format, reading))
            if header:
                file.write(b"</mediawiki>\n")
        return target

    def _items(self, unit: Unit, reading: ReadOptions, most: int, folder: str) -> Iterator[Page | Document]:
        """Yield the pages or documents of a unit; of a file that can only be read from its beginning, of that."""
        if not is_splittable(unit.container) and unit.end - unit.start > most:
            beginning = os.path.join(folder, "beginning")
            files.write_bytes(beginning, files.read_range(unit.path, 0, most))
            unit = dataclasses.replace(unit, path=beginning, end=most)
            reading = dataclasses.replace(reading, keep_truncated=True)
        self.taken += unit.end - unit.start
        yield from (item for item in read_unit(unit, reading) if isinstance(item, Page | Document))


def _encoded(item: Page | Document, input_format: str, reading: ReadOptions) -> bytes:
    """Return a page or document as a file of its format has it; of Parquet as a line of JSON."""
    text = item.text.decode(errors="replace")
    title = escape(item.title.decode(errors="replace"), {'"': "&quot;"})
    if isinstance(item, Page):
        return (
            f"<page><title>{title}</title><ns>{item.namespace}</ns><id>{item.page_id}</id>"
            f"{'<redirect />' if item.is_redirect else ''}<revision><id>{item.revision_id}</id>"
            f"<timestamp>{item.timestamp.decode()}</timestamp><model>{item.model.decode()}</model>"
            f'<text xml:space="preserve">{escape(text)}</text></revision></page>\n'
        ).encode()
    if input_format == "wikiextractor":
        return f'<doc id="{item.document_id}" url="" title="{title}">\n{title}\n\n{text}\n</doc>\n'.encode()
    if input_format == "text":
        return _BLANK_LINES.sub(b"\n", item.text) + b"\n\n"
    record = {**item.metadata, reading.text_column: text}
    if reading.id_column is not None:
        record[reading.id_column] = item.document_id
    if reading.language_column is not None:
        record[reading.language_column] = item.language or ""
    return (json.dumps(record, default=str) + "\n").encode()
