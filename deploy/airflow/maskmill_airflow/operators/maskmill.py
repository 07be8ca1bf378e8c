"""Tasks that run maskmill: a download, a stage of a release, the training."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from maskmill_airflow import commands
from maskmill_airflow.hooks.maskmill import MaskmillHook, RunnerHook
from maskmill_airflow.processes import Command, CommandFailedError


class MaskmillOperator(BaseOperator):
    """Runs one command of maskmill as a process, and passes its log on.

    Exit code 2, an unusable config or input, fails the task at once: another attempt would not help. Any other failure
    is retried as the task says.

    Args:
      config: the build's file (templated).
      dump: the dump's date, as 2026-03-01 (templated); by default the run's logical date. None: the newest dump.
      flags: more flags (templated).
      maskmill_conn_id: the connection of the installation.
    """

    template_fields: Sequence[str] = ("config", "dump", "flags")

    def __init__(
        self,
        *,
        config: str,
        dump: str | None = "{{ ds }}",
        flags: Sequence[str] = (),
        maskmill_conn_id: str = MaskmillHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.config = config
        self.dump = dump
        self.flags = list(flags)
        self.maskmill_conn_id = maskmill_conn_id
        self._command: Command | None = None

    def run_command(self, arguments: Sequence[str]) -> str:
        """Runs maskmill to its end; returns what it printed."""
        self._command = MaskmillHook(self.maskmill_conn_id).command(arguments)
        try:
            return self._command.run(self.log.log)
        except CommandFailedError as error:
            kind = AirflowFailException if error.code == commands.UNUSABLE else AirflowException
            raise kind(str(error)) from error

    def on_kill(self) -> None:
        """Ends the command and what it has started."""
        if self._command is not None:
            self._command.end()


class MaskmillDownloadOperator(MaskmillOperator):
    """Downloads a dump, or finds out that it is there: `maskmill watch CONFIG --download_only`. Returns its JSON."""

    def execute(self, context: Context) -> dict[str, Any] | None:
        """Downloads the dump."""
        printed = self.run_command(commands.download(self.config, dump=self.dump, flags=self.flags))
        return commands.last_object(printed)


class MaskmillStageOperator(MaskmillOperator):
    """Builds one stage of a dump's release. Returns the build's last event, whose release each outlet's event carries.

    The stages of one DAG run hold the release's lock under one name, so that they take it over from each other.

    Args:
      stage: extract, vocabulary, examples, eval or train.
      runner_conn_id: the connection of a Beam runner, see RunnerHook; None: the local runner, or what `flags` say.
    """

    template_fields: Sequence[str] = (*MaskmillOperator.template_fields, "stage")

    def __init__(self, *, stage: str, runner_conn_id: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stage = stage
        self.runner_conn_id = runner_conn_id

    def execute(self, context: Context) -> dict[str, Any] | None:
        """Builds the stage."""
        flags = list(self.flags)
        if self.runner_conn_id is not None:
            try:
                flags += RunnerHook(self.runner_conn_id).get_conn()
            except ConnectionError as error:
                raise AirflowException(str(error)) from error
        with tempfile.TemporaryDirectory(prefix="maskmill-airflow-") as scratch:
            summary = str(Path(scratch) / "summary.json")
            self.run_command(
                commands.build_stage(
                    self.config,
                    stage=self.stage,
                    dump=self.dump,
                    owner=owner(context),
                    summary=summary,
                    flags=flags,
                )
            )
            said = commands.read_summary(summary)
        self._tell_outlets(context, said)
        return said

    def _tell_outlets(self, context: Context, summary: dict[str, Any] | None) -> None:
        told = {"dump": self.dump, "release": (summary or {}).get("release")}
        for outlet in self.outlets:
            context["outlet_events"][outlet].extra = told


class MaskmillTrainOperator(MaskmillStageOperator):
    """Runs the stage train of a build, in the environment that has a framework: the connection `maskmill_training`.

    The section `train` of the build's file names the launcher, if the training is to run elsewhere.
    """

    def __init__(self, *, stage: str = "train", maskmill_conn_id: str = "maskmill_training", **kwargs: Any) -> None:
        super().__init__(stage=stage, maskmill_conn_id=maskmill_conn_id, **kwargs)


def owner(context: Context) -> str:
    """The name under which the tasks of a DAG run hold a release's lock."""
    run = context["dag_run"]
    return f"airflow {run.dag_id} {run.run_id}"
