"""Kinds of pages by the words of each Wikipedia: disambiguation pages, lists, stubs, and sections that are no text."""

import pytest
from made_up.extractors import extractor_of

from maskmill.text_shards.options import QualityOptions
from maskmill.text_shards.quality import QualityFilter

# Language, a disambiguation page, the title of a list, the call of a stub template, the heading of an appendix; or "".
KINDS = [
    ("am", "", "", "", "ዋቢ ምንጮች"),
    ("ar", "{{صفحة توضيح}}", "قائمة الجسور", "{{بذرة جسر}}", "مراجع وملاحظات"),
    ("as", "", "", "", "তথ্য উৎস"),
    ("az", "{{Dəqiqləşdirmə}}", "Avropa çaylarının siyahısı", "{{Coğrafiya-qaralama}}", "Biblioqrafiya"),
    ("azb", "", "", "", "قایناقلار"),
    ("be", "{{Прозвішча}}", "Спіс рэк Еўропы", "{{Накід}}", "Заўвагі"),
    ("bg", "{{пояснение}}", "Списък на реките в Европа", "{{мъниче|река}}", "Библиография"),
    ("bn", "{{দ্ব্যর্থতা নিরসন পাতা}}", "সেতুর তালিকা", "{{অসম্পূর্ণ}}", "টীকা ও তথ্যসূত্র"),
    ("bs", "{{Čvor}}", "Spisak rijeka u Evropi", "", ""),
    ("ca", "{{Desambiguació}}", "Llista d'alcaldes", "{{Esborrany de geografia}}", "Referències i notes"),
    ("ceb", "{{giklaro}}", "Talaan sa mga taytayan", "{{saha}}", "Gikan sa gawas nga tinubdan"),
    ("ckb", "", "", "", "پەراوێزەکان"),
    ("cs", "{{Rozcestník - příjmení}}", "Seznam řek v Evropě", "{{Pahýl}}", "Další literatura"),
    ("cy", "{{Gwahaniaethu}}", "Rhestr brenhinoedd", "{{Eginyn Cymru}}", "Darllen pellach"),
    ("da", "{{Flertydig}}", "Liste over konger", "{{by-stub}}", "Videre læsning"),
    ("de", "{{Begriffsklärung}}", "Liste der Berge", "", "Quellen und Einzelnachweise"),
    ("el", "{{αποσαφήνιση}}", "Κατάλογος ποταμών της Ευρώπης", "{{Γεωγραφία-επέκταση}}", "Περαιτέρω ανάγνωση"),
    ("eo", "{{Apartigilo}}", "Listo de riveroj de Eŭropo", "{{ĝermo|rivero}}", "Bibliografio"),
    ("es", "{{desambiguación}}", "Anexo:Ciudades de Chile", "{{esbozo de|geografía}}", "Enlaces relacionados"),
    ("es", "", "", "{{Miniesbozo}}", ""),
    ("et", "{{Täpsustuslehekülg}}", "Eesti linnade loend", "", "Välisviited"),
    ("eu", "{{Argipen}}", "Herrien zerrenda", "", "Iturriak"),
    ("fa", "{{رفع ابهام}}", "فهرست پل‌ها", "{{پل-خرد}}", "پی‌نوشت"),
    ("fi", "{{Täsmennyssivu}}", "Luettelo kuninkaista", "{{Tynkä/Kaupunki}}", "Lähteet ja viitteet"),
    ("fr", "{{Homonymie de personnes}}", "Liste de rois", "{{Ébauche|ville|France}}", "Pour approfondir"),
    ("fr", "{{Toponymie}}", "", "{{ébauche}}", ""),
    ("ga", "{{Idirdhealú}}", "Liosta ríthe", "{{Síol}}", "Nótaí"),
    ("gl", "{{homónimos}}", "Lista de reis", "", "Fontes"),
    ("gu", "", "", "", "બાહ્ય કડીઓ"),
    ("he", "{{דף פירושונים}}", "רשימת נהרות באירופה", "{{קצרמר|נהרות}}", "ביאורים והערות שוליים"),
    ("he", "", "רשימת גשרים", "{{קצרמר|גאוגרפיה}}", ""),
    ("hi", "{{बहुविकल्पी पृष्ठ}}", "पुलों की सूची", "{{भूगोल-आधार}}", "टीका टिप्पणी"),
    ("hr", "{{razdvojba}}", "Popis rijeka u Europi", "{{Mrva-geo}}", "Bibliografija"),
    ("hu", "{{egyért}}", "Európa folyóinak listája", "{{csonk-földrajz}}", "Szakirodalom"),
    ("hy", "{{Բազմիմաստ}}", "Եվրոպայի գետերի ցանկ", "{{Անավարտ}}", "Մատենագրություն"),
    ("id", "{{disambiguasi geografi}}", "Daftar jembatan", "{{jembatan-stub}}", "Catatan dan referensi"),
    ("is", "{{Aðgreining}}", "Listi yfir konunga", "{{Stubbur|borg}}", "Ítarefni"),
    ("it", "{{Disambigua}}", "Lista dei re", "{{S|città}}", "Link esterni"),
    ("ja", "{{駅の曖昧さ回避}}", "世界の橋の一覧 (アジア)", "{{Bridge-stub}}", "注釈・脚注"),
    ("ja", "{{同名の地名}}", "", "", ""),
    ("ka", "{{მრავალმნიშვნელოვანი}}", "ევროპის მდინარეების სია", "{{ესკიზი}}", "ბიბლიოგრაფია"),
    ("kk", "{{айрық}}", "Еуропа өзендерінің тізімі", "{{Бастама}}", "Сыртқы сілтемелер"),
    ("km", "", "", "", "ឯកសារយោង"),
    ("kn", "", "", "", "ಹೊರಗಿನ ಸಂಪರ್ಕಗಳು"),
    ("ko", "{{동음이의 문서}}", "다리 목록", "{{토막글|다리}}", "각주 및 참고 문헌"),
    ("la", "{{Discretiva}}", "", "{{Stipula}}", "Nexus interni"),
    ("lo", "", "", "", "ອ້າງອີງ"),
    ("lt", "{{Nuorodinis}}", "Miestų sąrašas", "{{Geo-stub}}", "Išorinės nuorodos"),
    ("lv", "{{Nozīmju atdalīšana}}", "Pilsētu saraksts", "{{ģeo-aizmetnis}}", "Atsauces un avoti"),
    ("lzh", "", "諸橋列表", "{{殘章}}", "典據"),
    ("mk", "{{Појаснување}}", "Список на реки во Европа", "{{Никулец-реки}}", "Библиографија"),
    ("ml", "{{നാനാർത്ഥം}}", "പാലങ്ങളുടെ പട്ടിക", "{{അപൂർണ്ണം}}", "പുറംകണ്ണികൾ"),
    ("mr", "{{नि:संदिग्धीकरण}}", "पुलांची यादी", "{{विस्तार}}", "हेही पाहा"),
    ("ms", "{{nyahkekaburan}}", "Senarai jambatan", "{{tunas-geo}}", "Nota dan rujukan"),
    ("my", "", "", "", "ကိုးကား"),
    ("mzn", "", "", "", "دییه لینکون"),
    ("nb", "{{Peker}}", "Liste over konger", "{{Stubb}}", "Kilder og litteratur"),
    ("ne", "", "", "", "सन्दर्भ सामग्रीहरू"),
    ("new", "", "", "", "लिधंसा"),
    ("nl", "", "Lijst van koningen", "{{Beginnetje|stad}}", "Noten en referenties"),
    ("nn", "{{Fleirtyding}}", "Liste over kongar", "{{geospire}} {{Spire}}", "Kjelder og referansar"),
    ("or", "", "", "", "ବାହାର ତଥ୍ୟ"),
    ("pa", "", "", "", "ਹਵਾਲੇ"),
    ("pl", "{{Strona ujednoznaczniająca}}", "Lista rzek Europy", "{{Stub|geografia}}", "Literatura uzupełniająca"),
    ("pnb", "", "", "", "ہور ویکھو"),
    ("pt", "", "Lista de reis", "{{esboço-geografia}}", "Veja também"),
    ("ro", "{{Dezambiguizare}}", "Lista regilor", "{{Ciot-oraș}}", "Lecturi suplimentare"),
    ("ru", "{{Список полных тёзок}}", "Список рек Европы", "{{Geo-stub}}", "Литература и источники"),
    ("ru", "", "", "{{Незавершённая статья}}", ""),
    ("sa", "", "", "", "सम्बद्धाः लेखाः"),
    ("si", "", "", "", "බාහිර සබැඳි"),
    ("sk", "{{Rozlišovacia stránka}}", "Zoznam riek v Európe", "{{Geografický výhonok}}", "Literatúra a zdroje"),
    ("sl", "{{Razločitev}}", "Seznam rek v Evropi", "{{škrbina-geo}}", "Nadaljnje branje"),
    ("sr", "{{Вишезначна одредница}}", "Списак река у Европи", "{{Клица-Река}}", "Белешке"),
    ("sv", "{{Robotskapad förgrening}}", "Lista över kungar", "{{stub}}", "Källor och noter"),
    ("ta", "{{பக்கவழிநெறிப்படுத்தல்}}", "பாலங்களின் பட்டியல்", "{{குறுங்கட்டுரை}}", "அடிக்குறிப்புகள்"),
    ("te", "{{అయోమయనివృత్తి}}", "వంతెనల జాబితా", "{{మొలక}}", "బయటి లంకెలు"),
    ("th", "{{แก้กำกวมชื่อคน}}", "รายชื่อสะพาน", "{{โครงสถานที่}}", "รายการอ้างอิง"),
    ("tl", "{{paglilinaw ng pook}}", "Talaan ng mga tulay", "{{stub}}", "Mga talababa"),
    ("tr", "{{Anlam ayrımı}}", "Avrupa'daki nehirler listesi", "{{coğrafya-taslak}}", "Dış bağlantı"),
    ("tr", "{{Adam ayrımı}}", "", "", ""),
    ("tt", "{{күпмәгънәлелек}}", "Күперләр исемлеге", "{{стаб}}", "Тышкы сылтамалар"),
    ("uk", "{{Список однофамільців}}", "Перелік річок Європи", "{{Ukraine-stub}}", "Джерела і література"),
    ("uk", "", "", "{{Біо-доробити}}", ""),
    ("ur", "{{ضد ابہام}}", "پلوں کی فہرست", "{{نامکمل}}", "حواشی و حوالہ جات"),
    ("uz", "{{koʻp maʼnolilik}}", "Koʻpriklar roʻyxati", "{{chala}}", "Tashqi havolalar"),
    ("vi", "{{trang định hướng địa danh}}", "Danh sách cầu", "{{Sơ khai Việt Nam}}", "Chú thích và tham khảo"),
    ("war", "{{pansayod}}", "Talaan han mga taytayan", "{{turok}}", "Mga kasarigan"),
    ("yue", "{{人名搞清楚}}", "橋一覽", "{{楔位}}", "出面連結"),
    ("zh", "{{車站消歧義}}", "中国桥梁列表", "{{中國橋樑小作品}}", "注釋及參考資料"),
]
# The extractor of a language takes a third of a second to make.
IN_EVERY_RUN = ("ar", "de", "hu", "ja", "ru", "zh")


@pytest.mark.parametrize(
    ("language", "disambiguation", "title", "stub", "heading"),
    [
        pytest.param(*row, id=f"{row[0]}-{number}", marks=() if row[0] in IN_EVERY_RUN else pytest.mark.builds)
        for number, row in enumerate(KINDS)
    ],
)
def test_pages_are_told_by_the_words_of_the_language(
    language: str, disambiguation: str, title: str, stub: str, heading: str
) -> None:
    extractor = extractor_of(language)
    if disambiguation:
        assert extractor.is_disambiguation(b"A", f"'''A''':\n* [[B]]\n{disambiguation}".encode())
    lists = QualityFilter(QualityOptions(max_list_share=1.0), language)
    if title:
        assert lists.reject(title.encode(), b"A sentence.\n") == "list_pages"
        assert lists.reject(f"x{title}x".encode(), b"A sentence.\n") is None
    stubs = QualityFilter(QualityOptions(drop_stubs=True), language)
    if stub:
        assert stubs.reject(b"A", b"A sentence.\n", f"A sentence.\n{stub}\n".encode()) == "stub_pages"
        assert stubs.reject(b"A", b"A sentence.\n", b"{{Sentence|stubborn}} {{infobox}}") is None
    if heading:
        page = f"A sentence stands here.\n\n== {heading} ==\nA second sentence stands here.\n"
        assert extractor.extract(b"Title", page.encode()) == b"A sentence stands here."


def test_a_note_about_other_meanings_is_no_disambiguation() -> None:
    for language, note in (
        ("ru", "значения"),
        ("ru", "однофамильцы|Лев"),
        ("uk", "однофамільці|Лев"),
        ("uk", "значення"),
    ):
        page = f"{{{{{note}}}}}\n'''Лев''' — зверь."
        assert not extractor_of(language).is_disambiguation("Лев".encode(), page.encode())


def test_a_word_at_the_end_of_a_title_is_the_last_one() -> None:
    lists = QualityFilter(QualityOptions(max_list_share=1.0), "ja")
    assert lists.reject("一覧表示".encode(), "文。".encode()) is None
    assert QualityFilter(QualityOptions(max_list_share=1.0)).reject("橋の一覧".encode(), b"a.") is None


def test_first_words_of_a_stub_template_are_whole_words() -> None:
    stubs = QualityFilter(QualityOptions(drop_stubs=True), "ms")
    assert stubs.reject(b"T", b"a.", b"{{Tunasmuda|a}} {{a|tunas a}}") is None
