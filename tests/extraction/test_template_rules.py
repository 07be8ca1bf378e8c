"""Template rules: how files are read, what each kind of pattern gives, mistakes with their lines, the files we have."""

import datetime
from collections.abc import Callable
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from maskmill.errors import UnusableInputError
from maskmill.extraction import template_rules
from maskmill.extraction.options import WikitextOptions
from maskmill.extraction.template_rules import Rule, WordTable, add_rules, load_rules, names_with_rules, parse_rules
from maskmill.extraction.wikitext import WikitextExtractor
from maskmill.inputs.site import Site

DATE = datetime.date(2016, 6, 5)

TABLES = """
[table month]
1|01|January = January
6|06 = June
[table month_genitive]
6 = of June
[table unit]
MW = megawatts
mW = milliwatts
km = kilometres
[table code]
ab = Abkhaz
b-r = with {braces} and [brackets]
"""

Extract = Callable[..., str]


def make_extractor(monkeypatch: pytest.MonkeyPatch, *files: str) -> WikitextExtractor:
    """An extractor with the rules of these files instead of its language's."""
    parsed = [parse_rules(text, f"file {number}") for number, text in enumerate(files)]
    monkeypatch.setattr(template_rules, "load_rules", lambda language: parsed)
    return WikitextExtractor(Site(), WikitextOptions(date=DATE.isoformat()))


@pytest.fixture
def extract(monkeypatch: pytest.MonkeyPatch) -> Extract:
    """The text of a page for rules given as `name = pattern` lines, with the tables above."""

    def run(rules: str, page: str) -> str:
        extractor = make_extractor(monkeypatch, f"{TABLES}\n[rules]\n{rules}\n")
        return extractor.extract(b"The title", page.encode()).decode()

    return run


# ---- files


def test_a_file_is_tables_and_rules() -> None:
    text = (
        "# comment\n[table t]\na|b = text \\[x\\]\\s\n\n[rules]\n  one | two = {1} = 2 \n| = pipe\n= = equals\nf: =\n"
    )
    file = parse_rules(text, "x")
    assert file.tables == {"t": {"a": "text [x] ", "b": "text [x] "}}
    assert file.rules == (
        Rule(("one", "two"), "{1} = 2", "x line 6"),
        Rule(("|",), "pipe", "x line 7"),
        Rule(("=",), "equals", "x line 8"),
        Rule(("f:",), "", "x line 9"),
    )


def test_a_table_may_stand_in_several_sections() -> None:
    file = parse_rules("[table t]\na = 1\n[rules]\nb = c\n[table t]\na = 2\nd = 3", "x")
    assert file.tables == {"t": {"a": "2", "d": "3"}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = b", "x line 1 is neither a section nor `name = text`: 'a = b'"),
        ("\n[rules]\nno pattern", "x line 3 is neither a section nor `name = text`: 'no pattern'"),
        ("[rules]\n\n=x", "x line 3 is neither a section"),
        ("[tables]\n", r"x line 1 is neither a section nor `name = text`: '\[tables\]'"),
        ("[table a b]\n", "x line 1 is neither a section"),
    ],
)
def test_a_line_that_is_none_is_named(text: str, message: str) -> None:
    with pytest.raises(UnusableInputError, match=message):
        parse_rules(text, "x")


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("a = {1", r"x line 5: a \{ is not closed in the pattern '\{1'"),
        ("a = {1\\}", r"x line 5: a \{ is not closed"),
        ("a = [{1}", r"x line 5: a \[ is not closed in the pattern '\[\{1\}'"),
        ("a = [{1}||", r"x line 5: a \[ is not closed"),
        ("a = {1:wide}", r"x line 5: there is no format 'wide' in the pattern '\{1:wide\}'"),
        ("a = {1@nothing}", "x line 5: there is no table 'nothing'"),
        ("a = [{?1@nothing}b]", "x line 5: there is no table 'nothing'"),
        ("a = [{?1^nothing}b]", "x line 5: there is no table 'nothing'"),
        ("a {@nothing} = {@}", "x line 5: there is no table 'nothing'"),
        ("a = {!clock}", "x line 5: there is no function 'clock'"),
        ("a = {!age:1,2}", "x line 5: an age needs three or six arguments"),
        ("a = [{?^end}b]", r"x line 5: there is no circumstance 'end' in the pattern '\[\{\?\^end\}b\]'"),
        ("a = {!converted:1 2}", "x line 5: a conversion needs a value, its unit, the wanted unit and the precision"),
        ("a = [{?1=}b]", "x line 5: a test for an empty value"),
        ("fine = {1}\nb = {2", r"x line 6: a \{ is not closed"),
    ],
)
def test_a_pattern_with_a_mistake_is_named(rules: str, message: str) -> None:
    file = parse_rules(f"[table t]\na = b\n\n[rules]\n{rules}", "x")
    with pytest.raises(UnusableInputError, match=message):
        add_rules(WordTable(), [file], DATE)


# ---- forms


def test_a_later_file_replaces_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    common = """
[forms]
date = {$3} {$2@month} {$1}
since = since {&date:$1,$2,$3}
label = $1:\\s
[rules]
born = [{&date:1,2|m,3}||{1}]
as of = {&since:1,2,3}
in {@month} = {&label:{@}}{1}
"""
    page = "A {{born|1987||21|m=6}} {{born|1987}} {{as of|1|6|3}} {{in 06|x}} z."
    extract = make_extractor(monkeypatch, TABLES, common).extract
    assert extract(b"T", page.encode()) == b"A 21 June 1987 1987 since 3 June 1 June: x z."
    extract = make_extractor(monkeypatch, TABLES, common, "[forms]\ndate = {$1}/{$2}/{$3}\nlabel = ($1)\\s").extract
    assert extract(b"T", page.encode()) == b"A 1987/6/21 1987 since 1/6/3 (June) x z."


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("{&time:1}", "x line 4: there is no form 'time'"),
        ("{&date:1,2}", "x line 4: the form 'date' needs more arguments than 2"),
        ("{&date}", "x line 4: the form 'date' needs more arguments than 1"),
    ],
)
def test_a_form_with_a_mistake_is_named(pattern: str, message: str) -> None:
    file = parse_rules(f"[forms]\ndate = {{$3}}\n[rules]\na = {pattern}", "x")
    with pytest.raises(UnusableInputError, match=message):
        add_rules(WordTable(), [file], DATE)


# ---- patterns


@pytest.mark.parametrize(
    ("pattern", "call", "expected"),
    [
        # Literal text.
        ("text", "{{t}}", "text"),
        ("", "{{t}}", ""),
        ("a\\s\\[b\\]\\{c\\}\\\\d", "{{t}}", "a [b]{c}\\d"),
        ("a\\nb", "{{t}}", "a\nb"),
        ("a] b|c", "{{t}}", "a] b|c"),
        # Arguments.
        ("{1}-{2}", "{{t| a |b}}", "a-b"),
        ("{name}", "{{t|name= a }}", "a"),
        ("{name}", "{{t|a}}", ""),
        ("{1|name|2}", "{{t||b|name=}}", "b"),
        ('{1|"none"}', "{{t}} {{t|a}}", "none a"),
        ('{1|name|"a:b@c"}', "{{t|name=x}} {{t}}", "x a:b@c"),
        # Tables.
        ("{1@month}", "{{t|01}} {{t|january}} {{t|13}}", "January January 13"),
        ('{1@code|"?"}', "{{t|AB}}", "Abkhaz"),
        # Formats.
        ("{1:number}", "{{t|1234567.5}}", "1,234,567.5"),
        ("{1:lower} {1:upper}", "{{t|àB}}", "àb ÀB"),
        ("{1:first_upper} {1:first_lower}", "{{t|éA}} {{t|ÉA}}", "ÉA éA ÉA éA"),
        ("10{1:superscript}", "{{t|-12}}", "10⁻¹²"),
        ("{1:integer}", "{{t|007}}", "7"),
        ("{1:chemistry}", "{{t|SO4(2-)}} {{t|Na+}} {{t|CuSO4*5H2O}} {{t|^{13}C}}", "SO4²⁻ Na⁺ CuSO4·5H2O ¹³C"),
        ("{1:chemistry}", "{{t|C_{''n''}H_{2''n''+2} }} {{t|CH3-CH3}} {{t|HC#CH}}", "CnH2n+2 CH3-CH3 HC≡CH"),
        ("{1:chemistry}", "{{t|2 H2 + O2 -> 2 H2O}} {{t|A <-> B}} {{t|1=A <=> B}}", "2 H2 + O2 → 2 H2O A ↔ B A ⇌ B"),
        ("{1:formula}", "{{t|x^2}} {{t|\\frac{1}{2} }} {{t|1=a=b}}", "x² 1/2 a = b"),
        ("{1:title}", "{{t|Ada (king)}} {{t|2021-}} {{t|(a)}} {{t|b}}", "Ada 2021 (a) b"),
        # A number that the pattern does not name is no text, nor is what stands before it.
        ("{1}", "a {{t|x|y}} b {{t|x|}} c {{t|2=y}} d", "a b x c d"),
        ("{2|1}", "a {{t|x|y}} b {{t|x|y|z}} c", "a y b c"),
        ("{1}{?3}", "{{t|x|y|z}} {{t|x}} a {{t|x|y|z|w}} b", "x x a b"),
        ("{1}{?*}", "{{t|x|y|z|w}}", "x"),
        ("[{?2}{2}||{1}]{?*}", "{{t|x|y|z|w}} {{t|x}}", "y x"),
        # Keys that differ by case are told apart.
        ("{1@unit}", "{{t|MW}} {{t|mW}} {{t|mw}} {{t|KM}}", "megawatts milliwatts milliwatts kilometres"),
        # A call with nothing to show gives nothing.
        ("lat. {1}[, {2}]", "a {{t|}} b {{t|x}} {{t||y}} {{t}} c", "a b lat. x lat., y lat. c"),
        # A bracket goes as a whole.
        ("{!bracket}", "a $5 (${{t|x}} at (2020) prices) b ${{t}} c US${{t}} d €{{t}} e", "a $5 b c d e"),
        # Alternatives.
        ("[{1} and {2}||only {1}||none]", "{{t|a|b}} {{t|a}} {{t}}", "a and b only a none"),
        ("x[ ({1})]", "{{t|a}} {{t}}", "x (a) x"),
        ("[{1}[, {2}]]", "{{t|a|b}} {{t|a}} {{t||b}}", "a, b a"),
        ('[{1}{2|"-"}||none]', "{{t|a}} {{t}}", "a- none"),
        ("[{*:, }a||x]", "{{t}}", "a"),
        # Tests.
        ("[{?df}day first||month first]", "{{t|df=y}} {{t}} {{t|df=}}", "day first month first month first"),
        ("[{?a|b}some||none]", "{{t|b=1}} {{t}}", "some none"),
        ("[{?!1}none||some]", "{{t}} {{t|a}}", "none some"),
        ("[{?lc=Yes}lower||upper]", "{{t|lc=yes}} {{t|lc=no}} {{t}}", "lower upper upper"),
        ("[{?1@month}month||other]", "{{t|6}} {{t|7}}", "month other"),
        ("[{?1:word}{1}||number]", "{{t|a1}} {{t|1a}} {{t|-1}}", "a1 number number"),
        ("[{?1:word}{1}||{!unknown}]", "x {{t|a}} {{t|1}} y", "x a y"),
        ("[{?1^code}Ab…||other]", "{{t|ABC}} {{t|ab}} {{t|a}} {{t|b-rx}} {{t}}", "Ab… Ab… other Ab… other"),
        ("[{?^bracket}inside||outside]", "a ({{t}}) {{t}}", "a (inside) outside"),
        ("[{?!^bracket}outside||inside]", "a ({{t}}) {{t}}", "a (inside) outside"),
        ("[{?^start}first||later]", "{{t}} and {{t}}", "first and later"),
        ("[{?^glued}mark||text]", "a {{t}} b{{t}} c{{t}}d.{{t}}", "a text bmark ctextd.mark"),
        ("[{?^digit} ]{1}", "3{{t|a}} b{{t|a}} 3 {{t|a}}", "3 a ba 3 a"),
        ("[{?!^start}later||first]", "{{t}} and {{t}}", "first and later"),
        # Lists.
        ("{*:, }", "{{t|a|b||c}}", "a, b, c"),
        ("{2*:-}", "{{t|a|b|c}}", "b-c"),
        ("{2*2:-}", "{{t|a|b|c|d}}", "b-d"),
        ("{*:, : and }", "{{t|a|b|c}} {{t|a|b}} {{t|a}}", "a, b and c a and b a"),
        ("{*:\\:}", "{{t|a|b}}", "a:b"),
        # Functions.
        ("{!title}", "{{t}}", "The title"),
        ("{!year}-{!month}-{!day} {!hour}", "{{t}}", "2016-06-05 00"),
        ("{!day1}.{!month1}. {!monthname} {!monthgenitive}", "{{t}}", "5.6. June of June"),
        ("{!age:1,2,3}", "{{t|1990|6|5}} {{t|1990|6|6}}", "26 25"),
        ("{!age:1,2,3,4,5,6}", "{{t|1990|6|5|2000|6|4}}", "9"),
    ],
)
def test_what_a_pattern_gives(pattern: str, call: str, expected: str, extract: Extract) -> None:
    assert extract(f"t = {pattern}", call) == expected


def test_arguments_may_hold_calls_and_markup(extract: Extract) -> None:
    assert extract("t = <{1}>\nu = {1}!", "{{t|{{u|''a'' [[b|c]]}}}}") == "<a c!>"


def test_names(extract: Extract) -> None:
    rules = "one|two words = {1}\nЯ = ya\nPER = Peru\nper = for\nf: = {1}+{2}"
    assert extract(rules, "{{One|a}} {{two_words|b}} {{ TWO WORDS |c}}") == "a b c"
    assert extract(rules, "{{я}} {{Я}}") == "ya ya"
    assert extract(rules, "{{f:a|b}} {{F: a | b }}") == "a+b a+b"
    assert extract(rules, "x {{other|a}}") == "x"


def test_names_of_two_or_three_capitals_are_exact(extract: Extract) -> None:
    assert extract("PER = Peru", "{{PER}} {{per}}x") == "Peru x"


def test_a_rule_for_each_row_of_a_table(extract: Extract) -> None:
    rules = "lang-{@code} = {@}: {1}"
    assert extract(rules, "{{lang-ab|a}} {{lang-b-r|b}}") == "Abkhaz: a with {braces} and [brackets]: b"


def test_later_files_replace_rules_and_rows_of_earlier_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    extractor = make_extractor(
        monkeypatch,
        "[table t]\n1 = one\n2 = two\n[rules]\na = {1@t}\nb = first",
        "[table t]\n2 = zwei\n[rules]\nb = second",
    )
    assert extractor.extract(b"T", b"{{a|1}} {{a|2}} {{b}}") == b"one zwei second"


def test_rules_that_share_a_pattern_share_a_program() -> None:
    words = WordTable()
    add_rules(words, [parse_rules("[rules]\na|b = {1}\nc = {1}\nd = {2}", "x")], DATE)
    programs = {key.decode(): value for (_, key), (value, _) in words.entries.items()}
    assert programs["a"] == programs["b"] == programs["c"] != programs["d"]


# ---- which names have a rule


def test_names_with_rules() -> None:
    words = WordTable()
    add_rules(words, [parse_rules("[rules]\nTwo words = x\nPER = Peru\nétat = state\nf: = {1}", "x")], DATE)
    has_rule = names_with_rules(words)
    for name in ("two words", "TWO WORDS", " Two_words ", "PER", "état", "État"):
        assert has_rule(name), name
    for name in ("two", "per", "Per", "f", "f:", ""):
        assert not has_rule(name), name


@given(name=st.text("abAB é", min_size=1, max_size=6).filter(lambda name: name.strip() == name and "|" not in name))
@tries(200)
def test_a_name_has_a_rule_in_any_ascii_case(name: str) -> None:
    words = WordTable()
    add_rules(words, [parse_rules(f"[rules]\n{name} = x", "x")], DATE)
    has_rule = names_with_rules(words)
    exact = len(name) in (2, 3) and name.isascii() and name.isalpha() and name.isupper()
    assert has_rule(name)
    for other in (name.lower(), name.upper(), name.replace(" ", "_"), f" {name} "):
        if name.isascii():
            assert has_rule(other) == (not exact or other.strip() == name)
    assert not has_rule(name + "x")


# ---- the files that come with the package

FILES = sorted((resources.files("maskmill.extraction") / "data" / "templates").iterdir(), key=lambda path: path.name)


@pytest.mark.builds
@pytest.mark.parametrize("name", [path.name.removesuffix(".rules") for path in FILES])
def test_every_file_compiles(name: str) -> None:
    words = WordTable()
    files = load_rules(name)
    add_rules(words, files, DATE)
    has_rule = names_with_rules(words)
    for file in files:
        for rule in file.rules:
            for rule_name in rule.names:
                if not rule_name.endswith(":") and "{@" not in rule_name:
                    # A name in capitals takes the place of the same one in small letters: ESP that of esp.
                    assert has_rule(rule_name) or has_rule(rule_name.upper()), (rule.where, rule_name)


def test_which_files_hold_for_a_language() -> None:
    common, *tables, english = load_rules("en")
    assert load_rules("en-gb") == [common, *tables, english]
    assert all(not file.rules for file in tables)
    assert load_rules("common")[0] == load_rules("xx")[0] == common
    assert next(rule.where for rule in common.rules if "nowrap" in rule.names).startswith("common.rules line ")
