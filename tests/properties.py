"""How often tests of properties are tried."""

import os
from typing import Any

import hypothesis

# `make test` passes --hypothesis-profile=fast, `make test-builds` tries all properties in full.
FAST, FULL = "fast", "full"
_SHARE = 10  # of the examples are tried in `fast`
_LEAST = 10


def tries(count: int, **more: Any) -> hypothesis.settings:
    """Settings for `count` examples, a tenth of them in the profile `fast`, the same in each run.

    $MASKMILL_EXAMPLES is another number of examples, which then differ from run to run.
    """
    given = os.environ.get("MASKMILL_EXAMPLES")
    if hypothesis.settings.get_current_profile_name() == FAST:
        count = min(count, max(count // _SHARE, _LEAST))
    return hypothesis.settings(max_examples=int(given or count), derandomize=given is None, deadline=None, **more)


# For tests that share a folder among their examples.
WITH_FOLDER: dict[str, Any] = {"suppress_health_check": [hypothesis.HealthCheck.function_scoped_fixture]}

# For tests whose only input is the seed of a generator: a seed does not shrink.
SEEDED: dict[str, Any] = {**WITH_FOLDER, "phases": [hypothesis.Phase.explicit, hypothesis.Phase.generate]}
