"""`make lint` on what deploy/ holds (.ci/check_deploy.py): each check finds a fault that is put into a file."""

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest
from command_runs import commands

# Each check starts a linter, and there are many.
pytestmark = pytest.mark.releases

DEPLOY = commands.ROOT / "deploy"


def _load() -> ModuleType:
    """The program, which is in no package."""
    spec = importlib.util.spec_from_file_location("check_deploy", commands.ROOT / ".ci" / "check_deploy.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_deploy"] = module
    spec.loader.exec_module(module)
    return module


check_deploy = _load()


def changed(tmp_path: Path, original: Path, old: str, new: str) -> Path:
    """A copy of a file with a fault in it."""
    text = original.read_text()
    assert text.count(old) >= 1, f"{original} has no {old!r}"
    copy = tmp_path / original.name
    copy.write_text(text.replace(old, new, 1))
    return copy


FAULTS = [
    # (check, file, what is replaced, by what, what the finding says)
    ("check_scripts", "dataflow/build_and_launch.sh", '"$(dirname "$0")/../.."', "$(dirname $0)/../..", "SC2046"),
    ("check_scripts", "dataflow/build_and_launch.sh", "if [ $# -eq 0 ]; then", "if [ $# -eq 0 ];", "SC1"),
    ("check_dockerfiles", "dataflow/Dockerfile", "--requirement requirements-gcp.lock", "numpy", "DL3013"),
    ("check_dockerfiles", "training/Dockerfile.gpu", "WORKDIR /opt/maskmill", "WORKDIR maskmill", "DL3000"),
    ("check_compose", "flink/docker-compose.yaml", "depends_on: [jobmanager]", "depend_on: [jobmanager]", "depend_on"),
    ("check_kubernetes", "kubernetes/watch.yaml", "concurrencyPolicy", "concurrencyPolice", "concurrencyPolice"),
    ("check_kubernetes", "kubernetes/watch.yaml", "backoffLimit: 3", "backoffLimit: three", "three"),
    ("check_kubernetes", "kubernetes/watch.yaml", "batch/v1", "batch/v7", "batch/v7"),
    ("check_flink", "flink/kubernetes.yaml", "replicas: 8", "replicas: eight", "eight"),
    ("check_flink", "flink/kubernetes.yaml", "podTemplate", "podTemplates", "podTemplates"),
    ("check_flink", "flink/kubernetes.yaml", "containerPort: 50000", "containersPort: 50000", "containersPort"),
    ("check_flink", "flink/kubernetes.yaml", "mode: standalone", "mode: single", "single"),
    ("check_terraform", "terraform/main.tf", "public_access_prevention ", "public_acces_prevention ", "public_acces_"),
    ("check_terraform", "terraform/main.tf", 'role_id     = "maskmillLauncher"', "", "role_id is missing"),
    ("check_terraform", "terraform/main.tf", "oauth_token {", "oauth_tokens {", "oauth_tokens"),
    (
        "check_terraform",
        "terraform/main.tf",
        'resource "google_cloud_scheduler_job"',
        'resource "google_job"',
        "google_job",
    ),
    ("check_terraform", "terraform/main.tf", "account_id   =", "email = 1\n  account_id =", "there is no email"),
    ("check_terraform", "terraform/main.tf", "locals {", "locals {{", "main.tf: "),
    ("check_terraform", "terraform/variables.tf", "variable", "variables", "no block variables"),
    ("check_units", "systemd/maskmill-watch.service", "Type=oneshot", "Type=onceshot", "onceshot"),
    ("check_units", "systemd/maskmill-watch.service", "ProtectClock=true", "ProtectClok=true", "ProtectClok"),
    ("check_units", "systemd/maskmill-watch.service", "User=maskmill", "User=root", "more than 1.5 of 10"),
    ("check_units", "systemd/maskmill-watch.timer", "03:23:00", "33:23:00", "33:23:00"),
    ("check_crontabs", "cron/maskmill", "23 3 * * *", "63 3 * * *", "'63' is no minute"),
    ("check_crontabs", "cron/maskmill", "23 3 * * *", "23 3 * * moon", "'moon' is no weekday"),
    ("check_crontabs", "cron/maskmill", "23 3 * * *", "23 5-3 * * *", "'5-3' is no hour"),
    ("check_crontabs", "cron/maskmill", "yaml --quiet", "yaml --dump %", "unescaped %"),
    (
        "check_crontabs",
        "cron/maskmill",
        "maskmill nice -n 10 maskmill watch /etc/maskmill/watch.yaml --quiet",
        "",
        "five",
    ),
]


@pytest.mark.parametrize(
    ("check", "file", "old", "new", "finding"), FAULTS, ids=[f"{f[0][6:]}-{f[3][:20]}" for f in FAULTS]
)
def test_a_fault_is_found(check: str, file: str, old: str, new: str, finding: str, tmp_path: Path) -> None:
    run = getattr(check_deploy, check)
    good = run([DEPLOY / file])
    if isinstance(good, check_deploy.LeftOut):
        pytest.skip(good.why)
    assert good == []
    found = run([changed(tmp_path, DEPLOY / file, old, new)])
    assert any(finding in line for line in found), found


def test_cron_reads_no_file_with_a_dot_in_its_name_nor_a_last_line_without_an_end(tmp_path: Path) -> None:
    path = tmp_path / "maskmill.cron"
    path.write_text((DEPLOY / "cron" / "maskmill").read_text().rstrip("\n"))
    assert len(check_deploy.check_crontabs([path])) == 2


def test_every_file_of_deploy_has_a_check() -> None:
    files = [path for path in check_deploy.listed(commands.ROOT) if "deploy" in path.relative_to(commands.ROOT).parts]
    checked = {path for _, paths in check_deploy.checks(files) for path in paths}
    # The Makefile's ruff and mypy check Python; the rest is text, or what a tool wrote and tests compare.
    others = {".py", ".md", ".json", ".xml", ".txt", ".toml", ".lock", ".cfg"}
    assert [p for p in files if p not in checked and p.suffix not in others] == []


def test_scripts_are_found_by_their_first_line() -> None:
    files = check_deploy.listed(commands.ROOT)
    scripts = {path.relative_to(commands.ROOT).as_posix() for path in files if check_deploy.is_script(path)}
    assert {".ci/run", "deploy/dataflow/build_and_launch.sh", "training/data/launchers/slurm.sh"} <= scripts
    assert not {name for name in scripts if name.endswith(".py")}


def test_a_missing_tool_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_deploy, "tool", lambda name: None)
    left_out = check_deploy.check_units([DEPLOY / "systemd" / "maskmill-watch.timer"])
    assert left_out == check_deploy.LeftOut("systemd-analyze is missing")


def test_in_ci_a_check_that_is_left_out_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shutil.copy(DEPLOY / "cron" / "maskmill", tmp_path)
    left_out = [(lambda paths: check_deploy.LeftOut("no tool"), [tmp_path / "maskmill"])]
    monkeypatch.setattr(check_deploy, "checks", lambda paths: left_out)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MASKMILL_CI", raising=False)
    assert check_deploy.main() == 0
    monkeypatch.setenv("MASKMILL_CI", "1")
    assert check_deploy.main() == 1


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
