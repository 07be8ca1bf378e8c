"""Which paragraphs may be near duplicates of each other, and which of them are.

Paragraphs that share a band of their MinHashes are linked; the links form groups, and near duplicates lie in one group.
Few paragraphs are linked, so only those have a place in the forest. `states`, uint8 [paragraphs], says which are, and
`ranks`, unsigned [paragraphs / BLOCK], how many are before each block of paragraphs. `parents` is the forest, unsigned
[linked paragraphs]: each root stands for a group, and is its own parent. `members`, uint8 [linked paragraphs], has of a
root how many paragraphs of its group are no exact duplicates, 0 to MANY, where MANY stands for more.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from maskmill.kernels import kernel, wraps_around

EXACT, LINKED, MANY = 1, 2, 2
BLOCK = 16
# What `label` says of a paragraph. From CANDIDATE on: the share of the paragraphs in which its group lies.
STAYS, IS_EXACT, CANDIDATE = 0, 1, 2

_END = -1  # of a chain
# The odd number nearest to 2^64 / golden ratio, and a shift: they spread the bits of a band's values over its hash.
_HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_HASH_SHIFT = np.uint64(29)


@kernel
@wraps_around
def hash_bands(near, bands, hashes):
    """Hash each band of MinHashes.

    near: uint32 [n, permutations]. bands: as in find_near. hashes: uint64 [n, bands], written.
    """
    for row in range(len(near)):
        for band in range(len(bands)):
            mixed = np.uint64(band)
            for column in range(bands[band, 0], bands[band, 1]):
                mixed = (mixed ^ np.uint64(near[row, column])) * _HASH_MULTIPLIER
                mixed ^= mixed >> _HASH_SHIFT
            hashes[row, band] = mixed


@kernel
def link_equal(hashes, paragraphs, firsts, is_exact, links):
    """Link paragraphs with the first one of the same hash, or with themselves if that means the same words.

    hashes: uint64 [n]. paragraphs: unsigned [n], in order. firsts: int32 [a power of 2 above n] of -1, a table by hash
    of the first row of each. links: unsigned [n, 2], written. Returns how many there are.
    """
    mask = np.uint64(len(firsts) - 1)
    count = 0
    for row in range(len(hashes)):
        place = hashes[row] & mask
        while firsts[place] != _END and hashes[firsts[place]] != hashes[row]:
            place = (place + np.uint64(1)) & mask
        if firsts[place] == _END:
            firsts[place] = row
            continue
        links[count, 0] = paragraphs[row] if is_exact else paragraphs[firsts[place]]
        links[count, 1] = paragraphs[row]
        count += 1
    return count


@kernel
def mark(states, links):
    """Mark in `states` the paragraphs of links, unsigned [links, 2]; those linked to themselves as EXACT alone."""
    for link in range(len(links)):
        one, other = links[link, 0], links[link, 1]
        if one == other:
            states[one] |= EXACT
        else:
            states[one] |= LINKED
            states[other] |= LINKED


@kernel
def rank(states, ranks):
    """Write the ranks; return how many paragraphs are linked."""
    count = 0
    for paragraph in range(len(states)):
        if paragraph % BLOCK == 0:
            ranks[paragraph // BLOCK] = count
        count += (states[paragraph] & LINKED) != 0
    return count


@kernel
def _place(states, ranks, paragraph):
    """Return the place of a linked paragraph in the forest."""
    place = np.int64(ranks[paragraph // BLOCK])
    for other in range(paragraph - paragraph % BLOCK, paragraph):
        place += (states[other] & LINKED) != 0
    return place


@kernel
def find_root(parents, paragraph):
    """Return the root of a paragraph's group; the way to it is halved for those who come later."""
    while parents[paragraph] != paragraph:
        parents[paragraph] = parents[parents[paragraph]]
        paragraph = np.int64(parents[paragraph])
    return paragraph


@kernel
def unite(parents, states, ranks, links):
    """Unite the groups of linked paragraphs, unsigned [links, 2], which are marked."""
    for link in range(len(links)):
        if links[link, 0] != links[link, 1]:
            one = find_root(parents, _place(states, ranks, np.int64(links[link, 0])))
            other = find_root(parents, _place(states, ranks, np.int64(links[link, 1])))
            parents[max(one, other)] = min(one, other)


@kernel
def count_members(parents, states, members):
    """Count the members of the groups that are no exact duplicates."""
    place = 0
    for paragraph in range(len(states)):
        if states[paragraph] & LINKED:
            if not states[paragraph] & EXACT:
                root = find_root(parents, np.int64(place))
                members[root] += members[root] < MANY
            place += 1


@kernel
def label(parents, members, states, place, shares, labels):
    """Write STAYS, IS_EXACT, or CANDIDATE + a share of `shares`, for some paragraphs: uint16 [n].

    states: of these alone. place: in the forest, of the first linked one among them. Returns that of the next one.
    """
    for paragraph in range(len(labels)):
        labels[paragraph] = STAYS
        if states[paragraph] & LINKED:
            root = find_root(parents, np.int64(place))
            if members[root] >= MANY:
                labels[paragraph] = CANDIDATE + root % shares
            place += 1
        if states[paragraph] & EXACT:
            labels[paragraph] = IS_EXACT
    return place


@kernel
def find_near(near, hashes, bands, threshold, chains, kept, count, is_near):
    """Mark the paragraphs that are near one before them that is kept, and keep the others.

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
    """Return whether two rows of MinHashes share a band and have at least so large a share in common."""
    for column in range(band[0], band[1]):
        if one[column] != other[column]:
            return False
    equal = 0
    for column in range(len(one)):
        equal += one[column] == other[column]
    return equal / len(one) >= threshold


def warm_up() -> None:
    """Compile the entry kernels of this module, for fewer than 2^32 paragraphs."""
    links, states, ranks = np.zeros((2, 2), np.uint32), np.zeros(2, np.uint8), np.zeros(1, np.uint32)
    link_equal(np.zeros(2, np.uint64), np.arange(2, dtype=np.uint32), np.full(4, _END, np.int32), False, links)
    read = np.frombuffer(links[:1].tobytes(), np.uint32).reshape(-1, 2)  # read-only, as links come from a file
    mark(states, read)
    parents, members = np.arange(rank(states, ranks), dtype=np.uint32), np.zeros(2, np.uint8)
    unite(parents, states, ranks, read)
    count_members(parents, states, members)
    label(parents, members, states, 0, 1, np.zeros(2, np.uint16))
    near, chains = np.zeros((1, 2), np.uint32), (np.full(2, _END, np.int64), np.zeros(2, np.int64))
    bands, hashes = np.array([[0, 1]]), np.zeros((1, 1), np.uint64)
    hash_bands(near, bands, hashes)
    find_near(near, hashes, bands, 0.5, chains, np.zeros((1, 2), np.uint32), 0, np.zeros(1, bool))
