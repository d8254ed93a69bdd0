"""`shoal ontology check` as a user calls it."""

from __future__ import annotations

import json

from tests.e2e.scene import shoal

TABLE = "model,brand,os\nS3,Samsung,Android\nP8,Huawei,Android\n5s,Apple,iOS\n"


def test_rdf_and_data(tmp_path):
    (tmp_path / "data.csv").write_text("device\nSamsung Galaxy S8\nNokia 8\n")
    ended = shoal("ontology", "check", "--values", tmp_path / "data.csv", "--column", "device")
    assert ended.code == 0
    assert "all 2 values of 'device' are known" in ended.out.decode()
    assert ended.out.endswith(b"nothing is wrong\n")


def test_a_table_and_unknown_values(tmp_path):
    (tmp_path / "list.csv").write_text(TABLE)
    (tmp_path / "data.csv").write_text("device\nS3\nX3\n")
    table = (tmp_path / "list.csv", "--value", "model", "--is-a", "brand", "--properties", "os")
    ended = shoal("ontology", "check", *table, "--values", tmp_path / "data.csv", "--column", "device", "--json")
    assert ended.code == 1
    content = json.loads(ended.out)
    assert not content["ok"]
    assert [finding["level"] for finding in content["findings"]].count("wrong") == 1
    assert "X3" not in ended.out.decode()


def test_broken_rdf_names_its_line(tmp_path):
    (tmp_path / "a.ttl").write_text("@prefix : <urn:x#> .\n:a :b .\n")
    ended = shoal("ontology", "check", tmp_path / "a.ttl")
    assert ended.code == 2
    assert "a.ttl: line 2: is not valid Turtle" in ended.err
    assert "Traceback" not in ended.err


def test_help_has_examples():
    ended = shoal("ontology", "check", "--help")
    assert ended.code == 0
    assert "shoal ontology check devices.ttl --values data.csv --column device" in ended.out.decode()
