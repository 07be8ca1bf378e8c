"""Hugging Face reads our exports and computes the same. PyTorch has an environment of its own (make test-torch)."""

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest
from training_helpers import CHECKPOINT, batch_of, random_batch, small_config

from training import convert, hugging_face
from training.model import pretraining_model

PYTHON = os.environ.get("MASKMILL_TORCH_PYTHON", sys.executable)
pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(
        "MASKMILL_TORCH_PYTHON" not in os.environ and importlib.util.find_spec("torch") is None,
        reason="PyTorch is not installed here, and MASKMILL_TORCH_PYTHON names no Python that has it",
    ),
]

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
masked = made.prediction_logits if kind == "BertForPreTraining" else made.logits
arrays = {"masked_lm": masked.numpy()}
if kind == "BertForPreTraining":
    arrays["next_sentence"] = made.seq_relationship_logits.numpy()
np.savez(outputs, **arrays)
"""


def theirs(kind, directory, inputs, tmp_path):
    np.savez(tmp_path / "inputs.npz", **inputs)
    files = [str(tmp_path / "inputs.npz"), str(tmp_path / "outputs.npz")]
    done = subprocess.run(
        [PYTHON, "-c", PROGRAM, kind, str(directory), *files], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return np.load(tmp_path / "outputs.npz")


def test_the_exported_bert_gives_the_same_logits(config, examples_path, tmp_path):
    built = pretraining_model(config)
    built.load(convert.read(str(CHECKPOINT), config), where="gold")
    hugging_face.write_directory(str(tmp_path / "model"), built.values(), config, tokenizer={})
    batch = batch_of(examples_path, 0, 8)
    ours = built.model({name: batch[name] for name in built.model.input})
    inputs = {
        "input_ids": batch["input_ids"],
        "attention_mask": batch["input_mask"],
        "token_type_ids": batch["segment_ids"],
    }
    got = theirs("BertForPreTraining", tmp_path / "model", inputs, tmp_path)
    masked = np.take_along_axis(got["masked_lm"], batch["masked_lm_positions"][..., None], 1)
    np.testing.assert_allclose(np.asarray(ours["masked_lm_logits"]), masked, atol=2e-5)
    np.testing.assert_allclose(np.asarray(ours["next_sentence_logits"]), got["next_sentence"], atol=2e-5)


def test_the_exported_roberta_gives_the_same_logits(tmp_path):
    roberta = small_config(model_type="roberta", hidden_act="gelu_erf", layer_norm_eps=1e-5, type_vocab_size=1)
    built = pretraining_model(roberta, next_sentence=False, seed=3)
    hugging_face.write_directory(str(tmp_path / "model"), built.values(), roberta, tokenizer={})
    batch = random_batch(8)
    # Hugging Face counts RoBERTa's positions from the tokens that are not 1, its padding: no other token may be 1.
    ids = np.where(batch["input_mask"], np.maximum(batch["input_ids"], 3), 1)
    ours = built.model({name: batch[name] for name in built.model.input} | {"input_ids": ids})
    got = theirs(
        "RobertaForMaskedLM", tmp_path / "model", {"input_ids": ids, "attention_mask": batch["input_mask"]}, tmp_path
    )
    masked = np.take_along_axis(got["masked_lm"], batch["masked_lm_positions"][..., None], 1)
    np.testing.assert_allclose(np.asarray(ours["masked_lm_logits"]), masked, atol=2e-5)
