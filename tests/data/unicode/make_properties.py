"""Writes the properties of characters that tokenization needs, as the running Python's version of Unicode has them.

    PYTHON make_properties.py unicode-VERSION.tsv.gz

The script runs on Python 3.7 (Unicode 11.0.0) and newer and uses only `unicodedata` and `str.lower`.
`python -m tools.make_unicode_tables` makes the kernels' tables from its output.
"""

import gzip
import sys
import unicodedata

COLUMNS = """\
# Unicode {version} as Python {python} gives it, made with no other source.
# Columns: code point or first..last; category; canonical combining class; NFD where it differs; lower case where it
# differs (both as hex code points; "hangul": NFD by the algorithm); how str.lower treats it around a capital sigma:
# i = ignored, c = cased, empty = neither. Left out: surrogates and unassigned code points (category Cn).
"""


def hexes(text):
    return " ".join(f"{ord(c):X}" for c in text)


def case_class(char):
    # str.lower gives a final sigma for a capital one after a cased letter; ignored characters may stand between them.
    alone = (char + "\u03a3").lower()[-1] == "\u03c2"
    after_a = ("A" + char + "\u03a3").lower()[-1] == "\u03c2"
    return "c" if alone else "i" if after_a else ""


def rows():
    for point in range(0x110000):
        if 0xD800 <= point <= 0xDFFF:
            continue
        char = chr(point)
        category = unicodedata.category(char)
        if category == "Cn":
            continue
        hangul = 0xAC00 <= point <= 0xD7A3
        nfd = unicodedata.normalize("NFD", char)
        lower = char.lower()
        yield (
            point,
            (
                category,
                str(unicodedata.combining(char)),
                "hangul" if hangul else "" if nfd == char else hexes(nfd),
                "" if lower == char else hexes(lower),
                case_class(char),
            ),
        )


def main(path):
    lines = []
    run = None
    for point, row in rows():
        plain = row[1] == "0" and row[2] in ("", "hangul") and not row[3]
        if plain and run is not None and run[1] == point - 1 and run[2] == row:
            run = (run[0], point, row)
            continue
        if run is not None:
            lines.append(run)
        run = (point, point, row)
    lines.append(run)
    text = COLUMNS.format(version=unicodedata.unidata_version, python=sys.version.split()[0])
    for first, last, row in lines:
        name = f"{first:X}" if first == last else f"{first:X}..{last:X}"
        text += "\t".join((name, *row)) + "\n"
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        packed.write(text.encode("ascii"))


if __name__ == "__main__":
    main(sys.argv[1])
