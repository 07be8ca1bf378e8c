"""What Airflow makes of the package and of the DAG file, without its processes."""

import http.server
import json
import re
from pathlib import Path
from typing import Any

import airflow_processes
import pytest
from servers import cloud

pytestmark = pytest.mark.elsewhere

_NEW_DUMPS = {"read_events": ["start_rebuild"], "start_rebuild": []}


def chain(*tasks: str) -> dict[str, list[str]]:
    """What follows each task where they follow one another."""
    return {task: list(tasks[place + 1 : place + 2]) for place, task in enumerate(tasks)}


@pytest.mark.parametrize(
    ("variables", "tasks"),
    [
        ({}, ("download", "extract", "examples", "eval", "train")),
        (
            {"MASKMILL_STAGES": "extract,vocabulary,examples", "MASKMILL_TRAINS": "false"},
            ("download", "extract", "vocabulary", "examples"),
        ),
    ],
)
def test_the_dags_parse_without_a_warning(variables: dict[str, str], tasks: tuple[str, ...], tmp_path: Path) -> None:
    found = airflow_processes.parse_with_warnings(tmp_path, **variables)
    assert found["errors"] == []
    assert found["warnings"] == []
    assert found["dags"] == {"maskmill_new_dumps": _NEW_DUMPS, "maskmill_rebuild": chain(*tasks)}


def test_a_warning_and_an_error_of_a_dag_file_are_seen(tmp_path: Path) -> None:
    dags = tmp_path / "dags"
    dags.mkdir()
    head = "from airflow.sdk import DAG\n"
    (dags / "warns.py").write_text(head + "import warnings\nwarnings.warn('SLAs are gone', DeprecationWarning)\n")
    (dags / "fails.py").write_text(head + "DAG('x', sla=1)\n")
    found = airflow_processes.parse_with_warnings(tmp_path / "home", dags)
    assert any("SLAs are gone" in warning for warning in found["warnings"])
    assert any("sla" in error for error in found["errors"])


_FLAGS = """
import json, sys
from maskmill_airflow.hooks.maskmill import RunnerHook
try:
    print(json.dumps(RunnerHook("runner").get_conn()))
except (ConnectionError, ValueError) as error:
    print(json.dumps(f"{type(error).__name__}: {error}"))
"""


def runner_flags(home: Path, connection: dict[str, Any]) -> Any:
    """What RunnerHook makes of a connection: flags, or the text of an error."""
    content = json.dumps({"conn_type": "generic", **connection})
    return json.loads(airflow_processes.program(home, _FLAGS, AIRFLOW_CONN_RUNNER=content).splitlines()[-1])


@pytest.mark.parametrize(("slots", "works"), [(4, True), (0, False), (None, False)])
def test_a_flink_cluster_is_asked_before_a_stage_is_sent_there(slots: int | None, works: bool, tmp_path: Path) -> None:
    def rest(request: http.server.BaseHTTPRequestHandler, body: bytes) -> Any:
        assert request.path == "/overview"
        answer = {"slots-total": slots, "taskmanagers": 2} if slots is not None else {"errors": ["Not found."]}
        return cloud.json_answer(answer)

    with cloud.server(rest) as url:
        port = int(url.rpartition(":")[2])
        connection = {"host": "127.0.0.1", "port": port, "extra": {"flags": ["--parallelism=4"]}}
        flags = runner_flags(tmp_path, connection)
    if works:
        assert flags == ["--runner=FlinkRunner", f"--flink_master=127.0.0.1:{port}", "--parallelism=4"]
    else:
        assert flags.startswith(f"ConnectionError: 127.0.0.1:{port}: "), flags


def test_a_cluster_that_does_not_answer_and_a_wrong_field_are_named(tmp_path: Path) -> None:
    closed = runner_flags(tmp_path, {"host": "127.0.0.1", "port": 1})
    assert re.match(r"ConnectionError: 127\.0\.0\.1:1: no Flink cluster answers there \(.*refused", closed)
    wrong = runner_flags(tmp_path, {"extra": {"flag": "--runner=DataflowRunner"}})
    assert wrong == 'ValueError: The extra field of the connection runner must be {"flags": ["--…"]}.'
    only_flags = runner_flags(tmp_path, {"extra": {"flags": ["--runner=DataflowRunner"]}})
    assert only_flags == ["--runner=DataflowRunner"]
