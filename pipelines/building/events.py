"""The events of a build: `--on_event COMMAND` gets each one as a JSON object on standard input.

    {"event": "finished", "time": "2026-11-23T02:38:35.120Z", "run": {…}, "stages": {…}, …}

A command that fails causes a line of warning. It neither ends a build nor changes a byte of it.
"""

import contextlib
import dataclasses
import datetime
import json
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Self

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.mirrors.dumps import Dump
from maskmill.releases import fingerprints, names
from maskmill.storage import files, manifest
from pipelines.building import downloads
from pipelines.building.build_options import BuildOptions
from pipelines.terminal import console

SCHEMA_VERSION = 2  # of the JSON; a new key does not raise it
MOST_SECONDS = 60.0  # that a command may take for an event

Event = Literal["started", "finished", "failed"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """A build whose events are sent.

    Attributes:
      command: run with /bin/sh for each event; None: no events are sent.
      output: the build file's `output`: with releases the directory above them all.
      directory: the directory above those of the stages: the release's, or `output` itself.
      release: the release's name as text; empty for a plain build.
      config: the path of the build's file.
      stages: the names of the stages to run, in order.
      reaches_end: whether the last of them is the build's last stage.
      dump: the dump (wiki, date, layout, files), if one is known.
      began: seconds since the epoch. id: of this run, a UUID as text.
    """

    command: str | None
    output: str
    directory: str
    release: str = ""
    config: str = ""
    stages: tuple[str, ...] = ()
    reaches_end: bool = True
    dump: Mapping[str, Any] | None = None
    began: float = dataclasses.field(default_factory=time.time)
    id: str = dataclasses.field(default_factory=lambda: str(uuid.uuid4()))

    @classmethod
    def of(cls, options: BuildOptions, config: str) -> Self:
        """Return the run of a build of which it is not known yet what is to be built; config: the path of its file."""
        return cls(command=options.on_event, output=options.output, directory=options.output, config=config)

    def doing(self, names: Sequence[str], build: BuildOptions, dump: Dump | None) -> Self:
        """Return the run, now that it is known: the names of its stages, the build in its directory, its dump."""
        return dataclasses.replace(
            self,
            directory=build.output,
            stages=tuple(names),
            reaches_end=names[-1] == build.names[-1],
            dump=downloads.described(dump),
        )

    def send(self, event: Event, *, error: BaseException | None = None, is_new: bool = True) -> None:
        """Send an event; print a warning if the command fails.

        Args:
          event: its name.
          error: the error that ended a failed build.
          is_new: whether the run made data; False if there was nothing to do.
        """
        if self.command is None:
            return
        try:
            _call(self.command, json.dumps(self._describe(event, error, is_new), ensure_ascii=False))
        except (OSError, UnusableInputError, RunFailedError) as failure:
            console.tell(f"warning: on_event: the event {event} was not sent: {failure}", level="WARNING")

    @contextlib.contextmanager
    def sending_failures(self, *kinds: type[BaseException]) -> Iterator[None]:
        """Send the event `failed` if the block raises an exception of these kinds."""
        try:
            yield
        except kinds as error:
            self.send("failed", error=error)
            raise

    def _describe(self, event: Event, error: BaseException | None, is_new: bool) -> dict[str, Any]:
        """Describe an event (docs/events.md)."""
        now = time.time()
        has_ended = event != "started"
        digests = fingerprints.manifest_digests(self.directory) if has_ended else {}
        is_complete = event == "finished" and self.reaches_end and self._has_record()
        return {
            "schema_version": SCHEMA_VERSION,
            "event": event,
            "time": _iso(now),
            "run": {
                "id": self.id,
                "began": _iso(self.began),
                "seconds": round(now - self.began, 3),
                "exit_status": _exit_status(error) if has_ended else None,
                "error": None if error is None else _sentence(error),
                "stages": list(self.stages),
            },
            "config": self.config or None,
            "output": self.output,
            "directory": self.directory,
            "release": self.release or None,
            "dump": dict(self.dump) if self.dump else None,
            "new": is_new,
            "complete": is_complete,
            # Only with all stages: if one is missing, it would be the fingerprint of other data.
            "fingerprint": fingerprints.fingerprint_of(digests) if is_complete and digests else None,
            "stages": {name: self._describe_stage(name, digest) for name, digest in digests.items()},
        }

    def _describe_stage(self, name: str, digest: str) -> dict[str, Any]:
        directory = files.join(self.directory, fingerprints.DATA_STAGES[name])
        listing = manifest.read_manifest(directory)
        listed = [file for shard in listing["shards"] for file in manifest.files_of_shard(shard)]
        return {
            "directory": directory,
            "manifest_sha256": digest,
            "counts": dict(listing.get("counts", {})),
            "shards": len(listing["shards"]),
            "bytes": sum(int(file.get("bytes") or 0) for file in listed),
        }

    def _has_record(self) -> bool:
        """Return whether the release is complete; a plain build has no record."""
        return not self.release or files.exists(files.join(self.directory, names.RECORD))


def _call(command: str, content: str) -> None:
    """Run a command with `content` on its standard input.

    Raises:
      RunFailedError: it failed, or took longer than MOST_SECONDS.
    """
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,  # so that its child processes can be killed with it
    )
    try:
        _, errors = process.communicate(content.encode(), timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise RunFailedError(f"its command was ended after {MOST_SECONDS:g} seconds") from None
    if process.returncode:
        last = errors.decode(errors="replace").strip().rpartition("\n")[2]
        raise RunFailedError(f"its command ended with {process.returncode}" + (f" ({last})" if last else ""))


def _exit_status(error: BaseException | None) -> int:
    return 0 if error is None else 2 if isinstance(error, UnusableInputError) else 1


def _sentence(error: BaseException) -> str:
    is_own = isinstance(error, UnusableInputError | RunFailedError)
    return str(error) if is_own else f"{type(error).__name__}: {error}"


def _iso(seconds: float) -> str:
    """Return a time in seconds since the epoch as text, such as 2026-11-23T02:38:35.120Z."""
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
