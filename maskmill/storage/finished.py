"""Work in object stores that is known to be finished from a listing: each object still has the checksum it had then.

To look at each piece of a finished build takes hundreds of requests; a listing tells of a thousand objects. A local
directory is not listed: its files are looked at one by one, which takes no time.
"""

import hashlib
from collections.abc import Callable, Sequence

from maskmill.storage import completions, files

FINISHED = "finished"  # the kind of the records
_OF_RUNS = tuple(f"/{completions.work_name(kind, '')}" for kind in (FINISHED, completions.RUN, completions.REMADE))


def store(place: str, name: str, key: str, directories: Sequence[str]) -> None:
    """Remember that what lies below directories of a store is finished.

    Args:
      place: the directory of a stage, in whose work directory the record lies.
      name: of what is finished.
      key: a fingerprint of all that it depends on.
      directories: of what was made.
    """
    if not files.is_local(place) and (listed := _digest(directories)):
        completions.store(place, FINISHED, name, {"key": key, "objects": listed})


def is_so(place: str, name: str, key: Callable[[], str], directories: Sequence[str]) -> bool:
    """Return whether the same work is finished, and every object below the directories is as it was then.

    key: gives the fingerprint; called last, because it may read all local inputs.
    """
    if files.is_local(place):
        return False
    record = completions.load(place, FINISHED, name)
    return record is not None and record["objects"] == _digest(directories) and record["key"] == key()


def _digest(directories: Sequence[str]) -> str:
    """Return a checksum over the paths and checksums of all objects below directories; "" where a store tells none.

    What is said of runs does not count: it is written once the work is done.
    """
    digest = hashlib.sha256()
    for directory in directories:
        for file in files.objects_below(directory):
            if not file.checksum:
                return ""
            if not any(folder in file.path for folder in _OF_RUNS):
                digest.update(f"{file.path}\t{file.size}\t{file.checksum}\n".encode())
    return digest.hexdigest()
