"""Runs in the environment of the readers (make test-torch), which has nothing of ours.

Reads data sets with one of the libraries, or writes some: python readers_program.py LIBRARY (SOURCE OUTPUT)... Rows
travel as .npz: for each column its values, one row after the other, and how many each row has (`NAME/lengths`).
"""

import itertools
import json
import os
import sys

import numpy as np


def from_arrow(table):
    """The rows of an Arrow table with list columns."""
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    return [
        {name: column[n].values.to_numpy(zero_copy_only=False) for name, column in columns.items()}
        for n in range(table.num_rows)
    ]


def pandas(path, output):
    """A Parquet file."""
    import pandas

    return pandas.read_parquet(path).to_dict("records")


def polars(path, output):
    """A Parquet file."""
    import polars

    rows = polars.read_parquet(path).to_dict(as_series=True)
    return [{name: rows[name][n].to_numpy() for name in rows} for n in range(len(next(iter(rows.values()))))]


def duckdb(path, output):
    """A Parquet file."""
    import duckdb

    return from_arrow(duckdb.sql(f"select * from read_parquet('{path}')").to_arrow_table())


def datasets(path, output):
    """A Parquet file, or the train split of a directory."""
    import datasets

    files = {"path": path} if os.path.isdir(path) else {"path": "parquet", "data_files": path}
    loaded = datasets.load_dataset(**files, split="train", cache_dir=f"{output}.cache")
    return from_arrow(loaded.with_format("arrow")[:])


def streaming(directory, output):
    """MDS shards, copied as from a remote store, with their checksums validated."""
    import streaming

    loaded = streaming.StreamingDataset(
        remote=directory, local=f"{output}.local", shuffle=False, batch_size=1, validate_hash="sha256"
    )
    return [loaded[n] for n in range(loaded.num_samples)]


def modernbert(directory, output):
    """MDS shards, as NoStreamingDataset of ModernBERT's src/text_data.py reads them."""
    from streaming.base.format import reader_from_json
    from streaming.base.spanner import Spanner

    with open(os.path.join(directory, "index.json")) as file:
        index = json.load(file)
    parent, split = os.path.split(directory)
    shards = [reader_from_json(parent, split, shard) for shard in index["shards"]]
    for shard in shards:
        shard.validate(True)
    samples = np.array([shard.samples for shard in shards])
    spanner = Spanner(samples)
    places = [spanner[n] for n in range(samples.sum())]
    return [shards[shard][n] for shard, n in places]


def group_texts(source, output):
    """Blocks of a text shard, as the recipe of transformers' run_mlm.py makes them with these libraries.

    The environment gives what its flags do: VOCAB_FILE, MAX_SEQ_LENGTH, and BATCH_SIZE of Dataset.map.
    """
    import datasets
    import transformers

    length, batch = int(os.environ["MAX_SEQ_LENGTH"]), int(os.environ["BATCH_SIZE"])
    tokenizer = transformers.BertTokenizerFast(os.environ["VOCAB_FILE"], model_max_length=10**9)

    def tokenize(texts):
        return tokenizer(texts["text"], return_special_tokens_mask=True)

    def group(rows):
        joined = {name: list(itertools.chain(*values)) for name, values in rows.items()}
        whole = len(joined["input_ids"]) // length * length
        return {name: [v[k : k + length] for k in range(0, whole, length)] for name, v in joined.items()}

    # A paragraph, up to a blank line, is a document of ours.
    texts = datasets.load_dataset(
        "text", data_files=source, sample_by="paragraph", split="train", cache_dir=f"{output}.cache"
    )
    tokens = texts.map(tokenize, batched=True, batch_size=batch, remove_columns=["text"])
    blocks = tokens.map(group, batched=True, batch_size=batch)
    return [{n: np.array(row[n]) for n in ("input_ids", "special_tokens_mask")} for row in blocks]


def write_mds(source, output):
    """Writes the rows of an .npz with MDSWriter to the directory `output`."""
    import streaming

    rows, limit = load(source), int(os.environ["SIZE_LIMIT"])
    columns = {name: f"ndarray:{values.dtype.name}" for name, values in rows[0].items()}
    with streaming.MDSWriter(columns=columns, out=output, hashes=["sha256"], size_limit=limit) as writer:
        for row in rows:
            writer.write(row)


def load(path):
    """The rows of an .npz."""
    arrays = dict(np.load(path))
    names = [name for name in arrays if f"{name}/lengths" in arrays]
    parts = {name: np.split(arrays[name], arrays[f"{name}/lengths"].cumsum()[:-1]) for name in names}
    return [dict(zip(parts, row, strict=True)) for row in zip(*parts.values(), strict=True)]


def save(path, rows):
    """Writes rows as .npz."""
    arrays = {}
    for name in rows[0]:
        arrays[name] = np.concatenate([row[name] for row in rows])
        arrays[f"{name}/lengths"] = np.array([len(row[name]) for row in rows])
    np.savez(path, **arrays)


if __name__ == "__main__":
    library, *pairs = sys.argv[1:]
    for source, output in zip(pairs[::2], pairs[1::2], strict=True):
        if library == "write_mds":
            write_mds(source, output)
        else:
            save(output, globals()[library](source, output))
