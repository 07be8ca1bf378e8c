"""Pick examples at even distance: the eval examples of a build, or of any TFRecord files.

Source of the rule: pick_eval_samples.py of mlcommons/training.
"""

from collections.abc import Iterator, Mapping, Sequence

from google.protobuf.message import Message

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.records.example_proto import count_values, encode_example, parse_example
from maskmill.records.tfrecord import WrittenFile, count_records, frame, read_records, written_file
from maskmill.storage import files


def pick_examples(
    inputs: str | Sequence[str],
    output: str,
    count: int,
    *,
    available: int | None = None,
    max_seq_length: int | None = None,
    max_predictions_per_seq: int | None = None,
    checksum: bool = True,
) -> WrittenFile:
    """Write `count` examples at even distance over all examples of TFRecord files, read as one.

    The rule is pick_eval_samples.py's: example int(i * number / count) for each i. An example keeps its features;
    its feature map is laid out in sorted order. An output whose name ends in .gz is gzipped.

    Args:
      inputs: one TFRecord file or several, gzipped or not.
      output: the TFRecord to write.
      count: how many examples to pick, from 1.
      available: how many examples there are; None: count them, which reads all files once more.
      max_seq_length, max_predictions_per_seq: if not None, the number of values that features must have.

    Raises:
      UnusableInputError: a file is missing or damaged, there are fewer examples than `count`, or an example is not
        what it should be.
      RunFailedError: reading an input fails, the inputs change meanwhile, or the output cannot be written.
    """
    paths = [inputs] if isinstance(inputs, str) else list(inputs)
    if count < 1:
        raise UnusableInputError(f"{count} examples to pick: this must be 1 or more.")
    available = sum(map(count_records, paths)) if available is None else available
    if available == 0:
        raise UnusableInputError(f"{', '.join(paths)}: there is no example to pick from.")
    if count > available:
        raise UnusableInputError(
            f"{', '.join(paths)}: there are {available:,} examples, {count:,} cannot be picked; "
            "pick fewer, or make more."
        )
    lengths = _expected_lengths(max_seq_length, max_predictions_per_seq)
    with files.new_file(output, checksum=checksum, packed=output.endswith(".gz")) as file:
        for path, place, record in _at_even_distance(paths, available, count):
            features = _checked(record, lengths, path, place)
            file.write(frame(encode_example(features)))
    return written_file(file, checksum)


def _at_even_distance(paths: Sequence[str], available: int, count: int) -> Iterator[tuple[str, int, bytes]]:
    """Yield `count` of the `available` records of some files: the file, the record's number in it, the record.

    Raises:
      RunFailedError: there are more records, or fewer.
    """
    distance = available / count
    numbers = iter([int(i * distance) for i in range(count)])
    picked = next(numbers, None)
    number = 0
    for path in paths:
        for place, record in enumerate(read_records(path)):
            if number == picked:
                yield path, place, record
                picked = next(numbers, None)
            number += 1
    if number != available:
        raise RunFailedError(f"{', '.join(paths)}: these files changed while they were read; run it again.")


def _expected_lengths(max_seq_length: int | None, max_predictions_per_seq: int | None) -> dict[str, int]:
    """Return by name the number of values that features must have."""
    lengths: dict[str, int] = {}
    if max_seq_length is not None:
        lengths |= dict.fromkeys(("input_ids", "input_mask", "segment_ids"), max_seq_length)
    if max_predictions_per_seq is not None:
        names = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
        lengths |= dict.fromkeys(names, max_predictions_per_seq)
    return lengths


def _checked(record: bytes, lengths: Mapping[str, int], path: str, place: int) -> dict[str, Message]:
    """Return the features of a record; raise UnusableInputError if it is no example with these lengths."""
    try:
        features = parse_example(record)
    except ValueError as error:
        raise UnusableInputError(f"{path}: record {place + 1:,} is not a tf.train.Example ({error}).") from None
    for name, length in lengths.items():
        values = count_values(features[name]) if name in features else None
        if values != length:
            have = "no such feature" if values is None else f"{values} values"
            raise UnusableInputError(
                f"{path}: record {place + 1:,} has {have} in {name}, not {length}; "
                "give the lengths that the examples were made with."
            )
    return features
