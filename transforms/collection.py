"""What a step is given and gives: a collection of descriptions. Steps are plain functions of one, and know no runner.

    def AssembleTextShards(plans: Collection, *, extractions: Extractions, output: str) -> Collection:
        return plans.spread("Assemble", assemble_text_shard, extractions, output)

Work is a function of a description and of further arguments. A runner pickles both, what the work gives, and the step's
settings. Collections have no order, and a runner may do any work twice.
"""

import abc
from collections.abc import Callable, Iterable
from typing import Any


class Collection(abc.ABC):
    """Descriptions, on some runner. Labels tell the steps of a graph apart."""

    @abc.abstractmethod
    def flat_map(self, label: str, work: Callable[..., Iterable[Any]], *arguments: Any) -> "Collection":
        """All that `work(description, *arguments)` gives for each description."""

    @abc.abstractmethod
    def map(self, label: str, work: Callable[..., Any], *arguments: Any) -> "Collection":
        """What `work(description, *arguments)` gives for each description."""

    @abc.abstractmethod
    def spread(self, label: str, work: Callable[..., Any], *arguments: Any) -> "Collection":
        """As `map`, each description on any worker: for work that takes long."""

    @abc.abstractmethod
    def together(self, label: str = "Together") -> "Collection":
        """One list of all descriptions: they are small and few."""

    @abc.abstractmethod
    def joined(self, label: str, *others: "Collection") -> "Collection":
        """The descriptions of this collection and of others."""

    @abc.abstractmethod
    def step(self, step: Callable[..., "Collection"], label: str | None = None, **settings: Any) -> "Collection":
        """What a step makes of the collection; its own steps' labels are below `label`, by default its name."""


class Graph(abc.ABC):
    """Where collections begin."""

    @abc.abstractmethod
    def create(self, label: str, descriptions: Iterable[Any]) -> Collection:
        """A collection of these."""
