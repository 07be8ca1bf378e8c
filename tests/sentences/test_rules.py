"""Which rules a language or a script has, and what they do to its text. `|` is where a sentence ends."""

import json
import pickle
from dataclasses import asdict, replace

import pytest

from maskmill.extraction.languages import interlanguage_prefixes
from maskmill.extraction.template_rules import load_rules
from maskmill.sentences.punkt import PunktParameters, SentenceSplitter
from maskmill.sentences.rules import TRAINED, SentenceRules, data, rules_for, rules_for_script

ENGLISH = "Dr. Who said: “No. Yes.” 你好。他走了。 In the 13. century he (i.e. Who) left. J. S. Bach. … Well! ok"


def sentences(language: str, line: str) -> list[str]:
    return [sentence.decode() for sentence in SentenceSplitter(rules_for(language)).split(line.encode())]


def check(language: str, marked: str) -> None:
    """Checks that a line is split at the `|` in it, which stand for the white space there, or for none."""
    parts = [part.strip() for part in marked.split("|")]
    assert sentences(language, marked.replace("|", "")) == parts


@pytest.mark.parametrize(
    ("language", "marked"),
    [
        ("zh", "他走了。|她来了！|是吗？|好。"),
        ("zh", "他说：“你好。再见。”|然后他走了（他很累。）就睡了。|完了！？|《什么？》是书。"),
        ("zh", "這是「數學。」的書。|IBM是公司。| English one. |圆周率是3.14。|对吗?|对."),
        ("zh", "价格为3．5元。|他好．|她好。"),
        ("ja", "「行くよ。」と彼は言った。|「はい。」|彼女は笑った。"),
        ("ja", "（注。）|次の文（これは。文。）です。|「A。B。」という本。|けいおん！のライブ。"),
        ("ja", "彼は“I am. Yes.”と言った。|終わり｡|次。"),
        ("yue", "佢走咗。|佢返嚟。"),
        ("ko", "2000. 5. 3. 그는 왔다. |그는 갔다. |정말? |네."),
        ("hy", "Սա է։ |Նա ասել է. «Այո»։ |Դա: այո։"),
        ("hy", "Նա եկավ (թուրք.՝ Ali): |Ժամը 12:30 էր, 53,7%: |2011 թվականին գնաց։"),
        ("hi", 'यह है। |वह "है।" |था। |He left. |डॉ. राम आए। |सन् 1709 ई. में। |क्या? |हाँ॥'),
        ("bn", "এটি হল। |ড. ইউনূস আসেন। |মো. রহিম ও আর. কে. নারায়ণ।|শেষ।"),
        ("mr", "डॉ. आंबेडकर आले. |ते पु. ल. देशपांडे होते. |ठीक."),
        ("mr", "सूर्याची किरणे पडतात.|त्यामुळे वाढ होते. |डॉ.माधव इ.स.१९९० मध्ये आले."),
        ("ko", "그는 갔다.|그리고 왔다."),
        ("bn", "১। প্রথম কথা। |২। দ্বিতীয় কথা। । |সে যায় না. |তারপর ৫০ কি.মি. দূরে গেল।"),
        ("hi", "वह जाता है. |लोग आते हैं. |52° 32मि. उत्तरी अक्षांश, 50 किमी. दूर।"),
        ("mr", "मामकाः पाण्डवाश्चैव ॥ १ ॥ |सञ्जय उवाच ।। २ ।। |लांबी १५ कि.मी. आहे. |ते बी. एल्. झाले. |मला दे. |मग."),
        ("ar", "كان مثار جدل.|أسسه عام 2003 في 300 ق.م. |قال د.أحمد نعم."),
        ("fa", "در سال ۱۲۰ ه.ش. متولد شد. |او رفت.|سپس آمد."),
        ("he", 'שטחה 891 קמ"ר. |הוא שירת בצה"ל. |ראו עמ. 5 ב"ידיעות". |סוף. "'),
        ("ur", "قرار دیا گیاـ |محمـد 1920ء میں آئے۔"),
        ("ur", "یہ ہے۔ |وہ ایم۔ اے۔ ہے۔ |کیا؟ |ہاں۔|نہیں۔"),
        ("ar", "هذا بيت. |ما هذا؟ |قال د. أحمد نعم. |بنيت المدينة القديمة عام 750 م. |ثم عاد."),
        ("fa", "او آمد. |آیا؟ |بله."),
        ("am", "ይህ ነው። |በ1155 ዓ.ም. አካባቢ ተመሠረተ። |አዎ፧ |አዎ።"),
        ("my", "ဒါပါ။|ဟုတ်တယ်။"),
        ("km", "នេះជាផ្ទះ។ |បាទ៕ |ទេ។"),
        ("bo", "འདི་ཡིན། |དེ་ཡིན༎ |ཨ།"),
        ("mn", "ᠮᠣᠩᠭᠣᠯ᠃ |ᠪᠢᠴᠢᠭ᠃"),
        ("el", "Ο Επ. Κωμοδρόμος πήγε στο ΔΗ.ΠΕ.ΘΕ. Σερρών. |Τέλος."),
        ("el", "Ήρθε ο κ. Παπάς. |Πώς; |Πέθανε το έτος 50 π.Χ. |Μετά έφυγε π.χ. Δευτέρα."),
        ("ka", "ეს არის სახლი. |ის ქ. თბილისში მოვიდა და ა. შ. |მერე."),
        ("he", "זה בית. |מי בא? |א. ב. יהושע כתב."),
    ],
)
def test_marks_of_other_scripts_end_sentences(language: str, marked: str) -> None:
    check(language, marked)


@pytest.mark.parametrize(
    ("language", "marked"),
    [
        ("de", "Im 13. Jahrhundert war es so. |Am 5. Mai kam er z. B. an. |Der 2. Weltkrieg. |Er starb 1990. |Dann."),
        (
            "de",
            "Er lebte bis 44 v. Chr. |Dann kam Rom (lat. Homo sapiens. Linn.). |Siehe Nr. 5. |Danach Karl V. Schmidt.",
        ),
        ("de", "„Ich komme. Du gehst.“, sagte er. |„Gut!“ |Dann ging er."),
        ("lb", "Am 13. Joerhonnert. |Den 2. Weltkrich."),
        ("fr", "Il dit : « Bonjour. » |Puis M. Dupont part vers l’an 52 av. J.-C. |Il revient."),
        ("es", "Murió en el año 50 a. C. |Luego vino el Dr. López de EE. UU. |¿Qué? |Nada."),
        ("it", "Nel sec. XIX il dott. Rossi venne. |Morì nel lontano anno 50 a.C. |Poi ecc. |Fine."),
        ("pt", "O Dr. Silva veio no séc. XIX. |Depois foi embora."),
        ("nl", "Hij kwam o.a. Dr. Jansen tegen enz. |Toen ging hij."),
        ("sv", "Han levde t.ex. Carl före år 50 f.Kr. |Sedan dog han m.m. |Slut."),
        ("da", "Den 13. Juli kom bl.a. Hansen. |Det var i 2. verdenskrig."),
        ("fi", "Hän tuli 5. toukokuuta esim. Turkuun. |Se oli vuosi 50 eKr. |Sitten."),
        ("pl", "W latach 60. XX w. |Potem prof. Nowak z ul. Długiej urodził się w dniu 5 maja 1990 r. |Koniec."),
        ("cs", "Karel IV. Lucemburský vládl. |To bylo v roce 50 př. n. l. |Poté přišel 5. května např. Jan."),
        ("sk", "Bolo to v 19. storočí napr. Bratislava. |Ján XXIII. Roncalli atď. |Koniec."),
        ("hu", "II. Rákóczi Ferenc kb. 1700-ban élt stb. |Meghalt 5. napon."),
        ("tr", "II. Abdülhamid M.Ö. 300 yılında Dr. Ali ile vb. |Sonra gitti. |19. yüzyılda."),
        ("sr", "Рођен је 5. маја 1990. године нпр. Београд. |Године 2009. Берлин је био град итд. |Крај."),
        ("hr", "U 19. stoljeću tzv. Zagreb. |To je bilo prije 50. pr. Kr. |Kraj."),
        (
            "ru",
            "А. С. Пушкин родился в мае месяце далёкого 1799 г. |Потом (лат. Foo) и т. д. |Ул. им. Ленина, т. е. Мира.",
        ),
        ("uk", "Київ (лат. Kiovia. Kijów) і Т. Г. Шевченко та ін. |Він родом із села Моринці 1814 р. |Т.Г. у XIX ст."),
        ("uk", "Найбільша площа.|Найменша стоїть на вул.Лесі і м.Київ."),
        ("uk", "Назва походить від слова (дав.-гр. Foo), нім. Bar. |У 1990 р. Іванов прибув до м. Київ."),
        ("ru", "В V в. до н. э. Рим вырос. |Это было давно, в начале V в. до н. э. |Потом Рим вырос."),
        ("uk", "Улюблене слово.|Потім ще слово (Просто Раді.О.). |Кінець."),
        ("uk", "6 березня 2003 р. Закон змінено. |На виборах президента 1994 р. Путін переміг. |Кінець."),
        ("be", "Гэта было ў самым канцы XIX ст. |Потым г. зн. Мінск і г. д. |Канец."),
        ("bg", "В гр. София, т.е. България, и др. |Роден е в същото село на 5 май 1990 г. |После."),
        ("bg", "С Обединението на Германия през 1990 г. Берлин расте. |Между 1998 и 2009 г. Берлин е град. |Край."),
        ("bg", "Отборите са Херта в първа дивизия и 1. ФК Унион във втора дивизия."),
        ("el", "Ο πρόεδρος των Η.Π.Α. Ρούζβελτ ήρθε. |Ζει στις Η.Π.Α. |Το ΔΗ.ΠΕ.ΘΕ. Σερρών ή ο Επ. Νίκος."),
        ("el", "Καταστήματα : 1. Ηράκλειο, 2. Θεσσαλονίκη, 3. Ιωάννινα. |Ήταν τα 2, 4, 8. |Μετά έκλεισαν."),
        ("el", "Ήταν εκεί και όχι μόνο.|Μερικοί έφυγαν."),
        ("hy", "Ազգային կազմը՝ 53,7%: |Պետական լեզուն՝ ալբաներեն։ |Ալբոմը՝ «Foo»: The Bar, No. 4։"),
        (
            "de",
            "Gezählt wurden 15. 20 davon. |Es waren 150. |20 davon gingen. "
            "|Zum 150. Todestag kam am 3. Okt. 1990 ein Chor. |Er sang Op. 3 von Hans Meier jun. |Er ging.",
        ),
        ("nl", "De dichter J.M.A. Biesheuvel, vert. Jan Smit, won. |Hij won in de V.S. |De B.V. kwam, b.v. Philips."),
        (
            "fr",
            "La tour mesure 3 m. |Elle domine la ville, où vit Ph. Dupont (réimpr. Paris). |Il court 5 km. |Le but.",
        ),
        ("es", "El Excmo. Sr. Pérez y el Pbro. Juan, eds. Planeta, vinieron a la U.R.S.S. |La guerra siguió."),
        ("it", "Il D.Lgs. 3 e il rev. Rossi della S.S.C. Napoli nel lontano feb. 1990. |La fine."),
        ("pt", "O exame de raio-X. |Depois veio o Pe. António em Gov. Valadares com a Profª. Silva. |O fim."),
        ("ro", "Gh. Lazăr și Șt. Popescu, coord. Ion Barbu, au venit pe bd. Unirii. |Apoi au plecat."),
        ("ca", "L'Excm. Sr. Puig i l'Arq. Gaudí, eds. Barcelona, van als EE. UU. |Després van tornar."),
        ("ro", "Dl. Popescu a venit pe la anul 50 î.Hr. |Apoi a plecat etc. |Sfârșit."),
        ("vi", "TP. Hồ Chí Minh và TS. Nguyễn Văn A. đến. |Hết."),
        ("id", "Dr. Ahmad lahir tgl. 5 Mei dll. |Kemudian pergi."),
        ("et", "Nt. Tallinn oli 13. sajandil jne. |Siis."),
        ("lt", "Jis gimė toli nuo Vilniaus 1990 m. |Vėliau pvz. Kaunas ir kt. |Pabaiga."),
        ("sv", "Ett torn som man kan gå upp i. |Gustav V. |Hans bok av V. Hugo är enl. Svensson från 5 jan. 1900."),
        (
            "da",
            "Det kostede 3 mio. |Året efter kom G.W. Bush til byen med 300 indb. (2010). |Det er en ø. |Den er stor.",
        ),
        ("no", "Omsetningen var 3 mill. |Året etter kom 5 mill. Hansen fra gnr. 5 og bnr. 3."),
        ("fi", "Hinta on 5 milj. |Seuraavana vuonna tuli lääk. toht. Virtanen."),
        (
            "pl",
            "Było 150 tys. |Działania 1. Armii i G.W. Busha w 1. Bundeslidze, m. in. Jana. |Zygmunt I. |Był królem.",
        ),
        ("cs", "Vyhrál Jan Novák st. |Byl velkým profesorem, CSc. |Je to rod. |Zahrnuje 5 mil. Němců."),
        ("hu", "Meghalt a napon. |2010. 05. 03. napon. |Anyja olasz. |Apja nov. 5-én jött."),
        ("tr", "Alm. Berlin, İng. London. |Annesi Rus. |Babası A.B.D. Başkanı. |Bu 3. Bölüm."),
        ("fr", "Philippe V. |Il mourut et V. Hugo vint."),
        ("is", "Hann dó t.d. Jón árið 50 f.Kr. |Síðan o.s.frv. |Endir."),
    ],
)
def test_abbreviations_and_ordinals_of_a_language_end_no_sentence(language: str, marked: str) -> None:
    check(language, marked)


def test_thai_sentences_end_at_spaces_between_long_enough_pieces() -> None:
    first = "เบอร์ลินตั้งอยู่บนแม่น้ำชเปรและฮาเฟิลทางตะวันออกเฉียงเหนือของเยอรมนี"
    second = "เบอร์ลินมีมหาวิทยาลัยสี่แห่งและวิทยาลัยเอกชนวิทยาลัยอาชีพและวิทยาลัยเทคนิค"
    check("th", f"{first} |{second}")
    check("th", f"{first} และ{second}")
    check("th", f"{first}ว่า {second}")
    check("th", f"{first} บรูโน เทาต์ มาร์ทิน วากเนอร์ วอลเตอร์ โกรเปียส")
    check("th", f"{first} 891 เมตร |นอกจากนี้{second}")
    check("th", f"{first} ค.ศ. 1841 |{second}")
    check("th", "แมว หมา นก")


@pytest.mark.parametrize(
    "marked",
    [
        # A noun phrase without a verb is an apposition or an item of a list, however long.
        "เชียงใหม่เป็นเมืองใหญ่ทางภาคเหนือที่มีหอสมุดแห่งชาติ (National Library) หอสมุดกลางแห่งจังหวัดเชียงใหม่ ซึ่งเปิดทุกวัน",
        # A verb in a relative clause, and one with a prefix that makes it a noun, are none of the sentence's own.
        "เชียงใหม่เป็นเมืองใหญ่ทางภาคเหนือของประเทศไทย วัดเก่าแก่ที่มีชื่อเสียงของภาคเหนือ และตลาดกลางคืนขนาดใหญ่",
        "เมืองนี้มีศูนย์ราชการหลายแห่งของภาคเหนือ ศูนย์การประชุมนานาชาติ ศูนย์การศึกษาของภูมิภาค",
        "เมืองนี้มีผู้อพยพจากภาคใต้กว่า 20,000 คนได้ย้ายมาอยู่ที่นี่",
        "หลังจากสงครามโลกครั้งที่สองสิ้นสุดลงในทวีปยุโรป เชียงใหม่ถูกพัฒนาเป็นศูนย์กลางของภาคเหนือ",
        "อย่างไรก็ตามหลังการเปิดสนามบินนานาชาติแห่งใหม่ของเมือง สนามบินเดิมได้ปิดบริการทั้งหมดแล้ว",
        "เมืองนี้เป็นเมืองที่คนทั่วไปรู้จักกันดีในเรื่องอาหาร |ผู้คนจำนวนมากเดินทางมาเที่ยวที่นี่ทุกปี",
        "เมืองนี้เป็นเมืองที่คนทั่วไปรู้จักกันดีในเรื่องอาหาร |นิตยสาร City Life (1991) เป็นวารสารภาษาอังกฤษฉบับเดียว",
        "เมืองนี้มีสโมสรฟุตบอลหลายสโมสร |สโมสรที่ใหญ่ที่สุดคือ เชียงใหม่ ยูไนเต็ด",
        "สำนักงานใหญ่ของบริษัทย้ายไปอยู่ในย่านฟรีดริชชายน์. |ตั้งแต่ พ.ศ. 2548 เชียงใหม่มีสนามบินสองแห่งในจังหวัด",
        "เขาเกิดที่เชียงใหม่และเรียนหนังสือที่กรุงเทพมหานคร |ในระหว่างนั้นเอง รัฐบาลก็ได้สร้างทางรถไฟสายเหนือ",
    ],
)
def test_thai_sentences_end_between_clauses(marked: str) -> None:
    check("th", marked)


@pytest.mark.builds
@pytest.mark.parametrize("code", sorted({*interlanguage_prefixes(), *data()["language"], *data()["aliases"], "xx", ""}))
def test_every_wikipedia_has_rules_that_split(code: str) -> None:
    rules = rules_for(code)
    assert rules.language == code
    assert json.loads(json.dumps(asdict(rules)))
    assert hash(rules) == hash(pickle.loads(pickle.dumps(rules)))
    # Thai and Lao have no marks; an Armenian full stop is a colon.
    if not rules.by_spaces:
        assert [line.strip() for line in SentenceSplitter(rules).split(b"Aaa bbb! Ccc ddd? Eee fff.")] == [
            b"Aaa bbb!",
            b"Ccc ddd?",
            b"Eee fff.",
        ]


def test_like_languages_share_their_words() -> None:
    assert rules_for("nn").punkt == rules_for("nb").punkt == rules_for("no").punkt == "norwegian"
    assert rules_for("zh-yue").words == rules_for("zh-hant").words == rules_for("zh").words == ("zh",)
    assert rules_for("be-x-old").words == rules_for("be").words
    assert rules_for("sh").words == rules_for("hr").words
    assert "de" in rules_for("als").words
    assert rules_for("simple") == replace(rules_for("en"), language="simple")


@pytest.mark.parametrize(
    "rules", [rules_for("en"), rules_for("simple"), rules_for_script(ENGLISH), rules_for_script("")]
)
def test_english_and_latin_letters_mean_english_rules(rules: SentenceRules) -> None:
    assert rules == replace(rules_for("en"), language=rules.language)
    assert SentenceSplitter(rules).split(ENGLISH.encode()) == SentenceSplitter(rules_for("en")).split(ENGLISH.encode())


def test_english_abbreviations_of_two_words_start_with_one_or_end_with_a_letter() -> None:
    """The quick look at most ends of English sentences (_ends_plainly) relies on it."""
    entry = data()["language"]["en"]
    listed = " ".join(entry[key] for key in ("never", "may_end", "rarely_ends", "before_number")).split()
    for first, second in (word.split("_") for word in listed if "_" in word):
        assert first in listed or "." in first or len(second) == 1


@pytest.mark.parametrize(
    "marked",
    [
        "It was No. 5 in the list. |No. |That is wrong.",
        "Many things, e.g. Apples, were sold. |The rule, i.e. Newton's law, holds.",
        "Smith et al. Found it. |Smith et al. (1990) found it. |That was Smith et al. |Then came others.",
        "See Fig. 5, vol. 3, pp. 5–9 and Op. 27 No. 2. |It is good.",
        "See Smith, op. cit. Chapter 5, and op. cit. the end. |It is approx. Five of them. |It is a line. |So it is.",
        "In the U.S. Army he served. |He left the U.S. |He died. |The U.S. Senate met.",
        "Dr. J. R. Smith met Gen. Lee at St. Paul's. |They spoke. |World War I. |The end.",
    ],
)
def test_english_sentences(marked: str) -> None:
    check("en", marked)
    by_lines = SentenceSplitter(rules_for("en")).split_lines(marked.replace("|", "").encode()).decode()
    assert by_lines.splitlines() == [part.strip() for part in marked.split("|")]


@pytest.mark.parametrize(
    "marked",
    [
        # Nothing that starts with a small letter starts a sentence.
        "They sold eggs, milk, etc. to the town. |It lies 5 km. from Rome.",
        "He has a B.A. in law and an M.D. from Yale. |It has fins (see lit. for more).",
        '"Who is there?" asked the king. |"Come in!" she said. |"I see." said he.',
        "Yahoo! was founded in 1994. |Jeopardy! is a show. |The play Who's Afraid? ran for years.",
        # An exclamation mark in the name of a firm is no end.
        "The company Yahoo! Inc. was sold. |Its name changed. |Yum! Brands grew. |He left Yahoo! |Sales fell.",
        "It was a hit! |Brands noticed. |What a hit! |Inc. is a magazine. |He ran (Yum! Brands paid). |It failed.",
        # No mark that closes or goes on stands in front of one.
        'He said "Go. Now." |Then (so it is. Or not) he left.',
        'They call it "the rule." |Its name ("the law."), which is old, stays.',
        "He wrote to them (he was old!), but nobody came.",
        "It is 3 ft. (0.9 m) high. |The song Help! (1965) is by the Beatles. |Who Is Who? (a book) sold well.",
        'He called it "the end." (Smith 1990, p. 5). |Others did not.',
        'She asked, "Is it so?" (Matt. 5:3) |Nobody knew.',
        "He was tired (he had walked all day from the coast.) |Then he slept.",
        "It is a gas.[1] |It is light.[2][3] |It burns. [4] |It is rare.",
        # Abbreviations before names, numbers and months.
        "They climbed Mt. Everest and saw St. Basil's. |He lived on Main St. |The house stands. |Ft. Worth grew.",
        "The genus has lit. Ten species and spp. Acer and Betula. |Jones, ed. History of Iowa.",
        "John Smith, b. 1950, and Jane Roe, d. March 1990, met. |A is less than b. |Then a is small.",
        "He cites Haer. xxvi. 2 and Matt. 5:3 and 1 Sam. 2. |It costs Rs. 500. |See n. 5.",
        "It is orig. French, est. 1850, and pl. of one word. |N.B. Some differ.",
        # Initials are no ends, an acronym is one in front of a word that starts sentences.
        "C.S. Lewis and H.G. Wells met G.H.W. Bush. |J.R.R. Tolkien came to the U.K. |There he spoke.",
        "It is in Washington, D.C. |However, it is small. |The D.C. Circuit ruled.",
        "He works for Apple Inc. |He left Ford Motor Co. |It paid. |Warner Bros. Studios grew. |Sammy Davis, Jr. Sang.",
        "It dates from 200 B.C. |Rome was small. |In 44 B.C. Caesar died. |They meet at 6 p.m. |Tea is free.",
        "The show is at 6 p.m. Eastern time and at 9 a.m. PST daily.",
        # Three points go on, unless a word that starts sentences follows.
        "I thought... we would go. |But no.... |She left. |Wait ... what? |The films Wait... Don't Go and Run.",
        # Items of lists.
        "1. The sun |2. The moon |3. The stars",
        "a) The sun |b) The moon",
        "1.) The sun is up |2.) The moon is down. |3.) The end",
        "• 9. The sun |• 10. The moon",
        "1. the sun 2. the moon are high. |He was 1. |Then 3. |It was 5.",
        # A bracket stays whole, but for one that holds whole sentences alone.
        "(It is a small town. |It is old.)",
        "He saw it (It was late. It was dark) there. |(She did. |He did not.)",
        # The marks of other scripts.
        "The word 好。 is Chinese. |他走了。|She said यह है। |Then she left.",
    ],
)
def test_english_has_the_marks_that_other_languages_have(marked: str) -> None:
    check("en", marked)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Das ist Größe und мир.", ("en",)),
        ("Он пришёл сюда. Wiki.", ("ru", "uk", "be", "bg", "sr")),
        ("这是中文。", ("zh",)),
        ("これは日本語の文章です。漢字交じり。", ("ja",)),
        ("日本国憲法第九条は戦争放棄を定めた条文である。", ("ja",)),
        (f"{'中文维基百科' * 20}の书。", ("zh",)),
        ("이것은 한국어.", ("ko",)),
        ("यह हिन्दी है।", ("hi", "mr")),
        ("هذا بيت.", ("ar", "fa", "ur")),
        ("Սա հայերեն է։", ("hy", "common")),
        ("นี่คือภาษาไทย", ("th",)),
        ("123 !?", ("en",)),
    ],
)
def test_a_script_tells_rules(text: str, words: tuple[str, ...]) -> None:
    rules = rules_for_script(text)
    assert rules.language == ""
    assert rules.words == words
    assert rules.by_spaces == (words == ("th",))


@pytest.mark.parametrize("code", ["hy", "pl", "ru", "uk"])
def test_no_sentence_ends_after_an_abbreviation_of_a_table_of_languages(code: str) -> None:
    ordinary = data()["language"][code].get("ordinary", "").split()
    checked = 0
    for file in load_rules(code):
        for text in file.tables.get("language", {}).values():
            if text.endswith(".") and text[:-1] not in ordinary:
                assert len(sentences(code, f"Foo bar baz qux {text} Kiovia.")) == 1, text
                checked += 1
    assert checked > 10


def test_trained_parameters_are_an_argument() -> None:
    rules = SentenceRules(language="xx", punkt=TRAINED, stops="。")
    parameters = PunktParameters(frozenset({"foo"}), frozenset(), frozenset(), {})
    splitter = SentenceSplitter(rules, parameters=parameters)
    for found in (splitter, pickle.loads(pickle.dumps(splitter))):
        assert found.split("Aa foo. Bb cc. Dd。Ee".encode()) == [b"Aa foo. Bb cc.", "Dd。".encode(), b"Ee"]
    with pytest.raises(ValueError, match="trained"):
        SentenceSplitter(rules)
    with pytest.raises(ValueError, match="trained"):
        SentenceSplitter("english", parameters=parameters)


def test_a_year_in_front_goes_on_with_its_sentence_before_a_word_that_is_known_in_small_letters() -> None:
    contexts = dict.fromkeys(("законом", "потім"), 1 << 5)  # bits of how Punkt's training saw them written
    parameters = PunktParameters(frozenset(), frozenset(), frozenset(), contexts)
    splitter = SentenceSplitter(replace(rules_for("uk"), punkt=TRAINED), parameters=parameters)
    line = "У 1954 р. Законом це змінено. Місто виросло в ці роки, до 1954 р. Потім занепало."
    parts = ["У 1954 р. Законом це змінено.", "Місто виросло в ці роки, до 1954 р.", "Потім занепало."]
    assert splitter.split(line.encode()) == [part.encode() for part in parts]


def test_blank_lines_are_kept_by_punkt_alone() -> None:
    with pytest.raises(ValueError, match="Punkt alone"):
        SentenceSplitter(rules_for("de")).split_lines_keeping_blank(b"A. B.\n")


@pytest.mark.parametrize(
    "line",
    [
        "",
        " ",
        "。。。",
        "(" * 3000 + "。",
        '"' * 3001 + ". A",
        "« " * 900 + "! B",
        ". " * 4000,
        "。" * 4000,
        "… … …",
        "５．５",
    ],
)
@pytest.mark.parametrize("language", ["de", "ja", "th", "hy", "xx"])
def test_nothing_but_white_space_gets_lost(language: str, line: str) -> None:
    assert "".join("".join(sentences(language, line)).split()) == "".join(line.split())
    lines = SentenceSplitter(rules_for(language)).split_lines(f"{line}\n{line}".encode()).decode().split("\n")
    assert lines == [*sentences(language, line), *sentences(language, line), ""]
