"""DALI's loaders, on the CPU: the loader's order, its state, and DALI's own reader with our indexes."""

import dataclasses
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from data_sets.built_data_sets import build_data_set
from made_up.data_sets import samples_in
from made_up.loaders import in_order, loader

import maskmill
from maskmill.errors import UnusableInputError
from maskmill.loaders.dali import Batches, pipeline, tfrecord_pipeline
from maskmill.loading.loader import Loader
from maskmill.masking.objective_options import ObjectiveOptions

pytestmark = pytest.mark.elsewhere


def arrays_of(batch: dict[str, Any]) -> dict[str, npt.NDArray[Any]]:
    return {name: np.asarray(tensor) for name, tensor in batch.items()}


def samples_of(batches: Iterable[dict[str, Any]]) -> list[list[int]]:
    return [samples_in(arrays_of(batch)) for batch in batches]


@pytest.mark.parametrize("tail", ["drop", "pad", "repeat", "carry"])
def test_epochs_follow_each_other_and_states_go_on(tail: str) -> None:
    first = Batches(loader(tail=tail))
    got = samples_of(first) + samples_of(first) + samples_of(itertools.islice(first, 4))
    second = Batches(loader(tail=tail), endless=True)
    second.load_state_dict(first.state_dict())
    got += samples_of(itertools.islice(second, 7))
    assert got == in_order(tail=tail)[: len(got)]


def test_ranks_have_their_rows() -> None:
    ranks = [samples_of(Batches(loader(rank=rank, ranks=2))) for rank in range(2)]
    assert [a + b for a, b in zip(*ranks, strict=True)] == in_order()[:8]


def test_batches_that_were_given_earlier_are_not_written_over() -> None:
    batches = [arrays_of(batch) for batch in Batches(loader(tail="pad", with_samples=True))]
    assert [samples_in(batch) for batch in batches] == in_order(tail="pad")[:9]


def test_a_pipeline_for_dalis_own_iterators() -> None:
    made = pipeline(loader())
    names = list(loader().spec)
    got = []
    for _ in range(2):
        with pytest.raises(StopIteration):
            while True:
                outputs = made.run()
                got += samples_of([dict(zip(names, (output.as_tensor() for output in outputs), strict=True))])
        made.reset()
    assert got == in_order()[:16]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_data_set(tmp_path_factory.mktemp("data"))


def test_dalis_reader_reads_the_same_rows(built: Path) -> None:
    opened = maskmill.open(built, batch_size=5, shuffle=False)
    made = tfrecord_pipeline(opened, shuffle=False)
    names = [column.feature for column in opened.data_sets[0].columns]
    batches = list(opened)
    assert len(batches) > 10
    for batch in batches:
        read = dict(zip(names, made.run(), strict=True))
        for name, array in batch.items():
            np.testing.assert_array_equal(np.asarray(read[name].as_tensor()), array, err_msg=name)


def test_dalis_reader_fills_up_rows_of_bins(tmp_path: Path) -> None:
    built = build_data_set(tmp_path, objective=ObjectiveOptions(objective="mlm", bins=3))
    opened = maskmill.open(built, batch_size=5, shuffle=False)
    names = [column.feature for column in opened.data_sets[0].columns]
    read = dict(zip(names, tfrecord_pipeline(opened, shuffle=False).run(), strict=True))
    batch = next(iter(opened))
    width = batch["input_ids"].shape[1]
    np.testing.assert_array_equal(np.asarray(read["input_ids"].as_tensor())[:, :width], batch["input_ids"])


@pytest.mark.parametrize(
    ("format", "objective", "reason"),
    [
        ("parquet", ObjectiveOptions(), "this data set is parquet, not TFRecord"),
        ("tfrecord", ObjectiveOptions(objective="mlm", dynamic_masking=True), "its masks are not stored but drawn"),
        ("tfrecord", ObjectiveOptions(objective="mlm", pack=True), "its rows are packed"),
    ],
)
def test_what_dalis_reader_cannot_read(format: Any, objective: ObjectiveOptions, reason: str, tmp_path: Path) -> None:
    opened = maskmill.open(build_data_set(tmp_path, format=format, objective=objective), batch_size=5)
    with pytest.raises(UnusableInputError, match=f"DALI's TFRecord reader cannot read this, because {reason}"):
        tfrecord_pipeline(opened)


def test_files_that_dalis_reader_cannot_read(built: Path) -> None:
    opened = maskmill.open(built, batch_size=5)
    files = opened.data_sets[0].files
    with pytest.raises(UnusableInputError, match="has no index of the form that DALI reads"):
        tfrecord_pipeline(with_files(opened, (dataclasses.replace(files[0], index=None),)))
    with pytest.raises(UnusableInputError, match="gs://a/b is not a local, uncompressed file"):
        tfrecord_pipeline(with_files(opened, (dataclasses.replace(files[0], path="gs://a/b"),)))


def with_files(opened: Loader, files: tuple[Any, ...]) -> Loader:
    opened = opened.with_options()
    opened.data_sets = (dataclasses.replace(opened.data_sets[0], files=files),)
    return opened
