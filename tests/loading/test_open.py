"""maskmill.open on files of all formats: the same batches from each, on any number of ranks and workers."""

import ast
import itertools
import json
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from data_sets.example_sets import setup_of, write_set
from oracles import pretraining as oracle

import maskmill
from maskmill.errors import UnusableInputError

Batch = dict[str, npt.NDArray[np.generic]]

ROOT = Path(maskmill.__file__).parents[1]

KINDS: dict[str, dict[str, Any]] = {
    "pairs": {},
    "drawn": {"objective": "mlm", "dynamic_masking": True, "mask_unit": "whole_word", "dupe_factor": 1},
    "packed": {"objective": "mlm", "dynamic_masking": True, "pack": True, "max_seq_length": 64, "dupe_factor": 1},
    "packed pairs": {"objective": "sop", "pack": True, "max_seq_length": 64, "special_tokens_mask": True},
    "bins": {"objective": "mlm", "bins": 3, "special_tokens_mask": True},
    "drawn bins": {"objective": "mlm", "bins": 2, "dynamic_masking": True, "dupe_factor": 1},
    "v2": {"feature_names": "v2"},
}
FORMATS: list[dict[str, Any]] = [{"format": "tfrecord"}, {"format": "parquet"}, {"format": "mds"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sets")


def data_set(folder: Path, kind: str, **more: Any) -> str:
    """A data set of a kind, written when it is first asked for."""
    name = " ".join([kind, *map(str, more.values())])
    if not (folder / name).exists():
        write_set(folder / name, setup_of(**KINDS[kind], **more))
    return str(folder / name / "examples")


def check_equal(found: Batch, expected: Batch) -> None:
    assert list(found) == list(expected)
    for name, array in found.items():
        np.testing.assert_array_equal(array, expected[name], name, strict=True)


@pytest.mark.parametrize("kind", KINDS)
def test_all_formats_give_the_same_batches(kind: str, folder: Path) -> None:
    formats = FORMATS if "pack" in KINDS[kind] else [*FORMATS, {"format": "tfrecord", "packed": True}]
    for features in ("google", "huggingface") if kind == "pairs" else ("google",):
        of_formats = [
            list(
                maskmill.open(
                    data_set(folder, kind, **one), batch_size=48, shuffle=False, tail="pad", seed=4, features=features
                )
            )
            for one in formats
        ]
        for together in zip(*of_formats, strict=True):
            for other in together[1:]:
                check_equal(other, together[0])


def test_batches_have_what_is_in_the_files(folder: Path) -> None:
    path = data_set(folder, "pairs", format="tfrecord")
    records = [record for file in sorted(Path(path).glob("part-*.tfrecord")) for record in oracle.read_examples(file)]
    data = maskmill.open(path, batch_size=7, seed=3)
    assert data.data_sets[0].samples == len(records)
    seen = set()
    for step, batch in enumerate(data):
        for row, sample in enumerate(data.samples_of(0, step)[1].tolist()):
            seen.add(sample)
            assert {name: array[row].tolist() for name, array in batch.items()} == {
                name: list(values) for name, values in dict(records[sample]).items()
            }
    assert len(seen) == len(records) // 7 * 7
    size = sum(file.stat().st_size for file in Path(path).glob("part-*.tfrecord*"))
    assert data.stats().bytes_read >= size


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "packed" in kind])
@pytest.mark.parametrize("format", ["tfrecord", "parquet", "mds"])
def test_packed_rows_are_refused_for_transformers_which_have_no_mask_for_them(
    kind: str, format: str, folder: Path
) -> None:
    path = data_set(folder, kind, format=format)
    wanted = re.escape(f'{path}: its rows are packed, and features="huggingface" has no mask that keeps the attention')
    for call in (
        lambda: maskmill.open(path, batch_size=4, features="huggingface"),
        lambda: maskmill.mix([(path, 1)], batch_size=4, features="huggingface"),
        lambda: maskmill.open(path, batch_size=4).with_options(features="huggingface"),
    ):
        with pytest.raises(UnusableInputError, match=f"^{wanted}.*; make the examples without --pack, or take "):
            call()


@pytest.mark.builds
@pytest.mark.parametrize("kind", ["pairs", "drawn", "packed", "drawn bins"])
@pytest.mark.parametrize("format", ["tfrecord", "parquet", "mds"])
def test_ranks_and_workers_read_parts_of_the_same_batches_through_stops(format: str, kind: str, folder: Path) -> None:
    path = data_set(folder, kind, format=format)
    options: dict[str, Any] = {"batch_size": 24, "tail": "carry", "window": 32, "seed": 2, "with_samples": True}
    expected = list(itertools.islice(maskmill.open(path, **options).endless(), 14))
    data = maskmill.open(path, **options)
    found: list[Batch] = []
    for ranks, workers, stop in ((4, 2, 5), (3, 3, 8), (1, 1, 9), (8, 2, 14)):
        loaders = [
            [data.with_options(ranks=ranks, rank=rank, workers=workers, worker=worker) for worker in range(workers)]
            for rank in range(ranks)
        ]
        readers = [[loader.endless() for loader in of_rank] for of_rank in loaders]
        start = len(found)
        for step in range(stop - start):
            parts = [next(of_rank[step % workers]) for of_rank in readers]
            found.append({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})
        state = json.loads(json.dumps(loaders[0][0].with_options(workers=1, worker=0).state_dict()))
        data.load_state_dict(data.state_after(stop - start))
        assert state["fingerprint"] == data.state_dict()["fingerprint"]
    for one, other in zip(found, expected, strict=True):
        check_equal(one, other)


def test_drawn_masks_are_those_of_the_sample_and_the_epoch(folder: Path) -> None:
    """Whatever the batch: they change with the epoch and the seed, and with nothing else."""
    path = data_set(folder, "drawn", format="tfrecord")
    small, large = maskmill.open(path, batch_size=5, seed=1), maskmill.open(path, batch_size=32, seed=1, tail="pad")
    rows: dict[tuple[int, int], list[Any]] = {}
    for data in (small, large):
        for epoch in range(2):
            for step, batch in enumerate(data):
                for row, sample in enumerate(data.samples_of(epoch, step)[1].tolist()):
                    if sample >= 0:
                        drawn = [batch[name][row].tolist() for name in ("input_ids", "masked_lm_positions")]
                        assert rows.setdefault((epoch, sample), drawn) == drawn
    samples = data.data_sets[0].samples
    assert len(rows) == 2 * samples
    assert sum(rows[0, sample] == rows[1, sample] for sample in range(samples)) < samples / 10
    other = maskmill.open(path, batch_size=5, seed=2).rows_of(np.arange(samples))
    same = [other["input_ids"][sample].tolist() == rows[0, sample][0] for sample in range(samples)]
    assert sum(same) < samples / 10


def test_the_eval_split_and_a_glob(folder: Path) -> None:
    path = data_set(folder, "pairs", format="tfrecord")
    evaluated = maskmill.open(path, batch_size=4, split="eval", shuffle=False, tail="pad")
    by_glob = maskmill.open(f"{path}/eval*.tfrecord", batch_size=4, shuffle=False, tail="pad")
    for one, other in zip(evaluated, by_glob, strict=True):
        check_equal(one, other)


def test_options_are_checked(folder: Path) -> None:
    path = data_set(folder, "pairs", format="tfrecord")
    with pytest.raises(UnusableInputError, match="there is no option batchsize; did you mean batch_size"):
        maskmill.open(path, batchsize=4)
    with pytest.raises(UnusableInputError, match="missing a required argument: 'batch_size'"):
        maskmill.open(path, seed=4)
    with pytest.raises(UnusableInputError, match=r"examples: .*vocabulary"):
        maskmill.open(path, batch_size=4, vocabulary_size=7)


@pytest.mark.builds
def test_a_loader_goes_to_another_process_that_imports_no_beam_and_no_framework(folder: Path, tmp_path: Path) -> None:
    data = maskmill.open(data_set(folder, "drawn", format="tfrecord"), batch_size=4, prefetch=1)
    (tmp_path / "loader").write_bytes(pickle.dumps(data))
    program = """
import pickle, sys
data = pickle.load(open(sys.argv[1], "rb"))
print(next(iter(data))["input_ids"].sum(), data.steps_left)
print({"apache_beam", "tensorflow", "torch", "jax", "pyarrow", "google.cloud.storage"} & set(sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "loader"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    expected = next(iter(data))["input_ids"].sum()
    assert done.stdout.split("\n")[:2] == [f"{expected} {data.steps_left}", "set()"], done.stderr


@pytest.mark.builds
def test_all_kernels_are_there_once_a_data_set_is_open(folder: Path, tmp_path: Path) -> None:
    """So that workers that are started later compile nothing: whatever the format, the masks and the features."""
    paths = [
        Path(data_set(folder, kind, **one)) for kind in ("pairs", "drawn", "packed pairs", "bins") for one in FORMATS
    ]
    paths.append(shutil.copytree(paths[0], tmp_path / "without indexes"))
    for index in paths[-1].glob("*.idx"):
        index.unlink()
    program = """
import sys, maskmill
from maskmill.kernels import cache, compiler
from maskmill.loading.open_and_mix import KERNELS
for path in sys.argv[1:]:
    for features in ("google", "v2" if "packed" in path else "huggingface"):
        data = maskmill.open(path, batch_size=4, tail="pad", features=features)
        for batch in data:
            pass
ready = {name for module in compiler.chosen_modules(KERNELS) for name in cache.ready_files(module)}
print(sorted(cache._used - ready))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, *paths], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_importing_maskmill_imports_nothing_else() -> None:
    program = "import sys, typing; before = set(sys.modules); import maskmill; print(set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert set(ast.literal_eval(done.stdout)) <= {"maskmill", "maskmill.lazy", "__future__"}


def test_a_data_set_is_read_beside_packages_of_the_names_of_ours(tmp_path: Path) -> None:
    """A training repository may have a `transforms.py` and a `training/` of its own."""
    path = write_set(tmp_path / "data", setup_of())
    for name in ("pipelines", "transforms", "training"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('somebody else')")
    program = (
        f"import sys; sys.path.append({str(ROOT)!r}); import maskmill\n"
        f"with maskmill.open({path!r}, batch_size=4) as data: print(next(iter(data))['input_ids'].shape)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout[:4]) == (0, "(4, "), done.stderr
