"""Reads the pages of a MediaWiki export with a full XML parser, as an oracle for the tests: slow but easy to read."""

import io
import xml.etree.ElementTree as ElementTree

from maskmill.inputs.mediawiki import Page


def read_pages(xml: bytes, namespaces: dict[str, int] | None = None) -> list[Page]:
    """All pages of an export. Where the schema has no <ns>, `namespaces` gives the number of a title's prefix."""
    pages = []
    for _, element in ElementTree.iterparse(io.BytesIO(xml)):
        for child in element.iter():
            child.tag = child.tag.rpartition("}")[2]
        if element.tag != "page":
            continue
        revision = element.findall("revision")[-1]
        title = element.findtext("title", "").strip()
        namespace = element.findtext("ns")
        prefix, colon, _ = title.partition(":")
        pages.append(
            Page(
                title=title.encode(),
                namespace=int(namespace) if namespace else (namespaces or {}).get(prefix, 0) if colon else 0,
                page_id=int(element.findtext("id", "")),
                revision_id=int(revision.findtext("id", "")),
                is_redirect=element.find("redirect") is not None,
                timestamp=revision.findtext("timestamp", "").encode(),
                model=revision.findtext("model", "wikitext").encode(),
                text=(revision.findtext("text") or "").encode(),
            )
        )
        element.clear()
    return pages
