"""Verify data sets in this process: each file alone, then all files together."""

import collections
import contextlib
import dataclasses
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence

from maskmill.arguments import checked
from maskmill.errors import UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.remote import open_ranges
from maskmill.storage import files
from maskmill.verification.file_checks import CopiedFile, check_file, check_index
from maskmill.verification.findings import (
    CHECKS,
    SEVERITIES,
    Checked,
    CheckOutcome,
    Finding,
    Verification,
    combined,
    finding,
    functions_of,
    skipped,
)
from maskmill.verification.options import VerifyOptions
from maskmill.verification.verify_plan import plan
from maskmill.verification.verify_targets import VerifyPlan, find_targets
from maskmill.verification.work_items import ItemResult, WorkItem

NOTHING_THERE = "there is nothing to look at"
_TOKEN_BYTES = 8


@checked
def verify(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], options: VerifyOptions | None = None
) -> Verification:
    """Verify data sets in this process, one file after the other, and return the findings.

        found = maskmill.verify("demo")
        for finding in found.findings:
            print(finding.severity, finding.message)

    Args:
      paths: directories of builds or stages, files, globs: one, or several. Local, gs:// or http(s)://.
      options: of the verification; None: the defaults.

    Returns:
      the findings, the worst first, and the outcome of each check; `is_right` if there are no findings but notes.

    Raises:
      UnusableInputError: a path does not exist, or an argument is invalid.
      RunFailedError: the machine failed. Damaged files do not raise, they give findings.
    """
    named = [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    if not named:
        raise UnusableInputError("There is no path to verify; name the directory of a build or of a stage, or files.")
    options = options or VerifyOptions()
    with scratch_directory(options) as scratch:
        planned = plan(find_targets(named), options, scratch)
        found = conclude(planned, verify_items(planned))
    return dataclasses.replace(found, paths=tuple(named))


def verify_items(plan: VerifyPlan, done: Callable[[ItemResult], object] = lambda result: None) -> list[ItemResult]:
    """Verify the work items of a plan; done: called with each result."""
    results = []
    for item in plan.items:
        results.append(verify_item(item))
        done(results[-1])
    return results


@contextlib.contextmanager
def scratch_directory(options: VerifyOptions) -> Iterator[str]:
    """Yield a temporary directory, below options.scratch or a local one, and delete it after the block."""
    if options.scratch is None:
        with tempfile.TemporaryDirectory(prefix=files.scratch_prefix()) as directory:
            yield directory
        return
    directory = files.join(options.scratch, f"verify-{secrets.token_hex(_TOKEN_BYTES)}")
    files.make_directory(directory)
    try:
        yield directory
    finally:
        files.delete(files.list_directory(directory))
        if files.is_local(directory):
            shutil.rmtree(directory)


def verify_item(item: WorkItem) -> ItemResult:
    """Return the results of the checks of a work item; a pure function of it, which any process can call.

    A damaged file gives findings, not exceptions.
    """
    with contextlib.ExitStack() as opened:
        ranges: ByteRanges = opened.enter_context(contextlib.closing(open_ranges(item.path, cache_bytes=0)))
        result = ItemResult(item=item)
        if item.kind != "shard":
            if not files.is_local(item.path):
                ranges = opened.enter_context(contextlib.closing(CopiedFile(item.path, ranges)))
            result = check_file(item, ranges)
            if result.size is None:
                lost = [check.name for check in CHECKS.values() if item.kind in check.of]
                return result.plus(skipped("a file is not there", *lost))
        for check in functions_of("file", item.kind):
            result = result.plus(check(item, ranges))
        return result.plus(check_index(item, ranges)).plus(_nothing_read_of(result))


def _nothing_read_of(result: ItemResult) -> Checked:
    """Return an error if a file without a manifest has no data that can be checked."""
    item, noun, check = result.item, "example", "framing"
    seen = result.rows.rows if result.rows is not None else 0
    if item.kind == "text":
        noun, check, seen = "line of text", "documents", result.text.lines if result.text is not None else 0
    has_error = any(found.severity == "error" for found in result.findings)
    is_checked = item.kind in ("text", "examples") and item.expected.size is None
    if not is_checked or has_error or (seen and item.unusable is None):
        return Checked()
    what = item.unusable or f"there is no {noun} in this file"
    return Checked(findings=[finding(check, item.path, what if "; " in what else f"{what}; make or fetch it again")])


# ---- all of them


def conclude(plan: VerifyPlan, results: Sequence[ItemResult]) -> Verification:
    """Return the verification of data sets, its findings with the worst first.

    Args:
      plan: of the verification; its scratch directory has the tables of the results.
      results: of all work items, in any order.
    """
    places = {(item.kind, item.path): place for place, item in enumerate(plan.items)}
    ordered = _with_remade(sorted(results, key=lambda result: places[result.item.kind, result.item.path]))
    parts = [*(target.checked for target in plan.targets), *ordered]
    for target in plan.targets:
        of_target = {(item.kind, item.path) for item in target.items if item.kind != "shard"}
        its = [result for result in ordered if (result.item.kind, result.item.path) in of_target]
        parts += [check(target, its) for check in functions_of("data_set", target.kind)]
    parts += [check(plan, ordered) for check in functions_of("all")]
    everything = combined([*parts, _nothing_read(plan, parts)])
    order = {name: place for place, name in enumerate(CHECKS)}
    findings = sorted(
        {(f.check, f.file, f.record, f.message): f for f in reversed(everything.findings)}.values(),
        key=lambda found: (SEVERITIES.index(found.severity), order[found.check], found.file, found.record or 0),
    )
    return Verification(
        paths=tuple(dict.fromkeys(target.path for target in plan.targets)),
        findings=tuple(findings),
        outcomes=_outcomes(everything, findings),
        results=tuple(ordered),
        read_bytes=sum(result.size or 0 for result in ordered),
    )


def _with_remade(results: Sequence[ItemResult]) -> list[ItemResult]:
    """Return the results, with is_remade set for the files of shards that are equal when made again."""
    remakes = [result.item.remake for result in results if result.is_remade and result.item.remake is not None]
    equal = {pair for remake in remakes for pair in zip(remake.files, remake.digests, strict=True)}
    return [dataclasses.replace(r, is_remade=True) if (r.item.path, r.sha256) in equal else r for r in results]


def _nothing_read(plan: VerifyPlan, parts: Sequence[Checked]) -> Checked:
    """Return an error if no check has read any file, and no finding explains it."""
    made = {check for part in parts for check, count in part.looked_at.items() if count}
    is_read = any(CHECKS[check].reads != "names" for check in made)
    if is_read or any(found.severity != "note" for part in parts for found in part.findings):
        return Checked()
    what = "there is no data that could be looked at; name a data set that has some"
    return Checked(findings=[finding("missing", plan.targets[0].directory, what)])


def _outcomes(everything: Checked, findings: Sequence[Finding]) -> dict[str, CheckOutcome]:
    counts: collections.Counter[str] = collections.Counter()
    for found in findings:
        counts[found.check] += found.count
    outcomes = {}
    for name in CHECKS:
        looked_at, why = everything.looked_at.get(name, 0), everything.skipped.get(name)
        if why is None and not looked_at and not counts[name]:
            why = NOTHING_THERE
        outcomes[name] = CheckOutcome(check=name, looked_at=looked_at, findings=counts[name], skipped=why)
    return outcomes
