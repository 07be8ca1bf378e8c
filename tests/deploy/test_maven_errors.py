"""What Maven's output says of a failure: the tests on Flink are skipped only where no registry can be reached."""

import re
import sys
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from command_runs import commands

sys.path.insert(0, str(commands.ROOT / "deploy" / "flink"))
import cluster as flink

MISSING = (
    "[ERROR] Failed to execute goal org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy (default-cli)\n"
    "[ERROR] \n"
    "[ERROR] Could not find artifact org.apache.beam:beam-runners-flink-1.20-job-server:jar:2.77.0 in central\n"
)
UNREACHED = "[ERROR] Could not transfer artifact a:b:pom:1 from/to central: Unknown host registry.example\n"
BROKEN = "[ERROR] The goal you specified requires a project to execute but there is no POM in this directory\n"


COLOURED = "\x1b[0m\x1b[0m" + MISSING.replace("[ERROR]", "[\x1b[1;31mERROR\x1b[m]", 1)


@pytest.mark.parametrize("output", [MISSING, COLOURED], ids=["plain", "coloured"])
def test_an_artifact_that_is_not_published_is_told_from_a_registry_out_of_reach(output: str) -> None:
    error = flink._maven_error(output)
    assert isinstance(error, flink._NotPublishedError)
    assert "beam-runners-flink-1.20-job-server" in str(error)


@pytest.mark.parametrize("version", ["1.20", "2.0"])
def test_the_job_server_of_a_version_is_that_or_none(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def maven(*arguments: str) -> None:
        asked.extend(argument for argument in arguments if argument.startswith("-Dartifact="))
        raise flink._NotPublishedError(MISSING)

    monkeypatch.setattr(flink, "CACHE", tmp_path)
    monkeypatch.setattr(flink, "_maven", maven)
    monkeypatch.setattr(flink.shutil, "which", lambda tool: tool)
    with pytest.raises(
        flink.ClusterError, match=rf"no job server of Beam .* for Flink {version}; name another version"
    ):
        flink.fetch(version)
    assert asked == [
        f"-Dartifact=org.apache.beam:beam-runners-flink-{version}-job-server:{metadata.version('apache-beam')}"
    ]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("file", ["docker-compose.yaml", "kubernetes.yaml"])
def test_the_files_for_clusters_have_the_memory_of_the_cluster_that_is_tested(file: str, tmp_path: Path) -> None:
    ours = flink.Cluster(tmp_path)._configure(flink.Settings())
    tested = yaml.safe_load((ours / "config.yaml").read_text())
    text = (commands.ROOT / "deploy" / "flink" / file).read_text()
    for name in ("managed.fraction", "task.off-heap.size", "network.min"):
        assert re.search(rf'taskmanager\.memory\.{name}: "?{tested[f"taskmanager.memory.{name}"]}"?\n', text), name
    buffers = tested["taskmanager.network.sort-shuffle.min-buffers"]
    assert re.search(rf'sort-shuffle\.min-buffers: "?{buffers}"?\n', text)


@pytest.mark.parametrize(("output", "is_out_of_reach"), [(UNREACHED, True), (BROKEN, False), ("", False)])
def test_only_a_registry_that_does_not_answer_is_out_of_reach(output: str, is_out_of_reach: bool) -> None:
    error = flink._maven_error(output)
    assert isinstance(error, flink.ClusterError)
    assert error.out_of_reach is is_out_of_reach
    assert str(error).startswith("Maven failed: ")
    assert "[ERROR]" not in str(error)


UNREACHED_BY_PIP = (
    "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError(\"HTTPSConnection("
    "host='registry.example', port=443): Failed to establish a new connection\")': /simple/x/\n"
    "ERROR: No matching distribution found for x\n"
)


@pytest.mark.parametrize(
    ("output", "is_out_of_reach"),
    [(UNREACHED_BY_PIP, True), ("ERROR: No matching distribution found for x\n", False), ("", False)],
)
def test_only_an_unreached_registry_is_out_of_reach_for_pip(output: str, is_out_of_reach: bool) -> None:
    error = flink._pip_error(output)
    assert error.out_of_reach is is_out_of_reach
    assert str(error).startswith("pip failed: ")
