"""A release made on Dataflow from Airflow, without a worker that waits: Google's own operator, on stand-ins.

Cloud Storage is the emulator. Dataflow's service is dataflow_service.py, whose jobs run the Flex Template's program on
the local runner.
"""

import dataclasses
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import airflow_processes
import dataflow_service
import pytest
from command_runs.commands import DUMP, VOCAB
from conftest import ROOT
from servers import cloud

pytestmark = pytest.mark.airflow

BUCKET = "maskmill-bucket"
_NAME = "enwiki-20260301-pages-articles-multistream.xml.bz2"
_TEMPLATE = f"gs://{BUCKET}/templates/maskmill.json"
_ENVIRONMENT = {"machineType": "n2-standard-4", "maxWorkers": 8}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seen:
    """What was seen when the rebuild was over.

    Attributes:
      tasks: by their ids.
      said: what each task returned.
      log: of the trigger that waited for the second job.
      launched: the requests that the service got.
      polls: how often a job's state was asked for.
      objects: the bucket's contents by their names, below root/, where they are JSON.
      names: the names of all objects below root/.
    """

    tasks: Mapping[str, Mapping[str, Any]]
    said: Mapping[str, Any]
    log: str
    launched: Sequence[Mapping[str, Any]]
    polls: int
    objects: Mapping[str, Any]
    names: Sequence[str]


def run_template(environment: Mapping[str, str], body: Mapping[str, Any]) -> None:
    """Runs the template's program with a launch's parameters on the local runner."""
    parameters = [f"--{name}={value}" for name, value in body["launchParameter"]["parameters"].items()]
    program = ROOT / "deploy" / "dataflow" / "template.py"
    done = subprocess.run(
        [sys.executable, program, *parameters, "--runner=DirectRunner", "--direct_num_workers=1"],
        env=os.environ | dict(environment) | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """Lets Airflow make a release on Dataflow, whose first job fails."""
    place = tmp_path_factory.mktemp("dataflow")
    config = place / "build.yaml"
    config.write_text(
        f"output: gs://{BUCKET}/root\n"
        f"watch:\n  source: gs://{BUCKET}/dumps\n  layout: listing\n  wiki: enwiki\n"
        "extract:\n  num_eval_articles: 7\n"
        f"examples:\n  vocab_file: gs://{BUCKET}/vocab.txt\n  max_seq_length: 64\n  max_predictions_per_seq: 10\n"
        "  dupe_factor: 1\n"
        "eval:\n  num_examples_to_pick: 20\n"
    )
    connections = {
        "maskmill_default": {
            "conn_type": "maskmill",
            "extra": json.dumps(
                {"command": [sys.executable, "-m", "maskmill"], "environment": {"PYTHONPATH": str(ROOT)}}
            ),
        },
        # Without a key: Google's libraries take the account that the environment names.
        "google_cloud_default": {"conn_type": "google_cloud_platform"},
    }
    variables = {
        "CONFIG": str(config),
        "FLEX_TEMPLATE": _TEMPLATE,
        "PROJECT": cloud.PROJECT,
        "REGION": "europe-west4",
        "JOB_ENVIRONMENT": json.dumps(_ENVIRONMENT),
        "JOB_POLL_SECONDS": "1",
        "POLL_SECONDS": "2",
        "RETRY_SECONDS": "1",
        "RETRIES": "2",
        "TRAINS": "false",
    }
    with cloud.storage(place, BUCKET) as storage:

        def work(body: Mapping[str, Any]) -> None:
            if len(service.launched) == 1:
                raise RuntimeError("the region has no machines left")
            run_template(storage, body)

        service = dataflow_service.Service(work=work)
        dump = DUMP.read_bytes()
        cloud.upload(storage, BUCKET, "vocab.txt", VOCAB.read_bytes())
        cloud.upload(storage, BUCKET, f"dumps/{_NAME}", dump)
        cloud.upload(storage, BUCKET, "dumps/SHA256SUMS", f"{hashlib.sha256(dump).hexdigest()}  {_NAME}\n".encode())
        with (
            dataflow_service.running(place, service) as google,
            airflow_processes.running(
                place / "airflow",
                connections,
                **storage,
                **google,
                **{f"MASKMILL_{name}": value for name, value in variables.items()},
            ) as airflow,
        ):
            run = airflow.wait_for_run("maskmill_rebuild")["dag_run_id"]
            tasks = airflow.tasks("maskmill_rebuild", run)
            assert tasks["dataflow"]["state"] == "success", f"{service.failures}\n{airflow.tail()}"
            names = [name for name in cloud.objects(storage, BUCKET) if name.startswith("root/")]
            return Seen(
                tasks=tasks,
                said={task: airflow.xcom("maskmill_rebuild", run, task) for task in tasks},
                log=airflow.trigger_log("maskmill_rebuild", run, "dataflow", attempt=2),
                launched=service.launched,
                polls=service.polls,
                objects={
                    name: json.loads(cloud.content(storage, BUCKET, name))
                    for name in names
                    if name.endswith(("release.json", "latest.json"))
                },
                names=names,
            )


def test_a_job_that_fails_is_launched_again(seen: Seen) -> None:
    assert {name: task["state"] for name, task in seen.tasks.items()} == dict.fromkeys(
        ("download", "plan", "describe_job", "dataflow", "complete"), "success"
    )
    assert seen.tasks["dataflow"]["try_number"] == 2
    assert len(seen.launched) == 2


def test_the_triggerer_waits_for_the_job(seen: Seen) -> None:
    assert seen.polls >= 2
    assert "TemplateJobStartTrigger" in seen.log
    assert seen.said["dataflow"]["currentState"] == "JOB_STATE_DONE"


def test_the_template_is_launched_for_the_release(seen: Seen) -> None:
    launch = seen.launched[-1]["launchParameter"]
    assert launch["containerSpecGcsPath"] == _TEMPLATE
    assert launch["environment"] == _ENVIRONMENT
    assert launch["parameters"]["output"] == seen.said["plan"]["directory"]
    assert launch["parameters"]["extract_input"] == f"gs://{BUCKET}/dumps/{_NAME}"
    assert launch["jobName"].startswith("maskmill-enwiki-2026-03-01")


def test_the_release_is_complete_and_the_latest(seen: Seen) -> None:
    release = seen.said["plan"]["release"]
    assert f"root/releases/{release}/release.json" in seen.objects
    assert seen.objects["root/latest.json"]["release"] == release
    for folder in ("text", "examples", "eval"):
        assert f"root/releases/{release}/{folder}/manifest.json" in seen.names
    assert seen.said["complete"]["release"] == release
