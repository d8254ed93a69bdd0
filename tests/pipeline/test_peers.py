"""Other packages next to shoal: a stub of anjana, the real pycanon, and what is said where one is missing."""

from __future__ import annotations

import random
import sys

import pyarrow as pa
import pytest

from shoal.errors import PolicyError, RunError
from shoal.pipeline.compare import compare_settings
from shoal.pipeline.peers import measure_by_pycanon

POLICY = """
[stream]
person = "who"
[source]
kind = "csv"
path = "people.csv"
[sink]
kind = "csv"
path = "released.csv"
[anonymize]
method = "fads"
k = 4
deadline = 100
sensitive = ["ill"]
[anonymize.quasi.age]
kind = "numeric"
low = 0
high = 64
[anonymize.quasi.job]
kind = "categorical"
hierarchy = { kind = "flat", values = ["nurse", "clerk"], root = "any job" }
"""
STUB = """
def k_anonymity(data, ident, quasi, k, suppressed, levels):
    assert ident == [] and suppressed == 5 and set(quasi) == {"age", "job"}
    found = data.iloc[1:].copy()
    for name in quasi:
        level = levels[name][1 if name == "age" else max(levels[name])]
        found[name] = found[name].map(dict(zip(levels[name][0].tolist(), level.tolist())))
    return found
"""


@pytest.fixture
def folder(tmp_path):
    draw = random.Random(1)
    rows = [f"p{at},{draw.randrange(2)},{draw.choice(['nurse', 'clerk'])},{draw.choice('abc')}" for at in range(60)]
    (tmp_path / "people.csv").write_text("\n".join(["who,age,job,ill", *rows, "x,99,nurse,a"]) + "\n")
    (tmp_path / "policy.toml").write_text(POLICY)
    return tmp_path


def test_anjana_is_a_row(folder, monkeypatch):
    package = folder / "stub" / "anjana"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "anonymity.py").write_text(STUB)
    monkeypatch.setenv("PYTHONPATH", str(folder / "stub"))
    workload = {"count": [{"name": "nurses", "where": {"job": "nurse"}}]}
    found = compare_settings(
        folder / "policy.toml", varied={"k": [4, 59, 60]}, targets=60, peers=["anjana"], workload=workload
    ).to_dict()["settings"]
    assert [one["setting"] for one in found] == [
        "fads k=4",
        "fads k=59",
        "fads k=60",
        *(f"anjana k={k}" for k in (4, 59, 60)),
    ]
    peers = {one["k"]: one for one in found if one["method"] == "anjana"}
    assert peers[4]["released"] == pytest.approx(
        59 / 60
    )  # the record outside the domain is no one's; one was suppressed
    assert peers[4]["smallest_class"] == 59  # ages 0 and 1 are in one part of 32, and jobs under their root
    assert [peers[k]["promise_kept"] for k in (4, 59, 60)] == [True, True, False]
    assert peers[4]["loss"] == pytest.approx((2 / 64 + 1) / 2)


def test_pycanon_measures_the_same(folder):
    found = compare_settings(folder / "policy.toml", targets=20, peers=["pycanon"])
    checked = found.to_dict()["settings"][0]["checked_by_pycanon"]
    assert checked["agree"]
    assert checked["pycanon"]["k"] >= 4
    assert "fads, by pycanon / shoal: k " in found.text()
    assert "by pycanon / shoal" in found.html()


def test_pycanon_finds_another_k_where_there_is_one():
    table = pa.table({"age": ["1", "1", "2"], "ill": ["a", "b", "a"]})
    found = measure_by_pycanon(table, ["age"], ["ill"], python=None)
    assert found == {"pycanon": {"k": 1, "l of ill": 1}, "shoal": {"k": 1, "l of ill": 1}, "agree": True}


def test_what_is_missing_or_cannot_be_compared(folder, monkeypatch):
    policy = folder / "policy.toml"
    with pytest.raises(PolicyError, match="other is not known; choose from anjana, pycanon"):
        compare_settings(policy, peers=["other"])
    monkeypatch.setenv("PYTHONPATH", "")
    if "anjana" not in sys.modules:
        with pytest.raises(
            RunError, match=r"anjana is not installed; install it \(pip install anjana\).*--peers-python"
        ):
            compare_settings(policy, peers=["anjana"])
    with pytest.raises(PolicyError, match="cannot be started"):
        compare_settings(policy, peers=["anjana"], peers_python=str(folder / "none"))
    policy.write_text('[anonymize]\nmethod = "k^m"\n')
    with pytest.raises(PolicyError, match=r"tables with k, l and t; k\^m is not"):
        compare_settings(policy, peers=["anjana"])
