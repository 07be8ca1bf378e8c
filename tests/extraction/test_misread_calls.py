"""Calls that a template's rule does not describe: they give nothing, and are counted, rather than a wrong value."""

import pytest
from extractors import extractor_of

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
    ("en", "{{convert|5|km|mi|0}}", "5 kilometres"),
    ("it", "{{Exp|1,9|19}}", "1,9 × 10¹⁹"),
    ("it", "4{{exp|19}}", "4× 10¹⁹"),
    # Names of two or three capitals are countries, whatever the same letters mean in small ones.
    ("it", "{{ESP}}", "Spagna"),
    ("es", "{{ESP}}", "España"),
    ("fr", "{{BRA}}", "Brésil"),
    ("en", "{{bra|x}}", "⟨x|"),
]
MISREAD = [
    ("en", "{{BCE|link|322}}"),
    ("en", "{{BCE|link}}"),
    ("en", "{{Pop density|4262635|634658.27|km2}}"),
    ("en", "{{convert|4262635|634658.27|km2}}"),
    ("en", "{{convert|5|,|6|,|7|km}}"),
    ("en", "{{solar mass|link}}"),
    ("en", "{{nts|link|5}}"),
    ("en", "{{US$|5|1990}}"),
    ("en", "{{e}}"),
    ("en", "{{UN_Population|Andorra}}"),
    ("de", "{{Einwohnerzahl|Andorra}}"),
    ("ru", "{{Население|Андорра}}"),
    ("fr", "{{nombre|5|à|7|km}}"),
    ("ja", "{{自治体人口/東京都|新宿区}}"),
]


def text_of(language: str, call: str) -> tuple[str, int]:
    """What a call in a sentence gives, and how many calls were counted as without a rule."""
    extractor = extractor_of(language)
    before = extractor.template_counts()
    text = extractor.extract(b"Title", f"Xxxx yyyy {call} zzzz.".encode()).decode()
    return text.removeprefix("Xxxx yyyy").removesuffix("zzzz.").strip(), extractor.template_counts()[0] - before[0]


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
