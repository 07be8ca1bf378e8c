"""maskmill.mix on files."""

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_sets.example_sets import setup_of, write_set

import maskmill
from maskmill.errors import UnusableInputError

Written = Callable[..., str]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Writes a data set under a name and returns its path."""

    def write(name: str, **options: Any) -> str:
        return write_set(tmp_path / name, setup_of(objective="mlm", **options), words=name)

    return write


def test_a_mix_of_formats_has_each_data_sets_own_rows(written: Written) -> None:
    foxes = written("foxes", format="tfrecord", dynamic_masking=True, dupe_factor=1)
    hares = written("hares", format="parquet", max_seq_length=48, max_predictions_per_seq=7)
    owls = written("owls", format="mds", dynamic_masking=True, dupe_factor=1, mask_unit="whole_word")
    options: dict[str, Any] = {"batch_size": 8, "seed": 5, "with_samples": True}
    paths = [foxes, hares, owls]
    with maskmill.mix([(foxes, 0.5), (hares, 0.25), (owls, 0.25)], **options) as mixed:
        alone = [maskmill.open(path, **options) for path in paths]
        batches = [batch for batch, _ in zip(mixed, range(12), strict=False)]
        given = mixed.given(12)
        copies = [mixed.samples_of(0, step) for step in range(12)]
    assert [one.path for one in given] == paths
    seen = np.zeros(3, np.int64)
    for batch, (sources, samples) in zip(batches, copies, strict=True):
        assert batch["samples"].tolist() == samples.tolist()
        assert batch["sources"].tolist() == sources.tolist()
        for row, (source, sample) in enumerate(zip(sources, samples, strict=True)):
            epoch, seen[source] = divmod(int(seen[source]), alone[source].data_sets[0].samples)[0], seen[source] + 1
            own = alone[source].rows_of([sample], epoch=epoch)
            for name in own.keys() - {"samples"}:
                width = own[name].shape[1]
                np.testing.assert_array_equal(batch[name][row, :width], own[name][0], strict=True)
                assert not batch[name][row, width:].any()
    assert [one.samples for one in given] == seen.tolist()


def test_a_finite_mix_ends_and_says_when_a_data_set_leaves(written: Written, caplog: pytest.LogCaptureFixture) -> None:
    foxes, hares = written("foxes", dupe_factor=1), written("hares", dupe_factor=3)
    with maskmill.mix([(foxes, 1), (hares, 1)], max_repetitions=[2, 1], batch_size=4, tail="pad") as mixed:
        counts = [data_set.samples for data_set in mixed.data_sets]
        assert 2 * counts[0] < counts[1]
        with caplog.at_level(logging.WARNING, "maskmill"):
            steps = sum(1 for _ in mixed)
        assert mixed.steps_per_epoch == steps == -(-(2 * counts[0] + counts[1]) // 4)
        assert [(one.samples, one.repetitions) for one in mixed.given(steps)] == [(2 * counts[0], 2), (counts[1], 1)]
    assert caplog.messages == [
        f"{foxes}: after {4 * counts[0] - 1} samples of the mix, this data set was used as often as max_repetitions "
        "allows; the others have its share from there on."
    ]


def test_a_mix_goes_on_from_its_state(written: Written) -> None:
    sources = [(written("foxes"), 2), (written("hares"), 1)]
    options: dict[str, Any] = {"batch_size": 6, "with_samples": True}
    with maskmill.mix(sources, **options) as mixed, maskmill.mix(sources, ranks=2, rank=1, **options) as resumed:
        batches = iter(mixed)
        for _ in range(5):
            next(batches)
        resumed.load_state_dict(json.loads(json.dumps(mixed.state_dict())))
        expected, found = next(batches), next(iter(resumed))
    assert found["samples"].tolist() == expected["samples"][3:].tolist()
    with maskmill.mix([(sources[0][0], 1), sources[1]], **options) as other, pytest.raises(UnusableInputError):
        other.load_state_dict(mixed.state_dict())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"max_repetitions": 1, "tail": "carry"},
            "tail is carry, but a mix in which each data set has max_repetitions",
        ),
        ({"max_repetition": 1}, "there is no option max_repetition; did you mean max_repetitions"),
    ],
    ids=["carry", "misspelt"],
)
def test_options_of_a_mix_that_do_not_go_are_refused(written: Written, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnusableInputError, match=message):
        maskmill.mix([(written("foxes"), 1)], batch_size=4, **options)


def test_a_mix_of_nothing_and_data_sets_that_do_not_go_together_are_refused(written: Written) -> None:
    with pytest.raises(UnusableInputError, match="There is no data set to mix"):
        maskmill.mix([], batch_size=4)
    with pytest.raises(UnusableInputError, match=r"sources\[0\] is 'foxes', a str; give a tuple"):
        maskmill.mix(["foxes", "hares"], batch_size=4)  # type: ignore[list-item]
    foxes, packed = written("foxes"), written("hares", pack=True, full_sentences=False, cross_documents=False)
    with pytest.raises(UnusableInputError, match="mix data sets"):
        maskmill.mix([(foxes, 1), (packed, 1)], batch_size=4)


@pytest.mark.parametrize("epoch", [1, 2])
def test_a_mix_without_an_end_has_no_second_epoch(written: Written, epoch: Any) -> None:
    with maskmill.mix([(written("foxes"), 2), (written("hares"), 1)], batch_size=6) as mixed:
        state = mixed.state_dict() | {"epoch": epoch}
        with pytest.raises(UnusableInputError, match=rf"is damaged: epoch is {epoch} and .*, epoch at most 0 here"):
            mixed.load_state_dict(state)


def test_a_mix_with_an_end_has_no_third_epoch(written: Written) -> None:
    with maskmill.mix([(written("foxes"), 1)], max_repetitions=1, batch_size=6) as mixed:
        ended = mixed.state_after(mixed.steps_per_epoch or 0)
        mixed.load_state_dict(ended)
        assert mixed.steps_left == 0
        with pytest.raises(UnusableInputError, match=r"epoch is 2 and .*, epoch at most 1 here"):
            mixed.load_state_dict(ended | {"epoch": 2})


def test_a_file_that_is_replaced_between_epochs_ends_the_reading(written: Written, tmp_path: Path) -> None:
    copy = shutil.copytree(written("foxes"), tmp_path / "copy")
    with maskmill.open(copy, batch_size=4) as loader:
        list(loader)
        path = Path(loader.data_sets[0].files[0].path)
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content)
        with pytest.raises(UnusableInputError, match="this file was changed while it was read; open the data set"):
            list(loader)
