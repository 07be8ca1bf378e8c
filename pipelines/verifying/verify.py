"""The command verify. Small data sets are checked in this process, others by a runner."""

import dataclasses
import json
import os
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from maskmill.verification import verifying
from maskmill.verification.findings import CHECKS, SEVERITIES, Finding, Severity, Verification
from maskmill.verification.options import VerifyOptions
from maskmill.verification.remaking_checks import kernels_of_remaking
from maskmill.verification.verify_plan import plan
from maskmill.verification.verify_targets import VerifyPlan, find_targets
from maskmill.verification.verifying import NOTHING_THERE
from maskmill.verification.work_items import ItemResult
from pipelines.running import interruption
from pipelines.settings import beam_flags
from pipelines.stages import kernels
from pipelines.terminal.progress import Counter, Progress

RIGHT, WRONG = 0, 1

# Below this much data a second process costs more than it saves.
_WORTH_PROCESSES = 1 << 30
_COLUMNS = 80
_MOST_FINDINGS = 100  # that are printed as lines


@interruption.going_on(interruption.START_ANEW)
def run(
    paths: Sequence[str], options: VerifyOptions, beam_arguments: Sequence[str] = (), *, quiet: bool = False
) -> int:
    """Verify data sets and print the findings; return the exit code: 0 if all is right, 1 if not.

    Args:
      paths: from the user.
      options: of the verification.
      beam_arguments: flags for Beam.
      quiet: whether only findings, or the JSON object, are printed.

    Raises:
      UnusableInputError: there is no data set at a path, or the flags do not go together.
      RunFailedError: the machine failed.
    """
    if not paths:
        raise UnusableInputError("PATH is missing: name the directory of a build or of a stage, or files.")
    found = verify(paths, options, beam_arguments)
    if found is None:
        if not quiet:
            print(f"{', '.join(paths)}: nothing was verified, the job was only described.")
        return RIGHT
    found = dataclasses.replace(found, paths=tuple(paths))
    if options.json:
        print(json.dumps(as_json(found), indent=2, ensure_ascii=False))
    else:
        lines = [*lines_of(found.findings), *([] if quiet else _summary(found))]
        print(*lines, sep="\n", end="\n" if lines else "")
    return RIGHT if found.is_right else WRONG


def verify(paths: Sequence[str], options: VerifyOptions, beam_arguments: Sequence[str] = ()) -> Verification | None:
    """Verify data sets; return None if Beam's flags ask only for a description of the job. Raise as `run`."""
    is_local = beam_flags.is_local(beam_arguments)
    if not is_local and options.scratch is None:
        raise UnusableInputError("--scratch is missing: name a directory that all workers of this runner reach.")
    with verifying.scratch_directory(options) as scratch:
        planned = plan(find_targets(paths), options, scratch)
        size = sum(_size_of(item.path, item.expected.size) for item in planned.items if item.remake is None)
        remakes = [item.remake for item in planned.items if item.remake is not None]
        remade = [name for remake in remakes for name in kernels_of_remaking(remake)]
        if is_local:
            kernels.prepare([*kernels.OF_VERIFY, *remade])
        is_little = len(planned.items) - len(remakes) <= 1 or (size < _WORTH_PROCESSES and not beam_arguments)
        if not planned.items or (is_local and is_little):
            return verifying.conclude(planned, _in_this_process(planned))
        from pipelines.verifying import verify_graph

        return verify_graph.run(planned, size, beam_arguments, [*kernels.OF_VERIFY, *remade])


def _size_of(path: str, expected: int | None) -> int:
    if expected is not None or not files.is_local(path):
        return expected or 0
    return os.path.getsize(path) if os.path.isfile(path) else 0


def _in_this_process(plan: VerifyPlan) -> list[ItemResult]:
    counter = Counter("verify", pieces=len(plan.items))
    with Progress([counter], only_long=True):
        return verifying.verify_items(plan, lambda result: counter.count(result.size or 0))


def as_json(found: Verification) -> dict[str, Any]:
    """Return a verification as values of JSON."""
    return {
        "paths": list(found.paths),
        "is_right": found.is_right,
        "counts": {severity: _count(found, severity) for severity in SEVERITIES},
        "read_bytes": found.read_bytes,
        "files": _files(found),
        "findings": [dataclasses.asdict(finding) for finding in found.findings],
        "checks": [
            {"check": name, "title": CHECKS[name].title, **dataclasses.asdict(outcome)}
            for name, outcome in found.outcomes.items()
        ],
    }


def lines_of(found: Sequence[Finding]) -> Iterator[str]:
    """Yield a line for each finding, the worst first."""
    for finding in found[:_MOST_FINDINGS]:
        more = f" ({finding.count - 1:,} more of this kind in this file)" if finding.count > 1 else ""
        yield f"{finding.severity}: {_plain(finding.message)}{more}"
    if len(found) > _MOST_FINDINGS:
        yield f"… and {len(found) - _MOST_FINDINGS:,} more; --json has all of them."


def _summary(found: Verification) -> Iterator[str]:
    """Yield the verdict, the checks without findings, then the skipped checks, by reason."""
    counts = [(severity, _count(found, severity)) for severity in SEVERITIES]
    counted = [f"{count:,} {severity}{'' if count == 1 else 's'}" for severity, count in counts if count]
    count, more = _files(found), f" and {len(found.paths) - 1:,} more" if found.paths[1:] else ""
    read = ", ".join([f"{count:,} file{'' if count == 1 else 's'}", f"{found.read_bytes:,} bytes"])
    verdict = f"all is right ({', '.join([read, *counted])})" if found.is_right else f"{', '.join(counted)} ({read})"
    yield f"{_plain(found.paths[0])}{more}: {verdict}"
    passed = [o.check for o in found.outcomes.values() if o.looked_at and not o.findings and o.skipped is None]
    if passed:
        yield from _wrapped("  right:", ", ".join(passed))
    reasons: dict[str, list[str]] = {}
    for outcome in found.outcomes.values():
        if outcome.skipped not in (None, NOTHING_THERE):
            reasons.setdefault(str(outcome.skipped), []).append(outcome.check)
    if reasons:
        yield "  not looked at, or not at all of it:"
    for reason, names in reasons.items():
        yield from _wrapped(f"    {', '.join(names)}:", _plain(reason))


def _plain(text: str) -> str:
    """Return a text with the control characters of terminals escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _wrapped(head: str, text: str) -> list[str]:
    indent = " " * (len(head) - len(head.lstrip()) + 2)
    shaped = textwrap.TextWrapper(_COLUMNS, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return shaped.wrap(f"{head} {text}")


def _files(found: Verification) -> int:
    return sum(result.size is not None for result in found.results)  # type: ignore[attr-defined]


def _count(found: Verification, severity: Severity) -> int:
    return sum(finding.count for finding in found.findings if finding.severity == severity)
