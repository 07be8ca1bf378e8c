"""What files are called that lie beside examples and vocabularies."""

# Of a directory with MDS shards, as streaming wants it.
MDS_INDEX = "index.json"

# The copy of the vocabulary that lies beside the examples: of a vocab.txt, and of a tokenizer.json.
VOCAB_FILE = "vocab.txt"
TOKENIZER_FILE = "tokenizer.json"

# Tells `datasets.load_dataset(DIRECTORY)` which Parquet files are of which split. Without it, that would take only the
# files with "eval" in their names. Source: huggingface/hub-docs, docs/hub/datasets-manual-configuration.md.
DATASET_CARD = "README.md"

# What was measured of a vocabulary, for programs and for people.
REPORT, REPORT_TABLE = "report.json", "report.md"
