"""Punkt's parameters for a language without any: trained on the beginning of the corpus, kept in a folder.

NLTK's PunktTrainer learns from plain text which words are abbreviations, which often start a sentence, and which pairs
of words stand around a full stop that ends none. A folder holds the four files of NLTK's `punkt_tab`, so that NLTK and
other builds (`--language FOLDER`) can read them. Source: Kiss & Strunk, Computational Linguistics 32 (2006).
"""

import collections
import dataclasses
import hashlib
import unicodedata
from collections.abc import Iterable, Iterator

from maskmill.errors import UnusableInputError
from maskmill.sentences.punkt import PARAMETER_FILES, PunktParameters, parse_parameters
from maskmill.storage import files

# Punkt is trained on so much text. NLTK takes about a second for each megabyte of it (Ukrainian, Greek and Vietnamese:
# 0.9 to 1.5 s). From 4 to 8 MB the abbreviations found in Ukrainian grow from 133 to 169, so that more is worth little.
TRAINING_BYTES = 8 << 20
# From less text, Punkt takes rare words at the end of sentences for abbreviations.
FEWEST_BYTES = 100_000
# Punkt's abbreviations that occur less often with a full stop are dropped, and so are those with digits and symbols:
# they are words, units and formulas that happened to end sentences. Without this, Punkt joins 27 sentences in 6.4 MB of
# Ukrainian and 31 in 6.7 MB of Vietnamese that rules alone do not, half of them and nearly all of them wrongly; with it
# 16, all rightly, and none.
_FEWEST_OCCURRENCES = 5
_JOINTS = frozenset(".-'’")
_AROUND_WORDS = "()[]{}«»\"'“”„‘’,;:"
# NLTK's trainer holds every token of one call at once, 100 bytes for each byte of text; it adds up over several calls.
_CHUNK_BYTES = 1 << 18


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParametersFolder:
    """The description of a folder of Punkt parameters.

    path: of the folder; relative to the output of the build that trained them if `is_trained_here`, else as the user
    gave it. sha256: of its four files together. abbreviations: the number of abbreviations in them.
    """

    path: str
    sha256: str
    abbreviations: int
    is_trained_here: bool

    def place(self, output: str) -> str:
        """Return the folder's path; `output` is the directory of the build."""
        return files.join(output, self.path) if self.is_trained_here else self.path


def beginning_of(texts: Iterable[bytes], size: int) -> Iterator[str]:
    """Yield the first `size` bytes of texts (UTF-8, a paragraph a line), in chunks of whole lines.

    A blank line follows each text. A character that the end would cut is dropped.
    """
    pending: list[bytes] = []
    held = 0
    for text in texts:
        for line in (*text[:size].removesuffix(b"\n").split(b"\n"), b""):
            pending.append(line + b"\n")
            held += len(line) + 1
            if held >= min(size, _CHUNK_BYTES):
                yield b"".join(pending)[:size].decode("utf-8", "ignore")
                size -= held
                pending, held = [], 0
            if size <= 0:
                return
    if held:
        yield b"".join(pending).decode("utf-8", "ignore")


def train_parameters(texts: Iterable[bytes]) -> tuple[PunktParameters | None, int]:
    """Train Punkt on the first TRAINING_BYTES of texts, and drop abbreviations with little evidence.

    Args:
      texts: the documents, in order: plain text, UTF-8, a paragraph a line. No more of them are read than are used.

    Returns:
      The parameters, None if the texts are shorter than FEWEST_BYTES; and how many bytes of text were used.
    """
    from nltk.tokenize.punkt import PunktTrainer

    trainer = PunktTrainer()
    size = 0
    with_stop: collections.Counter[str] = collections.Counter()
    for chunk in beginning_of(texts, TRAINING_BYTES):
        trainer.train(chunk, finalize=False)
        size += len(chunk.encode())
        words = (word.strip(_AROUND_WORDS) for word in chunk.split())
        with_stop.update(word[:-1].lower() for word in words if word.endswith("."))
    if size < FEWEST_BYTES:
        return None, size
    found = trainer.get_params()
    parameters = PunktParameters(
        abbreviations=frozenset(
            word
            for word in found.abbrev_types
            if with_stop[word] >= _FEWEST_OCCURRENCES and all(map(_may_be_in_abbreviation, word))
        ),
        starters=frozenset(found.sent_starters),
        collocations=frozenset(found.collocations),
        contexts=dict(found.ortho_context),
    )
    return parameters, size


def _may_be_in_abbreviation(character: str) -> bool:
    return character in _JOINTS or unicodedata.category(character)[0] in "LM"


def parameter_files(parameters: PunktParameters) -> dict[str, bytes]:
    """Return the files of parameters by name, in the format of NLTK's `punkt_tab`; their lines are sorted."""
    lines: dict[str, list[str]] = {
        "collocations.tab": [f"{first}\t{second}" for first, second in sorted(parameters.collocations)],
        "ortho_context.tab": [f"{word}\t{context}" for word, context in sorted(parameters.contexts.items())],
        "abbrev_types.txt": sorted(parameters.abbreviations),
        "sent_starters.txt": sorted(parameters.starters),
    }
    return {name: "".join(f"{line}\n" for line in lines[name]).encode() for name in PARAMETER_FILES}


def checksum_of(contents: dict[str, bytes]) -> str:
    """Return the sha256, in hexadecimal, of the files of parameters together."""
    return hashlib.sha256(b"\0".join(contents[name] for name in PARAMETER_FILES)).hexdigest()


def _read_files(folder: str) -> dict[str, bytes]:
    missing = [name for name in PARAMETER_FILES if not files.exists(files.join(folder, name))]
    if missing:
        raise UnusableInputError(
            f"{folder}: {missing[0]} is missing; a folder of Punkt parameters has {', '.join(PARAMETER_FILES)}, as in "
            "the folder punkt of an output for which Punkt was trained."
        )
    return {name: files.read_bytes(files.join(folder, name)) for name in PARAMETER_FILES}


def _parse(folder: str, contents: dict[str, bytes]) -> PunktParameters:
    try:
        return parse_parameters(lambda name: contents[name].decode("utf-8"))
    except ValueError as error:
        raise UnusableInputError(
            f"{folder}: its files do not hold Punkt parameters ({error}); train them again, or take NLTK's."
        ) from error


def read_parameters(folder: str) -> PunktParameters:
    """Return the parameters in a folder; raises UnusableInputError if a file is missing, or is not one of Punkt's."""
    return _parse(folder, _read_files(folder))


def describe_folder(folder: str) -> ParametersFolder:
    """Return the description of a folder that the user names.

    Raises:
      UnusableInputError: a file is missing, or is not one of Punkt's.
    """
    contents = _read_files(folder)
    return ParametersFolder(
        path=folder,
        sha256=checksum_of(contents),
        abbreviations=len(_parse(folder, contents).abbreviations),
        is_trained_here=False,
    )
