"""Prints the CPU seconds of each step of `extract` on a dump, or of `examples` on a text shard, in this process.

    python -m benchmarks.steps DUMP|SHARD [--rounds 3]

A figure is the least of the rounds; a first one, which compiles the kernels, does not count. Examples have 512 pieces,
76 masks and dupe factor 10.
"""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.measure import cpu_seconds, in_turn, parser_of, print_machine, resolved
from maskmill.extraction.wikitext import WikitextExtractor, WikitextOptions
from maskmill.inputs.mediawiki import Page, read_header
from maskmill.inputs.options import ReadOptions
from maskmill.inputs.site import Site
from maskmill.inputs.sources import Source
from maskmill.inputs.units import plan_units, read_unit
from maskmill.masking.instances import make_instances
from maskmill.masking.options import MaskingOptions
from maskmill.records.drawing import rows_of_instances
from maskmill.records.examples import write_records, writing_of
from maskmill.records.plan import ExamplesPlan
from maskmill.sentences.punkt import SentenceSplitter
from maskmill.storage import files
from maskmill.tokenization.vocabulary import load_vocabulary
from maskmill.tokenization.wordpiece import Tokenizer

Steps = Mapping[str, Callable[[], object]]


def steps_of_extract(dump: str) -> Steps:
    """Return the steps from a bz2 dump to sentences; what one step gives, the next one gets."""

    def read_pages() -> list[Page]:
        items = (item for unit in plan_units(files.match(dump)) for item in read_unit(unit, ReadOptions()))
        return [item for item in items if isinstance(item, Page)]

    def unpack() -> None:
        with Source(dump, "bz2", 0, files.size(dump)) as source:
            while source.read():
                pass

    extractor = WikitextExtractor(Site.parse(read_header(dump)), WikitextOptions())
    splitter = SentenceSplitter()
    articles = [page for page in read_pages() if page.namespace == 0 and not extractor.is_redirect(page.text)]
    texts = [extractor.extract(page.title, page.text) for page in articles]
    return {
        "unpack": unpack,
        "unpack, XML to pages": read_pages,
        "wikitext": lambda: [extractor.extract(page.title, page.text) for page in articles],
        "sentences": lambda: [splitter.split_lines(text) for text in texts],
    }


def steps_of_examples(shard: str, vocab: str, scratch: str) -> Steps:
    """Return the steps from a text shard to a file of records."""
    options = MaskingOptions(max_seq_length=512, max_predictions_per_seq=76, dupe_factor=10)
    vocabulary, plan = load_vocabulary(vocab), ExamplesPlan(masking=options)
    text = Tokenizer(vocabulary).tokenize_files([shard])
    instances = make_instances(text, vocabulary, options)
    print(f"{len(text.ids):,} pieces, {len(instances):,} examples")

    def write(checksum: bool) -> None:
        rows = rows_of_instances(text, instances, vocabulary, plan)
        blocks = rows.lay_out(rows.order, options.max_seq_length)
        write_records(f"{scratch}/examples", blocks, writing_of(vocabulary, plan, indexes=True, checksum=checksum))

    return {
        "tokenize": lambda: Tokenizer(vocabulary).tokenize_files([shard]),
        "pair and mask": lambda: make_instances(text, vocabulary, options),
        "serialise and write": lambda: write(False),
        "the same with sha256": lambda: write(True),
    }


def main() -> None:
    """Print the machine, then a row for each step."""
    parser = parser_of(__doc__, rounds=3, scratch="the records, which take about 20 times the size of the shard")
    parser.add_argument("input", type=resolved, metavar="DUMP|SHARD")
    arguments = parser.parse_args()
    print_machine()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        path, is_dump = str(arguments.input), ".xml" in Path(arguments.input).name
        steps = steps_of_extract(path) if is_dump else steps_of_examples(path, str(arguments.vocab), scratch)
        timed = {name: lambda step=step: cpu_seconds(step) for name, step in steps.items()}
        for name, seconds in in_turn(1 + arguments.rounds, timed).items():
            print(f"{name:<22} {min(seconds[1:]):7.3f} s CPU", flush=True)


if __name__ == "__main__":
    main()
