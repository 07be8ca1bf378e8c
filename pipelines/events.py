"""Who is told of a build: a summary in JSON, a webhook, OpenLineage, and metrics for Prometheus.

A build calls the methods of `Events` as it goes on. None of them raises, and none waits for a server: whoever cannot be
told does not stop the build.
"""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pipelines.release_options import EventsOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """A build whose events are told.

    Attributes:
      id: of this run, a UUID as text; another one when the build is started again.
      output: the build file's `output`: with releases the directory above them all.
      directory: where the stages' directories are: the release's, or `output` itself.
      release: the release's name as text; empty for a plain build.
      config: the path of the build's file.
      options: the build's options as plain values, by section.
      stages: the names of the stages that it runs, in order.
      dump: what is known of the dump (wiki, date, layout, files); empty where it is none.
    """

    id: str
    output: str
    directory: str
    release: str = ""
    config: str = ""
    options: Mapping[str, Any] = MappingProxyType({})
    stages: tuple[str, ...] = ()
    dump: Mapping[str, Any] = MappingProxyType({})


class Events:
    """Tells those whom the section `events` names."""

    def __init__(self, options: EventsOptions) -> None:
        """Says whom to tell; nobody is told yet."""
        self._options = options

    def started(self, run: Run) -> None:
        """A build begins its work."""

    def stage_finished(self, run: Run, name: str, manifest: Mapping[str, Any]) -> None:
        """A stage is finished; training has an empty manifest."""

    def finished(self, run: Run) -> None:
        """A build is done, its release is complete."""

    def failed(self, run: Run, error: BaseException) -> None:
        """A build has ended with an error."""

    def nothing_new(self, output: str) -> None:
        """A look at the newest dump, or at a release, has found that nothing is to be done."""

    def close(self) -> None:
        """Waits for what is still being sent, for some seconds at most."""


def new_run_id() -> str:
    """The id of a run that begins now."""
    import uuid

    return str(uuid.uuid4())
