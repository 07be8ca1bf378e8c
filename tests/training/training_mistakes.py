"""Mistakes that TensorFlow is needed to find: in records, TSV files, checkpoints and a run's directory."""

import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import tensorflow as tf
from mistakes.table import Mistake
from training_helpers import BACKEND, CHECKPOINT, small_config

from pipelines.commands import cli
from training import checkpoints

_CONFIG = json.dumps(small_config(vocab_size=30522).to_google()).encode()
_MODEL = {"bert.json": _CONFIG}
_SHORT = "--num_train_steps 2 --num_warmup_steps 0 --train_batch_size 4 --eval_batch_size 4 --tensorboard=False"
_TRAIN = f"train --output_dir run --bert_config_file bert.json --backend {BACKEND} {_SHORT}"
_CLASSIFY = f"{_TRAIN} --task classify --vocab_file vocab.txt --max_seq_length 16 --input_file train.tsv"
_RUN = f"{_TRAIN} --input_file examples.tfrecord"
# Whatever a training has written until it finds the mistake.
_LEFT = ("run",)


def _changed(change: Callable[[tf.train.Example], object]) -> Callable[[Path], None]:
    """Makes a copy of the good examples in which the second is changed."""

    def make(path: Path) -> None:
        good = tf.data.TFRecordDataset(str(path.parent / "examples.tfrecord")).as_numpy_iterator()
        with tf.io.TFRecordWriter(str(path)) as writer:
            for number, record in enumerate(good):
                example = tf.train.Example.FromString(record)
                if number == 1:
                    change(example)
                writer.write(example.SerializeToString())

    return make


def _value(feature: str, value: int, says: str) -> Mistake:
    """A record with a value that no model can take."""

    def change(example: tf.train.Example) -> None:
        example.features.feature[feature].int64_list.value[0] = value

    return Mistake(
        f"record-{feature.replace('_', '-')}-{value}",
        f"{_TRAIN} --shuffle=False --input_file bad.tfrecord",
        rf"bad\.tfrecord, record 2: {feature} is {value}, but it must be {says}",
        files=_MODEL | {"bad.tfrecord": _changed(change)},
        leaves=_LEFT,
    )


def _damage(path: Path) -> None:
    content = bytearray((path.parent / "examples.tfrecord").read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _drop_label(example: tf.train.Example) -> None:
    del example.features.feature["next_sentence_labels"]


_RECORDS = [
    _value("segment_ids", 7, "from 0 to 1: the model has 2 segments"),
    Mistake(
        "record-of-evaluation",
        f"{_RUN} --eval_file bad.tfrecord",
        r"bad\.tfrecord, record 2: the feature next_sentence_labels is missing",
        files=_MODEL | {"bad.tfrecord": _changed(_drop_label)},
        leaves=_LEFT,
    ),
    Mistake(
        "record-damaged",
        f"{_TRAIN} --input_file bad.tfrecord",
        r"bad\.tfrecord: record [\d,]+ at byte [\d,]+ has (data|a length) that does not fit its checksum",
        files=_MODEL | {"bad.tfrecord": _damage},
        leaves=_LEFT,
    ),
    Mistake(
        "records-longer-than-model",
        _RUN,
        r"examples\.tfrecord: the sequences are 32 tokens long, but the model has only 16 positions",
        files={
            "bert.json": json.dumps(small_config(vocab_size=30522, max_position_embeddings=16).to_google()).encode()
        },
        leaves=_LEFT,
    ),
    Mistake(
        "batch-for-other-devices",
        f"{_RUN} --num_devices 3",
        "it must be a multiple of the number of devices, 3",
        files=_MODEL,
        leaves=_LEFT,
    ),
]


def _tsv(name: str, content: bytes, says: str, flags: str = "") -> Mistake:
    return Mistake(
        f"tsv-{name}",
        f"{_CLASSIFY} {flags}",
        rf"train\.tsv.*{says}",
        files=_MODEL | {"train.tsv": content},
        leaves=_LEFT,
    )


_TSV = [
    _tsv("latin1", "text\tlabel\ncafé\t1\n".encode("latin1"), r", line 2: this TSV file is not UTF-8 \(byte 0xe9\)"),
    _tsv("utf16", "text\tlabel\ngood\t1\n".encode("utf-16"), ", line 1: this TSV file is not UTF-8"),
    _tsv("label", b"text\tlabel\ngood\t5\n", ", line 2: label '5' is no number from 0 to 1"),
    _tsv("label-is-word", b"text\tlabel\ngood\tyes\n", ", line 2: label 'yes' is no number from 0 to 1"),
    _tsv("column", b"sentence\tlabel\ngood\t1\n", "no column text, text_a or query; it has sentence"),
    _tsv("commas", b"text,label\ngood,1\n", "no column label; it has text,label"),
    _tsv("cells", b"text\tlabel\ngood\n", ", line 2: there are 1 columns, but the header has 2"),
    _tsv("empty", b"", "the header line has no column label; it has nothing"),
]


def _torch_file(content: bytes) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("model/data.pkl", content)

    return make


def _weights(path: Path) -> None:
    safetensors.numpy.save_file({"transformer.wte.weight": np.zeros((2, 2), np.float32)}, path)


_HARMFUL = b"cos\nsystem\n(X\x0c\0\0\0touch harmedtR."
_CONVERT = "convert-checkpoint --format maskmill --output out.safetensors --bert_config_file bert.json --input"

_EXPORT = f"convert-checkpoint --format huggingface --output out --input {CHECKPOINT}"


def _initial(name: str, checkpoint: str, says: str, files: Mapping[str, Any] | None = None) -> list[Mistake]:
    """A mistake in a checkpoint, for a training and for a conversion."""
    files = _MODEL | (files or {})
    return [
        Mistake(f"initial-{name}", f"{_RUN} --init_checkpoint {checkpoint}", says, files=files, leaves=_LEFT),
        Mistake(f"convert-{name}", f"{_CONVERT} {checkpoint}", says, files=files),
    ]


_CHECKPOINTS = [
    *_initial(
        "harmful-pickle",
        "bad.bin",
        r"bad\.bin: this PyTorch file holds the Python object os\.system, which weights do not need",
        files={"bad.bin": _torch_file(_HARMFUL)},
    ),
    *_initial(
        "damaged-safetensors",
        "bad.safetensors",
        r"bad\.safetensors: this is no safetensors file, or it is damaged",
        files={"bad.safetensors": b"\x10\0\0\0\0\0\0\0{"},
    ),
    *_initial(
        "another-program",
        "gpt.safetensors",
        r"gpt\.safetensors: this file has no weights of a bert model; it has transformer\.wte\.weight",
        files={"gpt.safetensors": _weights},
    ),
    *_initial("another-size", str(CHECKPOINT), r"has shape \[.*give the configuration that belongs to this checkpoint"),
    Mistake(
        "export-without-vocabulary",
        f"{_EXPORT} --bert_config_file gold.json",
        r"--vocab_file is missing: there is no vocab\.txt in",
        files={"gold.json": (CHECKPOINT.parents[1] / "bert_config.json").read_bytes()},
    ),
    Mistake("export-without-configuration", _EXPORT, "there is no configuration beside it; give --bert_config_file"),
    Mistake(
        "export-with-labels-of-no-classifier",
        f"{_EXPORT} --vocab_file small.txt --bert_config_file gold.json --labels no,yes",
        "--labels names 2 labels, but this model is no classifier",
        files={
            "gold.json": (CHECKPOINT.parents[1] / "bert_config.json").read_bytes(),
            "small.txt": b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n",
        },
    ),
]


def _run(flags: str = "") -> Callable[[Path], None]:
    """Trains two steps into a directory."""

    def make(path: Path) -> None:
        command = f"{_RUN} {flags}".replace("--output_dir run", f"--output_dir {path}")
        assert cli.main(command.split()) == 0

    return make


def _run_with_damage(path: Path) -> None:
    _run()(path)
    newest = Path(checkpoints.list_checkpoints(str(path))[-1])
    newest.write_bytes(newest.read_bytes()[:-100])


_RESUMED = r"step-0000000002\.safetensors: this run was begun with"
_RESUMES = [
    Mistake(
        "resume-with-next-sentences",
        _RUN,
        f"{_RESUMED} next_sentence_prediction False, but now it is True; resume it with the same settings",
        files=_MODEL | {"run": _run("--next_sentence_prediction=False")},
        leaves=_LEFT,
    ),
    Mistake(
        "resume-with-another-rate",
        f"{_RUN} --learning_rate 0.5",
        f"{_RESUMED} learning_rate 5e-05, but now it is 0.5",
        files=_MODEL | {"run": _run()},
        leaves=_LEFT,
    ),
    Mistake(
        "resume-from-damage",
        _RUN,
        r"step-0000000002\.safetensors: this is no safetensors file, or it is damaged",
        files=_MODEL | {"run": _run_with_damage},
        leaves=_LEFT,
    ),
    Mistake(
        "run-as-initial-checkpoint",
        _RUN.replace("--output_dir run", "--output_dir other") + " --init_checkpoint run",
        "this is a training checkpoint of a maskmill run, at step 2, and no initial checkpoint",
        files=_MODEL | {"run": _run()},
        leaves=(*_LEFT, "other"),
    ),
    # 4 TB of word embeddings
    Mistake(
        "out-of-memory",
        _RUN,
        "The memory does not suffice .*; raise --steps_per_update",
        code=1,
        files={"bert.json": json.dumps(small_config(vocab_size=2**24, hidden_size=2**16).to_google()).encode()},
        leaves=_LEFT,
    ),
]

MISTAKES = [*_RECORDS, *_TSV, *_CHECKPOINTS, *_RESUMES]
