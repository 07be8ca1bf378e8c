"""The bundled Punkt parameters: all are there, and decide as NLTK does with the files they are made from."""

import lzma
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st
from nltk.tokenize import punkt
from oracles import punkt34 as oracle_punkt34
from properties import tries

from maskmill.sentences import punkt as splitter_module
from maskmill.sentences.punkt import SentenceSplitter, installed_checksum
from tools.make_punkt_bundles import PARAMETER_FILES, bundle, decisive_contexts

FOLDER = Path(splitter_module.__file__).parent / "data" / "punkt_tab"
LANGUAGES = [
    "czech",
    "danish",
    "dutch",
    "english",
    "estonian",
    "finnish",
    "french",
    "german",
    "greek",
    "italian",
    "malayalam",
    "norwegian",
    "polish",
    "portuguese",
    "russian",
    "slovene",
    "spanish",
    "swedish",
    "turkish",
]
# Text with abbreviations, ordinals, initials and names, in the words that each language's parameters know.
LINES = {
    "german": "Im 13. Jahrhundert lebte Dr. Meier in St. Gallen. Nr. 5 kam am 3. Mai... Dann ging er. Ja! Gut? ja.",
    "czech": "Dne 5. května přišel např. J. Novák z ul. Dlouhé. Bylo to tzv. povstání. A co? Nic... Potom odešel.",
    "finnish": "Hän syntyi 5. toukokuuta esim. Turussa. Se on mm. iso. J. K. Paasikivi tuli. Entä? Niin... Sitten.",
    "greek": "Ο κ. Παπαδόπουλος ήρθε. Η δρ. Μαρία π.χ. έφυγε. Τι; Όχι. Το έτος 5. Αυτό... Και μετά.",
    "turkish": "Dr. Ali geldi. 19. Yüzyılda Prof. Veli gitti. Bu vb. şeyler. Ne? Hiç... Sonra.",
    "polish": "W 1990 r. prof. Nowak przyjechał. To jest np. miasto. Ul. Długa. Co? Nic... Potem.",
    "spanish": "El Dr. López vino. La Sra. Pérez se fue. EE.UU. es grande. ¿Qué? Nada... Luego.",
}


def as_nltk_reads(language: str, folder: Path) -> punkt.PunktSentenceTokenizer:
    """NLTK's tokenizer with the bundled parameters of a language, which are unpacked into a folder."""
    texts = lzma.decompress((FOLDER / f"{language}.xz").read_bytes()).decode().split("\0")
    for name, text in zip(PARAMETER_FILES, texts, strict=True):
        (folder / name).write_text(text, encoding="utf-8", newline="")
    return punkt.PunktSentenceTokenizer(oracle_punkt34.parameters(folder))


@pytest.mark.builds
@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_of_nltk_is_bundled(language: str) -> None:
    assert installed_checksum(language) is None
    assert SentenceSplitter(language).split(b"Aa bb! Cc dd?") == [b"Aa bb!", b"Cc dd?"]


@pytest.mark.parametrize("language", LINES)
def test_a_line_is_split_as_nltk_splits_it(language: str, tmp_path: Path) -> None:
    oracle = as_nltk_reads(language, tmp_path)
    found = SentenceSplitter(language).split(LINES[language].encode())
    assert [sentence.decode() for sentence in found] == oracle.tokenize(LINES[language])


def test_all_bundles_together_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.glob("*.xz")) < 2_000_000


WORDS = ["mr", "haus", "er", "der", "bzw", "und", "Haus", "Er", "Der", "S", "Bzw", "Und", "5"]


@hypothesis.given(
    contexts=st.dictionaries(
        st.sampled_from([word.lower() for word in WORDS]), st.integers(0, 63).map(lambda n: 2 * n)
    ),
    pieces=st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from([" ", ". ", "... ", "? ", ", "])), max_size=12),
)
@tries(500)
def test_contexts_that_are_left_out_decide_nothing(contexts: dict[str, int], pieces: list[tuple[str, str]]) -> None:
    line = "".join(word + mark for word, mark in pieces)
    answers = []
    for keep in (lambda n: n, decisive_contexts):
        parameters = punkt.PunktParameters()
        parameters.abbrev_types.update({"mr", "bzw"})
        parameters.ortho_context.update({word: keep(bits) for word, bits in contexts.items()})
        answers.append(punkt.PunktSentenceTokenizer(parameters).tokenize(line))
    assert answers[0] == answers[1]


def test_a_bundle_is_the_four_files_without_rows_that_decide_nothing() -> None:
    texts = {
        "collocations.tab": "a\tb\n",
        "ortho_context.tab": "Haus\t14\nand\t32\ner\t46\nso\t48\n",
        "abbrev_types.txt": "bzw",
        "sent_starters.txt": "",
    }
    unpacked = lzma.decompress(bundle(texts.__getitem__)).decode().split("\0")
    assert unpacked == ["a\tb\n", "so\t16\nand\t32\ner\t36\n", "bzw", ""]
