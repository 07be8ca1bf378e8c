"""Wikimedia's new layout: other/mediawiki_content_current/WIKI/YYYY-MM-DD/xml/bzip2/ with SHA256SUMS and _SUCCESS.

Source: https://meta.wikimedia.org/wiki/Data_dumps/mediawiki_content_current.
"""

import datetime
from collections.abc import Callable, Iterator

from maskmill.mirrors.client import MirrorClient
from maskmill.mirrors.dumps import (
    Dump,
    DumpFile,
    choose_pages_files,
    complete,
    missing_part,
    not_of_dump,
    part_twice,
    read_checksums,
)
from maskmill.storage import files

LAYOUT = "content"

_FOLDER = "other/mediawiki_content_current"
_CHECKSUMS = "SHA256SUMS"
_SUCCESS = "_SUCCESS"


def find_dumps(source: str, wiki: str, client: MirrorClient, say: Callable[[str], None]) -> Iterator[Dump] | None:
    """The complete dumps of a wiki, newest first; None where the mirror has no such folder.

    Arguments and errors are those of classic.find_dumps.
    """
    folder = files.join(files.join(source, _FOLDER), wiki)
    names = client.names(folder)
    if names is None:
        return None
    dates = sorted((name.rstrip("/") for name in names if _is_date(name.rstrip("/"))), reverse=True)
    places = [(date, files.join(folder, f"{date}/xml/bzip2")) for date in dates]
    return complete(((place, "this dump", _read_dump(place, wiki, date, client)) for date, place in places), say)


def _is_date(name: str) -> bool:
    try:
        return datetime.date.fromisoformat(name).isoformat() == name
    except ValueError:
        return False


def _read_dump(place: str, wiki: str, date: str, client: MirrorClient) -> Dump | str:
    """The dump in a folder, or a clause that says why there is no complete one."""
    # _SUCCESS is written behind all else, so it is read first: what is read after it is complete.
    if client.read(files.join(place, _SUCCESS)) is None:
        return f"{_SUCCESS} is not there yet"
    content = client.read(files.join(place, _CHECKSUMS))
    if content is None:
        return f"{_CHECKSUMS} is not there yet"
    sums = read_checksums(content)
    chosen = []
    # A list that is cut off names fewer parts than the folder has; the index of a folder may be cut off, too.
    for name in choose_pages_files([name for name in {*sums, *(client.names(place) or [])} if ".xml" in name]):
        if other := not_of_dump(name, wiki, date):
            return other
        if name not in sums:
            return f"{name} is not in {_CHECKSUMS}"
        checksum, algorithm = sums[name]
        chosen.append(DumpFile(name=name, url=files.join(place, name), checksum=checksum, algorithm=algorithm))
    if not chosen:
        return f"{_CHECKSUMS} lists no XML"
    problem = missing_part([file.name for file in chosen]) or part_twice(chosen)
    return problem or Dump(wiki=wiki, date=date, layout=LAYOUT, files=chosen)
