"""What a release is built of: its input files with their checksums, and the wiki and the date of their dump."""

import contextlib
import dataclasses
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.mirrors.dump_names import date_in_name
from maskmill.mirrors.dumps import Dump
from maskmill.releases import names
from maskmill.storage import completions, files, manifest
from maskmill.storage.paths import is_web
from pipelines.building.build_options import BuildOptions
from pipelines.settings.release_options import WatchOptions
from pipelines.stages.extract_stage import ExtractStage
from pipelines.stages.mix_stage import extracts_of

_WIKI = re.compile(r"([a-z][a-z0-9_]*wik[a-z]*)(?=[-._])")
_CHECKSUMS, _KEY = "input_checksums.json", "checksums"
DOWNLOADS = "downloads"
CRC32C = "crc32c"


@dataclasses.dataclass(frozen=True, kw_only=True)
class InputFile:
    """An input of a build.

    Attributes:
      path: where it is. size: in bytes.
      checksum: in hexadecimal, or as the store has it. algorithm: sha256, or crc32c for an object on gs://.
      source: the name of the source of a mix that takes it; empty without a mix.
      url: from where it was downloaded; empty if it was not.
    """

    path: str
    size: int
    checksum: str
    algorithm: str
    source: str = ""
    url: str = ""

    @property
    def identity(self) -> tuple[str, str, int, str, str]:
        """What tells it from other inputs, wherever it lies."""
        return self.source, files.base_name(self.path), self.size, self.algorithm, self.checksum

    @property
    def entry(self) -> dict[str, Any]:
        """It as release.json lists it."""
        entry: dict[str, Any] = {"path": self.path, "bytes": self.size, self.algorithm: self.checksum}
        return entry | ({"source": self.source} if self.source else {}) | ({"url": self.url} if self.url else {})


def with_input(options: BuildOptions, date: str | None = None) -> tuple[BuildOptions, Dump | None]:
    """The build with a downloaded dump as its input, if its file names none, and that dump.

    date: of the dump, ISO; None: the newest.

    Raises:
      UnusableInputError: there is no such dump, or the build's file names its input and a date is asked for, too.
    """
    if not takes_downloads(options):
        if date is not None:
            raise UnusableInputError(
                "--dump chooses a downloaded dump, and this build's file names its input; leave one of them out."
            )
        return options, None
    from maskmill.mirrors import download

    folder = downloads_of(options)
    found = [(place, dump) for place, dump in dumps_there(options) if date in (None, dump.date)]
    if not found:
        of_date = "" if date is None else f" of {date}"
        raise UnusableInputError(
            f"{folder}: no dump{of_date} is downloaded here whole, and the build's file names no extract.input; "
            "`maskmill watch CONFIG` downloads the newest one."
        )
    place, dump = found[0]
    extract = dataclasses.replace(options[ExtractStage], input=tuple(download.paths_of(place, dump)))
    return options.having(ExtractStage, extract), dump


def dumps_there(options: BuildOptions) -> list[tuple[str, Dump]]:
    """The dumps that a build can take: those that are downloaded, and those of a source that is not a web server.

    Returns:
      Each with the directory of its download; newest first.
    """
    from maskmill.mirrors import download, newest
    from maskmill.mirrors.client import MirrorClient

    watch = options.watch or WatchOptions()
    folder = downloads_of(options)
    found = download.downloaded_dumps(folder)
    if not is_web(watch.source):
        with contextlib.closing(MirrorClient(watch.contact, manifest.versions()["maskmill"])) as client:
            listed = newest.dumps(
                watch.source, wiki=watch.wiki, layout=watch.layout, pattern=watch.pattern, client=client
            )
            found += [(download.directory_of(folder, dump), dump) for dump in listed if not download.is_remote(dump)]
    of_wiki = [(place, dump) for place, dump in found if watch.wiki in (None, dump.wiki)]
    return sorted(of_wiki, key=lambda pair: pair[1].date, reverse=True)


def takes_downloads(options: BuildOptions) -> bool:
    """Whether the build's file names no input, so that a downloaded dump is it."""
    extract = options.get(ExtractStage)
    return options.watch is not None and extract is not None and not extract.input


def downloads_of(options: BuildOptions) -> str:
    """The directory below which dumps are downloaded for a build."""
    given = None if options.watch is None else options.watch.downloads
    return given or files.join(options.output, DOWNLOADS)


def find_inputs(options: BuildOptions, dump: Dump | None, *, keep: bool) -> list[InputFile]:
    """The inputs of a build with their checksums, in order.

    The checksums of local files are kept below ROOT/releases/.state with the files' sizes and times, so that a file is
    read for them once.

    dump: the downloaded dump that is its input; None if there is none. keep: whether checksums may be kept: a look
    without work writes nothing.

    Raises:
      UnusableInputError: an input is not there or cannot be read.
    """
    urls = {} if dump is None else {file.name: file.url for file in dump.files}
    cache = _Checksums(_checksums_path(options.output))
    found = []
    for source, file in _files_of(options):
        checksum, algorithm = cache.of(file)
        url = urls.get(files.base_name(file.path), "")
        found.append(
            InputFile(path=file.path, size=file.size, checksum=checksum, algorithm=algorithm, source=source, url=url)
        )
    if keep:
        cache.keep()
    return found


def forget_checksums(root: str) -> None:
    """Has the inputs read anew for their checksums: a file was replaced by one of the same size and time."""
    files.delete([_checksums_path(root)])


def _checksums_path(root: str) -> str:
    return files.join(root, f"{names.RELEASES}/{names.STATE}/{_CHECKSUMS}")


def _files_of(options: BuildOptions) -> list[tuple[str, files.FileInfo]]:
    """The input files of a build, each with the name of its source in a mix."""
    from maskmill.text.text_files import find_texts
    from transforms.inputs import found_inputs

    if options.texts is not None:
        return [("", text) for text in find_texts(options.texts)]
    return [
        (name, file)
        for name, extract in extracts_of(options).items()
        for file in found_inputs.find_inputs(files.match(extract.input), extract.input_format).files
    ]


class _Checksums:
    """The checksums of input files, those that were computed before and those that are needed now."""

    def __init__(self, path: str) -> None:
        self._path = path
        content = files.read_if_there(path) or b""
        self._known: dict[str, Any] = completions.unsealed_json("", _KEY, content) or {}
        self._now: dict[str, Any] = {}

    def of(self, file: files.FileInfo) -> tuple[str, str]:
        """A file's checksum, and which one it is."""
        stored = files.stored_checksum(file.path)
        if stored is not None:
            return stored, CRC32C
        if not files.is_local(file.path):
            return files.sha256_of(file.path), "sha256"
        path = os.path.abspath(os.path.expanduser(file.path))
        state = [file.size, os.stat(path).st_mtime_ns]
        known = self._known.get(path)
        sha256: str = known[1] if known is not None and known[0] == state else files.sha256_of(path)
        self._now[path] = [state, sha256]
        return sha256, "sha256"

    def keep(self) -> None:
        """Keeps the checksums of the files that were asked for, and of others that are there still."""
        kept = {path: known for path, known in self._known.items() if os.path.exists(path)} | self._now
        if kept != self._known:
            files.write_bytes(self._path, completions.sealed_json("", _KEY, kept))


def wiki_and_date(options: BuildOptions, dump: Dump | None) -> tuple[str, str]:
    """What the name of a build's release begins with, and its date.

    Raises:
      UnusableInputError: neither the build's file nor its inputs say it, or several wikis or dates are among them.
    """
    wiki, date = options.release.wiki, options.release.date
    if dump is not None:
        wiki, date = wiki or dump.wiki, date or dump.date
    extract = options.get(ExtractStage)
    if date is None and extract is not None:
        date = extract.dump_date
    if wiki is None or date is None:
        paths = _paths_that_tell(options)
        wiki = wiki or _only({match[1] for p in paths if (match := _WIKI.match(files.base_name(p)))}, "wiki", paths)
        date = date or _date_of(paths)
    if names.ReleaseName.parse(f"{wiki}-{date}-{'0' * names.DIGEST_DIGITS}") is None:
        raise UnusableInputError(
            f"release.wiki {wiki!r} and release.date {date!r} name no release; wiki takes small letters, digits and _, "
            "date a day such as 2026-11-01."
        )
    return wiki, date


def _paths_that_tell(options: BuildOptions) -> list[str]:
    """The paths whose names tell of the dump: the inputs; of text that exists, those that it was extracted from."""
    if options.texts is None:
        return [file.path for _, file in _files_of(options)]
    paths: list[str] = []
    for pattern in options.texts:
        made = None if files.is_glob(pattern) else manifest.find_manifest(pattern)
        paths += [entry["path"] for entry in made["inputs"]] if made is not None else [pattern]
    return paths


def _date_of(paths: Sequence[str]) -> str:
    named = {date for path in paths if (date := date_in_name(path))}
    if not named:
        from transforms.inputs import found_inputs

        # Text that was extracted elsewhere tells no more than its names.
        there = [path for path in paths if files.exists(path)]
        evidence = [(path, found_inputs.read_evidence(path)[1]) for path in there]
        with contextlib.suppress(UnusableInputError):
            named = {date for date in found_inputs.decide_dates(evidence) if date}
    return _only(named, "date", paths)


def _only(found: set[str], what: str, paths: Sequence[str]) -> str:
    if len(found) == 1:
        return found.pop()
    problem = f"has several: {', '.join(sorted(found))}" if found else f"gives none ({paths[0]})"
    raise UnusableInputError(
        f"A release is named after the {what} of its dump, and the input {problem}; set release.{what} in the build's "
        "file."
    )


def described(dump: Dump | None) -> dict[str, Any] | None:
    """A dump as release.json tells of it."""
    plain: Mapping[str, Any] | None = None if dump is None else dataclasses.asdict(dump)
    return None if plain is None else dict(json.loads(json.dumps(plain)))
