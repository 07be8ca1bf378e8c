"""How much text a build will have, told from samples of its inputs: extracted ones, mixed ones, or text shards."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from maskmill.errors import UnusableInputError
from maskmill.storage import files, manifest
from maskmill.text.text_files import find_texts, refuse_equal_names
from pipelines.building.build_options import BuildOptions
from pipelines.settings.stage_options import ExtractOptions
from pipelines.stages.extract_stage import check_extraction
from pipelines.stages.mix_stage import MixStage, extracts_of
from transforms.inputs import multistream
from transforms.inputs.found_inputs import find_inputs
from transforms.inputs.options import ReadOptions
from transforms.inputs.sampling import CountedReader, InputKind, Sample, inputs_by_kind, sample_kind
from transforms.shards.options import SplitOptions
from transforms.shards.sample_text import SampleText, extract_sample, ratio_error

# What is read unless the user names a share: of a large input 2 %, of a small one as much as makes a good sample.
_SHARE = 0.02
_LEAST_READ, _MOST_READ = 4 << 20, 32 << 20
_MEGABYTE = 1 << 20
# ARCHITECTURE.md, "Where the time goes": sha256 reads 1.1 GB a second.
_CHECKSUM_SECONDS = 1e-9


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextGroup:
    """Text of one kind.

    sample: the sentences of some of its documents. documents, size: of all of it, size in bytes. error, document_error:
    the standard errors of the size and of the documents, in their units. seconds: of CPU to extract it.
    """

    sample: tuple[bytes, ...]
    documents: float
    size: float
    error: float
    document_error: float
    seconds: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class EstimatedText:
    """The text of a build.

    groups: its text, kind by kind. eval_documents: how many documents are held out of it. shards: of training text.
    files, input_size, bytes_read: of the inputs. notes: what a user should know of the estimate.
    """

    groups: tuple[TextGroup, ...]
    eval_documents: float
    shards: int
    files: int
    input_size: int
    bytes_read: int
    notes: tuple[str, ...]

    @property
    def documents(self) -> float:
        """Of all groups."""
        return sum(group.documents for group in self.groups)

    @property
    def size(self) -> float:
        """Bytes of all groups."""
        return sum(group.size for group in self.groups)

    @property
    def error(self) -> float:
        """The standard error of the size, as a share of it."""
        return float(sum(group.error**2 for group in self.groups) ** 0.5 / max(1.0, self.size))

    @property
    def document_error(self) -> float:
        """The standard error of the documents, as a share of them."""
        return float(sum(group.document_error**2 for group in self.groups) ** 0.5 / max(1.0, self.documents))

    @property
    def largest_shard(self) -> float:
        """Bytes of a shard of training text."""
        return self.size / max(1, self.shards)


def estimate_text(build: BuildOptions, share: float | None) -> EstimatedText:
    """How much text a build will have.

    share: of the inputs' bytes to read; None: 2 %, at least 4 MB and at most 32 MB.

    Raises:
      UnusableInputError: an input cannot be used.
    """
    if build.texts is not None:
        return _of_texts(build.texts, share)
    mix = build.get(MixStage)
    extracts = list(extracts_of(build).values())
    split = extracts[0].decided.split if mix is None else mix.decided.split
    inputs = [find_inputs(files.match(options.input), options.input_format).files for options in extracts]
    size = sum(file.size for found in inputs for file in found)
    reader = CountedReader()
    notes: list[str] = []
    groups = []
    for options, found in zip(extracts, inputs, strict=True):
        of_source = sum(file.size for file in found)
        wanted = _wanted(size, share) * of_source // max(1, size)
        groups.append(_of_extract(found, options, wanted, reader, notes))
    if mix is not None:
        groups = _mixed(groups, [source.source for source in mix.sources])
    else:
        groups = _first_documents(groups, split)
    flat = tuple(group for of_source in groups for group in of_source)
    documents = sum(group.documents for group in flat)
    held_out = split.num_eval_articles if split.eval_fraction is None else split.eval_fraction * documents
    train = sum(group.size for group in flat) * max(0.0, 1 - (held_out or 0) / max(1.0, documents))
    return EstimatedText(
        groups=flat,
        eval_documents=held_out or 0,
        shards=max(1, -int(-train // ((split.shard_size_mb or 1) * _MEGABYTE))),
        files=sum(map(len, inputs)),
        input_size=size,
        bytes_read=reader.bytes_read,
        notes=tuple(dict.fromkeys(notes)),
    )


def _wanted(size: int, share: float | None) -> int:
    if share is not None:
        return max(1, int(share * size))
    return min(size, max(_LEAST_READ, min(int(_SHARE * size), _MOST_READ)))


def _of_extract(
    inputs: Sequence[files.FileInfo], options: ExtractOptions, wanted: int, reader: CountedReader, notes: list[str]
) -> list[TextGroup]:
    """The text that is extracted from inputs, a group for each kind of them."""
    options = check_extraction(options).options
    extraction = options.decided_extraction
    if extraction.wikitext.expand_templates:
        notes.append("the sample's templates are not expanded; a build with --expand_templates has a little more text")
    if extraction.quality.finds_duplicates:
        notes.append("duplicates do not show in a sample; a build that drops them has a little less text")
    if options.compat == "mlperf":
        notes.append("MLPerf's clean-up is not done with the sample's text")
    size = sum(file.size for file in inputs)
    before = reader.bytes_read
    kinds = inputs_by_kind(inputs, options.input_format, reader)
    left = wanted - (reader.bytes_read - before)
    groups = []
    for kind in kinds:
        unpacking = reader.seconds
        of_kind = kind.size if wanted >= size else max(1, left * kind.size // size)
        sample = _sample(kind, of_kind, options, reader)
        if sample.beginning_only:
            notes.append(
                f"{kind.files[0].path} can only be read from its beginning ({kind.container}), so the error may be "
                "larger than it says"
            )
        text = extract_sample(sample, extraction, options.dump_date)
        seconds = reader.seconds - unpacking + text.seconds
        if text.is_untrained:
            notes.append("a build trains Punkt on its input; the sample's sentences are split without that")
        groups.append(_group(text, seconds + kind.size * _CHECKSUM_SECONDS / text.scale))
    if not any(group.size for group in groups):
        raise UnusableInputError(
            f"{inputs[0].path}: there is no text in the sample; check the input, or give a larger --sample_share."
        )
    return groups


def _group(text: SampleText, seconds: float) -> TextGroup:
    size = text.scale * sum(map(len, text.documents))
    return TextGroup(
        sample=text.documents,
        documents=text.document_scale * len(text.documents),
        size=size,
        error=text.error * size,
        document_error=text.document_error * text.document_scale * len(text.documents),
        seconds=seconds * text.scale,
    )


def _sample(kind: InputKind, wanted: int, options: ExtractOptions, reader: CountedReader) -> Sample:
    """A sample of inputs; of a multistream dump by its index, if there is one."""
    reading, taken = options.extraction.reading, options.extraction.namespaces
    if kind.format == "mediawiki" and kind.container == "bz2" and len(kind.files) == 1 and wanted < kind.size:
        before = reader.bytes_read
        streams = multistream.read_streams(kind.files[0], wanted, kind.header, taken, reader)
        wanted -= reader.bytes_read - before
        if streams is not None:
            return multistream.sample_streams(kind, streams, wanted, taken, reading, reader)
    return sample_kind(kind, wanted, reading, reader)


def _first_documents(groups: Sequence[Sequence[TextGroup]], split: SplitOptions) -> list[list[TextGroup]]:
    """What is left of the groups by --max_documents."""
    documents = sum(group.documents for of_source in groups for group in of_source)
    if split.max_documents is None or split.max_documents >= documents:
        return [list(of_source) for of_source in groups]
    return [[_times(group, split.max_documents / documents) for group in of_source] for of_source in groups]


def _mixed(groups: Sequence[Sequence[TextGroup]], sources: Sequence[Any]) -> list[list[TextGroup]]:
    """The groups of each source as often as the mix takes them."""
    from transforms.shards.mixing import decide_epochs

    limited = []
    for of_source, source in zip(groups, sources, strict=True):
        limited += _first_documents([of_source], SplitOptions(max_documents=source.max_documents))
    epochs = decide_epochs([round(sum(group.size for group in of_source)) for of_source in limited], sources)
    return [
        [_times(group, float(times), extracted=1.0) for group in of_source]
        for of_source, times in zip(limited, epochs, strict=True)
    ]


def _times(group: TextGroup, factor: float, *, extracted: float | None = None) -> TextGroup:
    """A group taken `factor` times; `extracted`: how often it is extracted for that, None: as often."""
    return dataclasses.replace(
        group,
        documents=group.documents * factor,
        size=group.size * factor,
        error=group.error * factor,
        document_error=group.document_error * factor,
        seconds=group.seconds * (factor if extracted is None else extracted),
    )


def _of_texts(patterns: Sequence[str], share: float | None) -> EstimatedText:
    """The text of shards that exist: its size is known, its documents if a manifest counts them."""
    texts = find_texts(patterns)
    refuse_equal_names(texts)
    size = sum(text.size for text in texts)
    if not size:
        raise UnusableInputError(f"{texts[0].path}: there is no text in this input.")
    reader = CountedReader()
    kind = InputKind(files=tuple(text for text in texts if text.size), format="text", container="plain", head=b"")
    sample = sample_kind(kind, _wanted(size, share), ReadOptions(), reader)
    content = b"".join(part.content for part in sample.parts)
    documents = tuple(document.strip(b"\n") + b"\n\n" for document in content.split(b"\n\n") if document.strip())
    counted = _counted_documents(patterns)
    told = len(documents) * size / max(1, len(content))
    is_known = bool(counted) or len(content) == size
    lengths = np.array([(len(document), 1) for document in documents], np.float64)
    held_out = [text for text in texts if files.base_name(text.path).startswith("eval")]
    group = TextGroup(
        sample=documents,
        documents=counted or told,
        size=size,
        error=0.0,
        document_error=0.0 if is_known else ratio_error(lengths) * told,
        seconds=0.0,
    )
    return EstimatedText(
        groups=(group,),
        eval_documents=group.documents * sum(text.size for text in held_out) / size,
        shards=len(texts) - len(held_out),
        files=len(texts),
        input_size=size,
        bytes_read=reader.bytes_read,
        notes=(),
    )


def _counted_documents(patterns: Sequence[str]) -> int | None:
    """The documents in the shards of directories, by their manifests; None if a pattern is no such directory."""
    total = 0
    for pattern in patterns:
        if not files.exists(files.join(pattern, manifest.MANIFEST)):
            return None
        counts = manifest.read_manifest(pattern)["counts"]
        total += sum(counts.get(kind, {}).get("documents", 0) for kind in ("train", "eval"))
    return total
