"""Sample articles, documents, a dump and a vocabulary for tests of pipelines; docs/test-your-pipeline.md uses them."""

import re
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from maskmill.inputs.articles import Article, Document

_SENTENCES = {
    ("enwiki", "1", "Lamp"): ("A lamp gives light.", "Dr. Light likes it.", "It has two switches.", "Both are red."),
    ("enwiki", "2", "River"): ("The river is long.", "It rose all day.", "A boat came.", "It was late."),
    ("dewiki", "1", "Lampe"): ("Eine Lampe gibt Licht.", "Dr. Licht mag sie.", "Sie ist rot.", "Sie hat ein Kabel."),
    ("dewiki", "2", "Fluss"): ("Der Fluss ist lang.", "Er hat z. B. drei Arme.", "Ein Boot kam.", "Es war klein."),
}

DOCUMENTS: Sequence[Document] = tuple(
    Document(*identity, list(sentences), {"language": identity[0][:2]}) for identity, sentences in _SENTENCES.items()
)
"""Two English and two German documents: what SplitSentences makes of ARTICLES."""

ARTICLES: Sequence[Article] = tuple(
    Article(one.wiki, one.page_id, one.title, " ".join(one.sentences), one.metadata) for one in DOCUMENTS
)
"""The articles of DOCUMENTS, of the wikis enwiki and dewiki; `metadata` has their language."""


def write_dump(path: str | Path, wiki: str = "enwiki") -> None:
    """Write a dump of the articles of a wiki, enwiki or dewiki, and a redirect, as Wikimedia's XML."""
    language = wiki.removesuffix("wiki")
    pages = [
        f"<page><title>{escape(one.title)}</title><ns>0</ns><id>{one.page_id}</id><revision><id>{one.page_id}</id>"
        f"<timestamp>2026-03-01T00:00:00Z</timestamp><text>{escape(one.text)}</text></revision></page>\n"
        for one in (*ARTICLES, Article(wiki, "9", "Light", "#REDIRECT [[Lamp]]", {}))
        if one.wiki == wiki
    ]
    head = (
        f'<mediawiki xml:lang="{language}"><siteinfo><dbname>{wiki}</dbname><base>https://{language}.wikipedia.org/</base>'
        '<case>first-letter</case><namespaces><namespace key="0" /></namespaces></siteinfo>\n'
    )
    Path(path).write_text(head + "".join(pages) + "</mediawiki>\n", encoding="utf-8")


def write_vocabulary(path: str | Path) -> None:
    """Write a vocab.txt that knows every word of ARTICLES in lower case."""
    words = {word for one in ARTICLES for word in re.findall(r"\w+|[^\w\s]", one.text.lower())}
    pieces = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(words))
    Path(path).write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
