"""Records what devices do in some steps of a run, for TensorBoard's profiler."""

import contextlib
from collections.abc import Callable, Iterator

import keras

from training.logs import say

# Steps after the start that are not typical.
_UNLIKE_STEPS = 3


class Profile:
    """Records `steps` steps for TensorBoard's profiler, in `directory`, after the first few of this process.

    The first step is compiled, and those after it wait for it, so they are not typical.
    """

    def __init__(self, directory: str, steps: int) -> None:
        self._directory = directory
        self._left = steps
        self._unlike = _UNLIKE_STEPS
        self._open: contextlib.ExitStack | None = None

    def before_step(self) -> None:
        """Begin the recording, if it is time."""
        if self._unlike:
            self._unlike -= 1
        elif self._left and self._open is None:
            self._open = contextlib.ExitStack()
            self._open.enter_context(self._recording())

    def after_step(self, finish: Callable[[], None]) -> None:
        """End the recording, if it is time; `finish` waits until the devices have finished their work."""
        if self._open is None:
            return
        self._left -= 1
        if not self._left:
            finish()
            self.close()

    def close(self) -> None:
        """End the recording and write it, if it has begun."""
        opened, self._open = self._open, None
        if opened is not None:
            self._left = 0
            opened.close()

    @contextlib.contextmanager
    def _recording(self) -> Iterator[None]:
        if keras.backend.backend() == "jax":
            import jax

            recording = jax.profiler.trace(self._directory)
        else:
            import tensorflow as tf

            recording = tf.profiler.experimental.Profile(self._directory)
        with recording:
            yield
        say(f"the profile is in {self._directory}")
