"""The published package zanon releases the same rows, on ordered input with flat attributes and z held fixed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from shoal.methods.z.z_anonymity import ZAnonymity


@pytest.fixture
def peer(tmp_path, monkeypatch):
    """A maker of zanon objects that write into a folder of their own and never change z."""
    monkeypatch.chdir(tmp_path)
    module = pytest.importorskip("zanonymity.zanon")
    monkeypatch.setattr(module, "z_change", lambda self, t: None)

    def make(z, window):
        made = module.zanon(window, 0.8, 2)
        made.z = z
        return made

    return make


def released_by_peer(made, folder, events):
    for time, user, site in events:
        made.anonymize((time, user, site))
    made.endFiles()
    lines = (folder / "output.txt").read_text().splitlines()
    return [(float(time), user, site) for time, user, site in (line.split("\t") for line in lines)]


@pytest.mark.parametrize(("z", "window", "seed"), [(1, 30, 1), (2, 30, 2), (3, 60, 3), (5, 200, 4), (8, 1000, 5)])
def test_the_same_rows_leave(peer, tmp_path, z, window, seed):
    random = np.random.default_rng(seed)
    count = 600
    seconds = (1 + np.cumsum(random.choice([0, 1, 2, 29, 30], p=[0.3, 0.4, 0.2, 0.05, 0.05], size=count))).tolist()
    users = [f"u{number}" for number in random.integers(12, size=count)]
    sites = [f"s{number}" for number in np.minimum(random.geometric(0.3, size=count), 15)]
    ours = ZAnonymity(z=z, window=window, person="user", time="ts", attribute="site", key=bytes(16))
    release = ours.push_batch(pa.record_batch({"ts": seconds, "user": users, "site": sites}))
    events = list(zip(seconds, users, sites, strict=True))
    rows = [row["row"] for row in release.trace.to_pylist() if row["verdict"] == "released"]
    expected = released_by_peer(peer(z, window), tmp_path, events)
    assert [(float(events[row][0]), *events[row][1:]) for row in rows] == expected
    assert release.rows.column("site").to_pylist() == [site for _, _, site in expected]
    assert 0 < len(expected) <= count
