"""Mirrors of small dumps for the tests of `maskmill watch`, and what its releases must be."""

import bz2
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import yaml
from command_runs.commands import DUMP, VOCAB
from servers.file_server import FileServer

WIKI = "enwiki"
FIRST, SECOND = "2026-02-01", "2026-03-01"
CONTACT = "tests@example.org"

SECTIONS = {
    "extract": {"num_eval_articles": 7, "shard_size_mb": 0.5},
    "examples": {"vocab_file": str(VOCAB), "max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 1},
    "eval": {"num_examples_to_pick": 40},
}


def write_config(path: Path, output: str, source: str, **changes: dict[str, Any]) -> Path:
    """Writes the file of a build that watches a mirror; `changes` are added to its sections."""
    sections: dict[str, dict[str, Any]] = {**SECTIONS, "watch": {"source": source, "wiki": WIKI, "contact": CONTACT}}
    for name, options in changes.items():
        sections[name] = {**sections.get(name, {}), **options}
    path.write_text(yaml.safe_dump({"output": output, "report": "off", **sections}))
    return path


def streams_of(dump: bytes) -> list[bytes]:
    """The XML of each stream of a multistream dump."""
    streams = []
    while dump:
        decompressor = bz2.BZ2Decompressor()
        streams.append(decompressor.decompress(dump))
        dump = decompressor.unused_data
    return streams


def first_dump() -> bytes:
    """The sample dump."""
    return DUMP.read_bytes()


def second_dump() -> bytes:
    """The sample dump of a month later: an article has a new revision, and another one is gone."""
    changed, gone = b"<title>Anarchism</title>", b"<title>Albedo</title>"
    streams, left = [], {changed, gone}
    for xml in streams_of(first_dump()):
        for page in re.findall(rb"  <page>.*?</page>\n", xml, re.DOTALL):
            if gone in page:
                xml = xml.replace(page, b"")
                left.discard(gone)
            elif changed in page:
                new = re.sub(rb"(<revision>\n      <id>)\d+", rb"\g<1>1400000001", page)
                new = new.replace(b"</text>", b"\n\nIt was read again in March by many people.</text>")
                xml = xml.replace(page, new)
                left.discard(changed)
        streams.append(bz2.compress(xml))
    assert not left
    return b"".join(streams)


def publish_classic(server: FileServer, date: str, dump: bytes) -> None:
    """Puts a complete dump of one file on a mirror of the classic layout, with the names that Wikimedia gives."""
    day = date.replace("-", "")
    name = f"{WIKI}-{day}-pages-articles-multistream.xml.bz2"
    index = f"{WIKI}-{day}-pages-articles-multistream-index.txt.bz2"
    contents = {name: dump, index: bz2.compress(b"638:10:AccessibleComputing\n")}
    listed = {
        file: {
            "size": len(content),
            "url": f"/{WIKI}/{day}/{file}",
            "md5": hashlib.md5(content).hexdigest(),
            "sha1": hashlib.sha1(content).hexdigest(),
        }
        for file, content in contents.items()
    }
    status = {"version": "0.8", "jobs": {"articlesmultistreamdump": {"status": "done", "files": listed}}}
    sums = "".join(f"{entry['sha1']}  {file}\n" for file, entry in listed.items())
    folder = f"{WIKI}/{day}"
    for file, content in contents.items():
        server.files[f"{folder}/{file}"] = content
    server.files[f"{folder}/{WIKI}-{day}-sha1sums.txt"] = sums.encode()
    server.files[f"{folder}/dumpstatus.json"] = json.dumps(status).encode()
    days = sorted({path.split("/")[1] for path in server.files if re.fullmatch(rf"{WIKI}/\d+/.*", path)})
    server.files[f"{WIKI}/"] = "".join(f'<a href="{name}/">{name}</a>\n' for name in days).encode()


def unpublish_classic(server: FileServer, date: str) -> None:
    """Takes a dump from a mirror of the classic layout."""
    day = date.replace("-", "")
    for path in [path for path in server.files if path.startswith(f"{WIKI}/{day}/")]:
        del server.files[path]
    server.files[f"{WIKI}/"] = server.files[f"{WIKI}/"].replace(f'<a href="{day}/">{day}</a>\n'.encode(), b"")


def sha1(content: bytes) -> str:
    """What the lists of a mirror have for a file."""
    return hashlib.sha1(content).hexdigest()
