"""Lineages of releases in a bucket."""

from collections.abc import Iterator, Mapping

import pytest
from command_runs.commands import DUMP
from data_sets.whole_builds import extract_text, make_build
from servers import cloud

from maskmill.lineage import descendants
from maskmill.lineage.origins import lineage_of

pytestmark = pytest.mark.releases

BUCKET = "traced"
NAME = "enwiki-2016-05-01-0123abcd"
RELEASE = f"gs://{BUCKET}/enwiki/releases/{NAME}"


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    directory = tmp_path_factory.mktemp("storage")
    build = make_build(
        directory / "build", extract_text(directory / "text", documents=6, eval_articles=1), picked=5
    ).root
    with cloud.storage(directory, BUCKET) as variables, cloud.set_environment(variables):
        for path in sorted(path for path in build.rglob("*") if path.is_file() and ".maskmill" not in path.parts):
            name = f"enwiki/releases/{NAME}/{path.relative_to(build)}"
            cloud.upload(variables, BUCKET, name, path.read_bytes())
        yield variables


@pytest.mark.usefixtures("bucket")
def test_back_from_a_shard() -> None:
    found = lineage_of(f"{RELEASE}/examples/eval.txt.tfrecord", checksums=True)
    assert found is not None
    assert [stage.directory for stage in found.stages] == [f"{RELEASE}/examples", f"{RELEASE}/text"]
    assert found.release is not None
    assert found.release.path == RELEASE
    assert found.problems == ()


@pytest.mark.usefixtures("bucket")
def test_forward_from_the_dump() -> None:
    (made,) = descendants.made_of_source(f"gs://{BUCKET}/enwiki", DUMP.name)
    assert (made.build, made.release) == (RELEASE, NAME)
    assert [stage.stage for stage in made.stages] == ["extract", "examples", "eval"]


def test_a_damaged_shard_does_not_fit(bucket: Mapping[str, str]) -> None:
    name = f"enwiki/releases/{NAME}/text/eval.txt"
    content = cloud.content(bucket, BUCKET, name)
    cloud.upload(bucket, BUCKET, name, content[:-1])
    found = lineage_of(RELEASE)
    cloud.upload(bucket, BUCKET, name, content)
    assert found is not None
    assert found.kind == "release"
    (problem,) = found.problems
    assert problem.startswith(f"{RELEASE}/text/eval.txt: this shard has {len(content) - 1:,} bytes")
