"""Makes data/punkt_tab/*.xz, the Punkt parameters of languages other than English, from a folder of NLTK's `punkt_tab`.

    python -m tools.make_punkt_bundles punkt_tab

A bundle is `xz` of the four files that NLTK reads, in the order of `PARAMETER_FILES`, with NUL between them. Of the
orthographic contexts it keeps what can decide: Punkt asks of a word whether it was seen in lower case, whether it was
seen with a capital inside a sentence, and whether it was seen in lower case at a start but never with a capital. Words
that were never seen in lower case are decided like unknown ones, so that they are left out; every other word has one of
three answers, for each of which one value stands. The sentences are the same; a test compares them with NLTK's.
"""

import lzma
import sys
from collections.abc import Callable
from pathlib import Path

from maskmill.sentences.kernels import punkt
from maskmill.sentences.punkt import PARAMETER_FILES

_CONTEXTS = "ortho_context.tab"
_MID_LC = 1 << 5  # seen in lower case inside a sentence
_BUNDLED_ALREADY = "english"  # is there as NLTK has it


def decisive_contexts(contexts: int) -> int:
    """Return the least contexts with which Punkt decides as with these; 0 is what an unknown word has."""
    if not contexts & punkt.ORTHO_LC:
        return 0
    if contexts & punkt.ORTHO_MID_UC:
        return _MID_LC | punkt.ORTHO_MID_UC
    if contexts & punkt.ORTHO_BEG_LC and not contexts & punkt.ORTHO_UC:
        return punkt.ORTHO_BEG_LC
    return _MID_LC


def _decisive_rows(text: str) -> str:
    kept = []
    for line in text.split("\n"):
        word, _, contexts = line.rpartition("\t")
        decisive = decisive_contexts(int(contexts)) if word else 0
        if decisive:
            kept.append((decisive, word))
    return "".join(f"{word}\t{contexts}\n" for contexts, word in sorted(kept))


def bundle(read: Callable[[str], str]) -> bytes:
    """Return the bundle of the four files whose text `read` gives by name."""
    texts = [_decisive_rows(read(name)) if name == _CONTEXTS else read(name) for name in PARAMETER_FILES]
    return lzma.compress("\0".join(texts).encode(), preset=9 | lzma.PRESET_EXTREME)


def main(folder: Path) -> None:
    """Write the bundle of each language in a folder of NLTK's `punkt_tab`."""
    target = Path(__file__).parents[1] / "maskmill/sentences/data/punkt_tab"
    for language in sorted(path for path in folder.iterdir() if path.is_dir() and path.name != _BUNDLED_ALREADY):

        def read(name: str, language: Path = language) -> str:
            return (language / name).read_text(encoding="utf-8")

        (target / f"{language.name}.xz").write_bytes(bundle(read))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
