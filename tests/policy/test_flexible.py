"""Policies with flexible k-anonymity: their settings, and the messages for wrong ones."""

from __future__ import annotations

import copy

import pytest

from shoal.crypto.keys import Secret
from shoal.errors import PolicyError
from shoal.hierarchies.ontology.ontology import Concepts
from shoal.pipeline.wiring import make_anonymizer
from shoal.policy.loading import parse_policy

PLACES = {"kind": "nested", "tree": {"city": {"centre": ["a", "b"], "village": ["c"]}}}
CELL = {"fewer_than": 50, "k": 9}
TABLE = {
    "stream": {"person": "maid", "time": "time", "carry": ["mbps"]},
    "source": {"kind": "csv", "path": "in.csv"},
    "anonymize": {
        "method": "flexible-k", "k": 4,
        "quasi": {
            "device": {"kind": "ontology", "ontology": {"kind": "devices"}},
            "place": {"kind": "categorical", "hierarchy": PLACES},
            "time": {"kind": "numeric", "low": "2026-03-02", "high": "2026-03-09", "grid": "1h"},
        },
        "density": {"place": {"village": 6}},
    },
    "sink": {"kind": "csv", "path": "out.csv"},
}  # fmt: skip


def changed(**own):
    table = copy.deepcopy(TABLE)
    table["anonymize"] |= own
    return table


def problems_of(table, folder):
    with pytest.raises(PolicyError) as caught:
        parse_policy(table, folder=folder)
    return caught.value.problems


def test_a_policy_makes_the_method(tmp_path):
    policy = parse_policy(TABLE, folder=tmp_path)
    assert isinstance(policy.hierarchies["device"], Concepts)
    made = make_anonymizer(policy, Secret(b"sixteen bytes at least"))
    parameters = made.guarantee.parameters
    assert (parameters["k"], parameters["density"]) == (4, {"place": {"village": 6}})
    assert parameters["compare"] is True
    assert made.output_schema.names == ["device", "place", "time", "mbps"]


def test_an_ontology_from_a_list(tmp_path):
    (tmp_path / "phones.csv").write_text("model,brand,os\nS3,Samsung,Android\n6s,Apple,iOS\n")
    described = {"kind": "table", "path": "phones.csv", "value": "model", "is_a": ["brand"], "properties": ["os"]}
    table = changed()
    table["anonymize"]["quasi"]["device"]["ontology"] = described
    concepts = parse_policy(table, folder=tmp_path).hierarchies["device"]
    assert concepts.name == "device"
    assert concepts.labels_above("S3") == ("Samsung", "Android")


def test_the_fingerprint_depends_on_the_content_of_an_ontology(tmp_path):
    described = {"kind": "table", "path": "phones.csv", "value": "model", "is_a": ["brand"]}
    table = changed()
    table["anonymize"]["quasi"]["device"]["ontology"] = described
    marks = []
    for text in ("model,brand\nS3,Samsung\n", "model,brand\nS3,LG\n", "model,brand\nS3,Samsung\n\n"):
        (tmp_path / "phones.csv").write_text(text)
        marks.append(parse_policy(table, folder=tmp_path).fingerprint("anonymize"))
    assert marks[0] == marks[2] != marks[1]


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"k": 1}, "[anonymize] k:"),
        ({"unknown": "drop"}, "[anonymize] unknown:"),
        ({"unknown": True}, "[anonymize] unknown:"),
        ({"k_s": 5}, "[anonymize] k_s: must be at most k, which is 4"),
        ({"k_s": 2, "p_sparse": 0.3}, "[anonymize] p_sparse: k_s is given"),
        ({"p_sparse": 2}, "[anonymize] p_sparse:"),
        ({"sparse": ["time"]}, '[anonymize] sparse: "time" is not a quasi-identifier with a hierarchy'),
        ({"sparse": "phone"}, '[anonymize] sparse: "phone" is not a quasi-identifier with a hierarchy'),
        ({"density": {"time": {"a": 3}}}, "[anonymize.density] time:"),
        ({"density": {"place": {"village": 1}}}, "[anonymize.density.place] village:"),
        ({"density_from_data": {"device": {"classes": [CELL]}}}, "[anonymize.density_from_data] device: is not a"),
        ({"density_from_data": {"place": {"classes": [{**CELL, "k": 4}]}}}, "density_from_data.place] classes: k of"),
        ({"density_from_data": {"place": {"classes": [{"k": 9}]}}}, "fewer_than, entry 1: is missing"),
        ({"density_from_data": {"place": 3}}, "[anonymize.density_from_data] place: must be a table"),
        ({"deadline": 5}, "[anonymize] deadline: unknown key"),
        ({"window": 0}, "[anonymize] window:"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(own, words, tmp_path):
    found = problems_of(changed(**own), tmp_path)
    assert any(words in problem for problem in found), found


def test_a_wrong_ontology_is_named_with_its_key(tmp_path):
    (tmp_path / "broken.ttl").write_text(":a :b\n:c ;;;\n")
    table = changed()
    table["anonymize"]["quasi"]["device"]["ontology"] = {"kind": "rdf", "path": "broken.ttl"}
    (problem,) = problems_of(table, tmp_path)
    assert problem.startswith("[anonymize.quasi.device] ontology: ")
    assert "line" in problem
    table["anonymize"]["quasi"]["device"]["ontology"] = {"kind": "rdf", "path": "nowhere.ttl"}
    (problem,) = problems_of(table, tmp_path)
    assert "nowhere.ttl" in problem
    table["anonymize"]["quasi"]["device"]["ontology"] = {"kind": "rdfs", "path": "nowhere.ttl"}
    assert any("ontology" in problem for problem in problems_of(table, tmp_path))


def test_an_unknown_label_of_density_is_reported(tmp_path):
    policy = parse_policy(changed(density={"place": {"moon": 3}}), folder=tmp_path)
    with pytest.raises(PolicyError, match="no label 'moon'"):
        make_anonymizer(policy, Secret(b"sixteen bytes at least"))


def test_density_from_data_reaches_the_method_and_the_fingerprint(tmp_path):
    rule = {"level": 1, "classes": [CELL]}
    table = changed(density_from_data={"place": rule})
    del table["anonymize"]["density"]
    policy = parse_policy(table, folder=tmp_path)
    made = make_anonymizer(policy, Secret(b"sixteen bytes at least"))
    assert made.guarantee.parameters["density_from_data"] == {"place": rule}
    marks = {policy.fingerprint("anonymize")}
    rule["classes"] = [{**CELL, "k": 10}]
    marks.add(parse_policy(table, folder=tmp_path).fingerprint("anonymize"))
    del table["anonymize"]["density_from_data"]
    marks.add(parse_policy(table, folder=tmp_path).fingerprint("anonymize"))
    assert len(marks) == 3


def test_a_level_below_the_leaves_is_reported(tmp_path):
    table = changed(density_from_data={"place": {"level": 9, "classes": [CELL]}})
    del table["anonymize"]["density"]
    with pytest.raises(PolicyError, match="must be at most"):
        make_anonymizer(parse_policy(table, folder=tmp_path), Secret(b"sixteen bytes at least"))


def test_two_is_warned_of(tmp_path):
    policy = parse_policy(changed(k_s=2, root=True), folder=tmp_path)
    assert len(policy.warnings) == 2
