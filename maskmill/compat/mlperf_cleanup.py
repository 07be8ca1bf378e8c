"""MLPerf's clean-up chain on WikiExtractor's `<doc>` files, byte for byte, quirks included.

Each function is one program of mlcommons/training `retired_benchmarks/bert/cleanup_scripts`, from bytes to bytes,
in the order of its `process_wiki.sh`:

    raw `wiki_nn` → `remove_doc_tags` (.1) → `clean_markup` (.2) → `split_sentences` (.3)
                  → `separate_eval` (.4, and the articles drawn for evaluation) → `pack_shards`, `gather` (parts)

Where the reference crashes or never ends, these functions raise `UnusableInputError`. All text is UTF-8.
"""

import random
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from maskmill.characters.utf8 import invalid_utf8_at
from maskmill.errors import UnusableInputError
from maskmill.sentences.punkt import SentenceSplitter

_BYTES_PER_MB = 1024 * 1024
_SEED_STEP = 13  # seperate_test_set.py: difference between the seeds of two files
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LARGEST_CHARACTER = 4  # bytes, in UTF-8


class SeparatedFile(NamedTuple):
    """A file after the split: `train` is its `.4` file; `eval_articles` were drawn from it, in the file's order."""

    train: bytes
    eval_articles: list[bytes]


def _universal_newlines(text: bytes) -> bytes:
    """Turn `\\r\\n` and `\\r` into `\\n`, as Python's text mode does when it reads."""
    if b"\r" not in text:
        return text
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _require_utf8(text: bytes, name: str) -> None:
    invalid_at = invalid_utf8_at(text)
    if invalid_at is not None:
        raise UnusableInputError(f"{name} is not valid UTF-8 at byte {invalid_at}: convert it to UTF-8 first.")


def remove_doc_tags(raw: bytes, name: str = "a WikiExtractor file") -> bytes:
    """Remove `<doc …>` tags, titles and empty lines from one WikiExtractor file (cleanup_file.py, `.1`).

    A line that holds `<doc` becomes an empty line, and the line after it (the title) is dropped; a line that holds
    `</doc>` is dropped.

    Raises:
      UnusableInputError: `raw` is not UTF-8; the message calls the file `name`.
    """
    _require_utf8(raw, name)
    lines = _universal_newlines(raw).split(b"\n")
    last = lines.pop()  # a line without a newline at its end, or nothing
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
    # The reference skips lines of length 1: a lone newline or, at the very end, a single character.
    if b"</doc>" in last or len(last.decode("utf-8")) == 1:
        return text
    return text + last


# clean.sh, in its order. sed works on one line at a time, so every class here excludes the newline, too.
# Each class also excludes the first byte of what must follow it (or a bracket that starts a new attempt), so that these
# regular expressions are linear in the line. Rules for which that does not hold are functions below.
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
    """Return `s/PREFIX\\([^<]*\\)SUFFIX/…/g`, where SUFFIX starts with `<`; `keep`: keep the text in between."""
    pattern = re.compile(re.escape(prefix) + rb"([^<\n]*)" + re.escape(suffix))
    replacement = rb"\1" if keep else b""
    return lambda line: pattern.sub(replacement, line)


def _up_to_first(prefix: bytes, stops: bytes, suffix: bytes) -> Callable[[bytes], bytes]:
    """Return `s/PREFIX\\([^STOPS]*\\)SUFFIX//g`, where SUFFIX starts with a byte of STOPS, at the first of them."""
    stop = re.compile(b"[" + re.escape(stops) + b"]")

    def remove(line: bytes) -> bytes:
        kept, copied, start = [], 0, line.find(prefix)
        end = -1
        while start >= 0:
            body = start + len(prefix)
            if end < body:  # search for each stop once, however many prefixes come before it
                next_stop = stop.search(line, body)
                if next_stop is None:
                    break
                end = next_stop.start()
            if line.startswith(suffix, end):
                kept.append(line[copied:start])
                copied = body = end + len(suffix)
            start = line.find(prefix, body)
        kept.append(line[copied:])
        return b"".join(kept)

    return remove


def _up_to_last_before_backslash(prefix: bytes) -> Callable[[bytes], bytes]:
    """Return `s/PREFIX\\([^\\\\]*\\)\\/>//g`: up to the last `/>` of the line without a backslash in between."""

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
            # Nothing else can match before the backslash: the last `/>` is used up, or there is none.
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
    """Remove left-over markup line by line and drop lines that name a category (clean.sh, `.2`).

    `text` must be UTF-8. A NUL byte is kept like any other byte; the reference's grep takes such a file for binary and
    truncates it, at a point that depends on how the pipe was filled.
    """
    lines = text.split(b"\n")
    if not lines[-1]:
        lines.pop()  # grep writes a newline after the last line, whether it had one or not
    cleaned = []
    for line in lines:
        if b"[" in line or b"<" in line or b"alt=" in line:
            if _DOC_LINE.fullmatch(line) or _CATEGORY.search(line):
                continue
            line = _clean_line(line)
        cleaned.append(line + b"\n")
    return b"".join(cleaned)


def split_sentences(text: bytes, splitter: SentenceSplitter) -> bytes:
    """Put one sentence on a line and a blank line between articles (do_sentence_segmentation.py, `.3`).

    A line of one character gives a blank line (and, at the end of a file without newline, its sentence too); the
    file ends with one more blank line. It is exact with `SentenceSplitter(rules="nltk-3.4")`.

    Raises:
      UnusableInputError: `text` is not UTF-8.
    """
    return splitter.split_lines_keeping_blank(_universal_newlines(text)) + b"\n"


def separate_eval(
    text: bytes, *, file_number: int, num_files: int, num_eval_articles: int, seed: int = 12345
) -> SeparatedFile:
    """Draw this file's share of the evaluation articles (seperate_test_set.py, `.4`).

    File `i` of `F` (from 0, in sorted order) gives `int((i+1)*N/F) - int(i*N/F)` of the `N` articles, drawn with seed
    File `i` of `F` (from 0, in sorted order) gives `int((i+1)*N/F) - int(i*N/F)` of the `N` articles, drawn with seed
    `seed + 13*i`. Articles are separated by blank lines; the empty text after the last blank line counts as one.
    Raises:
      UnusableInputError: the file holds fewer articles than must be drawn; the reference never ends there.
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
        train=join_articles([article for i, article in enumerate(articles) if i not in drawn]),
        eval_articles=[article for i, article in enumerate(articles) if i in drawn],
    )


def join_articles(articles: Iterable[bytes]) -> bytes:
    """Return articles as one file, with a blank line after each, as in `.4` files and `eval.txt`
    (seperate_test_set.py).
    """
    return b"".join([article + b"\n\n" for article in articles])


def pack_shards(raw_sizes: Sequence[int], block_size_mb: float) -> list[list[int]]:
    """Return the indexes of the files of `part-00000`, `part-00001`, … (do_gather.py).

    A file larger than a part has a part of its own.

    Args:
      raw_sizes: sizes in bytes of the raw `wiki_nn` files, in sorted order.
      block_size_mb: MiB of raw files that a part holds at most.

    Raises:
      UnusableInputError: the first file is larger than a part; the reference crashes there.
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


def gather(train: bytes, name: str = "a file to gather") -> bytes:
    """Return the content that a `.4` file adds to its part; a part is its files one after another (do_gather.py).

    A byte order mark is dropped, and one of two newlines at the end.

    Raises:
      UnusableInputError: the file is not UTF-8, or has fewer than two characters (the reference fails there); the
        message calls it `name`.
    """
    _require_utf8(train, name)
    content = _universal_newlines(train.removeprefix(_BYTE_ORDER_MARK))
    if len(content) < 2 * _LARGEST_CHARACTER and len(content.decode("utf-8")) < 2:
        raise UnusableInputError(
            f"{name} has no article left for training (the reference fails here): ask for fewer evaluation articles, "
            "or leave this file out."
        )
    return content[:-1] if content.endswith(b"\n\n") else content
