#!/usr/bin/env python3
"""Starts and stops a Flink cluster on this machine: a JobManager, TaskManagers and Beam's job server, each a process.

    deploy/flink/cluster.py start --taskmanagers 2 --slots 2
    maskmill build build.yaml $(deploy/flink/cluster.py flags)
    deploy/flink/cluster.py stop

Run it with the Python in which maskmill is installed, because Flink starts its Python workers with the same Python. The
first start downloads Flink (with pip) and builds Beam's job server (with Maven) in a cache directory.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "maskmill" / "flink"

# Flink's distribution sets these options in its conf/config.yaml, which the package of its libraries on PyPI lacks.
JAVA_17_OPTIONS = tuple(
    f"--add-{kind}={package}=ALL-UNNAMED"
    for kind, packages in {
        "exports": ("java.base/sun.net.util", "java.security.jgss/sun.security.krb5"),
        "opens": (
            "java.base/java.lang",
            "java.base/java.net",
            "java.base/java.io",
            "java.base/java.nio",
            "java.base/sun.nio.ch",
            "java.base/java.lang.reflect",
            "java.base/java.text",
            "java.base/java.time",
            "java.base/java.util",
            "java.base/java.util.concurrent",
            "java.base/java.util.concurrent.atomic",
            "java.base/java.util.concurrent.locks",
        ),
    }.items()
    for package in packages
)

# Java only passes descriptions on, so code that is compiled quickly does; the CPU time is left to the Python workers.
JAVA_LIGHT_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

LOG4J = """\
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = Console
appender.console.name = Console
appender.console.type = CONSOLE
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss,SSS} %-5p %-60c %x - %m%n
"""


class ClusterError(Exception):
    """The cluster cannot be fetched, started or described; the message is one sentence.

    Attributes:
      out_of_reach: a tool is missing, or a registry does not answer.
    """

    def __init__(self, message: str, *, out_of_reach: bool = False) -> None:
        super().__init__(message)
        self.out_of_reach = out_of_reach


# Flink in the job server, by FLINK_VERSION. Beam's runner is that for 1.19; it runs on 1.20, too.
RELEASES = {"1.19": "1.19.0", "1.20": "1.20.5"}
VERSION = os.environ.get("FLINK_VERSION", "1.19")
DOWNLOAD = CACHE / VERSION
LIBRARIES = DOWNLOAD / "lib"  # Flink's jars
JOB_SERVER = DOWNLOAD / "job-server.jar"


def fetch() -> None:
    """Download Flink and build Beam's job server, unless they are there; each gets its name when it is complete.

    job-server/pom.xml builds the job server. The Beam version of that differs from the installed one, but it speaks
    the same protocol.

    Raises:
      ClusterError: Java or Maven is missing, a registry is out of reach, or nothing here runs on this version.
    """
    if VERSION not in RELEASES:
        raise ClusterError(f"FLINK_VERSION is {VERSION}; give {' or '.join(RELEASES)}.")
    if not JOB_SERVER.exists():
        for tool in ("java", "mvn"):
            if shutil.which(tool) is None:
                raise ClusterError(f"{tool} is not on the PATH; install Java 11 or 17 and Maven.", out_of_reach=True)
        DOWNLOAD.mkdir(parents=True, exist_ok=True)
        _build_job_server()
    if not LIBRARIES.exists():
        _copy_flink()


def unsent_job_server() -> Path:
    """Return the job server at a path from which it does not send itself to Flink with each job.

    It sends its class path, 157 MB, but for paths that contain these two folders (Beam's PipelineResources.java).
    It follows symbolic links, so this is a hard one.
    """
    link = DOWNLOAD / "gradle" / "wrapper" / JOB_SERVER.name
    link.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.link(JOB_SERVER, link)
    return link


# How Maven and pip say that they reached no registry, as opposed to a fault in what they were asked to do.
_UNREACHABLE = re.compile(
    r"Unknown host|Connect(ion)? (to .* )?(refused|timed out|reset)|Could not transfer|No route to host"
    r"|NewConnectionError|ConnectTimeoutError|NameResolutionError"
)
_ESCAPE_SEQUENCE = re.compile(r"\x1b\[[0-9;]*m")


def _maven_error(output: str) -> ClusterError:
    """Return what Maven's output says of its failure."""
    # Wrappers of Maven may colour its lines all the same where TERM names a terminal, even into a pipe.
    plain = _ESCAPE_SEQUENCE.sub("", output)
    errors = [line.removeprefix("[ERROR]").strip() for line in plain.splitlines() if line.startswith("[ERROR]")]
    causes = [error for error in errors if error] or [plain.strip() or "it printed nothing"]
    return ClusterError(f"Maven failed: {causes[0]}", out_of_reach=any(_UNREACHABLE.search(cause) for cause in causes))


def _pip_error(output: str) -> ClusterError:
    """Return what pip's output says of its failure: the registry that it did not reach, or its last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()] or ["it printed nothing"]
    unreached = [line for line in lines if _UNREACHABLE.search(line)]
    return ClusterError(f"pip failed: {(unreached or lines)[-1]}", out_of_reach=bool(unreached))


@contextlib.contextmanager
def _renamed_into_place(path: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=path.parent) as directory:
        incomplete = Path(directory) / path.name
        yield incomplete
        incomplete.rename(path)


def _build_job_server() -> None:
    with _renamed_into_place(JOB_SERVER) as incomplete:
        shutil.copy(HERE / "job-server" / "pom.xml", incomplete.parent)
        command = ["mvn", "-B", "-q", "-Dstyle.color=never", f"-Dflink.release={RELEASES[VERSION]}"]
        command += ["-f", str(incomplete.parent / "pom.xml"), "package"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise _maven_error(done.stdout + done.stderr)
        next((incomplete.parent / "target").glob("flink-job-server-*.jar")).rename(incomplete)


def _copy_flink() -> None:
    with _renamed_into_place(LIBRARIES) as incomplete:
        folder, requirement = str(incomplete.parent), f"apache-flink-libraries=={VERSION}.*"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, requirement]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise _pip_error(done.stderr)
        incomplete.mkdir()
        with tarfile.open(next(incomplete.parent.glob("*.tar.gz"))) as archive:
            for member in archive:
                name = Path(member.name).name
                if name.endswith(".jar") and name.startswith(("flink-dist", "log4j", "bash-java-utils")):
                    member.name = name
                    archive.extract(member, incomplete, filter="data")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """The size of a cluster. Memory is in Flink's notation; a TaskManager's does not include its Python workers."""

    taskmanagers: int = 2
    slots: int = 2
    rest_port: int = 8081
    jobmanager_memory: str = "1g"
    taskmanager_memory: str = "1200m"


class Cluster:
    """A cluster whose configuration, logs and process ids are in one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._state = directory / "cluster.json"

    def start(self, settings: Settings) -> None:
        """Start all processes and wait until every TaskManager has registered and the job server answers.

        Raises:
          ClusterError: the cluster runs already, or does not come up. Processes that were started are stopped.
        """
        if any(self.status().values()):
            raise ClusterError(f"{self.directory}: a cluster runs here already; stop it first.")
        fetch()
        configuration = self._configure(settings)
        self._write(settings=dataclasses.asdict(settings), processes={})
        try:
            self._start_jobmanager()
            self._start_job_server(settings)
            for number in range(1, settings.taskmanagers + 1):
                self.start_taskmanager(number)
            self._wait(settings, f"see the logs in {configuration.parent / 'log'}")
        except BaseException:
            self.stop()
            raise

    def _start_jobmanager(self) -> None:
        options = _resources("GET_JM_RESOURCE_PARAMS", self.directory / "conf")
        entry = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
        self._launch("jobmanager", options, entry, "--executionMode", "cluster")

    def _start_job_server(self, settings: Settings) -> None:
        """Start Beam's job server, which takes the jobs of all commands: each would start one of its own otherwise."""
        port = _free_port()
        self._write(job_port=port)
        # The cluster has Beam's classes on its class path.
        java = ["java", *JAVA_LIGHT_OPTIONS, "-jar", str(unsent_job_server())]
        ports = [f"--job-port={port}", "--artifact-port=0", "--expansion-port=-1"]
        places = [f"--flink-master=localhost:{settings.rest_port}", f"--artifacts-dir={self.directory / 'tmp'}"]
        self._spawn("jobserver", [*java, *ports, *places])

    def start_taskmanager(self, number: int) -> None:
        """Start another TaskManager, or one that has ended."""
        options = _resources("GET_TM_RESOURCE_PARAMS", self.directory / "conf")
        self._launch(f"taskmanager-{number}", options, "org.apache.flink.runtime.taskexecutor.TaskManagerRunner")

    def _launch(self, name: str, options: tuple[list[str], list[str]], entry: str, *arguments: str) -> None:
        java, dynamic = options
        configuration = self.directory / "conf"
        log4j = f"-Dlog4j.configurationFile=file:{configuration / 'log4j.properties'}"
        # Flink's own jars come first, because the job server's jar contains another build of the same classes.
        class_path = f"{LIBRARIES}/*:{JOB_SERVER}"
        command = ["java", *java, *JAVA_LIGHT_OPTIONS, *JAVA_17_OPTIONS, log4j, "-cp", class_path, entry]
        self._spawn(name, [*command, "--configDir", str(configuration), *arguments, *dynamic])

    def _spawn(self, name: str, command: Sequence[str]) -> None:
        """Start a process of the cluster and note it."""
        log = self.directory / "log" / f"{name}.log"
        with open(log, "ab") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        # A later process may get the same id; the time of creation tells them apart.
        created = psutil.Process(process.pid).create_time()
        self._write(processes=self._read()["processes"] | {name: [process.pid, created]})

    def _configure(self, settings: Settings) -> Path:
        configuration = self.directory / "conf"
        for folder in (configuration, self.directory / "log", self.directory / "tmp"):
            folder.mkdir(parents=True, exist_ok=True)
        values = {
            "jobmanager.rpc.address": "localhost",
            "jobmanager.rpc.port": _free_port(),
            "jobmanager.bind-host": "localhost",
            "jobmanager.memory.process.size": settings.jobmanager_memory,
            "taskmanager.host": "localhost",
            "taskmanager.bind-host": "localhost",
            "taskmanager.memory.process.size": settings.taskmanager_memory,
            # Only descriptions pass through Flink, so it sorts and shuffles little. Beam's channels to the Python
            # workers take memory outside the heap.
            "taskmanager.memory.managed.fraction": 0.1,
            "taskmanager.memory.task.off-heap.size": "128m",
            "taskmanager.memory.network.min": "128m",
            # The elements between steps are small, so a few buffers a partition are enough.
            "taskmanager.network.sort-shuffle.min-buffers": 16,
            # Beam keeps a job's Python workers from step to step (--environment_cache_millis) only if its classes are
            # loaded together with Flink's. They are on the class path; this setting ignores those that a job brings.
            "classloader.resolve-order": "parent-first",
            "taskmanager.numberOfTaskSlots": settings.slots,
            "rest.address": "localhost",
            "rest.bind-address": "localhost",
            "rest.port": settings.rest_port,
            "io.tmp.dirs": self.directory / "tmp",
            # Flink notices a lost TaskManager within seconds and moves its work to another one.
            "heartbeat.interval": 2000,
            "heartbeat.timeout": 20000,
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": 3,
            "restart-strategy.fixed-delay.delay": "5 s",
        }
        (configuration / "config.yaml").write_text("".join(f"{key}: {value}\n" for key, value in values.items()))
        (configuration / "log4j.properties").write_text(LOG4J)
        worker = self.directory / "worker"
        harness = shlex.join([sys.executable, "-P", str(HERE / "worker.py")])
        log = shlex.quote(str(self.directory / "log" / "workers.log"))
        worker.write_text(f'#!/bin/sh\nexec {harness} "$@" >>{log} 2>&1\n')
        worker.chmod(0o755)
        return configuration

    def _wait(self, settings: Settings, hint: str) -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if not all(self.status().values()):
                raise ClusterError(f"A process of the cluster ended while it started; {hint}.")
            if self.registered(settings.rest_port) == settings.taskmanagers and _answers(self._read()["job_port"]):
                return
            time.sleep(0.5)
        raise ClusterError(f"The cluster did not come up within 120 s; {hint}.")

    def registered(self, rest_port: int) -> int:
        """Return the number of TaskManagers that the JobManager knows; 0 if it does not answer."""
        try:
            with urllib.request.urlopen(f"http://localhost:{rest_port}/taskmanagers", timeout=10) as answer:
                return len(json.load(answer)["taskmanagers"])
        except (urllib.error.URLError, OSError):
            return 0

    def status(self) -> dict[str, bool]:
        """Return whether each process of the cluster runs, by its name."""
        return {name: process is not None for name, process in self.processes().items()}

    def processes(self) -> dict[str, psutil.Process | None]:
        """Return the processes of the cluster by name; None stands for one that has ended."""
        processes: dict[str, psutil.Process | None] = {}
        for name, (pid, created) in self._read()["processes"].items():
            try:
                process = psutil.Process(pid)
                is_running = abs(process.create_time() - created) < 1 and process.status() != psutil.STATUS_ZOMBIE
            except psutil.NoSuchProcess:
                is_running = False
            processes[name] = process if is_running else None
        return processes

    def stop(self) -> None:
        """Stop every process of the cluster and its Python workers."""
        running = [p for p in self.processes().values() if p is not None]
        with_workers = running + [child for process in running for child in _children(process)]
        for process in running:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.terminate()
        _, alive = psutil.wait_procs(with_workers, timeout=15)
        for process in alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(alive, timeout=15)
        if self._state.exists():
            self._write(processes={})

    def flags(self) -> list[str]:
        """Return the flags with which a maskmill command runs on this cluster.

        Raises:
          ClusterError: the cluster does not run.
        """
        state = self._read()
        if not state["processes"]:
            raise ClusterError(f"{self.directory}: no cluster runs here; start one first.")
        environment = json.dumps({"command": str(self.directory / "worker")}, separators=(",", ":"))
        return [
            "--runner=FlinkRunner",
            f"--flink_master=localhost:{state['settings']['rest_port']}",
            f"--job_endpoint=localhost:{state['job_port']}",
            "--environment_type=PROCESS",
            f"--environment_config={environment}",
        ]

    def _read(self) -> dict[str, Any]:
        if not self._state.exists():
            return {"processes": {}}
        state: dict[str, Any] = json.loads(self._state.read_text())
        return state

    def _write(self, **changed: Any) -> None:
        self._state.write_text(json.dumps(self._read() | changed, indent=1))


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        children: list[psutil.Process] = process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return children


def _resources(command: str, configuration: Path) -> tuple[list[str], list[str]]:
    """Return memory options for Java and for Flink, computed by Flink's own tool, so that they match each other."""
    jars = f"{next(LIBRARIES.glob('flink-dist*.jar'))}:{next(LIBRARIES.glob('bash-java-utils*.jar'))}"
    tool = ["java", "-cp", jars, "org.apache.flink.runtime.util.bash.BashJavaUtils", command]
    done = subprocess.run([*tool, "--configDir", str(configuration)], capture_output=True, text=True, check=False)
    prefix = "BASH_JAVA_UTILS_EXEC_RESULT:"
    results = [line[len(prefix) :] for line in done.stdout.splitlines() if line.startswith(prefix)]
    if done.returncode or len(results) != 2:
        raise ClusterError(f"Flink refuses its configuration: {(done.stderr or done.stdout).strip()[-400:]}")
    return results[0].split(), results[1].split()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("localhost", port), timeout=10):
        return True
    return False


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line. Returns the exit code: 0 done, 1 failed, 3 a registry or a tool is out of reach."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("command", choices=("fetch", "start", "status", "flags", "stop"))
    parser.add_argument("--directory", type=Path, default=CACHE / "cluster", help="configuration, logs, process ids")
    defaults = Settings()
    for field in dataclasses.fields(Settings):
        default = getattr(defaults, field.name)
        parser.add_argument(f"--{field.name}", type=type(default), default=default)
    arguments = parser.parse_args(argv)
    cluster = Cluster(arguments.directory.resolve())
    try:
        if arguments.command == "fetch":
            fetch()
            print(JOB_SERVER)
        elif arguments.command == "start":
            settings = Settings(**{f.name: getattr(arguments, f.name) for f in dataclasses.fields(Settings)})
            cluster.start(settings)
            print(f"Flink answers at http://localhost:{settings.rest_port}; its files are in {cluster.directory}.")
        elif arguments.command == "status":
            for name, alive in cluster.status().items():
                print(f"{name}: {'runs' if alive else 'has ended'}")
        elif arguments.command == "flags":
            print(*cluster.flags())
        else:
            cluster.stop()
    except ClusterError as error:
        print(f"cluster.py {arguments.command}: {error}", file=sys.stderr)
        return 3 if error.out_of_reach else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
