"""Failures of a network in plain words, and whether a machine can be reached."""

import contextlib
import http.client
import queue
import socket
import threading
from collections.abc import Callable


def plain(error: BaseException) -> str:
    """Return an error as part of a sentence; one of a connection in the system's or the protocol's own words."""
    cause = _cause_of(error) or error
    if isinstance(cause, TimeoutError) or "timeout" in type(cause).__name__.lower():
        return "no answer in time"
    text = str(getattr(cause, "strerror", None) or (cause.args[0] if cause.args else cause))
    return " ".join(text.split()).rstrip(".") or type(cause).__name__


def _cause_of(error: BaseException) -> BaseException | None:
    """Return the system's or the protocol's error from which a library has made this one; None: there is none."""
    for one in (error.__cause__, error.__context__, getattr(error, "reason", None), *error.args):
        if isinstance(one, http.client.HTTPException | TimeoutError):
            return one
        if isinstance(one, OSError) and one.errno is not None:
            return one
        if isinstance(one, BaseException) and (cause := _cause_of(one)) is not None:
            return cause
    return None


def connection_failure(host: str, port: int, seconds: float) -> str:
    """Return why no TCP connection, look-up of the name included, comes about within `seconds`; "" where one does."""
    return _failure(lambda: socket.create_connection((host, port), timeout=seconds).close(), seconds)


def lookup_failure(host: str, seconds: float) -> str:
    """Return why a host's name has no address, or none within `seconds`; "" where it has one."""
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

    # The look-up of a name takes no time limit: it gets a thread, which may stay after.
    threading.Thread(target=try_it, name="network", daemon=True).start()
    with contextlib.suppress(queue.Empty):
        return answer.get(timeout=seconds)
    return f"no answer in {seconds:g} s"
