"""Counts calls of templates that carry text (languages, measures, dates) and lose it. Also run with an older checkout.

    PYTHONPATH=CHECKOUT python benchmarks/lost_text.py PATTERN DUMP...

prints `{"calls": …, "lost": …, "samples": […]}` for the extractor of CHECKOUT. PATTERN is a regular expression for the
whole names of the templates. It needs only what all versions of maskmill have.

A call counts if it stands within a line of an article and its surroundings are in the text: two marks are put around
the call, and the text between them is looked at when the page is extracted. Calls in tables, infoboxes, footnotes and
other templates lose their marks and do not count.
"""

import argparse
import json
import re
from pathlib import Path

from maskmill.storage import files
from transforms.extraction.wikitext import WikitextExtractor, WikitextOptions
from transforms.inputs.mediawiki import Page, read_header
from transforms.inputs.options import ReadOptions
from transforms.inputs.site import Site
from transforms.inputs.units import plan_units, read_unit

# Private characters, which no page holds.
_OPEN, _CLOSE = "\ue000", "\ue001"
_KEPT = re.compile(f"{_OPEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}")
_DATE = "2020-01-01"
_TEXT = re.compile(r"[^\W_]|[^\x00-\x7f\s«»“”„‘’‚（）「」『』、。，]")  # more than spaces, brackets and punctuation
# The marks stand outside a space or a bracket beside the call, so that the call's own neighbours stay what they are.
_BEFORE = " \u00a0([\"'„“«「『（"
_AFTER = " \u00a0)]\"'“”»」』）.,;:、。，"
_SAMPLES = 20


def mark_calls(text: str, names: re.Pattern[str]) -> str:
    """The wikitext with marks around the calls of some templates that stand within lines and hold no other template."""
    call = re.compile(r"\{\{[ _]*(" + names.pattern + r")[ _]*\|[^{}\n]*\}\}", names.flags)
    pieces, done = [], 0
    for match in call.finditer(text):
        start, end = match.span()
        line = text.rfind("\n", 0, start) + 1
        if not text[line:start].strip(" *#:;'"):
            continue
        if start - 1 > line and text[start - 1] in _BEFORE:
            start -= 1
        if end < len(text) and text[end] in _AFTER:
            end += 1
        if start < done:
            continue
        pieces += [text[done:start], _OPEN, text[start:end], _CLOSE]
        done = end
    return "".join([*pieces, text[done:]])


def count(path: str, names: re.Pattern[str]) -> tuple[int, int, list[str]]:
    """(calls, of these lost, samples of lost ones with what stands before them) in the articles of a dump."""
    extractor = WikitextExtractor(Site.parse(read_header(path)), WikitextOptions(date=_DATE))
    calls = lost = 0
    samples = []
    for unit in plan_units([files.FileInfo(path=path, size=Path(path).stat().st_size)]):
        for page in read_unit(unit, ReadOptions()):
            if (
                not isinstance(page, Page)
                or page.namespace != 0
                or page.is_redirect
                or extractor.is_redirect(page.text)
            ):
                continue
            marked = mark_calls(page.text.decode("utf-8"), names)
            if _OPEN not in marked:
                continue
            text = extractor.extract(page.title, marked.encode("utf-8")).decode("utf-8")
            for match in _KEPT.finditer(text):
                calls += 1
                if not _TEXT.search(match[1]):
                    lost += 1
                    samples.append(f"{page.title.decode('utf-8')}: {text[max(0, match.start() - 60) : match.end()]!r}")
    return calls, lost, samples


def main() -> None:
    """Prints the counts of the dumps together."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", metavar="PATTERN")
    parser.add_argument("dumps", nargs="+", metavar="DUMP")
    arguments = parser.parse_args()
    names = re.compile(arguments.pattern, re.IGNORECASE)
    total_calls = total_lost = 0
    samples: list[str] = []
    for path in arguments.dumps:
        calls, lost, some = count(path, names)
        total_calls += calls
        total_lost += lost
        samples += some
    print(json.dumps({"calls": total_calls, "lost": total_lost, "samples": samples[:_SAMPLES]}, ensure_ascii=False))


if __name__ == "__main__":
    main()
