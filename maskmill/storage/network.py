"""Describe failures of a network in words, and check whether a machine can be reached."""

import contextlib
import http.client
import queue
import socket
import threading
from collections.abc import Callable


def plain(error: BaseException) -> str:
    """Return an error as part of a sentence, by the system's or the protocol's message if it has one."""
    cause = _cause_of(error) or error
    if isinstance(cause, TimeoutError) or "timeout" in type(cause).__name__.lower():
        return "no answer in time"
    text = str(getattr(cause, "strerror", None) or (cause.args[0] if cause.args else cause))
    return " ".join(text.split()).rstrip(".") or type(cause).__name__


def _cause_of(error: BaseException) -> BaseException | None:
    """Return the system's or the protocol's error that caused a library's error, or None."""
    for one in (error.__cause__, error.__context__, getattr(error, "reason", None), *error.args):
        if isinstance(one, http.client.HTTPException | TimeoutError):
            return one
        if isinstance(one, OSError) and one.errno is not None:
            return one
        if isinstance(one, BaseException) and (cause := _cause_of(one)) is not None:
            return cause
    return None


def connection_failure(host: str, port: int, seconds: float) -> str:
    """Return why a TCP connection fails within `seconds`, look-up of the name included; "" if it succeeds."""
    return _failure(lambda: socket.create_connection((host, port), timeout=seconds).close(), seconds)


def lookup_failure(host: str, seconds: float) -> str:
    """Return why the look-up of a host's name fails within `seconds`; "" if it succeeds."""
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

    # The look-up of a name has no time limit: it runs in a thread, which may outlive this call.
    threading.Thread(target=try_it, name="network", daemon=True).start()
    with contextlib.suppress(queue.Empty):
        return answer.get(timeout=seconds)
    return f"no answer in {seconds:g} s"
