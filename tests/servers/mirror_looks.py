"""What the tests of mirrors look for on one."""

from maskmill.mirrors import newest
from maskmill.mirrors.client import MirrorClient
from maskmill.mirrors.dumps import Dump


class Looks:
    """What is found on a mirror, and what was said of what does not count.

    Attributes:
      dumps: newest first.
      said: the lines.
    """

    def __init__(
        self,
        source: str,
        client: MirrorClient,
        layout: str = "auto",
        wiki: str | None = "enwiki",
        pattern: str = "*.xml*",
    ) -> None:
        self.said: list[str] = []
        found = newest.dumps(source, wiki=wiki, layout=layout, pattern=pattern, client=client, say=self.said.append)
        self.dumps = list(found)

    @property
    def dates(self) -> list[str]:
        """The dates of the dumps."""
        return [dump.date for dump in self.dumps]

    @property
    def names(self) -> list[list[str]]:
        """The names of the dumps' files."""
        return [[file.name for file in dump.files] for dump in self.dumps]

    @property
    def newest(self) -> Dump:
        """The newest dump; there must be one."""
        return self.dumps[0]
