"""Measures how fast maskmill and other programs read dumps, in MB of XML a CPU second.

    python -m benchmarks.reading [DUMP.xml.bz2] [--repeats 3]

Unpacks the dump with Python's bz2, with maskmill, and with rapidgzip and indexed_bzip2 where they are installed. Parses
its XML with ElementTree and with maskmill. Reads pages from the bz2, as `extract` does, in one process and in two. CPU
time includes all threads and child processes; CPU time and wall time are each the least of the repeats.
"""

import argparse
import bz2
import concurrent.futures
import hashlib
import multiprocessing
import resource
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import print_machine
from maskmill.storage import files
from transforms.inputs import units
from transforms.inputs.options import ReadOptions
from transforms.inputs.sources import Source
from transforms.inputs.units import Unit, plan_units

SAMPLE = Path(__file__).parent.parent / "tests" / "data" / "dump" / "enwiki-sample-multistream.xml.bz2"


def cpu_seconds() -> float:
    """CPU seconds of this process, its threads and its finished children."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def unpack_with_maskmill(path: str) -> int:
    """Unpacks with maskmill, the whole file as one unit. Returns the number of bytes, as the others do."""
    total = 0
    with Source(path, "bz2", 0, files.size(path)) as source:
        while chunk := source.read():
            total += len(chunk)
    return total


def unpack_with_python(path: str) -> int:
    """Unpacks with the standard library."""
    total = 0
    with bz2.open(path) as file:
        while chunk := file.read(1 << 20):
            total += len(chunk)
    return total


def unpack_with(name: str, threads: int) -> Callable[[str], int] | None:
    """A function that unpacks with rapidgzip or indexed_bzip2; None where the library is not installed."""
    try:
        library = __import__(name)
    except ImportError:
        return None

    def unpack(path: str) -> int:
        total = 0
        with library.open(path, parallelization=threads) as file:
            while chunk := file.read(1 << 20):
                total += len(chunk)
        return total

    return unpack


def parse_with_element_tree(path: str) -> int:
    """Counts pages with the standard library's parser."""
    pages = 0
    with open(path, "rb") as file:
        for _, element in ElementTree.iterparse(file):
            if element.tag.endswith("}page"):
                pages += 1
                element.clear()
    return pages


def read_unit(unit: Unit) -> int:
    """Counts the pages of a unit."""
    return sum(1 for _ in units.read_unit(unit, ReadOptions()))


def read_pages(path: str) -> int:
    """Counts pages as `extract` reads them."""
    return sum(map(read_unit, plan_units(files.match(path))))


def read_pages_in_two_processes(path: str) -> int:
    """Counts pages in two worker processes."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        return sum(pool.map(read_unit, plan_units(files.match(path))))


def main() -> None:
    """Prints the machine, and a row for each way to read the dump."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0] if __doc__ else None)
    parser.add_argument("dump", nargs="?", default=str(SAMPLE), help="a .xml.bz2 dump; default: the sample")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    print_machine()
    with tempfile.TemporaryDirectory() as folder:
        plain = str(Path(folder) / "dump.xml")
        content = bz2.decompress(Path(arguments.dump).read_bytes())
        Path(plain).write_bytes(content)
        megabytes = len(content) / 1e6
        single = str(Path(folder) / "single.xml.bz2")
        Path(single).write_bytes(bz2.compress(content))
        digest = hashlib.sha256(content).hexdigest()[:12]
        del content
        print(f"{arguments.dump}: {megabytes:.1f} MB of XML, sha256 {digest}…")
        rows: list[tuple[str, Callable[[str], int] | None, str]] = [
            ("bz2, Python", unpack_with_python, single),
            ("bz2, indexed_bzip2, 1 thread", unpack_with("indexed_bzip2", 1), single),
            ("bz2, rapidgzip, 1 thread", unpack_with("rapidgzip", 1), single),
            ("bz2, rapidgzip, all cores", unpack_with("rapidgzip", 0), single),
            ("bz2, maskmill, single-stream", unpack_with_maskmill, single),
            ("bz2, maskmill, as given", unpack_with_maskmill, arguments.dump),
            ("XML, ElementTree", parse_with_element_tree, plain),
            ("XML, maskmill (pages)", read_pages, plain),
            ("bz2, XML, maskmill, 1 process", read_pages, arguments.dump),
            ("bz2, XML, maskmill, 2 processes", read_pages_in_two_processes, arguments.dump),
        ]
        print(f"{'':34}{'CPU s':>8}{'MB/CPU s':>10}{'wall s':>8}   result")
        for name, run, path in rows:
            if run is None:
                print(f"{name:34}{'not installed':>16}")
                continue
            run(path)  # compiles the kernels and brings the file into the page cache
            best_cpu = best_wall = float("inf")
            for _ in range(arguments.repeats):
                cpu, wall = cpu_seconds(), time.perf_counter()
                result = run(path)
                best_cpu = min(best_cpu, cpu_seconds() - cpu)
                best_wall = min(best_wall, time.perf_counter() - wall)
            print(f"{name:34}{best_cpu:8.2f}{megabytes / best_cpu:10.0f}{best_wall:8.2f}   {result}")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        print(f"peak memory: {peak / 1024:.0f} MB (the whole XML included); a worker process {child / 1024:.0f} MB")


if __name__ == "__main__":
    main()
