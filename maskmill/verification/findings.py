"""What `maskmill verify` finds: each finding is one sentence, and belongs to a check."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

# error: the data set is wrong. warning: it is probably not what somebody wanted. note: worth knowing, as a known fault
# of the reference; a data set with notes alone is right.
Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Check:
    """A check.

    Attributes:
      name: as findings and `--json` have it.
      title: what it makes sure of, as the report lists it: "checksums of records".
      weight: findings are sorted by severity, then by this, the highest first: how much of the data is in doubt.
    """

    name: str
    title: str
    weight: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong, or worth knowing.

    Attributes:
      check: the name of the check.
      severity: how bad it is.
      file: the path of the file or directory.
      record: number of the record, line or document in the file, from 1; None: it is about the whole file.
      expected, found: short, for a table: "0 to 30,521" and "30,522".
      message: one sentence: what, where (file and record), what to do.
      count: how often the file has it; the finding describes the first place.
    """

    check: str
    severity: Severity = "error"
    file: str
    record: int | None = None
    expected: str
    found: str
    message: str
    count: int = 1


def finding(
    check: str,
    path: str,
    expected: str,
    found: str,
    message: str,
    *,
    severity: Severity = "error",
    record: int | None = None,
) -> Finding:
    """A finding about a file; its fields as in Finding."""
    return Finding(
        check=check, severity=severity, file=path, record=record, expected=expected, found=found, message=message
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Checked:
    """What a few checks gave.

    Attributes:
      findings: at most a few for each check and file; `Finding.count` says how many there are.
      looked_at: by check, how many things were held against it.
      skipped: by check, why it was not made, or not on all, as a clause.
    """

    findings: tuple[Finding, ...] = ()
    looked_at: Mapping[str, int] = dataclasses.field(default_factory=dict)
    skipped: Mapping[str, str] = dataclasses.field(default_factory=dict)


def joined(parts: Iterable[Checked]) -> Checked:
    """What several checks gave together; where several were skipped for other reasons, all are named."""
    findings: list[Finding] = []
    looked_at: collections.Counter[str] = collections.Counter()
    reasons: dict[str, dict[str, None]] = {}
    for part in parts:
        findings += part.findings
        looked_at.update(part.looked_at)
        for check, reason in part.skipped.items():
            reasons.setdefault(check, {}).update(dict.fromkeys(reason.split("; ")))
    skipped = {check: "; ".join(found) for check, found in reasons.items()}
    return Checked(findings=tuple(findings), looked_at=dict(looked_at), skipped=skipped)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckOutcome:
    """What became of a check.

    Attributes:
      check: its name.
      looked_at: how many things it was made on: files, records, documents.
      findings: how many findings it has.
      skipped: why it was not made, or not on all, as a clause; None: it was.
    """

    check: str
    looked_at: int
    findings: int
    skipped: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verification:
    """What was found of one or more data sets.

    Attributes:
      paths: what was verified, as the user named it.
      findings: the worst first.
      outcomes: of every check, in the order of CHECKS.
      results: what the pieces gave (pieces.PieceResult), in their order: statistics for a report.
      read_bytes: how much was read.
    """

    paths: Sequence[str]
    findings: Sequence[Finding]
    outcomes: Mapping[str, CheckOutcome]
    results: Sequence[object]
    read_bytes: int

    @property
    def is_right(self) -> bool:
        """Whether there is nothing but notes."""
        return all(finding.severity == "note" for finding in self.findings)


# By name. Whoever writes a check adds it here.
CHECKS: Mapping[str, Check] = {
    check.name: check
    for check in (
        Check(name="manifest", title="the manifest is whole, and agrees with itself", weight=100),
        Check(name="missing", title="every file of the manifest is there", weight=99),
        Check(name="size", title="files have the sizes of the manifest", weight=98),
        Check(name="sha256", title="files have the checksums of the manifest", weight=97),
        Check(name="framing", title="records follow each other without a gap, to the file's end", weight=96),
        Check(name="crc", title="checksums of records", weight=95),
        Check(name="schema", title="records have the columns of the schema", weight=90),
        Check(name="index", title="each index fits its file", weight=85),
        Check(name="counts", title="counts are those of the manifest", weight=84),
        Check(name="foreign", title="there is no file that belongs to something else", weight=40),
        Check(name="vocabulary", title="the vocabulary is the one of the manifest, each piece once", weight=83),
        Check(name="ids", title="ids are in the vocabulary", weight=82),
        Check(name="words", title="pieces follow each other as in a text", weight=81),
        Check(name="row_order", title="rows are written in a random order", weight=66),
        Check(name="padding", title="padding stands only at the end", weight=81),
        Check(name="special_tokens", title="special tokens stand where they belong", weight=80),
        Check(name="segments", title="segment ids follow the separators", weight=79),
        Check(name="masks", title="masks, their positions, ids and weights agree", weight=78),
        Check(name="packing", title="packed rows name their sequences", weight=77),
        Check(name="labels", title="labels of pairs fit the text", weight=76),
        Check(name="mask_share", title="as much is masked as was asked for, and in the shares asked for", weight=75),
        Check(name="pair_share", title="as many pairs are random or swapped as was asked for", weight=74),
        Check(name="length_share", title="rows are as long as was asked for", weight=73),
        Check(name="text_used", title="the examples use the whole text, dupe_factor times", weight=72),
        Check(name="seed", title="the seed, the text and the vocabulary give this shard again", weight=88),
        Check(name="shard_inputs", title="shards were made of the text shards that are there", weight=87),
        Check(name="repeated_records", title="no record is there twice", weight=70),
        Check(name="repeated_examples", title="no example is there more often than dupe_factor", weight=60),
        Check(name="similar_shards", title="no two shards are the same, or nearly", weight=71),
        Check(name="shard_size", title="no shard is much smaller or larger than the others", weight=50),
        Check(name="documents", title="documents and lines are those of the manifest", weight=86),
        Check(name="profile", title="the text reads as text, each shard as the others", weight=77),
        Check(name="eval_list", title="eval.md5 lists the eval articles", weight=69),
        Check(name="eval_leak", title="no eval article is in a training shard", weight=89),
        Check(name="contamination", title="no text of the given test set is in the data", weight=68),
        Check(name="same_records", title="the two data sets have the same records", weight=92),
        Check(name="published", title="sizes and counts are those that were published", weight=67),
    )
}
