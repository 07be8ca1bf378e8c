"""A limit of time for Python code that may never end: steps of the user's, and the expansion of templates."""

import contextlib
import ctypes
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class PageTimeError(BaseException):
    """A page took too long. It is no Exception, so that no step of the user's takes it for one of its own."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise PageTimeError in the block once it has taken so many seconds of wall-clock time.

    In the main thread, where local workers do their work, this ends a regular expression and a wait, too. In other
    threads, as on Flink, on Dataflow and into a store, the block goes on until it comes to its next line of Python.
    """
    if threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGALRM, _raise)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        return
    set_error, thread = ctypes.pythonapi.PyThreadState_SetAsyncExc, ctypes.c_ulong(threading.get_ident())
    ending, is_over = threading.Lock(), threading.Event()

    def end() -> None:
        with ending:
            if not is_over.is_set():
                set_error(thread, ctypes.py_object(PageTimeError))

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with ending:
            is_over.set()
            set_error(thread, None)  # if it has not come yet


def _raise(number: int, frame: FrameType | None) -> None:
    raise PageTimeError
