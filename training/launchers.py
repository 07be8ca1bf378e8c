"""Starting the training elsewhere: `maskmill train --launcher NAME` prints or runs the commands that do.

What is particular to a place stands in a file of deploy/training/, edited by the user; here the training's flags are
put into it.
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
_OWN = ("launcher", "launcher_file", "dry_run")
# A line of a launcher's file that gives a setting for the command line, not for the file's own reader.
_SETTING = "#launch "


@dataclasses.dataclass(frozen=True)
class Launch:
    """A command, and the content of its standard input or of the file that it names last, where it has one."""

    command: tuple[str, ...]
    content: str | None = None

    def shown(self) -> str:
        """As a shell would take it."""
        line = shlex.join(self.command)
        return line if self.content is None else f"{line} <<'END'\n{self.content}END"


def flags(options: TrainOptions) -> list[str]:
    """The flags of `maskmill train` that give these options, without the defaults and the launcher's own."""
    out = []
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if field.name in _OWN or value == field.default:
            continue
        out.append(f"--{field.name}={','.join(value) if isinstance(value, tuple) else value}")
    return out


def plan(options: TrainOptions) -> Launch:
    """The command of a launcher.

    Raises:
      UnusableInputError: the launcher's file is missing, or has no place for the flags.
    """
    name = str(options.launcher)
    path = _file(options)
    text = path.read_text(encoding="utf-8")
    arguments = flags(options)
    if name == "local":
        return Launch(("bash", str(path), *arguments))
    if name == "slurm":
        return Launch(("sbatch", str(path), *arguments))
    if "$ARGUMENTS" not in text:
        raise UnusableInputError(f"{path}: there is no $ARGUMENTS in it, where the training's flags belong.")
    if name == "gke" and options.coordinator is None:
        arguments.append("--coordinator=auto")
    lines = text.splitlines(keepends=True)
    settings = dict(x.removeprefix(_SETTING).strip().split("=", 1) for x in lines if x.startswith(_SETTING))
    # JSON's strings and lists are YAML's too.
    filled = "".join(x if x.lstrip().startswith("#") else x.replace("$ARGUMENTS", json.dumps(arguments)) for x in lines)
    if name == "gke":
        return Launch(("kubectl", "apply", "--filename", "-"), filled)
    return Launch(
        (
            *("gcloud", "ai", "custom-jobs", "create"),
            f"--region={settings.get('REGION', 'us-central1')}",
            f"--display-name={settings.get('DISPLAY_NAME', 'maskmill-train')}",
            "--config=/dev/stdin",
        ),
        filled,
    )


def _file(options: TrainOptions) -> Path:
    name = _FILES[str(options.launcher)]
    if options.launcher_file is not None:
        path = Path(options.launcher_file)
        if not path.is_file():
            raise UnusableInputError(f"--launcher_file {path}: this file does not exist.")
        return path
    for root in (Path.cwd(), Path(__file__).resolve().parent.parent):
        if (path := root / "deploy" / "training" / name).is_file():
            return path
    raise UnusableInputError(
        f"deploy/training/{name} is not below the current directory; name the launcher's file with --launcher_file."
    )


def launch(options: TrainOptions) -> int:
    """Prints a launcher's command (with `dry_run`) or runs it. Returns 0.

    Raises:
      UnusableInputError: the program that submits is not installed.
      RunFailedError: it failed.
    """
    chosen = plan(options)
    if options.dry_run:
        print(chosen.shown())
        return 0
    program = chosen.command[0]
    if shutil.which(program) is None:
        raise UnusableInputError(f"--launcher {options.launcher} needs {program}, and it is not installed here.")
    with tempfile.TemporaryFile("w+", encoding="utf-8") as content:
        content.write(chosen.content or "")
        content.seek(0)
        code = subprocess.run(chosen.command, stdin=content, check=False).returncode
    if code:
        raise RunFailedError(f"--launcher {options.launcher}: {program} ended with code {code}.")
    return 0
