"""Hierarchies that compute paths: publisher and auditor compute the same labels, and cells are nested."""

from __future__ import annotations

import ipaddress
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.auditor.hierarchies.hierarchy import read_hierarchy
from shoal.errors import InputError, PolicyError, RunError
from shoal.hierarchies import Hierarchy, computed
from shoal.policy.loading import parse_policy
from tests.reference.effort import tries

KINDS = {
    "geo": (Hierarchy.geo(), {"kind": "geo"}),
    "fine": (Hierarchy.geo(["0.005", "0.01", "30"]), {"kind": "geo", "cells": [0.005, 0.01, 30]}),
    "bins": (Hierarchy.bins(["0.5", "10", "100"]), {"kind": "bins", "widths": [0.5, 10, 100]}),
    "ip": (Hierarchy.ip(), "ip"),
    "few": (Hierarchy.ip([8], [96, 16]), {"kind": "ip", "v4": [8], "v6": [96, 16]}),
}
DEGREES = st.decimals(-200, 200, allow_nan=False, places=6).map(str)
TEXTS = st.one_of(
    st.text("0123456789.,:-+eE _x٣", max_size=12),
    st.tuples(DEGREES, DEGREES).map(",".join),
    DEGREES,
    st.integers().map(str),
    st.ip_addresses().map(str),
    st.sampled_from(
        ["90,180", "-90,-180", "0,-0", "-0.0", "1e3", " 7\t", "fe80::1%eth0", "::ffff:192.0.2.1", "1e99", "*"]
    ),
)


@tries(300)
@given(TEXTS, st.sampled_from(sorted(KINDS)))
def test_the_auditor_computes_the_same_path(text, kind):
    hierarchy, described = KINDS[kind]
    auditors = read_hierarchy(described, folder=Path(), name="hierarchy")
    assert auditors.path(text) == (hierarchy.path(text) if text in hierarchy else ())


def bounds(label):
    return [tuple(map(Fraction, part.split("…"))) for part in label.split(",")]


@tries(100)
@given(st.sampled_from(["fine", "bins"]), st.tuples(DEGREES, DEGREES))
def test_cells_contain_the_value_and_the_cells_below(kind, numbers):
    hierarchy, _ = KINDS[kind]
    value = ",".join(numbers) if kind == "fine" else numbers[0]
    if value not in hierarchy:
        assert kind == "fine"
        return
    path = hierarchy.path(value)
    exact = [Fraction(part) for part in value.split(",")]
    inner = [(one, one) for one in exact]
    for label in path[1:-1]:
        outer = bounds(label)
        assert all(low <= a and b <= high for (low, high), (a, b) in zip(outer, inner, strict=True))
        assert all(low <= one < high for (low, high), one in zip(outer, exact, strict=True))
        inner = outer
    assert (path[0], path[-1]) == (value, "*")


@tries(60)
@given(st.ip_addresses())
def test_networks_contain_the_address(address):
    *_, first, second, third, root = Hierarchy.ip().path(str(address))
    networks = [ipaddress.ip_network(label) for label in (first, second, third)]
    assert all(address in network for network in networks)
    assert [network.prefixlen for network in networks] == ([24, 16, 8] if address.version == 4 else [64, 48, 32])
    assert root == "*"


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_it_comes_back_from_its_description(kind):
    hierarchy, _ = KINDS[kind]
    assert Hierarchy.from_dict(hierarchy.to_dict()) == hierarchy
    assert hierarchy.is_open
    assert hierarchy.is_computed
    assert "north pole" not in hierarchy
    with pytest.raises(InputError, match="not in it"):
        hierarchy.path("north pole")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Hierarchy.geo([]), "cells must be numbers"),
        (lambda: Hierarchy.geo(["0"]), "cells must be numbers"),
        (lambda: Hierarchy.geo([1, 400]), "larger than 180"),
        (lambda: Hierarchy.geo([0.1, 0.25]), "each a multiple"),
        (lambda: Hierarchy.bins([10, 10]), "each a multiple"),
        (lambda: Hierarchy.bins("10"), "widths must be numbers"),
        (lambda: Hierarchy.ip(v4=[8, 16]), "v4 must be prefix lengths"),
        (lambda: Hierarchy.ip(v6=[128]), "v6 must be prefix lengths"),
        (lambda: Hierarchy.geo(root=" "), "root must be"),
    ],
)
def test_what_it_refuses(make, words):
    with pytest.raises(PolicyError, match=words):
        make()


@pytest.mark.parametrize(
    ("host", "path"),
    [
        ("a.b.shop.co.uk", ("a.b.shop.co.uk", "b.shop.co.uk", "shop.co.uk", "co.uk", "*")),
        ("WWW.Shop.CO.UK", ("WWW.Shop.CO.UK", "Shop.CO.UK", "CO.UK", "*")),
        ("co.uk", ("co.uk", "*")),
        ("mail.example", ("mail.example", "example", "*")),
        ("a.github.io", ("a.github.io", "github.io", "*")),
        ("host.internal", ("host.internal", "internal", "*")),
        ("a..b", ()),
        ("", ()),
    ],
)
def test_host_names_end_at_their_public_suffix(host, path):
    hierarchy = Hierarchy.hosts()
    assert (hierarchy.path(host) if host in hierarchy else ()) == path
    assert read_hierarchy("hosts", folder=Path(), name="hierarchy").path(host) == path


def test_without_the_list_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "publicsuffixlist", None)
    computed._public_suffixes.cache_clear()
    with pytest.raises(RunError, match=r"pip install publicsuffixlist"):
        Hierarchy.hosts()
    with pytest.raises(RunError, match=r"pip install publicsuffixlist"):
        read_hierarchy("hosts", folder=Path(), name="hierarchy")


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        ("geo", Hierarchy.geo()),
        ({"kind": "geo", "cells": [0.5, 1]}, Hierarchy.geo(["0.5", 1])),
        ({"kind": "bins", "widths": [10, 100]}, Hierarchy.bins([10, 100])),
        ("ip", Hierarchy.ip()),
        ({"kind": "ip", "v4": [8], "root": "any"}, Hierarchy.ip([8], root="any")),
    ],
    ids=str,
)
def test_a_policy_names_or_describes_it(described, expected):
    policy = parse_policy({
        "stream": {"person": "user", "time": "ts"},
        "source": {"kind": "csv", "path": "in.csv"},
        "anonymize": {"method": "z-anonymity", "attribute": "value", "z": 2, "window": "1h",
                      "on_private": "generalize", "hierarchy": described},
        "sink": {"kind": "csv", "path": "out.csv"},
    })  # fmt: skip
    assert policy.hierarchies == {"value": expected}
