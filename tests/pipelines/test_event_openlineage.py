"""OpenLineage events, as OpenLineage's own client sends them."""

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from data_sets.whole_builds import Made, extract_text, make_build
from servers.event_receiver import Receiver, receive

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.storage import manifest, outcomes
from pipelines.events import event_openlineage, event_summary, events
from pipelines.settings.release_options import EventsOptions

RUN = str(uuid.UUID(int=7))
STAGES = {"extract": "text", "examples": "examples", "eval": "eval"}


def result_of(directory: str) -> outcomes.Result:
    result = outcomes.last_result(directory)
    assert result is not None
    return result


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("whole") / "enwiki"
    return make_build(root, extract_text(root.parent / "text", documents=6, eval_articles=1), picked=5)


@pytest.fixture
def run(whole: Made) -> event_summary.Run:
    return event_summary.Run(
        id=RUN, output=str(whole.root), directory=str(whole.root), stages=tuple(STAGES), dump={"date": "2016-05-01"}
    )


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receive() as one:
        yield one


def tell(place: str, run: event_summary.Run, *, failing_at: str | None = None) -> None:
    told = events.Events(EventsOptions(openlineage=place, openlineage_namespace="team"))
    told.started(run)
    for name, folder in STAGES.items():
        if name == failing_at:
            told.failed(run, RunFailedError("The disk is full."))
            break
        told.stage_finished(
            run,
            name,
            result_of(f"{run.directory}/{folder}"),
        )
    else:
        told.finished(run)
    told.close()


def written(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def brief(event: Any) -> tuple[str, str]:
    return event["eventType"], event["job"]["name"]


def test_a_build_and_its_stages_are_runs(run: event_summary.Run, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    tell(str(path), run)
    found = written(path)
    assert [brief(event) for event in found] == [
        ("START", "build.enwiki"),
        *[("START", f"build.enwiki.{name}") for name in STAGES],
        *[("COMPLETE", f"build.enwiki.{name}") for name in STAGES],
        ("COMPLETE", "build.enwiki"),
    ]
    assert {event["job"]["namespace"] for event in found} == {"team"}
    runs = {brief(event)[1]: event["run"]["runId"] for event in found}
    assert runs["build.enwiki"] == RUN
    assert len(set(runs.values())) == 4
    for event in found:
        assert runs[brief(event)[1]] == event["run"]["runId"]
        if event["job"]["name"] != "build.enwiki":
            assert event["run"]["facets"]["parent"]["run"]["runId"] == RUN
        assert event["run"]["facets"]["nominalTime"]["nominalStartTime"] == "2016-05-01T00:00:00Z"


def test_data_sets_bear_checksums_and_hang_together(run: event_summary.Run, whole: Made, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    tell(str(path), run)
    made = {name: manifest.read_manifest(f"{run.directory}/{folder}") for name, folder in STAGES.items()}
    ends = {e["job"]["name"].rpartition(".")[2]: e for e in written(path) if e["eventType"] == "COMPLETE"}
    (dump,) = ends["extract"]["inputs"]
    assert (dump["namespace"], dump["name"]) == ("file", made["extract"]["inputs"][0]["path"])
    assert dump["facets"]["maskmill_checksums"]["_schemaURL"] == "urn:maskmill:openlineage-facet:1"
    assert dump["facets"]["maskmill_checksums"]["files"][0]["sha256"] == made["extract"]["inputs"][0]["sha256"]
    for name in ("examples", "eval"):
        before = "extract" if name == "examples" else "examples"
        (given,), (*_, taken) = ends[before]["outputs"], ends[name]["inputs"]  # a vocabulary comes first
        assert (given["namespace"], given["name"]) == (taken["namespace"], taken["name"])
    (output,) = ends["examples"]["outputs"]
    assert output["facets"]["version"]["datasetVersion"] == _sha256(whole.root / "examples" / "manifest.json")
    listed = output["facets"]["maskmill_checksums"]["files"]
    assert [file["sha256"] for file in listed] == [shard["sha256"] for shard in made["examples"]["shards"]]
    counts = made["examples"]["counts"]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == sum(
        counts[split]["examples"] for split in ("train", "eval")
    )


def _sha256(path: Path) -> str:
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_failure_ends_the_stages_that_are_missing(run: event_summary.Run, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    tell(str(path), run, failing_at="examples")
    ends = [event for event in written(path) if event["eventType"] != "START"]
    assert [brief(event) for event in ends] == [
        ("COMPLETE", "build.enwiki.extract"),
        ("FAIL", "build.enwiki.examples"),
        ("FAIL", "build.enwiki.eval"),
        ("FAIL", "build.enwiki"),
    ]
    assert ends[-1]["run"]["facets"]["errorMessage"]["message"] == "The disk is full."


def test_a_server_gets_the_events(run: event_summary.Run, receiver: Receiver) -> None:
    receiver.statuses.append(503)  # the first event is sent again
    tell(receiver.url.removesuffix("/hook"), run)
    assert {one.path for one in receiver.received} == {"/api/v1/lineage"}
    assert len(receiver.received) == 9
    assert receiver.received[0].body == receiver.received[1].body
    assert brief(receiver.received[-1].json) == ("COMPLETE", "build.enwiki")


@pytest.mark.parametrize("status", [401, 422])
def test_a_server_that_refuses_is_one_warning(
    status: int, run: event_summary.Run, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    receiver.statuses.extend([status] * 8)
    tell(receiver.url.removesuffix("/hook"), run)
    said = capsys.readouterr().err
    assert said.startswith(f"maskmill: warning: events.openlineage: 8 of 8 events could not be delivered ({status}")
    assert said.count("\n") == 1


def test_a_file_that_cannot_be_written_is_one_warning(
    run: event_summary.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tell(str(tmp_path), run)  # a directory
    said = capsys.readouterr().err
    assert "events.openlineage: 8 of 8 events could not be delivered" in said
    assert said.count("\n") == 1


def test_the_run_that_started_a_build_is_its_parent(
    run: event_summary.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = str(uuid.UUID(int=9))
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", f"air/flow/dag.task/{parent}")
    path = tmp_path / "events.jsonl"
    tell(str(path), run)
    of_builds = [event for event in written(path) if event["job"]["name"] == "build.enwiki"]
    for event in of_builds:
        facet = event["run"]["facets"]["parent"]
        assert (facet["run"]["runId"], facet["job"]["namespace"], facet["job"]["name"]) == (
            parent,
            "air/flow",
            "dag.task",
        )
    assert len(of_builds) == 2


@pytest.mark.parametrize("text", ["dag", "team/dag/17", f"dag/{uuid.UUID(int=9)}"])
def test_a_parent_that_is_none_is_refused(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", text)
    with pytest.raises(UnusableInputError, match="it must be NAMESPACE/JOB/RUN-ID"):
        events.Events(EventsOptions(openlineage=str(tmp_path / "events.jsonl")))


def test_a_place_of_another_kind_is_refused() -> None:
    with pytest.raises(UnusableInputError, match=r"'gs://bucket/events'; it must be"):
        events.Events(EventsOptions(openlineage="gs://bucket/events"))


def test_without_the_client_its_extra_is_named(tmp_path: Path) -> None:
    program = (
        "import importlib.util, sys\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *a: None if name == 'openlineage' else find(name, *a)\n"
        "from pipelines.events import events\nfrom pipelines.settings import release_options\n"
        "events.Events(release_options.EventsOptions(openlineage='events.jsonl'))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "install it: pip install 'maskmill[events]'." in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("gs://bucket/text/part-0", ("gs://bucket", "text/part-0")),
        ("https://host/a/b", ("https://host", "a/b")),
        ("/data/text/", ("file", "/data/text")),
        ("gs://bucket", ("gs://bucket", "/")),
    ],
)
def test_names_of_data_sets_follow_openlineage(path: str, name: tuple[str, str]) -> None:
    assert event_openlineage.data_set_name(path) == name
