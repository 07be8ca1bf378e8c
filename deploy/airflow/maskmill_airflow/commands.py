"""The command lines of maskmill that Airflow runs, and what they leave. Plain functions, without Airflow."""

import dataclasses
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Exit codes of maskmill.
DONE, UNUSABLE = 0, 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Installation:
    """Where maskmill is installed, and how it is called.

    Attributes:
      command: the program and its first arguments.
      environment: variables that are added to those of the Airflow process.
      directory: where it runs; relative paths in a build's file begin there. None: the Airflow process's directory.
    """

    command: tuple[str, ...] = ("maskmill",)
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    directory: str | None = None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "Installation":
        """Reads the installation from a connection's extra fields `command`, `environment` and `directory`.

        Raises:
          ValueError: a field has another form than this, or there is a field that is not known.
        """
        known = {f.name for f in dataclasses.fields(cls)}
        if unknown := sorted(set(settings) - known):
            raise ValueError(f"A maskmill connection has no field {unknown[0]!r}; it has {', '.join(sorted(known))}.")
        command = settings.get("command") or "maskmill"
        parts = shlex.split(command) if isinstance(command, str) else command
        environment = settings.get("environment") or {}
        if not isinstance(environment, Mapping):
            raise ValueError("The field environment of a maskmill connection must be an object of names and values.")
        return cls(
            command=tuple(str(part) for part in parts),
            environment={str(name): str(value) for name, value in environment.items()},
            directory=settings.get("directory") or None,
        )


def build_stage(
    config: str, *, stage: str, dump: str | None, owner: str, summary: str, flags: Sequence[str] = ()
) -> list[str]:
    """The arguments that build one stage of a release.

    Args:
      config: the build's file.
      stage: the stage, as extract.
      dump: the dump's date, as 2026-03-01; None: the newest one.
      owner: who holds the release's lock; the stages of one run have one owner.
      summary: the file that gets the build's last event.
      flags: more flags, those of a Beam runner too.
    """
    return [
        *("build", config, "--release", "--from", stage, "--until", stage, "--owner", owner),
        *(["--dump", dump] if dump else []),
        *("--on_event", f"cat > {shlex.quote(summary)}", "--log_format", "json"),
        *flags,
    ]


def download(config: str, *, dump: str | None, flags: Sequence[str] = ()) -> list[str]:
    """The arguments that download a dump."""
    return ["watch", config, "--download_only", *(["--dump", dump] if dump else []), "--log_format", "json", *flags]


def check(config: str) -> list[str]:
    """The arguments that say, as JSON, which dump is the newest complete one and whether it is new."""
    return ["watch", config, "--check"]


def last_object(output: str) -> dict[str, Any] | None:
    """The JSON object that a command printed: its whole output, or the last line that is one; None if there is none."""
    for text in (output, *reversed(output.splitlines())):
        try:
            found = json.loads(text)
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    return None


def read_summary(path: str) -> dict[str, Any] | None:
    """Read the last event of a build, a JSON object; None if it has sent none."""
    file = Path(path)
    return last_object(file.read_text(encoding="utf-8")) if file.exists() else None
