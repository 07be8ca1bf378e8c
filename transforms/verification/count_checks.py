"""Holds what was counted in the files of a shard against the manifest."""

import collections
from collections.abc import Sequence

from transforms.verification.findings import Checked, Finding
from transforms.verification.pieces import PieceResult


def check_counts(results: Sequence[PieceResult]) -> Checked:
    """Compares the counts of each file with those that the manifest has of its shard."""
    findings = []
    looked_at: collections.Counter[str] = collections.Counter()
    for result in results:
        expected = dict(result.piece.expected.counts)
        if result.piece.expected.samples is not None:
            expected["examples"] = result.piece.expected.samples
        both = [name for name in expected if name in result.counts]
        looked_at["counts"] += bool(both)
        others = [name for name in both if expected[name] != result.counts[name]]
        if not others:
            continue
        path, name = result.piece.path, others[0]
        is_so, is_said = f"{result.counts[name]:,}", f"{expected[name]:,}"
        more = f", and {', '.join(n.replace('_', ' ') for n in others[1:])} differ, too" if others[1:] else ""
        findings.append(
            Finding(
                check="counts",
                file=path,
                expected=f"{is_said} {name}",
                found=f"{is_so} {name}",
                message=f"{path}: this file has {is_so} {name.replace('_', ' ')}, but the manifest says {is_said}"
                f"{more}; fetch or make it again.",
                count=len(others),
            )
        )
    return Checked(findings=tuple(findings), looked_at=dict(looked_at))
