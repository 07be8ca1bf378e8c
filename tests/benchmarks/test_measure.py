"""The measuring that all benchmarks share: the machine's name, and what a whole command takes."""

import os
import platform
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import measure

TWO_CORES = """\
processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 143
model name\t: Intel(R) Xeon(R)   Platinum 8481C CPU @ 2.70GHz
flags\t\t: fpu vme : de

processor\t: 1
cpu family\t: 7
model\t\t: 144
model name\t: another CPU
"""
ARM = "processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        (TWO_CORES, "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz (family 6, model 143)"),
        ("model name\t: AMD EPYC\n", "AMD EPYC"),
        (ARM, ""),
        ("", ""),
    ],
)
def test_the_cpu_is_named_with_its_family_and_model(cpuinfo: str, name: str) -> None:
    assert measure.cpu_name(cpuinfo) == name


def test_a_machine_is_described_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(TWO_CORES)
    monkeypatch.setattr(measure, "CPUINFO", cpuinfo)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3}, raising=False)
    assert measure.describe_machine(("numpy", "no-such-library")) == (
        "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz (family 6, model 143), 2 cores, "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}"
    )


@pytest.mark.parametrize(("processor", "expected"), [("arm", "arm, "), ("", "unknown CPU, ")])
def test_a_machine_without_cpuinfo_is_described_too(
    processor: str, expected: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(measure, "CPUINFO", tmp_path / "none")
    monkeypatch.setattr(platform, "processor", lambda: processor)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert measure.describe_machine(()).startswith(f"{expected}1 core, {platform.system()}")


def test_a_load_above_half_a_process_is_warned_of() -> None:
    assert measure.describe_load(0.5) == "Load average at the start: 0.50."
    assert measure.describe_load(1.234) == (
        "Load average at the start: 1.23. Warning: the machine is not quiet (load above 0.5), so measure again before "
        "using figures."
    )


def test_the_machine_is_the_first_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (0.25, 9.0, 9.0), raising=False)
    measure.print_machine(("numpy",))
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"Machine: {measure.describe_machine(('numpy',))}", "Load average at the start: 0.25.", ""]


@pytest.mark.parametrize(
    ("numerator", "denominator", "digits", "text"),
    [(130, 2, 1, "65.0"), (1, 3, 2, "0.33"), (1.0, 0.0, 1, "not measurable"), (-0.1, 2, 1, "not measurable")],
)
def test_ratios(numerator: float, denominator: float, digits: int, text: str) -> None:
    assert measure.ratio(numerator, denominator, digits) == text


def test_a_row_gives_seconds_and_megabytes() -> None:
    usage = measure.Usage(exit_code=0, cpu=1.234, wall=20.5, largest=434_400_000, total=1_000_000_000, output="")
    expected = "extract                                 1.23 s CPU     20.50 s wall"
    assert usage.row("extract") == f"{expected}     434 MB largest process,    1000 MB in all"


def test_a_command_is_measured_with_the_processes_that_it_starts() -> None:
    child = "bytearray(b'x' * 60_000_000)\nimport time\nwhile time.process_time() < 0.2: pass"
    parent = f"import subprocess, sys\nprint('started')\nsubprocess.run([sys.executable, '-c', {child!r}])\nsys.exit(3)"
    usage = measure.measure([sys.executable, "-c", parent])
    assert (usage.exit_code, usage.output) == (3, "started\n")
    assert usage.cpu >= 0.2
    assert usage.wall > 0
    assert usage.largest >= 60_000_000


def test_a_command_gets_its_environment_and_directory(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import os; print(os.environ['GREETING'], os.getcwd())"]
    usage = measure.measure(command, env=os.environ | {"GREETING": "hello"}, cwd=str(tmp_path))
    assert (usage.exit_code, usage.output) == (0, f"hello {tmp_path.resolve()}\n")


def test_shards_are_shortened_to_their_first_lines(tmp_path: Path) -> None:
    (tmp_path / "part-0").write_text("".join(f"{i}\n" for i in range(300)))
    (tmp_path / "part-1").write_text("one\n")
    measure.shorten([tmp_path / "part-0", tmp_path / "part-1"], tmp_path / "short")
    assert (tmp_path / "short" / "part-0").read_text() == "".join(f"{i}\n" for i in range(200))
    assert (tmp_path / "short" / "part-1").read_text() == "one\n"


def test_cases_take_turns() -> None:
    calls: list[str] = []
    cases = {name: lambda name=name: calls.append(name) or len(calls) for name in "ab"}
    assert measure.in_turn(2, cases) == {"a": [1, 3], "b": [2, 4]}
    assert calls == ["a", "b", "a", "b"]


def test_a_command_that_fails_ends_the_benchmark() -> None:
    with pytest.raises(SystemExit, match="ended with exit code 3:\nno luck"):
        measure.run([sys.executable, "-c", "print('no luck'); raise SystemExit(3)"])
