"""The stages of a build, in order: the classes that the files `…_stage.py` of this folder declare."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

from pipelines import stages
from pipelines.stages.stage import GraphStage, Stage


def _declared() -> Iterator[type[Stage[Any]]]:
    for found in pkgutil.iter_modules(stages.__path__, f"{stages.__name__}."):
        if not found.name.endswith("_stage"):
            continue
        module = importlib.import_module(found.name)
        for value in vars(module).values():
            is_own = isinstance(value, type) and value.__module__ == found.name and hasattr(value, "options_class")
            if is_own and value.stands_for is None:
                yield value


def _number_before(stage: type[Stage[Any]]) -> int:
    return 0 if stage.after is None else 1 + _number_before(stage.after)


def _place(stage: type[Stage[Any]]) -> tuple[bool, int, str]:
    """Return what stages are sorted by: those after the graph come last."""
    return not issubclass(stage, GraphStage), _number_before(stage), stage.name


STAGES: tuple[type[Stage[Any]], ...] = tuple(sorted(_declared(), key=_place))

GRAPH_STAGES = tuple(stage for stage in STAGES if issubclass(stage, GraphStage))

# The Dataflow template launches one graph, and a build that makes its vocabulary is two.
TEMPLATE_STAGES = tuple(stage for stage in GRAPH_STAGES if not stage.is_optional)
