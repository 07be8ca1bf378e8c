"""`maskmill watch`: looks for a new dump, and builds a release of it.

    newest complete dump ──► built already? ──► download ──► build --release ──► delete the download
                             "nothing new"

Each step runs only if its result is missing, and its result appears whole. So after a kill at any moment, the next
watch continues.
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
from pipelines.building import downloads
from pipelines.building.build_options import BuildChoices, BuildOptions
from pipelines.building.downloads import described
from pipelines.building.events import Run
from pipelines.releasing import release_plan, releases
from pipelines.settings.command_options import WatchFlags
from pipelines.settings.release_options import WatchOptions
from pipelines.terminal import console
from pipelines.terminal.progress import following_download

_SECONDS_A_MINUTE = 60
_LOCK = "watch.lock"


@dataclasses.dataclass(frozen=True, kw_only=True)
class MirrorState:
    """The state of the mirror and of its newest dump.

    Attributes:
      dump: the newest complete dump, or the requested one; None if there is none.
      release: the complete release that was made from it with the same options; None if there is none.
      superseded_by: the latest release, if its dump is newer than this one; else None.
      is_downloaded: whether all files of the dump are downloaded.
    """

    dump: Dump | None = None
    release: ReleaseName | None = None
    superseded_by: ReleaseName | None = None
    is_downloaded: bool = False

    @property
    def is_new(self) -> bool:
        """True if there is something to build."""
        return self.dump is not None and self.release is None and self.superseded_by is None

    def describe(self) -> dict[str, Any]:
        """Return the output of `--check`. It has no times in it, so that equal states give equal values."""
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
      mirror: the build's section watch.
      client: makes the requests.
      date: ISO; only a dump of this date is considered. None: the newest one.
      owner: of the lock of the downloads; empty: this process.
      keep: the number of complete releases to keep; None: all.
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
        return downloads.downloads_of(self.options)

    def look(self) -> MirrorState:
        """Return the state of the mirror."""
        mirror = self.mirror
        dumps = wikimedia.find_dumps(
            mirror.source, wiki=mirror.wiki, layout=mirror.layout, client=self.client, say=console.tell
        )
        dump = next((dump for dump in dumps if self.date in (None, dump.date)), None)
        if dump is None:
            return MirrorState()
        release = release_plan.built_from(self.options, dump)
        latest = pointer.read_latest(self.options.output)
        is_older = self.date is None and release is None and latest is not None and dump.date < latest.name.date
        return MirrorState(
            dump=dump,
            release=None if release is None else release.name,
            superseded_by=latest.name if latest is not None and is_older else None,
            is_downloaded=download.is_downloaded(dump, self.downloads),
        )

    def fetch(self, dump: Dump) -> None:
        """Download a dump, or check it in place; the caller holds the lock of the downloads."""
        with contextlib.ExitStack() as stack:
            how: dict[str, Any] = {"client": self.client, "connections": self.mirror.connections}
            if download.is_remote(dump):
                directory = download.directory_of(self.downloads, dump)
                how["progress"] = stack.enter_context(following_download(dump, directory))
            download.download(dump, self.downloads, **how)

    def lock(self, wait: float = 0.0) -> contextlib.AbstractContextManager[locks.Lock]:
        """Hold the lock of the downloads: only one watch at a time downloads, builds and deletes its downloads.

        wait: seconds to wait for another watch.
        """
        path = files.join(self.options.output, f"{RELEASES}/{STATE}/{_LOCK}")
        return locks.hold_file(path, "The lock of this watch", owner=self.owner, wait=wait, say=console.tell)

    def settle(self, release: ReleaseName | None) -> None:
        """Finish the work of a watch that was killed after its build: `latest`, old releases and downloads.

        release: the complete one; None if there is none. If a lock is held, its holder finishes this work.
        """
        root = self.options.output
        if release is not None:
            with contextlib.suppress(locks.LockedError), locks.hold(root, release):
                pointer.switch_latest(root, release)
        if self.keep is not None:
            removing.remove_old(root, self.keep, self.options.release.keep_days, say=console.tell)
        with contextlib.suppress(locks.LockedError), self.lock():
            self.tidy()

    def tidy(self) -> None:
        """Delete downloads that a release was made from, and unfinished ones of dumps that are not newer than `latest`.

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

    def nothing_new(self, state: MirrorState) -> str:
        """Return the reason why there is nothing to build, as a clause."""
        source = self.mirror.source
        if state.dump is None:
            of_date = "" if self.date is None else f" of {self.date}"
            return f"{source} has no complete dump of {self.mirror.wiki}{of_date}"
        name = f"{state.dump.wiki}-{state.dump.date}"
        if state.release is not None:
            return f"release {state.release} is made of {name}, the newest complete dump of {source}"
        return f"{name}, the newest complete dump of {source}, is older than the latest release {state.superseded_by}"


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

    choices: how the release is built. config, given: as for `releases.run`. build: builds the release of a downloaded
    dump, and returns the command's exit code; None: `maskmill build --release`.

    Raises:
      UnusableInputError: the build has no section watch, or the mirror has no such wiki, or is not a mirror.
      RunFailedError: the mirror does not answer, a download is damaged, or another watch is running.
    """
    if options.watch is None:
        raise UnusableInputError(
            "This build has no section watch, which says where new dumps come from; maskmill build --print_config "
            "shows one."
        )
    if not downloads.takes_downloads(options):
        raise UnusableInputError(
            "A watch gives the build its input, and this build names one; leave extract.input, extract.from and "
            "sources out."
        )

    def build_here(dump: Dump) -> int:
        chosen = dataclasses.replace(choices, release=True, dump=dump.date)
        words = [*given, "--release", f"--dump={dump.date}"]
        return releases.run(options, chosen, beam_arguments, config=config, given=words)[0]

    with contextlib.closing(MirrorClient(options.watch.contact, manifest.versions()["maskmill"])) as client:
        watched = Watch(
            options=options,
            mirror=options.watch,
            client=client,
            date=choices.dump,
            owner=choices.owner or "",
            keep=choices.keep or options.release.keep,
        )
        return _run(watched, flags, build or build_here, Run.of(options, config))


def _run(watch: Watch, flags: WatchFlags, build: Callable[[Dump], int], unplanned: Run) -> int:
    if flags.check:
        print(json.dumps(watch.look().describe(), ensure_ascii=False))
        return 0
    with unplanned.sending_failures(UnusableInputError, RunFailedError):
        state = watch.look()
    if state.is_new:
        with watch.lock(watch.options.release.wait * _SECONDS_A_MINUTE):
            with unplanned.sending_failures(UnusableInputError, RunFailedError):
                state = watch.look()  # the previous holder of the lock may have built it
                if state.dump is not None and state.is_new and not state.is_downloaded:
                    watch.fetch(state.dump)
            if state.dump is not None and state.is_new:
                if flags.download_only:
                    print(f"downloaded: {download.directory_of(watch.downloads, state.dump)}")
                    return 0
                code = build(state.dump)
                if code == 0:
                    watch.tidy()
                return code
    watch.settle(state.release)
    unplanned.send("finished", is_new=False)
    print(f"nothing new: {watch.nothing_new(state)}")
    return 0
