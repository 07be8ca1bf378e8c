"""Fires when a mirror has a new complete dump: the watcher of an asset, which starts a DAG."""

import asyncio
import contextlib
import hashlib
import json
import os
import signal
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from maskmill_airflow import commands
from maskmill_airflow.commands import Installation
from maskmill_airflow.hooks.maskmill import MaskmillHook
from maskmill_airflow.processes import parse_line

_STATE = "announced"
# A check reads a few small files of a mirror. One that hangs must not keep the trigger from ever asking again.
_CHECK_SECONDS = 900.0


class NewDumpTrigger(BaseEventTrigger):
    """Runs `maskmill watch CONFIG --check` now and then, and fires for each dump of which there is no release yet.

    A dump that is published anew with other files is a new one. The trigger keeps what it has announced in the asset's
    store (Airflow 3.3), else in its memory. A mirror that does not answer is asked again at the next turn.

    Args:
      config: the build's file, on the machine of the triggerer.
      maskmill_conn_id: the connection of the installation.
      poll_seconds: how long to wait from one check to the next.
    """

    def __init__(
        self, config: str, maskmill_conn_id: str = MaskmillHook.default_conn_name, poll_seconds: float = 3600.0
    ) -> None:
        super().__init__()
        self.config = config
        self.maskmill_conn_id = maskmill_conn_id
        self.poll_seconds = poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """What makes this trigger again."""
        arguments = {
            "config": self.config,
            "maskmill_conn_id": self.maskmill_conn_id,
            "poll_seconds": self.poll_seconds,
        }
        return "maskmill_airflow.triggers.new_dump.NewDumpTrigger", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yields an event for each new dump: its wiki and date, and what `describe` adds."""
        announced = await self._read_announced()
        while True:
            try:
                found = await self._check()
            except (OSError, ValueError, TimeoutError) as error:
                self.log.warning("%s could not be checked for a new dump: %s", self.config, error)
                found = None
            if found is not None and found.get("new"):
                event = describe(found, self.config)
                if announced.get(event["date"]) != event["publication"]:
                    self.log.info("%s: the dump of %s is new", self.config, event["date"])
                    yield TriggerEvent(event)
                    # Behind the event: one that is announced twice does less harm than one that is not.
                    announced = {**announced, event["date"]: event["publication"]}
                    await self._write_announced(announced)
            await asyncio.sleep(self.poll_seconds)

    async def _check(self) -> dict[str, Any]:
        installation = await MaskmillHook(self.maskmill_conn_id).aget_conn()
        code, output, errors = await _run(installation, commands.check(self.config))
        found = commands.last_object(output)
        if code or found is None:
            lines = [parse_line(line)[1] for line in errors.splitlines() if line.strip()]
            raise ValueError(lines[-1] if lines else f"exit code {code}, and no JSON on standard output")
        return found

    async def _read_announced(self) -> dict[str, str]:
        store = getattr(self, "asset_state_store", None)
        kept = await store.aget(_STATE) if store is not None else None
        return dict(kept) if isinstance(kept, dict) else {}

    async def _write_announced(self, announced: dict[str, str]) -> None:
        store = getattr(self, "asset_state_store", None)
        if store is not None:
            await store.aset(_STATE, announced)


def describe(found: dict[str, Any], config: str) -> dict[str, Any]:
    """The event of what `maskmill watch --check` prints of a new dump.

    Raises:
      ValueError: it names no dump.
    """
    dump = found.get("dump")
    if not isinstance(dump, dict) or not dump.get("date"):
        raise ValueError("the check says that there is a new dump, but names none")
    # Of what the mirror publishes: the same dump with other files is another publication.
    digest = hashlib.sha256(json.dumps(dump, sort_keys=True).encode()).hexdigest()
    return {"config": config, "wiki": dump.get("wiki"), "date": dump["date"], "publication": digest[:16]}


async def _run(installation: Installation, arguments: list[str]) -> tuple[int, str, str]:
    """Runs maskmill without holding up the event loop; ends it when the trigger is cancelled or it takes too long."""
    process = await asyncio.create_subprocess_exec(
        *installation.command,
        *arguments,
        cwd=installation.directory,
        env=os.environ | dict(installation.environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        output, errors = await asyncio.wait_for(process.communicate(), _CHECK_SECONDS)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return process.returncode or 0, output.decode(errors="replace"), errors.decode(errors="replace")
