"""Inputs that are not what their user takes them for: other kinds of files, other columns, paths that name nothing."""

import bz2
import gzip
import json
import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from made_up import dump_files

from mistakes.table import Mistake

INDEX = b"627:1:Apple\n627:2:Pear\n1200:3:Plum: a fruit\n"
DUMP = "wiki-20260301-pages-articles-multistream"
HELD_OUT = "--num_eval_articles=1"
NOTHING: Mapping[str, bytes] = {}
WORDS = "--vocab_file=vocab.txt --max_seq_length=32 --max_predictions_per_seq=5"


def extract(what: str, flags: str = "") -> str:
    return f"extract '--input={what}' --output=out {HELD_OUT} {flags}"


def examples(what: str) -> str:
    return f"examples '--input={what}' --output=out {WORDS}"


def refused(name: str, path: str, content: bytes | Callable[[Path], object], says: str, flags: str = "") -> Mistake:
    """A file that `extract` refuses."""
    return Mistake(name, extract(path, flags), says, files={path: content})


def no_shard(name: str, path: str, says: str, files: Mapping[str, bytes] = NOTHING) -> Mistake:
    """A file that `examples` refuses as a text shard."""
    return Mistake(name, examples(path), says, files=files)


def no_path(
    name: str, path: str, says: str, files: Mapping[str, bytes | Callable[[Path], object]] = NOTHING, flags: str = ""
) -> Mistake:
    """A path of an input that names nothing that can be read."""
    return Mistake(name, extract(path, flags), says, files=files)


def json_lines(*records: object) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def parquet(**columns: list[object]) -> Callable[[Path], object]:
    return lambda path: pq.write_table(pa.table(columns), path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))


def make_link(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


def make_hard_link(target: str) -> Callable[[Path], None]:
    return lambda path: path.hardlink_to(path.with_name(target))


def copy(path: Path) -> None:
    path.write_bytes(path.with_name("dump.xml").read_bytes())


def make_no_utf8_name(path: Path) -> None:
    Path(os.fsdecode(os.fsencode(path.parent) + b"/a\xff.txt")).write_bytes(b"A text.\n")


CSV = b"id,title,text\n" + b"".join(b'%d,Apple,"It is round, and red."\n' % k for k in range(9))
TSV = b"".join(b"%d\tIt is round, and red.\n" % k for k in range(9))
TAKES_IT = r"or take it as it is with --input_format text\.$"
HUGE = b"It is round, and red. " * (33 * 1024 * 1024 // 22)
LARGE = b"It is round, and red.\n\n" * 60_000
ARTICLES = b"".join(b"This is text %d. It has two sentences.\n\n" % k for k in range(4))

KINDS = [
    refused("extract-index-alone", f"{DUMP}-index.txt", INDEX, f"the index of a multistream dump; .*{TAKES_IT}"),
    refused("extract-json-array", "a.json", json.dumps([{"text": "a"}]).encode(), f"a JSON array; .*jq.*{TAKES_IT}"),
    refused("extract-csv", "a.csv", CSV, f"a CSV or TSV table; .*{TAKES_IT}"),
    refused("extract-html", "a.html", b"<!DOCTYPE html>\n<html>", f"HTML; .*{TAKES_IT}"),
    refused("extract-text-named-xml", "a.xml", b"Not found.\n", f"not XML, although its name says so; .*{TAKES_IT}"),
    refused("extract-text-named-bz2", "d.xml.bz2", b"Not found.\n", "no bz2 file, although its name says so; fetch it"),
    refused("extract-html-named-gz", "a.gz", b"<html>404</html>", "no gz file, although its", "--input_format=text"),
    refused("extract-pdf", "a.pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\n", r"a PDF; turn it into text first \(pdftotext\)\."),
    refused("extract-utf-16", "a.txt", "A text.".encode("utf-16"), "UTF-16 text; convert it to UTF-8 first"),
    Mistake("extract-build-file-as-parquet", extract("demo.yaml", "--input_format=parquet"), "no Parquet"),
    Mistake("extract-parquet-as-text", extract("articles.parquet", "--input_format=text"), "a Parquet file"),
    Mistake("extract-text-as-json-lines", extract("book.txt", "--input_format=jsonl"), "no JSON lines file"),
    Mistake(
        "index-beside-its-dump-is-skipped",
        f"extract '--input={DUMP}*' --output=out {HELD_OUT}",
        r"4 documents(?s:.)*-index\.txt\.bz2: skipped, because it looks like the index of a multistream dump; ",
        files={
            f"{DUMP}.xml": lambda path: path.write_bytes(path.with_name("dump.xml").read_bytes()),
            f"{DUMP}-index.txt.bz2": bz2.compress(INDEX),
        },
        code=0,
        leaves=("out",),
    ),
    Mistake(
        "index-is-taken-when-it-is-asked-for",
        extract("a.txt", "--input_format=text --text_documents=blank_line"),
        "5 documents",
        files={"a.txt": INDEX + b"\n" + ARTICLES},
        code=0,
        leaves=("out",),
    ),
]

SHARDS = [
    no_shard("examples-of-a-dump", "dump.xml", "a MediaWiki XML dump, .*`maskmill extract` makes text shards"),
    no_shard("examples-of-a-packed-dump", "dump.xml.bz2", "a file packed by bz2"),
    no_shard("examples-of-examples", "examples.tfrecord", "a TFRecord file"),
    no_shard("examples-of-an-error-page", "a.txt.gz", r"plain text under .*\(gz\)", {"a.txt.gz": b"Not found."}),
    no_shard("examples-of-an-index", "a.idx", "the index of a TFRecord file", {"a.idx": b"0 315\n315 315\n"}),
    no_shard(
        "examples-of-any-directory", "folder", r"a directory; name its files, as in folder/\*", {"folder/a": b"A"}
    ),
    no_shard(
        "examples-of-nothing-but-a-manifest",
        "text/*",
        "this input matches no text shard, only text/manifest.json",
        {"text/manifest.json": b"{}"},
    ),
    Mistake(
        "examples-of-everything-that-extract-made",
        examples("text/*"),
        (
            "text/a.tfrecord, text/a.tfrecord.idx, text/eval.md5, text/manifest.json, text/rejected.jsonl: skipped, "
            "because they are not text shards"
        ),
        files={
            "text/part-00000-of-00001": ARTICLES,
            "text/manifest.json": b'{"stage": "extract"}',
            "text/eval.md5": b"0123456789abcdef" * 2 + b"\n",
            "text/rejected.jsonl": b'{"title": "a"}\n',
            "text/a.tfrecord": b"x",
            "text/a.tfrecord.idx": b"0 1\n",
        },
        code=0,
        leaves=("out",),
    ),
]

COLUMNS = [
    refused("jsonl-without-text", "a.jsonl", json_lines({"body": "a", "id": 1}), '"text"; .*its columns are body, id'),
    refused("jsonl-of-numbers", "a.jsonl", json_lines({"text": 1}), 'column "text" holds whole numbers, not text'),
    refused("packed-jsonl-without-text", "a.jsonl.gz", gzip.compress(json_lines({"b": "a"})), 'no column "text"'),
    Mistake(
        "jsonl-wrong-text-column",
        extract("articles.jsonl", "--text_column=body"),
        'no column "body"; name one with --text_column; its columns are id',
    ),
    Mistake(
        "jsonl-wrong-id-column",
        extract("articles.jsonl", "--id_column=key"),
        'no column "key"; name one with --id_column; its columns are id',
    ),
    Mistake(
        "parquet-wrong-language-column",
        extract("articles.parquet", "--language_column=lang"),
        'no column "lang"; name one with --language_column',
    ),
    Mistake(
        "language-column-of-the-reference",
        extract("articles.jsonl", "--language_column=id --compat=google"),
        "--language_column does not go with --compat: the reference knows no languages",
    ),
    refused(
        "jsonl-id-of-another-type",
        "a.jsonl",
        json_lines({"text": "a", "id": 1.5}),
        "not text or whole numbers",
        "--id_column=id",
    ),
    refused("parquet-of-nulls", "a.parquet", parquet(text=[None]), 'column "text" holds null'),
    Mistake(
        "jsonl-one-bad-line",
        extract("a.jsonl"),
        r"2 rejected(?s:.)*2 documents could not be processed; out/rejected\.jsonl",
        files={"a.jsonl": json_lines(*[{"text": f"Text {k}."} for k in range(4)], {"text": 1}) + b"{bad\n"},
        code=0,
        leaves=("out",),
    ),
]

SAME = "this is the same file as the input "
TAKEN = "takes the files of this output directory, too; name a directory elsewhere"

TOO_LARGE = [
    Mistake(
        f"document-too-large-in-{name}", extract(name), r" 1 rejected\n", files={name: content}, code=0, leaves=("out",)
    )
    for name, content in {
        "a.txt.gz": gzip.compress(HUGE + b"\n\n" + ARTICLES),
        "a.jsonl": json_lines({"text": HUGE.decode()}, *[{"text": f"Text {k}."} for k in range(4)]),
        "a.parquet": parquet(text=[HUGE.decode(), *[f"Text {k}." for k in range(4)]]),
        "a.xml": dump_files.dump(
            [dump_files.page(k, f"P{k}", text) for k, text in enumerate((HUGE.decode(), "It is.", "So."), 1)]
        ),
    }.items()
]

REPEATED = [
    no_path("input-and-a-link-to-it", "dump*.xml", f"dump2.xml: {SAME}dump.xml", {"dump2.xml": make_link("dump.xml")}),
    no_path("input-and-a-hard-link", "b*.txt", f"book.txt: {SAME}b.txt", {"b.txt": make_hard_link("book.txt")}),
    no_path("input-by-two-spellings", "book.txt,./book.txt", f"./book.txt: {SAME}book.txt"),
    no_path("input-by-a-detour", "a/b.txt,a/../a//b.txt", SAME, {"a/b.txt": b"A text.\n"}),
    no_path("input-by-a-linked-folder", "*/b.txt", SAME, {"a/b.txt": b"A text.\n", "c": make_link("a")}),
    no_path("json-lines-by-a-link", "*.jsonl", SAME, {"b.jsonl": make_link("articles.jsonl")}, "--input_format=jsonl"),
    Mistake(
        "one-dump-copied",
        extract("dump*.xml"),
        r"dump2\.xml: this input has the content of the input dump\.xml, so its text would be there twice",
        files={"dump2.xml": copy},
        leaves=("out",),
    ),
    Mistake(
        "large-file-copied",
        extract("c*.txt"),
        r"c2\.txt: this input has the content of the input c1\.txt",
        files=dict.fromkeys(("c1.txt", "c2.txt"), LARGE),
        leaves=("out",),
    ),
    Mistake(
        "small-files-copied",
        extract("c*.txt"),
        r"warning: 2 inputs have the content of another, .* \(c2\.txt has that of c1\.txt\)",
        files=dict.fromkeys(("c1.txt", "c2.txt", "c3.txt"), ARTICLES),
        code=0,
        leaves=("out",),
    ),
    Mistake(
        "shard-and-a-link-to-it",
        examples("part-*"),
        f"part-00001-of-00002: {SAME}part-00000-of-00001",
        files={"part-00001-of-00002": make_link("part-00000-of-00001")},
    ),
    no_path("output-below-a-recursive-glob", "**", f"^maskmill extract: out: the input .* {TAKEN}"),
    no_path("output-below-a-recursive-glob-of-names", "**/*.txt", TAKEN),
    no_path("output-below-a-glob-of-folders", "*/*.txt", TAKEN, {"a/b.txt": b"A text.\n"}),
    no_path("output-that-a-link-leads-to", "a/**", TAKEN, {"a/b.txt": b"A text.\n", "out": make_link("a/c")}),
    Mistake(
        "build-below-a-recursive-glob",
        "build b.yaml",
        f"a/out/text: the input .* {TAKEN}",
        files={
            "b.yaml": b"output: a/out\nextract: {input: a/**}\nexamples: {vocab_file: vocab.txt}\n",
            "a/b.txt": ARTICLES,
        },
    ),
]

PATHS = [
    no_path("input-that-is-not-there", "nothing.xml", "nothing.xml: this input does not exist; check the path"),
    no_path("input-in-a-directory-that-is-not-there", "no/x.xml", "nor does the directory no; check the path"),
    no_path("input-below-a-file", "dump.xml/x", "nor does the directory dump.xml"),
    no_path("glob-of-nothing", "*.warc", r"\*\.warc: this input matches no file"),
    no_path("web-page", "https://dumps.wikimedia.org/enwiki.xml.bz2", "web addresses are neither read nor written"),
    no_path("ftp", "ftp://host/a.xml", "web addresses"),
    no_path("azfs-without-its-extra", "azfs://a/b.xml", r"azfs:// needs Beam's extra \[azure\]; install it: pip"),
    no_path("hdfs-without-its-extra", "hdfs://host/a.xml", r"hdfs:// needs Beam's extra \[hadoop\]"),
    no_path("unknown-scheme", "minio://bucket/a.xml", "minio:// is unknown; give a local path, or one of gs://"),
    no_path("file-scheme", "file:///tmp/a.xml", "write the path alone, without file://"),
    no_path("gs-with-one-slash", "gs:/bucket/a.xml", "a slash is missing; write gs://bucket/a.xml"),
    no_path("gs-without-bucket", "gs:///a.xml", "names no bucket; write gs://BUCKET/NAME"),
    no_path("gs-with-a-capital", "gs://Bucket/a.xml", "names no bucket; .* the bucket in lower case"),
    no_path("standard-input", "-", "standard input is not read, because an input is read more than once"),
    no_path("braces", "part{1,2}.xml", "expands braces only outside quotes"),
    no_path("pipe", "pipe", "is a pipe, and an input is read more than once; write it to a file", {"pipe": os.mkfifo}),
    no_path("pipe-in-a-glob", "*.pipe", "a.pipe: this input is a pipe", {"a.pipe": os.mkfifo}),
    no_path("socket", "socket", "is a socket", {"socket": make_socket}),
    no_path("device", "/dev/zero", "is a device"),
    no_path("dangling-link", "link.xml", "a link to gone, which does not exist", {"link.xml": make_link("gone")}),
    no_path("dangling-link-in-a-glob", "*.txt", "a link to gone, which", {"link.txt": make_link("gone")}),
    no_path("link-to-itself", "link.xml", "cannot be read", {"link.xml": make_link("link.xml")}),
    no_path("directory", "folder", r"is a directory; name its files, as in folder/\*", {"folder/a.xml": b"<"}),
    no_path("empty-directory", "folder", "is an empty directory", {"folder": os.mkdir}),
    no_path("directory-of-directories", "folder", r"a directory of directories; .*folder/\*/\*", {"folder/a/b": b"x"}),
    no_path("glob-of-an-empty-directory", "folder/*", "matches no file", {"folder": os.mkdir}),
    no_path("name-that-is-not-utf-8", "a*.txt", r"a\\xff\.txt: this name is not UTF-8", {"x": make_no_utf8_name}),
    no_path("name-that-is-too-long", "x" * 300, "cannot be read"),
    Mistake("web-output", f"extract --input=dump.xml --output=https://host/o {HELD_OUT}", "web addresses"),
    Mistake(
        "gs-output-with-one-slash",
        f"extract --input=dump.xml --output=gs:/bucket/out {HELD_OUT}",
        "a slash is missing; write gs://bucket/out",
    ),
    Mistake(
        "vocabulary-on-the-web",
        "examples --input=part-00000-of-00001 --output=out --vocab_file=https://host/vocab.txt",
        "web addresses are neither read nor written; download the file first",
    ),
    Mistake(
        "input-through-a-process-substitution",
        "maskmill extract --input=<(cat dump.xml) --output=out --num_eval_articles=1",
        "is a pipe, and an input is read more than once; write it to a file first",
        shell=True,
    ),
    Mistake(
        "input-in-a-home-directory",
        "HOME=/home/nobody maskmill extract --input=~/dump.xml --output=out",
        "/home/nobody/dump.xml: this input does not exist, nor does the directory /home/nobody",
        shell=True,
    ),
    Mistake(
        "name-with-a-comma", extract("a,b.txt"), "4 documents", files={"a,b.txt": ARTICLES}, code=0, leaves=("out",)
    ),
    Mistake(
        "parts-of-two-dumps",
        extract("wiki-*.xml"),
        "is of 2026-02-01 and .* of 2026-03-01, and both are of .*; name the parts of one dump, or .* --dump_date",
        files={
            f"wiki-{date}-pages.xml": dump_files.dump([dump_files.page(1, "A", "A text.")])
            for date in ("20260201", "20260301")
        },
    ),
    Mistake(
        "dump-without-a-date",
        extract("empty.xml"),
        "neither its name nor its first pages give the dump's date; name it with --dump_date",
        files={"empty.xml": dump_files.dump([])},
        leaves=("out",),
    ),
]

MISTAKES = [*KINDS, *SHARDS, *COLUMNS, *TOO_LARGE, *REPEATED, *PATHS]
