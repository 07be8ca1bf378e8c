"""The MLPerf clean-up chain, against what the reference's own programs wrote."""

import gzip
import hashlib
from pathlib import Path

import pytest

from transforms import mlperf_cleanup as chain
from transforms.errors import UnusableInputError
from transforms.sentences import SentenceSplitter

GOLD = Path(__file__).parent / "data" / "gold"
RAW = [GOLD / "wikiextractor" / f"wiki_0{i}.gz" for i in range(3)]


def md5(text: bytes) -> str:
    return hashlib.md5(text).hexdigest()


def digests(name: str) -> dict[str, str]:
    lines = (GOLD / "cleanup" / name).read_text().splitlines()
    return {file: digest for digest, file in (line.split() for line in lines)}


def test_whole_chain_gives_every_intermediate_and_final_file_of_the_reference() -> None:
    splitter = SentenceSplitter(rules="nltk-3.4")
    raw = [gzip.decompress(path.read_bytes()) for path in RAW]
    found = {}
    separated = []
    for number, content in enumerate(raw):
        name = f"wiki_0{number}"
        untagged = chain.remove_doc_tags(content)
        cleaned = chain.clean_markup(untagged)
        sentences = chain.split_sentences(cleaned, splitter)
        split = chain.separate_eval(sentences, file_number=number, num_files=3, num_eval_articles=7)
        separated.append(split)
        for suffix, text in ((".1", untagged), (".2", cleaned), (".3", sentences), (".4", split.train)):
            found[name + suffix] = md5(text)
    assert found == digests("intermediate.md5")

    results = {}
    eval_txt, eval_md5 = chain.eval_set([article for split in separated for article in split.eval_articles])
    assert eval_txt == gzip.decompress((GOLD / "cleanup" / "eval.txt.gz").read_bytes())
    results["eval.txt"], results["eval.md5"] = md5(eval_txt), md5(eval_md5)
    for number, members in enumerate(chain.pack_shards([len(content) for content in raw], 1.5)):
        part = chain.gather([separated[member].train for member in members])
        results[f"part-{number:05d}-of-00500"] = md5(part)
    assert results == digests("results.md5")
