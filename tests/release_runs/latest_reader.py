"""Reads the latest release over and over while others build."""

import contextlib
import dataclasses
import hashlib
import json
import os
import threading
from collections.abc import Iterator

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.releases.names import release_path
from maskmill.releases.pointer import Latest, read_latest
from maskmill.releases.records import fingerprint, read_record
from maskmill.storage import files

_PAUSE = 0.02  # seconds between two looks


@dataclasses.dataclass
class Polled:
    """What was found: how many looks, the names of the latest releases, and what was wrong with them."""

    looks: int = 0
    names: set[str] = dataclasses.field(default_factory=set)
    problems: list[str] = dataclasses.field(default_factory=list)

    def look(self, root: str) -> None:
        """Looks once."""
        latest = read_latest(root)
        self.looks += 1
        if latest is None:
            self.problems.append("latest.json is not there")
            return
        self.names.add(str(latest.name))
        problem = _problem_of(root, latest)
        # A release may be removed once another one is the latest.
        if problem and read_latest(root) == latest:
            self.problems.append(f"{latest.name}: {problem}")


@contextlib.contextmanager
def polling(root: str) -> Iterator[Polled]:
    """Polls the latest release, in a thread, while the block runs."""
    polled, ended = Polled(), threading.Event()

    def poll() -> None:
        while not ended.wait(_PAUSE):
            polled.look(root)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield polled
    finally:
        ended.set()
        thread.join()


def _problem_of(root: str, latest: Latest) -> str:
    """What is wrong with the latest release; empty where it is whole."""
    directory = release_path(root, latest.name)
    try:
        record = read_record(directory)
        if record is None:
            return "it is not complete"
        if fingerprint(record) != latest.fingerprint:
            return "its fingerprint is another one"
        for stage, facts in record.stages.items():
            folder = files.join(directory, facts["directory"])
            content = files.read_bytes(files.join(folder, "manifest.json"))
            if hashlib.sha256(content).hexdigest() != facts["manifest_sha256"]:
                return f"the manifest of {stage} is another one"
            for shard in json.loads(content)["shards"]:
                if files.size(files.join(folder, shard["name"])) != shard["bytes"]:
                    return f"{stage}: {shard['name']} is not whole"
    except (RunFailedError, UnusableInputError, OSError) as error:
        return str(error)
    if files.is_local(root) and not os.path.exists(os.path.join(root, "latest", "release.json")):
        return "the link names no complete release"
    return ""
