"""Words that are searched for in texts, however these are cut into pieces."""

import itertools
import re

from maskmill.errors import UnusableInputError

_PART = re.compile(r"\w+|[^\w\s]")


class Wanted:
    """Words to search for in many texts, in capitals or not: "U.S. Army" finds "u . s . army" and "the U.S. Army,".

    A word is found where it begins one: "art" is found in "artist", but not in "start".
    """

    def __init__(self, words: str) -> None:
        """Raise UnusableInputError if there is no word."""
        parts = _PART.findall(words)
        if not parts:
            raise UnusableInputError("The word to search for is empty; name one: --example search WORD.")
        between = (r"\s+" if f"{one[-1]}{next[0]}".isalnum() else r"\s*" for one, next in itertools.pairwise(parts))
        pattern = "".join(map("".join, zip(map(re.escape, parts), (*between, ""), strict=True)))
        self.pattern = re.compile((r"\b" if parts[0][0].isalnum() else "") + pattern, re.IGNORECASE)
        self._longest = max(parts, key=len).lower()

    def stands_in(self, text: str) -> bool:
        """Return whether they stand in a text."""
        # Patterns take ten times as long as this.
        return self._longest in text.lower() and self.pattern.search(text) is not None
