"""The commands of the how-tos in docs/ run, and print what the pages say; tables and schemas fit the program."""

import contextlib
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from command_runs.commands import DUMP, VOCAB
from conftest import ROOT
from how_tos import pattern, run_new_language, run_page
from reporting.read_pages import ReadPage

from maskmill.kernels import cache, compiler
from pipelines.commands import cli

pytestmark = pytest.mark.builds

PAGES = (
    "getting-started.md",
    "languages.md",
    "objectives.md",
    "sources.md",
    "estimate.md",
    "loading.md",
    "spans.md",
    "inspect.md",
    "verify.md",
    "watch.md",
    "lineage.md",
    "runners.md",
    "events.md",
    "terminal.md",
    "releases.md",
    "report.md",
    "kernels.md",
    "stability.md",
    "stores.md",
    "troubleshooting.md",
    "migration.md",
    "mlperf.md",
    "use-the-steps.md",
    "training.md",
    "write-a-step.md",
    "test-your-pipeline.md",
    "python.md",
)


@pytest.fixture(scope="module", autouse=True)
def _no_command_compiles_what_a_warm_up_compiles() -> Iterator[None]:
    """Fails if a command made machine code of our kernels, after all of it was made."""

    def code() -> set[str]:
        found = {path.name for path in cache.user_directory().glob("*.machine-code")}
        # The test of this kernel, which may run beside these, compiles it alone.
        alone = "maskmill.inputs.kernels.bzip2.checksum-"
        return {name for name in found if name.startswith("maskmill.") and not name.startswith(alone)}

    compiler.prepare()
    before = code()
    yield
    assert code() == before


@pytest.mark.parametrize("name", PAGES)
def test_the_page_prints_what_the_commands_print(name: str, tmp_path: Path) -> None:
    run_page(name, tmp_path)


def test_a_new_language_in_five_commands(tmp_path: Path) -> None:
    run_new_language(tmp_path)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What the README's demo prints, and the folder of its data set."""
    folder = tmp_path_factory.mktemp("demo")
    for name in ("examples", "tests"):
        (folder / name).symlink_to(ROOT / name)
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        assert cli.main(["build", "examples/demo.yaml"]) == 0
    return printed.getvalue(), folder / "demo"


def test_the_readme_says_what_the_demo_prints(demo: tuple[str, Path]) -> None:
    said = re.search(r"The demo prints:\n\n```text\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert said
    assert re.search(pattern(said[1].splitlines()), demo[0]), demo[0]


def test_readers_questions_are_answered_by_the_report_alone(demo: tuple[str, Path]) -> None:
    printed, output = demo
    assert re.search(r"^report:  .*report\.html \(\d+ checks, nothing wrong\)$", printed, re.MULTILINE)
    page = ReadPage((output / "report.html").read_text())
    table = (ROOT / "docs" / "report.md").read_text().partition("## Find the first answers")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+\?) \| (.+) \|$", table, re.MULTILINE)
    assert len(rows) == 8
    for question, answer in rows:
        assert question in page.text
        assert answer in page.text


def test_the_schema_fits_the_manifests_of_every_stage_and_format(tmp_path: Path) -> None:
    schema = json.loads((ROOT / "docs" / "manifest.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    text, made = tmp_path / "text", [f"--vocab_file={VOCAB}", "--dupe_factor=1", "--max_seq_length=128", "--quiet"]
    assert cli.main(["extract", f"--input={DUMP}", f"--output={text}", "--num_eval_articles=7", "--quiet"]) == 0
    assert cli.main(["vocabulary", f"--input={text}", f"--output={tmp_path / 'vocabulary'}", "--size=500"]) == 0
    variants = (
        ("tfrecord",), ("parquet",), ("mds", "--objective=mlm", "--pack"), ("spans", "--objective=mlm"),
        ("tfrecord", "--bins=4"), ("parquet", "--objective=blocks", "--dynamic_masking"),
    )  # fmt: skip
    for number, (format, *more) in enumerate(variants):
        output = f"--output={tmp_path / str(number)}"
        assert cli.main(["examples", f"--input={text}", output, f"--format={format}", *made, *more]) == 0
    (tmp_path / "build.yaml").write_text(
        f"output: {tmp_path}/build\nreport: none\nextract: {{from: {text}}}\n"
        f"examples: {{vocab_file: {VOCAB}, dupe_factor: 1}}\neval: {{num_examples_to_pick: 10}}\n"
    )
    assert cli.main(["build", str(tmp_path / "build.yaml"), "--quiet"]) == 0
    found = [json.loads(path.read_text("utf-8")) for path in tmp_path.rglob("manifest.json")]
    assert {manifest["stage"] for manifest in found} == set(schema["properties"]["stage"]["enum"])
    assert {manifest.get("format") for manifest in found} >= set(schema["properties"]["format"]["enum"])
    for manifest in found:
        jsonschema.validate(manifest, schema, jsonschema.Draft202012Validator)
        assert set(manifest) <= set(schema["properties"])


def test_every_variable_of_the_environment_is_on_the_page() -> None:
    page = (ROOT / "docs" / "reference-environment.md").read_text("utf-8")
    read = re.compile(r"""environ(?:\.\w+)?[\[(]\s*(?:"([A-Z_]+)"|(\w+))""")
    named: set[str] = set()
    for package in ("maskmill", "pipelines", "training", "transforms"):
        for path in (ROOT / package).rglob("*.py"):
            source = path.read_text("utf-8")
            for literal, constant in read.findall(source):
                value = re.search(rf'^{constant} = "([A-Z_]+)"', source, re.MULTILINE) if constant else None
                named |= {literal} if literal else {value[1]} if value else set()
    assert len(named) > 8
    assert [name for name in sorted(named) if f"`{name}" not in page] == []
