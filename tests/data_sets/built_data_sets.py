"""Small data sets on disk, written as a build writes them, for the tests of what reads them."""

from pathlib import Path

from data_sets.example_sets import setup_of, write_set
from maskmill.masking.objective_options import ObjectiveOptions

SHARDS = 3
WORDS = "river town bridge church music album station village player season league island"


def build_data_set(
    folder: Path,
    *,
    format: str = "tfrecord",
    objective: ObjectiveOptions | None = None,
    dupe_factor: int = 1,
    sentences: int = 60,
) -> Path:
    """Writes a data set of three shards and closes it; returns its directory.

    Rows have up to 32 pieces and 5 masks. Without an objective they are BERT's, with stored masks.
    """
    setup = setup_of(format=format, dupe_factor=dupe_factor, **vars(objective or ObjectiveOptions()))
    words = WORDS.split()
    texts = {}
    for shard in range(SHARDS):
        lines = []
        for n in range(sentences * (shard + 1)):
            picked = [words[(n * 7 + place * (shard + 3)) % len(words)] for place in range(3 + n % 9)]
            lines.append(f"The {' '.join(picked)} of {n} .\n" + "\n" * (n % 6 == 5))
        texts[f"part-{shard:05}-of-{SHARDS:05}"] = "".join(lines) + "\n"
    return Path(write_set(folder, setup, texts=texts))
