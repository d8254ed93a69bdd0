"""Every example runs and shows what it says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name):
    return runpy.run_path(str(EXAMPLES / name))["main"]()


def test_every_example_is_tested():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {"push_records.py", "generalize_hosts.py"}


def test_push_records(capsys):
    rows = run("push_records.py")
    assert [(row["ts"][11:16], row["site"]) for row in rows] == [("08:03", "news.example"), ("08:04", "news.example")]
    assert "ann" not in capsys.readouterr().out


@pytest.mark.filterwarnings("error")
def test_generalize_hosts():
    released = run("generalize_hosts.py")
    # the fourth person under blog.example is the first row that may leave, and only as that domain
    assert released.column("site").to_pylist() == ["blog.example", "blog.example", "example"]
    assert released.column("ts").to_pylist() == [30, 40, 50]
