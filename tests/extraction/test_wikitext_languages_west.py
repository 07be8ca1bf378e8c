"""Templates of the Wikipedias in Germanic, Romance, Baltic, Celtic and Finnic languages and in Basque.

The wikitext is written for these tests.
"""

import functools

import pytest

from maskmill.extraction.options import WikitextOptions
from maskmill.extraction.wikitext import WikitextExtractor
from maskmill.inputs.site import Site

GARBAGE = ("[[", "]]", "{{", "}}", "()", " ,", " .", "  ")


@functools.cache
def extractor(language: str) -> WikitextExtractor:
    return WikitextExtractor(
        Site(language=language, namespaces={6: ("File",), 14: ("Category",)}), WikitextOptions(date="2020-01-01")
    )


TEMPLATES = {
    "de": [
        ("Ein Film ({{enS|''movie''}}) von {{jaS|日本|Nihon}}.", "Ein Film (englisch movie) von japanisch 日本 Nihon."),
        ("Kairo ({{arS|القاهرة|d=al-Qāhira|b=die Starke}})", "Kairo (arabisch القاهرة, DMG al-Qāhira ‚die Starke‘)"),
        ("Taiwan ({{zh|t=臺灣|v=台湾|p=Táiwān}})", "Taiwan (chinesisch 臺灣 / 台湾, Pinyin Táiwān)"),
        (
            "Er sagte:\n{{Zitat|Text=It is done, and I go.|Sprache=en|Übersetzung=Es ist getan, und ich gehe.}}",
            "Er sagte:\n„It is done, and I go.“\n„Es ist getan, und ich gehe.“",
        ),
        ("Das Wort {{ELSalt|λόγος}} ist alt.", "Das Wort altgriechisch λόγος ist alt."),
        ("Die Zugspitze ({{Höhe|2962|DE-NHN}}).", "Die Zugspitze (2962 m ü. NHN)."),
        ("Der Piz ({{Höhe|3162|CH}}) mit {{formatnum:1234}} Stufen.", "Der Piz (3162 m ü. M.) mit 1.234 Stufen."),
        ("Es gilt {{§|12|bgb|juris}} BGB, auch {{Art.|1|gg|juris}} GG.", "Es gilt § 12 BGB, auch Art. 1 GG."),
        ("In {{B|Lk|2|1–20}} steht es, am {{Datum|01|3|2004}}.", "In Lk 2,1–20 steht es, am 1. März 2004."),
        ('Er sagte: {{"|Das ist wahr.|Quelle=Brief}} Und ging.', "Er sagte: „Das ist wahr.“ Und ging."),
        ("Hier{{Anker|Stelle}} steht{{FN|1}} der Text{{Audio|a.ogg|anhören}}.", "Hier steht der Text."),
        ("Er spielte für {{AUT}} und {{AUT|#}} Rapid.", "Er spielte für Österreich und Rapid."),
        ("Der Ort ({{Coordinate|text=DMS|NS=52/3/N|EW=13/2/E}}) ist klein.", "Der Ort ist klein."),
    ],
    "fr": [
        (
            "Il va au {{s|XIII}}, au {{s-|XIX|e}} et au {{XXe siècle}}.",
            "Il va au XIIIe siècle, au XIXe siècle et au XXe siècle.",
        ),
        ("Dès le {{-s|IV|e}}, du {{sp|XV|e|au|XVI|e|s}}.", "Dès le IVe siècle av. J.-C., du XVe au XVIe siècles."),
        (
            "Aux {{s2|XII|e|XIII|e}}, François {{Ier}} et Otton {{IIe}}.",
            "Aux XIIe et XIIIe siècles, François Ier et Otton IIe.",
        ),
        (
            "Le {{1er|champion}}, le {{84e|[[Congrès]]}}, la {{1re}} fois.",
            "Le 1er champion, le 84e Congrès, la 1re fois.",
        ),
        ("Long de {{unité|9.8|m||s|-2}} et {{unité|12345.6|km|2}}.", "Long de 9,8 m⋅s⁻² et 12 345,6 km²."),
        ("Sur {{unité|3797|m}}, {{nombre|1234|sièges}}.", "Sur 3 797 m, 1 234 sièges."),
        ("Il fait {{tmp|-26|°C}} pour {{nobr|4,4|millions}} de gens.", "Il fait -26 °C pour 4,4 millions de gens."),
        ("Cela coûte {{euro|77.80}}, soit {{pourcentage|12}}.", "Cela coûte 77,80 €, soit 12 %."),
        (
            "Né le {{date|1|1|2000}}, mort le {{date de décès|21|septembre|1936}}.",
            "Né le 1er janvier 2000, mort le 21 septembre 1936.",
        ),
        ("Des chats, des chiens{{etc.}} et des chevaux{{, etc.}}", "Des chats, des chiens, etc. et des chevaux, etc."),
        ("Le {{date-|19 janvier}}, en {{date||juin|2001}}.", "Le 19 janvier, en juin 2001."),
        ("De {{heure|4|30}} à {{heure|6}}, en {{durée|1|20|5}}.", "De 4 h 30 à 6 h, en 1 h 20 min 5 s."),
        (
            "La ville {{incise|dit-on}} est belle {{incise|très belle|stop}}.",
            "La ville — dit-on — est belle — très belle.",
        ),
        ("Il dit {{citation|oui}} à l{{'}}''Histoire''.", "Il dit « oui » à l’Histoire."),
        ("Vienne ({{en langue|de|Wien}}), ''{{langue|de|Stadt}}''.", "Vienne (en allemand : Wien), Stadt."),
        (
            "Vienne ({{lang-de|Wien}}) et {{japonais|Tokyo|東京|Tōkyō}}.",
            "Vienne (en allemand : Wien) et Tokyo (東京, Tōkyō).",
        ),
        (
            "Le {{grec ancien|λόγος|lógos|parole}} de {{lien|langue=en|trad=A|fr=Bob}}.",
            "Le λόγος / lógos, « parole » de Bob.",
        ),
        ("{{refnec|Il est grand}} et {{quand|naguère|date=mai 2020}} petit.", "Il est grand et naguère petit."),
        (
            "Fin{{,}}{{note|une note}}, {{référence insuffisante|date=mai}} voir {{n°|5}}, {{p.|12}}.",
            "Fin, voir n° 5, p. 12.",
        ),
        ("{{Louis XIV}} et {{Napoléon Ier}} ont du {{fchim|CO|2}}.", "Louis XIV et Napoléon Ier ont du CO2."),
        (
            "{{M.|Dupont}}, {{Mme|Roi}} et {{Mgr|X}} en 44 {{av. J.-C.}} à Rome.",
            "M. Dupont, Mme Roi et Mgr X en 44 av. J.-C. à Rome.",
        ),
    ],
    "es": [
        ("Son 45{{esd}}km y {{esd|3 m}}.", "Son 45 km y 3 m."),
        (
            "En el {{siglo|XVI||s}}, el {{siglo|III|a|s|1}} y el {{siglo|XX}}.",
            "En el siglo XVI, el siglo III a. C. y el XX.",
        ),
        ("Tiene {{unidad|12345.6|km|2}}, {{unidad|5000|m}}.", "Tiene 12 345,6 km², 5000 m."),
        (
            "Nació el {{fecha|1|1|2000}}, en 44 {{a. C.}}, o {{AC|50}}",
            "Nació el 1 de enero de 2000, en 44 a. C., o 50 a. C.",
        ),
        ("{{cita requerida|Fue rey}} {{¿cuándo?|antaño}}, {{dudoso|quizá}}{{quién|otro}}.", "Fue rey antaño, quizá."),
        (
            "Londres ({{lang-en|''London''}}) y {{enlace interlingüe|Foo|en|Foo (bar)|lt=foo}}.",
            "Londres (en inglés: London) y foo.",
        ),
        ("Es {{color|red|rojo}} y {{versalita|xx}} {{versalita|Bo}}{{refn|a}}{{actualizar|2009}}.", "Es rojo y XX Bo."),
    ],
    "it": [
        ("Passa dall'{{Calcio Ajax|N}} alla {{Calcio Juventus}}.", "Passa dall'Ajax alla Juventus."),
        (
            "Il testo{{Cita|Romeo}} è qui.{{Cita|Romeo|p. 4}} In {{Cita|Romeo|p. 4|Romeo 1984|harv=s}} è detto.",
            "Il testo è qui. In Romeo 1984, p. 4 è detto.",
        ),
        (
            "Ha {{calcola età|1970|5|5}} o {{età|5|5|1970}} anni, dal {{data|1|5|2000}}.",
            "Ha 49 o 49 anni, dal 1 maggio 2000.",
        ),
        ("La {{Naz|CA|ITA}} vinse {{circa|1980}} partite.", "La Italia vinse circa 1980 partite."),
        ("Misura {{M|30546|u=km²}}, {{M|10|-|20|ul=km}}, {{M|5||kg}}.", "Misura 30 546 km², 10 - 20 km, 5 kg."),
        ("La massa è {{M|1,5|e=6|u=kg}}, {{TA|3 km}}.", "La massa è 1,5 × 10⁶ kg, 3 km."),
        (
            "{{cn|Fu il primo}} e {{chiarire|nell'ultimo anno|quale?}} {{senza fonte|crebbe}}.",
            "Fu il primo e nell'ultimo anno crebbe.",
        ),
        (
            "Mosca ({{russo|Москва|Moskva}}), Londra ({{lang-en|London}}).",
            "Mosca (in russo Москва, traslitterato Moskva), Londra (in inglese London).",
        ),
        (
            "Nell{{'}}''arte''{{nota|x}} {{Link audio|De.ogg|ascolta}}, {{cinese|t=臺|s=台|p=Tái}}.",
            "Nell’arte, cinese 臺 / 台, Tái.",
        ),
    ],
    "pt": [
        ("Fundada no {{séc|XIII}} e nos {{séculos|XV|XVI}}.", "Fundada no século XIII e nos séculos XV e XVI."),
        ("Tem {{fmtn|90000}} habitantes e {{unidade|5|km|2}}.", "Tem 90 000 habitantes e 5 km²."),
        (
            "Em {{dtlink|22|4|1500}} e {{dtext|||1500}}{{carece de fontes|data=maio}}, {{AC|44}}, {{AC|55|x}}",
            "Em 22 de abril de 1500 e, 44 a.C., 55 a.C.",
        ),
        ("O {{PBPE|ônibus|autocarro}} azul.", "O ônibus (português brasileiro) ou autocarro (português europeu) azul."),
        (
            "Berlim ({{Lang-de|''Berlin''}}), {{ill|en|Foo|foo}}, {{língua|en|x}}.",
            "Berlim (em alemão: Berlin), foo, em inglês: x.",
        ),
        ("{{Carece de fontes2|Foi rei}} do {{BRAb}}{{ling|en}}.", "Foi rei do Brasil."),
    ],
    "nl": [
        ("{{Bron?|Het is zo||2011|05|07}} in de 19{{e}} eeuw{{noot|x}}.", "Het is zo in de 19e eeuw."),
        (
            "Londen ({{lang-en|London}}) telt {{formatnum:1234}} huizen, {{datum|1|2|2000}}.",
            "Londen (Engels: London) telt 1.234 huizen, 1 februari 2000.",
        ),
        (
            "Hij heet {{taal|de|Wien}}, {{kleinkapitaal|x}}, 44 {{v.Chr.}}, {{wie?|men}}.",
            "Hij heet Wien, x, 44 v.Chr., men.",
        ),
    ],
    "ca": [
        ("Del {{segle|XIII|s}} al {{segle|V|-}}.", "Del segle XIII al segle V aC."),
        ("Fa {{unitats|5|km}}, {{formatnum:1234}}; {{data|1|4|2000}}.", "Fa 5 km, 1.234; 1 d’abril del 2000."),
        ("Viena ({{lang-de|Wien}}){{nota|x}} {{cal citació|és gran}}.", "Viena (en alemany: Wien) és gran."),
    ],
    "ro": [
        (
            "Viena ({{lang-de|Wien}}) din {{secol|XIX}}, {{dată|2000|4|3}}.",
            "Viena (în germană Wien) din secolul al XIX-lea, 3 aprilie 2000.",
        ),
        (
            "{{necesită citare|A fost rege}}{{notă|x}}, {{ill|en|Foo|foo}}, {{ill-wd|Q1||Bar}}.",
            "A fost rege, foo, Bar.",
        ),
    ],
    "gl": [
        ("Berlín ({{palabra estranxeira |lingua=alemán |palabra=Berlin |son=De.ogg}}).", "Berlín (en alemán: Berlin)."),
        ("O xentilicio é {{Dic|cambadés}}, século {{versaleta|xx}}{{nota|x}}.", "O xentilicio é cambadés, século XX."),
    ],
    "sv": [
        (
            "Wien ({{lang-de|Wien}}), {{språk|de|Stadt}}, {{datum|2000|4|3}}.",
            "Wien (tyska: Wien), Stadt, 3 april 2000.",
        ),
        ("{{källa behövs|Han var kung|datum=2020-01}} {{när|en gång}}{{not|x}}.", "Han var kung en gång."),
        ("Från {{flaggbild|Danmark}} Gladsaxe 44 {{f.Kr.}}, {{enhet|1234|km}}.", "Från Gladsaxe 44 f.Kr., 1 234 km."),
    ],
    "nb": [
        ("Wien ({{lang-de|Wien}}), {{språk|de|Stadt}}, {{dato|2000|4|3}}.", "Wien (tysk: Wien), Stadt, 3. april 2000."),
        ("{{trenger referanse|Han var konge}}{{Byline|Felix Hahn}}, {{NOK|5000}}.", "Han var konge, 5 000 kroner."),
    ],
    "nn": [
        (
            "{{treng kjelde|Han var konge}}{{foto|Andreas Praefcke}} i Wien ({{lang-de|Wien}}).",
            "Han var konge i Wien (tysk: Wien).",
        )
    ],
    "da": [
        ("Wien ({{lang-de|Wien}}){{byline|Arne}}, {{dato|2000|4|3}}.", "Wien (tysk: Wien), 3. april 2000."),
        (
            "{{kilde mangler|Han var konge|dato=2020}}{{efn|x}} i {{formatnum:1234}} dage.",
            "Han var konge i 1.234 dage.",
        ),
    ],
    "fi": [
        (
            "Berliini ({{k-de|Berlin}}, {{Lausunta|x.ogg}}), {{k-en|Berlin}}{{lähde|5. toukokuuta}}.",
            "Berliini (saks. Berlin), engl. Berlin.",
        ),
        ("Vuonna 44 {{eaa.}} {{kuka|joku}} tuli, {{lang-sv|Åbo}}.", "Vuonna 44 eaa. joku tuli, ruotsi: Åbo."),
    ],
    "et": [("Viin ({{lang-de|Wien}}), {{kas?|suur}} linn{{märkus|x}}.", "Viin (saksa keeles Wien), suur linn.")],
    "lt": [
        (
            "Berlynas ({{de|Berlin}}), {{vok|Haus}} {{ru|дом|dom}}, {{lang-en|x}}.",
            "Berlynas (vok. Berlin), vok. Haus rus. дом, dom, angl. x.",
        ),
        ("Svetainė {{en}} veikia{{pastaba|x}}.", "Svetainė veikia."),
    ],
    "lv": [("Berlīne ({{val|de|Berlin}}), {{dat|2000|4|3}}.", "Berlīne (vācu: Berlin), 2000. gada 3. aprīlis.")],
    "eu": [("Viena ({{lang-de|Wien}}) {{zita behar|handia}} da{{oharra|x}}.", "Viena (alemanez: Wien) handia da.")],
    "cy": [
        (
            "Llundain ({{lang-en|London}}), {{dyddiad|2000|4|3}}{{nodyn|x}}.",
            "Llundain (Saesneg: London), 3 Ebrill 2000.",
        )
    ],
    "ga": [
        ("Beirlín ({{lang-de|Berlin}}), {{dáta|2000|4|3}}{{nóta|x}}.", "Beirlín (Gearmáinis: Berlin), 3 Aibreán 2000.")
    ],
    "is": [("Berlín ({{lang-de|Berlin}}), {{heimild vantar|stór}} borg.", "Berlín (þýska: Berlin), stór borg.")],
}


@pytest.mark.parametrize(
    ("language", "wikitext", "text"),
    [(language, *row) for language, rows in TEMPLATES.items() for row in rows],
    ids=[f"{language}-{i}" for language, rows in TEMPLATES.items() for i in range(len(rows))],
)
def test_templates(language: str, wikitext: str, text: str) -> None:
    found = extractor(language).extract(b"T", wikitext.encode()).decode().replace("\xa0", " ")
    assert found == text
    assert not [piece for piece in GARBAGE if piece in found]
