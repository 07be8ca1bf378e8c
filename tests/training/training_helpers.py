"""Helpers of the training tests."""

import json
import os
from pathlib import Path

BACKEND = os.environ.get("KERAS_BACKEND", "jax")
DATA = Path(__file__).parent.parent / "data"
GOLD = DATA / "training"
CHECKPOINT = GOLD / "tf1_ckpt" / "model.ckpt-0"
ROBERTA = {"model_type": "roberta", "hidden_act": "gelu_erf", "type_vocab_size": 1, "layer_norm_eps": 1e-5}


def device_options(**options):
    """Options of a training that say something of its devices only."""
    from training.options import TrainOptions

    return TrainOptions(output_dir="nowhere", input_file=("nothing",), **options)


def devices(count: int | None = None, dtype: str = "float32"):
    """Starts devices of this process's backend."""
    from training.devices import start

    return start(device_options(backend=BACKEND, num_devices=count, dtype=dtype))


def batch_of(path: str, start: int, count: int) -> dict:
    """Examples [start, start + count) of a file of gold examples."""
    import numpy as np

    import maskmill

    with maskmill.open(path, batch_size=1) as examples:
        batch = examples.rows_of(np.arange(start, start + count))
    return batch | {"next_sentence_labels": batch["next_sentence_labels"].reshape(-1)}


def small_config(**changes):
    """A model that compiles in a second or two."""
    from training.config import ModelConfig

    sizes = {
        "vocab_size": 500,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "max_position_embeddings": 64,
        "initializer_range": 0.1,
    }
    return ModelConfig(**(sizes | changes))


def write_config(folder, name="bert_config.json", **changes) -> str:
    """Writes the configuration of a small model for BERT's vocabulary; its path."""
    config = small_config(**({"vocab_size": 30522, "max_position_embeddings": 128} | changes))
    (folder / name).write_text(json.dumps(config.to_google()))
    return str(folder / name)


def logged(folder) -> list[dict]:
    """The lines of a run's log."""
    return [json.loads(line) for line in (Path(folder) / "log.jsonl").read_text().splitlines()]


def random_batch(count: int, *, seed: int = 0, length: int = 32, predictions: int = 5, vocab: int = 500) -> dict:
    """Examples of random tokens, with random numbers of tokens and predictions."""
    import numpy as np

    draw = np.random.default_rng(seed)
    mask = (np.arange(length) < draw.integers(8, length + 1, (count, 1))).astype(np.int32)
    weights = (np.arange(predictions) < draw.integers(1, predictions + 1, (count, 1))).astype(np.float32)
    return {
        "input_ids": draw.integers(0, vocab, (count, length), np.int32) * mask,
        "input_mask": mask,
        "segment_ids": draw.integers(0, 2, (count, length), np.int32) * mask,
        "masked_lm_positions": draw.integers(0, 8, (count, predictions), np.int32),
        "masked_lm_ids": draw.integers(0, vocab, (count, predictions), np.int32),
        "masked_lm_weights": weights,
        "next_sentence_labels": draw.integers(0, 2, count, np.int32),
    }


def packed(batch: dict, width: int, multiple: int = 1) -> dict:
    """The examples of a batch in rows of several, as a step takes them."""
    from training import inputs

    return inputs.ArrayMaker(inputs.pretraining_features(width, 5), hosts=1, unpad=multiple)(batch)


def make_steps(
    config,
    *,
    count=None,
    optimizer="lamb",
    seed=0,
    next_sentence=True,
    rate=0.01,
    dtype="float32",
    rematerialize=False,
    **how,
):
    """Steps of a new pre-training model on `count` devices."""
    import contextlib

    from training import optimizers, steps, tasks
    from training.model import pretraining_model

    used = devices(count, dtype)
    scope = contextlib.nullcontext() if used.strategy is None else used.strategy.scope()
    with scope:
        built = pretraining_model(config, next_sentence=next_sentence, seed=seed, rematerialize=rematerialize)
        made = {"lamb": optimizers.Lamb, "adamw": optimizers.AdamW}[optimizer](rate)
        return steps.make_steps(tasks.PretrainingTask(built), made, used, steps.StepOptions(**how), seed=seed)


def parted(batch: dict, parts: int) -> dict:
    """A batch in parts: [parts, examples, …]."""
    return {name: value.reshape(parts, -1, *value.shape[1:]) for name, value in batch.items()}


def run_steps(steps, batches, parts: int = 1) -> tuple[list[float], dict]:
    """Trains on batches. Returns the losses and the weights."""
    losses = [float(steps.train(parted(batch, parts))["loss"]) for batch in batches]
    steps.store()
    return losses, steps.task.built.values()
