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
    return Mistake(name=f"train-{name}", command=f"{_RUN} {flags}", says=says)


def _config(name: str, content: str | dict, says: str) -> Mistake:
    """A mistake in the model's configuration."""
    text = content if isinstance(content, str) else json.dumps(_CONFIG | content)
    return Mistake(
        name=f"train-config-{name}",
        command=f"{_CONFIGURED} bert.json",
        says=rf"bert\.json: .*{says}",
        files={"bert.json": text.encode()},
    )


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


_OPTIONS = [
    _option("learning-rate-negative", "--learning_rate -1", "--learning_rate is -1.0: it must be above 0"),
    _option("learning-rate-zero", "--learning_rate 0", "--learning_rate is 0.0: it must be above 0"),
    _option("learning-rate-nan", "--learning_rate nan", "--learning_rate must be a finite number"),
    _option("learning-rate-infinite", "--learning_rate inf", "--learning_rate must be a finite number"),
    _option("warmup-negative", "--num_warmup_steps -5", "--num_warmup_steps is -5: it must be at least 0"),
    _option("warmup-longer", "--num_warmup_steps 9 --num_train_steps 8", "The warm-up ends at step 9 .* at step 8"),
    _option("warmup-starts-late", "--start_warmup_step 5", "--start_warmup_step is 5: it must be at most 0"),
    Mistake(
        name="train-warmup-default-longer",
        command="train --input_file examples.tfrecord --preset tiny --output_dir run --num_train_steps 100",
        says="The warm-up ends at step 10000 .* but the run at step 100 ",
    ),
    _option("power-negative", "--poly_power -1", "--poly_power is -1.0: it must be at least 0"),
    _option("decay-negative", "--weight_decay_rate -0.1", "--weight_decay_rate is -0.1: it must be at least 0"),
    _option("lamb-decay-nan", "--lamb_weight_decay_rate nan", "--lamb_weight_decay_rate must be a finite number"),
    _option("lamb-beta-1-negative", "--lamb_beta_1 -0.9", "--lamb_beta_1 is -0.9: it must be at least 0 and below 1"),
    _option("lamb-beta-2-large", "--optimizer lamb --lamb_beta_2 2", "--lamb_beta_2 is 2.0: it must be at least 0"),
    _option("lamb-beta-2-one", "--optimizer lamb --lamb_beta_2 1", "--lamb_beta_2 is 1.0: .* below 1"),
    _option("log-epsilon-positive", "--log_epsilon 6", "--log_epsilon is 6: it must be from -38 to 0"),
    _option(
        "target-nan",
        "--target_masked_lm_accuracy nan --eval_file examples.tfrecord",
        "accuracy must be a finite",
    ),
    _option(
        "target-percent", "--target_masked_lm_accuracy 72 --eval_file examples.tfrecord", "is 72.0: .* from 0 to 1"
    ),
    _option("target-without-eval", "--target_masked_lm_accuracy 0.7", "--target_masked_lm_accuracy needs --eval_file"),
    _option("expected-percent", "--expected_initial_masked_lm_accuracy 34", "is 34.0: it must be from 0 to 1"),
    _option(
        "watched-without-target", "--watched", "--watched goes with a training and its --target_masked_lm_accuracy"
    ),
    _option("target-of-classifier", "--task classify --target_masked_lm_accuracy 0.7", "goes with --task pretrain"),
    _option("batch-zero", "--train_batch_size 0", "--train_batch_size is 0: it must be at least 1"),
    _option("eval-batch-zero", "--eval_batch_size 0", "--eval_batch_size is 0: it must be at least 1"),
    _option("batch-negative", "--train_batch_size -8", "--train_batch_size is -8: it must be at least 1"),
    _option("parts-zero", "--steps_per_update 0", "--steps_per_update is 0: it must be at least 1"),
    _option("parts-odd", "--train_batch_size 32 --steps_per_update 5", "32 is not a multiple of --steps_per_update 5"),
    _option("steps-zero", "--num_train_steps 0", "--num_train_steps is 0: it must be at least 1"),
    _option("checkpoints-zero", "--keep_checkpoint_max 0", "--keep_checkpoint_max is 0: it must be at least 1"),
    _option("save-never", "--save_checkpoints_steps 0", "--save_checkpoints_steps is 0: it must be at least 1"),
    _option("shuffle-buffer-zero", "--shuffle_buffer 0", "--shuffle_buffer is 0: it must be at least 1"),
    _option("seed-negative", "--seed -1", "--seed is -1: it must be at least 0"),
    _option("devices-zero", "--num_devices 0", "--num_devices is 0: it must be at least 1"),
    _option("length-zero", "--max_seq_length 0", "--max_seq_length is 0: it must be at least 1"),
    _option("predictions-many", "--max_seq_length 4 --max_predictions_per_seq 5", "5 exceeds --max_seq_length 4"),
    _option("labels-zero", "--task classify --num_labels 0", "--num_labels is 0: it must be at least 1"),
    _option("preset-misspelt", "--preset tinny", "--preset tinny: there is no such preset; choose one of tiny, mini"),
    _option("two-models", "--bert_config_file x.json", "--bert_config_file and --preset both name the model; give one"),
    _option(
        "vocab-size-small", "--vocab_size 100", r"vocab\.txt: this vocabulary has 30522 tokens, but the model only 100"
    ),
    _option("watch-alone", "--watch", "--watch goes with --eval_only"),
    _option("checkpoint-alone", "--checkpoint x", "--checkpoint goes with --eval_only"),
    _option("eval-only-without-file", "--eval_only", "--eval_only needs --eval_file"),
    _option("dry-run-alone", "--dry_run", "--dry_run goes with --launcher"),
    _option("launcher-file-alone", "--launcher_file x.yaml", "--launcher_file goes with --launcher"),
    _option("process-alone", "--process_id 1", "--process_id goes with --coordinator"),
    _option("coordinator-without-port", "--coordinator localhost", "--coordinator is localhost: it must be HOST:PORT"),
    _option(
        "coordinator-port", "--coordinator localhost:70000", "--coordinator is localhost:70000: it must be HOST:PORT"
    ),
    _option("coordinator-unknown", "--coordinator no-host.invalid:1", "there is no host no-host.invalid"),
    _option(
        "process-beyond",
        "--coordinator localhost:1234 --num_processes 2 --process_id 2",
        "--process_id is 2: it must be at least 0 and below --num_processes, 2",
    ),
    _option("vocab-empty", "--vocab_file ''", "--vocab_file is empty"),
    _option("vocab-missing", "--vocab_file gone.txt", r"gone\.txt: this input does not exist"),
    _option("vocab-is-text", "--vocab_file book.txt", r"book\.txt: .* missing from this vocabulary"),
    _option(
        "checkpoint-missing", "--init_checkpoint gone/model.ckpt", r"gone/model\.ckpt: there is no such checkpoint"
    ),
    _option(
        "checkpoint-unknown-scheme", "--init_checkpoint foo://host/x", "foo:// is unknown; give a local path, or one of"
    ),
]

_FILES = [
    Mistake(
        name="train-without-model",
        command="train --input_file examples.tfrecord --output_dir run --num_warmup_steps 0",
        says="No model was named: give --preset",
    ),
    Mistake(name="train-without-input", command="train --output_dir run --preset tiny", says="--input_file is missing"),
    Mistake(name="train-without-output", command="train --input_file x --preset tiny", says="--output_dir is missing"),
    Mistake(
        name="train-input-missing",
        command=f"{_NO_INPUT} --input_file 'gone-*'",
        says=r"gone-\*: no examples match; check the path",
    ),
    Mistake(
        name="train-input-directory",
        command=f"{_NO_INPUT} --input_file .",
        says="this directory has no manifest.json, .* name the examples in it",
    ),
    Mistake(
        name="train-input-text", command=f"{_NO_INPUT} --input_file book.txt", says="this is no TFRecord of examples"
    ),
    Mistake(
        name="train-input-dump", command=f"{_NO_INPUT} --input_file dump.xml", says="this is no TFRecord of examples"
    ),
    Mistake(name="train-eval-text", command=f"{_RUN} --eval_file book.txt", says="this is no TFRecord of examples"),
    Mistake(name="train-eval-vocabulary", command=f"{_RUN} --eval_file vocab.txt", says="no examples match"),
    Mistake(name="train-eval-missing", command=f"{_RUN} --eval_file gone", says="gone: no examples match"),
    Mistake(
        name="train-input-elsewhere",
        command=f"{_NO_INPUT} --input_file foo://host/x.tfrecord",
        says="foo:// is unknown; give a local path, or one of",
    ),
    Mistake(
        name="train-tsv-for-pretraining",
        command=f"{_NO_INPUT} --input_file train.tsv",
        says=r"train\.tsv: TSV files go with --task classify",
        files={"train.tsv": b"text\tlabel\ngood\t1\n"},
    ),
    Mistake(
        name="train-tsv-without-vocabulary",
        command="train --task classify --input_file train.tsv --output_dir run --preset tiny --num_warmup_steps 0",
        says=r"train\.tsv: a TSV file must be tokenized; give --vocab_file",
        files={"train.tsv": b"text\tlabel\ngood\t1\n"},
    ),
    Mistake(name="train-output-empty", command=f"{_GOOD} --output_dir=''", says="--output_dir is empty"),
    Mistake(name="train-output-blank", command=f"{_GOOD} --output_dir ' '", says="--output_dir is empty"),
    Mistake(
        name="train-output-is-file",
        command=f"{_GOOD} --output_dir book.txt",
        says=r"--output_dir book\.txt: there is a file of this name; name a directory",
    ),
    Mistake(
        name="train-output-below-file",
        command=f"{_GOOD} --output_dir book.txt/run",
        says=r"--output_dir book\.txt/run: there is a file of this name",
    ),
    Mistake(
        name="train-output-cannot-be-made",
        command=f"{_GOOD} --output_dir /proc/maskmill/run",
        says="--output_dir /proc/maskmill/run: nothing can be written there",
    ),
    Mistake(
        name="train-output-is-loop",
        command=f"{_GOOD} --output_dir loop",
        says="--output_dir loop: ",
        files={"loop": _loop},
    ),
    Mistake(
        name="train-output-on-the-web",
        command=f"{_GOOD} --output_dir https://host/run",
        says="https://host/run: web addresses are neither read nor written",
    ),
    Mistake(
        name="train-vocabulary-larger-than-model",
        command="train --input_file examples.tfrecord --output_dir run --num_warmup_steps 0 --vocab_file vocab.txt "
        "--bert_config_file bert.json",
        says=r"vocab\.txt: this vocabulary has 30522 tokens, but the model only 500",
        files={"bert.json": json.dumps(_CONFIG | {"vocab_size": 500}).encode()},
    ),
    _option(
        "two-vocabularies", "--tokenizer_file t.json", "--vocab_file and --tokenizer_file both name the vocabulary"
    ),
    Mistake(
        name="train-tokenizer-is-vocabulary",
        command=f"{_CONFIGURED} bert.json --tokenizer_file vocab.txt",
        says=r"vocab\.txt: this is not JSON; --tokenizer_file wants the tokenizer\.json",
        files={"bert.json": json.dumps(_CONFIG).encode()},
    ),
    Mistake(
        name="train-tokenizer-larger-than-model",
        command=f"{_CONFIGURED} bert.json --tokenizer_file t.json",
        says=r"t\.json: this vocabulary has 6 tokens, but the model only 5",
        files={"bert.json": json.dumps(_CONFIG | {"vocab_size": 5}).encode(), "t.json": tokenizer_json(NAMES)},
    ),
    Mistake(
        name="train-tsv-with-tokenizer",
        command="train --task classify --input_file train.tsv --output_dir run --preset tiny --num_warmup_steps 0 "
        "--tokenizer_file t.json",
        says=r"train\.tsv: a TSV file must be tokenized; give --vocab_file",
        files={"train.tsv": b"text\tlabel\ngood\t1\n", "t.json": tokenizer_json(NAMES)},
    ),
    Mistake(
        name="build-with-misspelt-preset",
        command="build demo.yaml",
        says="there is no such preset; choose one of tiny, mini",
        files={
            "demo.yaml": b"output: build\nextract: {input: dump.xml}\nexamples: {vocab_file: vocab.txt}\n"
            b"train: {preset: tinny, num_train_steps: 4, num_warmup_steps: 0}\n"
        },
    ),
    Mistake(
        name="build-without-model",
        command="build demo.yaml",
        says="No model was named: give --preset",
        files={
            "demo.yaml": b"output: build\nextract: {input: dump.xml}\nexamples: {vocab_file: vocab.txt}\n"
            b"train: {num_train_steps: 4, num_warmup_steps: 0}\n"
        },
    ),
]

_CONFIGS = [
    _config("not-json", "{", "this model configuration is not JSON"),
    _config("list", "[]", "this model configuration has no vocab_size"),
    _config("nested", "[" * 100000, "this model configuration is not JSON"),
    _config("latin1", '{"vocab_size": "é"}', "vocab_size is 'é': it must be a whole number"),
    _config("size-text", {"hidden_size": "768"}, "hidden_size is '768': it must be a whole number"),
    _config("size-fraction", {"hidden_size": 16.5}, "hidden_size is 16.5: it must be a whole number"),
    _config("size-zero", {"num_hidden_layers": 0}, "num_hidden_layers is 0: it must be at least 1"),
    _config("size-huge", {"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000: .* at most 16,777,216"),
    _config("heads", {"num_attention_heads": 3}, "16 is not a multiple of num_attention_heads 3"),
    _config("dropout", {"hidden_dropout_prob": 1.5}, "hidden_dropout_prob is 1.5"),
    _config("epsilon", {"layer_norm_eps": -1}, "layer_norm_eps is -1: it must be above 0"),
    _config("activation", {"hidden_act": "swish"}, "hidden_act is 'swish'"),
    _config("gpt", {"model_type": "gpt2"}, "only bert, roberta, albert, modernbert encoders can be trained"),
    _config("albert", {"embedding_size": 8}, "embedding_size 8 differs from hidden_size 16"),
    _config("relative", {"position_embedding_type": "relative_key"}, "only models with absolute positions"),
    Mistake(
        name="train-config-missing",
        command=f"{_CONFIGURED} gone.json",
        says=r"gone\.json: this input does not exist",
    ),
    Mistake(
        name="train-config-directory",
        command=f"{_CONFIGURED} .",
        says="cannot be read",
    ),
]

_CONVERSIONS = [
    Mistake(
        name="convert-with-two-vocabularies",
        command=f"{_CONVERT} huggingface --input model --vocab_file vocab.txt --tokenizer_file t.json",
        says="--vocab_file and --tokenizer_file both name the vocabulary",
    ),
    Mistake(
        name="convert-tokenizer-to-tf1",
        command=f"{_CONVERT} tf1 --input model --tokenizer_file t.json",
        says="--tokenizer_file goes with --format huggingface; leave it out",
    ),
    Mistake(name="convert-missing", command=f"{_CONVERT} tf1 --input gone", says="gone: there is no such checkpoint"),
    Mistake(
        name="convert-over-its-input",
        command="convert-checkpoint --format maskmill --input a.safetensors --output ./a.safetensors",
        files={"a.safetensors": b"weights"},
        says="this output is also the input a.safetensors; name another file",
    ),
    Mistake(
        name="convert-over-its-input-by-a-link",
        command="convert-checkpoint --format huggingface --input model --output link",
        files={"model/config.json": b"{}", "link": lambda path: path.symlink_to("model")},
        says="this output is also the input model; name another file",
    ),
    Mistake(
        name="convert-over-its-configuration",
        command="convert-checkpoint --format tf1 --input examples.tfrecord --output a/b "
        "--bert_config_file a/bert_config.json",
        files={"a/bert_config.json": b"{}"},
        says="this output is also the input a/bert_config.json; name another file",
    ),
    Mistake(
        name="convert-into-the-directory-of-its-input",
        command="convert-checkpoint --format tf1 --input a/model.safetensors --output a/model",
        files={"a/bert_config.json": b"{}", "a/model.safetensors": b"weights"},
        says="this is the directory of the input",
    ),
    Mistake(name="convert-empty-input", command=f"{_CONVERT} tf1 --input ''", says="--input is empty"),
    Mistake(
        name="convert-unreadable",
        command=f"{_CONVERT} tf1 --input loop",
        says=r"loop: this checkpoint cannot be read \(Too many levels",
        files={"loop": _loop},
    ),
    Mistake(
        name="convert-output-is-directory",
        command="convert-checkpoint --format tf1 --input examples.tfrecord --output folder",
        says="--output folder is a directory; name the prefix",
        files={"folder/x": b""},
    ),
    Mistake(
        name="convert-output-is-file",
        command="convert-checkpoint --format huggingface --input examples.tfrecord --output book.txt",
        says=r"--output book\.txt: there is a file of this name",
    ),
    Mistake(
        name="convert-maskmill-name",
        command=f"{_CONVERT} maskmill --input examples.tfrecord",
        says="for --format maskmill, name a file",
    ),
    Mistake(
        name="convert-vocabulary-of-tf1",
        command=f"{_CONVERT} tf1 --input examples.tfrecord --vocab_file vocab.txt",
        says="--vocab_file goes with --format huggingface",
    ),
    Mistake(
        name="convert-labels-twice",
        command=f"{_CONVERT} huggingface --input examples.tfrecord --labels a,a",
        says="--labels a,a: a name comes twice",
    ),
    Mistake(
        name="convert-config-not-json",
        command=f"{_CONVERT} tf1 --input examples.tfrecord --bert_config_file book.txt",
        says=r"book\.txt: this model configuration is not JSON",
    ),
    Mistake(
        name="convert-config-packed",
        command=f"{_CONVERT} tf1 --input examples.tfrecord --bert_config_file bert.json",
        says=r"bert\.json: this model configuration is not JSON",
        files={"bert.json": gzip.compress(b"{}", mtime=0)},
    ),
    Mistake(name="convert-unknown-scheme", command=f"{_CONVERT} tf1 --input foo://b/x", says="foo:// is unknown"),
]

MISTAKES = [*_OPTIONS, *_FILES, *_CONFIGS, *_CONVERSIONS]
MISTAKES = [dataclasses.replace(row, command=each_flag_once(row.command)) for row in MISTAKES]
