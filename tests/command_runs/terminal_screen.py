"""What a terminal shows: a small emulator of the escape sequences that maskmill writes."""

import re


class Screen:
    """A terminal of some size, as a user sees it, what has scrolled away at its top included.

    Attributes:
      escapes: all escape sequences that it got.
    """

    def __init__(self, rows: int = 24, columns: int = 80) -> None:
        self.rows, self.columns = rows, columns
        self.escapes: list[str] = []
        self._lines = [""]
        self._wrapped = [False]  # whether a line goes on in the next one
        self._row = self._column = 0

    def feed(self, text: str) -> None:
        """Writes a text to the terminal.

        Raises:
          ValueError: it has an escape sequence that maskmill should not write.
        """
        for part in re.findall(r"\x1b\[[?0-9;]*[A-Za-z]|\x1b|[^\x1b]", text):
            if part == "\r":
                self._column = 0
            elif part == "\n":
                self._go_down(wraps=False)
            elif part.startswith("\x1b"):
                self._escape(part)
            else:
                self._put(part)

    def _put(self, character: str) -> None:
        if self._column == self.columns:
            self._go_down(wraps=True)
            self._column = 0
        line = self._lines[self._row].ljust(self._column)
        self._lines[self._row] = line[: self._column] + character + line[self._column + 1 :]
        self._column += 1

    def _go_down(self, *, wraps: bool) -> None:
        self._wrapped[self._row] = wraps
        self._row += 1
        if self._row == len(self._lines):
            self._lines.append("")
            self._wrapped.append(False)

    def _escape(self, escape: str) -> None:
        self.escapes.append(escape)
        number, letter = escape[2:-1], escape[-1]
        if letter == "A":
            self._row = max(0, len(self._lines) - self.rows, self._row - int(number))
        elif letter == "K" and number in ("", "2"):
            self._lines[self._row] = "" if number else self._lines[self._row][: self._column]
        elif letter != "m":
            raise ValueError(f"{escape!r} is none of maskmill's escape sequences")

    @property
    def text(self) -> list[str]:
        """Its lines; one that the terminal had to break is one, and the last one is the cursor's."""
        joined = [""]
        for line, wraps in zip(self._lines, self._wrapped, strict=True):
            joined[-1] += line if wraps else line.rstrip()
            if not wraps:
                joined.append("")
        return joined[:-1]
