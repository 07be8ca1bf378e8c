"""The order of samples, and batches of it, in plain Python: an oracle for the tests of maskmill/loading."""

import hashlib
from collections.abc import Callable, Iterator, Sequence

from oracles.row_masks import Generator

PADDING = (0, -1)  # an epoch and a sample
Pair = tuple[int, int]


def shuffled(items: Sequence[int], seed: int, epoch: int, part: int) -> list[int]:
    """Fisher and Yates, by key."""
    items = list(items)
    generator = Generator(seed, epoch, part % 2**64)
    for last in range(len(items) - 1, 0, -1):
        place = generator.below(last + 1)
        items[last], items[place] = items[place], items[last]
    return items


def epoch_order(
    files: Sequence[tuple[int, int]], epoch: int, *, fingerprint: str, seed: int, window: int, block: int
) -> list[int]:
    """The samples of an epoch in order. files: samples and width of each."""
    key = int.from_bytes(hashlib.sha256(f"{fingerprint}:{seed}".encode()).digest()[:8], "big")
    blocks: list[tuple[int, range]] = []  # the width, and the samples
    first = 0
    for samples, width in files:
        blocks += [
            (width, range(start, min(start + block, first + samples))) for start in range(first, first + samples, block)
        ]
        first += samples
    windows: list[list[int]] = []
    for group, width in enumerate(sorted({width for width, _ in blocks})):
        numbers = [number for number, (of_block, _) in enumerate(blocks) if of_block == width]
        windows.append([])
        for number in shuffled(numbers, key, epoch, -2 - group):
            samples_of_block = blocks[number][1]
            if windows[-1] and len(windows[-1]) + len(samples_of_block) > window:
                windows.append([])
            windows[-1] += samples_of_block
    order = list(range(len(windows)))
    if len({width for width, _ in blocks}) > 1:
        order = shuffled(order, key, epoch, -1)
    return [sample for place, number in enumerate(order) for sample in shuffled(windows[number], key, epoch, place)]


def batches(
    order: Callable[[int], list[int]], size: int, tail: str, epoch: int = 0, sample: int = 0
) -> Iterator[tuple[list[Pair], Pair]]:
    """The batches of epochs from a place on, for ever: the (epoch, sample) of each row, and the place after it."""
    while True:
        samples = order(epoch)
        while sample < len(samples):
            taken = [(epoch, number) for number in samples[sample : sample + size]]
            missing = size - len(taken)
            sample += size
            if missing and tail == "drop":
                break
            if missing and tail == "pad":
                taken += [PADDING] * missing
            elif missing and tail == "repeat":
                taken += [(epoch, samples[n % len(samples)]) for n in range(missing)]
            elif missing:
                for _ in range(missing):
                    if sample >= len(samples):
                        epoch, sample = epoch + 1, 0
                        samples = order(epoch)
                    taken.append((epoch, samples[sample]))
                    sample += 1
            if tail == "carry" and sample == len(samples):
                place = epoch + 1, 0
            elif tail == "carry":
                place = epoch, sample
            else:
                left = len(samples) - sample
                is_over = left <= 0 or (tail == "drop" and left < size)
                place = (epoch + 1, 0) if is_over else (epoch, sample)
            yield taken, place
        epoch, sample = epoch + 1, 0
