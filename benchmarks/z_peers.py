"""What shoal is measured beside: the package zanon, Algorithm 1 in plain Python, and a bare compiled loop."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import time
from collections import OrderedDict

import numpy as np

from benchmarks.z_stream import Stream
from shoal.anonymizers.exposures import Texts
from shoal.kernels.compiling import kernel
from shoal.kernels.siphash import siphash128


def zanon_rate(stream: Stream, z: int, *, warm: int = 200_000, timed: int = 60_000) -> float:
    """Events a second of the package zanon, its z fixed by hand, once its window is full."""
    from zanonymity import utils, zanon

    times, people, sites = stream.lists(warm + timed)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        peer = zanon.zanon(stream.window, 0.8, 2)
        zanon.z_change = utils.z_change = lambda *_: None  # it has no option for a fixed z
        peer.z = z
        for event in zip(times[:warm], people, sites, strict=False):
            peer.anonymize(event)
        begun = time.perf_counter()
        for event in zip(times[warm:], people[warm:], sites[warm:], strict=True):
            peer.anonymize(event)
        seconds = time.perf_counter() - begun
        peer.endFiles()
        os.listdir(folder)
    return timed / seconds


def naive_rate(stream: Stream, z: int) -> tuple[float, int]:
    """Events a second of Algorithm 1 in plain Python, and how many it releases."""
    times, people, sites = stream.lists(stream.batch.num_rows)
    window, seen = stream.window, {}
    released = []
    begun = time.perf_counter()
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
    return len(times) / (time.perf_counter() - begun), len(released)


@kernel
def look_up(key, table, people, people_bytes, sites, sites_bytes):
    """Hash both texts of every event and look one slot up."""
    total = 0
    for i in range(len(people) - 1):
        low, _ = siphash128(key[0], key[1], people_bytes, people[i], people[i + 1])
        other, _ = siphash128(key[1], key[0], sites_bytes, sites[i], sites[i + 1])
        mixed = np.int64(low ^ other)
        slot = ((mixed & np.int64(0xFFFFFFFF)) * len(table)) >> 32
        total += table[slot]
    return total


def bare_rate(stream: Stream, live_pairs: int, *, tries: int = 5) -> float:
    """Events a second of a compiled loop that hashes both texts and does one look-up."""
    people, sites = Texts.of(stream.batch.column("user")), Texts.of(stream.batch.column("site"))
    table = np.ones(2 * live_pairs, dtype=np.int64)
    key = np.array([1, 2], dtype=np.uint64)
    best = 0.0
    for _ in range(tries + 1):  # the first compiles
        begun = time.perf_counter()
        look_up(key, table, people.offsets, people.data, sites.offsets, sites.data)
        best = max(best, len(people) / (time.perf_counter() - begun))
    return best
