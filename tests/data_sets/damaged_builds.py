"""A small build of plain function calls, without Beam, and damage that is done to what lies below its `.maskmill`."""

import dataclasses
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

from command_runs.commands import VOCAB
from made_up import dump_files

from data_sets.shard_builds import article, cut_batches
from maskmill.example_shards.example_shards import write_example_shard
from maskmill.extraction.options import WikitextOptions
from maskmill.extraction.template_library import bind_library, collect_templates
from maskmill.inputs.units import UnitBatch
from maskmill.masking.options import MaskingOptions
from maskmill.storage import completions, outcomes
from maskmill.text_shards.fragments import extract_batch
from maskmill.text_shards.mlperf_shards import clean_batch, gather_part, plan_parts, raw_files_of_fragments
from maskmill.text_shards.options import ExtractionOptions, QualityOptions, SplitOptions
from maskmill.text_shards.planning import MEGABYTE, assemble_text_shard, plan_text_shards
from pipelines.settings.stage_options import ExamplesOptions, ExtractOptions
from pipelines.stages.examples_stage import ExamplesStage
from pipelines.stages.extract_stage import ExtractStage

UNIT_BYTES = 700

PAGES = [
    dump_files.page(90, "Template:Town", "It has {{{1}}} old bridges over its river.", namespace=10),
    dump_files.page(91, "Template:End", "The road ends here, by the sea.", namespace=10),
    *[
        article(
            i, f"Town {i} lies on a river. {{{{Town|{i}}}}}", f"The {i}th street is long and is not lit. {{{{End}}}}"
        )
        for i in range(1, 13)
    ],
    article(20, "Town 1 lies on a river. It has 1 old bridges over its river.", "A new sentence stands in this page."),
]

# What every run writes anew: what it announces, and what became of its pieces.
_OF_A_RUN = ("plan", "run", completions.REMADE)


def write_dump(folder: Path) -> Path:
    """Writes the dump of the build."""
    path = folder / "dump.xml"
    path.write_bytes(dump_files.dump(PAGES))
    return path


def extract_options(dump: Path, output: Path) -> ExtractOptions:
    """Templates expanded, duplicates dropped, several shards."""
    return ExtractOptions(
        input=(str(dump),),
        output=str(output),
        extraction=ExtractionOptions(
            wikitext=WikitextOptions(expand_templates=True),
            quality=QualityOptions(drop_duplicates=True, min_duplicate_words=5),
        ),
        split=SplitOptions(num_eval_articles=2, shard_size_mb=500 / MEGABYTE),
    )


def build(dump: Path, output: Path) -> list[str]:
    """Makes text shards and example shards below `output`, from what is there already where that fits.

    Returns what was made again, and why.
    """
    options = extract_options(dump, output / "text")
    stage = ExtractStage.check(options, is_first=True)
    before = outcomes.look(stage.output)
    stage.claim().write()
    batches = cut_batches(dump, UNIT_BYTES)
    fragments, shards = _make_text(batches, options)
    stage.close([*fragments, *shards])
    of_text = outcomes.conclude(stage.output, before)

    examples_options = ExamplesOptions(
        input=(stage.output,),
        output=str(output / "examples"),
        vocab_file=str(VOCAB),
        masking=MaskingOptions(dupe_factor=1, max_seq_length=32, max_predictions_per_seq=5),
    )
    examples = ExamplesStage.check(examples_options, is_first=True)
    before = outcomes.look(examples.output)
    examples.claim().write()
    examples.close([write_example_shard(shard, examples.setup, examples.output) for shard in shards])
    of_examples = outcomes.conclude(examples.output, before)
    return [line for outcome in (of_text, of_examples) if outcome is not None for line in outcome.remade]


def _make_text(batches: Sequence[UnitBatch], options: ExtractOptions):  # type: ignore[no-untyped-def]
    extraction, output = options.decided_extraction, options.output
    batches = bind_library([collect_templates(batch, extraction.reading, output) for batch in batches], output)
    fragments = [extract_batch(batch, extraction, output) for batch in batches]
    plans = plan_text_shards(fragments, options.split.decided, extraction, output)
    return fragments, [assemble_text_shard(plan, {"": extraction}, output) for plan in plans]


def build_half(dump: Path, output: Path) -> None:
    """A build that ends before its shards: the texts of its fragments are there."""
    options = extract_options(dump, output / "text")
    ExtractStage.check(options, is_first=True).claim().write()
    _make_text(cut_batches(dump, UNIT_BYTES), options)
    for path in (output / "text").iterdir():
        if path.is_file():
            path.unlink()
    shutil.rmtree(output / "text" / completions.WORK_DIRECTORY / "text")


def build_mlperf(dump: Path, output: Path) -> None:
    """Makes text shards of the reference's chain."""
    options = ExtractOptions(
        input=(str(dump),), output=str(output), compat="mlperf", split=SplitOptions(num_eval_articles=2)
    )
    stage = ExtractStage.check(options, is_first=True)
    stage.claim().write()
    extraction, mlperf = options.decided_extraction, options.decided.split
    fragments = [extract_batch(batch, extraction, stage.output) for batch in cut_batches(dump, UNIT_BYTES)]
    raw_files = raw_files_of_fragments(fragments, stage.output)
    cleaned = [clean_batch((raw,), mlperf, extraction, stage.output) for raw in raw_files]
    shards = [gather_part(plan, mlperf, extraction, stage.output) for plan in plan_parts(cleaned, mlperf, stage.output)]
    stage.close([*fragments, *cleaned, *shards])


def content(directory: Path) -> dict[str, bytes]:
    """The content of all files below a directory by relative path, but of what every run writes anew."""
    found = {}
    for path in sorted(directory.rglob("*")):
        relative = path.relative_to(directory)
        if path.is_file() and not any(kind in relative.parts for kind in _OF_A_RUN):
            found[str(relative)] = path.read_bytes()
    return found


def work_files(directory: Path) -> list[Path]:
    """All files below the work directories of a build, but those that every run writes anew."""
    return [directory / name for name in content(directory) if completions.WORK_DIRECTORY in Path(name).parts]


@dataclasses.dataclass(frozen=True)
class Damage:
    """Something that happened to files: what it is called, and the files."""

    what: str
    paths: tuple[Path, ...]

    def __str__(self) -> str:
        return f"{self.what}: {', '.join(str(path) for path in self.paths)}"


def damage_one(paths: Sequence[Path], chance: random.Random) -> Damage:
    """Damages one of these files in one of the ways in which files are damaged."""
    path = chance.choice(paths)
    before = path.read_bytes()
    place = chance.randrange(max(1, len(before)))
    what = chance.choice(
        ["bit", "byte", "digit", "cut", "inserted", "left out", "empty", "lost", "zeros", "doubled", "text", "copied"]
    )
    if what == "lost":
        path.unlink()
        return Damage(what, (path,))
    if what == "copied":
        other = chance.choice([p for p in paths if p.suffix == path.suffix])
        path.write_bytes(other.read_bytes())
        return Damage(what, (path, other))
    digits = [i for i, byte in enumerate(before) if chr(byte).isdigit()] or [place]
    digit = chance.choice(digits)
    after = {
        "bit": before[:place]
        + bytes(byte ^ 1 << chance.randrange(8) for byte in before[place : place + 1])
        + before[place + 1 :],
        "byte": before[:place] + chance.randbytes(1) + before[place + 1 :],
        "digit": before[:digit] + str(chance.randrange(10)).encode() + before[digit + 1 :],
        "cut": before[:place],
        "inserted": before[:place] + chance.randbytes(1) + before[place:],
        "left out": before[:place] + before[place + 1 :],
        "empty": b"",
        "zeros": bytes(len(before)),
        "doubled": before + before,
        "text": chance.choice([b"{}", b"[]", b"null", b"[" * 5000, b'{"record": {}}', b"\xff\xfe", b"NaN", b'"x"']),
    }[what]
    path.write_bytes(after)
    return Damage(f"{what} at {place}", (path,))
