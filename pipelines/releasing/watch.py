"""`maskmill watch`: looks for a new dump, and builds a release of it.

    newest complete dump ──► built already? ──► download ──► build --release ──► delete the download
                             "nothing new"

Each step is done only if its result is missing, and what it leaves appears whole. So a watch that was killed at any
moment goes on when the next one starts.
"""

import contextlib
import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import Any

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.mirrors import download, wikimedia
from maskmill.mirrors.client import MirrorClient
from maskmill.mirrors.dumps import Dump
from maskmill.releases import locks, pointer, removing
from maskmill.releases.names import RELEASES, STATE, ReleaseName
from maskmill.storage import files, manifest
from pipelines.building.build_options import BuildChoices, BuildOptions
from pipelines.releasing import release_inputs, release_plan, releases
from pipelines.releasing.events import Run
from pipelines.releasing.release_inputs import described
from pipelines.settings.command_options import WatchFlags
from pipelines.settings.release_options import WatchOptions
from pipelines.terminal import console
from pipelines.terminal.progress import following_download

_SECONDS_A_MINUTE = 60
_LOCK = "watch.lock"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sight:
    """What a look at the mirror has found.

    Attributes:
      dump: the newest complete dump, or the one that was asked for; None if there is none.
      release: the complete release that was made of it with the same options; None if there is none.
      superseded_by: the latest release, if its dump is newer than this one; None if it is not.
      is_downloaded: whether all files of the dump are here.
    """

    dump: Dump | None = None
    release: ReleaseName | None = None
    superseded_by: ReleaseName | None = None
    is_downloaded: bool = False

    @property
    def is_new(self) -> bool:
        """Whether there is something to build."""
        return self.dump is not None and self.release is None and self.superseded_by is None

    def describe(self) -> dict[str, Any]:
        """Return what `--check` prints. Equal sights give equal values: there are no times in them."""
        return {
            "new": self.is_new,
            "dump": None if self.dump is None else {**(described(self.dump) or {}), "bytes": self.dump.size},
            "release": None if self.release is None else str(self.release),
            "superseded_by": None if self.superseded_by is None else str(self.superseded_by),
            "downloaded": self.is_downloaded,
        }


@dataclasses.dataclass(frozen=True, kw_only=True)
class Watch:
    """A watch of a mirror.

    Attributes:
      options: the build's.
      mirror: its section watch.
      client: makes the requests.
      date: ISO; only a dump of this date is looked for. None: the newest one.
      owner: who holds the lock of the downloads; empty: this process.
      keep: how many complete releases stay; None: all.
    """

    options: BuildOptions
    mirror: WatchOptions
    client: MirrorClient
    date: str | None = None
    owner: str = ""
    keep: int | None = None

    @property
    def downloads(self) -> str:
        """The directory of all downloads."""
        return release_inputs.downloads_of(self.options)

    def look(self) -> Sight:
        """Look at the mirror."""
        mirror = self.mirror
        dumps = wikimedia.find_dumps(
            mirror.source, wiki=mirror.wiki, layout=mirror.layout, client=self.client, say=console.tell
        )
        dump = next((dump for dump in dumps if self.date in (None, dump.date)), None)
        if dump is None:
            return Sight()
        made = release_plan.built_from(self.options, dump)
        latest = pointer.read_latest(self.options.output)
        is_older = self.date is None and made is None and latest is not None and dump.date < latest.name.date
        return Sight(
            dump=dump,
            release=None if made is None else made.name,
            superseded_by=latest.name if latest is not None and is_older else None,
            is_downloaded=download.is_downloaded(dump, self.downloads),
        )

    def fetch(self, dump: Dump) -> None:
        """Download a dump, or check it where it lies; the caller holds the lock of the downloads."""
        with contextlib.ExitStack() as stack:
            how: dict[str, Any] = {"client": self.client, "connections": self.mirror.connections}
            if download.is_remote(dump):
                directory = download.directory_of(self.downloads, dump)
                how["progress"] = stack.enter_context(following_download(dump, directory))
            download.download(dump, self.downloads, **how)

    def lock(self, wait: float = 0.0) -> contextlib.AbstractContextManager[locks.Lock]:
        """Hold the lock of the downloads: one watch at a time downloads, builds and deletes what it has downloaded.

        wait: seconds to wait for another watch.
        """
        path = files.join(self.options.output, f"{RELEASES}/{STATE}/{_LOCK}")
        return locks.hold_file(path, "The lock of this watch", owner=self.owner, wait=wait, say=console.tell)

    def settle(self, made: ReleaseName | None) -> None:
        """Do what a watch that was killed after its build has left: `latest`, old releases and downloads.

        made: the release that is complete; None if there is none. Whoever holds a lock does the same at its end.
        """
        root = self.options.output
        if made is not None:
            with contextlib.suppress(locks.LockedError), locks.hold(root, made):
                pointer.switch_latest(root, made)
        if self.keep is not None:
            removing.remove_old(root, self.keep, self.options.release.keep_days, say=console.tell)
        with contextlib.suppress(locks.LockedError), self.lock():
            self.tidy()

    def tidy(self) -> None:
        """Delete downloads of which a release is made, and unfinished ones of dumps that are not newer than `latest`.

        The caller holds the lock of the downloads.
        """
        if self.mirror.keep_downloads:
            return
        for directory, dump in download.downloaded_dumps(self.downloads):
            if release_plan.built_from(self.options, dump) is not None:
                download.delete_downloaded(directory)
        latest = pointer.read_latest(self.options.output)
        if latest is not None:
            for directory, date in download.unfinished_downloads(self.downloads, latest.name.wiki):
                if date <= latest.name.date:
                    download.delete_downloaded(directory)

    def nothing_new(self, sight: Sight) -> str:
        """Return why there is nothing to build."""
        source = self.mirror.source
        if sight.dump is None:
            of_date = "" if self.date is None else f" of {self.date}"
            return f"{source} has no complete dump of {self.mirror.wiki}{of_date}"
        name = f"{sight.dump.wiki}-{sight.dump.date}"
        if sight.release is not None:
            return f"release {sight.release} is made of {name}, the newest complete dump of {source}"
        return f"{name}, the newest complete dump of {source}, is older than the latest release {sight.superseded_by}"


def watch(
    options: BuildOptions,
    flags: WatchFlags,
    choices: BuildChoices,
    beam_arguments: Sequence[str] = (),
    *,
    config: str = "",
    given: Sequence[str] = (),
    build: Callable[[Dump], int] | None = None,
) -> int:
    """Look for a new dump, and build a release of it.

    choices: how the release is built. config, given: as `releases.run` takes them. build: builds the release of a dump
    that is downloaded, and returns the command's exit code, as this does; None: `maskmill build --release` does.

    Raises:
      UnusableInputError: the build has no section watch, or the mirror has no such wiki, or is not a mirror.
      RunFailedError: the mirror does not answer, a download is damaged, or another watch is at work.
    """
    if options.watch is None:
        raise UnusableInputError(
            "This build has no section watch, which says where new dumps come from; maskmill build --print_config "
            "shows one."
        )
    if not release_inputs.takes_downloads(options):
        raise UnusableInputError(
            "A watch gives the build its input, and this build names one; leave extract.input, extract.from and "
            "sources out."
        )

    def build_here(dump: Dump) -> int:
        chosen = dataclasses.replace(choices, release=True, dump=dump.date)
        words = [*given, "--release", f"--dump={dump.date}"]
        return releases.run(options, chosen, beam_arguments, config=config, given=words)

    with contextlib.closing(MirrorClient(options.watch.contact, manifest.versions()["maskmill"])) as client:
        watched = Watch(
            options=options,
            mirror=options.watch,
            client=client,
            date=choices.dump,
            owner=choices.owner or "",
            keep=choices.keep or options.release.keep,
        )
        return _run(watched, flags, build or build_here, releases.unplanned(options, config))


def _run(watch: Watch, flags: WatchFlags, build: Callable[[Dump], int], unplanned: Run) -> int:
    if flags.check:
        print(json.dumps(watch.look().describe(), ensure_ascii=False))
        return 0
    with unplanned.sending_failures(UnusableInputError, RunFailedError):
        sight = watch.look()
    if sight.is_new:
        with watch.lock(watch.options.release.wait * _SECONDS_A_MINUTE):
            with unplanned.sending_failures(UnusableInputError, RunFailedError):
                sight = watch.look()  # whoever held the lock before may have built it
                if sight.dump is not None and sight.is_new and not sight.is_downloaded:
                    watch.fetch(sight.dump)
            if sight.dump is not None and sight.is_new:
                if flags.download_only:
                    print(f"downloaded: {download.directory_of(watch.downloads, sight.dump)}")
                    return 0
                code = build(sight.dump)
                if code == 0:
                    watch.tidy()
                return code
    watch.settle(sight.release)
    unplanned.send("finished", is_new=False)
    print(f"nothing new: {watch.nothing_new(sight)}")
    return 0
