"""Options that do not go together, and their flags."""

import pytest

from maskmill.errors import UnusableInputError
from pipelines.settings import flags
from pipelines.settings import options as option_tools
from training import launchers
from training.options import ConvertOptions, TrainOptions

GIVEN = {"output_dir": "run", "input_file": ("part-*",)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_batch_size": 0}, "--train_batch_size is 0: it must be at least 1"),
        ({"max_seq_length": 0}, "--max_seq_length is 0: it must be at least 1"),
        ({"train_batch_size": 30, "steps_per_update": 4}, "--train_batch_size 30 is not a multiple of --steps_per_up"),
        ({"bert_config_file": "x", "preset": "tiny"}, "both name the model; give one"),
        ({"watch": True}, "--watch goes with --eval_only"),
        ({"checkpoint": "x"}, "--checkpoint goes with --eval_only"),
        ({"eval_only": True}, "--eval_only needs --eval_file"),
        ({"eval_only": True, "eval_file": ("x",), "watch": True, "checkpoint": "x"}, "leave --checkpoint out"),
        ({"input_file": ()}, "--input_file is missing"),
        ({"task": "classify", "target_masked_lm_accuracy": 0.7}, "goes with --task pretrain"),
        ({"dry_run": True}, "--dry_run goes with --launcher"),
        ({"coordinator": "node0"}, "--coordinator is node0: it must be HOST:PORT"),
        ({"coordinator": "node0:1", "coordinator_timeout": 0}, "--coordinator_timeout is 0: it must be a number of s"),
        ({"coordinator": "node0:1", "process_id": -1}, "--process_id is -1: it must be at least 0"),
        ({"coordinator": "node0:1", "process_id": 2, "num_processes": 2}, "--process_id is 2: it must be at least 0"),
        ({"seed": -1}, "--seed is -1"),
        ({"seed": 2**31}, "--seed is 2147483648"),
        ({"output_dir": ""}, "--output_dir is empty"),
        ({"output_dir": " "}, "--output_dir is empty"),
        ({"vocab_file": ""}, "--vocab_file is empty"),
        ({"input_file": ("",)}, "--input_file is empty"),
        ({"preset": "tinny"}, "--preset tinny: there is no such preset; choose one of tiny, mini"),
        ({"vocab_size": 9}, "--vocab_size goes with --preset"),
        ({"learning_rate": -1.0}, "--learning_rate is -1.0: it must be above 0"),
        ({"learning_rate": 0.0}, "--learning_rate is 0.0: it must be above 0"),
        ({"learning_rate": float("nan")}, "--learning_rate is nan: it must be above 0"),
        ({"learning_rate": float("inf")}, "--learning_rate is inf"),
        ({"num_warmup_steps": -5}, "--num_warmup_steps is -5: it must be at least 0"),
        ({"num_warmup_steps": 11, "num_train_steps": 10}, "The warm-up ends at step 11 .* but the run at step 10"),
        ({"num_train_steps": 10}, "The warm-up ends at step 10000"),
        ({"start_warmup_step": 5}, "--start_warmup_step is 5: it must be at most 0"),
        ({"poly_power": -1.0}, "--poly_power is -1.0"),
        ({"weight_decay_rate": -0.1}, "--weight_decay_rate is -0.1"),
        ({"lamb_beta_1": -0.1}, "--lamb_beta_1 is -0.1: it must be at least 0 and below 1"),
        ({"lamb_beta_2": 2.0}, "--lamb_beta_2 is 2.0: it must be at least 0 and below 1"),
        ({"log_epsilon": 6}, "--log_epsilon is 6: it must be from -38 to 0"),
        ({"target_masked_lm_accuracy": float("nan"), "eval_file": ("x",)}, "accuracy is nan: it must be from 0 to 1"),
        ({"target_masked_lm_accuracy": 72.0, "eval_file": ("x",)}, "accuracy is 72.0: it must be from 0 to 1"),
        ({"target_masked_lm_accuracy": 0.7}, "--target_masked_lm_accuracy needs --eval_file"),
        ({"watched": True}, "--watched goes with a training and its --target_masked_lm_accuracy"),
        (
            {"watched": True, "eval_only": True, "eval_file": ("x",), "target_masked_lm_accuracy": 0.7},
            "--watched goes with a training",
        ),
        ({"max_seq_length": 8, "max_predictions_per_seq": 9}, "--max_predictions_per_seq 9 exceeds --max_seq_length 8"),
        (
            {"task": "classify", "max_seq_length": 16, "max_query_length": 9, "max_document_length": 8},
            "--max_query_length 9 and --max_document_length 8 together exceed --max_seq_length 16",
        ),
        ({"launcher_file": "x.yaml"}, "--launcher_file goes with --launcher"),
        ({"num_processes": 2}, "--num_processes goes with --coordinator"),
        ({"process_id": 0}, "--process_id goes with --coordinator"),
        ({"backend": "tensorflow", "sharding": "zero1"}, "--sharding needs --backend jax"),
        ({"backend": "tensorflow", "reduce_dtype": "bfloat16"}, "--reduce_dtype needs --backend jax"),
        ({"backend": "tensorflow", "rematerialize": True}, "--rematerialize needs --backend jax"),
        ({"unpad": True, "task": "classify"}, "--unpad goes with --task pretrain"),
        ({"unpad": True, "coordinator": "node0:1"}, "--unpad goes with one host"),
        ({"unpad": True, "clip_by_global_norm_after_gradient_allreduce": False}, "clipped after the average"),
        ({"coordinator": "host:port"}, "--coordinator is host:port: it must be HOST:PORT"),
        ({"coordinator": "host:99999"}, "--coordinator is host:99999: it must be HOST:PORT"),
    ],
)
def test_options_that_do_not_go_together(changes, message):
    with pytest.raises(UnusableInputError, match=message):
        TrainOptions(**(GIVEN | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"input": ""}, "--input is empty"),
        ({"output": ""}, "--output is empty"),
        ({"format": "maskmill"}, "for --format maskmill, name a file"),
        ({"vocab_file": "vocab.txt"}, "--vocab_file goes with --format huggingface"),
        ({"do_lower_case": False}, "--do_lower_case goes with --format huggingface"),
        ({"labels": ("no", "yes")}, "--labels goes with --format huggingface"),
        ({"format": "huggingface", "labels": ("no", "no")}, "--labels no,no: a name comes twice"),
        ({"format": "huggingface", "vocab_file": "a", "tokenizer_file": "b"}, "both name the vocabulary"),
        (
            {"format": "huggingface", "tokenizer_file": "b", "do_lower_case": True},
            "--do_lower_case goes with --vocab_file",
        ),
    ],
)
def test_conversions_that_do_not_go_together(changes, message):
    with pytest.raises(UnusableInputError, match=message):
        ConvertOptions(**({"input": "in", "output": "out", "format": "tf1"} | changes))


def test_flags_give_the_same_options_again():
    given = TrainOptions(**GIVEN, shuffle=False, learning_rate=0.00288293, start_warmup_step=-76, preset="base")
    line = flags.parse(launchers.flags(given), option_tools.options_of(TrainOptions))
    assert option_tools.from_flags(TrainOptions, line.values) == given
