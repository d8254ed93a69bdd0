"""Values that a hierarchy or an ontology does not list: publisher and auditor agree, and a wrong label is convicted."""

from __future__ import annotations

import pyarrow as pa
import pytest

import shoal
from shoal import Categorical, FlexibleK, Hierarchy, Ontology, Schema
from shoal.auditor.flexible.promise import WithUnknown
from shoal.auditor.flexible.promise import accept_unknown as accepting
from shoal.auditor.hierarchies.hierarchy import Tree
from shoal.auditor.policy import read_policy
from shoal.errors import PolicyError
from shoal.hierarchies.unknown import concepts_with_unknown, tree_with_unknown, unknown_label
from tests.auditor.flexible.naive import Run, records

CASES = [
    # values, class above all of them, what the label of unlisted values is called
    (["S3", "P8"], "phone", "unknown"),
    (["S3", "Unknown"], "phone", "unknown"),
    (["S3", "unknown"], "phone", "unknown 2"),
    (["S3", "P8"], "unknown", "unknown 2"),
    (["unknown", "unknown 2"], "phone", "unknown 3"),
    (["unknown", "unknown 3"], "phone", "unknown 2"),
]
"""Both sides must choose the same label."""


@pytest.mark.parametrize(("values", "above", "label"), CASES)
def test_both_sides_call_it_the_same(values, above, label):
    tree = Hierarchy.from_nested({"any": {above: values}})
    assert unknown_label(tree) == label
    grown = tree_with_unknown(tree)
    assert grown.path(label) == (label, "any")
    assert set(grown.labels) == {*tree.labels, label}
    assert [grown.path(value) for value in values] == [tree.path(value) for value in values]
    parents = {"any": None, above: "any", **dict.fromkeys(values, above)}
    mine = WithUnknown(Tree(parents))
    assert mine.label == label
    assert [mine.path(value) for value in values] == [(value, above, "any") for value in values]
    for stranger in ("S4", above, "any", "", label):
        assert mine.path(stranger) == (label, "any")


@pytest.mark.parametrize(("values", "above", "label"), CASES)
def test_an_ontology_gets_one_value_more(values, above, label):
    rows = [{"model": value, "kind": above, "os": "Android"} for value in values]
    concepts = Ontology.from_table(rows, value="model", is_a=["kind"], properties=["os"]).attribute("model")
    grown = concepts_with_unknown(concepts)
    assert unknown_label(concepts) == label == grown.values[-1]
    assert grown.labels_above(label) == ()
    assert grown.values[:-1] == concepts.values
    for value in values:
        assert grown.labels_above(value) == concepts.labels_above(value)
    assert grown.tree().path(label) == (label, "any model")
    assert grown.covered("Android") == concepts.covered("Android")


def test_below_a_single_label_there_is_no_room():
    tree = Tree({"any": None})
    assert accepting(tree) is tree


def published(values, promised, **options):
    """What the method makes of one device a person, and what the auditor says of it."""
    models = [{"model": "S3", "os": "Android"}, {"model": "P8", "os": "Android"}, {"model": "unknown", "os": "iOS"}]
    schema = Schema(person="maid", quasi=[Categorical("place", Hierarchy.flat(["a", "b"])), Categorical("device")])
    ontology = Ontology.from_table(models, value="model", properties=["os"], attribute="device", tag="sparse")
    made = FlexibleK(schema, ontology, key=b"0123456789abcdef", k=3, **options)
    truth = pa.table({"maid": [f"m{n}" for n in range(len(values))], "place": ["a"] * len(values), "device": values})
    parts = [made.push_batch(truth), made.flush()]
    release = pa.Table.from_batches([part.rows for part in parts])
    trace = pa.Table.from_batches([part.trace for part in parts])
    return release, made, shoal.audit(release, truth, trace, {**promised, "anonymize": promised["anonymize"] | options})


@pytest.fixture
def promised(tmp_path):
    (tmp_path / "models.csv").write_text("model,os\nS3,Android\nP8,Android\nunknown,iOS\n")
    ontology = {"kind": "table", "path": str(tmp_path / "models.csv"), "value": "model", "properties": ["os"],
                "tag": "sparse"}  # fmt: skip
    quasi = {
        "place": {"kind": "categorical", "hierarchy": {"kind": "flat", "values": ["a", "b"]}},
        "device": {"kind": "ontology", "ontology": ontology},
    }
    return {"stream": {"person": "maid"}, "anonymize": {"method": "flexible-k", "k": 3, "quasi": quasi}}


@pytest.mark.parametrize("options", [{"k_s": 2}, {"p_sparse": 0.5}, {}, {"root": True}, {"sparse": []}])
def test_publisher_and_auditor_agree(promised, options):
    values = ["S3", "S3", "S3", "x1", "x2", "x3", "unknown", "unknown", "unknown", None, None, None]
    release, made, report = published(values, promised, **options)
    assert (report.violations, report.warnings) == ((), ()), report.text()
    assert report.metrics["k_s"] == made.metrics["k_s"]
    assert report.metrics["loss"]["all"] == pytest.approx(made.metrics["loss"])
    labels = release.column("device").to_pylist()
    # Unlisted values lose all under either label; where the root may be published, the tie goes to it.
    wanted, other = ("any device", "unknown 2") if "root" in options else ("unknown 2", "any device")
    assert (labels.count(wanted), labels.count(other)) == (3, 0)
    assert labels.count("unknown") == 3
    assert made.metrics["unknown_device"] == 3


def test_each_unlisted_value_counts_for_itself(promised):
    """Six people share the label, but each has a value that no one else has: all six are rare."""
    _, made, report = published([f"x{n}" for n in range(6)] + ["S3"] * 6, promised)
    assert made.frozen.shares["device"] == 0.5
    assert report.metrics["p_sparse"] == 0.5
    _, made, report = published(["x"] * 6 + ["S3"] * 6, promised)
    assert made.frozen.shares["device"] == report.metrics["p_sparse"] == 0.0


def test_a_word_that_is_not_known(promised):
    promised["anonymize"]["unknown"] = "drop"
    with pytest.raises(PolicyError, match="unknown"):
        shoal.audit(pa.table({"place": ["a"], "device": ["S3"]}), None, None, promised)
    assert read_policy(promised).section("anonymize")["unknown"] == "drop"


# ---- planted


@pytest.fixture
def run(tmp_path):
    truth = records(400, seed=2)
    for number in range(0, 400, 4):
        truth[number]["device"] = f"device {number % 3}"
    found = Run(tmp_path, truth, p_sparse=0.5)
    assert found.audit().ok
    return found


def rows_of(run, *, listed):
    return [at for at in range(len(run.release)) if run.record_of(at)["device"].startswith("device ") != listed]


def test_a_listed_value_under_unknown(run):
    row = rows_of(run, listed=True)[0]
    run.release[row]["device"] = "unknown"
    assert run.codes()["not-covered"] == (row,)


@pytest.mark.parametrize("label", ["Samsung", "Asia", "G 1", "any device"])
def test_an_unlisted_value_under_a_listed_label(run, label):
    row = rows_of(run, listed=False)[0]
    run.release[row]["device"] = label
    if label == "any device":
        assert "root-label" in run.codes()
        run.promised["anonymize"]["root"] = True
        assert "not-covered" not in run.codes()
    else:
        assert run.codes()["not-covered"] == (row,)


def test_an_unlisted_value_as_it_is(run):
    row = rows_of(run, listed=False)[0]
    run.release[row]["device"] = run.record_of(row)["device"]
    assert run.codes()["unknown-label"] == (row,)
    assert run.codes()["not-covered"] == (row,)


def test_a_label_of_the_ontology_is_no_value(run):
    """A record whose value is the name of a class is unlisted: the class itself does not cover it."""
    row = rows_of(run, listed=False)[0]
    run.record_of(row)["device"] = run.release[row]["device"] = "Samsung"
    assert run.codes()["not-covered"] == (row,)
    run.release[row]["device"] = "unknown"
    assert "not-covered" not in run.codes()


def test_too_few_people_behind_unknown(run):
    rows = [at for at in run.smallest_group() if run.release[at]["device"] == "unknown"] or next(
        [at for at in range(len(run.release)) if run.vector(at) == run.vector(one)]
        for one in rows_of(run, listed=False)
    )
    for at in rows:
        run.record_of(at)["maid"] = "m0"
    assert set(rows[:10]) <= set(run.codes()["below-k-s"])


def test_a_dead_letter_for_an_unlisted_value(run):
    left = set(range(len(run.truth))) - {entry["row"] for entry in run.trace}
    number = next(number for number in sorted(left) if number % 4 == 0)
    run.trace.append({"row": number, "verdict": "dead", "reason": "unknown:device"})
    assert run.codes() == {"dead-without-cause": ()}
    run.promised["anonymize"]["unknown"] = "refuse"
    assert "dead-without-cause" not in run.codes()
    assert "unusable-accepted" in run.codes()
