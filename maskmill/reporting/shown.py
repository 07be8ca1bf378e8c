"""Formats figures for the page."""

import datetime
import math

_SIZES = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3))
_DURATIONS = (("days", 86_400), ("h", 3_600), ("min", 60))


def count(value: float) -> str:
    """Return a count, such as `12,345`."""
    return f"{value:,.0f}"


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: `1 shard`, `5 shards`."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def size(value: float) -> str:
    """Return a number of bytes, such as `12.3 MB`."""
    for unit, factor in _SIZES:
        if value >= factor:
            return f"{value / factor:,.1f} {unit}"
    return f"{value:,.0f} byte{'' if value == 1 else 's'}"


def percent(share: float) -> str:
    """Return a share of 1 with three digits, such as `15 %`; with one digit if it is below 1 %."""
    if not math.isfinite(share):
        return "–"
    if share == 0:
        return "0 %"
    return f"{100 * share:.3g} %" if abs(share) >= 0.01 else f"{100 * share:.1g} %"


def number(value: float) -> str:
    """Return a number that need not be whole, with three digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def duration(seconds: float) -> str:
    """Return a time, such as `3.4 s` or `2.5 h`."""
    for unit, factor in _DURATIONS:
        if seconds >= 2 * factor:
            return f"{seconds / factor:,.1f} {unit}"
    return f"{seconds:.1f} s"


def day(date: str) -> str:
    """Return a date such as 2016-05-01 as `1 May 2016`; any other text as it is."""
    try:
        parsed = datetime.date.fromisoformat(date)
    except ValueError:
        return date
    return f"{parsed.day} {parsed:%B %Y}"
