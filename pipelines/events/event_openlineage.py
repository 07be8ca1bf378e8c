"""OpenLineage events of builds, through OpenLineage's own client (extra [events]).

A build is a run, each of its stages another one whose parent it is. Input and output data sets bear the sha256 of their
manifests and files, which `maskmill lineage` reads, too. https://openlineage.io/docs/spec/object-model
"""

import importlib.util
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.storage import files
from maskmill.storage.paths import is_web
from maskmill.storage.web_client import TransientError
from pipelines.events.event_delivery import Delivery, refuse
from pipelines.events.event_summary import Run, Told, folder_of, iso

PRODUCER = "urn:maskmill"
# The number of our own facets; their fields are described in docs/events.md.
_SCHEMA = "urn:maskmill:openlineage-facet:1"
_TIMEOUT = 10.0  # seconds without an answer after which a try has failed
# The run of a scheduler that has started the build, as OpenLineage's integrations hand it on: NAMESPACE/JOB/RUN-ID.
_PARENT = "OPENLINEAGE_PARENT_ID"
_MOST_FILES = 100  # of a data set whose checksums one event lists


def _parent(text: str) -> tuple[str, str, str] | None:
    """The namespace, the job and the run id of a parent; None without one.

    Raises:
      UnusableInputError: the text names none.
    """
    if not text:
        return None
    parts = text.rsplit("/", 2)
    try:
        uuid.UUID(parts[-1])
    except ValueError:
        parts = []
    if len(parts) != 3 or not all(parts):
        raise UnusableInputError(f"{_PARENT} is {text!r}; it must be NAMESPACE/JOB/RUN-ID, where RUN-ID is a UUID.")
    return parts[0], parts[1], parts[2]


def _client(place: str) -> Any:
    from openlineage.client import OpenLineageClient, set_producer
    from openlineage.client.transport.file import FileConfig, FileTransport
    from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport, TokenProvider

    set_producer(PRODUCER)
    if not is_web(place):
        files.make_directory(files.parent(place))
        return OpenLineageClient(transport=FileTransport(FileConfig(log_file_path=place, append=True)))
    key = os.environ.get("OPENLINEAGE_API_KEY")
    auth = ApiKeyTokenProvider({"api_key": key}) if key else TokenProvider({})
    # It is tried again in the thread that sends it.
    config = HttpConfig(url=place, timeout=_TIMEOUT, auth=auth, retry={"total": 0})
    return OpenLineageClient(transport=HttpTransport(config))


class OpenLineage:
    """Tells of builds as OpenLineage does: sends events to a server, or appends them to a file, a JSON object a line.

    place: http://, https://, or a path. namespace: of the jobs.

    Raises:
      UnusableInputError: the client is not installed, the place is none, or the environment names a parent wrongly.
    """

    def __init__(self, place: str, namespace: str) -> None:
        if importlib.util.find_spec("openlineage") is None:
            raise UnusableInputError(
                "events.openlineage needs OpenLineage's client; install it: pip install 'maskmill[events]'."
            )
        if not files.is_local(place) and not is_web(place):
            raise UnusableInputError(
                f"events.openlineage is {place!r}; it must be an http:// or https:// address, or a path of this "
                "machine."
            )
        self._client = _client(place)
        self._namespace = namespace
        self._parent = _parent(os.environ.get(_PARENT, ""))
        self._delivery: Delivery[Any] = Delivery(self._send)

    def tell(self, told: Told) -> None:
        """Sends what there is to tell of an event, in a thread."""
        for event in self._events_of(told):
            self._delivery.give(event)

    def close(self, seconds: float) -> str | None:
        """Waits for what is still being sent; returns what was not."""
        return self._delivery.close(seconds)

    def _send(self, event: Any) -> None:
        """Makes one try.

        Raises:
          TransientError: another one may succeed.
          RunFailedError: the server does not take it, or the file cannot be written.
        """
        import requests

        try:
            self._client.emit(event)
        except requests.HTTPError as error:
            status = 0 if error.response is None else error.response.status_code
            text = f"{status} {'' if error.response is None else error.response.reason}".rstrip()
            refuse(status, text)
        except requests.Timeout as error:
            raise TransientError("no answer in time") from error
        except (requests.RequestException, OSError) as error:
            raise TransientError("no connection") from error
        except Exception as error:
            # The client's transports have no exception of their own.
            raise RunFailedError(" ".join(str(error).split())) from error

    def _events_of(self, told: Told) -> Iterator[Any]:
        """OpenLineage's events of an event of ours; none of a look that found nothing new."""
        run = told.run
        if run is None or told.event == "nothing.new":
            return
        if told.event == "build.started":
            yield self._of_build(told, run, "START")
            for name in run.stages:
                yield self._of_stage(told, run, name, "START")
        elif told.stage is not None:
            yield self._of_stage(told, run, told.stage["name"], "COMPLETE")
        elif told.ended is not None:
            failed = bool(told.ended.exit_status)
            for name in told.summary["missing_stages"] if failed else ():
                yield self._of_stage(told, run, name, "FAIL")
            yield self._of_build(told, run, "FAIL" if failed else "COMPLETE")

    def _of_build(self, told: Told, run: Run, state: str) -> Any:
        summary = told.summary
        facets = {
            "maskmill_build": _facet(
                release=run.release or None, fingerprint=summary["fingerprint"], config=summary["config"]
            )
        }
        if self._parent is not None:
            facets["parent"] = _parent_facet(*self._parent)
        return self._event(told, state, run.id, facets, job_name(run.output), "BUILD")

    def _of_stage(self, told: Told, run: Run, name: str, state: str) -> Any:
        job = job_name(run.output)
        facets = {"parent": _parent_facet(self._namespace, job, run.id)}
        if told.stage is not None:
            stage = {key: told.stage.get(key) for key in ("seconds", "pieces", "reused", "counts", "manifest_sha256")}
            facets["maskmill_stage"] = _facet(**stage, parameters=told.made.get("parameters", {}))
        # The id of a stage's run follows from that of the build.
        run_id = str(uuid.uuid5(uuid.UUID(run.id), name))
        return self._event(told, state, run_id, facets, f"{job}.{name}", "STAGE")

    def _event(self, told: Told, state: str, run_id: str, facets: dict[str, Any], name: str, kind: str) -> Any:
        """An event of a run. facets: those that not every run has. name, kind: of the job."""
        from openlineage.client.event_v2 import Job, RunEvent, RunState
        from openlineage.client.event_v2 import Run as LineageRun
        from openlineage.client.facet_v2 import job_type_job

        job_type = job_type_job.JobTypeJobFacet(processingType="BATCH", integration="MASKMILL", jobType=kind)
        inputs, outputs = data_sets(told.run, told.stage, told.made) if told.run and told.stage else ([], [])
        return RunEvent(
            eventType=RunState[state],
            eventTime=iso(told.time),
            run=LineageRun(runId=run_id, facets=_run_facets(told, state) | facets),
            job=Job(namespace=self._namespace, name=name, facets={"jobType": job_type}),
            inputs=inputs,
            outputs=outputs,
            producer=PRODUCER,
        )


def job_name(output: str) -> str:
    """The job of a build: all builds of one data set are runs of it."""
    return f"build.{files.base_name(output.rstrip('/')) or 'root'}"


def _parent_facet(namespace: str, job: str, run_id: str) -> Any:
    from openlineage.client.facet_v2 import parent_run

    return parent_run.ParentRunFacet(
        run=parent_run.Run(runId=run_id), job=parent_run.Job(namespace=namespace, name=job)
    )


def _run_facets(told: Told, state: str) -> dict[str, Any]:
    from openlineage.client.facet_v2 import error_message_run, nominal_time_run, processing_engine_run

    facets: dict[str, Any] = {
        "processing_engine": processing_engine_run.ProcessingEngineRunFacet(
            version=told.summary["maskmill"], name="maskmill"
        )
    }
    date = str(told.summary["dump"].get("date", ""))
    if date:
        facets["nominalTime"] = nominal_time_run.NominalTimeRunFacet(nominalStartTime=f"{date}T00:00:00Z")
    if state == "FAIL" and told.ended is not None:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
            message=told.ended.error, programmingLanguage="PYTHON"
        )
    return facets


def data_sets(run: Run, stage: Mapping[str, Any], made: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """The input and output data sets of a finished stage.

    Files that lie in a directory of the build are the data set that this directory is; others are one each.
    """
    from openlineage.client.event_v2 import InputDataset, OutputDataset
    from openlineage.client.facet_v2 import dataset_version_dataset, output_statistics_output_dataset

    inside: dict[str, list[Mapping[str, Any]]] = {}
    inputs = []
    for entry in made.get("inputs", ()):
        path = str(entry["path"])
        if path.startswith(f"{run.directory.rstrip('/')}/"):
            inside.setdefault(files.parent(path), []).append(entry)
            continue
        namespace, named = data_set_name(path)
        inputs.append(InputDataset(namespace=namespace, name=named, facets={"maskmill_checksums": _checksums([entry])}))
    if stage["name"] == "train":
        inside[folder_of(run.directory, "examples")] = []
    for directory, entries in inside.items():
        namespace, named = data_set_name(directory)
        facets = {"maskmill_checksums": _checksums(entries)} if entries else {}
        inputs.append(InputDataset(namespace=namespace, name=named, facets=facets))
    namespace, named = data_set_name(str(stage["directory"]))
    facets = {}
    if "manifest_sha256" in stage:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=stage["manifest_sha256"])
        facets["maskmill_checksums"] = _checksums(made.get("shards", ()))
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=_rows(stage), size=stage.get("bytes"), fileCount=stage.get("shards", stage.get("checkpoints"))
    )
    output = OutputDataset(
        namespace=namespace, name=named, facets=facets, outputFacets={"outputStatistics": statistics}
    )
    return inputs, [output]


def _rows(stage: Mapping[str, Any]) -> int | None:
    """How many rows a stage's data have: examples, else documents; None where neither is counted."""
    counts = stage.get("counts") or {}
    for what in ("examples", "documents", "picked"):
        found = [counts[split][what] for split in ("train", "eval") if what in counts.get(split, {})]
        if found:
            return int(sum(found))
    return None


def data_set_name(path: str) -> tuple[str, str]:
    """The namespace and the name of files, as OpenLineage's naming has them: `gs://bucket` and the object's name."""
    if "://" in path:
        scheme, _, rest = path.partition("://")
        place, _, name = rest.partition("/")
        return f"{scheme}://{place}", name.rstrip("/") or "/"
    return "file", os.path.abspath(path)


def _checksums(entries: Sequence[Mapping[str, Any]]) -> Any:
    """The files of a data set with their sha256: the first ones of many."""
    listed = [
        {"name": str(entry.get("path", entry.get("name"))), "bytes": entry.get("bytes"), "sha256": entry.get("sha256")}
        for entry in entries[:_MOST_FILES]
    ]
    return _facet(files=listed, count=len(entries))


def _facet(**fields: Any) -> Any:
    """A facet of our own, with the address of its description as OpenLineage wants it."""
    from openlineage.client.facet_v2 import BaseFacet

    class Facet(BaseFacet):
        @staticmethod
        def _get_schema() -> str:
            return _SCHEMA

    return Facet().with_additional_properties(**fields)
