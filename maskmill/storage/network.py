"""Whether another machine can be reached, answered within seconds that the caller names, and when to try again."""

import contextlib
import queue
import socket
import threading
from collections.abc import Callable, Iterator


def delays(first: float, most: float) -> Iterator[float]:
    """Seconds between tries: each time twice as many, up to the most."""
    while True:
        yield first
        first = min(2 * first, most)


def connection_failure(host: str, port: int, seconds: float) -> str:
    """Why no TCP connection comes about within `seconds`, the look-up of the name included; "" where one does."""
    return _failure(lambda: socket.create_connection((host, port), timeout=seconds).close(), seconds)


def lookup_failure(host: str, seconds: float) -> str:
    """Why a host's name has no address, or none within `seconds`; "" where it has one."""
    return _failure(lambda: socket.getaddrinfo(host, None), seconds)


def _failure(attempt: Callable[[], object], seconds: float) -> str:
    answer: queue.Queue[str] = queue.Queue()

    def try_it() -> None:
        try:
            attempt()
        except (OSError, UnicodeError) as error:  # a label of a name may be too long for IDNA
            answer.put(str(getattr(error, "strerror", None) or error))
        else:
            answer.put("")

    # The look-up of a name takes no time limit: it gets a thread, which may stay behind.
    threading.Thread(target=try_it, name="network", daemon=True).start()
    with contextlib.suppress(queue.Empty):
        return answer.get(timeout=seconds)
    return f"no answer in {seconds:g} s"
