"""Made-up texts in languages other than English, large enough for Punkt to be trained on them."""

import random
from collections.abc import Sequence

from made_up import dump_files

# An abbreviation that no table knows: a name follows it in every text.
ABBREVIATION = "прк"

_WORDS = {
    "uk": "річка тече повільно широка долина місто старе село ліс гора зима літо весна осінь людина робота школа книга "
    "будинок вулиця дорога поле вода камінь дерево сонце місяць зоря вітер дощ сніг ранок вечір ніч день рік",
    "hu": "folyó lassan széles völgy város régi falu erdő hegy tél nyár tavasz ősz ember munka iskola könyv ház utca "
    "út mező víz kő fa nap hold csillag szél eső hó reggel este éjszaka év",
}
_NAMES = {"uk": ("Петра", "Марії", "Івана", "Олени"), "hu": ("Péter", "Mária", "János", "Ilona")}


def paragraphs(language: str, number: int) -> list[str]:
    """Three paragraphs of eight sentences that no other number has; one sentence of each has the abbreviation."""
    draw = random.Random(f"{language} {number}")
    words = _WORDS[language].split()
    made = []
    for _ in range(3):
        sentences = [" ".join(draw.choices(words, k=draw.randrange(6, 12))) + "." for _ in range(8)]
        middle = f"{' '.join(draw.choices(words, k=3))} {ABBREVIATION}. {draw.choice(_NAMES[language])}"
        sentences[3] = f"{middle} {' '.join(draw.choices(words, k=3))}."
        made.append(" ".join(sentence[0].upper() + sentence[1:] for sentence in sentences))
    return made


def dump_of(language: str, pages: Sequence[str]) -> bytes:
    """A dump of the Wikipedia of a language, by its code."""
    xml = dump_files.dump(pages)
    xml = xml.replace(b'xml:lang="en"', f'xml:lang="{language}"'.encode())
    return xml.replace(b"https://test.", f"https://{language}.".encode())


def articles(language: str, count: int) -> list[str]:
    """Pages of made-up text."""
    return [
        dump_files.page(number, f"Стаття {number}", "\n\n".join(paragraphs(language, number)))
        for number in range(1, count + 1)
    ]
