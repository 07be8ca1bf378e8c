"""Which paragraphs may be near duplicates of each other, and which of them are.

Paragraphs that share a band of their MinHashes are linked; the links form groups, and near duplicates lie in one group.
`parents` is a forest of paragraphs, unsigned [paragraphs]: each root stands for a group, and is its own parent.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from maskmill.kernels import kernel

# Of a paragraph in `states`: whether it is an exact duplicate; and how many paragraphs that are none the group of this
# root has, 0 to 2, where 2 stands for more.
EXACT, ONE_MORE, MANY = 1, 2, 4
# What `label` says of a paragraph. From CANDIDATE on: the share of the paragraphs in which its group lies.
STAYS, IS_EXACT, CANDIDATE = 0, 1, 2

_END = -1  # of a chain


@kernel
def find_root(parents, paragraph):
    """The root of a paragraph's group; the way to it is halved for those who come later."""
    while parents[paragraph] != paragraph:
        parents[paragraph] = parents[parents[paragraph]]
        paragraph = np.int64(parents[paragraph])
    return paragraph


@kernel
def unite(parents, states, links):
    """Unites the groups of linked paragraphs, unsigned [links, 2]; one that is linked to itself is marked as EXACT."""
    for link in range(len(links)):
        one, other = np.int64(links[link, 0]), np.int64(links[link, 1])
        if one == other:
            states[one] |= EXACT
            continue
        one, other = find_root(parents, one), find_root(parents, other)
        parents[max(one, other)] = min(one, other)


@kernel
def count_members(parents, states):
    """Counts in the states of the roots those of their groups that are no exact duplicates."""
    for paragraph in range(len(parents)):
        if not states[paragraph] & EXACT:
            root = find_root(parents, np.int64(paragraph))
            if states[root] < MANY:
                states[root] += ONE_MORE


@kernel
def label(parents, states, first, shares, labels):
    """Writes STAYS, IS_EXACT, or CANDIDATE + a share of `shares`, for each paragraph from the first on: uint16 [n]."""
    for place in range(len(labels)):
        paragraph = np.int64(first + place)
        root = find_root(parents, paragraph)
        if states[paragraph] & EXACT:
            labels[place] = IS_EXACT
        elif states[root] >= MANY:
            labels[place] = CANDIDATE + root % shares
        else:
            labels[place] = STAYS


@kernel
def find_near(near, hashes, bands, threshold, chains, kept, count, is_near):
    """Marks the paragraphs that are near one before them that is kept, and keeps the others.

    near: uint32 [n, permutations], MinHashes. hashes: uint64 [n, bands], of the bands. bands: int64 [bands, 2], the
    columns of each, from and up to. threshold: the least share of equal MinHashes. chains: (heads, following), int64:
    an entry is a band of a kept paragraph, its number times the bands + the band; heads [a power of 2] has the newest
    entry of each bucket of hashes, following [entries] the one before each. kept: uint32 [room, permutations], the
    MinHashes of those kept so far, `count` of them. is_near: bool [n], written.

    Returns how many are kept now.
    """
    heads, following = chains
    mask = np.uint64(len(heads) - 1)
    for row in range(len(near)):
        is_near[row] = False
        for band in range(len(bands)):
            entry = heads[hashes[row, band] & mask]
            while entry != _END and not is_near[row]:
                if entry % len(bands) == band:
                    is_near[row] = _is_near(near[row], kept[entry // len(bands)], bands[band], threshold)
                entry = following[entry]
        if is_near[row]:
            continue
        kept[count] = near[row]
        for band in range(len(bands)):
            entry, bucket = count * len(bands) + band, hashes[row, band] & mask
            following[entry] = heads[bucket]
            heads[bucket] = entry
        count += 1
    return count


@kernel
def _is_near(one, other, band, threshold):
    """Whether two rows of MinHashes share a band and have at least so large a share in common."""
    for column in range(band[0], band[1]):
        if one[column] != other[column]:
            return False
    equal = 0
    for column in range(len(one)):
        equal += one[column] == other[column]
    return equal / len(one) >= threshold


def warm_up() -> None:
    """Compiles the entry kernels of this module, for fewer than 2^32 paragraphs."""
    parents, states = np.arange(2, dtype=np.uint32), np.zeros(2, np.uint8)
    unite(parents, states, np.frombuffer(bytes(8), np.uint32).reshape(1, 2))
    count_members(parents, states)
    label(parents, states, 0, 1, np.zeros(2, np.uint16))
    near, chains = np.zeros((1, 2), np.uint32), (np.full(2, _END, np.int64), np.zeros(2, np.int64))
    bands = np.array([[0, 1]])
    find_near(near, np.zeros((1, 1), np.uint64), bands, 0.5, chains, np.zeros((1, 2), np.uint32), 0, np.zeros(1, bool))
