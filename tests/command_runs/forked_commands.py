"""Runs commands in forks of a process that has imported what they import, which takes longer than most of them.

A command whose environment differs from that of this process gets a fresh process, for variables are read at import,
too. As a program, it is the command line's way to the forks: `python forked_commands.py SOCKET [ARGUMENT…]`.
"""

import functools
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

# Variables that say nothing to what is imported, or that a fork follows. PYTHONPATH is this checkout's. Where a store
# is, and whose account asks, is read by each process that asks it.
_NO_MATTER = {
    *("PWD", "OLDPWD", "SHLVL", "_", "PYTHONPATH", "PYTHONUNBUFFERED", "PYTEST_CURRENT_TEST"),
    *("STORAGE_EMULATOR_HOST", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "AWS_ENDPOINT_URL"),
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"),
}

# Listens on a socket. Each request comes with the three standard files, and is answered with the exit code. It ends
# once the process that started it has.
SERVER = """
import atexit, contextlib, gc, importlib, json, os, runpy, select, signal, socket, sys, threading, traceback
path, no_matter = sys.argv[1], set(json.loads(sys.argv[2]))
for module in ("maskmill", "pipelines.commands.cli", "pipelines.commands.estimate", "pipelines.commands.inspect",
               "pipelines.building.build", "pipelines.running.runner", "pipelines.releasing.watch",
               "pipelines.verifying.verify_graph", "maskmill.example_shards.example_shards"):
    importlib.import_module(module)

def of_matter(variables):
    return {name: value for name, value in variables.items() if name not in no_matter}

def run(folder, variables, arguments):
    os.chdir(folder)
    if of_matter(variables) != of_matter(os.environ):
        os.execve(sys.executable, [sys.executable, "-m", "maskmill", *arguments], variables)
    os.environ.clear()
    os.environ.update(variables)
    sys.path[:1] = [folder, *filter(None, variables.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv[1:] = arguments
    # Those of the server may be of another kind, such as files, in which one can seek.
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)
    sys.stdout.reconfigure(line_buffering=bool(variables.get("PYTHONUNBUFFERED")))
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    code = 1
    try:
        runpy.run_module("maskmill", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    threading._shutdown()
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError):  # a reader that went away
        sys.stdout.flush()
    os._exit(code)  # the rest of Python's way out takes longer than a short command

gc.collect()
gc.freeze()
server = socket.socket(socket.AF_UNIX)
server.bind(path)
server.listen(64)
print("ready", flush=True)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while server in select.select([server, sys.stdin], [], [])[0]:
    connection = server.accept()[0]
    if os.fork() == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        server.close()
        request, files, _, _ = socket.recv_fds(connection, 1 << 16, 3)
        while not request.endswith(b"\\n"):
            request += connection.recv(1 << 16)
        child = os.fork()
        if child == 0:
            connection.close()
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            run(*json.loads(request))
        for file in files:
            os.close(file)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(str(code).encode())
        os._exit(0)
    connection.close()
os.unlink(path)
os.rmdir(os.path.dirname(path))
"""


@functools.cache
def start() -> str:
    """Starts the process of which commands are forks, once for this one; returns the path of its socket."""
    path = os.path.join(tempfile.mkdtemp(prefix="maskmill-forks-"), "socket")
    command = [sys.executable, "-c", SERVER, path, json.dumps(sorted(_NO_MATTER))]
    server = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    _SERVERS.append(server)  # which ends when its standard input does
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    return path


_SERVERS: list[subprocess.Popen[str]] = []


def run(path: str, folder: str, variables: Mapping[str, str], arguments: Sequence[str], files: Sequence[int]) -> int:
    """Runs `maskmill ARGUMENTS` in a folder with these standard files; returns its exit code."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        request = json.dumps([folder, dict(variables), list(arguments)]).encode() + b"\n"
        sent = socket.send_fds(connection, [request], list(files))
        connection.sendall(request[sent:])
        return int(connection.recv(64))


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], os.getcwd(), os.environ, sys.argv[2:], (0, 1, 2)) % 256)
