"""Loader: iterate over the samples of a data set, or of a mix, as batches of arrays."""

import contextlib
import dataclasses
import logging
import os
import weakref
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.loading.batches import ArraySpec, Batch, BatchMaker
from maskmill.loading.chunks import NO_SAMPLE, Plan, PlannedReads, Samples, SampleSequence, concat, plans, ramped, reads
from maskmill.loading.mixing import Given, Mix
from maskmill.loading.opened_sources import Source
from maskmill.loading.options import LoaderOptions
from maskmill.loading.order import SampleOrder, bounded_window
from maskmill.loading.production import Product, Production
from maskmill.loading.schedule import PADDING, Place, Schedule
from maskmill.loading.states import MOST_EPOCHS, State, checked_place, state_of
from maskmill.loading.stats import LoaderStats
from maskmill.notebooks import table
from maskmill.reading.block_reader import Rows

_log = logging.getLogger(__name__)

_FIRST_SAMPLES = 512  # that are read before the first batch, if rows are made when they are read
_ATTENTION = ("input_mask", "attention_mask")


class Loader:
    """Batches of a data set, or of a mix of several, in an order that follows from the data, the seed and the epoch.

    Iterating yields the remaining batches of the epoch, from the consumer's position; the next iteration yields the
    next epoch. A thread makes batches ahead of use.

    A loader can be pickled for another process, which then opens the files itself.

    Attributes:
      options: of batches.
      data_sets: the data set, or those of the mix.
      spec: the arrays of a batch by name: shape and type.
    """

    def __init__(self, sources: Sequence[Source], options: LoaderOptions, mix: Mix | None = None) -> None:
        """Start at epoch 0.

        Args:
          sources: the data set, or those of the mix, which have the same columns (batches.alike).
          options: of batches.
          mix: assigns positions to several data sets; None: there is one.

        Raises:
          UnusableInputError: there are too few samples for one batch.
        """
        self.options = options
        self.data_sets = tuple(source.data_set for source in sources)
        self._sources = tuple(sources)
        self._process = os.getpid()
        self._shares_sources = False
        self._mix = mix
        window = bounded_window(self.data_sets[0], options.window)
        self._orders = [self._order(number, window) for number in range(len(sources))]
        self._sequence = SampleSequence(self._orders, mix, window)
        self._schedule = Schedule(
            samples=self._sequence.samples, batch_size=options.batch_size, tail=options.tail, repeats=mix is None
        )
        self._maker = BatchMaker(self.data_sets, options)
        self.spec: dict[str, ArraySpec] = self._maker.spec
        self._stats = LoaderStats()
        self._current: weakref.ref[Batches] | None = None
        self._move_to(Place(0, 0), limit=None)

    def _order(self, number: int, window: int) -> SampleOrder:
        """Return the order of a data set. Windows in a mix are in proportion to weights: a chunk has one of each."""
        if self._mix is not None:
            window = max(1, int(window * self._mix.weights[number] / sum(self._mix.weights)))
        data_set, reader = self.data_sets[number], self._sources[number].reader
        return SampleOrder(
            data_set, reader.block_samples, seed=self.options.seed, window=window, shuffle=self.options.shuffle
        )

    # ---- batches

    def __iter__(self) -> "Batches":
        """Return the remaining batches of the epoch."""
        return self._start(endless=False)

    def endless(self) -> "Batches":
        """Return the batches of this epoch and of all later ones; of a mix, as `iter`."""
        return self._start(endless=True)

    @property
    def steps_per_epoch(self) -> int | None:
        """The number of batches of a whole epoch, of all workers together; None: an endless mix."""
        return self._schedule.steps(Place(0, 0))

    @property
    def steps_left(self) -> int | None:
        """The number of remaining batches of the epoch, of all workers together; None: an endless mix."""
        return self._schedule.steps(self._place())

    def rows_of(self, samples: npt.ArrayLike, epoch: int = 0, source: int = 0) -> Batch:
        """Return a batch of the samples with these numbers.

        Args:
          samples: int64[n], numbers of samples, in any order; -1: a row of padding.
          epoch: decides the masks, if they are drawn.
          source: the number of the data set in a mix.

        Raises:
          IndexError: there is no sample of a number.
        """
        numbers = np.array(samples, np.int64)
        order = self._orders[source]
        if len(numbers) and (numbers.min() < NO_SAMPLE or numbers.max() >= order.samples):
            raise IndexError(f"samples must be from 0 to {order.samples - 1}, or {NO_SAMPLE} for padding")
        different = np.unique(numbers[numbers != NO_SAMPLE])
        widths = order.widths_of(different) if len(different) else np.array([self.data_sets[source].width])
        rows = Samples(np.full_like(different, source), np.full_like(different, epoch), different, widths)
        target = Rows(self.data_sets[source].columns, len(different))
        of_blocks = reads(rows, 0, self._orders)
        with contextlib.closing(PlannedReads(self._own_sources())) as planned:
            planned.ask(of_blocks)
            planned.read(of_blocks, target)
        is_sample = numbers != NO_SAMPLE
        at = np.where(is_sample, np.searchsorted(different, numbers), NO_SAMPLE)
        sources, epochs = np.full_like(numbers, source), np.full_like(numbers, epoch)
        return self._maker.make(target, at, sources, epochs, numbers, int(widths.max()))

    def samples_of(self, epoch: int, step: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the samples of a batch of all ranks, without reading them.

        Args:
          epoch: one that starts with its first sample.
          step: the number of the batch in it, from 0.

        Returns:
          int64[batch_size] each: the number of each sample's data set, and its number in it; -1 for rows of padding.

        Raises:
          IndexError: the epoch has no batch of this number.
        """
        steps = self._schedule.steps(Place(epoch, 0))
        if step < 0 or (steps is not None and step >= steps):
            raise IndexError(f"step is {step}, but the epoch has {steps} batches")
        size = self.options.batch_size
        parts: list[Samples] = []
        for segment in self._schedule.segments(Place(epoch, step * size), endless=False):
            parts += self._sequence.chunks(dataclasses.replace(segment, stop=min(segment.stop, segment.start + size)))
            if sum(map(len, parts)) >= size:
                break
        batch = concat(parts)[:size]
        return batch.source, batch.samples

    def given(self, step: int) -> tuple[Given, ...]:
        """Return the counts of each data set's samples in the first `step` batches of all ranks, from epoch 0 on."""
        paths = [data_set.path for data_set in self.data_sets]
        if self._mix is not None:
            position = step * self.options.batch_size
            return self._mix.given_by(paths, position if self._mix.length is None else min(position, self._mix.length))
        place = self._schedule.after(Place(0, 0), step)
        samples = self._orders[0].samples
        count = place.epoch * (samples - self._schedule.dropped(Place(0, 0))) + place.sample
        return (Given(path=paths[0], samples=count, repetitions=count / samples, share=float(count > 0)),)

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the data sets, and the arrays of a batch."""
        arrays = ((name, array.dtype, list(array.shape)) for name, array in self.spec.items())
        return "".join(data._repr_html_() for data in self.data_sets) + table("a batch", arrays)

    # ---- the consumer's position

    def state_dict(self) -> State:
        """Return the consumer's position, as values that JSON has.

        It counts the batches that the consumer got, not those that were made ahead. All ranks have the same state. The
        state of one of several workers is the start of the worker's next round of batches; the state of the run is
        `state_after` the batches that the consumer got from all workers.
        """
        return state_of(self._description(), self._place())

    def state_after(self, steps: int) -> State:
        """Return the state after `steps` more batches, of all workers together."""
        return state_of(self._description(), self._schedule.after(self._place(), steps))

    def load_state_dict(self, state: State) -> None:
        """Resume at the position of another loader of the same data, whose ranks, workers and batch_size may differ.

        Raises:
          UnusableInputError: the state is of other data, another seed or another shuffling.
        """
        samples = self._sequence.samples
        # A mix has one epoch; if it ends, its last position is the start of epoch 1.
        most = MOST_EPOCHS if self._schedule.repeats else 0 if samples is None else 1
        self._move_to(checked_place(state, self._description(), samples, most), limit=None)

    def _description(self) -> State:
        """Return the values that a state and this loader must share, with the files' paths for messages."""
        first = self._mix or self.data_sets[0]
        return {
            "fingerprint": first.fingerprint,
            "seed": self.options.seed,
            "shuffle": self.options.shuffle,
            "window": self.options.window,
            "files": {file.path: file.digest for data_set in self.data_sets for file in data_set.files},
        }

    def _move_to(self, place: Place, limit: int | None) -> None:
        """End the current iteration, and count from this place on; limit: the batches of the next iteration."""
        self._stop()
        self._current = None
        self._base, self._limit, self._rounds = place, limit, 0

    def _place(self) -> Place:
        """Return the place after the batches that this worker has yielded since the iteration started."""
        steps = self._rounds * self.options.workers
        return self._schedule.after(self._base, steps if self._limit is None else min(steps, self._limit))

    # ---- other loaders of the same data

    def with_options(self, **changes: Any) -> "Loader":
        """Return a loader of the same data at the same position, with some options changed.

        It shares the files and connections of this loader, and does not close them.
        """
        loader = Loader(self._own_sources(), dataclasses.replace(self.options, **changes), self._mix)
        loader._shares_sources = True
        loader._move_to(self._place(), limit=None)
        return loader

    def __getstate__(self) -> dict[str, Any]:
        return {
            "sources": self._sources,
            "options": self.options,
            "mix": self._mix,
            "place": self._place(),
        }

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__init__(kept["sources"], kept["options"], kept["mix"])  # type: ignore[misc]
        self._move_to(kept["place"], limit=None)

    def _own_sources(self) -> tuple[Source, ...]:
        """Return the sources; reopen them in a child process, which must not use its parent's files and locks."""
        if self._process != os.getpid():
            self._sources = tuple(source.reopened() for source in self._sources)
            self._process = os.getpid()
            self._shares_sources = False
        return self._sources

    # ---- the work

    def stats(self) -> LoaderStats:
        """Return the counts of the consumer's batches, of its waiting and of the bytes read."""
        read: dict[str, int] = {}
        for ranges in {id(source.ranges): source.ranges for source in self._sources}.values():
            for name, count in ranges.stats().items():
                read[name] = read.get(name, 0) + count
        return self._stats.plus(**read)

    def close(self) -> None:
        """End the current iteration; close files and connections."""
        self._stop()
        for source in () if self._shares_sources else self._sources:
            source.reader.close()
            source.ranges.close()

    def __enter__(self) -> "Loader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _stop(self) -> None:
        current = self._current() if self._current else None
        if current is not None:
            current.close()

    def _start(self, *, endless: bool) -> "Batches":
        self._own_sources()
        place = self._place()
        self._move_to(place, limit=None if endless and self._mix is None else self._schedule.steps(place))
        batches = Batches(self, Production(self._products(place, endless=endless), self.options.prefetch))
        self._current = weakref.ref(batches)
        return batches

    def _products(self, place: Place, *, endless: bool) -> Generator[Product, None, None]:
        """Yield the batches from a place on."""
        chunks = self._chunks(place, endless=endless)
        if any(source.reader.makes_rows for source in self._sources):
            chunks = ramped(chunks, max(self.options.batch_size, _FIRST_SAMPLES))
        # One window is in memory, in the same arrays each time: to allocate new ones costs a fifth of the time.
        rows = Rows(self.data_sets[0].columns, 0)
        with contextlib.closing(PlannedReads(self._sources)) as planned:
            for plan in planned.planned(plans(chunks, self.options, self._orders)):
                if rows.room < len(plan.rows):
                    rows = rows.first(plan.carried)  # frees the other rows before new ones are allocated
                    rows = rows.first(plan.carried, room=len(plan.rows))
                planned.read(plan.reads, rows)
                yield from self._batches_of(plan, rows)
                # Rows of a batch that the plan does not complete are the first of the next plan.
                end = plan.cuts[-1].stop if plan.cuts else 0
                rows.move(end, len(plan.rows))

    def _chunks(self, place: Place, *, endless: bool) -> Iterator[Samples]:
        """Yield the sequence from a place on, chunk by chunk. The first reader logs when a data set leaves a mix."""
        logs_leaving = self._mix is not None and self.options.rank == self.options.worker == 0
        for segment in self._schedule.segments(place, endless=endless):
            position = segment.start
            for chunk in self._sequence.chunks(segment):
                if logs_leaving and segment.epoch != PADDING:
                    self._log_leaving(position, position + len(chunk))
                position += len(chunk)
                yield chunk

    def _log_leaving(self, start: int, stop: int) -> None:
        """Log the data sets that leave the mix at positions (start, stop]."""
        assert self._mix is not None
        for source, position in self._mix.leaving:
            if start < position <= stop:
                _log.warning(
                    "%s: after %s samples of the mix, this data set was used as often as max_repetitions allows; the "
                    "others have its share from there on.",
                    self.data_sets[source].path,
                    f"{position:,}",
                )

    def _batches_of(self, plan: Plan, rows: Rows) -> Iterator[Product]:
        at = np.where(plan.rows.samples == NO_SAMPLE, NO_SAMPLE, np.arange(len(plan.rows)))
        for cut in plan.cuts:
            part = plan.rows[cut.start : cut.stop]
            batch = self._maker.make(rows, at[cut.start : cut.stop], part.source, part.epochs, part.samples, cut.width)
            tokens = next((int(np.count_nonzero(batch[name])) for name in _ATTENTION if name in batch), 0)
            samples = int(np.count_nonzero(part.samples != NO_SAMPLE))
            yield Product(batch, samples=samples, tokens=tokens)

    def _count(self, product: Product) -> None:
        """Count a batch that the consumer gets."""
        before = self._place()
        self._rounds += 1
        after = self._place()
        dropped = 0
        if after.epoch > before.epoch:
            dropped = self._schedule.dropped(before)
            dropped += (after.epoch - before.epoch - 1) * self._schedule.dropped(Place(before.epoch + 1, 0))
        rows = self.options.batch_size // self.options.ranks
        self._stats = self._stats.plus(
            batches=1,
            samples=product.samples,
            tokens=product.tokens,
            padding=rows - product.samples,
            dropped=dropped,
        )

    def _count_waiting(self, *, seconds: float, waited: float) -> None:
        self._stats = self._stats.plus(seconds=seconds, waited=waited)

    def _end_iteration(self) -> None:
        """Move to the end of the iteration, after the consumer got its last batch."""
        self._move_to(self._schedule.after(self._base, self._limit or 0), limit=None)


class Batches(Iterator[Batch]):
    """An iteration of a loader. To close or to delete it ends the thread that makes batches."""

    def __init__(self, loader: Loader, production: Production) -> None:
        """Take the production, which starts with the first `next`."""
        self._loader = loader
        self._production = production

    def __next__(self) -> Batch:
        """Return the next batch.

        Raises:
          RuntimeError: the loader has started another iteration, or moved to another state.
        """
        if self._production.has_ended:
            raise StopIteration
        current = self._loader._current
        if current is None or current() is not self or self._production.is_closed:
            raise RuntimeError("This iteration was closed, or the loader has gone on to another one or another state.")
        product, seconds, waited = self._production.take()
        self._loader._count_waiting(seconds=seconds, waited=waited)
        if product is None:
            self._loader._end_iteration()
            raise StopIteration
        self._loader._count(product)
        return product.batch

    @property
    def is_ready(self) -> bool:
        """True if the next batch is ready, so that `next` does not wait."""
        return self._production.is_ready

    def close(self) -> None:
        """End the thread. The loader's position is after the last batch that the consumer got."""
        self._production.close()

    def __del__(self) -> None:
        self._production.stop()
