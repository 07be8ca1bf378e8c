"""Starting the training elsewhere: `maskmill train --launcher NAME` runs the command that does, or prints it.

Each launcher has a file in deploy/training/ with the settings of its place, which the user edits. This module puts the
training's flags into it.
"""

import dataclasses
import json
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from training.options import TrainOptions
from transforms.errors import RunFailedError, UnusableInputError

_FILES = {"local": "local.sh", "slurm": "slurm.sh", "vertex": "vertex.yaml", "gke": "gke.yaml"}
_LAUNCHER_OPTIONS = ("launcher", "launcher_file", "dry_run")
# A comment of this form in a launcher's file, `#launch NAME=VALUE`, sets an option of the command that submits it.
_SETTING = "#launch "


@dataclasses.dataclass(frozen=True)
class Launch:
    """A command, and the content of its standard input if it reads any."""

    command: tuple[str, ...]
    content: str | None = None

    def shown(self) -> str:
        """The command as one would type it into a shell."""
        line = shlex.join(self.command)
        return line if self.content is None else f"{line} <<'END'\n{self.content}END"


def flags(options: TrainOptions) -> list[str]:
    """The flags of `maskmill train` that give these options, without defaults and without the launcher's options."""
    given = []
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if field.name in _LAUNCHER_OPTIONS or value == field.default:
            continue
        given.append(f"--{field.name}={','.join(value) if isinstance(value, tuple) else value}")
    return given


def plan(options: TrainOptions) -> Launch:
    """The command of a launcher.

    Raises:
      UnusableInputError: the launcher's file is missing, or has no place for the flags.
    """
    path = _file(options)
    arguments = flags(options)
    if options.launcher == "local":
        return Launch(("bash", str(path), *arguments))
    if options.launcher == "slurm":
        return Launch(("sbatch", str(path), *arguments))
    if options.launcher == "gke":
        several_hosts = [] if options.coordinator is not None else ["--coordinator=auto"]
        return Launch(("kubectl", "apply", "--filename", "-"), _filled(path, [*arguments, *several_hosts]))
    settings = _settings(path)
    command = (
        *("gcloud", "ai", "custom-jobs", "create"),
        f"--region={settings.get('REGION', 'us-central1')}",
        f"--display-name={settings.get('DISPLAY_NAME', 'maskmill-train')}",
        "--config=/dev/stdin",
    )
    return Launch(command, _filled(path, arguments))


def _filled(path: Path, arguments: list[str]) -> str:
    """A launcher's YAML file with the flags in the place of $ARGUMENTS; comments stay as they are."""
    text = path.read_text(encoding="utf-8")
    if "$ARGUMENTS" not in text:
        raise UnusableInputError(f"{path}: this file has no $ARGUMENTS; write it where the training's flags belong.")
    # A list in JSON is one in YAML too.
    listed = json.dumps(arguments)
    lines = text.splitlines(keepends=True)
    return "".join(x if x.lstrip().startswith("#") else x.replace("$ARGUMENTS", listed) for x in lines)


def _settings(path: Path) -> dict[str, str]:
    """The values of a launcher's file's lines `#launch NAME=VALUE`, by name."""
    lines = path.read_text(encoding="utf-8").splitlines()
    pairs = (x.removeprefix(_SETTING).strip().partition("=") for x in lines if x.startswith(_SETTING))
    return {name: value for name, _, value in pairs}


def _file(options: TrainOptions) -> Path:
    name = _FILES[str(options.launcher)]
    if options.launcher_file is not None:
        path = Path(options.launcher_file)
        if not path.is_file():
            raise UnusableInputError(f"--launcher_file {path}: this file does not exist; check the path.")
        return path
    for root in (Path.cwd(), Path(__file__).resolve().parent.parent):
        if (path := root / "deploy" / "training" / name).is_file():
            return path
    raise UnusableInputError(
        f"deploy/training/{name}: there is no such file below the current directory; give the launcher's file with "
        "--launcher_file."
    )


def launch(options: TrainOptions) -> int:
    """Prints a launcher's command (with `dry_run`) or runs it. Returns the exit code, 0.

    Raises:
      UnusableInputError: the launcher's file or the program that submits it is missing.
      RunFailedError: the program failed.
    """
    planned = plan(options)
    if options.dry_run:
        print(planned.shown())
        return 0
    program = planned.command[0]
    if shutil.which(program) is None:
        raise UnusableInputError(f"--launcher {options.launcher} needs {program}, which is not installed here.")
    with tempfile.TemporaryFile("w+", encoding="utf-8") as content:
        content.write(planned.content or "")
        content.seek(0)
        code = subprocess.run(planned.command, stdin=content, check=False).returncode
    if code:
        raise RunFailedError(f"--launcher {options.launcher}: {program} ended with code {code}.")
    return 0
