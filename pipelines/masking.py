"""The masking step's options from the commands' flags. Without Beam: create-pretraining-data uses it too."""

import dataclasses

from pipelines.stage_options import MaskingFlags
from transforms.masking.instances import MaskingOptions


def masking_options(flags: MaskingFlags, compat: str) -> MaskingOptions:
    """The step's options: the Unicode tables and the rule for duplicate vocabulary entries follow `compat`."""
    names = [f.name for f in dataclasses.fields(MaskingFlags) if f.name != "vocab_file"]
    return MaskingOptions(
        **{name: getattr(flags, name) for name in names},
        unicode="15.1.0" if compat == "none" else "11.0.0",
        duplicate_pieces="last" if compat == "google" else "first",
    )
