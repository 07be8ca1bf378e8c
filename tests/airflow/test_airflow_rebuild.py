"""A real Airflow, from the watcher's event to a trained checkpoint, with a stage that fails in between."""

import bz2
import contextlib
import dataclasses
import functools
import hashlib
import http.server
import json
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import airflow_processes
import pytest
from command_runs.commands import DUMP, VOCAB, digests
from conftest import ROOT

pytestmark = pytest.mark.elsewhere

_WIKI, _FIRST, _SECOND = "enwiki", "2026-03-01", "2026-04-01"
_STAGES = ("extract", "examples", "eval")
_TASKS = ("download", *_STAGES, "train")
_REBUILD, _NEW_DUMPS = "maskmill_rebuild", "maskmill_new_dumps"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seen:
    """What was seen of a rebuild when it was over.

    Attributes:
      run: the run.
      tasks: its tasks by their ids.
      said: what each task returned.
      releases: the digests of the files of each complete release, by its name.
      latest: the release that is the latest one; None where there is none.
    """

    run: Mapping[str, Any]
    tasks: Mapping[str, Mapping[str, Any]]
    said: Mapping[str, Any]
    releases: Mapping[str, Mapping[str, str]]
    latest: str | None

    @property
    def states(self) -> dict[str, str]:
        """The states of the tasks."""
        return {name: task["state"] for name, task in self.tasks.items()}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Story:
    """What was seen one after the other.

    Attributes:
      killed: the rebuild of the first dump, whose extraction hung, until its task was marked as failed.
      failed: the same rebuild, after its failed tasks were cleared; its examples did not fit on the disk.
      mended: the same rebuild, after there was room and its failed tasks were cleared.
      second: the rebuild of a second dump.
      republished: the second rebuild, after its dump was published again with other bytes.
      again: the first rebuild, all of whose tasks were cleared.
      failure_log: of the last attempt at the stage that failed.
      events: of the assets, by their names.
    """

    killed: Seen
    failed: Seen
    mended: Seen
    second: Seen
    republished: Seen
    again: Seen
    failure_log: str
    events: Mapping[str, Sequence[Mapping[str, Any]]]


def publish(mirror: Path, date: str, content: bytes) -> None:
    """Puts a dump into the mirror as that of a date, with its checksum, in place of what was there of this date."""
    folder = mirror / f"other/mediawiki_content_current/{_WIKI}/{date}/xml/bzip2"
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{_WIKI}-{date}-p10p1000.xml.bz2"
    sums = f"{hashlib.sha256(content).hexdigest()}  {name}\n".encode()
    for file, data in {name: content, "SHA256SUMS": sums, "_SUCCESS": b""}.items():
        new = mirror.parent / "new"
        new.write_bytes(data)
        new.replace(folder / file)


@contextlib.contextmanager
def serving(mirror: Path) -> Iterator[str]:
    """Serves the mirror by HTTP; gives its address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(mirror))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def write_config(path: Path, mirror: str, output: Path) -> None:
    """Writes the file of a small build that watches the mirror and ends in a short training."""
    path.write_text(
        f"output: {output}\n"
        f"watch:\n  source: {mirror}\n  wiki: {_WIKI}\n  contact: test@example.org\n"
        "release:\n  keep: 3\n"
        "extract:\n  num_eval_articles: 7\n  shard_size_mb: 0.5\n"
        f"examples:\n  vocab_file: {VOCAB}\n  max_seq_length: 64\n  max_predictions_per_seq: 10\n  dupe_factor: 1\n"
        "eval:\n  num_examples_to_pick: 20\n"
        f"train:\n  vocab_file: {VOCAB}\n  preset: tiny\n  num_train_steps: 3\n  num_warmup_steps: 1\n"
        "  train_batch_size: 4\n  save_checkpoints_steps: 3\n"
    )


def write_command(path: Path, python: str, place: Path) -> Path:
    """Writes a command that runs this checkout's maskmill.

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
    return path


def is_there(pid: int) -> bool:
    """Whether a process runs."""
    return Path(f"/proc/{pid}").exists()


def look(airflow: airflow_processes.Airflow, run: Mapping[str, Any], output: Path) -> Seen:
    """Looks at a rebuild that is over."""
    name = run["dag_run_id"]
    tasks = airflow.tasks(_REBUILD, name)
    latest = output / "latest.json"
    return Seen(
        run=run,
        tasks=tasks,
        said={task: airflow.xcom(_REBUILD, name, task) for task in tasks},
        releases={
            path.parent.name: digests(path.parent) for path in sorted((output / "releases").glob("*/release.json"))
        },
        latest=json.loads(latest.read_text())["release"] if latest.exists() else None,
    )


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Lets Airflow rebuild, with what can happen on the way."""
    place = tmp_path_factory.mktemp("rebuild")
    mirror, config = place / "mirror", place / "build.yaml"
    mirror.mkdir()
    training = str(airflow_processes.training_python())
    connections = {
        name: {
            "conn_type": "generic",
            "extra": json.dumps({"command": str(write_command(place / name, python, place))}),
        }
        for name, python in (("maskmill_default", sys.executable), ("maskmill_training", training))
    }
    variables = {
        "MASKMILL_CONFIG": str(config),
        "MASKMILL_POLL_SECONDS": "3",
        "MASKMILL_RETRY_SECONDS": "1",
        "MASKMILL_RETRIES": "2",
    }
    with (
        serving(mirror) as address,
        airflow_processes.running(place / "airflow", connections, **variables) as airflow,
    ):
        # Until it is there, the trigger warns, and looks again.
        write_config(config, address, place / "root")
        return live(airflow, place)


def live(airflow: airflow_processes.Airflow, place: Path) -> Story:
    """Publishes dumps, breaks and mends things; returns what was seen meanwhile."""
    mirror, output = place / "mirror", place / "root"
    hangs, full, pids = place / "hangs", place / "full", place / "pids"
    dump = DUMP.read_bytes()
    hangs.touch()
    full.touch()
    publish(mirror, _FIRST, dump)
    airflow.wait_until(pids.exists, "an extraction hangs")
    first = airflow.runs(_REBUILD)[0]["dag_run_id"]
    airflow.fail(_REBUILD, first, "extract")
    airflow.wait_until(lambda: not any(map(is_there, map(int, pids.read_text().split()))), "its processes end")
    killed = look(airflow, airflow.wait_for_run(_REBUILD), output)
    hangs.unlink()
    airflow.clear(_REBUILD, first, only_failed=True)
    failed = look(airflow, airflow.wait_for_run(_REBUILD), output)
    failure_log = airflow.log(_REBUILD, first, "examples", attempt=3)
    full.unlink()
    airflow.clear(_REBUILD, first, only_failed=True)
    mended = look(airflow, airflow.wait_for_run(_REBUILD), output)
    publish(mirror, _SECOND, dump)
    second = look(airflow, airflow.wait_for_run(_REBUILD, place=1), output)
    # The same pages in one stream, as another program would have packed them.
    publish(mirror, _SECOND, bz2.compress(bz2.decompress(dump)))
    airflow.wait_until(lambda: len(airflow.runs(_NEW_DUMPS)) == 3, "the dump is announced anew")
    airflow.wait_until(lambda: airflow.runs(_NEW_DUMPS)[2]["state"] == "success", "its run begins anew")
    republished = look(airflow, airflow.wait_for_run(_REBUILD, place=1), output)
    airflow.clear(_REBUILD, first, only_failed=False)
    again = look(airflow, airflow.wait_for_run(_REBUILD), output)
    names = ("maskmill_new_dump", "maskmill_data_set", "maskmill_checkpoint")
    return Story(
        killed=killed,
        failed=failed,
        mended=mended,
        second=second,
        republished=republished,
        again=again,
        failure_log=failure_log,
        events={name: airflow.asset_events(name) for name in names},
    )


def test_a_task_that_is_marked_as_failed_ends_its_command(story: Story) -> None:
    # The story waits until both processes of the command are gone.
    assert story.killed.states["extract"] == "failed"
    assert story.killed.tasks["extract"]["try_number"] == 1, "it is not tried again"
    assert story.killed.states["examples"] == "upstream_failed"


def test_a_stage_that_fails_is_tried_again_and_holds_back_what_follows(story: Story) -> None:
    assert story.failed.run["state"] == "failed"
    assert story.failed.states == {
        "download": "success",
        "extract": "success",
        "examples": "failed",
        "eval": "upstream_failed",
        "train": "upstream_failed",
    }
    assert story.failed.tasks["examples"]["try_number"] == 3
    assert "File too large" in story.failure_log, "the stage's own sentence is in the task's log"
    assert story.failed.releases == {}
    assert story.failed.latest is None


def test_the_dump_s_date_is_the_logical_date(story: Story) -> None:
    assert story.mended.run["dag_run_id"] == f"dump__{_WIKI}-{_FIRST}"
    assert story.mended.run["logical_date"].startswith(f"{_FIRST}T00:00:00")
    assert story.second.run["logical_date"].startswith(f"{_SECOND}T00:00:00")


def test_a_run_goes_from_the_event_to_a_trained_checkpoint(story: Story) -> None:
    assert story.mended.states == dict.fromkeys(_TASKS, "success")
    assert story.mended.tasks["download"]["try_number"] == 1, "what was done is not done again"
    (release,) = story.mended.releases
    assert release.startswith(f"{_WIKI}-{_FIRST}-")
    assert story.mended.latest == release
    made = story.mended.releases[release]
    assert "train/step-0000000003.safetensors" in made
    assert "examples/manifest.json" in made
    assert story.mended.said["train"]["release"] == release


def test_each_dump_is_announced_once(story: Story) -> None:
    told = [event["extra"]["payload"] for event in story.events["maskmill_new_dump"]]
    assert [(dump["wiki"], dump["date"]) for dump in told] == [(_WIKI, _FIRST), (_WIKI, _SECOND), (_WIKI, _SECOND)]
    assert told[1]["publication"] != told[2]["publication"], "the third event is of a dump that was published anew"


def test_the_data_set_and_the_checkpoint_are_assets_with_their_release(story: Story) -> None:
    for name in ("maskmill_data_set", "maskmill_checkpoint"):
        told = [(event["extra"]["dump"], event["extra"]["release"]) for event in story.events[name]]
        assert told == [
            (_FIRST, story.mended.latest),
            (_SECOND, story.second.latest),
            (_SECOND, story.republished.latest),
            (_FIRST, story.mended.latest),
        ]


def test_a_second_dump_is_a_release_beside_the_first(story: Story) -> None:
    assert story.second.states == dict.fromkeys(_TASKS, "success")
    assert story.second.latest is not None
    assert story.second.latest.startswith(f"{_WIKI}-{_SECOND}-")
    assert set(story.second.releases) == {story.mended.latest, story.second.latest}


def test_a_second_run_of_the_same_dump_changes_nothing(story: Story) -> None:
    assert story.again.states == dict.fromkeys(_TASKS, "success")
    assert story.again.releases == story.republished.releases
    assert story.again.latest == story.republished.latest, "an older dump does not become the latest"


def test_a_dump_that_is_published_anew_is_built_anew_in_its_own_run(story: Story) -> None:
    assert story.republished.run["dag_run_id"] == story.second.run["dag_run_id"]
    assert story.republished.states == dict.fromkeys(_TASKS, "success")
    assert story.republished.tasks["train"]["try_number"] == 2
    assert story.republished.latest != story.second.latest
    assert set(story.republished.releases) >= {story.second.latest, story.republished.latest}
