"""What is said when a task fails for good, and when a rebuild is late."""

import json
import logging
import urllib.request
from collections.abc import Mapping
from typing import Any

from airflow.sdk import BaseHook, Context

_log = logging.getLogger(__name__)
_PATIENCE_SECONDS = 10.0


class TellFailure:
    """A callback of tasks that failed for good: writes one line to the task's log, and posts it if asked.

    Args:
      conn_id: a connection of the type http, whose address gets the failure as JSON; None: the log alone.
    """

    def __init__(self, conn_id: str | None = None) -> None:
        self.conn_id = conn_id

    def __call__(self, context: Context) -> None:
        """Tells it. A receiver that does not answer is a warning: the task has failed for another reason."""
        failure = describe_failure(context)
        _log.error("%s", failure["text"])
        if self.conn_id is None:
            return
        try:
            post(address(BaseHook.get_connection(self.conn_id)), failure)
        except Exception as error:  # noqa: BLE001 a callback must not hide the task's failure behind its own
            _log.warning("The failure could not be posted to the connection %s: %s", self.conn_id, error)


def describe_failure(context: Context) -> dict[str, Any]:
    """The task, its run, the dump and the reason."""
    task = context["ti"]
    reason = context.get("exception")
    dump = context.get("ds")
    return {
        "dag_id": task.dag_id,
        "task_id": task.task_id,
        "run_id": task.run_id,
        "try_number": task.try_number,
        "dump": dump,
        "reason": str(reason) if reason is not None else None,
        "text": f"{task.dag_id}.{task.task_id} failed for the dump of {dump}: {reason}",
    }


def address(connection: Any) -> str:
    """The address of an http connection: its host, which may be an address already, and `path` of its extra fields."""
    host = str(connection.host or "")
    base = host if "://" in host else f"{connection.schema or 'http'}://{host}"
    port = f":{connection.port}" if connection.port else ""
    path = str(connection.extra_dejson.get("path", "/"))
    return f"{base.rstrip('/')}{port}{path}"


def post(url: str, content: dict[str, Any]) -> None:
    """Posts an object as JSON.

    Raises:
      OSError: the receiver does not answer, or refuses.
    """
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url} is no http address")
    request = urllib.request.Request(
        url, data=json.dumps(content).encode(), headers={"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=_PATIENCE_SECONDS):
        return


async def tell_late(context: Mapping[str, Any] | None = None) -> None:
    """The callback of a Deadline Alert, in the triggerer: the rebuild of a dump is not over when it should be."""
    run = (context or {}).get("dag_run") or {}
    _log.error("A rebuild is late: %s of %s", run.get("dag_run_id"), run.get("dag_id"))
