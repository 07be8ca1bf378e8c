"""From a new dump to a trained checkpoint, without a person.

`maskmill_new_dumps` waits for the watcher's event and starts `maskmill_rebuild` with the dump's date as its logical
date. `maskmill_rebuild` has one task for each stage. Start it by hand for an older dump: its logical date is the dump.

Edit the lines below, or set the variables in the environment of all of Airflow's processes.
"""

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import Asset, AssetWatcher, AsyncCallback, DeadlineAlert, DeadlineReference, chain, dag, task
from maskmill_airflow.callbacks import TellFailure, tell_late
from maskmill_airflow.operators.maskmill import (
    MaskmillDownloadOperator,
    MaskmillPlanOperator,
    MaskmillStageOperator,
    MaskmillTrainOperator,
)
from maskmill_airflow.triggers.new_dump import NewDumpTrigger

# The build's file, with the sections `release`, `watch` and, for the last task, `train`.
CONFIG = os.environ.get("MASKMILL_CONFIG", "/srv/maskmill/build.yaml")
# The stages of that file, in order; train comes behind them.
STAGES = os.environ.get("MASKMILL_STAGES", "extract,examples,eval").split(",")
TRAINS = os.environ.get("MASKMILL_TRAINS", "true") == "true"
# Where the stages run: nothing for this machine, or a connection to a Flink cluster or with Beam's flags.
RUNNER = os.environ.get("MASKMILL_RUNNER_CONN_ID") or None
# Who is told of failures: a connection of the type http, or nothing for the log alone.
FAILURES = os.environ.get("MASKMILL_FAILURES_CONN_ID") or None
# Stages on Dataflow: the gs:// path of the Flex Template's file (deploy/dataflow), and where it is launched.
TEMPLATE = os.environ.get("MASKMILL_FLEX_TEMPLATE") or None
PROJECT = os.environ.get("MASKMILL_PROJECT", "")
REGION = os.environ.get("MASKMILL_REGION", "")
# A FlexTemplateRuntimeEnvironment as JSON: machineType, maxWorkers, serviceAccountEmail, tempLocation, ….
JOB_ENVIRONMENT = json.loads(os.environ.get("MASKMILL_JOB_ENVIRONMENT", "{}"))
JOB_POLL_SECONDS = int(os.environ.get("MASKMILL_JOB_POLL_SECONDS", "60"))
POLL_SECONDS = float(os.environ.get("MASKMILL_POLL_SECONDS", "3600"))
RETRY_SECONDS = float(os.environ.get("MASKMILL_RETRY_SECONDS", "300"))
RETRIES = int(os.environ.get("MASKMILL_RETRIES", "3"))
# So many days after a dump's date its checkpoint should be there; Wikimedia needs about two weeks for a dump of enwiki.
LATE_AFTER = timedelta(days=float(os.environ.get("MASKMILL_LATE_DAYS", "21")))

# How many stages and trainings run at a time, those of all DAGs together; install.sh makes these pools.
POOL, TRAINING_POOL = "maskmill", "maskmill_training"

NEW_DUMP = Asset(
    name="maskmill_new_dump",
    uri="x-maskmill://new-dump",
    watchers=[AssetWatcher(name="maskmill_mirror", trigger=NewDumpTrigger(CONFIG, poll_seconds=POLL_SECONDS))],
)
DATA_SET = Asset(name="maskmill_data_set", uri="x-maskmill://data-set")
CHECKPOINT = Asset(name="maskmill_checkpoint", uri="x-maskmill://checkpoint")

DEFAULTS: dict[str, Any] = {
    "retries": RETRIES,
    "retry_delay": timedelta(seconds=RETRY_SECONDS),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(hours=2),
    "on_failure_callback": TellFailure(FAILURES),
}


@dag(schedule=[NEW_DUMP], max_active_runs=1, catchup=False, default_args=DEFAULTS, tags=["maskmill"])
def maskmill_new_dumps() -> None:
    """Starts a rebuild for each dump that the watcher has found."""

    @task
    def read_events(triggering_asset_events: Any = None) -> list[dict[str, Any]]:
        """The runs to start, one for each dump; a dump's run has the same name whenever it is published anew."""
        found: dict[str, dict[str, Any]] = {}
        for event in triggering_asset_events[NEW_DUMP]:
            dump = event.extra["payload"]
            found[dump["date"]] = {
                "trigger_run_id": f"dump__{dump['wiki']}-{dump['date']}",
                "logical_date": f"{dump['date']}T00:00:00+00:00",
                "conf": dump,
            }
        return [found[date] for date in sorted(found)]

    TriggerDagRunOperator.partial(
        task_id="start_rebuild",
        trigger_dag_id="maskmill_rebuild",
        # A dump that was published anew is built anew in its own run; what fits is reused.
        reset_dag_run=True,
    ).expand_kwargs(read_events())


def stage_tasks() -> list[Any]:
    """A task for each stage, here or where the runner's connection says; the last one completes the release."""
    return [
        MaskmillStageOperator(
            task_id=stage,
            stage=stage,
            config=CONFIG,
            runner_conn_id=RUNNER,
            pool=POOL,
            outlets=[DATA_SET] if stage == STAGES[-1] else [],
        )
        for stage in STAGES
    ]


def dataflow_tasks() -> list[Any]:
    """A job of the Flex Template for all stages, which the triggerer awaits, and a task that completes the release."""
    from airflow.providers.google.cloud.operators.dataflow import DataflowStartFlexTemplateOperator
    from maskmill_airflow.dataflow import launch_body

    @task
    def describe_job(plan: dict[str, Any]) -> dict[str, Any]:
        """The request that launches the template."""
        build = yaml.safe_load(Path(CONFIG).read_text(encoding="utf-8"))
        return launch_body(build, plan, template=str(TEMPLATE), environment=JOB_ENVIRONMENT)

    plan = MaskmillPlanOperator(task_id="plan", config=CONFIG)
    body: Any = describe_job(plan.output)
    job = DataflowStartFlexTemplateOperator(
        task_id="dataflow",
        body=body,
        project_id=PROJECT,
        location=REGION,
        deferrable=True,
        poll_sleep=JOB_POLL_SECONDS,
        pool=POOL,
    )
    stage = STAGES[-1]
    complete = MaskmillStageOperator(task_id="complete", stage=stage, config=CONFIG, pool=POOL, outlets=[DATA_SET])
    return [plan, body, job, complete]


@dag(
    schedule=None,
    max_active_runs=1,
    catchup=False,
    default_args=DEFAULTS,
    # Not DAGRUN_QUEUED_AT: Airflow 3.3.2 cannot clear the tasks of a run that has such a deadline.
    deadline=DeadlineAlert(
        reference=DeadlineReference.DAGRUN_LOGICAL_DATE, interval=LATE_AFTER, callback=AsyncCallback(tell_late)
    ),
    tags=["maskmill"],
)
def maskmill_rebuild() -> None:
    """Downloads a dump, builds its release stage by stage, and trains on it."""
    tasks: list[Any] = [MaskmillDownloadOperator(task_id="download", config=CONFIG, pool=POOL)]
    tasks += dataflow_tasks() if TEMPLATE else stage_tasks()
    if TRAINS:
        tasks.append(MaskmillTrainOperator(task_id="train", config=CONFIG, pool=TRAINING_POOL, outlets=[CHECKPOINT]))
    chain(*tasks)


maskmill_new_dumps()
maskmill_rebuild()
