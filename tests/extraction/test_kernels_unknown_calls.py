"""Calls of templates that no rule knows: which of them keep their argument, and how they are counted."""

import numpy as np
import pytest
from made_up.extractors import extractor_of, tables_of

from maskmill.extraction.kernels import codes
from maskmill.extraction.kernels import tables as kernels
from maskmill.extraction.kernels.codes import PADDING
from maskmill.extraction.kernels.unknown_calls import (
    PLACE_BEHIND_STOP,
    PLACE_ELSEWHERE,
    PLACE_SENTENCE,
    may_name_template,
    may_name_text,
    names_code,
    place_of,
    reads_as_text,
)
from maskmill.extraction.options import WikitextOptions
from maskmill.extraction.wikitext import WikitextExtractor
from maskmill.inputs.site import Site


def extract(page: str, language: str = "xx") -> str:
    """The text of a page of a wiki whose language has no rules file, unless one is named."""
    return extractor_of(language).extract(b"Title", page.encode()).decode()


@pytest.mark.parametrize(
    ("page", "place"),
    [
        ("a @ b", PLACE_SENTENCE),
        ("a (@) b", PLACE_SENTENCE),
        ("a @, b", PLACE_SENTENCE),
        ("a '''@''' b", PLACE_SENTENCE),
        ('a "@" b', PLACE_SENTENCE),
        ("a «@» b", PLACE_SENTENCE),
        ("a&nbsp;— @ b", PLACE_SENTENCE),
        ("l'@ b", PLACE_SENTENCE),
        ("à l’@ b", PLACE_SENTENCE),
        ("wo@rd", PLACE_SENTENCE),
        ("英語の@の", PLACE_SENTENCE),
        ("語「@」は", PLACE_SENTENCE),
        ("し@」は", PLACE_SENTENCE),
        ("語、@の", PLACE_SENTENCE),
        ("ภาษา@เป็น", PLACE_SENTENCE),
        # Marks of footnotes.
        ("word@ b", PLACE_ELSEWHERE),
        ("word@, b", PLACE_ELSEWHERE),
        ("word.@ b", PLACE_ELSEWHERE),
        ("word)@ b", PLACE_ELSEWHERE),
        ('"word"@ b', PLACE_ELSEWHERE),
        ("'word'@ b", PLACE_ELSEWHERE),
        ("''word''@ b", PLACE_ELSEWHERE),
        ("[[word]]@ b", PLACE_ELSEWHERE),
        ("a<ref>b</ref>@ c", PLACE_ELSEWHERE),
        ("a<ref>b</ref> @ c", PLACE_ELSEWHERE),
        ("語@。", PLACE_ELSEWHERE),
        ("語。@語", PLACE_ELSEWHERE),
        ("語@、語", PLACE_ELSEWHERE),
        ("語@", PLACE_ELSEWHERE),
        ("A sentence. @ Another", PLACE_BEHIND_STOP),
        ("Բառ։ @ բառ", PLACE_BEHIND_STOP),
        # What ends a line, and flags.
        ("a @", PLACE_ELSEWHERE),
        ("a @ \nb", PLACE_ELSEWHERE),
        ("a @ [[b]]", PLACE_ELSEWHERE),
        ("a @'''[[b]]'''", PLACE_ELSEWHERE),
    ],
)
def test_where_a_call_stands(page: str, place: int) -> None:
    before, after = (part.encode() for part in page.split("@"))
    call = b"{{x|y}}"
    text = np.frombuffer(before + call + after + bytes(PADDING), np.uint8).copy()
    n = len(text) - PADDING
    assert place_of(text, len(before), len(before) + len(call), n) == place


@pytest.mark.parametrize(
    ("name", "may", "code"),
    [
        ("en", True, False),
        ("lang-el2", True, True),
        ("Число", True, False),
        ("Автошлях Н", True, True),
        ("ISBN2", True, True),
        ("#if", False, False),
        ("subst:x", False, False),
        ("Data/France", False, True),
        ("Population GER-BE", False, True),
        ("UN_Population", False, True),
        ("Население", False, False),
        ("IPA-en", True, True),
    ],
)
def test_names(name: str, *, may: bool, code: bool) -> None:
    text = np.frombuffer(name.encode() + bytes(PADDING), np.uint8).copy()
    named = may_name_template(text, 0, len(name.encode())) and may_name_text(
        text, 0, len(name.encode()), tables_of("xx")
    )
    assert named == may
    assert names_code(text, 0, len(name.encode()), tables_of("xx")) == code


@pytest.mark.parametrize(
    ("argument", "reads"),
    [
        ("mathematics", True),
        ("two words", True),
        ("математика", True),
        ("748472", False),  # a key
        ("0105", False),
        ("۱۳۱۰۱", False),
        ("１３１０１", False),
        ("1301", False),
        ("1953", True),
        ("12,345", True),
        ("84.390", True),
        ("376 tỷ", True),
        ("NATO", True),
        ("Apple Inc.", True),
        ("12", False),  # the number of a note
        ("0631198415", False),  # of a book
        ("2-07-036822", False),
        ("GER", False),
        ("de", False),
        ("Regional/Europe/Spain", False),
        ("Flora_and_Fauna", False),
        ("He", True),
        ("SX554747", False),
        ("pmid23440782", False),
        ("#e05b8e", False),
        ("https://x.org/a", False),
        ("Flag of Egypt.svg", False),
        ("Флаг.svg", False),
        ("It was built in 1950, and burned down later.", False),
        ("この語は、英語から来たものである。", False),
    ],
)
def test_what_reads_as_text(argument: str, *, reads: bool) -> None:
    out = np.frombuffer(bytes(8) + argument.encode() + bytes(8), np.uint8).copy()
    assert reads_as_text(out, 8, 8 + len(argument.encode()), False) == reads


def test_catalogues_take_numbers() -> None:
    out = np.frombuffer(bytes(8) + b"1953" + bytes(8), np.uint8).copy()
    assert reads_as_text(out, 8, 12, False)
    assert not reads_as_text(out, 8, 12, True)


ONE = "It was the end of the world that they knew."
TWO = f"{ONE} Nobody was there to see how it fell."
CASES = {
    "text in a sentence": ("He wrote {{xx1|two words}} there.", "He wrote two words there."),
    "text in brackets": ("Berlin ({{k-xx|Bezirk}}) lies", "Berlin (Bezirk) lies"),
    "abbreviation in brackets": ("Rom (lat. {{xla|Roma}}) liegt", "Rom (lat. Roma) liegt"),
    "after a sentence": ("It burned. {{xnote|two words}} It stood.", "It burned. It stood."),
    "links in the text": ("is {{xf|[[a|b]] and ''c''}} or", "is b and c or"),
    "named by its number": ("is {{xf|1=a=b c}} or", "is a=b c or"),
    "arguments without a value": ("is {{xf|b c||x=}} or", "is b c or"),
    "a date beside the text": ("is {{xf|b c|date=May 2010}} or", "is b c or"),
    "other arguments": ("is {{xf|b c|size=3}} or {{xf|a b|c}} so", "is or so"),
    "only a second argument": ("is {{xf||b c}} or", "is or"),
    "alone on its line": ("a\n{{xf|b c}}\nd", "a\nd"),
    "first on its line": ("{{xf|b c}} d e", "d e"),
    "over lines": ("is {{xf|b\nc}} or", "is or"),
    "heading": ("== a {{xf|b c}} d ==\ne", "e"),
    "computed number": ("is {{xf|1953}} or {{xf ago|1953}} or {{roman_xf|word}} so", "is 1953 or or word so"),
    "list": ("* It is not {{xf|b c}} but another thing.", "It is not b c but another thing."),
    "in a kept call": ("is {{xf|b {{xg|c d}} e}} or", "is b c d e or"),
    "in a rule": ("is {{nowrap|b {{xg|c d}} e}} or", "is b c d e or"),
    "quotation": (f"He said {{{{xq|{TWO}}}}} and left.", f"He said {TWO} and left."),
    "quotation at the end of a line": (f"He said: {{{{xq|{TWO}}}}}\nThen he left.", f"He said: {TWO} Then he left."),
    "quotation on its line": (f"He left.\n{{{{xq|{TWO}|An Author|1990}}}}\nHe died.", f"He left.\n{TWO}\nHe died."),
    "named quotation": (
        f"He left.\n{{{{xq\n|width=3\n| quote = {TWO}{{{{efn|a}}}}\n|source=b}}}}\nHe died.",
        f"He left.\n{TWO}\nHe died.",
    ),
    "numbered quotation": (f"{{{{xq|author=b|1={TWO}}}}}", TWO),
    "quotation of one sentence": (f"a {{{{xq|{ONE}}}}} b\n{{{{xq|text={ONE}}}}}", "a b"),
    "fields of a box": (f"a\n{{{{xbox|name={TWO}|b={TWO}}}}}\nc", "a\nc"),
    "many arguments": (f"a\n{{{{xbox|{TWO}|b|c|d}}}}\nc", "a\nc"),
    "footnote of sentences": (f"word{{{{xfn|{TWO}}}}} and word.{{{{xfn|{TWO}}}}} B", "word and word. B"),
    "list of quotations": (f"* {{{{xq|{TWO}}}}}", ""),
    "footnote": ("word{{xfn|see Smith}} and word.{{xsfn|A 2000}} B", "word and word. B"),
    "known footnote": ("a {{efn|not a sentence}} b", "a b"),
    "known icon": ("a ({{flagicon|Serbia}}) b", "a b"),
    "passage": ("It is {{fact span|b c}} or{{fact span|who says?}} so.", "It is b c or so."),
    "Template:": ("is {{Template:xf|b c}} or {{subst:xf|d e}} so", "is b c or d e so"),
    "other prefixes": ("is {{User:xf|b c}} or {{#invoke:xf|d e}} so", "is or so"),
}


@pytest.mark.parametrize(("page", "text"), CASES.values(), ids=CASES.keys())
def test_unknown_calls(page: str, text: str) -> None:
    assert extract(page) == text


@pytest.mark.builds
@pytest.mark.parametrize(
    ("language", "page", "text"),
    [
        ("ja", "英語の{{xen|mathematics}}の語源である。", "英語のmathematicsの語源である。"),
        ("ja", "彼は作家である{{xefn|諸説ある}}。次に", "彼は作家である。次に"),
        ("th", "ภาษา{{xth|ไทย}}เป็น", "ภาษาไทยเป็น"),
        ("hu", "lakosai közül {{számnév|748.472}} nem német", "lakosai közül 748.472 nem német"),
        ("ja", "それは{{いつ範囲|近年|date=2021年}}のことだ。", "それは近年のことだ。"),
        ("it", "Nel 1900 {{chiarire|visse a lungo}} a Roma.", "Nel 1900 visse a lungo a Roma."),
        ("pl", "Jest to {{fakt|największe miasto|data=2012}} kraju.", "Jest to największe miasto kraju."),
        ("pl", "Jest to miasto{{fakt|data=2012}}.", "Jest to miasto."),
        ("el", "άλλα {{ασαφές|τρωκτικά}}. Υπάρχουν", "άλλα τρωκτικά. Υπάρχουν"),
        ("uk", "в {{fact|[[Ольштин]]і}} та інших", "в Ольштині та інших"),
        ("en", "It is {{citation needed span|the largest|date=May 2010}} one.", "It is the largest one."),
        (
            "en",
            "It is the largest{{citation needed|date=May 2010}} one {{fact|no proof}} there.",
            "It is the largest one there.",
        ),
    ],
)
def test_unknown_calls_and_passages_of_languages(language: str, page: str, text: str) -> None:
    assert extract(page, language) == text


def test_calls_are_counted_and_listed_in_lines_that_are_kept() -> None:
    extractor = WikitextExtractor(Site(language="xx"), WikitextOptions())
    extractor._calls = np.zeros(10, kernels.CALL)
    page = b"a {{xf|b c}} d{{xg|e}} f.\n* {{xh|i}} j\n{{infobox\n|a=b}}\n{{alone|k}}\nl {{efn|m}} {{xi|n|o}} p."
    extractor.extract(b"T", page)
    counts = extractor._counts
    assert (counts[codes.COUNT_UNKNOWN], counts[codes.COUNT_KEPT]) == (3, 1)
    listed = extractor._calls[: counts[codes.COUNT_LOGGED]]
    assert [page[row["start"] : row["end"]] for row in listed] == [b"{{xf|b c}}", b"{{xg|e}}", b"{{xi|n|o}}"]
    assert listed["kept"].tolist() == [codes.CALL_KEPT, codes.CALL_DROPPED, codes.CALL_HOLE]


def test_a_quotation_on_a_line_of_its_own_is_counted_where_it_shows() -> None:
    extractor = WikitextExtractor(Site(language="xx"), WikitextOptions())
    extractor.extract(b"T", f"{{{{xq|{TWO}}}}}\n{{{{xq|{ONE} And}}}}\na".encode())
    assert (extractor._counts[codes.COUNT_UNKNOWN], extractor._counts[codes.COUNT_KEPT]) == (1, 1)
