"""Every record goes through the process once, whatever happens on the way."""

from __future__ import annotations

import gzip
import json
import sqlite3
import stat
from collections import Counter
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

from shoal.crypto.keys import secret_from_file
from shoal.errors import InputError, PolicyError, StoreError, VaultError
from shoal.pipeline.pipeline import Pipeline
from shoal.policy import load_policy
from shoal.sanitize.keyring import read_run_key
from shoal.sanitize.process import Sanitizer
from shoal.sanitize.workspace import RUNS, TEMPORARY, Workspace
from tests.sanitize.scene import Died, Stop, lines

FIRST, SECOND = lines(30, 200, 1), lines(30, 150, 2, first=200)
STEPS = (
    "read", "sealed", "internal-written", "internal", "run-key", "temporary-written", "temporary", "pushed",
    "published-written", "published",
)  # fmt: skip


def test_all_records_are_published_once_and_the_audit_passes(make_scene):
    scene = make_scene()
    scene.write("in-1.csv", FIRST)
    scene.write("in-2.csv", SECOND)
    summary = scene.run()
    assert (summary.read, summary.published, summary.dead) == (350, 350, 0)
    assert scene.serials() == list(range(350))
    assert summary.status["audit"] == "passed"
    assert summary.status["internal"]["records"] == 3 * 350
    assert summary.status["pending"] == summary.status["waiting_batches"] == 0


def test_nothing_new_changes_nothing(make_scene):
    scene = make_scene()
    scene.write("in-1.csv", FIRST)
    scene.run()
    again = scene.run()
    assert (again.read, again.published) == (0, 0)
    assert scene.serials() == list(range(200))


@pytest.mark.parametrize("step", STEPS)
def test_stopped_anywhere_and_started_again(make_scene, step, tmp_path):
    scene = make_scene()
    scene.write("in-1.csv", FIRST)
    scene.write("in-2.csv", SECOND)
    with pytest.raises(Died):
        scene.run(step)
    with suppress(Died):  # once more, later on; where a step is done by now there is nothing to die at
        scene.run(step, 2)
    scene.run()
    assert scene.serials() == list(range(350))
    inside = scene.internal()
    real = inside.data.filter(inside.is_real)
    assert sorted(real.column("serial").to_pylist()) == list(range(350))
    assert sorted(inside.arrivals[inside.is_real].tolist()) == list(range(350))
    assert scene.holding() == []
    assert list(tmp_path.glob("*.tmp")) == []


def test_the_steps_are_those_that_were_stopped_at(scene):
    scene.write("in-1.csv", FIRST)
    process = Sanitizer.from_policy(scene.policy)
    process.reach = stop = Stop()
    process.run()
    assert set(stop.steps) == set(STEPS)


def test_stopped_in_the_flush(scene):
    scene.write("in-1.csv", FIRST)
    with pytest.raises(Died):
        scene.run("published-written", 2)
    assert len(scene.serials()) < 200
    scene.run()
    assert scene.serials() == list(range(200))


def test_records_that_keep_arriving(make_scene):
    scene = make_scene()
    scene.write("in-1.csv", FIRST[:100])
    passes = []

    def wait() -> bool:
        match len(passes):
            case 1:
                scene.append("in-1.csv", "\n".join(FIRST[100:150]) + "\n" + FIRST[150][:20])
            case 2:
                scene.append("in-1.csv", FIRST[150][20:] + "\n")
                scene.write("in-2.csv", FIRST[151:])
        return len(passes) < 4

    scene.sanitizer().follow(wait, done=passes.append)
    assert [done.read for done in passes] == [100, 50, 50, 0]
    assert sum(done.published for done in passes) + scene.sanitizer().status()["suppressed"] == 200
    assert len(set(scene.serials())) == len(scene.serials())


def test_files_that_are_not_there_yet(scene):
    with pytest.raises(InputError, match="no file matches"):
        scene.run()
    assert scene.run(whole_lines=True).read == 0
    (scene.folder / "in-1.csv").write_text("account,im")
    assert scene.run(whole_lines=True).read == 0
    scene.write("in-1.csv", FIRST[:50])
    assert scene.run(whole_lines=True).read == 50


def test_a_file_in_which_nothing_can_be_used(scene):
    scene.write("in-1.csv", ["a,b", ",,," + FIRST[0].split(",", 3)[3]])
    summary = scene.run()
    assert (summary.read, summary.dead, summary.published) == (2, 2, 0)
    scene.write("in-2.csv", FIRST[:100])
    assert scene.run().read == 100
    assert scene.serials() == list(range(100))


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "csv.gz"])
def test_other_formats(scene, kind):
    scene.write("all.csv", FIRST)
    table = arrow_csv.read_csv(scene.folder / "all.csv")
    path = scene.folder / f"in-1.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress((scene.folder / "all.csv").read_bytes()))
    else:
        path.write_text("".join(json.dumps(row, default=str) + "\n" for row in table.to_pylist()))
    (scene.folder / "all.csv").unlink()
    text = scene.policy.read_text().replace("in-*.csv", f"in-*.{kind}")
    scene.policy.write_text(text.replace('kind = "csv"', f'kind = "{kind.removesuffix(".gz")}"', 1))
    summary = scene.run()
    assert summary.status["audit"] == "passed"
    assert scene.serials() == list(range(200))
    assert scene.run().read == 0


def test_a_last_line_without_an_end_is_a_record_and_must_not_grow(scene):
    scene.write("in-1.csv", FIRST[:100])
    path = scene.folder / "in-1.csv"
    path.write_text(path.read_text().rstrip("\n"))
    assert scene.run().read == 100
    scene.append("in-1.csv", "\n" + FIRST[100] + "\n")
    assert scene.run().read == 1
    path.write_text(path.read_text().rstrip("\n") + "9\n")
    scene.append("in-1.csv", "")
    with pytest.raises(InputError, match="has changed since it was read"):
        scene.run()


def test_a_file_that_was_changed(scene):
    scene.write("in-1.csv", FIRST[:100])
    scene.run()
    before = scene.everything()
    for rows in (SECOND[:120], FIRST[:50]):
        scene.write("in-1.csv", rows)
        with pytest.raises(InputError, match=r"in-1\.csv: has changed since it was read"):
            scene.run()
        after = scene.everything()
        assert {name for name in after if after[name] != before[name]} == {"in-1.csv"}


def test_a_file_that_was_changed_and_is_as_long_as_before(scene):
    scene.write("in-1.csv", FIRST[:100])
    scene.run()
    path = scene.folder / "in-1.csv"
    path.write_text(path.read_text().replace("4G", "5G"))
    with pytest.raises(InputError, match=r"in-1\.csv: has changed since it was read"):
        scene.run()


def test_a_file_under_another_name_is_not_read_again(scene):
    scene.write("in-1.csv", FIRST[:100])
    scene.run()
    (scene.folder / "in-1.csv").rename(scene.folder / "in-7.csv")
    assert scene.run().read == 0
    scene.append("in-7.csv", SECOND[0] + "\n")
    assert scene.run().read == 1
    assert scene.run().read == 0
    (scene.folder / "in-8.csv").symlink_to(scene.folder / "in-7.csv")
    assert scene.run().read == 0


def test_a_folder_that_was_moved_is_not_read_again(scene, tmp_path, monkeypatch):
    scene.write("in-1.csv", FIRST[:100])
    scene.write("in-2.csv", SECOND[:50])
    scene.run()
    moved = tmp_path.with_name(tmp_path.name + "-moved")
    tmp_path.rename(moved)
    monkeypatch.setenv("SHOAL_KEY_FILE", str(moved / "key.txt"))
    assert Sanitizer.from_policy(moved / "policy.toml").run().read == 0


def test_files_that_begin_alike_are_all_read(scene):
    scene.write("in-1.csv", [])
    scene.write("in-2.csv", FIRST[:60])
    assert scene.run().read == 60
    (scene.folder / "in-1.csv").unlink()
    scene.write("in-3.csv", SECOND[:40])
    assert scene.run().read == 40


# ---- keys


def test_without_a_key_nothing_is_made(scene, monkeypatch):
    scene.write("in-1.csv", FIRST)
    monkeypatch.delenv("SHOAL_KEY_FILE")
    before = scene.everything()
    with pytest.raises(VaultError, match="needs a key: make one"):
        scene.run()
    assert scene.everything() == before


def test_a_wrong_key_changes_nothing(scene, monkeypatch):
    scene.write("in-1.csv", FIRST[:100])
    scene.run()
    scene.write("in-2.csv", FIRST[100:])
    (scene.folder / "other.txt").write_text("another key of sixteen bytes")
    before = scene.everything()
    monkeypatch.setenv("SHOAL_KEY_FILE", str(scene.folder / "other.txt"))
    for call in (scene.run, lambda: scene.sanitizer().status(), lambda: scene.sanitizer().clear()):
        with pytest.raises(VaultError, match="sealed under another key; set SHOAL_KEY_FILE"):
            call()
    assert scene.everything() == before


def test_a_new_key_opens_everything_and_the_old_one_nothing(scene, monkeypatch):
    scene.write("in-1.csv", FIRST[:100])
    scene.run()
    new = scene.folder / "new-key.txt"
    new.write_text("a new key of sixteen bytes or more")
    scene.sanitizer().rotate_key(new)
    scene.write("in-2.csv", FIRST[100:])
    with pytest.raises(VaultError, match="another key"):
        scene.run()
    monkeypatch.setenv("SHOAL_KEY_FILE", str(new))
    with pytest.raises(VaultError, match="the new key is the old one"):
        scene.sanitizer().rotate_key(new)
    summary = scene.run()
    assert summary.read == 100
    assert summary.status["audit"] == "passed"
    inside = scene.internal()
    people = {value.as_py() for value in inside.ids.filter(inside.is_real).column(0)}
    assert len(people) == 30  # the same people under both keys


def test_the_working_keys_are_gone(scene):
    scene.write("in-1.csv", FIRST)
    scene.run()
    keys = scene.folder / "pii.sealed.keys"
    keys.rename(scene.folder / "elsewhere")
    with pytest.raises(VaultError, match="the working keys of these stores are missing; restore the file"):
        scene.run()
    assert not keys.exists()


def test_sealed_hashes_that_lost_their_end(scene):
    scene.write("in-1.csv", FIRST[:100])
    scene.run()
    scene.write("in-2.csv", lines(50, 100, 9, first=100))
    scene.run()
    path = scene.folder / "pii.sealed"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(VaultError, match="hashes of the internal store are missing"):
        scene.run()


# ---- what is on the disk


@pytest.mark.parametrize("step", ["sealed", "internal-written", "temporary-written", "published-written", ""])
def test_no_file_ever_holds_a_name(scene, step):
    scene.write("in-1.csv", [*FIRST, FIRST[0].replace("2026-03-01", "yesterday"), ",,," + FIRST[1].split(",", 3)[3]])
    seen = []
    process = Sanitizer.from_policy(scene.policy)
    process.reach = lambda name: seen.append((name, scene.holding()))
    summary = process.run()
    assert [found for found in seen if found[1]] == []
    assert any(name == (step or "published") for name, _ in seen)
    assert summary.dead == 2
    assert scene.holding() == []
    stores = ("pii.sealed.traces", "internal.db", "internal.db.temporary")
    for name in ("pii.sealed", "pii.sealed.keys", "pii.sealed.dead.jsonl", *stores):
        assert stat.S_IMODE((scene.folder / name).stat().st_mode) == 0o600


def test_no_file_of_the_server_ever_holds_a_name(make_scene, request):
    scene = make_scene()
    scene.write("in-1.csv", FIRST)
    scene.run()
    assert scene.holding() == []
    if "store" in scene.stores[0]:
        data = request.getfixturevalue("postgres")[1]
        contents = [path.read_bytes() for path in data.rglob("*") if path.is_file()]
        assert any(b"harbour" in content for content in contents)
        assert not any(b"CANARY" in content or b"@secret" in content for content in contents)


def test_the_published_table_is_alone_and_typed(make_scene, request):
    """A reader of its schema, or file, sees nothing else: the sealed traces and notes are elsewhere."""
    scene = make_scene()
    scene.write("in-1.csv", FIRST)
    scene.run()
    if "store" in scene.stores[0]:
        check_with_psycopg(
            request.getfixturevalue("postgres")[0], scene.stores[1].rpartition('"')[0].rpartition('"')[2]
        )
    else:
        check_with_sqlite(scene.folder)


def check_with_psycopg(url, schema):
    import psycopg  # an extra

    with psycopg.connect(url, autocommit=True) as base:
        columns = "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = %s"
        tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s"
        assert dict(base.execute(columns, (schema,)).fetchall()) == {
            "shoal_id": "bytea", "time_lo": "timestamp with time zone", "time_hi": "timestamp with time zone",
            "place": "text", "network": "text", "mbps": "double precision", "serial": "bigint", "device": "text",
        }  # fmt: skip
        assert base.execute(tables, (schema,)).fetchall() == [("shoal_published",)]
        assert len(base.execute(tables, (schema + "_sealed",)).fetchall()) == 2
        around = f"""SELECT count(*) FROM {schema}.shoal_published
                     WHERE tstzrange(time_lo, time_hi, '[]') @> '2026-03-01 12:00:00+00'::timestamptz"""
        assert 0 < base.execute(around).fetchone()[0] < 200
        base.execute(f"CREATE ROLE reader_of_{schema}")
        base.execute(f"GRANT USAGE ON SCHEMA {schema} TO reader_of_{schema}")
        base.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader_of_{schema}")
        base.execute(f"SET ROLE reader_of_{schema}")
        assert base.execute(f"SELECT count(*) FROM {schema}.shoal_published").fetchone() == (200,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            base.execute(f"SELECT * FROM {schema}_sealed.shoal_external_traces")


def check_with_sqlite(folder):
    with closing(sqlite3.connect(folder / "external.db")) as base:
        assert base.execute("SELECT name FROM sqlite_master").fetchall() == [("shoal_published",)]
        kinds = "SELECT DISTINCT typeof(mbps), typeof(serial), typeof(place), typeof(time_lo) FROM shoal_published"
        assert base.execute(kinds).fetchall() == [("real", "integer", "text", "text")]
        mornings = "SELECT count(*) FROM shoal_published WHERE strftime('%H', time_lo) = '06'"
        assert 0 < base.execute(mornings).fetchone()[0] < 200


def test_moments_finer_than_a_microsecond(make_scene):
    """No column of PostgreSQL stores them, so records are read without the rest, and the audit passes."""
    scene = make_scene()
    scene.write("all.csv", FIRST)
    table = arrow_csv.read_csv(scene.folder / "all.csv")
    fine = pc.add(table["time"].cast(pa.timestamp("ns", "UTC")), pa.scalar(1789, pa.duration("ns")))
    pq.write_table(table.set_column(3, "time", fine), scene.folder / "in-1.parquet")
    scene.policy.write_text(scene.policy.read_text().replace("in-*.csv", "*.parquet").replace('"csv"', '"parquet"', 1)
                            .replace('grid = "6h"\n', ""))  # fmt: skip
    assert scene.run().status["audit"] == "passed"
    rows = scene.published()
    assert len(rows) > 190
    assert {moment.microsecond for moment in pc.struct_field(rows["time"], "lo").to_pylist()} == {1}


def test_dead_letters_say_where_and_why_and_never_what(scene):
    bad = FIRST[7].replace("2026-03", "2031-03")
    scene.write("in-1.csv", [*FIRST[:50], ",,," + FIRST[50].split(",", 3)[3], *FIRST[51:60], "one,two", bad])
    scene.write("in-2.csv", SECOND)
    summary = scene.run()
    letters = [json.loads(line) for line in (scene.folder / "pii.sealed.dead.jsonl").read_text().splitlines()]
    assert [(Path(own["file"]).name, own["row"], own["column"]) for own in letters] == [
        ("in-1.csv", 51, "email"), ("in-1.csv", 61, None), ("in-1.csv", 62, "time"),
    ]  # fmt: skip
    assert summary.dead == 3
    assert all(set(own) <= {"file", "row", "line", "column", "reason"} for own in letters)


# ---- clearing

WEEK = 7 * 86_400


def test_temporary_rows_and_their_key_go_after_a_while(make_scene):
    scene = make_scene()
    scene.write("in-1.csv", FIRST)
    scene.run(now=1000.0)
    (key,) = scene.folder.glob("*.run-*.key")
    with Workspace(load_policy(scene.policy)) as workspace:
        secret = read_run_key(key, workspace.ring)
        content = bytes(
            workspace.temporary.execute(f"SELECT content FROM {workspace.temporary.place(TEMPORARY)}")[0][0]
        )
    assert secret is not None
    assert scene.sanitizer().clear(now=1000.0 + WEEK - 1) == 0
    assert key.exists()
    assert scene.sanitizer().clear(now=1000.0 + WEEK) == 1
    assert not key.exists()
    with Workspace(load_policy(scene.policy)) as workspace:
        assert workspace.temporary.count(TEMPORARY) == workspace.temporary.count(RUNS) == 0
        with pytest.raises(VaultError, match="the key of this run is missing"):
            read_run_key(key, workspace.ring)
        with pytest.raises(VaultError):
            workspace.ring.unseal(content, "temporary rows", name="old rows")
    for path in scene.folder.glob("internal.db*"):
        assert content[64:128] not in path.read_bytes()
    assert scene.run().read == 0


def test_rows_that_are_not_published_are_not_cleared(scene):
    scene.write("in-1.csv", FIRST)
    with pytest.raises(Died):
        scene.run("temporary", now=1000.0)
    assert scene.sanitizer().clear(now=1000.0 + 2 * WEEK) == 0
    scene.run(now=1000.0 + 2 * WEEK)
    assert scene.serials() == list(range(200))


@pytest.mark.parametrize("step", ["cleared-rows", "cleared-key"])
def test_stopped_while_clearing(scene, step):
    scene.write("in-1.csv", FIRST)
    scene.run(now=1000.0)
    process = scene.sanitizer()
    process.reach = Stop(step)
    with pytest.raises(Died):
        process.clear(now=1000.0 + WEEK)
    assert scene.sanitizer().clear(now=1000.0 + WEEK) == 1
    assert list(scene.folder.glob("*.run-*.key")) == []


def test_a_key_without_rows_goes_with_the_next_clearing(scene):
    scene.write("in-1.csv", FIRST)
    with pytest.raises(Died):
        scene.run("run-key")
    (stray,) = scene.folder.glob("*.run-*.key")
    scene.run(now=1000.0)
    assert not stray.exists()
    assert len(list(scene.folder.glob("*.run-*.key"))) == 1


# ---- stores that do not fit


@pytest.mark.parametrize("role", ["internal", "temporary", "external"])
def test_a_store_of_a_newer_version(make_scene, role):
    scene = make_scene()
    scene.write("in-1.csv", FIRST[:100])
    scene.run()
    with Workspace(load_policy(scene.policy)) as workspace:
        store = getattr(workspace, role)
        with store.transaction():
            store.put("version", b"3")
    scene.write("in-2.csv", FIRST[100:])
    before = scene.everything()
    with pytest.raises(StoreError, match=r"has format version 3; this shoal reads version 2\. Nothing was changed"):
        scene.run()
    assert scene.everything() == before


def test_a_store_of_the_first_version(make_scene):
    """Its notes and traces were in the same schema, or file, as the published table."""
    scene = make_scene()
    scene.write("in-1.csv", FIRST[:100])
    scene.run()
    with Workspace(load_policy(scene.policy)) as workspace:
        store = workspace.external
        sealed = store.place(store._meta)
        store.execute(f"CREATE TABLE {store.place(replace(store._meta, public=True))} AS SELECT * FROM {sealed}")
        store.execute(f"DROP TABLE {sealed}")
    before = scene.everything()
    with pytest.raises(StoreError, match=r"has format version 1; this shoal reads version 2\. .* start over with new"):
        scene.run()
    assert scene.everything() == before


def test_stores_of_another_policy_or_other_keys(scene):
    scene.write("in-1.csv", FIRST)
    scene.run()
    text = scene.policy.read_text()
    scene.policy.write_text(text.replace("k = 3", "k = 4"))
    with pytest.raises(StoreError, match="was filled under another policy"):
        scene.run()
    scene.policy.write_text(text.replace('"pii.sealed"', '"other.sealed"'))
    with pytest.raises(VaultError, match="the working keys of these stores are missing"):
        scene.run()
    (scene.folder / "own").mkdir()
    scene.policy.write_text(text.replace("internal.db", "own/i.db").replace("external.db", "own/e.db")
                            .replace("pii.sealed", "other.sealed"))  # fmt: skip
    scene.run()
    scene.policy.write_text(text.replace("internal.db", "own/i.db"))
    with pytest.raises(StoreError, match="belongs to other keys"):
        scene.run()


def test_a_policy_mended_before_anything_was_taken_in(make_scene):
    scene = make_scene()
    scene.write("in-1.csv", FIRST)
    text = scene.policy.read_text()
    scene.policy.write_text(text.replace('pii = ["account"', 'pii = ["acount"'))
    with pytest.raises(InputError, match="there is no column 'acount'"):
        scene.run()
    scene.policy.write_text(text)
    assert scene.sanitizer().status()["internal"]["records"] == 0
    assert scene.run().status["audit"] == "passed"
    scene.policy.write_text(text.replace("k = 3", "k = 4"))
    with pytest.raises(StoreError, match="was filled under another policy"):
        scene.run()


@pytest.mark.parametrize("gone", ["internal.db", "external.db", "pii.sealed.traces"])
@pytest.mark.parametrize("by", [Path.unlink, lambda path: path.write_bytes(b"")])
def test_a_store_that_is_gone_is_not_made_again(scene, gone, by):
    scene.write("in-1.csv", FIRST[:60])
    scene.run()
    scene.write("in-2.csv", SECOND[:60])
    by(scene.folder / gone)
    for _ in range(2):
        before = {name: data for name, data in scene.everything().items() if name != gone}
        with pytest.raises(
            StoreError, match=r"is empty or new, but .* belongs to one that was filled; restore the old"
        ) as caught:
            scene.run()
        assert str(caught.value).startswith("the sealed part of ") == gone.endswith(".traces")
        assert {name: data for name, data in scene.everything().items() if name != gone} == before


def test_an_older_copy_of_the_internal_store(scene):
    scene.write("in-1.csv", FIRST[:60])
    scene.run()
    older = (scene.folder / "internal.db").read_bytes()
    scene.write("in-2.csv", SECOND[:60])
    scene.run()
    (scene.folder / "internal.db").write_bytes(older)
    with pytest.raises(StoreError, match=r"is older than .*external\.db, which has published more"):
        scene.run()


def test_looking_makes_nothing(scene):
    before = scene.everything()
    for look in (scene.sanitizer().status, scene.sanitizer().clear):
        with pytest.raises(StoreError, match="there are no stores yet; run shoal sanitize first"):
            look()
    assert scene.everything() == before


def test_a_file_that_is_no_database(scene):
    scene.write("in-1.csv", FIRST)
    (scene.folder / "external.db").write_text("somebody's letters, not a database at all, and long enough")
    with pytest.raises(StoreError, match="is not an SQLite database; name another file"):
        scene.run()
    assert not (scene.folder / "pii.sealed.keys").exists()


def test_a_server_that_is_not_there(scene, monkeypatch):
    monkeypatch.setenv("NOWHERE", "postgresql://user:pass-word@/x?host=/nonexistent")
    text = scene.policy.read_text().replace('path = "external.db"', 'store = "postgres"\nurl_env = "NOWHERE"')
    scene.policy.write_text(text)
    scene.write("in-1.csv", FIRST)
    with pytest.raises(StoreError, match=r"NOWHERE \(PostgreSQL, schema public\): the database reports") as caught:
        scene.run()
    assert "pass-word" not in str(caught.value)
    monkeypatch.setenv("NOWHERE", "")
    with pytest.raises(StoreError, match="NOWHERE: this environment variable has no URL"):
        scene.run()


def test_only_one_process_at_a_time(make_scene):
    scene = make_scene()
    scene.write("in-1.csv", FIRST)
    with Workspace(load_policy(scene.policy)), pytest.raises(VaultError, match="another process is at work here"):
        scene.run()


def test_a_deleted_row_breaks_the_audit(scene):
    scene.write("in-1.csv", FIRST)
    assert scene.run().status["audit"] == "passed"
    alter(scene, "DELETE FROM shoal_published WHERE rowid = 1")
    scene.write("in-2.csv", SECOND)
    assert scene.run().status["audit"].startswith("BROKEN: rows of shoal_published were deleted, or added")


def alter(scene, sql):
    with Workspace(load_policy(scene.policy)) as workspace, workspace.external.transaction():
        workspace.external.execute(sql)


def test_an_added_row_stops_publishing(scene):
    scene.write("in-1.csv", FIRST)
    scene.run()
    alter(scene, "INSERT INTO shoal_published SELECT * FROM shoal_published WHERE rowid = 1")
    scene.write("in-2.csv", SECOND)
    with pytest.raises(StoreError, match=r"external\.db: has rows that its sealed part does not know"):
        scene.run()
    alter(scene, "DELETE FROM shoal_published WHERE rowid = (SELECT max(rowid) FROM shoal_published)")
    assert scene.run().status["audit"] == "passed"


@pytest.mark.parametrize("name", ["external.db", "pii.sealed.traces"])
def test_an_older_copy_of_one_part_of_the_external_store(scene, name):
    """With the sealed part of an earlier day the records since then would be published again."""
    scene.write("in-1.csv", FIRST[:60])
    scene.run()
    older = (scene.folder / name).read_bytes()
    scene.write("in-2.csv", SECOND[:60])
    scene.run()
    (scene.folder / name).write_bytes(older)
    scene.write("in-3.csv", SECOND[60:])
    if name == "external.db":
        assert scene.run().status["audit"].startswith("BROKEN: rows of shoal_published were deleted, or added")
    else:
        serials = scene.serials()
        with pytest.raises(StoreError, match="has rows that its sealed part does not know"):
            scene.run()
        assert scene.serials() == serials


def test_an_altered_internal_store_publishes_nothing(scene):
    scene.write("in-1.csv", FIRST)
    with pytest.raises(Died):
        scene.run("internal")
    with Workspace(load_policy(scene.policy)) as workspace:
        table = workspace.records(workspace.schema_of(workspace.internal)).name
        (decoy,) = workspace.internal.execute(f"SELECT shoal_id FROM {table} ORDER BY shoal_id LIMIT 1")
        workspace.internal.execute(f"UPDATE {table} SET shoal_tag = zeroblob(16) WHERE shoal_id = ?", decoy)
    with pytest.raises(VaultError, match="contradict each other: it was altered; nothing was published"):
        scene.run()
    assert scene.serials() == []


def test_a_store_altered_after_publishing_breaks_the_audit(scene):
    scene.write("in-1.csv", FIRST)
    scene.run()
    with Workspace(load_policy(scene.policy)) as workspace:
        table = workspace.records(workspace.schema_of(workspace.internal)).name
        workspace.internal.execute(f"UPDATE {table} SET shoal_tag = zeroblob(16)")
    scene.write("in-2.csv", SECOND)
    assert scene.run().status["audit"].startswith("BROKEN: the stores cannot be audited")


def test_run_says_which_command_to_use(scene):
    with pytest.raises(PolicyError, match="run it with: shoal sanitize"):
        Pipeline.from_policy(scene.policy)


def test_the_same_people_keep_their_ids(scene):
    scene.write("in-1.csv", FIRST[:100])
    scene.run()
    scene.write("in-2.csv", FIRST[100:])
    scene.run()
    inside = scene.internal()
    ids = inside.ids.filter(inside.is_real).column(0).to_pylist()
    assert len(set(ids)) == len({line.split(",")[0] for line in FIRST})
    assert Counter(Counter(ids).values()) == Counter(Counter(line.split(",")[0] for line in FIRST).values())


def test_secrets_of_two_runs_differ(scene):
    scene.write("in-1.csv", FIRST[:100])
    scene.run(now=1.0)
    scene.write("in-2.csv", FIRST[100:])
    scene.run(now=2.0)
    paths = list(scene.folder.glob("*.run-*.key"))
    with Workspace(load_policy(scene.policy)) as workspace:
        first, second = (read_run_key(path, workspace.ring) for path in paths)
    assert not first.same_as(second)
    assert not first.same_as(secret_from_file(scene.folder / "key.txt"))
