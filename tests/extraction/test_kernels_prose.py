"""Whether items of lists and indented lines read as sentences, in scripts of all kinds."""

from collections.abc import Callable

import numpy as np
import pytest
from made_up.extractors import tables_of

from maskmill.extraction.kernels.prose import (
    ends_as_sentence,
    has_small_words,
    holds_sentences,
    is_row_of_names,
    is_unstopped_sentence,
    reads_as_prose,
)

# Compiled by themselves, as no page calls them, they take half a minute.
pytestmark = pytest.mark.in_python

LINES = {
    ends_as_sentence: [
        ("This is a full sentence.", True),
        ("This is a sentence.”)", True),
        ("«This is a sentence!»", True),
        ("„Das hier ist ein ganzer Satz.“", True),
        ("« Ceci est une phrase complète.\u00a0»", True),
        ("これは長い文です。", True),
        ("「これは長い文です。」〕", True),
        ("これは長い文です．", True),
        ("Յուրաքանչյուր մարդ։", True),
        ("এটি একটি দীর্ঘ বাক্য।\u00a0", True),
        ("এটি একটি দীর্ঘ বাক্য।\u200b\u200d\u200e", True),
        ("এটি একটি দীর্ঘ বাক্য ৷", True),
        ("በርሊን የጀርመን ዋና ከተማ ናት።", True),
        ("ရန်ကုန်သည် မြို့ကြီးဖြစ်သည်။", True),
        ("ភ្នំពេញជារាជធានី។", True),
        ("བོད་ནི་རྒྱལ་ཁབ་ཅིག་ཡིན།", True),
        ("ᠮᠣᠩᠭᠣᠯ ᠬᠦᠮᠦᠨ᠃", True),
        ("This is no sentence at all", False),
        ("This is no sentence at all;\u00a0", False),
        ("Too short.", False),
        ("''''''''''''''''''''''''", False),
    ],
    holds_sentences: [
        ("The bridge was built within two years. It was the longest one of the country", True),
        ("Il ponte fu costruito in due anni. Per molto tempo rimase il più lungo di tutto il paese;", True),
        ("Міст збудували лише за два роки. Довгий час він був найдовшим у всій країні", True),
        ("その橋は二年で完成した。その後は国内で最も長い橋として知られる", True),
        ("এই সেতুটি দুই বছরে নির্মাণ করা হয়েছিল। এটি এখনও দেশের সবচেয়ে দীর্ঘ সেতু হিসেবে পরিচিত", True),
        # A quotation and its author.
        ("“I have never built anything that I was not afraid of.” – Ada Bridge", True),
        ("I have never built anything that I was not afraid of. — Ada Bridge, Works", True),
        ("I have never built a bridge that I was not afraid of. - 11 m", False),
        # Thai has no stops.
        ("สะพานนี้สร้างเสร็จภายในเวลาสองปีและเป็นสะพานที่ยาวที่สุดในประเทศมาจนถึงทุกวันนี้", True),
        ("สะพานที่ยาวที่สุด", False),
        # Bare fragments, abbreviations, works, titles.
        ("the longest bridge of the country and of all countries around it", False),
        ("a bridge that was built by approx. three hundred men of the town", False),
        ("Bridge, A. B. The History of Large and Small Bridges. London: Bridge Press, 1995. 200 pp", False),
        ("Мостовий І. І. Історія будівництва мостів у нашій країні. К.: Наука, 1995. 200 с", False),
        ("『橋はどこへ行くの？』（『月刊橋』2002年1月号。橋社）", False),
        ("भगवान दास यांचे समग्र साहित्य. लेखक : रामदास जोशी", False),
        ("", False),
    ],
    reads_as_prose: [
        ("Somebody has put a space before this paragraph and has not noticed it", True),
        ("Somebody has put a space before this", False),
        ("name    value, drawn in columns that are aligned with more spaces than one", False),
        ("x = f(y[0], z[1]) + g(*a, **b); if (x == 3) { return; } // !!! --- ### ~~~", False),
        ("Somebody has put a space before this paragraph.  " * 3, True),
        ("# A comment in a program.  It may have two spaces, but its author ends each line.", False),
        ("one column    another column   a third column     a fourth column      a fifth " * 2, False),
    ],
    is_row_of_names: [
        ("3 Φεβρουαρίου | 4 Φεβρουαρίου | 5 Φεβρουαρίου", True),
        ("Київська Русь · Реконкіста · Високе Середньовіччя", True),
        ("Rome • Paris • Berlin", True),
        ("Rome | Paris", False),
        ("x · y · z = 0", False),
        ("One of the marks | and · and • divides names, as all readers of calendars and encyclopedias know", False),
        ("The marks | and | and · divide names in a row of names.", False),
    ],
    is_unstopped_sentence: [
        ("Il re muore nel 1990 e la regina prende il potere nel regno di Napoli", True),
        ("The legacy of communist rule makes the reform of the economy very hard to do", True),
        ("the legacy of communist rule makes the reform of the economy very hard to do;", False),
        ("Mario Rossi, politico italiano", False),
        ("Alice in Wonderland, by Lewis Carroll, with pictures by John Tenniel, London, 1865", False),
    ],
    has_small_words: [
        ("493.", False),
        ("Peach", False),
        ("Tiger, tiger, burning bright", True),
        ("いろはにほへと", True),
        ("E = mc²", False),
    ],
}
WITH_TABLES = {holds_sentences, is_unstopped_sentence, has_small_words}


@pytest.mark.parametrize(
    ("kernel", "line", "expected"),
    [
        pytest.param(kernel, *row, id=f"{kernel.__name__}-{number}")
        for kernel, rows in LINES.items()
        for number, row in enumerate(rows)
    ],
)
def test_how_lines_read(kernel: Callable[..., bool], line: str, expected: bool) -> None:
    text = np.frombuffer(line.encode() + bytes(8), np.uint8).copy()
    assert kernel(text, 0, len(line.encode()), *((tables_of(),) if kernel in WITH_TABLES else ())) is expected
