"""`maskmill watch`, killed at random moments and begun again: always the same bytes, and `latest` is always whole."""

import contextlib
import dataclasses
import hashlib
import json
import random
import shutil
import subprocess
import time
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from command_runs.commands import IN_MEMORY
from command_runs.killed_commands import KILLED, Killer
from release_runs.latest_reader import polling
from release_runs.watches import FIRST, SECOND, first_dump, publish, second_dump, write_config
from servers import cloud
from servers.mirror_server import Mirror, serve

from maskmill.releases import locks, pointer
from maskmill.releases.names import ReleaseName
from maskmill.storage import files

pytestmark = pytest.mark.builds

KILLS = 20
SEED = 18
BUCKET = "maskmill-releases"


class Root:
    """A directory of releases, on this machine's disk or in a bucket of the emulator."""

    def __init__(self, path: str, environment: Mapping[str, str]) -> None:
        self.path = path
        self.environment = dict(environment)
        self.server = environment.get("STORAGE_EMULATOR_HOST", "").removeprefix("http://")
        self._kept: dict[str, bytes] = {}

    def keep(self) -> None:
        """Remembers what is there."""
        self._kept = self.content()

    def restore(self) -> None:
        """Brings back what was kept, and nothing else."""
        files.delete(files.list_below(self.path))
        shutil.rmtree(self.path, ignore_errors=True)
        for name, data in self._kept.items():
            files.write_bytes(f"{self.path}/{name}", data)
        pointer.repair_link(self.path)

    def content(self) -> dict[str, bytes]:
        """The files by their paths below the root."""
        return {path.removeprefix(f"{self.path}/"): files.read_bytes(path) for path in files.list_below(self.path)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scene:
    """A root with a release of the first dump, and a mirror that has the second one.

    Attributes:
      root: where the releases are.
      mirror: the mirror's server.
      config: the build's file.
      downloads: where the dumps are downloaded.
      killer: starts watches.
      first, second: the names of the releases.
      expected: by the name of a release, the sha256 of its files, of watches that nobody disturbed.
      moments: what the second of those watches did, a line each.
    """

    root: Root
    mirror: Mirror
    config: Path
    downloads: Path
    killer: Killer
    first: str
    second: str
    expected: Mapping[str, Mapping[str, str]]
    moments: Sequence[str]

    def reset(self) -> None:
        """Makes all as it was before the second dump was there."""
        self.root.restore()
        shutil.rmtree(self.downloads, ignore_errors=True)

    def start(self, *flags: str, at: int = 0) -> subprocess.Popen[str]:
        """Starts a watch, which dies before its change number `at`."""
        return start(self.killer, self.config, self.root, *flags, at=at)

    def watch(self, *flags: str, at: int = 0) -> tuple[int, str, str]:
        """Runs a watch; returns its exit code and what it printed."""
        return end(self.start(*flags, at=at))

    def check(self, name: str, when: str) -> None:
        """Sees to it that a release is as it should be, byte for byte."""
        assert release_of(self.root, name) == self.expected[name], when


def start(killer: Killer, config: Path, root: Root, *flags: str, at: int = 0) -> subprocess.Popen[str]:
    """Starts a watch that keeps one release."""
    return killer.start(
        ["watch", config, "--keep", "1", "--release.keep_days", "0", *IN_MEMORY, *flags], at=at, **root.environment
    )


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Waits for a process; returns its exit code and what it printed."""
    output, errors = process.communicate(timeout=600)
    return process.returncode, output, errors


def release_of(root: Root, name: str) -> dict[str, str]:
    """The sha256 of a release's files by path, but for when it was made and what the build keeps for itself."""
    found = {}
    for path, data in root.content().items():
        if not path.startswith(f"releases/{name}/") or "/.maskmill/" in path:
            continue
        if path.endswith("/release.json"):
            record = json.loads(data)
            data = json.dumps({k: v for k, v in record.items() if k not in ("finished", "record_sha256")}).encode()
        found[path] = hashlib.sha256(data).hexdigest()
    return found


def latest_of(root: Root) -> str:
    """The name of the latest release."""
    name: str = json.loads(root.content()["latest.json"])["release"]
    return name


def names_of(root: Root) -> set[str]:
    """The names of the releases of which anything is there."""
    below = {path.split("/")[1] for path in root.content() if path.startswith("releases/")}
    return {name for name in below if ReleaseName.parse(name)}


@contextlib.contextmanager
def scene_at(root: Root, folder: Path) -> Iterator[Scene]:
    """Makes a scene, with a mirror while the block runs."""
    downloads = folder / "downloads"
    with serve() as mirror:
        publish(mirror, FIRST, first_dump())
        config = write_config(folder / "build.yaml", root.path, mirror.url, watch={"downloads": str(downloads)})
        killer = Killer(folder=folder, below=str(folder), server=root.server)
        code, _, errors = end(start(killer, config, root))
        assert code == 0, errors
        first = latest_of(root)
        expected = {first: release_of(root, first)}
        root.keep()
        publish(mirror, SECOND, second_dump())
        code, _, errors = end(start(killer, config, root))
        assert code == 0, errors
        moments, second = killer.trace(), latest_of(root)
        assert names_of(root) == {second}
        expected[second] = release_of(root, second)
        yield Scene(
            root=root, mirror=mirror, config=config, downloads=downloads, killer=killer, first=first, second=second,
            expected=expected, moments=moments,
        )  # fmt: skip


@pytest.fixture(scope="module", params=["disk", "bucket"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A scene on this machine's disk, and one in a bucket."""
    folder = tmp_path_factory.mktemp(request.param)
    with contextlib.ExitStack() as stack:
        root = Root(f"{folder}/root", {})
        if request.param == "bucket":
            environment = stack.enter_context(cloud.storage(folder, BUCKET))
            stack.enter_context(cloud.set_environment(environment))
            root = Root(f"gs://{BUCKET}/root", environment)
        yield stack.enter_context(scene_at(root, folder))


def parts_of(scene: Scene) -> dict[str, range]:
    """The moments of each part of a watch, numbered from 1."""
    plain = [urllib.parse.unquote(moment) for moment in scene.moments]
    release = f"releases/{scene.second}"
    of_build = [n for n, moment in enumerate(plain, 1) if f"{release}/text" in moment]
    of_record = [n for n, moment in enumerate(plain, 1) if f"{release}/release.json" in moment]
    recorded = min(n for n in of_record if n > of_build[-1])
    cleaned = min(n for n, moment in enumerate(plain, 1) if n > recorded and scene.first in moment)
    return {
        "download": range(1, of_build[0]),
        "build": range(of_build[0], recorded),
        "switch": range(recorded, cleaned),
        "clean-up": range(cleaned, len(plain) + 1),
    }


def moments_of(scene: Scene) -> list[tuple[str, int]]:
    """The moments at which watches are killed, as many of each part, drawn by a seed."""
    drawn = random.Random(SEED)
    parts = parts_of(scene)
    return [(name, drawn.choice(numbers)) for _ in range(KILLS // len(parts)) for name, numbers in parts.items()]


@pytest.mark.exhaustive
@pytest.mark.parametrize("kill", range(KILLS))
def test_a_watch_that_is_killed_at_a_random_moment_and_begun_again(scene: Scene, kill: int) -> None:
    part, moment = moments_of(scene)[kill]
    when = f"killed in its {part}, before {moment}: {scene.moments[moment - 1]}"
    scene.reset()
    with polling(scene.root.path) as polled:
        code, _, errors = scene.watch(at=moment)
        assert code == KILLED, f"{when}: {errors}"
        if part != "clean-up":
            scene.check(scene.first, when)
        code, _, errors = scene.watch()
        assert code == 0, f"{when}: {errors}"
        assert latest_of(scene.root) == scene.second, when
        scene.check(scene.second, when)
        code, output, errors = scene.watch()
        assert (code, output.partition(":")[0]) == (0, "nothing new"), f"{when}: {errors}"
    assert polled.problems == [], when
    assert polled.names <= {scene.first, scene.second}
    assert polled.looks > 10
    scene.check(scene.second, when)
    assert names_of(scene.root) == {scene.second}, when
    check_nothing_is_left(scene, when)


def check_nothing_is_left(scene: Scene, when: str) -> None:
    """Sees to it that no downloads or temporary files are left, and nobody holds a lock."""
    assert [path for path in scene.downloads.rglob("*") if path.is_file()] == [], when
    names = scene.root.content()
    left = [name for name in names if name.endswith(files.TEMPORARY_SUFFIX)]
    assert left == [], when
    second = ReleaseName.parse(scene.second)
    assert second is not None
    assert locks.holder_of(scene.root.path, second) is None, when  # a lock of a dead process is none


@pytest.mark.exhaustive
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_watch_that_is_killed_while_bytes_come_goes_on_behind_them(scene: Scene, share: float) -> None:
    scene.reset()
    started: list[subprocess.Popen[str]] = []

    def cut_and_kill(handler: Any, content: bytes, headers: dict[str, str]) -> bool:
        if len(content) < 1 << 20 or not started:
            return False
        handler.send_response(200)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        sent = int(len(content) * share)
        handler.wfile.write(content[:sent])
        handler.wfile.flush()
        until = time.monotonic() + 300
        while sum(path.stat().st_size for path in scene.downloads.rglob("*.part")) < sent:
            assert time.monotonic() < until, "what was sent is not written"
            time.sleep(0.01)
        started.pop().kill()
        handler.close_connection = True
        return True

    scene.mirror.always = cut_and_kill
    try:
        process = scene.start()
        started.append(process)
        code, _, errors = end(process)
        assert code == KILLED, errors
    finally:
        scene.mirror.always = None
    scene.mirror.requests.clear()
    code, _, errors = scene.watch()
    assert code == 0, errors
    scene.check(scene.second, f"killed at {share}")
    parts = [request.part for request in scene.mirror.requests if request.path.endswith("multistream.xml.bz2")]
    assert parts == ([f"{int(len(second_dump()) * share)}-"] if share else [""])


@pytest.mark.exhaustive_but("bucket")
def test_two_watches_at_once(scene: Scene) -> None:
    scene.reset()
    with polling(scene.root.path) as polled:
        processes = [scene.start("--release.wait", "5") for _ in range(2)]
        ended = [end(process) for process in processes]
    assert [code for code, _, _ in ended] == [0, 0], ended
    assert sorted("nothing new" in output for _, output, _ in ended) == [False, True], ended
    assert polled.problems == []
    scene.check(scene.second, "two at once")
    assert names_of(scene.root) == {scene.second}
    check_nothing_is_left(scene, "two at once")


@pytest.mark.exhaustive_but("disk")
def test_two_builds_of_one_release_at_once(scene: Scene) -> None:
    scene.reset()
    code, output, errors = scene.watch("--download_only")
    assert (code, output.partition(":")[0]) == (0, "downloaded"), errors
    build = ["build", scene.config, "--release", "--dump", SECOND, "--release.wait", "5", *IN_MEMORY]
    with polling(scene.root.path) as polled:
        processes = [scene.killer.start(build, **scene.root.environment) for _ in range(2)]
        ended = [end(process) for process in processes]
    assert [code for code, _, _ in ended] == [0, 0], ended
    assert sorted("nothing to do" in output for _, output, _ in ended) == [False, True], ended
    assert polled.problems == []
    scene.check(scene.second, "two builds at once")
    scene.check(scene.first, "two builds at once")
    assert latest_of(scene.root) == scene.second
