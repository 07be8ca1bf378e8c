"""Which items of lists stay that are no sentences, in scripts with and without capitals."""

import pytest
from made_up.extractors import extractor_of


def is_kept(item: str, *, language: str = "en", section: str = "Life") -> bool:
    page = f"== {section} ==\n* {item}\n"
    return extractor_of(language).extract(b"Title", page.encode()) != b""


@pytest.mark.parametrize(
    "item",
    [
        "[[Ada]] – the first person who wrote a program",
        "[[Rhea]] &ndash; mother of the first six [[Olympian]]s",
        "[[Rhea]]: mother of the first [[Olympian]]s",
        "1969 – [[Nick Holt]], contestant in a big show and actress",
        "1884 - Otto Rank, Austrian psychologist (d. 1939)",
        "[[Albedo]] (a share of light)",
        "increases lean muscle mass of the body",
        "Char siu (叉燒) - also called BBQ pork; usually with a red outer coloring",
        "'''Mond''', der ständige Begleiter der Erde",
        "Mönch und [[Nonne]]: Dachziegel, die ineinander greifen",
        "[[Луна]] — единственный естественный спутник Земли",
        "[[東京都]] - 日本の首都であり最大の都市",
        "[[서울]] – 대한민국의 수도",
        "[[القمر]] – الجرم الذي يدور حول الأرض",
        "[[ירח]] – הלוויין הטבעי של כדור הארץ",
        "[[Sharyn Alfonsi]] (2008–2012; now at [[CBS News]])",
        "Linsey Davis – Anchor, ''[[Live Prime]]''; Anchor, [[World News Tonight]] Sunday (2007–present)",
        "Halfaxa Tour (Canada, 2010) {{small|(co-headlined with [[Devon Welsh|Pop Winds]])}}",
        "Senator [[Ted Kennedy]] of [[Massachusetts]]",
        "59 – [[Philadelphia Eagles]], November 15, [[2010]] vs. [[Washington Redskins]]",
        "45 points – [[Baltimore]] 48, [[Green Bay]] 3 – December 19, [[2005]]",
        "Walther Fahrenhorst, [[Generaldirektor]] der Phönix",
        '[[Commodore 1541]] - 5&frac14;" Floppy disk drive for "C64" computers',
        "''[[Day of the Fight]] first film directed by [[Stanley Kubrick]]",
        '[[Aqua]] – "water that flows downhill"',
        "'''Small and large letters of the alphabet'''",
        "Smith published ''The History of the Town'' in 1998.",
        "''The town is older than its walls.'' John Smith.",
        "المدينة هي عاصمة البلاد وأكبر مدنها من حيث عدد السكان",
        "העיר היא בירת המדינה והגדולה בעריה מבחינת מספר התושבים",
    ],
)
def test_items_that_explain_or_tell_stay(item: str) -> None:
    assert is_kept(item)


@pytest.mark.parametrize(
    "item",
    [
        "667. Squirrel",
        "'''667'''. ''Squirrel''",
        "[[A]], [[B]] and [[C]]",
        "[[The house of many rooms|The house of many rooms that stood near the river]]",
        "[http://a.org A complete guide to the history of the whole town]",
        "The Lord of the Rings: The Return of the King",
        "''Zen and the Art of Motorcycle Maintenance''",
        "University of Nebraska, Lincoln",
        "Betsy Nagelsen (USA, 1970–)",
        "Carl Diercke (1842–1913)",
        "Smith, John (1998). ''The History of the Town''. London: Penguin.",
        "[[John Smith]], ''The History of the Town'', [[London]], Penguin Books, 1998.",
        "Hans Meier: ''Geschichte der Stadt Bern''. Verlag Huber, Frauenfeld 1987, ISBN 3-7193-0000-0.",
        "Иванов И. И. ''История города''. — М.: Наука, 1987. — 320 с.",
        '"Gardening at Night" – 3:55',
        "Tom Hanks – Forrest Gump",
        "[[Apple]]s",
        "12&nbsp;km <b>{{nowrap|34 km}}</b> [[56]]",
        "[[東京都]]、[[大阪府]]",
        "[[القمر]]",
        "Museum of Kyoto (京都文化博物館の本館)",
        "''[[Good Morning America]]'' (1975–present)",
        "''Popcorn with Peter Travers'' (2009–present)",
        "Walter Laufenberg: ''Favoritin zweier Herren,'' 2010",
        '"The Planet of the Strange Dead" — [[Weird Tales]], March 1932',
        "„Über den Einfluss der Gestirne“ (1766)",
        "[[Blue Whale]], ''Balaenoptera musculus''",
        "[[1889]] – Ludwig Wittgenstein (d. 1951)",
        "[[High Peak]] (Tai Lo Shan) - 577 m",
        "[[Luis Lucena]] (Spain, c.[[1465]] – c.[[1530]])",
        "[[A B]], {{unheard|some more words|km}} {{unheard|a=some words here}} [[C D]]",
        "[[アルト・パラグアイ県]] (Departamento de Alto)",
    ],
)
def test_items_that_are_names_titles_links_or_numbers_go(item: str) -> None:
    assert not is_kept(item)


@pytest.mark.parametrize(
    ("language", "section"),
    [
        ("en", "Selected works"),
        ("en", "Discography (selection)"),
        ("en", "''Cast''"),
        ("de", "Schriften"),
        ("de", "Filmografie (Auswahl)"),
        ("fr", "Distribution"),
        ("pt", "Faixas"),
        ("ru", "Избранные труды"),
        ("ja", "主な著書"),
        ("zh", "專輯"),
        ("ar", "مؤلفاته"),
    ],
)
def test_lists_of_works_keep_sentences_alone(language: str, section: str) -> None:
    assert not is_kept("The Man Who Ate the World, 1979. ISBN 0-06-051014-6.", language=language, section=section)
    assert not is_kept("''House'' – a novel about a house with rooms", language=language, section=section)
    assert is_kept(
        "''House'' – The novel tells of a house that has no doors at all.", language=language, section=section
    )


def test_sections_of_works_end_with_the_next_of_their_level() -> None:
    item = "* [[Ada]] – the first person who wrote a program"
    headings = ("== Works ==", "=== Life ===", "== Life ==", "=== References ===", "== Life ==")
    page = "\n".join(f"{heading}\n{item} {letter}" for heading, letter in zip(headings, "abcde", strict=True))
    lines = extractor_of().extract(b"Title", page.encode()).decode().splitlines()
    assert [line[-1] for line in lines] == ["c", "e"]


def test_options_that_keep_or_drop_all_items_know_no_sections() -> None:
    page = "== Works ==\n* A\n* It is a whole sentence.\n"
    assert extractor_of(lists="keep").extract(b"Title", page.encode()) == b"A\nIt is a whole sentence."
    assert extractor_of(lists="drop").extract(b"Title", page.encode()) == b""
