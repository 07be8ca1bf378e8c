"""Verification as a graph: a step for each file, then one of all.

The graph moves numbers of pieces alone: runners limit how large a graph may be. The plan, what each piece gave, hashes
and what was found of all are files in the scratch directory.
"""

import dataclasses
import functools
import pickle
from collections.abc import Sequence

import apache_beam as beam

from maskmill.storage import completions, files, progress
from maskmill.verification.findings import Verification
from maskmill.verification.verify_targets import VerifyPlan
from maskmill.verification.verifying import conclude, verify_piece
from pipelines.running import runner
from pipelines.stages import kernels
from pipelines.terminal.progress import ProgressLine
from transforms.to_list import ToList

KIND = "verify"  # of the notes
_PLAN, _FOUND = "plan.pickle", "verification.pickle"


@dataclasses.dataclass(eq=False)
class VerifyTargets(beam.PTransform):
    """Verify the plan in the scratch directory, and write the Verification there. Input: the numbers of its pieces.

    scratch: the directory of the plan. noted: a directory where each piece that is done is noted for the progress;
    empty: nowhere.
    """

    scratch: str
    noted: str

    def expand(self, pieces: beam.PCollection[int]) -> beam.PCollection[None]:
        """Verify each piece on any worker."""
        return (
            pieces
            | beam.Reshuffle()
            | "VerifyPiece" >> beam.Map(verify_and_note, self.scratch, self.noted)
            | "AllVerified" >> ToList()
            | "Conclude" >> beam.Map(conclude_all, self.scratch).with_output_types(None)
        )


@functools.lru_cache(maxsize=1)  # a worker verifies many pieces of one plan
def _read_plan(scratch: str) -> VerifyPlan:
    plan: VerifyPlan = pickle.loads(files.read_bytes(files.join(scratch, _PLAN)))
    return plan


def verify_and_note(number: int, scratch: str, noted: str) -> int:
    """Verify a piece of the plan, writes what it gave, and note for the progress that it is done."""
    result = verify_piece(_read_plan(scratch).pieces[number])
    files.write_bytes(_result_path(scratch, number), pickle.dumps(result))
    if noted:
        completions.store(noted, KIND, f"{number:064x}", {})
    return number


def conclude_all(numbers: Sequence[int], scratch: str) -> None:
    """Look across files, and write what was found."""
    results = [pickle.loads(files.read_bytes(_result_path(scratch, number))) for number in sorted(set(numbers))]
    files.write_bytes(files.join(scratch, _FOUND), pickle.dumps(conclude(_read_plan(scratch), results)))


def _result_path(scratch: str, number: int) -> str:
    return files.join(scratch, f"result-{number}.pickle")


def run(plan: VerifyPlan, size: int, beam_arguments: Sequence[str], names: Sequence[str]) -> Verification | None:
    """Verify what is planned by a runner; None where Beam's flags ask only for a description of the job.

    Args:
      plan: what `verify_plan.plan` gives.
      size: bytes to read, as far as that is known.
      beam_arguments: flags for Beam.
      names: of the kernels that it runs.

    Raises:
      UnusableInputError, RunFailedError: as the runner says.
    """
    scratch, pieces = plan.scratch, len(plan.pieces)
    paths = (*(target.directory for target in plan.targets), scratch)
    chosen = runner.choose(beam_arguments, input_bytes=size, pieces=max(1, pieces), paths=paths)
    noted = files.join(scratch, "progress") if files.is_local(scratch) else ""
    files.write_bytes(files.join(scratch, _PLAN), pickle.dumps(plan))

    def build(pipeline: beam.Pipeline) -> None:
        pipeline | "Pieces" >> beam.Create(range(pieces)).with_output_types(int) | VerifyTargets(scratch, noted)

    if isinstance(chosen, runner.LocalRun) and chosen.processes:
        kernels.load(names)
    if noted:
        progress.announce(noted, KIND, pieces=pieces, size=size)
    if not runner.run(build, chosen, [ProgressLine(label=KIND, output=noted or scratch, kind=KIND)]):
        return None
    found: Verification = pickle.loads(files.read_bytes(files.join(scratch, _FOUND)))
    return found
