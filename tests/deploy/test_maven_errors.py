"""What Maven's output says of a failure: the tests on Flink are skipped only where no registry can be reached."""

import re
import sys
from pathlib import Path

import pytest
import yaml
from command_runs import commands

sys.path.insert(0, str(commands.ROOT / "deploy" / "flink"))
import cluster as flink

UNREACHED = "[ERROR] Could not transfer artifact a:b:pom:1 from/to central: Unknown host registry.example\n"
COLOURED = "\x1b[0m\x1b[0m" + UNREACHED.replace("[ERROR]", "[\x1b[1;31mERROR\x1b[m]", 1)
BROKEN = "[ERROR] The goal you specified requires a project to execute but there is no POM in this directory\n"
UNREACHED_BY_PIP = (
    "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError(\"HTTPSConnection("
    "host='registry.example', port=443): Failed to establish a new connection\")': /simple/x/\n"
    "ERROR: No matching distribution found for x\n"
)


@pytest.mark.parametrize(
    ("tool", "output", "is_out_of_reach"),
    [
        ("Maven", UNREACHED, True),
        ("Maven", COLOURED, True),
        ("Maven", BROKEN, False),
        ("Maven", "", False),
        ("pip", UNREACHED_BY_PIP, True),
        ("pip", "ERROR: No matching distribution found for x\n", False),
        ("pip", "", False),
    ],
)
def test_only_a_registry_that_does_not_answer_is_out_of_reach(tool: str, output: str, is_out_of_reach: bool) -> None:
    error = (flink._maven_error if tool == "Maven" else flink._pip_error)(output)
    assert error.out_of_reach is is_out_of_reach
    assert str(error).startswith(f"{tool} failed: ")
    assert "[ERROR]" not in str(error)


@pytest.mark.parametrize("file", ["docker-compose.yaml", "kubernetes.yaml"])
def test_the_files_for_clusters_have_the_memory_of_the_cluster_that_is_tested(file: str, tmp_path: Path) -> None:
    ours = flink.Cluster(tmp_path)._configure(flink.Settings())
    tested = yaml.safe_load((ours / "config.yaml").read_text())
    text = (commands.ROOT / "deploy" / "flink" / file).read_text()
    for name in ("managed.fraction", "task.off-heap.size", "network.min"):
        assert re.search(rf'taskmanager\.memory\.{name}: "?{tested[f"taskmanager.memory.{name}"]}"?\n', text), name
    buffers = tested["taskmanager.network.sort-shuffle.min-buffers"]
    assert re.search(rf'sort-shuffle\.min-buffers: "?{buffers}"?\n', text)
