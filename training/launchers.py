"""Starting the training elsewhere: `maskmill train --launcher NAME` runs the command that starts it, or prints it.

Each launcher has a file with settings in training/data/launchers/. For other settings, edit a copy and pass it with
--launcher_file. This module puts the training's flags into it.
"""

import dataclasses
import hashlib
import json
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import yaml

from maskmill.errors import RunFailedError, UnusableInputError
from training.options import TrainOptions

FOLDER = Path(__file__).resolve().parent / "data" / "launchers"
_FILES = {"local": "local.sh", "slurm": "slurm.sh", "vertex": "vertex.yaml", "gke": "gke.yaml"}
# The programs that take launchers' scripts.
_SCRIPTS = {"local": "bash", "slurm": "sbatch"}
_LAUNCHER_OPTIONS = ("launcher", "launcher_file", "dry_run")
# A comment of this form in a launcher's file, `#launch NAME=VALUE`, sets an option of the command that submits it.
_SETTING = "#launch "
_VERTEX_SETTINGS = {"REGION": "us-central1", "DISPLAY_NAME": "maskmill-train"}
# The places of flags and of the job's name in a launcher's file.
_ARGUMENTS, _NAME = "$ARGUMENTS", "$NAME"

# These launchers start the training on machines that do not have this machine's files.
_REMOTE = ("vertex", "gke")
_PATHS = (
    "output_dir", "input_file", "eval_file", "bert_config_file", "vocab_file", "tokenizer_file", "init_checkpoint",
    "checkpoint",
)  # fmt: skip
_BUCKET = "gs://"
# Vertex AI mounts all buckets here.
_VERTEX_BUCKETS = "/gcs/"


@dataclasses.dataclass(frozen=True)
class Launch:
    """A command, and the content of its standard input if it reads any."""

    command: tuple[str, ...]
    content: str | None = None

    def shown(self) -> str:
        """Return the command as a line for a shell."""
        line = shlex.join(self.command)
        return line if self.content is None else f"{line} <<'END'\n{self.content}END"


def flags(options: TrainOptions) -> list[str]:
    """Return the flags of `maskmill train` for these options, without defaults and the launcher's own options."""
    given = []
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if field.name in _LAUNCHER_OPTIONS or value == field.default:
            continue
        given.append(f"--{field.name}={','.join(value) if isinstance(value, tuple) else value}")
    return given


def plan(options: TrainOptions) -> Launch:
    """Return the command of a launcher.

    Raises:
      UnusableInputError: the launcher's file is missing or cannot be used, or options do not go with the launcher.
    """
    _check(options)
    path = _file(options)
    text, arguments = _read(path), flags(options)
    if options.launcher in _SCRIPTS:
        return Launch((_SCRIPTS[options.launcher], str(path), *arguments))
    if options.launcher == "gke":
        several_hosts = [] if options.coordinator is not None else ["--coordinator=auto"]
        content = _filled(path, text, [*arguments, *several_hosts])
        return Launch(("kubectl", "apply", "--filename", "-"), content)
    content = _filled(path, text, arguments)
    _check_one_machine(path, yaml.safe_load(content))
    settings = _VERTEX_SETTINGS | _settings(path, text)
    command = (
        *("gcloud", "ai", "custom-jobs", "create"),
        f"--region={settings['REGION']}",
        f"--display-name={settings['DISPLAY_NAME']}",
        "--config=/dev/stdin",
    )
    return Launch(command, content)


def _check(options: TrainOptions) -> None:
    """Check that the options go with their launcher."""
    launcher = options.launcher
    if launcher == "local":
        return
    if options.backend != "jax":
        raise UnusableInputError(f"--launcher {launcher} starts trainings on JAX; leave --backend out.")
    for name in ("process_id", "num_processes"):
        if getattr(options, name) is not None:
            raise UnusableInputError(f"--{name}: --launcher {launcher} numbers its processes itself; leave it out.")
    if launcher == "vertex" and options.coordinator is not None:
        raise UnusableInputError(
            "--coordinator: --launcher vertex starts one machine; leave it out, or use slurm or gke for several."
        )
    if launcher in _REMOTE:
        _check_paths(options)


def _check_paths(options: TrainOptions) -> None:
    """Check that the machines of a service can read and write the paths in the options."""
    # A user's own launcher file may mount others.
    buckets = [_BUCKET, *([_VERTEX_BUCKETS] if options.launcher == "vertex" else [])]
    reachable = tuple(buckets) if options.launcher_file is None else (*buckets, "/")
    for name in _PATHS:
        value = getattr(options, name)
        for path in value if isinstance(value, tuple) else [value]:
            if path is not None and not path.startswith(reachable):
                raise UnusableInputError(
                    f"--{name} {path}: the machines of --launcher {options.launcher} do not have this path; name one "
                    "in a bucket (gs://…)."
                )


def _check_one_machine(path: Path, job: Any) -> None:
    """Check that a Vertex AI job has one machine: JAX cannot find several there."""
    pools = job.get("workerPoolSpecs") if isinstance(job, dict) else None
    if not isinstance(pools, list) or not all(isinstance(pool, dict) for pool in pools):
        raise UnusableInputError(f"{path}: this file has no list workerPoolSpecs; begin with the file of --dry_run.")
    if [pool.get("replicaCount", 1) for pool in pools] != [1]:
        raise UnusableInputError(
            f"{path}: --launcher vertex takes one machine, a single pool with the replicaCount 1; use slurm or gke for "
            "several."
        )


def _read(path: Path) -> str:
    """Return the content of a launcher's file."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UnusableInputError(f"{path}: this launcher's file cannot be read ({reason}).") from None


def _filled(path: Path, text: str, arguments: list[str]) -> str:
    """Return a launcher's YAML file with the flags and the job's name in their places; comments stay as they are.

    The name ends with a digest of the file and the flags, so that other flags are another job.
    """
    # A JSON list is also a YAML list.
    listed = json.dumps(arguments, ensure_ascii=False)
    name = f"maskmill-train-{hashlib.sha256((text + listed).encode()).hexdigest()[:8]}"
    lines = text.splitlines(keepends=True)
    places = [i for i, line in enumerate(lines) if not line.lstrip().startswith("#")]
    if not any(_ARGUMENTS in lines[i] for i in places):
        raise UnusableInputError(f"{path}: this file has no $ARGUMENTS; write it where the training's flags belong.")
    for i in places:
        lines[i] = lines[i].replace(_NAME, name).replace(_ARGUMENTS, listed)
    filled = "".join(lines)
    try:
        yaml.safe_load(filled)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" in line {mark.line + 1}"
        raise UnusableInputError(f"{path}: this launcher's file is no YAML{where}; correct it.") from None
    return filled


def _settings(path: Path, text: str) -> dict[str, str]:
    """Return the values of a launcher's file's lines `#launch NAME=VALUE`, by name."""
    pairs = (x.removeprefix(_SETTING).strip().partition("=") for x in text.splitlines() if x.startswith(_SETTING))
    settings = {name.strip(): value.strip() for name, _, value in pairs}
    for name in settings.keys() - _VERTEX_SETTINGS:
        known = " and ".join(_VERTEX_SETTINGS)
        raise UnusableInputError(f"{path}: #launch knows {known}, not {name!r}; correct the line.")
    return settings


def _file(options: TrainOptions) -> Path:
    """Return the launcher's file: the user's or the one that comes with maskmill."""
    if options.launcher_file is None:
        return FOLDER / _FILES[str(options.launcher)]
    path = Path(options.launcher_file)
    if not path.is_file():
        reason = "this is no file" if path.exists() else "this file does not exist"
        raise UnusableInputError(f"--launcher_file {path}: {reason}; check the path.")
    return path


def launch(options: TrainOptions) -> int:
    """Print a launcher's command (with `dry_run`) or run it. Return the exit code, 0.

    Raises:
      UnusableInputError: the launcher's file or the program that submits it is missing or cannot be used, or options
        do not go with the launcher.
      RunFailedError: the program failed.
    """
    planned = plan(options)
    if options.dry_run:
        print(planned.shown())
        return 0
    program = planned.command[0]
    if shutil.which(program) is None:
        raise UnusableInputError(
            f"--launcher {options.launcher} needs {program}, which is not installed here; install it, or see the "
            "command with --dry_run."
        )
    if options.launcher == "local" and options.launcher_file is None and shutil.which("maskmill") is None:
        raise UnusableInputError("--launcher local finds no maskmill on the path; activate its environment first.")
    with tempfile.TemporaryFile("w+", encoding="utf-8") as content:
        content.write(planned.content or "")
        content.seek(0)
        code = subprocess.run(planned.command, stdin=content, check=False).returncode
    if code:
        raise RunFailedError(f"--launcher {options.launcher}: {program} ended with code {code}.")
    return 0
