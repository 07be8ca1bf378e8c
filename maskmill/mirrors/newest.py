"""The dumps of a mirror, whatever its layout, newest first."""

import heapq
import re
from collections.abc import Callable, Iterator

from maskmill.errors import UnusableInputError
from maskmill.mirrors import listing, wikimedia
from maskmill.mirrors.client import MirrorClient, unquoted
from maskmill.mirrors.dumps import Dump

AUTO = "auto"
_WIKI = re.compile(r"[a-z0-9][a-z0-9_]*")


def _nobody(text: str) -> None:
    """Ignore a line."""


def dumps(
    source: str,
    *,
    wiki: str | None,
    layout: str,
    pattern: str,
    client: MirrorClient,
    say: Callable[[str], None] = _nobody,
) -> Iterator[Dump]:
    """Return the complete dumps on a mirror, newest first. Each is looked at only when it is asked for.

    Args:
      source: the mirror: http(s)://, gs:// or a directory.
      wiki: whose dumps; None with a listing: of the only wiki there.
      layout: classic, content, listing; auto: whichever of Wikimedia's layouts is there, both where both are (the new
        one first where both have a date), else a listing.
      pattern: a glob of the names of a listing's dump files.
      client: reads the mirror.
      say: is told why a dump that is there does not count.

    Raises:
      UnusableInputError: there is no such mirror or wiki.
      RunFailedError: the mirror cannot be read.
    """
    if wiki is not None and not _WIKI.fullmatch(wiki):
        raise UnusableInputError(f"watch.wiki is {wiki!r}; it must be the name of a database, as enwiki or lvwiki.")
    source = unquoted(source).rstrip("/") or "/"
    if layout in (wikimedia.CLASSIC, wikimedia.CONTENT) and wiki is None:
        raise UnusableInputError("watch.wiki is missing: name the wiki whose dumps are wanted, as enwiki.")
    found: list[Iterator[Dump]] = []
    if wiki is not None:
        for own in (wikimedia.CONTENT, wikimedia.CLASSIC):
            if layout in (AUTO, own):
                of_layout = wikimedia.find_dumps(own, source, wiki, client, say)
                found += [] if of_layout is None else [of_layout]
    if not found and layout in (AUTO, listing.LAYOUT):
        # A wiki whose name is misspelt would have "nothing new" for ever if any folder were a listing.
        listed = listing.find_dumps(source, wiki, pattern, client, say, may_be_empty=layout != AUTO)
        found = [] if listed is None else [listed]
    if not found:
        raise UnusableInputError(
            f"{source}: there are no dumps of {wiki or 'a wiki'} here; check watch.source, watch.wiki and watch.layout."
        )
    # Stable: where two have a date, that of the first layout comes first.
    return heapq.merge(*found, key=lambda dump: dump.date, reverse=True)
