"""The cache of machine code: its directory, its files, and the processes, installs, versions and CPUs that share it."""

import logging
import os
import pickle
import re
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT

from maskmill.errors import RunFailedError
from maskmill.kernels import cache, compiler, kernel, processor
from maskmill.kernels.memory import load_u8
from pipelines.stages import kernels

pytestmark = pytest.mark.long

DAY = 24 * 60 * 60.0


def first_byte(array: Any) -> Any:
    """The kernel of these tests."""
    return load_u8(array, 0) + 1


Capsys = pytest.CaptureFixture[str]
Use = Callable[[Path], tuple[int, int]]


def keep_in(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has machine code kept in a directory."""
    monkeypatch.setattr(cache, "user_directory", lambda: directory)
    monkeypatch.setattr(cache, "cache_directories", lambda: (directory,))


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Calls a kernel that is new to this process. Returns how often its code was loaded and how often compiled."""

    def call(directory: Path) -> tuple[int, int]:
        keep_in(directory, monkeypatch)
        compiled = kernel(first_byte)
        assert compiled(np.full(1, 7, np.uint8)) == 8
        return sum(compiled.stats.cache_hits.values()), sum(compiled.stats.cache_misses.values())

    return call


def code_in(directory: Path) -> list[Path]:
    """The files of machine code in a directory."""
    return sorted(directory.glob("*.machine-code"))


# ---- which directory


@pytest.mark.parametrize(
    ("variables", "directory"),
    [
        ({"NUMBA_CACHE_DIR": "/named", "XDG_CACHE_HOME": "/caches", "HOME": "/user"}, "/named/maskmill"),
        ({"XDG_CACHE_HOME": "/caches", "HOME": "/user"}, "/caches/maskmill/kernels"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/user"}, "/user/.cache/maskmill/kernels"),
        ({"HOME": "/user"}, "/user/.cache/maskmill/kernels"),
        ({}, "/dev/null/maskmill/kernels"),
    ],
)
def test_which_directory_is_used(variables: dict[str, str], directory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(os, "getuid", lambda: 10001)  # without HOME, a user that the system does not know has no home
    if "HOME" not in variables:
        monkeypatch.delenv("HOME", raising=False)
    # All installs of a user share the directory, so its name does not depend on this checkout.
    assert cache.user_directory.__wrapped__() == Path(directory)


def test_without_a_directory_kernels_are_compiled_with_a_warning(use: Use, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        assert use(Path("/dev/null/kernels")) == (0, 1)
    assert {(r.levelno, r.getMessage()) for r in caplog.records} == {
        (logging.WARNING, "No directory can keep compiled kernels: each process compiles anew. Set NUMBA_CACHE_DIR.")
    }


# ---- which file


@pytest.mark.parametrize("content", ["empty", "zeros", "half", "other version"])
def test_an_unusable_file_is_written_again(content: str, use: Use, tmp_path: Path) -> None:
    use(tmp_path)
    (file,) = code_in(tmp_path)
    whole = file.read_bytes()
    # A pickle of a class whose module does not exist any more.
    moved = pickle.dumps(Path, protocol=0).replace(b"pathlib", b"maskmill.kernels.gone")
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
    keep_in(tmp_path, monkeypatch)
    for hits in (0, 2):
        compiled = kernel(first_byte)
        assert [compiled(np.full(1, 7, dtype)) for dtype in (np.uint8, np.uint32)] == [8, 8]
        assert sum(compiled.stats.cache_hits.values()) == hits
    assert len(code_in(tmp_path)) == 2


def test_old_files_are_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keep_in(tmp_path, monkeypatch)
    ages = {
        "old.machine-code": 61,
        "new.machine-code": 59,
        "old.machine-code.1.incomplete": 61,
        "old.ready": 61,
        "other.nbc": 1000,
    }
    for name, days in ages.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() - days * DAY,) * 2)
    assert cache.remove_old() == 3
    assert {path.name for path in tmp_path.iterdir()} == {"new.machine-code", "other.nbc"}


# ---- several processes, installs and versions

MODULE = """
from maskmill.kernels import kernel, memory

LIMIT = {limit}

@kernel
def entry(array):
    return memory.load_u8(array, 0) + LIMIT
"""

PROGRAM = """
import numpy as np
{before}
import kernels_of_test
stats = kernels_of_test.entry.stats
print(kernels_of_test.entry(np.ones(1, np.uint8)), sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def version(folder: Path, limit: int) -> Path:
    """Makes a folder with a kernel that uses a constant, and an intrinsic through the name of its module."""
    folder.mkdir(exist_ok=True)
    (folder / "kernels_of_test.py").write_text(MODULE.format(limit=limit))
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


@pytest.mark.builds
def test_versions_share_a_directory(tmp_path: Path) -> None:
    first, directory = version(tmp_path / "first", 3), tmp_path / "named"
    assert run(first, directory) == (4, 0, 1)
    # Another install of the same code compiles nothing.
    assert run(version(tmp_path / "second", 3), directory) == (4, 1, 0)
    # Another version, in which only a constant differs, has a file of its own.
    assert run(version(tmp_path / "second", 30), directory) == (31, 0, 1)
    assert run(first, directory) == (4, 1, 0)
    assert len(code_in(directory / "maskmill")) == 2
    # Nothing is written beside the sources.
    assert {path.suffix for path in first.rglob("*.*")} <= {".py", ".pyc"}


@pytest.mark.builds
def test_code_for_the_fixed_processor_is_warm_on_another_one(tmp_path: Path) -> None:
    folder, directory = version(tmp_path / "install", 3), tmp_path / "named"
    assert run(folder, directory) == (4, 0, 1)
    if os.uname().machine == "x86_64":
        before = (
            "import llvmlite.binding as llvm\n"
            "import importlib.util, sys\n"
            "llvm.get_host_cpu_name = lambda: 'other'\n"
            "llvm.get_host_cpu_features = {features}\n"
        )
        targets = sorted(processor._TARGETS["x86_64"][1] | {"avx512f"})
        newer = f"lambda: llvm.FeatureMap({dict.fromkeys(targets, True)!r})"
        assert run(folder, directory, before.format(features=newer)) == (4, 1, 0)
        # One that lacks what the code needs has code of its own.
        older = "lambda: llvm.FeatureMap({'sse4.2': True})"
        assert run(folder, directory, before.replace("'other'", "'nehalem'").format(features=older)) == (4, 0, 1)


@pytest.mark.builds
def test_code_with_checks_is_kept_apart(tmp_path: Path) -> None:
    folder, directory = version(tmp_path / "install", 3), tmp_path / "named"
    assert run(folder, directory) == (4, 0, 1)
    assert run(folder, directory, NUMBA_BOUNDSCHECK="1") == (4, 0, 1)
    assert run(folder, directory) == (4, 1, 0)


# ---- compiled before a command starts

NOTICE = re.compile(
    r"maskmill: compiling (\d+) of (\d+) modules for this kind of processor, once, to be kept in (\S+)\n"
)


def in_new_process(program: str, cache_directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a program that knows `compiler` and `cache`."""
    return subprocess.run(
        [sys.executable, "-c", f"from maskmill.kernels import cache, compiler\n{program}"], cwd=ROOT,
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache_directory)} | environment, capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.builds
def test_the_user_is_told_of_a_compilation_once(tmp_path: Path) -> None:
    prepare = "print(compiler.prepare(['characters', 'loading']))"
    done = in_new_process(prepare, tmp_path)
    said = NOTICE.fullmatch(done.stderr)
    assert said is not None, done.stderr
    assert (said[1], int(said[2]), Path(said[3])) == ("2", len(compiler.chosen_modules()), tmp_path / "maskmill")
    assert done.stdout == "2\n"
    made = sorted((tmp_path / "maskmill").iterdir())
    assert [path.suffix for path in made].count(".ready") == 2
    again = in_new_process(prepare, tmp_path)
    assert (again.stdout, again.stderr) == ("0\n", "")
    assert sorted((tmp_path / "maskmill").iterdir()) == made
    # A file that is gone is made again.
    gone = code_in(tmp_path / "maskmill")[0]
    gone.unlink()
    assert in_new_process(prepare, tmp_path).stdout == "1\n"
    assert gone.exists()


def test_packages_of_the_same_name_in_the_current_directory_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "transforms.py").write_text("raise SystemExit('somebody else')")
    program = f"import os\nos.chdir({str(tmp_path)!r})\nprint(compiler.prepare(['characters']))"
    assert in_new_process(program, tmp_path / "cache").stdout == "1\n"


@pytest.mark.builds
def test_progress_is_told_for_each_module(tmp_path: Path) -> None:
    done = in_new_process("compiler.prepare(['characters', 'loading'], lambda *told: print(*told))", tmp_path)
    told = done.stdout.splitlines()
    assert told == sorted(told)
    assert told[-1] == "2 2"


def test_a_compiler_that_fails_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keep_in(tmp_path, monkeypatch)
    monkeypatch.setattr(compiler, "chosen_modules", lambda only=None: ["no.such_module"])
    with pytest.raises(RunFailedError, match=r"Compiling failed .*No module named 'no'"):
        compiler.prepare(["no"])


def test_where_nothing_can_be_kept_nothing_is_compiled_beforehand() -> None:
    done = in_new_process("print(compiler.prepare(['characters']))", Path("/dev/null"))
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.builds
def test_what_the_package_brings_is_used(tmp_path: Path) -> None:
    """As from a wheel, read-only and without a home directory: nothing is compiled, nothing is said."""
    assert in_new_process("compiler.prepare(['characters'])", tmp_path).returncode == 0
    packaged = f"from pathlib import Path\ncache.PACKAGED = Path({str(tmp_path / 'maskmill')!r})\n"
    use = "from maskmill.characters.kernels import characters\ncharacters.warm_up()\n"
    ended = "print(compiler.prepare(['characters']), characters.first_invalid.stats.cache_misses)"
    done = in_new_process(packaged + use + ended, Path("/dev/null"))
    assert (done.stdout, done.stderr) == ("0 Counter()\n", "")


def test_what_is_prepared_is_chosen_by_step_or_module() -> None:
    chosen = compiler.chosen_modules
    assert chosen(["sentences"]) == [
        f"maskmill.sentences.kernels.{name}" for name in ("boundaries", "common_words", "punkt")
    ]
    assert chosen(["extraction.kernels.wikitext"]) == ["maskmill.extraction.kernels.wikitext"]
    assert len(chosen(["compat"])) == 5
    with pytest.raises(ValueError, match="wiki_text' names no module"):
        chosen(["extraction.kernels.wiki_text"])


def test_warming_up_removes_old_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    keep_in(tmp_path, monkeypatch)
    old = tmp_path / "old.machine-code"
    old.touch()
    os.utime(old, (0, 0))
    monkeypatch.setattr(compiler, "prepare", lambda *_: 0)
    monkeypatch.setattr(cache, "is_ready", lambda _: True)
    kernels.warm_up()
    assert not old.exists()
    assert capsys.readouterr().out.startswith("removed 1 files that were older than 60 days\nnothing to compile; ")
