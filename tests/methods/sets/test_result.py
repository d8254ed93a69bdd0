"""Results of anonymizing sets: publishing, applying, dropping, certifying; and refused settings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import pyarrow as pa
import pytest

import shoal
from shoal.errors import InputError, PolicyError, RunError
from shoal.methods.sets.certificate import NotCertified
from shoal.methods.sets.result import Changes, KmResult
from tests.reference import km as naive

TREE = shoal.Hierarchy.from_nested(
    {"all": {"left": ["a", "b", "c"], "right": {"near": ["d", "e"], "far": ["f", "g"]}, "never": ["x", "y"]}}
)
RECORDS = [
    {"a", "b"}, {"a", "b"}, {"a"}, {"c", "d"}, {"c", "d"}, {"d", "e"}, {"d", "e", "f"}, {"f", "g"}, {"f", "g"},
    {"a", "d"}, {"b", "e"}, {"g"},
]  # fmt: skip
SECRET = "a secret value"


def method(k=2, m=2, sigma=1, **changes) -> shoal.KmAnonymity:
    return shoal.KmAnonymity(k, m, sigma, **({"generalize": TREE, "trials": 2} | changes))


def block_of(result) -> dict[str, str]:
    return {item: label for label, items in result.blocks.items() for item in items}


def holds(result, records, k=2, m=2) -> bool:
    return not any(naive.violations(records, block_of(result), size, k) for size in range(1, m + 1))


@pytest.fixture
def result() -> KmResult:
    return method().anonymize(RECORDS)


# ---- what it holds


def test_properties_of_a_result(result):
    assert holds(result, RECORDS)
    assert repr(result) == f"<KmResult of 12 records in {len(result.blocks)} blocks, certified>"
    assert (len(result), result.is_certified) == (12, True)
    assert isinstance(result.error, float)
    assert result.error == pytest.approx(naive.ncp(RECORDS, result.blocks.values(), 9))
    assert all(isinstance(record, frozenset) for record in result.records)
    assert result.changes == Changes(0, 0, 0, 0)
    assert set(block_of(result)) == set("abcdefgxy")  # also what no record has
    certificate = result.certificate
    assert (certificate.records, certificate.m, certificate.seed) == (12, 2, 0)
    assert (certificate.sampler, certificate.adversary, certificate.joint) == ("exact", "itemset", False)
    assert certificate.statement.splitlines() == [
        "size 1, counted: every itemset that anyone has matches at least 2 published records.",
        "size 2, counted: every itemset that anyone has matches at least 2 published records.",
        "No size was sampled.",
        "The guarantee covers this release only, not comparisons with other releases of the same people.",
    ]
    assert json.loads(json.dumps(certificate.to_dict()))["sizes"][1]["how"] == "counted"


def test_published_rows_are_the_records_shuffled(result):
    table = result.published()
    assert table.column_names == ["items"]
    assert table.schema.field("items").type == pa.large_list(pa.large_string())
    shown = table["items"].to_pylist()
    assert Counter(map(frozenset, shown)) == Counter(result.records)
    assert all(len(set(record)) == len(record) for record in shown)
    assert result.published().equals(table)
    assert result.published("places").column_names == ["places"]


def test_the_shuffle_depends_on_the_seed_alone():
    """Twenty people with one item each: the input order cannot be seen."""
    items = [f"i{number:02d}" for number in range(20)]
    records = [{item} for item in items for _ in range(2)]
    graph = [*pairwise(items)]

    def shown(seed, given=records):
        made = shoal.KmAnonymity(2, 1, 1, generalize=graph, trials=1, seed=seed).anonymize(given)
        assert len(made.blocks) == 20
        return [record[0] for record in made.published()["items"].to_pylist()]

    first = shown(0)
    assert first != sorted(first)
    assert first != [item for record in records for item in record]
    assert shown(1) != first
    assert shown(0, records[::-1]) == shown(0, records[7:] + records[:7]) == first
    assert sum(one == other for one, other in zip(first, shown(1), strict=True)) < 12  # hardly any stays in place


def test_progress_is_reported():
    calls = []
    made = method(sigma=[1, 0.8], counted=1, generalize=TREE).anonymize(
        RECORDS, progress=lambda what, size, left: calls.append((what, size, left))
    )
    assert {(what, size) for what, size, _ in calls} == {
        ("counting", 1), ("sampling", 2), ("certifying", 1), ("certifying", 2),
    }  # fmt: skip
    assert calls[0][2] == 9
    assert min(left for _, _, left in calls) >= len(made.blocks)


# ---- going on


def test_applied_records_need_a_certificate_of_their_own(result):
    more = [*RECORDS[:8], {"a", "g"}, {"b", "g"}, {"a", "g"}]
    applied = result.apply(more)
    assert not applied.is_certified
    assert repr(applied).endswith("not certified>")
    assert applied.blocks == result.blocks
    assert applied.records == naive.released(more, block_of(result))
    assert applied.error == pytest.approx(naive.ncp(more, result.blocks.values(), 9))
    message = r"call certify\(\) on exactly the records to be published"
    with pytest.raises(NotCertified, match=message):
        applied.published()
    with pytest.raises(NotCertified, match=message):
        _ = applied.certificate
    assert issubclass(NotCertified, RunError)
    before = (result.records, result.error, result.blocks)
    certified = applied.certify()
    assert certified.is_certified
    assert holds(certified, more)
    assert certified.certificate.records == len(more)
    assert certified.certificate.fingerprint != result.certificate.fingerprint
    assert Counter(map(frozenset, certified.published()["items"].to_pylist())) == Counter(certified.records)
    assert not applied.is_certified  # a new one was made
    assert (result.records, result.error, result.blocks) == before


def test_more_blocks_are_merged_only_where_necessary():
    fitted = method().anonymize([{"a"}] * 2 + [{"d"}] * 2 + [{"f", "g"}] * 3)
    assert len(fitted.blocks) == 9
    same = fitted.apply([{"a"}] * 3 + [{"d"}] * 4).certify()
    assert same.blocks == fitted.blocks
    assert same.certify(join=False).blocks == fitted.blocks
    apart = fitted.apply([{"a"}] * 3 + [{"d"}] + [{"f", "g"}] * 3)
    with pytest.raises(NotCertified, match=r"^size 1: itemsets were found that fit fewer than 2 records"):
        apart.certify(join=False)
    joined = apart.certify()
    assert holds(joined, [{"a"}] * 3 + [{"d"}] + [{"f", "g"}] * 3)
    assert {tuple(items) for items in fitted.blocks.values() if len(items) > 1} == set()
    assert set(block_of(joined)) == set(block_of(fitted))
    assert block_of(joined)["a"] == "a"  # nothing forced it
    old, new = block_of(fitted), block_of(joined)
    assert all(new[one] == new[other] for one in old for other in old if old[one] == old[other])


def test_a_sampled_result_applied_and_certified():
    sampled = method(sigma=0.8, counted=0).anonymize(RECORDS)
    again = sampled.apply(RECORDS + RECORDS[:3]).certify()
    assert [one.how for one in again.certificate] == ["sampled", "sampled"]
    assert again.records == naive.released(RECORDS + RECORDS[:3], block_of(again))


def test_items_unseen_at_the_fit_are_refused_by_counts(result):
    for item in ("x", SECRET):  # one that the tree knows, one that it does not
        with pytest.raises(InputError) as caught:
            result.apply([*RECORDS, {item, "a"}, {item}])
        assert str(caught.value) == (
            "record 13: has an item that no record had when blocks were fitted (2 such items in 2 records); fit again, "
            "or leave them out"
        )
    assert result.apply([{"a"}, {"g"}]).records  # seen, and known


def test_all_days_of_a_person_are_one_set(result):
    rows = [("p", "a"), ("q", "a"), ("p", "b"), ("q", "b"), ("r", "d"), ("s", "d")]
    applied = result.apply(rows + rows)
    assert applied.records == naive.released([{"a", "b"}, {"a", "b"}, {"d"}, {"d"}], block_of(result))


def test_dropping_records_checks_everything_again(result):
    left = [record for row, record in enumerate(RECORDS) if row not in (0, 11, 5)]
    fewer = result.without([0, 11, 5, 0])
    assert (len(fewer), fewer.is_certified) == (9, False)
    assert fewer.records == [result.records[row] for row in range(12) if row not in (0, 11, 5)]
    assert fewer.error == pytest.approx(naive.ncp(left, result.blocks.values(), 9))
    with pytest.raises(NotCertified):
        fewer.published()
    assert holds(fewer.certify(), left)
    assert fewer.changes == Changes(new=0, gone=3, unique_new=0, unique_gone=2)
    assert result.without([]).certify().records == result.records


def test_dropping_records_can_destroy_a_crowd():
    fitted = method(m=1).anonymize([{"a"}] * 2 + [{"d"}] * 3)
    with pytest.raises(NotCertified):
        fitted.without([0]).certify(join=False)
    alone = fitted.without([0]).certify()
    assert naive.rare(alone.records, 1, 2) == set()
    assert set(alone.records) == {frozenset({"all"})}


def test_too_few_records_remain(result):
    assert len(result.without(range(10))) == 2
    for rows in (range(11), range(12)):
        with pytest.raises(InputError, match=r"records cannot hide anybody among 2; give more"):
            result.without(rows)
    for rows in ([12], [-1], [3, 99], [True], [False] * 12, [1.5], ["x"], [2**70]):
        with pytest.raises(InputError, match=r"rows: must be whole numbers from 0 to 11, counted in input order"):
            result.without(rows)
    with pytest.raises(InputError, match=r"^1 records cannot hide anybody among 2"):
        result.apply([{"a"}])
    larger = method([2, 5]).anonymize(RECORDS)
    with pytest.raises(InputError, match=r"^4 records cannot hide anybody among 5"):
        larger.without(range(8))


def test_changes_are_counted_by_content(result):
    """New: {a, c} twice and {g, a} once, of which the last is unique; {a, b} occurs once more, {g} is gone."""
    kept = [record for record in RECORDS if record != {"g"}]
    applied = result.apply([*kept, {"a", "c"}, {"c", "a"}, {"g", "a"}, {"a", "b"}])
    assert applied.changes == Changes(new=4, gone=1, unique_new=1, unique_gone=1)
    assert applied.certify().changes == applied.changes
    assert applied.without([0]).changes == Changes(new=3, gone=1, unique_new=1, unique_gone=1)
    assert result.apply(RECORDS[::-1]).changes == Changes(0, 0, 0, 0)


# ---- the same elsewhere

SCRIPT = """
import json, sys, shoal

def release(backwards):
    tree = shoal.Hierarchy.from_nested({"all": {f"g{i}": [f"a{i}", f"b{i}", f"c{i}"] for i in range(8)}})
    records = [{f"{'abc'[(n + j) % 3]}{(n * j) % 8}" for j in range(1 + n % 4)} for n in range(60)]
    if backwards:
        records.reverse()
    made = shoal.KmAnonymity(3, 3, [1, 0.9, 0.8], generalize=tree, counted=1, seed=11, adversary="both", trials=3)
    found = made.anonymize(records)
    return json.dumps([found.blocks, found.error, found.certificate.to_dict(), found.published().to_pylist()])
"""


def test_the_same_seed_gives_the_same_release_in_another_process():
    """Also with another hash seed and with records in reverse order."""
    here = {}
    exec(SCRIPT, here)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT + "sys.stdout.write(release(True))"],
        env=os.environ | {"PYTHONHASHSEED": "3"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == here["release"](False)
    blocks, _, certificate, rows = json.loads(done.stdout)
    assert len(rows) == 60
    assert 1 < len(blocks) < 24
    assert [one["how"] for one in certificate["sizes"]] == ["counted", "sampled", "sampled", "sampled", "sampled"]


# ---- the edges


def test_m_larger_than_any_record():
    made = method(m=5).anonymize(RECORDS)
    assert [one.how for one in made.certificate] == ["counted", "counted", "counted", "empty", "empty"]
    assert made.certificate.sizes[4].statement == "size 5: no record has 5 items."
    assert holds(made, RECORDS, m=3)
    sampled = method(m=4, sigma=0.7, counted=0, adversary="both").anonymize([{"a"}] * 3 + [{"b"}] * 3)
    assert [one.how for one in sampled.certificate] == ["sampled", "sampled", "empty", "empty", "empty"]
    longer = sampled.apply([{"a", "b"}] * 3).certify()
    assert [one.how for one in longer.certificate] == ["sampled"] * 4 + ["empty"] * 2


def test_as_many_records_as_k():
    made = method(k=12).anonymize(RECORDS)
    assert set(made.records) == {frozenset({"all"})}
    assert made.error == 1.0
    with pytest.raises(
        InputError, match=r"^12 records cannot hide anybody among 13; give more records, or ask for less$"
    ):
        method(k=13).anonymize(RECORDS)
    with pytest.raises(InputError, match=r"^12 records cannot hide anybody among 13"):
        method(k=[2, 13]).anonymize(RECORDS)


def test_an_open_hierarchy():
    """Any text is an item: names under names."""
    sites = shoal.Hierarchy.by_suffix()
    records = [{"www.a.org", "b.com"}, {"mail.a.org", "b.com"}, {"x.c.net"}, {"y.c.net"}, {"b.com"}]
    made = shoal.KmAnonymity(2, 2, 1, generalize=sites, trials=1).anonymize(records)
    assert holds(made, records)
    assert set(block_of(made)) == {item for record in records for item in record}
    assert made.records[0] == made.records[1] == {"a.org", "b.com"}
    assert made.records[2] == {"c.net"}
    with pytest.raises(InputError, match=r"\(1 such items in 1 records\)"):
        made.apply([*records, {"z.a.org"}])
    assert holds(made.apply([*records, {"b.com"}]).certify(), [*records, {"b.com"}])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 1}, "k: must be a whole number of at least 2: with 1 no one is hidden"),
        ({"k": 0}, "k: must be"),
        ({"k": 2.0}, "k: must be"),
        ({"k": True}, "k: must be"),
        ({"k": [2, 1]}, "k: must be a whole number"),
        ({"k": [2, 2, 2]}, "k: must be one number, or a list of m = 2, one for every size"),
        ({"k": []}, "k: must be one number"),
        ({"m": 0}, "m: must be at least 1"),
        ({"m": 65}, "m: must be"),
        ({"m": 2.0}, "m: must be"),
        ({"m": None}, "m: must be"),
        ({"sigma": 0.4}, r"sigma: must be a number from 0\.5 to 1; 1 means that all are counted"),
        ({"sigma": 1.1}, "sigma: must be"),
        ({"sigma": float("nan")}, "sigma: must be"),
        ({"sigma": "1"}, "sigma: must be"),
        ({"sigma": [0.9, True]}, "sigma: must be"),
        ({"sigma": [0.9]}, "sigma: must be one number, or a list of m = 2"),
        ({"adversary": "nobody"}, 'adversary: must be one of "itemset", "person", "both"'),
        ({"bound": "chernoff"}, 'bound: must be one of "exact", "hoeffding1", "hoeffding2"'),
        ({"sampler": "gibbs"}, 'sampler: must be one of "exact", "chain"'),
        ({"counted": 3}, 'counted: must be "auto", "all" or the size up to which itemsets are counted, 0 to m'),
        ({"counted": -1}, "counted: must be"),
        ({"counted": True}, "counted: must be"),
        ({"counted": "none"}, "counted: must be"),
        ({"joint": 1}, "joint: must be true or false"),
        ({"trials": 0}, "trials: must be at least 1"),
        ({"trials": 10_001}, "trials: must be"),
        ({"seed": -1}, "seed: must be at least 0"),
        ({"seed": 2**63}, "seed: must be"),
        ({"seed": 1.0}, "seed: must be"),
    ],
)
def test_settings_that_are_refused(settings, message):
    with pytest.raises(PolicyError, match=f"^{message}") as caught:
        method(**settings)
    assert len(caught.value.problems) == 1


def test_all_problems_are_listed_at_once():
    with pytest.raises(PolicyError) as caught:
        method(k=1, sigma=0.1, adversary="x", bound="x", sampler="x", counted="x", joint="x", trials=0, seed=-1)
    named = [problem.partition(":")[0] for problem in caught.value.problems]
    assert named == ["k", "sigma", "adversary", "bound", "trials", "seed", "counted", "sampler", "joint"]


def test_limits_of_settings():
    made = method(k=[2**31 - 1, 2], m=2, sigma=[0.5, 1], counted=2, trials=10_000, seed=2**63 - 1, joint=True).settings
    assert (made.crowds, made.m, made.confidences) == ((2**31 - 1, 2), 2, (0.5, 1.0))
    assert json.loads(json.dumps(made.to_dict()))["seed"] == 2**63 - 1
    assert method(m=64).settings.m == 64
    assert [method(sigma=[0.9, 1]).settings.must_count(size) for size in (1, 2)] == [False, True]
    assert [method(sigma=[1, 0.9]).settings.must_count(size) for size in (1, 2)] == [True, False]
    assert [method(sigma=0.9, counted=1).settings.may_count(size) for size in (1, 2)] == [True, False]
    assert [method(sigma=0.9).settings.may_count(size) for size in (1, 2)] == [True, True]


def test_what_cannot_be_generalized():
    with pytest.raises(PolicyError, match="generalize: give a"):
        shoal.KmAnonymity(2, 2, 1, generalize=None).anonymize(RECORDS)
    with pytest.raises(PolicyError, match=r"needs shoal\.Places"):
        method(error="distance").anonymize(RECORDS)
    with pytest.raises(PolicyError, match="finite and not negative"):
        method(error=lambda items, weights: -1).anonymize(RECORDS)
    with pytest.raises(InputError, match="does not know"):
        shoal.KmAnonymity(2, 2, 1, generalize=[("a", "b")]).anonymize(RECORDS)


@pytest.mark.compiled
def test_wide_itemsets():
    """The largest m."""
    items = [f"i{number:02d}" for number in range(70)]
    records = [set(items[:66])] * 3 + [set(items[4:])] * 3
    made = shoal.KmAnonymity(3, 64, 0.6, generalize=[*pairwise(items)], counted=0, trials=1)
    result = made.anonymize(records)
    assert len(result.certificate.sizes) == 64
    assert len(result.blocks) == 70
    assert shoal.uniqueness(records, 64, samples=20).share == 0
    assert shoal.uniqueness([records[0], records[5]], 64, samples=20).share == 1
