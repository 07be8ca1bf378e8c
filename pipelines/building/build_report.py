"""The page that tells of a data set: at the end of a build, and for `maskmill inspect --html`."""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from maskmill.errors import RunFailedError
from maskmill.releases import fingerprints
from maskmill.storage import completions, files, manifest, outcomes
from pipelines.settings import beam_flags
from pipelines.terminal import console

if TYPE_CHECKING:
    from maskmill.reporting.facts import Facts
    from maskmill.reporting.made_stages import MadeStage
    from maskmill.verification.findings import Verification

REPORT = "report.html"
_FINISHED = "report"

# How much of the data is verified for a report.
# auto: everything if it is less than 1 GB, else so many shards; of data that is not on this machine nothing.
Verified = Literal["auto", "all", "none"]
BuildReport = Literal["auto", "all", "none", "off"]

_AT_ONCE = 1_000_000_000  # bytes that are verified in some seconds
# Checks that find files that are not as they were written.
_DAMAGE = frozenset(("manifest", "missing", "size", "sha256", "framing", "crc", "schema", "index"))
_MOST_SAID = 5  # findings on the terminal; the report has more


def of_build(
    output: str, verified: BuildReport, beam_arguments: Sequence[str] = (), say: console.Say = console.say
) -> None:
    """Write the report of a finished build to its output directory.

    verified: how much of it is verified before; "off": there is no report. beam_arguments: those of the build.
    say: takes the line that names the report.

    Raises:
      RunFailedError: what was built is damaged; the report is there nevertheless.
    """
    if verified == "off":
        return
    with files.remembering(output):
        verification, became = _write(output, verified, beam_arguments)
    if became:
        say(f"report:  {files.join(output, REPORT)} ({became})")
    doubtful = [] if verification is None else [f for f in verification.findings if f.severity != "note"]
    for finding in doubtful[:_MOST_SAID]:
        console.tell(f"maskmill build: {finding.severity}: {finding.message}", level=finding.severity.upper())
    # Whatever else is found lies in the input or in what was asked for, and this build did what it was asked for.
    if any(finding.check in _DAMAGE for finding in doubtful):
        raise RunFailedError(
            f"{output}: what was built is damaged; {files.join(output, REPORT)} lists what verify found. Run the build "
            "again, which makes damaged files again."
        )


def _write(output: str, verified: Verified, beam_arguments: Sequence[str]) -> "tuple[Verification | None, str]":
    """Write the report, unless it is there; return what was verified for it, and this in words ("": no report)."""
    from maskmill.reporting import made_stages

    path = files.join(output, REPORT)
    place = files.join(output, fingerprints.DATA_STAGES["extract"])
    key = completions.fingerprint(verified, manifest.versions())
    if verified != "all" and outcomes.is_finished(place, _FINISHED, lambda: key, [output]):
        return None, _became(None)
    stages = made_stages.stages_of(output)
    if not stages:
        return None, ""

    # A build whose report is all that is missing imports while it waits for a store; to verify, it forks workers first.
    collects = functools.partial(collect, output, verified, beam_arguments, stages)
    (facts, found), page = files.each("" if verified == "all" else output, lambda step: step(), [collects, page_module])
    verification: Verification | None = found
    files.write_bytes(path, page.render(facts).encode())
    if verification is None:
        outcomes.store_finished(place, _FINISHED, key, [output])
    return verification, _became(verification)


def page_module() -> Any:
    """Return the module that renders the page; to import it takes most of a second, because it draws charts."""
    from maskmill.reporting import page

    return page


def collect(
    path: str,
    verified: Verified,
    beam_arguments: Sequence[str] = (),
    stages: "Sequence[MadeStage] | None" = None,
) -> tuple["Facts", "Verification | None"]:
    """Return what there is to tell of a data set, and what was verified for it.

    path: the directory of a build, or of one of its stages. beam_arguments: those of another runner than the local one
    are not used, because a report is made where the command runs. stages: those at the path, if they were just read.

    Raises:
      UnusableInputError: there is no such data set.
      RunFailedError: it cannot be read.
    """
    from maskmill.reporting import facts, made_stages

    stages = stages or made_stages.find_stages(path)
    shards = shards_to_verify(stages, verified, is_local=files.is_local(path))
    if shards is None:
        with files.remembering(path):
            return facts.collect(path, stages=stages), None
    from maskmill.verification.options import VerifyOptions
    from pipelines.verifying import verify

    # The build has just made all shards; one is made again.
    options = VerifyOptions(shards=shards or None, remake=1)
    verification = verify.verify([path], options, beam_arguments if beam_flags.is_local(beam_arguments) else ())
    found = facts.collect(path, verification=verification, shards=shards, stages=stages)
    return found, verification


def shards_to_verify(stages: Sequence["MadeStage"], verified: Verified, *, is_local: bool) -> str | None:
    """Return the numbers of the shards to verify, as --shards takes them; empty: all; None: none."""
    if verified == "all":
        return ""
    if verified == "none" or not is_local:
        return None
    size = sum(stage.bytes_of() for stage in stages)
    if size < _AT_ONCE:
        return ""
    most = max(sum(shard.get("kind", "train") == "train" for shard in stage.shards) for stage in stages)
    last = max(1, most * _AT_ONCE // size) - 1
    return f"0-{last}" if last else "0"


def _became(verification: "Verification | None") -> str:
    """Return what became of the verification, for the line that names the report."""
    if verification is None:
        return "not verified"
    made = sum(outcome.looked_at > 0 for outcome in verification.outcomes.values())
    counts = {
        name: len({finding.check for finding in verification.findings if finding.severity == name})
        for name in ("error", "warning")
    }
    wrong = [f"{count} with {name}s" for name, count in counts.items() if count]
    return f"{made} checks, {', '.join(wrong) if wrong else 'nothing wrong'}"
