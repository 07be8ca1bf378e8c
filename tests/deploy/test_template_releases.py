"""The Flex Template builds releases: one launch describes the job, the launch after the job's end completes it."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import ci_programs
import pytest
from apache_beam.portability.api import beam_runner_api_pb2
from command_runs import commands
from release_runs.watches import mirrored
from servers import cloud

from maskmill.storage import files

pytestmark = pytest.mark.builds

BUCKET = "maskmill-bucket"
ROOT = f"gs://{BUCKET}/releases-of/enwiki"
MIRROR = mirrored("2026-11-01")
DUMP = next(iter(MIRROR))
BUILD = {
    "extract_num_eval_articles": "7",
    "extract_shard_size_mb": "0.5",
    "examples_dupe_factor": "1",
    "examples_vocab_file": f"gs://{BUCKET}/vocab.txt",
    "eval_num_examples_to_pick": "50",
}
WATCH = {
    "output": ROOT,
    "watch_wiki": "enwiki",
    "watch_source": f"gs://{BUCKET}/dumps",
    "watch_layout": "content",
    "release_keep": "3",
}
FLAGS = (
    "--runner=DataflowRunner",
    f"--project={cloud.PROJECT}",
    "--region=europe-west4",
    f"--temp_location=gs://{BUCKET}/temporary",
    f"--staging_location=gs://{BUCKET}/staging",
    f"--template_location=gs://{BUCKET}/templates/job.json",
)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Runs the storage emulator with a dump, and a vocabulary; the environment tells where."""
    directory = tmp_path / "storage"
    directory.mkdir()
    with cloud.storage(directory, BUCKET) as variables, cloud.set_environment(variables):
        for name, content in MIRROR.items():
            files.write_bytes(f"gs://{BUCKET}/dumps/{name}", content)
        cloud.upload(variables, BUCKET, "vocab.txt", commands.VOCAB.read_bytes())
        yield variables


Launch = Callable[[Mapping[str, str]], set[str]]


@pytest.fixture
def launch(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Launch:
    """Runs the template's program as a launcher does. Returns the names of the steps of the job that it describes."""
    monkeypatch.setenv("MASKMILL_IMAGE", "image:1")
    template = ci_programs.load("template", "deploy/dataflow")

    def run(parameters: Mapping[str, str]) -> set[str]:
        assert template.main([*(f"--{name}={value}" for name, value in parameters.items()), *FLAGS]) == 0
        request = json.loads(cloud.content(environment, BUCKET, "templates/job.json"))
        (pool,) = request["environment"]["workerPools"]
        assert [harness["containerImage"] for harness in pool["sdkHarnessContainerImages"]] == ["image:1"]
        url = request["environment"]["sdkPipelineOptions"]["options"]["pipelineUrl"]
        pipeline = beam_runner_api_pb2.Pipeline.FromString(
            cloud.content(environment, BUCKET, url.removeprefix(f"gs://{BUCKET}/"))
        )
        return {t.unique_name for t in pipeline.components.transforms.values() if not t.subtransforms}

    return run


def run_job(environment: Mapping[str, str], tmp_path: Path, directory: str) -> None:
    """Does what the described job does: the stages, below the release's directory."""
    path = tmp_path / "job.yaml"
    sections: dict[str, list[str]] = {"extract": [f"input: gs://{BUCKET}/dumps/{DUMP}"]}
    for name, value in BUILD.items():
        section, _, option = name.partition("_")
        sections.setdefault(section, []).append(f"{option}: {value}")
    text = "".join(f"{section}: {{{', '.join(options)}}}\n" for section, options in sections.items())
    path.write_text(f"output: {directory}\nreport: 'off'\n{text}")
    done = commands.maskmill("build", path, *commands.IN_MEMORY, **environment)
    assert done.returncode == 0, done.stderr


def is_nothing(steps: set[str]) -> bool:
    """Whether a job has only the step that does nothing."""
    return bool(steps) and all(name.startswith("NothingNew") for name in steps)


def released(environment: Mapping[str, str]) -> str:
    """The name of the only release, complete or not."""
    prefix = "releases-of/enwiki/releases/"
    below = [name.removeprefix(prefix) for name in cloud.objects(environment, BUCKET) if name.startswith(prefix)]
    (name,) = {name.split("/")[0] for name in below if name.startswith("enwiki-")}
    return name


def test_a_watch_takes_two_launches_and_then_finds_nothing_new(
    environment: dict[str, str], launch: Launch, tmp_path: Path
) -> None:
    assert "Extract/AssembleTextShards/Assemble" in launch(WATCH | BUILD)
    assert "releases-of/enwiki/latest.json" not in cloud.objects(environment, BUCKET)
    # The job has not run: the next launch describes it again.
    assert "Extract/AssembleTextShards/Assemble" in launch(WATCH | BUILD)

    release = released(environment)
    assert release.startswith("enwiki-2026-11-01-")
    run_job(environment, tmp_path, f"{ROOT}/releases/{release}")
    assert is_nothing(launch(WATCH | BUILD))
    latest = cloud.content(environment, BUCKET, "releases-of/enwiki/latest.json")
    assert release.encode() in latest
    record = cloud.content(environment, BUCKET, f"releases-of/enwiki/releases/{release}/release.json")

    assert list(json.loads(record)["inputs"][0]) == ["bytes", "crc32c", "path", "url"]

    assert is_nothing(launch(WATCH | BUILD))
    assert cloud.content(environment, BUCKET, "releases-of/enwiki/latest.json") == latest
    assert cloud.content(environment, BUCKET, f"releases-of/enwiki/releases/{release}/release.json") == record


def test_a_parameter_of_the_section_release_builds_one_of_a_named_input(
    environment: dict[str, str], launch: Launch
) -> None:
    named = {"output": ROOT, "extract_input": f"gs://{BUCKET}/dumps/{DUMP}", "release_keep": "1"}
    assert "Extract/AssembleTextShards/Assemble" in launch(named | BUILD)
    assert released(environment).startswith("enwiki-2026-11-01-")
    assert "releases-of/enwiki/latest.json" not in cloud.objects(environment, BUCKET)
