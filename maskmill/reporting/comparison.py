"""What is different between two data sets, figure by figure and option by option."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TypeVar

from maskmill.reporting import shown
from maskmill.reporting.facts import Facts
from maskmill.reporting.figures import Figure

_T = TypeVar("_T")
_NONE = "–"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Change:
    """A figure or an option of both data sets, as text.

    Attributes:
      group, name: what it is.
      this, other: what both have; "–": it has none.
      change: from the other to this one; empty where nothing changed, or it is no number.
      differs: whether both are different.
    """

    group: str
    name: str
    this: str
    other: str
    change: str = ""
    differs: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
    """What is different between two data sets.

    Attributes:
      figures: all of both.
      left_out: documents that were left out, by reason.
      options, versions, inputs: only those that differ.
    """

    figures: tuple[Change, ...]
    left_out: tuple[Change, ...]
    options: tuple[Change, ...]
    versions: tuple[Change, ...]
    inputs: tuple[Change, ...]

    @property
    def is_same(self) -> bool:
        """Whether no figure, option, version or input differs."""
        everything = (*self.figures, *self.left_out, *self.options, *self.versions, *self.inputs)
        return not any(change.differs for change in everything)


def compare(facts: Facts, other: Facts) -> Comparison:
    """Compares a data set with another one, which counts as the earlier."""
    ours, theirs = ({(figure.group, figure.name): figure for figure in one.figures} for one in (facts, other))
    return Comparison(
        figures=tuple(_of_figures(key, ours.get(key), theirs.get(key)) for key in _keys(ours, theirs)),
        left_out=tuple(_left_out(facts, other)),
        options=_differing(
            {(option.stage, option.name): option.value for option in facts.options},
            {(option.stage, option.name): option.value for option in other.options},
        ),
        versions=_differing(
            {("", name): version for name, version in facts.versions.items()},
            {("", name): version for name, version in other.versions.items()},
        ),
        inputs=_differing(
            {("", one.path): one.sha256 for one in facts.inputs},
            {("", one.path): one.sha256 for one in other.inputs},
        ),
    )


def _keys(ours: Mapping[_T, object], theirs: Mapping[_T, object]) -> list[_T]:
    """The keys of both, each once: those of ours first."""
    return list(dict.fromkeys([*ours, *theirs]))


def _of_figures(key: tuple[str, str], ours: Figure | None, theirs: Figure | None) -> Change:
    group, name = key
    if ours is None or theirs is None:
        this, other = (_NONE if figure is None else figure.text for figure in (ours, theirs))
        return Change(group=group, name=name, this=this, other=other, differs=True)
    return Change(
        group=group,
        name=name,
        this=ours.text,
        other=theirs.text,
        change=_change(ours, theirs),
        differs=ours.value != theirs.value,
    )


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


def _left_out(facts: Facts, other: Facts) -> Sequence[Change]:
    ours, theirs = (
        {} if one.documents is None else {s.reason: s.count for s in one.documents.set_aside} for one in (facts, other)
    )
    changes = []
    for reason in _keys(ours, theirs):
        this, that = ours.get(reason, 0), theirs.get(reason, 0)
        change = _signed(f"{this - that:+,}") if this != that else ""
        changes.append(
            Change(
                group="",
                name=reason,
                this=shown.count(this),
                other=shown.count(that),
                change=change,
                differs=this != that,
            )
        )
    return changes


def _differing(ours: Mapping[tuple[str, str], str], theirs: Mapping[tuple[str, str], str]) -> tuple[Change, ...]:
    return tuple(
        Change(group=key[0], name=key[1], this=ours.get(key, _NONE), other=theirs.get(key, _NONE), differs=True)
        for key in _keys(ours, theirs)
        if ours.get(key) != theirs.get(key)
    )
