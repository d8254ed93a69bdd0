"""Every snippet of README and docs runs, every command parses, every policy is valid TOML."""

from __future__ import annotations

import doctest
import gzip
import shlex
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest

import shoal
from shoal.cli.app import app
from tests.docs import walkthrough
from tests.docs.pages import FLAGS, PAGES, ROOT, blocks, commands, name_of
from tests.e2e import scene

WITH_EXAMPLES = [
    page
    for page in PAGES
    if ">>> " in page.read_text(encoding="utf-8") and name_of(page) != walkthrough.PAGE  # test_walkthrough runs it
]
SCRIPTS = [block for block in blocks("python") if ">>> " not in block.text and not block.text.startswith("# ")]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name_of)
def test_examples_of_a_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed, attempted = doctest.testfile(str(page), module_relative=False, optionflags=FLAGS, encoding="utf-8")
    assert attempted
    assert failed == 0


def test_readme_and_tutorial_have_examples():
    assert {ROOT / "README.md", ROOT / "docs" / "tutorial.md"} <= set(WITH_EXAMPLES)


def with_checkins():
    """A file in the form of SNAP's check-ins: two in New York, one elsewhere."""
    lines = ["1\t2010-05-01T10:00:00Z\t40.731\t-73.991\t7", "2\t2010-04-01T10:00:00Z\t40.76\t-73.98\t8"]
    lines += ["3\t2010-05-02T10:00:00Z\t30.26\t-97.74\t9"]
    with gzip.open("loc-gowalla_totalCheckins.txt.gz", "wt") as file:
        file.write("".join(f"{line}\n" for line in lines))
    return {}


def with_stream():
    """Check-ins of 60 people over 20 days."""
    rows = [
        {"user": f"u{person}", "time": 86_400 * day + person, "area": f"a{(person * day) % 5}"}
        for day in range(20)
        for person in range(60)
    ]
    return {"table": pa.Table.from_pylist(rows)}


def with_devices():
    """A list of devices."""
    head = "model,family,brand,os,country,region\n"
    rows = [
        "SM-G950F,Galaxy S,Samsung,Android,South Korea,Asia",
        "SM-N950F,Galaxy Note,Samsung,Android,South Korea,Asia",
    ]
    Path("devices.csv").write_text(head + "\n".join([*rows, "iPhone 6,iPhone,Apple,iOS,United States,America"]) + "\n")
    return {}


def with_baskets():
    """Sets of two months, and a tree of their items."""
    tree = shoal.Hierarchy.from_nested({"any": {"fruit": ["apple", "pear"], "bread": ["rye", "wheat"]}})
    january = [{"apple", "rye"}, {"pear", "rye"}, {"apple", "wheat"}, {"pear"}] * 10
    return {"shoal": shoal, "tree": tree, "january": january, "january_and_february": [*january, {"apple"}]}


def with_release():
    """A small release, its policy and its input."""
    ended = scene.shoal("demo", "--people", "200", "--events", "3000", "--z", "5", "--out", ".")
    assert ended.code == 0
    return {}


SETUPS = [
    ("docs/howto/choose-z.md", with_checkins),
    ("docs/howto/choose-z.md", with_stream),
    ("docs/howto/ontology.md", with_devices),
    ("docs/methods/k-m.md", with_baskets),
    ("docs/reference/audit.md", with_release),
]


def test_every_script_has_its_setup():
    assert [block.page for block in SCRIPTS] == [page for page, _ in SETUPS]


@pytest.mark.parametrize("number", range(len(SETUPS)), ids=[f"{page}: {setup.__name__}" for page, setup in SETUPS])
def test_a_script_runs(number, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    block, (_, setup) = SCRIPTS[number], SETUPS[number]
    exec(compile(block.text, block.page, "exec"), setup())


def test_the_script_that_cuts_checkins_to_a_city(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(SCRIPTS[0].text, SCRIPTS[0].page, "exec"), with_checkins())
    assert Path("checkins.csv").read_text().splitlines() == [
        "time,user,venue,area",
        '2010-04-01T10:00:00Z,2,8,"40.76,-73.98"',
        '2010-05-01T10:00:00Z,1,7,"40.74,-74.00"',
    ]


@pytest.mark.parametrize(("page", "command"), commands())
def test_a_command_parses(page, command):
    words = shlex.split(command)[1:]
    _, _, unused, _ = app.parse_known_args(words)
    assert unused == [], f"{page}: unknown option"


def test_commands_are_found():
    named = {command.split()[1] for _, command in commands()}
    assert {"run", "doctor", "audit", "report", "tune", "sanitize", "ontology"} <= named


@pytest.mark.parametrize("block", blocks("toml"), ids=lambda block: f"{block.page}: {block.text[:20]!r}")
def test_a_policy_is_valid_toml(block):
    assert tomllib.loads(block.text)
