"""Whether manifests fit what was counted in files, and the parts of a build were made of each other."""

import collections
from collections.abc import Iterator, Mapping, Sequence

from maskmill.errors import UnusableInputError
from maskmill.releases import fingerprints, records
from maskmill.releases.names import RECORD
from maskmill.storage import files
from maskmill.verification.findings import CHECKS, Checked, Finding, finding, looked, makes_check, skipped, told
from maskmill.verification.pieces import PieceResult
from maskmill.verification.row_rules import parameters_of
from maskmill.verification.verify_targets import Target, VerifyPlan

_AGAIN = "run the build again"


@makes_check("all")
def check_counts(plan: VerifyPlan, results: Sequence[PieceResult]) -> Checked:
    """Compares what was counted in files with what the manifest has of them, and of the shards of several files."""
    findings: list[Finding] = []
    looked_at = 0
    for result in results:
        expected = dict(result.piece.expected.counts)
        if result.piece.expected.examples is not None:
            expected["examples"] = result.piece.expected.examples
        if _is_damaged(result):
            # What else was counted follows from what is wrong with the records.
            expected = {name: count for name, count in expected.items() if name == "examples"}
        looked_at += any(name in result.counts for name in expected)
        findings += _compare(result.piece.path, expected, result.counts)
    for target in plan.targets:
        found = {result.piece.path: result for result in results if result.piece.directory == target.directory}
        for shard in (shard for shard in target.shards if len(shard.files) > 1):
            paths = tuple(target.file(file.name) for file in shard.files)
            of_shard = [found[path] for path in paths if path in found]
            if len(of_shard) < len(paths) or any(not part.counts or _is_damaged(part) for part in of_shard):
                continue
            sums: collections.Counter[str] = collections.Counter()
            for part in of_shard:
                sums.update(part.counts)
            looked_at += 1
            findings += _compare(target.file(shard.name), shard.counts, sums)
    return looked("counts", *findings, count=looked_at)


def _is_damaged(result: PieceResult) -> bool:
    """Whether something is wrong with records of a file."""
    return any(found.severity == "error" and (CHECKS[found.check].reads != "bytes") for found in result.findings)


def _compare(path: str, expected: Mapping[str, int], found: Mapping[str, int]) -> Iterator[Finding]:
    """What differs between the counts that both have, as one finding."""
    others = [name for name in expected if name in found and expected[name] != found[name]]
    if others:
        name, *rest = others
        is_so, is_said = f"{found[name]:,}", f"{expected[name]:,}"
        more = f", and {', '.join(n.replace('_', ' ') for n in rest)} differ, too" if rest else ""
        noun = name.replace("_", " ")
        what = f"here are {is_so} {noun}, but the manifest says {is_said}{more}; fetch or make it again"
        yield finding("counts", path, f"{is_said} {name}", f"{is_so} {name}", what, count=len(others))


@makes_check("data_set", "text")
def check_documents(target: Target, results: Sequence[PieceResult]) -> Checked:
    """Compares how many documents text shards have with what their manifest says."""
    if target.made and target.made["parameters"].get("compat") == "mlperf":
        # An article there may be empty, or may be joined with the next one.
        return skipped("with compat mlperf, articles are counted before they are cleaned", "documents")
    findings = []
    for result in results:
        expected, text = result.piece.expected.counts.get("documents"), result.text
        if expected is not None and text is not None and text.documents != expected:
            is_so, is_said = f"{text.documents:,}", f"{expected:,} documents"
            what = f"this file has {is_so} documents, but the manifest says {expected:,}; fetch or make it again"
            findings.append(finding("documents", result.piece.path, is_said, is_so, what))
    return Checked(findings=findings)


@makes_check("data_set", "text")
def check_stage_counts(target: Target, _results: Sequence[PieceResult]) -> Checked:
    """Compares how many documents were extracted with how many there are: a shard may be lost, whatever the names."""
    made = target.made or {}
    counts = {step: of_step for step, of_step in made.get("counts", {}).items() if isinstance(of_step, dict)}
    decided = made.get("decided", {})
    sources = decided.get("sources", {}) if isinstance(decided, dict) else {}
    extracted, path = counts.get("extract", {}).get("documents"), target.manifest_path
    if sources:
        taken = sum(source.get("documents", 0) for source in sources.values() if isinstance(source, dict))
    elif isinstance(extracted, int) and made["parameters"].get("compat", "none") == "none":
        left_out = ("extract", "over_max_documents"), ("paragraphs", "emptied_documents")
        taken = extracted - sum(counts.get(step, {}).get(name, 0) for step, name in left_out)
    else:
        return Checked()
    there = sum(counts.get(split, {}).get("documents", 0) for split in ("train", "eval"))
    if taken == there:
        return looked("counts")
    what = f"{taken:,} documents were extracted, but the shards have {there:,}: one is missing or another; {_AGAIN}"
    return looked("counts", finding("counts", path, f"{taken:,} documents", f"{there:,}", what))


@makes_check("all")
def check_builds(plan: VerifyPlan, _results: Sequence[PieceResult]) -> Checked:
    """Compares the inputs that a stage's manifest names with what the stages before it have made."""
    builds: dict[str, dict[str, Target]] = collections.defaultdict(dict)
    for target in plan.targets:
        if target.build is not None and target.made is not None:
            builds[target.build][target.kind] = target
    findings: list[Finding] = []
    looked_at = 0
    for build, parts in builds.items():
        findings += _compare_record(build)
        text, vocabulary, examples, picked = (parts.get(k) for k in ("text", "vocabulary", "examples", "eval"))
        pairs = [(text, vocabulary), (text, examples), (examples, picked)]
        for made_of, maker in pairs:
            if made_of is not None and maker is not None:
                looked_at += 1
                findings += _compare_inputs(maker, made_of)
        if examples is not None and picked is not None:
            findings += [*_compare_options(picked, examples), *_compare_available(picked, examples)]
        if text is not None and examples is not None:
            findings += [*_unused(text, examples), *_compare_documents(text, examples)]
        if vocabulary is not None and examples is not None:
            findings += _compare_vocabulary(vocabulary, examples)
    return Checked(findings=findings, looked_at={"shard_inputs": looked_at} if looked_at else {})


def _compare_record(build: str) -> Iterator[Finding]:
    """The inputs that the record of a release names, against those that its text was made of."""
    path = files.join(build, RECORD)
    if "://" in build and not build.startswith("gs://"):  # web servers have no releases
        return
    try:
        record = records.read_record(build)
        problems = (
            list(records.check_inputs(build, record.inputs, fingerprints.manifest_digests(build))) if record else []
        )
    except UnusableInputError as error:
        yield told("manifest", path, "a record", "damaged", str(error))
        return
    for problem in problems:
        yield finding("shard_inputs", path, "the inputs of the manifest", "others", f"{problem}; {_AGAIN}")


def _digests(target: Target) -> dict[str, str | None]:
    """The sha256 of a target's files by their names, without folders."""
    return {files.base_name(file.name): file.sha256 for shard in target.shards for file in shard.files}


def _inputs(target: Target) -> Mapping[str, str]:
    """What a target was made of, by path, but for its vocabulary."""
    if target.kind == "examples":
        return {path: digest for shard in target.shards for path, digest in shard.inputs.items()}
    return target.inputs


def _compare_inputs(target: Target, made_of: Target) -> Iterator[Finding]:
    """What a target says that it was made of, against the files that are there."""
    known = _digests(made_of)
    path = target.manifest_path
    for used, digest in _inputs(target).items():
        name = files.base_name(used)
        there = files.join(made_of.directory, name)
        if name not in known:
            if target.kind != "vocabulary":
                what = f"this was made of {used}, but {made_of.directory} has no {name}; {_AGAIN}"
                yield finding("shard_inputs", path, there, "no such file", what)
        elif known[name] != digest:
            what = (
                f"this was made of another {name} than the one in {made_of.directory} (another sha256); "
                f"{_AGAIN}, or put the one back that was used"
            )
            yield finding("shard_inputs", path, digest, str(known[name]), what)


def _compare_options(picked: Target, examples: Target) -> Iterator[Finding]:
    """What picked examples say of the options that they were made with, against the examples' own."""
    said, is_so = (picked.made or {}).get("examples"), (examples.made or {}).get("parameters")
    if not isinstance(said, dict) or not isinstance(is_so, dict):
        return
    path = picked.manifest_path
    for name, value in said.items():
        if name in is_so and is_so[name] != value:
            what = f"{name} of the examples is {is_so[name]!r}, but {str(value)[:60]!r} here; {_AGAIN}"
            yield finding("shard_inputs", path, repr(is_so[name]), repr(value)[:60], what)


def _compare_available(picked: Target, examples: Target) -> Iterator[Finding]:
    """How many examples there were to pick from, against how many there are."""
    said = (picked.made or {})["counts"].get("eval")
    there = sum(shard.counts.get("examples", 0) for shard in examples.shards if shard.kind == "eval")
    found = said.get("available") if isinstance(said, dict) else None
    if found != there:
        path = picked.manifest_path
        what = f"the eval shards have {there:,} examples to pick from, but {found!r} is said here; {_AGAIN}"
        yield finding("shard_inputs", path, f"{there:,}", repr(found)[:60], what)


def _unused(text: Target, examples: Target) -> Iterator[Finding]:
    """Text shards that no examples were made of, and those that two shards of examples were made of."""
    uses = collections.Counter(files.base_name(path) for shard in examples.shards for path in shard.inputs)
    path = examples.manifest_path
    given = parameters_of(examples.made or {}).get("input")
    of_directory = isinstance(given, list) and [files.base_name(str(place)) for place in given] == ["text"]
    for shard in text.shards:
        count = uses[shard.name]
        if not count and of_directory and shard.files and shard.files[0].size:
            what = f"no examples were made of {files.join(text.directory, shard.name)}; {_AGAIN}"
            yield finding("shard_inputs", path, shard.name, "no examples of it", what)
        if count > 1:
            what = f"{count} shards of examples were made of {shard.name}; {_AGAIN}"
            yield finding("shard_inputs", path, "1 shard", f"{count} shards", what)


def _compare_documents(text: Target, examples: Target) -> Iterator[Finding]:
    """How many documents and lines the text shards have, against what the examples that were made of them say."""
    if (text.made or {})["parameters"].get("compat") == "mlperf":
        return  # its articles are counted before they are cleaned
    of_text = {files.base_name(shard.name): shard.counts for shard in text.shards}
    for shard in examples.shards:
        for path in shard.inputs if len(shard.inputs) == 1 else ():
            counts = of_text.get(files.base_name(path), {})
            for name in ("documents", "sentences"):
                said, is_so = shard.counts.get(name), counts.get(name)
                if None not in (said, is_so) and said != is_so:
                    what = f"{shard.name} was made of {said:,} {name}, but its text has {is_so:,}; {_AGAIN}"
                    yield finding("counts", examples.manifest_path, f"{is_so:,} {name}", f"{said:,}", what)


def _compare_vocabulary(vocabulary: Target, examples: Target) -> Iterator[Finding]:
    """The vocabulary of the examples, against the one of the build, where they were made with that."""
    options = parameters_of(examples.made or {})
    option = "tokenizer_file" if options.get("tokenizer_file") is not None else "vocab_file"
    used, digest = options.get(option), options.get(f"{option}_sha256")
    if not isinstance(used, str) or files.base_name(files.parent(used)) != "vocabulary":
        return
    name = files.base_name(used)
    known = _digests(vocabulary)
    if name in known and known[name] != digest:
        path = examples.manifest_path
        what = (
            f"the examples were made with another {name} than the one in {vocabulary.directory} (another "
            f"sha256); {_AGAIN}"
        )
        yield finding("shard_inputs", path, str(known[name]), str(digest), what)
