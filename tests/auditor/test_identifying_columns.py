"""Carried and sensitive columns: people per value, alone and with the class, against plain loops."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.auditor import audit
from shoal.errors import PolicyError
from tests.reference.effort import tries

K = 3
PEOPLE = 20 * K


def policy(**stream):
    quasi = {"age": {"kind": "numeric", "low": 0, "high": 100}}
    return {
        "stream": {"person": "id", "carry": ["shop"], **stream},
        "anonymize": {"method": "fads", "k": K, "sensitive": ["ill"], "quasi": quasi},
    }


def rows_of(people, shops, ills=None, classes=None):
    return [
        {"id": f"p{person}", "age": 10 * (classes[n] if classes else 0), "shop": shops[n], "ill": (ills or shops)[n]}
        for n, person in enumerate(people)
    ]


def audited(rows, *, traced=True, **stream):
    release = [
        {"age": f"[{row['age']}, {row['age']}]", **{name: row[name] for name in ("shop", "ill")}} for row in rows
    ]
    trace = [
        {"row": n, "verdict": "released", "reason": None, "group": n, "k": K, "delay": 0, "formed": False}
        for n in range(len(rows))
    ]
    given = [pa.Table.from_pylist(given) if traced else None for given in (rows, trace)]
    return audit(pa.Table.from_pylist(release), *given, policy(**stream))


def found(report, severity):
    return {one.code: one.count for one in report.findings if one.severity == severity and one.code.startswith("ident")}


def naive(keys, people):
    """(rows below k, rows of one person, values, values of one person)."""
    behind = {}
    for key, person in zip(keys, people, strict=True):
        behind.setdefault(key, set()).add(person)
    crowd = [len(behind[key]) for key in keys]
    lone = sum(len(one) == 1 for one in behind.values())
    return sum(one < K for one in crowd), sum(one < 2 for one in crowd), len(behind), lone


@tries(60)
@given(
    drawn=st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from(["a", "b", "c", None]), st.integers(0, 2)), min_size=1, max_size=40
    ),
    traced=st.booleans(),
)
def test_numbers_are_those_of_a_plain_count(drawn, traced):
    people, shops, classes = zip(*drawn, strict=True)
    counted = people if traced else range(len(people))
    report = audited(rows_of(people, shops, classes=classes), traced=traced)
    below, alone, values, lone = naive(shops, counted)
    within = naive(list(zip(classes, shops, strict=True)), counted)
    for name, role in (("shop", "carry"), ("ill", "sensitive")):
        metric = report.metrics["unchanged_columns"][name]
        assert (metric["role"], metric["k"]) == (role, K)
        assert (metric["rows_below"], metric["rows_of_one_person"]) == (below, alone)
        assert (metric["values"], metric["values_of_one_person"]) == (values, lone)
        assert metric["share_below"] == pytest.approx(below / len(people))
        assert metric["share_below_with_class"] == pytest.approx(within[0] / len(people))
        assert metric["share_of_one_person_with_class"] == pytest.approx(within[1] / len(people))
    is_rare = below / len(people) > 0.05
    assert {one.code for one in report.findings if one.code.startswith("ident")} == (
        {"identifying-carry", "identifying-sensitive"} if is_rare else set()
    )


def test_a_carried_column_of_unique_values_is_convicted_unless_allowed():
    rows = rows_of(range(PEOPLE), [f"s{n}" for n in range(PEOPLE)])
    report = audited(rows)
    assert found(report, "violation") == {"identifying-carry": PEOPLE}
    assert found(report, "warning") == {"identifying-sensitive": PEOPLE}
    assert "s1" not in report.text().split("age")[0]
    allowed = audited(rows, carry_identifying=True)
    assert not found(allowed, "violation")
    assert found(allowed, "warning") == {"identifying-carry": PEOPLE, "identifying-sensitive": PEOPLE}


def test_rows_stand_in_for_people_where_these_are_not_known():
    rows = rows_of(range(PEOPLE), [f"s{n}" for n in range(PEOPLE)])
    assert found(audited(rows, traced=False), "violation") == {"identifying-carry": PEOPLE}


def test_too_few_people_to_judge_by_is_a_warning():
    rows = rows_of(range(PEOPLE - 1), [f"s{n}" for n in range(PEOPLE - 1)])
    report = audited(rows)
    assert not found(report, "violation")
    assert "identifying-carry" in found(report, "warning")


def test_a_twentieth_of_the_rows_may_be_rare():
    rare = PEOPLE // 20
    for more, codes in ((0, {}), (1, {"identifying-carry": rare + 1})):
        shops = [f"s{n}" for n in range(rare + more)] + ["common"] * (PEOPLE - rare - more)
        assert found(audited(rows_of(range(PEOPLE), shops)), "violation") == codes


def test_many_rows_of_one_person_are_no_crowd():
    """A value is counted by people, not by rows."""
    people = [*range(PEOPLE), *[0] * PEOPLE]
    shops = ["common"] * PEOPLE + ["home"] * PEOPLE
    assert found(audited(rows_of(people, shops)), "violation") == {"identifying-carry": PEOPLE}
    assert not found(audited(rows_of(people, shops), traced=False), "violation")


def test_columns_that_are_identifying_only_together():
    people = range(PEOPLE)
    shops = [str(n % 20) for n in people]
    rows = [{**row, "device": str(n // 20)} for n, row in enumerate(rows_of(people, shops, ills=["flu"] * PEOPLE))]
    release = [{"age": "[0, 0]", **{name: row[name] for name in ("shop", "ill", "device")}} for row in rows]
    report = audit(pa.Table.from_pylist(release), policy=policy(carry=["shop", "device"]))
    assert found(report, "warning") == {"identifying-together": PEOPLE}
    assert not found(report, "violation")


def test_z_counts_pseudonyms_or_people():
    promised = {
        "stream": {"person": "user", "time": "ts", "carry": ["device"]},
        "anonymize": {"method": "z-anonymity", "attribute": "site", "z": K, "window": "1h"},
    }
    release = [{"ts": n, "user": f"{n:032x}", "site": "s", "device": f"d{n}"} for n in range(PEOPLE)]
    report = audit(pa.Table.from_pylist(release), policy=promised)
    assert found(report, "violation") == {"identifying-carry": PEOPLE}
    metric = report.metrics["unchanged_columns"]["device"]
    assert (metric["z"], metric["rows_of_one_person"]) == (K, PEOPLE)
    promised["stream"]["carry_identifying"] = True
    assert found(audit(pa.Table.from_pylist(release), policy=promised), "warning") == {"identifying-carry": PEOPLE}


def test_the_key_must_be_true_or_false():
    with pytest.raises(PolicyError, match="carry_identifying: must be true or false"):
        audited(rows_of([1], ["a"]), carry_identifying="yes")
