"""The parts of a run on Dataflow that need no Google service: the graph, the job's request, the template, the sdist."""

import collections
import http.server
import json
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import apache_beam as beam
import ci_programs
import pytest
from apache_beam.portability.api import beam_runner_api_pb2
from command_runs import commands
from servers import cloud

from maskmill.errors import UnusableInputError
from pipelines.commands import cli
from pipelines.settings.options import options_of
from pipelines.stages.registry import TEMPLATE_STAGES

pytestmark = pytest.mark.builds

BUCKET = "maskmill-bucket"
IMAGE = "europe-west4-docker.pkg.dev/maskmill-test/maskmill/maskmill:1"
FLAGS = (
    "--runner=DataflowRunner",
    f"--project={cloud.PROJECT}",
    "--region=europe-west4",
    f"--temp_location=gs://{BUCKET}/temporary",
    f"--staging_location=gs://{BUCKET}/staging",
)
IN_IMAGE = (*FLAGS, f"--sdk_container_image={IMAGE}")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Runs the storage emulator with a dump and a vocabulary in its bucket."""
    with cloud.storage(tmp_path_factory.mktemp("storage"), BUCKET) as variables:
        cloud.upload(variables, BUCKET, "dump.xml.bz2", commands.DUMP.read_bytes())
        cloud.upload(variables, BUCKET, "vocab.txt", commands.VOCAB.read_bytes())
        yield variables


@pytest.fixture(scope="module")
def template() -> ModuleType:
    """The template's program, which is in no package."""
    return ci_programs.load("template", "deploy/dataflow")


def config(directory: Path, output: str) -> Path:
    """Writes the file of a small build with paths in the emulator."""
    path = directory / "build.yaml"
    path.write_text(
        f"output: gs://{BUCKET}/{output}\nreport: off\n"
        f"extract:\n  input: gs://{BUCKET}/dump.xml.bz2\n  num_eval_articles: 7\n"
        f"examples:\n  vocab_file: gs://{BUCKET}/vocab.txt\n  dupe_factor: 1\n"
    )
    return path


def below(environment: Mapping[str, str], prefix: str) -> list[str]:
    """The names of the objects that begin with a prefix."""
    return [name for name in cloud.objects(environment, BUCKET) if name.startswith(prefix)]


def steps(pipeline: bytes) -> dict[str, str]:
    """The names and URNs of a serialised pipeline's leaf transforms."""
    proto = beam_runner_api_pb2.Pipeline.FromString(pipeline)
    transforms = proto.components.transforms.values()
    return {t.unique_name: t.spec.urn for t in transforms if not t.subtransforms and t.spec.urn}


def check_graph(pipeline: beam_runner_api_pb2.Pipeline) -> None:
    """Asserts that a build's graph is small, carries no data, and asks for no other workers than the job's pool."""
    graph = pipeline.components
    leaves = {t.unique_name: t.spec for t in graph.transforms.values() if not t.subtransforms and t.spec.urn}
    assert len(leaves) <= 75, "each step is a label on Dataflow's page, and time before the job starts"
    urns = collections.Counter(spec.urn for spec in leaves.values())
    assert urns["beam:transform:group_by_key:v1"] <= 12, "each is a shuffle, for which all work before it is waited"
    # Elements begin on the workers. A function has its options as payload, and no list of files.
    sources = {step for step, spec in leaves.items() if spec.urn == "beam:transform:impulse:v1"}
    assert {t.unique_name for t in graph.transforms.values() if t.unique_name in leaves and not t.inputs} == sources
    assert {step: len(spec.payload) for step, spec in leaves.items() if len(spec.payload) > 4096} == {}
    # A hint would give a step workers of its own, which each start an image: all steps fit the same kind of machine.
    assert [dict(e.resource_hints) for e in graph.environments.values()] == [{}]


def check_request(request: Mapping[str, Any], environment: Mapping[str, str], *, image: str) -> None:
    """Asserts that a job's request and its staged pipeline ask for what a build needs."""
    text = json.dumps(request)
    assert len(text) < 50_000
    for path in (str(commands.ROOT), "/tmp/", str(Path.home())):
        assert path not in text, f"a local path is in the request: {path}"
    described = request["environment"]
    (pool,) = described["workerPools"]
    (harness,) = pool["sdkHarnessContainerImages"]
    assert harness["containerImage"] == image
    assert harness["useSingleCorePerContainer"], "a process for each CPU of a worker"
    assert pool["numThreadsPerWorker"] == 1
    options = described["sdkPipelineOptions"]["options"]
    assert options["number_of_worker_harness_threads"] == 1
    assert {"use_runner_v2", "use_portable_job_submission"} <= set(described["experiments"])

    staged = [p["name"] for p in pool["packages"]]
    assert staged == ["submission_environment_dependencies.txt"]
    pipeline = cloud.content(environment, BUCKET, options["pipelineUrl"].removeprefix(f"gs://{BUCKET}/"))
    # Workers find the streams of a dump, of which there can be 200,000, so the graph has the same size for any input.
    assert len(pipeline) < 200_000
    for path in (bytes(commands.ROOT), b"/tmp/"):
        assert path not in pipeline, f"a local path is in the pipeline: {path!r}"
    check_graph(beam_runner_api_pb2.Pipeline.FromString(pipeline))
    urns = steps(pipeline)
    for step in (
        "Extract/FindInputs/Digest",
        "Extract/ExtractInputs/CutIntoBatches/Cut",
        "Extract/ExtractInputs/ExtractDocuments/ExtractBatch",
        "Extract/PlanTextShards/Plan",
        "Extract/AssembleTextShards/Assemble",
        "Examples/MaskShards/MaskAndWrite",
        "Extract/Close",
        "Examples/Close",
        "Eval/PickExamples/Pick",
        "Eval/Close",
    ):
        assert step in urns, sorted(urns)
    assert "beam:transform:group_by_key:v1" in urns.values()


def test_a_dry_run_builds_the_graph(environment: Mapping[str, str], tmp_path: Path) -> None:
    done = commands.maskmill("build", config(tmp_path, "dry"), *IN_IMAGE, "--dry_run=True", **environment)
    assert (done.returncode, done.stdout) == (
        0,
        f"gs://{BUCKET}/dry: nothing was run, the job was only described.\n",
    ), done.stderr
    assert below(environment, "dry/") == []


def test_elements_between_workers_are_small_whatever_they_describe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "sizes"
    reshuffle = beam.Reshuffle.expand

    def measured(step: beam.Reshuffle, elements: beam.PCollection) -> beam.PCollection:
        def size(element: Any) -> Any:
            with open(seen, "a") as file:
                print(len(pickle.dumps(element)), file=file)
            return element

        return reshuffle(step, elements | "Size" >> beam.Map(size).with_output_types(elements.element_type))

    monkeypatch.setattr(beam.Reshuffle, "expand", measured)
    path = tmp_path / "build.yaml"
    path.write_text(
        f"output: {tmp_path / 'out'}\nreport: off\nextract:\n  input: {commands.DUMP}\n  num_eval_articles: 7\n"
        f"examples:\n  vocab_file: {commands.VOCAB}\n  dupe_factor: 1\n"
    )
    assert cli.main(["build", str(path), "--runner=FnApiRunner"]) == 0
    sizes = [int(line) for line in seen.read_text().split()]
    # The text of the dump has 2 MB.
    assert len(sizes) >= 4
    assert max(sizes) < 10_000


def test_a_job_is_submitted_and_followed_to_its_end(environment: Mapping[str, str], tmp_path: Path) -> None:
    build = config(tmp_path, "submitted")
    requests: list[dict[str, Any]] = []

    def service(request: http.server.BaseHTTPRequestHandler, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Accepts a job. When its state is asked for, the local runner makes the data, and the job is done."""
        job = {"id": "1", "name": "job", "projectId": cloud.PROJECT, "currentState": "JOB_STATE_PENDING"}
        if request.command == "POST":
            requests.append(json.loads(body))
        elif "/messages" in request.path:
            return cloud.json_answer({"jobMessages": []})
        else:
            done = commands.maskmill("build", build, *commands.IN_MEMORY, **environment)
            job["currentState"] = "JOB_STATE_FAILED" if done.returncode else "JOB_STATE_DONE"
        return cloud.json_answer(job)

    with cloud.server(service) as url:
        endpoint = url.replace("127.0.0.1", "localhost")  # by this name Beam sees that it is not Google's service
        done = commands.maskmill("build", build, *IN_IMAGE, f"--dataflow_endpoint={endpoint}", **environment)
    assert done.returncode == 0, done.stderr
    assert "examples: gs://" in done.stdout
    # Airflow's operators for Beam find the job by this line.
    assert "Created job with id: [1]" in done.stderr.splitlines()
    (request,) = requests
    check_request(request, environment, image=IMAGE)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (FLAGS, "Dataflow's workers need maskmill: give --sdk_container_image"),
        ((*IN_IMAGE, "--dry_run=True"), "Dataflow's workers do not see this machine's files; give a gs:// path"),
    ],
)
def test_a_run_that_dataflow_cannot_do_is_refused_in_one_sentence(
    flags: tuple[str, ...], sentence: str, environment: Mapping[str, str], tmp_path: Path
) -> None:
    source = f"gs://{BUCKET}/dump.xml.bz2" if "need maskmill" in sentence else str(commands.DUMP)
    output = f"gs://{BUCKET}/refused-{len(flags)}"
    done = commands.maskmill("extract", f"--input={source}", f"--output={output}", *flags, **environment)
    assert done.returncode == 2
    assert sentence in done.stderr.splitlines()[-1]
    assert below(environment, f"refused-{len(flags)}/") == [], "a refused command leaves nothing"


def test_the_metadata_has_every_parameter(template: ModuleType) -> None:
    committed = json.loads((commands.ROOT / "deploy" / "dataflow" / "metadata.json").read_text())
    assert committed == template.metadata(), "write the file again: deploy/dataflow/template.py --write_metadata=…"
    names = {p["name"] for p in committed["parameters"]}
    for stage in TEMPLATE_STAGES:
        for name in options_of(stage.options_class):
            assert (f"{stage.name}_{name}" in names) != (name in stage.decides)
    # The text of a build is extracted, or it is there.
    assert {p["name"] for p in committed["parameters"] if not p["isOptional"]} == {"output"}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("extract_namespaces", "0,14", [0, 14]),
        ("extract_keep_titles", "True", True),
        ("extract_eval_fraction", "1e-3", 0.001),
        ("examples_dupe_factor", "5", 5),
        ("extract_dump_date", "2020-01-31", "2020-01-31"),
        ("extract_from", "gs://b/text", ["gs://b/text"]),
    ],
)
def test_the_text_of_a_parameter_becomes_a_value(template: ModuleType, name: str, text: str, value: Any) -> None:
    section, _, option = name.partition("_")
    assert template.read([f"--{name}={text}"]) == ({section: {option: value}}, [])


@pytest.mark.parametrize(("name", "text"), [("examples_dupe_factor", "five"), ("extract_keep_titles", "maybe")])
def test_a_wrong_parameter_is_refused_in_one_sentence(template: ModuleType, name: str, text: str) -> None:
    with pytest.raises(UnusableInputError, match=f"--{name} must be .*, not '{text}'"):
        template.read([f"--{name}={text}"])


def test_the_image_has_the_locked_beam_and_every_package() -> None:
    dockerfile = (commands.ROOT / "deploy" / "dataflow" / "Dockerfile").read_text()
    (version,) = re.findall(r"^ARG BEAM_VERSION=(.+)$", dockerfile, re.MULTILINE)
    assert re.search(
        rf"^apache-beam=={re.escape(version)}\b", (commands.ROOT / "requirements-gcp.lock").read_text(), re.M
    )
    copied = {name for line in re.findall(r"^COPY (?!--)(.+) \S+$", dockerfile, re.MULTILINE) for name in line.split()}
    packages = {path.parent.name for path in commands.ROOT.glob("*/__init__.py")}
    assert packages | {"setup.py", "pyproject.toml"} <= copied
    assert all((commands.ROOT / name).exists() for name in copied), copied


@pytest.mark.exhaustive
def test_the_sdist_of_setup_file_installs_in_an_empty_environment(tmp_path: Path) -> None:
    from apache_beam.runners.portability.stager import Stager

    built = Stager._build_setup_package(str(commands.ROOT / "setup.py"), str(tmp_path / "built"))
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", built], cwd=tmp_path, check=True)
    maskmill = tmp_path / "venv" / "bin" / "maskmill"
    done = subprocess.run([maskmill, "--help"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "create-pretraining-data" in done.stdout
    output = tmp_path / "text"
    command = [maskmill, "extract", f"--input={commands.DUMP}", f"--output={output}", "--direct_num_workers=1"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert (output / "manifest.json").exists()
