"""How much of a class is one person's: against plain loops, the warning and the cap."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.auditor import audit
from shoal.errors import PolicyError
from tests.reference.effort import tries


def audited(rows, *, traced=True, **rules):
    """Rows are (person, class)."""
    quasi = {"age": {"kind": "numeric", "low": 0, "high": 100}}
    policy = {"stream": {"person": "id"}, "anonymize": {"method": "fads", "k": 2, "quasi": quasi, **rules}}
    truth = [{"id": f"p{person}", "age": number} for person, number in rows]
    release = [{"age": f"[{number}, {number}]"} for _, number in rows]
    trace = [
        {"row": n, "verdict": "released", "reason": None, "group": n, "k": 2, "delay": 0, "reused": True}
        for n in range(len(rows))
    ]
    given = [pa.Table.from_pylist(one) if traced else None for one in (truth, trace)]
    return audit(pa.Table.from_pylist(release), *given, policy)


def counts(report, *codes):
    return {one.code: one.count for one in report.findings if one.code in codes}


SHARES = ("one-person-share", "above-max-share")


@tries(60)
@given(
    rows=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), min_size=1, max_size=60),
    cap=st.sampled_from([0.5, 0.6, 2 / 3, 0.9, 1.0]),
)
def test_shares_are_those_of_a_plain_count(rows, cap):
    sizes, own = Counter(number for _, number in rows), Counter(rows)
    largest = {number: max(own[pair] for pair in own if pair[1] == number) / sizes[number] for number in sizes}
    report = audited(rows, max_share=cap)
    mostly = [number for number in sizes if largest[number] > 0.5 and sizes[number] >= 10]
    above = sum(sizes[number] for number in sizes if largest[number] > cap + 1e-9)
    owned = sum(sizes[number] for number in mostly)
    assert report.metrics["largest_share_of_one_person"] == pytest.approx(max(largest.values()))
    assert report.metrics["classes_mostly_of_one_person"] == {"classes": len(mostly), "rows": owned}
    expected = {"one-person-share": owned, "above-max-share": above}
    assert counts(report, *SHARES) == {code: count for code, count in expected.items() if count}


def test_small_classes_draw_no_warning():
    mine = [(0, 0)] * 8
    assert counts(audited([*mine, (1, 0)]), *SHARES) == {}
    assert counts(audited([*mine, (1, 0), (2, 0)]), *SHARES) == {"one-person-share": 10}


def test_a_cap_that_cannot_be_checked_is_reported():
    rows = [(0, 0), (1, 0)]
    assert any("max_share" in sentence for sentence in audited(rows, traced=False, max_share=0.5).not_checked)
    assert not any("max_share" in sentence for sentence in audited(rows, max_share=0.5).not_checked)


@pytest.mark.parametrize("share", [0, 1.5, True, "half"])
def test_bad_values(share):
    with pytest.raises(PolicyError, match="max_share: must be a share above 0, up to 1"):
        audited([(0, 0)], max_share=share)
