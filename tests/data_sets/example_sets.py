"""Small data sets, written as `maskmill examples` writes them."""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from data_sets.gold_examples import VOCABULARY
from maskmill.example_shards.close_examples import close_examples, close_picked
from maskmill.example_shards.example_shards import ExampleShard, ExamplesSetup, pick_eval, write_example_shard
from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.masking.options import MaskingOptions
from maskmill.records.options import FormatOptions
from maskmill.text.text_files import describe_text_shard

NAMES = ("part-00000-of-00002", "part-00001-of-00002", "eval.txt")
_PARTS = (MaskingOptions, ObjectiveOptions, FormatOptions)


def setup_of(vocabulary: str = VOCABULARY, **options: Any) -> ExamplesSetup:
    """A setup with options of MaskingOptions, ObjectiveOptions and FormatOptions, or its own; vocabulary: its file."""
    defaults = {"max_seq_length": 32, "max_predictions_per_seq": 5, "dupe_factor": 2}
    chosen = defaults | options
    masking, objective, format = (
        part(**{f.name: chosen.pop(f.name) for f in dataclasses.fields(part) if f.name in chosen}) for part in _PARTS
    )
    return ExamplesSetup(
        vocab_file=vocabulary,
        vocab_sha256=hashlib.sha256(Path(vocabulary).read_bytes()).hexdigest(),
        masking=masking,
        objective=objective,
        format=format,
        is_tokenizer=vocabulary.endswith(".json"),
        **{"one_seed": False, "packed": False} | chosen,
    )


def texts_of(names: Sequence[str] = NAMES, words: str = "foxes") -> dict[str, str]:
    """Text shards by name, of 60 sentences in three documents each; words: what they speak of."""
    texts = {}
    for place, name in enumerate(names):
        lines = [f"Sentence {n} of shard {place} is about {f'{words} ' * (n % 7)}.\n" for n in range(20)]
        texts[name] = "".join([*lines, "\n"]) * 3
    return texts


def write_set(
    directory: Path,
    setup: ExamplesSetup,
    *,
    texts: Mapping[str, str] | None = None,
    words: str = "foxes",
    folder: str = "examples",
    picked: int = 0,
) -> str:
    """Writes the examples of text shards to a folder of the directory; returns the folder's path.

    texts: the shards by name; None: `texts_of` with these words. picked: how many eval examples are picked into
      directory/eval.
    """
    output, shards = str(directory / folder), list[ExampleShard]()
    (directory / "text").mkdir(parents=True, exist_ok=True)
    for place, (name, content) in enumerate((texts or texts_of(words=words)).items()):
        (directory / "text" / name).write_text(content)
        text = describe_text_shard((place, str(directory / "text" / name)))
        shards.append(write_example_shard(text, setup, output))
    parts = (setup.masking, setup.objective, setup.format)
    options = {f.name: getattr(part, f.name) for part in parts for f in _fields(part)}
    option = "tokenizer_file" if setup.is_tokenizer else "vocab_file"
    parameters = options | {option: setup.vocab_file, f"{option}_sha256": setup.vocab_sha256}
    close_examples(shards[::-1], setup, parameters=parameters, decided={}, output=output)
    if picked:
        (directory / "eval").mkdir()
        chosen = pick_eval(shards, picked, False, str(directory / "eval" / "eval.tfrecord"))
        close_picked(chosen, {"num_examples_to_pick": picked}, str(directory / "eval"))
    return output


def _fields(options: Any) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(options)
