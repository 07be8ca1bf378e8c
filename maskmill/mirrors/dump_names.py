"""The date in the name of a dump, or of its directory."""

import contextlib
import datetime
import re

from maskmill.storage import files

_OLDEST_DUMP = "2001-01-15"  # the day on which Wikipedia began
_DATE = re.compile(r"(?<!\d)(\d{4})(-?)(\d\d)\2(\d\d)(?!\d)")
_PAGE_RANGE = re.compile(r"p\d+p\d+")
# dumps.wikimedia.org/enwiki/20260301/, mediawiki_content_current/enwiki/2026-03-01/xml/bzip2/
_DIRECTORY = re.compile(r"(?:^|/)[a-z][a-z0-9_]*wik[a-z]*/(\d{8}|\d{4}-\d\d-\d\d)(?=/)")


def date_in_name(path: str) -> str:
    """Return the ISO date in a dump's name, or in its directory's in Wikimedia's layout; empty if there is none.

    Wikimedia writes enwiki-20260301-pages-articles1.xml-p1p41242.bz2 or enwiki-2026-03-01-p10p1147431.xml.bz2; page
    numbers do not count as dates.
    """
    directories = [match[1] for match in _DIRECTORY.finditer(path)]
    for text in (_PAGE_RANGE.sub(" ", files.base_name(path)), *reversed(directories)):
        for year, _, month, day in _DATE.findall(text):
            with contextlib.suppress(ValueError):
                date = datetime.date(int(year), int(month), int(day)).isoformat()
                if date >= _OLDEST_DUMP:
                    return date
    return ""
