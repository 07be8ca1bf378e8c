"""Counts by name, as the steps report them and the manifest holds them."""

from collections.abc import Iterable, Mapping


def sum_counts(all_counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Adds up counts by name; the names of the sum are sorted."""
    total: dict[str, int] = {}
    for counts in all_counts:
        for name, value in counts.items():
            total[name] = total.get(name, 0) + value
    return dict(sorted(total.items()))
