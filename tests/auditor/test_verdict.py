"""The verdict of an audit: what it says, of what, and when it cannot say anything."""

from __future__ import annotations

import json
import os
import stat

import numpy as np
import pyarrow as pa
import pytest

from shoal.auditor import audit, audit_table
from shoal.auditor.attacks.outcome import CLEAR_GAIN, Attack, AttackReport, Question, Rate
from shoal.auditor.checks import CHECKS, advice_of, check
from shoal.auditor.findings import AuditReport, Finding, Severity
from shoal.auditor.listing import entries
from shoal.auditor.policy import Policy
from shoal.auditor.report.audit_text import text_of
from shoal.auditor.verdict import State, gap_of, verdict_of
from shoal.errors import OutputError, PolicyError
from tests.auditor.report.test_evidence_report import parsed

PEOPLE = {"smallest_k": 7, "counted_in_classes": "people", "released_rows": 70}
ROWS = PEOPLE | {"counted_in_classes": "rows (at least as many as people)"}


def finding(code="below-k", severity=Severity.VIOLATION, count=3, sentence="It is so.", rows=()):
    return Finding(code, severity, count, sentence, rows)


def report(method="fads", findings=(), not_checked=(), metrics=PEOPLE, **more):
    return AuditReport(method, tuple(findings), tuple(not_checked), metrics, **more)


def attack(rate=0.5, n=1000, guess=0.1, name="prosecutor"):
    return Attack(name, Question.SINGLING_OUT, "wants", "knows", Rate.of(np.full(n, rate)), guess=guess, control=0.0)


# ---- the sentence


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (report(), "promise kept; the smallest crowd has 7 people"),
        (report(metrics=PEOPLE | {"smallest_k": 1}), "promise kept; the smallest crowd has 1 person"),
        (report(not_checked=["A gap."]), "promise kept in what could be checked; the smallest crowd has 7 people"),
        (report(metrics=PEOPLE | {"smallest_k": None, "released_rows": 0}), "promise kept; nothing was published"),
        (report(metrics=ROWS, counts_rows=True), "promise kept for rows, not people; the smallest crowd has 7 rows"),
        (report(findings=[finding()]), "promise broken: below-k (3); the smallest crowd has 7 people"),
        (
            report(findings=[finding()], metrics=ROWS, counts_rows=True),
            "promise broken for rows, not people: below-k (3); the smallest crowd has 7 rows",
        ),
        (
            report(metrics=ROWS),
            "promise could not be checked: rows, not people, were counted: it takes the input and the trace to know "
            "whose rows they are; the smallest crowd has 7 rows",
        ),
        (
            report(findings=[finding("unchecked-promise")]),
            "promise could not be checked: the evidence that was given does not show it; "
            "the smallest crowd has 7 people",
        ),
        (report("z-anonymity", metrics={"smallest_crowd": {"a": 9, "b": 4, "c": None}}),
         "promise kept; the smallest crowd has 4 people"),
        (report("z-anonymity", metrics={}),
         "promise could not be checked: it takes the input to count the people behind values"),
        (report("flexible-k", metrics=PEOPLE | {"groups": {"smallest": 4}}),
         "promise kept; the smallest crowd has 4 people"),
        (report("table", findings=[finding("no-rows", Severity.WARNING)], metrics={}, counts_rows=True),
         "promise could not be checked: the release has no row"),
    ],
)  # fmt: skip
def test_the_sentence(given, sentence):
    assert given.verdict.sentence == sentence
    assert given.text().splitlines()[0] == f"audit of {given.method}: {sentence}"
    assert sentence in repr(given)


def test_the_worst_comes_first():
    found = [
        finding("spelling", count=4),
        finding("below-k", count=2),
        finding("late"),
        finding("raw-identifier"),
        finding("unchecked-promise"),
        finding("pending", Severity.INFO),
        finding("filled-cells", Severity.WARNING),
    ]
    verdict = verdict_of(report(findings=found, not_checked=["A gap."]), AttackReport("fads", (attack(),), {}))
    assert verdict.sentence.startswith("promise broken: raw-identifier (3), below-k (2), spelling (4) and 1 more")
    assert [one.code or one.kind for one in verdict.reasons] == [
        "raw-identifier", "below-k", "spelling", "late", "unchecked-promise", "prosecutor", "filled-cells",
        "not checked", "pending",
    ]  # fmt: skip


def test_findings_of_one_code_are_added_up():
    found = [finding(count=2, sentence="One."), finding(count=3, sentence="Another.")]
    assert "below-k (5);" in report(findings=found).verdict.sentence


# ---- attacks


def test_kept_never_stands_alone_next_to_an_attack_that_gains():
    attacks = AttackReport("fads", (attack(0.3, name="weak"), attack(0.6, 400, name="strong"), attack(0.1)), {})
    verdict = verdict_of(report(), attacks)
    assert verdict.sentence == (
        "promise kept; the smallest crowd has 7 people, but the attack “strong” is right about 60.0% of 400 people, "
        "where guessing is right about 10.0%"
    )
    assert (verdict.tried, verdict.gaining) == (3, 2)
    facts = verdict.to_dict()["strongest_attack"]
    assert (facts["name"], facts["people"], round(facts["gain"], 6)) == ("strong", 400, 0.5)
    assert [one.code for one in verdict.reasons] == ["strong", "weak"]


def test_success_on_one_person_is_not_the_strongest():
    attacks = AttackReport("fads", (attack(1.0, 1, guess=0.0, name="lucky"), attack(0.6, name="sure")), {})
    verdict = verdict_of(report(), attacks)
    assert [one.code for one in verdict.reasons] == ["sure", "lucky"]
    assert verdict.reasons[1].sentence.startswith("Right about 100.0% of 1 person, guessing about 0.0%.")


def test_a_gain_below_the_threshold_is_none():
    surely = attack(n=10**7, rate=0.1 + CLEAR_GAIN + 0.001)
    hardly = attack(n=10**7, rate=0.1 + CLEAR_GAIN - 0.001)
    assert verdict_of(report(), AttackReport("fads", (surely,), {})).strongest is surely
    assert verdict_of(report(), AttackReport("fads", (hardly,), {})).sentence.endswith("7 people")


# ---- the main promise of every family, audited

STREAM = {"person": "user", "time": "ts"}
AGE = {"age": {"kind": "numeric", "low": 0, "high": 90}}
AGES = pa.table({"age": ["[5, 5]"] * 4})
TRUTH = pa.table({"ts": [1, 2, 3, 4], "user": ["a", "b", "a", "b"], "site": ["x"] * 4, "age": [5] * 4})


def policy(**rules):
    return {"stream": STREAM, "anonymize": rules}


@pytest.mark.parametrize(
    ("rules", "release", "truth", "why"),
    [
        ({"method": "z-anonymity", "attribute": "site", "z": 2, "window": "1h"},
         pa.table({"ts": [2], "user": ["0" * 32], "site": ["x"]}), None, "it takes the input"),
        ({"method": "least-loss", "k": 2, "deadline": 9, "quasi": AGE}, AGES, None, "rows, not"),
        ({"method": "least-loss", "k": 2, "deadline": 9, "quasi": AGE}, AGES, TRUTH, "rows, not"),
        ({"method": "flexible-k", "k": 2, "quasi": AGE}, AGES, None, "rows, not"),
        ({"method": "k^m", "item": "site", "k": 2, "m": 1, "generalize": {"balanced": 2}},
         pa.table({"items": [["x"], ["x"]]}), None, "sets of labels"),
        ({"method": "k-varp", "k": 2, "deadline": 9, "quasi": AGE, "missing": "paper"}, AGES,
         None, 'nothing is promised with missing = "paper"'),
        ({"method": "least-loss", "k": 1, "deadline": 9, "quasi": AGE}, AGES, None,
         "k = 1 promises nothing"),
    ],
)  # fmt: skip
def test_without_evidence_the_main_promise_could_not_be_checked(rules, release, truth, why):
    found = audit(release, truth, policy=policy(**rules))
    assert found.violations == (), found.text()
    assert found.verdict.state is State.UNCHECKED
    assert found.verdict.why.startswith(why)


def test_with_the_truth_values_of_z_and_sets_are_counted():
    rules = {"method": "z-anonymity", "attribute": "site", "z": 2, "window": "1h"}
    release = pa.table({"ts": [2], "user": ["0" * 32], "site": ["x"]})
    assert audit(release, TRUTH, policy=policy(**rules)).verdict.state is State.KEPT
    sets = {"method": "k^m", "item": "site", "k": 2, "m": 1}
    release = pa.table({"items": [["x"], ["x"]]})
    assert audit(release, TRUTH, policy=policy(**sets)).verdict.state is State.KEPT


@pytest.mark.parametrize(
    ("rules", "has_truth", "has_gap"),
    [
        ({"method": "k^m-apriori", "k": 3}, False, False),
        ({"method": "k^m", "k": 3}, False, True),
        ({"method": "k^m", "k": 3, "sigma": 1}, False, False),
        ({"method": "k^m", "k": [3, 2], "sigma": 1}, False, True),
        ({"method": "k^m", "k": [3, 2]}, True, False),
        ({"method": "k^m", "k": [1, 1]}, True, True),
        ({"method": "fads", "k": 1, "l": 2}, True, False),
        ({"method": "z-anonymity", "z": 1}, True, True),
        ({"method": "z-anonymity", "z": 1, "combine": "k"}, True, False),
        ({"method": "iot-anonymization", "missing": "paper"}, True, False),
    ],
)
def test_what_a_policy_leaves_open(rules, has_truth, has_gap, tmp_path):
    assert bool(gap_of(Policy({"anonymize": rules}, tmp_path), has_truth=has_truth)) is has_gap


def test_a_table_is_kept_for_rows_or_people_and_never_without_a_promise():
    table = pa.table({"age": ["20-29"] * 3, "who": ["a", "b", "c"]})
    assert audit_table(table, quasi="age", k=3).verdict.sentence.startswith("promise kept for rows, not people")
    assert audit_table(table, quasi="age", k=3, person="who").verdict.sentence.startswith("promise kept; ")
    assert audit_table(table, quasi="age").verdict.why == "nothing is promised"
    assert audit_table(table.slice(0, 0), quasi="age", k=3).verdict.state is State.UNCHECKED


# ---- what to do


def test_every_code_has_advice():
    assert [one.code for one in entries() if not one.advice] == []


def test_what_a_check_declares_counts_for_its_family():
    def of_z(_):
        return 0

    before = dict(CHECKS)
    try:
        check("known", "Words.", advice="Of z.", families=("z",), by="value")(of_z)
        check("known", "Words.", advice="Of tuples.", families=("tuples",), by="class")(lambda _: 0)
        check("new", "Words.", advice="Of sets.", families=("sets",), by="none")(lambda _: 0)
        assert advice_of("known", "fads") == "Of tuples."
        assert advice_of("known", "z-anonymity") == "Of z."
        assert advice_of("new", "k^m") == advice_of("new", "z-anonymity") == "Of sets."
        assert advice_of("unknown", "fads") == ""
    finally:
        CHECKS.clear()
        CHECKS.update(before)


# ---- the text, the page, the notebook, JSON


def long_report():
    found = [finding(f"code-{number}", rows=(1, 2)) for number in range(9)]
    metrics = PEOPLE | {f"metric_{number}": number for number in range(30)}
    return report(findings=found, not_checked=["One gap.", "Another gap."], metrics=metrics)


@pytest.mark.parametrize("most", [4, 12, 25, 40])
def test_a_long_text_names_what_it_leaves_out(most):
    lines = text_of(long_report(), most).splitlines()
    assert len(lines) <= most
    assert lines[0] == text_of(long_report()).splitlines()[0]
    assert lines[-1].startswith("  not shown: ")
    assert "--all, --json, or --out report.html" in lines[-1]
    assert {*lines[:-1]} <= {*text_of(long_report()).splitlines()}


def test_a_short_text_is_whole():
    given = report(findings=[finding()])
    assert given.text(25) == given.text()
    assert "not shown" not in given.text()
    assert f"    what to do: {advice_of('below-k', 'fads')}" in given.text().splitlines()


def test_json_has_the_verdict_and_advice():
    found = json.loads(json.dumps(report(findings=[finding()]).to_dict()))
    assert found["verdict"]["state"] == "broken"
    assert found["verdict"]["sentence"].startswith("promise broken: below-k (3)")
    assert (found["verdict"]["counted"], found["verdict"]["smallest_crowd"]) == ("people", 7)
    assert found["findings"][0]["advice"] == advice_of("below-k", "fads") != ""
    assert [reason["code"] for reason in found["verdict"]["reasons"]] == ["below-k"]


def test_the_page_of_an_audit(tmp_path):
    hostile = report(findings=[finding(sentence="<script>x</script>")], not_checked=["A <b> gap."])
    path = tmp_path / "audit.html"
    path.write_text("older")
    hostile.report(path)
    page = path.read_text()
    seen = parsed(page).seen
    assert not {"script", "link", "img"} & seen
    assert "Promise broken: below-k (3)" in page
    assert "What to do: " in page
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    hostile.report(str(path))
    with pytest.raises(PolicyError, match=r"does not end in \.html"):
        hostile.report(tmp_path / "audit.pdf")
    with pytest.raises(OutputError, match="cannot be written"):
        hostile.report(tmp_path / "no" / "audit.html")


def test_the_page_does_not_follow_a_link(tmp_path):
    (tmp_path / "precious").write_text("as it was")
    (tmp_path / "audit.html").symlink_to(tmp_path / "precious")
    report().report(tmp_path / "audit.html")
    assert (tmp_path / "precious").read_text() == "as it was"


def test_the_notebook_shows_the_verdict():
    shown = long_report()._repr_html_()
    parsed(shown)
    assert "Promise broken: code-0 (3)" in shown
    assert "<summary>5 more</summary>" in shown
    assert "What to do" not in report()._repr_html_()
