"""From a new dump to a trained checkpoint, without a person: commands of maskmill, each a task.

Edit the lines below, or set the variables in the environment of Airflow's processes. Trigger it with the parameter
`date` for an older dump.
"""

import json
import os
import shlex
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import Asset, Param, chain, dag, task

# The build's file, with the sections `release`, `watch` and, for the last task, `train`.
CONFIG = shlex.quote(os.environ.get("MASKMILL_CONFIG", "/srv/maskmill/build.yaml"))
# The stages of that file, in order; train comes after them.
STAGES = os.environ.get("MASKMILL_STAGES", "extract,examples,eval").split(",")
TRAINS = os.environ.get("MASKMILL_TRAINS", "true") == "true"
# How maskmill is called, and the installation that has a framework.
COMMAND = os.environ.get("MASKMILL_COMMAND", "maskmill")
TRAINING_COMMAND = os.environ.get("MASKMILL_TRAINING_COMMAND", COMMAND)
# Flags of a Beam runner, for the stages; nothing for this machine.
RUNNER_FLAGS = os.environ.get("MASKMILL_RUNNER_FLAGS", "")
SCHEDULE = os.environ.get("MASKMILL_SCHEDULE", "17 * * * *")  # when to look for a new dump, in UTC; empty: by hand
RETRIES = int(os.environ.get("MASKMILL_RETRIES", "3"))
RETRY_SECONDS = float(os.environ.get("MASKMILL_RETRY_SECONDS", "300"))

DATA_SET = Asset(name="maskmill_data_set", uri="x-maskmill://data-set")
CHECKPOINT = Asset(name="maskmill_checkpoint", uri="x-maskmill://checkpoint")

DATE = "--dump {{ ti.xcom_pull(task_ids='new_dump') }}"


def command(name: str, words: str, program: str = COMMAND, outlets: list[Asset] | None = None) -> BashOperator:
    """Return a task that runs maskmill. Whoever marks it as failed ends the command and what it has started."""
    return BashOperator(task_id=name, bash_command=f"{program} {words}", outlets=outlets or [])


def stage(name: str, program: str, flags: str, outlet: Asset | None = None) -> BashOperator:
    """Return a task for a stage. Those of one run hold the release's lock as one owner; the last completes it."""
    words = f"build {CONFIG} --release {DATE} --from {name} --until {name} --owner 'airflow {{{{ run_id }}}}' {flags}"
    return command(name, words, program, [outlet] if outlet else [])


@task.short_circuit
def new_dump(found: str) -> str:
    """Return the date of the dump to build; empty, which skips what follows, where there is nothing new."""
    told = json.loads(found)
    return str(told["dump"]["date"]) if told["new"] else ""


@dag(
    schedule=SCHEDULE or None,
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    params={"date": Param(None, type=["null", "string"], description="of an older dump, as 2026-03-01")},
    default_args={
        "retries": RETRIES,
        "retry_delay": timedelta(seconds=RETRY_SECONDS),
        "retry_exponential_backoff": 2.0,
        "max_retry_delay": timedelta(hours=2),
    },
    tags=["maskmill"],
)
def maskmill_rebuild() -> None:
    """Look at the mirror; download a new dump, build its release stage by stage, and train on it."""
    look = command("look", f"watch {CONFIG} --check {{{{ '--dump ' ~ params.date if params.date else '' }}}}")
    tasks: list[Any] = [new_dump(look.output), command("download", f"watch {CONFIG} --download_only {DATE}")]
    tasks += [stage(name, COMMAND, RUNNER_FLAGS, DATA_SET if name == STAGES[-1] else None) for name in STAGES]
    if TRAINS:
        tasks.append(stage("train", TRAINING_COMMAND, "", CHECKPOINT))
    chain(*tasks)


maskmill_rebuild()
