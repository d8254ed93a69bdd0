"""Publisher and auditor read the domains of a policy alike."""

from __future__ import annotations

import pytest

from shoal import Numeric
from shoal.auditor.flexible.promise import read_flexible_promise
from shoal.auditor.policy import read_policy
from shoal.auditor.tuples.promise import read_tuple_promise
from shoal.errors import PolicyError
from shoal.policy.loading import parse_policy
from tests.reference.domains import AS_WRITTEN, CASES

EVERY = pytest.mark.parametrize(("domain", "meant"), CASES, ids=[", ".join(map(str, texts)) for texts in AS_WRITTEN])


def policy(method, domain):
    return {
        "stream": {"person": "id"},
        "source": {"kind": "csv", "path": "in.csv"},
        "anonymize": {"method": method, "k": 2, "quasi": {"x": {"kind": "numeric", **domain}}},
        "sink": {"kind": "csv", "path": "out.csv"},
    }


def meaning(read):
    try:
        rule = read()
    except PolicyError:
        return None
    return float(rule.low), float(rule.high), None if rule.grid is None else float(rule.grid)


@EVERY
def test_in_python(domain, meant):
    assert meaning(lambda: Numeric("x", **domain)) == meant


@EVERY
@pytest.mark.parametrize("method", ["fads", "flexible-k"])
def test_in_a_policy(method, domain, meant, tmp_path):
    table = policy(method, domain)
    published = meaning(lambda: parse_policy(table, folder=tmp_path).anonymize.quasi["x"].role("x"))
    read_promise = read_tuple_promise if method == "fads" else read_flexible_promise
    audited = meaning(lambda: read_promise(read_policy(table)).quasi[0])
    assert published == audited == meant
