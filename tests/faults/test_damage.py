"""Checkpoints that are torn, altered or belong to something else are reported; no run starts over silently."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from shoal.encode.parquet import ParquetEncoder
from shoal.errors import CheckpointError
from shoal.sinks.files import JoinedFileSink
from tests.faults.scene import KILLED, POLICY, SINKS, STATE, Forker, Scene, Sink
from tests.reference.effort import IS_EXHAUSTIVE, some_by_default

CSV, PARQUET = SINKS[0], next(sink for sink in SINKS if sink.path == "out.parquet")
FOLDER = next(sink for sink in SINKS if sink.path == "out/")
KINDS = [CSV, PARQUET, FOLDER]
"""One sink of each class: a file, a joined file, a folder."""
ADVICE = "restore the file, or start over with a new checkpoint folder"


def damage(path: Path, how: str) -> None:
    """Do something to a file that a run has finished."""
    content = path.read_bytes()
    middle = len(content) // 2
    changed = {
        "cut": content[: len(content) // 3],
        "longer": content + b"x",
        "flipped": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
    }
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes(changed[how])


@pytest.fixture
def scene(forker: Forker, tmp_path: Path) -> Scene:
    """A run killed after several checkpoints."""
    scene = Scene.set(forker, tmp_path, CSV, lateness=3)
    scene.kill_late()
    return scene


def spread(size: int, count: int) -> list[int]:
    """Places all over a file, both ends among them."""
    return sorted({round(place * (size - 1) / (count - 1)) for place in range(count)})


def refused(scene: Scene, *expected: str) -> None:
    """The run ends with 1, a sentence that contains these texts, and no file changed."""
    before = scene.contents()
    answer = scene.run()
    assert answer["code"] == 1
    assert answer["err"].startswith("shoal: ")
    assert answer["err"].count("\n") == 1, "one sentence"
    for text in expected:
        assert text in answer["err"]
    assert scene.contents() == before, "nothing is changed"


class TestOneDamaged:
    @pytest.mark.parametrize("how", ["torn", "altered"])
    def test_the_one_before_is_used(self, scene: Scene, how: str) -> None:
        newest = scene.checkpoints()[-1]
        whole, left = newest.read_bytes(), scene.keep()
        expected = scene.never_killed()[0]
        for place in spread(len(whole), 16 if IS_EXHAUSTIVE else 6):
            scene.bring_back(left)
            altered = whole[:place] + bytes([whole[place] ^ 0x20]) + whole[place + 1 :]
            newest.write_bytes(whole[:place] if how == "torn" else altered)
            answer = scene.run()
            assert answer["code"] == 0, answer["err"]
            assert f"{newest.name}: this checkpoint is damaged" in answer["err"], f"{how} at byte {place}"
            assert scene.summary()["resumed"]
            assert scene.result() == expected, f"{how} at byte {place}"

    def test_after_the_end(self, forker: Forker, tmp_path: Path) -> None:
        """The parts of an assembled file are removed by then."""
        scene = Scene.set(forker, tmp_path, PARQUET, is_key_given=False)
        expected = scene.never_killed()[0]
        newest = scene.checkpoints()[-1]
        newest.write_bytes(newest.read_bytes()[:-1])
        scene.run_to_the_end()
        assert scene.result() == expected


class TestOlderVersion:
    def test_refused(self, scene: Scene) -> None:
        """Its checkpoints have no digests: they are not mistaken for damaged ones."""
        for path in scene.checkpoints():
            path.write_bytes(b"SHOALCKPT1" + path.read_bytes()[10:])
        refused(scene, scene.checkpoints()[-1].name, "older version of shoal", "new checkpoint folder")


class TestNoneWhole:
    @pytest.mark.parametrize("size", [0, 9, 40, -1])
    def test_refused(self, scene: Scene, size: int) -> None:
        for path in scene.checkpoints():
            path.write_bytes(path.read_bytes()[:size])
        refused(scene, *(path.name for path in scene.checkpoints()), "no complete one is left")

    def test_rubbish(self, scene: Scene) -> None:
        for path in scene.checkpoints():
            path.write_bytes(os.urandom(2000))
        refused(scene, "damaged")


def change(old: str, new: str) -> Callable[[str], str]:
    def changed(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    return changed


class TestAnotherPolicy:
    @pytest.mark.parametrize(
        "alter",
        [
            change("z = 2", "z = 3"),
            change('window = "8s"', 'window = "9s"'),
            change('lateness = "3s"', 'lateness = "4s"'),
            change('path = "in-*.csv"', 'path = "in-?.csv"'),
            change('path = "out.csv"', 'path = "other.csv"'),
            change('path = "dead.jsonl"', 'path = "other.jsonl"'),
            change("keep_rows = false", "keep_rows = true"),
            change('path = "trace.parquet"', 'path = "other.parquet"'),
            change('[trace]\npath = "trace.parquet"\n', ""),
            change('time = "ts"', 'time = "ts"\ncarry = ["more"]'),
        ],
    )
    def test_refused(self, scene: Scene, alter: Callable[[str], str]) -> None:
        policy = scene.folder / POLICY
        policy.write_text(alter(policy.read_text()))
        refused(scene, "of another policy", "use another folder")

    def test_layout_and_checkpoint_section_do_not_count(self, scene: Scene) -> None:
        policy = scene.folder / POLICY
        policy.write_text("# a comment\n" + policy.read_text().replace("every = 5", "every = 7"))
        assert scene.run_to_the_end()["resumed"]


class TestChangedSource:
    @pytest.mark.parametrize("number", [0, 2])
    def test_content(self, scene: Scene, number: int) -> None:
        path = scene.folder / f"in-{number}.csv"
        before = path.stat()
        path.write_bytes(path.read_bytes().replace(b"ann", b"bob"))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        refused(scene, f"in-{number}.csv", "has changed since the checkpoint")

    def test_appended(self, scene: Scene) -> None:
        with (scene.folder / "in-2.csv").open("a") as file:
            file.write("31,ann,a\n")
        refused(scene, "in-2.csv", "has changed since the checkpoint")

    def test_touched(self, scene: Scene) -> None:
        os.utime(scene.folder / "in-0.csv", ns=(1, 1))
        refused(scene, "in-0.csv", "has changed since the checkpoint")

    def test_removed(self, scene: Scene) -> None:
        (scene.folder / "in-1.csv").unlink()
        refused(scene, "in-1.csv")

    def test_added(self, scene: Scene) -> None:
        (scene.folder / "in-3.csv").write_text("ts,user,site\n40,ann,a\n")
        refused(scene, "in-3.csv")

    def test_after_the_end(self, scene: Scene) -> None:
        scene.run_to_the_end()
        with (scene.folder / "in-2.csv").open("a") as file:
            file.write("31,ann,a\n")
        refused(scene, "in-2.csv")


class TestKeys:
    def test_changed(self, scene: Scene) -> None:
        (scene.folder / "key.txt").write_text("another key of sixteen bytes and more")
        refused(scene, "another key", "SHOAL_KEY_FILE")

    def test_gone(self, scene: Scene) -> None:
        (scene.folder / "key.txt").unlink()
        refused(scene, "key.txt", "cannot be read", "SHOAL_KEY_FILE")

    def test_no_longer_given(self, scene: Scene) -> None:
        scene.is_key_given = False
        refused(scene, "the key of these checkpoints is missing", "SHOAL_KEY_FILE")

    def test_generated_and_gone(self, forker: Forker, tmp_path: Path) -> None:
        scene = Scene.set(forker, tmp_path, CSV, is_key_given=False)
        scene.kill_late()
        (tmp_path / STATE / "key").unlink()
        refused(scene, "the key of these checkpoints is missing")

    def test_generated_and_altered(self, forker: Forker, tmp_path: Path) -> None:
        scene = Scene.set(forker, tmp_path, CSV, is_key_given=False)
        scene.kill_late()
        (tmp_path / STATE / "key").write_text("0" * 64)
        refused(scene, "another key")

    def test_generated_by_a_first_start_that_was_killed(self, forker: Forker, tmp_path: Path) -> None:
        """At any step between making the key and the first checkpoint: the same key is used."""
        scene = Scene.set(forker, tmp_path, CSV, is_key_given=False)
        steps = scene.run()["steps"]
        scene.forget()
        first = scene.run(at=next(at for at, step in enumerate(steps, 1) if step == "replace checkpoint-00000000"))
        assert first["code"] == KILLED
        made = (tmp_path / STATE / "key").read_bytes()
        assert not scene.checkpoints()
        scene.run_to_the_end()
        assert (tmp_path / STATE / "key").read_bytes() == made

    @pytest.mark.parametrize("how", ["readable", "a link"])
    def test_there_before_the_first_checkpoint(self, forker: Forker, tmp_path: Path, how: str) -> None:
        """Another user may have put it there and know it: it is not used silently."""
        scene = Scene.set(forker, tmp_path, CSV, is_key_given=False)
        key = tmp_path / STATE / "key"
        key.parent.mkdir(parents=True)
        if how == "readable":
            key.write_text("0" * 64)
            key.chmod(0o644)
        else:
            key.symlink_to(tmp_path / "key.txt")
        answer = scene.run()
        assert answer["code"] == 1
        assert f"{key}: this key was here before the first checkpoint" in answer["err"]
        assert "remove it so that a new key is made" in answer["err"]
        assert not (tmp_path / "out.csv.partial").exists()
        key.unlink()
        scene.run_to_the_end()

    def test_generated_and_opened_to_others(self, forker: Forker, tmp_path: Path) -> None:
        scene = Scene.set(forker, tmp_path, CSV, is_key_given=False)
        scene.kill_late()
        (tmp_path / STATE / "key").chmod(0o644)
        answer = scene.run()
        assert answer["code"] == 0
        assert f"run: chmod 600 {tmp_path / STATE / 'key'}" in answer["err"]

    def test_generated_is_for_the_owner_alone(self, forker: Forker, tmp_path: Path) -> None:
        scene = Scene.set(forker, tmp_path, CSV, is_key_given=False)
        scene.run_to_the_end()
        assert (tmp_path / STATE).stat().st_mode & 0o777 == 0o700
        assert all(path.stat().st_mode & 0o777 == 0o600 for path in (tmp_path / STATE).iterdir())


class TestOutput:
    @pytest.mark.parametrize("name", ["out.csv.partial", "dead.jsonl", "trace.parquet.partial"])
    @pytest.mark.parametrize("how", ["shortened", "removed"])
    def test_refused(self, scene: Scene, name: str, how: str) -> None:
        path = scene.folder / name
        if how == "removed":
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:10])
        refused(scene, name, "checkpoint")

    @pytest.mark.parametrize("how", ["cut", "flipped", "gone"])
    @pytest.mark.parametrize("sink", some_by_default(SINKS, KINDS), ids=lambda sink: sink.path)
    def test_what_was_released(self, forker: Forker, tmp_path: Path, sink: Sink, how: str) -> None:
        """Every format: a partial file, or the parts of a folder or of a file that is joined at the end."""
        scene = Scene.set(forker, tmp_path, sink)
        scene.kill_late()
        places = [tmp_path / f"{sink.path}.partial", *sorted(tmp_path.glob("out*/part-*"))]
        place = next(path for path in places if path.exists())
        damage(place, how)
        refused(scene, place.name, ADVICE)

    @pytest.mark.parametrize("how", ["cut", "flipped", "gone"])
    @pytest.mark.parametrize("name", ["dead.jsonl", "trace.parquet.partial"])
    def test_letters_and_trace(self, scene: Scene, name: str, how: str) -> None:
        damage(scene.folder / name, how)
        refused(scene, name, ADVICE)

    @pytest.mark.parametrize("how", ["cut", "longer", "flipped", "gone"])
    @pytest.mark.parametrize("number", [0, 1])
    @pytest.mark.parametrize("sink", [FOLDER, PARQUET], ids=lambda sink: sink.path)
    def test_any_part(self, forker: Forker, tmp_path: Path, sink: Sink, number: int, how: str) -> None:
        scene = Scene.set(forker, tmp_path, sink)
        scene.kill_late()
        place = sorted(tmp_path.glob("out*/part-*"))[number]
        damage(place, how)
        refused(scene, place.name, ADVICE)

    @pytest.mark.parametrize("name", ["part-00090.parquet", "part-000000.parquet", "more.parquet"])
    def test_a_foreign_part(self, forker: Forker, tmp_path: Path, name: str) -> None:
        scene = Scene.set(forker, tmp_path, FOLDER)
        scene.kill_late()
        foreign = tmp_path / "out" / name
        foreign.write_bytes((tmp_path / "out" / "part-00000.parquet").read_bytes())
        refused(scene, name, "was not written by this run; move it to another folder")
        foreign.unlink()
        assert scene.run_to_the_end()["resumed"]

    def test_a_foreign_part_after_the_end(self, forker: Forker, tmp_path: Path) -> None:
        """The next part of a finished run is foreign too: it would be read as released rows."""
        scene = Scene.set(forker, tmp_path, FOLDER)
        scene.run_to_the_end()
        parts = sorted((tmp_path / "out").glob("part-*"))
        (tmp_path / "out" / f"part-{len(parts):05}.parquet").write_bytes(parts[0].read_bytes())
        refused(scene, f"part-{len(parts):05}.parquet", "was not written by this run; move it to another folder")

    def test_parts_of_the_trace(self, forker: Forker, tmp_path: Path) -> None:
        """What was cut after the checkpoint is written again once the part is restored."""
        scene = Scene.set(forker, tmp_path, CSV, is_key_given=False)
        expected = scene.never_killed()[0]
        scene.kill_late()
        place = tmp_path / "trace.parquet.parts" / "part-00000.parquet"
        whole = place.read_bytes()
        damage(place, "flipped")
        answer = scene.run()
        assert answer["code"] == 1
        assert f"{place.name}: was altered" in answer["err"]
        place.write_bytes(whole)
        scene.run_to_the_end()
        assert scene.result() == expected

    def test_a_part_altered_before_it_is_joined(self, tmp_path: Path) -> None:
        """Parts may lie there for days: they are checked again before one file is made of them."""
        sink = JoinedFileSink(ParquetEncoder(), tmp_path / "out.parquet")
        batch = pa.record_batch({"a": [1, 2, 3]})
        sink.open(batch.schema)
        sink.write(batch)
        sink.commit(0)
        damage(tmp_path / "out.parquet.parts" / "part-00000.parquet", "cut")
        with pytest.raises(CheckpointError, match=r"part-00000\.parquet: has \d+ bytes"):
            sink.finish()
        assert not (tmp_path / "out.parquet").exists()

    @pytest.mark.parametrize("how", ["cut", "longer", "flipped", "gone"])
    @pytest.mark.parametrize("sink", some_by_default(SINKS, KINDS), ids=lambda sink: sink.path)
    def test_after_the_end(self, forker: Forker, tmp_path: Path, sink: Sink, how: str) -> None:
        """A finished run started again does not call a damaged release finished."""
        scene = Scene.set(forker, tmp_path, sink)
        scene.run_to_the_end()
        place = tmp_path / sink.path
        place = sorted(place.iterdir())[-1] if place.is_dir() else place
        damage(place, how)
        refused(scene, place.name, "checkpoint folder")

    def test_a_joined_file_whose_last_checkpoint_is_lost(self, forker: Forker, tmp_path: Path) -> None:
        """The parts are removed by then, so the checkpoint before must refer to the file itself."""
        scene = Scene.set(forker, tmp_path, PARQUET)
        scene.run_to_the_end()
        newest = scene.checkpoints()[-1]
        newest.write_bytes(newest.read_bytes()[:-1])
        damage(tmp_path / "out.parquet", "flipped")
        before = scene.contents()
        answer = scene.run()
        assert answer["code"] == 1
        assert "out.parquet: was altered" in answer["err"]
        assert scene.contents() == before

    @pytest.mark.parametrize("sink", [CSV, PARQUET], ids=lambda sink: sink.path)
    def test_shortened_before_the_last_step(self, forker: Forker, tmp_path: Path, sink: object) -> None:
        """The run is over but for the renaming: what it counts on is checked all the same."""
        scene = Scene.set(forker, tmp_path, sink)  # type: ignore[arg-type]
        steps = scene.never_killed()[1]
        scene.forget()
        at = next(number for number, step in enumerate(steps, 1) if step == "unlink checkpoint-00000002")
        scene.run(at=at, how="after")
        if sink is CSV:
            path = tmp_path / "out.csv.partial"
            path.write_bytes(path.read_bytes()[:-1])
        else:
            path = tmp_path / "out.parquet.parts" / "part-00000.parquet"
            path.unlink()
        refused(scene, path.name)


class TestFinished:
    @pytest.mark.parametrize("sink", SINKS, ids=lambda sink: sink.path)
    def test_started_again_changes_nothing(self, forker: Forker, tmp_path: Path, sink: object) -> None:
        scene = Scene.set(forker, tmp_path, sink)  # type: ignore[arg-type]
        scene.run_to_the_end()
        result, before = scene.result(), scene.everything()
        assert scene.run_to_the_end()["finished_before"]
        assert scene.everything() == before
        assert scene.result() == result

    def test_a_failed_run_stays_failed(self, forker: Forker, tmp_path: Path) -> None:
        scene = Scene.set(forker, tmp_path, CSV)
        scene.feed("csv.gz")
        path = tmp_path / "in-2.csv.gz"
        path.write_bytes(path.read_bytes()[:-12])
        for _ in range(2):
            answer = scene.run()
            assert answer["code"] == 1
            assert "in-2.csv.gz" in answer["err"]
            assert not json.loads((tmp_path / "stdout.txt").read_text())["ok"]
