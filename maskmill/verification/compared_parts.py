"""What there is to compare under a path: text, examples and picked examples, each split for itself."""

import contextlib
import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.inspection.decoding import RowDecoder
from maskmill.inspection.opened_examples import vocabulary_of
from maskmill.reading.byte_ranges import ByteRanges, open_range_file
from maskmill.reading.data_set import DataSet
from maskmill.reading.made_examples import manifest_in, parse_examples
from maskmill.reading.opening import open_data_set
from maskmill.reading.read_vocabulary import UNKNOWN, KnownVocabulary
from maskmill.records.file_names import lies_beside
from maskmill.records.kernels.frames import HEAD
from maskmill.records.shard_formats import suffixes
from maskmill.records.tfrecord import begins_record, unpacked
from maskmill.storage import files
from maskmill.text.text_files import kind_of_text
from maskmill.tokenization.vocabulary import Vocabulary

PartKind = Literal["text", "examples"]
_SPLITS = ("train", "eval")
_FOLDERS = ("text", "examples", "eval")  # of a build
_NAMES: Mapping[tuple[str, str], str] = {
    ("extract", "train"): "training text",
    ("extract", "eval"): "eval text",
    ("examples", "train"): "training examples",
    ("examples", "eval"): "eval examples",
    ("eval", "eval"): "picked eval examples",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """Files that are compared as one.

    Attributes:
      kind: what they hold.
      name: as messages have it: "training examples".
      path: what the user named it by, or the stage's directory below that.
      source, split: what `open_data_set` takes for it.
      files: the paths.
      ranges: reads them.
      data_set: of examples that are opened.
      known: what the data set says of its vocabulary.
      vocab_file: what the user says of it.
      objective: of examples; None: not known.
      problem: why they cannot be read, as a sentence; None: they can.
    """

    kind: PartKind
    name: str
    path: str
    source: str
    split: str
    files: tuple[str, ...]
    ranges: ByteRanges
    data_set: DataSet | None = None
    known: KnownVocabulary = UNKNOWN
    vocab_file: str | None = None
    objective: str | None = None
    problem: str | None = None

    def opened(self) -> "Part":
        """This part, of examples with their data set, or with why it cannot be read."""
        if self.kind == "text":
            return self
        try:
            data_set = open_data_set(self.source, split=self.split, ranges=self.ranges, vocab_file=self.vocab_file)
        except (UnusableInputError, RunFailedError) as error:
            return dataclasses.replace(self, problem=str(error))
        return dataclasses.replace(self, data_set=data_set).only(self.files)

    def only(self, chosen: Collection[str]) -> "Part":
        """This part with some of its files alone, by their paths."""
        paths = tuple(path for path in self.files if path in chosen)
        data_set = self.data_set
        if data_set is not None:
            kept = tuple(entry for entry in data_set.files if entry.path in chosen)
            data_set = dataclasses.replace(data_set, files=kept)
        path = paths[0] if len(paths) == 1 else self.path
        return dataclasses.replace(self, path=path, files=paths, data_set=data_set)

    def named(self, names: Collection[str]) -> "Part":
        """This part with those files alone whose names, without suffixes, are among `names`."""
        return self.only([path for path in self.files if bare_name(path) in names])

    def vocabulary(self) -> Vocabulary | None:
        """The vocabulary of examples; None: it is not known, or cannot be read."""
        with contextlib.suppress(UnusableInputError, RunFailedError):  # words only make a message easier to read
            return vocabulary_of(self.known, self.path, self.vocab_file, self.ranges)[0]
        return None

    def decoder(self, vocabulary: Vocabulary | None) -> RowDecoder:
        """Gives the words of rows."""
        if self.data_set is None:
            raise ValueError(f"{self.path} is no data set of examples")
        return RowDecoder(data_set=self.data_set, vocabulary=vocabulary, objective=self.objective)


def find_parts(path: str, ranges: ByteRanges, vocab_file: str | None = None) -> list[Part]:
    """The parts of a build, of the directory of a stage, or of files without a manifest.

    Args:
      path: what the user named; without a manifest, a directory, a file or a glob of text shards or TFRecords.
      ranges: reads the files; the parts keep it.
      vocab_file: the vocabulary of examples that have no copy of it.

    Returns:
      The parts; examples are not opened yet.

    Raises:
      UnusableInputError: there is nothing of this kind.
    """
    made = manifest_in(path, ranges)
    if made is not None:
        return list(_parts_of_stage(path, made, ranges, vocab_file))
    parts: list[Part] = []
    for folder in (files.join(path, name) for name in _FOLDERS):
        if (below := manifest_in(folder, ranges)) is not None:
            parts += _parts_of_stage(folder, below, ranges, vocab_file)
    return parts or _parts_of_files(path, ranges, vocab_file)


def paired(here: list[Part], there: list[Part]) -> Iterator[tuple[Part | None, Part | None]]:
    """Which parts are compared with each other; None: one has no counterpart.

    Parts of one name belong together. One file is compared with the file of the same name, or else with what has as
    many examples, or else with its split: the eval set if its name begins with "eval". A whole stage that only one
    side has is left out.
    """
    if len(there) == 1 and (len(here) != 1 or len(there[0].files) == 1):
        yield (_counterpart(there[0], here), there[0])
        return
    if len(here) == 1:
        yield (here[0], _counterpart(here[0], there))
        return
    stages = {_stage(part) for part in here} & {_stage(part) for part in there}
    for name in _NAMES.values():
        pair = tuple(next((part for part in parts if part.name == name), None) for parts in (here, there))
        if any(part is not None and _stage(part) in stages for part in pair):
            yield pair[0], pair[1]


def _stage(part: Part) -> str:
    return part.name.removeprefix("training ").removeprefix("eval ")


def _counterpart(part: Part, others: list[Part]) -> Part | None:
    """What one file or part is compared with: the file of its name, as many examples, or its split."""
    of_kind = [other for other in others if other.kind == part.kind]
    if len(part.files) == 1:
        wanted = bare_name(part.files[0])
        for other in of_kind:
            for file in other.files:
                if bare_name(file) == wanted:
                    return other.only([file])
    if part.data_set is not None:
        for other in of_kind:
            if other.data_set is not None and other.data_set.samples == part.data_set.samples:
                return other
            for entry in other.data_set.files if other.data_set is not None else ():
                if entry.samples == part.data_set.samples:
                    return other.only([entry.path])
    of_split = [other for other in of_kind if other.name.startswith("eval") == part.name.startswith("eval")]
    return next(iter((*of_split, *of_kind)), None)


def bare_name(path: str) -> str:
    """The name of a file without the suffixes of formats."""
    name = files.base_name(path)
    for suffix in (".gz", *suffixes()):
        name = name.removesuffix(suffix)
    return name


def _parts_of_stage(
    directory: str, made: Mapping[str, Any], ranges: ByteRanges, vocab_file: str | None
) -> Iterator[Part]:
    """The parts that a manifest lists."""
    stage = str(made["stage"])
    for split in _SPLITS:
        name = _NAMES.get((stage, split))
        if name is None:
            continue
        if stage == "extract":
            listed = [shard for shard in made["shards"] if shard["kind"] == split]
            paths = tuple(files.join(directory, shard["name"]) for shard in listed)
            if any(shard["bytes"] for shard in listed):
                yield Part(
                    kind="text", name=name, path=directory, source=directory, split=split, files=paths, ranges=ranges
                )
            continue
        examples = parse_examples(made, split, directory)
        if not examples.files:
            continue
        yield Part(
            kind="examples",
            name=name,
            path=directory,
            source=directory,
            split=split,
            files=tuple(file.path for file in examples.files),
            ranges=ranges,
            known=examples.vocabulary,
            vocab_file=vocab_file,
            objective=examples.options.get("objective"),
        )


def _parts_of_files(path: str, ranges: ByteRanges, vocab_file: str | None) -> list[Part]:
    """The parts of files that a user names, or that lie in a directory without a manifest."""
    found = [file for pattern in path.split(",") for file in ranges.glob(pattern.strip()) if not lies_beside(file)]
    if not found:
        patterns = [files.join(path, pattern) for pattern in ("part-*", "eval*")]
        found = [file for pattern in patterns for file in ranges.glob(pattern) if not lies_beside(file)]
        found = [file for file in found if not file.endswith((".md5", files.TEMPORARY_SUFFIX))]
    if not found:
        raise UnusableInputError(
            f"{path}: this is neither a build, nor the directory of a stage, nor a file or glob of text shards or "
            "TFRecords; check the path."
        )
    parts = list(_parts_by_manifest(found, ranges, vocab_file))
    listed = {file for part in parts for file in part.files}
    for split in _SPLITS:
        of_split = tuple(file for file in found if kind_of_text(file) == split and file not in listed)
        if not of_split:
            continue
        first = unpacked(open_range_file(of_split[0], ranges), of_split[0])
        kind: PartKind = "examples" if begins_record(first.read(HEAD)) else "text"
        name = _NAMES["examples" if kind == "examples" else "extract", split]
        parts.append(
            Part(
                kind=kind,
                name=name,
                path=path,
                source=",".join(of_split),
                split=split,
                files=of_split,
                ranges=ranges,
                vocab_file=vocab_file,
            )
        )
    return parts


def _parts_by_manifest(found: Sequence[str], ranges: ByteRanges, vocab_file: str | None) -> Iterator[Part]:
    """Of files that a user names, those that a manifest beside them lists."""
    for directory in dict.fromkeys(files.parent(file) for file in found):
        made = manifest_in(directory, ranges)
        for part in () if made is None else _parts_of_stage(directory, made, ranges, vocab_file):
            chosen = part.only(found)
            if chosen.files:
                yield chosen
