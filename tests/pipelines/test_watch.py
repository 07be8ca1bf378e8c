"""`maskmill watch` with builds that only say so: what is new, what is downloaded, and what becomes of the download."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from release_runs.watches import CONTACT, FIRST, SECOND, publish, unpublish, write_config
from servers.mirror_server import Mirror, serve, status

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.mirrors.dumps import Dump
from maskmill.releases import locks, pointer, records
from maskmill.releases.names import ReleaseName, release_path
from maskmill.releases.records import ReleaseRecord
from pipelines.building import build_options, downloads
from pipelines.commands import cli
from pipelines.releasing import release_plan, watch
from pipelines.settings.command_options import WatchFlags
from pipelines.stages.extract_stage import ExtractStage

pytestmark = pytest.mark.long

OLD, NEW = b"<mediawiki>old</mediawiki>", b"<mediawiki>new</mediawiki>"
OLDER = "2026-01-01"


class Builder:
    """Makes releases that only have a record, as `maskmill build --release` would.

    Attributes:
      options: of the build.
      built: the dumps of which releases were made, in order.
      code: the exit code.
      switches: whether `latest` is switched to what is made.
    """

    def __init__(self, options: build_options.BuildOptions) -> None:
        self.options = options
        self.built: list[Dump] = []
        self.code = 0
        self.switches = True

    @property
    def dates(self) -> list[str]:
        """The dates of those dumps."""
        return [dump.date for dump in self.built]

    def __call__(self, dump: Dump) -> int:
        self.built.append(dump)
        if self.code:
            return self.code
        root = self.options.output
        made = release_plan.built_from(self.options, dump)
        if made is None:
            name = ReleaseName(wiki=dump.wiki, date=dump.date, digest=f"{len(self.built):08x}")
            Path(release_path(root, name)).mkdir(parents=True)
            digest, told = release_plan.options_digest(self.options), downloads.described(dump)
            record = ReleaseRecord(name=name, config={}, inputs=[], dump=told, stages={}, options_sha256=digest)
            made = records.write_record(root, record)
        if self.switches:
            pointer.switch_latest(root, made.name)
        return 0


class Scene:
    """A mirror that has one dump, and a build that watches it."""

    def __init__(self, mirror: Mirror, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.mirror = mirror
        self.folder = folder
        self.root = folder / "root"
        self.config = write_config(folder / "build.yaml", str(self.root), mirror.url)
        self.path = publish(mirror, FIRST, OLD)
        self.build = Builder(self.options())
        self._capsys = capsys

    def options(self, **flags: Any) -> build_options.BuildOptions:
        """The build's options."""
        return build_options.read_build(str(self.config), flags)

    def watch(
        self,
        *,
        code: int = 0,
        check: bool = False,
        download_only: bool = False,
        options: build_options.BuildOptions | None = None,
        date: str | None = None,
    ) -> str:
        """Watches once; returns what was printed."""
        self._capsys.readouterr()
        options = options or self.build.options
        flags, choices = WatchFlags(check=check, download_only=download_only), build_options.BuildChoices(dump=date)
        assert watch.watch(options, flags, choices, build=self.build) == code
        return self._capsys.readouterr().out

    def check(self) -> dict[str, Any]:
        """The object that --check prints."""
        found: dict[str, Any] = json.loads(self.watch(check=True))
        return found

    @property
    def latest(self) -> str | None:
        """The latest release."""
        latest = pointer.read_latest(str(self.root))
        return None if latest is None else str(latest.name)

    @property
    def downloads(self) -> list[str]:
        """The files in the directory of downloads."""
        return sorted(path.name for path in (self.root / "downloads").rglob("*") if path.is_file())


@pytest.fixture
def scene(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Scene]:
    with serve() as mirror:
        yield Scene(mirror, tmp_path, capsys)


def test_a_new_dump_is_built_once(scene: Scene) -> None:
    first = scene.check()
    assert (first["new"], first["dump"]["date"], first["release"], first["downloaded"]) == (True, FIRST, None, False)
    assert scene.check() == first
    assert not scene.root.exists()
    scene.watch()
    assert scene.build.dates == [FIRST]
    assert scene.downloads == []
    after, name = scene.check(), f"enwiki-{FIRST}"
    assert (after["new"], after["dump"], after["release"]) == (False, first["dump"], f"{name}-00000001")
    said = f"nothing new: release {name}-00000001 is made of {name}, the newest complete dump of {scene.mirror.url}\n"
    assert scene.watch() == said
    assert scene.build.dates == [FIRST]


def test_the_dump_is_there_while_it_is_built(scene: Scene) -> None:
    scene.build.code = 3
    scene.watch(code=3)
    file = scene.path.rpartition("/")[2]
    assert scene.downloads == ["dump.json", file]
    scene.build.code = 0
    scene.watch()
    assert len(scene.mirror.asked(file)) == 1
    assert scene.downloads == []


def test_downloads_can_be_kept(scene: Scene) -> None:
    for _ in range(2):
        scene.watch(options=scene.options(**{"watch.keep_downloads": True}))
        assert "dump.json" in scene.downloads


def test_a_mirror_without_a_complete_dump(scene: Scene) -> None:
    scene.mirror.files["enwiki/20260201/dumpstatus.json"] = b'{"jobs": {}}'
    found = scene.check()
    assert (found["new"], found["dump"]) == (False, None)
    assert scene.watch() == f"nothing new: {scene.mirror.url} has no complete dump of enwiki\n"
    assert scene.build.built == []


def test_download_only_leaves_the_build_to_others(scene: Scene) -> None:
    for _ in range(2):
        assert scene.watch(download_only=True) == f"downloaded: {scene.root}/downloads/enwiki-{FIRST}\n"
    assert scene.build.built == []
    options, dump = downloads.with_input(scene.build.options)
    assert dump is not None
    assert [Path(path).read_bytes() for path in options[ExtractStage].input] == [OLD]


def test_a_dump_that_was_published_anew_and_other_options_make_another_release(scene: Scene) -> None:
    scene.watch()
    publish(scene.mirror, FIRST, NEW)
    scene.watch()
    assert scene.latest == f"enwiki-{FIRST}-00000002"
    scene.build.options = scene.options(**{"examples.dupe_factor": 2})
    scene.watch()
    scene.build.options = scene.options(**{"examples.dupe_factor": 2, "watch.connections": 1})
    scene.watch()
    assert scene.build.dates == [FIRST] * 3


def test_a_file_that_is_gone_or_wrong_is_left_to_the_next_watch(scene: Scene) -> None:
    path = publish(scene.mirror, SECOND, NEW)
    del scene.mirror.files[path]
    with pytest.raises(RunFailedError, match=r"is no longer on the mirror; run the same command again later\."):
        scene.watch()
    unpublish(scene.mirror, SECOND)
    scene.mirror.files[scene.path] = NEW
    with pytest.raises(RunFailedError, match="the mirror says"):
        scene.watch()
    assert scene.build.built == []
    assert [name for name in scene.downloads if name.endswith(".bz2")] == []
    publish(scene.mirror, FIRST, NEW)  # the mirror's lists follow later
    scene.watch()
    assert [dump.files[0].sums["sha1"] for dump in scene.build.built] == [hashlib.sha1(NEW).hexdigest()]


def test_a_dump_that_is_older_than_the_latest_release(scene: Scene) -> None:
    publish(scene.mirror, SECOND, NEW)
    scene.watch()
    unpublish(scene.mirror, SECOND)
    assert f"is older than the latest release enwiki-{SECOND}-00000001" in scene.watch()
    assert scene.build.dates == [SECOND]
    scene.watch(date=FIRST)  # it is asked for
    assert scene.build.dates == [SECOND, FIRST]
    assert scene.watch(date=OLDER).endswith(f" has no complete dump of enwiki of {OLDER}\n")


def test_only_one_watch_at_a_time(scene: Scene) -> None:
    with (
        locks.hold_file(f"{scene.root}/releases/.state/watch.lock", "The lock of this watch", owner="another"),
        pytest.raises(locks.LockedError, match=r"^The lock of this watch is held by another since "),
    ):
        scene.watch()
    assert scene.build.built == []
    first_look = watch.Watch.look
    looks = []

    def look(self: watch.Watch) -> watch.MirrorState:
        looks.append(first_look(self))
        if len(looks) == 1 and looks[0].dump is not None:
            scene.build(looks[0].dump)  # another watch builds it before this one has the lock
        return looks[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watch.Watch, "look", look)
        assert scene.watch().startswith("nothing new: ")
    assert scene.build.dates == [FIRST]


def test_what_a_killed_watch_left_is_done(scene: Scene) -> None:
    scene.build.switches = False  # killed after the record
    scene.watch(options=scene.options(**{"watch.keep_downloads": True}))
    assert scene.latest is None
    begun, later = (scene.root / "downloads" / f"enwiki-{date}" for date in (OLDER, SECOND))
    for folder in (begun, later):
        folder.mkdir()
        (folder / "dump.part.json").write_bytes(b"{}")
    assert scene.watch().startswith("nothing new: ")
    assert scene.latest == f"enwiki-{FIRST}-00000001"
    assert not begun.exists()
    assert scene.downloads == ["dump.part.json"]  # of a dump that may come


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "CONFIG.yaml is missing"),
        (["CONFIG", "other.yaml"], "a watch has one YAML file"),
        (["CONFIG", "--check", "--download_only"], "--check downloads nothing"),
        (["CONFIG", "--dry_run=True"], "--dry_run has no use with LocalRunner"),
        (["CONFIG", "--extract.input", "dump.xml"], "A watch gives the build its input"),
        (["SILENT", "--check"], "watch.contact is missing"),
        (["WITHOUT"], "This build has no section watch"),
    ],
)
def test_a_command_that_cannot_be_is_refused(scene: Scene, arguments: list[str], sentence: str, capsys: Any) -> None:
    without = write_config(scene.folder / "without.yaml", str(scene.root), "", extract={"input": "dump.xml"})
    without.write_text(without.read_text()[: without.read_text().index("watch:")])
    silent = scene.folder / "silent.yaml"
    silent.write_text(scene.config.read_text().replace(f"contact: {CONTACT}", "contact: null"))
    paths = {"CONFIG": str(scene.config), "SILENT": str(silent), "WITHOUT": str(without)}
    assert cli.main(["watch", *(paths.get(word, word) for word in arguments)]) == 2
    assert sentence in capsys.readouterr().err


def test_an_unknown_wiki_is_said_and_each_end_is_an_event(scene: Scene) -> None:
    with pytest.raises(UnusableInputError, match="there are no dumps of xxwiki here"):
        scene.watch(options=scene.options(**{"watch.wiki": "xxwiki"}))
    path = scene.folder / "event.json"
    scene.watch()
    scene.build.options = scene.options(on_event=f"cat > '{path}'")
    scene.watch()
    event = json.loads(path.read_text())
    assert (event["event"], event["new"], event["run"]["exit_status"]) == ("finished", False, 0)
    scene.mirror.always = status(403)
    with pytest.raises(UnusableInputError, match="access is refused"):
        scene.watch()
    assert "access is refused" in json.loads(path.read_text())["run"]["error"]
