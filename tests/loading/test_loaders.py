"""What loaders for frameworks have in common: the parts of workers, and what they say without their framework."""

import importlib
import itertools
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up.data_sets import data_set, samples_in, source
from properties import tries

from maskmill.errors import UnusableInputError
from maskmill.loaders.parts import Part
from maskmill.loading.loader import Loader
from maskmill.loading.options import LoaderOptions, Tail

PACKAGES = {"torch": "torch", "dali": "nvidia.dali", "tf": "tensorflow", "grain": "grain", "jax": "jax"}
FRAMEWORKS = {"apache_beam", "grain", "jax", "nvidia", "tensorflow", "torch"}


def loader(tail: Tail = "drop", **options: int) -> Loader:
    chosen = LoaderOptions(batch_size=6, seed=3, window=16, tail=tail, **options)
    return Loader([source(data_set([20, 13, 20]))], chosen)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_missing_framework_is_named_in_one_sentence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, PACKAGES[name], None)
    monkeypatch.delitem(sys.modules, f"maskmill.loaders.{name}", raising=False)
    with pytest.raises(ModuleNotFoundError, match=rf"^maskmill\.loaders\.{name} needs .*, which is not installed; "):
        importlib.import_module(f"maskmill.loaders.{name}")


def test_maskmill_imports_neither_beam_nor_a_framework() -> None:
    program = f"import maskmill, maskmill.loaders.parts, sys; print(sorted({FRAMEWORKS} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@tries(30)
@given(
    tail=st.sampled_from(["drop", "pad", "repeat", "carry"]),
    begun=st.integers(0, 12),
    workers=st.integers(1, 4),
    made=st.lists(st.integers(0, 10), min_size=4, max_size=4),
    endless=st.booleans(),
)
def test_parts_go_on_where_they_stood(tail: Tail, begun: int, workers: int, made: list[int], endless: bool) -> None:
    """Each worker made another number of batches when its state was saved; all are taken up."""
    start = loader(tail).state_after(begun)
    whole = loader(tail)
    whole.load_state_dict(start)
    left = whole.steps_left
    assert left is not None
    steps = 64 if endless else left
    wanted = [samples_in(batch) for batch in itertools.islice(whole.endless(), steps)]
    for worker in range(workers):
        standing = loader(tail, worker=worker, workers=workers)
        standing.load_state_dict(start)
        part = Part(standing, endless=endless)
        given_before = [samples_in(batch) for batch in itertools.islice(part, made[worker])]
        resumed = Part(loader(tail, worker=worker, workers=workers), endless=endless)
        resumed.load_state_dict(part.state_dict())
        rest = itertools.islice(resumed, 5) if endless else resumed
        together = given_before + [samples_in(batch) for batch in rest]
        assert together == wanted[worker::workers][: len(together)]
        assert endless or len(together) == len(wanted[worker::workers])
        assert resumed.end == part.end == (None if endless else whole_end(tail, begun, left))


def whole_end(tail: Tail, begun: int, left: int) -> dict[str, object]:
    return loader(tail).state_after(begun + left)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"workers": 3}, "saved with workers=2, so it cannot be taken up with workers=3"),
        ({"workers": 2, "batch_size": 12}, "saved with batch_size=6, so it cannot be taken up with batch_size=12"),
    ],
)
def test_a_part_of_others_is_refused(options: dict[str, int], reason: str) -> None:
    part = Part(loader(worker=1, workers=2))
    with pytest.raises(UnusableInputError, match=reason):
        Part(loader().with_options(worker=1, **options)).load_state_dict(part.state_dict())
