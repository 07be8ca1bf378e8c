"""The commands of the launchers and the files that they fill in. tests/deploy has the vendors' schemas."""

import json
import signal
import subprocess
import time

import pytest
import yaml

from maskmill.errors import RunFailedError, UnusableInputError
from training import command, launchers
from training.options import TrainOptions

GIVEN = {"output_dir": "gs://bucket/run", "input_file": ("gs://bucket/part-*",)}
FLAGS = ["--output_dir=gs://bucket/run", "--input_file=gs://bucket/part-*", "--shuffle=False"]


def planned(launcher, **changes):
    return launchers.plan(TrainOptions(**(GIVEN | {"launcher": launcher, "shuffle": False} | changes)))


def gke_arguments(launch):
    pod = yaml.safe_load(launch.content)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    return pod["containers"][0]["args"]


def gke_name(**changes):
    return yaml.safe_load(planned("gke", **changes).content)["metadata"]["name"]


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


def test_flags_survive_yaml():
    odd = "gs://bucket/$NAME: $ARGUMENTS 'ä' \U0001f600 \"#\""
    assert gke_arguments(planned("gke", output_dir=odd))[0] == f"--output_dir={odd}"


def test_defaults_and_the_launchers_own_options_are_no_flags():
    options = TrainOptions(**GIVEN, launcher="gke", launcher_file="x.yaml", dry_run=True, seed=0, num_devices=2)
    assert launchers.flags(options) == [*FLAGS[:2], "--num_devices=2"]


def test_other_flags_or_another_file_make_another_jobset_and_the_same_do_not(tmp_path):
    name = gke_name()
    assert name.startswith("maskmill-train-")
    assert gke_name() == name
    assert gke_name(seed=1) != name
    mine = tmp_path / "mine.yaml"
    mine.write_text((launchers.FOLDER / "gke.yaml").read_text().replace("4x4", "4x8"))
    assert gke_name(launcher_file=str(mine)) != name
    # A name of the user's own is kept.
    mine.write_text(mine.read_text().replace("$NAME", "mine"))
    assert gke_name(launcher_file=str(mine)) == "mine"


def test_a_vertex_file_sets_the_region_and_the_name(tmp_path):
    path = tmp_path / "mine.yaml"
    job = "workerPoolSpecs: [{containerSpec: {args: $ARGUMENTS}}]\n"
    path.write_text(f"#launch REGION=europe-west4\n#launch DISPLAY_NAME=a=b\n# not $ARGUMENTS\n{job}")
    launch = planned("vertex", launcher_file=str(path))
    assert launch.command[4:] == ("--region=europe-west4", "--display-name=a=b", "--config=/dev/stdin")
    assert launch.content.endswith(f"# not $ARGUMENTS\n{job.replace('$ARGUMENTS', json.dumps(FLAGS))}")
    path.write_text(job)
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


def program(folder, name, text):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_a_launchers_program_reads_the_filled_file(tmp_path, monkeypatch):
    program(tmp_path, "kubectl", f'cat > {tmp_path}/applied\necho "$@" > {tmp_path}/arguments')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    options = TrainOptions(**GIVEN, launcher="gke")
    assert launchers.launch(options) == 0
    assert (tmp_path / "applied").read_text() == launchers.plan(options).content
    assert (tmp_path / "arguments").read_text() == "apply --filename -\n"


def test_the_local_launcher_adds_to_its_log(tmp_path, monkeypatch):
    program(tmp_path, "maskmill", 'echo "$@"')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    log = tmp_path / "maskmill-train.log"
    log.write_text("an earlier run\n")
    assert launchers.launch(TrainOptions(output_dir="run", input_file=("part-*",), launcher="local")) == 0
    expected = "an earlier run\ntrain --output_dir=run --input_file=part-*\n"
    wait_until(lambda: log.read_text() == expected)


def wait_until(holds):
    """Waits for a process of its own, at most until the test's process is ended from outside."""
    for _ in range(600):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it never came")


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Runs the job's script as Slurm does, with programs in the place of Slurm's that note how they are called."""
    for name in ("srun", "scancel", "scontrol"):
        program(tmp_path, name, f'echo "{name} $@ (cores: $SRUN_CPUS_PER_TASK)" >> {tmp_path}/calls')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "8")

    def run(tasks, training, *, told=False):
        """The exit code and the calls. `training` is what srun does; with `told`, the job is sent USR1 meanwhile."""
        monkeypatch.setenv("SLURM_NTASKS", str(tasks))
        (tmp_path / "srun").write_text((tmp_path / "srun").read_text() + training + "\n")
        job = subprocess.Popen(["bash", launchers.FOLDER / "slurm.sh", "--x=a b"])
        if told:
            wait_until((tmp_path / "started").exists)
            job.send_signal(signal.SIGUSR1)
        return job.wait(), (tmp_path / "calls").read_text().splitlines()

    run.folder = tmp_path
    return run


@pytest.mark.parametrize(("tasks", "code", "flag"), [(16, 0, "--coordinator=auto "), (1, 2, "")])
def test_the_tasks_of_a_slurm_job_get_cores_and_find_each_other_and_their_code_is_passed_on(slurm, tasks, code, flag):
    ended, calls = slurm(tasks, f"exit {code}")
    assert ended == code
    assert calls == [f"srun --kill-on-bad-exit=0 maskmill train {flag}--x=a b (cores: 8)"]


@pytest.mark.parametrize(("ends_with", "queued"), [(143, ["scontrol requeue 7"]), (0, [])], ids=["not-done", "done"])
def test_a_slurm_job_whose_time_is_nearly_over_ends_the_training_and_is_queued_again(slurm, ends_with, queued):
    # After scancel was called the training ends with the code of SIGTERM, as after a checkpoint, or because it is done.
    waiting = f"touch {slurm.folder}/started\nuntil grep -q scancel {slurm.folder}/calls; do sleep 0.05; done"
    code, calls = slurm(2, f"{waiting}\nexit {ends_with}", told=True)
    assert code == 0
    assert [c.split(" (")[0] for c in calls[1:]] == ["scancel --signal=TERM 7", *queued]


@pytest.mark.parametrize(
    ("launcher", "changes", "sentence"),
    [
        ("gke", {"launcher_file": "nothing.yaml"}, "nothing.yaml: this file does not exist"),
        ("gke", {"launcher_file": "."}, r"--launcher_file \.: this is no file"),
        ("gke", {"output_dir": "run"}, r"--output_dir run: the machines of --launcher gke do not have this path"),
        ("vertex", {"vocab_file": "/data/vocab.txt"}, "--vocab_file /data/vocab.txt: the machines"),
        ("vertex", {"coordinator": "auto"}, "--launcher vertex starts one machine"),
        (
            "slurm",
            {"process_id": 1, "coordinator": "auto"},
            "--process_id: --launcher slurm numbers its processes itself",
        ),
        ("gke", {"num_processes": 2, "coordinator": "auto"}, "--num_processes: --launcher gke numbers"),
        ("slurm", {"backend": "tensorflow"}, "--launcher slurm starts trainings on JAX"),
    ],
)
def test_options_that_do_not_go_with_a_launcher_are_one_sentence(launcher, changes, sentence):
    with pytest.raises(UnusableInputError, match=sentence):
        planned(launcher, **changes)


@pytest.mark.parametrize(
    ("launcher", "content", "sentence"),
    [
        ("gke", "kind: JobSet\n", r"mine.yaml: this file has no \$ARGUMENTS"),
        ("gke", "# $ARGUMENTS\nkind: JobSet\n", r"this file has no \$ARGUMENTS"),
        ("gke", "a: 1\nb: [$ARGUMENTS\n", "this launcher's file is no YAML in line 3"),
        ("vertex", "args: $ARGUMENTS\n", "this file has no list workerPoolSpecs"),
        ("vertex", "workerPoolSpecs: [{args: $ARGUMENTS, replicaCount: 2}]\n", "takes one machine"),
        ("vertex", "workerPoolSpecs: [{args: $ARGUMENTS}, {}]\n", "takes one machine"),
        (
            "vertex",
            "#launch REGON=x\nworkerPoolSpecs: [{args: $ARGUMENTS}]\n",
            "#launch knows REGION and DISPLAY_NAME, not 'REGON'",
        ),
        ("slurm", b"\xff", "this launcher's file cannot be read .it is not UTF-8"),
    ],
)
def test_a_launchers_file_that_cannot_be_used_is_one_sentence(tmp_path, launcher, content, sentence):
    path = tmp_path / "mine.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UnusableInputError, match=sentence):
        planned(launcher, launcher_file=str(path))


def test_paths_that_a_file_of_ones_own_may_mount_are_taken(tmp_path):
    mine = tmp_path / "mine.yaml"
    mine.write_text((launchers.FOLDER / "gke.yaml").read_text())
    assert planned("gke", launcher_file=str(mine), output_dir="/mnt/run")
    assert planned("vertex", output_dir="/gcs/bucket/run")
    assert planned("slurm", output_dir="run")


def test_a_missing_program_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnusableInputError, match="needs sbatch, which is not installed here"):
        launchers.launch(TrainOptions(**GIVEN, launcher="slurm"))


def test_shown_commands_can_be_pasted_into_a_shell():
    shown = planned("vertex").shown()
    assert shown.splitlines()[0].endswith("--config=/dev/stdin <<'END'")
    assert json.dumps(FLAGS) in shown
    quoted = launchers.Launch(("bash", "a b.sh", "--x=it's")).shown()
    assert quoted == """bash 'a b.sh' '--x=it'"'"'s'"""
