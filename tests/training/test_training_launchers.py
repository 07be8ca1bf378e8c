"""The commands of the launchers and the files that they fill in."""

import json

import pytest
import yaml

from training import command, launchers
from training.options import TrainOptions
from transforms.errors import RunFailedError, UnusableInputError

GIVEN = {"output_dir": "run", "input_file": ("part-*",)}
FLAGS = ["--output_dir=run", "--input_file=part-*", "--shuffle=False"]


def planned(launcher, **changes):
    return launchers.plan(TrainOptions(**(GIVEN | {"launcher": launcher, "shuffle": False} | changes)))


def gke_arguments(launch):
    pod = yaml.safe_load(launch.content)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    return pod["containers"][0]["args"]


def test_launchers_carry_every_flag():
    for name, program in (("local", "bash"), ("slurm", "sbatch")):
        launch = planned(name)
        assert launch.command[0] == program
        assert list(launch.command[2:]) == FLAGS
    vertex = planned("vertex")
    assert vertex.command[:4] == ("gcloud", "ai", "custom-jobs", "create")
    container = yaml.safe_load(vertex.content)["workerPoolSpecs"][0]["containerSpec"]
    assert container["args"] == FLAGS
    gke = planned("gke")
    assert gke.command[:2] == ("kubectl", "apply")
    assert gke_arguments(gke) == [*FLAGS, "--coordinator=auto"]


def test_a_coordinator_that_was_given_is_kept():
    assert gke_arguments(planned("gke", coordinator="host:1")) == [*FLAGS, "--coordinator=host:1"]


def test_defaults_and_the_launchers_own_options_are_no_flags():
    options = TrainOptions(**GIVEN, launcher="gke", launcher_file="x.yaml", dry_run=True, seed=0, num_devices=2)
    assert launchers.flags(options) == ["--output_dir=run", "--input_file=part-*", "--num_devices=2"]


def test_a_vertex_file_sets_the_region_and_the_name(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("#launch REGION=europe-west4\n#launch DISPLAY_NAME=a=b\n# not $ARGUMENTS\nargs: $ARGUMENTS\n")
    launch = planned("vertex", launcher_file=str(path))
    assert launch.command[4:] == ("--region=europe-west4", "--display-name=a=b", "--config=/dev/stdin")
    assert launch.content.endswith(f"# not $ARGUMENTS\nargs: {json.dumps(FLAGS)}\n")
    path.write_text("args: $ARGUMENTS\n")
    assert planned("vertex", launcher_file=str(path)).command[4:6] == (
        "--region=us-central1",
        "--display-name=maskmill-train",
    )


def test_a_dry_run_prints_and_runs_nothing(capsys):
    options = TrainOptions(**GIVEN, launcher="local", dry_run=True)
    assert command.run(options) == 0
    assert capsys.readouterr().out.split()[0] == "bash"


def test_a_launcher_runs_its_file(tmp_path):
    script = tmp_path / "mine.sh"
    script.write_text(f'printf "%s\\n" "$@" > {tmp_path}/flags\n')
    assert launchers.launch(TrainOptions(**GIVEN, launcher="local", launcher_file=str(script))) == 0
    assert (tmp_path / "flags").read_text().splitlines() == FLAGS[:2]
    script.write_text("exit 3\n")
    with pytest.raises(RunFailedError, match="bash ended with code 3"):
        launchers.launch(TrainOptions(**GIVEN, launcher="local", launcher_file=str(script)))


def test_a_launchers_program_reads_the_filled_file(tmp_path, monkeypatch):
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(f'#!/bin/sh\ncat > {tmp_path}/applied\necho "$@" > {tmp_path}/arguments\n')
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    options = TrainOptions(**GIVEN, launcher="gke")
    assert launchers.launch(options) == 0
    assert (tmp_path / "applied").read_text() == launchers.plan(options).content
    assert (tmp_path / "arguments").read_text() == "apply --filename -\n"


def test_bad_launchers_are_one_sentence(tmp_path, monkeypatch):
    with pytest.raises(UnusableInputError, match=r"nothing.yaml: this file does not exist"):
        planned("gke", launcher_file="nothing.yaml")
    (tmp_path / "mine.yaml").write_text("kind: JobSet\n")
    with pytest.raises(UnusableInputError, match=r"mine.yaml: this file has no \$ARGUMENTS"):
        planned("gke", launcher_file=str(tmp_path / "mine.yaml"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnusableInputError, match="needs sbatch, which is not installed here"):
        launchers.launch(TrainOptions(**GIVEN, launcher="slurm"))


def test_shown_commands_can_be_pasted_into_a_shell():
    shown = planned("vertex").shown()
    assert shown.splitlines()[0].endswith("--config=/dev/stdin <<'END'")
    assert json.dumps(FLAGS) in shown
    quoted = launchers.Launch(("bash", "a b.sh", "--x=it's")).shown()
    assert quoted == """bash 'a b.sh' '--x=it'"'"'s'"""
