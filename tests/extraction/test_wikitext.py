"""Wikitext to plain text: what each construct becomes, in which language, and what hurts."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up.extractors import extractor_of
from properties import tries

from maskmill.errors import UnusableInputError
from maskmill.extraction.kernels.codes import (
    EVENT_EXTERNAL,
    EVENT_LINK,
    EVENT_RAW,
    EVENT_TABLE,
    EVENT_TEMPLATE,
    PADDING,
    RULE_SLACK,
)
from maskmill.extraction.kernels.structure import structure
from maskmill.extraction.options import WikitextOptions
from maskmill.extraction.wikitext import WikitextExtractor


@pytest.fixture(scope="module")
def english() -> WikitextExtractor:
    return extractor_of(date="2016-06-01", lists="keep")


def text_of(extractor: WikitextExtractor, wikitext: str) -> str:
    return extractor.extract(b"Title", wikitext.encode()).decode()


CASES = {
    "plain": ("plain", "plain"),
    "nothing": ("", ""),
    # Paragraphs and lines.
    "one paragraph": ("one\ntwo\n\nthree", "one two\nthree"),
    "blank lines": ("one\n\n\n\n  \ntwo\n", "one\ntwo"),
    "spaces": ("  a   b\t c  ", ""),
    "spaces inside": ("a   b\t c  ", "a b c"),
    "carriage returns": ("a\r\nb\r\n\r\nc", "a b\nc"),
    "rule": ("a\n----\nb", "a\nb"),
    "text after a rule": ("a\n----b", "a\nb"),
    "no letters": ("a\n\n...\n\n()\n\nb", "a\nb"),
    # Quotes.
    "bold and italic": ("'''Bold''' and ''italic'' and '''''both'''''", "Bold and italic and both"),
    "apostrophes": ("it's rock 'n' roll", "it's rock 'n' roll"),
    "four": ("''''a''''", "'a'"),
    "seven": ("'''''''a", "''a"),
    "elision": ("l'''amour'' is", "l'amour is"),
    "elision before bold": ("dell'''Arte''' e ''x''", "dellArte e x"),
    # Links.
    "link": ("a [[b|c]] d [[e]]s", "a c d es"),
    "link with markup": ("[[a|''b'' {{nowrap|c}} d]]", "b c d"),
    "nested brackets": ("[[a|[b] c]]", "[b] c"),
    "link across lines": ("[[a|b\nc]] d", "b c d"),
    "anchor": ("see [[#History]] and [[#History|there]]", "see History and there"),
    "pipe trick": ("[[Help:Contents (x)|]]", "Contents"),
    "category": ("a\n[[Category:B]]\n[[category: c|sort]]", "a"),
    "link to a category": ("All are in [[:Category:B]] and [[:Category:B|C]].", "All are in Category:B and C."),
    "file": ("[[File:x.jpg|thumb|200px|a [[b]] ([[c|d]]) {{e}}]]text", "text"),
    "image, in the middle": ("a [[image:x.jpg|20px]] b", "a b"),
    "file across lines": ("[[File:x.jpg|thumb|a\nb\n\nc]]\ntext", "text"),
    "link to a file": ("It is in [[:File:x.jpg]], [[Media:x.ogg|listen]].", "It is in File:x.jpg, listen."),
    "link that a paragraph ends": ("a [[b c\n\nd [[e]] f\n\n== G ==\nh ]] i", "a b c\nd e f\nh i"),
    "link that an item ends": ("a [[b\n* c ]] d", "a b\nc d"),
    "file that a heading ends": ("[[File:x.jpg|thumb|a [[b]]\n\n== C ==\nd ]] e", "d e"),
    "file that is not closed": ("[[File:x.jpg|a\n\nb [[c]].\n\nd ]] e.", "b c.\nd e."),
    "file over paragraphs": ("[[File:x.jpg|a\n\nb\n\nc [[d]]]]\ne", "e"),
    "category that is not closed": ("a\n\n[[Category:B\n[[Category:C]]", "a"),
    "links to categories alone": ("a\n\n[[:Category:B]]\n\n''See also [[:Category:C|C]]''\n\nd", "a\nd"),
    "quotation, indented": ("<blockquote>\n It was best. – A\n</blockquote>\n x = y\n * z", "It was best. – A"),
    "quotation that is not closed": ("<blockquote>\n a\n== B ==\n c = d", "a"),
    "interlanguage": ("a\n[[de:B]]\n[[zh-min-nan:C]]", "a"),
    "link to another language": ("a [[:de:B|b]] c", "a b c"),
    "only a language's code": ("a ([[:de:B|de]]) c", "a c"),
    "interwiki": ("[[wikt:word]] [[wikt:word|w]]", "word w"),
    "three brackets": ("[[[a]]]", "[a]"),
    "external": ("[http://x.org/?a=b text] and [//x.org/ more]", "text and more"),
    "external, no text": ("a [http://y.org], b", "a, b"),
    "external around a link": ("[http://x.org [[a|b]] c]", "b c"),
    "external, with another end of its address": (
        "[http://a\"b\"] [http://a\tc] [http://a\u00a0d] [http://a\u3000日本] [http://a\u2003e] [http://a''f''] [http://a&lt;g]",
        '"b" c d 日本 e f <g',
    ),
    "external, with a call in its address": ("[http://a/{{PAGENAME|x y}}/b c] [http://a{b d]", "c d"),
    "external, of any protocol": ("[gopher://a b] [tel:1 c] [ircs://d e]", "b c e"),
    "external without an address": ("a [http:// b] [mailto: c] d", "a [http:// b] [mailto: c] d"),
    "mail": ("[mailto:a@b.org write]", "write"),
    "brackets that are no link": ("a [b] c[0]", "a [b] c[0]"),
    "url in the text": ("at http://x.org/a_b today", "at http://x.org/a_b today"),
    # What is dropped, and the holes it leaves.
    "template": ("x {{unknown|a|b}} y", "x y"),
    "nested templates": ("x {{a|{{b|c={{d}}}}|[[e|f]]}} y", "x y"),
    "template over lines": ("{{Infobox\n| a = b\n| c = {{d}}\n}}\ntext", "text"),
    "parameter": ("a {{{b|c}}} d", "a d"),
    "braces of three": ("{{{{{a}}}}} b", "b"),
    "brackets around a template": ("x ({{unknown}}) y", "x y"),
    "a hole at the start": ("x ({{unknown}}; 1990), y", "x (1990), y"),
    "a hole at the end": ("x (1990, {{unknown}}) y", "x (1990) y"),
    "a hole in the middle": ("x (a, {{unknown}}, b) y", "x (a, b) y"),
    "holes alone": ("x ({{a1}}, {{a2}}; {{a3}}) y", "x y"),
    "wide brackets": ("名（{{unknown}}）は", "名は"),
    "the page's own empty brackets": ("call f() or f ( ) now", "call f() or f ( ) now"),
    "space before punctuation": ("a {{b}}, c {{d}}. e {{f}}!", "a, c. e!"),
    "space before a comma": ("farming , and food", "farming, and food"),
    "reference": ("x<ref>y</ref>, z<ref name=a/>. a <ref name='b' >c [[d]]</ref> b", "x, z. a b"),
    "reference, upper case": ("x<REF>y</Ref>z", "xz"),
    "comment": ("x<!-- hidden --> y", "x y"),
    "comment on its line": ("a\n<!-- hidden -->\nb", "a b"),
    "comment in a tag": ("a <div <!-- b --> class=x>c</div> d<ref <!-- e -->>f</ref>", "a\nc\nd"),
    "comment before a template's name": ("a {{<!-- b --> <!-- c -->nowrap|d}} {{nowrap<!-- e -->|f}} g", "a d f g"),
    "comment in a heading": ("a\n== b <!-- c\nd --> ==\ne", "a\ne"),
    "template and reference in a heading": ("== b <ref>{{x|\nc}}\nd</ref>{{y|\ne}} ==\nf", "f"),
    "comment in a link": ("[[a<!-- b -->|c]] [[<!-- d -->e]]", "c e"),
    "comment before a heading": ("a\n<!-- hidden -->\n== b ==\nc", "a\nc"),
    "table": ("a\n{| class=x\n! head\n|-\n| cell\n|}\nb", "a\nb"),
    "nested tables": ("{|\n| a\n{|\n| b\n|}\n| c\n|}\nd", "d"),
    "indented table": ("a\n:{|\n| b\n|}\nc", "a\nc"),
    "table by calls": ("{{{!}} class=x\n{{!}}-\n{{!}} a\n{{!}}}\nb", "b"),
    "table that ends by a call": ("{|\n| a\n{{!}}}\nb", "b"),
    "no table": ("a {{{!}} b", "a {| b"),
    "table with a template": ("{|\n| {{a|b}}\n|}\nc", "c"),
    "html table": ("a <table><tr><td>b<table><tr><td>c</table></td></tr></table> d", "a\nd"),
    "gallery": ("a\n<gallery>\nFile:b.jpg|c\n</gallery>\nd", "a\nd"),
    "code block": ("a <source lang=c>b[[c]]</source> d", "a d"),
    "pre": ("a <pre>b\n{{c</pre> d", "a d"),
    "switches": ("__NOTOC__a __TOC__ b__init__ c", "a b__init__ c"),
    "switch before a capital": ("__FORCETOC__The end", "The end"),
    "switch of another language": ("__БЕЗ_ОГЛ__а", "а"),
    "no switch": ("__NOTOC__ In __FILE__ and __LINE__, __DIR__", "In __FILE__ and __LINE__, __DIR__"),
    "switch of its own line": ("a\n__NOVISIBLETOC__\nb", "a\nb"),
    "hidden span": ('a <span style="display: none">b <span>c</span></span> d', "a d"),
    "note to readers": ('<div class="dablink">For b, see c.</div>\na', "a"),
    "a class that shows": ('<div class="prose">a</div>', "a"),
    # What is kept.
    "nowiki": ("<nowiki>[[x]] ''y'' {{z}} &amp;</nowiki> a", "[[x]] ''y'' {{z}} & a"),
    "tags": ("<b>a</b> <span style='x'>b</span> <code>c</code>", "a b c"),
    "break": ("a<br>b<br/>c<br />d", "a\nb\nc\nd"),
    "blocks": ("<p>a</p><div>b</div> <blockquote>c</blockquote>", "a\nb\nc"),
    "no tag": ("a < b and c > d, 1<p<2", "a < b and c > d, 1<p<2"),
    "poem": ("<poem>\na\nb\n</poem>", "a b"),
    "powers": ("10<sup>6</sup> m<sup>−2</sup> 2<sup>''n''</sup> e<sup>x</sup>", "10⁶ m⁻² 2ⁿ e^x"),
    "powers that are sums": ("x<sup>''n''−''k''</sup> y<sup>n+1</sup> z<sup>n-1</sup>", "x^n−k y^n+1 z^n-1"),
    "charges": ("Ca<sup>2+</sup> N<sup>3−</sup>", "Ca²⁺ N³⁻"),
    "remarks": (
        "as said.<sup>[''citation needed'']</sup> So<sup>[ ''why?'' ]</sup>, "
        "x<sup>[2]</sup>, 2<sup>'''[0, 1]'''</sup>, 2<sup>[''n'']</sup>",
        "as said. So, x[2], 2[0, 1], 2[n]",
    ),
    "ordinals": ("the 19<sup>th</sup> and XX<sup>e</sup>", "the 19th and XXe"),
    "below": ("H<sub>2</sub>O", "H2O"),
    "entities": ("a &amp; b &lt;c&gt;&nbsp;d &#8211; &#x2014; e &hellip; f", "a & b <c> d – — e … f"),
    "no entities": ("AT&T &unknown; &#; &#x; &amp", "AT&T &unknown; &#; &#x; &amp"),
    "escaped markup": ("&#91;&#91;a]] &lt;ref&gt;", "[[a <ref>"),
    "odd characters": ("a\u200bb\u00adc\ufeffd\u2009e\u00a0f\u2028g", "abcd e f g"),
    "control characters": ("a\x01b &#1;c", "ab c"),
    "spaced ellipsis": ("with Turing&nbsp;. . . that . . . it, etc. .NET", "with Turing ... that ... it, etc. .NET"),
    # Lists and headings.
    "headings": ("== a ==\nb\n=== c === <!-- d -->\ne", "b\ne"),
    "no heading": ("= a\nb =", "= a\nb ="),
    "lists": ("* one\n** two\n# three\n: four\n; five: six\n*seven", "one\ntwo\nthree\nfour\nfive: six\nseven"),
    "lines of a table that lost its start": ("| a = b\n|-\n|}\n!a!!b\ntext", "text"),
    "leftovers of a table": ("|x||y\n|align=left|5\n|z\n|a b|c\ntext", "text"),
    "paragraphs that begin with a bar": (
        "|x| is a size.\n\n|''f''(''x'')|, too.\n\n|-5| is 5.\n\n|0⟩ is a state.",
        "|x| is a size.\n|f(x)|, too.\n|-5| is 5.\n|0⟩ is a state.",
    ),
    "paragraphs that begin with a click": (
        "!Kung of the [[San|San people]] and {{nowrap|a|b}}.\n\n!!! is a band.",
        "!Kung of the San people and a.\n!!! is a band.",
    ),
    "paragraphs that begin with a bar and go on as a sentence": (
        "|x + y| is at most |x| + |y| here.\n\n||x|| is the norm of the vector.\n\n||Gana is one of the languages.",
        "|x + y| is at most |x| + |y| here.\n||x|| is the norm of the vector.\n||Gana is one of the languages.",
    ),
    "indented code": (" for (i = 0; i < n; i++) {\n   x[i] = 0;\n }\ntext", "text"),
    "indented paragraph": (
        " This paragraph was indented by a single space, and should be kept as the prose it is.",
        "This paragraph was indented by a single space, and should be kept as the prose it is.",
    ),
    "appendices": ("a\n== See also ==\n* b\n=== c ===\nd\n== Next ==\ne", "a\ne"),
    "deeper title like an appendix": ("== Life ==\na\n=== Notes ===\nb", "a\nb"),
    # Formulas.
    "formula": ("Let <math>x \\in A_1</math> be", "Let x ∈ A_1 be"),
    "powers in a formula": ("<math>E=mc^2</math> and <math>2^{n+1}</math>", "E = mc² and 2^(n + 1)"),
    "fraction": ("so <math>\\frac{a}{b+c}</math> is", "so a/(b + c) is"),
    "root": ("so <math>\\sqrt{2}</math>, <math>\\sqrt{x+1}</math> is", "so √2, √(x + 1) is"),
    "text in a formula": ("a <math>x \\text{ if } y</math> b", "a x if y b"),
    "formula of its own line": ("a is\n:<math>x = 1</math>,\nwhere", "a is\nwhere"),
    "formula that is no line of text": ("a <math>\\begin{matrix}1&2\\end{matrix}</math> b", "a b"),
    "chemistry in tags": (
        "a <chem>SO4^2-</chem> b <ce>2H2O</ce> c <math chem>\\ce{Na+}</math> d",
        "a SO4²⁻ b 2H2O c Na⁺ d",
    ),
    "chemistry of its own line": ("a\n:<chem>H2O</chem>.\nb", "a\nb"),
    "code in a line": (
        "a <syntaxhighlight lang=c inline>x{{y}} &lt; ''z''</syntaxhighlight> b <source enclose='none'>c</source> d",
        "a x{{y}} &lt; ''z'' b c d",
    ),
    "code that is a block": ('a <syntaxhighlight lang="inline">b</syntaxhighlight> c', "a c"),
    "readings": (
        "<ruby>漢字<rt>かんじ</rt></ruby>と<ruby>東<rp>(</rp><rt>とう</rt><rp>)</rp></ruby>は<ruby>京<rt>きょう</ruby>です",
        "漢字と東は京です",
    ),
    "readings in complex ruby": ("<ruby><rb>漢<rb>字<rtc><rt>かん<rt>じ</rtc></ruby>です", "漢字です"),
    "map": (
        'a <maplink zoom=3 text="the [[b|c]]"/> d <maplink text=\'e\' zoom=3>{"f": {}}</maplink> g <maplink/>',
        "a the c d e g",
    ),
    # Templates with rules.
    "convert": ("a {{convert|10|km|mi}} b", "a 10 kilometres (6.2 mi) b"),
    "convert in front of a noun": ("a {{convert|20|m|adj=on}} wall", "a 20-metre (66 ft) wall"),
    "convert short": ("{{convert|1234567|km2|abbr=on}}", "1,234,567 km² (476,669 sq mi)"),
    "convert to symbols": (
        "{{cvt|1020|mm}}, {{cvt|10|-|14|cm}}, {{cvt|603|km2|mi2}}, {{cvt|10.6|mi/h}}, {{cvt|6|ft|4|in}}",
        "1,020 mm (40 in), 10–14 cm (3.9–5.5 in), 603 km² (233 sq mi), 10.6 mph (17.1 km/h), 6 ft 4 in",
    ),
    "set": ("{{math|1=''gH'' = {{mset|''gh'' : ''h'' in ''H''}}}} and {{mset|a|b}}", "gH = {gh : h in H} and {a, b}"),
    "what may be out of date": (
        "It {{update after|2024|11|text=comes out in May}}. So.{{update after|2025}}",
        "It comes out in May. So.",
    ),
    "density": (
        "{{convert|215.2|PD/km2|PD/sqmi}}, {{cvt|926.8|/km2|/sqmi}}",
        "215.2 inhabitants per square kilometre (557/sq mi), 926.8 /km² (2,400/sq mi)",
    ),
    "letters after a name": (
        "A B {{post-nominals|country=GBR|FRS|size=100%|JP}}, C D {{postnominals|post-noms=[[Order|OM]]}}",
        "A B FRS JP, C D OM",
    ),
    "no-break spaces": ("''E''{{nbs}}={{nbsp}}''mc''<sup>2</sup>", "E = mc²"),
    "marks of notes": ("As above. {{ref_harvard|A|B, p. 1|a}} So {{mn|b|1}} it is.", "As above. So it is."),
    "laws": ("under {{usc|11|554}} it", "under 11 U.S.C. § 554 it"),
    "airports": (
        "London Heathrow Airport {{Airport codes|LHR|EGLL}} is",
        "London Heathrow Airport (IATA: LHR, ICAO: EGLL) is",
    ),
    "contests": (
        "{{Escyr|2022||2022 contest}}, {{escyr|2007|Dance}}, {{esccnty|Ukraine|y=2022}}",
        "2022 contest, 2007, Ukraine",
    ),
    "convert one": ("{{convert|1|mi}}", "1 mile (1.6 km)"),
    "convert a range": ("{{convert|5|to|10|ft}}", "5 to 10 feet (1.5 to 3.0 m)"),
    "convert feet and inches": ("{{convert|6|ft|4|in|cm}}", "6 feet 4 inches"),
    "language": ("{{lang|fr|b}} {{lang-ru|Москва|Moskva}}", "b Russian: Москва, romanized: Moskva"),
    "nihongo": ("{{nihongo|Mount Fuji|富士山|Fujisan}} is", "Mount Fuji (富士山, Fujisan) is"),
    "rules in rules": ("a {{lang|fr|b {{nowrap|c ''d''}}}} e", "a b c d e"),
    "links in rules": ("{{nowrap|[[a|b]] c}}", "b c"),
    "a named first argument": ("{{nowrap|1=a=b}}", "a=b"),
    "fractions": ("{{frac|1|2}} {{frac|1|3|4}}", "1⁄2 1 3⁄4"),
    "date": ("{{birth date|1990|1|5}} {{birth date|1990|01|05|df=y}}", "January 5, 1990 5 January 1990"),
    "age at the dump's date": ("{{birth date and age|1990|6|2}}", "June 2, 1990 (age 25)"),
    "as of": ("{{as of|2010|1}}, x, {{as of|2010|lc=y}}", "As of January 2010, x, as of 2010"),
    "numbers": ("{{formatnum:1234567.5}} {{formatnum:12}}", "1,234,567.5 12"),
    "clock": ("In {{CURRENTYEAR}}, {{CURRENTMONTHNAME}} {{CURRENTDAY}}", "In 2016, June 1"),
    "the page": ("{{PAGENAME}} is", "Title is"),
    "functions": ("{{lc:ÀB}} {{ucfirst:éa}} {{#if:a|b|c}} {{#if:|b|c}}", "àb Éa b c"),
    "sounds in the text": ("the vowel {{IPA|/a/}} is", "the vowel /a/ is"),
    "pronunciation after a word": (
        "So ({{IPA|/a/}}, not like the {{IPA|/l/}} of b), Ausci (pronounced {{IPA|/awski/}} in Latin; /{{IPA|b}}/).",
        "So (not like the /l/ of b), Ausci (pronounced /awski/ in Latin; /b/).",
    ),
    "pronunciation": ("Paris ({{IPA|/paʁi/}}; born) is", "Paris (born) is"),
    "place": ("It lies at {{coord|1|2|N|3|4|E}}.", "It lies at 1°2′N 3°4′E."),
    "place of the page": ("{{coord|1|2|N|3|4|E|display=title}}\n{{coord|1|N|2|E}}\na", "a"),
    "namespace and underscores": ("{{Template:Lang|fr|a}} {{ lang_|fr|b}}", "a b"),
    "case that matters": ("{{PER}} and {{per}} b", "Peru and b"),
    # What was false.
    "inflation": ("It cost $5 (${{Inflation|US|5|1965}} at 2020 prices) then.", "It cost $5 then."),
    "nautical miles": (
        "{{Convert|10|NM}} and {{convert|3|Nm}}",
        "10 nautical miles (19 km; 12 mi) and 3 newton-metres (2.2 lb⋅ft)",
    ),
    "millilitres": ("{{convert|5|ml}} {{convert|5|ML}} {{convert|5|MW}}", "5 millilitres 5 megalitres 5 megawatts"),
    "chemistry": ("{{chem2|C_{''n''}H_{2''n''} }} {{chem2|N2 <-> 2N}}", "CnH2n N2 ↔ 2N"),
    "forms of ships": ("{{HMS|Glasgow|1757|6}} {{HMS|A|1757}} {{USS|B|C-1|2}}", "HMS Glasgow HMS A (1757) B"),
    "fraction after a number": ("3{{frac|1|2}} a {{frac|1|2}}", "3 1⁄2 a 1⁄2"),
    "power of ten": ("5.98{{e|24}} kg", "5.98×10²⁴ kg"),
    "small capitals": ("the {{LORD}} said", "the LORD said"),
    "unknown country": ("* {{flagcountry|Xanadu}}: a place that nobody knows.", "Xanadu: a place that nobody knows."),
    "nothing before a colon": ("{{flagicon|FRA}}: a place", "a place"),
    "three sizes": ("{{convert|6|x|3|x|2|m}}", "6 by 3 by 2 metres"),
    "quotation": ("a\n{{quote|b\n\nc}}\nd", "a\nb\nc\nd"),
    "list": ("{{hlist|a|b|c}}", "a, b, c"),
    "pipe": ("a {{!}} b", "a | b"),
    # What is never closed.
    "open template": ("a {{ b [[ c", "a b c"),
    "open infobox": ("{{Infobox x\n| a = b\n| c = d\ntext [[e]] {{f}}", "text e"),
    "stray closers": ("a }} b ]] c |} d", "a b c |} d"),
    "open link before another": ("[[a b [[c]] d", "a b c d"),
    "open file": ("[[File:a.jpg|thumb|b\ntext", "text"),
    "open file within a line": ("a [[File:b.jpg|thumb|c. [[d]] e.\nf", "a\nf"),
    "reference in the tag of a reference": ("a<ref aaa<ref>b</ref> c<ref name=d <ref name=e/> f", "a c f"),
    "open reference": ("a<ref name=b> c. d<ref>e</ref> f", "a c. d f"),
    "open reference before a heading": ("a<ref>b\n== c ==\nd<ref>e</ref>", "ab\nd"),
    "open reference at the end": ("a <ref>b", "a b"),
    "open table": ("{| class=a\n| b\ntext", "text"),
    "open table in a template": ("{{a|\n{|\n| b\n}} c", "c"),
    "open template in a table": ("{|\n| {{a\n|}\nb", "b"),
    "open comment": ("a <!-- b\nc", "a c"),
    "open nowiki": ("a <nowiki>[[b]]", "a b"),
    "open tag": ("a <div b", "a <div b"),
    "open external link": ("[http://x.org a\nb]", "[http://x.org a b]"),
    "closers in the wrong order": ("{{a|[[b}} c]]", "c"),
}


@pytest.mark.parametrize(("wikitext", "text"), CASES.values(), ids=CASES.keys())
def test_extract(english: WikitextExtractor, wikitext: str, text: str) -> None:
    assert text_of(english, wikitext) == text


def test_options_keep_headings_and_drop_lists() -> None:
    extractor = extractor_of(headings="keep", lists="drop")
    page = "== ''A'' [[b]] ==\n* c\n: d of a\n: D\n# e\n=== References ===\nf\n== References ==\n* g\nh"
    assert text_of(extractor, page) == "A b\nd of a\nReferences\nf"


@pytest.mark.parametrize(
    "item",
    [
        "Animatronics is the use of [[mechatronics]].",
        "It asks: what of the ''others''?<ref>a</ref>",
        'He said "this is a whole sentence."<ref>b</ref>',
        "(A sentence may also stand in brackets!)",
        "「これは文です。長い文です。」",
        "これは文です。長い文です。",
        "Դա մի երկար նախադասություն է։",
        "یہ ایک لمبا جملہ ہے۔",
        "क्या यह एक वाक्य है।",
        "هل هذه جملة طويلة؟",
        "On dit « une phrase entière. »",
    ],
)
def test_sentences_of_lists_stay(item: str) -> None:
    extractor = extractor_of()
    kept = extractor_of(lists="keep")
    page = f"a\n* {item}\n# Brent Berlin, 1936\nb\n* A.\n: Brent Berlin\n: by the sea"
    assert text_of(extractor, page) == f"a\n{text_of(kept, item)}\nb\nby the sea"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"headings": "maybe"}, "headings is 'maybe'; it must be one of drop, keep"),
        ({"lists": ""}, "lists is ''"),
        ({"date": "yesterday"}, "date is 'yesterday'; it must be a day such as"),
        ({"expansion_depth": 0}, "expansion_depth is 0; it must be at least 1"),
        ({"expansion_characters": -1}, "expansion_characters is -1"),
        ({"expansion_steps": 0}, "expansion_steps is 0"),
    ],
)
def test_options_are_checked(wrong: dict[str, str], message: str) -> None:
    with pytest.raises(UnusableInputError, match=message):
        WikitextOptions(**wrong)  # type: ignore[arg-type]


def test_an_extractor_pickles(english: WikitextExtractor) -> None:
    copy = pickle.loads(pickle.dumps(english))
    assert copy.options == english.options
    assert text_of(copy, "a {{CURRENTYEAR}}") == "a 2016"


def test_pages_do_not_disturb_each_other(english: WikitextExtractor) -> None:
    # The buffers are reused: a long page leaves nothing after for a short one, nor does a very long one.
    long_page = "{{a [[b <ref> '''c " * 1000
    for size in (1, 300):
        text_of(english, long_page * size)
        assert text_of(english, "d [[e") == "d e"


def test_title_is_any_bytes(english: WikitextExtractor) -> None:
    assert english.extract(b"", b"a {{PAGENAME}} b") == b"a b"
    assert english.extract("Émile".encode(), b"{{PAGENAME}}") == "Émile".encode()


# Recursion, exponential growth and scans that start again are what hostile pages aim at. The results
# must be right, which quadratic work on such sizes would not allow to wait for.
HOSTILE = {
    "{{": "",
    "{{nowrap|": "",
    "[[": "",
    "[[a|": None,
    "<ref>": "",
    "<ref": "",
    "<ref name=": None,
    "<nowiki ": None,
    "<math>": "",
    "<!--": "",
    "\n{|": "",
    "{|": "",
    "''": "",
    "'''''": "",
    "<table>": "",
    "[http://a ": None,
    "\u200b": "",
    "&": "",
    "\n==a==": "",
    "{{nowrap|}}": "",
    "-{": "",
    "<span style='display:none'>": "",
}


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_hostile_pages(piece: str, language: str) -> None:
    extractor = extractor_of(language)
    page = piece * 200_000
    text = text_of(extractor, page + "\n\nThe end.")
    assert len(text) <= len(page) + 8
    expected = HOSTILE[piece]
    if expected is not None:
        assert text in (f"{expected}The end.", expected)


@pytest.mark.parametrize("piece", ["<b", "<map", "{{", "[["])
def test_hostile_items(piece: str, english: WikitextExtractor) -> None:
    assert text_of(english, "\n* " + piece * 200_000 + "\n\nThe end.").endswith("The end.")


def test_a_page_after_a_hostile_start_is_not_lost(english: WikitextExtractor) -> None:
    for start in ("{{a|b", "[[a|b", "<ref>a", "{| a\n| b", "''a", "<math>a", "<div a", "[http://a b", "<nowiki>a"):
        assert text_of(english, f"{start}\n\nA paragraph.\n\nThe end.").endswith("A paragraph.\nThe end."), start


def test_deep_nesting_closes_properly(english: WikitextExtractor) -> None:
    for opening, closing in (("{{nowrap|", "}}"), ("[[a|", "]]"), ("{{a|", "}}"), ("<b>", "</b>"), ("\n{|\n", "\n|}")):
        page = f"a {opening * 1000}b{closing * 1000} c"
        text = text_of(english, page)
        assert text.startswith("a")
        assert text.endswith("c")


def test_rules_cannot_blow_up(english: WikitextExtractor) -> None:
    # Each level would double the text, if what a rule gives had no bound.
    page = "{{nihongo|" * 20 + "a" + "|{{PAGENAME}}}}" * 20
    text = english.extract(b"T" * 200, page.encode())
    assert len(text) < 20 * 20 * (RULE_SLACK + 200)


PIECES = st.sampled_from(
    [
        *("{{", "}}", "{{{", "}}}", "[[", "]]", "[", "]", "{|", "|}", "|-", "|", "!", "=", "==", "''", "'''", "*"),
        *("#", ":", ";", "<ref>", "</ref>", "<ref/>", "<math>", "</math>", "<nowiki>", "</nowiki>", "<!--", "-->"),
        *("<br>", "<table>", "</table>", "<div", "</div>", "<sup>", "-", "-{", "}-", "zh-hans:", "_", "__"),
        *("__TOC__", "&", "&amp;", "&#65;", "convert", "lang", "nihongo", "File:", "Category:", "de:", "http://x"),
        *("\\frac", "{", "}", "^", "text", "1", "2", "km", "é", "漢字", "(", ")", "（", "）", ",", ".", ";", "<", ">"),
        *("PAGENAME", "#if:", "hlist", "\n", "\n\n", " ", "\t", "\x01", "\r", "\u200b", "\xa0"),
    ]
)


@tries(500)
@given(st.lists(PIECES, max_size=60), st.sampled_from(["en", "zh"]))
def test_any_markup_gives_clean_lines(pieces: list[str], language: str) -> None:
    text = text_of(extractor_of(language, **SETTINGS[language]), "".join(pieces))
    assert "\x01" not in text
    for line in text.split("\n") if text else []:
        assert line == line.strip()
        assert line
        assert "  " not in line


@tries(300)
@given(st.binary(max_size=200))
def test_any_bytes_are_taken(page: bytes) -> None:
    extractor = extractor_of("en", **SETTINGS["en"])
    extractor.extract(page[:20], page)
    extractor.is_redirect(page)
    extractor.is_disambiguation(page[:20], page)


SETTINGS = {"en": {"headings": "keep"}, "zh": {"lists": "keep"}}


def test_paragraphs_concatenate(english: WikitextExtractor) -> None:
    # What stands after a blank line is independent of what stands before it, once that is balanced.
    names = ("link", "template", "reference", "table", "headings", "convert", "formula")
    page = "\n\n".join(CASES[name][0] for name in names)
    assert text_of(english, page) == "\n".join(CASES[name][1] for name in names)


def test_events_are_ordered_and_nested() -> None:
    page = b"a {{b|[[c|{{d}}]]}} {| \n{|\n| e\n|}\n<ref>f</ref> [http://g h]"
    text = np.zeros(len(page) + PADDING, np.uint8)
    text[: len(page)] = np.frombuffer(page, np.uint8)
    events, used = structure(text, len(page), extractor_of("en", **SETTINGS["en"])._tables)
    closed = [tuple(row[:3]) for row in events[:used].tolist() if row[1] >= 0]
    assert closed == sorted(closed)
    found = [(page[start:end].decode(), kind) for start, end, kind in closed]
    assert found == [
        ("{{b|[[c|{{d}}]]}}", EVENT_TEMPLATE),
        ("[[c|{{d}}]]", EVENT_LINK),
        ("{{d}}", EVENT_TEMPLATE),
        ("{|\n| e\n|}", EVENT_TABLE),
        ("<ref>f</ref>", EVENT_RAW),
        ("[http://g h]", EVENT_EXTERNAL),
    ]


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("* <blockquote>It was the best of times, and of all times – Name</blockquote>", None),
        ("* It was the best of times of all. – Name", None),
        ("* It was the best of times of all. Nobody had known any better ones", None),
        ("* The Best of Times\n* The Worst of Times", ""),
        ("* It was the best of times of all.&nbsp;\u200b", "It was the best of times of all."),
    ],
)
def test_items_that_hold_sentences_are_kept(wikitext: str, text: str | None) -> None:
    kept = wikitext.removeprefix("* ").replace("<blockquote>", "").replace("</blockquote>", "")
    assert text_of(extractor_of(), wikitext) == (kept if text is None else text)
