"""What every language has without rules of its own: names, units, dates, forms, and local names of templates."""

import functools
import zipfile
from importlib import resources
from pathlib import Path

import pytest

from maskmill.extraction import language_tables, languages, template_rules
from maskmill.extraction.options import WikitextOptions
from maskmill.extraction.template_rules import load_rules, parse_rules
from maskmill.extraction.wikitext import WikitextExtractor
from maskmill.inputs.site import Site

DATA = Path(language_tables.__file__).parent / "data"

# The largest Wikipedias but those of which CLDR has next to nothing (war, vo, min, lmo, pms …).
LARGE = [
    "en", "de", "fr", "sv", "nl", "ru", "es", "it", "pl", "arz", "zh", "ja", "uk", "vi", "ar", "pt", "fa", "ca",
    "id", "sr", "no", "ko", "tr", "ce", "cs", "hu", "tt", "ro", "sh", "eu", "ms", "fi", "he", "eo", "hy", "da",
    "bg", "uz", "cy", "be", "sk", "kk", "simple", "el", "et", "lt", "gl", "hr", "az", "sl", "ur", "nn", "ka", "hi",
    "ta", "th", "la", "ast", "bn", "mk", "lv", "af", "sq", "my", "mr", "te", "ml", "sw", "bs", "gsw",
]  # fmt: skip

# Georgian, square kilometres, 21 May 1987 and `as of 2010` in each language. From its own rules: nothing.
TEXTS = [
    ("af", "Georgies: mta", "1030 km²", "21 Mei 1987", "2010"),
    ("an", "mta", "1,030 km²", "21 de mayo de 1987", "2010"),
    ("ar", "الجورجية: mta", "1,030 كم²", "21 مايو 1987", "اعتبارًا من 2010"),
    ("ast", "en xeorxanu: mta", "1030 km²", "21 de mayu de 1987", "2010"),
    ("az", "gürcü: mta", "1030 kv km", "21 may 1987", "2010"),
    ("be", "грузінская: mta", "1030 км²", "21 мая 1987", "на 2010 год"),
    ("bg", "на грузински: mta", "1030 km²", "21 май 1987 г.", "към 2010 г."),
    ("bn", "জর্জিয়ান: mta", "1,030 km²", "21 মে, 1987", "2010 অনুযায়ী"),
    ("br", "jorjianeg: mta", "1030 km²", "21 Mae 1987", "2010"),
    ("bs", "gruzijski: mta", "1030 km²", "21. maj 1987.", "2010"),
    ("ca", "en georgià: mta", "1.030 km²", "21 de maig del 1987", "2010"),
    ("ckb", "گۆرجستانی: mta", "1,030 km²", "21ی ئایاری 1987", "2010"),
    ("cs", "gruzínština: mta", "1030 km²", "21. května 1987", "2010"),
    ("cv", "грузин: mta", "1 030 км²", "21 ҫу 1987 ҫ.", "2010"),
    ("cy", "Georgeg: mta", "1,030 km²", "21 Mai 1987", "2010"),
    ("da", "georgisk: mta", "1.030 km²", "21. maj 1987", "pr. 2010"),
    ("de", "Georgisch: mta", "1.030 km²", "21. Mai 1987", "Stand 2010"),
    ("el", "γεωργιανά: mta", "1030 τ.χλμ.", "21 Μαΐου 1987", "2010"),
    ("eo", "kartvela: mta", "1030 km²", "21-a de Majo 1987", "2010"),
    ("es", "en georgiano: mta", "1030 km²", "21 de mayo de 1987", "en 2010"),
    ("et", "gruusia: mta", "1030 km²", "21. mai 1987", "2010. aasta seisuga"),
    ("eu", "georgiera: mta", "1.030 km²", "1987ko maiatzaren 21a", "2010"),
    ("fa", "گرجی: mta", "1٬030 km²", "21 مهٔ 1987", "تا 2010"),
    ("fi", "georgia: mta", "1 030 km²", "21. toukokuuta 1987", "2010"),
    ("fr", "en géorgien : mta", "1 030 km²", "21 mai 1987", "en 2010"),
    ("fy", "Georgysk: mta", "1.030 km²", "21 Maaie 1987", "2010"),
    ("ga", "Seoirsis: mta", "1,030 km²", "21 Bealtaine 1987", "2010"),
    ("gl", "en xeorxiano: mta", "1.030 km²", "21 de maio de 1987", "en 2010"),
    ("gsw", "Georgisch: mta", "1’030 km²", "21. Mai 1987", "2010"),
    ("gu", "જ્યોર્જિયન: mta", "1,030 ચોરસ કિમી", "21 મે, 1987", "2010 મુજબ"),
    ("he", "גאורגית: mta", "1,030 קמ״ר", "21 במאי 1987", "נכון ל-2010"),
    ("hi", "जॉर्जियाई: mta", "1,030 वर्ग कि॰मी॰", "21 मई 1987", "2010 तक"),
    ("hr", "gruzijski: mta", "1030 km²", "21. svibnja 1987.", "2010"),
    ("hsb", "georgišćina: mta", "1.030 km²", "21. meje 1987", "2010"),
    ("hu", "grúz: mta", "1030 km²", "1987. május 21.", "2010"),
    ("hy", "վրացերեն: mta", "1030 կմ²", "21 մայիսի, 1987 թ.", "2010 թ. դրությամբ"),
    ("id", "bahasa Georgia: mta", "1.030 km²", "21 Mei 1987", "per 2010"),
    ("is", "georgíska: mta", "1.030 km²", "21. maí 1987", "2010"),
    ("it", "in georgiano: mta", "1 030 km²", "21 maggio 1987", "nel 2010"),
    ("ja", "ジョージア語: mta", "1,030 km²", "1987年5月21日", "2010年現在"),
    ("ka", "ქართული: mta", "1030 კმ²", "21 მაისი, 1987", "2010 წლის მდგომარეობით"),
    ("kk", "грузин тілі: mta", "1030 км²", "1987 ж. 21 мамыр", "2010"),
    ("ko", "조지아어: mta", "1,030 km²", "1987년 5월 21일", "2010년 기준"),
    ("ku", "gurcî: mta", "1030 km²", "21 gulan 1987", "2010"),
    ("ky", "грузинче: mta", "1 030 км²", "1987-ж., 21-май", "2010"),
    ("lb", "Georgesch: mta", "1030 km²", "21. Mee 1987", "2010"),
    ("lt", "gruzinų: mta", "1 030 kv. km", "1987 m. gegužės 21 d.", "2010 m. duomenimis"),
    ("lv", "gruzīnu: mta", "1030 km²", "1987. gada 21. maijs", "2010"),
    ("mk", "грузиски: mta", "1030 km²", "21 мај 1987", "2010"),
    ("ml", "ജോർജിയൻ: mta", "1,030 കി.മീ²", "1987, മേയ് 21", "2010-ലെ കണക്കുപ്രകാരം"),
    ("mn", "гүрж: mta", "1,030 км²", "1987 оны тавдугаар сарын 21", "2010"),
    ("mr", "जॉर्जियन: mta", "1,030 किमी²", "21 मे, 1987", "2010 नुसार"),
    ("ms", "bahasa Georgia: mta", "1,030 km²", "21 Mei 1987", "setakat 2010"),
    ("mt", "Ġorġjan: mta", "1,030 km²", "21 ta’ Mejju 1987", "2010"),
    ("ne", "जर्जियाली: mta", "1,030 वर्ग किलोमिटर", "21 मे 1987", "2010 सम्म"),
    ("nl", "Georgisch: mta", "1.030 km²", "21 mei 1987", "per 2010"),
    ("nn", "georgisk: mta", "1 030 km²", "21. mai 1987", "per 2010"),
    ("no", "georgisk: mta", "1 030 km²", "21. mai 1987", "per 2010"),
    ("pa", "ਜਾਰਜੀਆਈ: mta", "1,030 ਕਿਮੀ²", "21 ਮਈ 1987", "2010"),
    ("pl", "gruziński: mta", "1030 km²", "21 maja 1987", "według stanu na 2010 rok"),
    ("pt", "em georgiano: mta", "1 030 km²", "21 de maio de 1987", "em 2010"),
    ("ro", "în georgiană: mta", "1.030 km²", "21 mai 1987", "în 2010"),
    ("ru", "грузинский: mta", "1030 км²", "21 мая 1987", "на 2010 год"),
    ("sk", "gruzínčina: mta", "1030 km²", "21. mája 1987", "2010"),
    ("sl", "gruzijščina: mta", "1030 km²", "21. maj 1987", "2010"),
    ("sq", "gjeorgjisht: mta", "1030 km²", "21 maj 1987", "2010"),
    ("sr", "грузијски: mta", "1030 km²", "21. мај 1987.", "2010"),
    ("sv", "georgiska: mta", "1 030 km²", "21 maj 1987", "per 2010"),
    ("sw", "Kijojia: mta", "1,030 km²", "21 Mei 1987", "2010"),
    ("ta", "ஜார்ஜியன்: mta", "1,030 கி.மீ.²", "21 மே, 1987", "2010 நிலவரப்படி"),
    ("te", "జార్జియన్: mta", "1,030 కి.మీ²", "21 మే, 1987", "2010 నాటికి"),
    ("th", "จอร์เจีย: mta", "1,030 ตร.กม.", "21 พฤษภาคม 1987", "ณ 2010"),
    ("tr", "Gürcüce: mta", "1030 km²", "21 Mayıs 1987", "2010 itibarıyla"),
    ("uk", "грузинська: mta", "1030 км²", "21 травня 1987", "станом на 2010 рік"),
    ("ur", "جارجیائی: mta", "1,030 km²", "21 مئی، 1987", "بمطابق 2010"),
    ("uz", "gruzincha: mta", "1030 km²", "21-may, 1987", "2010 holatiga koʻra"),
    ("vi", "tiếng Georgia: mta", "1.030 km²", "21 tháng 5 năm 1987", "tính đến năm 2010"),
    ("yue", "喬治亞文: mta", "1,030平方公里", "1987年5月21日", "截至2010年"),
    ("zh", "格鲁吉亚语：mta", "1,030平方公里", "1987年5月21日", "截至2010年"),
]


# A language takes a third of a second, most of it for its rules and tables.
IN_EVERY_RUN = ("ar", "de", "hu", "ru", "vi", "zh")


@functools.cache
def extractor_of(language: str, with_own_rules: bool) -> WikitextExtractor:
    return WikitextExtractor(Site(language=language), WikitextOptions(date="2023-05-01"))


def extract(language: str, page: str) -> str:
    extractor = extractor_of(language, template_rules.load_rules is load_rules)
    return extractor.extract(b"The title", page.encode()).decode()


@pytest.fixture
def no_own_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the languages' own rule files away, so that what all have in common is seen."""

    def load(language: str) -> list[template_rules.RuleFile]:
        own = f"{language}.rules"
        return [file for file in load_rules(language) if not any(rule.where.startswith(own) for rule in file.rules)]

    monkeypatch.setattr(template_rules, "load_rules", load)


@pytest.mark.usefixtures("no_own_rules")
@pytest.mark.parametrize(
    ("language", "foreign", "measure", "date", "as_of"),
    [pytest.param(*row, id=row[0], marks=() if row[0] in IN_EVERY_RUN else pytest.mark.builds) for row in TEXTS],
)
def test_common_templates(language: str, foreign: str, measure: str, date: str, as_of: str) -> None:
    assert extract(language, "A {{lang-ka|mta}} z.") == f"A {foreign} z."
    assert extract(language, "A {{langx|ka|mta}} z.") == f"A {foreign} z."
    assert extract(language, "A {{convert|1030|km2|mi2|abbr=on}} z.") == f"A {measure} z."
    assert extract(language, "A {{Birth date|1987|5|21}} z.") == f"A {date} z."
    assert extract(language, "A {{as of|2010|lc=y}} z.") == f"A {as_of} z."


@pytest.mark.usefixtures("no_own_rules")
@pytest.mark.parametrize(
    ("language", "page", "expected"),
    [
        ("vi", "là {{convert|103|F|C}} vào ngày", "là 103 °F vào ngày"),
        ("sr", "{{convert|3|to|5|sqmi}} и {{cvt|10|x|20|x|30|m}}", "3–5 mi² и 10 × 20 × 30 m"),
        ("hu", "{{convert|5|ft|11|in|m}}", "5 láb 11 hüvelyk"),
        ("tr", "{{convert|3|e6km2}} ve {{convert|7|smoot}}", "3 × 10⁶ km² ve 7 smoot"),
        ("af", "{{convert|1030}}", "1030"),
        ("bg", "{{start date|1987|5}}, {{death date and age|2001|02|03|1950|1|1}}", "май 1987, 3 февруари 2001 г."),
        ("eo", "{{birth date|1987}} {{start date|1987|maj|2}}", "1987 2-a de Majo 1987"),
        ("af", "{{flag|PE}} {{flag|Germany}} {{flagcountry|GER}} {{SUI}}", "Peru Duitsland Duitsland Switserland"),
        ("af", "{{flag|Narnia}}", "Narnia"),
        ("sq", "{{lang-xcl|bar}} {{lang-ru2|da}} {{lang-de-short|ja}}", "bar da ja"),
        ("sq", "{{lang-de|label=none|ja}}, {{lang-el|ναι|nai}}", "ja, greqisht: ναι, nai"),
        ("hr", "{{jez-de|ja}} i ovo{{nedostaje izvor|2010}}", "njemački: ja i ovo"),
        ("az", "{{dil-de|ja}}", "alman: ja"),
        ("et", "{{circa|1500}}", "u 1500"),
        # No CLDR data: international symbols, numbers, and the text without the language's name.
        ("xx", "{{lang-de|ja}} {{convert|5|km2}} {{birth date|1987|5|21}}", "ja 5 km² 1987-5-21"),
    ],
)  # fmt: skip
def test_single_templates(language: str, page: str, expected: str) -> None:
    assert extract(language, f"A {page} z.") == f"A {expected} z."


@pytest.mark.usefixtures("no_own_rules")
@pytest.mark.parametrize("language", ["af", "bg", "el", "hu", "ka", "sr", "tr"])
@pytest.mark.parametrize(
    "call",
    [
        "{{sfn|Smith|2001|p=3}}", "{{efn|This is a note that reads as a sentence.}}", "{{Rp|12}}", "{{anchor|place}}",
        "{{page needed|date=May 2010}}", "{{flagicon|Germany}}", "{{main|Berlin}}", "{{commons category|Berlin}}",
        "{{dead link|date=May 2010}}", "{{IPA-de|bɛʁˈliːn}}", "{{cite web|title=The title of a page}}", "{{clear}}",
    ],
)  # fmt: skip
def test_templates_without_text(language: str, call: str) -> None:
    assert extract(language, f"A word{call} and more.") == "A word and more."


# ---- the data


@pytest.mark.parametrize("code", LARGE)
def test_the_tables_of_large_wikipedias(code: str) -> None:
    code = languages.find_language(code).code
    tables: dict[str, dict[str, str]] = {}
    for file in load_rules(code):
        for name, rows in file.tables.items():
            tables.setdefault(name, {}).update(rows)
    assert all(tables[name] for name in ("month", "month_genitive", "language", "unit", "country"))
    months = {tables["month"][str(number)] for number in range(1, 13)}
    assert len(months) == 12
    assert code == "en" or tables["unit"]["km2"]


def test_every_member_can_be_read() -> None:
    separators = language_tables.number_separators()
    assert len(separators) > 150
    for code, (group, decimal) in separators.items():
        assert group != decimal
        for name, text in language_tables.language_tables(code):
            file = parse_rules(text, name)
            assert not file.rules
            assert all(value.strip() for rows in file.tables.values() for value in rows.values()), name
        assert set(file.forms) >= {"date", "month_of_year"}, code


def test_the_file_says_where_it_comes_from() -> None:
    with zipfile.ZipFile(DATA / "cldr" / "tables.zip") as archive:
        version = archive.comment.decode().removeprefix("Unicode CLDR ")
    assert f"version {version}," in (DATA / "cldr" / "README.md").read_text(encoding="utf-8")
    assert "UNICODE LICENSE V3" in (DATA / "cldr" / "LICENSE").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("code", "found"),
    [("de", "de"), ("be-tarask", "be"), ("zh-hans", "zh"), ("gan", "zh"), ("gsw", "gsw"), ("xx", None), ("", None)],
)
def test_the_language_of_a_code(code: str, found: str | None) -> None:
    assert language_tables.find_code(code) == found


def test_numbers_are_written_as_cldr_says_where_nothing_else_is_known() -> None:
    assert languages.find_language("gsw").group_separator == "’"
    assert languages.find_language("vec").decimal_separator == ","
    assert languages.find_language("xx").group_separator == ","
    assert languages.find_language("fa").group_separator == "٬"  # of its own: languages.toml


def data_rows(name: str) -> list[list[str]]:
    path = resources.files("maskmill.extraction") / "data" / name
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]


def test_identities_name_rules_and_languages() -> None:
    identities = data_rows("identities.tsv")
    meanings = {name for rule in load_rules("common")[0].rules for name in rule.names}
    prefixes = {*languages.interlanguage_prefixes(), "gsw"}
    assert {meaning for meaning, _, _ in identities} <= meanings
    assert {language for _, language, _ in identities} <= prefixes
    names = [(language, name.lower()) for _, language, name in identities]
    assert len(set(names)) == len(names)
    assert identities == sorted(identities, key=lambda row: (row[0].lower(), row[1], row[2]))


def test_forms_are_those_of_common_rules() -> None:
    forms = data_rows("forms.tsv")
    assert {form for form, _, _ in forms} <= set(load_rules("common")[0].forms)
    assert len({(form, language) for form, language, _ in forms}) == len(forms)
