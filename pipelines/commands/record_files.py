"""create-pretraining-data, pick-eval and index: files of records that are not a build's, in one process, without Beam.

The kernels are imported once the files are found, so that a mistyped path is refused at once.
"""

from collections.abc import Mapping, Sequence

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from pipelines.running import interruption
from pipelines.settings.command_options import CreatePretrainingDataOptions, IndexOptions, PickEvalOptions
from pipelines.settings.stage_options import decided_masking
from pipelines.stages import kernels
from pipelines.terminal import console, data_warnings, summary

_NAME = "create-pretraining-data"


@interruption.going_on(interruption.START_ANEW)
def create(
    options: CreatePretrainingDataOptions, say: console.Say = print
) -> tuple[tuple[str, ...], Mapping[str, int]]:
    """Write the examples of one group of text files, and an index beside each output that is not packed.

    say: takes the lines of the summary. Returns the paths of the examples, and the counts.
    """
    masking = decided_masking(options.masking, options.compat)
    lower = masking.do_lower_case
    content = files.read_bytes(options.vocab_file)
    inputs = [f.path for f in files.match(options.input_file)]
    packed = all(path.endswith(".gz") for path in options.output_file)
    if not packed and any(path.endswith(".gz") for path in options.output_file):
        raise UnusableInputError(
            "Of the outputs some end in .gz and some do not; name all of them with .gz, to pack them, or none."
        )
    indexes = [] if packed else [f"{path}.idx" for path in options.output_file]
    files.check_outputs([*inputs, options.vocab_file], [*options.output_file, *indexes])
    from maskmill.records.examples import kernels_of, write_examples
    from maskmill.records.plan import ExamplesPlan
    from maskmill.tokenization.vocabulary import parse_vocabulary

    vocabulary = parse_vocabulary(options.vocab_file, content, masking.duplicate_pieces)
    data_warnings.warn(_NAME, data_warnings.warnings_of_vocabulary(vocabulary, do_lower_case=lower))
    kernels.prepare(kernels_of(ExamplesPlan(masking=masking)))
    written, counts = write_examples(
        inputs, list(options.output_file), vocabulary, masking, indexes=not packed, packed=packed, checksum=False
    )
    size = sum(f.size for f in written)
    say(f"{counts.documents:,} documents, {counts.examples:,} examples, {size:,} bytes:")
    for file in written:
        say(f"  {file.path}")
    made = counts.by_name
    say(f"  {', '.join(summary.shares(made))}")
    name = inputs[0] if len(inputs) == 1 else f"the {len(inputs)} inputs"
    warnings = data_warnings.warnings_of_texts({name: made}, max_seq_length=masking.max_seq_length, do_lower_case=lower)
    data_warnings.warn(_NAME, warnings)
    return options.output_file, made


@interruption.going_on(interruption.START_ANEW)
def pick(options: PickEvalOptions) -> None:
    """Pick eval examples at even distance over the inputs in order (MLPerf's pick_eval_samples.py)."""
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
def index(patterns: Sequence[str], options: IndexOptions) -> None:
    """Write an index beside each TFRecord, or under the name that the options give for a single one."""
    if not patterns:
        raise UnusableInputError("FILE is missing: name TFRecord files (globs and comma lists too).")
    found, output = files.match(patterns), options.output
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
