"""Looks across files: what each piece gave becomes one verification."""

import collections
from collections.abc import Sequence

from maskmill.verification.across import check_across
from maskmill.verification.build_checks import check_builds
from maskmill.verification.count_checks import check_counts
from maskmill.verification.findings import CHECKS, SEVERITIES, Checked, CheckOutcome, Finding, Verification, joined
from maskmill.verification.options import VerifyOptions
from maskmill.verification.pieces import PieceResult
from maskmill.verification.targets import Target

NOTHING_THERE = "there is nothing to look at"
_OF_NAMES = {"manifest", "missing", "foreign", "similar_shards", "shard_size"}  # checks that look into no file


def conclude(
    targets: Sequence[Target], results: Sequence[PieceResult], options: VerifyOptions, scratch: str
) -> Verification:
    """What was found of data sets, the worst first.

    Args:
      targets: as they were planned.
      results: of all pieces, in any order.
      options: of the verification.
      scratch: the directory that has the hash files of the results.
    """
    places = {(piece.kind, piece.path): place for place, piece in enumerate(p for t in targets for p in t.pieces)}
    ordered = sorted(results, key=lambda result: places[result.piece.kind, result.piece.path])
    parts = [target.checked for target in targets]
    parts += [Checked(findings=r.findings, looked_at=r.looked_at, skipped=r.skipped) for r in ordered]
    parts += [check_counts(targets, ordered), check_builds(targets), *_across(targets, ordered, options, scratch)]
    everything = joined([*parts, _nothing_read(targets, parts)])
    findings = sorted(_merged(everything.findings), key=_weight)
    return Verification(
        paths=tuple(dict.fromkeys(target.path for target in targets)),
        findings=tuple(findings),
        outcomes=_outcomes(everything, findings),
        results=tuple(ordered),
        read_bytes=sum(result.size or 0 for result in ordered),
    )


def _nothing_read(targets: Sequence[Target], parts: Sequence[Checked]) -> Checked:
    """An error where no check looked into any file, and none says why: nothing speaks for such a data set."""
    made = {check for part in parts for check, count in part.looked_at.items() if count}
    if made - _OF_NAMES or any(found.severity != "note" for part in parts for found in part.findings):
        return Checked()
    path = targets[0].directory
    message = f"{path}: there is no data that could be looked at; name a data set that has some."
    nothing = Finding(check="missing", file=path, expected="text or examples", found="nothing", message=message)
    return Checked(findings=(nothing,))


def _across(
    targets: Sequence[Target], results: Sequence[PieceResult], options: VerifyOptions, scratch: str
) -> list[Checked]:
    parts = [check_across(targets, results, options, scratch)]
    if options.against is not None:
        from maskmill.verification.comparing import check_against

        parts.append(check_against(targets, options, scratch))
    if options.published is not None:
        from maskmill.verification.published import check_published

        parts.append(check_published(targets, results, options))
    return parts


def _merged(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, those that are the same once."""
    seen: dict[tuple[str, str, int | None, str], Finding] = {}
    for finding in findings:
        key = (finding.check, finding.file, finding.record, finding.message)
        seen.setdefault(key, finding)
    return list(seen.values())


def _weight(finding: Finding) -> tuple[int, int]:
    return SEVERITIES.index(finding.severity), -CHECKS[finding.check].weight


def _outcomes(everything: Checked, findings: Sequence[Finding]) -> dict[str, CheckOutcome]:
    counts: collections.Counter[str] = collections.Counter()
    for finding in findings:
        counts[finding.check] += finding.count
    outcomes = {}
    for name in CHECKS:
        looked_at = everything.looked_at.get(name, 0)
        skipped = everything.skipped.get(name)
        if skipped is None and not looked_at and not counts[name]:
            skipped = NOTHING_THERE
        outcomes[name] = CheckOutcome(check=name, looked_at=looked_at, findings=counts[name], skipped=skipped)
    return outcomes
