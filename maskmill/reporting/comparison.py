"""What is different between two data sets, figure by figure and option by option."""

from collections.abc import Hashable, Mapping
from typing import NamedTuple, TypeVar

from maskmill.reporting.facts import Facts
from maskmill.reporting.figures import Figure

_T = TypeVar("_T", bound=Hashable)
_NONE = "–"


class Change(NamedTuple):
    """A figure or an option of both data sets, as text.

    Attributes:
      group, name: what it is.
      this, other: what both have; "–": it has none.
      change: from the other to this one; empty if nothing changed, or it is not a number.
      differs: whether both are different.
    """

    group: str
    name: str
    this: str
    other: str
    change: str = ""
    differs: bool = True


class Comparison(NamedTuple):
    """What is different between two data sets.

    Attributes:
      figures: all of both, and how many documents were left out for which reason.
      options, versions, inputs: only those that differ.
    """

    figures: tuple[Change, ...]
    options: tuple[Change, ...]
    versions: tuple[Change, ...]
    inputs: tuple[Change, ...]

    @property
    def is_same(self) -> bool:
        """Whether no figure, option, version or input differs."""
        return not any(change.differs for changes in self for change in changes)


def compare(facts: Facts, other: Facts) -> Comparison:
    """Compares a data set with another one, which counts as the earlier."""
    ours, theirs = _figures(facts), _figures(other)
    both = (facts, other)
    return Comparison(
        figures=tuple(_of_figures(*key, ours.get(key), theirs.get(key)) for key in _keys(ours, theirs)),
        options=_differing(*({(o.stage, o.name): o.value for o in one.options} for one in both)),
        versions=_differing(*({("", name): version for name, version in one.versions.items()} for one in both)),
        inputs=_differing(*({("", file.path): file.sha256 for file in one.inputs} for one in both)),
    )


def _keys(ours: Mapping[_T, object], theirs: Mapping[_T, object]) -> list[_T]:
    """The keys of both, each once: those of ours first."""
    return list(dict.fromkeys([*ours, *theirs]))


def _of_figures(group: str, name: str, ours: Figure | None, theirs: Figure | None) -> Change:
    this, other = (_NONE if figure is None else figure.text for figure in (ours, theirs))
    if ours is None or theirs is None:
        return Change(group, name, this, other)
    return Change(group, name, this, other, _change(ours, theirs), ours.value != theirs.value)


def _change(ours: Figure, theirs: Figure) -> str:
    """The change from theirs to ours: of a share in percentage points, of anything else in percent of theirs."""
    if ours.value == theirs.value:
        return ""
    if ours.unit == "share":
        return _signed(f"{100 * (ours.value - theirs.value):+.2g} points")
    if not theirs.value:
        return "new"
    return _signed(f"{100 * (ours.value / theirs.value - 1):+.3g} %")


def _signed(text: str) -> str:
    """A number with a sign, with the minus that is as wide as the plus."""
    return text.replace("-", "\u2212")


def _figures(facts: Facts) -> dict[tuple[str, str], Figure]:
    left_out = () if facts.documents is None else facts.documents.set_aside
    reasons = [Figure("Left out", one.reason, one.count) for one in left_out]
    return {(figure.group, figure.name): figure for figure in (*facts.figures, *reasons)}


def _differing(ours: Mapping[tuple[str, str], str], theirs: Mapping[tuple[str, str], str]) -> tuple[Change, ...]:
    return tuple(
        Change(*key, ours.get(key, _NONE), theirs.get(key, _NONE))
        for key in _keys(ours, theirs)
        if ours.get(key) != theirs.get(key)
    )
