"""What `import maskmill` offers: it is complete, typed and documented, and every wrong type is one sentence."""

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import maskmill
from maskmill.loading.opened_sources import OpeningOptions
from maskmill.loading.options import LoaderOptions
from maskmill.loading.states import VERSION as STATE_VERSION
from maskmill.storage.completions import FORMAT_VERSIONS
from pipelines.building.events import SCHEMA_VERSION as EVENT_VERSION
from pipelines.commands.print_lineage import SCHEMA_VERSION as LINEAGE_VERSION

STABILITY = (ROOT / "docs" / "stability.md").read_text()
PUBLIC = [name for name in maskmill.__all__ if name != "__version__"]
FUNCTIONS = [name for name in PUBLIC if inspect.isfunction(getattr(maskmill, name))]

WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: maskmill.open(_any(5), batch_size=4), "maskmill.open: path is 5, an int; give a str or a PathLike."),
    (lambda: maskmill.open("data", batch_size=_any("4")), "maskmill.open: batch_size is '4', a str; give an int."),
    (lambda: maskmill.open("data", batch_size=True), "maskmill.open: batch_size is True, a bool; give an int."),
    (lambda: maskmill.open("data", batch_size=_any(4.0)), "maskmill.open: batch_size is 4.0, a float; give an int."),
    (lambda: maskmill.open("data", batch_size=4, shuffle=_any(1)),
     "maskmill.open: shuffle is 1, an int; give True or False."),
    (lambda: maskmill.open("data", batch_size=4, tail=_any("cut")),
     "tail is 'cut'; it must be one of drop, pad, repeat, carry."),
    (lambda: maskmill.open("data", batch_size=4, features=_any(None)),
     "maskmill.open: features is None; give one of google, v2, huggingface."),
    (lambda: maskmill.open("data", batch_size=4, split=_any("test")),
     "split is 'test'; it must be one of train, eval."),
    (lambda: maskmill.open("data", batch_size=4, vocab_file=_any(b"v")),
     "maskmill.open: vocab_file is b'v', a bytes; give a str, a PathLike or None."),
    (lambda: maskmill.open("data", **_any({"batchsize": 4})),
     "maskmill.open: there is no option batchsize; did you mean batch_size?"),
    (lambda: maskmill.open("data", **_any({})),
     "maskmill.open: missing a required argument: 'batch_size'; help(maskmill.open) says what it takes."),
    (lambda: maskmill.mix(_any("data"), batch_size=4),
     "maskmill.mix: sources is 'data', a str; give a list [a tuple (a str or a PathLike, a number), …]."),
    (lambda: maskmill.mix(_any(["data"]), batch_size=4),
     "maskmill.mix: sources[0] is 'data', a str; give a tuple (a str or a PathLike, a number)."),
    (lambda: maskmill.mix([("data", _any("3"))], batch_size=4),
     "maskmill.mix: sources[0] is ('data', '3'), a tuple; give a tuple (a str or a PathLike, a number)."),
    (lambda: maskmill.mix([("data", 1)], batch_size=4, max_repetitions=_any("2")),
     "maskmill.mix: max_repetitions is '2', a str; give a number, a list [a number or None, …] or None."),
    (lambda: maskmill.mix([], batch_size=4), "There is no data set to mix; name some, each with its weight."),
    (lambda: maskmill.verify(_any(3)),
     "maskmill.verify: paths is 3, an int; give a str, a PathLike or a list [a str or a PathLike, …]."),
    (lambda: maskmill.verify([]),
     "There is no path to verify; name the directory of a build or of a stage, or files."),
    (lambda: maskmill.verify("data", _any({"remake": 0})),
     "maskmill.verify: options is {'remake': 0}, a dict; give a VerifyOptions or None."),
    (lambda: maskmill.VerifyOptions(remake=_any("0")), "VerifyOptions: remake is '0', a str; give an int or None."),
    (lambda: maskmill.VerifyOptions(text=_any("data")),
     "VerifyOptions: text is 'data', a str; give a list [a str, …]."),
    (lambda: maskmill.VerifyOptions(split=_any("test")), "split is 'test'; it must be one of train, eval."),
    (lambda: maskmill.summarize(_any(3)), "maskmill.summarize: path is 3, an int; give a str or a PathLike."),
    (lambda: maskmill.open_examples("data", seed=_any("1")),
     "maskmill.open_examples: seed is '1', a str; give an int."),
    (lambda: maskmill.open_texts(_any(3)), "maskmill.open_texts: path is 3, an int; give a str or a PathLike."),
    (lambda: maskmill.read_checkpoint_header(_any(3)),
     "maskmill.read_checkpoint_header: path is 3, an int; give a str or a PathLike."),
    (lambda: maskmill.lineage_of(_any(3)), "maskmill.lineage_of: path is 3, an int; give a str or a PathLike."),
    (lambda: maskmill.build(_any(5)), "maskmill.build: config is 5, an int; give a str, a PathLike or a Mapping."),
    (lambda: maskmill.build({}, examples=[]), "maskmill.build: examples is [], a list; give a Mapping or None."),
    (lambda: maskmill.extract(input=5, output="text"),
     "maskmill.extract: input is 5, an int; give a str, a PathLike or a list [a str or a PathLike, …]."),
    (lambda: maskmill.vocabulary(input="text", output="out", size="4096"),
     "maskmill.vocabulary: size is '4096', a str; give an int or None."),
    (lambda: maskmill.examples(input="text", output="out", pack=1),
     "maskmill.examples: pack is 1, an int; give True or False."),
    (lambda: maskmill.create_pretraining_data(input_file="a", output_file="b", vocab_file=None),
     "maskmill.create_pretraining_data: vocab_file is None; give a str or a PathLike."),
    (lambda: maskmill.data_sets_with("data", _any("3")), "maskmill.data_sets_with: page is '3', a str; give an int."),
]  # fmt: skip


def _any(value: object) -> Any:
    """A value that mypy does not look at."""
    return value


@pytest.mark.parametrize(("call", "sentence"), WRONG, ids=[sentence[:60] for _, sentence in WRONG])
def test_a_wrong_argument_is_one_sentence(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(maskmill.UnusableInputError) as raised:
        call()
    assert str(raised.value) == sentence


def test_every_function_is_called_with_a_wrong_argument() -> None:
    sentences = " ".join(sentence for _, sentence in WRONG)
    assert [name for name in FUNCTIONS if f"maskmill.{name}: " not in sentences] == []


@pytest.mark.parametrize("name", maskmill.__all__)
def test_a_public_name_is_there_documented_and_on_the_page(name: str) -> None:
    value = getattr(maskmill, name)
    assert f"`{name}`" in STABILITY
    assert name in dir(maskmill)
    if name == "__version__":
        return
    assert value.__module__.startswith("maskmill.")
    doc = inspect.getdoc(value) or ""
    assert doc.partition("\n")[0].endswith((".", ":"))
    if name in FUNCTIONS:
        assert [part for part in ("Args:", "Raises:", "UnusableInputError") if part not in doc] == []
        parameters = inspect.signature(value).parameters.values()
        assert all(one.annotation is not Any and one.kind != one.VAR_KEYWORD for one in parameters)


def test_nothing_else_is_public() -> None:
    assert sorted(maskmill.__all__) == maskmill.__all__
    listed = {name for names in maskmill._HOMES.values() for name in names.split()}
    assert sorted(listed | {"__version__"}) == maskmill.__all__
    with pytest.raises(AttributeError, match="module 'maskmill' has no attribute 'opne'"):
        _any(maskmill).opne  # noqa: B018


@pytest.mark.parametrize("function", [maskmill.open, maskmill.mix])
def test_the_signatures_have_the_options_and_their_defaults(function: Callable[..., object]) -> None:
    parameters = inspect.signature(function).parameters
    for kind in (LoaderOptions, OpeningOptions):
        for name, option in inspect.signature(kind).parameters.items():
            assert parameters[name].default == option.default
            assert parameters[name].annotation in (option.annotation, str | os.PathLike[str] | None)


def test_the_page_has_the_versions_of_the_formats() -> None:
    formats = ", ".join(f"{name} {number}" for name, number in FORMAT_VERSIONS.items())
    for text in (formats, f"`version` {STATE_VERSION}", f"`schema_version` {LINEAGE_VERSION}"):
        assert text in STABILITY
    assert f"| events | `schema_version` {EVENT_VERSION} |" in STABILITY


def test_errors_and_a_path_are_enough_to_find_out_what_is_there(tmp_path: Path) -> None:
    with pytest.raises(maskmill.UnusableInputError, match="there is no such file or directory"):
        maskmill.summarize(tmp_path / "nothing")
    assert maskmill.lineage_of(tmp_path / "nothing") is None


PROGRAM = """
import maskmill
from maskmill import UnusableInputError, Verification, VerifyOptions

with maskmill.open("data", batch_size=256, features="huggingface", tail="pad") as data:
    for batch in data:
        print(batch["input_ids"].shape)
stats: maskmill.LoaderStats = data.stats()
mixed: maskmill.Loader = maskmill.mix([("data", 0.7), ("more", 0.3)], batch_size=256, max_repetitions=[4, None])
given: tuple[maskmill.Given, ...] = mixed.given(100)
try:
    found: Verification = maskmill.verify(["data"], VerifyOptions(remake=0))
    print([finding.message for finding in found.findings], found.is_right)
except UnusableInputError as error:
    print(error)
print(maskmill.summarize("data").as_dict())
examples = maskmill.open_examples("data", split="eval")
rows: list[maskmill.DecodedExample] = list(examples.search("word"))
with maskmill.open_texts("data") as texts:
    lines: list[tuple[str, ...]] = [document.lines for document in texts.search("word")]
lineage: maskmill.Lineage | None = maskmill.lineage_of("data")
holding: list[maskmill.HoldingDataSet] = maskmill.data_sets_with("builds", 12)
print(maskmill.read_checkpoint_header("step.safetensors").arrays)
made: maskmill.BuildResult = maskmill.build("build.yaml", output="trial", examples={"dupe_factor": 3}, progress=True)
stage: maskmill.StageResult = maskmill.extract(input=["dump.xml.bz2"], output="text", workers=2)
print(made.report, stage.files, stage.counts["train"]["documents"])
"""

MISTAKES = """
import maskmill

maskmill.open("data", batch_size="256")
maskmill.open("data", batchsize=256)
maskmill.open("data", batch_size=256, tail="cut")
maskmill.mix(["data"], batch_size=256)
maskmill.opne("data")
maskmill.build(5)
"""


@pytest.mark.builds
def test_mypy_knows_the_types(tmp_path: Path) -> None:
    """In a folder of its own, where maskmill is a package of the path, whose types count because of py.typed."""
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "mistakes.py").write_text(MISTAKES)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "."]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    wrong = [line.split(": ")[0] for line in done.stdout.splitlines() if ": error: " in line]
    assert list(dict.fromkeys(wrong)) == [f"mistakes.py:{number}" for number in (4, 5, 6, 7, 8, 9)], done.stdout
