"""How the options of a step or stage are declared: once, with what a user reads of them.

Options are frozen, keyword-only dataclasses. A field made by `option` is a flag, a key of a build's YAML file and an
entry of the manifest at once (pipelines/settings/options.py makes these of it); where its name is a keyword of Python,
the field has an underscore behind it (`from_`). A field made by `nested` holds the options of a step; its fields count
as if they stood in its place. A plain field is none of the user's business. A class with many options groups them for
`--help`: its `GROUPS` names the first option of each group. Where defaults depend on what was given, a class method
`completed` takes the given values by name and returns them with those that follow from them.

Modules that declare options import neither NumPy nor Beam, so that `--help` answers at once.
"""

import dataclasses
from typing import Any

HELP, CHOICES = "help", "choices"

# An options class may have a mapping of this name, from the first option of each group to its heading in --help.
GROUPS = "GROUPS"
# An options class may have a class method of this name, which adds to the given values what follows from them.
COMPLETED = "completed"


def option(default: Any = dataclasses.MISSING, *, help: str, choices: tuple[Any, ...] | None = None) -> Any:
    """A field that a user sets. Without a default it is required.

    choices: the values that it takes, if its annotation, which may be a Literal, cannot say them.
    """
    return dataclasses.field(default=default, metadata={HELP: help, CHOICES: choices})


def nested(options_class: type) -> Any:
    """A field that holds the options of a step, all at their defaults unless they are given."""
    return dataclasses.field(default_factory=options_class)
