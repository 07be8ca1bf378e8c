"""Runs the code of other projects, each under a Python that has what it needs. It imports nothing of maskmill.

    PYTHON peer_code.py run_mlm run_mlm.py SHARD.txt vocab.txt LENGTH OUT.npz
    PYTHON peer_code.py fairseq DIR SIZES.npz complete|complete_doc SEPARATOR BLOCK OUT.npz
    PYTHON peer_code.py spanbert DIR ROWS.npz OUT.npz

benchmarks/peer_objectives.py and benchmarks/objectives.py call it. The files are those of the projects, unchanged:
huggingface/transformers examples/pytorch/language-modeling/run_mlm.py, and checkouts of facebookresearch/fairseq (with
its extension token_block_utils_fast built) and facebookresearch/SpanBERT. Each command prints one line of JSON.
"""

import argparse
import ast
import importlib.util
import itertools
import json
import resource
import sys
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

_MASKED_BLOCKS = 2000
_NOT_MASKED = -100  # the label of what is not to be predicted


def cpu_seconds() -> float:
    """CPU seconds of this process, its threads and its finished children."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def functions_of(path: str, names: tuple[str, ...], values: dict[str, Any]) -> list[Callable[[Any], Any]]:
    """The functions of these names that a script defines, wherever; of two with one name, the last."""
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    found = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in names}
    module = ast.Module([found[name] for name in names], [])
    exec(compile(module, path, "exec"), values)
    return [values[name] for name in names]


def load(path: Path, package: str = "") -> Any:
    """A module from its file. `package` is the one that its relative imports name; it gets empty attributes."""
    name = f"{package}.{path.stem.partition('.')[0]}" if package else path.stem.partition(".")[0]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def stand_in(name: str, *attributes: str) -> None:
    """Puts an empty module where a file imports one that it does not use, or that only its other classes use."""
    module = types.ModuleType(name)
    for attribute in attributes:
        setattr(module, attribute, object)
    module.__path__ = []
    sys.modules.setdefault(name, module)


def run_mlm(arguments: argparse.Namespace) -> dict[str, Any]:
    """The recipe: a document is a row of `datasets`; then the script's own tokenize_function and group_texts.

    Its collator then masks some of the blocks; the CPU seconds are without it. Writes blocks: int32[blocks, LENGTH],
    and written: int64[some, LENGTH] and masked: bool[some, LENGTH] of the first of them.
    """
    import datasets
    import transformers

    datasets.disable_progress_bars()
    tokenizer = transformers.BertTokenizerFast(vocab_file=arguments.vocab, vocab=arguments.vocab, do_lower_case=True)
    values = {
        "tokenizer": tokenizer,
        "text_column_name": "text",
        "max_seq_length": arguments.length,
        "chain": itertools.chain,
    }
    names = ("tokenize_function", "group_texts")
    tokenize_function, group_texts = functions_of(arguments.script, names, values)
    with tempfile.TemporaryDirectory() as cache:
        began = cpu_seconds()
        raw = datasets.load_dataset(
            "text", data_files=[arguments.shard], sample_by="paragraph", split="train", cache_dir=cache
        )
        tokenized = raw.map(tokenize_function, batched=True, remove_columns=raw.column_names)
        blocks = tokenized.map(group_texts, batched=True)
        seconds = cpu_seconds() - began
        ids = np.array(blocks.with_format("arrow")[:]["input_ids"].combine_chunks().flatten())
        pieces = np.array(tokenized.with_format("arrow")[:]["input_ids"].combine_chunks().value_lengths()).sum()
        columns = ["input_ids", "special_tokens_mask"]
        some = blocks.select_columns(columns).select(range(min(_MASKED_BLOCKS, len(blocks)))).to_list()
    collator = transformers.DataCollatorForLanguageModeling(tokenizer=tokenizer, return_tensors="np")
    np.random.seed(12345)
    masks = collator(some)
    np.savez(
        arguments.output,
        blocks=ids.reshape(-1, arguments.length),
        written=masks["input_ids"],
        masked=masks["labels"] != _NOT_MASKED,
    )
    return {
        "cpu_seconds": seconds,
        "pieces": int(pieces),
        "blocks": len(ids) // arguments.length,
        "versions": [f"datasets {datasets.__version__}", f"transformers {transformers.__version__}"],
    }


def fairseq(arguments: argparse.Namespace) -> dict[str, Any]:
    """TokenBlockDataset's own cuts. SIZES.npz has sizes: int64[sentences]. Writes starts and ends: int64[blocks]."""
    stand_in("torch")  # token_block_utils_fast.pyx imports it and does not use it
    (extension,) = (Path(arguments.checkout) / "fairseq" / "data").glob("token_block_utils_fast*.so")
    sizes = np.load(arguments.sizes)["sizes"]
    cut = load(extension)._get_slice_indices_fast
    began = cpu_seconds()
    slices = cut(sizes, arguments.mode, arguments.block, arguments.separator)
    seconds = cpu_seconds() - began
    np.savez(arguments.output, starts=slices[:, 0], ends=slices[:, 1])
    return {"cpu_seconds": seconds, "blocks": len(slices)}


class _Words:
    """What SpanBERT asks its dictionary: whether a piece starts a word."""

    def __init__(self, starts_word: np.ndarray) -> None:
        self._starts_word = starts_word

    def is_start_word(self, piece: int) -> bool:
        return bool(self._starts_word[piece])


def spanbert(arguments: argparse.Namespace) -> dict[str, Any]:
    """PairWithSpanMaskingScheme with the arguments of SpanBERT's README, on each row.

    ROWS.npz has ids: int64, the pieces of all rows without special ones; ends: int64[rows]; starts_word: uint8[ids of
    the vocabulary]; mask_id. Writes masked: uint8[pieces], 1 where a piece is to be predicted, and written: int64, the
    pieces that the model gets.
    """
    stand_in("torch")
    stand_in("tqdm", "tqdm")
    stand_in("spanbert_data", "data_utils", "FairseqDataset")
    data = Path(arguments.checkout) / "pretraining" / "fairseq" / "data"
    masking = load(data / "masking.py", "spanbert_data")
    rows = np.load(arguments.rows)
    flags = argparse.Namespace(
        mask_ratio=0.15,
        max_pair_targets=15,
        span_lower=1,
        span_upper=10,
        geometric_p=0.2,
        tagged_anchor_prob=0.0,
        replacement_method="span",
        endpoints="external",
        return_only_spans=False,
    )
    paragraphs = masking.ParagraphInfo(_Words(rows["starts_word"]))
    vocabulary = np.arange(len(rows["starts_word"]))
    pad = -1
    scheme = masking.PairWithSpanMaskingScheme(flags, vocabulary, pad, int(rows["mask_id"]), paragraphs)
    np.random.seed(12345)
    masked, written, start = [], [], 0
    began = cpu_seconds()
    for end in rows["ends"].tolist():
        sentence, target, _ = scheme.mask(rows["ids"][start:end])
        masked.append(target != pad)
        written.append(sentence)
        start = end
    seconds = cpu_seconds() - began
    np.savez(arguments.output, masked=np.concatenate(masked).astype(np.uint8), written=np.concatenate(written))
    return {"cpu_seconds": seconds, "rows": len(masked)}


def main() -> None:
    """Runs one of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("run_mlm")
    command.set_defaults(run=run_mlm)
    for name in ("script", "shard", "vocab"):
        command.add_argument(name)
    command.add_argument("length", type=int)
    command = commands.add_parser("fairseq")
    command.set_defaults(run=fairseq)
    for name in ("checkout", "sizes", "mode"):
        command.add_argument(name)
    for name in ("separator", "block"):
        command.add_argument(name, type=int)
    command = commands.add_parser("spanbert")
    command.set_defaults(run=spanbert)
    for name in ("checkout", "rows"):
        command.add_argument(name)
    for command in commands.choices.values():
        command.add_argument("output")
    arguments = parser.parse_args()
    print(json.dumps(arguments.run(arguments)))


if __name__ == "__main__":
    main()
