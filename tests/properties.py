"""How often tests of properties are tried."""

import os
from typing import Any

import hypothesis

# `make test` passes --hypothesis-profile=fast, `make test-heavy` part, for what is marked `builds`; `make
# test-exhaustive` tries all in full.
FAST, PART, FULL = "fast", "part", "full"
_SHARES = {FAST: 10, PART: 4}  # one in so many of the examples is tried
_LEAST = 10


def tries(count: int, **more: Any) -> hypothesis.settings:
    """Settings for `count` examples, fewer in the profiles `fast` and `part`, the same in each run.

    $MASKMILL_EXAMPLES is another number of examples, which then differ from run to run.
    """
    given = os.environ.get("MASKMILL_EXAMPLES")
    share = _SHARES.get(hypothesis.settings.get_current_profile_name(), 1)
    count = min(count, max(count // share, _LEAST))
    return hypothesis.settings(max_examples=int(given or count), derandomize=given is None, deadline=None, **more)


# For tests that share a folder among their examples.
WITH_FOLDER: dict[str, Any] = {"suppress_health_check": [hypothesis.HealthCheck.function_scoped_fixture]}

# For tests whose only input is the seed of a generator: a seed does not shrink.
SEEDED: dict[str, Any] = {**WITH_FOLDER, "phases": [hypothesis.Phase.explicit, hypothesis.Phase.generate]}
