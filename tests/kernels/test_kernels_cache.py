"""Where machine code is kept: warm second processes, other CPUs, read-only installs without a home."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

# Compiles one small kernel, or loads it, and says where machine code came from and whether any was made.
USE = """
import sys
{before}
from transforms.kernels.crc32c import masked_crc32c, warm_up
warm_up()
stats = masked_crc32c.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def use(cwd: Path, environment: dict[str, str], before: str = "") -> tuple[int, int]:
    """Runs the kernel in a process of its own; returns how often its code was loaded, and compiled."""
    base = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "XDG_")) and k not in ("HOME", "TMPDIR")}
    done = subprocess.run(
        [sys.executable, "-c", USE.format(before=before)],
        env=base | environment,
        cwd=cwd,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    hits, misses = done.stdout.split()
    return int(hits), int(misses)


@pytest.fixture
def install(tmp_path: Path) -> Path:
    """A copy of the package, never compiled."""
    target = tmp_path / "install"
    shutil.copytree(ROOT / "transforms", target / "transforms", ignore=shutil.ignore_patterns("__pycache__", "data"))
    return target


def code_in(directory: Path) -> set[Path]:
    return set(directory.rglob("*.nbc"))


def test_a_second_process_loads_what_the_first_compiled(install: Path) -> None:
    assert use(install, {"HOME": "/dev/null"}) == (0, 1)
    kept = code_in(install)
    assert kept
    assert use(install, {"HOME": "/dev/null"}) == (1, 0)
    assert code_in(install) == kept


def test_a_directory_that_is_named_is_used_alone(install: Path, tmp_path: Path) -> None:
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "named"), "HOME": "/dev/null"}
    assert use(install, environment) == (0, 1)
    assert use(install, environment) == (1, 0)
    assert code_in(tmp_path / "named")
    assert not code_in(install)


def test_a_read_only_install_without_a_home_uses_the_temporary_directory(install: Path, tmp_path: Path) -> None:
    # Tests may run as root, whom no permission stops: a file stands where directories would be made.
    (install / "transforms" / "kernels" / "__pycache__").write_text("")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environment = {"HOME": "/dev/null", "TMPDIR": str(temporary)}
    assert use(install, environment) == (0, 1)
    (kept,) = temporary.iterdir()
    assert kept.stat().st_mode & 0o077 == 0
    assert use(install, environment) == (1, 0)
    # In a shared temporary directory, code that others may have put there is not run.
    kept.chmod(0o777)
    assert use(install, environment) == (0, 1)


def test_nowhere_to_keep_code_is_no_error(install: Path) -> None:
    for _ in range(2):
        assert use(install, {"NUMBA_CACHE_DIR": "/dev/null"}) == (0, 1)


def test_a_damaged_cache_is_made_anew(install: Path) -> None:
    use(install, {})
    for index in install.rglob("*masked_crc32c*.nbi"):
        index.write_bytes(b"")
    assert use(install, {}) == (0, 1)
    assert use(install, {}) == (1, 0)


def test_a_change_in_what_a_kernel_calls_compiles_it_again(install: Path) -> None:
    use(install, {})
    with open(install / "transforms" / "kernels" / "memory.py", "a") as source:
        source.write("\n# changed\n")
    assert use(install, {}) == (0, 1)
    assert use(install, {}) == (1, 0)


def test_code_for_a_pinned_cpu_is_warm_on_another_cpu(install: Path) -> None:
    pinned = {"NUMBA_CPU_NAME": "x86-64-v2" if os.uname().machine == "x86_64" else "generic", "NUMBA_CPU_FEATURES": ""}
    other_cpu = (
        "import llvmlite.binding as llvm\n"
        "llvm.get_host_cpu_name = lambda: 'haswell'\n"
        "llvm.get_host_cpu_features = lambda: llvm.FeatureMap({'sse4.2': True, 'avx2': True})\n"
    )
    assert use(install, pinned) == (0, 1)
    assert use(install, pinned, other_cpu) == (1, 0)
    # Without pinning the other CPU compiles again.
    assert use(install, {}) == (0, 1)
    if os.uname().machine == "x86_64":
        assert use(install, {}, other_cpu) == (0, 1)
