"""Asian Wikipedias: the templates that carry text in their sentences."""

import functools

import pytest

from maskmill.extraction.options import WikitextOptions
from maskmill.extraction.wikitext import WikitextExtractor
from maskmill.inputs.site import Site


@functools.cache
def extractor(language: str) -> WikitextExtractor:
    site = Site.parse(
        f'<mediawiki version="0.10" xml:lang="{language}"><siteinfo><sitename>Wikipedia</sitename>'
        f"<base>https://{language}.wikipedia.org/wiki/A</base></siteinfo>".encode()
    )
    return WikitextExtractor(site, WikitextOptions(date="2020-05-04"))


def text_of(language: str, wikitext: str, title: str = "T") -> str:
    return extractor(language).extract(title.encode(), wikitext.encode()).decode()


# Language, wikitext of a line, its text.
TEMPLATES = [
    ("ja", "英語の {{en|mathematics}} の訳である。", "英語の mathematics の訳である。"),
    ("ja", "数学（{{lang-en-short|mathematics}}）を学ぶ。", "数学（英: mathematics）を学ぶ。"),
    ("ja", "言語（{{lang-sv-short|språk}}）を学ぶ。", "言語（スウェーデン語: språk）を学ぶ。"),
    ("ja", "言語（{{lang-de|Sprache}}）を学ぶ。", "言語（ドイツ語: Sprache）を学ぶ。"),
    ("ja", "{{仮リンク|青い橋|en|Blue Bridge|label=橋}}を渡る。", "橋を渡る。"),
    ("ja", "劇（{{interlang|en|Drama (film)|Drama}}）を見る。", "劇（Drama）を見る。"),
    ("ja", "国（スウェーデン語: {{Audio|a.ogg|''Sverige''}}）は古い。", "国（スウェーデン語: Sverige）は古い。"),
    ("ja", "{{読み仮名|'''物理'''|ぶつり|{{lang|en|physics}}}}を学ぶ。", "物理（ぶつり、physics）を学ぶ。"),
    ("ja", "これは{{いつ範囲|近年|date=2021年}}増えた。", "これは近年増えた。"),
    ("ja", "これは{{要出典範囲|広く知られた説|date=2021年}}だ。", "これは広く知られた説だ。"),
    ("ja", "彼は増えた{{要出典|date=2021年}}と言った{{誰2|date=2021年}}。", "彼は増えたと言った。"),
    ("ja", "本{{R|本1}}を読む{{Efn2|古い本である。}}。", "本を読む。"),
    ("ja", "彼は{{没年齢|1950|3|2|2010|3|1}}。子は{{年数|2000|1|1}}歳。", "彼は59歳没。子は20歳。"),
    ("ja", "{{stn|青}}から{{by|1990年}}まで。", "青駅から1990年まで。"),
    ("ja", "北京語で{{ピン音|Xīn}}と読む。", "北京語で拼音: Xīnと読む。"),
    ("ja", "母音は{{ipa|a}}と発音する。", "母音はaと発音する。"),
    (
        "ja",
        "端は{{ウィキ座標度分秒|33|17|03|N|044|15|22|E|}}にある。",
        "端は北緯33度17分03秒 東経044度15分22秒にある。",
    ),
    ("ja", "端は{{coord|33|22||N|38|47||W|display=inline}}にある。", "端は北緯33度22分 西経38度47分にある。"),
    ("ja", "記号は{{高線|いが}}た{{0}}である。", "記号はいがたである。"),
    ("ja", "{{as of|2019|3}}の人口。", "2019年3月現在の人口。"),
    ("ja", "道は{{convert|3|km|mi}}続く。", "道は3km続く。"),
    ("ja", "油田は{{convert|2|Goilbbl}}で、高さ{{convert|20|ft|m}}。", "油田は2×10⁹バレルで、高さ20フィート。"),
    ("ja", "半母音（{{IPA|w}} で表す）である。", "半母音（w で表す）である。"),
    ("ja", "{{CHN}}と{{USA}}の間。", "中華人民共和国とアメリカ合衆国の間。"),
    ("ja", "彼（{{lang-zh|王}}、{{lang-ko|왕}}）は来た。", "彼（中国語: 王、朝鮮語: 왕）は来た。"),
    ("zh", "數學（{{lang-en|mathematics}}）是學科。", "數學（英语：mathematics）是學科。"),
    ("zh", "他是{{le|藍橋|Blue Bridge}}的人。", "他是藍橋的人。"),
    ("zh", "他是{{link-de|藍橋|Blaue Brücke|橋}}的人。", "他是橋的人。"),
    ("zh", "他是{{tsl|en|Blue Bridge|藍橋|橋}}的人。", "他是橋的人。"),
    ("zh", "甲{{bd|1900年|1月2日|1980年|3月4日|catIdx=J}}是詩人。", "甲（1900年1月2日－1980年3月4日）是詩人。"),
    ("zh", "乙{{bd|1950年|1月2日||}}是詩人。", "乙（1950年1月2日－）是詩人。"),
    ("zh", "這是{{Which|部分學者|time=2019年}}的說法。", "這是部分學者的說法。"),
    ("zh", "這是{{fact|最大的橋|time=2019年}}。", "這是最大的橋。"),
    ("zh", "這是橋{{fact|time=2019年}}{{notetag|舊橋。}}。", "這是橋。"),
    ("zh", "歌名是{{lj|さくら}}。", "歌名是さくら。"),
    ("zh", "他叫{{jpn|j=桜|hg=さくら|rm=Sakura}}。", "他叫日语：桜／さくら Sakura。"),
    ("zh", "{{as of|2019|3|5}}，有十人。", "截至2019年3月5日，有十人。"),
    ("zh", "路長{{convert|3|km|mi}}。", "路長3公里。"),
    ("zh", "他用{{僻字|㐱|從人}}字，在{{HKG}}。", "他用㐱字，在香港。"),
    ("yue", "佢係（{{lang-en|bridge}}）{{which|有啲人}}講嘅。", "佢係（英文：bridge）有啲人講嘅。"),
    ("lzh", "橋（{{lang-en|bridge}}）者也。", "橋（英语：bridge）者也。"),
    ("ko", "수학({{llang|en|mathematics}})을 배운다.", "수학(영어: mathematics)을 배운다."),
    ("ko", "{{한자|다리|橋}}를 건넌다.", "다리(橋)를 건넌다."),
    ("ko", "{{임시링크|푸른 다리|en|Blue Bridge}}를 건넌다.", "푸른 다리를 건넌다."),
    ("ko", "{{국기|미국}}과 {{국기나라|JPN}}의 경기이다.", "미국과 일본의 경기이다."),
    ("ko", "그는 말했다{{출처|날짜=2010-1-1}}{{각주}}.", "그는 말했다."),
    ("ko", "길이는 {{단위 변환|3|km|mi}}이다.", "길이는 3 km이다."),
    ("ko", "그는 {{생년월일|1990|1|2}}에 태어났다.", "그는 1990년 1월 2일에 태어났다."),
    ("ko", "{{as of|2019|3|5}}으로 열 명이다.", "2019년 3월 5일 기준으로 열 명이다."),
    ("vi", "là {{convert|103|F|C}} vào ngày hè.", "là 103 °F vào ngày hè."),
    ("vi", "Còn {{convert|2|Goilbbl}} trên {{convert|5|sqmi|km2}}.", "Còn 2 tỷ thùng trên 5 dặm vuông."),
    ("vi", "Cầu dài {{chuyển đổi|10|to|20|km|mi}} nhé.", "Cầu dài 10–20 km nhé."),
    ("vi", "Cầu ({{lang-en|bridge}}) rất dài.", "Cầu (tiếng Anh: bridge) rất dài."),
    (
        "vi",
        "Người {{hn|ch=橋}} và {{zh|s=桥|t=橋|p=qiáo}} đi.",
        "Người chữ Hán: 橋 và giản thể: 桥; phồn thể: 橋; bính âm: qiáo đi.",
    ),
    ("vi", "{{Tính đến|2020|March}}, có mười người.", "Tính đến tháng 3 năm 2020, có mười người."),
    ("vi", "Có mười người ({{as of|2019|3|5|lc=y}}).", "Có mười người (tính đến ngày 5 tháng 3 năm 2019)."),
    (
        "vi",
        "Tàu của {{flagcountry|Pháp}} đi{{cần chú thích|date=2020}} rồi{{ghi chú|Tàu cũ.}}.",
        "Tàu của Pháp đi rồi.",
    ),
    ("vi", "Đường sắt khổ {{track gauge|1520mm}} theo {{IETF RFC|1122}}.", "Đường sắt khổ 1520mm theo RFC 1122."),
    ("vi", "Theo {{section link||Cầu}} thì đúng.", "Theo § Cầu thì đúng."),
    ("id", "Jembatan ({{lang-en|bridge}}) itu {{convert|3|km|mi}}.", "Jembatan (bahasa Inggris: bridge) itu 3 km."),
    ("id", "{{per|2019|3|5}}, ada sepuluh orang{{butuh rujukan|date=2019}}.", "Per 5 Maret 2019, ada sepuluh orang."),
    ("id", "Kota {{zh|s=桥|p=qiáo}} itu{{catatan|Kota lama.}} tua.", "Kota Hanzi sederhana: 桥; Pinyin: qiáo itu tua."),
    ("ms", "Jambatan ({{lang-en|bridge}}) itu {{convert|3|mi|km}}.", "Jambatan (bahasa Inggeris: bridge) itu 3 batu."),
    ("ar", "نهر {{ألمانية|Rhein}} طويل.", "نهر (بالألمانية: Rhein) طويل."),
    ("ar", "نهر ({{إنج|Rhine}}) طويل.", "نهر (بالإنجليزية: Rhine) طويل."),
    ("ar", "قال {{وإو|تر=Charles|عر=تشارلز|لغ=en}} ذلك{{بحاجة لمصدر|تاريخ=2019}}.", "قال تشارلز ذلك."),
    ("ar", "زار {{علم|مصر}} سنة {{هـ|1400}}{{حاشية|سنة حارة.}}.", "زار مصر سنة 1400 هـ."),
    ("ar", "{{اعتبارا من|2019|3|5}} كان فيها عشرة.", "اعتبارًا من 5 مارس 2019 كان فيها عشرة."),
    ("ar", "قال {{اقتباس مضمن|نعم}} ثم مضى.", 'قال "نعم" ثم مضى.'),
    ("arz", "كوبرى {{ص|كبير جدا}} فى البلد.", "كوبرى كبير جدا فى البلد."),
    ("fa", "رود {{آلمانی|Rhein}} بلند است.", "رود (به آلمانی: Rhein) بلند است."),
    ("fa", "رود ({{lang-en|Rhine}}) بلند است{{یادچپ|Rhine River}}.", "رود (به انگلیسی: Rhine) بلند است."),
    ("fa", "جمعیت {{عدد|12345|fa}} نفر است{{مدرک|تاریخ=مه ۲۰۱۹}}.", "جمعیت 12345 نفر است."),
    ("he", "הנהר ({{אנגלית|Rhine}}) ארוך.", "הנהר (באנגלית: Rhine) ארוך."),
    ("he", "הרב {{אנ|Joseph (rabbi)}} התמנה{{הערה|ראו שם.}}.", "הרב התמנה."),
    ("he", 'הוא נולד ב{{ה|עיר הגדולה}} ו{{תנ"ך|בראשית|א|ב}}.', "הוא נולד בעיר הגדולה ובראשית א ב."),
    ("he", "השם ({{כתב ערבי|القدس}}) עתיק.", "השם (القدس) עתיק."),
    ("ur", "دریا ({{lang-en|Rhine}}) لمبا ہے{{حوالہ درکار|date=مئی 2019}}۔", "دریا (انگریزی: Rhine) لمبا ہے۔"),
    ("ur", "ضیائی تالیف {{دیگر نام|انگریزی=Photosynthesis}} ہے۔", "ضیائی تالیف (انگریزی: Photosynthesis) ہے۔"),
    ("ur", "یہ {{پرچم تصویر|ترکی}} {{پرچم|ترکی}} میں ہے۔", "یہ ترکی میں ہے۔"),
    (
        "hi",
        "नदी ({{lang-en|river}}) {{convert|3|km|mi}} लंबी है{{उद्धरण आवश्यक|date=मई 2019}}।",
        "नदी (अंग्रेज़ी: river) 3 कि॰मी॰ लंबी है।",
    ),
    ("hi", "{{as of|2019|3|5}} दस लोग थे।", "5 मार्च 2019 के अनुसार दस लोग थे।"),
    ("bn", "আয়তন {{রূপান্তর|5765|km2|sqmi|0}}।", "আয়তন 5,765 বর্গকিলোমিটার।"),
    ("bn", "নদী ({{lang-en|river}}) {{রূপান্তর|3|km|mi}} লম্বা।", "নদী (ইংরেজি: river) 3 কিমি লম্বা।"),
    ("bn", "{{As of|2019}}, দশ জন ছিল{{সত্যতা}}{{টীকা|পুরানো।}}।", "2019-এর হিসাব অনুযায়ী, দশ জন ছিল।"),
    ("bn", "ধ্বনি {{আধ্বব|[kɔ]}} এবং {{পাই}}।", "ধ্বনি [kɔ] এবং π।"),
    ("bn", "আয়তন ক{{sup|১৪}} এবং ক{{sup|খ২}}।", "আয়তন ক১৪ এবং কখ২।"),
    ("bn", "এটি {{clarify|what is it?|date=May 2019}} এবং সত্য।", "এটি এবং সত্য।"),
    ("bn", "সংস্কৃতি ({{আনুমানিক|২৪০০–১৮০০}}) ছিল।", "সংস্কৃতি (আনু. ২৪০০–১৮০০) ছিল।"),
    ("bn", "স্থান {{স্থানাঙ্ক|24.8|N|91.9|E|}} এ আছে।", "স্থান 24.8° উত্তর 91.9° পূর্ব এ আছে।"),
    ("mr", "'''{{लेखनाव}}''' हा कवी आहे{{संदर्भ हवा}}.", "T हा कवी आहे."),
    ("mr", "हे वाक्य {{संदर्भ हवा|याला संदर्भ हवा.|date=मे २०१९}} आहे.", "हे वाक्य आहे."),
    ("mr", "किनारा {{km to mi|720|abbrev=yes}} लांब आहे.", "किनारा 720 किमी लांब आहे."),
    ("mr", "उत्पन्न {{रुपया}}९० कोटी आहे.", "उत्पन्न ₹९० कोटी आहे."),
    ("mr", "सेहवागने {{PAKc}}विरुद्ध धावा केल्या.", "सेहवागने पाकिस्तानविरुद्ध धावा केल्या."),
    ("mr", "नदी ({{lang-en|river}}) {{convert|3|km|mi}} लांब आहे.", "नदी (इंग्रजी: river) 3 किमी लांब आहे."),
    (
        "mr",
        "{{ग्रेगरी दिनदर्शिका दिवस|मार्च|२३|८२|८३}}",
        "मार्च २३ हा ग्रेगरी दिनदर्शिकेनुसार वर्षातील ८२वा किंवा लीप वर्षात ८३वा दिवस असतो.",
    ),
    ("ta", "ஆறு ({{lang-en|river}}) {{convert|3|mi|km}} நீளம்{{சான்று தேவை}}.", "ஆறு (ஆங்கிலம்: river) 3 மைல் நீளம்."),
    ("te", "నది ({{lang-en|river}}) {{convert|3|mi|km}} పొడవు{{మూలం కావాలి}}.", "నది (ఇంగ్లీష్: river) 3 మైళ్ళు పొడవు."),
    ("ml", "നദി ({{lang-en|river}}) {{convert|3|mi|km}} ആണ്{{തെളിവ്}}.", "നദി (ഇംഗ്ലീഷ്: river) 3 മൈൽ ആണ്."),
    ("th", "แม่น้ำ ({{lang-en|river}}) ยาว {{แปลงหน่วย|3|km|mi}}{{ต้องการอ้างอิง}}", "แม่น้ำ (อังกฤษ: river) ยาว 3 กม."),
    ("th", "{{as of|2019|3|5}} มีสิบคน", "ณ วันที่ 5 มีนาคม ค.ศ. 2019 มีสิบคน"),
    ("ceb", "Dunay {{formatnum:3426354}} ka molupyo{{efn|group=saysay|Daan.}}.", "Dunay 3,426,354 ka molupyo."),
    ("war", "May-ada {{nowrap|10 ka tawo}} dinhi{{efn|Daan.}}.", "May-ada 10 ka tawo dinhi."),
    (
        "uz",
        "Daryo ({{lang-en|river}}) {{convert|3|km|mi}}, {{as of|2019}}.",
        "Daryo (inglizcha: river) 3 km, 2019-yil holatiga koʻra.",
    ),
    ("war", "Natawo hiya han {{birth date|2019|3|5}}.", "Natawo hiya han Marso 5, 2019."),
    ("tt", "Елга ({{lang-en|river}}) озын{{чыганак кирәк}}.", "Елга (ингл. river) озын."),
    ("tl", "Ang ilog ay {{convert|3|km|mi}}{{kailangan ng sanggunian}}.", "Ang ilog ay 3 km."),
    ("tl", "{{as of|2019|3|5}}, may sampung tao.", "Magmula noong Marso 5, 2019, may sampung tao."),
]


@pytest.mark.parametrize(
    ("language", "wikitext", "text"), TEMPLATES, ids=[f"{row[0]}-{number}" for number, row in enumerate(TEMPLATES)]
)
def test_templates(language: str, wikitext: str, text: str) -> None:
    assert text_of(language, wikitext) == text
