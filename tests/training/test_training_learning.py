"""A tiny BERT learns more from the sample dump's text than frequencies explain, in under three minutes."""

import gzip
import json
from pathlib import Path

import pytest
from training_helpers import BACKEND, logged

from benchmarks.learning import baselines, write_frequent_pieces
from training import command
from training.options import TrainOptions

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.skipif(BACKEND == "tensorflow", reason="minutes; the gold traces show that both learn alike"),
]

DATA = Path(__file__).resolve().parents[1] / "data"
PIECES = 2000
# On short sequences a model soon learns to use the words around a mask (see benchmarks/learning.py).
LENGTH, PREDICTIONS = 16, 3


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    """The text of 99 articles for training and 7 for evaluation, masked with a vocabulary of about 2,300 pieces."""
    from maskmill.masking.options import MaskingOptions
    from pipelines.commands import record_files
    from pipelines.settings.command_options import CreatePretrainingDataOptions

    directory = tmp_path_factory.mktemp("sample")
    for name in ("part-00000-of-00500", "part-00001-of-00500", "eval.txt"):
        (directory / name).write_bytes(gzip.decompress((DATA / f"gold/cleanup/{name}.gz").read_bytes()))
    texts = [str(directory / f"part-0000{i}-of-00500") for i in range(2)]
    write_frequent_pieces(texts, PIECES, str(directory / "vocab.txt"))
    for output, inputs in (("train.tfrecord", texts), ("eval.tfrecord", [str(directory / "eval.txt")])):
        options = CreatePretrainingDataOptions(
            input_file=tuple(inputs),
            output_file=(str(directory / output),),
            vocab_file=str(directory / "vocab.txt"),
            masking=MaskingOptions(max_seq_length=LENGTH, max_predictions_per_seq=PREDICTIONS, dupe_factor=5),
        )
        record_files.create(options)
    return directory


def test_a_tiny_bert_learns_from_the_words_around(examples, tmp_path):
    model = {
        "vocab_size": len((examples / "vocab.txt").read_text().splitlines()),
        "hidden_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 256,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "max_position_embeddings": LENGTH,
    }
    (tmp_path / "bert_config.json").write_text(json.dumps(model))
    command.run(
        TrainOptions(
            output_dir=str(tmp_path / "run"),
            input_file=(str(examples / "train.tfrecord"),),
            eval_file=(str(examples / "eval.tfrecord"),),
            bert_config_file=str(tmp_path / "bert_config.json"),
            vocab_file=str(examples / "vocab.txt"),
            train_batch_size=32,
            eval_batch_size=128,
            num_train_steps=4000,
            num_warmup_steps=500,
            learning_rate=1e-3,
            log_steps=500,
            eval_every_samples=1_000_000,
        )
    )
    first, last = (x["masked_lm_accuracy"] for x in logged(tmp_path / "run") if x["event"] == "eval")
    baseline = baselines(str(examples / "eval.tfrecord"))
    print(f"masked-LM accuracy: {first:.4f} before, {last:.4f} after; {baseline}")
    assert first < baseline.token
    assert last >= baseline.token + 0.03
    # The tokens that are left unchanged do not explain it either.
    assert last >= baseline.kept + 0.02
