"""Text, vocabularies and options that make no good examples or no eval set, refused or warned of."""

import json
from collections.abc import Mapping

from mistakes.table import Mistake

TEXT = "part-00000-of-00001"
SPECIAL = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
EXAMPLES = f"examples --input={TEXT} --output=out"
CREATE = f"create-pretraining-data --input_file={TEXT} --output_file=new.tfrecord"
EXTRACT = "extract --input=dump.xml --output=out"
MASK = "--vocab_file=vocab.txt"

JSON_LINES = (json.dumps({"id": 1, "text": "The apple grows on trees. It is eaten raw. " * 40}) + "\n").encode() * 9


def vocabulary(name: str, content: bytes, says: str, command: str = EXAMPLES) -> Mistake:
    """A vocabulary that cannot be used."""
    return Mistake(f"vocabulary-{name}", f"{command} --vocab_file=v.txt", says, files={"v.txt": content})


def tokenizer_json(tokens: str, added: Mapping[str, int] | None = None, **ids: int) -> bytes:
    """A tokenizer.json that has these tokens, and others with these ids; added: those that stand beside the model."""
    vocabulary = {token: number for number, token in enumerate(tokens.split())} | ids
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    beside = [{"content": token, "id": number, **flags} for token, number in (added or {}).items()]
    return json.dumps({"version": "1.0", "added_tokens": beside, "model": model}).encode()


def characters_json() -> bytes:
    """A tokenizer.json that takes a line for one word of single characters."""
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(chr, range(32, 127))]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    model = {"type": "BPE", "vocab": vocabulary, "merges": [], "unk_token": "[UNK]"}
    return json.dumps({"version": "1.0", "added_tokens": [], "model": model}).encode()


NAMES = "[PAD] [UNK] [CLS] [SEP] [MASK] the"


def tokenizer(
    name: str, content: bytes | None, says: str, flag: str = "", files: Mapping[str, bytes] | None = None
) -> Mistake:
    """A tokenizer.json that cannot be used."""
    return Mistake(
        f"tokenizer-{name}",
        f"{EXAMPLES} --tokenizer_file=t.json {flag}",
        says,
        files=({} if content is None else {"t.json": content}) | dict(files or {}),
    )


def masking(name: str, flag: str, says: str, command: str = EXAMPLES) -> Mistake:
    """A value of an option that cannot be meant."""
    return Mistake(f"masking-{name}", f"{command} {MASK} {flag}", says)


def text(name: str, content: bytes, says: str) -> Mistake:
    """A text that has no examples."""
    return Mistake(
        f"text-{name}", f"examples --input=t.txt --output=out {MASK}", says, files={"t.txt": content}, leaves=("out",)
    )


def warned(name: str, command: str, says: str, leaves: tuple[str, ...] = ("out",), **files: bytes) -> Mistake:
    """A command that does its work and warns."""
    return Mistake(
        f"warned-{name}",
        command,
        f"warning: .*{says}",
        files={f"{stem}.txt": content for stem, content in files.items()},
        code=0,
        leaves=leaves,
    )


VOCABULARIES = [
    vocabulary("of-special-pieces", SPECIAL, "special pieces only.*would become.*name a vocabulary"),
    vocabulary("of-special-pieces-drop-in", SPECIAL, "special pieces only", CREATE),
    vocabulary("empty", b"", r"\[MASK\] and \[CLS\].* are missing"),
    vocabulary("without-unk-drop-in", SPECIAL.replace(b"[UNK]\n", b"the\n"), r"\[UNK\] is missing", CREATE),
    vocabulary("in-latin-1", SPECIAL + "café\n".encode("latin-1"), "line 6: this vocabulary is not UTF-8"),
    vocabulary("in-utf-16", (SPECIAL + b"the\n").decode().encode("utf-16"), "line 1: this vocabulary is not UTF-8"),
    vocabulary("tokenizer-json", json.dumps({"[MASK]": 0, "the": 1}).encode(), "is JSON.*--tokenizer_file"),
    Mistake("vocabulary-a-directory", f"{EXAMPLES} --vocab_file=.", r"directory"),
    Mistake(
        "vocabulary-of-a-build-is-special-pieces",
        "build b.yaml",
        "special pieces only",
        files={
            "b.yaml": b"output: build\nextract:\n  input: dump.xml\nexamples:\n  vocab_file: v.txt\n",
            "v.txt": SPECIAL,
        },
    ),
]

TOKENIZERS = [
    Mistake(
        "tokenizer-and-vocabulary",
        f"{EXAMPLES} --vocab_file=vocab.txt --tokenizer_file=t.json",
        "--vocab_file does not go with --tokenizer_file.*leave one out",
    ),
    tokenizer("without-mask", tokenizer_json("[PAD] [UNK] [CLS] [SEP]"), r"no mask_token \(\[MASK\] or <mask>\)"),
    tokenizer(
        "with-a-huge-id", tokenizer_json(NAMES, x=300_000_000), "'x' has the id 300,000,000, but .* only 7 tokens"
    ),
    tokenizer("with-an-id-of-64-bits", tokenizer_json(NAMES, x=1 << 40), "cannot read this as a tokenizer.json"),
    tokenizer("with-a-negative-id", tokenizer_json(NAMES, x=-1), "cannot read this as a tokenizer.json"),
    tokenizer("with-one-id-twice", tokenizer_json(NAMES, x=5), "the tokens 'the' and 'x' have the same id, 5"),
    tokenizer("with-the-id-of-padding-twice", tokenizer_json(NAMES, x=0), r"'\[PAD\]' and 'x' have the same id, 0"),
    tokenizer("with-an-added-token-of-another-id", tokenizer_json(NAMES, {"x": 9}), "'x' has the id 9 .* gives it 6"),
    tokenizer("with-an-added-token-of-a-taken-id", tokenizer_json(NAMES, {"x": 5}), "'x' has the id 5 .* gives it 6"),
    tokenizer("lower-cased", tokenizer_json(NAMES), "--do_lower_case belongs to --vocab_file", "--do_lower_case=False"),
    tokenizer("of-the-reference", tokenizer_json(NAMES), "--tokenizer_file does not go with", "--compat=google"),
]

MASKING = [
    masking("short-probability-negative", "--short_seq_prob=-0.1", "short_seq_prob -0.1: .*from 0 to 1"),
    Mistake(
        "masking-of-a-build-out-of-range",
        "build b.yaml",
        "masked_lm_prob 15.0: .*at most 1",
        files={
            "b.yaml": b"output: build\nextract:\n  input: dump.xml\n"
            b"examples:\n  vocab_file: vocab.txt\n  masked_lm_prob: 15\n"
        },
    ),
]

TEXTS = [
    text("empty", b"", "there is no sentence in this text"),
    text("of-blank-lines", b"\n \n\n\t\n", "there is no sentence in this text"),
    text("in-latin-1", "Das Äpfelchen.\nEin Café.\n".encode("latin-1"), "line 1: this text is not UTF-8"),
    text("in-utf-16", "One sentence.\nAnother.\n".encode("utf-16"), "UTF-16 text"),
    text("with-a-bad-byte-in-line-3", b"One.\nTwo.\nThr\xffee.\n", r"line 3: .* \(byte 0xFF after 3 bytes"),
    Mistake("text-missing", f"examples --input=no.txt --output=out {MASK}", "no.txt.* does not exist"),
    Mistake(
        "text-missing-drop-in", f"create-pretraining-data --input_file='no*' --output_file=new.tfrecord {MASK}", r"no\*"
    ),
    Mistake(
        "text-empty-drop-in",
        f"create-pretraining-data --input_file=t.txt --output_file=new.tfrecord {MASK}",
        "there is no sentence in this text",
        files={"t.txt": b""},
    ),
    Mistake(
        "texts-of-one-name",
        f"examples --input={TEXT},a/{TEXT} --output=out {MASK}",
        "would become one shard; rename one",
        files={f"a/{TEXT}": b"A sentence.\nAnother.\n"},
    ),
    Mistake(
        "vocabulary-of-texts-of-one-name",
        f"vocabulary --input={TEXT},a/{TEXT} --output=out --kind=wordpiece --size=64",
        "out",
        files={f"a/{TEXT}": b"A sentence.\nAnother.\n"},
        code=0,
        leaves=("out",),
    ),
    Mistake(
        "outputs-of-one-name",
        f"create-pretraining-data --input_file={TEXT} --output_file=a.tfrecord,a.tfrecord {MASK}",
        "each named once",
    ),
]

EVAL_SETS = [
    Mistake(
        "eval-more-articles-than-there-are",
        f"{EXTRACT} --num_eval_articles=5",
        "--num_eval_articles 5 is more than the 4 articles there are; ask for fewer",
        leaves=("out",),
    ),
    Mistake(
        "eval-of-all-articles",
        f"{EXTRACT} --num_eval_articles=4",
        "All 4 articles fall into the eval set; hold out fewer",
        leaves=("out",),
    ),
    Mistake("eval-fraction-with-mlperf", f"{EXTRACT} --compat=mlperf --eval_fraction=0.1", "give a number"),
    Mistake(
        "eval-fewer-examples-than-mlperf-picks",
        "build b.yaml",
        "10,000 cannot be picked; pick fewer, or make more",
        files={
            "b.yaml": b"output: build\ncompat: google\nextract:\n  input: dump.xml\n  num_eval_articles: 1\n"
            b"examples:\n  vocab_file: vocab.txt\neval:\n  num_examples_to_pick: 10000\n"
        },
        leaves=("build",),
    ),
    Mistake(
        "eval-examples-of-an-empty-eval-set",
        "build b.yaml",
        "The eval set is empty, so 10,000 eval examples cannot be picked; hold out articles with num_eval_art",
        files={
            "b.yaml": b"output: build\ncompat: google\n"
            b"extract:\n  input: dump.xml\nexamples:\n  vocab_file: vocab.txt\n"
        },
        leaves=("build",),
    ),
    Mistake(
        "pick-more-than-there-are",
        "pick-eval --input_tfrecord=examples.tfrecord --output_tfrecord=new --num_examples_to_pick=1000",
        "1,000 cannot be picked; pick fewer, or make more",
    ),
    Mistake(
        "pick-of-another-length",
        (
            "pick-eval --input_tfrecord=examples.tfrecord --output_tfrecord=new --num_examples_to_pick=2 "
            "--max_seq_length=128"
        ),
        "has 32 values in input_ids, not 128; give the lengths",
    ),
    Mistake(
        "pick-of-another-number-of-predictions",
        (
            "pick-eval --input_tfrecord=examples.tfrecord --output_tfrecord=new --num_examples_to_pick=2 "
            "--max_predictions_per_seq=20"
        ),
        "has 5 values in masked_lm_.*, not 20",
    ),
    Mistake(
        "pick-from-text", f"pick-eval --input_tfrecord={TEXT} --output_tfrecord=new --num_examples_to_pick=1", TEXT
    ),
]

SHARDS = [
    Mistake(
        "filters-that-leave-nothing",
        f"{EXTRACT} --min_characters=100000",
        "No article is left of dump.xml after the filters .*too short",
        leaves=("out",),
    ),
    Mistake("letter-share-in-percent", f"{EXTRACT} --min_letter_share=90", "between 0 and 1, not 90"),
    Mistake(
        "near-duplicates-threshold-zero", f"{EXTRACT} --near_duplicate_threshold=0", "above 0 and at most 1, not 0"
    ),
]

WARNED = [
    Mistake(
        "warned-tokenizer-that-splits-no-words",
        f"{EXAMPLES} --tokenizer_file=t.json --objective=mlm --mask_unit=whole_word",
        r"warning: a word has [\d.]+ pieces on average, .*masks long stretches.*give --mask_unit piece",
        files={"t.json": characters_json()},
        code=0,
        leaves=("out",),
    ),
    warned(
        "json-lines-drop-in",
        f"create-pretraining-data --input_file=t.txt --output_file=new.tfrecord {MASK}",
        "only .* of the text of t.txt is in examples.*maskmill extract",
        leaves=("new.tfrecord", "new.tfrecord.idx"),
        t=JSON_LINES,
    ),
    warned(
        "default-eval-share-of-four-articles",
        EXTRACT,
        "the eval set is empty, because its share is 0.005 and there are only 4 articles; give --num_eval_articles",
    ),
    warned(
        "own-eval-share-of-four-articles",
        f"{EXTRACT} --eval_fraction=0.0001",
        "the eval set is empty, because its share is 0.0001 and there are only 4 articles",
    ),
    Mistake(
        "warned-build-without-an-eval-set",
        "build b.yaml",
        "warning: the eval set is empty, because its share is 0.005",
        files={"b.yaml": b"output: build\nextract:\n  input: dump.xml\nexamples:\n  vocab_file: vocab.txt\n"},
        code=0,
        leaves=("build",),
    ),
]


def extracted(size: int, sha256: str) -> dict[str, bytes]:
    """A directory that extract made of a text, and what its manifest says of it."""
    shard = {"name": TEXT, "bytes": size, "sha256": sha256}
    made = {"stage": "extract", "parameters": {}, "inputs": [], "counts": {}, "shards": [shard]}
    return {f"text/{TEXT}": b"A town.\n\n", "text/manifest.json": json.dumps(made).encode()}


COPIES = [
    Mistake(
        f"copy-that-is-cut-off-{command.split()[0]}",
        f"{command} --input=text --output=out",
        f"text/{TEXT}: this shard is not the one .* it has 9 bytes, and the manifest beside it says 1,009 bytes",
        files=extracted(1_009, "0" * 64),
    )
    for command in (f"examples {MASK}", "vocabulary --size=64")
] + [
    Mistake(
        "copy-that-was-changed",
        f"examples --input=text --output=out {MASK}",
        rf"text/{TEXT}: .* has sha256 \w+, and the manifest beside it says sha256 0{{64}}",
        files=extracted(9, "0" * 64),
        leaves=("out",),
    )
]

MISTAKES = [*VOCABULARIES, *TOKENIZERS, *MASKING, *TEXTS, *EVAL_SETS, *SHARDS, *COPIES, *WARNED]
