"""What shoal is compared with: the package zanon, Algorithm 1 in plain Python, and a bare compiled loop."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections import OrderedDict

import numpy as np

from benchmarks.measure import Cost, Meter
from benchmarks.z_stream import Stream
from shoal.kernels.compiling import kernel
from shoal.kernels.siphash import siphash128
from shoal.methods.text_keys import Texts


def zanon_cost(stream: Stream, z: int, *, warm: int = 200_000, timed: int = 150_000) -> tuple[Cost, int]:
    """The cost of the package zanon with a fixed z, once its window is full; and the number of events."""
    from zanonymity import utils, zanon

    times, people, sites = stream.lists(warm + timed)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        peer = zanon.zanon(stream.window, 0.8, 2)
        changes = zanon.z_change, utils.z_change
        zanon.z_change = utils.z_change = lambda *_: None  # it has no option for a fixed z
        peer.z = z
        for event in zip(times[:warm], people, sites, strict=False):
            peer.anonymize(event)
        with Meter() as meter:
            for event in zip(times[warm:], people[warm:], sites[warm:], strict=True):
                peer.anonymize(event)
        zanon.z_change, utils.z_change = changes
        peer.endFiles()
    return meter.cost, len(times) - warm


def naive_cost(stream: Stream, z: int) -> tuple[Cost, int]:
    """The cost of Algorithm 1 in plain Python, and the number of events it releases."""
    times, people, sites = stream.lists(stream.batch.num_rows)
    window, seen = stream.window, {}
    released = []
    with Meter() as meter:
        for t, u, a in zip(times, people, sites, strict=True):
            exposed = seen.get(a)
            if exposed is None:
                exposed = seen[a] = OrderedDict()
            exposed[u] = t
            exposed.move_to_end(u)
            while exposed[oldest := next(iter(exposed))] < t - window:
                del exposed[oldest]
            if len(exposed) >= z:
                released.append((t, u, a))
    return meter.cost, len(released)


@kernel
def pair_key(key, people, people_bytes, sites, sites_bytes, i):
    """One word for the pair of event i: both texts hashed."""
    low, _ = siphash128(key[0], key[1], people_bytes, people[i], people[i + 1])
    other, _ = siphash128(key[1], key[0], sites_bytes, sites[i], sites[i + 1])
    return np.int64(low ^ other)


@kernel
def find(table, word):
    """Slot of a word, or the empty one where the search ends."""
    slot = ((word & np.int64(0xFFFFFFFF)) * len(table)) >> 32
    while table[np.uint64(slot)] != 0 and table[np.uint64(slot)] != word:
        slot += 1
        if slot == len(table):
            slot = 0
    return slot


@kernel
def fill(key, table, people, people_bytes, sites, sites_bytes, first):
    """Put the pairs from event `first` on into the table."""
    for i in range(first, len(people) - 1):
        word = pair_key(key, people, people_bytes, sites, sites_bytes, i)
        table[find(table, word)] = word


@kernel
def look_up(key, table, people, people_bytes, sites, sites_bytes):
    """Hash both texts of every event and look the pair up; count those found."""
    found = 0
    for i in range(len(people) - 1):
        word = pair_key(key, people, people_bytes, sites, sites_bytes, i)
        if table[find(table, word)] == word:
            found += 1
    return found


class BareLoop:
    """A compiled loop that hashes both texts and looks the pair up: a lower bound for any exact method."""

    def __init__(self, stream: Stream, live_pairs: int) -> None:
        people, sites = Texts.of(stream.batch.column("user")), Texts.of(stream.batch.column("site"))
        self._columns = (people.offsets, people.data, sites.offsets, sites.data)
        self._table = np.zeros(2 * live_pairs, dtype=np.int64)
        self._key = np.array([1, 2], dtype=np.uint64)
        fill(self._key, self._table, *self._columns, len(people) - live_pairs)
        self.run()  # compiles

    def run(self) -> int:
        """Read the stream once; return how many pairs were found."""
        found: int = look_up(self._key, self._table, *self._columns)
        return found
