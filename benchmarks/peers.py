"""Runs other projects' programs, and loaders on one core, and says how fast they were.

    PYTHON -m benchmarks.peers LOADER DATA --batch 256 --seconds 5 [--vocab vocab.txt]
    PYTHON -m benchmarks.peers run_mlm SHARD --script run_mlm.py --vocab vocab.txt --length 512
    PYTHON -m benchmarks.peers learn_tokenizers TEXT --kind wordpiece --size 30522 --output FILE

The other benchmarks call it, each program under a Python that has what it needs. Only the loaders maskmill, torch and
tf import maskmill. DATA is what a loader reads: a data set of maskmill's, or a directory of ArrayRecords, which
`write_array_records` makes of Parquet. The last line that a command prints is JSON; of a loader:

  samples, cpu, wall  samples given in so many CPU seconds (of the process, its threads and its children) and seconds
  first_batch         seconds from opening the data set to the first batch; imports of frameworks are not counted
  first_batch_cpu     CPU seconds of the same, which tell more on a machine that is not quiet
  imported, largest   resident memory in bytes after imports, and at most
  versions            of what was imported

Loaders go on epoch after epoch. A quarter of the seconds is given to warming up before anything is counted.
"""

import argparse
import ast
import glob
import itertools
import json
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

_SEED = 12345
_ROW_GROUP = "group_size:1"  # one record a group: what grain advises for random access
_READ_AHEAD = 16  # batches
_SHUFFLE_BUFFER = 16384  # samples


Batches = Iterable[Any]


def cpu_seconds() -> float:
    """Return CPU seconds of this process, its threads and its finished children."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def resident() -> int:
    """Return the memory of this process that is in use, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def most_resident() -> int:
    """Return the most memory of this process so far, in bytes; ru_maxrss would have that of the process that started
    it.
    """
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def measured(opened: Callable[[], Batches], arguments: argparse.Namespace, versions: list[str]) -> dict[str, Any]:
    """Take batches for as many CPU seconds as are wanted."""
    imported = resident()
    began, cpu = time.monotonic(), cpu_seconds()
    batches: Iterator[Any] = iter(opened())
    next(batches)
    first_batch, first_batch_cpu = time.monotonic() - began, cpu_seconds() - cpu
    cpu, wall, taken, warm = cpu_seconds(), time.monotonic(), 0, bool(arguments.cold)
    for _ in batches:
        taken += 1
        used = cpu_seconds() - cpu
        if not warm and used >= arguments.seconds / 4:
            cpu, wall, taken, warm = cpu_seconds(), time.monotonic(), 0, True
        elif warm and used >= arguments.seconds:
            break
    return {
        "samples": taken * arguments.batch,
        "cpu": cpu_seconds() - cpu,
        "wall": time.monotonic() - wall,
        "first_batch": first_batch,
        "first_batch_cpu": first_batch_cpu,
        "imported": imported,
        "largest": most_resident(),
        "versions": [f"{name} {metadata.version(name)}" for name in versions],
    }


def maskmill(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return maskmill.open: NumPy arrays."""
    import maskmill

    def opened() -> Batches:
        return maskmill.open(arguments.data, batch_size=arguments.batch, seed=_SEED).endless()

    return measured(opened, arguments, ["numpy", "numba"])


def maskmill_torch(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return maskmill.loaders.torch in PyTorch's DataLoader, without worker processes: tensors, with a model's
    labels.
    """
    import torch

    import maskmill
    import maskmill.loaders.torch

    torch.set_num_threads(1)

    def opened() -> Batches:
        loader = maskmill.open(arguments.data, batch_size=arguments.batch, seed=_SEED, features="huggingface")
        batches: Batches = maskmill.loaders.torch.DataLoader(loader, endless=True)
        return batches

    return measured(opened, arguments, ["torch"])


def maskmill_tf(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return maskmill.loaders.tf: a tf.data.Dataset."""
    import maskmill
    import maskmill.loaders.tf

    def opened() -> Batches:
        loader = maskmill.open(arguments.data, batch_size=arguments.batch, seed=_SEED)
        dataset: Batches = maskmill.loaders.tf.dataset(loader, endless=True)
        return dataset

    return measured(opened, arguments, ["tensorflow"])


def bare_tf(arguments: argparse.Namespace, *, shuffles: bool = False) -> dict[str, Any]:
    """TFRecordDataset and parse_example of whole batches: the least that a reader of TensorFlow's can do."""
    import tensorflow as tf

    def opened() -> Batches:
        files = sorted(glob.glob(f"{arguments.data}/part-*.tfrecord"))
        (record,) = tf.data.TFRecordDataset(files).take(1).as_numpy_iterator()
        spec = {}
        for name, feature in tf.train.Example.FromString(record).features.feature.items():
            kind = feature.WhichOneof("kind")
            length = len(getattr(feature, kind).value)
            spec[name] = tf.io.FixedLenFeature([length], tf.int64 if kind == "int64_list" else tf.float32)
        records = tf.data.TFRecordDataset(files)
        if shuffles:
            records = records.shuffle(_SHUFFLE_BUFFER, seed=_SEED)
        batches = records.repeat().batch(arguments.batch, drop_remainder=True)
        parsed = batches.map(lambda batch: tf.io.parse_example(batch, spec), num_parallel_calls=tf.data.AUTOTUNE)
        return parsed.prefetch(tf.data.AUTOTUNE)

    return measured(opened, arguments, ["tensorflow"])


def shuffled_tf(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the same with a shuffle buffer as large as maskmill's windows."""
    return bare_tf(arguments, shuffles=True)


def _collator(arguments: argparse.Namespace) -> Any:
    """Hugging Face's own masking."""
    import transformers

    tokenizer = transformers.BertTokenizerFast(vocab_file=arguments.vocab, vocab=arguments.vocab, do_lower_case=True)
    return transformers.DataCollatorForLanguageModeling(tokenizer=tokenizer, mlm_probability=0.15)


def datasets(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return a map-style data set of `datasets`, shuffled by PyTorch's DataLoader, masked by the collator."""
    import datasets
    import torch

    torch.set_num_threads(1)
    datasets.disable_progress_bars()
    collator = _collator(arguments)

    def opened() -> Batches:
        rows = datasets.load_dataset(
            "parquet",
            data_files=sorted(glob.glob(f"{arguments.data}/part-*.parquet")),
            split="train",
            cache_dir=arguments.cache,
        ).select_columns(["input_ids", "special_tokens_mask"])
        batches = torch.utils.data.DataLoader(rows, arguments.batch, shuffle=True, drop_last=True, collate_fn=collator)
        while True:
            yield from batches

    return measured(opened, arguments, ["datasets", "transformers", "torch"])


def _streaming(arguments: argparse.Namespace, collate: Callable[[list[Any]], Any] | None) -> dict[str, Any]:
    import streaming
    import torch

    torch.set_num_threads(1)

    def opened() -> Batches:
        rows = streaming.StreamingDataset(
            local=arguments.data, split="train", shuffle=True, shuffle_seed=_SEED, batch_size=arguments.batch
        )
        batches = torch.utils.data.DataLoader(rows, arguments.batch, drop_last=True, collate_fn=collate)
        while True:
            yield from batches

    return measured(opened, arguments, ["mosaicml-streaming", "torch"])


def streaming(arguments: argparse.Namespace) -> dict[str, Any]:
    """StreamingDataset in PyTorch's DataLoader, masks as they are stored."""
    return _streaming(arguments, None)


def streaming_collator(arguments: argparse.Namespace) -> dict[str, Any]:
    """StreamingDataset in PyTorch's DataLoader, masked by Hugging Face's collator."""
    collator = _collator(arguments)

    def collate(rows: list[dict[str, Any]]) -> Any:
        return collator([{name: row[name] for name in ("input_ids", "special_tokens_mask")} for row in rows])

    return _streaming(arguments, collate)


def streamed_text(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return `datasets` streams lines of text, `tokenizers` splits them; they are joined and cut into rows, without
    masks.
    """
    import datasets
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(arguments.vocab)
    rows = arguments.batch * arguments.length

    def opened() -> Batches:
        files = sorted(glob.glob(f"{arguments.data}/part-*"))
        left = np.zeros(0, np.int32)
        while True:
            lines = datasets.load_dataset("text", data_files=files, split="train", streaming=True)
            for batch in lines.shuffle(seed=_SEED, buffer_size=_SHUFFLE_BUFFER).iter(batch_size=1000):
                encoded = tokenizer.encode_batch_fast(batch["text"], add_special_tokens=False)
                left = np.concatenate([left, *(np.array(one.ids, np.int32) for one in encoded)])
                while len(left) >= rows:
                    yield left[:rows].reshape(arguments.batch, arguments.length)
                    left = left[rows:]

    return measured(opened, arguments, ["datasets", "tokenizers"])


def write_array_records(arguments: argparse.Namespace) -> dict[str, Any]:
    """Write padded rows of Parquet as ArrayRecords: the bytes of a row's columns, one after the other.

    layout.json, beside them, has name, type and length of each column.
    """
    import pyarrow.parquet
    from array_record.python import array_record_module

    output = Path(arguments.output)
    output.mkdir()
    rows = 0
    for path in sorted(glob.glob(f"{arguments.data}/part-*.parquet")):
        table = pyarrow.parquet.read_table(path)
        columns = {
            name: np.array(table[name].combine_chunks().flatten()).reshape(len(table), -1)
            for name in table.column_names
        }
        layout = [(name, values.dtype.str, values.shape[1]) for name, values in columns.items()]
        (output / "layout.json").write_text(json.dumps(layout))
        writer = array_record_module.ArrayRecordWriter(f"{output}/{Path(path).stem}.array_record", _ROW_GROUP)
        for row in range(len(table)):
            writer.write(b"".join(values[row].tobytes() for values in columns.values()))
        writer.close()
        rows += len(table)
    return {"samples": rows}


def grain(arguments: argparse.Namespace) -> dict[str, Any]:
    """Grain on ArrayRecords whose records are a row's bytes, the quickest that Python can take apart."""
    from grain import python as grain

    places, start = {}, 0
    for name, kind, length in json.loads(Path(arguments.data, "layout.json").read_text()):
        places[name] = (kind, length, start)
        start += length * np.dtype(kind).itemsize

    def parsed(record: bytes) -> dict[str, Any]:
        return {name: np.frombuffer(record, kind, length, at) for name, (kind, length, at) in places.items()}

    def opened() -> Batches:
        source = grain.ArrayRecordDataSource(sorted(glob.glob(f"{arguments.data}/*.array_record")))
        rows = grain.MapDataset.source(source).shuffle(seed=_SEED).repeat().map(parsed)
        batches = rows.batch(arguments.batch, drop_remainder=True)
        return batches.to_iter_dataset(grain.ReadOptions(num_threads=1, prefetch_buffer_size=_READ_AHEAD))

    return measured(opened, arguments, ["grain", "array_record"])


def run_mlm(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the recipe: a document is a row of `datasets`; then the script's own tokenize_function and group_texts."""
    import datasets
    import transformers

    datasets.disable_progress_bars()
    tokenizer = transformers.BertTokenizerFast(vocab_file=arguments.vocab, vocab=arguments.vocab, do_lower_case=True)
    values: dict[str, Any] = {
        "tokenizer": tokenizer,
        "text_column_name": "text",
        "max_seq_length": arguments.length,
        "chain": itertools.chain,
    }
    # The functions stand inside the script's main; of two with one name the last is the one for this recipe.
    tree = ast.walk(ast.parse(Path(arguments.script).read_text(encoding="utf-8")))
    functions = {node.name: node for node in tree if isinstance(node, ast.FunctionDef)}
    wanted = ast.Module([functions["tokenize_function"], functions["group_texts"]], [])
    exec(compile(wanted, arguments.script, "exec"), values)
    with tempfile.TemporaryDirectory() as cache:
        began = cpu_seconds()
        raw = datasets.load_dataset(
            "text", data_files=[arguments.data], sample_by="paragraph", split="train", cache_dir=cache
        )
        tokenized = raw.map(values["tokenize_function"], batched=True, remove_columns=raw.column_names)
        blocks = tokenized.map(values["group_texts"], batched=True)
        seconds = cpu_seconds() - began
    versions = [f"datasets {datasets.__version__}", f"transformers {transformers.__version__}"]
    return {"cpu_seconds": seconds, "blocks": len(blocks), "versions": versions}


def learn_tokenizers(arguments: argparse.Namespace) -> dict[str, Any]:
    """Learn a vocabulary with `tokenizers` as BERT's and RoBERTa's kinds usually are; save its tokenizer.json."""
    from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer

    tokenizer: Any = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    if arguments.kind == "wordpiece":
        tokenizer = BertWordPieceTokenizer(lowercase=True)
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    shards = sorted(glob.glob(f"{arguments.data}/part-*"))
    tokenizer.train(shards, vocab_size=arguments.size, min_frequency=2, special_tokens=special, show_progress=False)
    tokenizer.save(arguments.output)
    return {}


PROGRAMS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "maskmill": maskmill,
    "torch": maskmill_torch,
    "tf": maskmill_tf,
    "bare_tf": bare_tf,
    "shuffled_tf": shuffled_tf,
    "datasets": datasets,
    "streaming": streaming,
    "streaming_collator": streaming_collator,
    "grain": grain,
    "streamed_text": streamed_text,
    "write_array_records": write_array_records,
    "run_mlm": run_mlm,
    "learn_tokenizers": learn_tokenizers,
}

ALL_CORES = ("run_mlm", "learn_tokenizers")  # the others are bound to one


def main() -> None:
    """Run one of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("data")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--vocab", help="vocab.txt, for Hugging Face's collator; tokenizer.json, for streamed_text")
    parser.add_argument("--length", type=int, default=512, help="pieces of a row of streamed_text")
    parser.add_argument("--cold", help="glob of files that the system forgets first; then nothing is warmed up")
    parser.add_argument("--cache", help="where datasets keeps its Arrow files")
    parser.add_argument("--output", help="where a file, or a directory of ArrayRecords, is written")
    parser.add_argument("--script", help="run_mlm.py of huggingface/transformers, unchanged")
    parser.add_argument("--kind", choices=("wordpiece", "bpe"), help="of a vocabulary that is learnt")
    parser.add_argument("--size", type=int, help="pieces of that vocabulary")
    arguments = parser.parse_args()
    random.seed(_SEED)
    for path in glob.glob(arguments.cold or ""):
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if arguments.program not in ALL_CORES and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(json.dumps(PROGRAMS[arguments.program](arguments)))
    sys.stdout.flush()
    os._exit(0)  # threads of loaders that go on for ever are not waited for


if __name__ == "__main__":
    main()
