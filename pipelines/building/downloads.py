"""Downloaded dumps: a build with a section watch takes one where its file names no input."""

import dataclasses
import json
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.mirrors.dumps import Dump
from maskmill.storage import files
from pipelines.building.build_options import BuildOptions
from pipelines.stages.extract_stage import ExtractStage

DOWNLOADS = "downloads"


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
    found = [(place, dump) for place, dump in downloaded_dumps(options) if date in (None, dump.date)]
    if not found:
        of_date = "" if date is None else f" of {date}"
        raise UnusableInputError(
            f"{folder}: no dump{of_date} is downloaded here whole, and the build's file names no extract.input; "
            "`maskmill watch CONFIG` downloads the newest one."
        )
    place, dump = found[0]
    extract = dataclasses.replace(options[ExtractStage], input=tuple(download.paths_of(place, dump)))
    return options.having(ExtractStage, extract), dump


def downloaded_dumps(options: BuildOptions) -> list[tuple[str, Dump]]:
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


def described(dump: Dump | None) -> dict[str, Any] | None:
    """Return a dump as release.json tells of it, in JSON's own types."""
    return None if dump is None else dict(json.loads(json.dumps(dataclasses.asdict(dump))))
