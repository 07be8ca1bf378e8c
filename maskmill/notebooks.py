"""HTML for objects in notebooks (`_repr_html_`): it runs nothing, and all text of data is text in it."""

import html
from collections.abc import Iterable


def escaped(text: object) -> str:
    """Return a text as HTML. Marks of direction in it move nothing around it."""
    return f"<bdi>{html.escape(str(text))}</bdi>"


def table(caption: str, rows: Iterable[tuple[object, ...]]) -> str:
    """Return a table of rows, the first cell of each being its head."""
    lines = "".join(
        f"<tr><th scope='row' style='text-align: left'>{escaped(head)}</th>"
        + "".join(f"<td style='text-align: left'>{escaped(cell)}</td>" for cell in cells)
        + "</tr>"
        for head, *cells in rows
    )
    return f"<table><caption>{escaped(caption)}</caption><tbody>{lines}</tbody></table>"
