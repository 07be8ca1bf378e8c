"""Measures each serial step of the English Wikipedia's build on made-up descriptions: seconds, memory, requests.

    python -m benchmarks.serial_steps [--fragments 1311] [--documents 7000000] [--delay 0.05]

A build's parallel steps leave descriptions and small files: a table and a record for each fragment, records of shards.
This program makes those of a build of any size: the record of a fragment is that of a real one, of the sample dump,
with made-up documents; then the steps that one worker or the launcher runs alone are run on them, each in a process of
its own, with the code of a build: on a disk, and on a Cloud Storage emulator behind a server that answers each request
after a delay. With --compat mlperf these are the steps of the reference's chain that are not those of any build.

The dump's checksum is that of a gigabyte on the disk, and counts 22 times. A dump in a store is read for it beside all
other work, so it is no row there.

MB is the largest memory of the step's process, and in brackets that of the process before the step, with all that it
imports. The chain is the number of requests that followed one upon another.
"""

import argparse
import contextlib
import dataclasses
import hashlib
import os
import pickle
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.build import SAMPLE
from benchmarks.measure import print_machine
from benchmarks.reference import VOCABULARY

ROOT = Path(__file__).parent.parent
BUCKET = "maskmill-benchmark"
DUMP_BYTES = 22_000_000_000  # packed
TEXT_BYTES = 14_000_000_000
PIECES, PREDICTIONS, EXAMPLES_A_SHARD = 512, 76, 225_000
_SPREAD = 1.1  # of the logarithm of a document's size
_EVAL_EXAMPLES = 10_000  # that are picked
_BLOCK = 1_000  # records that are written at a time
_DIGEST, _DIGESTED_BYTES = "digest the dump", 1_000_000_000


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a build is made up: its directory, on a disk or in a store, and one on a disk for what steps hand on."""

    output: str
    scratch: Path
    compat: str

    @property
    def text(self) -> str:
        """The directory of the text shards."""
        return f"{self.output}/text"

    @property
    def examples(self) -> str:
        """The directory of the examples."""
        return f"{self.output}/examples"

    def keep(self, name: str, elements: Any) -> None:
        """Keeps what a step gives, as the runner would."""
        (self.scratch / name).write_bytes(pickle.dumps(elements))

    def kept(self, name: str) -> Any:
        """What `keep` kept."""
        return pickle.loads((self.scratch / name).read_bytes())

    def extract_stage(self) -> Any:
        """The stage of the text shards."""
        from pipelines.settings.stage_options import ExtractOptions
        from pipelines.stages.extract_stage import ExtractStage

        return ExtractStage(
            options=ExtractOptions(input=(str(SAMPLE),), output=self.text, compat=self.compat), formats=["mediawiki"]
        )

    def examples_stage(self) -> Any:
        """The stage of the examples."""
        from pipelines.settings.stage_options import ExamplesOptions
        from pipelines.stages.examples_stage import ExamplesStage

        options = ExamplesOptions(input=(self.text,), output=self.examples, vocab_file=str(VOCABULARY))
        return ExamplesStage.made(options)


def make_fragments(place: Place, count: int, documents: int) -> None:
    """Makes up the fragments of a dump: their tables, records and the places of their texts."""
    from maskmill.storage import completions, files
    from transforms.inputs.mediawiki import read_header
    from transforms.inputs.units import InputFile, Unit, UnitBatch
    from transforms.shards import fragments as fragment_step

    options = place.extract_stage().options.decided_extraction
    size = SAMPLE.stat().st_size
    sample = InputFile(path=str(SAMPLE), size=size, sha256="0" * 64, date="2026-11-01", header=read_header(str(SAMPLE)))
    unit = Unit(path=str(SAMPLE), start=0, end=size, format="mediawiki", container="bz2")
    with tempfile.TemporaryDirectory() as folder:
        real = fragment_step.extract_batch(UnitBatch(number=0, files=(sample,), units=(unit,)), options, folder)
        record = completions.finished(folder, fragment_step.KIND, real.key)
    file = dataclasses.replace(sample, size=DUMP_BYTES)

    def make(number: int) -> fragment_step.Fragment:
        random = np.random.default_rng(number)
        start, end = (at * DUMP_BYTES // count for at in (number, number + 1))
        part = dataclasses.replace(unit, start=start, end=end)
        batch = UnitBatch(number=number, files=(file,), units=(part,))
        key = fragment_step.fragment_key(options, batch)
        size_of = len(range(number, documents, count))
        mean = np.log(TEXT_BYTES / documents) - _SPREAD**2 / 2
        table = np.zeros(size_of, fragment_step.TABLE)
        table["hash"] = random.integers(0, 2**64, size_of, np.uint64)
        table["size"] = 20 + random.lognormal(mean, _SPREAD, size_of)
        table["offset"] = np.cumsum(table["size"]) - table["size"]
        table["sentences"] = 1 + table["size"] // 120
        completions.write_table(place.text, fragment_step.KIND, key, table)
        name = completions.work_name(fragment_step.KIND, f"{key}.text")
        files.write_bytes(files.join(place.text, name), b"\n")
        size = int(table["size"].sum())
        changed = {"ends": [size], "documents": size_of, "size": size, "caches": [(name, size, "0" * 64)]}
        completions.store(place.text, fragment_step.KIND, key, record | changed)
        return fragment_step.Fragment(
            key=key, batch=batch, documents=size_of, size=size, counts=record["counts"], ends=(size,)
        )

    place.keep("fragments", files.each(place.output, make, range(count)))


def make_text_shards(place: Place) -> None:
    """Makes up what the assembling steps leave of the plan."""
    from maskmill.storage import files
    from transforms.shards.planning import write_planned

    def make(plan: Any) -> Any:
        def write(path: str) -> dict[str, Any]:
            files.write_bytes(path, b"\n")
            md5 = [hashlib.md5(b"%d" % number).hexdigest() for number in range(plan.documents)]
            return {"size": plan.size, "sha256": "0" * 64, "md5": md5 if plan.kind == "eval" else []}

        return write_planned(plan, place.text, write)

    place.keep("texts", files.each(place.output, make, place.kept("plan")))


def make_parts(place: Place) -> None:
    """Makes up what the cleaning and gathering steps of the reference's chain leave."""
    from maskmill.storage import completions, files
    from transforms.shards import mlperf_shards

    def clean(batch: Any) -> None:
        for kind in ("train", "eval"):
            files.write_bytes(completions.work_path(place.text, mlperf_shards.KIND, f"{batch.key}.{kind}"), b"\n")
        completions.store(place.text, mlperf_shards.KIND, batch.key, {"md5": batch.md5})

    def gather(plan: Any) -> Any:
        def write(path: str) -> dict[str, Any]:
            files.write_bytes(path, b"\n")
            md5 = [md5 for batch, *_ in plan.pieces for md5 in batch.md5] if plan.kind == "eval" else []
            return {"size": 1, "sha256": "0" * 64, "documents": 1, "sentences": 1, "md5": md5}

        return mlperf_shards.write_planned(plan, place.text, write)

    files.each(place.output, clean, place.kept("cleaned"))
    place.keep("texts", files.each(place.output, gather, place.kept("parts")))


def make_example_shards(place: Place, eval_examples: int) -> None:
    """Makes up what the masking steps leave: descriptions, records, and the examples of the eval set."""
    from maskmill.examples import example_shards
    from maskmill.records.example_proto import Feature, encode_example
    from maskmill.records.examples import ExampleFile
    from maskmill.records.tfrecord import WrittenFile, frame
    from maskmill.storage import completions, files

    setup = place.examples_stage().setup
    lengths = {"input_ids": PIECES, "input_mask": PIECES, "segment_ids": PIECES, "masked_lm_ids": PREDICTIONS}
    example = {name: Feature(int64_list={"value": range(1000, 1000 + count)}) for name, count in lengths.items()}
    framed = frame(encode_example(example))

    def make(text: Any) -> example_shards.ExampleShard:
        name = files.base_name(text.path)
        path = files.join(place.examples, f"{name}.tfrecord")
        examples = EXAMPLES_A_SHARD if text.kind == "train" else eval_examples
        with files.new_file(path) as records:
            for block in range(0, examples if text.kind == "eval" else 1, _BLOCK):
                records.write(framed * min(_BLOCK, examples - block))
        lines = (b"%d %d\n" % (number * len(framed), len(framed)) for number in range(examples))
        files.write_bytes(f"{path}.idx", b"".join(lines) if text.kind == "eval" else b"\n")
        index = WrittenFile(path=f"{path}.idx", size=20 * examples, sha256="0" * 64)
        file = ExampleFile(
            path=path, size=examples * len(framed), sha256="0" * 64, examples=examples, width=512, index=index
        )
        key = completions.fingerprint(example_shards.KIND, name)
        counts = {"documents": text.documents, "sentences": text.sentences, "examples": examples}
        completions.store(
            place.examples,
            example_shards.KIND,
            key,
            {"files": [[files.base_name(f.path), f.size, f.sha256] for f in (file, index)], "counts": counts},
        )
        return example_shards.ExampleShard(
            files=(file,),
            kind=text.kind,
            number=text.number,
            name=name,
            counts=counts,
            inputs={text.path: text.sha256},
            key=key,
            setup=setup,
            text_bytes=text.size,
        )

    place.keep("examples", files.each(place.output, make, place.kept("texts")))


# ---- the steps


def digest(place: Place) -> Callable[[], Any]:
    from maskmill.storage import files
    from transforms.inputs.batches import digest_input

    dump, sample = place.scratch / "dump.xml.bz2", SAMPLE.read_bytes()
    with open(dump, "wb") as file:
        for _ in range(_DIGESTED_BYTES // len(sample)):
            file.write(sample)
    found = files.find(str(dump))
    digest_input((0, files.FileInfo(path=str(SAMPLE), size=len(sample))), None)  # what is imported and compiled
    return lambda: digest_input((0, found), None)


def plan(place: Place) -> Callable[[], Any]:
    from transforms.shards.planning import plan_text_shards

    fragments, options = place.kept("fragments"), place.extract_stage().options
    return lambda: place.keep(
        "plan", plan_text_shards(fragments, options.split.decided, options.decided_extraction, place.text)
    )


def close_text(place: Place) -> Callable[[], Any]:
    cleaned = place.kept("cleaned") if place.compat == "mlperf" else []
    elements, stage = [*place.kept("texts"), *cleaned, *place.kept("fragments")], place.extract_stage()
    return lambda: stage.close(elements)


def close_examples(place: Place) -> Callable[[], Any]:
    elements, stage = place.kept("examples"), place.examples_stage()
    return lambda: stage.close(elements)


def pick_eval(place: Place) -> Callable[[], Any]:
    from maskmill.examples.example_shards import pick_eval as pick

    shards = place.kept("examples")
    return lambda: pick(shards, _EVAL_EXAMPLES, False, f"{place.output}/eval/eval.tfrecord")


def before(place: Place) -> Callable[[], Any]:
    from maskmill.storage import files, outcomes

    def look() -> None:
        for stage in (place.extract_stage(), place.examples_stage()):
            there = files.Listing(stage.output)
            place.keep(f"before-{stage.name}", outcomes.look(stage.output, there))
            with stage.claim(there).held():
                pass

    return look


def after(place: Place) -> Callable[[], Any]:
    from maskmill.storage import manifest, outcomes

    stages = place.extract_stage(), place.examples_stage()

    def conclude() -> None:
        for stage in stages:
            outcomes.conclude(stage.output, place.kept(f"before-{stage.name}"), manifest.read_manifest(stage.output))

    return conclude


def report(place: Place) -> Callable[[], Any]:
    from maskmill.reporting import facts

    return lambda: facts.collect(place.output, with_samples=False)


def pack(place: Place) -> Callable[[], Any]:
    from transforms.shards.mlperf_shards import raw_files_of_fragments

    fragments = place.kept("fragments")
    return lambda: place.keep("raw", raw_files_of_fragments(fragments, place.text))


def plan_parts(place: Place) -> Callable[[], Any]:
    from transforms.shards import mlperf_shards

    split = place.extract_stage().options.decided.split
    cleaned = []
    for batch in mlperf_shards.batches_of(place.kept("raw")):
        of_batch = [
            mlperf_shards.CleanedFile(documents=500, eval_articles=1, train=raw.size, eval=2_000) for raw in batch
        ]
        key, md5 = f"{len(cleaned):032x}", ("0" * 32,) * len(batch)
        cleaned.append(mlperf_shards.CleanedBatch(key=key, raw=batch, cleaned=tuple(of_batch), md5=md5))
    place.keep("cleaned", cleaned)
    return lambda: place.keep("parts", mlperf_shards.plan_parts(cleaned, split, place.text))


# What one process does alone, by what the row of the table calls it.
STEPS: dict[str, Callable[[Place], Callable[[], Any]]] = {
    "look at the outputs and claim them": before,
    _DIGEST: digest,
    "plan the text shards": plan,
    "close the text": close_text,
    "close the examples": close_examples,
    "pick the eval examples": pick_eval,
    "read the outcome": after,
    "collect what the report tells": report,
}
MLPERF_STEPS = {"pack WikiExtractor's files": pack, "plan the parts": plan_parts, "close the text": close_text}


def peak_megabytes() -> float:
    """The most memory that this process had so far, in MB; the system's own count survives an exec, this one not."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1e3  # type: ignore[index]


def run_step(name: str, place: Place) -> None:
    """Runs a step in this process, and prints what it took."""
    work = (STEPS | MLPERF_STEPS)[name](place)
    started, cpu, base = time.perf_counter(), time.process_time(), peak_megabytes()
    work()
    print(time.perf_counter() - started, time.process_time() - cpu, peak_megabytes(), base)


@contextlib.contextmanager
def places(scratch: Path, compat: str, delay: float) -> Iterator[list[tuple[str, Place, dict[str, str], Any]]]:
    """The disk and the store: what a row calls it, the place, its environment, and what counts its requests."""
    from servers import cloud
    from servers.slow_store import slow_store

    disk, store = scratch / "disk", scratch / "store"
    for folder in (disk, store):
        folder.mkdir()
    with (
        cloud.storage(scratch, BUCKET) as environment,
        slow_store(environment, delay=delay) as (slow, counted),
        cloud.set_environment(environment),
    ):
        yield [
            ("disk", Place(str(disk / "build"), disk, compat), {}, None),
            (f"store, {delay * 1000:g} ms", Place(f"gs://{BUCKET}/build", store, compat), slow, counted),
        ]


def measure_steps(label: str, place: Place, environment: Mapping[str, str], counted: Any, eval_examples: int) -> None:
    """Runs all steps at a place and prints their rows."""
    from servers.slow_store import chain

    make_after = {
        "plan the text shards": make_text_shards,
        "plan the parts": make_parts,
        "close the text": lambda place: make_example_shards(place, eval_examples),
    }
    steps = [name for name in STEPS if counted is None or name != _DIGEST]
    if place.compat == "mlperf":
        steps = list(MLPERF_STEPS)
    print(f"{label:<40}{'wall s':>8}{'CPU s':>8}{'MB':>7} {'(before)':8}{'requests':>10}{'chain':>7}", flush=True)
    total = total_cpu = 0.0
    for name in steps:
        command = [sys.executable, "-m", "benchmarks.serial_steps", f"--step={name}", f"--scratch={place.scratch}"]
        command += [f"--output={place.output}", f"--compat={place.compat}"]
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"{name} ended with exit code {done.returncode}:\n{done.stderr[-3000:]}")
        seconds, cpu, peak, base = map(float, done.stdout.split())
        requests = list(counted.asked) if counted is not None else []
        times = DUMP_BYTES / _DIGESTED_BYTES if name == _DIGEST else 1
        total += seconds * times
        total_cpu += cpu * times
        row = f"  {name:<38}{seconds * times:8.1f}{cpu * times:8.1f}{peak:7.0f} ({base:6.0f})"
        print(f"{row}{len(requests):10}{chain(requests):7}", flush=True)
        if name in make_after and name != steps[-1]:
            make_after[name](place)
        if counted is not None:
            counted.asked.clear()
    print(f"  {'together':<38}{total:8.1f}{total_cpu:8.1f}\n", flush=True)


def main() -> None:
    """Prints the machine, and a table of the steps for each place."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fragments", type=int, default=1_311, help="units of the dump")
    parser.add_argument("--documents", type=int, default=7_000_000)
    parser.add_argument("--delay", type=float, default=0.05, help="seconds before each answer of the store")
    parser.add_argument("--examples_in_store", type=int, default=300, help="in each eval shard that is in the store")
    parser.add_argument("--compat", default="none", choices=("none", "mlperf"))
    for inner in ("--step", "--output", "--scratch"):  # of the process of a step
        parser.add_argument(inner, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step is not None:
        run_step(arguments.step, Place(arguments.output, Path(arguments.scratch), arguments.compat))
        return
    sys.path.insert(0, str(ROOT / "tests"))
    print_machine()
    with (
        tempfile.TemporaryDirectory() as scratch,
        places(Path(scratch), arguments.compat, arguments.delay) as found,
    ):
        for label, place, environment, counted in found:
            make_fragments(place, arguments.fragments, arguments.documents)
            # The emulator holds all bytes in memory.
            examples = EXAMPLES_A_SHARD if counted is None else arguments.examples_in_store
            measure_steps(label, place, environment, counted, examples)


if __name__ == "__main__":
    main()
