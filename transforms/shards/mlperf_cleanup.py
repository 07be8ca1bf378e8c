"""MLPerf's clean-up chain on WikiExtractor's `<doc>` files, byte for byte, quirks included.

Each function is one program of mlcommons/training `retired_benchmarks/bert/cleanup_scripts`, from bytes to bytes,
in the order of its `process_wiki.sh`:

    raw `wiki_nn` → `remove_doc_tags` (.1) → `clean_markup` (.2) → `split_sentences` (.3)
                  → `separate_eval` (.4, and the articles drawn for evaluation) → `pack_shards`, `gather` (parts)

Where the reference itself crashes or never ends, these raise `UnusableInputError`. All text is UTF-8.
"""

import hashlib
import random
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from transforms.errors import UnusableInputError
from transforms.sentences.punkt import SentenceSplitter

_BYTES_PER_MB = 1024 * 1024
_SEED_STEP = 13  # seperate_test_set.py: one seed a file


class SeparatedFile(NamedTuple):
    """One file after the split: `train` is its `.4` file, `eval_articles` what was drawn from it, in file order."""

    train: bytes
    eval_articles: list[bytes]


def _universal_newlines(text: bytes) -> bytes:
    """Turns `\\r\\n` and `\\r` into `\\n`, as Python's text mode does when it reads."""
    if b"\r" not in text:
        return text
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _require_utf8(text: bytes, what: str) -> None:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnusableInputError(
            f"{what} is not valid UTF-8 at byte {error.start}: convert it to UTF-8 first."
        ) from error


def remove_doc_tags(raw: bytes) -> bytes:
    """Removes `<doc …>` tags, titles and empty lines from one WikiExtractor file (cleanup_file.py, `.1`).

    A line that holds `<doc` becomes an empty line and takes the line after it (the title) with it; a line that holds
    `</doc>` goes. Raises UnusableInputError when `raw` is not UTF-8.
    """
    _require_utf8(raw, "a WikiExtractor file")
    lines = _universal_newlines(raw).split(b"\n")
    last = lines.pop()  # what follows the last newline: a line without one, or nothing
    kept: list[bytes] = []
    drop_next = False
    for line in lines:
        if drop_next:
            drop_next = False
        elif b"<doc" in line:
            drop_next = True
            kept.append(b"")
        elif line and b"</doc>" not in line:
            kept.append(line)
    text = b"".join([line + b"\n" for line in kept])
    if drop_next or not last:
        return text
    if b"<doc" in last:
        return text + b"\n"
    # The reference skips lines of length 1, which is a newline alone or, at the very end, a single character.
    if b"</doc>" in last or len(last.decode("utf-8")) == 1:
        return text
    return text + last


# clean.sh, in its order. sed works on one line at a time, so that every class also excludes the newline here.
# The classes exclude the first byte of what must follow them (or a bracket that starts a new attempt), which keeps
# these regular expressions linear; the patterns where that does not hold are the functions further down.
_CATEGORY = re.compile(rb"\[\[Category:[^\]\[\n]*\]\]")
_DOC_LINE = re.compile(rb"<doc [^>\n]*>")
_BRACKETS: tuple[tuple[re.Pattern[bytes], bytes], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (rb"\[\[([^\]|\[\n]*)\]\]", rb"\1"),
        (rb"\[\[([^\]|\[\n]*)\]\]", rb"\1"),
        (rb"\[\[[^\]|\[\n]*\|([^\]|\[\n]*)\]\]", rb"\1"),
        (rb"\[\[[^\]|\[\n]*\|([^\]|\[\n]*)\]\]", rb"\1"),
        (rb"\[\[:*[Ff]ile:[^\]\[\n]*\]\]", rb""),
        (rb"\[\[[Mm]edia:[^\]\[\n]*\]\]", rb""),
        (rb"\[\[[Ii]mage:[^\]\[\n]*\]\]", rb""),
        (rb"\[([^\]|\[\n]*)\]", rb"\1"),
        (rb"\[\[([^\]\[\n]*)\]\]", rb""),
    )
)


def _between_angles(prefix: bytes, suffix: bytes, keep: bool) -> Callable[[bytes], bytes]:
    """`s/PREFIX\\([^<]*\\)SUFFIX/…/g`, where SUFFIX starts with `<`: keeps what is between, or nothing."""
    pattern = re.compile(re.escape(prefix) + rb"([^<\n]*)" + re.escape(suffix))
    replacement = rb"\1" if keep else b""
    return lambda line: pattern.sub(replacement, line)


def _up_to_first(prefix: bytes, stops: bytes, suffix: bytes) -> Callable[[bytes], bytes]:
    """`s/PREFIX\\([^STOPS]*\\)SUFFIX//g`, where SUFFIX starts with a byte of STOPS: it must be at the first of them."""
    stop = re.compile(b"[" + re.escape(stops) + b"]")

    def remove(line: bytes) -> bytes:
        kept, copied, start = [], 0, line.find(prefix)
        end = -1
        while start >= 0:
            body = start + len(prefix)
            if end < body:  # one search for each stop, however many prefixes come before it
                found = stop.search(line, body)
                if found is None:
                    break
                end = found.start()
            if line.startswith(suffix, end):
                kept.append(line[copied:start])
                copied = body = end + len(suffix)
            start = line.find(prefix, body)
        kept.append(line[copied:])
        return b"".join(kept)

    return remove


def _up_to_last_before_backslash(prefix: bytes) -> Callable[[bytes], bytes]:
    """`s/PREFIX\\([^\\\\]*\\)\\/>//g`: up to the last `/>` of the line with no backslash in between."""

    def remove(line: bytes) -> bytes:
        kept, copied, start = [], 0, line.find(prefix)
        while start >= 0:
            body = start + len(prefix)
            stop = line.find(b"\\", body)
            if stop < 0:
                stop = len(line)
            last = line.rfind(b"/>", body, stop)
            if last >= 0:
                kept.append(line[copied:start])
                copied = last + 2
            # Nothing else can match before the backslash: its last `/>` is taken, or it has none.
            start = line.find(prefix, stop)
        kept.append(line[copied:])
        return b"".join(kept)

    return remove


def _literal(old: bytes) -> Callable[[bytes], bytes]:
    return lambda line: line.replace(old, b"")


_TAG_STEPS: tuple[Callable[[bytes], bytes], ...] = (
    _literal(b"alt="),
    lambda line: line.replace(b"</doc>", b"\r"),
    _between_angles(b"<chem", b"</chem>", keep=True),
    _between_angles(b"<ins", b"</ins>", keep=True),
    _between_angles(b"<, ref ", b"</ref>", keep=False),
    _between_angles(b"<includeonly", b"</includeonly>", keep=False),
    _between_angles(b"<graph", b"</graph>", keep=False),
    _up_to_last_before_backslash(b"<section"),
    _up_to_last_before_backslash(b"<meta"),
    _up_to_last_before_backslash(b"<hr"),
    _up_to_first(b"<gallery", b">", b">"),
    _between_angles(b"<ref", b"</ref>", keep=False),
    _up_to_first(b"<ref", b">", b">"),
    _up_to_first(b"<http", b">", b">"),
    _up_to_first(b"<Ref", b">", b">"),
    _up_to_first(b"<mapframe ", rb"\/", b"/>"),  # sed keeps the backslash of [^\/] in the class
    _up_to_first(b"<mapframe", b">", b">"),
    *map(_literal, (b"</mapframe>", b"<poem>", b"</poem>", b"<math>", b"</math>", b"<ref>", b"</ref>")),
    _up_to_first(b"<div", b">", b">"),
    _up_to_first(b"</div", b">", b">"),
    _literal(b"</div style>"),
    _literal(b"</div>"),
    *(
        _literal(tag % name)
        for name in (
            *(b"sup", b"br", b"BR", b"Br", b"del", b"nowiki", b"NOWIKI", b"onlyinclude", b"includeonly"),
            *(b"small", b"chem", b"noinclude", b"gallery"),
        )
        for tag in (b"<%b>", b"</%b>")
    ),
    *map(_literal, (b"<graph>{", b"<graph>", b"}</graph>", b"</graph>", b"</references>")),
    _up_to_first(b"<poem ", b">", b">"),
)


def _clean_line(line: bytes) -> bytes:
    if b"[" in line:
        for pattern, replacement in _BRACKETS:
            line = pattern.sub(replacement, line)
    if b"<" in line or b"alt=" in line:
        for step in _TAG_STEPS:
            line = step(line)
    return line


def clean_markup(text: bytes) -> bytes:
    """Removes left-over markup line by line and drops lines that name a category (clean.sh, `.2`).

    `text` must be UTF-8. A NUL byte is kept as any other byte; there the reference's grep takes the file for binary
    and cuts it off at a place that depends on how the pipe was filled.
    """
    lines = text.split(b"\n")
    if not lines[-1]:
        lines.pop()  # grep ends the last line with a newline, whether it had one or not
    cleaned = []
    for line in lines:
        if b"[" in line or b"<" in line or b"alt=" in line:
            if _DOC_LINE.fullmatch(line) or _CATEGORY.search(line):
                continue
            line = _clean_line(line)
        cleaned.append(line + b"\n")
    return b"".join(cleaned)


def split_sentences(text: bytes, splitter: SentenceSplitter) -> bytes:
    """Puts one sentence on a line and a blank line between articles (do_sentence_segmentation.py, `.3`).

    A line of one character gives a blank line (and, at the end of a file without newline, its sentence too); the
    file ends with one more blank line. Exact with `SentenceSplitter(rules="nltk-3.4")`.
    Raises UnusableInputError when `text` is not UTF-8.
    """
    return splitter.split_lines_keeping_blank(_universal_newlines(text)) + b"\n"


def separate_eval(
    text: bytes, *, file_number: int, num_files: int, num_eval_articles: int, seed: int = 12345
) -> SeparatedFile:
    """Draws this file's share of the evaluation articles (seperate_test_set.py, `.4`).

    File `i` of `F` (from 0, in sorted order) gives `int((i+1)*N/F) - int(i*N/F)` articles, drawn with seed
    `seed + 13*i`. Articles are the pieces between blank lines, the empty piece after the last one included.
    Raises UnusableInputError when the file holds fewer articles than must be drawn: the reference never ends there.
    """
    num_drawn = int((file_number + 1) * num_eval_articles * 1.0 / num_files) - int(
        file_number * num_eval_articles * 1.0 / num_files
    )
    articles = text.split(b"\n\n")
    if num_drawn > len(articles):
        raise UnusableInputError(
            f"{num_drawn} evaluation articles must be drawn from file {file_number} of {num_files}, which holds "
            f"{len(articles)} articles (the reference never ends here): ask for fewer evaluation articles."
        )
    rng = random.Random(seed + file_number * _SEED_STEP)
    drawn: set[int] = set()
    while len(drawn) < num_drawn:
        drawn.add(int(rng.random() * len(articles)))
    return SeparatedFile(
        train=b"".join([a + b"\n\n" for i, a in enumerate(articles) if i not in drawn]),
        eval_articles=[a for i, a in enumerate(articles) if i in drawn],
    )


def eval_set(articles: Iterable[bytes]) -> tuple[bytes, bytes]:
    """The contents of `eval.txt` and `eval.md5` for the articles drawn, in file order (seperate_test_set.py)."""
    articles = list(articles)
    text = b"".join([article + b"\n\n" for article in articles])
    digests = [hashlib.md5(a.decode("utf-8").rstrip().encode("utf-8")).hexdigest() for a in articles]
    return text, "".join([digest + "\n" for digest in digests]).encode("ascii")


def pack_shards(raw_sizes: Sequence[int], block_size_mb: float) -> list[list[int]]:
    """Which files go to which part: the indexes of the files of `part-00000`, `part-00001`, … (do_gather.py).

    `raw_sizes` are the bytes of the raw `wiki_nn` files in sorted order, `block_size_mb` is in MiB. A file larger
    than a block gets a part of its own, except the first one: there the reference crashes, and this raises
    UnusableInputError.
    """
    parts: list[list[int]] = []
    total = 0
    for index, size in enumerate(raw_sizes):
        if block_size_mb * _BYTES_PER_MB < total + size:
            if not parts:
                raise UnusableInputError(
                    f"The first file has {size} bytes, more than one part of {block_size_mb} MiB holds (the reference "
                    "fails here): ask for larger parts."
                )
            parts.append([])
            total = 0
        elif not parts:
            parts.append([])
        parts[-1].append(index)
        total += size
    return parts


def gather(trains: Sequence[bytes]) -> bytes:
    """The content of one part from the `.4` files packed into it (do_gather.py).

    Of each file a byte order mark is dropped, and one of two closing newlines.
    Raises UnusableInputError for a file of fewer than two characters: the reference fails there.
    """
    pieces = []
    for number, train in enumerate(trains):
        _require_utf8(train, "a file to gather")
        content = _universal_newlines(train.removeprefix(b"\xef\xbb\xbf"))
        if len(content) < 8 and len(content.decode("utf-8")) < 2:
            raise UnusableInputError(
                f"File {number} of this part has no article left for training (the reference fails here): ask for "
                "fewer evaluation articles, or leave this file out."
            )
        pieces.append(content[:-1] if content.endswith(b"\n\n") else content)
    return b"".join(pieces)
