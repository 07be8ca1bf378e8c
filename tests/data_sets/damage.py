"""Damaged versions of files, made with seeds: bits flipped, bytes changed, missing or added, at one to four places."""

import random
from collections.abc import Iterator

MUTATIONS = 300


def mutations(content: bytes, seed: int) -> Iterator[bytes]:
    """Damaged versions of a file; every other one is damaged in its last 64 bytes, where formats keep what matters."""
    for number in range(MUTATIONS):
        rng = random.Random(seed * MUTATIONS + number)
        damaged = bytearray(content)
        for _ in range(rng.choice([1, 1, 2, 4])):
            low = max(0, len(damaged) - 64) if number % 2 else 0
            place = rng.randrange(low, len(damaged))
            kind = rng.randrange(4)
            if kind == 0:
                damaged[place] ^= 1 << rng.randrange(8)
            elif kind == 1:
                damaged[place] = rng.randrange(256)
            elif kind == 2:
                del damaged[place : place + rng.randint(1, 8)]
            else:
                damaged[place:place] = rng.randbytes(rng.randint(1, 8))
        yield bytes(damaged)
