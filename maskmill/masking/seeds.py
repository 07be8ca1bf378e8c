"""Seeds of shards, which follow from the identity of a shard, never from the process that makes it."""

import hashlib

from maskmill.text.shards import ShardKind


def hash_of(text: str) -> int:
    """Return the first 8 bytes of the sha256 of a text, as a number: uniform in 0..2^64-1."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def shard_seed(seed: int, kind: ShardKind, number: int) -> int:
    """Return the seed of a shard: the first 8 bytes of sha256 of `seed:kind:number`."""
    return hash_of(f"{seed}:{kind}:{number}")
