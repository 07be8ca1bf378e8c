"""lineage: from a checkpoint, a data set or a shard back to the dump; and which data sets hold a page. Without Beam."""

import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.inspection.shown_text import as_json, shown
from maskmill.lineage.origins import HoldingDataSet, Lineage, StageFacts, data_sets_with, lineage_of
from maskmill.storage import paths
from pipelines.settings import options as option_tools
from pipelines.settings.command_options import LineageOptions
from pipelines.settings.flags import only_path
from pipelines.stages.registry import STAGES

FITS, DIFFERS = 0, 1
SCHEMA_VERSION = 2

_MOST_LINES = 20  # sources that are listed; --json has all
_TITLES = {"extract": "text"}


def run(names: Sequence[str], options: LineageOptions) -> int:
    """Print the lineage of the path that a command line names, or the data sets below it that may hold a page.

    Returns:
      The exit code: 0 if all links fit, 1 if one does not.

    Raises:
      UnusableInputError: there is nothing under this path.
    """
    path = only_path(names, "name one checkpoint, shard, release or build")
    if options.page is not None:
        paths.refuse_missing(path)
        held = data_sets_with(path, options.page)
        found: dict[str, Any] = {"page": options.page, "data_sets": [dataclasses.asdict(one) for one in held]}
        _print(found, _page_lines(path, options.page, held), options)
        return FITS
    lineage = lineage_of(path)
    if lineage is None:
        raise UnusableInputError(f"{path}: this is not a checkpoint, shard, release or build; name one of these.")
    _print(dataclasses.asdict(lineage), _lines(lineage), options)
    for problem in lineage.problems:
        print(f"maskmill lineage: does not fit: {problem}", file=sys.stderr, flush=True)
    return DIFFERS if lineage.problems else FITS


def _print(found: Mapping[str, Any], lines: Iterator[tuple[str, str]], options: LineageOptions) -> None:
    if options.json:
        print(as_json({"schema_version": SCHEMA_VERSION, **found}, indent=1))
        return
    for label, text in lines:
        print(f"{label:<12} {shown(text)}")


def _page_lines(path: str, page: int, held: Sequence[HoldingDataSet]) -> Iterator[tuple[str, str]]:
    if not held:
        yield "", f"{path}: no data set below this directory was made of a file that may have page {page}."
    for one in held:
        yield _TITLES.get(one.stage, one.stage), f"{one.directory}: {_count(one)}"
        yield "", f"{', '.join(one.shards[:3])}{', …' if len(one.shards) > 3 else ''}"
        yield "", f"made of {', '.join(one.files)}"


def _count(one: HoldingDataSet | StageFacts) -> str:
    return f"{len(one.shards):,} of {one.all_shards:,} shards"


def _lines(found: Lineage) -> Iterator[tuple[str, str]]:
    """Yield the lineage as lines, from what was asked for back to its sources."""
    if found.checkpoint is not None:
        step = "" if found.checkpoint.step is None else f", step {found.checkpoint.step:,}"
        yield "checkpoint", f"{found.checkpoint.path}{step}"
        if found.checkpoint.init_checkpoint:
            yield "", f"began with the weights of {found.checkpoint.init_checkpoint}"
    if found.release is not None:
        yield "release", f"{found.release}, fingerprint {found.fingerprint or 'not known'}"
    for stage in found.stages:
        yield _TITLES.get(stage.stage, stage.stage), f"{stage.directory}: {_count(stage)}"
        yield "", f"manifest sha256 {stage.manifest_sha256}"
        given = (f"{name} {as_json(value).strip(chr(34))}" for name, value in sorted(_given(stage).items()))
        yield "", ", ".join(given) or "all parameters at their defaults"
        yield "", f"made by maskmill {stage.versions.get('maskmill', 'of a version that it does not say')}"
    for source in found.sources[:_MOST_LINES]:
        size = "" if source.bytes is None else f", {source.bytes:,} bytes"
        date = f", of {source.date}" if source.date else ""
        pages = "" if source.pages is None else f", pages {source.pages[0]} to {source.pages[1]}"
        yield "dump" if source.date else "source", f"{source.path}{size}{date}{pages}"
        yield "", f"sha256 {source.sha256}"
    if len(found.sources) > _MOST_LINES:
        yield "", f"and {len(found.sources) - _MOST_LINES:,} files more, which --json has"
    yield from (("unknown", gap) for gap in found.gaps)
    yield "links", f"{len(found.problems):,} do not fit" if found.problems else "all that is there fits"


def _given(stage: StageFacts) -> dict[str, Any]:
    """Return the parameters of a stage that are not at their defaults."""
    classes = [known.options_class for known in STAGES if known.name == stage.stage]
    defaults = option_tools.option_defaults(classes[0]) if classes else {}
    known = option_tools.options_of(classes[0]) if classes else {}
    # A manifest has checksums of what options name, too. A mix has options for each of its sources.
    chosen = {name: value for name, value in stage.parameters.items() if name in known or "." in name}
    return {
        name: value
        for name, value in chosen.items()
        if name != "input" and as_json(defaults.get(name)) != as_json(value)
    }
