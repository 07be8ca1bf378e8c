"""Plants the faults of tests/planted_faults.toml, one at a time, and prints which target of make catches each.

    python .ci/plant_faults.py
    python .ci/plant_faults.py --only file-not-synced lock-not-released
    python .ci/plant_faults.py --target test --target test-heavy

It works in a clone of HEAD, which it deletes. For each fault it runs the tests that the list names for it, as
`make test` selects them, and, as long as none fails, as the heavier targets select them, in the order of `.ci/run`. The
Python that runs it runs the tests: use .venv/bin/python after `make venv`, or .venv-training/bin/python, which runs the
tests of test-training too.

A row is printed for each fault: its name, its room, the target that catches it, the test that fails, seconds. A test
counts only if it passes without the fault. Exit code: 0 every fault is caught, 1 one is not.
"""

import argparse
import collections
import dataclasses
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FAULTS = "tests/planted_faults.toml"
NOT_CAUGHT = "NOT CAUGHT"

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "maskmill" / "kernels"
_DONE = {0: "all passed", 5: "no test was selected"}  # exit codes of pytest
_FULL = "full"  # the profile of Hypothesis that tests have without another


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fault:
    """An entry of the list, which says what its keys mean."""

    name: str
    file: str
    old: str
    new: str
    tests: Sequence[str]

    @property
    def room(self) -> str:
        """The package that the fault is in: a room of maskmill, or one of the other packages."""
        parts = self.file.split("/")
        return "/".join(parts[:2]) if parts[0] == "maskmill" and len(parts) > 2 else parts[0]

    def planted(self, source: str) -> str:
        """The source of its file with the fault in it.

        Raises:
          ValueError: the text to replace is not there exactly once, or what comes of it is no Python.
        """
        if (times := source.count(self.old)) != 1:
            raise ValueError(f"{self.name}: {self.file} has the text {self.old!r} {times} times, not once.")
        faulty = source.replace(self.old, self.new)
        compile(faulty, self.file, "exec")
        return faulty


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """A target of make: which tests it selects by their marks, and where it looks for them.

    places: the only files and folders it runs; empty: all, of which those that the list names for a fault are run.
    """

    name: str
    marks: str
    places: Sequence[str] = ()
    profile: str = _FULL


class NoEndError(Exception):
    """Tests have not ended in time."""


def read_faults(root: Path = ROOT) -> list[Fault]:
    """The faults of the list."""
    entries = tomllib.loads((root / FAULTS).read_text(encoding="utf-8"))["fault"]
    return [Fault(**entry) for entry in entries]


def read_targets() -> list[Target]:
    """The targets that look for faults, in the order of `.ci/run`; what the first two select stands in the Makefile."""
    show = ["make", "--silent", f"--directory={ROOT}", "--eval=show: ; @echo '$(LIGHT)' && echo '$(HERE)'", "show"]
    light, here = subprocess.run(show, check=True, capture_output=True, text=True).stdout.splitlines()
    targets = [
        Target(name="test", marks=light, profile="fast"),
        Target(name="test-heavy", marks=f"{here} and builds", profile="part"),
        Target(name="test-heavy, in Python", marks="in_python", places=("tests/extraction",)),
        Target(name="test-flink", marks="elsewhere and not exhaustive", places=("tests/deploy/test_flink.py",)),
    ]
    if importlib.util.find_spec("tensorflow") is not None:
        places = ("tests/training", "tests/vocabularies", "tests/loading")
        targets.append(Target(name="test-training", marks="elsewhere and not exhaustive", places=places))
    return targets


class Planter:
    """A clone of HEAD, and the tests that run in it."""

    def __init__(self, work: Path, seconds: float) -> None:
        """Makes the clone.

        Args:
          work: an empty directory.
          seconds: how long the tests of one file or folder may take.
        """
        self._clone = work / "maskmill"
        self._cache = work / "pytest"
        self._seconds = seconds
        self._passes: dict[tuple[str, str], bool] = {}
        subprocess.run(["git", "clone", "--quiet", ROOT, self._clone], check=True)
        if _CACHE.is_dir():
            shutil.copytree(_CACHE, work / "kernels")
        (work / "tmp").mkdir()
        self._environment = os.environ | {
            "PYTHONPATH": str(self._clone),
            "NUMBA_CACHE_DIR": str(work / "kernels"),
            "TMPDIR": str(work / "tmp"),
            "MASKMILL_SHARED": os.environ.get("MASKMILL_SHARED", str(ROOT.parent / "shared")),
        }

    def catch(self, fault: Fault, targets: Sequence[Target]) -> tuple[str, str]:
        """The first target that catches a fault, and the test that fails; NOT_CAUGHT, and why not."""
        file = self._clone / fault.file
        source = file.read_text(encoding="utf-8")
        faulty = fault.planted(source)
        notes = []
        for target in targets:
            for place, ignored in _places(target.places or fault.tests):
                try:
                    _write(file, faulty)
                    try:
                        failed = self._first_failed(target, place, ignored)
                    finally:
                        _write(file, source)
                    if failed and self._passes_without(target, failed):
                        return target.name, failed
                except NoEndError as error:
                    notes.append(f"{target.name}: {error}")
                    continue
                if failed:
                    notes.append(f"{target.name}: {failed} fails without the fault, too")
        return NOT_CAUGHT, "; ".join(notes)

    def _passes_without(self, target: Target, test: str) -> bool:
        key = (target.name, test)
        if key not in self._passes:
            self._passes[key] = not self._first_failed(target, test, ())
        return self._passes[key]

    def _first_failed(self, target: Target, place: str, ignored: Sequence[str]) -> str:
        """The first test that fails among those of a file or folder that a target selects; empty where all pass.

        Raises:
          NoEndError: they have not ended in time.
        """
        shutil.rmtree(self._cache, ignore_errors=True)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-o", f"cache_dir={self._cache}"]
        command += [f"--hypothesis-profile={target.profile}", "-m", target.marks]
        command += [f"--ignore={path}" for path in ignored] + [place]
        with subprocess.Popen(
            command,
            cwd=self._clone,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as tests:
            try:
                tests.wait(self._seconds)
            except subprocess.TimeoutExpired:
                raise NoEndError(f"{place} has not ended after {self._seconds:.0f} s") from None
            finally:
                # The tests' own processes are in its group; a fault may leave some after.
                _end_group(tests.pid)
        if tests.returncode in _DONE:
            return ""
        last_failed = self._cache / "v" / "cache" / "lastfailed"
        failed = json.loads(last_failed.read_text()) if last_failed.exists() else {}
        return next(iter(failed), place)


def _end_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


def _places(places: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """The files and folders of tests, each with what was run before and lies in it."""
    for number, place in enumerate(places):
        yield place, [before for before in places[:number] if before.startswith(f"{place}/")]


def _write(file: Path, source: str) -> None:
    """Writes a source; Python would take bytecode of the same second and size for that of this source."""
    file.write_text(source, encoding="utf-8")
    for bytecode in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        bytecode.unlink()


def _chosen_faults(names: Sequence[str] | None) -> list[Fault]:
    faults = {fault.name: fault for fault in read_faults()}
    unknown = [name for name in names or () if name not in faults]
    if unknown:
        raise SystemExit(f"{unknown[0]}: {FAULTS} has no fault of this name.")
    return [faults[name] for name in names] if names else list(faults.values())


def _chosen_targets(names: Sequence[str] | None) -> list[Target]:
    """Targets by their names; anything else is an expression of marks, as pytest's -m takes it."""
    targets: Mapping[str, Target] = {target.name: target for target in read_targets()}
    if not names:
        return list(targets.values())
    return [targets.get(name) or Target(name=name, marks=name) for name in names]


def main() -> int:
    """Plants the faults that the command line names; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="plant these faults alone")
    parser.add_argument("--target", action="append", metavar="MARKS", help="a target, or marks as for pytest's -m")
    parser.add_argument("--minutes", type=float, default=5.0, help="the longest run of one file or folder of tests")
    given = parser.parse_args()
    faults, targets = _chosen_faults(given.only), _chosen_targets(given.target)
    caught: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="maskmill-faults-") as work:
        planter = Planter(Path(work), 60 * given.minutes)
        for fault in faults:
            began = time.monotonic()
            target, test = planter.catch(fault, targets)
            caught[target] += 1
            seconds = time.monotonic() - began
            print(f"{fault.name:<42} {fault.room:<24} {target:<22} {test or '-'} {seconds:.0f}", flush=True)
    print()
    for name in [*(target.name for target in targets), NOT_CAUGHT]:
        if caught[name]:
            print(f"{name:<42} {caught[name]}")
    return 1 if caught[NOT_CAUGHT] else 0


if __name__ == "__main__":
    sys.exit(main())
