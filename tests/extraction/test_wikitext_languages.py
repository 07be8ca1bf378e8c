"""Sites and languages: siteinfo, redirects, disambiguation pages, namespaces, variants, scripts."""

import functools

import pytest

from maskmill.extraction.options import WikitextOptions
from maskmill.extraction.wikitext import WikitextExtractor
from maskmill.inputs.site import Site

GARBAGE = ("[[", "]]", "{{", "}}", "<ref", "|}", "&nbsp;", "()", " ,", "''", "__", "==")


def header(
    language: str, host: str, namespaces: dict[int, str], version: str = "0.10", *, with_lang: bool = True
) -> bytes:
    """The XML before the first page of a dump, as MediaWiki writes it."""
    names = "".join(
        f'      <namespace key="{key}" case="first-letter">{name}</namespace>\n' for key, name in namespaces.items()
    )
    lang = f' xml:lang="{language}"' if with_lang else ""
    return (
        f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-{version}/" version="{version}"{lang}>\n  <siteinfo>\n'
        f"    <sitename>Wikipedia</sitename>\n    <base>https://{host}/wiki/Main</base>\n"
        f'    <case>first-letter</case>\n    <namespaces>\n      <namespace key="0" case="first-letter" />\n{names}'
        "    </namespaces>\n  </siteinfo>\n"
    ).encode()


def site(language: str, namespaces: dict[int, str] | None = None) -> Site:
    return Site.parse(header(language, f"{language}.wikipedia.org", namespaces or {}))


def extractor(language: str, namespaces: dict[int, str] | None = None) -> WikitextExtractor:
    return cached_extractor(language, tuple((namespaces or {}).items()))


@functools.cache
def cached_extractor(language: str, namespaces: tuple[tuple[int, str], ...]) -> WikitextExtractor:
    return WikitextExtractor(site(language, dict(namespaces)), WikitextOptions(date="2020-01-01"))


def test_parse_siteinfo() -> None:
    parsed = Site.parse(header("de", "de.wikipedia.org", {6: "Datei", 10: "Vorlage", 100: "Portal &amp; mehr"}))
    assert parsed.language == "de"
    assert parsed.name == "Wikipedia"
    assert parsed.case == "first-letter"
    assert parsed.namespaces[6] == ("Datei", "File")
    assert parsed.namespaces[10] == ("Vorlage", "Template")
    assert parsed.namespaces[100] == ("Portal & mehr",)
    assert parsed.namespaces[14] == ("Category",)


def test_parse_nothing() -> None:
    assert Site.parse(b"") == Site()
    assert Site.parse(b"<pages>") == Site()


@pytest.mark.parametrize("version", ["0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "0.10", "0.11"])
def test_parse_all_schemas(version: str) -> None:
    parsed = Site.parse(header("fr", "fr.wikipedia.org", {6: "Fichier"}, version))
    assert parsed.language == "fr"
    assert parsed.namespaces[6] == ("Fichier", "File")


def test_parse_schema_0_3_without_case_attributes() -> None:
    text = (
        b'<mediawiki version="0.3" xml:lang="en"><siteinfo><sitename>Wikipedia</sitename>'
        b"<base>http://en.wikipedia.org/wiki/Main_Page</base><case>case-sensitive</case><namespaces>"
        b'<namespace key="0" /><namespace key="6">Image</namespace></namespaces></siteinfo>'
    )
    parsed = Site.parse(text)
    assert parsed.case == "case-sensitive"
    assert parsed.namespaces[6] == ("Image", "File")


@pytest.mark.parametrize(
    ("lang", "host", "language"),
    [
        ("en", "simple.wikipedia.org", "en"),
        ("en", "ltg.wikipedia.org", "ltg"),  # a content language that the export did not know
        ("zh-Hans", "zh.wikipedia.org", "zh-hans"),
        ("nb", "no.wikipedia.org", "nb"),
        ("en", "commons.wikimedia.org", "en"),
        ("de", "de.m.wikipedia.org", "de"),
    ],
)
def test_language_of_a_site(lang: str, host: str, language: str) -> None:
    assert Site.parse(header(lang, host, {})).language == language


def test_language_without_xml_lang() -> None:
    assert Site.parse(header("", "cs.wikipedia.org", {}, with_lang=False)).language == "cs"


REDIRECTS = [
    ("en", "#REDIRECT [[A]]"),
    ("en", "#redirect: [[A]] {{R from CamelCase}}"),
    ("en", "\n  #Redirect[[A#b|c]]"),
    ("de", "#WEITERLEITUNG [[A]]"),
    ("de", "#REDIRECT [[A]]"),
    ("fr", "#REDIRECTION [[A]]"),
    ("es", "#REDIRECCIÓN [[A]]"),
    ("es", "#redirección [[A]]"),
    ("it", "#RINVIA [[A]]"),
    ("pt", "#REDIRECIONAMENTO [[A]]"),
    ("nl", "#DOORVERWIJZING [[A]]"),
    ("pl", "#PATRZ [[A]]"),
    ("pl", "#tam [[A]]"),
    ("ru", "#ПЕРЕНАПРАВЛЕНИЕ [[А]]"),
    ("ru", "#перенаправление [[А]]"),
    ("uk", "#ПЕРЕНАПРАВЛЕННЯ [[А]]"),
    ("sr", "#Преусмери [[А]]"),
    ("ja", "#転送 [[あ]]"),
    ("ja", "#リダイレクト[[あ]]"),
    ("ja", "＃転送 [[あ]]"),
    ("zh", "#重定向 [[甲]]"),
    ("ko", "#넘겨주기 [[가]]"),
    ("ar", "#تحويل [[ا]]"),
    ("fa", "#تغییر_مسیر [[ا]]"),
    ("he", "#הפניה [[א]]"),
    ("hi", "#पुनर्प्रेषित [[अ]]"),
    ("hy", "#ՎԵՐԱՀՂՈՒՄ [[Ա]]"),
    ("hy", "#վերահղում [[Ա]]"),
    ("ka", "#გადამისამართება [[ა]]"),
    ("tr", "#YÖNLENDİRME [[A]]"),
    ("vi", "#đổi [[A]]"),
    ("th", "#เปลี่ยนทาง [[ก]]"),
    ("el", "#ΑΝΑΚΑΤΕΥΘΥΝΣΗ [[Α]]"),
    ("ltg", "#REDIRECT [[A]]"),
    # A language the table lacks, and an alias it lacks: one word in capitals before a link.
    ("xx", "#UNKNOWNWORD [[A]]"),
    ("xx", "#ΑΓΝΩΣΤΟ [[Α]]"),
]


@pytest.mark.parametrize(("language", "page"), REDIRECTS)
def test_redirects(language: str, page: str) -> None:
    assert extractor(language).is_redirect(page.encode())


@pytest.mark.parametrize(
    "page",
    ["# [[a]]", "#one [[a]]", "REDIRECT [[a]]", "text #REDIRECT [[a]]", "#REDIRECT a", "", "#", "#REDIRECTED to [[a]]"],
)
def test_no_redirects(page: str) -> None:
    assert not extractor("en").is_redirect(page.encode())


# What test_kinds_of_pages.py has for each language is not repeated here.
DISAMBIGUATION = [
    ("en", "A", "'''A''' may be:\n* [[B]]\n{{disambig}}"),
    ("en", "A", "{{Disambiguation|geo}}"),
    ("en", "A", "{{ hndis |A}}"),
    ("en", "A", "a __DISAMBIG__"),
    ("en", "A (disambiguation)", "text"),
    ("de", "A (Begriffsklärung)", "x"),
    ("pt", "A", "{{Desambiguação}}"),
    ("nl", "A", "{{dp}}"),
    ("ru", "А", "{{Неоднозначность|тип=x}}"),
    ("ru", "А (значения)", "x"),
    ("ja", "あ (曖昧さ回避)", "x"),
    ("zh", "甲", "{{disambig}}"),
    ("zh", "甲", "{{消歧义}}"),
    ("hy", "Ա", "{{Բազմիմաստություն}}"),
    ("ltg", "A", "{{Zeimeibu škiršona}}"),
]


@pytest.mark.parametrize(("language", "title", "page"), DISAMBIGUATION)
def test_disambiguation(language: str, title: str, page: str) -> None:
    assert extractor(language).is_disambiguation(title.encode(), page.encode())


@pytest.mark.parametrize(
    "page", ["text", "{{Disambiguation needed}}", "disambig", "{{a|disambig}}", "{{", "__TOC__", ""]
)
def test_no_disambiguation(page: str) -> None:
    assert not extractor("en").is_disambiguation(b"A", page.encode())


# A page of each, in the shape such pages have: infobox, file, bold title with names in other languages, references,
# a table, categories and links to other languages in the site's own words.
PAGES = {
    "ar": (
        {6: "ملف", 10: "قالب", 14: "تصنيف"},
        "{{معلومات مستوطنة\n| اسم = القاهرة\n}}\n[[ملف:Cairo.jpg|تصغير|200بك|منظر [[القاهرة]]]]\n'''القاهرة''' "
        "({{إنج|Cairo}}) هي [[عاصمة (سياسة)|عاصمة]] [[مصر]].<ref>{{استشهاد|عنوان=أ}}</ref>\n\n== مراجع ==\n"
        "{{مراجع}}\n[[تصنيف:القاهرة]]\n[[en:Cairo]]",
        "القاهرة (بالإنجليزية: Cairo) هي عاصمة مصر.",
    ),
    "fa": (
        {6: "پرونده", 10: "الگو", 14: "رده"},
        "[[پرونده:Tehran.jpg|بندانگشتی|تهران]]\n'''تهران''' ({{lang-en|Tehran}}) پایتخت [[ایران]] است.<ref>آ</ref>"
        "\n== منابع ==\n{{پانویس}}\n[[رده:تهران]]",
        "تهران (به انگلیسی: Tehran) پایتخت ایران است.",
    ),
    "he": (
        {6: "קובץ", 10: "תבנית", 14: "קטגוריה"},
        "{{עיר\n|שם=ירושלים}}\n[[קובץ:Jerusalem.jpg|ממוזער|שמאל|נוף]]\n'''ירושלים''' (ב[[ערבית]]: {{כתב ערבי|القدس}})"
        " היא [[עיר בירה|בירת]] [[ישראל]].{{הערה|מקור}}\n==הערות שוליים==\n{{הערות שוליים}}\n[[קטגוריה:ירושלים|*]]",
        "ירושלים (בערבית: القدس) היא בירת ישראל.",
    ),
    "zh": (
        {6: "File", 10: "Template", 14: "Category"},
        "{{Infobox settlement|name=北京}}\n[[文件:Beijing.jpg|thumb|天安門]]\n'''北京市'''（{{lang-en|Beijing}}），"
        "简称“[[京]]”，"
        "是-{zh-hans:中华人民共和国; zh-hant:中華人民共和國;}-的[[首都]]。<ref>{{cite web|title=甲}}</ref>人口2,154万"
        "（2018年）{{NoteTag|乙}}。\n== 参考文献 ==\n{{reflist}}\n[[Category:北京市]]\n[[分类:首都]]",
        "北京市（英语：Beijing），简称“京”，是中华人民共和国的首都。人口2,154万（2018年）。",
    ),
    "ja": (
        {6: "ファイル", 10: "Template", 14: "Category"},
        "{{日本の市\n|画像=[[ファイル:Kyoto.jpg|250px]]\n}}\n[[ファイル:Kyoto2.jpg|thumb|金閣]]\n"
        "'''京都市'''（きょうとし、"
        '{{lang-en|Kyoto}}）は、[[近畿地方]]の[[京都府]]の[[市]]<ref group="注">甲</ref>。'
        "{{要出典|date=2020年}}\n== 脚注 ==\n"
        "{{脚注ヘルプ}}\n[[Category:京都市|*]]",
        "京都市（きょうとし、英語: Kyoto）は、近畿地方の京都府の市。",
    ),
    "ko": (
        {6: "파일", 10: "틀", 14: "분류"},
        "{{도시 정보|이름=서울}}\n[[파일:Seoul.jpg|섬네일|서울]]\n'''서울특별시'''({{llang|en|Seoul}})는 "
        "[[대한민국]]의 "
        "[[수도]]이다.<ref>가</ref>\n== 각주 ==\n{{각주}}\n[[분류:서울]]",
        "서울특별시(영어: Seoul)는 대한민국의 수도이다.",
    ),
    "ru": (
        {6: "Файл", 10: "Шаблон", 14: "Категория"},
        "{{НП\n|название=Москва\n}}\n[[Файл:Moscow.jpg|мини|справа|Кремль]]\n'''Москва́''' ({{lang-en|Moscow}}) — "
        "[[столица]] [[Россия|России]], население {{num|12655050}} чел.{{sfn|Иванов|2020}} ({{nobr|1 января}} 2021)."
        "\n== Примечания ==\n{{примечания}}\n[[Категория:Москва]]\n[[en:Moscow]]",
        "Москва́ (англ. Moscow) — столица России, население 12 655 050 чел. (1 января 2021).",
    ),
    "uk": (
        {6: "Файл", 10: "Шаблон", 14: "Категорія"},
        "[[Зображення:Kyiv.jpg|міні]]\n'''Київ''' ({{lang-ru|Киев}}) — "
        "[[столиця]] {{нп|України||ru|Украина}}.<ref>а</ref>"
        "\n== Примітки ==\n{{reflist}}\n[[Категорія:Київ]]",
        "Київ (рос. Киев) — столиця України.",
    ),
    "hy": (
        {6: "Պատկեր", 10: "Կաղապար", 14: "Կատեգորիա"},
        "{{Տեղեկաքարտ|անուն=Երևան}}\n[[Պատկեր:Yerevan.jpg|մինի|Երևան]]\n'''Երևան''' ({{lang-en|Yerevan}}), "
        "[[Հայաստան]]ի մայրաքաղաքը։<ref>ա</ref>\n== Ծանոթագրություններ ==\n{{ծանցանկ}}\n[[Կատեգորիա:Երևան]]",
        "Երևան (անգլ.՝ Yerevan), Հայաստանի մայրաքաղաքը։",
    ),
    "de": (
        {6: "Datei", 10: "Vorlage", 14: "Kategorie"},
        "{{Infobox Ort|Name=Bern}}\n[[Datei:Bern.jpg|mini|Bern]]\n[[Bild:B.png|20px]]"
        "'''Bern''' ({{frS|Berne}}, {{IPA|bɛrn}}) "
        "ist die [[Hauptstadt|Bundesstadt]] der [[Schweiz]].<ref>A</ref> Sie hat {{formatnum:133883}} Einwohner.\n"
        "== Einzelnachweise ==\n<references />\n[[Kategorie:Bern| ]]",
        "Bern (französisch Berne) ist die Bundesstadt der Schweiz. Sie hat 133.883 Einwohner.",
    ),
    "fr": (
        {6: "Fichier", 10: "Modèle", 14: "Catégorie"},
        "{{Infobox Ville}}\n[[Fichier:Lyon.jpg|vignette|Lyon]]\n'''Lyon''' est une [[ville]] du {{s-|XIX|e}}, "
        "à {{unité|470|km}} de [[Paris]]{{,}}<ref>A</ref>, l’{{lang|en|''Old Town''}}.\n== Notes et références ==\n"
        "{{Références}}\n[[Catégorie:Lyon]]",
        "Lyon est une ville du XIXe siècle, à 470 km de Paris, l’Old Town.",
    ),
    "ltg": (
        {6: "Fails", 10: "Taiss", 14: "Kategoreja"},
        "[[Fails:R.jpg|thumb]]\n'''Rēzekne''' ({{Vol-ru|Резекне}}) irā [[mīsts]]."
        "\n== Nūruodis ==\n{{nūruodis}}\n[[Kategoreja:M]]",
        "Rēzekne (krīvu: Резекне) irā mīsts.",
    ),
}


@pytest.mark.parametrize("language", PAGES)
def test_pages(language: str) -> None:
    namespaces, page, expected = PAGES[language]
    text = extractor(language, namespaces).extract(b"T", page.encode()).decode()
    assert text == expected
    assert not [piece for piece in GARBAGE if piece in text]


VARIANTS = [
    ("zh", "-{zh-hans:计算机;zh-hant:電腦}-", "计算机"),
    ("zh", "-{zh-tw:電腦;zh-cn:计算机}-", "计算机"),
    ("zh", "-{ zh-hk : 甲 ; zh-tw : 乙 ; }-丙", "乙 丙"),
    ("zh", "甲-{乙}-丙", "甲乙丙"),
    ("zh", "甲-{R|乙}-丙", "甲乙丙"),
    ("zh", "甲-{H|zh-cn:乙;zh-tw:丁}-丙", "甲丙"),
    ("zh", "甲-{T|zh-cn:乙;zh-tw:丁}-丙", "甲丙"),
    ("zh", "甲-{A|zh-cn:乙;zh-tw:丁}-丙", "甲乙丙"),
    ("zh", "甲-{-|zh-cn:乙}-丙", "甲丙"),
    ("zh", "甲-{zh-hans|乙}-丙", "甲乙丙"),
    ("zh", "-{zh-hans:[[甲|乙]]{{丁}};zh-hant:丙}-", "乙"),
    ("zh", "甲-{乙 丙", "甲-{乙 丙"),
    ("sr", "-{sr-ec:а; sr-el:a}- б", "а б"),
    ("en", "a-{b}-c", "a-{b}-c"),
]


@pytest.mark.parametrize(("language", "wikitext", "text"), VARIANTS)
def test_variants(language: str, wikitext: str, text: str) -> None:
    assert extractor(language).extract(b"T", wikitext.encode()).decode() == text


def test_namespaces_of_one_site_are_none_of_another() -> None:
    page = b"[[Datei:A.jpg|b]] c"
    assert extractor("de", {6: "Datei"}).extract(b"T", page) == b"c"
    assert extractor("en", {6: "File"}).extract(b"T", page) == b"b c"


def test_english_names_hold_everywhere() -> None:
    page = b"[[File:A.jpg|b]] [[Image:C.png]] [[Category:D]] e"
    for language in ("ru", "ja", "xx"):
        assert extractor(language, {6: "Ф", 14: "К"}).extract(b"T", page) == b"e"
