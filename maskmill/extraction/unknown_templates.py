"""Templates without a rule: the number of calls in the text and of calls that gave their argument, and a sample.

A user who sees what is missing can write a file of rules (`--template_rules`) in minutes.
"""

import dataclasses
import re
from collections.abc import Iterable, Sequence

REPORT = "unknown_templates.tsv"
# The counts of a text's calls (WikitextExtractor.take_template_counts), in the order of the report's columns.
COUNTS = (
    "unknown_calls", "kept_arguments", "dropped_brackets", "known_calls", "expanded_calls", "calls_expanded_to_nothing",
    "failed_modules",
)  # fmt: skip
GIVEN_UP = "given_up_modules"  # counted like those, once a unit of the input
MOST_LISTED = 50

_LONGEST_NAME = 100  # characters
_LONGEST_CALL = 160
_BEFORE = 80  # characters of the sentence before the call that a sample shows, and after it
_AFTER = 60


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnknownTemplate:
    """A template without a rule.

    calls: the number of calls within lines of text. kept: the number of these that gave their argument. holes: the
    number that gave nothing although the sentence may need it. title, sample: the title of the first page with such a
    call, and the call with its surroundings in the wikitext. gives: the text of the call by the wiki's own definition,
    or in brackets the reason why there is none; empty without expansion.
    """

    name: str
    calls: int
    kept: int
    holes: int
    title: str
    sample: str
    gives: str = ""


def describe_call(text: bytes, start: int, end: int, prefixes: Sequence[str]) -> tuple[str, str]:
    """Return the name of the template that is called at text[start:end], and a sample of the call.

    prefixes: the names of the namespace of templates; the name is returned without them.
    """
    line_start = text.rfind(b"\n", 0, start) + 1
    line_end = text.find(b"\n", end)
    before = text[line_start:start].decode("utf-8", "replace")
    call = text[start:end].decode("utf-8", "replace")
    after = text[end : len(text) if line_end < 0 else line_end].decode("utf-8", "replace")
    name = re.split(r"[|{}\[\]<]", call[2:], maxsplit=1)[0].replace("_", " ").strip()
    prefix, colon, rest = name.partition(":")
    if colon and prefix.strip().lower() in {known.lower() for known in prefixes}:
        name = rest.strip()
    sample = before[-_BEFORE:] + call[:_LONGEST_CALL] + after[:_AFTER]
    return (name[:1].upper() + name[1:])[:_LONGEST_NAME], re.sub(r"\s+", " ", sample).strip()


def merge(parts: Iterable[Iterable[UnknownTemplate]]) -> list[UnknownTemplate]:
    """Return the templates of all parts, ordered by name; the sample is that of the first part with one."""
    merged: dict[str, UnknownTemplate] = {}
    for template in (template for part in parts for template in part):
        known = merged.get(template.name)
        if known is not None:
            template = dataclasses.replace(
                known,
                calls=known.calls + template.calls,
                kept=known.kept + template.kept,
                holes=known.holes + template.holes,
            )
        merged[template.name] = template
    return [merged[name] for name in sorted(merged)]


def most_frequent(templates: Iterable[UnknownTemplate], count: int = MOST_LISTED) -> list[UnknownTemplate]:
    """Return the templates with most calls, the most frequent first; equally frequent ones by name."""
    return sorted(templates, key=lambda template: (-template.calls, template.name))[:count]


def table_text(templates: Iterable[UnknownTemplate]) -> str:
    """Return the report: a line of column names, and a line for each template, its fields separated by tabs.

    The column `gives` is present if templates are expanded.
    """
    templates = list(templates)
    names = [field.name for field in dataclasses.fields(UnknownTemplate)]
    if not any(template.gives for template in templates):
        names.remove("gives")
    rows = [[re.sub(r"\s+", " ", str(getattr(template, name))) for name in names] for template in templates]
    return "".join("\t".join(row) + "\n" for row in [["template", *names[1:]], *rows])
