"""The MLPerf clean-up chain, against what the reference's own programs wrote."""

import gzip
import hashlib
import io
import random
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st
from oracles import punkt34 as oracle_punkt34
from properties import tries

from maskmill.compat import mlperf_cleanup as chain
from maskmill.errors import UnusableInputError
from maskmill.sentences import punkt
from maskmill.sentences.punkt import SentenceSplitter
from maskmill.text.shards import article_md5

GOLD = Path(__file__).parent.parent / "data" / "gold"
RAW = [GOLD / "wikiextractor" / f"wiki_0{i}.gz" for i in range(3)]


ENGLISH = Path(punkt.__file__).parent / "data" / "punkt_tab" / "english"
ORACLE = oracle_punkt34.tokenizer(oracle_punkt34.parameters(ENGLISH))


def md5(text: bytes) -> str:
    return hashlib.md5(text).hexdigest()


def digests(name: str) -> dict[str, str]:
    lines = (GOLD / "cleanup" / name).read_text().splitlines()
    return {file: digest for digest, file in (line.split() for line in lines)}


def test_whole_chain_gives_every_intermediate_and_final_file_of_the_reference() -> None:
    splitter = SentenceSplitter(rules="nltk-3.4")
    raw = [gzip.decompress(path.read_bytes()) for path in RAW]
    intermediate = {}
    separated = []
    for number, content in enumerate(raw):
        name = f"wiki_0{number}"
        untagged = chain.remove_doc_tags(content)
        cleaned = chain.clean_markup(untagged)
        sentences = chain.split_sentences(cleaned, splitter)
        split = chain.separate_eval(sentences, file_number=number, num_files=3, num_eval_articles=7)
        separated.append(split)
        for suffix, text in ((".1", untagged), (".2", cleaned), (".3", sentences), (".4", split.train)):
            intermediate[name + suffix] = md5(text)
    assert intermediate == digests("intermediate.md5")

    results = {}
    eval_articles = [article for split in separated for article in split.eval_articles]
    eval_txt = chain.join_articles(eval_articles)
    eval_md5 = "".join(f"{article_md5(article)}\n" for article in eval_articles).encode()
    assert eval_txt == gzip.decompress((GOLD / "cleanup" / "eval.txt.gz").read_bytes())
    results["eval.txt"], results["eval.md5"] = md5(eval_txt), md5(eval_md5)
    for number, members in enumerate(chain.pack_shards([len(content) for content in raw], 1.5)):
        part = b"".join(chain.gather(separated[member].train) for member in members)
        results[f"part-{number:05d}-of-00500"] = md5(part)
    assert results == digests("results.md5")


# Text in the reference's text mode: Python splits and translates lines in its own way.
PIECES = [
    "<doc",
    "</doc>",
    "\r",
    "\n",
    "\r\n",
    "x",
    "é",
    "title",
    "A b. C d",
    "\x85",
    "\u2028",
    "\x0c",
    " ",
    "\ufeff",
    "",
]
TEXT = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def read_in_text_mode(text: bytes, encoding: str = "utf-8") -> list[str]:
    return list(io.TextIOWrapper(io.BytesIO(text), encoding))


@hypothesis.given(text=TEXT)
@tries(500)
def test_tags_titles_and_empty_lines_go_as_in_cleanup_file(text: str) -> None:
    kept = []
    skip = False
    for line in read_in_text_mode(text.encode()):
        if skip:
            skip = False
        elif "<doc" in line:
            skip = True
            kept.append("\n")
        elif "</doc>" not in line and len(line) != 1:
            kept.append(line)
    assert chain.remove_doc_tags(text.encode()) == "".join(kept).encode()


@pytest.mark.parametrize(
    ("line", "cleaned"),
    [  # what clean.sh with GNU sed 4.9 and grep 3.8 makes of them
        (b"[[a|b]] [[c]] [[d|e|f]] [[File:x.jpg|thumb|see [[y]]]]", b"b c  \n"),
        (b"see [[Category:Cats]] here", b""),
        (b"[[:File:a|b|c]] [[media:x]] [[Image:y|z|w]] [k] [[p|q|r]]", b" media:x  k \n"),
        (b'alt=x <div class="a">b</div> <br>c</br> <ref name=a>d</ref> <ref name=b/> e', b"x b c   e\n"),
        (b"<section a/> keep \\ <section b/> <section c> d/> e", b" keep \\  e\n"),
        (b"<mapframe a\\/> <mapframe b/> <mapframe c>d</mapframe>", b"  d\n"),
        (b"<math>a<b</math> <graph>{x}</graph> <chem>H2O</chem> <ins>new</ins>", b"a<b  >H2O >new\n"),
        (b"<gallery mode=x>y</gallery> <http://a.b> <Ref z> <poem style>v</poem> <poem>w</poem>", b"y   v w\n"),
        (
            b"<nowiki>n</nowiki> <NOWIKI>m</NOWIKI> <small>s</small> <sup>2</sup> <noinclude>o</noinclude>",
            b"n m s 2 o\n",
        ),
        (b"<, ref x</ref>y <includeonly>z</includeonly> <onlyinclude>q</onlyinclude> <meta a=b/>t<hr/>u", b"y  q u\n"),
        (b"<doc id=1>", b""),
        (b"<doc id=1> x", b"<doc id=1> x\n"),
        (b"al[[a|b]]t=x", b"albt=x\n"),
        (b"x</doc>y </references> </div style>", b"x\ry  \n"),
        (b"plain text, no trigger", b"plain text, no trigger\n"),
    ],
)
def test_each_rule_of_clean_sh(line: bytes, cleaned: bytes) -> None:
    assert chain.clean_markup(line + b"\n") == cleaned
    assert chain.clean_markup(line) == cleaned  # grep adds the newline


def test_lines_are_cleaned_one_by_one_in_any_company() -> None:
    lines = [b"[[a", b"b]]", b"", b"<ref", b">x", b"<section a", b"/>", b"[[Category:x", b"]]", b"plain"]
    assert chain.clean_markup(b"\n".join(lines)) == b"\n".join(lines) + b"\n"
    assert chain.clean_markup(b"") == b""


@pytest.mark.parametrize("piece", [b"<section", b"<gallery", b"<mapframe ", b"[[", b"[[a|", b"<ref", b"[[::"])
def test_a_long_line_of_unclosed_marks_stays_as_it_is(piece: bytes) -> None:
    line = piece * (1_000_000 // len(piece))  # a search anew for each of them would never end
    assert chain.clean_markup(line) == line + b"\n"


@hypothesis.given(text=TEXT)
@tries(500)
def test_sentences_come_as_in_do_sentence_segmentation(text: str) -> None:
    expected = []
    for line in read_in_text_mode(text.encode()):
        if len(line) == 1:
            expected.append("\n")
        expected += [f"{sentence.strip()}\n" for sentence in ORACLE.tokenize(line)]
    sentences = chain.split_sentences(text.encode(), SentenceSplitter(rules="nltk-3.4"))
    assert sentences == "".join([*expected, "\n"]).encode()


@hypothesis.given(
    num_articles=st.integers(1, 40),
    files=st.tuples(st.integers(0, 20), st.integers(1, 20)).map(lambda pair: (min(pair[0], pair[1] - 1), pair[1])),
    wanted=st.integers(0, 300),
    seed=st.integers(0, 1 << 40),
)
@tries(300)
def test_eval_articles_are_drawn_as_in_seperate_test_set(
    num_articles: int, files: tuple[int, int], wanted: int, seed: int
) -> None:
    number, num_files = files
    articles = [f"article {i}\nof this file\r" for i in range(num_articles)]
    text = "\n\n".join(articles).encode()
    share = int((number + 1) * wanted * 1.0 / num_files) - int(number * wanted * 1.0 / num_files)
    if share > num_articles:
        with pytest.raises(UnusableInputError, match="ask for fewer"):
            chain.separate_eval(text, file_number=number, num_files=num_files, num_eval_articles=wanted, seed=seed)
        return
    rng = random.Random(seed + number * 13)
    drawn: list[int] = []
    while len(drawn) < share:
        new = int(rng.random() * num_articles)
        if new not in drawn:
            drawn.append(new)
    split = chain.separate_eval(text, file_number=number, num_files=num_files, num_eval_articles=wanted, seed=seed)
    assert split.eval_articles == [articles[i].encode() for i in sorted(drawn)]
    assert split.train == b"".join(articles[i].encode() + b"\n\n" for i in range(num_articles) if i not in drawn)


def test_hashes_of_eval_articles_leave_out_white_space_at_their_end() -> None:
    articles = [b"a\n\xc2\xa0", b""]
    assert chain.join_articles(articles) == b"a\n\xc2\xa0\n\n\n\n"
    assert [article_md5(article) for article in articles] == [md5(b"a"), md5(b"")]


MB = 1024 * 1024


@pytest.mark.parametrize(
    ("sizes", "block", "parts"),
    [
        ([], 1.0, []),
        ([MB, 1], 1.0, [[0], [1]]),
        ([MB - 1, 1, 1], 1.0, [[0, 1], [2]]),
        ([1, 3 * MB, 1, 1], 1.0, [[0], [1], [2, 3]]),
        ([0, 0, MB], 1.0, [[0, 1, 2]]),
    ],
)
def test_files_are_packed_by_raw_size_as_in_do_gather(sizes: list[int], block: float, parts: list[list[int]]) -> None:
    assert chain.pack_shards(sizes, block) == parts


def test_a_first_file_larger_than_a_part_is_refused() -> None:
    with pytest.raises(UnusableInputError, match="larger parts"):
        chain.pack_shards([MB + 1], 1.0)


@hypothesis.given(trains=st.lists(TEXT, max_size=4))
@tries(500)
def test_parts_are_gathered_as_in_do_gather(trains: list[str]) -> None:
    expected = ""
    try:
        for train in trains:
            content = "".join(read_in_text_mode(train.encode(), "utf-8-sig"))
            if content[-1] == content[-2] and content[-1] == "\n":
                content = content[:-1]
            expected += content
    except IndexError:
        with pytest.raises(UnusableInputError, match="wiki_07 has no article left"):
            [chain.gather(train.encode(), "wiki_07") for train in trains]
        return
    assert b"".join(chain.gather(train.encode()) for train in trains) == expected.encode()


@pytest.mark.parametrize("step", [chain.remove_doc_tags, chain.gather])
def test_text_that_is_not_utf8_is_refused(step: Callable[[bytes, str], bytes]) -> None:
    with pytest.raises(UnusableInputError, match="wiki_07 is not valid UTF-8 at byte 2"):
        step(b"ab\xff", "wiki_07")
