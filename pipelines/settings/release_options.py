"""The sections of a build's file that are not stages: releases, and where new dumps come from."""

import dataclasses
from typing import Any, Literal

from maskmill.arguments import check_fields
from maskmill.errors import UnusableInputError
from maskmill.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReleaseOptions:
    """The section `release`; raises UnusableInputError if a value is out of its range."""

    wiki: str | None = option(
        None, help="what the names of releases begin with, as enwiki; null: the wiki in the dump's name"
    )
    date: str | None = option(None, help="the date in a release's name, as 2026-11-01; null: that of the dump")
    keep: int | None = option(
        None, help="how many complete releases stay; older ones are removed once a new one is there; null: all"
    )
    keep_days: float = option(60.0, help="with keep: for how many days a complete release stays in any case")
    wait: float = option(0.0, help="minutes to wait for another build of the same release")

    def __post_init__(self) -> None:
        if self.keep is not None and self.keep < 1:
            raise UnusableInputError(f"release.keep must be 1 or more, not {self.keep}.")
        if self.keep_days < 0:
            raise UnusableInputError(f"release.keep_days must be 0 or more days, not {self.keep_days:g}.")
        if self.wait < 0:
            raise UnusableInputError(f"release.wait must be 0 or more minutes, not {self.wait:g}.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class WatchOptions:
    """The section `watch`; raises UnusableInputError if a value is out of its range."""

    source: str = option(
        "https://dumps.wikimedia.org", help="the mirror: its address, or a directory or bucket with Wikimedia's folders"
    )
    wiki: str | None = option(None, help="whose dumps, as enwiki")
    layout: Literal["auto", "classic", "content"] = option(
        "auto",
        help="which of Wikimedia's folders: classic (WIKI/YYYYMMDD, dumpstatus.json), content (other/"
        "mediawiki_content_current); auto: whichever is there",
    )
    contact: str | None = option(
        None, help="an address or a page that tells a mirror's operators who downloads; needed for http"
    )
    downloads: str | None = option(None, help="where dumps are downloaded; null: downloads, below output")
    connections: int = option(3, help="downloads at a time, 1 to 3, which is what Wikimedia allows")
    keep_downloads: bool = option(False, help="keep the files of a dump when its release is complete")

    def __post_init__(self) -> None:
        check_fields(self)
        if not 1 <= self.connections <= 3:
            raise UnusableInputError(f"watch.connections must be 1 to 3, not {self.connections}: Wikimedia allows 3.")


# By the name of their section.
SETTINGS: dict[str, Any] = {"release": ReleaseOptions, "watch": WatchOptions}
