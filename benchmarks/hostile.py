"""Measures pages that are built to be slow: the time to extract them must grow in proportion to their length.

    python -m benchmarks.hostile [--size 10000000] [--repeats 3]

For each kind of page it prints the CPU seconds for `size` bytes and for twice as many, their ratio (2 is linear), the
speed and the bytes of text; at the end the peak memory of the process. The least of the repeats counts. A ratio above
--most is measured again, up to three times; if it stays above, the command exits with 1.

glibc is set to take every large block of memory from the system and to give it back. Otherwise it reuses blocks below
32 MB without page faults, and pages of twice the length seem to take more than twice the time.
"""

import argparse
import os
import random
import resource
import sys
import time
from collections.abc import Callable

from benchmarks.measure import print_machine
from transforms.extraction.wikitext import WikitextExtractor, WikitextOptions
from transforms.inputs.site import Site


def repeated(piece: str) -> Callable[[int], bytes]:
    """A function that makes a page of a size in bytes by repeating a piece."""
    encoded = piece.encode()

    def make(size: int) -> bytes:
        return encoded * (size // len(encoded))

    return make


def nested(opening: str, closing: str, middle: str = "x") -> Callable[[int], bytes]:
    """A function that makes a page of a size in bytes from one construct, nested as deep as the size allows."""

    def make(size: int) -> bytes:
        depth = size // (len(opening.encode()) + len(closing.encode()))
        return opening.encode() * depth + middle.encode() + closing.encode() * depth

    return make


def random_markup(size: int) -> bytes:
    """Random markup; the same size gives the same page."""
    pieces = [
        "{{",
        "}}",
        "{{{",
        "}}}",
        "[[",
        "]]",
        "[",
        "]",
        "{|",
        "|}",
        "|",
        "=",
        "''",
        "'''",
        "<ref>",
        "</ref>",
        "<ref",
        "<!--",
        "-->",
        "<math>",
        "</math>",
        "<nowiki>",
        "</nowiki>",
        "<table>",
        "</table>",
        "==",
        "*",
        ":",
        "-",
        "-{",
        "}-",
        "_",
        "__",
        "&",
        "&amp;",
        "word",
        "text",
        "lang",
        "convert",
        "File:",
        "http://x",
        "(",
        ")",
        ",",
        ".",
    ]
    rng = random.Random(size)
    out = []
    length = 0
    while length < size:
        piece = rng.choice(pieces) + rng.choice(("", "", " ", "\n"))
        out.append(piece)
        length += len(piece)
    return "".join(out).encode()[:size]


ATTEMPTS = 4  # a ratio above the limit may be chance, so a case is measured this often before it fails

CASES: dict[str, Callable[[int], bytes]] = {
    "{{": repeated("{{"),
    "{{a": repeated("{{a"),
    "{{nowrap|": repeated("{{nowrap|"),
    "{{nowrap| nested": nested("{{nowrap|", "}}"),
    "{{unknown| nested": nested("{{unknown|", "}}"),
    "{{{1|": repeated("{{{1|"),
    "{{#if:": repeated("{{#if:"),
    "{{hlist|a|a…": lambda size: b"{{hlist" + b"|a" * (size // 2) + b"}}",
    "{{lang|a=a…": lambda size: b"{{lang" + b"|a=a" * (size // 4) + b"}}",
    "}}": repeated("}}"),
    "}}]] ": repeated("}}]] "),
    "[[": repeated("[["),
    "[[a|": repeated("[[a|"),
    "[[a| nested": nested("[[a|", "]]"),
    "[[File:a|": repeated("[[File:a|"),
    "[[File:a| nested": nested("[[File:a|", "]]"),
    "[http://a ": repeated("[http://a "),
    "[http://a [[b|": repeated("[http://a [[b|"),
    "<": repeated("<"),
    "<ref": repeated("<ref"),
    "<ref ": repeated("<ref "),
    "<ref>": repeated("<ref>"),
    "<ref>x\\n": repeated("<ref>x\n"),
    "<ref></ref": repeated("<ref></ref"),
    "<nowiki>": repeated("<nowiki>"),
    "<nowiki><math><pre>": repeated("<nowiki><math><pre>"),
    "<!--": repeated("<!--"),
    "<!-- -": repeated("<!-- -"),
    "<div": repeated("<div"),
    "<div class=": repeated("<div class="),
    "<math>{": repeated("<math>{"),
    "<math>{{{…</math>": repeated("<math>" + "\\frac{" * 100 + "</math>"),
    "<math>x^{{…</math>": repeated("<math>" + "x^{" * 300 + "}" * 300 + "</math>"),
    "<table>": repeated("<table>"),
    "<table> nested": nested("<table>", "</table>"),
    "{|": repeated("{|"),
    "\\n{|": repeated("\n{|"),
    "\\n{| nested": nested("\n{|", "\n|}"),
    "\\n{|\\n|": repeated("\n{|\n|"),
    "\\n:::{|": repeated("\n" + ":" * 50 + "{|"),
    ":{|:{|": repeated(":{|"),
    "|}": repeated("|}"),
    "\\n|}": repeated("\n|}"),
    "''": repeated("''"),
    "''a'''b": repeated("''a'''b"),
    "'": repeated("'"),
    "''a\\n'''b": repeated("''a\n'''b"),
    "=": repeated("="),
    "\\n=": repeated("\n="),
    "\\n==a==": repeated("\n==a=="),
    "== <!-- -->": repeated("\n== <!-- -->"),
    "==…<!-- --> in one line": lambda size: b"==" + b"<!-- -->" * (size // 8),
    "[": repeated("["),
    "]": repeated("]"),
    "&": repeated("&"),
    "&amp": repeated("&amp"),
    "&#x": repeated("&#x"),
    "__": repeated("__"),
    "__A": repeated("__A"),
    "-{": repeated("-{"),
    "(": repeated("("),
    "({{x}}": repeated("({{x}}"),
    "({{x}}) nested": nested("({{x}}", ")"),
    "{{IPA|x}}": repeated("{{IPA|x}}"),
    "{{IPA|x}} in brackets": lambda size: b"(" + b"{{IPA|x}}" * (size // 9),
    "{{nowrap|}}": repeated("{{nowrap|}}"),
    "{{a:a:a:…": repeated("{{" + "a:" * 200 + "}}"),
    "<math> </math>": repeated("<math> </math>"),
    "-{a;-{a;": repeated("-{a;"),
    "-{a; nested": nested("-{zh-hans:", "}-"),
    "a{{nowrap|b…": nested("a{{nowrap|b", "c}}d"),
    "{{lang|{{lang|": nested("{{lang|x|", "}}"),
    "no line ends": repeated("word "),
    "only line ends": repeated("\n"),
    "spaces": repeated(" "),
    "\\n and a space": repeated("\n "),
    "zero-width": repeated("\u200b"),
    "zero-width between letters": repeated("a\u200b\u200d\ufeff"),
    "no-break spaces": repeated("\u00a0"),
    "combining marks": repeated("\u0301"),
    "control characters": repeated("\x01"),
    "emoji": repeated("😀"),
    "all unclosed": repeated("{{a [[b [http://c <ref>d {| ''e '''f <!-- \n"),
    "markup at random": random_markup,
}


def measure(extractor: WikitextExtractor, page: bytes, repeats: int) -> tuple[float, int]:
    """Extracts a page several times. Returns the least CPU seconds, and the bytes of its text."""
    best = float("inf")
    length = 0
    for _ in range(repeats):
        start = time.process_time()
        length = len(extractor.extract(b"Title", page))
        best = min(best, time.process_time() - start)
    return best, length


def main() -> int:
    """Prints the machine and a row for each kind of page. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=10_000_000, help="bytes of the smaller page (default 10 MB)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--most", type=float, default=2.2, help="the ratio above which a kind of page fails")
    parser.add_argument("--only", default="", help="run only the kinds of page whose name contains this")
    args = parser.parse_args()
    sites = {"en": Site(), "zh": Site(language="zh")}
    extractors = {name: WikitextExtractor(site, WikitextOptions()) for name, site in sites.items()}
    for extractor in extractors.values():
        extractor.extract(b"Title", b"compiles the kernels")
    print_machine()
    print(f"{'page':28} {'site':4} {'CPU s':>8} {'twice':>8} {'ratio':>6} {'MB/s':>7} {'text':>11}")
    failed = []
    for name, make in CASES.items():
        if args.only not in name:
            continue
        page, double = make(args.size), make(2 * args.size)
        for site, extractor in extractors.items():
            if site == "zh" and not name.startswith(("-{", "markup")):
                continue
            single_seconds = double_seconds = float("inf")
            for _ in range(ATTEMPTS):
                seconds, length = measure(extractor, page, args.repeats)
                single_seconds = min(single_seconds, seconds)
                double_seconds = min(double_seconds, measure(extractor, double, args.repeats)[0])
                ratio = double_seconds / single_seconds
                if ratio <= args.most:
                    break
            speed = args.size / 1e6 / single_seconds
            times = f"{single_seconds:8.3f} {double_seconds:8.3f} {ratio:6.2f}"
            print(f"{name:28} {site:4} {times} {speed:7.0f} {length:11,}", flush=True)
            if ratio > args.most:
                failed.append(name)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:.0f} MiB; ratios above {args.most}: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    if "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        settings = {"MALLOC_MMAP_THRESHOLD_": "1000000", "MALLOC_TRIM_THRESHOLD_": "1000000"}
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks.hostile", *sys.argv[1:]], os.environ | settings)
    sys.exit(main())
