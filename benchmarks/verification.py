"""Measures `maskmill verify`: the CPU time and the memory of the whole command, for a shard of each format.

    python -m benchmarks.verification TEXT [--vocab FILE] [--megabytes 27] [--rounds 5]

TEXT is a directory that `maskmill extract` wrote; so much of its text becomes one shard of examples (512 pieces,
dupe_factor 10), in each format. Each is verified in several rounds with --remake=0, and the least CPU time counts:
that of all processes, start-up included. The rate is that of the shard's bytes. Without --remake=0 the shard is made
once more, too, which takes as long as `maskmill examples` took.
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.measure import LENGTHS, maskmill, parser_of, print_machine, resolved

FORMATS = ("tfrecord", "parquet", "mds")


def lines_of(shards: Sequence[Path], size: int) -> Iterator[bytes]:
    """Yield the first lines of shards, of about `size` bytes together."""
    left = size
    for shard in shards:
        with shard.open("rb") as file:
            for line in file:
                if left <= 0:
                    return
                left -= len(line)
                yield line


def verify(examples: Path, rounds: int) -> str:
    """Return what verifying a directory of examples costs, as a line of the table."""
    usages = [maskmill("verify", examples, "--remake=0", "--quiet") for _ in range(rounds)]
    entries = json.loads((examples / "manifest.json").read_bytes())["shards"]
    size, rows = (sum(shard[name] for shard in entries) for name in ("bytes", "examples"))
    cpu = min(usage.cpu for usage in usages)
    memory = max(usage.total for usage in usages)
    return (
        f"{size:>13,} bytes, {rows:>9,} examples   {cpu:6.2f} s CPU, {size / cpu / 1e6:6,.0f} MB/s, "
        f"{rows / cpu:9,.0f} examples/s, {memory / 1e6:5,.0f} MB of memory"
    )


def main() -> None:
    """Print the machine, and a line for each format."""
    parser = parser_of(__doc__, rounds=5, scratch="the shard in each format")
    parser.add_argument("text", metavar="TEXT", type=resolved)
    parser.add_argument("--megabytes", type=float, default=27)
    arguments = parser.parse_args()
    print_machine()
    maskmill("warm-up")
    shards = sorted(path for path in arguments.text.iterdir() if path.name.startswith("part-"))
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        text = Path(folder) / "part-00000-of-00001"
        text.write_bytes(b"".join(lines_of(shards, int(arguments.megabytes * 1e6))))
        for form in FORMATS:
            output = Path(folder) / form
            flags = [f"--vocab_file={arguments.vocab}", f"--format={form}", "--workers=1", "--quiet", *LENGTHS]
            maskmill("examples", f"--input={text}", f"--output={output}", *flags)
            print(f"{form:<9} {verify(output, arguments.rounds)}", flush=True)


if __name__ == "__main__":
    main()
