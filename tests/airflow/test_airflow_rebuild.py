"""A real Airflow, from a new dump to a trained checkpoint, with a stage that hangs and one that fails in between."""

import dataclasses
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import airflow_processes
import pytest
from command_runs.commands import VOCAB, digests
from conftest import ROOT
from release_runs.watches import FIRST, SECOND, mirrored

pytestmark = pytest.mark.elsewhere

_STAGES = ("extract", "examples", "eval", "train")
_TASKS = ("look", "new_dump", "download", *_STAGES)
_DAG = "maskmill_rebuild"


def chain(*tasks: str) -> dict[str, list[str]]:
    """What follows each task where they follow one another."""
    return {task: list(tasks[place + 1 : place + 2]) for place, task in enumerate(tasks)}


@pytest.mark.parametrize(
    ("variables", "tasks"),
    [
        ({}, _TASKS),
        (
            {"MASKMILL_STAGES": "extract,vocabulary,examples", "MASKMILL_TRAINS": "false"},
            ("look", "new_dump", "download", "extract", "vocabulary", "examples"),
        ),
    ],
)
def test_the_dag_parses_without_a_warning(variables: dict[str, str], tasks: tuple[str, ...], tmp_path: Path) -> None:
    found = airflow_processes.parse_with_warnings(tmp_path, **variables)
    assert found == {"errors": [], "warnings": [], "dags": {_DAG: chain(*tasks)}}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seen:
    """What was seen of a rebuild when it was over.

    Attributes:
      tasks: its tasks by their ids.
      releases: the digests of the files of each complete release, by its name.
      latest: the release that is the latest one; None where there is none.
    """

    tasks: Mapping[str, Mapping[str, Any]]
    releases: Mapping[str, Mapping[str, str]]
    latest: str | None

    @property
    def states(self) -> list[str]:
        """The states of the tasks, in order."""
        return [self.tasks[name]["state"] for name in _TASKS]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Story:
    """What was seen one after the other.

    Attributes:
      killed: the rebuild of the first dump, whose extraction hung, until its task was marked as failed.
      failed: the same rebuild, after its failed tasks were cleared; its examples did not fit on the disk.
      mended: the same rebuild, after there was room and its failed tasks were cleared.
      second: the rebuild of a second dump.
      nothing: a run that finds nothing new.
      failure_log: of the last attempt at the stage that failed.
      events: how often each asset was updated.
    """

    killed: Seen
    failed: Seen
    mended: Seen
    second: Seen
    nothing: Seen
    failure_log: str
    events: Mapping[str, int]


def publish(mirror: Path, date: str) -> None:
    """Puts the sample dump into a mirror."""
    for name, content in mirrored(date).items():
        (mirror / name).parent.mkdir(parents=True, exist_ok=True)
        (mirror / name).write_bytes(content)


def write_config(path: Path, mirror: Path, output: Path) -> None:
    """Writes the file of a small build that watches the mirror and ends in a short training."""
    path.write_text(
        f"output: {output}\n"
        f"watch:\n  source: {mirror}\n  wiki: enwiki\n"
        "extract:\n  num_eval_articles: 7\n  shard_size_mb: 0.5\n"
        f"examples:\n  vocab_file: {VOCAB}\n  max_seq_length: 64\n  max_predictions_per_seq: 10\n  dupe_factor: 1\n"
        "eval:\n  num_examples_to_pick: 20\n"
        f"train:\n  vocab_file: {VOCAB}\n  preset: tiny\n  num_train_steps: 3\n  num_warmup_steps: 1\n"
        "  train_batch_size: 4\n  save_checkpoints_steps: 3\n"
    )


def write_command(path: Path, python: str, place: Path) -> str:
    """Writes a command that runs this checkout's maskmill; returns its path.

    While the file `hangs` is there, an extraction does nothing for ever, in two processes whose ids are in `pids`.
    While `full` is there, no file of examples can grow beyond 64 KB, as if the disk were full.
    """
    path.write_text(
        "#!/usr/bin/env bash\n"
        f"""if [[ -e {place}/hangs && "$*" == *"--until extract"* ]]; then\n"""
        f"""  sleep 1000 & echo "$$ $!" >{place}/pids.new; mv {place}/pids.new {place}/pids; wait\n"""
        "fi\n"
        f"""if [[ -e {place}/full && "$*" == *"--until examples"* ]]; then ulimit -f 64; fi\n"""
        f"""PYTHONPATH={ROOT} exec {python} -m maskmill "$@"\n"""
    )
    path.chmod(0o755)
    return str(path)


def look(airflow: airflow_processes.Airflow, name: str, output: Path) -> Seen:
    """Waits until a rebuild is over, and looks at it."""
    airflow.wait_for_run(_DAG, name)
    latest = output / "latest.json"
    return Seen(
        tasks=airflow.tasks(_DAG, name),
        releases={
            path.parent.name: digests(path.parent) for path in sorted((output / "releases").glob("*/release.json"))
        },
        latest=json.loads(latest.read_text())["release"] if latest.exists() else None,
    )


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Lets Airflow rebuild, with what can happen on the way."""
    place = tmp_path_factory.mktemp("rebuild")
    write_config(place / "build.yaml", place / "mirror", place / "root")
    variables = {
        "MASKMILL_CONFIG": str(place / "build.yaml"),
        "MASKMILL_COMMAND": write_command(place / "maskmill", sys.executable, place),
        "MASKMILL_TRAINING_COMMAND": write_command(place / "training", str(airflow_processes.training_python()), place),
        "MASKMILL_SCHEDULE": "",  # the test starts the runs
        "MASKMILL_RETRY_SECONDS": "1",
        "MASKMILL_RETRIES": "2",
    }
    with airflow_processes.running(place / "airflow", **variables) as airflow:
        return live(airflow, place)


def live(airflow: airflow_processes.Airflow, place: Path) -> Story:
    """Publishes dumps, breaks and mends things; returns what was seen meanwhile."""
    mirror, output, pids = place / "mirror", place / "root", place / "pids"
    (place / "hangs").touch()
    (place / "full").touch()
    publish(mirror, FIRST)
    first = airflow.trigger(_DAG)
    airflow.wait_until(pids.exists, "an extraction hangs")
    airflow.fail(_DAG, first, "extract")
    processes = [Path(f"/proc/{pid}") for pid in pids.read_text().split()]
    airflow.wait_until(lambda: not any(process.exists() for process in processes), "its processes end")
    killed = look(airflow, first, output)
    (place / "hangs").unlink()
    airflow.clear(_DAG, first)
    failed = look(airflow, first, output)
    failure_log = airflow.log(_DAG, first, "examples", attempt=3)
    (place / "full").unlink()
    airflow.clear(_DAG, first)
    mended = look(airflow, first, output)
    publish(mirror, SECOND)
    second = look(airflow, airflow.trigger(_DAG), output)
    nothing = look(airflow, airflow.trigger(_DAG), output)
    events = {name: airflow.asset_events(name) for name in ("maskmill_data_set", "maskmill_checkpoint")}
    return Story(
        killed=killed, failed=failed, mended=mended, second=second, nothing=nothing, failure_log=failure_log,
        events=events,
    )  # fmt: skip


def test_a_task_that_is_marked_as_failed_ends_its_command(story: Story) -> None:
    # The story waits until both processes of the command are gone.
    assert story.killed.states == ["success"] * 3 + ["failed"] + ["upstream_failed"] * 3
    assert story.killed.tasks["extract"]["try_number"] == 1, "it is not tried again"


def test_a_stage_that_fails_is_tried_again_and_holds_back_what_follows(story: Story) -> None:
    assert story.failed.states == ["success"] * 4 + ["failed"] + ["upstream_failed"] * 2
    assert story.failed.tasks["examples"]["try_number"] == 3
    assert "File too large" in story.failure_log, "the stage's own sentence is in the task's log"
    assert (story.failed.releases, story.failed.latest) == ({}, None)


def test_a_run_goes_from_the_dump_to_a_trained_checkpoint(story: Story) -> None:
    assert story.mended.states == ["success"] * len(_TASKS)
    assert story.mended.tasks["download"]["try_number"] == 1, "what was done is not done again"
    (release,) = story.mended.releases
    assert release.startswith(f"enwiki-{FIRST}-")
    assert story.mended.latest == release
    assert {"train/step-0000000003.safetensors", "examples/manifest.json"} <= set(story.mended.releases[release])


def test_a_second_dump_is_a_release_beside_the_first_and_then_nothing_is_new(story: Story) -> None:
    assert story.second.states == ["success"] * len(_TASKS)
    assert story.second.latest is not None
    assert story.second.latest.startswith(f"enwiki-{SECOND}-")
    assert set(story.second.releases) == {story.mended.latest, story.second.latest}
    assert story.nothing.states == ["success"] * 2 + ["skipped"] * 5
    assert (story.nothing.releases, story.nothing.latest) == (story.second.releases, story.second.latest)
    assert story.events == {"maskmill_data_set": 2, "maskmill_checkpoint": 2}
