"""Who is told of a build: a summary in JSON, a webhook, OpenLineage, and metrics for Prometheus.

A build calls the methods of `Events` as it goes on. None of them raises because somebody cannot be told, and none waits
for a server: that is one line of warning at the end.
"""

import dataclasses
import os
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.releases import fingerprints, names
from maskmill.storage import files, manifest, outcomes
from maskmill.storage.outcomes import Result
from pipelines.events import event_metrics, event_summary
from pipelines.events.event_summary import Ended, Run, Told
from pipelines.events.event_webhook import Webhook
from pipelines.settings.release_options import EventsOptions

LAST_SECONDS = 10.0  # for which a command that is done waits for what is still being sent

STARTED, STAGE_FINISHED, FINISHED = "build.started", "stage.finished", "build.finished"
FAILED, NOTHING_NEW = "build.failed", "nothing.new"


class Listener(Protocol):
    """Somebody who is told."""

    def tell(self, told: Told) -> None:
        """Tells of an event, or begins to; raises UnusableInputError or RunFailedError if that cannot be."""

    def close(self, seconds: float) -> str | None:
        """Ends what `tell` began, in so many seconds; returns what of it failed, as part of a sentence."""
        del seconds
        return None


class Events:
    """Tells those whom the section `events` names."""

    def __init__(
        self, options: EventsOptions, *, clock: Callable[[], float] = time.time, last_seconds: float = LAST_SECONDS
    ) -> None:
        """Says whom to tell; nobody is told yet.

        Args:
          options: the section.
          clock: gives seconds since the epoch.
          last_seconds: for how long `close` waits.

        Raises:
          UnusableInputError: the section names a file that cannot be read, or an extra that is not installed.
        """
        self._clock = clock
        self._last_seconds = last_seconds
        self._listeners = _listeners(options, clock)
        self._has_readers = len(self._listeners) > 1 or options.summary is not None
        self._warned: set[str] = set()
        self._began = self._before = 0.0
        self._stages: dict[str, dict[str, Any]] = {}

    def started(self, run: Run) -> None:
        """A build begins its work."""
        self._began = self._before = self._clock()
        self._stages = {}
        self._tell(self._of_build(STARTED, run, None))

    def stage_finished(self, run: Run, name: str, result: Result) -> None:
        """A stage is finished; training has an empty manifest."""
        if not self._is_told(run):
            return
        now = self._clock()
        self._describe(run, name, result)
        stage = self._stages[name]
        # Of the training nothing is known but when it ended.
        stage.setdefault("seconds", round(now - self._before, 3))
        self._before = now
        told = self._of_build(STAGE_FINISHED, run, None)
        self._tell(dataclasses.replace(told, stage={"name": name, **stage}, made=result.made))

    def finished(self, run: Run) -> None:
        """A build has done what it was asked for; where that was the last stage, its release is complete."""
        self._describe_others(run)
        self._tell(self._of_build(FINISHED, run, Ended()))

    def failed(self, run: Run, error: BaseException) -> None:
        """A build has ended with an error."""
        self._tell(self._of_build(FAILED, run, how_it_ended(error)))

    def nothing_new(self, output: str, run: Run | None = None) -> None:
        """A look at the newest dump, or at a release, has found that nothing is to be done.

        Args:
          output: the build file's.
          run: what would have been built; None where that is not known.
        """
        if run is None:
            self._tell(Told(event=NOTHING_NEW, time=self._clock(), output=output))
            return
        self._describe_others(run)
        self._tell(self._of_build(NOTHING_NEW, run, Ended()))

    def close(self) -> None:
        """Waits for what is still being sent, for some seconds at most."""
        end = time.monotonic() + self._last_seconds
        for name, listener in self._listeners.items():
            failure = listener.close(max(0.0, end - time.monotonic()))
            if failure is not None:
                _print_warning(f"events.{name}: {failure}; the build itself does not depend on it.")
        self._listeners = {}

    def _is_told(self, run: Run) -> bool:
        """Whether anybody is told of a build: what nobody reads need not be looked up, perhaps in a store."""
        return self._has_readers or bool(run.release)

    def _describe(self, run: Run, name: str, result: Result, *, ran: bool = True) -> None:
        """Adds a stage to the summary."""
        stage: dict[str, Any] = {"directory": event_summary.folder_of(run.directory, name)}
        try:
            stage = event_summary.describe_stage(run.directory, name, result)
        except (OSError, UnusableInputError, RunFailedError) as error:
            self._warn(f"the summary lacks the stage {name}", error)
        self._stages[name] = stage | {"ran": ran} | ({} if ran else {"seconds": 0.0})

    def _describe_others(self, run: Run) -> None:
        """Adds the stages that were there already."""
        if not self._is_told(run):
            return
        for name in fingerprints.DATA_STAGES:
            if name in self._stages:
                continue
            result = outcomes.last_result(event_summary.folder_of(run.directory, name))
            if result is not None:
                self._describe(run, name, result, ran=False)

    def _of_build(self, event: str, run: Run, ended: Ended | None) -> Told:
        now = self._clock()
        began = self._began or now  # what failed before it began has neither a duration nor stages
        summary = _summary_of(run, self._stages, ended, began=began, now=now)
        return Told(event=event, time=now, output=run.output, run=run, summary=summary, ended=ended, began=began)

    def _tell(self, told: Told) -> None:
        for name, listener in self._listeners.items():
            try:
                listener.tell(told)
            except (OSError, UnusableInputError, RunFailedError) as error:
                self._warn(f"events.{name}", error)

    def _warn(self, what: str, error: Exception) -> None:
        """Says once what could not be told."""
        if what not in self._warned:
            self._warned.add(what)
            _print_warning(f"{what}: {error}")


def new_run_id() -> str:
    """The id of a run that begins now."""
    return str(uuid.uuid4())


def how_it_ended(error: BaseException) -> Ended:
    """The exit status and the sentence of a build that ended with an error."""
    if isinstance(error, UnusableInputError):
        return Ended(exit_status=2, error=str(error))
    sentence = str(error) if isinstance(error, RunFailedError) else f"{type(error).__name__}: {error}"
    return Ended(exit_status=1, error=sentence)


def _print_warning(text: str) -> None:
    sys.stderr.write(f"maskmill: warning: {text}\n")
    sys.stderr.flush()


def _summary_of(
    run: Run, stages: Mapping[str, Mapping[str, Any]], ended: Ended | None, *, began: float, now: float
) -> dict[str, Any]:
    """The summary of a build (docs/events.md)."""
    status = "running" if ended is None else "failed" if ended.exit_status else "done"
    digests = {name: stage["manifest_sha256"] for name, stage in stages.items() if "manifest_sha256" in stage}
    is_complete = _is_complete(run, status)
    return {
        "schema_version": event_summary.SCHEMA_VERSION,
        "run": {
            "id": run.id,
            "status": status,
            "exit_status": None if ended is None else ended.exit_status,
            "error": (ended.error or None) if ended is not None else None,
            "started": event_summary.iso(began),
            "ended": None if ended is None else event_summary.iso(now),
            "seconds": round(now - began, 3),
        },
        "maskmill": manifest.versions()["maskmill"],
        "config": {"path": run.config or None, "options": event_summary.config_of(run.options)},
        "release": run.release or None,
        "complete": is_complete,
        "output": run.output,
        "directory": run.directory,
        # Of all stages: while one is missing, it would be that of other data.
        "fingerprint": fingerprints.fingerprint_of(digests) if is_complete and digests else None,
        "dump": _dump_of(run, stages),
        "stages": {name: dict(stage) for name, stage in stages.items()},
        "missing_stages": [name for name in run.stages if name not in stages],
    }


def _dump_of(run: Run, stages: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What is known of a build's dump; the release's name and the text say something, too."""
    name, date = names.ReleaseName.parse(run.release), stages.get("extract", {}).get("dump_date")
    found = ({"date": date} if date else {}) if name is None else {"wiki": name.wiki, "date": name.date}
    return found | dict(run.dump)


def _is_complete(run: Run, status: str) -> bool:
    """Whether a build's data are all there: a release says so itself."""
    if status != "done":
        return False
    return not run.release or files.exists(files.join(run.directory, names.RECORD))


def _listeners(options: EventsOptions, clock: Callable[[], float]) -> dict[str, Listener]:
    """Those who are told, by the option that names them."""
    found: dict[str, Listener] = {"summary": _Summaries(options.summary)}
    if options.metrics is not None:
        found["metrics"] = _Metrics(options.metrics)
    if options.webhook is not None:
        found["webhook"] = Webhook(options.webhook, options.webhook_secret_file, clock)
    if options.openlineage is not None:
        from pipelines.events import event_openlineage

        found["openlineage"] = event_openlineage.OpenLineage(options.openlineage, options.openlineage_namespace)
    return found


class _Summaries(Listener):
    """Writes the summary of a build that ended: beside its release, and to the file that is named."""

    def __init__(self, path: str | None) -> None:
        self._path = path

    def tell(self, told: Told) -> None:
        run = told.run
        if run is None or told.ended is None:
            return
        if run.release:
            event_summary.write(event_summary.summary_path(run.output, run.release), told.summary)
        if self._path is not None:
            event_summary.write(self._path, told.summary)


class _Metrics(Listener):
    """Writes a file of metrics."""

    def __init__(self, path: str) -> None:
        self._path = path

    def tell(self, told: Told) -> None:
        # The same data set is the same, from whatever directory it is built.
        output = os.path.abspath(told.output) if files.is_local(told.output) else told.output
        if told.event == NOTHING_NEW:
            values = event_metrics.of_check(output, told.time)
        elif told.ended is not None:
            values = event_metrics.of_build(output, told, told.ended)
        else:
            return
        event_metrics.update(self._path, output, values)
