"""Gives the samples of a data set, or of a mix, as batches of arrays."""

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
from maskmill.loading.chunks import NO_SAMPLE, Plan, PlannedReads, Samples, SampleSequence, joined, plans, ramped, reads
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
    """Gives batches of a data set, or of a mix of several, in an order that follows from the data, the seed, the epoch.

    Iterating gives the batches that are left of the epoch, from where the consumer stands; the next iteration gives the
    next epoch. Batches are made by a thread, ahead of use.

    A loader can be pickled, for another process, which then opens the files itself.

    Attributes:
      options: how samples become batches.
      data_sets: what is read.
      spec: the arrays of a batch by name: shape and type.
    """

    def __init__(self, sources: Sequence[Source], options: LoaderOptions, mix: Mix | None = None) -> None:
        """Stand at the start of epoch 0.

        Args:
          sources: the data set, or those of the mix, which have the same columns (batches.alike).
          options: how samples become batches.
          mix: which of several data sets gives which position.

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
        self._stand(Place(0, 0), limit=None)

    def _order(self, number: int, window: int) -> SampleOrder:
        """Return the order of a data set. In a mix, a chunk takes about a window of each."""
        if self._mix is not None:
            window = max(1, int(window * self._mix.weights[number] / sum(self._mix.weights)))
        data_set, reader = self.data_sets[number], self._sources[number].reader
        return SampleOrder(
            data_set, reader.block_samples, seed=self.options.seed, window=window, shuffle=self.options.shuffle
        )

    # ---- batches

    def __iter__(self) -> "Batches":
        """Return the batches that are left of the epoch."""
        return self._start(endless=False)

    def endless(self) -> "Batches":
        """Return the batches of this epoch and of all that follow; of a mix, as `iter`."""
        return self._start(endless=True)

    @property
    def steps_per_epoch(self) -> int | None:
        """Batches of a whole epoch, of all workers together; None: a mix that goes on for ever."""
        return self._schedule.steps(Place(0, 0))

    @property
    def steps_left(self) -> int | None:
        """Batches that are left of the epoch, of all workers together; None: a mix that goes on for ever."""
        return self._schedule.steps(self._place())

    def rows_of(self, samples: npt.ArrayLike, epoch: int = 0, source: int = 0) -> Batch:
        """Return a batch of any samples.

        Args:
          samples: int64[n], numbers of samples, in any order; -1: a row of padding.
          epoch: that the masks are drawn for.
          source: which data set of a mix.

        Raises:
          IndexError: a number that no sample has.
        """
        numbers = np.array(samples, np.int64)
        order = self._orders[source]
        if len(numbers) and (numbers.min() < NO_SAMPLE or numbers.max() >= order.samples):
            raise IndexError(f"samples must be from 0 to {order.samples - 1}, or {NO_SAMPLE} for padding")
        different = np.unique(numbers[numbers != NO_SAMPLE])
        widths = order.widths_of(different) if len(different) else np.array([self.data_sets[source].width])
        rows = Samples(np.full_like(different, source), np.full_like(different, epoch), different, widths)
        room = Rows(self.data_sets[source].columns, len(different))
        wanted = reads(rows, 0, self._orders)
        with contextlib.closing(PlannedReads(self._own_sources())) as planned:
            planned.ask(wanted)
            planned.read(wanted, room)
        is_sample = numbers != NO_SAMPLE
        at = np.where(is_sample, np.searchsorted(different, numbers), NO_SAMPLE)
        sources, epochs = np.full_like(numbers, source), np.full_like(numbers, epoch)
        return self._maker.make(room, at, sources, epochs, numbers, int(widths.max()))

    def samples_of(self, epoch: int, step: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return which samples a batch of all ranks has, without reading them.

        Args:
          epoch: one that starts with its first sample.
          step: which of its batches, from 0.

        Returns:
          int64[batch_size] each: which data set each sample is of, and its number in it; -1 for rows of padding.

        Raises:
          IndexError: the epoch does not have so many batches.
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
        batch = joined(parts)[:size]
        return batch.source, batch.samples

    def given(self, step: int) -> tuple[Given, ...]:
        """Return what each data set gave in the first `step` batches of all ranks together, from the start of epoch
        0.
        """
        paths = [data_set.path for data_set in self.data_sets]
        if self._mix is not None:
            position = step * self.options.batch_size
            return self._mix.given_by(paths, position if self._mix.length is None else min(position, self._mix.length))
        place = self._schedule.after(Place(0, 0), step)
        samples = self._orders[0].samples
        count = place.epoch * (samples - self._schedule.dropped(Place(0, 0))) + place.sample
        return (Given(path=paths[0], samples=count, repetitions=count / samples, share=float(count > 0)),)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the data sets, and the arrays of a batch."""
        arrays = ((name, array.dtype, list(array.shape)) for name, array in self.spec.items())
        return "".join(data._repr_html_() for data in self.data_sets) + table("a batch", arrays)

    # ---- where the consumer stands

    def state_dict(self) -> State:
        """Return where the consumer stands: what JSON can hold.

        It counts the batches that the consumer got, not those that were made ahead. That of any rank is that of all.
        That of one of several workers is where the worker's next round of batches starts; the run's own is
        `state_after` the batches that the consumer got from all of them.
        """
        return state_of(self._description(), self._place())

    def state_after(self, steps: int) -> State:
        """Return where the consumer stands after so many batches more, those of all workers together."""
        return state_of(self._description(), self._schedule.after(self._place(), steps))

    def load_state_dict(self, state: State) -> None:
        """Go to where another loader of the same data stood. Ranks, workers and batch_size may be others.

        Raises:
          UnusableInputError: the state is of other data, another seed, or another way to shuffle.
        """
        samples = self._sequence.samples
        # A mix has no second epoch: after its only one it stands at the start of epoch 1, if it ends.
        most = MOST_EPOCHS if self._schedule.repeats else 0 if samples is None else 1
        self._stand(checked_place(state, self._description(), samples, most), limit=None)

    def _description(self) -> State:
        """Return what a state must have in common with this loader, and the files' paths beside it."""
        first = self._mix or self.data_sets[0]
        return {
            "fingerprint": first.fingerprint,
            "seed": self.options.seed,
            "shuffle": self.options.shuffle,
            "window": self.options.window,
            "files": {file.path: file.digest for data_set in self.data_sets for file in data_set.files},
        }

    def _stand(self, place: Place, limit: int | None) -> None:
        """End the iteration that goes on and take another place to count from; limit: batches of the next one."""
        self._stop()
        self._current = None
        self._base, self._limit, self._rounds = place, limit, 0

    def _place(self) -> Place:
        """Return the place after the rounds of batches that this worker has given since the iteration started."""
        steps = self._rounds * self.options.workers
        return self._schedule.after(self._base, steps if self._limit is None else min(steps, self._limit))

    # ---- other loaders of the same data

    def with_options(self, **changes: Any) -> "Loader":
        """Return a loader of the same data that stands where this one stands, with some options changed.

        It reads through this one's files and connections, and does not close them.
        """
        loader = Loader(self._own_sources(), dataclasses.replace(self.options, **changes), self._mix)
        loader._shares_sources = True
        loader._stand(self._place(), limit=None)
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
        self._stand(kept["place"], limit=None)

    def _own_sources(self) -> tuple[Source, ...]:
        """Return the sources, opened by this process: files, locks and threads of a parent are not for its children."""
        if self._process != os.getpid():
            self._sources = tuple(source.reopened() for source in self._sources)
            self._process = os.getpid()
            self._shares_sources = False
        return self._sources

    # ---- the work

    def stats(self) -> LoaderStats:
        """Return what the consumer got so far, how long it waited, and what was read."""
        read: dict[str, int] = {}
        for ranges in {id(source.ranges): source.ranges for source in self._sources}.values():
            for name, count in ranges.stats().items():
                read[name] = read.get(name, 0) + count
        return self._stats.plus(**read)

    def close(self) -> None:
        """End an iteration that goes on; close files and connections."""
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
        self._stand(place, limit=None if endless and self._mix is None else self._schedule.steps(place))
        batches = Batches(self, Production(self._products(place, endless=endless), self.options.prefetch))
        self._current = weakref.ref(batches)
        return batches

    def _products(self, place: Place, *, endless: bool) -> Generator[Product, None, None]:
        """Make the batches from a place on."""
        chunks = self._chunks(place, endless=endless)
        if any(source.reader.makes_rows for source in self._sources):
            chunks = ramped(chunks, max(self.options.batch_size, _FIRST_SAMPLES))
        # One window is in memory, in the same room each time: new memory costs a fifth of the time.
        rows = Rows(self.data_sets[0].columns, 0)
        with contextlib.closing(PlannedReads(self._sources)) as planned:
            for plan in planned.planned(plans(chunks, self.options, self._orders)):
                if rows.room < len(plan.rows):
                    rows = rows.first(plan.carried)  # the others go before there is room for new ones
                    rows = rows.first(plan.carried, room=len(plan.rows))
                planned.read(plan.reads, rows)
                yield from self._batches_of(plan, rows)
                # Rows of the batch that the plan ends within come first in the next plan.
                behind = plan.cuts[-1].stop if plan.cuts else 0
                rows.move(behind, len(plan.rows))

    def _chunks(self, place: Place, *, endless: bool) -> Iterator[Samples]:
        """Yield the sequence from a place on, a chunk at a time. The first reader says when a data set leaves a mix."""
        says_it = self._mix is not None and self.options.rank == self.options.worker == 0
        for segment in self._schedule.segments(place, endless=endless):
            position = segment.start
            for chunk in self._sequence.chunks(segment):
                if says_it and segment.epoch != PADDING:
                    self._say_who_leaves(position, position + len(chunk))
                position += len(chunk)
                yield chunk

    def _say_who_leaves(self, start: int, stop: int) -> None:
        """Logs which data sets leave the mix at positions (start, stop]."""
        assert self._mix is not None
        for source, position in self._mix.leaving:
            if start < position <= stop:
                _log.warning(
                    "%s: after %s samples of the mix, this data set was given as often as max_repetitions allows; the "
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

    def _gave(self, product: Product) -> None:
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

    def _waited(self, *, seconds: float, waited: float) -> None:
        self._stats = self._stats.plus(seconds=seconds, waited=waited)

    def _ended(self) -> None:
        """The consumer got all batches of the iteration."""
        self._stand(self._schedule.after(self._base, self._limit or 0), limit=None)


class Batches(Iterator[Batch]):
    """An iteration of a loader. `close`, or dropping it, ends the thread that makes batches."""

    def __init__(self, loader: Loader, production: Production) -> None:
        """Start making batches with the first request."""
        self._loader = loader
        self._production = production

    def __next__(self) -> Batch:
        """Return the next batch.

        Raises:
          RuntimeError: the loader has gone on to another iteration or another state.
        """
        if self._production.has_ended:
            raise StopIteration
        current = self._loader._current
        if current is None or current() is not self or self._production.is_closed:
            raise RuntimeError("This iteration was closed, or the loader has gone on to another one or another state.")
        product, seconds, waited = self._production.take()
        self._loader._waited(seconds=seconds, waited=waited)
        if product is None:
            self._loader._ended()
            raise StopIteration
        self._loader._gave(product)
        return product.batch

    @property
    def is_ready(self) -> bool:
        """True if the next batch is there, so that asking for it does not wait."""
        return self._production.is_ready

    def close(self) -> None:
        """End the thread. The loader stands after the last batch that was taken."""
        self._production.close()

    def __del__(self) -> None:
        self._production.stop()
