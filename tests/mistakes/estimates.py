"""Mistakes in estimates of builds."""

import bz2

from mistakes.build_files import GOOD, changed
from mistakes.table import Mistake


def row(name: str, command: str, says: str, build: str = GOOD, **files: bytes) -> Mistake:
    content = {"b.yaml": build.encode(), **{place.replace("_", "."): of_file for place, of_file in files.items()}}
    return Mistake(f"estimate-{name}", f"estimate {command}", says, files=content)


MISTAKES = [
    row("no-config", "", r"CONFIG\.yaml is missing"),
    row("two-configs", "b.yaml demo.yaml", r"demo\.yaml: an estimate is of one YAML file"),
    row("missing-config", "no.yaml", r"no\.yaml: this input does not exist"),
    row("share-of-nothing", "b.yaml --sample_share 0", r"--sample_share must be above 0 and at most 1, not 0"),
    row("no-cores", "b.yaml --cores 0", r"--cores must be 1 or more, not 0"),
    row("missing-input", "b.yaml --extract.input no.xml", r"no\.xml: this input does not exist"),
    row("missing-vocabulary", "b.yaml --examples.vocab_file no.txt", r"no\.txt: this input does not exist"),
    row("empty-input", "b.yaml", r"e\.txt: this input is empty", changed("dump.xml", "e.txt"), e_txt=b""),
    row(
        "picture",
        "b.yaml",
        r"e\.txt: this looks like an image",
        changed("dump.xml", "e.txt"),
        e_txt=b"\x89PNG\r\n\x1a\n1",
    ),
    row("packed-by-zip", "b.yaml", r"packed with zip", changed("dump.xml", "e.txt"), e_txt=b"PK\x03\x04" * 9),
    row(
        "damaged-bz2",
        "b.yaml",
        r"e\.bz2: the bzip2 data at byte 4 is damaged",
        changed("dump.xml", "e.bz2"),
        e_bz2=bz2.compress(b"A sentence.\n" * 99)[:30] + b"x" * 60,
    ),
    row("only-redirects", "b.yaml --extract.namespaces 5", r"No article is left of dump\.xml after the filters"),
    row(
        "other-format",
        "b.yaml --extract.input_format mediawiki",
        r"this is no MediaWiki",
        changed("dump.xml", "b.yaml"),
    ),
]
