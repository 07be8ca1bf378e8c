"""The names of the files beside examples and vocabularies."""

from maskmill.storage import files

# The index of a directory with MDS shards, which streaming reads.
MDS_INDEX = "index.json"

# The copy of the vocabulary beside the examples: of a vocab.txt, and of a tokenizer.json.
VOCAB_FILE = "vocab.txt"
TOKENIZER_FILE = "tokenizer.json"

# Tells `datasets.load_dataset(DIRECTORY)` which Parquet files are of which split. Without it, that would take only the
# files with "eval" in their names. Source: huggingface/hub-docs, docs/hub/datasets-manual-configuration.md.
DATASET_CARD = "README.md"
SPLITS = {"train": "train", "eval": "test"}  # what it calls the splits

# The measurements of a vocabulary, for programs and for people.
REPORT, REPORT_TABLE = "report.json", "report.md"

# The end of the name of a TFRecord's index.
INDEX_SUFFIX = ".idx"


def lies_beside(path: str) -> bool:
    """Return whether a file that a glob for examples may match holds none, by its name."""
    # Indexes, manifests, rejected documents; the copy of a vocabulary, and the card that tells the files of each split.
    return path.endswith((INDEX_SUFFIX, ".json", ".jsonl")) or files.base_name(path) in (VOCAB_FILE, DATASET_CARD)
