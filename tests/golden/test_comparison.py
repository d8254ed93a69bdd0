"""A deliberate change of behaviour is reported, case by case and part by part; nothing else is."""

from __future__ import annotations

import json

import pytest

from shoal.methods.release import Counts, Refusal
from shoal.methods.tuples.settings import TupleSettings
from shoal.methods.z.reader import explain
from tests.golden import comparison, digests
from tests.golden.comparison import Difference, described, differences, explains, line_of, mark
from tests.golden.fingerprints import agreed

WATCHED = ["sets counted", "stream fads-covered", "stream k-varp-paper", "stream z-drop"]
OLD = {"a": {"rows": "1", "trace": "2"}, "b": {"rows": "3"}}
NEW = {"a": {"rows": "1", "trace": "9"}, "c": {"rows": "4"}}


@pytest.fixture(name="command")
def _command(tmp_path, monkeypatch, capsys):
    """The command on a copy of the recorded digests of a few cases."""
    kept = {name: parts for name, parts in digests.recorded().items() if name in WATCHED}
    monkeypatch.setattr(digests, "GOLDEN", tmp_path / "digests.json")
    monkeypatch.setattr(digests, "REASONS", tmp_path / "changes.md")
    digests.GOLDEN.write_text(json.dumps(kept))
    digests.REASONS.write_text(f"{line_of({}, kept, 'Recorded first.')}\n")

    def run(*arguments):
        code = digests.main([*arguments], {name: digests.ENTRIES[name] for name in WATCHED})
        return code, capsys.readouterr().out.splitlines()

    return run


def reported(lines):
    """Parts that a report lists, by case."""
    found = {}
    for line in lines[:-1]:
        if not line.startswith(" "):
            case = line
        else:
            found.setdefault(case, set()).add(line.split("  ")[2].strip())
    return found


def test_nothing_differs_without_a_change(command):
    code, lines = command()
    assert (code, len(lines)) == (0, 1)
    assert lines[0].startswith("0 parts of 0 cases differ; compared ")


def test_a_changed_rule_is_reported_where_it_counts(command, monkeypatch):
    """How many people must carry a value matters only with covered, and only to tuples."""
    monkeypatch.setattr(TupleSettings, "carriers", property(lambda self: self.k))
    code, lines = command()
    found = reported(lines)
    assert code == 1
    assert {"rows", "trace", "outcome", "published"} <= found["stream fads-covered"]
    assert found.get("stream k-varp-paper", set()) <= {"guarantee", "audit", "audit of spoilt rows"}
    assert not found.keys() & {"sets counted", "stream z-drop"}


def test_a_lost_field_of_snapshots_is_reported(command, monkeypatch):
    """Restored runs then disagree with uninterrupted ones: that cannot even be recorded."""
    dumped = Counts.dump
    monkeypatch.setattr(Counts, "dump", lambda self: {**dumped(self), "released": 0})
    code, lines = command("z-drop")
    assert code == 1
    assert lines[-2].startswith("not to be recorded: stream z-drop: outcome: ")
    assert "but restored" in lines[-2]
    assert set(reported(lines[:-1])["stream z-drop"]) == {"outcome", "snapshot"}
    before = digests.GOLDEN.read_text()
    assert command("z-drop", "--write", "--because", "Snapshots are smaller.")[0] == 1
    assert digests.GOLDEN.read_text() == before


def test_another_sentence_of_a_dead_letter_is_reported_and_recorded_with_its_reason(command, monkeypatch):
    monkeypatch.setattr("shoal.methods.z.engine.explain", _explained_otherwise)
    code, lines = command()
    assert code == 1
    assert reported(lines) == {"stream z-drop": {"dead letter reasons"}}
    with pytest.raises(SystemExit):
        command("--write")
    assert command("--write", "--because", "Reasons are shorter.")[0] == 0
    assert digests.REASONS.read_text().endswith("` Reasons are shorter. (dead letter reasons of stream z-drop)\n")
    assert explains(digests.REASONS.read_text(), digests.recorded())
    assert command()[0] == 0


def _explained_otherwise(reason, settings):
    return Refusal(explain(reason, settings).column, "not usable")


def test_a_case_that_fails_is_reported_and_others_are_compared(command, monkeypatch):
    monkeypatch.setattr("shoal.methods.sets.result.published_order", None)
    code, lines = command("sets counted", "z-drop")
    assert code == 1
    assert reported(lines[:-1])["sets counted"] >= {comparison.FAILED, "published"}
    assert "stream z-drop" not in reported(lines[:-1])


# ---- by hand


def test_differences_of_any_kind_are_listed():
    found = differences(OLD, NEW)
    assert found == [
        Difference("a", "trace", "2", "9"), Difference("b", "rows", "3", None), Difference("c", "rows", None, "4"),
    ]  # fmt: skip
    lines = list(described(found))
    assert lines[0] == "a"
    assert lines[1].split() == ["trace", "2", "->", "9"]
    assert lines[3].endswith("3                 ->  no longer made")
    assert lines[5].split() == ["rows", "not", "recorded", "->", "4"]


def test_marks_add_up_in_any_order():
    """Two branches that change different cases can be merged: both lines count."""
    first, one, other = line_of({}, OLD, "First."), {**OLD, "a": {"rows": "7"}}, {**OLD, "b": {"rows": "8"}}
    both = {**one, "b": {"rows": "8"}}
    lines = [first, line_of(OLD, one, "One."), line_of(OLD, other, "Other.")]
    assert explains("\n".join(lines), both)
    assert explains("\n".join(reversed(lines)), both)
    assert not explains("\n".join(lines[:2]), both)
    assert not explains("\n".join([first, f"- `{mark(OLD, one)}` "]), one)  # no sentence


def test_ways_that_disagree_are_named():
    same = agreed({"restored": [1], "in threads": [1]})
    assert agreed({"uninterrupted": [1], "restored": [1]}) == same
    assert agreed({"uninterrupted": [1], "restored": [2]}).startswith(f"{same} but restored ")
