"""Templates of the Wikipedias of eastern Europe, the Caucasus and central Asia.

The wikitext is written for the test, in the shape that the wikis' articles have.
"""

import functools

import pytest

from maskmill.extraction.options import WikitextOptions
from maskmill.extraction.wikitext import WikitextExtractor
from maskmill.inputs.site import Site


@functools.cache
def extractor(language: str) -> WikitextExtractor:
    header = (
        f'<mediawiki version="0.11" xml:lang="{language}">\n  <siteinfo>\n    <sitename>Wikipedia</sitename>\n'
        f"    <base>https://{language}.wikipedia.org/wiki/Main</base>\n  </siteinfo>\n"
    )
    return WikitextExtractor(Site.parse(header.encode()), WikitextOptions(date="2023-05-01"))


def text_of(language: str, wikitext: str) -> str:
    return extractor(language).extract(b"Title", wikitext.encode()).decode()


# Words of another language, as each wiki's own template prints them.
FOREIGN_WORDS = [
    ("ru", "{{lang-en|London}}", "англ. London"),
    ("ru", "{{lang-la|virus|яд}}", "лат. virus — яд"),
    ("ru", "{{lang-la2|homo}}", "homo"),
    ("ru", "{{langi|la|Lituae}}", "Lituae"),
    ("ru", "{{lang-xal|Хальмг}}", "калм. Хальмг"),
    ("ru", "{{langx|de|Berlin}}", "нем. Berlin"),
    ("ru", "{{китайский|上|上海|Shànghǎi|Шанхай}}", "кит. трад. 上, упр. 上海, пиньинь Shànghǎi, палл. Шанхай"),
    ("ru", "{{нихонго|Киото|京都|Kyo:to}}", "Киото (яп. 京都 Kyo:to)"),
    ("uk", "{{lang-orv|пълнъ}}", "давн.-рус. пълнъ"),
    ("uk", "{{lang-cu2|мєсто}}", "мєсто"),
    ("uk", "{{lang-lat|Italia}}", "лат. Italia"),
    ("uk", "{{lang3|uk|ru|bg|три}}", "укр., рос., болг. три"),
    ("be", "{{lang-de|Berlin}}", "ням.: Berlin"),
    ("be-tarask", "{{мова-de|Berlin}}", "па-нямецку: Berlin"),
    ("pl", "{{j|en|House}}", "House"),
    ("pl", "{{lang|de|Haus}}", "Haus"),
    ("pl", "{{nihongo|Tokio|東京|Tōkyō}}", "Tokio (jap. 東京 Tōkyō)"),
    ("cs", "{{vjazyce|en}} ''London''", "anglicky London"),
    ("cs", "{{vjazyce2|de|Wien}}", "německy Wien"),
    ("cs", "{{cizojazyčně|fr|Paris}}", "Paris"),
    ("cs", "{{cj|en|London}}", "London"),
    ("sk", "{{v jazyku|deu|Wien}}", "nem. Wien"),
    ("sk", "{{vjz|eng|London}}", "angl. London"),
    ("sk", "{{deu|Spree}}", "nem. Spree"),
    ("sl", "{{jezik-de|Wien}}", "nemško Wien"),
    ("hr", "{{lang-en|London}}", "engl. London"),
    ("bs", "{{jez-en|London}}", "engl. London"),
    ("sh", "{{jez-eng|London}}", "engl. London"),
    ("sr", "{{јез-нем|Berlin}}", "нем. Berlin"),
    ("sr", "{{јез-длс|Barliń}}", "дл. луж. Barliń"),
    ("sr", "{{lang-en|London}}", "енгл. London"),
    ("bg", "{{lang-en|London}}", "на английски: London"),
    ("ce", "{{lang-en|London}}", "ингалсан: London"),
    ("ce", "{{нп3|Лондон|London}}", "London"),
    ("ce", "{{дата|5|3|1944}}", "5 март 1944"),
    ("mk", "{{lang-de|Berlin}}", "германски: Berlin"),
    ("hu", "{{lang-la|Danubius}}", "latinul: Danubius"),
    ("el", "{{lang-de|''Karl Marx''}}", "γερμανικά: Karl Marx"),
    ("tr", "{{dil-en|London}}", "İngilizce: London"),
    ("tr", "{{dil|en|London}}", "London"),
    ("hy", "{{lang-en|Yerevan}}", "անգլ.՝ Yerevan"),
    ("hy", "{{lang-en2|UTC}}", "UTC"),
    ("hy", "{{lang-id|Indonesia}}", "ինդոն.՝ Indonesia"),
    ("hy", "{{lang2|bs|hr|feninga}}", "բոսն., խորվ.՝ feninga"),
    ("hy", "{{նիհոնգո|Տոկիո|東京市|Tōkyō-shi}}", "Տոկիո (ճապ.՝ 東京市, Tōkyō-shi)"),
    ("ka", "{{lang-de|Berlin}}", "გერმ. Berlin"),
    ("az", "{{Dil-de|Berlin}}", "alm. Berlin"),
    ("kk", "{{lang-de|Berlin}}", "нем. Berlin"),
    ("eo", "{{lang-de|Berlin}}", "germane: Berlin"),
    ("la", "{{lang-en|London}}", "Anglice: London"),
    ("he", "{{אנגלית|London}}", "באנגלית: London"),
    ("ltg", "{{Vol-ru|Резекне}}", "krīvu: Резекне"),
]


@pytest.mark.parametrize(("language", "wikitext", "text"), FOREIGN_WORDS)
def test_words_of_other_languages(language: str, wikitext: str, text: str) -> None:
    assert text_of(language, f"Xxxx yyyy ({wikitext}) zzzz.") == f"Xxxx yyyy ({text}) zzzz."


# Numbers, dates, units, and other templates that stand inside a sentence.
INLINE = [
    ("ru", "{{OldStyleDate|27|января|1839|15}}", "15 (27) января 1839"),
    ("ru", "{{СС|9|марта|1814|25|февраля}}", "25 февраля (9 марта) 1814"),
    ("ru", "{{OldStyleDate|6|1|1834|25|12|1833}}", "25 декабря 1833 (6 января 1834)"),
    ("ru", "{{OldStyleDate|4 марта|1850|20 февраля}}", "20 февраля (4 марта) 1850"),
    ("ru", "{{СС|4 января|1850|23 декабря|1849}}", "23 декабря 1849 (4 января 1850)"),
    ("ru", "{{OldStyleDate|4 марта|1850}}", "4 марта 1850"),
    ("ru", "{{OldStyleDate|4|3|1850}}", "4 марта 1850"),
    ("ru", "{{OldStyleDate|4|марта}}", "4 марта"),
    ("uk", "{{OldStyleDate|4 березня|1850|20 лютого}}", "20 лютого (4 березня) 1850"),
    ("be", "{{СС|4 сакавіка|1850|20 лютага}}", "20 лютага (4 сакавіка) 1850"),
    ("hy", "{{OldStyleDate|4 մարտի|1850|20 փետրվարի}}", "20 փետրվարի (4 մարտի) 1850"),
    ("kk", "{{OldStyleDate|27|қаңтар|1839|15}}", "15 (27) қаңтар 1839"),
    ("bg", "{{OldStyleDate|4 март|1850|20 февруари}}", "4 март 1850"),
    ("bg", "{{OldStyleDate|6|1|1834|25|12|1833}}", "25 декември 1833 (6 януари 1834)"),
    ("ru", "{{дата|5|8|1950}}", "5 августа 1950"),
    ("uk", "{{Дата|2000|7|05}} року", "5 липня 2000 року"),
    ("ru", "{{число|12345|км²}}", "12 345 км²"),
    ("ru", "{{нп5|Закон Мура|закона Мура|en|Moore's law}}", "закона Мура"),
    ("ru", "{{не переведено|есть=|надо=Закон Мура|язык=en}}", "Закон Мура"),
    ("ru", "{{s|5 кг}} и {{comment|ВВП|валовой продукт}}", "5 кг и ВВП"),
    ("ru", "{{флагификация|Франция}}", "Франция"),
    ("ru", "44 год {{до н. э.}} --{{nbsp}}{{век|XIX}}", "44 год до н. э. -- XIX век"),
    ("uk", "{{ДН|27|1|1839|15}}", "15 (27) січня 1839"),
    ("uk", "{{ДС|9|3|1814|25|2}}", "25 лютого (9 березня) 1814"),
    ("uk", "{{ДН|6|1|1834|25|12|1833}}", "25 грудня 1833 (6 січня 1834)"),
    ("uk", "{{ДН|29|02|1944}}", "29 лютого 1944"),
    ("uk", "{{нар}} {{ДС|||2003}}", "нар. 2003"),
    ("uk", "{{OldStyleDate|27|грудня||17}}", "17 (27) грудня"),
    ("uk", "+13{{nbsp}}{{градус Цельсія}}", "+13 °C"),
    ("uk", "{{iw|Гімназія|Першій гімназії||School}}", "Першій гімназії"),
    ("uk", "{{число|1234567}}", "1 234 567"),
    ("be", "{{Дата|5|8|1950}}", "5 жніўня 1950"),
    ("be", "{{нп3|Замак|замка|en|Castle}}", "замка"),
    ("pl", "{{liczba|1234567}} w {{k|XIX}} wieku", "1 234 567 w XIX wieku"),
    ("cs", "{{datum|1950|1|2}}", "2. ledna 1950"),
    ("cs", "{{km2}} a {{m n. m.|300}}", "km² a 300 m n. m."),
    ("cs", "{{Vlajka a název|Francie}}", "Francie"),
    ("sk", "{{km|70|m}} a {{mnm|34}}", "70 km a 34 m n. m."),
    ("sk", "{{dnv|1950|1|2}}", "2. januára 1950"),
    ("hu", "{{szám|748472}}", "748 472"),
    ("hu", "{{dátum|1950|1|2}}", "1950. január 2."),
    ("sl", "{{datum rojstva|1950|1|2}}", "2. januar 1950"),
    ("hr", "{{datum rođenja|1950|1|2}}", "2. siječnja 1950."),
    ("sr", "{{датум рођења|1950|1|2}}", "2. јануар 1950."),
    ("sh", "44. {{p. n. e.}} i {{ZD|France}}", "44. p. n. e. i Francuska"),
    ("bg", "{{флагче с име|Франция}} и {{пр.н.е.}}", "Франция и пр.н.е."),
    ("mk", "{{роден на|2|1|1950}}", "2 јануари 1950"),
    ("el", "{{μονάδα|50000}}", "50.000"),
    ("el", "{{ημερομηνία γέννησης|1950|1|2}}", "2 Ιανουαρίου 1950"),
    ("tr", "{{doğum tarihi ve yaşı|1950|1|2}}", "2 Ocak 1950"),
    ("tr", "{{bayrak|FRA}} ve {{MÖ|44}}", "Fransa ve MÖ 44"),
    ("hy", "{{Հուլյան տոմար|մայիսի 24-ին}}", "մայիսի 24-ին"),
    ("hy", "{{դրոշավորում|Ֆինլանդիա}}", "Ֆինլանդիա"),
    ("ka", "{{თარიღი|2|1|1950}} {{ძვ. წ.}}", "2 იანვარი, 1950 ძვ. წ."),
    ("az", "{{sayı|1}} {{rəqəm|1234567}}", "1.234.567"),
    ("kk", "{{сан|1234567}} {{км²}}", "1 234 567 км²"),
    ("eo", "la {{daton|13|novembro|354}}", "la 13-an de novembro 354"),
    ("eo", "{{dato|18|1|1791}}", "18-a de januaro 1791"),
    ("he", "{{קישור שפה|אנגלית|X|טקסט}}", "טקסט"),
]


@pytest.mark.parametrize(("language", "wikitext", "text"), INLINE)
def test_inline_templates(language: str, wikitext: str, text: str) -> None:
    assert text_of(language, f"Xxxx yyyy {wikitext} zzzz.").replace("\u00a0", " ") == f"Xxxx yyyy {text} zzzz."


# Passages in doubt keep their words; marks, footnotes, pictures and notes to the reader give nothing.
MARKS = [
    ("ru", "Слово {{нет АИ 2|было здесь|5|6|2010}} всегда.{{нет АИ|23|12|2012}}", "Слово было здесь всегда."),
    ("ru", "Слово.{{прим|Так сказано.}} {{флаг|Франция}} Париж {{когда?}} вырос.", "Слово. Париж вырос."),
    ("uk", "Слово{{джерело}} {{fact2|було тут}} завжди{{ref+|Тут.|ком.}}.", "Слово було тут завжди."),
    ("uk", "{{Прапорець|USA}} Бостон{{коли?}} виріс. {{ref-en}}", "Бостон виріс."),
    ("be", "Слова{{няма АК}} тут{{крыніца?}} ёсць.", "Слова тут ёсць."),
    ("pl", "Miasto {{fakt|założono dawno|data=2017-01}} nad rzeką{{r|fam}}{{odn|Nowak|2001}}.",
     "Miasto założono dawno nad rzeką."),
    ("pl", "Pisali o nim {{kto|niektórzy|data=2010}} autorzy{{u|b}}.", "Pisali o nim niektórzy autorzy."),
    ("cs", "Město{{Kdy?}} leží{{Fakt/dne|2010}} u řeky.{{Poznámka pod čarou|Tak.}}", "Město leží u řeky."),
    ("sk", "Mesto{{bez citácie}} leží{{kedy?}} pri rieke.", "Mesto leží pri rieke."),
    ("hu", "A város{{forr}} nagy{{mikor?}} volt.{{megjegyzés|Így.}}", "A város nagy volt."),
    ("sl", "Mesto{{navedi vir}} leži ob reki.{{opomba|Tako.}}", "Mesto leži ob reki."),
    ("hr", "Grad{{nedostaje izvor}} leži na rijeci.{{Z|HRV}}", "Grad leži na rijeci."),
    ("sr", "Град{{чињеница|date=02. 2014.}} лежи{{напомена|Тако.}} на реци.", "Град лежи на реци."),
    ("bg", "Градът{{факт|дата=2010}} лежи {{флагче|Белгия}} на реката.{{бел|Така.}}", "Градът лежи на реката."),
    ("mk", "Градот{{факт}} лежи{{белешка|Така.}} на реката.", "Градот лежи на реката."),
    ("el", "Η πόλη {{ασαφές|διαθέτει πολλούς}} κατοίκους{{σημ|Έτσι.}}.", "Η πόλη διαθέτει πολλούς κατοίκους."),
    ("el", "Πήραν {{πηγή|εκατομμύρια}} όπλα{{εκκρεμεί παραπομπή|σχόλιο=1/1/2017}}.", "Πήραν εκατομμύρια όπλα."),
    ("tr", "Kent{{olgu}} büyük{{ne zaman}} idi{{kdş|Ak|2001}}.", "Kent büyük idi."),
    ("hy", "Քաղաքը{{փաստ}} մեծ է{{ն|Այդպես։}} {{դրոշ|Ֆրանսիա}} այսօր։", "Քաղաքը մեծ է այսօր։"),
    ("ka", "ქალაქი{{წყარო?}} დიდია{{შენიშვნა|ასე.}}.", "ქალაქი დიდია."),
    ("az", "Şəhər{{mənbə}} böyükdür{{qeyd|Belə.}}.", "Şəhər böyükdür."),
    ("kk", "Қала{{дереккөзі жоқ}} үлкен{{ескерту|Солай.}}.", "Қала үлкен."),
    ("eo", "La urbo{{mankas fonto}} estas granda{{piednoto|Jes.}}.", "La urbo estas granda."),
    ("la", "Urbs{{dubsig}} magna est{{fontes desunt}}.", "Urbs magna est."),
    ("he", "העיר{{מקור}} גדולה{{הערה|כך.}}.", "העיר גדולה."),
]  # fmt: skip


@pytest.mark.parametrize(("language", "wikitext", "text"), MARKS)
def test_doubt_and_footnotes(language: str, wikitext: str, text: str) -> None:
    assert text_of(language, wikitext) == text


def test_brackets_of_dropped_templates_go() -> None:
    assert text_of("hy", "'''Արամ''' ({{ԱԾ}}), հայ կոմպոզիտոր։") == "Արամ, հայ կոմպոզիտոր։"
    assert (
        text_of("ru", "'''Киев''' ({{lang-uk|Київ}}, {{audio|Kyiv.ogg|слушать}}) — город.")
        == "Киев (укр. Київ) — город."
    )


# The first line of a section whose title is both "literature" and "sources", and whether it is kept.
LITERATURE = [
    ("hy", "Գրականություն", "Երկրի գրականությունը զարգանում է առավելապես հայերեն։ Հին բանաստեղծները գրում էին։", True),
    ("hy", "Գրականություն", "* Երկրի գրականությունը զարգանում է առավելապես հայերեն։ Երևան, 1958։", False),
    ("uk", "Література", "Бар Р. Мова АДА в проєктуванні систем / Пер. з англ. Москва : Мір, 1988. 320 с.", False),
    ("de", "Literatur", "Die Literatur des Landes beginnt mit den Liedern, die im Mittelalter gesungen wurden.", True),
]


@pytest.mark.parametrize(("language", "heading", "line", "is_kept"), LITERATURE)
def test_literature_is_a_topic_where_prose_follows(language: str, heading: str, line: str, is_kept: bool) -> None:
    page = f"A sentence stands here.\n\n== {heading} ==\n[[File:A.jpg|thumb|A]]\n=== A ===\n{line}\n\n== B ==\nThe end."
    kept = f"\n{line}" if is_kept else ""
    assert text_of(language, page) == f"A sentence stands here.{kept}\nThe end."


MAGIC_WORDS = [
    ("ru", "{{НАЗВАНИЕ_СТРАНИЦЫ}} {{ТЕКУЩИЙ_ГОД}}", "Title 2023"),
    ("uk", "{{НАЗВА_СТОРІНКИ}} {{ПОТОЧНИЙ_РІК}}", "Title 2023"),
    ("pl", "{{NAZWASTRONY}} {{CURRENTYEAR}}", "Title 2023"),
    ("hy", "{{ԷՋԻ_ԱՆՈՒՆԸ}} {{formatnum:12345}}", "Title 12 345"),
]


@pytest.mark.parametrize(("language", "wikitext", "text"), MAGIC_WORDS)
def test_magic_words(language: str, wikitext: str, text: str) -> None:
    assert text_of(language, f"Xxxx {wikitext} zzzz.").replace("\u00a0", " ") == f"Xxxx {text} zzzz."


def test_rows_of_links_are_left_out() -> None:
    assert text_of("el", "<center>\n[[3 Μαΐου]] | '''4 Μαΐου''' | [[5 Μαΐου]] </center>\n\nΗ 4η μέρα.") == "Η 4η μέρα."
    assert text_of("uk", "[[Ганза]] {{•}} [[Річ Посполита]] {{•}} [[Руїна]]\n\nСтав роком миру.") == "Став роком миру."
