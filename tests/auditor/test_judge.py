"""The way in: policies, files, the report and its numbers."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from shoal.auditor import audit
from shoal.errors import InputError, PolicyError
from tests.auditor.z.naive import HOUR, Publisher, policy, pseudonym, records, table

TOML = """
[stream]
person = "user"
time = "ts"
[source]
kind = "csv"
path = "visits.txt"
delimiter = ";"
[anonymize]
method = "z-anonymity"
attribute = "site"
z = 2
window = "1h"
on_private = "generalize"
hierarchy = {kind = "csv", path = "levels.csv"}
[sink]
kind = "parquet"
path = "released/"
"""


@pytest.fixture
def run(tmp_path):
    """A run on disk: a broken line in the truth, a release in parts, a trace."""
    (tmp_path / "policy.toml").write_text(TOML)
    (tmp_path / "levels.csv").write_text("a;news;*\nb;news;*\n")
    (tmp_path / "visits.txt").write_text("ts;user;site\n0;1;a\nbroken\n1;2;b\n2;3;a\n3;;a\n")
    stream = records([(0, "1", "a"), (None, None, None), (1, "2", "b"), (2, "3", "a"), (3, None, "a")])
    paths = {"site": lambda site: (site, "news", "*")}
    publisher = Publisher(z=2, window_s=HOUR, paths=paths).run(stream)
    (tmp_path / "released").mkdir()
    for number in range(len(publisher.released)):
        parquet.write_table(publisher.release_table.slice(number, 1), tmp_path / f"released/part-{number}.parquet")
    parquet.write_table(publisher.trace_table, tmp_path / "trace.parquet")
    return tmp_path


def test_a_run_on_disk(run):
    report = audit(run / "released", run / "visits.txt", run / "trace.parquet", run / "policy.toml")
    assert report.findings == ()
    assert report.not_checked == ()
    assert report.metrics["verdicts"] == {"in": 5, "released": 2, "suppressed": 1, "dead": 2, "undecided": 0}
    assert report.metrics["smallest_crowd"] == {"site": 2}
    assert report.metrics["released_people"] == 2
    assert report.metrics["people_never_released_share"] == pytest.approx(1 / 3)


def test_a_release_as_csv(run):
    csv.write_csv(parquet.read_table(run / "released"), run / "released.csv")
    assert audit(run / "released.csv", run / "visits.txt", run / "trace.parquet", run / "policy.toml").ok


def test_an_empty_release_is_accepted(run):
    (run / "nothing.jsonl").write_text("")
    report = audit(run / "nothing.jsonl", run / "visits.txt", policy=run / "policy.toml")
    assert report.ok
    assert report.metrics["released_rows"] == 0
    assert report.verdict.sentence == "promise kept in what could be checked; nothing was published"


def test_a_release_that_cannot_be_read_in_part(run):
    (run / "released.csv").write_text("ts,user,site\n1\n")
    report = audit(run / "released.csv", run / "visits.txt", policy=run / "policy.toml")
    assert [found.code for found in report.violations] == ["unreadable-row"]


def test_an_empty_truth_knows_no_row(run):
    (run / "visits.txt").write_text("")
    report = audit(run / "released", run / "visits.txt", policy=run / "policy.toml")
    assert [found.code for found in report.violations] == ["not-in-truth"]
    report = audit(run / "released", run / "visits.txt", run / "trace.parquet", run / "policy.toml")
    assert {found.code for found in report.violations} == {"trace-row", "not-in-truth"}


def test_an_empty_person_does_not_count():
    truth = pa.table({"ts": [0, 1], "user": ["", "u"], "site": ["s", "s"]})
    release = pa.table({"ts": [1], "user": ["0" * 32], "site": ["s"]})
    assert [found.code for found in audit(release, truth, policy=policy(z=2)).violations] == ["below-z"]


def test_a_truth_without_the_columns_is_an_input_error(run):
    with pytest.raises(InputError, match="truth: no column site"):
        audit(run / "released", table([{"ts": 1, "user": "u"}], ("ts", "user")), policy=run / "policy.toml")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "magic"}, "the auditor knows z-anonymity"),
        ({"z": 0}, "z: must be"),
        ({"z": True}, "z: must be"),
        ({"window": None}, "window"),
        ({"attribute": None}, "attribute"),
        ({"attribute": {}}, "attribute"),
        ({"on_private": "hide"}, "on_private"),
        ({"on_private": "generalize"}, "hierarchy of site"),
        ({"rotation": 0}, "rotation"),
    ],
)
def test_a_wrong_policy_is_a_policy_error(change, words):
    with pytest.raises(PolicyError, match=words):
        audit(table([]), policy=policy(**change) if "method" not in change else _with_method("magic"))


def _with_method(name):
    promised = policy()
    promised["anonymize"]["method"] = name
    return promised


def test_invalid_policies(tmp_path):
    (tmp_path / "broken.toml").write_text("[stream")
    for wrong in (None, 3, tmp_path / "broken.toml", tmp_path / "nowhere.toml", {"anonymize": 3}):
        with pytest.raises(PolicyError):
            audit(table([]), policy=wrong)
    for section in ("person", "time"):
        promised = policy()
        del promised["stream"][section]
        with pytest.raises(PolicyError, match=section):
            audit(table([]), policy=promised)
    without_window = policy()
    del without_window["anonymize"]["window"]
    with pytest.raises(PolicyError, match="window is missing"):
        audit(table([]), policy=without_window)


def test_carried_values_may_be_spelt_another_way():
    truth = pa.table({"ts": ["1"], "user": ["u"], "site": ["s"], "price": ["1.50"], "seen": ["2024-01-01"]})
    release = pa.table({"ts": [1], "user": ["0" * 32], "site": ["s"], "price": [1.5]})
    release = release.append_column("seen", pa.array([1704067200], pa.timestamp("s")))
    assert audit(release, truth, policy=policy(z=1, carry=["price", "seen"])).findings == ()


def test_epochs_last_as_long_as_the_shortest_window():
    truth = pa.table({"ts": [0, 15], "user": ["u", "u"], "site": ["s", "s"], "country": ["x", "x"]})
    release = pa.table({"ts": [0, 15], "user": ["0" * 32] * 2, "site": ["s", "s"], "country": ["x", "x"]})
    own = {"site": {"window": 20}, "country": {"window": 10}}
    report = audit(release, truth, policy=policy(z=1, attribute=own))
    assert [found.code for found in report.violations] == ["pseudonym-across-epochs"]


def test_each_attribute_has_its_own_z_and_window():
    rows = [(0, "u", "s", "x"), (10, "v", "s", "x"), (20, "w", "s", "x")]
    truth = table(records(rows, ("ts", "user", "site", "country")), ("ts", "user", "site", "country"))
    release = pa.table({"ts": [20], "user": ["0" * 32], "site": ["s"], "country": ["x"]})
    own = {"site": {"z": 3, "window": 20}, "country": {"z": 2, "window": 10}}
    assert audit(release, truth, policy=policy(attribute=own)).ok
    own = {"site": {"z": 3, "window": 20}, "country": {"z": 3, "window": 10}}
    assert [found.code for found in audit(release, truth, policy=policy(attribute=own)).violations] == ["below-z"]
    trace = pa.table({"row": [0, 1, 2], "verdict": ["suppressed"] * 2 + ["released"], "z.site": [3] * 3})
    assert [found.code for found in audit(release, truth, trace, policy(attribute=own)).violations] == ["below-z"]


class TestEpochs:
    def epochs(self, rows, shown, **how):
        """Metrics of an epoch in which `shown` lists (time, person, value) and `rows` the truth."""
        release = [{"ts": time, "user": pseudonym(user, time, HOUR), "site": site} for time, user, site in shown]
        truth = table(records(rows)) if rows is not None else None
        return audit(table(release), truth, policy=policy(z=1, **how)).metrics["epochs"]

    def test_shares_over_the_three_populations(self):
        rows = [(0, user, "a") for user in "uvwxy"] + [(1, "w", "b"), (HOUR, "z", "a")]
        shown = [(0, "u", "a"), (0, "v", "a"), (0, "w", "a"), (1, "w", "b")]
        shares = self.epochs(rows, shown)["shares"]
        # First hour: {a} twice, {a, b} once, nothing for x and y (and z, who is not active). Second: z alone.
        assert shares["1 (unique)"] == {"all": 1 / 12, "active": 2 / 6, "shown": 1 / 3}
        assert shares["2 or more"] == {"all": 11 / 12, "active": 4 / 6, "shown": 2 / 3}
        assert shares["3 or more"] == {"all": 9 / 12, "active": 0.0, "shown": 0.0}

    def test_the_worst_epochs_are_listed(self):
        rows = [(HOUR * hour, "u", "a") for hour in range(30)]
        epochs = self.epochs(rows, rows)
        assert epochs["count"] == 30
        assert len(epochs["worst"]) == 10
        assert epochs["worst"][0] == {"start_s": 0.0, "active": 1, "shown": 1, "unique_share": 1.0}

    def test_without_truth_only_the_shown_are_known(self):
        epochs = self.epochs(None, [(0, "u", "a"), (1, "v", "a")])
        assert epochs["shares"]["2 or more"] == {"all": None, "active": None, "shown": 1.0}

    def test_a_blank_row_has_the_empty_set(self):
        epochs = self.epochs([(0, "u", "a"), (0, "v", "a")], [(0, "u", None)], on_private="blank")
        assert epochs["shares"]["2 or more"] == {"all": 1.0, "active": 1.0, "shown": 0.0}

    def test_the_table_is_printed(self):
        rows = [(0, "u", "a"), (1, "v", "b")]
        release = [{"ts": time, "user": pseudonym(user, time, HOUR), "site": site} for time, user, site in rows]
        report = audit(table(release), table(records(rows)), policy=policy(z=1))
        assert "1 (unique)" in report.text()
        assert "most revealing epochs" in report.text()
        assert json.loads(json.dumps(report.to_dict()))["ok"]
        unknown = audit(table(release), policy=policy(z=1)).text()
        assert "–" in unknown


def test_a_released_row_with_a_repeated_name(tmp_path):
    """Readers disagree on what it means: one of them would find what the auditor passes over."""
    out = tmp_path / "out.jsonl"
    row = '{"ts": 2, "user": "00000000000000000000000000000000", "site": "a.example"}'
    policy = {
        "stream": {"person": "user", "time": "ts"},
        "anonymize": {"method": "z-anonymity", "attribute": "site", "z": 2, "window": "1h"},
    }
    for line, expected in ((row, []), ('{"site": "secret", ' + row[1:], ["unreadable-row"])):
        out.write_text(f"{row}\n{line}\n")
        assert [found.code for found in audit(out, policy=policy).violations] == expected


OF_ROWS = {
    "z-anonymity": ({"attribute": "site", "z": 2, "window": "1h"}, {"time": "ts"}),
    "least-loss": ({"k": 2, "deadline": 9, "quasi": {"age": {"kind": "numeric", "low": 0, "high": 9}}}, {}),
    "flexible-k": ({"k": 2, "quasi": {"age": {"kind": "numeric", "low": 0, "high": 9}}}, {}),
    "k^m": ({"item": "site", "k": 2, "m": 1, "generalize": {"balanced": 2}}, {}),
}


@pytest.mark.parametrize("method", OF_ROWS)
@pytest.mark.parametrize(("person", "has_column", "is_of_rows"), [
    ("row", False, True), ("row", True, False), ("user", False, False),
])  # fmt: skip
def test_the_verdict_says_if_rows_were_counted_and_not_people(method, person, has_column, is_of_rows):
    """A real column "row" names people; without the truth the word of the policy counts."""
    rules, stream = OF_ROWS[method]
    truth = pa.table({"ts": [1, 2], "user": ["a", "b"], "site": ["x", "x"], "age": [1, 2]})
    truth = truth.append_column("row", pa.array(["a", "b"])) if has_column else truth
    stated = {"stream": {"person": person, **stream}, "anonymize": {"method": method, **rules}}
    release = truth.select(["site"] if method == "k^m" else ["age"])
    for given in (truth, None) if not has_column else (truth,):
        report = audit(release, given, policy=stated)
        assert report.counts_rows is is_of_rows
        assert report.verdict.is_of_rows is is_of_rows
        if report.verdict.state != "could not be checked":
            assert (" for rows, not people" in report.verdict.sentence) is is_of_rows
        assert report.to_dict()["about"] == ("rows, not people" if is_of_rows else "people")
        assert str(report) == report.text()
        assert report.text().splitlines()[0] == f"audit of {method}: {report.verdict.sentence}"
        assert repr(report).startswith(f"<audit of {method}: {report.verdict.sentence}")


def test_a_table_without_persons_is_one_of_rows():
    table = pa.table({"who": ["a", "b"], "age": [1, 1]})
    for person, about in ((None, "rows, not people"), ("who", "people")):
        stated = {"table": {"quasi": ["age"], "k": 2, **({"person": person} if person else {})}}
        assert audit(table, policy=stated).to_dict()["about"] == about
