"""Makes up small dumps for the tests and packs them in every container."""

import bz2
import gzip
import lzma
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import pytest

from made_up.bzip2_writer import block, stream

NAMESPACES = {"Media": -2, "Special": -1, "": 0, "Talk": 1, "User": 2, "File": 6, "Template": 10, "Cat & Co": 14}


def header(schema: str = "0.10") -> str:
    """The beginning of an export, up to its first page."""
    names = "\n".join(
        f'      <namespace key="{key}" case="first-letter">{escape(name)}</namespace>'
        if name
        else f'      <namespace key="{key}" case="first-letter" />'
        for name, key in NAMESPACES.items()
    )
    return (
        f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-{schema}/" version="{schema}" xml:lang="en">\n'
        "  <siteinfo>\n    <sitename>Testwiki</sitename>\n    <dbname>testwiki</dbname>\n"
        "    <base>https://test.wikipedia.org/wiki/Main_Page</base>\n"
        f"    <namespaces>\n{names}\n    </namespaces>\n  </siteinfo>\n"
    )


def page(
    number: int,
    title: str,
    text: str,
    *,
    schema: str = "0.10",
    namespace: int = 0,
    redirect: str | None = None,
    model: str = "wikitext",
    older: Sequence[str] = (),
) -> str:
    """A page as MediaWiki writes it in a schema; `older` has the texts of the revisions before the last."""
    version = int(schema.removeprefix("0."))
    parts = [f"  <page>\n    <title>{escape(title)}</title>\n"]
    if version >= 6:
        parts.append(f"    <ns>{namespace}</ns>\n")
    parts.append(f"    <id>{number}</id>\n")
    if redirect is not None and version >= 4:
        parts.append(f"    <redirect title={quoteattr(redirect)} />\n" if version >= 6 else "    <redirect />\n")
    for k, content in enumerate([*older, text]):
        model_and_format = f"      <model>{model}</model>\n      <format>text/x-wiki</format>\n" if version >= 8 else ""
        size = f'bytes="{len(content.encode())}" ' if version == 11 else ""
        body = f'<text {size}xml:space="preserve">{escape(content, {chr(34): "&quot;"})}</text>'
        body = f"      {body}\n" if content else f'      <text {size}xml:space="preserve" />\n'
        parts += [
            f"    <revision>\n      <id>{1000 * number + k}</id>\n",
            f"      <timestamp>20{10 + k:02d}-01-02T03:04:05Z</timestamp>\n",
            "      <contributor>\n        <username>Someone</username>\n        <id>77</id>\n      </contributor>\n",
            "      <comment>a &lt;page&gt; of [[text]]</comment>\n",
            f"      <origin>{1000 * number}</origin>\n" if version == 11 else "",
            # Schema 0.8 has the model and the format after the text.
            body + "      <sha1>abc</sha1>\n" + model_and_format if version == 8 else model_and_format + body,
            "    </revision>\n",
        ]
    return "".join([*parts, "  </page>\n"])


def dump(pages: Sequence[str], schema: str = "0.10") -> bytes:
    """A whole export of these pages."""
    return (header(schema) + "".join(pages) + "</mediawiki>\n").encode()


def dump_folder(factory: pytest.TempPathFactory, pages: Sequence[str]) -> Path:
    """A folder with a dump of these pages."""
    folder = factory.mktemp("dump")
    (folder / "dump.xml").write_bytes(dump(pages))
    return folder


def tiny_blocks(size: int) -> Callable[[bytes], bytes]:
    """Packs as one bzip2 stream with blocks of `size` bytes."""
    return lambda xml: stream([block(xml[i : i + size]) for i in range(0, len(xml), size)])


def many_streams(size: int) -> Callable[[bytes], bytes]:
    """Packs like pbzip2: a bzip2 stream for each `size` bytes, wherever pages start."""
    return lambda xml: b"".join(bz2.compress(xml[i : i + size]) for i in range(0, len(xml), size))


def multistream(pages_each: int) -> Callable[[bytes], bytes]:
    """Packs like Wikimedia: one bzip2 stream for the header, one for each `pages_each` pages, and one for the end."""

    def pack(xml: bytes) -> bytes:
        pages = xml.split(b"  <page>\n")
        end = pages[-1].index(b"</mediawiki>")
        pages, closing = [pages[0], *pages[1:-1], pages[-1][:end]], pages[-1][end:]
        groups = [pages[i : i + pages_each] for i in range(1, len(pages), pages_each)]
        parts = [pages[0], *(b"".join(b"  <page>\n" + page for page in group) for group in groups), closing]
        return b"".join(map(bz2.compress, parts))

    return pack


def gzip_members(size: int) -> Callable[[bytes], bytes]:
    """Packs as gzip with a member for each `size` bytes."""
    return lambda xml: b"".join(gzip.compress(xml[i : i + size], mtime=0) for i in range(0, len(xml), size))


CONTAINERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "bz2": bz2.compress,
    "tiny blocks": tiny_blocks(150),
    "many streams": many_streams(171),
    "multistream": multistream(2),
    "gz": gzip.compress,
    "gz members": gzip_members(333),
    "xz": lzma.compress,
    "xz streams": lambda xml: lzma.compress(xml[:500]) + b"\0" * 8 + lzma.compress(xml[500:]),
}
