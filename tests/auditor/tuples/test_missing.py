"""Missing values: `missing` is audited as it promises, and cells that show what their record lacks are counted."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.auditor import audit
from shoal.auditor.policy import read_policy
from shoal.auditor.report.evidence_report import report_evidence
from shoal.auditor.tuples.promise import read_tuple_promise
from shoal.errors import PolicyError
from shoal.testing.driving import batches_of
from tests.auditor.tuples.naive import RELEASE, TRACE, TRUTH, Run, lacks, policy, records, table
from tests.laws.tuple_cases import QUASI, TIMED, people, tuple_case
from tests.reference.effort import some_by_default, tries

MODES = ("own", "hidden", "covered", "paper")


@pytest.fixture
def own():
    run = Run(records(160, people=80, missing=0.25), missing="own", deadline=30, reuse=20)
    assert run.audit().findings == ()
    return run


def record_of(run, row):
    return run.truth[run.trace[run.entry_of(row)]["row"]]


def group_that(run, *, lacking, size=3):
    """The released rows of a cluster that lacks some columns and was not reused."""
    for entry in run.trace:
        rows = run.rows_of_group(entry["group"]) if entry.get("group") is not None else []
        if len(rows) == size and all(lacks(run.release[row]) == lacking for row in rows):
            return rows
    raise AssertionError("no such cluster")


def codes(report):
    """The findings; how rare single values are is another matter."""
    return {found.code: found.rows for found in report.findings if not found.code.startswith("identifying")}


# ---- what is promised


@pytest.mark.parametrize(
    ("method", "mode"),
    [("fads", "own"), ("fast", "own"), ("castle", "own"), ("least-loss", "own"), ("k-varp", "covered"),
     ("fads-varied", "covered"), ("iot-anonymization", "covered")],
)  # fmt: skip
def test_the_mode_of_a_policy_that_names_none(method, mode):
    promise = read_tuple_promise(read_policy(policy(method=method)))
    assert (promise.missing, promise.asks_for_filled) == (mode, False)
    for named in MODES:
        promise = read_tuple_promise(read_policy(policy(method=method, missing=named)))
        assert (promise.missing, promise.asks_for_filled) == (named, named in ("covered", "paper"))


def test_a_release_that_was_filled_breaks_what_a_policy_without_the_key_promises():
    run = Run(records(160, people=80, missing=0.25), missing="covered")
    del run.promised["anonymize"]["missing"]
    assert {"wrong-nulls", "filled-cells"} <= set(codes(run.audit()))
    assert "wrong-nulls" in run.codes(trace=False)
    run.promised["anonymize"]["method"] = "k-varp"
    report = run.audit()
    assert report.ok
    assert set(codes(report)) == {"filled-cells"}


# ---- own


def test_a_null_that_was_filled(own):
    rows = group_that(own, lacking={"tree"})
    for row in rows:
        own.release[row]["tree"] = "*"
    found = codes(own.audit())
    assert set(found) == {"wrong-nulls", "filled-cells"}
    assert list(found["wrong-nulls"]) == rows


def test_a_value_that_was_hidden(own):
    rows = group_that(own, lacking=set())
    for row in rows:
        own.release[row]["age"] = None
    assert {code: list(found) for code, found in codes(own.audit()).items()} == {"wrong-nulls": rows}


@pytest.mark.parametrize("lacking", [set(), {"tree"}])
def test_patterns_without_the_trace(own, lacking):
    """No record with the group's own shop lacks what its rows now lack."""
    rows = group_that(own, lacking=lacking)
    for row in rows:
        own.release[row]["shop"] = record_of(own, row)["shop"] = "shop 9"
    assert own.audit(trace=False).ok
    for row in rows:
        own.release[row]["tree"] = "*" if lacking else None
    assert own.codes(trace=False) == {"wrong-nulls": tuple(rows)}


def test_patterns_without_the_trace_are_counted():
    truth = [*map(person, "ab"), *(person(name, tree=None) for name in "cd")]
    release = [*[shown()] * 3, shown(tree=False)]
    given = table(release, RELEASE), table(truth, TRUTH), None
    assert codes(audit(*given, policy(k=1))) == {"wrong-nulls": (2,)}
    release = [shown(), shown(), shown(tree=False), shown(tree=False), shown(), shown(tree=False)]
    given = table(release, RELEASE), *given[1:]
    assert codes(audit(*given, policy(k=1))) == {"more-often-than-truth": (4, 5)}


def by_hand(release, truth, *, groups=(0, 0, 0, 0), reused=(), k=3, **rules):
    """A release of rows in the order of their records; every cluster is published with its last record."""
    everyone = {number: [at for at, group in enumerate(groups) if group == number] for number in groups}
    formed = {number: [at for at in rows if at not in reused] for number, rows in everyone.items()}
    trace = [
        {"row": at, "verdict": "released", "group": group, "k": k, "reused": at in reused,
         "delay": 0 if at in reused else formed[group][-1] - at, "event": at if at in reused else formed[group][-1],
         "carriers": [len({truth[one]["id"] for one in formed[group] if truth[one][name] is not None})
                      for name in ("age", "tree")]}
        for at, group in enumerate(groups)
    ]  # fmt: skip
    order = sorted(range(len(groups)), key=lambda at: (trace[at]["event"], at))
    shown, decided = [release[at] for at in order], [trace[at] for at in order]
    given = table(shown, RELEASE), table(truth, TRUTH), table(decided, TRACE)
    return audit(*given, policy(k=k, **rules))


def person(name, *, age=5, tree="ash", ill="gout"):
    return {"id": name, "age": age, "tree": tree, "ill": ill, "shop": "s", "ts": 0}


def shown(*, age=True, tree=True, ill="gout"):
    return {"age": {"lo": 5, "hi": 6} if age else None, "tree": "ash" if tree else None, "ill": ill, "shop": "s"}


def test_too_few_people_of_a_pattern_in_a_larger_cluster():
    """Four people, of whom one lacks the tree: the cluster has k people, but not k of each pattern."""
    truth = [*map(person, "abc"), person("d", tree=None)]
    assert set(codes(by_hand([shown()] * 4, truth))) == {"wrong-nulls", "filled-cells"}
    kept = codes(by_hand([*[shown()] * 3, shown(tree=False)], truth))
    assert {"below-k", "group-differs"} <= set(kept)
    assert kept["below-k"] == kept["group-differs"] == (3,)
    assert {"wrong-nulls"} == set(codes(by_hand([shown(tree=False)] * 4, truth)))


def test_a_pattern_of_people_who_are_counted_once():
    """Two people of one pattern with three rows are two people."""
    truth = [*map(person, "abc"), *(person(name, tree=None) for name in ("d", "e", "e"))]
    rows = [*[shown()] * 3, *[shown(tree=False)] * 3]
    found = codes(by_hand(rows, truth, groups=(0, 0, 0, 1, 1, 1)))
    assert found["below-k"] == found["group-below-k"] == (3, 4, 5)
    truth[5]["id"] = "f"
    assert codes(by_hand(rows, truth, groups=(0, 0, 0, 1, 1, 1))) == {}


@pytest.mark.parametrize("keeps", [True, False])
def test_reuse_by_a_row_of_another_pattern(keeps):
    truth = [*map(person, "abc"), person("d", tree=None)]
    rows = [*[shown()] * 3, shown(tree=not keeps)]
    found = codes(by_hand(rows, truth, reused={3}))
    assert set(found) == ({"below-k", "group-differs"} if keeps else {"wrong-nulls", "filled-cells"})
    assert {at for rows in found.values() for at in rows} == {3}
    truth[3]["tree"] = "ash"
    assert codes(by_hand([shown()] * 4, truth, reused={3})) == {}


# ---- values that are published unchanged


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("value", ["cough", ""])
@pytest.mark.parametrize(("name", "code"), [("ill", "wrong-sensitive"), ("shop", "wrong-carry")])
def test_a_sensitive_or_carried_value_that_was_filled_or_hidden(mode, value, name, code):
    truth = [*map(person, "abcd")]
    truth[1][name] = None
    rows = [{**shown(), name: record[name]} for record in truth]
    assert codes(by_hand(rows, truth, missing=mode)) == {}
    rows[1][name] = value
    report = by_hand(rows, truth, missing=mode)
    assert codes(report)[code] == (1,)
    assert report.metrics["filled_cells"] == {"cells": 1, "at_root": 0, "columns": {name: 1}}
    assert ("filled-cells" in codes(report)) == (mode in ("own", "hidden"))
    rows[1][name], rows[2][name] = None, None
    report = by_hand(rows, truth, missing=mode)
    assert codes(report) == {code: (2,)}
    assert report.metrics["filled_cells"] == {"cells": 0, "at_root": 0, "columns": {}}


# ---- cells that were filled


@pytest.mark.parametrize("mode", MODES)
def test_filled_cells_are_counted(mode):
    truth = [*map(person, "ab"), person("c", tree=None), person("d", age=None, tree=None), person("e", age=None)]
    rows = [shown()] * 5
    report = by_hand(rows, truth, groups=(0,) * 5, missing=mode, min_carriers=1)
    assert report.metrics["filled_cells"] == {"cells": 4, "at_root": 0, "columns": {"age": 2, "tree": 2}}
    words = "4 cells show something although the record has nothing there: 2 in age, 2 in tree"
    assert words in report.text()
    warned = [found for found in report.warnings if found.code == "filled-cells"]
    assert [(found.count, found.sentence.startswith(words)) for found in warned] == (
        [] if mode in ("covered", "paper") else [(4, True)]
    )


def test_nothing_is_filled_where_every_row_keeps_its_nulls(own):
    report = own.audit()
    assert report.metrics["filled_cells"] == {"cells": 0, "at_root": 0, "columns": {}}
    assert "0 cells show something" in report.text()
    for partial in ({"trace": False}, {"truth": False}):
        partly = own.audit(**partial)
        assert "filled_cells" not in partly.metrics
        assert any("cells that show" in sentence.lower() for sentence in partly.not_checked)


@pytest.mark.parametrize("mode", ["own", "hidden", "covered"])
def test_suppressed_rows_at_the_root_fill_cells_that_the_policy_asks_for(mode):
    run = Run(records(80, people=20, missing=0.3), k=4, deadline=6, root=True, missing=mode)
    suppressed = [entry["row"] for entry in run.trace if entry["verdict"] == "suppressed"]
    filled = sum(len(lacks(run.truth[row])) for row in suppressed)
    if mode == "covered":  # as a default, which asks for nothing
        del run.promised["anonymize"]["missing"]
        run.promised["anonymize"]["method"] = "k-varp"
    report = run.audit()
    metric = report.metrics["filled_cells"]
    assert metric["at_root"] == filled > 0
    assert f"; {filled} of them in suppressed rows published at the root" in report.text()
    warned = [found.count for found in report.warnings if found.code == "filled-cells"]
    assert warned == ([metric["cells"] - filled] if mode == "covered" else [])
    assert (metric["cells"] == filled) == (mode != "covered")


def test_a_row_at_the_root_that_keeps_its_nulls():
    """Its pattern of missing values would show."""
    run = Run(records(80, people=20, missing=0.3), k=4, deadline=6, root=True, missing="own")
    row = next(at for at in range(len(run.release)) if run.trace[run.entry_of(at)]["verdict"] == "suppressed"
               and lacks(record_of(run, at)) == {"tree"})  # fmt: skip
    run.release[row]["tree"] = None
    assert codes(run.audit()) == {"root-row": (row,)}
    assert "below-k" in codes(run.audit(trace=False))


def test_the_old_key_is_refused():
    with pytest.raises(PolicyError, match="nulls: is called missing now"):
        read_tuple_promise(read_policy(policy(nulls="paper")))


def test_rows_of_no_record_fill_nothing(own):
    own.truth.append(person("last", age=None, tree=None))
    own.trace[own.entry_of(group_that(own, lacking=set())[0])]["row"] = 10_000
    report = own.audit()
    assert "trace-row" in codes(report)
    assert report.metrics["filled_cells"]["cells"] == 0


@pytest.mark.parametrize(
    ("mode", "words"), [("own", "stays missing"), ("hidden", "everyone behind"), ("covered", "enough people")]
)
def test_the_page_of_evidence_says_it(mode, words):
    run = Run(records(80, people=60, missing=0.2), missing=mode)
    given = table(run.release, RELEASE), table(run.truth, TRUTH)
    page = report_evidence(*given, run.promised, trace=table(run.trace, TRACE), targets=20).html()
    filled = run.audit().metrics["filled_cells"]["cells"]
    assert (filled > 0) == (mode == "covered")
    assert f"{filled} cells show something although the record has nothing there" in page
    assert words in page


# ---- all decisions, right or wrong

K = 2
ROWS = st.lists(
    st.tuples(
        st.integers(0, 3), st.booleans(), st.booleans(), st.integers(0, 2), st.booleans(), st.booleans(),
        st.integers(1, 2),
    ),
    max_size=10,
)  # fmt: skip


@tries(300)
@given(ROWS, st.sampled_from(MODES))
def test_exactly_the_wrong_rows_are_convicted(rows, mode):
    """Rows are (person, has age, has tree, cluster, shows age, shows tree, upper end of the range)."""
    truth = [
        person(f"p{who}", age=5 if has_age else None, tree="ash" if has_tree else None)
        for who, has_age, has_tree, *_ in rows
    ]
    release = [
        {**shown(age=age, tree=tree), **({"age": {"lo": 5, "hi": 5 + high}} if age else {})}
        for *_, age, tree, high in rows
    ]
    last = max(range(len(rows)), default=0)
    trace = [
        {"row": at, "verdict": "released", "group": row[3], "k": K, "reused": False, "delay": last - at, "event": last}
        for at, row in enumerate(rows)
    ]
    given = table(release, RELEASE), table(truth, TRUTH), table(trace, TRACE).drop_columns(["carriers"])
    report = audit(*given, policy(k=K, missing=mode, min_carriers=1))
    found = codes(report)

    filled = [(row[4] and not row[1]) + (row[5] and not row[2]) for row in rows]
    hides = [(row[1] and not row[4]) + (row[2] and not row[5]) for row in rows]
    odd = {"own": [a + b for a, b in zip(filled, hides, strict=True)], "hidden": filled, "covered": [0] * len(rows)}
    odd["paper"] = odd["own"]
    assert found.get("wrong-nulls", ()) == marked(odd[mode])

    vectors = [(age and high, tree) for *_, age, tree, high in rows]
    people = [len({rows[at][0] for at, other in enumerate(vectors) if other == mine}) for mine in vectors]
    assert found.get("below-k", ()) == marked([count < K for count in people])

    firsts = {}
    for row, vector in zip(rows, vectors, strict=True):
        firsts.setdefault(row[3], vector)
    if mode != "paper":
        differs = [firsts[row[3]] != vector for row, vector in zip(rows, vectors, strict=True)]
        assert found.get("group-differs", ()) == marked(differs)
    assert report.metrics["filled_cells"]["cells"] == sum(filled)
    assert ("filled-cells" in found) == (sum(filled) > 0 and mode in ("own", "hidden"))


# ---- releases of the publisher

GAPS = {
    "counted": {},
    "l-root": {"l": 2, "suppressed": "root"},
    "t": {"t": 0.6, "reference": 30},
    "max-share": {"max_share": 0.5},
    "timed": {**TIMED, "entropy_l": 1.5},
    "threads": {"k": 2, "deadline": 64, "reuse": 30, "threads": 2},
}
RULES = [
    (method, name)
    for method in ("fads", "fast", "castle", "least-loss")
    for name in GAPS
    if name != "threads" or method in ("fast", "least-loss")
]


@pytest.mark.parametrize(("method", "name"), RULES)
@pytest.mark.parametrize("seed", some_by_default(range(5), {0}))
def test_a_release_with_gaps_is_acquitted(method, name, seed):
    stream = people(150, seed=seed, missing=(0.1, 0.3, 0.6, 0.02, 0.9)[seed])
    case = tuple_case(method, "gaps", GAPS[name], stream, flat=False)
    anonymizer, releases = case.make(), []
    for batch in batches_of(stream, 40):
        anonymizer = case.make().restore(anonymizer.snapshot())
        releases.append(anonymizer.push_batch(batch))
    releases.append(anonymizer.flush())
    rows, trace = (pa.Table.from_batches([getattr(made, part) for made in releases]) for part in ("rows", "trace"))
    for evidence in ((stream, trace), (stream, None), (None, trace), (None, None)):
        report = audit(rows, *evidence, case.policy)
        assert set(codes(report)) <= {"no-known-value"}, report.text()
    suppressed = [entry["row"] for entry in trace.to_pylist() if entry["verdict"] == "suppressed"]
    dropped = stream.take(suppressed).to_pylist()
    lacking = sum(record[one] is None or record[one] != record[one] for record in dropped for one in QUASI)  # or NaN
    expected = lacking if "suppressed" in GAPS[name] else 0
    filled = audit(rows, stream, trace, case.policy).metrics["filled_cells"]
    assert filled["cells"] == filled["at_root"] == expected


def marked(rows):
    return tuple(at for at, is_marked in enumerate(rows) if is_marked)


def test_numbers_that_are_none_are_missing():
    """A column of floats has NaN where a value is missing."""
    truth = table([*map(person, "abc"), *(person(name, age=None) for name in "def")], TRUTH)
    ages = truth.column("age").cast("double").to_pylist()
    truth = truth.set_column(1, "age", pa.array([math.nan if age is None else age for age in ages]))
    release = table([*[shown()] * 3, *[shown(age=False)] * 3], RELEASE)
    assert audit(release, truth, None, policy()).ok
