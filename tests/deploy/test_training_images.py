"""The steps of the training's image, run in an empty folder: what it copies suffices to install maskmill."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest
import skips

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "deploy" / "training" / "Dockerfile"


def instructions() -> Iterator[tuple[str, str]]:
    """The instructions of the Dockerfile, each with its arguments on one line."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE)
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip():
            instruction, _, arguments = line.partition(" ")
            yield instruction, arguments.strip()


def copies() -> list[tuple[list[str], str]]:
    """(sources, target) of each COPY."""
    found = [shlex.split(arguments) for instruction, arguments in instructions() if instruction == "COPY"]
    return [(sources, target) for *sources, target in found]


def tracked(name: str) -> list[str]:
    """The tracked files of a name, which is a file's or a folder's: what a clean clone has."""
    listed = subprocess.run(["git", "ls-files", "--", name], cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()


def test_the_image_copies_every_package() -> None:
    copied = {source for sources, _ in copies() for source in sources}
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} <= copied
    assert all(tracked(source) for source in copied), copied


def test_the_image_installs_jax_as_it_is_locked() -> None:
    installs = " ".join(arguments for instruction, arguments in instructions() if instruction == "RUN")
    assert "--requirement requirements-jax.lock" in installs
    # The constraint keeps the accelerator's wheels at the locked version of JAX. It is the lock file without checksums.
    (without_checksums,) = re.findall(r"&& (sed [^>]+) > versions.txt", installs)
    assert re.search(r'--constraint versions.txt "jax\[\S+\]"', installs)
    constraints = subprocess.run(
        ["bash", "-c", without_checksums], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert all(re.fullmatch(r"[\w.-]+==\S+( ; .+[^\\])?", line) for line in constraints.stdout.splitlines())
    assert re.search(r"^jax==", (ROOT / "requirements-jax.lock").read_text(), re.MULTILINE)


@pytest.mark.builds
@pytest.mark.long
def test_what_the_image_copies_installs_and_starts(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    for sources, target in copies():
        for source in sources:
            for file in tracked(source):
                # COPY puts a file below the target's name, and a folder's content at it.
                inside = Path(target) / (Path(file).name if source == file else Path(file).relative_to(source))
                (work / inside).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / file, work / inside)
    # The locked packages are those of this environment; the last step, which installs maskmill, runs as it is written.
    venv.create(tmp_path / "venv", with_pip=True)
    *_, (_, last_run) = ((i, arguments) for i, arguments in instructions() if i == "RUN")
    pip, *install = shlex.split(last_run)
    assert pip == "pip"
    python = tmp_path / "venv" / "bin" / "python"
    installed = subprocess.run([python, "-m", "pip", *install], cwd=work, capture_output=True, text=True, check=False)
    if installed.returncode:
        skips.skip_if_unreachable(installed.stderr)
    assert installed.returncode == 0, installed.stderr
    *_, (_, entry) = ((i, arguments) for i, arguments in instructions() if i == "ENTRYPOINT")
    assert entry == '["maskmill", "train"]'
    # Neither the checkout nor TensorFlow, JAX or Keras is on the path.
    packages = next(p for p in sys.path if p.endswith("site-packages"))
    (own,) = (tmp_path / "venv" / "lib").glob("*/site-packages")
    assert (own / "maskmill" / "py.typed").is_file()
    flags = ["--output_dir=gs://bucket/run", "--input_file=gs://bucket/part-*"]
    scripts = {"local": "bash", "slurm": "sbatch"}
    for launcher in (*scripts, "gke", "vertex"):
        run = subprocess.run(
            [tmp_path / "venv" / "bin" / "maskmill", "train", f"--launcher={launcher}", "--dry_run", *flags],
            cwd=tmp_path,
            env={"PYTHONPATH": f"{own}:{packages}", "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        if launcher in scripts:
            script = own / "training" / "data" / "launchers" / f"{launcher}.sh"
            assert script.is_file()
            assert run.stdout == shlex.join([scripts[launcher], str(script), *flags]) + "\n"
        else:
            assert json.dumps(flags)[1:-1] in run.stdout
