"""`shoal sanitize` as a user calls it, killed at any moment, and what the policy says where it is wrong."""

from __future__ import annotations

import json
import os
import random
import threading
from pathlib import Path

import pytest

from shoal.errors import PolicyError
from shoal.policy import load_policy
from tests.e2e.scene import shoal
from tests.forked import Forked, start
from tests.sanitize.scene import lines

ROWS = lines(30, 200, 1)


def test_a_run_its_status_and_clearing(scene):
    scene.write("in-1.csv", ROWS)
    ended = shoal("sanitize", scene.policy, "--quiet")
    assert ended.code == 0
    text = ended.out.decode()
    assert "read                    200  new records" in text
    assert "external                200  rows published" in text
    assert "audit          passed" in text
    status = shoal("sanitize", scene.policy, "--status", "--json").summary
    assert status["internal"]["records"] == 600
    assert status["external"]["published"] == 200
    assert status["temporary"]["batches"] == 1
    cleared = shoal("sanitize", scene.policy, "--clear")
    assert cleared.out.decode() == "0 runs cleared: none has expired\n"
    assert shoal("sanitize", scene.policy, "--json").summary["read"] == 0


def test_carried_columns_that_single_people_out_are_refused(scene):
    """The person is made of two columns; the doctor says the same, and no record reaches a store."""
    scene.policy.write_text(scene.policy.read_text().replace("carry_identifying = true\n", ""))
    scene.write("in-1.csv", lines(80, 400, 1))
    ended = shoal("sanitize", scene.policy, "--quiet")
    assert ended.code == 2
    assert "[stream] carry: column 'serial': 100.0% of 400 rows have a value that fewer than k = 3 people" in ended.err
    assert "'device'" not in ended.err
    assert shoal("sanitize", scene.policy, "--status", "--json").summary["internal"]["records"] == 0
    looked = shoal("doctor", scene.policy)
    assert looked.code == 1
    assert "column 'serial': 100.0% of 400 rows" in looked.out.decode()


def test_a_new_key(scene, monkeypatch):
    scene.write("in-1.csv", ROWS)
    assert shoal("sanitize", scene.policy, "--quiet", "--no-audit").code == 0
    new = scene.folder / "new.txt"
    new.write_text("a new key of sixteen bytes")
    assert shoal("sanitize", scene.policy, "--rotate-key", new).code == 0
    wrong = shoal("sanitize", scene.policy, "--status")
    assert wrong.code == 1
    assert "sealed under another key" in wrong.err
    monkeypatch.setenv("SHOAL_KEY_FILE", str(new))
    assert shoal("sanitize", scene.policy, "--status").code == 0


def test_no_value_is_shown_whatever_goes_wrong(scene):
    scene.write("in-1.csv", [*ROWS, "x,y"])
    (scene.folder / "in-2.csv").write_text("account,imei\nacc-CANARY-1,imei-1\n")
    ended = shoal("sanitize", scene.policy)
    assert ended.code == 1
    assert "no column" in ended.err
    assert "CANARY" not in ended.err + ended.out.decode()


def test_following_shows_each_pass_that_did_something(scene, monkeypatch):
    scene.write("in-1.csv", ROWS[:100])
    waits = []

    def wait(self, seconds):
        waits.append(seconds)
        if len(waits) == 1:
            scene.append("in-1.csv", "\n".join(ROWS[100:]) + "\n")
        return len(waits) == 3

    monkeypatch.setattr("threading.Event.wait", wait)
    ended = shoal("sanitize", scene.policy, "--follow", "--every", "2s", "--quiet")
    assert ended.code == 0
    assert waits == [2.0, 2.0, 2.0]
    assert ended.out.decode().count("new records") == 2


def test_following_is_stopped_by_hand(scene, monkeypatch):
    scene.write("in-1.csv", ROWS)

    def wait(self, seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr("threading.Event.wait", wait)
    ended = shoal("sanitize", scene.policy, "--follow", "--quiet")
    assert ended.code == 0
    assert "start the same command again to continue" in ended.err


# ---- killed


def start_in(folder: Path) -> Forked:
    env = {**os.environ, "SHOAL_KEY_FILE": str(folder / "key.txt")}
    return start("sanitize", "policy.toml", "-q", "--no-audit", cwd=folder, env=env)


def test_killed_at_any_time_and_started_again(scene):
    for number in range(6):
        scene.write(f"in-{number}.csv", lines(30, 50, number, first=50 * number))
    draw = random.Random(5)
    ends = []
    for _ in range(4):
        with start_in(scene.folder) as process:
            kill = threading.Timer(draw.uniform(0.1, 1.0), process.kill)
            kill.start()
            process.communicate()
            kill.cancel()
        ends.append(process.returncode)
        assert scene.holding() == []
    assert set(ends) <= {0, -9}
    with start_in(scene.folder) as last:
        assert last.communicate()[1] == b""
    assert last.returncode == 0
    assert scene.serials() == list(range(300))
    inside = scene.internal()
    assert inside.is_real.sum() == 300
    assert len(inside.is_real) == 900


# ---- policies

WRONG = [
    ('pii = ["account", "imei", "email"]', "pii = []", "[sanitize] pii: names no column"),
    ('pii = ["account", "imei", "email"]', "", "[sanitize] pii: is missing; list the columns"),
    ('pii = ["account", "imei", "email"]', 'pii = ["place"]', '[sanitize] pii: the column "place" identifies a person'),
    ('carry = ["mbps"', 'carry = ["email", "mbps"', '"email" identifies a person and is in [stream] carry'),
    ('keep = "7d"', 'keep = "0s"', "[sanitize] keep: must be longer than 0 seconds"),
    ('keep = "7d"', 'kep = "7d"', '[sanitize] kep: unknown key; did you mean "keep"?'),
    ('sealed = "pii.sealed"', "", "[sanitize] sealed: is missing; name the file"),
    ('sealed = "pii.sealed"', 'sealed = "external.db"', "is the same place as"),
    ('path = "internal.db"', 'path = "external.db"', "is the same place as"),
    ('path = "internal.db"', "", "[sanitize.internal] path: is missing; name the database file"),
    ('path = "internal.db"', 'store = "mysql"', '[sanitize.internal] store: must be one of "sqlite", "postgres"'),
    ('path = "internal.db"', 'store = "postgres"', "[sanitize.internal] url_env: give either url_env"),
    ('path = "internal.db"', 'store = "postgres"\nurl_env = "A"\nurl_file = "b"', "give either url_env"),
    ('path = "internal.db"', 'store = "postgres"\nurl_env = "A"\npath = "b"', 'path: is only for store = "sqlite"'),
    ('path = "internal.db"', 'path = "i.db"\nurl = "postgresql://u:p@h/d"', "url: may hold a password"),
    ('path = "internal.db"', 'store = "postgres"\nurl_env = "A"\nschema_name = "A b"', "schema_name: must be a name"),
    ('path = "internal.db"\n[sanitize.external]\npath = "external.db"',
     'store = "postgres"\nurl_env = "A"\n[sanitize.external]\nstore = "postgres"\nurl_env = "A"',
     "[sanitize.external] schema_name: is that of [sanitize.internal], whose records must not be next to"),
    ('path = "internal.db"', f'store = "postgres"\nurl_env = "A"\nschema_name = "{"a" * 57}"', "at most 56 of them"),
    ("[sanitize]", '[dead_letters]\nkeep_rows = true\n[sanitize]', "keep_rows: dead letters of shoal sanitize"),
    ("[sanitize]", '[sink]\nkind = "csv"\npath = "out.csv"\n[sanitize]', "[sink]: shoal sanitize keeps its own state"),
    ("[sanitize]", '[checkpoint]\npath = "state"\n[sanitize]', "[checkpoint]: shoal sanitize keeps its own state"),
    ('path = "in-*.csv"', 'path = "-"', "[source] path: standard input cannot be read again"),
    ('time = "time"', 'time = "time"\nperson = "account"', "[sanitize] maid: [stream] person already identifies"),
    ('maid = ["email", "imei"]', "", "[stream] person: is missing; name the column of persons, or several"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "sentence"), WRONG, ids=[sentence[:40] for *_, sentence in WRONG])
def test_a_wrong_policy(scene, old, new, sentence):
    text = scene.policy.read_text()
    assert old in text
    scene.policy.write_text(text.replace(old, new, 1))
    with pytest.raises(PolicyError) as caught:
        load_policy(scene.policy)
    assert any(sentence in problem for problem in caught.value.problems), caught.value.problems
    assert "u:p@h" not in str(caught.value)


def test_all_problems_at_once(scene):
    text = scene.policy.read_text().replace('keep = "7d"', "keep = 0").replace('path = "internal.db"', "store = 3")
    scene.policy.write_text(text.replace('carry = ["mbps"', 'carry = ["email"'))
    with pytest.raises(PolicyError) as caught:
        load_policy(scene.policy)
    assert len(caught.value.problems) >= 3


def test_a_method_without_quasi_identifiers(scene):
    text = scene.policy.read_text()
    start, end = text.index("[anonymize]"), text.index("[sanitize]")
    method = '[anonymize]\nmethod = "z-anonymity"\nattribute = "place"\nz = 2\nwindow = "1h"\n'
    scene.policy.write_text(text[:start] + method + text[end:])
    with pytest.raises(PolicyError, match="needs a method with quasi-identifiers"):
        load_policy(scene.policy)


def test_the_person_may_be_a_column(scene):
    text = scene.policy.read_text().replace('maid = ["email", "imei"]', "")
    scene.policy.write_text(text.replace('time = "time"', 'time = "time"\nperson = "account"', 1))
    scene.write("in-1.csv", ROWS)
    ended = shoal("sanitize", scene.policy, "--json", "--quiet")
    assert ended.summary["status"]["audit"] == "passed"
    assert scene.holding() == []
    assert json.dumps(ended.summary).count("CANARY") == 0


def test_run_sends_to_the_right_command(scene):
    scene.write("in-1.csv", ROWS)
    ended = shoal("run", scene.policy)
    assert ended.code == 2
    assert "run it with: shoal sanitize" in ended.err


@pytest.mark.parametrize("old", ['"account", "imei", "email"', '"email", "imei"', '"mbps"'])
def test_the_doctor_finds_a_column_that_is_not_there(scene, old):
    scene.write("in-1.csv", ROWS)
    assert shoal("doctor", scene.policy).code == 0
    scene.policy.write_text(scene.policy.read_text().replace(f"[{old}", f'["fone", {old}'))
    ended = shoal("doctor", scene.policy)
    assert ended.code == 1
    assert ended.out.decode().count("there is no column 'fone'") == 1


def test_the_doctor_finds_it_beside_a_person_column(scene):
    text = scene.policy.read_text().replace('maid = ["email", "imei"]', "").replace('"account", ', '"acount", ')
    scene.policy.write_text(text.replace('time = "time"', 'time = "time"\nperson = "account"', 1))
    scene.write("in-1.csv", ROWS)
    ended = shoal("doctor", scene.policy)
    assert ended.code == 1
    assert ended.out.decode().count("there is no column 'acount'") == 1
