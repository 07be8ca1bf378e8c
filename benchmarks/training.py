"""Compares the speed of `maskmill train` with Hugging Face on PyTorch, on the same batches.

    .venv-training/bin/python benchmarks/training.py                          # BERT-base and large at 128 and 512
    .venv-training/bin/python benchmarks/training.py --torch_python PATH      # also Hugging Face, with that Python
    .venv-training/bin/python benchmarks/training.py --models tiny --lengths 64 --batch 8 --dtype float32   # on a CPU

The systems run in turn, each in a process of its own, `--rounds` times; the median counts, as does the median of three
runs of `--steps` steps in a process. Both train BERT with both losses (ModernBERT with that of masked words), AdamW and
`--dropout`, on random tokens in `--dtype`. Hugging Face runs with `attn_implementation="sdpa"`, `torch.compile` and a
fused AdamW. The output gives rows and real tokens a second, the most memory that arrays took on a GPU, and the model's
FLOP/s as a share of `--peak_tflops`, the chip's dense bfloat16 peak (H100 SXM 989, H200 989, A100 312, TPU v5e 197, v5p
459). With `--shortest 0.25`, sequences have between a quarter and all of the length; padding counts neither as tokens
nor as FLOPs. With `--packed`, maskmill has the same sequences packed, in as many rows of the length as `--batch` says.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def random_batch(count: int, length: int, vocab: int, shortest: float = 1.0) -> dict[str, Any]:
    """Return features of `count` examples of random tokens, under the names of create_pretraining_data.py's records.

    Shapes are [count, length], [count, predictions] and [count]; all are int32, but `masked_lm_weights` is float32. An
    example has from `shortest` * `length` to `length` tokens, and a mask for 15 % of them.
    """
    import numpy as np

    draw = np.random.default_rng(0)
    predictions = round(0.15 * length)
    lengths = draw.integers(round(shortest * length), length + 1, (count, 1))
    order = np.where(np.arange(length) < lengths, draw.random((count, length)), 2).argsort(axis=1)
    return {
        "input_ids": draw.integers(0, vocab, (count, length), np.int32),
        "input_mask": (np.arange(length) < lengths).astype(np.int32),
        "segment_ids": draw.integers(0, 2, (count, length), np.int32),
        "masked_lm_positions": order[:, :predictions].astype(np.int32),
        "masked_lm_ids": draw.integers(0, vocab, (count, predictions), np.int32),
        "masked_lm_weights": (np.arange(predictions) < np.rint(0.15 * lengths)).astype(np.float32),
        "next_sentence_labels": draw.integers(0, 2, count, np.int32),
    }


def measure_maskmill(
    model: dict[str, Any], length: int, batch: int, steps: int, dtype: str, shortest: float, is_packed: bool
) -> tuple[float, int]:
    """Return seconds that a training step of maskmill takes on JAX, and the most bytes that a GPU's arrays took."""
    from training import devices
    from training.options import TrainOptions

    devices.select_backend("jax")
    used = devices.start(TrainOptions(output_dir=".", input_file=(".",), backend="jax", dtype=dtype))
    from training import inputs, optimizers, tasks
    from training import steps as training_steps
    from training.config import ModelConfig
    from training.model import pretraining_model

    config = ModelConfig(**model)
    task = tasks.PretrainingTask(pretraining_model(config, next_sentence=config.has_segments))
    made = training_steps.make_steps(task, optimizers.AdamW(1e-4), used)
    examples = random_batch(batch, length, model["vocab_size"], shortest)
    if is_packed:
        examples = inputs.ArrayMaker(inputs.pretraining_features(length, 1), hosts=1, unpad=1)(examples)
    arrays = {k: v[None] for k, v in examples.items()}
    seconds = _timed(lambda: float(made.train(arrays)["loss"]), lambda: made.train(arrays), steps)
    return seconds, used.peak_memory() or 0


def measure_hugging_face(
    model: dict[str, Any], length: int, batch: int, steps: int, dtype: str, shortest: float, is_packed: bool
) -> tuple[float, int]:
    """Return seconds that a step of Hugging Face's model takes on PyTorch, and the most bytes on a GPU.

    It has no packed rows: it takes the same examples padded.
    """
    import torch
    from transformers import AutoConfig, BertForPreTraining, ModernBertForMaskedLM

    from training.config import ModelConfig

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")
    ours = ModelConfig(**model)
    config = AutoConfig.for_model(**ours.to_hugging_face())
    config._attn_implementation = "sdpa"
    made = (BertForPreTraining if ours.has_segments else ModernBertForMaskedLM)(config)
    network: Any = torch.compile(made.to(device).train(), dynamic=False)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4, fused=device == "cuda")
    arrays = random_batch(batch, length, model["vocab_size"], shortest)
    labels = torch.full((batch, length), -100)
    is_mask = torch.tensor(arrays["masked_lm_weights"]) > 0
    ids = torch.where(is_mask, torch.tensor(arrays["masked_lm_ids"]).long(), -100)
    labels.scatter_(1, torch.tensor(arrays["masked_lm_positions"]).long(), ids)
    inputs = {
        "input_ids": torch.tensor(arrays["input_ids"]).long(),
        "labels": labels,
    }
    if ours.has_segments:
        inputs["token_type_ids"] = torch.tensor(arrays["segment_ids"]).long()
        inputs["next_sentence_label"] = torch.tensor(arrays["next_sentence_labels"]).long()
    if shortest < 1:
        inputs["attention_mask"] = torch.tensor(arrays["input_mask"]).long()
    inputs = {name: value.to(device) for name, value in inputs.items()}

    def step() -> Any:
        with torch.autocast(device, torch.bfloat16, enabled=dtype == "bfloat16"):
            loss = network(**inputs).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    seconds = _timed(lambda: float(step().detach()), step, steps)
    return seconds, torch.cuda.max_memory_allocated() if device == "cuda" else 0


def _timed(wait: Any, step: Any, steps: int) -> float:
    """Return seconds a step, the median of three runs. `step` starts one; `wait` runs one and waits for its loss."""
    wait(), wait()  # these compile
    measured = []
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(steps - 1):
            step()
        wait()
        measured.append((time.perf_counter() - start) / steps)
    return statistics.median(measured)


def main() -> None:
    """Print the machine and the speeds; with --measure, measures one system in this process."""
    sys.path.insert(0, str(ROOT))
    from training import flops
    from training.config import PRESETS, ModelConfig

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="base,large", help="presets")
    parser.add_argument("--lengths", default="128,512", help="sequence lengths")
    parser.add_argument("--batch", type=int, help="examples in a batch (default: 16,384 tokens)")
    parser.add_argument("--steps", type=int, default=20, help="steps that are timed")
    parser.add_argument("--rounds", type=int, default=3, help="how often each system is measured")
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float32"))
    parser.add_argument("--dropout", type=float, default=0.1, help="of hidden states")
    parser.add_argument("--attention_dropout", type=float, default=0.1, help="of attention's probabilities")
    parser.add_argument("--shortest", type=float, default=1.0, help="the shortest row as a share of the length")
    parser.add_argument("--packed", action="store_true", help="pack the sequences of maskmill's rows")
    parser.add_argument("--peak_tflops", type=float, help="the chip's dense bfloat16 peak")
    parser.add_argument("--torch_python", help="a Python with torch and transformers; without it, maskmill alone")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        task = json.loads(options.measure)
        function = {"maskmill": measure_maskmill, "Hugging Face": measure_hugging_face}[task.pop("system")]
        print(json.dumps(function(**task)))
        return
    # Imported here: PyTorch's environment, which runs the lines above, has no psutil.
    from benchmarks.measure import TRAINING_LIBRARIES, print_machine

    print_machine(TRAINING_LIBRARIES)
    systems = {"maskmill": sys.executable}
    if options.torch_python:
        systems["Hugging Face"] = options.torch_python
    for name in options.models.split(","):
        for length in map(int, options.lengths.split(",")):
            model = PRESETS[name] | {
                "hidden_dropout_prob": options.dropout,
                "attention_probs_dropout_prob": options.attention_dropout,
                "max_position_embeddings": max(512, length),
            }
            batch = options.batch or max(1, 16384 // length)
            if options.packed:
                batch = round(2 * batch / (1 + options.shortest))
            common = {
                "model": model, "length": length, "batch": batch, "steps": options.steps, "dtype": options.dtype,
                "shortest": options.shortest, "is_packed": options.packed,
            }  # fmt: skip
            examples = random_batch(batch, length, model["vocab_size"], options.shortest)
            lengths, masks = flops.sequence_lengths(examples), float(examples["masked_lm_weights"].sum())
            tokens, work = int(lengths.sum()), flops.of_step(ModelConfig(**model), lengths, masks)
            results: dict[str, list[tuple[float, int]]] = {system: [] for system in systems}
            for _ in range(options.rounds):
                for system, python in systems.items():
                    task = json.dumps({"system": system, **common})
                    line = subprocess.run(
                        [python, __file__, "--measure", task], stdout=subprocess.PIPE, text=True, check=True
                    ).stdout
                    results[system].append(json.loads(line.splitlines()[-1]))
            for system, measured in results.items():
                seconds = statistics.median(second for second, _ in measured)
                told = f"{batch / seconds:,.0f} sequences/s, {tokens / seconds:,.0f} tokens/s"
                if memory := max(memory for _, memory in measured):
                    told += f", {memory / 2**30:.1f} GiB"
                if options.peak_tflops:
                    told += f", {100 * work / seconds / (options.peak_tflops * 1e12):.1f} % of peak"
                print(f"{name} {length} x {batch} {options.dtype}: {system} {told}", flush=True)


if __name__ == "__main__":
    main()
