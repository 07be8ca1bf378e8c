"""Pages made to hurt: is the time to extract them still linear?

    python -m benchmarks.hostile [--size 10000000] [--repeats 3]

For each kind of page prints the CPU seconds at `size` bytes and at twice that, their ratio (2 is linear), the speed,
the bytes of text, and the process's peak memory. Exits 1 if a ratio is above --most. The least of the repeats counts,
and a ratio above --most is measured again, up to three times. glibc is told to take every large block from the system
and to give it back: else blocks below 32 MB cost no page faults the second time, and pages twice as long seem slower.
"""

import argparse
import os
import random
import resource
import sys
import time
from collections.abc import Callable

from transforms.extraction.wikitext import WikitextExtractor, WikitextOptions
from transforms.inputs.site import Site


def repeated(piece: str) -> Callable[[int], bytes]:
    """Makes pages that repeat a piece up to a size in bytes."""
    encoded = piece.encode()

    def make(size: int) -> bytes:
        return encoded * (size // len(encoded))

    return make


def nested(opening: str, closing: str, middle: str = "x") -> Callable[[int], bytes]:
    """Makes pages of one construct nested as deep as it goes."""

    def make(size: int) -> bytes:
        depth = size // (len(opening.encode()) + len(closing.encode()))
        return opening.encode() * depth + middle.encode() + closing.encode() * depth

    return make


def tokens(size: int) -> bytes:
    """Markup at random, the same for the same size."""
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
    "markup at random": tokens,
}


def measure(extractor: WikitextExtractor, page: bytes, repeats: int) -> tuple[float, int]:
    """(least CPU seconds of some runs, bytes of text)."""
    best = float("inf")
    length = 0
    for _ in range(repeats):
        start = time.process_time()
        length = len(extractor.extract(b"Title", page))
        best = min(best, time.process_time() - start)
    return best, length


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=10_000_000, help="bytes of the smaller page (default 10 MB)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--most", type=float, default=2.2, help="the ratio above which a case fails")
    parser.add_argument("--only", default="", help="only the cases whose name contains this")
    args = parser.parse_args()
    sites = {"en": Site(), "zh": Site(language="zh")}
    extractors = {name: WikitextExtractor(site, WikitextOptions()) for name, site in sites.items()}
    for extractor in extractors.values():
        extractor.extract(b"Title", b"warm")
    print(f"{'page':28} {'site':4} {'CPU s':>8} {'twice':>8} {'ratio':>6} {'MB/s':>7} {'text':>11}")
    failed = []
    for name, make in CASES.items():
        if args.only not in name:
            continue
        page, double = make(args.size), make(2 * args.size)
        for site, extractor in extractors.items():
            if site == "zh" and not name.startswith(("-{", "markup")):
                continue
            once = twice = float("inf")
            for _ in range(4):
                seconds, length = measure(extractor, page, args.repeats)
                once = min(once, seconds)
                twice = min(twice, measure(extractor, double, args.repeats)[0])
                ratio = twice / once
                if ratio <= args.most:
                    break
            speed = args.size / 1e6 / once
            print(f"{name:28} {site:4} {once:8.3f} {twice:8.3f} {ratio:6.2f} {speed:7.0f} {length:11,}", flush=True)
            if ratio > args.most:
                failed.append(name)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:.0f} MiB; {len(failed)} above {args.most}: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    if "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        fresh = {"MALLOC_MMAP_THRESHOLD_": "1000000", "MALLOC_TRIM_THRESHOLD_": "1000000"}
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks.hostile", *sys.argv[1:]], os.environ | fresh)
    sys.exit(main())
