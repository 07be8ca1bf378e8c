"""Holds what was counted in the files of a shard against the manifest."""

import collections
from collections.abc import Iterator, Mapping, Sequence

from maskmill.storage import files
from maskmill.verification.findings import Checked, Finding
from maskmill.verification.pieces import PieceResult
from maskmill.verification.targets import Target

_OF_FILES = ("size", "sha256", "index")  # checks that look at no record


def check_counts(targets: Sequence[Target], results: Sequence[PieceResult]) -> Checked:
    """Compares what was counted in files with what the manifest has of them, and of the shards of several files."""
    findings: list[Finding] = []
    looked_at = 0
    for result in results:
        expected = dict(result.piece.expected.counts)
        if result.piece.expected.samples is not None:
            expected["examples"] = result.piece.expected.samples
        if _is_damaged(result):
            # What else was counted follows from what is wrong with the records.
            expected = {name: count for name, count in expected.items() if name == "examples"}
        looked_at += any(name in result.counts for name in expected)
        findings += _compare(result.piece.path, expected, result.counts)
    for target in targets:
        found = {result.piece.path: result for result in results if result.piece.directory == target.directory}
        for shard in (shard for shard in target.shards if len(shard.files) > 1):
            of_shard = [found.get(files.join(target.directory, file.name)) for file in shard.files]
            if any(result is None or not result.counts or _is_damaged(result) for result in of_shard):
                continue
            sums: collections.Counter[str] = collections.Counter()
            for part in of_shard:
                sums.update(part.counts if part is not None else {})
            looked_at += 1
            findings += _compare(files.join(target.directory, shard.name), shard.counts, sums)
    return Checked(findings=tuple(findings), looked_at={"counts": looked_at})


def _is_damaged(result: PieceResult) -> bool:
    """Whether something is wrong with records of a file."""
    return any(finding.severity == "error" and finding.check not in _OF_FILES for finding in result.findings)


def _compare(path: str, expected: Mapping[str, int], found: Mapping[str, int]) -> Iterator[Finding]:
    """What differs between the counts that both have, as one finding."""
    others = [name for name in expected if name in found and expected[name] != found[name]]
    if not others:
        return
    name = others[0]
    is_so, is_said = f"{found[name]:,}", f"{expected[name]:,}"
    more = f", and {', '.join(n.replace('_', ' ') for n in others[1:])} differ, too" if others[1:] else ""
    message = (
        f"{path}: here are {is_so} {name.replace('_', ' ')}, but the manifest says {is_said}{more}; fetch or make it "
        "again."
    )
    yield Finding(
        check="counts",
        file=path,
        expected=f"{is_said} {name}",
        found=f"{is_so} {name}",
        message=message,
        count=len(others),
    )
