"""The checks of `maskmill verify` and their findings; each finding is one sentence, and belongs to a check."""

import collections
import dataclasses
import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeVar

from maskmill import verification
from maskmill.notebooks import escaped, table

# error: the data set is wrong. warning: it is probably wrong. note: worth knowing, such as a known fault of the
# reference; a data set with notes only is right.
Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
# The arguments of check functions. file: (WorkItem, ByteRanges), for each work item of the kinds. data_set: (Target,
# results of its files), for each target of the kinds. all: (VerifyPlan, results), once.
Scope = Literal["file", "data_set", "all"]


@dataclasses.dataclass(frozen=True)
class Check:
    """A check.

    Attributes:
      name: in findings and `--json`.
      title: what it verifies, for the report: "checksums of records".
      of: the kinds of files that it needs: "text", "examples", or both.
      reads: what it reads: names and manifests only, the bytes of files, or their records.
    """

    name: str
    title: str
    of: str = ""
    reads: Literal["names", "bytes", "records"] = "records"


@dataclasses.dataclass(frozen=True)
class Finding:
    """A problem, or something worth knowing.

    Attributes:
      check: the name of the check.
      severity: error, warning or note.
      file: the path of the file or directory.
      record: number of the record, line or document in the file, from 1; None: the whole file.
      message: one sentence: what, where (file and record), what to do.
      count: the number of places in the file that have the problem; the finding describes the first.
    """

    check: str
    severity: Severity
    file: str
    record: int | None
    message: str
    count: int = 1


def finding(
    check: str,
    path: str,
    what: str,
    severity: Severity = "error",
    *,
    at: tuple[str, int] | None = None,
    count: int = 1,
) -> Finding:
    """Return a finding whose message has the path, the place and `what`.

    Args:
      check, path, severity, count: as in Finding.
      what: clauses about the problem and what to do; or the message of an error, which begins with the path.
      at: the kind of place, and its number from 1: ("record", 7).
    """
    where = f"{path}, {at[0]} {at[1]:,}" if at else path
    clause = what.removeprefix(f"{path}: ").rstrip(".")
    message = f"{clause}." if clause.startswith(path) else f"{where}: {clause}."
    return Finding(check, severity, path, at[1] if at else None, message, count)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Checked:
    """The result of some checks.

    Attributes:
      findings: at most a few for each check and file; `Finding.count` has the number of places.
      looked_at: by check, the number of things (files, records, lines …) that were checked.
      skipped: by check, a clause that says why nothing, or not all, was checked.
    """

    findings: Sequence[Finding] = ()
    looked_at: Mapping[str, int] = dataclasses.field(default_factory=dict)
    skipped: Mapping[str, str] = dataclasses.field(default_factory=dict)


def ran(check: str, *findings: Finding, count: int = 1) -> Checked:
    """Return the result of one check of `count` things."""
    return Checked(findings=findings, looked_at={check: count})


def skipped(why: str | Exception, *checks: str) -> Checked:
    """Return the result of checks that were not made; why: a clause, or the error that prevented them."""
    return Checked(skipped=dict.fromkeys(checks, str(why).rstrip(".")))


def combined(parts: Iterable[Checked]) -> Checked:
    """Return the results of several checks as one; all reasons of skipped checks are kept."""
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
    """The outcome of a check.

    Attributes:
      check: its name.
      looked_at: the number of things that were checked: files, records, documents.
      findings: the number of findings.
      skipped: a clause that says why nothing, or not all, was checked; None: all was.
    """

    check: str
    looked_at: int
    findings: int
    skipped: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verification:
    """The result of verifying one or more data sets.

    Attributes:
      paths: of the data sets, as the user named them.
      findings: the worst first.
      outcomes: of every check, in the order of CHECKS.
      results: of the work items (work_items.ItemResult), in their order: statistics for a report.
      read_bytes: the number of bytes read.
    """

    paths: Sequence[str]
    findings: Sequence[Finding]
    outcomes: Mapping[str, CheckOutcome]
    results: Sequence[object]
    read_bytes: int

    @property
    def is_right(self) -> bool:
        """True if there are no findings but notes."""
        return all(finding.severity == "note" for finding in self.findings)

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: a table of the findings, with their counts."""
        made = sum(outcome.skipped is None for outcome in self.outcomes.values())
        caption = f"{', '.join(self.paths)}: {'right' if self.is_right else 'wrong'}, {made} checks"
        if not self.findings:
            return f"<p>{escaped(caption)}</p>"
        return table(caption, ((found.severity, found.check, found.message, found.count) for found in self.findings))


# By name, in the order in which findings are listed: checks that put more of the data in doubt come first.
# `makes_check` adds new checks.
CHECKS: dict[str, Check] = {
    check.name: check
    for check in (
        Check("manifest", "the manifest is whole, and agrees with itself", reads="names"),
        Check("missing", "every file of the manifest is there", reads="names"),
        Check("size", "files have the sizes of the manifest", "text examples", "bytes"),
        Check("sha256", "files have the checksums of the manifest", "text examples", "bytes"),
        Check("framing", "records follow each other without a gap, to the file's end", "examples"),
        Check("crc", "checksums of records", "examples"),
        Check("schema", "records have the columns of the schema", "examples"),
        Check("seed", "the seed, the text and the vocabulary give this shard again", "examples"),
        Check("shard_inputs", "shards were made of the text shards that are there"),
        Check("documents", "text is UTF-8, with a blank line after each document", "text"),
        Check("eval_leak", "no eval article is in a training shard", "text"),
        Check("index", "each index is the one of the manifest", reads="bytes"),
        Check("counts", "counts are those of the manifest, and of the stages before"),
        Check("vocabulary", "the vocabulary is the one of the manifest"),
        Check("ids", "ids are in the vocabulary", "examples"),
        Check("padding", "padding stands only at the end", "examples"),
        Check("special_tokens", "special tokens stand where they belong", "examples"),
        Check("segments", "segment ids follow the separators", "examples"),
        Check("masks", "masks, their positions, ids and weights agree", "examples"),
        Check("packing", "packed rows name their sequences"),
        Check("labels", "labels of pairs are 0 or 1", "examples"),
        Check("mask_share", "masks are in the places and shares that were asked for", "examples"),
        Check("pair_share", "as many pairs are random or swapped as was asked for", "examples"),
        Check("repeated_records", "no record is there twice", "examples"),
        Check("repeated_documents", "no document is there twice, or has its own text twice", "text"),
        Check("profile", "the text reads as text, each shard as the others", "text"),
        Check("foreign", "there is no file that belongs to something else", reads="names"),
    )
}


_Function = TypeVar("_Function", bound=Callable[..., Checked])

_registered: list[tuple[Scope, tuple[str, ...], Callable[..., Checked]]] = []


def makes_check(scope: Scope, *kinds: str, check: Check | None = None) -> Callable[[_Function], _Function]:
    """Register a function that makes checks, for a scope and kinds; check: a new one, to add to CHECKS.

    A module of this folder whose name ends with `_checks` is imported before a verification starts. So a new check is
    one function in such a module; the report, `--json` and the table of docs/verify.md follow from CHECKS:

        @makes_check("file", "text", check=Check("tabs", "no line has a tab"))
        def check_tabs(item: WorkItem, ranges: ByteRanges) -> Checked: ...
    """

    def register(function: _Function) -> _Function:
        if check is not None:
            CHECKS[check.name] = check
        _registered.append((scope, kinds or ("",), function))
        return function

    return register


def functions_of(scope: Scope, kind: str = "") -> Iterator[Callable[..., Checked]]:
    """Yield the functions of a scope and a kind, in the order of their modules."""
    import_checks()
    for of_scope, kinds, function in sorted(_registered, key=lambda entry: entry[2].__module__):
        if of_scope == scope and kind in kinds:
            yield function


@functools.cache
def import_checks() -> None:
    """Import the modules that make checks, so that CHECKS has all of them."""
    for module in pkgutil.iter_modules(verification.__path__, f"{verification.__name__}."):
        if module.name.endswith("_checks"):
            importlib.import_module(module.name)
