"""When a test may be skipped in CI: only for what this machine really lacks. Every other skip is a failure there.

`.ci/run` sets MASKMILL_CI. Elsewhere a developer without Java, say, gets the skip with its reason.
"""

import os
import re
import socket

import pytest

SHARED_IS_MISSING = "the large data beside the checkout is missing"
NO_ANSWER = "the registry does not answer"
OTHER_PROCESSOR = "this machine has another kind of processor"
_ALLOWED = (SHARED_IS_MISSING, NO_ANSWER, OTHER_PROCESSOR)

_PROBE_S = 10
_PORTS = {"http": 80, "https": 443}
_ADDRESS = re.compile(
    r"(?P<scheme>https?)://(?P<host>[\w.-]+)(:(?P<port>\d+))?|host='(?P<pool>[\w.-]+)', port=(?P<at>\d+)"
)


def is_allowed(reason: str) -> bool:
    """Whether CI accepts a skip for this reason."""
    return reason.removeprefix("Skipped: ").startswith(_ALLOWED)


def must_not_skip() -> bool:
    """Whether skips are failures: in CI, but not in the runs on a second backend that a test starts there."""
    return "MASKMILL_CI" in os.environ and os.environ.get("KERAS_BACKEND") != "tensorflow"


def addresses(message: str) -> list[tuple[str, int]]:
    """The host and port of every server that an error message of Maven or pip names."""
    found = []
    for match in _ADDRESS.finditer(message):
        scheme, host, port = match["scheme"], match["host"], match["port"]
        found.append((host, int(port or _PORTS[scheme])) if host else (match["pool"], int(match["at"])))
    return found


def skip_if_unreachable(message: str) -> None:
    """Skips the test if no server that the message names answers; returns where one does, or none is named."""
    servers = addresses(message)
    for server in servers:
        try:
            socket.create_connection(server, timeout=_PROBE_S).close()
        except OSError:
            continue
        return
    if servers:
        pytest.skip(f"{NO_ANSWER}: {message}")
