"""`maskmill watch` with builds that only say so: what is new, what is downloaded, and what becomes of the download."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from release_runs import watches as release_watches
from release_runs.watches import CONTACT, FIRST, SECOND, publish_classic, unpublish_classic, write_config
from servers.file_server import FileServer, serve, status

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.mirrors.client import MirrorClient
from maskmill.mirrors.dumps import Dump
from maskmill.releases import locks, pointer, records
from maskmill.releases.names import ReleaseName, release_path
from maskmill.releases.records import ReleaseRecord
from pipelines.building import build_options
from pipelines.commands import cli
from pipelines.releasing import release_inputs, release_plan, watch
from pipelines.settings.command_options import WatchFlags
from pipelines.stages.extract_stage import ExtractStage

pytestmark = pytest.mark.long

OLD, NEW = b"<mediawiki>old</mediawiki>", b"<mediawiki>new</mediawiki>"


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

    def __call__(self, dump: Dump) -> int:
        self.built.append(dump)
        if self.code:
            return self.code
        root = self.options.output
        made = release_plan.built_from(self.options, dump)
        if made is None:
            name = ReleaseName(wiki=dump.wiki, date=dump.date, digest=f"{len(self.built):08x}")
            Path(release_path(root, name)).mkdir(parents=True)
            made = records.write_record(
                root,
                ReleaseRecord(
                    name=name,
                    config={},
                    inputs=[],
                    dump=release_inputs.described(dump),
                    stages={},
                    options_sha256=release_plan.options_digest(self.options),
                ),
            )
        if self.switches:
            pointer.switch_latest(root, made.name)
        return 0


class Scene:
    """A mirror, and a build that watches it."""

    def __init__(self, mirror: FileServer, folder: Path) -> None:
        self.mirror = mirror
        self.folder = folder
        self.root = folder / "root"
        self.config = write_config(folder / "build.yaml", str(self.root), mirror.url)
        self.build = Builder(self.options())

    def options(self, **flags: Any) -> build_options.BuildOptions:
        """The build's options."""
        return build_options.read_build(str(self.config), flags)

    def watch(self, *, check: bool = False, download_only: bool = False, **how: Any) -> int:
        """Watches once."""
        options = how.pop("options", self.build.options)
        watched = watch.Watch(options=options, client=MirrorClient(CONTACT, "0"), **how)
        return watch.run(watched, WatchFlags(check=check, download_only=download_only), self.build)

    @property
    def downloads(self) -> list[str]:
        """The files in the directory of downloads."""
        return sorted(path.name for path in (self.root / "downloads").rglob("*") if path.is_file())


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """A mirror that has one dump."""
    with serve() as mirror:
        publish_classic(mirror, FIRST, OLD)
        yield Scene(mirror, tmp_path)


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The object that --check printed."""
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_new_dump_is_built_once(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    assert scene.watch() == 0
    assert [dump.date for dump in scene.build.built] == [FIRST]
    assert scene.downloads == []
    capsys.readouterr()
    assert scene.watch() == 0
    name = f"{release_watches.WIKI}-{FIRST}"
    assert capsys.readouterr().out == (
        f"nothing new: release {name}-00000001 is made of {name}, the newest complete dump of {scene.mirror.url}\n"
    )
    assert len(scene.build.built) == 1


def test_the_dump_is_there_while_it_is_built(scene: Scene) -> None:
    scene.build.code = 3
    assert scene.watch() == 3
    file = f"enwiki-{FIRST.replace('-', '')}-pages-articles-multistream.xml.bz2"
    assert scene.downloads == ["dump.json", file]
    asked = len(scene.mirror.parts(f"enwiki/20260201/{file}"))
    scene.build.code = 0
    assert scene.watch() == 0
    assert len(scene.mirror.parts(f"enwiki/20260201/{file}")) == asked == 1
    assert scene.downloads == []


def test_downloads_can_be_kept(scene: Scene) -> None:
    assert scene.watch(options=scene.options(**{"watch.keep_downloads": True})) == 0
    assert "dump.json" in scene.downloads
    assert scene.watch(options=scene.options(**{"watch.keep_downloads": True})) == 0
    assert "dump.json" in scene.downloads


def test_check_only_looks(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    assert scene.watch(check=True) == 0
    first = printed(capsys)
    assert (first["new"], first["dump"]["date"], first["release"], first["downloaded"]) == (True, FIRST, None, False)
    assert not scene.root.exists()
    assert scene.watch(check=True) == 0
    assert printed(capsys) == first
    assert scene.watch() == 0
    capsys.readouterr()
    assert scene.watch(check=True) == 0
    after = printed(capsys)
    assert (after["new"], after["dump"], after["release"]) == (False, first["dump"], f"enwiki-{FIRST}-00000001")


def test_check_of_a_mirror_without_a_complete_dump(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.mirror.files["enwiki/20260201/dumpstatus.json"] = b'{"jobs": {}}'
    assert scene.watch(check=True) == 0
    found = printed(capsys)
    assert (found["new"], found["dump"]) == (False, None)
    assert scene.watch() == 0
    assert capsys.readouterr().out == f"nothing new: {scene.mirror.url} has no complete dump of enwiki\n"
    assert scene.build.built == []


def test_download_only_leaves_the_build_to_others(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert scene.watch(download_only=True) == 0
        assert capsys.readouterr().out == f"downloaded: {scene.root}/downloads/enwiki-{FIRST}\n"
    assert scene.build.built == []
    assert "dump.json" in scene.downloads
    options, dump = release_inputs.with_input(scene.build.options)
    assert dump is not None
    assert [Path(path).read_bytes() for path in options[ExtractStage].input] == [OLD]


def test_a_dump_that_was_published_anew_is_new(scene: Scene) -> None:
    scene.watch()
    publish_classic(scene.mirror, FIRST, NEW)
    assert scene.watch() == 0
    assert [dump.date for dump in scene.build.built] == [FIRST, FIRST]
    latest = pointer.read_latest(str(scene.root))
    assert latest is not None
    assert latest.name.digest == "00000002"


def test_other_options_make_another_release(scene: Scene) -> None:
    scene.watch()
    scene.build.options = scene.options(**{"examples.dupe_factor": 2})
    assert scene.watch() == 0
    assert len(scene.build.built) == 2
    scene.build.options = scene.options(**{"watch.connections": 1})
    assert scene.watch() == 0
    assert len(scene.build.built) == 2


def test_a_dump_whose_file_is_gone_is_left_to_the_next_watch(scene: Scene) -> None:
    publish_classic(scene.mirror, SECOND, NEW)
    del scene.mirror.files["enwiki/20260301/enwiki-20260301-pages-articles-multistream.xml.bz2"]
    with pytest.raises(RunFailedError, match=r"is not on the mirror any more; run the same command again later\."):
        scene.watch()
    unpublish_classic(scene.mirror, SECOND)
    assert scene.watch() == 0
    assert [dump.date for dump in scene.build.built] == [FIRST]


def test_a_file_that_stays_wrong_fails(scene: Scene) -> None:
    scene.mirror.files["enwiki/20260201/enwiki-20260201-pages-articles-multistream.xml.bz2"] = NEW
    with pytest.raises(RunFailedError, match="the mirror says"):
        scene.watch()
    assert scene.build.built == []
    assert [name for name in scene.downloads if name.endswith(".bz2")] == []
    publish_classic(scene.mirror, FIRST, NEW)  # the mirror's lists follow later
    assert scene.watch() == 0
    assert [dump.files[0].checksum for dump in scene.build.built] == [release_watches.sha1(NEW)]


def test_a_dump_that_is_older_than_the_latest_release(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    publish_classic(scene.mirror, SECOND, NEW)
    scene.watch()
    unpublish_classic(scene.mirror, SECOND)
    capsys.readouterr()
    assert scene.watch() == 0
    assert f"is older than the latest release enwiki-{SECOND}-00000001" in capsys.readouterr().out
    assert [dump.date for dump in scene.build.built] == [SECOND]
    # It is built if it is asked for.
    assert scene.watch(date=FIRST) == 0
    assert [dump.date for dump in scene.build.built] == [SECOND, FIRST]
    assert scene.watch(date="2026-01-01") == 0
    assert capsys.readouterr().out.endswith(" has no complete dump of enwiki of 2026-01-01\n")


def test_only_one_watch_at_a_time(scene: Scene) -> None:
    with (
        locks.hold_file(f"{scene.root}/releases/.state/watch.lock", "The lock of this watch", owner="another"),
        pytest.raises(locks.LockedError, match=r"^The lock of this watch is held by another since "),
    ):
        scene.watch()
    assert scene.build.built == []
    assert scene.watch() == 0


def test_a_watch_that_waits_sees_what_the_other_one_built(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    first_look = watch.Watch.look
    looks = []

    def look(self: watch.Watch) -> watch.Sight:
        sight = first_look(self)
        looks.append(sight)
        if len(looks) == 1:
            scene.build(sight.dump)  # another watch builds it before this one has the lock
        return sight

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watch.Watch, "look", look)
        assert scene.watch() == 0
    assert len(scene.build.built) == 1
    assert capsys.readouterr().out.startswith("nothing new: ")


def test_what_a_killed_watch_left_is_done(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.build.switches = False  # killed behind the record
    scene.build.code = 0
    assert scene.watch(options=scene.options(**{"watch.keep_downloads": True})) == 0
    assert pointer.read_latest(str(scene.root)) is None
    scene.build.switches = True
    begun = scene.root / "downloads" / f"enwiki-{OLDER}"
    begun.mkdir()
    (begun / "dump.part.json").write_bytes(b"{}")
    later = scene.root / "downloads" / f"enwiki-{SECOND}"
    later.mkdir()
    (later / "dump.part.json").write_bytes(b"{}")
    capsys.readouterr()
    assert scene.watch() == 0
    assert capsys.readouterr().out.startswith("nothing new: ")
    assert pointer.read_latest(str(scene.root)) is not None
    assert not begun.exists()
    assert scene.downloads == ["dump.part.json"]  # of a dump that may come


OLDER = "2026-01-01"


def test_refusals_of_the_command(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    def refusal(*arguments: str) -> str:
        assert cli.main(["watch", *arguments]) == 2
        return capsys.readouterr().err

    config = str(scene.config)
    assert "CONFIG.yaml is missing" in refusal()
    assert "a watch has one YAML file" in refusal(config, "other.yaml")
    assert "--check downloads nothing" in refusal(config, "--check", "--download_only")
    assert "--dry_run: a watch only looks with --check." in refusal(config, "--dry_run=True")
    assert "A watch gives the build its input" in refusal(config, "--extract.input", "dump.xml")
    scene.config.write_text(scene.config.read_text().replace(f"contact: {CONTACT}", "contact: null"))
    assert "watch.contact is missing" in refusal(config, "--check")
    without = write_config(scene.folder / "without.yaml", str(scene.root), "", extract={"input": "dump.xml"})
    content = without.read_text()
    without.write_text(content[: content.index("watch:")])
    assert "This build has no section watch" in refusal(str(without))


def test_an_unknown_wiki_and_a_mirror_that_fails(scene: Scene) -> None:
    with pytest.raises(UnusableInputError, match="there are no dumps of xxwiki here"):
        scene.watch(options=scene.options(**{"watch.wiki": "xxwiki"}))
    scene.mirror.always = status(403)
    with pytest.raises(UnusableInputError, match="access is refused"):
        scene.watch()


def test_a_failed_look_is_an_event(scene: Scene) -> None:
    path = scene.folder / "event.json"
    scene.build.options = scene.options(on_event=f"cat > '{path}'")
    scene.mirror.always = status(403)
    with pytest.raises(UnusableInputError):
        scene.watch()
    assert "access is refused" in json.loads(path.read_text())["run"]["error"]


def test_a_look_that_finds_nothing_new_is_an_event(scene: Scene) -> None:
    path = scene.folder / "event.json"
    scene.watch()
    scene.build.options = scene.options(on_event=f"cat > '{path}'")
    scene.watch()
    event = json.loads(path.read_text())
    assert (event["event"], event["new"], event["run"]["exit_status"]) == ("finished", False, 0)
