"""What transformers makes of a model's directory and of the vocabulary's own files: test_transformers.py runs this.

    python transformers_program.py DIRECTORY TEXTS OUTPUT

DIRECTORY: what `model_files` gave, TEXTS: a JSON list, OUTPUT: JSON, for each tokenizer what it does with the texts.
"""

import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import transformers


def made_anew(directory):
    """The tokenizer that transformers makes of the vocabulary alone, as for BERT or RoBERTa."""
    fast = "" if int(transformers.__version__.partition(".")[0]) >= 5 else "Fast"
    if os.path.exists(f"{directory}/vocab.txt"):
        return getattr(transformers, f"BertTokenizer{fast}")(f"{directory}/vocab.txt")
    # Version 5 forgets that <mask> takes the space before it along.
    mask = transformers.AddedToken("<mask>", lstrip=True, normalized=False)
    made = getattr(transformers, f"RobertaTokenizer{fast}")
    return made(f"{directory}/vocab.json", f"{directory}/merges.txt", mask_token=mask)


def use(tokenizer, texts, directory):
    """What a tokenizer does, and the tokenizer.json that it saves."""
    encoded = [tokenizer(text, return_special_tokens_mask=True) for text in texts]
    pair = tokenizer(texts[0], texts[1])
    tokenizer.save_pretrained(directory)
    with open(f"{directory}/tokenizer.json", encoding="utf-8") as file:
        saved = json.load(file)
    return {
        "class": type(tokenizer).__name__.removesuffix("Fast"),
        "size": len(tokenizer),
        "special": {
            role: getattr(tokenizer, f"{role}_id") for role in ("cls_token", "sep_token", "pad_token", "mask_token")
        },
        "ids": [one["input_ids"] for one in encoded],
        "special_tokens_mask": [one["special_tokens_mask"] for one in encoded],
        "words": [one.word_ids() for one in encoded],
        "decoded": [tokenizer.decode(one["input_ids"], skip_special_tokens=True) for one in encoded],
        "pair": [pair["input_ids"], pair.get("token_type_ids")],
        "saved": saved,
    }


def main():
    """Runs this program."""
    directory, texts, output = sys.argv[1:]
    with open(texts, encoding="utf-8") as file:
        texts = json.load(file)
    config = transformers.AutoConfig.from_pretrained(directory)
    made = {
        "auto": use(transformers.AutoTokenizer.from_pretrained(directory), texts, f"{directory}/auto"),
        "anew": use(made_anew(directory), texts, f"{directory}/anew"),
        "limit": transformers.AutoTokenizer.from_pretrained(directory).model_max_length,
        "config": {
            name: getattr(config, name)
            for name in ("model_type", "vocab_size", "pad_token_id", "hidden_size", "max_position_embeddings")
        },
    }
    with open(output, "w", encoding="utf-8") as file:
        json.dump(made, file)


if __name__ == "__main__":
    main()
