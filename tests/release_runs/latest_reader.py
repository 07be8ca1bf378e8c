"""A process that reads the latest release over and over while others build.

python latest_reader.py ROOT     until its standard input ends; prints what it found, as JSON
"""

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_PAUSE = 0.02  # seconds between two looks


@contextlib.contextmanager
def polling(root: str) -> Iterator[dict[str, Any]]:
    """Polls the latest release while the block runs; afterwards the mapping has `looks`, `names` and `problems`."""
    found: dict[str, Any] = {}
    process = _start(root)
    try:
        yield found
    finally:
        printed = process.communicate()[0]
    assert process.returncode == 0, printed
    found.update(json.loads(printed))


def _start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, __file__, *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _until_input_ends() -> threading.Event:
    ended = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    return ended


def _poll(root: str) -> None:
    from maskmill.releases.pointer import read_latest

    ended, looks, names, problems = _until_input_ends(), 0, set(), []
    while not ended.wait(_PAUSE):
        latest = read_latest(root)
        looks += 1
        if latest is None:
            problems.append("latest.json is not there")
            continue
        names.add(str(latest.name))
        problem = _problem_of(root, latest)
        # A release may be removed once another one is the latest.
        if problem and read_latest(root) == latest:
            problems.append(f"{latest.name}: {problem}")
    print(json.dumps({"looks": looks, "names": sorted(names), "problems": problems}))


def _problem_of(root: str, latest: Any) -> str:
    """What is wrong with the latest release; empty where it is whole."""
    from maskmill.errors import RunFailedError, UnusableInputError
    from maskmill.releases.names import release_path
    from maskmill.releases.records import fingerprint, read_record
    from maskmill.storage import files

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


if __name__ == "__main__":
    _poll(sys.argv[1])
