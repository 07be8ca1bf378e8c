"""A real Airflow for the tests: its three processes, with SQLite and the local executor, and its REST interface."""

import contextlib
import dataclasses
import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

DAGS = ROOT / "deploy" / "airflow" / "dags"
COMPONENTS = ("api-server", "scheduler", "dag-processor")
# Generous, for a machine that does much else; a test that waits in vain fails with the processes' logs.
_PATIENCE_SECONDS = 420.0
_OVER = ("success", "failed")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Airflow:
    """A running Airflow.

    Attributes:
      home: its directory, with the database and the logs.
      environment: of its processes.
      port: of its REST interface.
      token: of that.
    """

    home: Path
    environment: Mapping[str, str]
    port: int
    token: str

    def ask(self, method: str, path: str, content: Any = None) -> Any:
        """The answer of the REST interface, as path `dags/NAME`; None to 404."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/v2/{path}",
            method=method,
            data=None if content is None else json.dumps(content).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()}") from error
        return json.loads(text) if text else {}

    def trigger(self, dag: str) -> str:
        """Starts a run of a DAG, once that is known; returns the run's name."""
        run = self.wait_until(lambda: self.ask("POST", f"dags/{dag}/dagRuns", {"logical_date": None}), f"{dag} starts")
        return str(run["dag_run_id"])

    def tasks(self, dag: str, run: str) -> dict[str, dict[str, Any]]:
        """The tasks of a run by their ids."""
        found = self.ask("GET", f"dags/{dag}/dagRuns/{urllib.parse.quote(run)}/taskInstances")
        return {task["task_id"]: task for task in found["task_instances"]}

    def log(self, dag: str, run: str, task: str, attempt: int = 1) -> str:
        """The log of a task's attempt."""
        (path,) = (self.home / "logs").glob(f"dag_id={dag}/run_id={run}/task_id={task}/attempt={attempt}.log")
        return path.read_text(errors="replace")

    def clear(self, dag: str, run: str) -> None:
        """Lets the failed tasks of a run begin anew, as a person does who has mended what was broken."""
        content = {"dry_run": False, "dag_run_id": run, "only_failed": True, "reset_dag_runs": True}
        self.ask("POST", f"dags/{dag}/clearTaskInstances", content)

    def fail(self, dag: str, run: str, task: str) -> None:
        """Marks a task as failed, as a person does who wants it to end."""
        where = f"dags/{dag}/dagRuns/{urllib.parse.quote(run)}/taskInstances/{task}"
        self.ask("PATCH", where, {"new_state": "failed"})

    def asset_events(self, name: str) -> int:
        """How often an asset was updated."""
        return sum(event["name"] == name for event in self.ask("GET", "assets/events")["asset_events"])

    def wait_for_run(self, dag: str, run: str) -> None:
        """Waits until a run is over."""
        where = f"dags/{dag}/dagRuns/{urllib.parse.quote(run)}"
        self.wait_until(lambda: self.ask("GET", where)["state"] in _OVER, f"run {run} of {dag} is over")

    def wait_until(self, found: Any, what: str) -> Any:
        """Waits until a function finds something; returns it."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            value = found()
            if value:
                return value
            assert time.monotonic() < deadline, f"waited in vain until {what}\n{self.tail()}"
            time.sleep(0.5)

    def tail(self) -> str:
        """The ends of the logs of tasks and processes, for a test that fails."""
        logs = [*sorted((self.home / "logs").rglob("*.log")), *sorted(self.home.glob("*.out"))]
        return "\n".join(f"== {path}\n{path.read_text(errors='replace')[-3000:]}" for path in logs)


def airflow_python() -> Path:
    """The Python of Airflow's environment; skips the test where there is none."""
    return _python_of("MASKMILL_AIRFLOW_PYTHON")


def training_python() -> Path:
    """The Python of the environment that has maskmill and TensorFlow; skips the test where there is none."""
    return _python_of("MASKMILL_TRAINING_PYTHON")


def _python_of(variable: str) -> Path:
    if variable not in os.environ:
        pytest.skip(f"{variable} names no Python of such an environment (make test-airflow)")
    return Path(os.environ[variable]).absolute()


@contextlib.contextmanager
def running(home: Path, **variables: str) -> Iterator[Airflow]:
    """Starts an Airflow in an empty directory; ends it with all that it has started.

    home: the directory. variables: of the processes, as MASKMILL_CONFIG.
    """
    home.mkdir(parents=True, exist_ok=True)
    port = _free_port()
    python = airflow_python()
    environment = _environment(python, home, port) | variables
    airflow = [str(python), "-m", "airflow"]
    _run([*airflow, "db", "migrate"], environment)
    started: list[subprocess.Popen[bytes]] = []
    try:
        for component in COMPONENTS:
            started.append(_start([*airflow, component], home / f"{component}.out", environment))
        token = _wait_for_token(port, started, home)
        yield Airflow(home=home, environment=environment, port=port, token=token)
    finally:
        for process in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def parse_with_warnings(home: Path, **variables: str) -> dict[str, Any]:
    """Loads the DAG file as Airflow does; returns the DAGs with what follows each task, import errors, and warnings."""
    python = airflow_python()
    printed = _run([str(python), "-c", _PARSE, str(DAGS)], _environment(python, home, _free_port()) | variables)
    return dict(json.loads(printed.splitlines()[-1]))


_PARSE = """
import json, sys, warnings
from airflow.dag_processing.dagbag import DagBag
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    bag = DagBag(sys.argv[1])
print(json.dumps({
    "dags": {n: {t.task_id: sorted(t.downstream_task_ids) for t in d.tasks} for n, d in bag.dags.items()},
    "errors": list(bag.import_errors.values()),
    "warnings": [str(w.message) for w in caught] + [str(w) for all in bag.captured_warnings.values() for w in all],
}))
"""


def _environment(python: Path, home: Path, port: int) -> dict[str, str]:
    settings = {
        "CORE__AUTH_MANAGER": "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager",
        "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "CORE__DAGS_FOLDER": str(DAGS),
        "CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__EXECUTOR": "LocalExecutor",
        "CORE__PARALLELISM": "2",
        "CORE__FERNET_KEY": "tQwXvGQO5vG4vT7bPZ6lP8P3xg1Xw5oB0m2h7w4yUuE=",
        "CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "API__HOST": "127.0.0.1",
        "API__PORT": str(port),
        "API__WORKERS": "1",
        "API__BASE_URL": f"http://127.0.0.1:{port}",
        "API__SECRET_KEY": "of a test",
        "API_AUTH__JWT_SECRET": "of a test, which nobody else may know",
        "SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
        "SCHEDULER__ENABLE_HEALTH_CHECK": "False",
        "USAGE_DATA_COLLECTION__ENABLED": "False",
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "PYTHON", "MASKMILL"))}
    path = f"{python.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return (
        kept
        | {f"AIRFLOW__{name}": value for name, value in settings.items()}
        | {"AIRFLOW_HOME": str(home), "PATH": path}
    )


def _run(command: list[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        command, cwd=environment["AIRFLOW_HOME"], env=dict(environment), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _start(command: list[str], log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            cwd=environment["AIRFLOW_HOME"],
            env=dict(environment),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _wait_for_token(port: int, started: list[subprocess.Popen[bytes]], home: Path) -> str:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline and all(process.poll() is None for process in started):
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"http://127.0.0.1:{port}/auth/token", timeout=5) as answer,
        ):
            return str(json.load(answer)["access_token"])
        time.sleep(0.5)
    logs = "\n".join(f"== {p.name}\n{p.read_text(errors='replace')[-3000:]}" for p in sorted(home.glob("*.out")))
    raise AssertionError(f"Airflow did not start:\n{logs}")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
