"""Make batches in a thread, ahead of use."""

import contextlib
import dataclasses
import queue
import threading
import time
from collections.abc import Generator

from maskmill.loading.batches import Batch

_POLL = 0.5  # seconds after which a thread that waits for space in the queue checks whether it should end


@dataclasses.dataclass(frozen=True)
class Product:
    """A batch, with the numbers of its samples and of its tokens, without padding."""

    batch: Batch
    _: dataclasses.KW_ONLY
    samples: int
    tokens: int


class _Flag:
    """A request to end a thread. It is set without a lock, because the garbage collector may do so anywhere."""

    is_set = False


class Production:
    """Run a generator of products in a thread, ahead of their consumer.

    Attributes:
      has_ended: whether the consumer got all products.
    """

    def __init__(self, products: Generator[Product, None, None], ahead: int) -> None:
        """Take a generator, which starts with the first `take`; ahead: the most products to make ahead."""
        self.has_ended = False
        self._queue: queue.Queue[Product | BaseException | None] = queue.Queue(ahead)
        self._stop = _Flag()
        # The thread has no reference to this object, so that its deletion can end the thread.
        arguments = (products, self._queue, self._stop)
        self._thread = threading.Thread(target=_make, args=arguments, name="maskmill-loader", daemon=True)
        self._since: float | None = None

    def take(self) -> tuple[Product | None, float, float]:
        """Return the next product, or None after the last; the seconds since the last call; and those of waiting.

        Raises:
          Exception: the one that the generator raised.
        """
        asked = time.perf_counter()
        if self._since is None:
            self._since = asked
            self._thread.start()
        product = self._queue.get()
        now = time.perf_counter()
        seconds, self._since = now - self._since, now
        self.has_ended = product is None or isinstance(product, BaseException)
        if isinstance(product, BaseException):
            raise product
        return product, seconds, now - asked

    @property
    def is_ready(self) -> bool:
        """True if `take` returns without waiting."""
        return not self._queue.empty()

    @property
    def is_closed(self) -> bool:
        """True if the thread was asked to end."""
        return self._stop.is_set

    def stop(self) -> None:
        """Ask the thread to end, without waiting for it."""
        self._stop.is_set = True

    def close(self) -> None:
        """End the thread and wait for that."""
        self.stop()
        if self._since is None:
            return
        while self._thread.is_alive():
            with contextlib.suppress(queue.Empty):
                self._queue.get_nowait()  # the thread may wait for space
            self._thread.join(_POLL / 10)


def _make(
    products: Generator[Product, None, None], target: "queue.Queue[Product | BaseException | None]", stop: _Flag
) -> None:
    """Put products, or the exception that the generator raises, into a queue until the end or a stop."""
    try:
        for product in products:
            _put(product, target, stop)
            if stop.is_set:
                return
            del product  # the consumer may be done with a batch before the next is made
    except BaseException as error:  # noqa: BLE001 - raised again in the consumer
        _put(error, target, stop)
    else:
        _put(None, target, stop)
    finally:
        products.close()


def _put(
    product: Product | BaseException | None, target: "queue.Queue[Product | BaseException | None]", stop: _Flag
) -> None:
    while not stop.is_set:
        with contextlib.suppress(queue.Full):
            target.put(product, timeout=_POLL)
            return
