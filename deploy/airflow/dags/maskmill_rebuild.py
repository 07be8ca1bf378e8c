"""From a new dump to a trained checkpoint, without a person.

`maskmill_new_dumps` waits for the watcher's event and starts `maskmill_rebuild` with the dump's date as its logical
date. `maskmill_rebuild` has one task for each stage. Start it by hand for an older dump: its logical date is the dump.

Edit the lines below, or set the variables in the environment of all of Airflow's processes.
"""

import os
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import Asset, AssetWatcher, chain, dag, task
from maskmill_airflow.operators.maskmill import MaskmillDownloadOperator, MaskmillStageOperator, MaskmillTrainOperator
from maskmill_airflow.triggers.new_dump import NewDumpTrigger

# The build's file, with the sections `release`, `watch` and, for the last task, `train`.
CONFIG = os.environ.get("MASKMILL_CONFIG", "/srv/maskmill/build.yaml")
# The stages of that file, in order; train comes after them.
STAGES = os.environ.get("MASKMILL_STAGES", "extract,examples,eval").split(",")
TRAINS = os.environ.get("MASKMILL_TRAINS", "true") == "true"
# Where the stages run: nothing for this machine, or a connection to a Flink cluster or with Beam's flags.
RUNNER = os.environ.get("MASKMILL_RUNNER_CONN_ID") or None
POLL_SECONDS = float(os.environ.get("MASKMILL_POLL_SECONDS", "3600"))
RETRY_SECONDS = float(os.environ.get("MASKMILL_RETRY_SECONDS", "300"))
RETRIES = int(os.environ.get("MASKMILL_RETRIES", "3"))

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


def stage_task(stage: str) -> MaskmillStageOperator:
    """A task for a stage, here or where the runner's connection says; the last one completes the release."""
    outlets = [DATA_SET] if stage == STAGES[-1] else []
    return MaskmillStageOperator(
        task_id=stage, stage=stage, config=CONFIG, runner_conn_id=RUNNER, pool=POOL, outlets=outlets
    )


@dag(schedule=None, max_active_runs=1, catchup=False, default_args=DEFAULTS, tags=["maskmill"])
def maskmill_rebuild() -> None:
    """Downloads a dump, builds its release stage by stage, and trains on it."""
    tasks: list[Any] = [MaskmillDownloadOperator(task_id="download", config=CONFIG, pool=POOL)]
    tasks += map(stage_task, STAGES)
    if TRAINS:
        tasks.append(MaskmillTrainOperator(task_id="train", config=CONFIG, pool=TRAINING_POOL, outlets=[CHECKPOINT]))
    chain(*tasks)


maskmill_new_dumps()
maskmill_rebuild()
