"""Compare a manifest with itself, with the counts of its files, and with the manifests of the stages before."""

import collections
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from maskmill.masking.seeds import shard_seed
from maskmill.storage import files
from maskmill.verification.findings import CHECKS, Checked, Finding, finding, makes_check, ran
from maskmill.verification.listed_shards import options_of
from maskmill.verification.verify_targets import Target, VerifyPlan
from maskmill.verification.work_items import ItemResult

_AGAIN = "run the build again"
_DO = "make the directory again, or put back the manifest that was written with it"
_SHOWN = 60
_MADE_OF = (("text", "vocabulary"), ("text", "examples"), ("vocabulary", "examples"), ("examples", "eval"))


@makes_check("data_set", "text", "examples", "eval")
def check_manifest(target: Target, _results: Sequence[ItemResult]) -> Checked:
    """Compare the inputs, the sums and the seeds of a manifest with those of its shards."""
    made, path = target.made, target.manifest_path
    if made is None:
        return Checked()
    findings = [*_wrong_inputs(target), *_wrong_seeds(target, options_of(made))]
    for kind in ("train", "eval"):
        of_kind = [shard for shard in target.shards if shard.kind == kind]
        listed = made["counts"].get(kind, {})
        sums = collections.Counter({"shards": len(of_kind)} if of_kind else {})
        for shard in of_kind:
            sums.update(shard.counts)
        names = sums.keys() | listed.keys()
        if target.kind == "eval":
            sums["picked"], names = sums["examples"], {"picked", "bytes"} if of_kind else set()
            expected = min(made["parameters"].get("num_examples_to_pick", 0), listed.get("available") or 0)
            if of_kind and sums["examples"] != expected:
                findings.append(_other("counts", path, "the number of picked examples", expected, sums["examples"]))
        for name in sorted(names):
            if listed.get(name, 0) != sums[name]:
                findings.append(_other("counts", path, f"{name} of {kind}", sums[name], listed.get(name, 0)))
    return Checked(findings=findings, looked_at={"manifest": 1, "counts": 1})


def _wrong_inputs(target: Target) -> Iterator[Finding]:
    """Yield inputs of shards that the stage does not list, and inputs of the stage that no shard has."""
    made, path = target.made or {}, target.manifest_path
    listed = {entry["path"]: entry["sha256"] for entry in made["inputs"]}
    used = {one: digest for shard in target.shards for one, digest in shard.inputs.items()}
    for one, digest in used.items():
        if listed.get(one) != digest:
            yield _other("manifest", path, f"the sha256 of the input {one}", digest, listed.get(one))
    vocabularies = {made["parameters"].get(name) for name in ("vocab_file", "tokenizer_file")}
    for one in listed if target.kind == "examples" else ():
        if one not in used and one not in vocabularies:
            yield _other("manifest", path, f"the input {one}", "one that a shard was made of", "one of no shard")


def _wrong_seeds(target: Target, options: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield shards whose seeds do not follow from the seed of the data set and their numbers."""
    seed: Any = options.get("random_seed")
    one_seed = options.get("one_seed", options.get("compat", "none") != "none")
    for shard in target.shards if seed is not None and target.kind == "examples" else ():
        expected = seed if one_seed else shard_seed(seed, "eval" if shard.kind == "eval" else "train", shard.number)
        if shard.seed != expected and (one_seed or shard.has_number or shard.kind == "eval"):
            yield _other("seed", target.manifest_path, f"random_seed of {shard.name}", expected, shard.seed)


def _other(check: str, path: str, place: str, expected: object, found: object) -> Finding:
    right, wrong = (f"{value:,}" if isinstance(value, int) else str(value)[:_SHOWN] for value in (expected, found))
    return finding(check, path, f"{place} must be {right}, not {wrong}; {_DO}")


# ---- counts of files


@makes_check("all")
def check_counts(plan: VerifyPlan, results: Sequence[ItemResult]) -> Checked:
    """Compare the counts of files, and of shards of several files, with those of the manifest."""
    findings: list[Finding] = []
    looked_at = 0
    for result in results:
        if result.counts:
            examples = result.item.expected.examples
            findings += _compare(result.item.path, {} if examples is None else {"examples": examples}, result.counts)
    for target in plan.targets:
        found = {result.item.path: result for result in results if result.item.directory == target.directory}
        # In MLPerf's text an article may become empty, or one with the next, after it is counted.
        is_cleaned = target.kind == "text" and options_of(target.made or {"parameters": {}}).get("compat") == "mlperf"
        known = {"examples", *(["documents"] if is_cleaned else [])}
        for shard in target.shards:
            of_shard = [found[path] for file in shard.files if (path := target.file(file.name)) in found]
            # If records are damaged, the other counts differ for that reason.
            if len(of_shard) == len(shard.files) and all(part.counts and not _is_damaged(part) for part in of_shard):
                sums: collections.Counter[str] = collections.Counter()
                for part in of_shard:
                    sums.update(part.counts)
                looked_at += 1
                expected = {name: count for name, count in shard.counts.items() if name not in known}
                findings += _compare(target.file(shard.name), expected, sums)
    return ran("counts", *findings, count=looked_at)


def _is_damaged(result: ItemResult) -> bool:
    """Return whether records of a file have errors."""
    return any(found.severity == "error" and CHECKS[found.check].reads != "bytes" for found in result.findings)


def _compare(path: str, expected: Mapping[str, int], found: Mapping[str, int]) -> Iterator[Finding]:
    """Yield one finding about the counts that both have, if they differ."""
    others = [name for name in expected if name in found and expected[name] != found[name]]
    if others:
        name, *rest = (other.replace("_", " ") for other in others)
        more = f", and {', '.join(rest)} differ, too" if rest else ""
        counted, listed = f"{found[others[0]]:,} {name}", f"{expected[others[0]]:,}"
        what = f"here are {counted}, but the manifest says {listed}{more}; fetch or make it again"
        yield finding("counts", path, what, count=len(others))


@makes_check("data_set", "text")
def check_extracted(target: Target, _results: Sequence[ItemResult]) -> Checked:
    """Compare the number of extracted documents with that of the shards, of which one may be lost."""
    made = target.made or {"counts": {}, "parameters": {}}
    counts, sources = made["counts"], made.get("decided", {}).get("sources")
    if sources:
        # A source that is used several times counts its documents as often.
        taken = sum((source.get(name) or 0) for source in sources.values() for name in ("used", "held_out"))
    elif counts.get("extract", {}).get("documents") is None or made["parameters"].get("compat", "none") != "none":
        return Checked()
    else:
        left_out = ("extract", "over_max_documents"), ("paragraphs", "emptied_documents")
        taken = counts["extract"]["documents"] - sum(counts.get(step, {}).get(name) or 0 for step, name in left_out)
    listed = sum(counts.get(split, {}).get("documents") or 0 for split in ("train", "eval"))
    if taken == listed:
        return ran("counts")
    what = f"{taken:,} documents were extracted, but the shards have {listed:,}: one is missing or another; {_AGAIN}"
    return ran("counts", finding("counts", target.manifest_path, what))


# ---- stages


@makes_check("all")
def check_builds(plan: VerifyPlan, _results: Sequence[ItemResult]) -> Checked:
    """Compare the inputs in a stage's manifest with the outputs of the stages before."""
    builds: dict[str, dict[str, Target]] = collections.defaultdict(dict)
    for target in plan.targets:
        if target.build is not None and target.made is not None:
            builds[target.build][target.kind] = target
    findings: list[Finding] = []
    looked_at = 0
    for parts in builds.values():
        for one, other in _MADE_OF:
            if one in parts and other in parts:
                looked_at += 1
                findings += _other_inputs(parts[other], parts[one])
        if "text" in parts and "examples" in parts:
            findings += _wrong_uses(parts["text"], parts["examples"])
    return Checked(findings=findings, looked_at={"shard_inputs": looked_at} if looked_at else {})


def _other_inputs(target: Target, made_of: Target) -> Iterator[Finding]:
    """Yield inputs of a target that another target does not have, or has with another checksum."""
    known = {files.base_name(file.name): file.sha256 for shard in made_of.shards for file in shard.files}
    if made_of.kind == "vocabulary":
        options = options_of(target.made or {})
        name = "tokenizer_file" if options.get("tokenizer_file") is not None else "vocab_file"
        file = str(options.get(name))
        used = {file: options.get(f"{name}_sha256")} if files.base_name(files.parent(file)) == "vocabulary" else {}
    elif target.kind == "examples":
        used = {path: digest for shard in target.shards for path, digest in shard.inputs.items()}
    else:
        used = {entry["path"]: entry["sha256"] for entry in (target.made or {})["inputs"]}
    for path, digest in used.items():
        name, source = files.base_name(path), made_of.directory
        if name not in known and "vocabulary" not in (target.kind, made_of.kind):
            what = f"this was made of {path}, but {source} has no {name}; {_AGAIN}"
            yield finding("shard_inputs", target.manifest_path, what)
        elif known.get(name, digest) != digest:
            what = f"this was made of another {name} than the one in {source} (another sha256); {_AGAIN}"
            yield finding("shard_inputs", target.manifest_path, f"{what}, or put the one back that was used")


def _wrong_uses(text: Target, examples: Target) -> Iterator[Finding]:
    """Yield text shards of which examples were made twice, or not at all."""
    uses = collections.Counter(files.base_name(path) for shard in examples.shards for path in shard.inputs)
    path, inputs = examples.manifest_path, options_of(examples.made or {}).get("input")
    of_directory = isinstance(inputs, list) and [files.base_name(str(place)) for place in inputs] == ["text"]
    for shard in text.shards:
        count = uses[shard.name]
        if count > 1 or (not count and of_directory and shard.files[0].size):
            what = f"{count} shards of examples were made of {files.join(text.directory, shard.name)}; {_AGAIN}"
            yield finding("shard_inputs", path, what)
