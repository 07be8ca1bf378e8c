"""The state of a loader: its consumer's position, and the values that another loader needs to share to resume there."""

from collections.abc import Mapping
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.loading.schedule import Place

State = dict[str, Any]

# Raise it when the same seed gives another order or other masks.
VERSION = 1
MOST_EPOCHS, _MOST_SAMPLES = 1 << 31, 1 << 62  # the most that a state may have


def state_of(description: Mapping[str, Any], place: Place) -> State:
    """Return a state, as values of JSON.

    description: fingerprint, seed, shuffle, window, and "files", the digest of each by its path.
    """
    return {
        "version": VERSION,
        **description,
        "files": list(description["files"].values()),
        "epoch": place.epoch,
        "sample": place.sample,
    }


def checked_place(
    state: Mapping[str, Any], description: Mapping[str, Any], samples: int | None, most_epochs: int = MOST_EPOCHS
) -> Place:
    """Return the place of a state; raise if it does not fit a loader.

    Args:
      state: of this loader or another.
      description: of this loader, as for `state_of`.
      samples: the number of samples of an epoch; None: it is endless.
      most_epochs: the most epochs that a run may have finished.

    Raises:
      UnusableInputError: this is no state, or one of other data or options.
    """
    expected = {"version", "epoch", "sample", *description}
    if not isinstance(state, Mapping) or not expected <= set(state):
        raise UnusableInputError("This is not a state of a loader; give what its state_dict() returned.")
    if state["version"] != VERSION:
        raise UnusableInputError(
            f"This state of a loader has version {state['version']}, but this maskmill reads version {VERSION}: its "
            "order is another one; go on with the maskmill that wrote the state, or start without it."
        )
    if not isinstance(state["files"], list | tuple):
        raise UnusableInputError("This state of a loader is damaged: it does not list the files that it is of.")
    if (reason := _difference(state, description)) is not None:
        raise UnusableInputError(reason)
    epoch, sample = state["epoch"], state["sample"]
    if not is_count(epoch, most_epochs) or not is_count(sample, _MOST_SAMPLES):
        raise UnusableInputError(
            f"This state of a loader is damaged: epoch is {epoch!r} and sample is {sample!r}, but they are whole "
            f"numbers from 0 on, epoch at most {most_epochs:,} here."
        )
    if samples is not None and sample and sample >= samples:
        raise UnusableInputError(
            f"This state of a loader is damaged: sample is {sample:,}, but an epoch has {samples:,} samples."
        )
    return Place(epoch, sample)


def is_count(value: object, most: int) -> bool:
    """Return whether a value of a state is an int from 0 to `most`, not a bool or a float."""
    return type(value) is int and 0 <= value <= most


def _difference(state: Mapping[str, Any], description: Mapping[str, Any]) -> str | None:
    """Return a sentence about the first difference of a state and a loader; None: they fit."""
    files = dict(description["files"])
    for (path, digest), found in zip(files.items(), state["files"], strict=False):
        if digest != found:
            return (
                f"{path}: this file is not the one that the state of the loader was made with; open the same data "
                "set again, or start without the state."
            )
    if len(files) != len(state["files"]):
        return (
            f"The state of the loader is of {len(state['files']):,} files, but {len(files):,} are open; open the same "
            "data set again, or start without the state."
        )
    if state["fingerprint"] != description["fingerprint"]:
        return (
            "The state of the loader is of the same files, but of other masks, weights or repetitions; open them as "
            "before, or start without the state."
        )
    for name in ("seed", "shuffle", "window"):
        if state[name] != description[name]:
            return (
                f"The state of the loader is of {name}={state[name]}, but it was opened with "
                f"{name}={description[name]}, so the order is another one; open it with {name}={state[name]}."
            )
    return None
