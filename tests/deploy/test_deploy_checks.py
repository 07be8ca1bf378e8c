"""`make lint` on deploy/, .github/ and CITATION.cff (.pre-commit-config.yaml): each hook finds a fault in a file."""

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ci_programs
import pytest
import yaml
from command_runs import commands

# Each check starts a linter, and there are many.
pytestmark = pytest.mark.builds

DEPLOY = commands.ROOT / "deploy"
CONFIG = commands.ROOT / ".pre-commit-config.yaml"
(REPOSITORY,) = yaml.safe_load(CONFIG.read_text())["repos"]
HOOKS: dict[str, dict[str, Any]] = {hook["id"]: hook for hook in REPOSITORY["hooks"]}


check_deploy = ci_programs.load("check_deploy")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with what hooks read: their files, the program, and their list."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("deploy", ".ci", ".github"):
        shutil.copytree(commands.ROOT / name, folder / name)
    for path in (CONFIG, commands.ROOT / "CITATION.cff"):
        shutil.copy(path, folder)
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    subprocess.run(["git", "add", CONFIG.name], cwd=folder, check=True)
    return folder


def run(hook: str, file: str, checkout: Path) -> tuple[int, str]:
    """Runs a hook on a file; returns its exit code and what it prints."""
    assert hook_takes(hook, checkout / file, file), f"{hook} is not for {file}"
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = [sys.executable, "-m", "pre_commit", "run", hook, "--color=never", "--files", file]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def find(hook: str, file: str, checkout: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """What `run` gives. A check of our own runs in this process: the hook has run for the file as it is."""
    program, _, check = HOOKS[hook]["entry"].partition(" .ci/check_deploy.py ")
    if program != "python":
        return run(hook, file, checkout)
    code = check_deploy.main([check, str(checkout / file)])
    return code, capsys.readouterr().out


@pytest.fixture(scope="module")
def finds_nothing(checkout: Path) -> Callable[[str, str], str]:
    """Asserts that a hook finds nothing in a file as it is, for which it runs once; returns what the hook prints."""

    @functools.cache
    def output_for(hook: str, file: str) -> str:
        code, output = run(hook, file, checkout)
        assert code == 0, output
        return output

    return output_for


def hook_takes(hook: str, path: Path, name: str) -> bool:
    """Whether a hook is for a file, by its name in the repository and by what it is."""
    from identify import identify

    wanted = HOOKS[hook]
    is_named = re.search(wanted.get("files", ""), name) is not None
    return is_named and set(wanted.get("types", [])) <= identify.tags_from_path(str(path))


FAULTS = [
    # (hook, file, what is replaced, by what, what the finding says)
    ("shellcheck", "deploy/dataflow/build_and_launch.sh", '"$(dirname "$0")/../.."', "$(dirname $0)/../..", "SC2046"),
    ("shellcheck", "deploy/dataflow/build_and_launch.sh", "if [ $# -eq 0 ]; then", "if [ $# -eq 0 ];", "SC1"),
    ("hadolint", "deploy/dataflow/Dockerfile", "--requirement requirements-gcp.lock", "numpy", "DL3013"),
    ("hadolint", "deploy/training/Dockerfile", "WORKDIR /opt/maskmill", "WORKDIR maskmill", "DL3000"),
    ("compose", "deploy/flink/docker-compose.yaml", "depends_on: [jobmanager]", "depend_on: [jobmanager]", "depend_on"),
    ("kubernetes", "deploy/kubernetes/watch.yaml", "concurrencyPolicy", "concurrencyPolice", "concurrencyPolice"),
    ("kubernetes", "deploy/kubernetes/watch.yaml", "backoffLimit: 3", "backoffLimit: three", "three"),
    ("kubernetes", "deploy/kubernetes/watch.yaml", "batch/v1", "batch/v7", "batch/v7"),
    ("flink", "deploy/flink/kubernetes.yaml", "replicas: 8", "replicas: eight", "eight"),
    ("flink", "deploy/flink/kubernetes.yaml", "podTemplate", "podTemplates", "podTemplates"),
    ("flink", "deploy/flink/kubernetes.yaml", "containerPort: 50000", "containersPort: 50000", "containersPort"),
    ("flink", "deploy/flink/kubernetes.yaml", "mode: standalone", "mode: single", "single"),
    ("terraform", "deploy/terraform/main.tf", "public_access_prevention ", "public_acces_prevention ", "public_acces_"),
    ("terraform", "deploy/terraform/main.tf", 'role_id     = "maskmillLauncher"', "", "role_id is missing"),
    ("terraform", "deploy/terraform/main.tf", "oauth_token {", "oauth_tokens {", "oauth_tokens"),
    (
        "terraform",
        "deploy/terraform/main.tf",
        'resource "google_cloud_scheduler_job"',
        'resource "google_job"',
        "google_job",
    ),
    ("terraform", "deploy/terraform/main.tf", "account_id   =", "email = 1\n  account_id =", "there is no email"),
    ("terraform", "deploy/terraform/main.tf", "locals {", "locals {{", "main.tf: "),
    ("terraform", "deploy/terraform/variables.tf", "variable", "variables", "no block variables"),
    ("systemd", "deploy/systemd/maskmill-watch.service", "Type=oneshot", "Type=onceshot", "onceshot"),
    ("systemd", "deploy/systemd/maskmill-watch.service", "ProtectClock=true", "ProtectClok=true", "ProtectClok"),
    ("systemd", "deploy/systemd/maskmill-watch.service", "User=maskmill", "User=root", "more than 1.5 of 10"),
    ("systemd", "deploy/systemd/maskmill-watch.timer", "03:23:00", "33:23:00", "33:23:00"),
    ("cron", "deploy/cron/maskmill", "23 3 * * *", "63 3 * * *", "'63' is no minute"),
    ("cron", "deploy/cron/maskmill", "23 3 * * *", "23 3 * * moon", "'moon' is no weekday"),
    ("cron", "deploy/cron/maskmill", "23 3 * * *", "23 5-3 * * *", "'5-3' is no hour"),
    ("cron", "deploy/cron/maskmill", "yaml --quiet", "yaml --dump %", "unescaped %"),
    ("actionlint", ".github/workflows/tests.yml", "{{ matrix.python }}", "{{ matrix.pythn }}", 'property "pythn"'),
    ("actionlint", ".github/workflows/release.yml", "needs: check", "needs: checks", '"checks" which does not exist'),
    ("issue-forms", ".github/ISSUE_TEMPLATE/bug.yml", "type: input", "type: inputs", "'inputs'"),
    ("issue-config", ".github/ISSUE_TEMPLATE/config.yml", "true", "maybe", "'maybe'"),
    ("dependabot", ".github/dependabot.yml", "monthly", "each month", "'each month'"),
    ("citation", "CITATION.cff", "type: software", "type: program", "'program'"),
    (
        "cron",
        "deploy/cron/maskmill",
        "maskmill nice -n 10 maskmill watch /etc/maskmill/watch.yaml --quiet",
        "",
        "five",
    ),
]


@pytest.mark.parametrize(("hook", "file", "old", "new", "finding"), FAULTS, ids=[f"{f[0]}-{f[3][:20]}" for f in FAULTS])
def test_a_fault_is_found(
    hook: str,
    file: str,
    old: str,
    new: str,
    finding: str,
    checkout: Path,
    finds_nothing: Callable[[str, str], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = checkout / file
    good = path.read_text()
    assert old in good, f"{file} has no {old!r}"
    if "not checked" in (output := finds_nothing(hook, file)):
        pytest.skip(output)
    path.write_text(good.replace(old, new, 1))
    try:
        code, output = find(hook, file, checkout, capsys)
    finally:
        path.write_text(good)
    assert code == 1
    assert finding in output


def test_cron_reads_no_file_with_a_dot_in_its_name_nor_a_last_line_without_an_end(tmp_path: Path) -> None:
    path = tmp_path / "maskmill.cron"
    path.write_text((DEPLOY / "cron" / "maskmill").read_text().rstrip("\n"))
    assert len(check_deploy.check_crontabs([path])) == 2


def test_every_file_of_deploy_and_github_has_a_check() -> None:
    command = ["git", "ls-files", "-z", "deploy", ".github"]
    listed = subprocess.run(command, cwd=commands.ROOT, capture_output=True, text=True, check=True).stdout
    # The Makefile's ruff and mypy check Python; the rest is text, or what a tool wrote and tests compare.
    others = {".py", ".md", ".json", ".xml", ".txt", ".toml", ".lock", ".cfg"}
    names = [name for name in listed.split("\0") if name and Path(name).suffix not in others]
    unchecked = [name for name in names if not any(hook_takes(hook, commands.ROOT / name, name) for hook in HOOKS)]
    # Tests run the pipeline (tests/elements), and read the configuration of a watch.
    pipeline = [f"deploy/beam_yaml/{name}.yaml" for name in ("dump-to-examples", "maskmill-provider")]
    assert unchecked == [*pipeline, "deploy/watch.yaml"]


@pytest.mark.parametrize("name", [".ci/run", "deploy/dataflow/build_and_launch.sh", "training/data/launchers/slurm.sh"])
def test_scripts_are_found_by_their_first_line(name: str) -> None:
    assert hook_takes("shellcheck", commands.ROOT / name, name)


def test_a_missing_tool_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    left_out = check_deploy.check_units([DEPLOY / "systemd" / "maskmill-watch.timer"])
    assert left_out == check_deploy.LeftOut("systemd-analyze is missing")


def test_in_ci_a_check_that_is_left_out_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(check_deploy.CHECKS, "crontabs", lambda paths: check_deploy.LeftOut("no tool"))
    monkeypatch.delenv("MASKMILL_CI", raising=False)
    assert check_deploy.main(["crontabs", "deploy/cron/maskmill"]) == 0
    monkeypatch.setenv("MASKMILL_CI", "1")
    assert check_deploy.main(["crontabs", "deploy/cron/maskmill"]) == 1


def test_dataflow_takes_the_request_of_the_schedule() -> None:
    """The names in Terraform's `launch` are fields of Google's LaunchFlexTemplateRequest, its values those of enums."""
    import hcl2
    from google.cloud import dataflow_v1beta3
    from google.protobuf import json_format

    content = hcl2.loads((DEPLOY / "terraform" / "main.tf").read_text())
    (launch,) = (block["launch"] for block in content["locals"] if "launch" in block)
    parameter = {name.strip('"'): value for name, value in launch["launchParameter"].items()}
    environment = {name: value for name, value in parameter["environment"].items() if not name.startswith("__")}
    # Values that Terraform computes are texts here, but for these.
    environment |= {"maxWorkers": 32, "additionalUserLabels": {}}
    for address in ("WORKER_IP_UNSPECIFIED", "WORKER_IP_PRIVATE"):
        assert address in environment["ipConfiguration"]
        request = {
            "launchParameter": {
                "jobName": parameter["jobName"],
                "containerSpecGcsPath": parameter["containerSpecGcsPath"],
                "parameters": {},
                "environment": environment | {"ipConfiguration": address},
            }
        }
        assert {n for n in parameter if not n.startswith("__")} == set(request["launchParameter"])
        # An unknown field or value raises.
        json_format.ParseDict(
            request, dataflow_v1beta3.LaunchFlexTemplateRequest.pb(dataflow_v1beta3.LaunchFlexTemplateRequest())
        )


def test_the_schema_keeps_the_names_that_are_used() -> None:
    needs = {"name": "required", "id": "computed", "note": "optional", "more": "optional"}
    block = {
        "attributes": {name: {need: True} for name, need in needs.items()},
        "block_types": {"rule": {"min_items": 1, "block": {"attributes": {}}}},
    }
    full = {"provider_schemas": {"google": {"resource_schemas": {"a": {"block": block}, "b": {"block": block}}}}}
    reduced = check_deploy.reduced_schema(full, {"resource": {"a"}, "data": set()}, {"id", "note"})
    assert reduced == {
        "resource": {
            "a": {
                "attributes": {"name": "required", "id": "computed", "note": "optional"},
                "blocks": {"rule": {"attributes": {}, "blocks": {}, "is_required": True}},
            }
        },
        "data": {},
    }
