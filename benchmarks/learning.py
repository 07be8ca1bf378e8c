"""A tiny BERT trained from a dump on, and its curve: what docs/training.md shows.

    .venv-training/bin/python -m benchmarks.learning run DUMP DIRECTORY       # build, then train on one CPU core
    .venv-training/bin/python -m benchmarks.learning draw DIRECTORY docs/learning.svg    # needs matplotlib

`run` extracts the dump, writes a vocabulary of the most frequent pieces of BERT's, builds examples of 128 tokens and
trains; what is finished is kept, so that the same command goes on after an interruption. `draw` reads the training's
log, draws the curve and prints the figures beside what always saying the most frequent answer gets right.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
VOCABULARY = ROOT / "tests" / "data" / "vocab.txt"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LENGTH, PREDICTIONS, BATCH = 128, 20, 32


def write_frequent_pieces(texts: Sequence[str], count: int, path: str) -> int:
    """Writes a vocabulary of BERT's `count` most frequent pieces in some text shards. Returns its size.

    All single characters of the text are in it, too, so that every word still has pieces.
    """
    from transforms.tokenization import Tokenizer
    from transforms.vocabulary import load_vocabulary

    whole = load_vocabulary(str(VOCABULARY))
    counts = np.zeros(whole.size, np.int64)
    for text in texts:
        counts += np.bincount(Tokenizer(whole).tokenize_files([text]).ids, minlength=whole.size)
    frequent = set(np.argsort(-counts, kind="stable")[:count].tolist())
    single = {i for i, piece in enumerate(whole.pieces) if len(piece.removeprefix("##")) == 1 and counts[i]}
    kept = [whole.pieces[i] for i in sorted(frequent | single) if whole.pieces[i] not in SPECIAL]
    Path(path).write_text("\n".join(SPECIAL + kept) + "\n", encoding="utf-8")
    return len(SPECIAL) + len(kept)


def run(dump: str, directory: Path, *, pieces: int, steps: int) -> None:
    """Builds the data set and trains."""
    text, vocabulary = directory / "text", str(directory / "vocab.txt")
    extract = {"input": dump, "num_eval_articles": 200, "shard_size_mb": 8}
    _maskmill("extract", *(f"--{k}={v}" for k, v in extract.items()), f"--output={text}")
    size = write_frequent_pieces(sorted(map(str, text.glob("part-*"))), pieces, vocabulary)
    model = {
        "vocab_size": size,
        "hidden_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 512,
        "max_position_embeddings": LENGTH,
        # So small a model on so much text has nothing to gain from dropout.
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    (directory / "bert_config.json").write_text(json.dumps(model))
    build = {
        "output": str(directory),
        "extract": extract,
        "examples": {
            "vocab_file": vocabulary,
            "max_seq_length": LENGTH,
            "max_predictions_per_seq": PREDICTIONS,
            "dupe_factor": 3,
        },
        "eval": {"num_examples_to_pick": 2000},
        "train": {
            "bert_config_file": str(directory / "bert_config.json"),
            "train_batch_size": BATCH,
            "eval_batch_size": 100,
            "num_train_steps": steps,
            "num_warmup_steps": 300,
            "learning_rate": 1.5e-3,
            "log_steps": 20,
            "eval_every_samples": 250 * BATCH,
            "save_checkpoints_steps": 500,
        },
    }
    (directory / "build.yaml").write_text(json.dumps(build, indent=2))  # JSON is YAML
    _maskmill("build", str(directory / "build.yaml"))


def _maskmill(*arguments: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-m", "maskmill", *arguments], cwd=ROOT, env=environment, check=True)


def baselines(path: str) -> tuple[float, float]:
    """What saying the most frequent token, and the most frequent next-sentence label, gets right in an eval set."""
    from training import inputs

    features = inputs.pretraining_features(LENGTH, PREDICTIONS)
    batches = list(inputs.evaluation_batches([path], features, batch=500))
    real = np.concatenate([b["example_weights"] > 0 for b in batches])
    labels = np.concatenate([b["next_sentence_labels"] for b in batches])[real]
    tokens = np.concatenate([b["masked_lm_ids"][b["masked_lm_weights"] > 0] for b in batches])
    return float(np.bincount(tokens).max() / len(tokens)), float(max(labels.mean(), 1 - labels.mean()))


def draw(directory: Path, picture: str) -> None:
    """Draws the curve, and prints its figures."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = "maskmill"  # the same log gives the same file
    log = [json.loads(line) for line in (directory / "train" / "log.jsonl").read_text().splitlines()]
    steps = [x for x in log if x["event"] == "train"]
    evaluations = [x for x in log if x["event"] == "eval"]
    token, label = baselines(str(directory / "eval" / "eval.tfrecord"))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.2), layout="constrained")

    def million_tokens(lines: list[dict[str, Any]]) -> list[float]:
        return [x["samples"] * LENGTH / 1e6 for x in lines]

    left.plot(million_tokens(steps), [x["masked_lm_loss"] for x in steps], color="0.75", lw=0.8, label="training")
    left.plot(million_tokens(evaluations), [x["masked_lm_loss"] for x in evaluations], label="evaluation")
    left.set(xlabel="million tokens", ylabel="masked-LM loss")
    left.legend(frameon=False)
    for name, baseline, colour in (("masked_lm", token, "C0"), ("next_sentence", label, "C1")):
        values = [x[f"{name}_accuracy"] for x in evaluations]
        right.plot(million_tokens(evaluations), values, color=colour, label=name.replace("_", " "))
        right.axhline(baseline, color=colour, ls=":", lw=1, label="most frequent answer")
    right.set(xlabel="million tokens", ylabel="accuracy", ylim=(0, 1))
    right.legend(frameon=False)
    figure.savefig(picture, metadata={"Date": None})
    last = evaluations[-1]
    speed = statistics.median(x["tokens_per_second"] for x in steps)
    print(
        f"step {last['step']}, {last['samples'] * LENGTH:,} tokens, {speed:,.0f} tokens/s (median): masked-LM accuracy "
        f"{last['masked_lm_accuracy']:.3f} (most frequent token {token:.3f}), next-sentence accuracy "
        f"{last['next_sentence_accuracy']:.3f} (most frequent label {label:.3f}); {picture}"
    )


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("run", help="build and train")
    command.add_argument("dump")
    command.add_argument("directory", type=Path)
    command.add_argument("--pieces", type=int, default=8000, help="size of the vocabulary")
    command.add_argument("--steps", type=int, default=5000, help=f"updates of {BATCH} sequences of {LENGTH} tokens")
    command = commands.add_parser("draw", help="draw the curve of a run, finished or not")
    command.add_argument("directory", type=Path)
    command.add_argument("picture")
    options = parser.parse_args()
    if options.command == "run":
        options.directory.mkdir(parents=True, exist_ok=True)
        run(options.dump, options.directory.resolve(), pieces=options.pieces, steps=options.steps)
    else:
        draw(options.directory, options.picture)


if __name__ == "__main__":
    main()
