"""Mistakes in `maskmill train` and `convert-checkpoint` that are found before TensorFlow is imported.

The mistakes that TensorFlow is needed for are in tests/training/training_mistakes.py.
"""

import dataclasses
import gzip
import json
from pathlib import Path

from mistakes.examples import NAMES, tokenizer_json
from mistakes.table import Mistake, each_flag_once

_GOOD = "train --input_file examples.tfrecord --preset tiny --vocab_file vocab.txt --num_warmup_steps 0"
_RUN = f"{_GOOD} --output_dir run"
_NO_INPUT = "train --output_dir run --preset tiny --vocab_file vocab.txt --num_warmup_steps 0"
_CONFIGURED = "train --input_file examples.tfrecord --output_dir run --num_warmup_steps 0 --bert_config_file"
_CONVERT = "convert-checkpoint --output out --format"
_CONFIG = {"vocab_size": 30522, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}


def _option(name: str, flags: str, says: str) -> Mistake:
    """A mistake in the options of an otherwise good training."""
    return Mistake(f"train-{name}", f"{_RUN} {flags}", says)


def _config(name: str, content: str | dict, says: str) -> Mistake:
    """A mistake in the model's configuration."""
    text = content if isinstance(content, str) else json.dumps(_CONFIG | content)
    return Mistake(
        f"train-config-{name}", f"{_CONFIGURED} bert.json", rf"bert\.json: .*{says}", files={"bert.json": text.encode()}
    )


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


_OPTIONS = [
    _option("learning-rate-negative", "--learning_rate -1", "--learning_rate is -1.0: it must be above 0"),
    _option("warmup-longer", "--num_warmup_steps 9 --num_train_steps 8", "The warm-up ends at step 9 .* at step 8"),
    Mistake(
        "train-warmup-default-longer",
        "train --input_file examples.tfrecord --preset tiny --output_dir run --num_train_steps 100",
        "The warm-up ends at step 10000 .* but the run at step 100 ",
    ),
    _option(
        "vocab-size-small", "--vocab_size 100", r"vocab\.txt: this vocabulary has 30522 tokens, but the model only 100"
    ),
    _option("coordinator-without-port", "--coordinator localhost", "--coordinator is localhost: it must be HOST:PORT"),
    _option("vocab-is-text", "--vocab_file book.txt", r"book\.txt: .* missing from this vocabulary"),
    _option(
        "checkpoint-missing", "--init_checkpoint gone/model.ckpt", r"gone/model\.ckpt: there is no such checkpoint"
    ),
]

_FILES = [
    Mistake(
        "train-without-model",
        "train --input_file examples.tfrecord --output_dir run --num_warmup_steps 0",
        "No model was named: give --preset",
    ),
    Mistake("train-input-missing", f"{_NO_INPUT} --input_file 'gone-*'", r"gone-\*: no examples match; check the path"),
    Mistake("train-input-text", f"{_NO_INPUT} --input_file book.txt", "this is no TFRecord of examples"),
    Mistake("train-eval-vocabulary", f"{_RUN} --eval_file vocab.txt", "no examples match"),
    Mistake("train-eval-missing", f"{_RUN} --eval_file gone", "gone: no examples match"),
    Mistake(
        "train-output-below-file",
        f"{_GOOD} --output_dir book.txt/run",
        r"--output_dir book\.txt/run: there is a file of this name",
    ),
    Mistake("train-output-is-loop", f"{_GOOD} --output_dir loop", "--output_dir loop: ", files={"loop": _loop}),
    Mistake(
        "train-output-on-the-web",
        f"{_GOOD} --output_dir https://host/run",
        "https://host/run: web addresses are neither read nor written",
    ),
    _option(
        "two-vocabularies", "--tokenizer_file t.json", "--vocab_file and --tokenizer_file both name the vocabulary"
    ),
    Mistake(
        "train-tokenizer-is-vocabulary",
        f"{_CONFIGURED} bert.json --tokenizer_file vocab.txt",
        r"vocab\.txt: this is not JSON; --tokenizer_file wants the tokenizer\.json",
        files={"bert.json": json.dumps(_CONFIG).encode()},
    ),
    Mistake(
        "train-tokenizer-larger-than-model",
        f"{_CONFIGURED} bert.json --tokenizer_file t.json",
        r"t\.json: this vocabulary has 6 tokens, but the model only 5",
        files={"bert.json": json.dumps(_CONFIG | {"vocab_size": 5}).encode(), "t.json": tokenizer_json(NAMES)},
    ),
    Mistake(
        "build-with-misspelt-preset",
        "build demo.yaml",
        "there is no such preset; choose one of tiny, mini",
        files={
            "demo.yaml": b"output: build\nextract: {input: dump.xml}\nexamples: {vocab_file: vocab.txt}\n"
            b"train: {preset: tinny, num_train_steps: 4, num_warmup_steps: 0}\n"
        },
    ),
]

_CONFIGS = [
    _config("not-json", "{", "this model configuration is not JSON"),
    _config("size-zero", {"num_hidden_layers": 0}, "num_hidden_layers is 0: it must be at least 1"),
    Mistake("train-config-directory", f"{_CONFIGURED} .", "cannot be read"),
]

_CONVERSIONS = [
    Mistake(
        "convert-with-two-vocabularies",
        f"{_CONVERT} huggingface --input model --vocab_file vocab.txt --tokenizer_file t.json",
        "--vocab_file and --tokenizer_file both name the vocabulary",
    ),
    Mistake(
        "convert-tokenizer-to-tf1",
        f"{_CONVERT} tf1 --input model --tokenizer_file t.json",
        "--tokenizer_file goes with --format huggingface; leave it out",
    ),
    Mistake("convert-missing", f"{_CONVERT} tf1 --input gone", "gone: there is no such checkpoint"),
    Mistake(
        "convert-over-its-input",
        "convert-checkpoint --format maskmill --input a.safetensors --output ./a.safetensors",
        "this output is also the input a.safetensors; name another file",
        files={"a.safetensors": b"weights"},
    ),
    Mistake(
        "convert-over-its-input-by-a-link",
        "convert-checkpoint --format huggingface --input model --output link",
        "this output is also the input model; name another file",
        files={"model/config.json": b"{}", "link": lambda path: path.symlink_to("model")},
    ),
    Mistake(
        "convert-over-its-configuration",
        (
            "convert-checkpoint --format tf1 --input examples.tfrecord --output a/b "
            "--bert_config_file a/bert_config.json"
        ),
        "this output is also the input a/bert_config.json; name another file",
        files={"a/bert_config.json": b"{}"},
    ),
    Mistake(
        "convert-into-the-directory-of-its-input",
        "convert-checkpoint --format tf1 --input a/model.safetensors --output a/model",
        "this is the directory of the input",
        files={"a/bert_config.json": b"{}", "a/model.safetensors": b"weights"},
    ),
    Mistake(
        "convert-unreadable",
        f"{_CONVERT} tf1 --input loop",
        r"loop: this checkpoint cannot be read \(Too many levels",
        files={"loop": _loop},
    ),
    Mistake(
        "convert-output-is-file",
        "convert-checkpoint --format huggingface --input examples.tfrecord --output book.txt",
        r"--output book\.txt: there is a file of this name",
    ),
    Mistake(
        "convert-config-packed",
        f"{_CONVERT} tf1 --input examples.tfrecord --bert_config_file bert.json",
        r"bert\.json: this model configuration is not JSON",
        files={"bert.json": gzip.compress(b"{}", mtime=0)},
    ),
    Mistake("convert-unknown-scheme", f"{_CONVERT} tf1 --input foo://b/x", "foo:// is unknown"),
]

MISTAKES = [*_OPTIONS, *_FILES, *_CONFIGS, *_CONVERSIONS]
MISTAKES = [dataclasses.replace(row, command=each_flag_once(row.command)) for row in MISTAKES]
