"""Mirrors of small dumps for the tests of `maskmill watch`, and what its releases must be."""

import bz2
import re
from pathlib import Path
from typing import Any

import yaml
from command_runs.commands import DUMP, VOCAB
from servers.mirror_server import Mirror, classic_files, content_files

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


def publish(mirror: Mirror, date: str, dump: bytes) -> str:
    """Puts a complete dump of one file on a mirror; returns the path of that file there."""
    files = classic_files(WIKI, date, [dump])
    return f"{mirror.publish_classic(WIKI, date, files)}/{next(iter(files))}"


def mirrored(date: str) -> dict[str, bytes]:
    """The sample dump as a mirror's new layout has it, by path."""
    mirror = Mirror("")
    mirror.publish_content(WIKI, date, content_files(WIKI, date, [first_dump()]))
    return mirror.files


def unpublish(mirror: Mirror, date: str) -> None:
    """Takes a dump from a mirror."""
    folder = f"{WIKI}/{date.replace('-', '')}/"
    mirror.files = {path: content for path, content in mirror.files.items() if not path.startswith(folder)}
