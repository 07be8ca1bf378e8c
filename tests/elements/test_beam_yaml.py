"""deploy/beam_yaml runs by Beam's own program, and its steps take what Beam YAML's transforms give."""

import importlib
import json
import re
from pathlib import Path

import apache_beam as beam
import pytest
import yaml
from apache_beam.yaml import main
from command_runs.commands import DUMP, VOCAB, digests
from conftest import ROOT

import transforms
from maskmill.errors import UnusableInputError
from pipelines import LocalRunner
from pipelines.commands import cli
from transforms import Article, MaskingOptions, ReadArticles, SplitSentences, WriteExamples, beam_yaml

pytestmark = pytest.mark.builds


def hide_years(article: Article) -> Article:
    return article._replace(text=re.sub("[12][0-9]{3}", "YEAR", article.text))


def test_the_pipeline_writes_what_the_same_steps_write_in_python(tmp_path: Path) -> None:
    values = {"dump": str(DUMP), "vocab": str(VOCAB), "output": str(tmp_path / "yaml")}
    file = f"--yaml_pipeline_file={ROOT / 'deploy' / 'beam_yaml' / 'dump-to-examples.yaml'}"
    main.run([file, f"--jinja_variables={json.dumps(values)}", "--runner=FnApiRunner"])
    masking = MaskingOptions(max_seq_length=64, max_predictions_per_seq=10)
    with beam.Pipeline(runner=LocalRunner(workers=0)) as pipeline:
        (
            (pipeline | ReadArticles(str(DUMP))).articles
            | beam.Filter(lambda article: len(article.text) > 2000)
            | beam.Map(hide_years)
            | SplitSentences("en")
            | WriteExamples(str(tmp_path / "python"), str(VOCAB), 2, masking)
        )
    written = digests(tmp_path / "yaml" / "examples", manifests=False)
    assert len(written) > 2
    assert written == digests(tmp_path / "python" / "examples", manifests=False)
    assert list((tmp_path / "yaml").glob("rejected-*"))


FILES = """
pipeline:
  transforms:
    - type: ExtractText
      input: []
      config: {{patterns: {dump}, output: {output}/text, num_eval_articles: 7}}
    - type: WriteExampleShards
      input: ExtractText
      config: {{output: {output}/examples, vocab_file: {vocab}, dupe_factor: 1}}
    - type: PickEvalExamples
      input: WriteExampleShards
      config: {{output: {output}/eval, num_examples_to_pick: 20}}
providers:
  - include: {root}/deploy/beam_yaml/maskmill-provider.yaml
"""


def test_the_steps_of_files_write_what_a_build_writes(tmp_path: Path) -> None:
    spec = FILES.format(dump=DUMP, output=tmp_path / "yaml", vocab=VOCAB, root=ROOT)
    main.run([f"--yaml_pipeline={spec}", "--runner=FnApiRunner"])
    build = tmp_path / "build.yaml"
    build.write_text(
        f"output: {tmp_path / 'build'}\nreport: off\nextract: {{input: {DUMP}, num_eval_articles: 7}}\n"
        f"examples: {{vocab_file: {VOCAB}, dupe_factor: 1}}\neval: {{num_examples_to_pick: 20}}\n"
    )
    assert cli.main(["build", str(build), "--workers=1"]) == 0
    made = digests(tmp_path / "yaml", manifests=False)
    assert len(made) > 4
    assert made == digests(tmp_path / "build", manifests=False)


@pytest.mark.parametrize(
    ("step", "row", "missing"),
    [
        (beam_yaml.split_sentences("en"), {"title": "A", "text": "B."}, "wiki, page_id, metadata"),
        (beam_yaml.write_text("out", 1), {"wiki": "w", "page_id": "1", "title": "A"}, "sentences, metadata"),
    ],
)
def test_rows_that_lack_a_field_are_refused(step: beam.PTransform, row: dict[str, str], missing: str) -> None:
    rows = beam.Pipeline(runner="FnApiRunner") | beam.Create([beam.Row(**row)])
    with pytest.raises(UnusableInputError, match=f"these lack {missing}: give MapToFields append: true"):
        rows | step


def test_what_the_provider_names_is_there() -> None:
    (provider,) = yaml.safe_load((ROOT / "deploy" / "beam_yaml" / "maskmill-provider.yaml").read_text())
    for name, place in provider["transforms"].items():
        module, _, function = place.rpartition(".")
        assert name in transforms.__all__
        assert callable(getattr(importlib.import_module(module), function)), place
