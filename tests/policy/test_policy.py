"""Good policies: what is read, filled in, resolved, warned about and fingerprinted."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from shoal.errors import PolicyError
from shoal.hierarchies import Hierarchy
from shoal.models.z.target.target import KTarget
from shoal.policy import load_policy, parse_policy

SMALL = """
[stream]
person = "user"
time = "ts"
[source]
kind = "csv"
path = "visits.csv"
[anonymize]
method = "z-anonymity"
attribute = "site"
z = 20
window = "1h"
[sink]
kind = "parquet"
path = "released/"
"""
FULL = """
[stream]
person = "user"
time = "ts"
carry = ["country"]
[source]
kind = "csv"
path = ["a.csv.gz", "b/"]
compression = "gzip"
delimiter = ";"
header = ["ts", "user", "site", "app", "country"]
max_record_bytes = 100000
types = {country = "string", key = "int64"}
[anonymize]
method = "z-anonymity"
z = 20
window = 3600
on_private = "generalize"
hierarchy = {kind = "suffix"}
lateness = "5min"
max_gap = "12h"
rotation = "30min"
[anonymize.attribute]
site = {}
app = {z = 5, window = "2h", on_private = "blank"}
[sink]
kind = "jsonl"
path = "out.jsonl.gz"
[trace]
path = "private/trace.parquet"
[dead_letters]
path = "private/dead.jsonl"
keep_rows = true
[checkpoint]
path = "private/state/"
every = 10000
"""


@pytest.fixture
def load(tmp_path):
    def load_text(text: str):
        (tmp_path / "policy.toml").write_text(text, encoding="utf-8")
        return load_policy(tmp_path / "policy.toml")

    return load_text


def changed(base: dict, path: str, value: object) -> dict:
    """A copy with one key set; a value of None takes the key away."""
    table = copy.deepcopy(base)
    *steps, last = path.split("/")
    inner = table
    for step in steps:
        inner = inner.setdefault(step, {})
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return table


def test_a_small_policy_has_the_defaults(load, tmp_path):
    policy = load(SMALL)
    assert policy.stream.person == "user"
    assert policy.stream.carry == ()
    assert [place.path for place in policy.source.path] == [tmp_path / "visits.csv"]
    assert policy.source.compression == "auto"
    assert (policy.source.delimiter, policy.source.header, policy.source.types) == (",", None, {})
    column = policy.anonymize.columns["site"]
    assert (column.z, column.window.ns, column.on_private) == (20, 3600 * 10**9, "drop")
    assert policy.anonymize.rotation is None
    assert policy.sink.path.text == "released/"
    assert policy.sink.path.is_folder
    assert policy.sink.compression == "none"
    assert policy.dead_letters.path.path == tmp_path / "released.dead.jsonl"
    assert not policy.dead_letters.keep_rows
    assert policy.trace is None
    assert policy.checkpoint is None
    assert policy.warnings == ()
    assert policy.hierarchies == {}
    assert policy.file == tmp_path / "policy.toml"


def test_a_full_policy(load, tmp_path):
    policy = load(FULL)
    assert policy.stream.carry == ("country",)
    assert [place.text for place in policy.source.path] == ["a.csv.gz", "b/"]
    assert policy.source.types == {"country": "string", "key": "int64"}
    site, app = policy.anonymize.columns["site"], policy.anonymize.columns["app"]
    assert (site.z, site.window.ns, site.on_private) == (20, 3600 * 10**9, "generalize")
    assert (app.z, app.window.ns, app.on_private) == (5, 7200 * 10**9, "blank")
    assert policy.hierarchies == {"site": Hierarchy.by_suffix()}
    assert policy.anonymize.is_table
    assert policy.sink.compression == "gzip"
    assert policy.trace.path.path == tmp_path / "private/trace.parquet"
    assert policy.dead_letters.keep_rows
    assert policy.checkpoint.every == 10_000
    assert policy.warnings == ()


def test_a_target_replaces_z(load):
    policy = load(SMALL.replace("z = 20", "target = {k = 2, p = 0.95, floor = 9, start = 30}"))
    assert policy.parameters()["target"] == KTarget(k=2, p=0.95, floor=9, start=30)
    assert policy.anonymize.columns["site"].z == 9
    assert load(SMALL.replace("z = 20", "target = {k = 3, p = 1}")).anonymize.columns["site"].z == 3


@pytest.mark.parametrize(
    ("target", "rest", "sentence"),
    [
        ("{k = 2}", "", "[anonymize.target] p: is missing; give the share"),
        ("{p = 0.9}", "", "[anonymize.target] k: is missing; give how many people"),
        ("{k = 1, p = 0.9}", "", "[anonymize.target] k: must be at least 2"),
        ("{k = 2, p = 0.0}", "", "[anonymize.target] p: must be"),
        ("{k = 2, p = 1.5}", "", "[anonymize.target] p: must be"),
        ("{k = 2, p = 0.9, start = 1}", "", "[anonymize.target] start: must be at least 2, as z is"),
        ("{k = 2, p = 0.9, flor = 5}", "", '[anonymize.target] flor: unknown key; did you mean "floor"?'),
        ("{k = 2, p = 0.9}", 'combine = "k"\nk = 3', "[anonymize] combine: promises what a target aims at"),
        (
            "{k = 2, p = 0.9}",
            'on_private = "generalize"\nhierarchy = {kind = "suffix"}',
            "[anonymize] on_private: must",
        ),
        ("3", "", "[anonymize] target: must be a table"),
    ],
)
def test_a_target_that_cannot_be(load, target, rest, sentence):
    with pytest.raises(PolicyError) as caught:
        load(SMALL.replace("z = 20", f"target = {target}\n{rest}"))
    assert [problem[: len(sentence)] for problem in caught.value.problems] == [sentence]


def test_combinations_are_passed_on(load):
    policy = load(SMALL.replace("z = 20", 'z = 20\ncombine = "k"\nk = 5'))
    assert policy.warnings == ()
    assert policy.parameters().items() >= {"combine": "k", "k": 5}.items()
    with pytest.raises(PolicyError) as caught:
        load(SMALL.replace("z = 20", 'z = 20\ncombine = "kk"\nk = 1'))
    assert [problem.split(";")[0] for problem in caught.value.problems] == [
        '[anonymize] combine: must be "k"',
        "[anonymize] k: must be at least 2",
    ]


def test_parameters_of_the_anonymizer(load):
    assert load(SMALL).parameters() == {
        "person": "user", "time": "ts", "carry": (), "attribute": "site", "z": 20, "window": "1h",
        "on_private": "drop", "lateness": "0s", "max_gap": "24h", "rotation": None,
    }  # fmt: skip
    full = load(FULL).parameters()
    assert full["attribute"] == {
        "site": {
            "z": 20, "window": 3600, "on_private": "generalize", "hierarchy": Hierarchy.by_suffix(),
            "residual": "strict",
        },
        "app": {"z": 5, "window": "2h", "on_private": "blank"},
    }  # fmt: skip
    assert "z" not in full


def test_sections_cannot_be_changed(load):
    policy = load(SMALL)
    with pytest.raises(ValidationError):
        policy.stream.person = "other"
    with pytest.raises(AttributeError):
        policy.sink = None


def test_a_byte_order_mark_and_windows_lines(tmp_path):
    (tmp_path / "p.toml").write_bytes(b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())
    assert load_policy(tmp_path / "p.toml").stream.time == "ts"


def base_table() -> dict:
    return {
        "stream": {"person": "user", "time": "ts"},
        "source": {"kind": "csv", "path": "visits.csv"},
        "anonymize": {"method": "z-anonymity", "attribute": "site", "z": 20, "window": "1h"},
        "sink": {"kind": "parquet", "path": "released/"},
    }


def test_tables_are_taken_as_well(tmp_path):
    policy = parse_policy(base_table(), folder=tmp_path)
    assert policy.source.path[0].path == tmp_path / "visits.csv"
    assert policy.file is None
    assert parse_policy(base_table()).source.path[0].path == Path.cwd() / "visits.csv"


def test_standard_input_and_output(tmp_path):
    table = changed(changed(base_table(), "source/path", "-"), "sink/path", "-")
    policy = parse_policy(table, folder=tmp_path)
    assert policy.source.path[0].is_standard
    assert policy.sink.path.is_standard
    assert not policy.sink.path.is_folder
    assert policy.dead_letters.path.path == Path.cwd() / "shoal.dead.jsonl"
    assert parse_policy(changed(table, "source/kind", "parquet"), folder=tmp_path)


def test_an_existing_folder_is_a_folder(tmp_path):
    (tmp_path / "released").mkdir()
    policy = parse_policy(changed(base_table(), "sink/path", "released"), folder=tmp_path)
    assert policy.sink.path.is_folder
    assert policy.dead_letters.path.path == tmp_path / "released.dead.jsonl"


@pytest.mark.parametrize(
    ("path", "given", "compression"),
    [
        ("x.csv", None, "none"),
        ("x.csv.gz", None, "gzip"),
        ("x.csv.zst", None, "zstd"),
        ("x.gz", "none", "none"),
    ],
)
def test_compression_of_the_sink(path, given, compression):
    table = changed(base_table(), "sink", {"kind": "csv", "path": path})
    if given:
        table["sink"]["compression"] = given
    assert parse_policy(table).sink.compression == compression


def test_checkpoint_interval():
    table = changed(base_table(), "checkpoint", {"path": "state"})
    assert parse_policy(table).checkpoint.every.ns == 30 * 10**9
    assert parse_policy(changed(table, "checkpoint/every", "2min")).checkpoint.every.ns == 120 * 10**9
    assert parse_policy(changed(table, "checkpoint/every", 5)).checkpoint.every == 5


# ---- warnings


def test_a_rotation_longer_than_the_window_warns():
    (warning,) = parse_policy(changed(base_table(), "anonymize/rotation", "2h")).warnings
    assert "rotation is longer than the window" in warning
    assert "no longer applies" in warning
    assert "linked" in warning
    assert parse_policy(changed(base_table(), "anonymize/rotation", "1h")).warnings == ()


def test_the_shortest_window_counts():
    table = changed(base_table(), "anonymize/attribute", {"site": {}, "app": {"window": "10min"}})
    assert parse_policy(changed(table, "anonymize/rotation", "30min")).warnings


def test_z_of_one_warns():
    (warning,) = parse_policy(changed(base_table(), "anonymize/z", 1)).warnings
    assert "releases everything" in warning
    assert "site" in warning


# ---- hierarchies


@pytest.fixture
def files(tmp_path):
    (tmp_path / "topics.csv").write_text("a.example;news;*\nb.example;news;*\n")
    (tmp_path / "topics.json").write_text(json.dumps({"*": {"news": ["a.example", "b.example"]}}))
    return tmp_path


NEWS = Hierarchy.from_nested({"*": {"news": ["a.example", "b.example"]}})


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        ({"kind": "csv", "path": "topics.csv"}, NEWS),
        ({"kind": "csv", "path": "topics.csv", "sep": ";", "header": False}, NEWS),
        ({"kind": "nested", "path": "topics.json"}, NEWS),
        ({"kind": "nested", "tree": {"*": {"news": ["a.example", "b.example"]}}}, NEWS),
        (
            {"kind": "nested", "tree": {"*": {"key": ["password"]}}},
            Hierarchy.from_nested({"*": {"key": ["password"]}}),
        ),
        ({"kind": "flat", "values": ["a", "b"]}, Hierarchy.flat(["a", "b"])),
        ({"kind": "flat", "values": ["a"], "root": "any"}, Hierarchy.flat(["a"], root="any")),
        ({"kind": "suffix"}, Hierarchy.by_suffix()),
        ({"kind": "suffix", "separator": "@"}, Hierarchy.by_suffix("@")),
        ({"kind": "prefix"}, Hierarchy.by_prefix()),
    ],
)
def test_kinds_of_hierarchies(files, described, expected):
    table = changed(base_table(), "anonymize/on_private", "generalize")
    policy = parse_policy(changed(table, "anonymize/hierarchy", described), folder=files)
    assert policy.hierarchies == {"site": expected}


def test_a_column_may_have_its_own_hierarchy(files):
    attribute = {
        "site": {"on_private": "generalize"},
        "app": {"on_private": "generalize", "hierarchy": {"kind": "prefix"}},
        "city": {},
    }
    table = changed(base_table(), "anonymize/attribute", attribute)
    policy = parse_policy(changed(table, "anonymize/hierarchy", {"kind": "suffix"}), folder=files)
    assert policy.hierarchies == {"site": Hierarchy.by_suffix(), "app": Hierarchy.by_prefix()}


# ---- fingerprints


def test_layout_does_not_change_the_fingerprint(load, tmp_path):
    other = "\n".join(["# a comment", *SMALL.splitlines()]).replace('"1h"', "3600  # seconds")
    assert load(other).fingerprint() == load(SMALL).fingerprint()
    table = changed(base_table(), "anonymize/on_private", "drop")
    elsewhere = parse_policy(table, folder=tmp_path / "elsewhere")
    assert elsewhere.fingerprint() == load(SMALL).fingerprint()
    assert len(elsewhere.fingerprint()) == 64


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("stream/person", "who"),
        ("stream/carry", ["country"]),
        ("source/path", "other.csv"),
        ("source/types", {"a": "bool"}),
        ("anonymize/z", 21),
        ("anonymize/window", "61min"),
        ("anonymize/on_private", "blank"),
        ("anonymize/rotation", "1h"),
        ("anonymize/attribute", {"site": {"z": 3}}),
        ("anonymize", {**base_table()["anonymize"], "combine": "k", "k": 5}),
        ("sink/path", "other/"),
        ("dead_letters/keep_rows", True),
        ("trace/path", "trace"),
        ("checkpoint/path", "state"),
    ],
)
def test_settings_change_the_fingerprint(path, value):
    assert parse_policy(changed(base_table(), path, value)).fingerprint() != parse_policy(base_table()).fingerprint()


def test_what_a_hierarchy_holds_counts_not_how_it_is_described(files):
    table = changed(base_table(), "anonymize/on_private", "generalize")

    def fingerprint(described: dict) -> str:
        return parse_policy(changed(table, "anonymize/hierarchy", described), folder=files).fingerprint()

    first = fingerprint({"kind": "csv", "path": "topics.csv"})
    assert fingerprint({"kind": "nested", "path": "topics.json"}) == first
    (files / "topics.csv").write_text("b.example;news;*\na.example;news;*\n")
    assert fingerprint({"kind": "csv", "path": "topics.csv"}) == first
    (files / "topics.csv").write_text("a.example;news;*\nc.example;news;*\n")
    assert fingerprint({"kind": "csv", "path": "topics.csv"}) != first


def test_a_fingerprint_of_some_sections():
    table = changed(base_table(), "checkpoint", {"path": "state", "every": 5})
    other = changed(table, "checkpoint/every", 6)
    sections = ("stream", "source", "anonymize", "sink")
    assert parse_policy(table).fingerprint() != parse_policy(other).fingerprint()
    assert parse_policy(table).fingerprint(*sections) == parse_policy(other).fingerprint(*sections)


def test_a_policy_error_is_a_value_error():
    with pytest.raises(ValueError, match="is missing"):
        parse_policy({})
    assert issubclass(PolicyError, ValueError)
