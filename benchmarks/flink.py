"""Times extract and examples on a standalone Flink cluster against two processes of the local runner.

    .venv/bin/python -m benchmarks.flink DUMP --runs 5

Both work two at a time, on the same input and in turn, run by run. Start-up is left out of both: a run's time is that
from its first finished piece to its last, over the pieces finished in it. The outputs must be the same, or it stops.
"""

import argparse
import hashlib
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLUSTER = ROOT / "deploy" / "flink" / "cluster.py"
LOCAL = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")


def run_stage(stage: str, flags: tuple[str, ...], source: str, output: Path, vocabulary: str) -> tuple[float, str]:
    """Runs a stage into an empty directory; returns seconds a piece after start-up, and a digest of the output."""
    shutil.rmtree(output, ignore_errors=True)
    command = [sys.executable, "-m", "maskmill", stage, f"--input={source}", f"--output={output}"]
    if stage == "extract":
        command += ["--shard_size_mb=3.5"]
    else:
        command += [f"--vocab_file={vocabulary}", "--max_seq_length=512", "--max_predictions_per_seq=76"]
    subprocess.run([*command, *flags], cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    finished = sorted(p.stat().st_mtime for p in (output / ".maskmill" / stage).glob("*.json"))
    digest = hashlib.sha256()
    for path in sorted(p for p in output.iterdir() if p.is_file() and p.name != "manifest.json"):
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return (finished[-1] - finished[0]) / (len(finished) - 1), digest.hexdigest()


def main() -> None:
    """Runs the comparison and prints a line for each stage."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("dump", type=Path)
    parser.add_argument("--vocab_file", default=str(ROOT / "tests" / "data" / "vocab.txt"))
    parser.add_argument("--runs", type=int, default=5)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        cluster = [sys.executable, str(CLUSTER), f"--directory={work / 'cluster'}"]
        subprocess.run([*cluster, "start", "--taskmanagers=2", "--slots=1"], check=True)
        try:
            printed = subprocess.run([*cluster, "flags"], check=True, capture_output=True, text=True).stdout
            flink = (*printed.split(), "--parallelism=2")
            text = work / "local" / "extract"
            for stage, source in (("extract", str(chosen.dump.resolve())), ("examples", str(text))):
                seconds: dict[str, list[float]] = {"local": [], "flink": []}
                for _ in range(chosen.runs):
                    digests = set()
                    for name, flags in (("local", LOCAL), ("flink", flink)):
                        took, digest = run_stage(stage, flags, source, work / name / stage, chosen.vocab_file)
                        seconds[name].append(took)
                        digests.add(digest)
                    if len(digests) != 1:
                        sys.exit(f"{stage}: Flink and the local runner give different bytes")
                local, there = (statistics.median(seconds[name]) for name in ("local", "flink"))
                print(
                    f"{stage}: seconds a piece, medians of {chosen.runs}: local {local:.3f}, flink {there:.3f}, "
                    f"ratio {there / local:.2f}; same bytes",
                    flush=True,
                )
        finally:
            subprocess.run([*cluster, "stop"], check=True)


if __name__ == "__main__":
    main()
