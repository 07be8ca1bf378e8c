"""Whole builds of plain function calls, without Beam: what `maskmill build` leaves in its output directory."""

import dataclasses
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from command_runs.commands import DUMP, VOCAB

from data_sets.shard_builds import cut_batches
from maskmill.example_shards.example_shards import ExampleShard, ExamplesSetup, pick_eval, write_example_shard
from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.masking.options import MaskingOptions
from maskmill.records.options import FormatOptions
from maskmill.storage.manifest import MANIFEST
from maskmill.text.shards import TextShard
from maskmill.text.text_files import describe_text_shard
from maskmill.text_shards.fragments import extract_batch
from maskmill.text_shards.options import ExtractionOptions, SplitOptions
from maskmill.text_shards.planning import assemble_text_shard, plan_text_shards
from pipelines.settings.stage_options import EvalOptions, ExamplesOptions, ExtractOptions
from pipelines.stages.eval_stage import EvalStage
from pipelines.stages.examples_stage import ExamplesStage
from pipelines.stages.extract_stage import ExtractStage

PICKED = 40
_UNIT_BYTES = 1 << 20
_OPTIONS = {"masking": MaskingOptions, "objective": ObjectiveOptions, "format": FormatOptions}


def examples_options(text: Path, output: Path, **options: Any) -> ExamplesOptions:
    """The options of `maskmill examples`, with the defaults that depend on each other, as the command line fills them.

    Rows have up to 64 pieces and 10 masks, and documents are used twice, unless they say otherwise.
    """
    small = {"max_seq_length": 64}
    if not options.get("dynamic_masking"):
        small["dupe_factor"] = 2
    if options.get("objective", "nsp") == "nsp":
        small["max_predictions_per_seq"] = 10
    chosen = {**ExamplesOptions.completed({**small, **options})}
    if "tokenizer_file" not in chosen:
        chosen.setdefault("vocab_file", str(VOCAB))
    nested = {
        name: kind(**{f.name: chosen.pop(f.name) for f in dataclasses.fields(kind) if f.name in chosen})
        for name, kind in _OPTIONS.items()
    }
    return ExamplesOptions(input=(str(text),), output=str(output), **nested, **chosen)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Made:
    """A build that was made.

    Attributes:
      root: its directory, with text/, examples/ and, where eval examples were picked, eval/.
      setup: what decided its examples.
    """

    root: Path
    setup: ExamplesSetup

    @property
    def format(self) -> str:
        """Of its examples."""
        return self.setup.format.format

    def copy(self, root: Path) -> "Made":
        """Copies the build, so that the copy can be damaged."""
        shutil.copytree(self.root, root)
        return dataclasses.replace(self, root=root)

    def text_shards(self) -> list[TextShard]:
        """The text shards that lie in the build as they are now, in order: those for training first."""
        paths = [*sorted((self.root / "text").glob("part-*")), *sorted((self.root / "text").glob("eval*.txt"))]
        return [describe_text_shard((place, str(path))) for place, path in enumerate(paths)]

    def with_options(self, **options: Any) -> ExamplesSetup:
        """The build's setup with other options of masking and of the objective."""
        parts = {
            name: dataclasses.replace(
                getattr(self.setup, name),
                **{f.name: options.pop(f.name) for f in dataclasses.fields(kind) if f.name in options},
            )
            for name, kind in _OPTIONS.items()
        }
        return dataclasses.replace(self.setup, **parts, **options)


def extract_text(
    output: Path, *, dump: Path = DUMP, documents: int | None = 40, eval_articles: int = 4, shard_mb: float = 0.2
) -> Path:
    """Makes text shards of the first documents of a dump; returns their directory."""
    options = ExtractOptions(
        input=(str(dump),),
        output=str(output),
        extraction=ExtractionOptions(),
        split=SplitOptions(num_eval_articles=eval_articles, shard_size_mb=shard_mb, max_documents=documents),
    )
    stage = ExtractStage.check(options, is_first=True)
    stage.claim().write()
    extraction = options.decided_extraction
    fragments = [extract_batch(batch, extraction, stage.output) for batch in cut_batches(dump, _UNIT_BYTES)]
    plans = plan_text_shards(fragments, options.split.decided, extraction, stage.output)
    shards = [assemble_text_shard(plan, {"": extraction}, stage.output) for plan in plans]
    stage.close([*fragments, *shards])
    return output


def make_build(root: Path, text: Path, *, picked: int = 0, **options: Any) -> Made:
    """Copies text shards into a new build, and makes examples of them.

    Args:
      root: the directory of the build.
      text: a directory of text shards.
      picked: how many eval examples are picked into eval/; 0: there is no eval/.
      options: of ExamplesOptions and of what it nests.
    """
    shutil.copytree(text, root / "text")
    return make_examples(root, picked=picked, **options)


def make_examples(root: Path, *, picked: int = 0, **options: Any) -> Made:
    """Makes examples of the text shards of a build, see `make_build`."""
    text = root / "text" if (root / "text" / MANIFEST).exists() else root / "text" / "*"
    examples = ExamplesStage.check(examples_options(text, root / "examples", **options), is_first=True)
    examples.claim().write()
    made = Made(root=root, setup=examples.setup)
    shards = [write_example_shard(shard, examples.setup, examples.output) for shard in made.text_shards()]
    examples.close(shards)
    if picked:
        _pick(root, shards, picked)
    return made


def _pick(root: Path, shards: list[ExampleShard], count: int) -> None:
    options = EvalOptions(output=str(root / "eval"), num_examples_to_pick=count)
    stage = EvalStage.check(options, is_first=False)
    stage.claim().write()
    stage.close([pick_eval(shards, count, False, str(root / "eval" / "eval.tfrecord"))])


def files_made(made: Made, shard: TextShard, setup: ExamplesSetup, scratch: Path) -> Mapping[str, Path]:
    """Makes the examples of a text shard with another setup; returns the files by their names below examples/."""
    write_example_shard(shard, setup, str(scratch))
    return {
        str(path.relative_to(scratch)): path
        for path in sorted(scratch.rglob("*"))
        if path.is_file() and ".maskmill" not in path.parts
    }
