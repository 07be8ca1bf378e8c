"""Measures what a newcomer waits for: a clone, an empty home, and the README's commands.

    python -m benchmarks.bare_machine [--ci] [--scratch DIR]

Clones the last commit of this checkout into a folder called maskmill below a new directory, with a home, caches and a
directory for temporary files of its own; only what pip has downloaded stays. Prints for each row wall time, CPU seconds
of all processes, and what was compiled:

- `make demo` and `make test` in the clone;
- a wheel of the clone, built where the kernels are compiled already and where they are not, and its size;
- the base install in an environment of its own, with its size and the number of packages;
- the wheel, installed: its first commands, each beside the same command again.

`--ci` runs `.ci/run` in the clone, too, which makes another clone itself.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.measure import measure, print_machine

ROOT = Path(__file__).parent.parent
TEXT = "The quick brown fox jumps over the lazy dog. It barks at night.\n\nAnother document. It ends here.\n" * 80
COUNTS = re.compile(r"\b\d+ (?:passed|failed|error)[^\n]*")


class Machine:
    """A directory that is all that a command knows of the machine."""

    def __init__(self, folder: Path, shared: Path) -> None:
        self.folder = folder
        self.clone = folder / "maskmill"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(self.clone)], check=True)
        if shared.is_dir():
            (folder / "shared").symlink_to(shared)
        self.variables = self._new_home("home")

    def _new_home(self, name: str) -> Mapping[str, str]:
        home = self.folder / name
        (home / "tmp").mkdir(parents=True)
        downloads = subprocess.run(["pip", "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()
        own = {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "TMPDIR": str(home / "tmp")}
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "MASKMILL_"))}
        return {**kept, **own, "PIP_CACHE_DIR": downloads}

    def forget(self, name: str) -> None:
        """Goes on with another empty home."""
        self.variables = self._new_home(name)

    def run(self, label: str, *command: str | Path) -> None:
        """Runs a command in the clone and prints its row."""
        usage = measure([str(part) for part in command], cwd=str(self.clone), env=dict(self.variables))
        if usage.exit_code != 0:
            sys.exit(f"{label}: exit code {usage.exit_code}\n{usage.output[-3000:]}")
        said = [line for line in usage.output.splitlines() if "maskmill: compiling" in line]
        compiled = ", ".join(re.findall(r"compiling (\d+ of \d+) modules", "\n".join(said))) or "nothing"
        tests = "; ".join(COUNTS.findall(usage.output))
        row = f"{label:<34} {usage.wall:7.1f} s wall {usage.cpu:7.1f} s CPU   compiled: {compiled}"
        print(row + (f"   {tests}" if tests else ""), flush=True)


def main() -> None:
    """Prints the machine, then the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ci", action="store_true")
    parser.add_argument("--scratch", default=None)
    arguments = parser.parse_args()
    print_machine()
    with tempfile.TemporaryDirectory(dir=arguments.scratch, prefix="bare-machine-") as name:
        machine = Machine(Path(name), Path(os.environ.get("MASKMILL_SHARED", ROOT.parent / "shared")).resolve())
        machine.run("make demo", "make", "demo")
        machine.run("make test", "make", "test")
        machine.run("make wheel, kernels compiled", "make", "wheel")
        shutil.rmtree(machine.clone / "dist")
        machine.forget("home-of-wheel")
        machine.run("make wheel, from nothing", "make", "wheel")
        (wheel,) = (machine.clone / "dist").glob("*.whl")
        print(f"{'the wheel':<34} {wheel.stat().st_size / 1e6:7.1f} MB")
        machine.run("an environment", sys.executable, "-m", "venv", machine.folder / "installed")
        pip = machine.folder / "installed" / "bin" / "pip"
        machine.run("its packages", pip, "install", "--quiet", "--no-compile", "--requirement", "requirements.lock")
        machine.run("the wheel, installed", pip, "install", "--quiet", "--no-deps", wheel)
        environment = pip.parent.parent
        packages = len(list(environment.glob("lib/python3*/site-packages/*.dist-info")))
        size = sum(path.stat().st_size for path in environment.rglob("*") if not path.is_symlink() and path.is_file())
        print(f"{'the environment':<34} {size / 1e6:7.0f} MB {packages:7} packages, pip and maskmill counted")
        (machine.clone / "text.txt").write_text(TEXT)
        maskmill, vocabulary = machine.folder / "installed" / "bin" / "maskmill", "--vocab_file=tests/data/vocab.txt"
        machine.forget("home-of-user")
        for turn in ("first", "second"):
            out = machine.folder / turn
            machine.run(f"{turn} build of the demo", maskmill, "build", "examples/demo.yaml", f"--output={out}/demo")
            machine.run(f"{turn} extract", maskmill, "extract", "--input=text.txt", f"--output={out}/text")
            examples = ("examples", f"--input={out}/text", f"--output={out}/examples", vocabulary)
            machine.run(f"{turn} examples", maskmill, *examples)
            machine.run(f"{turn} verify", maskmill, "verify", f"{out}/examples")
            opened = f"import maskmill; next(iter(maskmill.open({str(out / 'examples')!r}, batch_size=4)))"
            machine.run(f"{turn} open", maskmill.with_name("python"), "-P", "-c", opened)
            machine.run(f"{turn} --help", maskmill, "--help")
        if arguments.ci:
            machine.run(".ci/run", "bash", ".ci/run")


if __name__ == "__main__":
    main()
