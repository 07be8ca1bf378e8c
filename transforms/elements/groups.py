"""Documents in groups: each becomes a text shard, or the examples of one, whoever makes it and in whatever order.

A document belongs to the group that the hash of its wiki and page id names, and a group is sorted by that hash. So the
documents beside it, which next sentence prediction draws from, depend on the documents and the number of groups alone.
"""

import dataclasses
import hashlib
from collections.abc import Iterable, Iterator, Sequence

from maskmill.errors import UnusableInputError
from maskmill.example_shards import close_examples
from maskmill.example_shards.example_shards import ExampleShard, ExamplesSetup
from maskmill.inputs.articles import Document, check_fields
from maskmill.masking.objective_options import ObjectiveOptions, decided_mask_unit
from maskmill.masking.option_rules import conflicts
from maskmill.masking.options import MaskingOptions
from maskmill.masking.seeds import hash_of
from maskmill.records.drawing import draw_rows
from maskmill.records.examples import writing_of
from maskmill.records.kernels.frames import FRAME, HEAD
from maskmill.records.options import FormatOptions
from maskmill.records.serialization import Serializer
from maskmill.storage import files
from maskmill.text.shards import TextShard, shard_name
from maskmill.tokenization.vocabulary import is_tokenizer

Placed = tuple[int, bytes]  # a document by its hash, and its text as text shards have it
Group = tuple[int, Iterable[Placed]]


def check_shards(num_shards: int) -> None:
    """Raise UnusableInputError if there can be no such number of groups."""
    if num_shards < 1:
        raise UnusableInputError(f"num_shards is {num_shards}; give 1 or more, one for some 27 MB of text.")


def group_of(document: Document, num_shards: int) -> tuple[int, Placed]:
    """Return the number of a document's group, and the document as the group holds it.

    Line ends in sentences become spaces, and sentences without anything but white space are left out.

    Raises:
      UnusableInputError: the document has a field that must be text and is not.
    """
    check_fields(document)
    place = hash_of(f"{document.wiki}/{document.page_id}")
    lines = [sentence.replace("\n", " ") for sentence in document.sentences]
    text = "".join(f"{line}\n" for line in lines if line.strip())
    # Beam's coder of numbers takes 63 bits.
    return place % num_shards, (place >> 1, f"{text}\n".encode(errors="replace") if text else b"")


def text_of(documents: Iterable[Placed]) -> list[bytes]:
    """Return the documents of a group that have sentences, in order."""
    return [text for _, text in sorted(documents) if text]


def write_text(group: Group, num_shards: int, output: str) -> Iterator[TextShard]:
    """Write the text shard of a group; one without sentences has none.

    Raises:
      RunFailedError: the file cannot be written.
    """
    number, documents = group
    texts = text_of(documents)
    if not texts:
        return
    path = files.join(output, shard_name("train", number, num_shards))
    with files.new_file(path) as file:
        for text in texts:
            file.write(text)
    yield TextShard(
        path=path,
        kind="train",
        number=number,
        size=file.size,
        sha256=str(file.sha256),
        documents=len(texts),
        sentences=sum(text.count(b"\n") - 1 for text in texts),
        inputs={},
        key="",
    )


def setup_of(
    vocab_file: str, masking: MaskingOptions, objective: ObjectiveOptions, format: FormatOptions
) -> ExamplesSetup:
    """Return what decides the examples of a group: each shard has a seed of its own, of `random_seed` and its number.

    vocab_file: a vocab.txt, or a tokenizer.json.

    Raises:
      UnusableInputError: the vocabulary is not there, or options do not go together.
    """
    for problem in conflicts(masking, objective):
        raise UnusableInputError(problem)
    content = files.read_bytes(vocab_file)
    return ExamplesSetup(
        vocab_file=vocab_file,
        vocab_sha256=hashlib.sha256(content).hexdigest(),
        is_tokenizer=is_tokenizer(content),
        masking=dataclasses.replace(masking, unicode="15.1.0"),
        objective=objective,
        format=format,
        one_seed=False,
        packed=False,
    )


def close_shards(shards: Sequence[ExampleShard], setup: ExamplesSetup, num_shards: int, output: str) -> None:
    """Write the manifest of example shards, so that `maskmill.open` and `maskmill verify` take the directory.

    Raises:
      RunFailedError: there is no example, or the vocabulary has changed.
    """
    name = "tokenizer_file" if setup.is_tokenizer else "vocab_file"
    options = {
        field: value for part in (setup.masking, setup.objective, setup.format) for field, value in vars(part).items()
    }
    close_examples.close_examples(
        shards,
        setup,
        parameters=options
        | {name: setup.vocab_file, f"{name}_sha256": setup.vocab_sha256}
        | {"compat": "none", "packed": False, "num_shards": num_shards},
        decided={
            "mask_unit": decided_mask_unit(setup.masking, setup.objective),
            "unicode": setup.masking.unicode,
            "duplicate_pieces": setup.masking.duplicate_pieces,
            "one_seed": False,
        },
        output=output,
    )


def create_examples(group: Group, setup: ExamplesSetup) -> Iterator[bytes]:
    """Yield the examples of a group as serialised tf.train.Examples, in the order of a shard's records."""
    number, documents = group
    plan, loaded = setup.plan_of("train", number), setup.loaded()
    text = loaded.tokenizer().tokenize_bytes(b"".join(text_of(documents)), f"group {number}")
    if not len(text.document_ends):
        return
    rows = draw_rows(text, loaded.vocabulary, plan)
    writing = writing_of(loaded.vocabulary, plan, indexes=False, checksum=False)
    serializer = Serializer(writing.columns, loaded.vocabulary, writing.width, plan.masking.max_predictions_per_seq)
    for block in serializer.blocks(rows.lay_out(rows.order, writing.width)):
        start = 0
        for size in block.sizes.tolist():
            yield bytes(block.data[start + HEAD : start + HEAD + size - FRAME])
            start += size
