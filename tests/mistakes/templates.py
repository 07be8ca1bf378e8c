"""Mistakes in a user's own rules for templates, and with the options of templates."""

from mistakes.table import Mistake

EXTRACT = "extract --input=dump.xml --output=out --num_eval_articles=1"


def rules(name: str, content: bytes, says: str) -> Mistake:
    """A file of rules that cannot be used."""
    return Mistake(f"rules-{name}", f"{EXTRACT} --template_rules=my.rules", says, files={"my.rules": content})


FILES = [
    rules("no-section", b"a = {1}\n", r"my\.rules line 1 is neither a section nor `name = text`: 'a = \{1\}'"),
    rules("open-brace", b"[rules]\n\na = {1\n", r"my\.rules line 3: a \{ is not closed in the pattern '\{1'"),
    rules("no-such-table", b"[rules]\na = {1@months}\n", r"my\.rules line 2: there is no table 'months'"),
    rules("latin-1", "[rules]\né = {1}\n".encode("latin-1"), r"my\.rules: this file of rules is not UTF-8"),
    Mistake("rules-missing", f"{EXTRACT} --template_rules=no.rules", r"no\.rules"),
]
OPTIONS = [
    Mistake(
        f"{flag.split('=')[0].replace('_', '-')}-{name}",
        f"{EXTRACT} --{flag} {other}",
        says,
        files={"my.rules": b"[rules]\na = {1}\n"},
    )
    for flag in ("expand_templates", "template_rules=my.rules", "report_templates")
    for name, other, says in (
        ("mlperf", "--compat=mlperf", "does not go with WikiExtractor's text"),
        ("of-text", "--input_format=text", "needs the templates of a dump; leave it out for this input"),
    )
]
HOLES = [
    Mistake(
        f"holes-{name}",
        f"{EXTRACT} --holes=drop {other}",
        "--holes drop drops what the reference and WikiExtractor keep; leave it out",
    )
    for name, other in (("mlperf", "--compat=mlperf"), ("wikiextractor", "--extractor=wikiextractor"))
]

MISTAKES = [*FILES, *OPTIONS, *HOLES]
