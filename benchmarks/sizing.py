"""Estimates what the English Wikipedia takes on a cluster, from what a smaller dump takes here.

    python -m benchmarks.sizing [DUMP] [--serial SECONDS] [--vcpu_hour DOLLARS --gb_hour DOLLARS]

`extract` and `examples` (512 pieces, dupe factor 10) run on DUMP with one worker, and on a text of one line, which
gives what a command costs before its work. The rest is work that any number of processes share: so many CPU seconds a
byte of XML, and a byte of text. The English Wikipedia has more of both; its units and its shards go to the processes in
turn, and between them are the steps that one process does alone, whose seconds --serial gives. Each figure that is
assumed and not measured is printed, and has a flag.

The list prices are those for which Beam's own load tests bill Dataflow's batch workers in us-central1
(apache_beam/testing/load_tests/dataflow_cost_consts.py), so they are as old as the installed Beam.
"""

import argparse
import bz2
import math
import os
import tempfile
from importlib import metadata
from pathlib import Path

from benchmarks.measure import LENGTHS, SAMPLE, VOCABULARY, maskmill, print_machine

UNITS, SHARDS, DOCUMENTS = 1_311, 500, 7_000_000
DUMP_BYTES, XML_BYTES, TEXT_BYTES, RECORD_BYTES = 22e9, 100e9, 14.2e9, 391e9
READ_AT_ONCE = 4  # parts of an object that a process fetches at the same time
CPUS = (16, 160)


def xml_bytes(dump: str) -> int:
    """Return the size of a dump, unpacked."""
    with bz2.open(dump) as content:
        return sum(map(len, iter(lambda: content.read(1 << 20), b"")))


def measure_work(dump: str) -> tuple[float, float, float]:
    """Measure both commands; return CPU seconds a byte of XML and a byte of text, and the largest memory in bytes."""
    examples = (f"--vocab_file={VOCABULARY}", *LENGTHS)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        line = folder / "line.txt"
        line.write_text("A town lies by the river. It has a bridge of old stone.\n")
        runs = {
            (command, name): maskmill(
                command, f"--input={source}", f"--output={folder / f'{name}-{command}'}", "--workers=1", *flags
            )
            for name, text in (("small", line), ("whole", Path(dump)))
            for command, source, flags in (
                ("extract", text, ()),
                ("examples", folder / f"{name}-extract", examples),
            )
        }
        text_bytes = sum(path.stat().st_size for path in (folder / "whole-extract").iterdir() if path.is_file())
    for (command, name), usage in runs.items():
        print(usage.row(f"{command}, {'one line' if name == 'small' else 'the dump'}"))
    extract, write = (runs[name, "whole"].cpu - runs[name, "small"].cpu for name in ("extract", "examples"))
    size = xml_bytes(dump)
    print(f"  {size / 1e6:,.0f} MB of XML, {text_bytes / 1e6:,.0f} MB of text\n", flush=True)
    return extract / size, write / text_bytes, max(usage.largest for usage in runs.values())


def print_sizes(arguments: argparse.Namespace, a_byte_of_xml: float, a_byte_of_text: float, memory: float) -> None:
    """Print a row for each number of CPUs."""
    # Not before the commands are measured: a process begins with the memory of the one that starts it.
    from apache_beam.testing.load_tests import dataflow_cost_consts as prices

    of_vcpu = prices.VCPU_PER_HR_BATCH if arguments.vcpu_hour is None else arguments.vcpu_hour
    of_gb = prices.MEM_PER_GB_HR_BATCH if arguments.gb_hour is None else arguments.gb_hour
    seconds_a_byte = 1 / (arguments.upload * 1e6)
    unit = a_byte_of_xml * XML_BYTES / UNITS / arguments.efficiency
    read = DUMP_BYTES / READ_AT_ONCE * seconds_a_byte  # by one process, for the checksum, beside the others
    copy = TEXT_BYTES / SHARDS * seconds_a_byte  # of text from fragments to a shard
    shard = max(a_byte_of_text * TEXT_BYTES / SHARDS / arguments.efficiency, RECORD_BYTES / SHARDS * seconds_a_byte)
    cpu_minutes = (a_byte_of_xml * XML_BYTES + a_byte_of_text * TEXT_BYTES) / 60
    print(f"{DOCUMENTS:,} articles, {XML_BYTES / 1e9:g} GB of XML, {TEXT_BYTES / 1e9:g} GB of text,")
    print(f"{RECORD_BYTES / 1e9:g} GB of records in the bucket; {cpu_minutes:.0f} CPU minutes that are shared.\n")
    titles = ["vCPUs", "memory, GB", "start", "extract", "assemble", "examples", "alone", "minutes"]
    titles += ["vCPU hours", "GB hours", "dollars"]
    print("| " + " | ".join(titles) + " |")
    print("|---" * len(titles) + "|")
    for cpus in CPUS:
        shared = ((UNITS, unit), (SHARDS, copy), (SHARDS, shard))
        in_turn = [math.ceil(pieces / cpus) * of_piece for pieces, of_piece in shared]
        in_turn[0] += read / cpus
        parts = [arguments.start, *in_turn, arguments.serial + max(0, read - sum(in_turn))]
        hours, gigabytes = sum(parts) / 3600, cpus * arguments.gb_a_vcpu
        row = [f"{cpus}", f"{gigabytes:g}", *(f"{seconds / 60:.1f}" for seconds in parts), f"**{hours * 60:.0f}**"]
        dollars = (cpus * of_vcpu + gigabytes * of_gb) * hours
        row += [f"{cpus * hours:.1f}", f"{gigabytes * hours:.1f}", f"{dollars:.2f}"]
        print("| " + " | ".join(row) + " |")
    print(
        f"\nAssumed: a process on each of many CPUs does {arguments.efficiency:g} of what one does alone; it sends "
        f"{arguments.upload:g} MB a second to the store; machines are there after {arguments.start:g} s; a CPU has "
        f"{arguments.gb_a_vcpu:g} GB (measured: {memory / 1e6:.0f} MB in the largest process). The steps that one "
        f"process does alone take {arguments.serial:g} s. One process reads the dump for its checksum beside the "
        f"others, {READ_AT_ONCE} parts at a time, which takes {read:.0f} s. An hour of a vCPU costs "
        f"{of_vcpu:g} dollars, of a GB {of_gb:g}; the list prices are those of Beam {metadata.version('apache-beam')}."
    )


def main() -> None:
    """Print the machine, what was measured, and the estimate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump", nargs="?", default=str(SAMPLE), help="a .xml.bz2 dump; the larger, the better")
    parser.add_argument("--serial", type=float, default=15, help="seconds of what one process does alone, in a store")
    parser.add_argument("--efficiency", type=float, default=0.8, help="of each of many processes beside one alone")
    parser.add_argument("--upload", type=float, default=100, help="MB a second of a process to the store")
    parser.add_argument("--start", type=float, default=180, help="seconds until machines are there")
    parser.add_argument("--gb_a_vcpu", type=float, default=4)
    parser.add_argument("--vcpu_hour", type=float, help="dollars for a vCPU; by default the list price")
    parser.add_argument("--gb_hour", type=float, help="dollars for a GB of memory; by default the list price")
    arguments = parser.parse_args()
    print_machine()
    print_sizes(arguments, *measure_work(os.path.abspath(arguments.dump)))


if __name__ == "__main__":
    main()
