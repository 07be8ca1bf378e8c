"""What Google's DataflowStartFlexTemplateOperator is given, so that maskmill's Flex Template builds a release.

The template (deploy/dataflow) has a parameter for each option of a build's file. It knows nothing of releases: the
directory of one is its output. A stage's task behind it then finds all finished, and completes the release.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

# Sections of a build's file that the template has no parameters for.
_NOT_OF_A_TEMPLATE = ("release", "watch", "on_event", "train")
_NOT_IN_A_NAME = re.compile(r"[^a-z0-9-]+")
_LONGEST_NAME = 50


def parameters(build: Mapping[str, Any], plan: Mapping[str, Any]) -> dict[str, str]:
    """The template's parameters.

    Args:
      build: the content of a build's file.
      plan: what `maskmill build CONFIG --release --dry_run --json` prints: its `directory` and `inputs`.

    Raises:
      ValueError: the build has a section that the template cannot build, or a path that Dataflow's workers do not see.
    """
    if "vocabulary" in build:
        raise ValueError("The Flex Template learns no vocabulary; learn it once, and name it in examples.vocab_file.")
    found: dict[str, Any] = {"output": plan["directory"]}
    for section, content in build.items():
        if section in _NOT_OF_A_TEMPLATE or section == "output":
            continue
        if isinstance(content, Mapping):
            found |= {f"{section}_{name}": value for name, value in content.items()}
        else:
            found[section] = content
    if plan.get("inputs") and "extract_from" not in found:
        found["extract_input"] = plan["inputs"]
    for name in ("output", "extract_input", "examples_vocab_file"):
        for path in _listed(found.get(name, [])):
            if not path.startswith("gs://"):
                raise ValueError(f"{name} is {path}: Dataflow's workers see nothing but gs:// paths.")
    return {name: ",".join(_listed(value)) for name, value in found.items() if value is not None}


def launch_body(
    build: Mapping[str, Any], plan: Mapping[str, Any], *, template: str, environment: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The body of the request that launches the template.

    Args:
      build, plan: as of `parameters`.
      template: the gs:// path of the template's JSON file.
      environment: the FlexTemplateRuntimeEnvironment: machineType, maxWorkers, serviceAccountEmail, tempLocation, ….
    """
    name = _NOT_IN_A_NAME.sub("-", f"maskmill-{plan['release']}".lower()).strip("-")[:_LONGEST_NAME].rstrip("-")
    return {
        "launchParameter": {
            "jobName": name,
            "containerSpecGcsPath": template,
            "parameters": parameters(build, plan),
            "environment": dict(environment or {}),
        }
    }


def _listed(value: Any) -> Sequence[str]:
    return [str(part) for part in value] if isinstance(value, list | tuple) else [str(value)]
