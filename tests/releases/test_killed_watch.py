"""`maskmill watch` is killed at random moments, and started again: always the same bytes, and `latest` is always whole."""

import contextlib
import dataclasses
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import cloud
import pytest
from commands import IN_MEMORY, leftovers
from file_server import serve
from killed_commands import KILLED, Killer
from latest_reader import leasing, polling
from release_watches import FIRST, SECOND, first_dump, publish_classic, second_dump, write_config

from transforms.releases.names import ReleaseName

pytestmark = pytest.mark.releases

KILLS = 20
SEED = 18
BUCKET = "maskmill-releases"
# What a release is but for when it was made, and what the build keeps for itself.
NOT_COMPARED = re.compile(r"(^|/)(\.maskmill|\.state)/")


class LocalRoot:
    """Releases on this machine's disk."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "root")
        self.environment: dict[str, str] = {}
        self.server = ""
        self._kept = folder / "kept"

    def keep(self) -> None:
        """Remembers what is there."""
        shutil.copytree(self.path, self._kept, symlinks=True)

    def restore(self) -> None:
        """Brings back what was kept, and nothing else."""
        shutil.rmtree(self.path)
        shutil.copytree(self._kept, self.path, symlinks=True)

    def content(self) -> dict[str, bytes]:
        """The files by their paths below the root."""
        paths = [path for path in Path(self.path).rglob("*") if path.is_file()]
        return {path.relative_to(self.path).as_posix(): path.read_bytes() for path in paths}


class CloudRoot:
    """Releases in a bucket of the emulator."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.path = f"gs://{BUCKET}/root"
        self.environment = dict(environment)
        self.server = environment["STORAGE_EMULATOR_HOST"].removeprefix("http://")
        self._kept: dict[str, bytes] = {}

    def keep(self) -> None:
        """Remembers what is there."""
        self._kept = self.content()

    def restore(self) -> None:
        """Brings back what was kept, and nothing else."""
        for name in cloud.objects(self.environment, BUCKET):
            quoted = urllib.parse.quote(name, safe="")
            url = f"{self.environment['STORAGE_EMULATOR_HOST']}/storage/v1/b/{BUCKET}/o/{quoted}"
            urllib.request.urlopen(urllib.request.Request(url, method="DELETE")).close()
        for name, data in self._kept.items():
            cloud.upload(self.environment, BUCKET, urllib.parse.quote(f"root/{name}", safe=""), data)

    def content(self) -> dict[str, bytes]:
        """The objects by their names below the root."""
        names = [name for name in cloud.objects(self.environment, BUCKET) if name.startswith("root/")]
        return {
            name.removeprefix("root/"): cloud.content(self.environment, BUCKET, urllib.parse.quote(name))
            for name in names
        }


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scene:
    """A root with a release of the first dump, and a mirror that has the second one.

    Attributes:
      root: where the releases are.
      config: the build's file.
      downloads: where the dumps are downloaded.
      killer: starts watches.
      first, second: the names of the releases.
      expected: the sha256 of the second release's files, of a watch that nobody disturbed.
      moments: what that watch did, a line each.
    """

    root: Any
    config: Path
    downloads: Path
    killer: Killer
    first: str
    second: str
    expected: Mapping[str, str]
    moments: list[str]

    def watch(self, *flags: str, at: int = 0) -> tuple[int, str, str]:
        """Runs a watch; returns its exit code and what it printed."""
        return watch(self.killer, self.config, self.root, *flags, at=at)


def watch(killer: Killer, config: Path, root: Any, *flags: str, at: int = 0) -> tuple[int, str, str]:
    process = killer.start(["watch", config, "--keep", "1", *IN_MEMORY, *flags], at=at, **root.environment)
    output, errors = process.communicate(timeout=300)
    return process.returncode, output, errors


def release_of(root: Any, name: str) -> dict[str, str]:
    """The sha256 of a release's files, by path."""
    found = {}
    for path, data in root.content().items():
        if path.startswith(f"releases/{name}/") and not NOT_COMPARED.search(path):
            if path.endswith("/release.json"):
                record = json.loads(data)
                data = json.dumps({k: v for k, v in record.items() if k not in ("finished", "record_sha256")}).encode()
            found[path] = hashlib.sha256(data).hexdigest()
    return found


def latest_of(root: Any) -> str:
    """The name of the latest release."""
    name: str = json.loads(root.content()["latest.json"])["release"]
    return name


def names_of(root: Any) -> set[str]:
    """The names of the releases of which anything is there."""
    return {path.split("/")[1] for path in root.content() if path.startswith("releases/") and ReleaseName.parse(path.split("/")[1])}


@contextlib.contextmanager
def scene_at(root: Any, folder: Path) -> Iterator[Scene]:
    """Makes a scene, with a mirror while the block runs."""
    downloads = folder / "downloads"
    with serve() as mirror:
        publish_classic(mirror, FIRST, first_dump())
        config = write_config(folder / "build.yaml", root.path, mirror.url, watch={"downloads": str(downloads)})
        killer = Killer(folder=folder, below=str(folder), server=root.server)
        code, _, errors = watch(killer, config, root)
        assert code == 0, errors
        first = latest_of(root)
        root.keep()
        publish_classic(mirror, SECOND, second_dump())
        code, _, errors = watch(killer, config, root)
        assert code == 0, errors
        moments, second = killer.trace(), latest_of(root)
        assert names_of(root) == {second}
        yield Scene(
            root=root, config=config, downloads=downloads, killer=killer, first=first, second=second,
            expected=release_of(root, second), moments=moments,
        )  # fmt: skip


@pytest.fixture(scope="module", params=["local", "bucket"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A scene on a local disk, and one in a bucket."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "local":
        with scene_at(LocalRoot(folder), folder) as made:
            yield made
    else:
        with cloud.storage(folder, BUCKET) as environment, cloud.set_environment(environment):
            with scene_at(CloudRoot(environment), folder) as made:
                yield made


def phases(moments: list[str], second: str) -> dict[str, range]:
    """The moments of each part of a watch, numbered from 1: download, build, switch, clean-up."""
    plain = [urllib.parse.unquote(moment) for moment in moments]
    of_build = [n for n, moment in enumerate(plain, 1) if f"releases/{second}/text" in moment]
    of_record = [n for n, moment in enumerate(plain, 1) if f"releases/{second}/release.json" in moment]
    of_latest = [n for n, moment in enumerate(plain, 1) if re.search(r"/latest(\.|$| )", moment)]
    switched = max(n for n in of_latest if n > of_build[-1])
    recorded = min(n for n in of_record if n > of_build[-1])
    found = {
        "download": range(1, of_build[0]),
        "build": range(of_build[0], recorded),
        "switch": range(recorded, switched + 1),
        "clean-up": range(switched + 1, len(moments) + 1),
    }
    assert all(found.values()), found
    return found


def moments_of(scene: Scene) -> list[tuple[str, int]]:
    """The moments at which watches are killed: as many of each part, drawn by a seed."""
    chosen = random.Random(SEED)
    parts = phases(scene.moments, scene.second)
    return [(name, chosen.choice(numbers)) for _ in range(KILLS // len(parts)) for name, numbers in parts.items()]


@pytest.mark.parametrize("kill", range(KILLS))
def test_a_watch_that_is_killed_at_a_random_moment_and_begun_again(scene: Scene, kill: int) -> None:
    part, moment = moments_of(scene)[kill]
    before = f"killed in {part}, before {scene.moments[moment - 1]}"
    scene.reset()
    with polling(scene.root.path) as polled:
        with leasing(scene.path_of(scene.first)):
            code, _, errors = scene.watch(at=moment)
            # Other threads than the build's may have made a moment more or less than in the first watch.
            assert code == KILLED or (code == 0 and moment > len(scene.moments) - 5), f"{before}: {errors}"
            assert scene.release_of(scene.first) == scene.expected_first, before
            code, _, errors = scene.watch()
            assert code == 0, f"{before}: {errors}"
            assert latest_of(scene.root) == scene.second, before
            assert scene.release_of(scene.second) == scene.expected, before
            # It is in use, so it stays although one release is to be kept.
            assert scene.release_of(scene.first) == scene.expected_first, before
        code, output, errors = scene.watch()
        assert (code, output.partition(":")[0]) == (0, "nothing new"), f"{before}: {errors}"
    assert polled["problems"] == [], before
    assert set(polled["names"]) <= {scene.first, scene.second}
    assert polled["looks"] > 10
    assert scene.release_of(scene.second) == scene.expected, before
    assert names_of(scene.root) == {scene.second}, before
    assert [path for path in scene.downloads.rglob("*") if path.is_file()] == [], before
    assert scene.leftovers() == [], before


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_watch_that_is_killed_while_bytes_come_goes_on_with_the_rest(scene: Scene, share: float) -> None:
    scene.reset()
    killed = threading.Event()

    def cut_and_kill(handler: Any, content: bytes, headers: dict[str, str]) -> bool:
        if len(content) < 1_000_000 or killed.is_set():
            return False
        handler.send_response(200)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(content[: int(len(content) * share)])
        handler.wfile.flush()
        part = next(wait_for(lambda: list(scene.downloads.rglob("*.part"))))
        wait_for_size(part, int(len(content) * share) - BLOCK)
        process.kill()
        killed.set()
        handler.close_connection = True
        return True
