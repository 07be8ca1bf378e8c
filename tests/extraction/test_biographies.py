"""The sentence that {{Bio}} writes at the top of each biography of the Italian Wikipedia."""

import pytest
from made_up.extractors import extractor_of

VERDI = {
    "Nome": "Giuseppe",
    "Cognome": "Verdi",
    "Sesso": "M",
    "LuogoNascita": "Le Roncole",
    "GiornoMeseNascita": "10 ottobre",
    "AnnoNascita": "1813",
    "LuogoMorte": "Milano",
    "GiornoMeseMorte": "27 gennaio",
    "AnnoMorte": "1901",
    "Attività": "compositore",
    "Nazionalità": "italiano",
    "Immagine": "Verdi.jpg",
    "Didascalia": "Verdi nel 1886",
}
ADA = {
    "Nome": "Ada",
    "Cognome": "Bo",
    "Sesso": "F",
    "LuogoNascita": "Roma",
    "AnnoNascita": "1980",
    "Attività": "attrice",
}


def sentence(fields: dict[str, str], after: str = "") -> str:
    call = "{{Bio\n" + "".join(f"|{name} = {value}\n" for name, value in fields.items()) + "}}" + after
    return extractor_of("it").extract(b"Titolo", call.encode()).decode()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            VERDI,
            "Giuseppe Verdi (Le Roncole, 10 ottobre 1813 – Milano, 27 gennaio 1901) è stato un compositore italiano.",
        ),
        (
            VERDI | {"PostCognomeVirgola": "detto '''il Maestro'''", "Titolo": "Sir", "PreData": "AFI: x"},
            "Sir Giuseppe Verdi, detto il Maestro (AFI: x; Le Roncole, 10 ottobre 1813 – Milano, 27 gennaio 1901), "
            "è stato un compositore italiano.",
        ),
        (
            VERDI
            | {"Attività2": "politico", "LuogoNascita": "", "GiornoMeseMorte": "", "LuogoMorteLink": "Milano (MI)"},
            "Giuseppe Verdi (10 ottobre 1813 – Milano, 1901) è stato un compositore e politico italiano.",
        ),
        (
            VERDI
            | {
                "Attività2": "pittore",
                "Attività3": "editore",
                "AnnoMorte": "?",
                "GiornoMeseMorte": "",
                "LuogoMorte": "",
            },
            "Giuseppe Verdi (Le Roncole, 10 ottobre 1813 – …) è stato un compositore, pittore ed editore italiano.",
        ),
        (
            VERDI | {"FineIncipit": "fu il quarto [[re]] di Prussia"},
            "Giuseppe Verdi (Le Roncole, 10 ottobre 1813 – Milano, 27 gennaio 1901) fu il quarto re di Prussia.",
        ),
        (
            {"Nome": "Aldo", "Pseudonimo": "Zac", "Sesso": "M", "LuogoNascita": "Pisa", "Attività": "scultore"},
            "Zac, pseudonimo di Aldo (Pisa), è uno scultore.",
        ),
        (ADA, "Ada Bo (Roma, 1980) è un'attrice."),
        (ADA | {"Attività": "cantante"}, "Ada Bo (Roma, 1980) è una cantante."),
        (
            ADA | {"Attività2": "regista", "AttivitàAltre": "e [[cantante]]", "Nazionalità": "argentina"},
            "Ada Bo (Roma, 1980) è un'attrice, regista e cantante argentina.",
        ),
        (
            ADA
            | {"Nazionalità": "argentina", "NazionalitàNaturalizzato": "italiana", "PostNazionalità": ", vincitrice"},
            "Ada Bo (Roma, 1980) è un'attrice argentina naturalizzata italiana, vincitrice.",
        ),
        (
            ADA | {"Nazionalità": "italiana", "Cittadinanza": "svizzera", "PreAttività": "la più nota"},
            "Ada Bo (Roma, 1980) è la più nota attrice italiana con cittadinanza svizzera.",
        ),
        (ADA | {"AnnoMorte": "2020"}, "Ada Bo (Roma, 1980 – 2020) è stata un'attrice."),
        (ADA | {"LuogoNascita": "", "AnnoNascita": "", "Attività": "zia", "Epoca": "1900"}, "Ada Bo è una zia."),
        (ADA | {"LuogoNascita": "", "AnnoNascita": "", "Epoca": "300"}, "Ada Bo è stata un'attrice."),
        (ADA | {"AnnoNascita": "1780"}, "Ada Bo (Roma, 1780) è stata un'attrice."),
        (
            {"Nome": "Zeno", "Sesso": "M", "LuogoMorte": "Atene", "AnnoMorte": "262 a.C.", "Attività": "psicologo"},
            "Zeno (… – Atene, 262 a.C.) è stato uno psicologo.",
        ),
        ({"Nome": "Zeno", "Sesso": "M"}, "Zeno."),
        ({"Cognome": "Zeno", "Sesso": "M"}, ""),
    ],
)
def test_a_biography_begins_with_the_sentence_of_its_fields(fields: dict[str, str], text: str) -> None:
    assert sentence(fields) == text


def test_the_page_goes_on_with_the_sentence() -> None:
    assert sentence(ADA, "\nHa vinto un premio.") == "Ada Bo (Roma, 1980) è un'attrice. Ha vinto un premio."
    assert sentence(ADA | {"Punto": "no"}, ", nota per x.") == "Ada Bo (Roma, 1980) è un'attrice, nota per x."
