"""The cache of machine code: its directory, its files, and the processes, installs, versions and CPUs that share it."""

import dataclasses
import logging
import os
import pickle
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import IN_MEMORY, VOCAB, maskmill
from conftest import ROOT
from example_sets import setup_of, write_set
from trained_tokenizers import trained

from pipelines import verify_graph
from transforms.kernels import cache, compiler, kernel
from transforms.kernels.memory import load_u8
from transforms.masking.objective_options import ObjectiveOptions
from transforms.masking.options import MaskingOptions
from transforms.records.examples import kernels_of
from transforms.records.options import Format, FormatOptions
from transforms.records.plan import ExamplesPlan
from transforms.tokenization.tokenizers import load_tokenizer

pytestmark = pytest.mark.long

DAY = 24 * 60 * 60.0


def first_byte(array: Any) -> Any:
    """The kernel of these tests."""
    return load_u8(array, 0) + 1


Use = Callable[..., tuple[int, int]]


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Calls a kernel that is new to this process. Returns how often its code was loaded and how often compiled."""

    def call(*directories: Path) -> tuple[int, int]:
        monkeypatch.setattr(cache, "cache_directories", lambda: directories)
        compiled = kernel(first_byte)
        assert compiled(np.full(1, 7, np.uint8)) == 8
        return sum(compiled.stats.cache_hits.values()), sum(compiled.stats.cache_misses.values())

    return call


def code_in(directory: Path) -> list[Path]:
    """The files of machine code in a directory."""
    return sorted(directory.glob("*.machine-code"))


# ---- which directory


def test_only_the_named_directory_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert cache.cache_directories.__wrapped__() == (tmp_path / "maskmill",)


@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "HOME"])
def test_the_users_cache_directory_comes_before_the_temporary_one(
    variable: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    home, temporary = cache.cache_directories.__wrapped__()
    assert home == (tmp_path if variable == "XDG_CACHE_HOME" else tmp_path / ".cache") / "maskmill" / "kernels"
    assert temporary.parent == Path(tempfile.gettempdir())
    # All installs of a user share the directory, so its name does not depend on this checkout.
    assert ROOT.name not in temporary.name


def test_code_is_written_to_the_first_directory_that_can_be_written(use: Use, tmp_path: Path) -> None:
    # Tests may run as root, who may write everywhere, so a file is in the place of the directory.
    (tmp_path / "read-only").write_text("")
    directories = (tmp_path / "read-only" / "kernels", tmp_path / "second", tmp_path / "third")
    assert use(*directories) == (0, 1)
    assert len(code_in(tmp_path / "second")) == 1
    assert not (tmp_path / "third").exists()
    assert use(*directories) == (1, 0)
    assert use(tmp_path / "third", tmp_path / "second") == (1, 0)


def test_without_a_directory_kernels_are_compiled_with_a_warning(use: Use, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        assert use(Path("/dev/null/kernels")) == (0, 1)
    assert {(r.levelno, r.getMessage()) for r in caplog.records} == {
        (logging.WARNING, "No directory can keep compiled kernels: each process compiles anew. Set NUMBA_CACHE_DIR.")
    }


def test_code_in_a_temporary_directory_that_others_can_write_is_not_run(
    use: Use, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    directory = tmp_path / "kernels"
    assert use(directory) == (0, 1)
    assert directory.stat().st_mode & 0o077 == 0
    assert use(directory) == (1, 0)
    directory.chmod(0o777)
    assert use(directory) == (0, 1)
    directory.chmod(0o700)
    directory.rename(tmp_path / "elsewhere")
    directory.symlink_to(tmp_path / "elsewhere")
    assert use(directory) == (0, 1)


# ---- which file


@pytest.mark.parametrize("content", ["empty", "zeros", "half", "other version"])
def test_an_unusable_file_is_written_again(content: str, use: Use, tmp_path: Path) -> None:
    use(tmp_path)
    (file,) = code_in(tmp_path)
    whole = file.read_bytes()
    # A pickle of a class whose module does not exist any more.
    moved = pickle.dumps(Path, protocol=0).replace(b"pathlib", b"transforms.kernels.gone")
    replaced = {
        "empty": b"",
        "zeros": bytes(len(whole)),
        "half": whole[: len(whole) // 2],
        "other version": sha256(moved).digest() + moved,
    }
    file.write_bytes(replaced[content])
    assert use(tmp_path) == (0, 1)
    assert use(tmp_path) == (1, 0)
    assert code_in(tmp_path) == [file]


def test_each_type_of_arguments_has_its_own_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cache, "cache_directories", lambda: (tmp_path,))
    for hits in (0, 2):
        compiled = kernel(first_byte)
        assert [compiled(np.full(1, 7, dtype)) for dtype in (np.uint8, np.uint32)] == [8, 8]
        assert sum(compiled.stats.cache_hits.values()) == hits
    assert len(code_in(tmp_path)) == 2


def test_unused_files_are_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cache, "cache_directories", lambda: (tmp_path, tmp_path / "missing"))
    ages = {"old.machine-code": 61, "new.machine-code": 59, "old.machine-code.1.incomplete": 61, "other.nbc": 1000}
    now = time.time()
    for name, days in ages.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (now - days * DAY, now - days * DAY))
    assert cache.remove_unused(now - cache.KEPT_DAYS * DAY) == 2
    assert {path.name for path in tmp_path.iterdir()} == {"new.machine-code", "other.nbc"}


def test_a_used_file_gets_a_new_time_once_a_day(use: Use, tmp_path: Path) -> None:
    use(tmp_path)
    (file,) = code_in(tmp_path)
    for age, gets_new_time in ((0.9 * DAY, False), (1.1 * DAY, True)):
        written = time.time() - age
        os.utime(file, (written, written))
        assert use(tmp_path) == (1, 0)
        assert (file.stat().st_mtime > written + 1) == gets_new_time


# ---- several processes, installs and versions

MODULE = """
import values
from transforms.kernels import kernel, memory

@kernel
def entry(array):
    return memory.load_u8(array, 0) + values.LIMIT
"""

PROGRAM = """
import numpy as np
{before}
import kernels_of_test
stats = kernels_of_test.entry.stats
print(kernels_of_test.entry(np.ones(1, np.uint8)), sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def version(folder: Path, limit: int, comment: str = "") -> Path:
    """Makes a folder with a kernel that uses a constant and an intrinsic through the names of their modules."""
    folder.mkdir(exist_ok=True)
    (folder / "values.py").write_text(f"LIMIT = {limit}\n")
    (folder / "kernels_of_test.py").write_text(comment + MODULE)
    return folder


def run(folder: Path, directory: Path, before: str = "", **environment: str) -> tuple[int, ...]:
    """Runs the kernel in a new process. Returns its result and how often code was loaded and how often compiled."""
    base = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    paths = {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "NUMBA_CACHE_DIR": str(directory)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM.format(before=before)],
        env=base | paths | environment,
        capture_output=True,
        text=True,
    )
    result, loaded, compiled = map(int, done.stdout.split())
    assert (done.returncode, done.stderr.count("maskmill: compiling")) == (0, min(compiled, 1)), done.stderr
    return result, loaded, compiled


def test_versions_share_a_directory(tmp_path: Path) -> None:
    first, directory = version(tmp_path / "first", 3), tmp_path / "named"
    assert run(first, directory) == (4, 0, 1)
    # Another install of the same code, in which only a comment differs, compiles nothing.
    assert run(version(tmp_path / "second", 3, "# A comment.\n"), directory) == (4, 1, 0)
    # Another version, in which only a module's constant differs, has a file of its own.
    assert run(version(tmp_path / "second", 30), directory) == (31, 0, 1)
    assert run(first, directory) == (4, 1, 0)
    assert len(code_in(directory / "maskmill")) == 2
    # Nothing is written beside the sources.
    assert {path.suffix for path in first.rglob("*.*")} <= {".py", ".pyc"}


def test_code_for_a_pinned_cpu_is_warm_on_another_cpu(tmp_path: Path) -> None:
    folder, directory = version(tmp_path / "install", 3), tmp_path / "named"
    cpu = "x86-64-v2" if os.uname().machine == "x86_64" else "generic"
    pinned = {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": ""}
    other_cpu = (
        "import llvmlite.binding as llvm\n"
        "llvm.get_host_cpu_name = lambda: 'haswell'\n"
        "llvm.get_host_cpu_features = lambda: llvm.FeatureMap({'sse4.2': True, 'avx2': True})\n"
    )
    assert run(folder, directory, **pinned) == (4, 0, 1)
    assert run(folder, directory, other_cpu, **pinned) == (4, 1, 0)
    # Without pinning it compiles again.
    if os.uname().machine == "x86_64":
        assert run(folder, directory, other_cpu) == (4, 0, 1)


def test_warming_up_removes_unused_files(tmp_path: Path) -> None:
    old = tmp_path / "maskmill" / "old.machine-code"
    old.parent.mkdir()
    old.touch()
    os.utime(old, (0, 0))
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "transforms.kernels", "kernels"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")  # the processes that compile do not each say so
    warmed, removed = done.stdout.splitlines()
    assert warmed.startswith("transforms.kernels.crc32c, transforms.kernels.random: warm after ")
    assert warmed.endswith(f"looked for in {tmp_path / 'maskmill'}")
    assert removed == "removed 1 files that were not used for 60 days"
    assert not old.exists()
    # The cache keeps every kernel that was compiled on the way.
    assert any(path.name.startswith("transforms.kernels.crc32c.masked_crc32c-") for path in code_in(old.parent))


# ---- what the user is told


NOTICE = re.compile(
    r"maskmill: compiling for this machine, which takes about a minute, once; kept in (\S+)\n"
    r"maskmill: compiled; the next command starts at once\n"
)


def prepare(cache_directory: Path) -> str:
    """What a new process says that prepares the kernels of `characters`."""
    done = subprocess.run(
        [sys.executable, "-c", "from transforms.kernels import compiler; compiler.prepare(['characters'])"],
        cwd=ROOT, env=os.environ | {"NUMBA_CACHE_DIR": str(cache_directory)}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return done.stderr


def test_the_user_is_told_of_a_compilation_once(tmp_path: Path) -> None:
    said = NOTICE.fullmatch(prepare(tmp_path))
    assert said is not None
    assert Path(said[1]) == tmp_path / "maskmill"
    assert len(code_in(tmp_path / "maskmill")) >= 1
    assert prepare(tmp_path) == ""


def test_what_is_prepared_is_chosen_by_step_or_module() -> None:
    assert compiler.warm(["sentences"]) == [f"transforms.sentences.kernels.{name}" for name in ("boundaries", "punkt")]
    assert compiler.warm(["extraction.kernels.wikitext"]) == ["transforms.extraction.kernels.wikitext"]
    assert len(compiler.warm(["extraction.kernels.wikiextractor"])) == 6
    assert compiler.warm(["extraction.kernels.wiki_text"]) == []


@pytest.mark.parametrize(
    "of_plan",
    [(), ("--objective=mlm", "--pack", "--mask_unit=span", "--format=mds")],
    ids=["the reference's", "packed sequences of byte-level pieces"],
)
def test_a_stage_prepares_all_kernels_that_it_runs(of_plan: tuple[str, ...], tmp_path: Path) -> None:
    """Nothing is compiled while an example stage runs: it was prepared before, and the user was told."""
    plan, loaded, vocabulary = ExamplesPlan(masking=MaskingOptions()), None, f"--vocab_file={VOCAB}"
    if of_plan:
        (tmp_path / "tokenizer.json").write_text(trained("bpe"))
        loaded = load_tokenizer("tokenizer.json", trained("bpe").encode())
        assert loaded.kernels
        vocabulary = f"--tokenizer_file={tmp_path}/tokenizer.json"
        objective = ObjectiveOptions(objective="mlm", pack=True, mask_unit="span")
        plan = dataclasses.replace(plan, objective=objective, format=FormatOptions(format="mds"))
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    kernels = kernels_of(plan, loaded.kernels) if loaded else kernels_of(plan)
    program = f"from transforms.kernels import compiler; compiler.prepare({kernels!r})"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=os.environ | environment, check=True)
    prepared = {path.name for path in code_in(tmp_path / "cache" / "maskmill")}
    assert prepared
    (tmp_path / "part").write_text("A first sentence.\nAnd a second.\n\nAnother document.\nIts end.\n\n" * 50)
    flags = [f"--input={tmp_path}/part", vocabulary, f"--output={tmp_path}/out", *of_plan, *IN_MEMORY]
    done = maskmill("examples", *flags, **environment)
    assert done.returncode == 0, done.stderr
    assert "maskmill:" not in done.stderr
    compiled = {path.name for path in code_in(tmp_path / "cache" / "maskmill")} - prepared
    assert not compiled, "the stage compiled these behind the user's back"


@pytest.mark.defects
def test_verifying_runs_only_kernels_that_were_prepared(tmp_path: Path) -> None:
    formats: tuple[Format, ...] = ("tfrecord", "parquet", "mds")
    sets = [write_set(tmp_path / format, setup_of(format=format)) for format in formats]
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    kernels = verify_graph.KERNELS + verify_graph.REMAKING_KERNELS
    program = f"from transforms.kernels import compiler; compiler.prepare({kernels!r})"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=os.environ | environment, check=True)
    prepared = {path.name for path in code_in(tmp_path / "cache" / "maskmill")}
    done = maskmill("verify", *sets, *IN_MEMORY, **environment)
    compiled = {path.name for path in code_in(tmp_path / "cache" / "maskmill")} - prepared
    assert (compiled, done.returncode) == (set(), 0), done.stdout + done.stderr
