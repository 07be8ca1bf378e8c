"""Kills a command at an exact moment: just before its Nth change of a file, or its Nth request to a storage server.

A command is started with a `sitecustomize` of ours. Its audit hook counts what the command is about to do, and writes
it down. At the Nth it sends SIGKILL to its own process: no handler, no `finally` and no buffer gets a word.
"""

import dataclasses
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from conftest import ROOT

KILLED = -9

_HOOK = '''
import itertools, os, signal, sys

_AT = int(os.environ["KILLS_AT"])
_BELOW = os.environ["KILLS_BELOW"]
_SERVER = os.environ["KILLS_SERVER"]
_PATHS = {"os.rename": 2, "os.remove": 1, "os.rmdir": 1, "os.mkdir": 1, "os.link": 2, "os.symlink": 2, "os.truncate": 1}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_trace = os.open(os.environ["KILLS_TRACE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
_count = itertools.count(1)


def _change(event, arguments):
    """What is about to be changed, as text; empty where it is nothing that counts."""
    if event == "http.client.send":
        connection, data = arguments
        if f"{connection.host}:{connection.port}" != _SERVER:
            return ""
        text = bytes(data[:200]).split(b"\\r\\n")[0].decode("latin-1") if isinstance(data, (bytes, bytearray)) else ""
        return f"request {text if text.endswith('HTTP/1.1') else 'body'}"
    if event == "open" and isinstance(arguments[0], str) and arguments[2] & _WRITES:
        paths = [arguments[0]]
    elif event in _PATHS:
        named = arguments[: _PATHS[event]]
        paths = [os.fsdecode(path) for path in named if isinstance(path, (str, bytes, os.PathLike))]
        if arguments[-1] != -1 and paths and not os.path.isabs(paths[0]):  # relative to a directory that is open
            return f"{event} {paths[0]}"
    else:
        return ""
    return f"{event} {' '.join(paths)}" if any(path.startswith(_BELOW) for path in paths) else ""


def _hook(event, arguments):
    change = _change(event, arguments)
    if change:
        number = next(_count)
        os.write(_trace, f"{change}\\n".encode(errors="backslashreplace"))
        if number == _AT:
            os.kill(os.getpid(), signal.SIGKILL)


if os.getppid() == int(os.environ["KILLS_PARENT"]):  # not the processes that the command itself starts
    sys.addaudithook(_hook)
'''


@dataclasses.dataclass(frozen=True, kw_only=True)
class Killer:
    """Starts commands that it can kill.

    Attributes:
      folder: for the hook and the traces.
      below: changes of files whose path begins so count.
      server: host:port of a server; requests to it count, too.
    """

    folder: Path
    below: str
    server: str = ""

    def start(self, arguments: Sequence[object], *, at: int = 0, **environment: str) -> subprocess.Popen[str]:
        """Starts `maskmill ARGUMENTS`.

        Args:
          arguments: of the command.
          at: the number of the change before which it dies, from 1; 0: it lives.
          environment: added to this process's variables.
        """
        (self.folder / "sitecustomize.py").write_text(_HOOK)
        self.trace_path.unlink(missing_ok=True)
        hook: Mapping[str, str] = {
            "PYTHONPATH": f"{self.folder}{os.pathsep}{ROOT}",
            "KILLS_AT": str(at),
            "KILLS_BELOW": self.below,
            "KILLS_SERVER": self.server,
            "KILLS_TRACE": str(self.trace_path),
            "KILLS_PARENT": str(os.getpid()),
        }
        return subprocess.Popen(
            [sys.executable, "-m", "maskmill", *map(str, arguments)],
            cwd=ROOT,
            env=os.environ | hook | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def trace_path(self) -> Path:
        """The file of the changes that the last command made, or was about to make when it died."""
        return self.folder / "trace.txt"

    def trace(self) -> list[str]:
        """The changes of the last command, a line each, in order."""
        return self.trace_path.read_text().splitlines() if self.trace_path.exists() else []
