"""Small data sets on disk, written as a build writes them, for the tests of what reads them."""

import dataclasses
import hashlib
from pathlib import Path

from commands import VOCAB

from transforms.masking.objective_options import ObjectiveOptions
from transforms.masking.options import MaskingOptions
from transforms.records.closing import close_examples
from transforms.records.example_shards import ExamplesSetup, write_example_shard
from transforms.records.options import Format, FormatOptions
from transforms.shards.text_files import describe_text_shard

SHARDS = 3
WORDS = "river town bridge church music album station village player season league island"


def build_data_set(
    folder: Path,
    *,
    format: Format = "tfrecord",
    objective: ObjectiveOptions | None = None,
    dupe_factor: int = 1,
    sentences: int = 60,
) -> Path:
    """Writes a data set of three shards and closes it; returns its directory.

    Rows have up to 32 pieces and 5 masks. Without an objective they are BERT's, with stored masks.
    """
    objective = objective or ObjectiveOptions()
    masking = MaskingOptions(max_seq_length=32, max_predictions_per_seq=5, dupe_factor=dupe_factor)
    setup = ExamplesSetup(
        vocab_file=str(VOCAB),
        vocab_sha256=hashlib.sha256(VOCAB.read_bytes()).hexdigest(),
        masking=masking,
        objective=objective,
        format=FormatOptions(format=format),
        one_seed=False,
        packed=False,
    )
    words = WORDS.split()
    texts = folder / "text"
    texts.mkdir(parents=True, exist_ok=True)
    shards = []
    for shard in range(SHARDS):
        path = texts / f"part-{shard:05}-of-{SHARDS:05}"
        lines = []
        for n in range(sentences * (shard + 1)):
            picked = [words[(n * 7 + place * (shard + 3)) % len(words)] for place in range(3 + n % 9)]
            lines.append(f"The {' '.join(picked)} of {n} .\n" + "\n" * (n % 6 == 5))
        path.write_text("".join(lines) + "\n")
        shards.append(write_example_shard(describe_text_shard((shard, str(path))), setup, str(folder / "examples")))
    parameters = dataclasses.asdict(masking) | dataclasses.asdict(objective)
    close_examples(shards, setup, parameters=parameters, decided={}, output=str(folder / "examples"))
    return folder / "examples"
