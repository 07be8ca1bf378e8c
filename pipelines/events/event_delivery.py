"""Delivers messages to a server in a thread of its own: a build neither waits for the server nor fails with it."""

import collections
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Generic, NoReturn, TypeVar

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.storage.network import delays
from maskmill.storage.web_client import TransientError

Message = TypeVar("Message")

PATIENCE = 120.0  # seconds for which one message is tried
_FIRST_DELAY, _MOST_DELAY = 0.5, 30.0  # seconds between two tries
_TRY_AGAIN = {408, 425, 429}


def refuse(status: int, text: str, wait: float = 0.0) -> NoReturn:
    """Raises what an HTTP status means that is no success.

    Args:
      status, text: the status, and how it reads.
      wait: how many seconds the server wants to be left alone.

    Raises:
      TransientError: another try may succeed.
      RunFailedError: the server does not take the message.
    """
    if status in _TRY_AGAIN or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise TransientError(text, wait=wait)
    raise RunFailedError(text)


class Delivery(Generic[Message]):
    """Delivers messages one after the other, in the order in which they are given."""

    def __init__(
        self,
        send: Callable[[Message], None],
        *,
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begins no thread yet.

        Args:
          send: delivers a message. It raises TransientError where another try may help, and RunFailedError or
            UnusableInputError where none will.
          patience: for how many seconds a message is tried.
          clock: gives seconds.
        """
        self._send = send
        self._patience = patience
        self._clock = clock
        self._waiting: collections.deque[Message] = collections.deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._end: float | None = None  # of all tries, once it is closed
        self._given = self._failed = 0
        self._reason = ""

    def give(self, message: Message) -> None:
        """Takes a message to be delivered soon; returns at once."""
        with self._changed:
            self._given += 1
            self._waiting.append(message)
            if self._thread is None:
                # A daemon: a server that answers a byte a minute does not keep the command from ending.
                self._thread = threading.Thread(target=self._deliver_all, name="events", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self, seconds: float) -> str | None:
        """Lets the last messages be delivered.

        Args:
          seconds: how long that may take.

        Returns:
          What was not delivered and why, as part of a sentence; None where all was.
        """
        with self._changed:
            self._end = self._clock() + seconds
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(seconds)
        with self._changed:
            lost = self._failed + len(self._waiting)
            if not lost:
                return None
            self._waiting.clear()
            reason = self._reason or "no answer in time"
            return f"{lost} of {self._given} events could not be delivered ({reason})"

    def _deliver_all(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and self._end is None:
                    self._changed.wait()
                if not self._waiting:
                    return
                message = self._waiting[0]
            is_delivered = self._deliver(message)
            with self._changed:
                if not self._waiting:
                    return  # nobody waits for the rest any more
                # Only now, so that `close` counts a message that is still on its way as lost.
                self._waiting.popleft()
                self._failed += not is_delivered

    def _deliver(self, message: Message) -> bool:
        """Tries to deliver a message; returns whether it is delivered."""
        began = self._clock()
        for delay in delays(_FIRST_DELAY, _MOST_DELAY):
            try:
                self._send(message)
                return True
            except TransientError as error:
                self._reason, asked = str(error), error.wait
            except (RunFailedError, UnusableInputError) as error:
                self._reason = str(error)
                return False
            with self._changed:
                # Whoever closes in the meantime wants the last tries made now.
                self._changed.wait_for(lambda: self._end is not None, max(delay, asked))
                end = self._end
            if end is None and self._clock() > began + self._patience:
                return False
            if end is not None:
                pause = max(_FIRST_DELAY, asked)
                if self._clock() + pause > end:
                    return False
                time.sleep(pause)
        return False
