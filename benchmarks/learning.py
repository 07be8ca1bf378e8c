"""Trains a tiny BERT, starting from a dump, and draws its learning curve for docs/training.md.

    .venv-training/bin/python -m benchmarks.learning run DUMP DIRECTORY       # build, then train
    .venv-training/bin/python -m benchmarks.learning draw DIRECTORY docs/learning.svg    # needs matplotlib

`run` extracts the dump and writes a vocabulary of the most frequent pieces of BERT's. It trains first on examples of
32 tokens, then from these weights on examples of 128. (A model must first learn to look at the words around a gap. With
128 tokens from the start this takes long: after 12 million tokens such a model had learned frequencies alone.) Finished
steps are kept, so after an interruption the same command goes on where it stopped.

`draw` reads the logs, draws the curve, and prints the accuracies beside those of always giving the most frequent
answer. Speeds are those of the machine on which `run` ran, which `run` prints and writes to machine.txt in DIRECTORY.
"""

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.measure import ROOT, TRAINING_LIBRARIES, VOCABULARY, describe_machine, print_machine

MACHINE = "machine.txt"  # in the folder of a run: the machine that it ran on
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Phase:
    """A training on examples of one length."""

    length: int
    predictions: int
    batch: int
    steps: int

    @property
    def name(self) -> str:
        """Name of the folder of the phase's build."""
        return f"tokens-{self.length}"

    @property
    def tokens(self) -> int:
        """The number of tokens in a training step."""
        return self.length * self.batch


PHASES = (
    Phase(length=32, predictions=5, batch=64, steps=4000),
    Phase(length=128, predictions=20, batch=32, steps=7000),
)


def write_frequent_pieces(texts: Sequence[str], count: int, path: str) -> int:
    """Write a vocabulary of the `count` pieces of BERT's that are most frequent in text shards. Returns its size.

    It also holds every single character of the text, so that every word can still be written in pieces.
    """
    from maskmill.tokenization.vocabulary import load_vocabulary
    from maskmill.tokenization.wordpiece import Tokenizer

    bert = load_vocabulary(str(VOCABULARY))
    counts = np.zeros(bert.size, np.int64)
    for text in texts:
        counts += np.bincount(Tokenizer(bert).tokenize_files([text]).ids, minlength=bert.size)
    frequent = set(np.argsort(-counts, kind="stable")[:count].tolist())
    characters = {i for i, piece in enumerate(bert.pieces) if len(piece.removeprefix("##")) == 1 and counts[i]}
    kept = [bert.pieces[i] for i in sorted(frequent | characters) if bert.pieces[i] not in SPECIAL]
    Path(path).write_text("\n".join(SPECIAL + kept) + "\n", encoding="utf-8")
    return len(SPECIAL) + len(kept)


def run(dump: str, directory: Path, *, pieces: int) -> None:
    """Build the data sets and train."""
    text, vocabulary, model = directory / "text", directory / "vocab.txt", directory / "bert_config.json"
    extract = {"input": dump, "num_eval_articles": 200, "shard_size_mb": 8}
    _maskmill("extract", *(f"--{k}={v}" for k, v in extract.items()), f"--output={text}")
    sizes = {
        "vocab_size": write_frequent_pieces(sorted(map(str, text.glob("part-*"))), pieces, str(vocabulary)),
        "hidden_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 512,
        "max_position_embeddings": max(phase.length for phase in PHASES),
        # Dropout prevents overfitting; a model this small does not overfit on this much text.
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    model.write_text(json.dumps(sizes))
    weights = None
    for phase in PHASES:
        output = directory / phase.name
        build = {
            "output": str(output),
            "extract": extract,
            "examples": {
                "vocab_file": str(vocabulary),
                "max_seq_length": phase.length,
                "max_predictions_per_seq": phase.predictions,
                "dupe_factor": 3,
            },
            "eval": {"num_examples_to_pick": 2000},
            "train": {
                "bert_config_file": str(model),
                "init_checkpoint": weights,
                "train_batch_size": phase.batch,
                "eval_batch_size": 100,
                "num_train_steps": phase.steps,
                "num_warmup_steps": 500,
                "learning_rate": 1e-3,
                "log_steps": 20,
                "eval_every_samples": 250 * phase.batch,
                "save_checkpoints_steps": 500,
            },
        }
        output.mkdir(exist_ok=True)
        (output / "build.yaml").write_text(json.dumps(build, indent=2))  # JSON is YAML
        _maskmill("build", str(output / "build.yaml"))
        weights = str(output / "weights.safetensors")
        _maskmill("convert-checkpoint", f"--input={output / 'train'}", f"--output={weights}", "--format=maskmill")


def _maskmill(*arguments: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-m", "maskmill", *arguments], cwd=ROOT, env=environment, check=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Baselines:
    """Accuracies on an evaluation set that need no look at the words around, as shares between 0 and 1.

    Attributes:
      token: of always predicting the most frequent token.
      kept: of predicting the token that the input shows, or the most frequent one at a mask. (Masking leaves one in ten
        of the tokens to predict as it is.)
      label: of always giving the same answer for the next sentence.
    """

    token: float
    kept: float
    label: float


def baselines(path: str) -> Baselines:
    """Return the baselines of the examples in a file."""
    import maskmill
    from maskmill.records import tfrecord

    with maskmill.open(path, batch_size=tfrecord.count_records(path), shuffle=False) as examples:
        (batch,) = examples
    weighted = batch["masked_lm_weights"] > 0
    tokens = batch["masked_lm_ids"][weighted]
    shown = np.take_along_axis(batch["input_ids"], batch["masked_lm_positions"], axis=1)[weighted]
    frequent = tokens == np.bincount(tokens).argmax()
    label = batch["next_sentence_labels"].mean()
    return Baselines(token=frequent.mean(), kept=(frequent | (tokens == shown)).mean(), label=max(label, 1 - label))


def draw(directory: Path, picture: str) -> None:
    """Draw the curve and print its figures."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = "maskmill"  # the same log gives the same file
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    tokens_before = 0.0  # million tokens of the phases before
    for phase in PHASES:
        log = [json.loads(line) for line in (directory / phase.name / "train" / "log.jsonl").read_text().splitlines()]
        steps = [x for x in log if x["event"] == "train"]
        evaluations = [x for x in log if x["event"] == "eval"]
        trained, evaluated = ([tokens_before + x["step"] * phase.tokens / 1e6 for x in e] for e in (steps, evaluations))
        base = baselines(str(directory / phase.name / "eval" / "eval.tfrecord"))
        first = phase is PHASES[0]
        left.plot(trained, [x["masked_lm_loss"] for x in steps], color="0.75", lw=0.8, label="training" * first)
        left.plot(evaluated, [x["masked_lm_loss"] for x in evaluations], color="C0", label="evaluation" * first)
        for name, baseline, colour in (("masked_lm", base.kept, "C0"), ("next_sentence", base.label, "C1")):
            values = [x[f"{name}_accuracy"] for x in evaluations]
            right.plot(evaluated, values, color=colour, label=name.replace("_", " ") * first)
            right.plot([tokens_before, evaluated[-1]], [baseline] * 2, color=colour, ls=":", lw=1)
        last, speed = evaluations[-1], statistics.median(x["tokens_per_second"] for x in steps)
        accuracies = last["masked_lm_accuracy"], last["next_sentence_accuracy"]
        tokens = last["step"] * phase.tokens
        print(f"examples of {phase.length} tokens: step {last['step']}, {tokens:,} tokens, {speed:,.0f} a second")
        print(f"  masked LM {accuracies[0]:.3f}; by frequency {base.token:.3f}, by the shown token {base.kept:.3f}")
        print(f"  next sentence {accuracies[1]:.3f}; by the most frequent label {base.label:.3f}")
        tokens_before = evaluated[-1]
        for axes in (left, right):
            axes.axvline(tokens_before, color="0.9", lw=1, zorder=0)
    left.set(xlabel="million tokens", ylabel="masked-LM loss")
    right.set(xlabel="million tokens", ylabel="accuracy", ylim=(0, 1))
    for axes in (left, right):
        axes.legend(frameon=False)
    figure.savefig(picture, metadata={"Date": None})


def main() -> None:
    """Run a subcommand."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("run", help="build and train")
    command.add_argument("dump", type=lambda path: str(Path(path).resolve()))
    command.add_argument("directory", type=Path)
    command.add_argument("--pieces", type=int, default=8000, help="size of the vocabulary")
    command = commands.add_parser("draw", help="draw the curve of a run")
    command.add_argument("directory", type=Path)
    command.add_argument("picture")
    options = parser.parse_args()
    if options.command == "run":
        print_machine(TRAINING_LIBRARIES)
        options.directory.mkdir(parents=True, exist_ok=True)
        (options.directory / MACHINE).write_text(describe_machine(TRAINING_LIBRARIES) + "\n")
        run(options.dump, options.directory.resolve(), pieces=options.pieces)
    else:
        machine = options.directory / MACHINE
        print(f"Machine: {machine.read_text().strip() if machine.exists() else 'not recorded'}\n")
        draw(options.directory, options.picture)


if __name__ == "__main__":
    main()
