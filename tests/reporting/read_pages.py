"""Reads a page as a browser does, to ask what is on it."""

import html.parser

_EMPTY = {"meta", "br", "path", "img", "input", "link", "hr"}  # path: of an SVG, which closes itself


class ReadPage(html.parser.HTMLParser):
    """The elements of a page.

    Attributes:
      tags: (name, attributes) of each element.
      text: everything that is shown.
      unclosed: the names of elements that were not closed in their place.
    """

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.unclosed: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        self.unclosed += self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in _EMPTY:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if tag in _EMPTY:
            return
        if not self._open or self._open.pop() != tag:
            self.unclosed.append(tag)

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.text += data

    def named(self, tag: str) -> list[dict[str, str]]:
        """The attributes of all elements of a name."""
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def ids(self) -> list[str]:
        """The ids of all elements."""
        return [attributes["id"] for _, attributes in self.tags if "id" in attributes]
