"""build: extract, examples and eval as one Beam graph, from one YAML file."""

from collections.abc import Mapping, Sequence
from typing import Any

import apache_beam as beam

from pipelines import environments, examples, extract, runner
from pipelines.build_options import EVAL_NAME, BuildOptions
from transforms.grouping import GroupAll
from transforms.records import example_shards
from transforms.records.example_shards import PickedExamples, PickEvalExamples
from transforms.shards.text_shards import TextShard
from transforms.storage import completions, files, manifest


def eval_directory(options: BuildOptions) -> str:
    """Where the build's picked eval examples go."""
    return files.join(options.output, "eval")


def has_text(shard: TextShard) -> bool:
    """Whether a shard holds anything to mask: the eval text of a small corpus can be empty."""
    return shard.size > 0


def note_examples(shards: Sequence[TextShard], output: str) -> None:
    """Notes for the progress display how many shards there are to mask."""
    size = sum(s.size for s in shards)
    completions.store(output, "plan", example_shards.KIND, {"pieces": len(shards), "bytes": size})


def close_eval(picked: PickedExamples | None, options: BuildOptions) -> None:
    """Writes the manifest of the eval examples, and sweeps what is left over."""
    directory = eval_directory(options)
    counts = {"available": 0, "picked": 0, "bytes": 0}
    if picked is not None:
        counts = {"available": picked.available, "picked": picked.picked, "bytes": picked.size}
    manifest.write_manifest(
        directory,
        stage="eval",
        parameters={"num_examples_to_pick": options.eval.num_examples_to_pick},
        inputs=[{"path": path, "sha256": sha256} for path, sha256 in picked.inputs.items()] if picked else [],
        shards=[
            {
                "name": files.base_name(picked.path),
                "kind": "eval",
                "bytes": picked.size,
                "sha256": picked.sha256,
                "examples": picked.picked,
            }
        ]
        if picked
        else [],
        counts={"eval": counts},
    )
    manifest.sweep(directory, keep=[EVAL_NAME] if picked else [], patterns=("*.tfrecord",), records={})


def run(options: BuildOptions, beam_arguments: Sequence[str] = ()) -> Mapping[str, Any]:
    """Runs all stages as one graph, and returns the manifest of each by its name (none where nothing was run)."""
    masked = options.examples
    setup = examples.examples_setup(masked)
    stage, input_bytes = extract.make_stage(options.extract)
    paths = (*options.extract.input, masked.vocab_file, options.output)
    beam_options = runner.pipeline_options(beam_arguments, input_bytes=input_bytes, paths=paths)
    directory = eval_directory(options)
    if not environments.is_dry_run(beam_options):
        extract.claim(options.extract)
        examples.claim(masked)
        manifest.prepare_output(directory, "eval", {"num_examples_to_pick": options.eval.num_examples_to_pick})

    def build_graph(pipeline: beam.Pipeline) -> None:
        texts = (
            pipeline
            | "Patterns" >> beam.Create([options.extract.input])
            | "Extract" >> stage
            | "HasText" >> beam.Filter(has_text)
        )
        _ = texts | "AllTexts" >> GroupAll() | "Note" >> beam.Map(note_examples, masked.output)
        shards = texts | "Examples" >> examples.MakeExamples(options=masked, setup=setup)
        pick = PickEvalExamples(
            wanted=options.eval.num_examples_to_pick,
            strict=options.compat != "none",
            output=files.join(directory, EVAL_NAME),
        )
        _ = shards | "PickEval" >> pick | "CloseEval" >> beam.Map(close_eval, options)

    stages = extract.stages(options.extract.output) + examples.stages(masked.output)
    if not runner.run(build_graph, beam_options, stages):
        return {}
    directories = {"extract": options.extract.output, "examples": masked.output, "eval": directory}
    return {name: manifest.read_manifest(path) for name, path in directories.items()}
