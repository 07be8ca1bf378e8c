"""pick-eval and index: the eval examples, and DALI's index of any TFRecord. Without Beam.

The kernels are imported once the files are found, so that a mistyped path is refused at once.
"""

from collections.abc import Sequence

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from pipelines.running import interruption
from pipelines.settings.stage_options import PickEvalOptions


@interruption.going_on(interruption.START_ANEW)
def pick(options: PickEvalOptions) -> None:
    """Picks eval examples at even distance over the inputs in order (MLPerf's pick_eval_samples.py)."""
    inputs = [f.path for f in files.match(options.input_tfrecord)]
    files.check_outputs(inputs, [options.output_tfrecord])
    from maskmill.records import eval_picking

    written = eval_picking.pick_examples(
        inputs,
        options.output_tfrecord,
        options.num_examples_to_pick,
        max_seq_length=options.max_seq_length,
        max_predictions_per_seq=options.max_predictions_per_seq,
        checksum=False,
    )
    print(f"{options.num_examples_to_pick:,} examples, {written.size:,} bytes:\n  {written.path}")


@interruption.going_on(interruption.START_ANEW)
def index(patterns: Sequence[str], output: str | None) -> None:
    """Writes an index beside each TFRecord, or under `output` for a single one."""
    found = files.match(patterns)
    if output is not None and len(found) > 1:
        raise UnusableInputError(f"--output names one index, and there are {len(found)} files; leave it out.")
    indexes = [f"{file.path}.idx" if output is None else output for file in found]
    files.check_outputs([file.path for file in found], indexes)
    from maskmill.records import tfrecord

    for file in found:
        tfrecord.check_indexable(file.path)
    for file, written in zip(found, indexes, strict=True):
        tfrecord.index_tfrecord(file.path, written)
        print(written)
