"""Text shards that are there already, as what a stage reads."""

import dataclasses
from collections.abc import Iterator, Sequence

import apache_beam as beam

from maskmill.storage import progress
from maskmill.storage.files import FileInfo
from maskmill.storage.found_files import check_same, check_unchanged
from maskmill.text.shards import TextShard
from maskmill.text.text_files import describe_text_shard, find_texts, listed_shards, refuse_unlisted
from transforms.to_list import ToList


def numbered_texts(found: Sequence[FileInfo], patterns: Sequence[str]) -> Iterator[tuple[int, FileInfo, str]]:
    """Return the texts that were found before the run, in order, if they are still what patterns name.

    With each comes its sha256 if it is of a directory that extract made; else "".
    """
    check_same(found, find_texts(patterns, may_be_missing=True))
    listed = listed_shards(patterns)
    return ((place, file, listed.get(file.path, {}).get("sha256", "")) for place, file in enumerate(found))


def describe_found(numbered: tuple[int, FileInfo, str]) -> TextShard:
    """Describe a text that was found before the run, with its place among all.

    Raises:
      RunFailedError: it is not as it was found.
      UnusableInputError: it is not what the manifest of its directory says.
    """
    place, file, listed = numbered
    check_unchanged(file)
    shard = dataclasses.replace(describe_text_shard((place, file.path)), changed=file.changed)
    shard.check_unchanged()
    if listed:
        refuse_unlisted(shard.path, f"sha256 {shard.sha256}", f"sha256 {listed}")
    return shard


@dataclasses.dataclass(eq=False)
class DescribeTexts(beam.PTransform):
    """Describe the text shards that were found before the run. patterns: what they were found by."""

    found: Sequence[FileInfo]
    patterns: Sequence[str]

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[TextShard]:
        """Describe each on any worker."""
        return (
            begin
            | "Texts" >> beam.Create([self.found]).with_output_types(Sequence[FileInfo])
            | "FindTexts" >> beam.FlatMap(numbered_texts, self.patterns)
            | beam.Reshuffle()
            | "Describe" >> beam.Map(describe_found)
        )


@dataclasses.dataclass(eq=False)
class AnnounceTexts(beam.PTransform):
    """Tell the progress display how many shards there are for the step of a kind."""

    output: str
    kind: str

    def expand(self, texts: beam.PCollection[TextShard]) -> beam.PCollection[None]:
        """Announce all at once."""
        announce = beam.Map(_announce, self.output, self.kind).with_output_types(None)
        return texts | "AllTexts" >> ToList() | "Announce" >> announce


def _announce(shards: Sequence[TextShard], output: str, kind: str) -> None:
    progress.announce(output, kind, pieces=len(shards), size=sum(s.size for s in shards))
