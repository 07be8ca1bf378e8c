"""Makes batches in a thread, ahead of use."""

import contextlib
import dataclasses
import queue
import threading
import time
from collections.abc import Generator

from maskmill.loading.batches import Batch

_POLL = 0.5  # seconds after which a thread that waits for room looks whether it should end


@dataclasses.dataclass(frozen=True)
class Product:
    """A batch, how many samples are in it without padding, and how many tokens (pieces without padding)."""

    batch: Batch
    _: dataclasses.KW_ONLY
    samples: int
    tokens: int


class _Flag:
    """Tells a thread to end. Setting it takes no lock, because the collector of garbage may do so anywhere."""

    is_set = False


class Production:
    """Takes products from a generator in a thread, some ahead of their consumer.

    Attributes:
      has_ended: whether the consumer got all products.
    """

    def __init__(self, products: Generator[Product, None, None], ahead: int) -> None:
        """Nothing is made before the first `take`."""
        self.has_ended = False
        self._made: queue.Queue[Product | BaseException | None] = queue.Queue(ahead)
        self._stop = _Flag()
        # The thread does not know this object, so that dropping it can end the thread.
        arguments = (products, self._made, self._stop)
        self._thread = threading.Thread(target=_make, args=arguments, name="maskmill-loader", daemon=True)
        self._since: float | None = None

    def take(self) -> tuple[Product | None, float, float]:
        """Return the next product, or None after the last; the seconds since the last call ended, and those of
        waiting.

        Raises:
          Exception: what making the product raised.
        """
        asked = time.perf_counter()
        if self._since is None:
            self._since = asked
            self._thread.start()
        product = self._made.get()
        now = time.perf_counter()
        seconds, self._since = now - self._since, now
        self.has_ended = product is None or isinstance(product, BaseException)
        if isinstance(product, BaseException):
            raise product
        return product, seconds, now - asked

    @property
    def is_ready(self) -> bool:
        """True if `take` has something to give at once."""
        return not self._made.empty()

    @property
    def is_closed(self) -> bool:
        """True if the thread was told to end."""
        return self._stop.is_set

    def stop(self) -> None:
        """Tell the thread to end soon; does not wait for it."""
        self._stop.is_set = True

    def close(self) -> None:
        """End the thread and wait for that."""
        self.stop()
        if self._since is None:
            return
        while self._thread.is_alive():
            with contextlib.suppress(queue.Empty):
                self._made.get_nowait()  # the thread may wait for room
            self._thread.join(_POLL / 10)


def _make(
    products: Generator[Product, None, None], made: "queue.Queue[Product | BaseException | None]", stop: _Flag
) -> None:
    """Put products, or what making them raises, until there are none left or it is told to stop."""
    try:
        for product in products:
            _put(product, made, stop)
            if stop.is_set:
                return
            del product  # the consumer may be done with a batch before the next is made
    except BaseException as error:  # noqa: BLE001 - raised again in the consumer
        _put(error, made, stop)
    else:
        _put(None, made, stop)
    finally:
        products.close()


def _put(
    product: Product | BaseException | None, made: "queue.Queue[Product | BaseException | None]", stop: _Flag
) -> None:
    while not stop.is_set:
        with contextlib.suppress(queue.Full):
            made.put(product, timeout=_POLL)
            return
