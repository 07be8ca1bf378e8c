"""Calls that a template's rule does not describe: they give nothing, and are counted, rather than a wrong value."""

import pytest
from made_up.extractors import extractor_of

from transforms.extraction.options import WikitextOptions
from transforms.extraction.wikitext import WikitextExtractor
from transforms.inputs.site import Site

SURE = [
    ("en", "{{Solar luminosity|96}}", "96 L☉"),
    ("en", "{{solar mass|2.5}}", "2.5 M☉"),
    ("en", "{{solar radius}}", "R☉"),
    ("en", "{{earth mass|7}}", "7 M🜨"),
    ("en", "{{BCE|322}}", "322 BCE"),
    ("en", "{{radic|A|3}}", "³√A"),
    ("en", "{{radic|2}}", "√2"),
    ("en", "{{val|5|e=19|u=kg}}", "5 × 10¹⁹ kg"),
    ("en", "{{val|e=19|u=kg}}", "10¹⁹ kg"),
    ("en", "{{val|1.23|0.04|0.05}}", "1.23 +0.04 −0.05"),
    ("en", "{{convert|5|yd|2|ft}}", "5 yards 2 feet"),
    ("en", "{{convert|5|km|mi|0}}", "5 kilometres (3 mi)"),
    ("en", "{{val|1.5|-|2.5|u=m}}", "1.5–2.5 m"),
    ("en", "{{val|5|s=°}}", "5°"),
    ("en", "{{gaps|1|234|e=5|u=m}}", "1234×10⁵ m"),
    ("en", "{{nts|12345|prefix=$}}", "$12,345"),
    ("en", "{{simplenuclide|Technetium|99|m}}", "Technetium-99m"),
    ("en", "{{±|5|6}}", "+5 −6"),
    ("en", "{{age|1990|1|1|2000|1|1}}", "10"),
    ("fr", "{{unité/2|6|à=16|MHz}}", "6 à 16 MHz"),
    ("fr", "{{unité|5|±=3|km}}", "5 ± 3 km"),
    ("fr", "{{dunité|2|64|Kio}}", "2 × 64 Kio"),
    ("fr", "{{sp|XVIII|e|et|XIX|e|s}}", "XVIIIe et XIXe siècles"),
    ("fr", "10{{sup|n}}", "10n"),
    ("en", "{{val|1.23456|(54)}}", "1.23456(54)"),
    ("en", "{{val|1.2345|(12)|e=-10|u=m}}", "1.2345(12) × 10⁻¹⁰ m"),
    ("en", "{{val|1.2|(3)|(4)}}", "1.2(3)(4)"),
    # The code, the label and the sound beside a word in phonetic letters are no text.
    ("en", "{{IPA|it|ˈroːma}}", "Italian: [ˈroːma]"),
    ("en", "{{IPA|de|ˈalbɛʁt|lang|Albert.ogg}}", "German: [ˈalbɛʁt]"),
    ("en", "{{IPA|/ˈroːma/}}", "/ˈroːma/"),
    ("it", "{{IPA|it|ˈroːma}}", "ˈroːma"),
    ("pl", "{{AS|ˈvarʂava}}", "ˈvarʂava"),
    ("en", "{{tmath|\\alpha}}", "α"),
    ("en", "{{tmath|x^2 + \\frac{a}{b} }}", "x² + a/b"),
    ("en", "{{tmath|1=E = mc^2}}", "E = mc²"),
    ("en", "{{as of|2012|July|18|lc=y|df=US}}", "as of July 18, 2012"),
    ("en", "{{as of|2022|post=,}}", "As of 2022,"),
    ("en", "{{currency|11|EUR|linked=no}}", "€11"),
    ("en", "{{SubatomicParticle|Electron}}", "e⁻"),
    ("en", "{{raise|0.3em|text}}", "text"),
    ("en", "{{hover title|a hint|the word}}", "the word"),
    ("en", "{{code|let y|swift}}", "let y"),
    ("en", "{{abbr|HTML|Hypertext Markup Language}}", "HTML"),
    ("en", "{{in lang|de}}", "(in German)"),
    ("en", "{{bibleverse|1|Corinthians|13:4|KJV}}", "1 Corinthians 13:4"),
    ("en", "{{bibleverse||Genesis|1:1}}", "Genesis 1:1"),
    ("en", "{{bibleverse|Genesis|1:1|ESV}}", "Genesis 1:1"),
    ("en", "{{harvtxt|Smith|2000|p=5}}", "Smith (2000, p. 5)"),
    ("en", "{{jct|state=CA|I|5|US|50}}", "I-5 / US 50"),
    ("en", "{{lang-ru|Москва|Moskva|lit=x}}", "Russian: Москва, romanized: Moskva, lit. 'x'"),
    ("en", "{{ISBN|0-19-853453-1|0-19-853453-2}}", "ISBN 0-19-853453-1, 0-19-853453-2"),
    ("fr", "{{date|septembre 1939|guerre mondiale}}", "septembre 1939"),
    ("fr", "{{Date|30 novembre 2021-}}", "30 novembre 2021"),
    ("fr", "{{date|21|juillet|1969|en astronautique}}", "21 juillet 1969"),
    ("fr", "{{date|1969|en sport}}", "1969"),
    ("fr", "{{s mini-|XV}}", "XVe"),
    ("fr", "{{lang-el|Ελλάδα}}", "grec moderne : Ελλάδα"),
    ("fr", "{{souverain2|Guillaume IV (roi du Royaume-Uni)}}", "Guillaume IV"),
    ("fr", "{{nombre|douze|enfants}}", "douze enfants"),
    ("fr", "{{18e arrondissement de Paris}}", "18e arrondissement de Paris"),
    ("fr", "{{page h'|Fédération|fédération}}", "fédération"),
    ("pt", "{{langx|fa|تهران|nome}}", "em persa: تهران"),
    ("de", "{{Bruch|8}}", "1⁄8"),
    ("de", "{{§|12|bgb|juris}}", "§ 12"),
    ("en", "{{val|5.0|+0.1|-0.2}}", "5.0 +0.1 −0.2"),
    ("en", "{{convert|5|/km2|/sqmi}}", "5 per square kilometre (13/sq mi)"),
    ("ru", "{{млн|5}}", "5 млн"),
    ("ru", "{{год|1990}}", "1990"),
    ("it", "{{Exp|1,9|19}}", "1,9 × 10¹⁹"),
    ("it", "4{{exp|19}}", "4× 10¹⁹"),
    ("en", "{{val|5|to|6|u=m}}", "5 to 6 m"),
    ("en", "{{val|4|x|5|ul=m}}", "4 by 5 m"),
    ("en", "{{val|5.3|u=km|up=s}}", "5.3 km/s"),
    ("en", "{{val|23|end=%}}", "23%"),
    ("en", "{{val|1.5|0.2|0.3|e=3}}", "1.5 +0.2 −0.3 × 10³"),
    ("en", "{{gaps|3.141|592}}", "3.141592"),
    ("en", "{{M☉}}", "M☉"),
    ("en", "{{circa|1950|1960}}", "c. 1950 – c. 1960"),
    ("de", "{{circa|1950|1960}}", "ca. 1950–1960"),
    ("fr", "{{unité|5|à=6|km}}", "5 à 6 km"),
    ("fr", "{{unité|5|±=1|kg}}", "5 ± 1 kg"),
    ("ru", "{{вв|XIX|XX}}", "XIX—XX века"),
    ("ru", "{{гг|1950|1960}}", "1950—1960"),
    ("ru", "{{км²}}", "км²"),
    ("es", "{{ESP|1785}}", "España"),
    ("it", "{{M|5||km}}", "5 km"),
    # Names of two or three capitals are countries, whatever the same letters mean in small ones.
    ("it", "{{ESP}}", "Spagna"),
    ("es", "{{ESP}}", "España"),
    ("fr", "{{BRA}}", "Brésil"),
    ("en", "{{bra|x}}", "⟨x|"),
    # The dump of the tests is of 2000: what ends before is no age of today.
    ("en", "{{age|1950|3|5|1990|4|6}}", "40"),
    ("pl", "{{wiek|1950|3|5|1990|1|1}}", "39"),
    ("ru", "{{возраст|1950|3|5|1990|1|1}}", "39"),
    ("ko", "{{나이|1950|3|5|1990|1|1}}", "39"),
    ("cs", "{{věk|1950|3|5|1990|1|1}}", "39"),
    ("cs", "{{věk|1950|3|5}}", "49"),
    ("en", "{{convert|72|in|cm|disp=or}}", "72 inches or 180 cm"),
    ("en", "{{music|time|3|4}}", "3/4"),
    ("en", "{{music|flat}}", "♭"),
    ("en", "{{chem|2|H|2|O}}", "2H2O"),
    ("en", "{{chem|SO|4|2-}}", "SO4²⁻"),
    ("fr", "{{racine|8|3}}", "³√8"),
    ("fr", "{{racine|8}}", "√8"),
    ("fr", "{{heure|14|30|15}}", "14 h 30 min 15 s"),
    ("fr", "{{heure|14|30|UTC+1}}", "14 h 30"),
    ("fr", "{{s|IV|e|av. J.-C.}}", "IVe siècle av. J.-C."),
    ("fr", "{{s-|XIX|e}}", "XIXe siècle"),
    ("fr", "{{sp|IV|e|et|III|e|s| av. J.-C.}}", "IVe et IIIe siècles av. J.-C."),
    ("nl", "{{munt|5|EUR}}", "5 EUR"),
    ("fr", "{{tmp|20|à=25|°C}}", "20 à 25 °C"),
    ("fr", "{{romain|XIV}}", "XIV"),
    ("pl", "{{rzymskie|XIV}}", "XIV"),
    ("es", "{{siglo|II|a|s}}", "siglo II a. C."),
    ("es", "{{siglo|XVI||s}}", "siglo XVI"),
    ("es", "{{siglos|XV}}", "XV"),
    ("es", "{{moneda|dólar}}", "dólar"),
    ("es", "{{ordinal|5}}", "5.º"),
    ("es", "{{ordinal|5|a}}", "5.ª"),
    ("es", "{{grados|40|25|12}}", "40° 25′ 12″"),
    ("es", "{{hora|14|30|15}}", "14:30:15"),
    ("pt", "{{séc|XIX|x}}", "século XIX"),
    ("nl", "{{eeuw|19}}", "19e eeuw"),
    ("it", "{{secolo|V}}", "V secolo"),
    ("fr", "{{âge|5|3|1950|1|1|1990}}", "39 ans"),
    ("pl", "{{dts|1990|3|5}}", "5 marca 1990"),
    ("pl", "{{data|05|03|1990}}", "5 marca 1990"),
    ("pl", "{{data urodzenia|5|marca|1990}}", "5 marca 1990"),
    ("ru", "{{дата|1990|3|5}}", "5 марта 1990"),
    ("ru", "{{дата|5|3|20}}", "5 марта 20"),
    ("cs", "{{století|19}}", "19. století"),
    ("ko", "{{경|1450}}", "1450년경"),
]
MISREAD = [
    # What is no text unless the rule says so.
    ("en", "{{IPA|/a/|/b/}}"),
    ("en", "{{lang|fr|mot|rtl}}"),
    ("en", "{{sclass|Nimitz|aircraft carrier|9}}"),
    ("en", "{{music|scale|5}}"),
    ("en", "{{coord|48.84135|2.32375|format=dms}}"),
    ("en", "{{tmath|\\nosuchcommand}}"),
    ("en", "{{currency|5|a coin}}"),
    ("en", "{{BCE|link|322}}"),
    ("en", "{{BCE|link}}"),
    ("en", "{{Pop density|4262635|634658.27|km2}}"),
    ("en", "{{convert|4262635|634658.27|km2}}"),
    ("en", "{{convert|5|,|6|,|7|km}}"),
    ("en", "{{solar mass|link}}"),
    ("en", "{{nts|link|5}}"),
    ("en", "{{US$|5|1990}}"),
    ("en", "{{±|5|6|7}}"),
    ("en", "{{10^|n}}"),
    ("es", "{{unidad|5|m|s|-1}}"),
    ("en", "{{val|5|to}}"),
    ("pl", "{{wiek|5|5|1990}}"),
    ("de", "{{EWZ|DE-BE}}"),
    ("es", "{{metadatos población|ES}}"),
    ("it", "{{popolazione|ITA|Roma}}"),
    ("fr", "{{population|France}}"),
    ("en", "{{e}}"),
    ("en", "{{UN_Population|Andorra}}"),
    ("de", "{{Einwohnerzahl|Andorra}}"),
    ("ru", "{{Население|Андорра}}"),
    ("fr", "{{nombre|5|à|7|km}}"),
    ("ja", "{{自治体人口/東京都|新宿区}}"),
    ("en", "{{val|10|+-|1}}"),
    ("it", "{{Val|5|19|kg}}"),
    ("en", "{{circa|300|BC}}"),
    ("en", "{{carbon|14}}"),
    ("ru", "{{°C|5}}"),
    ("ru", "{{кв. км|5}}"),
    ("fr", "{{CO2|5}}"),
    # The result alone, or the units alone, are shown.
    ("en", "{{convert|100|km|mi|disp=number}}"),
    ("en", "{{convert|5|ft|10|in|m|disp=out}}"),
    ("en", "{{convert|12|km2|acre|disp=unit}}"),
    ("zh", "{{convert|5|km|mi|disp=number}}"),
    ("es", "{{convertir|5|km|mi|disp=number}}"),
    # Ranges of centuries, and currencies beside the number.
    ("es", "{{siglos|V|VI}}"),
    ("pt", "{{séc|XIX|XX}}"),
    ("nl", "{{eeuw|19|20}}"),
    ("it", "{{secolo|V|a.C.}}"),
    ("cs", "{{století|19|20}}"),
    ("pl", "{{stulecie|XIX|XX}}"),
    ("bg", "{{век|19|20}}"),
    ("hu", "{{század|19|20}}"),
    ("el", "{{αιώνας|19|20}}"),
    ("uk", "{{ст|19|20}}"),
    ("tr", "{{yüzyıl|19|20}}"),
    ("nl", "{{munt|5|mln|EUR}}"),
    ("ko", "{{경|1450|1460}}"),
    ("es", "{{moneda|100|EUR}}"),
    ("es", "{{ordinal|5|x}}"),
    ("en", "{{chem|238|92|U}}"),
    ("it", "{{M|300|k|Hz}}"),
    ("ja", "{{coord|35.68|139.69|format=dms|display=inline}}"),
    # Another number, or another way to write it, is shown than the one that is given.
    ("fr", "{{romain|1999}}"),
    ("pl", "{{rzymskie|1999}}"),
    ("en", "{{Roman|1999}}"),
    ("en", "{{years ago|1953}}"),
    ("en", "{{hex|255}}"),
    ("en", "{{decade|1990}}"),
    ("ja", "{{元号年|1990}}"),
    ("fr", "{{âge|1950|3|5|1990}}"),
    ("de", "{{Röm|1999}}"),
    ("it", "{{numero romano|1999}}"),
    ("ru", "{{римское число|1999}}"),
    ("zh", "{{民國紀年|1990}}"),
    ("ko", "{{세는나이|1950}}"),
]


def text_of(language: str, call: str) -> tuple[str, int]:
    """What a call in a sentence gives, and how many calls were counted as without a rule."""
    extractor = extractor_of(language)
    extractor.take_template_counts()
    text = extractor.extract(b"Title", f"Xxxx yyyy {call} zzzz.".encode()).decode()
    unknown = extractor.take_template_counts().get("unknown_calls", 0)
    return text.removeprefix("Xxxx yyyy").removesuffix("zzzz.").strip(), unknown


@pytest.mark.parametrize(("language", "call", "text"), SURE)
def test_values(language: str, call: str, text: str) -> None:
    assert text_of(language, call) == (text, 0)


@pytest.mark.parametrize(("language", "call"), MISREAD)
def test_a_call_that_its_rule_does_not_describe_gives_nothing(language: str, call: str) -> None:
    assert text_of(language, call) == ("", 1)


def test_a_misread_call_is_reported() -> None:
    extractor = WikitextExtractor(Site(language="en"), WikitextOptions(date="2026-01-01", report_templates=True))
    assert extractor.extract(b"Title", b"It has {{BCE|link|322}} of it.") == b"It has of it."
    assert [unknown.name for unknown in extractor.take_unknown_templates()] == ["BCE"]


def test_parser_functions_take_anything() -> None:
    assert text_of("en", "{{formatnum:none}}") == ("none", 0)


@pytest.mark.parametrize(
    ("language", "page", "text"),
    [
        # Marks of passages hold the passage.
        ("ja", "これは{{要出典|範囲=重要な文|date=2010年}}である。", "これは重要な文である。"),
        ("ja", "これは{{要検証|範囲=重要な文}}である。", "これは重要な文である。"),
        ("pt", "Isto {{Carece de fontes|texto importante|data=2010}} existe.", "Isto texto importante existe."),
        ("pt", "Isto existe.{{Carece de fontes|sociedade|data=2010}} Bem.", "Isto existe. Bem."),
        ("fi", "Tämä {{Lähde|teksti}} on.", "Tämä teksti on."),
        ("ko", "이것은 {{출처|날짜=2010|중요한 문장}} 이다.", "이것은 중요한 문장 이다."),
        ("cs", "Toto {{Fakt?|je text}} zde.", "Toto je text zde."),
        ("cs", "Toto {{Fakt/dne|20100101|je text}} zde.", "Toto je text zde."),
        ("cs", "Toto je text.{{Fakt/dne|20100101|proč}} A zde.", "Toto je text. A zde."),
        ("ru", "Это{{нет АИ|1|2|2010}} слово.", "Это слово."),
        ("it", "Il paese è a 300 {{m s.l.m.}} La città è grande.", "Il paese è a 300 m s.l.m. La città è grande."),
        ("it", "Il numero {{CAS|50-00-0}} di {{TeX}} è dato.", "Il numero 50-00-0 di TeX è dato."),
        # A label goes with its value.
        ("it", "Il nome (IPA: {{IPA|/ˈaːxən/}}) è dato.", "Il nome è dato."),
        ("it", "Il nome (in tedesco Aachen, IPA: {{IPA|/x/}}) è dato.", "Il nome (in tedesco Aachen) è dato."),
        ("it", "Il nome (IPA: {{IPA|/x/}}; in tedesco Aachen) è dato.", "Il nome (in tedesco Aachen) è dato."),
        ("en", "The name (his son: {{sfn|x}}) is.", "The name is."),
        ("en", "The name (as of 1990, two: {{sfn|x}}) is.", "The name (as of 1990) is."),
        # A title that may be one of prose.
        (
            "it",
            "== Approfondimenti ==\nQuesto è un testo lungo che parla di cose. Il paese è grande e bello da vedere.",
            None,
        ),
        ("it", "== Approfondimenti ==\n* Rossi, ''Libro'', Roma, 1990", ""),
        # Lists.
        ("it", "* Il re muore nel 1990 e la regina prende il potere nel regno di Napoli\n* Mario Rossi", None),
        (
            "en",
            "The results:\n:493.\n:Peach\n:Tiger, tiger, burning bright",
            "The results:\nTiger, tiger, burning bright",
        ),
    ],
)
def test_text_that_was_dropped_or_left_over(language: str, page: str, text: str | None) -> None:
    expected = page.split("\n")[-1 if "==" in page else 0].removeprefix("* ") if text is None else text
    assert extractor_of(language).extract(b"Title", page.encode()).decode() == expected
