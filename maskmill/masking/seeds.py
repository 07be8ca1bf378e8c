"""Seeds, which come from what a shard is, never from who makes it."""

import hashlib

from maskmill.text.text_shards import ShardKind


def shard_seed(seed: int, kind: ShardKind, number: int) -> int:
    """The seed of a shard: the first 8 bytes of sha256 of `seed:kind:number`."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{kind}:{number}".encode()).digest()[:8], "big")
