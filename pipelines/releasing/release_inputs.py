"""What a release is built of: its input files with their checksums, and the wiki and the date of their dump."""

import contextlib
import dataclasses
import json
import re
from collections.abc import Sequence
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.mirrors.dump_names import date_in_name
from maskmill.mirrors.dumps import Dump
from maskmill.releases import names
from maskmill.storage import files, manifest
from pipelines.building.build_options import BuildOptions
from pipelines.stages.extract_stage import ExtractStage
from pipelines.stages.mix_stage import extracts_of

_WIKI = re.compile(r"([a-z][a-z0-9_]*wik[a-z]*)(?=[-._])")
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
    """Return the build with a downloaded dump as its input, if its file names none, and that dump.

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
    """Return the dumps that a watch has brought for a build, each with the directory of its download, newest first."""
    from maskmill.mirrors import download

    wiki = None if options.watch is None else options.watch.wiki
    found = download.downloaded_dumps(downloads_of(options))
    return [(place, dump) for place, dump in found if wiki in (None, dump.wiki)]


def takes_downloads(options: BuildOptions) -> bool:
    """Say whether the build's file names no input, so that a downloaded dump is it."""
    extract = options.get(ExtractStage)
    return options.watch is not None and extract is not None and not extract.input


def downloads_of(options: BuildOptions) -> str:
    """Return the directory below which dumps are downloaded for a build."""
    given = None if options.watch is None else options.watch.downloads
    return given or files.join(options.output, DOWNLOADS)


def find_inputs(options: BuildOptions, dump: Dump | None) -> list[InputFile]:
    """Return the inputs of a build with their checksums, in order; local files are read for them.

    dump: the downloaded dump that is its input; None if there is none.

    Raises:
      UnusableInputError: an input is not there or cannot be read.
    """
    urls = {} if dump is None else {file.name: file.url for file in dump.files}
    found = []
    for source, file in _files_of(options):
        stored = files.stored_checksum(file.path)
        checksum, algorithm = (files.sha256_of(file.path), "sha256") if stored is None else (stored, CRC32C)
        url = urls.get(files.base_name(file.path), "")
        found.append(
            InputFile(path=file.path, size=file.size, checksum=checksum, algorithm=algorithm, source=source, url=url)
        )
    return found


def _files_of(options: BuildOptions) -> list[tuple[str, files.FileInfo]]:
    """Return the input files of a build, each with the name of its source in a mix."""
    from maskmill.inputs import found_inputs
    from maskmill.text.text_files import find_texts

    if options.texts is not None:
        return [("", text) for text in find_texts(options.texts)]
    return [
        (name, file)
        for name, extract in extracts_of(options).items()
        for file in found_inputs.find_inputs(files.match(extract.input), extract.input_format).files
    ]


def wiki_and_date(options: BuildOptions, dump: Dump | None) -> tuple[str, str]:
    """Return the wiki with which the name of a build's release begins, and the date in it.

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
    """Return the paths whose names tell of the dump: the inputs, or those from which text that exists was extracted."""
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
        from maskmill.inputs import found_inputs

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
    """Return a dump as release.json tells of it, in JSON's own types."""
    return None if dump is None else dict(json.loads(json.dumps(dataclasses.asdict(dump))))
