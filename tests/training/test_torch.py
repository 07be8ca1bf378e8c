"""Hugging Face reads our exports and computes the same. PyTorch has an environment of its own (make test-torch)."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from training_helpers import CHECKPOINT, ROBERTA, batch_of, random_batch, small_config

from training import checkpoints, convert, hugging_face, pytorch_files
from training.model import classification_model, pretraining_model
from training.options import ConvertOptions

PYTHON = os.environ.get("MASKMILL_TORCH_PYTHON", sys.executable)
pytestmark = pytest.mark.elsewhere

# Runs in PyTorch's environment. Its arguments: the model's class, its directory, and the files of inputs and outputs.
PROGRAM = """
import sys
import numpy as np, torch, transformers
kind, directory, inputs, outputs = sys.argv[1:]
model, report = getattr(transformers, kind).from_pretrained(directory, output_loading_info=True)
assert not report["missing_keys"] and not report["unexpected_keys"] and not report["mismatched_keys"], report
given = {name: torch.tensor(value).long() for name, value in np.load(inputs).items()}
with torch.no_grad():
    made = model.eval()(**given)
masked = made.prediction_logits if kind.endswith("ForPreTraining") else made.logits
arrays = {"masked_lm": masked.numpy()}
if kind.endswith("ForPreTraining"):
    arrays["next_sentence"] = (made.sop_logits if kind.startswith("Albert") else made.seq_relationship_logits).numpy()
# Our reader is given what Hugging Face writes, too.
model.save_pretrained(directory)
np.savez(outputs, **arrays)
"""


def run(program, *arguments):
    """Run a program in PyTorch's environment."""
    done = subprocess.run([PYTHON, "-c", program, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def theirs(kind, directory, inputs, tmp_path):
    np.savez(tmp_path / "inputs.npz", **inputs)
    run(PROGRAM, kind, directory, tmp_path / "inputs.npz", tmp_path / "outputs.npz")
    return np.load(tmp_path / "outputs.npz")


def test_the_exported_bert_gives_the_same_logits(config, examples_path, tmp_path):
    built = pretraining_model(config)
    built.load(convert.read(str(CHECKPOINT), config), where="gold")
    hugging_face.write_directory(str(tmp_path / "model"), built.values(), config, tokenizer={})
    batch = batch_of(examples_path, 0, 8)
    ours = built(batch)
    inputs = {
        "input_ids": batch["input_ids"],
        "attention_mask": batch["input_mask"],
        "token_type_ids": batch["segment_ids"],
    }
    got = theirs("BertForPreTraining", tmp_path / "model", inputs, tmp_path)
    masked = np.take_along_axis(got["masked_lm"], batch["masked_lm_positions"][..., None], 1)
    np.testing.assert_allclose(np.asarray(ours["masked_lm_logits"]), masked, atol=2e-5)
    np.testing.assert_allclose(np.asarray(ours["next_sentence_logits"]), got["next_sentence"], atol=2e-5)


# Runs in PyTorch's environment: a classifier's labels and logits, and the words of its tokenizer.
CLASSIFY = """
import json, sys
import numpy as np, torch, transformers
directory, inputs, outputs = sys.argv[1:]
kind = transformers.AutoModelForSequenceClassification
model, report = kind.from_pretrained(directory, output_loading_info=True)
assert not report["missing_keys"] and not report["unexpected_keys"] and not report["mismatched_keys"], report
tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
given = {name: torch.tensor(value).long() for name, value in np.load(inputs).items()}
with torch.no_grad():
    logits = model.eval()(**given).logits
words = tokenizer.convert_ids_to_tokens(tokenizer("Good bad film")["input_ids"])
made = {"class": type(model).__name__, "labels": model.config.id2label, "words": words, "logits": logits.tolist()}
with open(outputs, "w") as file:
    json.dump(made, file)
"""


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_the_exported_classifier_opens_with_its_labels_and_words(tmp_path, kind):
    model = small_config(**(ROBERTA if kind == "roberta" else {}))
    built = classification_model(model, num_labels=3, seed=3)
    weights = str(tmp_path / "weights.safetensors")
    checkpoints.write_weights(weights, built.values(), model)
    words = ["[PAD]", "[unused]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "film"]
    (tmp_path / "words.txt").write_text("\n".join(words) + "\n")
    convert.run(
        ConvertOptions(
            input=weights, output=str(tmp_path / "model"), format="huggingface",
            vocab_file=str(tmp_path / "words.txt"), labels=("no", "yes", "maybe"),
        )
    )  # fmt: skip
    batch = random_batch(8)
    ids = np.where(batch["input_mask"], np.maximum(batch["input_ids"], 3), 1)
    given = {"input_ids": ids, "attention_mask": batch["input_mask"]}
    if kind == "bert":
        given["token_type_ids"] = batch["segment_ids"]
    np.savez(tmp_path / "inputs.npz", **given)
    run(CLASSIFY, tmp_path / "model", tmp_path / "inputs.npz", tmp_path / "outputs.json")
    made = json.loads((tmp_path / "outputs.json").read_text())
    assert made["class"] == f"{kind.capitalize()}ForSequenceClassification"
    assert made["labels"] == {"0": "no", "1": "yes", "2": "maybe"}
    assert made["words"] == ["[CLS]", "good", "[UNK]", "film", "[SEP]"]
    ours = built(batch | {"input_ids": ids})
    np.testing.assert_allclose(np.asarray(ours["logits"]), made["logits"], atol=2e-5)


# Runs in PyTorch's environment: writes weights as torch.save does, today and before PyTorch 1.6.
SAVE = """
import sys
import numpy as np, torch
source, target, today = sys.argv[1:]
weights = {name: torch.tensor(value) for name, value in np.load(source).items()}
weights["halved"] = weights["a"].half()
weights["rounded"] = weights["a"].bfloat16()
weights["turned"] = weights["a"].T
weights["part"] = weights["a"][1:]
module = torch.nn.Module()
for name, value in weights.items():
    module.register_buffer(name, value)
torch.save(module.state_dict(), target, _use_new_zipfile_serialization=today == "True")
"""


@pytest.mark.parametrize("today", [True, False])
def test_pytorchs_own_files_are_read(tmp_path, today):
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.savez(tmp_path / "in.npz", a=array, ids=np.arange(5))
    target = str(tmp_path / "pytorch_model.bin")
    run(SAVE, tmp_path / "in.npz", target, today)
    read = pytorch_files.read(target)
    expected = {
        "a": array,
        "ids": np.arange(5),
        "halved": array,
        "rounded": array,
        "turned": array.T,
        "part": array[1:],
    }
    assert set(read) == set(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(read[name], value)


@pytest.mark.parametrize("padding", [1, 0, 7])
def test_the_exported_roberta_gives_the_same_logits(tmp_path, padding):
    roberta = small_config(**ROBERTA)
    built = pretraining_model(roberta, next_sentence=False, seed=3)
    tokenizer = {"model": {"type": "BPE", "vocab": {"<pad>": padding, "<s>": 2, "</s>": 3}, "merges": []}}
    files = {"tokenizer.json": json.dumps(tokenizer).encode()}
    hugging_face.write_directory(str(tmp_path / "model"), built.values(), roberta, tokenizer=files)
    batch = random_batch(8)
    # Hugging Face counts RoBERTa's positions over the tokens that are no padding, so no word may have its id.
    ids = np.where(batch["input_mask"], np.maximum(batch["input_ids"], 8), padding)
    ours = built(batch | {"input_ids": ids})
    got = theirs(
        "RobertaForMaskedLM", tmp_path / "model", {"input_ids": ids, "attention_mask": batch["input_mask"]}, tmp_path
    )
    masked = np.take_along_axis(got["masked_lm"], batch["masked_lm_positions"][..., None], 1)
    np.testing.assert_allclose(np.asarray(ours["masked_lm_logits"]), masked, atol=2e-5)


ALBERT = {"model_type": "albert", "embedding_size": 8, "num_hidden_layers": 4, "num_hidden_groups": 2}
MODERN = {
    "model_type": "modernbert",
    "hidden_act": "gelu_erf",
    "layer_norm_eps": 1e-5,
    "num_hidden_layers": 4,
    "local_attention": 16,
    "max_position_embeddings": 128,
}


@pytest.mark.parametrize(
    ("changes", "kind", "length"),
    [
        (ALBERT, "AlbertForPreTraining", 32),
        (MODERN, "ModernBertForMaskedLM", 100),
        (MODERN, "ModernBertForMaskedLM", 9),
    ],
)
def test_other_encoders_go_there_and_back(changes, kind, length, tmp_path):
    config = small_config(**changes)
    built = pretraining_model(config, next_sentence=config.has_segments, seed=3)
    draw = np.random.default_rng(7)
    for weight in built.weights:  # biases and scales, too, say something
        weight.write(weight.read() + draw.normal(0, 0.1, weight.shape).astype(np.float32))
    directory = str(tmp_path / "model")
    hugging_face.write_directory(directory, built.values(), config, tokenizer={})
    batch = random_batch(8, length=length)
    ours = built(batch)
    given = {"input_ids": batch["input_ids"], "attention_mask": batch["input_mask"]}
    if config.has_segments:
        given["token_type_ids"] = batch["segment_ids"]
    got = theirs(kind, directory, given, tmp_path)
    masked = np.take_along_axis(got["masked_lm"], batch["masked_lm_positions"][..., None], 1)
    np.testing.assert_allclose(np.asarray(ours["masked_lm_logits"]), masked, atol=2e-5)
    if config.has_segments:
        np.testing.assert_allclose(np.asarray(ours["next_sentence_logits"]), got["next_sentence"], atol=2e-5)
    # What Hugging Face itself writes comes back.
    again = convert.find_config(directory)
    assert again == config
    values = convert.read(directory, again)
    assert values.keys() == built.values().keys()
    for name, value in built.values().items():
        np.testing.assert_array_equal(values[name], value, err_msg=name)
