"""The completion record of a piece of work that an earlier step has finished."""

from typing import Any

from transforms.storage import completions


def finished_record(output: str, kind: str, key: str) -> dict[str, Any]:
    """Returns the completion record of a finished piece of the build into `output`.

    Raises:
      FileNotFoundError: there is no such record, although the step that writes it came before.
    """
    record = completions.load(output, kind, key)
    if record is None:
        path = completions.work_path(output, kind, f"{key}.json")
        raise FileNotFoundError(f"{path}: this completion record is missing, although its step is finished.")
    return record
