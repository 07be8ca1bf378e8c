"""The paths and names of the releases below a directory.

ROOT/latest.json                  names the latest release (pointer.py)
ROOT/latest                       a symlink to it, on local disks
ROOT/releases/NAME/               a release: text, examples, eval, train, report.html
ROOT/releases/NAME/release.json   what it was made from; written last, so a release that has it is complete
ROOT/releases/.state/NAME.lock    the process that builds or removes it (locks.py)
"""

import dataclasses
import datetime
import re

from maskmill.storage import files

RELEASES = "releases"
STATE = ".state"
RECORD = "release.json"
LATEST = "latest.json"
LATEST_LINK = "latest"

_NAME = re.compile(r"([a-z0-9][a-z0-9_]*)-(\d{4}-\d\d-\d\d)-([0-9a-f]{8})")
DIGEST_DIGITS = 8


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReleaseName:
    """The name of a release.

    Attributes:
      wiki: of its dump, such as enwiki; of another corpus the name in its build's options.
      date: of its dump, ISO.
      digest: 8 hexadecimal digits over all that determines its content: configuration, inputs, the code's formats.
    """

    wiki: str
    date: str
    digest: str

    def __str__(self) -> str:
        return f"{self.wiki}-{self.date}-{self.digest}"

    @classmethod
    def parse(cls, text: str) -> "ReleaseName | None":
        """Parse the name of a release; return None if `text` is not one."""
        match = _NAME.fullmatch(text)
        if match is None:
            return None
        try:
            datetime.date.fromisoformat(match[2])
        except ValueError:
            return None
        return cls(wiki=match[1], date=match[2], digest=match[3])


def release_path(root: str, name: ReleaseName) -> str:
    """Return the directory of a release below the directory of a build's `output`."""
    return files.join(files.join(root, RELEASES), str(name))


def state_path(root: str, name: ReleaseName, what: str) -> str:
    """Return the path of a file about a release that is outside its directory; `what` is lock or record."""
    return files.join(files.join(root, RELEASES), f"{STATE}/{name}.{what}")


def find_release(path: str) -> tuple[str, ReleaseName] | None:
    """Return the release that contains a path, as the directory above all releases and the name; else None."""
    parts = path.rstrip("/").split("/")
    for place in range(len(parts) - 1, 0, -1):
        name = ReleaseName.parse(parts[place])
        if name is not None and parts[place - 1] == RELEASES:
            return "/".join(parts[: place - 1]) or ("/" if path.startswith("/") else "."), name
    return None
