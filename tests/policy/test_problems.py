"""Bad policies: every problem is found at once and reported in one sentence of shoal."""

from __future__ import annotations

import os
import re

import pytest

from shoal.errors import PolicyError
from shoal.policy import load_policy, parse_policy
from shoal.policy.fields import Section
from tests.policy.test_policy import base_table, changed

LOANWORDS = re.compile(r"pydantic|Input should|validation error|extra_forbidden|\bdict\b|NoneType|Field required", re.I)


def problems_of(table: dict, **more) -> tuple[str, ...]:
    with pytest.raises(PolicyError) as caught:
        parse_policy(table, **more)
    for problem in caught.value.problems:
        assert not LOANWORDS.search(problem)
        assert "\n" not in problem
    return caught.value.problems


def test_a_misspelled_choice_does_not_hide_other_problems() -> None:
    """The section is checked as the nearest choice would be."""
    table = changed(base_table(), "anonymize/method", "z-anonymty")
    for path, value in (("anonymize/z", 0), ("source/kind", "cvs"), ("source/pth", "a.csv"), ("sink/kind", "parket")):
        table = changed(table, path, value)
    found = problems_of(table)
    for words in (
        '[anonymize] method: must be one of', "[anonymize] z: must be at least", "[source] kind: must be one of",
        '[source] pth: unknown key; did you mean "path"?', "[sink] kind: must be one of",
    ):  # fmt: skip
        assert sum(words in problem for problem in found) == 1


# One change to a good policy, and the one sentence it brings about.
ONE_PROBLEM = [
    ("stream/person", None, '[stream] person: is missing; name the column of persons'),
    ("stream/person", 3, "[stream] person: must be text"),
    ("stream/person", " ", "[stream] person: must not be empty"),
    ("stream/carry", "country", "[stream] carry: must be a list of texts"),
    ("stream/carry", ["a", "a"], "[stream] carry: names something twice"),
    ("stream/carry", ["a", ""], "[stream] carry, entry 2: must not be empty"),
    ("stream/persn", "user", '[stream] persn: unknown key; did you mean "person"?'),
    ("stream/zzz", 1, "[stream] zzz: unknown key; known are person, time, time_unit, carry, carry_identifying"),
    ("stream/carry_identifying", "yes", "[stream] carry_identifying: must be true or false"),
    ("stream", 3, "[stream]: must be a table"),
    ("stream", None, "[stream]: is missing"),
    ("sorce", {}, "[sorce]: unknown section; did you mean [source]?"),
    ("elsewhere", {}, "[elsewhere]: unknown section; known are [stream], [source]"),
    ("loose", 3, "loose: is outside any section"),
    ("source/kind", None, '[source] kind: is missing; it must be one of "csv", "jsonl", "parquet", "arrow"'),
    ("source/kind", "cvs", '"zeek", "access-log", "kafka", "redis", "nats", "rabbitmq", "mqtt", "http"; did you mean'),
    ("source/kind", ["csv"], "[source] kind: must be one of"),
    ("source/path", None, "[source] path: is missing"),
    ("source/path", [], "[source] path: names no file"),
    ("source/path", 3, "[source] path: must be a path as text"),
    ("source/path", ["a", ""], "[source] path: must not be empty"),
    ("source/path", ["a", "a"], "[source] path: names a file twice"),
    ("source/compression", "zip", 'must be one of "auto", "none", "gzip", "zstd"; did you mean "gzip"?'),
    ("source/delimiter", ";;", "[source] delimiter: must be one ASCII character"),
    ("source/delimiter", '"', "[source] delimiter: must be one ASCII character"),
    ("source/header", ["ts", "user"], '[anonymize] attribute: the column "site" is not in [source] header'),
    ("source/header", ["ts", "user", "site", "ts"], "[source] header: names something twice"),
    ("source/header", "long", '[source] header: must be a list of names, such as ["a", "b"], or "short"'),
    ("source/header", ["ts", "user", "site", " "], "[source] header: must be a list of names"),
    ("source/nulls", "NA", '[source] nulls: must be a list of texts, such as ["a", "b"]'),
    ("source/nulls", ["NA", ""], "[source] nulls, entry 2: must not be empty"),
    ("source/nulls", ["?", "?"], "[source] nulls: names something twice"),
    ("source/nulls", [" ?"], "[source] nulls: has spaces around a word; leave them out"),
    ("source/nulls", {"a": [" ?"]}, "[source] nulls: has spaces around a word; leave them out"),
    ("source/nulls", {"": ["?"]}, "[source] nulls: must be a list of words, or a table such as"),
    ("source/max_record_bytes", 0, "[source] max_record_bytes: must be at least 1"),
    ("source/max_record_bytes", 2**40, "[source] max_record_bytes: must be at most"),
    ("source/types", {"a b": "int"}, '[source.types] "a b": must be one of "int64"'),
    ("source/types", ["a"], "[source] types: must be a table"),
    ("anonymize/method", "z-anonymty", '"z-anonymity", "least-loss", "fads", "fads-varied", "fast", '),
    ("anonymize/method", "z-anonymty", 'did you mean "z-anonymity"?'),
    ("stream/time", None, "[stream] time: is missing; name the column of times"),
    ("anonymize/attribute", None, "[anonymize] attribute: is missing; name the column"),
    ("anonymize/attribute", {}, "[anonymize] attribute: names no column"),
    ("anonymize/attribute", "", "[anonymize] attribute: must not be empty"),
    ("anonymize/attribute", ["site"], "[anonymize] attribute: must be the name of a column, or a table"),
    ("anonymize/attribute", {"site": 3}, "[anonymize.attribute] site: must be a table"),
    ("anonymize/attribute", {"a.b": {"zz": 3}}, '[anonymize.attribute."a.b"] zz: unknown key; did you'),
    ("anonymize/attribute", {"z": {"z": 0}}, "[anonymize.attribute.z] z: must be at least 1"),
    ("anonymize/z", None, "[anonymize] z: is missing; give the number of people"),
    ("anonymize/combine", "k", "[anonymize] k: is missing; give how many people must share"),
    ("anonymize/k", 5, '[anonymize] combine: is missing; k goes with combine = "k"'),
    ("anonymize/target", {"k": 2, "p": 0.9}, "[anonymize] z: cannot be combined with a target"),
    ("anonymize/z", 0, "[anonymize] z: must be at least 1"),
    ("anonymize/z", 2**31, "[anonymize] z: must be at most 2147483647"),
    ("anonymize/z", 1.0, "[anonymize] z: must be a whole number"),
    ("anonymize/z", "20", "[anonymize] z: must be a whole number"),
    ("anonymize/z", True, "[anonymize] z: must be a whole number"),
    ("anonymize/window", None, "[anonymize] window: is missing; give how far back"),
    ("anonymize/window", "0s", "[anonymize] window: must be longer than 0"),
    ("anonymize/window", "1 fortnight", "[anonymize] window: not a duration"),
    ("anonymize/window", True, "[anonymize] window: not a duration"),
    ("anonymize/window", -1, "[anonymize] window: a duration cannot be negative"),
    ("anonymize/on_private", "hide", '[anonymize] on_private: must be one of "drop", "blank", "generalize"'),
    ("anonymize/on_private", "generalize", '[anonymize] hierarchy: is missing; on_private'),
    ("anonymize/hierarchy", {"kind": "suffix"}, '[anonymize] hierarchy: is used only with on_private'),
    ("anonymize/residual", "loose", '[anonymize] residual: is used only with on_private'),
    ("anonymize/lateness", "-5s", "[anonymize] lateness: not a duration"),
    ("anonymize/max_gap", 0, "[anonymize] max_gap: must be longer than 0"),
    ("anonymize/seed", 0, "[anonymize] seed: unknown key"),
    ("sink/kind", "CSV", '"arrow", "kafka", "redis", "nats", "rabbitmq", "mqtt"; did you mean "csv"?'),
    ("sink/path", ["a", "b"], "[sink] path: must be a path as text"),
    ("sink/delimiter", ";", "[sink] delimiter: is only for csv"),
    ("sink/compression", "auto", '[sink] compression: must be one of "none", "gzip", "zstd"'),
    ("trace/path", "-", "[trace] path: must be a file"),
    ("trace/path", "traces/", "[trace] path: must be a file"),
    ("trace", {}, "[trace] path: is missing"),
    ("dead_letters/keep_rows", "yes", "[dead_letters] keep_rows: must be true or false"),
    ("checkpoint", {"path": "-"}, "[checkpoint] path: must be a path"),
    ("checkpoint", {"path": "s", "every": 0}, "[checkpoint] every: must be at least 1 row"),
    ("checkpoint", {"path": "s", "every": 1.5}, "[checkpoint] every: must be a duration such as"),
    ("checkpoint", {"path": "s", "every": "0s"}, "[checkpoint] every: must be longer than 0"),
    ("checkpoint", {"path": "s", "every": True}, "[checkpoint] every: must be a duration such as"),
    # columns with two roles
    ("stream/time", "user", '[stream] time: the column "user" is already [stream] person'),
    ("stream/carry", ["user"], '[stream] carry: the column "user" is already [stream] person'),
    ("stream/carry", ["site"], '[anonymize] attribute: the column "site" is already [stream] carry'),
    ("anonymize/attribute", "ts", '[anonymize] attribute: the column "ts" is already [stream] time'),
    # files with two uses
    ("sink/path", "visits.csv", "[sink] path: is the same place as [source] path"),
    ("sink/path", "./x/../visits.csv", "[sink] path: is the same place as [source] path"),
    ("trace/path", "visits.csv", "[trace] path: is the same place as [source] path"),
    ("trace/path", "released/trace", "[trace] path: is in the folder of [sink] path"),
    ("dead_letters/path", "released", "[dead_letters] path: is the same place as [sink] path"),
    ("checkpoint/path", "released/state", "[checkpoint] path: is in the folder of [sink] path"),
    ("source/path", "*.dead.jsonl", "[dead_letters] path (by default released.dead.jsonl): is among"),
    # secrets
    ("anonymize/key", "abc", "[anonymize] key: secrets do not belong in a policy"),
    ("source/api-key", "abc", "[source] api-key: secrets do not belong in a policy"),
    ("sinkPassword", "abc", "SHOAL_KEY_FILE"),
    ("secrets", {"a": "abc"}, "SHOAL_KEY_FILE"),
    ("anonymize/attribute", {"site": {"secret": "abc"}}, "[anonymize.attribute.site] secret: secrets do not"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "sentence"), ONE_PROBLEM)
def test_one_problem(path, value, sentence, tmp_path):
    (problem,) = problems_of(changed(base_table(), path, value), folder=tmp_path)
    assert sentence in problem
    assert "abc" not in problem


def generalizing(hierarchy: object) -> dict:
    return changed(changed(base_table(), "anonymize/on_private", "generalize"), "anonymize/hierarchy", hierarchy)


@pytest.mark.parametrize(
    ("hierarchy", "sentence"),
    [
        (5, "[anonymize] hierarchy: must be a table"),
        ({}, '[anonymize.hierarchy] kind: must be one of "csv", "nested", "flat", "suffix", "prefix"'),
        ({"kind": "sufix"}, 'did you mean "suffix"?'),
        ({"kind": "suffix", "sep": "."}, "[anonymize.hierarchy] sep: unknown key; did you mean"),
        ({"kind": "suffix", "separator": ""}, "[anonymize.hierarchy] separator: must be one ASCII"),
        ({"kind": "csv"}, "[anonymize.hierarchy] path: is missing"),
        ({"kind": "csv", "path": "none.csv"}, "[anonymize] hierarchy: none.csv: cannot be read"),
        ({"kind": "csv", "path": "bad.csv"}, "[anonymize] hierarchy: bad.csv: line 2: the label"),
        (
            {"kind": "csv", "path": "bad.csv", "header": 1},
            "[anonymize.hierarchy] header: must be true or false",
        ),
        ({"kind": "flat", "values": "a"}, "[anonymize.hierarchy] values: must be a list"),
        ({"kind": "flat", "values": ["*"]}, "[anonymize] hierarchy: the label '*' appears in two places"),
        ({"kind": "nested"}, "[anonymize] hierarchy: give either a tree or the path"),
        ({"kind": "nested", "tree": {"a": {}}, "path": "x"}, "[anonymize] hierarchy: give either a tree or"),
        ({"kind": "nested", "tree": {}}, "[anonymize] hierarchy: a nested one has exactly one root"),
        ({"kind": "nested", "tree": {"a": {"a": {}}}}, "[anonymize] hierarchy: the label 'a' appears in two"),
        ({"kind": "nested", "path": "bad.csv"}, "[anonymize] hierarchy: bad.csv: line 1: is not JSON"),
        ({"kind": "nested", "path": "twice.json"}, "[anonymize] hierarchy: a label occurs twice"),
        ({"kind": "nested", "path": "list.json"}, "[anonymize] hierarchy: list.json: must hold an object"),
        ({"kind": "nested", "path": "deep.json"}, "[anonymize] hierarchy: deep.json: is nested too deeply"),
        ({"kind": "nested", "path": "latin.json"}, "[anonymize] hierarchy: latin.json: is not UTF-8"),
        ({"kind": "nested", "path": "none.json"}, "[anonymize] hierarchy: none.json: cannot be read"),
    ],
)
def test_one_problem_of_a_hierarchy(hierarchy, sentence, tmp_path):
    (tmp_path / "bad.csv").write_text("a;b;*\na;c;*\n")
    (tmp_path / "twice.json").write_text('{"*": {"a": null, "a": null}}')
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "latin.json").write_bytes(b'{"\xe4": {}}')
    (problem,) = problems_of(generalizing(hierarchy), folder=tmp_path)
    assert sentence in problem


def test_hierarchies_of_columns(tmp_path):
    attribute = {
        "site": {"on_private": "generalize", "hierarchy": {"kind": "csv", "path": "none.csv"}},
        "app": {"hierarchy": {"kind": "suffix"}},
        "city": {"on_private": "generalize"},
    }
    problems = problems_of(changed(base_table(), "anonymize/attribute", attribute), folder=tmp_path)
    assert len(problems) == 3
    text = "\n".join(problems)
    assert "[anonymize.attribute.site] hierarchy: none.csv: cannot be read" in text
    assert '[anonymize.attribute.app] hierarchy: is used only with on_private = "generalize"' in text
    assert "[anonymize.attribute.city] hierarchy: is missing" in text
    assert "here or for all attributes" in text


def test_a_hierarchy_no_column_uses(tmp_path):
    table = generalizing({"kind": "suffix"})
    table["anonymize"]["attribute"] = {"site": {"on_private": "drop"}}
    (problem,) = problems_of(table, folder=tmp_path)
    assert "[anonymize] hierarchy: is used only" in problem


@pytest.mark.parametrize(
    ("source", "sink", "is_refused"),
    [
        ("in/", "in/out.csv", True),
        ("in/", "in/deeper/", True),
        ("in", "in/out.csv", True),
        ("in/", "inside.csv", False),
        ("in/*.csv", "in/out.csv", True),
        ("in/*.csv", "in/", True),
        ("in/[ab].csv", "in/", True),
        ("in/*.csv", "in/out.parquet", False),
        ("in/*.csv", "in/released/out.csv", False),
        ("*/*.csv", "in/out.csv", True),
        ("in/**/*.csv", "in/a/b/out.csv", True),
        ("in/**/*.csv", "other/out.csv", False),
        ("link.csv", "in/a.csv", True),
        ("hard.csv", "in/a.csv", True),
        ("in/a.csv", "in/out.csv", False),
    ],
)
def test_output_that_would_become_input(tmp_path, source, sink, is_refused):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.csv").write_text("x")
    (tmp_path / "link.csv").symlink_to(tmp_path / "in/a.csv")
    os.link(tmp_path / "in/a.csv", tmp_path / "hard.csv")
    table = changed(base_table(), "source/path", source)
    table["sink"] = {"kind": "csv", "path": sink}
    table["dead_letters"] = {"path": "dead.jsonl"}
    if is_refused:
        assert "[sink] path: is " in problems_of(table, folder=tmp_path)[0]
    else:
        parse_policy(table, folder=tmp_path)


def test_a_file_called_like_a_pattern_is_a_file(tmp_path):
    (tmp_path / "a[1].csv").write_text("x")
    table = changed(base_table(), "source/path", "a[1].csv")
    table["sink"] = {"kind": "csv", "path": "a1.csv"}
    parse_policy(table, folder=tmp_path)


def test_the_policy_and_its_hierarchies_are_not_overwritten(tmp_path):
    (tmp_path / "tree.json").write_text('{"*": null}')
    table = generalizing({"kind": "nested", "path": "tree.json"})
    table["sink"] = {"kind": "csv", "path": "tree.json"}
    (problem,) = problems_of(table, folder=tmp_path)
    assert "[sink] path: is the same place as [anonymize.hierarchy] path" in problem
    (problem,) = problems_of(changed(base_table(), "trace/path", "p.toml"), folder=tmp_path, file=tmp_path / "p.toml")
    assert "[trace] path: is the same place as the policy" in problem


def test_standard_input_and_output_with_a_checkpoint(tmp_path):
    table = changed(base_table(), "checkpoint/path", "state")
    table["source"]["path"] = ["-"]
    table["sink"]["path"] = "-"
    first, second = problems_of(table, folder=tmp_path)
    assert "standard input cannot be read again" in first
    assert "standard output cannot be taken back" in second
    assert "published twice" in second


def test_keys_of_other_formats(tmp_path):
    table = base_table()
    table["source"] |= {"kind": "parquet", "delimiter": ",", "header": ["a"], "nulls": ["?"], "max_record_bytes": 5}
    text = "\n".join(problems_of(table, folder=tmp_path))
    assert "[source] delimiter: is only for csv" in text
    assert "[source] header: is only for csv" in text
    assert "[source] nulls: is only for csv" in text
    assert "[source] max_record_bytes: is only for csv and jsonl" in text


def test_all_problems_at_once(tmp_path):
    table = {
        "stream": {"person": "user", "tme": "ts", "carry": ["user", 3]},
        "source": {"kind": "parquet", "path": "out.csv", "delimiter": ";"},
        "anonymize": {
            "method": "z-anonymity",
            "attribute": {"site": {"z": 0, "hierarchy": {"kind": "csv", "path": "none.csv"}}},
            "windw": "1h",
            "password": "abc",
            "on_private": "generalize",
        },
        "sink": {"kind": "cvs", "path": "out.csv"},
        "checkpoint": {"path": "state", "every": "soon"},
        "tracer": {"path": "x"},
    }
    text = "\n".join(problems_of(table, folder=tmp_path))
    for sentence in (
        "[stream] time: is missing",
        '[stream] tme: unknown key; did you mean "time"?',
        "[stream] carry, entry 2: must be text",
        '[stream] carry: the column "user" is already [stream] person',
        "[source] delimiter: is only for csv",
        "[anonymize.attribute.site] z: must be at least 1",
        "[anonymize.attribute.site] window: is missing",
        "[anonymize.attribute.site] hierarchy: none.csv: cannot be read",
        '[anonymize] windw: unknown key; did you mean "window"?',
        "[anonymize] password: secrets do not belong",
        '[sink] kind: must be one of "csv"',
        "[sink] path: is the same place as [source] path",
        "[checkpoint] every: not a duration",
        "[tracer]: unknown section; did you mean [trace]?",
    ):
        assert sentence in text
    assert len(text.splitlines()) == 14


def test_an_empty_policy_lists_what_is_missing(tmp_path):
    assert len(problems_of({}, folder=tmp_path)) == 4


def test_a_problem_without_a_sentence_of_its_own_is_still_in_our_words():
    class Odd(Section):
        names: frozenset[str]

    settings, problems = Odd.read({"names": 3})
    assert settings is None
    assert problems == [(("names",), "has a value that cannot be used; see the reference of the policy file")]


# ---- the file itself


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'[stream]\nperson = "user"\ntime = \n', "p.toml: line 3, column 8: is not TOML (invalid value)"),
        (b'[stream]\nperson = "user\n', "p.toml: line 2, column"),
        (b"[stream", "p.toml: line 1, "),
        (b'[stream]\nperson = "a"\nperson = "b"\n', "p.toml: line 3, column"),
        (b'[stream]\nperson = """a\n\n', "p.toml: line 3, at the end: is not TOML"),
        (b'[stream]\nperson = "\xff"\n', "p.toml: line 2: is not UTF-8"),
        (b"a = " + b"[" * 100_000, "p.toml: is nested too deeply"),
    ],
)
def test_files_that_are_not_toml(tmp_path, content, sentence):
    (tmp_path / "p.toml").write_bytes(content)
    with pytest.raises(PolicyError) as caught:
        load_policy(tmp_path / "p.toml")
    assert sentence in str(caught.value)
    assert len(caught.value.problems) == 1


def test_no_file(tmp_path):
    with pytest.raises(PolicyError, match="does not exist"):
        load_policy(tmp_path / "none.toml")
    with pytest.raises(PolicyError, match="cannot be read"):
        load_policy(tmp_path)
