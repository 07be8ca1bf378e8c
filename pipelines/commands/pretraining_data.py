"""create-pretraining-data: a drop-in for the reference script, in one process and without Beam.

The kernels are imported once the files are found, so that a mistyped path is refused at once.
"""

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from pipelines.running import interruption
from pipelines.settings.stage_options import CreatePretrainingDataOptions, decided_masking
from pipelines.stages import kernels
from pipelines.terminal import data_warnings, summary

_NAME = "create-pretraining-data"


@interruption.going_on(interruption.START_ANEW)
def run(options: CreatePretrainingDataOptions) -> None:
    """Writes the examples of one group of text files, and an index beside each output that is not packed."""
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
    print(f"{counts.documents:,} documents, {counts.examples:,} examples, {size:,} bytes:")
    for file in written:
        print(f"  {file.path}")
    made = counts.by_name
    print(f"  {', '.join(summary.shares(made))}")
    name = inputs[0] if len(inputs) == 1 else f"the {len(inputs)} inputs"
    warnings = data_warnings.warnings_of_examples(
        {name: made}, max_seq_length=masking.max_seq_length, do_lower_case=lower
    )
    data_warnings.warn(_NAME, warnings)
