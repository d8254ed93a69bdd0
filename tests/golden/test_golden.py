"""Worked examples and published vectors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from shoal.hierarchies import Hierarchy
from shoal.kernels.siphash import siphash128
from shoal.methods.z.z_anonymity import ZAnonymity
from tests.reference import siphash as naive

HERE = Path(__file__).parent
SIPHASH = json.loads((HERE / "siphash.json").read_text())
FIGURE_1 = json.loads((HERE / "z_figure_1.json").read_text())


@pytest.mark.parametrize("length", SIPHASH["vectors"])
def test_siphash_vectors(length):
    data, expected = bytes(range(int(length))), SIPHASH["vectors"][length]
    key = bytes.fromhex(SIPHASH["key"])
    words = np.frombuffer(key, dtype="<u8").astype(np.uint64)
    low, high = siphash128(words[0], words[1], np.frombuffer(data or b"\x00", dtype=np.uint8), 0, len(data))
    assert (int(low).to_bytes(8, "little") + int(high).to_bytes(8, "little")).hex() == expected
    assert naive.siphash128(key, data).hex() == expected


def test_figure_1_of_z_anonymity():
    z = ZAnonymity(
        z=FIGURE_1["z"], window=FIGURE_1["window_s"], person="user", time="ts", attribute="attribute", key=bytes(16)
    )
    for event in FIGURE_1["events"]:
        rows = z.push({name: event[name] for name in ("ts", "user", "attribute")})
        assert bool(rows) is event["released"]
        assert [(row["ts"], row["attribute"]) for row in rows] == [(event["ts"], "a0")] * event["released"]


TREE = Hierarchy.from_nested({"*": {"news": ["a.example", "rare.example"], "shop": ["c.example"]}})


def labels(z, events, **rules):
    """The label under which each (seconds, user, site) is released; None if it is not."""
    times, users, sites = zip(*events, strict=True)
    made = ZAnonymity(
        z=z, window="1h", person="user", time="ts", attribute="site", hierarchy=TREE, on_private="generalize",
        key=bytes(16), **rules,
    )  # fmt: skip
    release = made.push_batch(pa.record_batch({"ts": list(times), "user": list(users), "site": list(sites)}))
    shown = iter(release.rows.column("site").to_pylist())
    return [next(shown) if row["verdict"] == "released" else None for row in release.trace.to_pylist()]


def test_two_children_cannot_be_distinguished_by_subtraction():
    """20 people released at their leaf and one rare visitor must not make a crowd for the label above."""
    first = [(number, f"u{number}", "a.example") for number in range(20)]
    again = [(3000 + number, f"u{number}", "a.example") for number in range(20)]
    # an hour after the first round only exposures that were released at the leaf are left
    shown = labels(20, [*first, *again, (3700, "rare", "rare.example")])
    assert shown == [*[None] * 19, *["a.example"] * 21, None]


def test_suppressed_exposures_count_for_the_label_above():
    """They cannot distinguish a.example from rare.example: they were not released."""
    first = [(number, f"u{number}", "a.example") for number in range(19)]
    assert labels(20, [*first, (19, "rare", "rare.example")]) == [*[None] * 19, "news"]
    assert labels(20, [*first[:18], (19, "rare", "rare.example")]) == [None] * 19


def test_two_people_and_two_children():
    events = [(0, "u0", "a.example"), (1, "u1", "a.example"), (2, "rare", "rare.example")]
    assert labels(2, events) == [None, "a.example", None]  # "news" would say: not a.example, which passes
    assert labels(2, events, residual="loose") == [None, "a.example", "news"]
    later = [
        (0, "u0", "a.example"),
        (1800, "u1", "a.example"),
        (3601, "u2", "a.example"),
        (3602, "rare", "rare.example"),
    ]
    assert labels(2, later) == [None, "a.example", "a.example", None]


def test_nothing_is_released_if_not_even_the_root_passes():
    assert labels(2, [(0, "u0", "a.example"), (1, "u1", "c.example")]) == [None, "*"]
    assert labels(3, [(0, "u0", "a.example"), (1, "u1", "c.example")]) == [None, None]
    assert labels(2, [(0, "u0", "a.example"), (1, "u0", "c.example")]) == [None, None]
