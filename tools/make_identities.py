"""Makes data/identities.tsv from Wikidata's table of sitelinks.

`python -m tools.make_identities wb_items_per_site.sql.gz > identities.tsv`

The table is part of Wikidata's dumps (https://dumps.wikimedia.org/wikidatawiki, 2 GB; CC0). It names for each item the
pages of all wikis, so that an English template's item names the same template elsewhere. It is read twice.
"""

import gzip
import re
import sys
from collections.abc import Iterable, Iterator

from maskmill.extraction import languages
from maskmill.extraction.template_rules import Rule, load_rules

# A row: its number, the item, the site, the page. Quotes and backslashes have a backslash before them.
_ROW = re.compile(rb"\(\d+,(\d+),'((?:[^'\\]|\\.)*)','((?:[^'\\]|\\.)*)'\)")
_INSERT = b"INSERT INTO"
_WIKIPEDIA = "wiki"  # how sites of Wikipedia end: dewiki, zh_yuewiki
_ENGLISH = "enwiki"
_NAMESPACE = "Template:"
_ROW_KEY = "{@language}"  # in names of rules that stand for one template a language
_SAMPLE = "de"  # the language whose template stands for the others of such a rule


def read_sitelinks(lines: Iterable[bytes]) -> Iterator[tuple[int, str, str]]:
    """Yield (item, site, page) for each row of the table's dump."""
    for line in lines:
        if line.startswith(_INSERT):
            for item, site, page in _ROW.findall(line):
                yield int(item), site.decode(), re.sub(rb"\\(.)", rb"\1", page).decode()


def english_items(links: Iterable[tuple[int, str, str]], rules: Iterable[Rule]) -> dict[int, str]:
    """Return the items of the templates that have rules, and for each the name by which its rule has it."""
    names: dict[str, str] = {}
    for rule in rules:
        for name in rule.names:
            page = name.replace(_ROW_KEY, _SAMPLE)
            if "{@" not in page and not name.endswith(":"):
                names.setdefault(page[0].upper() + page[1:], name)
    items = {}
    for item, site, page in links:
        if site == _ENGLISH and page.startswith(_NAMESPACE):
            meaning = names.get(page.removeprefix(_NAMESPACE))
            if meaning is not None:
                items[item] = meaning
    return items


def local_names(links: Iterable[tuple[int, str, str]], items: dict[int, str]) -> list[tuple[str, str, str]]:
    """Return (meaning, language, name) for the names of items' templates that are not the meaning's own, sorted."""
    prefixes = set(languages.interlanguage_prefixes())
    rows = set()
    for item, site, page in links:
        code = site.removesuffix(_WIKIPEDIA).replace("_", "-")
        if item not in items or site == _ENGLISH or code not in prefixes:
            continue
        meaning = items[item]
        _, separator, name = page.partition(":")
        if _ROW_KEY in meaning:
            if not name.endswith(_SAMPLE):
                continue
            name = name.removesuffix(_SAMPLE) + _ROW_KEY
        if separator and name.lower() != meaning.lower():
            rows.add((meaning, languages.find_language(code).code, name))
    return sorted(rows)


def main(dump: str) -> None:
    """Write the file to standard output."""
    (common, *_) = load_rules("common")
    with gzip.open(dump) as lines:
        items = english_items(read_sitelinks(lines), common.rules)
    with gzip.open(dump) as lines:
        rows = local_names(read_sitelinks(lines), items)
    print(
        "# Names that templates have on other Wikipedias: meaning, language, name, with tabs between. A meaning is the"
    )
    print("# English template's name, which has a rule in templates/common.rules. From Wikidata's sitelinks (CC0).")
    for row in rows:
        print("\t".join(row))


if __name__ == "__main__":
    main(sys.argv[1])
