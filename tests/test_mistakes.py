"""Every command with a mistake in it ends with its exit code and one sentence, and leaves everything as it was.

The rows lie in tests/mistakes/, a module for each kind of mistake.
"""

import contextlib
import hashlib
import importlib
import os
import pkgutil
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import mistakes
import pytest
from conftest import ROOT
from mistakes.table import Mistake, make_good_inputs

from pipelines.commands import cli

pytestmark = pytest.mark.long

# What is written while a run goes on, in front of the sentence that ends it; with a cold cache, also that
# kernels are compiled.
PROGRESS = re.compile(
    r"(templates|extract|text shards|examples)( [\d,]+/[\d,]+|: [\d,]+ files?, )"
    r"|maskmill: (compiling .* for|compiled;) "
)

# After this a command counts as hanging, on the busiest machine too: it measures no speed.
PATIENCE_S = 300

TABLES = {
    module.name: importlib.import_module(f"mistakes.{module.name}").MISTAKES
    for module in pkgutil.iter_modules(mistakes.__path__)
    if module.name != "table"
}
# Every twelfth row of a table is in `make test`, unless it needs a process; of the others every fourth is in
# `make test-heavy`, and all are in `make test-exhaustive`.
_SHARE, _SHARE_OF_BUILDS = 12, 4


def _marks(number: int, row: Mistake) -> list[pytest.MarkDecorator]:
    if number % _SHARE == 0 and not row.process and not row.shell:
        return []
    return [pytest.mark.builds, *([pytest.mark.exhaustive] if number % _SHARE_OF_BUILDS else [])]


ROWS = [
    pytest.param(row, id=row.name, marks=_marks(number, row))
    for rows in TABLES.values()
    for number, row in enumerate(rows)
]


@pytest.fixture(scope="session")
def good_inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good")
    make_good_inputs(folder)
    return folder


@pytest.fixture
def folder(good_inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh copy of the good inputs, and the current directory of the test."""
    path = tmp_path / "case"
    shutil.copytree(good_inputs, path)
    monkeypatch.chdir(path)
    return path


def describe(folder: Path) -> dict[str, str]:
    """Kind, permissions and content of everything below a folder, by relative path."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = ""
        if path.is_symlink():
            content = os.readlink(path)
        elif path.is_file() and os.access(path, os.R_OK):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        found[os.fsencode(path.relative_to(folder)).decode("utf-8", "backslashreplace")] = (
            f"{status.st_mode:o} {content}"
        )
    return found


@contextlib.contextmanager
def deadline() -> Iterator[None]:
    def late(_: int, __: FrameType | None) -> None:
        raise TimeoutError(f"the command did not end within {PATIENCE_S} s")

    previous = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def run_process(row: Mistake, folder: Path) -> tuple[int, str, str]:
    maskmill = f"{shlex.quote(sys.executable)} -m maskmill"
    line = row.command if row.shell else f"maskmill {row.command}"
    done = subprocess.run(
        ["bash", "-c", f'maskmill() {{ {maskmill} "$@"; }}\n{line}'],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


@pytest.mark.parametrize("row", ROWS)
def test_a_mistake_gets_one_sentence_and_loses_nothing(
    row: Mistake, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, content in row.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            content(path)
    before = describe(folder)
    if row.process or row.shell:
        code, out, err = run_process(row, folder)
    else:
        capfd.readouterr()
        with deadline():
            code = cli.main(shlex.split(row.command))
        out, err = capfd.readouterr()

    said = f"exit {code}\n{out}\n{err}"
    assert code == row.code, said
    assert "Traceback" not in out + err, said
    assert "usage:" not in err, said
    if row.code:
        sentences = [line for line in err.splitlines() if line.strip() and not PROGRESS.match(line)]
        assert len(sentences) == 1, said
        assert re.match(r"maskmill( [a-z-]+)?: .*[.?!]$", sentences[0]), said
        assert re.search(row.says, sentences[0]), said
    else:
        assert re.search(row.says, out + err), said
    after = describe(folder)
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    allowed = {name for name in changed if any(name == kept or name.startswith(f"{kept}/") for kept in row.leaves)}
    assert not changed - allowed, said


def test_the_tables_have_enough_rows_with_names_of_their_own() -> None:
    names = [row.name for rows in TABLES.values() for row in rows]
    assert len(names) == len(set(names))
    assert len(names) >= 379
