"""Verification as a graph: a step for each work item (a file, or a remake), then one for all.

Only numbers of work items move through the graph, because runners limit the size of elements. The plan, the results and
hashes of the work items, and all findings are files in the scratch directory.
"""

import dataclasses
import functools
import pickle
from collections.abc import Sequence

import apache_beam as beam

from maskmill.storage import completions, files, progress
from maskmill.verification.findings import Verification
from maskmill.verification.verify_targets import VerifyPlan
from maskmill.verification.verifying import conclude, verify_item
from pipelines.running import runner
from pipelines.stages import kernels
from pipelines.terminal.progress import ProgressLine
from transforms.to_list import ToList

KIND = "verify"  # of the notes
_PLAN, _FOUND = "plan.pickle", "verification.pickle"


@dataclasses.dataclass(eq=False)
class VerifyTargets(beam.PTransform):
    """Verify the plan in the scratch directory, and write the Verification there. Input: numbers of its work items.

    scratch: the directory of the plan. noted: a directory for a note on each finished work item, for the progress;
    empty: write no notes.
    """

    scratch: str
    noted: str

    def expand(self, pieces: beam.PCollection[int]) -> beam.PCollection[None]:
        """Verify each work item on any worker."""
        return (
            pieces
            | beam.Reshuffle()
            | "VerifyPiece" >> beam.Map(verify_and_note, self.scratch, self.noted)
            | "AllVerified" >> ToList()
            | "Conclude" >> beam.Map(conclude_all, self.scratch).with_output_types(None)
        )


@functools.lru_cache(maxsize=1)  # a worker verifies many work items of one plan
def _read_plan(scratch: str) -> VerifyPlan:
    plan: VerifyPlan = pickle.loads(files.read_bytes(files.join(scratch, _PLAN)))
    return plan


def verify_and_note(number: int, scratch: str, noted: str) -> int:
    """Verify a work item of the plan, write its result, and note for the progress that it is finished."""
    result = verify_item(_read_plan(scratch).items[number])
    files.write_bytes(_result_path(scratch, number), pickle.dumps(result))
    if noted:
        completions.store(noted, KIND, f"{number:064x}", {})
    return number


def conclude_all(numbers: Sequence[int], scratch: str) -> None:
    """Run the checks across files, and write all findings."""
    results = [pickle.loads(files.read_bytes(_result_path(scratch, number))) for number in sorted(set(numbers))]
    files.write_bytes(files.join(scratch, _FOUND), pickle.dumps(conclude(_read_plan(scratch), results)))


def _result_path(scratch: str, number: int) -> str:
    return files.join(scratch, f"result-{number}.pickle")


def run(plan: VerifyPlan, size: int, beam_arguments: Sequence[str], names: Sequence[str]) -> Verification | None:
    """Run a plan of verification on a runner; return None if Beam's flags ask only for a description of the job.

    Args:
      plan: from `verify_plan.plan`.
      size: bytes to read, as far as known.
      beam_arguments: flags for Beam.
      names: of the kernels that it runs.

    Raises:
      UnusableInputError, RunFailedError: from the runner.
    """
    scratch, pieces = plan.scratch, len(plan.items)
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
