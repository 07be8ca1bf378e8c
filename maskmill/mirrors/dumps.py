"""What is known of a dump on a mirror, whatever its layout."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Self

from maskmill.errors import RunFailedError


class DumpGoneError(RunFailedError):
    """A file of the dump is not on the mirror any more."""


class DumpChangedError(RunFailedError):
    """The mirror has other files under the same names than when the dump was found; look for it again."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DumpFile:
    """A file of a dump.

    Attributes:
      name: without a directory.
      url: where it is: http(s)://, gs:// or a local path.
      size: in bytes; None where the mirror does not say.
      checksum: in hexadecimal; empty where the mirror publishes none.
      algorithm: of the checksum: sha256, sha1 or md5; empty without one.
      is_index: whether it is the index of a multistream file, which no build needs.
      others: other checksums that the mirror publishes, by their algorithms. A download is held against all.
    """

    name: str
    url: str
    size: int | None = None
    checksum: str = ""
    algorithm: str = ""
    is_index: bool = False
    others: Mapping[str, str] = dataclasses.field(default_factory=dict, compare=False)

    @classmethod
    def with_sums(cls, sums: Mapping[str, str], *, name: str, url: str, size: int | None, is_index: bool) -> Self:
        """A file with checksums by their algorithms, the best one first."""
        algorithm = next(iter(sums), "")
        return cls(
            name=name,
            url=url,
            size=size,
            checksum=sums.get(algorithm, ""),
            algorithm=algorithm,
            is_index=is_index,
            others={other: sums[other] for other in sums if other != algorithm},
        )

    @property
    def sums(self) -> dict[str, str]:
        """All checksums by their algorithms."""
        return ({self.algorithm: self.checksum} if self.algorithm else {}) | dict(self.others)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dump:
    """A complete dump on a mirror.

    Attributes:
      wiki: as enwiki.
      date: ISO; one for all files.
      layout: classic, content or listing.
      files: its pages' files, in order of their names; indexes among them.
    """

    wiki: str
    date: str
    layout: str
    files: Sequence[DumpFile]

    @property
    def size(self) -> int | None:
        """The bytes of all files; None where a size is not known."""
        sizes = [file.size for file in self.files]
        return None if None in sizes else sum(size for size in sizes if size is not None)


def part_twice(files: Sequence[DumpFile]) -> str | None:
    """That two parts have the same content, so that the pages of one are lost, as a clause; None where none have."""
    seen: dict[str, str] = {}
    for file in files:
        if file.checksum and not file.is_index:
            other = seen.setdefault(file.checksum, file.name)
            if other != file.name:
                return f"{file.name} has the same checksum as {other}"
    return None
