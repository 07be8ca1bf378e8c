"""What a forge reads and runs: workflows, the check of a release, the check of licences."""

import re
import shutil
from pathlib import Path
from typing import Any

import ci_programs
import pytest
import yaml
from conftest import ROOT

import maskmill

check_release = ci_programs.load("check_release")
check_licences = ci_programs.load("check_licences")
WORKFLOWS = {path.stem: path.read_text() for path in (ROOT / ".github" / "workflows").iterdir()}


def steps(name: str) -> list[dict[str, Any]]:
    return [step for job in yaml.safe_load(WORKFLOWS[name])["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_may_do_little_and_takes_actions_by_their_hash(name: str) -> None:
    content = yaml.safe_load(WORKFLOWS[name])
    assert content["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in content["jobs"].values())
    used = re.findall(r"uses: (.*)", WORKFLOWS[name])
    assert used
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", action) for action in used)


def test_workflows_run_what_is_here() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    ran = [step["run"] for name in WORKFLOWS for step in steps(name) if "run" in step]
    for command in ran:
        wanted = {word for line in re.findall(r"^make (.*)", command) for word in line.split() if "=" not in word}
        assert wanted <= targets
        for program in re.findall(r"\.ci/\S+", command):
            assert (ROOT / program).is_file()
    assert any(".ci/run" in command for command in ran)


def test_the_tests_run_on_each_python_that_the_package_takes() -> None:
    taken = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "setup.py").read_text())
    matrix = yaml.safe_load(WORKFLOWS["tests"])["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == taken
    assert {"ubuntu-24.04", "ubuntu-24.04-arm"} <= set(matrix["machine"])


def test_every_lock_is_audited_or_only_reads_our_files() -> None:
    locks = {path.stem for path in ROOT.glob("requirements*.lock")}
    (matrix,) = (job["strategy"]["matrix"] for job in yaml.safe_load(WORKFLOWS["audit"])["jobs"].values())
    assert locks - set(matrix["lock"]) == {"requirements-readers", "requirements-test"}


def test_this_tree_is_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert check_release.main([maskmill.__version__]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 1


def test_what_keeps_a_tree_from_being_released_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_release.main(["9.9"]) == 1
    said = capsys.readouterr().err
    assert "9.9 is not a version such as 0.2.0." in said
    for name in check_release.PLACES:
        assert f"{name} has the version {maskmill.__version__}, not 9.9" in said
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace("# Changelog\n", f"# Changelog\n\n## {maskmill.__version__}\n"))
    assert list(check_release.findings(maskmill.__version__, tmp_path)) == [
        f"CHANGELOG.md says nothing of {maskmill.__version__}; write what changed for users."
    ]
    assert check_release.main([]) == 2


@pytest.mark.parametrize(
    ("licence", "taken"),
    [
        ("Apache-2.0 AND MIT", True),
        ("GPL-3.0 OR BSD-3-Clause", True),
        ("GPL-3.0 AND BSD-3-Clause", False),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", True),
        ("LicenseRef-NVIDIA-Proprietary", False),
        ("LIMITED", False),
        ("", False),
    ],
)
def test_a_licence_is_taken_or_not(licence: str, taken: bool) -> None:
    assert check_licences.is_taken(licence) is taken


def test_the_licences_of_all_packages_here_are_taken() -> None:
    assert list(check_licences.findings()) == []
