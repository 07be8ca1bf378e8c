"""The connection to an installation of maskmill, and to a Flink cluster that does its work."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from maskmill_airflow.commands import Installation
from maskmill_airflow.processes import Command

_PATIENCE_SECONDS = 10.0


class MaskmillHook(BaseHook):
    """Runs maskmill where a connection says it is installed.

    The connection's extra fields are `command` (text or a list; default: `maskmill` on the PATH), `environment` (an
    object) and `directory`. Without a connection of the default name, maskmill must be on the PATH.
    """

    default_conn_name = "maskmill_default"

    def __init__(self, maskmill_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.maskmill_conn_id = maskmill_conn_id

    def get_conn(self) -> Installation:
        """The installation."""
        try:
            found = self.get_connection(self.maskmill_conn_id)
        except AirflowNotFoundException:
            return self._without_connection()
        return Installation.of(found.extra_dejson)

    async def aget_conn(self) -> Installation:
        """The installation, for the triggerer, whose event loop must not wait."""
        try:
            found = await self.aget_connection(self.maskmill_conn_id)
        except AirflowNotFoundException:
            return self._without_connection()
        return Installation.of(found.extra_dejson)

    def command(self, arguments: Sequence[str]) -> Command:
        """A command of maskmill, ready to run."""
        return Command(self.get_conn(), arguments)

    def _without_connection(self) -> Installation:
        if self.maskmill_conn_id != self.default_conn_name:
            raise AirflowNotFoundException(
                f"There is no connection {self.maskmill_conn_id!r}; add it, or leave maskmill_conn_id out."
            )
        return Installation()


class RunnerHook(BaseHook):
    """Where a Beam runner is: the flags that send a stage there.

    Of a Flink cluster the connection's host and port are those of its REST interface, which is asked first. The extra
    field `flags` is a list of more flags of Beam, for any runner.
    """

    def __init__(self, runner_conn_id: str) -> None:
        super().__init__()
        self.runner_conn_id = runner_conn_id

    def get_conn(self) -> list[str]:
        """The flags.

        Raises:
          ValueError: the extra fields have another form.
          ConnectionError: the cluster does not answer, or has no slots.
        """
        found = self.get_connection(self.runner_conn_id)
        extra: Mapping[str, Any] = found.extra_dejson
        flags = extra.get("flags", [])
        if not isinstance(flags, list) or set(extra) - {"flags"}:
            raise ValueError(f'The extra field of the connection {self.runner_conn_id} must be {{"flags": ["--…"]}}.')
        if not found.host:
            return [str(flag) for flag in flags]
        address = f"{found.host}:{found.port or 8081}"
        check_flink(address)
        given = {str(flag).partition("=")[0] for flag in flags}
        own = {"--runner": "FlinkRunner", "--flink_master": address}
        return [*(f"{name}={value}" for name, value in own.items() if name not in given), *map(str, flags)]


def check_flink(address: str) -> Mapping[str, Any]:
    """Asks a Flink cluster's REST interface whether it can work; returns what it says of itself.

    Args:
      address: HOST:PORT.

    Raises:
      ConnectionError: it does not answer as Flink does, or no TaskManager has registered.
    """
    try:
        with urllib.request.urlopen(f"http://{address}/overview", timeout=_PATIENCE_SECONDS) as answer:
            overview = json.load(answer)
        slots = int(overview["slots-total"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise ConnectionError(f"{address}: no Flink cluster answers there ({reason}).") from error
    if slots < 1:
        raise ConnectionError(f"{address}: the Flink cluster has no slots; start its TaskManagers.")
    return overview
