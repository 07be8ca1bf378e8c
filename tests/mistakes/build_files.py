"""Mistakes in the YAML file of a build, and in the flags that go with it."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

from made_up import dump_files

from mistakes.table import Mistake

GOOD = """output: build
extract:
  input: dump.xml
  num_eval_articles: 1
examples:
  vocab_file: vocab.txt
"""


def row(name: str, text: str | bytes, says: str, flags: str = "") -> Mistake:
    content = text if isinstance(text, bytes) else text.encode()
    return Mistake(f"yaml-{name}", f"build b.yaml {flags}", says, files={"b.yaml": content})


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


def added(name: str, line: str, says: str, section: str = "examples") -> Mistake:
    """A good build with one more line in a section."""
    return row(name, changed(f"{section}:\n", f"{section}:\n  {line}\n"), says)


def demo(name: str, arguments: str, says: str, **more: object) -> Mistake:
    return Mistake(f"build-{name}", f"build {arguments}", says, **more)  # type: ignore[arg-type]


YAML = [
    row("empty", "", r"b\.yaml: a build is a mapping of sections"),
    row("a-word", "build\n", r"b\.yaml: a build is a mapping of sections"),
    row("tabs", "output: build\nextract:\n\tinput: dump.xml\n", r"line 3: this is not YAML .*indent with spaces"),
    row("unclosed-quote", changed("dump.xml", "'dump.xml"), r"b\.yaml, line \d+: this is not YAML"),
    row("two-documents", f"{GOOD}---\n{GOOD}", r"line 7: a second document begins here, and a file holds one"),
    row("key-twice", f"{GOOD}  vocab_file: other.txt\n", r"line 7: the key 'vocab_file' was given in line 6 already"),
    row("latin-1", changed("dump.xml", "d\xfcmp.xml").encode("latin-1"), r"line 3: this is not UTF-8 text"),
    row("binary", bytes(range(1, 9)), r"line 1: this is not YAML \(it has the control character U\+0001\)"),
    row("nul-in-a-name", changed("dump.xml", '"a\\0b"'), r"has a NUL character"),
    row("half-a-character", changed("dump.xml", '"a\\ud800b"'), r"is not UTF-8"),
    row("deep", "[" * 5000, r"line 1: this is nested deeper than any build"),
    row("deep-mappings", "".join(f"{' ' * k}a:\n" for k in range(100)), r"this is nested deeper than any build"),
    row("laughs", "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", r"line 2: an alias can only stand for a single value"),
    row("alias-of-itself", "a: &a [*a]\n", r"line 1: an alias can only stand for a single value"),
    row("python-object", changed("dump.xml", "!!python/name:os.system"), r"line 3: the tag !!python/name:os.system"),
    row("date-tag", changed("dump.xml", "!!timestamp 2020-01-01"), r"line 3: the tag !!timestamp"),
    row("list-as-a-key", "? [a]\n: 1\n", r"line 1: a list or a mapping cannot be a key"),
    row("number-of-5000-digits", changed(": 1\n", f": {'9' * 5000}\n"), r"line 4: '99999\d*' is no such number"),
    row("too-long", "# " + "x" * 200_000, r"this file is longer than any build"),
    demo("of-a-dump", "dump.xml", r"dump\.xml"),
    demo("of-a-folder", ".", r"\.: this input cannot be read \(it is a directory, where a file is meant\)"),
    demo("of-no-file", "demo.yml", r"demo\.yml: this input does not exist"),
    demo("of-nothing", "", r"CONFIG\.yaml is missing"),
    demo(
        "of-a-link-to-itself",
        "loop.yaml",
        r"loop\.yaml: this input cannot be read \(its links lead in a circle; delete one of them",
        files={"loop.yaml": lambda path: path.symlink_to(path.name)},
    ),
    demo("of-two-files", "demo.yaml other.yaml", r"other\.yaml: a build has one YAML file"),
]

VALUES = [
    row("section-misspelt", GOOD.replace("extract", "extrakt"), r"line 2: there is no section 'extrakt'; did you mean"),
    row("number-as-section", f"{GOOD}1: x\n", r"line 7: there is no section 1"),
    row("option-at-the-top", f"{GOOD}dupe_factor: 3\n", r"line 7: there is no section 'dupe_factor'"),
    row("no-output", changed("output: build\n", ""), r"output is missing: directory of the build"),
    row("null-output", changed(": build", ":"), r"line 1: output is missing"),
    row("empty-output", changed("build", "''"), r"line 1: output is empty"),
    row("output-a-number", changed("build", "2024"), r"line 1: output must be text, not 2024 \(int\); quote it"),
    row("no-input", changed("  input: dump.xml\n", ""), r"extract\.input is missing"),
    row("no-vocabulary", changed("vocab.txt", ""), r"b\.yaml: examples: --vocab_file is missing"),
    row(
        "section-a-list",
        changed("examples:\n", "examples:\n  - x\nx:\n").replace("x:\n", "train:\n"),
        r"examples must be a m",
    ),
    row("section-a-word", "output: build\nextract: dump.xml\n", r"extract must be a mapping"),
    added("option-misspelt", "dupe_facter: 3", r"line 6: examples\.dupe_facter: there is no such option; did"),
    added("number-as-text", "dupe_factor: '3'", r"line 6: examples\.dupe_factor must be a whole number, not '3'"),
    added("number-with-a-fraction", "dupe_factor: 2.5", r"examples\.dupe_factor must be a whole number, not 2\.5"),
    added("with-underscores", "random_seed: 1_000", r"examples\.random_seed must be a whole number, not '1_000'"),
    added("yes", "do_lower_case: yes", r"examples\.do_lower_case must be true or false, not 'yes'"),
    added("one-as-true", "do_lower_case: 1", r"examples\.do_lower_case must be true or false, not 1"),
    added("null-for-a-number", "dupe_factor:", r"examples\.dupe_factor must be a whole number, not None"),
    added("nan", "masked_lm_prob: .nan", r"examples\.masked_lm_prob must be a finite number"),
    added("infinite", "masked_lm_prob: .inf", r"examples\.masked_lm_prob must be a finite number"),
    added("out-of-range", "masked_lm_prob: 15", r"b\.yaml: examples: masked_lm_prob 15"),
    added("more-than-64-bits", f"random_seed: {10**20}", r"examples\.random_seed must be .* at most 64 bits"),
    added("decided-input", "input: text", r"line 6: examples\.input: a build decides this itself; leave it out"),
    added("decided-output", "output: x", r"extract\.output: a build decides this itself", section="extract"),
    added("no-choice", "headings: some", r"extract\.headings must be one of drop, keep", section="extract"),
    added("text-for-a-list", "namespaces: 0", r"extract\.namespaces must be a list, not 0", section="extract"),
    added("list-of-text", "namespaces: [main]", r"extract\.namespaces must be a whole number", section="extract"),
    added("date-in-words", "dump_date: today", r"extract: --dump_date is 'today'", section="extract"),
    added("date-as-a-number", "dump_date: 20200131", r"extract\.dump_date must be text, not 2020", section="extract"),
    added("mapping-as-input", "id_column: {a: b}", r"extract\.id_column must be text", section="extract"),
    row("pick-negative", f"{GOOD}eval:\n  num_examples_to_pick: -5\n", r"--num_examples_to_pick must be 1 or more"),
    row("compat-unknown", f"compat: bert\n{GOOD}", r"line 1: compat must be one of none, mlperf, google"),
    row("no-such-input", changed("dump.xml", "no.xml"), r"no\.xml: this input does not exist"),
    row("no-such-vocabulary", changed("vocab.txt", "no.txt"), r"no\.txt: this input does not exist"),
    row("dump-as-vocabulary", changed("vocab.txt", "dump.xml"), r"missing from this vocabulary"),
    row("bomb-of-a-rate", f"{GOOD}train:\n  preset: tiny\n  learning_rate: fast\n", r"learning_rate must be a number"),
    row("no-model", f"{GOOD}train: {{}}\n", r"No model was named|Training needs"),
]

FLAGS = [
    demo(
        "flag-without-section", "demo.yaml --dupe_factor 3", r"has its section in front; give --examples\.dupe_factor"
    ),
    demo(
        "flag-of-two-sections",
        "demo.yaml --max_seq_length 64",
        r"give --examples\.max_seq_length or --train\.max_seq_length",
    ),
    demo("flag-misspelt", "demo.yaml --examples.dupe_facter 3", r"did you mean --examples\.dupe_factor"),
    demo("section-misspelt", "demo.yaml --example.dupe_factor 3", r"did you mean --examples\.dupe_factor"),
    demo(
        "value-of-a-flag", "demo.yaml --examples.dupe_factor three", r"--examples\.dupe_factor must be a whole number"
    ),
    demo("value-out-of-range", "demo.yaml --examples.dupe_factor 0", r"demo\.yaml: examples: dupe_factor 0"),
    demo("output-by-flag", "demo.yaml --output=", r"--output is empty"),
    demo("input-by-flag", "demo.yaml --extract.input no.xml", r"no\.xml: this input does not exist"),
    demo("bad-file-and-print", "--print_config no.yaml", r"no\.yaml: this input does not exist"),
]

TEXTS = """output: build
extract: {from: part-00000-of-00001}
examples:
  vocab_file: vocab.txt
  max_seq_length: 32
  max_predictions_per_seq: 5
"""

MIX = """output: build
sources:
  wiki: {input: dump.xml, weight: 2}
  book: {input: book.txt, weight: 1}
extract: {num_eval_articles: 1}
examples: {vocab_file: vocab.txt}
"""


def texts(
    name: str, old: str, new: str, says: str, flags: str = "", **more: bytes | Callable[[Path], object]
) -> Mistake:
    """A build from text shards that exist, with a mistake in it."""
    assert old in TEXTS
    files: dict[str, bytes | Callable[[Path], object]] = {"b.yaml": TEXTS.replace(old, new).encode(), **more}
    return Mistake(f"texts-{name}", f"build b.yaml {flags}", says, files=files)


def mix(name: str, old: str, new: str, says: str, flags: str = "", **more: bytes | Callable[[Path], object]) -> Mistake:
    """A build that mixes sources, with a mistake in it."""
    assert old in MIX
    files: dict[str, bytes | Callable[[Path], object]] = {"b.yaml": MIX.replace(old, new).encode(), **more}
    return Mistake(f"sources-{name}", f"build b.yaml {flags}", says, files=files)


def in_the_run(name: str, old: str, new: str, says: str, **more: bytes | Callable[[Path], object]) -> Mistake:
    """As `mix`, with a mistake that only the run can find."""
    return dataclasses.replace(mix(name, old, new, says, **more), leaves=("build",))


def texts_of(compat: str) -> bytes:
    """The manifest of an extraction."""
    return json.dumps(
        {
            "stage": "extract",
            "parameters": {"compat": compat},
            "inputs": [],
            "counts": {},
            "shards": [{"name": "part-00000-of-00001", "bytes": 9}],
        }
    ).encode()


ONE_LINE = b"A town.\n\n"

FROM = [
    texts(
        "beside-others", "from:", "keep_titles: true, from:", r"line 2: extract\.keep_titles: no other option .* from"
    ),
    texts("beside-an-input", "{from:", "{input: x, from:", r"line 2: extract\.input: no other option of extract goes"),
    texts(
        "beside-a-flag", "output", "output", r"--extract\.max_documents: no other option", "--extract.max_documents 3"
    ),
    texts("missing", "part-", "nowhere/part-", r"nowhere/part-\S+: this input does not exist"),
    texts("a-dump", "part-00000-of-00001", "dump.xml", r"dump\.xml: this looks like .*, not like a text shard"),
    texts("a-folder", "part-00000-of-00001", ".", r"\.: this input is a directory; name its files"),
    texts("a-number", "part-00000-of-00001", "7", r"line 2: extract\.from must be a list, not 7"),
    texts("an-empty-list", "part-00000-of-00001", "[]", r"line 2: extract\.from is empty"),
    texts("an-empty-name", "part-00000-of-00001", "['']", r"extract\.from is empty"),
    texts("misspelt", "from:", "form:", r"line 2: extract\.form: there is no such option"),
    texts(
        "of-a-build",
        "part-00000-of-00001",
        "old",
        r"old: this is the directory of a build; name its text, old/text",
        **{"old/text/manifest.json": texts_of("none"), "old/text/part-00000-of-00001": ONE_LINE},
    ),
    texts(
        "unfinished",
        "part-00000-of-00001",
        "text",
        r"text: the run into this directory is not finished",
        **{"text/.maskmill/parameters.json": b"{}", "text/part-00000-of-00001": ONE_LINE},
    ),
    texts(
        "other-compat",
        "part-00000-of-00001",
        "text",
        r"text was extracted with compat none, and the build has compat goo",
        "--compat google",
        **{"text/manifest.json": texts_of("none"), "text/part-00000-of-00001": ONE_LINE},
    ),
    texts(
        "with-mlperf",
        "part-00000-of-00001",
        "text",
        r"extracted with compat google, and the build has compat mlperf",
        "--compat mlperf",
        **{"text/manifest.json": texts_of("google"), "text/part-00000-of-00001": ONE_LINE},
    ),
    texts(
        "with-sources",
        "extract:",
        "sources: {a: {input: book.txt}}\nextract:",
        r"line 3: extract\.from: with sources each source names its own input",
    ),
    Mistake("extract-from", "extract --from text --output x", r"--from: there is no such flag"),
]

SOURCES = [
    mix("a-list", "  wiki:", "  - wiki:", r"this is not YAML|must be a mapping"),
    mix("empty", MIX[MIX.index("  wiki") : MIX.index("extract")], "", r"line 2: sources must be a mapping from each"),
    mix("a-word", "{input: book.txt, weight: 1}", "book.txt", r"sources\.book must be a mapping of options"),
    mix("name-with-a-slash", "book:", "a/b:", r"line 4: 'a/b' cannot name a source"),
    mix("name-a-number", "book:", "2020:", r"line 4: 2020 cannot name a source"),
    mix("no-input", "input: book.txt, ", "", r"sources\.book\.input is missing"),
    mix("hot", "{num_eval", "{temperature: 2, num_eval", r"temperature must be 0 \(equal shares\) to 1 .* not 2"),
    mix(
        "two-temperatures",
        "weight: 2}",
        "weight: 2, temperature: 0.7}",
        r"sources\.wiki\.temperature is 0\.7, and that of book is None; the sources have one in common",
    ),
    mix("missing-input", "book.txt", "no.txt", r"sources\.book: no\.txt: this input does not exist"),
    mix("empty-glob", "book.txt", "'*.none'", r"sources\.book: \*\.none: this input matches no file"),
    mix("empty-file", "book.txt", "none.txt", r"sources\.book: none\.txt: this input is empty", **{"none.txt": b""}),
    mix("negative-weight", "weight: 1", "weight: -1", r"sources\.book: weight must be 0 or more, not -1"),
    mix("weight-in-words", "weight: 1", "weight: much", r"line 4: sources\.book\.weight must be a number, not 'much'"),
    mix("infinite-weight", "weight: 1", "weight: .inf", r"sources\.book\.weight must be a finite number"),
    mix("some-weights", ", weight: 1", "", r"sources\.book\.weight is missing, and other sources have one"),
    mix(
        "weights-of-nothing",
        MIX[MIX.index("  wiki") : MIX.index("extract")],
        "  wiki: {input: dump.xml, weight: 0}\n  book: {input: book.txt, weight: 0.0}\n",
        r"sources: the weights sum to 0",
    ),
    mix(
        "half-an-epoch",
        "weight: 1",
        "weight: 1, max_epochs: 0.5",
        r"sources\.book: max_epochs must be 1 to 1000, not 0\.5",
    ),
    mix("endless-epochs", "weight: 1", "weight: 1, max_epochs: 1e9", r"max_epochs must be 1 to 1000, not 1e\+09"),
    mix(
        "mlperf",
        "output: build",
        "output: build\ncompat: mlperf",
        r"sources: --compat mlperf reproduces a data set of on",
    ),
    mix(
        "input-of-extract",
        "{num_eval",
        "{input: dump.xml, num_eval",
        r"line 5: extract\.input: with sources each source",
    ),
    mix("input-by-flag", "output", "output", r"--extract\.input: with sources each source", "--extract.input dump.xml"),
    mix("weight-in-extract", "{num_eval", "{weight: 1, num_eval", r"line 5: extract\.weight: there is no such option"),
    mix("misspelt-in-extract", "num_eval_articles", "num_eval_artikles", r"did you mean num_eval_articles"),
    mix(
        "misspelt",
        "weight: 1",
        "wieght: 1",
        r"line 4: sources\.book\.wieght: there is no such option; did you mean weight",
    ),
    mix(
        "seed-of-its-own",
        "weight: 1",
        "weight: 1, random_seed: 3",
        r"sources\.book\.random_seed: the sources have this in",
    ),
    mix(
        "output-of-its-own", "weight: 1", "weight: 1, output: x", r"sources\.book\.output: a build decides this itself"
    ),
    mix("default-of-the-wrong-type", "{num_eval", "{language: 3, num_eval", r"line 5: extract\.language must be text"),
    mix("extract-a-list", "{num_eval_articles: 1}", "[]", r"extract must be a mapping of options"),
    mix("one-file-twice", "book.txt", "./dump.xml", r"dump\.xml: sources\.book and sources\.wiki both take this input"),
    mix("templates-of-text", "weight: 1", "weight: 1, drop_stubs: true", r"sources\.book: --drop_stubs needs"),
    in_the_run(
        "everything-held-out", "num_eval_articles: 1", "num_eval_articles: 99", r"99 is more than the 12 articles"
    ),
    in_the_run(
        "a-source-held-out",
        "num_eval_articles: 1",
        "eval_fraction: 0.9999999",
        r"sources\.book: all 8 articles fall into",
    ),
    in_the_run(
        "without-documents",
        "book.txt",
        "none.xml",
        r"sources\.book: No article is left of none\.xml after the filters",
        **{"none.xml": dump_files.dump([dump_files.page(9, "Old", "#REDIRECT [[New]]", redirect="New")])},
    ),
    in_the_run(
        "equal-files",
        "book.txt, weight: 1}",
        "book.txt, weight: 1}\n  copy: {input: copy.txt, weight: 1}",
        r"copy\.txt of sources\.copy has the content of book\.txt of sources\.book",
        **{"copy.txt": lambda path: shutil.copyfile(path.parent / "book.txt", path)},
    ),
]

REPORT = Mistake(
    "yaml-directory-where-the-report-goes",
    "build b.yaml",
    r"^maskmill build: build/report\.html: this output is a directory; name a file\.$",
    files={"b.yaml": GOOD.encode(), "build/report.html": lambda path: path.mkdir(parents=True)},
)
MISTAKES = [REPORT, *YAML, *VALUES, *FLAGS, *FROM, *SOURCES]
