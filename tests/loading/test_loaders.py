"""What loaders for frameworks have in common: the parts of workers, and what they say without their framework."""

import importlib
import itertools
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up.data_sets import samples_in
from made_up.loaders import loader
from properties import tries

from maskmill.loaders.parts import Part
from maskmill.loading.options import Tail

PACKAGES = {"torch": "torch", "tf": "tensorflow", "grain": "grain", "jax": "jax"}


@pytest.mark.parametrize("name", PACKAGES)
def test_a_missing_framework_is_named_in_one_sentence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, PACKAGES[name], None)
    monkeypatch.delitem(sys.modules, f"maskmill.loaders.{name}", raising=False)
    with pytest.raises(ModuleNotFoundError, match=rf"^maskmill\.loaders\.{name} needs .*, which is not installed; "):
        importlib.import_module(f"maskmill.loaders.{name}")


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
    start = loader(tail=tail).state_after(begun)
    whole = loader(tail=tail)
    whole.load_state_dict(start)
    left = whole.steps_left
    assert left is not None
    steps = 64 if endless else left
    wanted = [samples_in(batch) for batch in itertools.islice(whole.endless(), steps)]
    for worker in range(workers):
        standing = loader(tail=tail, worker=worker, workers=workers)
        standing.load_state_dict(start)
        part = Part(standing, endless=endless)
        given_before = [samples_in(batch) for batch in itertools.islice(part, made[worker])]
        resumed = Part(loader(tail=tail, worker=worker, workers=workers), endless=endless)
        resumed.load_state_dict(part.state_dict())
        rest = itertools.islice(resumed, 5) if endless else resumed
        together = given_before + [samples_in(batch) for batch in rest]
        assert together == wanted[worker::workers][: len(together)]
        assert endless or len(together) == len(wanted[worker::workers])
        assert resumed.end == part.end == (None if endless else whole_end(tail, begun, left))


def whole_end(tail: Tail, begun: int, left: int) -> dict[str, object]:
    return loader(tail=tail).state_after(begun + left)
