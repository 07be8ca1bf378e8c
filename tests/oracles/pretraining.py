"""create_pretraining_data.py and pick_eval_samples.py in plain Python, as an oracle for the tests of the kernels.

It follows the reference (mlcommons/training retired_benchmarks/bert, google-research/bert) step by step, on Python
objects, with Python's own `random`. It reads its Unicode tables from tests/data/unicode, so it gives the same result in
every version of Python.
"""

import dataclasses
import gzip
import hashlib
import random
import struct
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import google_crc32c

from maskmill.records.example_proto import parse_example

DATA = Path(__file__).parent.parent / "data"

# The characters for which str.isspace is true; they are the same in all Unicode versions from 6.3 on.
WHITESPACE = "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B)))
WHITESPACE += "\u2028\u2029\u202f\u205f\u3000"


class Unicode:
    """Category, NFD and lower case of one Unicode version."""

    def __init__(self, version: str) -> None:
        self._categories: dict[str, str] = {}
        self._classes: dict[str, int] = {}
        self._decompositions: dict[str, str] = {}
        self._lower: dict[str, str] = {}
        self._case: dict[str, str] = {}
        with gzip.open(DATA / "unicode" / f"unicode-{version}.tsv.gz", "rt", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("#"):
                    continue
                points, category, combining, nfd, lower, case = line.rstrip("\n").split("\t")
                first, _, last = points.partition("..")
                for point in range(int(first, 16), int(last or first, 16) + 1):
                    char = chr(point)
                    self._categories[char] = category
                    if combining != "0":
                        self._classes[char] = int(combining)
                    if nfd == "hangul":
                        self._decompositions[char] = self._hangul(point)
                    elif nfd:
                        self._decompositions[char] = "".join(chr(int(p, 16)) for p in nfd.split())
                    if lower:
                        self._lower[char] = "".join(chr(int(p, 16)) for p in lower.split())
                    if case:
                        self._case[char] = case

    @staticmethod
    def _hangul(point: int) -> str:
        index = point - 0xAC00
        parts = [0x1100 + index // 588, 0x1161 + index % 588 // 28]
        if index % 28:
            parts.append(0x11A7 + index % 28)
        return "".join(map(chr, parts))

    def category(self, char: str) -> str:
        return self._categories.get(char, "Cn")

    def nfd(self, text: str) -> str:
        chars = [d for char in text for d in self._decompositions.get(char, char)]
        ordered: list[str] = []
        run: list[str] = []
        for char in chars:
            if self._classes.get(char, 0):
                run.append(char)
            else:
                ordered += [*sorted(run, key=self._classes.__getitem__), char]
                run = []
        return "".join([*ordered, *sorted(run, key=self._classes.__getitem__)])

    def lower(self, text: str) -> str:
        return "".join(
            ("ς" if self._sigma_is_final(text, i) else "σ") if char == "Σ" else self._lower.get(char, char)
            for i, char in enumerate(text)
        )

    def _sigma_is_final(self, text: str, at: int) -> bool:
        before = [c for c in text[:at] if self._case.get(c) != "i"]
        after = [c for c in text[at + 1 :] if self._case.get(c) != "i"]
        return bool(before) and self._case.get(before[-1]) == "c" and not (after and self._case.get(after[0]) == "c")


@cache
def unicode(version: str) -> Unicode:
    return Unicode(version)


def strip(text: str) -> str:
    """`str.strip` with the same white space in every version of Python."""
    return text.strip(WHITESPACE)


def split(text: str) -> list[str]:
    """`str.split` with the same white space in every version of Python."""
    words = [""]
    for char in text:
        if char in WHITESPACE:
            words.append("")
        else:
            words[-1] += char
    return [w for w in words if w]


def lines_of(content: bytes, *, drops_returns: bool = True) -> list[str]:
    """The lines that TensorFlow's readline gives until the end of a file, without the line ends.

    drops_returns: as TensorFlow does; else those at the end of a line are left out, and others are spaces.
    """
    lines = content.split(b"\n")
    if drops_returns:
        lines = [line.replace(b"\r", b"") for line in lines]
    else:
        lines = [line.rstrip(b"\r").replace(b"\r", b" ") for line in lines]
    if not lines[-1]:
        lines.pop()
    return [line.decode("utf-8") for line in lines]


def load_vocabulary(content: bytes, duplicates: str) -> dict[str, int]:
    """The id of each piece. `duplicates` is "last" or "first": which line of a piece that occurs twice counts."""
    vocab: dict[str, int] = {}
    for index, line in enumerate(lines_of(content)):
        token = strip(line)
        if duplicates == "last":
            vocab[token] = index
        elif token not in vocab:
            vocab[token] = len(vocab)
    return vocab


@dataclasses.dataclass(frozen=True)
class Tokenizer:
    """The reference's FullTokenizer: basic tokenization, then WordPiece."""

    vocab: dict[str, int]
    do_lower_case: bool
    unicode: Unicode

    def tokenize(self, text: str) -> list[str]:
        return [piece for word in self.words(text) for piece in self._pieces(word)]

    def words(self, text: str) -> list[str]:
        text = self._space_ideographs(self._clean(strip(text)))
        words: list[str] = []
        for token in split(text):
            if self.do_lower_case:
                token = self.unicode.nfd(self.unicode.lower(token))
                token = "".join(c for c in token if self.unicode.category(c) != "Mn")
            words += self._split_punctuation(token)
        return words

    def ids(self, text: str) -> list[int]:
        return [self.vocab[piece] for piece in self.tokenize(text)]

    def _clean(self, text: str) -> str:
        output = ""
        for char in text:
            category = self.unicode.category(char)
            if char in "\t\n\r" or category == "Zs":
                output += " "
            elif char not in "\x00\ufffd" and category not in ("Cc", "Cf"):
                output += char
        return output

    def _space_ideographs(self, text: str) -> str:
        return "".join(f" {char} " if self._is_ideograph(ord(char)) else char for char in text)

    @staticmethod
    def _is_ideograph(point: int) -> bool:
        return (
            0x4E00 <= point <= 0x9FFF
            or 0x3400 <= point <= 0x4DBF
            or 0x20000 <= point <= 0x2A6DF
            or 0x2A700 <= point <= 0x2B73F
            or 0x2B740 <= point <= 0x2B81F
            or 0x2B820 <= point <= 0x2CEAF
            or 0xF900 <= point <= 0xFAFF
            or 0x2F800 <= point <= 0x2FA1F
        )

    def _split_punctuation(self, token: str) -> list[str]:
        words: list[str] = []
        start = True
        for char in token:
            if char in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~" or self.unicode.category(char)[0] == "P":
                words.append(char)
                start = True
            else:
                if start:
                    words.append("")
                start = False
                words[-1] += char
        return words

    def _pieces(self, word: str) -> list[str]:
        if len(word) > 200:
            return ["[UNK]"]
        pieces: list[str] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:end]
                if piece in self.vocab:
                    break
            else:
                return ["[UNK]"]
            pieces.append(piece)
            start = end
        return pieces


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """The flags of create_pretraining_data.py, the version of Unicode, and how duplicate pieces are read."""

    max_seq_length: int
    max_predictions_per_seq: int
    masked_lm_prob: float
    short_seq_prob: float
    dupe_factor: int
    random_seed: int
    do_lower_case: bool = True
    do_whole_word_mask: bool = False
    unicode: str = "11.0.0"
    duplicate_pieces: str = "first"


@dataclasses.dataclass(frozen=True)
class Instance:
    """A masked pair of sentences: its tokens, and the positions and labels of the masked ones."""

    tokens: list[str]
    segment_ids: list[int]
    positions: list[int]
    labels: list[str]
    is_random_next: bool


def read_documents(
    contents: Sequence[bytes], tokenizer: Tokenizer, *, drops_returns: bool = True
) -> list[list[list[str]]]:
    """The documents of text files as lists of sentences, which are lists of pieces."""
    documents: list[list[list[str]]] = [[]]
    for content in contents:
        for line in lines_of(content, drops_returns=drops_returns):
            if not strip(line):
                documents.append([])
            tokens = tokenizer.tokenize(line)
            if tokens:
                documents[-1].append(tokens)
    return [d for d in documents if d]


def make_instances(contents: Sequence[bytes], vocab: dict[str, int], settings: Settings) -> list[Instance]:
    """All instances of some text files, in the order of the reference."""
    rng = random.Random(settings.random_seed)
    tokenizer = Tokenizer(vocab, settings.do_lower_case, unicode(settings.unicode))
    documents = read_documents(contents, tokenizer, drops_returns=settings.unicode == "11.0.0")
    rng.shuffle(documents)
    words = list(vocab)
    instances = []
    for _ in range(settings.dupe_factor):
        for index in range(len(documents)):
            instances += _from_document(documents, index, words, settings, rng)
    rng.shuffle(instances)
    return instances


def _from_document(
    documents: list[list[list[str]]], index: int, words: list[str], settings: Settings, rng: random.Random
) -> list[Instance]:
    document = documents[index]
    max_tokens = settings.max_seq_length - 3
    target = max_tokens
    if rng.random() < settings.short_seq_prob:
        target = rng.randint(2, max_tokens)
    instances = []
    chunk: list[list[str]] = []
    i = 0
    while i < len(document):
        chunk.append(document[i])
        if i == len(document) - 1 or sum(map(len, chunk)) >= target:
            a_end = rng.randint(1, len(chunk) - 1) if len(chunk) >= 2 else 1
            a = [t for segment in chunk[:a_end] for t in segment]
            b: list[str] = []
            is_random_next = len(chunk) == 1 or rng.random() < 0.5
            if is_random_next:
                target_b = target - len(a)
                for _ in range(10):
                    other = rng.randint(0, len(documents) - 1)
                    if other != index:
                        break
                for j in range(rng.randint(0, len(documents[other]) - 1), len(documents[other])):
                    b += documents[other][j]
                    if len(b) >= target_b:
                        break
                i -= len(chunk) - a_end
            else:
                b = [t for segment in chunk[a_end:] for t in segment]
            while len(a) + len(b) > max_tokens:
                longer = a if len(a) > len(b) else b
                longer.pop(0 if rng.random() < 0.5 else -1)
            assert a
            assert b
            tokens = ["[CLS]", *a, "[SEP]", *b, "[SEP]"]
            masked, positions, labels = _mask(tokens, words, settings, rng)
            segment_ids = [0] * (len(a) + 2) + [1] * (len(b) + 1)
            instances.append(Instance(masked, segment_ids, positions, labels, is_random_next))
            chunk = []
        i += 1
    return instances


def _mask(
    tokens: list[str], words: list[str], settings: Settings, rng: random.Random
) -> tuple[list[str], list[int], list[str]]:
    candidates: list[list[int]] = []
    for i, token in enumerate(tokens):
        if token in ("[CLS]", "[SEP]"):
            continue
        if settings.do_whole_word_mask and candidates and token.startswith("##"):
            candidates[-1].append(i)
        else:
            candidates.append([i])
    rng.shuffle(candidates)
    max_masked = min(settings.max_predictions_per_seq, max(1, round(len(tokens) * settings.masked_lm_prob)))
    output = list(tokens)
    masked: list[int] = []
    for word in candidates:
        if len(masked) >= max_masked:
            break
        if len(masked) + len(word) > max_masked:
            continue
        for i in word:
            if rng.random() < 0.8:
                output[i] = "[MASK]"
            elif rng.random() < 0.5:
                output[i] = tokens[i]
            else:
                output[i] = words[rng.randint(0, len(words) - 1)]
            masked.append(i)
    masked.sort()
    return output, masked, [tokens[i] for i in masked]


Features = dict[str, list[int] | list[float]]


def features_of(instance: Instance, vocab: dict[str, int], settings: Settings) -> Features:
    """An instance as the features of a tf.train.Example, padded to the lengths of the settings."""

    def padded(values: list[int], length: int) -> list[int]:
        return values + [0] * (length - len(values))

    length, predictions = settings.max_seq_length, settings.max_predictions_per_seq
    masked = len(instance.positions)
    return {
        "input_ids": padded([vocab[t] for t in instance.tokens], length),
        "input_mask": padded([1] * len(instance.tokens), length),
        "masked_lm_ids": padded([vocab[t] for t in instance.labels], predictions),
        "masked_lm_positions": padded(instance.positions, predictions),
        "masked_lm_weights": [1.0] * masked + [0.0] * (predictions - masked),
        "next_sentence_labels": [int(instance.is_random_next)],
        "segment_ids": padded(instance.segment_ids, length),
    }


def make_files(contents: Sequence[bytes], vocabulary: bytes, settings: Settings, outputs: int) -> list[list[Features]]:
    """The records of each output file, in order."""
    vocab = load_vocabulary(vocabulary, settings.duplicate_pieces)
    records = [features_of(i, vocab, settings) for i in make_instances(contents, vocab, settings)]
    return [records[k::outputs] for k in range(outputs)]


# Protocol buffers and TFRecords, written byte by byte.


def _varint(value: int) -> bytes:
    output = b""
    while value > 127:
        output += bytes([value & 127 | 128])
        value >>= 7
    return output + bytes([value])


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def encode_example(features: Features) -> bytes:
    """tf.train.Example with its feature map in sorted key order."""
    entries = b""
    for name, values in sorted(features.items()):
        if isinstance(values[0], float):
            feature = _field(2, _field(1, struct.pack(f"<{len(values)}f", *values)))
        else:
            feature = _field(3, _field(1, b"".join(_varint(int(v)) for v in values)))
        entries += _field(1, _field(1, name.encode()) + _field(2, feature))
    return _field(1, entries)


def decode_example(record: bytes) -> Features:
    """The features of a serialised tf.train.Example in their own order, as google's protobuf library reads them."""
    return {
        name: list((feature.int64_list if feature.WhichOneof("kind") == "int64_list" else feature.float_list).value)
        for name, feature in parse_example(record).items()
    }


def masked_crc(data: bytes) -> int:
    """A TFRecord's checksum: CRC-32C, rotated and added to a constant."""
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def encode_tfrecord(record: bytes) -> bytes:
    """A record as a TFRecord file has it: length, checksum of the length, record, checksum of the record."""
    length = struct.pack("<Q", len(record))
    return length + struct.pack("<I", masked_crc(length)) + record + struct.pack("<I", masked_crc(record))


def split_tfrecord(content: bytes) -> list[bytes]:
    """The records of a TFRecord file. It does not check the checksums."""
    records = []
    at = 0
    while at < len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        records.append(content[at + 12 : at + 12 + length])
        at += length + 16
    assert at == len(content)
    return records


def read_examples(path: Path) -> list[Features]:
    """The examples of a TFRecord file, which may be packed with gzip."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [decode_example(record) for record in split_tfrecord(content)]


def digest(records: Sequence[Features]) -> str:
    """The digest of a file's records, as in tests/data/gold/pretraining/digests.jsonl."""
    sha = hashlib.sha256()
    for features in records:
        for name, values in sorted(features.items()):
            sha.update(name.encode())
            sha.update(struct.pack(f"<{len(values)}{'f' if name == 'masked_lm_weights' else 'q'}", *values))
    return sha.hexdigest()


def pick(records: Sequence[Features], count: int) -> list[Features]:
    """`count` records at even distance, as pick_eval_samples.py takes them."""
    ratio = len(records) / count
    return [records[int(i * ratio)] for i in range(count)]
