"""What Maven's output says of a failure: the tests on Flink are skipped only where no registry can be reached."""

import sys

import pytest
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
