"""Work in object stores that is known to be finished from a listing: each object still has the checksum it had then.

To look at each piece of a finished build takes hundreds of requests; a listing tells of a thousand objects. A local
directory is not listed: its files are looked at one by one, which takes no time.
"""

import hashlib
from collections.abc import Callable, Iterable

from maskmill.storage import completions, files

FINISHED = "finished"  # the kind of the records
_OF_RUNS = tuple(f"/{completions.work_name(kind, '')}" for kind in (FINISHED, completions.RUN, completions.REMADE))


def store(place: str, name: str, key: str, there: Iterable[files.Listing]) -> None:
    """Remembers that what lies in directories of a store is finished.

    Args:
      place: the directory of a stage, in whose work directory the record lies.
      name: of what is finished.
      key: a fingerprint of all that it depends on.
      there: what lies below the directories of what was made.
    """
    if not files.is_local(place) and (listed := _digest(there)):
        completions.store(place, FINISHED, name, {"key": key, "objects": listed})


def may_be_so(place: str, name: str, there: files.Listing) -> bool:
    """Whether there is a record of finished work, as a listing of `place` tells."""
    return there.has(completions.work_path(place, FINISHED, f"{name}.json"))


def is_so(place: str, name: str, key: Callable[[], str], there: Iterable[files.Listing]) -> bool:
    """Whether the same work is finished, and every object below the directories is as it was then.

    there: what lies below them; looked at only if there is a record.
    key: gives the fingerprint; called last, because it may read all local inputs.
    """
    if files.is_local(place):
        return False
    record = completions.load(place, FINISHED, name)
    return record is not None and record["objects"] == _digest(there) and record["key"] == key()


def _digest(there: Iterable[files.Listing]) -> str:
    """A checksum over the paths and checksums of all objects below directories; "" where a store tells none.

    What is said of runs does not count: it is written once the work is done.
    """
    digest = hashlib.sha256()
    for listing in there:
        for file in listing.objects:
            if not file.checksum:
                return ""
            if not any(folder in file.path for folder in _OF_RUNS):
                digest.update(f"{file.path}\t{file.size}\t{file.checksum}\n".encode())
    return digest.hexdigest()
