"""Compares what deploy/ has with what reads it, where no linter does: hooks of .pre-commit-config.yaml.

    python .ci/check_deploy.py kubernetes|flink|terraform|units|crontabs FILE…
    terraform providers schema -json | python .ci/check_deploy.py --write_terraform_schema   # in deploy/terraform

The first prints a line for each finding, or one if this machine lacks the tool for the check. Exit code: 0 nothing
found, 1 a finding, or in CI (MASKMILL_CI) a check that was left out.

| files | compared with |
|---|---|
| Kubernetes manifests | Kubernetes' own schemas, unknown fields and kinds refused |
| FlinkDeployment | the schema of the operator's custom resource, from its published package (Maven) |
| Terraform | its parser and formatter, and the names in the Google provider's schema (terraform_schema.json) |
| systemd units | systemd-analyze verify, and security with a limit |
| crontabs | crontab(5), as Debian reads /etc/cron.d |
"""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
TERRAFORM_SCHEMA = Path(__file__).with_name("terraform_schema.json")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "maskmill" / "flink"

# The Flink Kubernetes operator's classes, whose package holds the schemas of its custom resources.
OPERATOR = "org.apache.flink:flink-kubernetes-operator-api:1.10.0"
MOST_EXPOSED = 1.5  # of 10, by systemd-analyze's count


@dataclasses.dataclass(frozen=True)
class LeftOut:
    """A check that this machine cannot do; `why` says which tool is missing."""

    why: str


Result = list[str] | LeftOut


def check_kubernetes(paths: Sequence[Path]) -> Result:
    """Where manifests do not fit Kubernetes' own schemas, of which its own command lets unknown ones pass."""
    import kubernetes_validate

    findings = []
    for path in paths:
        for manifest in yaml.safe_load_all(path.read_text()):
            try:
                kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
            except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as error:
                name = manifest.get("metadata", {}).get("name")
                findings.append(f"{path}: {manifest['kind']} {name}: {getattr(error, 'message', error)}")
    return findings


def closed(schema: Any) -> Any:
    """A schema that refuses unknown fields, as a server does that validates strictly."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    own = {key: closed(value) for key, value in schema.items()}
    is_open = "additionalProperties" in own or own.get("x-kubernetes-preserve-unknown-fields")
    return own if is_open or not isinstance(own.get("properties"), dict) else own | {"additionalProperties": False}


def flink_schema(archive: Path) -> Mapping[str, Any]:
    """The schema of a FlinkDeployment from the operator's package."""
    with zipfile.ZipFile(archive) as package:
        definition = yaml.load(
            package.read("META-INF/fabric8/flinkdeployments.flink.apache.org-v1.yml"), yaml.CSafeLoader
        )
    (version,) = (v for v in definition["spec"]["versions"] if v["name"] == "v1beta1")
    schema: dict[str, Any] = closed(version["schema"]["openAPIV3Schema"])
    # A server knows these three of every object.
    schema["properties"] |= {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
    }
    return schema


def fetch_operator() -> Path | LeftOut:
    """The operator's package in the cache; Maven brings it the first time."""
    _, name, version = OPERATOR.split(":")
    archive = CACHE / f"{name}-{version}.jar"
    if archive.exists():
        return archive
    if shutil.which("mvn") is None:
        return LeftOut("mvn is missing, which fetches the schema of FlinkDeployment")
    with tempfile.TemporaryDirectory() as scratch:
        goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
        command = ["mvn", "-B", "-q", goal, f"-Dartifact={OPERATOR}", f"-DoutputDirectory={scratch}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = Path(scratch) / archive.name
        if not found.exists():
            return LeftOut(f"Maven did not fetch {OPERATOR}: {(done.stdout or done.stderr).strip()[:300]}")
        CACHE.mkdir(parents=True, exist_ok=True)
        # Another check may do the same: the file appears whole.
        half = archive.with_suffix(f".{os.getpid()}")
        shutil.copyfile(found, half)
        half.replace(archive)
    return archive


def check_flink(paths: Sequence[Path]) -> Result:
    """Where FlinkDeployments do not fit the schema of the operator's custom resource."""
    import jsonschema

    archive = fetch_operator()
    if isinstance(archive, LeftOut):
        return archive
    validator = jsonschema.Draft7Validator(flink_schema(archive))
    return [
        f"{path}: FlinkDeployment {'.'.join(map(str, error.absolute_path))}: {error.message}"
        for path in paths
        for manifest in yaml.safe_load_all(path.read_text())
        for error in validator.iter_errors(manifest)
    ]


_TOP_LEVEL = {"check", "data", "locals", "module", "moved", "output", "provider", "resource", "terraform", "variable"}


def check_terraform(paths: Sequence[Path]) -> Result:
    """Where Terraform's files do not parse, are not formatted, or use names that the provider's schema lacks."""
    import hcl2

    schema = json.loads(TERRAFORM_SCHEMA.read_text())
    findings: list[str] = []
    for path in paths:
        try:
            content = hcl2.loads(path.read_text())
        except Exception as error:  # noqa: BLE001 - the parser raises the errors of the one that it is made with
            findings.append(f"{path}: {str(error).splitlines()[0]}")
            continue
        if path.suffix == ".tf":
            unknown = [name for name in content if name not in _TOP_LEVEL and not name.startswith("__")]
            findings += [f"{path}: there is no block {name}" for name in unknown]
        for kind in ("resource", "data"):
            for block in content.get(kind, []):
                findings += [f"{path}: {finding}" for finding in _check_blocks(block, kind, schema)]
    if shutil.which("terraform") is not None:
        done = subprocess.run(
            ["terraform", "fmt", "-check", "-list=true", *paths], capture_output=True, text=True, check=False
        )
        findings += [f"{line}: not formatted; run terraform fmt" for line in done.stdout.splitlines()]
    return findings


def _check_blocks(block: Mapping[str, Any], kind: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a mapping from a resource's type and name to its body."""
    for quoted, named in block.items():
        of_type = schema[kind].get(_plain(quoted))
        if of_type is None:
            yield f"{kind} {_plain(quoted)} is not in {TERRAFORM_SCHEMA.name}; --write_terraform_schema writes it anew"
            continue
        for name, body in named.items():
            if not _plain(name).startswith("__"):
                yield from _check_body(body, of_type, f"{_plain(quoted)}.{_plain(name)}")


def reduced_schema(
    full: Mapping[str, Any], used: Mapping[str, set[str]], names: frozenset[str] | set[str]
) -> dict[str, Any]:
    """Of the provider's schema what these files need, by kind: resource and data.

    used: the types that are used, by kind. names: all names in the files; of a type only these stay, and what it
    requires.
    """
    (provider,) = full["provider_schemas"].values()
    kinds = {"resource": provider["resource_schemas"], "data": provider.get("data_source_schemas", {})}
    return {
        kind: {name: _reduced_block(types[name]["block"], names) for name in sorted(used[kind]) if name in types}
        for kind, types in kinds.items()
    }


def _reduced_block(block: Mapping[str, Any], names: frozenset[str] | set[str]) -> dict[str, Any]:
    needs = ("required", "optional", "computed")
    inner = {
        name: _reduced_block(nested["block"], names) | ({"is_required": True} if nested.get("min_items") else {})
        for name, nested in block.get("block_types", {}).items()
        if name in names or nested.get("min_items")
    }
    attributes = {
        name: next(need for need in needs if attribute.get(need))
        for name, attribute in block.get("attributes", {}).items()
        if name in names or attribute.get("required")
    }
    return {"attributes": attributes, "blocks": inner}


def _names_in(content: Any) -> set[str]:
    """All names in what the parser gives."""
    if isinstance(content, list):
        return set().union(*map(_names_in, content))
    if isinstance(content, dict):
        return {_plain(name) for name in content}.union(*map(_names_in, content.values()))
    return set()


def write_terraform_schema() -> None:
    """Writes the names that `check_terraform` needs from the schema that Terraform prints."""
    import hcl2

    used: dict[str, set[str]] = {"resource": set(), "data": set()}
    all_names: set[str] = set()
    for path in sorted((ROOT / "deploy").rglob("*.tf")):
        content = hcl2.loads(path.read_text())
        for kind, names in used.items():
            names |= {_plain(name) for block in content.get(kind, []) for name in block}
        all_names |= _names_in(content)
    schema = reduced_schema(json.load(sys.stdin), used, all_names)
    TERRAFORM_SCHEMA.write_text(json.dumps(schema, indent=1, sort_keys=True) + "\n")


# What Terraform itself knows in every resource.
_META = {"count", "depends_on", "for_each", "lifecycle", "provider", "provisioner", "connection", "timeouts", "dynamic"}


def _check_body(body: Mapping[str, Any], schema: Mapping[str, Any], where: str) -> Iterator[str]:
    """What is wrong with a block's body. `schema`: attributes, each required, optional or computed, and blocks."""
    given = {key for key in body if not key.startswith("__")}
    for key in sorted(given):
        inner = schema["blocks"].get(key)
        if inner is not None:
            for part in body[key] if isinstance(body[key], list) else [body[key]]:
                yield from _check_body(part, inner, f"{where}.{key}")
        elif schema["attributes"].get(key) == "computed":
            yield f"{where}: {key} is for reading"
        elif key not in schema["attributes"] and key not in _META:
            yield f"{where}: there is no {key}"
    needed = {name for name, need in schema["attributes"].items() if need == "required"}
    needed |= {name for name, inner in schema["blocks"].items() if inner.get("is_required")}
    for key in sorted(needed - given):
        yield f"{where}: {key} is missing"


def _plain(name: str) -> str:
    """A name without the quotes that the parser keeps."""
    return name.strip('"')


def check_units(paths: Sequence[Path]) -> Result:
    """What systemd-analyze finds in units, and services that may do more than `MOST_EXPOSED` allows."""
    program = shutil.which("systemd-analyze")
    if program is None:
        return LeftOut("systemd-analyze is missing")
    findings = []
    with tempfile.TemporaryDirectory() as scratch:
        copies = []
        for path in paths:
            copy = Path(scratch) / path.name
            # It looks for the program, too, which is not on this machine.
            copy.write_text(re.sub(r"(?m)^(Exec\w+=)\S+", r"\1/bin/true", path.read_text()))
            copies.append(copy)
        done = subprocess.run([program, "verify", *copies], capture_output=True, text=True, check=False)
        # It looks at the units of the machine that these name as well; only those from here count.
        findings += [line for line in done.stderr.splitlines() if any(p.name in line for p in paths)]
        for service in (copy for copy in copies if copy.suffix == ".service"):
            command = [program, "security", "--offline=true", f"--threshold={int(10 * MOST_EXPOSED)}", "--no-pager"]
            done = subprocess.run([*command, service], capture_output=True, text=True, check=False)
            if done.returncode:
                last = (done.stdout + done.stderr).strip().splitlines()[-1]
                findings.append(f"{service.name}: it may do more than {MOST_EXPOSED} of 10 allows: {last}")
    return findings


# The range of each of the five fields, and the names that two of them take.
_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))
_NAMES = {
    "month": ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    "weekday": ["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
}
_VARIABLE = re.compile(r"[A-Za-z_]\w*\s*=")


def check_crontabs(paths: Sequence[Path]) -> Result:
    """Where files for /etc/cron.d are not as crontab(5) has them."""
    return [f"{path}: {finding}" for path in paths for finding in _crontab_findings(path)]


def _crontab_findings(path: Path) -> Iterator[str]:
    if not re.fullmatch(r"[A-Za-z0-9_-]+", path.name):
        yield "cron ignores files whose names have other characters than letters, digits, - and _"
    text = path.read_text()
    if not text.endswith("\n"):
        yield "the last line does not end, so cron ignores it"
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#") or _VARIABLE.match(line):
            continue
        fields = line.split(None, 6)
        if len(fields) < 7:
            yield f"line {number}: five fields of time, a user and a command are needed"
            continue
        for (name, low, high), field in zip(_FIELDS, fields, strict=False):
            if not all(_is_part(part, low, high, _NAMES.get(name, [])) for part in field.split(",")):
                yield f"line {number}: {field!r} is no {name}"
        if re.search(r"(?<!\\)%", fields[6]):
            yield f"line {number}: cron ends the command at an unescaped %"


def _is_part(part: str, low: int, high: int, names: Sequence[str]) -> bool:
    match = re.fullmatch(r"(\*|(\d+)(?:-(\d+))?)(?:/([1-9]\d*))?", part)
    if match is None:
        return part.lower() in names
    numbers = [int(number) for number in match.group(2, 3) if number]
    return all(low <= number <= high for number in numbers) and numbers == sorted(numbers)


CHECKS: Mapping[str, Callable[[Sequence[Path]], Result]] = {
    "kubernetes": check_kubernetes,
    "flink": check_flink,
    "terraform": check_terraform,
    "units": check_units,
    "crontabs": check_crontabs,
}


def main(arguments: Sequence[str]) -> int:
    """Runs a check on files, or writes Terraform's schema. Returns the exit code."""
    if arguments == ["--write_terraform_schema"]:
        write_terraform_schema()
        return 0
    check, *names = arguments
    result = CHECKS[check]([Path(name) for name in names])
    if isinstance(result, LeftOut):
        print(f"not checked: {', '.join(names)}: {result.why}")
        return int(bool(os.environ.get("MASKMILL_CI")))
    print(*result, sep="\n", end="\n" if result else "")
    return 1 if result else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
