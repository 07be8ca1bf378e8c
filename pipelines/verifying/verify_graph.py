"""Verification of large data sets, and of those in object stores: on Beam."""

from collections.abc import Sequence

from maskmill.storage import files, progress
from maskmill.verification.findings import Verification
from maskmill.verification.options import VerifyOptions
from maskmill.verification.targets import Target
from pipelines.running.startup import import_beam_for_local_runner


def run(
    targets: Sequence[Target], options: VerifyOptions, scratch: str, size: int, beam_arguments: Sequence[str]
) -> Verification | None:
    """Verifies planned targets on Beam; None where Beam's flags ask only for a description of the job.

    Args:
      targets: as `planning.plan` gives them.
      options: of the verification.
      scratch: a directory that all workers reach, of this run alone.
      size: bytes to read, as far as that is known.
      beam_arguments: flags for Beam.

    Raises:
      UnusableInputError, RunFailedError: as the runner says.
    """
    if all(argument.startswith("--direct_") for argument in beam_arguments):
        import_beam_for_local_runner()
    import apache_beam as beam

    from pipelines.running import runner
    from pipelines.terminal.progress_steps import ProgressLine
    from pipelines.verifying.steps import KIND, VerifyTargets, read_found, write_plan

    pieces = [piece for target in targets for piece in target.pieces]
    paths = (*(target.directory for target in targets), scratch)
    beam_options = runner.pipeline_options(beam_arguments, input_bytes=size, pieces=max(1, len(pieces)), paths=paths)
    noted = files.join(scratch, "progress") if files.is_local(scratch) else ""
    step = VerifyTargets(scratch=scratch, pieces=len(pieces), noted=noted)
    write_plan(targets, options, scratch)

    def build_graph(pipeline: beam.Pipeline) -> None:
        _ = pipeline | "Verify" >> step

    lines = [ProgressLine(label=KIND, output=noted or scratch, kind=KIND)]
    if noted:
        progress.announce(noted, KIND, pieces=len(pieces), size=size)
    return read_found(scratch) if runner.run(build_graph, beam_options, lines) else None
