"""What `maskmill verify` prints of a verification: as text, and as one JSON object."""

import dataclasses
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from maskmill.verification.conclude import NOTHING_THERE
from maskmill.verification.findings import CHECKS, SEVERITIES, Finding, Verification

_COLUMNS = 80
_PLURALS = {"error": "errors", "warning": "warnings", "note": "notes"}


def described(found: Verification, most_findings: int) -> str:
    """A verification in words: the findings, the worst first, then what was looked at."""
    lines = list(findings(found.findings, most_findings))
    more = f" and {len(found.paths) - 1:,} more" if found.paths[1:] else ""
    lines += [f"{_plain(found.paths[0])}{more}: {_verdict(found)}"]
    lines += [f"  {title}" for title in _looked_at(found)]
    return "\n".join(lines)


def as_json(found: Verification, most_findings: int) -> dict[str, Any]:
    """A verification as values of JSON."""
    return {
        "paths": list(found.paths),
        "is_right": found.is_right,
        "counts": {severity: _count(found, severity) for severity in SEVERITIES},
        "read_bytes": found.read_bytes,
        "files": sum(result.size is not None for result in found.results),  # type: ignore[attr-defined]
        "findings": [dataclasses.asdict(finding) for finding in found.findings[:most_findings]],
        "left_out_findings": max(0, len(found.findings) - most_findings),
        "checks": [
            {
                "check": name,
                "title": CHECKS[name].title,
                "looked_at": outcome.looked_at,
                "findings": outcome.findings,
                "skipped": outcome.skipped,
            }
            for name, outcome in found.outcomes.items()
        ],
    }


def findings(found: Sequence[Finding], most: int) -> Iterator[str]:
    """A line for each finding, the worst first."""
    for finding in found[:most]:
        more = f" ({finding.count - 1:,} more of this kind in this file)" if finding.count > 1 else ""
        yield f"{finding.severity}: {_plain(finding.message)}{more}"
    if len(found) > most:
        yield f"… and {len(found) - most:,} more; --most_findings shows them."


def _plain(text: str) -> str:
    """A text without characters that a terminal would obey."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _verdict(found: Verification) -> str:
    counts = {severity: _count(found, severity) for severity in SEVERITIES}
    told = [f"{n:,} {_PLURALS[s] if n != 1 else s}" for s, n in counts.items() if n]
    files = sum(result.size is not None for result in found.results)  # type: ignore[attr-defined]
    read = f"{files:,} {'file' if files == 1 else 'files'}, {found.read_bytes:,} bytes"
    if found.is_right:
        return f"all is right ({read}{', ' + ', '.join(told) if told else ''})"
    return f"{', '.join(told)} ({read})"


def _looked_at(found: Verification) -> Iterator[str]:
    """The checks that found nothing, then those that were not made, together where the reason is the same."""
    passed = [o.check for o in found.outcomes.values() if o.looked_at and not o.findings and o.skipped is None]
    if passed:
        yield from _wrapped("right:", ", ".join(passed))
    reasons: dict[str, list[str]] = {}
    for outcome in found.outcomes.values():
        if outcome.skipped is not None and outcome.skipped != NOTHING_THERE:
            reasons.setdefault(outcome.skipped, []).append(outcome.check)
    if reasons:
        yield "not looked at, or not at all of it:"
    for reason, names in reasons.items():
        yield from _wrapped("  " + ", ".join(names) + ":", _plain(reason))


def _wrapped(head: str, text: str) -> list[str]:
    indent = " " * (len(head) - len(head.lstrip()) + 2)
    return textwrap.wrap(
        f"{head} {text}", _COLUMNS - 2, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _count(found: Verification, severity: str) -> int:
    return sum(finding.count for finding in found.findings if finding.severity == severity)
