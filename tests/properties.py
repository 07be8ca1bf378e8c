"""How often tests of properties are tried."""

import os
from typing import Any

import hypothesis


def tries(count: int, **more: Any) -> hypothesis.settings:
    """Settings for `count` examples, the same in each run; or for $MASKMILL_EXAMPLES, which differ from run to run."""
    given = os.environ.get("MASKMILL_EXAMPLES")
    return hypothesis.settings(max_examples=int(given or count), derandomize=given is None, deadline=None, **more)


# For tests whose only input is the seed of a generator: a seed does not shrink.
SEEDED: dict[str, Any] = {
    "phases": [hypothesis.Phase.explicit, hypothesis.Phase.generate],
    "suppress_health_check": [hypothesis.HealthCheck.function_scoped_fixture],
}
