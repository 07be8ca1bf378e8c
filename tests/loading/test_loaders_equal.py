"""The same batches from every framework, from every environment: equal arrays, told by what is committed here."""

import hashlib
import importlib.util
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from data_sets.built_data_sets import build_data_set

import maskmill
from maskmill.loading.loader import Loader
from maskmill.masking.objective_options import ObjectiveOptions

Batch = dict[str, npt.NDArray[Any]]

BATCHES = 30
OPTIONS: dict[str, Any] = {"batch_size": 12, "seed": 5, "window": 64, "tail": "carry", "with_samples": True}
DYNAMIC = ObjectiveOptions(objective="mlm", dynamic_masking=True)

# By name: the data set, how it is opened, and the sha256 of the first batches.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "static": ({"format": "tfrecord"}, {}, "40e6b7e6d75f4f53abc31f7749dfd63975a31f85a7ef01fee111cba0ef2cfb98"),
    "dynamic": (
        {"format": "mds", "objective": DYNAMIC},
        {},
        "62f2f24337f86e78d7f4860bc1847d6b834675aca68fbfbab08d40d07c2f0c4e",
    ),
    "huggingface": (
        {"format": "tfrecord", "objective": DYNAMIC},
        {"features": "huggingface"},
        "45c1ddbc06896c330bbc7e4bd59056e45f0042cba80d426e3f431358a248b40b",
    ),
    "packed": (
        {"format": "mds", "objective": ObjectiveOptions(objective="sop", dynamic_masking=True, pack=True)},
        {"features": "v2"},
        "bdc1810b114e90e810eb48c0b26829e9367f194195bdf51ce64b9e3eca7e893e",
    ),
    "spans": (
        {"format": "spans", "objective": DYNAMIC},
        {"features": "huggingface"},
        "45c1ddbc06896c330bbc7e4bd59056e45f0042cba80d426e3f431358a248b40b",  # as of TFRecords
    ),
    "bins": (
        {"format": "tfrecord", "objective": ObjectiveOptions(objective="mlm", bins=3)},
        {},
        "13fe60a08d14d9482060d953cc7d2406c15faba391735f9a984c16c10c42dfa8",
    ),
}


def by_loader(loader: Loader) -> Iterator[Batch]:
    return loader.with_options().endless()


def by_torch(loader: Loader) -> Iterator[Batch]:
    from maskmill.loaders.torch import DataLoader

    for batch in DataLoader(loader, num_workers=2, endless=True):
        yield {name: tensor.numpy() for name, tensor in batch.items()}


def by_tf(loader: Loader) -> Iterator[Batch]:
    from maskmill.loaders.tf import dataset

    return dataset(loader, endless=True).prefetch(2).as_numpy_iterator()


def by_grain(loader: Loader) -> Iterator[Batch]:
    from maskmill.loaders.grain import Batches

    return iter(Batches(loader, endless=True))


def by_jax(loader: Loader) -> Iterator[Batch]:
    import jax

    from maskmill.loaders.jax import Batches

    for batch in Batches(loader, jax.sharding.SingleDeviceSharding(jax.devices()[0]), endless=True):
        yield {name: np.asarray(array) for name, array in batch.items()}


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Loader, str]:
    """A data set's loader, and the digest of its first batches."""
    built, options, digest = CASES[request.param]
    path: Path = build_data_set(tmp_path_factory.mktemp(request.param), **built)
    return maskmill.open(path, **OPTIONS, **options), digest


FRAMEWORKS = {by_torch: "torch", by_tf: "tensorflow", by_grain: "grain", by_jax: "jax"}
READERS = [
    by_loader,
    *(
        pytest.param(read, marks=pytest.mark.elsewhere)
        for read, package in FRAMEWORKS.items()
        if importlib.util.find_spec(package) is not None
    ),
]


@pytest.mark.parametrize("read", READERS)
def test_equal_arrays(read: Callable[[Loader], Iterator[Batch]], case: tuple[Loader, str]) -> None:
    loader, wanted = case
    digest = hashlib.sha256()
    for got, expected in itertools.islice(zip(read(loader), loader.with_options().endless(), strict=False), BATCHES):
        assert list(got) == list(expected)
        for name, array in expected.items():
            digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
            # JAX has no 64-bit integers unless jax_enable_x64 is set.
            fits = array.astype(np.int32) if read is by_jax and array.dtype == np.int64 else array
            np.testing.assert_array_equal(got[name], fits, err_msg=name, strict=True)
    assert digest.hexdigest() == wanted
