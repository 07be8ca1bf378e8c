"""Small real cases of every step, whose results are digests: what the kernels give, compiled or as plain Python.

    [NUMBA_DISABLE_JIT=1] python tests/kernel_cases.py FOLDER

prints JSON: the digests of each case by name, the CPU seconds that it took, and the modules whose kernels ran (of plain
Python only). FOLDER is where the cases write; it must be empty. Cases go on from each other's files, in order.
"""

import bz2
import dataclasses
import gc
import gzip
import hashlib
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

# Kernels that ran are noted as they are made, so nothing that has kernels is imported before.
from maskmill.kernels import compiler, python_mode

_ran: set[str] = set()


def _noting(function: Any) -> Any:
    run = python_mode.in_python(function)

    def noting(*arguments: Any, **named: Any) -> Any:
        _ran.add(f"{function.__module__}.{function.__name__}")
        return run(*arguments, **named)

    return noting


compiler.in_python = _noting

import numpy as np
from command_runs.commands import DATA, DUMP, digests
from data_sets.whole_builds import extract_text, make_build
from made_up import dump_files

import maskmill
from maskmill.compat.wikiextractor import WikiExtractorCompat, format_document
from maskmill.extraction.options import WikitextOptions
from maskmill.extraction.wikitext import WikitextExtractor
from maskmill.inputs.options import ReadOptions
from maskmill.inputs.site import Site
from maskmill.inputs.units import plan_units, read_unit
from maskmill.kernels import crc32c
from maskmill.masking.options import MaskingOptions
from maskmill.records.tokenizing import load_tokenization
from maskmill.sentences import detection
from maskmill.sentences.punkt import SentenceSplitter
from maskmill.sentences.rules import rules_for
from maskmill.storage import files
from maskmill.text.text_files import describe_text_shard
from maskmill.text_shards.duplicate_search import hash_bands
from maskmill.text_shards.kernels import duplicates
from maskmill.verification.verifying import verify
from maskmill.vocabularies.counting import WordRules, count_shard
from maskmill.vocabularies.learning import learn_vocabulary
from maskmill.vocabularies.merging import merge_runs, plan_merges, read_words
from maskmill.vocabularies.options import VocabularyOptions
from maskmill.vocabularies.vocabulary_files import vocabulary_files

TITLES = ("Affirming the consequent", "Ada", "Answer", "Albert Gore")

TEXTS = DATA / "kernels"  # markup that these pages lack, and sentences of several languages
BUILDS: dict[str, dict[str, Any]] = {
    "nsp": {"picked": 3, "short_seq_prob": 0.3, "max_seq_length": 128, "special_tokens_mask": True},
    "nsp whole words parquet": {"mask_unit": "whole_word", "format": "parquet", "feature_names": "v2"},
    "nsp strict packed mds": {"strict_labels": True, "pack": True, "format": "mds", "special_tokens_mask": True},
    "mlm n-grams mds": {"objective": "mlm", "mask_unit": "ngram", "format": "mds", "bins": 2},
    "mlm packed parquet": {"objective": "mlm", "pack": True, "full_sentences": False, "format": "parquet"},
    "mlm dynamic": {"objective": "mlm", "dynamic_masking": True, "mask_unit": "span"},
    "blocks": {"objective": "blocks", "block_separators": "sep", "mask_unit": "word", "pack": False},
    "blocks of the recipe": {"objective": "blocks", "block_separators": "recipe", "block_remainder": "drop"},
    "sop packed": {"objective": "sop", "pack": True, "feature_names": "v2"},
    "blocks spans": {"objective": "blocks", "dynamic_masking": True, "format": "spans"},
    "sop mds": {"objective": "sop", "pack": True, "short_seq_prob": 0.5, "format": "mds"},
}
BPE_BUILD: dict[str, Any] = {"objective": "mlm", "dynamic_masking": True, "mask_unit": "word", "format": "parquet"}


def _digest(value: Any) -> str:
    """A digest of arrays, bytes, and anything that prints as what it is."""
    made = hashlib.sha256()
    if isinstance(value, np.ndarray):
        made.update(f"{value.dtype} {value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, bytes):
        made.update(value)
    else:
        made.update(repr(value).encode())
    return made.hexdigest()[:16]


def _files(folder: Path) -> dict[str, str]:
    return {name: digest[:16] for name, digest in digests(folder, manifests=False).items()}


class Cases:
    """The cases; each method gives its digests by name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        dump = bz2.decompress(DUMP.read_bytes()).decode()
        pages = {
            page.split("</title>")[0].split("<title>")[1]: page
            for page in re.findall(r"  <page>.*?</page>\n", dump, re.S)
        }
        self.header = dump[: dump.index("  <page>")]
        self.xml = (self.header + "".join(pages[title] for title in TITLES) + "</mediawiki>\n").encode()
        self.dump = folder / "dump.xml.bz2"
        self.dump.write_bytes(dump_files.tiny_blocks(4000)(self.xml))
        self.text = folder / "text"
        self.vocabulary = folder / "vocab.txt"
        self.tokenizer = folder / "tokenizer.json"

    def pages(self) -> dict[str, str]:
        """Pages of plain XML and of bzip2."""
        plain = self.folder / "dump.xml"
        odd = dump_files.page(7, "A & B", "&#x41;&#66; <b>c</b>").replace("&lt;b&gt;", "<![CDATA[<b>]]><!-- -->")
        plain.write_bytes(self.xml.replace(b"</mediawiki>", odd.encode() + b"</mediawiki>"))
        found = {}
        for path in (plain, self.dump):
            units = plan_units([files.FileInfo(path=str(path), size=path.stat().st_size)], unit_bytes=1500)
            found[path.name] = _digest([page for unit in units for page in read_unit(unit, ReadOptions())])
        return found

    def extraction(self) -> dict[str, str]:
        """A dump to text shards."""
        return _files(extract_text(self.text, dump=self.dump, documents=None, eval_articles=1))

    def wikitext(self) -> dict[str, str]:
        """Markup that the pages lack, in two languages and with other options."""
        templates = {b"unknown call": b"It says {{{1}}} {{#ifeq:a|a|[[so]]|no}}."}.get
        options = WikitextOptions(date="2010-01-02", headings="keep", lists="keep", report_templates=True)
        found = {}
        for language, more in (("en", {}), ("zh", {"lists": "drop"}), ("en", {"expand_templates": True})):
            header = self.header.replace('xml:lang="en"', f'xml:lang="{language}"')
            chosen = dataclasses.replace(options, **more)
            extractor = WikitextExtractor(Site.parse(header.encode()), chosen, templates)
            text = extractor.extract(b"Title", (TEXTS / "markup.txt").read_bytes())
            found[f"{language} {more}"] = _digest((text, extractor.take_template_counts()))
        return found

    def wikiextractor(self) -> dict[str, str]:
        """WikiExtractor's text of small pages, which must also be its own."""
        extractor = WikiExtractorCompat("2026-11-21")
        lines = gzip.decompress((DATA / "gold" / "wikiextractor" / "pages.jsonl.gz").read_bytes()).splitlines()
        texts = []
        for page in map(json.loads, lines[::40]):
            title = page["title"].encode()
            texts.append(format_document(1, "U", title, extractor.extract(title, page["wikitext"].encode())))
            if texts[-1].decode() != page["document"]:
                raise AssertionError(page["wikitext"])
        return {"documents": _digest(texts)}

    def sentences(self) -> dict[str, str]:
        """Sentences of several languages and scripts, and what language they are in."""
        found = {}
        for line in (TEXTS / "sentences.tsv").read_text().splitlines():
            code, text = line.split("\t")
            splitter = SentenceSplitter(rules_for(code))
            found[code] = _digest((splitter.split_lines(f"{text}\n{text}\n".encode()), splitter.split(text.encode())))
            language = detection.detect_language(text.encode()), detection.is_plainly_in(code, text.encode(), 64)
            found[f"language of {code}"] = _digest(language)
        return found

    def vocabularies(self) -> dict[str, str]:
        """Words are counted and merged, and vocabularies learnt."""
        shards = [describe_text_shard((n, str(path))) for n, path in enumerate(sorted(self.text.glob("part-*")))]
        found = {}
        for kind, output in (("wordpiece", self.vocabulary), ("bpe", self.tokenizer)):
            options = VocabularyOptions(kind=kind, size=400).decided
            work = self.folder / f"counts-{kind}"
            counted = [count_shard(shard, WordRules.of(options), str(work)) for shard in shards]
            merged = [merge_runs(plan, str(work)) for plan in plan_merges(counted)]
            learned = learn_vocabulary(read_words(merged, str(work)).words, options)
            made = vocabulary_files(learned, options)
            output.write_bytes(made[output.name])
            found |= {f"{kind} {name}": _digest(content) for name, content in made.items()}
        return found

    def tokenization(self) -> dict[str, str]:
        """Words that are not plain ASCII, in each tokenizer."""
        torture = (DATA / "gold" / "pretraining" / "torture.txt").read_bytes().splitlines(keepends=True)
        text = (
            b"".join([line for line in torture if len(line) < 300][:30])
            + "I'll say we've  gone.\n\nΟΔΥΣΣΕΥΣ\n世界。\n「世界」\nworld\n".encode()
        )
        found = {}
        for path, cased in ((self.vocabulary, False), (self.vocabulary, True), (self.tokenizer, False)):
            masking = MaskingOptions(do_lower_case=not cased)
            loaded = load_tokenization(str(path), masking, is_tokenizer=path == self.tokenizer)
            pieces = loaded.tokenizer().tokenize_bytes(text)
            found[f"{path.name} {cased}"] = _digest(
                [np.asarray(v).tolist() for v in vars(pieces).values() if v is not None]
            )
        return found

    def checksums(self) -> dict[str, str]:
        """A checksum of many lanes, which the small records lack."""
        return {"crc32c": _digest(int(crc32c.masked_crc32c(np.arange(2000, dtype=np.uint8), 3, 1990)))}

    def examples(self) -> dict[str, str]:
        """Every objective, every unit of masks, every format."""
        found = {}
        for name, options in BUILDS.items():
            made = make_build(self.folder / name, self.text, vocab_file=str(self.vocabulary), **options)
            found |= {f"{name} {file}": digest for file, digest in _files(made.root / "examples").items()}
        made = make_build(self.folder / "bpe", self.text, tokenizer_file=str(self.tokenizer), **BPE_BUILD)
        return found | {f"bpe {file}": digest for file, digest in _files(made.root / "examples").items()}

    def loading(self) -> dict[str, str]:
        """Reads all builds in batches, with masks drawn where none are stored."""
        found = {}
        for name in (*BUILDS, "bpe"):
            options = {"seed": 5, "tail": "pad", "features": "huggingface" if name == "nsp" else "google"}
            with maskmill.open(str(self.folder / name / "examples"), batch_size=4, **options) as loader:
                for batch in _first(loader, 3):
                    for feature, values in sorted(batch.items()):
                        found[f"{name} {feature}"] = _digest(
                            (found.get(f"{name} {feature}"), np.asarray(values).tolist())
                        )
        return found

    def duplicates(self) -> dict[str, str]:
        """Groups of paragraphs, and those near another one, by MinHashes of which many are equal."""
        random = np.random.default_rng(3)
        near = random.integers(0, 3, (60, 8), np.uint32)
        bands = np.array([[0, 2], [2, 4]])
        states, members, labels = np.zeros(60, np.uint8), np.zeros(60, np.uint8), np.empty(60, np.uint16)
        firsts, ranks, links = np.full(128, -1, np.int32), np.zeros(4, np.uint32), np.empty((60, 2), np.uint32)
        hashes = hash_bands(near, bands)[:, 0].copy()
        links = links[: duplicates.link_equal(hashes, np.arange(60, dtype=np.uint32), firsts, False, links)]
        links = np.concatenate([links, random.integers(0, 60, (40, 2), np.uint32)])
        links.flags.writeable = False  # as they are read from files
        duplicates.mark(states, links)
        parents = np.arange(duplicates.rank(states, ranks), dtype=np.uint32)
        duplicates.unite(parents, states, ranks, links)
        duplicates.count_members(parents, states, members)
        duplicates.label(parents, members, states, 0, 3, labels)
        chains, kept = (np.full(64, -1, np.int64), np.zeros(120, np.int64)), np.zeros((60, 8), np.uint32)
        is_near = np.empty(60, bool)
        count = duplicates.find_near(near, hash_bands(near, bands), bands, 0.75, chains, kept, 0, is_near)
        return {"labels": _digest(labels), "near": _digest(is_near), "kept": _digest(kept[:count])}

    def verification(self) -> dict[str, str]:
        """Verifies all builds: rows, text, shards made again."""
        found = {}
        for name in (*BUILDS, "bpe"):
            if name == "mlm dynamic":
                _damage(next((self.folder / name / "examples").glob("part-*.tfrecord")))
            paths = [self.folder / name / "examples", *([self.text] if name == "nsp" else [])]
            found[name] = self._told(verify([str(path) for path in paths]))
        return found

    def _told(self, verification: Any) -> str:
        return str([(f.check, f.severity, f.message, f.count) for f in verification.findings]).replace(
            str(self.folder), ""
        )


def _damage(path: Path) -> None:
    """Changes a piece of the first record, and its checksum to fit."""
    content = np.frombuffer(path.read_bytes(), np.uint8).copy()
    length = int(content[:8].view(np.int64)[0])
    content[12 + length // 3] ^= 1
    content[12 + length : 16 + length] = np.array([crc32c.masked_crc32c(content, 12, 12 + length)], np.uint32).view(
        np.uint8
    )
    path.write_bytes(content.tobytes())


def _first(items: Any, count: int) -> Iterator[Any]:
    for _, item in zip(range(count), items, strict=False):
        yield item


ALL = (
    *("pages", "extraction", "wikitext", "wikiextractor", "sentences", "vocabularies", "tokenization", "checksums"),
    *("examples", "duplicates", "loading", "verification"),
)


def main(folder: Path) -> None:
    """Runs the cases and prints what they give."""
    gc.disable()  # the collector would take a sixth of the time that numba compiles
    cases, results, seconds = Cases(folder), {}, {}
    for name in ALL:
        case: Callable[[], dict[str, str]] = getattr(cases, name)
        began = time.process_time()
        results[name] = case()
        seconds[name] = round(time.process_time() - began, 1)
    json.dump({"results": results, "seconds": seconds, "ran": sorted(_ran)}, sys.stdout, indent=1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
