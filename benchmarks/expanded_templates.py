"""CPU seconds of `extract` with `--expand_templates` off, unknown and all, in turn.

    python -m benchmarks.expanded_templates DUMP [--templates 10000] [--rounds 3]

DUMP is a packed dump (bz2). With `--templates` it gets so many templates, and a module, that it does not have: of the
names that its pages call the most frequent ones, and then others. A third of them shows its argument, a third chooses
by parser functions, and a third calls the module. Each figure is the smallest of all rounds, and holds the start of the
command.
"""

import argparse
import bz2
import collections
import re
import sys
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

from benchmarks.measure import measure, print_machine, ratio

MODES = ("off", "unknown", "all")
_NAME = re.compile(rb"\{\{\s*([^|{}\[\]<>#:/\n]{1,60}?)\s*[|}]")
_KINDS = (
    "{{{1|text}}}",
    "{{#if:{{{1|}}}|{{lc:{{{1}}}}} ({{#switch:{{{2|}}}|a=one|b=two|#default={{{2|none}}}}})|no text}}",
    "{{#invoke:Made|words}}",
)
_MODULE = """
local p = {}
local function trim(text) return mw.text.trim(text) end
function p.words(frame)
    local found = {}
    for name, value in pairs(frame:getParent().args) do
        found[#found + 1] = name .. ' ' .. trim(mw.ustring.lower(value))
    end
    table.sort(found)
    return table.concat(found, ', ')
end
return p
"""


def with_templates(dump: Path, count: int, made: Path) -> None:
    """Writes a dump with so many more templates, and the module that some of them call."""
    content = bz2.decompress(dump.read_bytes())
    names = collections.Counter(match[1] for match in _NAME.finditer(content))
    wanted = sorted(names, key=lambda name: (-names[name], name))[:count]
    called = len(wanted)
    wanted += [b"Made template %d" % number for number in range(count - called)]
    pages = [_page(1_000_000_000, 828, "Module:Made", "Scribunto", _MODULE)]
    for number, name in enumerate(wanted):
        title = name.decode("utf-8", "replace").replace("&amp;", "&")
        text = _KINDS[number % len(_KINDS)]
        pages.append(_page(1_000_000_001 + number, 10, f"Template:{title[:1].upper()}{title[1:]}", "wikitext", text))
    head, end, tail = content.rpartition(b"</mediawiki>")
    made.write_bytes(bz2.compress(head + "".join(pages).encode() + end + tail))
    print(f"{count:,} templates were added, of which pages call {called:,}")


def _page(identity: int, namespace: int, title: str, model: str, text: str) -> str:
    return (
        f"<page><title>{escape(title)}</title><ns>{namespace}</ns><id>{identity}</id><revision><id>{identity}</id>"
        f'<model>{model}</model><text xml:space="preserve">{escape(text)}</text></revision></page>\n'
    )


def main() -> None:
    """Measures the dump that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump", type=Path)
    parser.add_argument("--templates", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print_machine()
    with tempfile.TemporaryDirectory() as scratch:
        dump = arguments.dump
        if arguments.templates:
            dump = Path(scratch) / "made-20260301.xml.bz2"
            with_templates(arguments.dump, arguments.templates, dump)
        least: dict[str, float] = {}
        counts: dict[str, str] = {}
        for number in range(arguments.rounds):
            for mode in MODES:
                output = Path(scratch) / f"{mode}{number}"
                usage = measure(
                    [sys.executable, "-m", "maskmill", "extract", f"--input={dump}", f"--output={output}",
                     "--workers=1", "--num_eval_articles=0", f"--expand_templates={mode}"]
                )  # fmt: skip
                if usage.exit_code:
                    raise SystemExit(usage.output)
                least[mode] = min(usage.cpu, least.get(mode, usage.cpu))
                found = re.search(r"^  templates (.*?)^  extract", usage.output, re.MULTILINE | re.DOTALL)
                counts[mode] = " ".join(found[1].split()) if found else "no templates"
        for mode in MODES:
            print(f"{mode:<8} {least[mode]:7.2f} s CPU, {ratio(least[mode], least['off'], 3)} of off; {counts[mode]}")


if __name__ == "__main__":
    main()
