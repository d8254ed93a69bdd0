"""Files that are complete or absent; resuming after a crash; errors that say what to do."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shoal.encode.csv import CsvEncoder
from shoal.errors import CheckpointError, OutputError
from shoal.sinks.atomic_file import AtomicFile
from shoal.sinks.durable import Guarded
from shoal.sinks.files import StandardOutputSink
from shoal.sinks.marks import Mark
from shoal.sinks.part_files import PartFiles


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- one file


def test_visible_only_when_finished(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "out.csv"
    sink = AtomicFile(path)
    out = sink.resume(None)
    out.write(b"abc")
    assert sink.commit() == 3
    assert not path.exists()
    assert path.with_name("out.csv.partial").read_bytes() == b"abc"
    sink.finish()
    assert path.read_bytes() == b"abc"
    assert os.listdir(path.parent) == ["out.csv"]
    sink.finish()
    AtomicFile(path).finish()
    assert path.read_bytes() == b"abc"


def test_resume_cuts_what_was_not_committed(tmp_path: Path) -> None:
    sink = AtomicFile(tmp_path / "out")
    sink.resume(0).write(b"committed")
    position = sink.commit()
    again = AtomicFile(tmp_path / "out")
    sink._out.write(b" and lost")  # type: ignore[union-attr]
    sink.close()
    out = again.resume(position)
    out.write(b"!")
    assert again.commit() == position + 1
    again.finish()
    assert (tmp_path / "out").read_bytes() == b"committed!"


def test_starting_over_replaces_an_earlier_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"old result")
    (tmp_path / "out.partial").write_bytes(b"old leftover")
    sink = AtomicFile(tmp_path / "out")
    sink.resume(None).write(b"new")
    sink.commit()
    assert (tmp_path / "out").read_bytes() == b"old result"
    sink.finish()
    assert (tmp_path / "out").read_bytes() == b"new"


def test_shorter_than_the_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "out.partial").write_bytes(b"abc")
    with pytest.raises(CheckpointError, match=r"out.partial: has 3 bytes where the checkpoint has 4"):
        AtomicFile(tmp_path / "out").resume(4)
    assert (tmp_path / "out.partial").read_bytes() == b"abc"
    with pytest.raises(CheckpointError):
        AtomicFile(tmp_path / "other").resume(1)
    assert os.listdir(tmp_path) == ["out.partial"]


def test_died_after_the_rename(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"abc")
    sink = AtomicFile(path)
    sink.resume(3)
    assert sink.commit() == 3
    sink.finish()
    assert path.read_bytes() == b"abc"
    path.write_bytes(b"someone else's longer file")
    with pytest.raises(CheckpointError):
        AtomicFile(path).resume(3)


def test_the_digest_is_checked(tmp_path: Path) -> None:
    """Bytes up to the mark must be those that were committed; the digest continues from there."""
    sink = AtomicFile(tmp_path / "out", checked=True)
    sink.resume(None).write(b"committed")
    sink.commit()
    mark = sink.mark
    assert [mark] == of(b"committed")
    sink.close()
    working = tmp_path / "out.partial"
    working.write_bytes(b"c0mmitted and lost")
    with pytest.raises(CheckpointError, match=r"out.partial: was altered since the checkpoint was written"):
        AtomicFile(tmp_path / "out", checked=True).resume(mark)
    assert working.read_bytes() == b"c0mmitted and lost"
    working.write_bytes(b"committed and lost")
    again = AtomicFile(tmp_path / "out", checked=True)
    out = again.resume(mark)
    assert again.mark == mark
    out.write(b"!")
    again.commit()
    assert [again.mark] == of(b"committed!")


def test_a_finished_file_is_checked(tmp_path: Path) -> None:
    """A run that died after the renaming: nothing is renamed back where the file is not as it was."""
    (tmp_path / "out").write_bytes(b"abd")
    with pytest.raises(CheckpointError, match="out: was altered"):
        AtomicFile(tmp_path / "out").resume(*of(b"abc"))
    assert os.listdir(tmp_path) == ["out"]
    with pytest.raises(CheckpointError, match="out: was altered"):
        AtomicFile(tmp_path / "out").verify(*of(b"abc"))
    for content in (b"abcd", b"ab"):
        (tmp_path / "out").write_bytes(content)
        with pytest.raises(CheckpointError, match=f"has {len(content)} bytes where the checkpoint has 3"):
            AtomicFile(tmp_path / "out").verify(*of(b"abc"))
    (tmp_path / "out").unlink()
    with pytest.raises(CheckpointError, match="out: is missing"):
        AtomicFile(tmp_path / "out").verify(*of(b"abc"))


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("position", [None, 3])
@pytest.mark.parametrize("planted", ["out", "out.partial"])
def test_links_are_not_followed(tmp_path: Path, in_place: bool, position: int | None, planted: str) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"somebody's")
    victim.chmod(0o644)
    (tmp_path / planted).symlink_to(victim)
    if in_place and planted == "out.partial":
        return  # it is not used
    with pytest.raises(OutputError, match=f"{planted}: is a symbolic link, which is not followed"):
        AtomicFile(tmp_path / "out", private=True, in_place=in_place).resume(position)
    assert victim.read_bytes() == b"somebody's"
    assert mode_of(victim) == 0o644
    assert (tmp_path / planted).is_symlink()


def test_a_file_with_another_name_is_not_emptied(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"somebody's")
    (tmp_path / "out").hardlink_to(tmp_path / "victim")
    AtomicFile(tmp_path / "out", in_place=True).resume(None).write(b"new")
    assert (tmp_path / "victim").read_bytes() == b"somebody's"


def test_private_from_the_first_byte(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        (tmp_path / "old.partial").write_bytes(b"")
        for name in ("new", "old"):
            sink = AtomicFile(tmp_path / name, private=True)
            sink.resume(None)
            assert mode_of(tmp_path / f"{name}.partial") == 0o600
            sink.finish()
            assert mode_of(tmp_path / name) == 0o600
        public = AtomicFile(tmp_path / "public")
        public.resume(None)
        public.finish()
        assert mode_of(tmp_path / "public") == 0o666
    finally:
        os.umask(previous)


def test_in_place(tmp_path: Path) -> None:
    path = tmp_path / "dead.jsonl"
    sink = AtomicFile(path, private=True, in_place=True)
    sink.resume(None).write(b"one\n")
    assert sink.commit() == 4
    assert path.read_bytes() == b"one\n"
    sink.close()
    again = AtomicFile(path, in_place=True)
    again.resume(4).write(b"two\n")
    again.finish()
    again.finish()
    assert path.read_bytes() == b"one\ntwo\n"
    assert os.listdir(tmp_path) == ["dead.jsonl"]


def test_not_opened(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="call resume first"):
        AtomicFile(tmp_path / "out").commit()
    with pytest.raises(OutputError):
        AtomicFile(tmp_path / "out").finish()


def test_devices_and_pipes_are_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="not a regular file"):
        AtomicFile("/dev/null").resume(None)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OutputError, match="not a regular file"):
        AtomicFile(tmp_path / "pipe").resume(None)


def test_path_is_a_folder_or_below_a_file(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="is a folder where a file is needed"):
        AtomicFile(tmp_path).resume(None)
    (tmp_path / "file").write_bytes(b"")
    for below in ("file/out", "file/deeper/out"):
        with pytest.raises(OutputError, match=r"^\S+: .*name another place$"):
            AtomicFile(tmp_path / below).resume(None)
    with pytest.raises(OutputError, match="name is too long"):
        AtomicFile(tmp_path / ("x" * 300)).resume(None)


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "no space is left on the disk; make room and run again"),
        (errno.EACCES, "may not be written; check the permissions of the folder"),
        (errno.EIO, "cannot be written (Input/output error); check the disk and run again"),
    ],
)
def test_every_os_error_becomes_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, sentence: str
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    path = tmp_path / "out"
    sink = AtomicFile(path)
    sink.resume(None)
    for name in ("fsync", "replace", "open"):
        with monkeypatch.context() as patched:
            patched.setattr(os, name, fail)
            with pytest.raises(OutputError) as error:
                sink.finish() if name != "open" else AtomicFile(path).resume(None)
            assert str(error.value) == f"{path}: {sentence}"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_full_disk() -> None:
    with Path("/dev/full").open("wb", buffering=0) as full:
        out = Guarded(full, "out.csv")  # type: ignore[arg-type]
        with pytest.raises(OutputError, match=r"^out\.csv: no space is left"):
            out.write(b"x" * 10)


# --- parts


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_parts_are_visible_when_committed(tmp_path: Path) -> None:
    sink = PartFiles(tmp_path / "out", ".csv")
    sink.resume(None)
    assert sink.commit() == 0
    sink.begin().write(b"a")
    assert names(tmp_path / "out") == [".part-00000.csv.tmp"]
    assert sink.commit() == 1
    sink.begin().write(b"b")
    sink.finish()
    assert names(tmp_path / "out") == ["part-00000.csv", "part-00001.csv"]
    assert [path.read_bytes() for path in sink.paths()] == [b"a", b"b"]
    assert sink.commit() == 2


def of(*contents: bytes) -> list[Mark]:
    """Marks of parts with these contents."""
    return [Mark(len(content), hashlib.sha256(content).hexdigest()[:32]) for content in contents]


def test_parts_resume_removes_what_came_later_and_nothing_else(tmp_path: Path) -> None:
    kept = ["notes.txt", "part-00000.csv", "part-00001.csv", "part-00002.parquet", ".hidden.csv", "_SUCCESS.csv"]
    stale = ["part-00002.csv", "part-00003.csv", ".part-00004.csv.tmp"]
    for name in kept + stale:
        (tmp_path / name).write_bytes(name.encode())
    sink = PartFiles(tmp_path, ".csv", checked=True)
    sink.resume(of(b"part-00000.csv", b"part-00001.csv"))
    assert names(tmp_path) == sorted(kept)
    sink.begin().write(b"new")
    assert sink.commit() == 3
    assert (tmp_path / "part-00002.csv").read_bytes() == b"new"
    assert sink.marks == of(b"part-00000.csv", b"part-00001.csv", b"new")
    sink.resume(None)
    assert names(tmp_path) == sorted(set(kept) - {"part-00000.csv", "part-00001.csv"})


def test_parts_missing(tmp_path: Path) -> None:
    (tmp_path / "part-00001.csv").write_bytes(b"")
    (tmp_path / "part-00002.csv").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"part-00000.csv: is missing"):
        PartFiles(tmp_path, ".csv").resume(of(b"", b""))
    assert names(tmp_path) == ["part-00001.csv", "part-00002.csv"]


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"ab", "has 2 bytes where the checkpoint has 6"),
        (b"abcdefg", "has 7 bytes where the checkpoint has 6"),
        (b"abcdeF", "was altered"),
    ],
)
def test_parts_not_as_they_were(tmp_path: Path, number: int, content: bytes, sentence: str) -> None:
    for at in (0, 1):
        (tmp_path / f"part-0000{at}.csv").write_bytes(content if at == number else b"abcdef")
    (tmp_path / "part-00002.csv").write_bytes(b"written later")
    with pytest.raises(CheckpointError) as error:
        PartFiles(tmp_path, ".csv").resume(of(b"abcdef", b"abcdef"))
    assert str(error.value).startswith(f"{tmp_path}/part-0000{number}.csv: {sentence}")
    assert str(error.value).endswith("restore the file, or start over with a new checkpoint folder")
    assert len(names(tmp_path)) == 3, "nothing is removed"


@pytest.mark.parametrize("name", ["part-00003.csv", "part-99999.csv", "part-000001.csv", "part-0002.csv", "more.csv"])
def test_parts_a_foreign_file_is_refused_and_stays(tmp_path: Path, name: str) -> None:
    for own in ("part-00000.csv", "part-00001.csv", name):
        (tmp_path / own).write_bytes(b"a")
    with pytest.raises(CheckpointError, match=f"{name}: is among the parts but was not written by this run"):
        PartFiles(tmp_path, ".csv").resume(of(b"a"))
    assert names(tmp_path) == sorted(["part-00000.csv", "part-00001.csv", name])


def test_parts_start_anew_replaces_an_old_release_but_no_foreign_file(tmp_path: Path) -> None:
    for name in ("part-00000.csv", "part-00007.csv"):
        (tmp_path / name).write_bytes(b"old")
    PartFiles(tmp_path, ".csv").resume(None)
    assert names(tmp_path) == []
    (tmp_path / "more.csv").write_bytes(b"foreign")
    with pytest.raises(CheckpointError, match=r"more\.csv: is among the parts"):
        PartFiles(tmp_path, ".csv").resume(None)


def test_parts_that_are_links(tmp_path: Path) -> None:
    """Neither a finished part nor the one being written is followed to another file."""
    victim, folder = tmp_path / "victim", tmp_path / "out"
    victim.write_bytes(b"abc")
    folder.mkdir()
    (folder / "part-00000.csv").symlink_to(victim)
    with pytest.raises(OutputError, match=r"part-00000.csv: is a symbolic link"):
        PartFiles(folder, ".csv").resume(of(b"abc"))
    (folder / "part-00000.csv").unlink()
    sink = PartFiles(folder, ".csv")
    sink.resume(None)
    (folder / ".part-00000.csv.tmp").symlink_to(victim)
    with pytest.raises(OutputError, match=r"part-00000.csv.tmp: is a symbolic link"):
        sink.begin()
    assert victim.read_bytes() == b"abc"


def test_parts_private_prefix_and_remove(tmp_path: Path) -> None:
    sink = PartFiles(tmp_path / "staging", ".arrow", private=True, prefix="held-")
    sink.resume(None)
    sink.begin()
    assert mode_of(tmp_path / "staging" / ".held-00000.arrow.tmp") == 0o600
    assert mode_of(tmp_path / "staging") == 0o700
    sink.commit()
    sink.begin()
    sink.remove()
    assert not (tmp_path / "staging").exists()
    assert sink.paths() == []
    sink.remove()


def test_parts_remove_keeps_what_is_not_theirs(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(b"")
    sink = PartFiles(tmp_path, ".csv")
    sink.resume(None)
    sink.begin()
    sink.finish()
    sink.remove()
    assert names(tmp_path) == ["notes.txt"]


def test_parts_one_at_a_time_and_close_gives_up(tmp_path: Path) -> None:
    sink = PartFiles(tmp_path, ".csv")
    sink.resume(None)
    sink.begin()
    with pytest.raises(OutputError, match="commit it first"):
        sink.begin()
    sink.close()
    assert names(tmp_path) == []


def test_parts_folder_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"")
    with pytest.raises(OutputError, match="is a file where a folder is needed"):
        PartFiles(tmp_path / "out", ".csv").resume(None)
    with pytest.raises(OutputError):
        PartFiles(tmp_path / "out", ".csv").begin()


# --- standard output


class FakeStandardOutput:
    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer


def test_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    monkeypatch.setattr("sys.stdout", FakeStandardOutput(buffer))
    sink = StandardOutputSink(CsvEncoder())
    rows = pa.record_batch({"n": [1, 2]})
    sink.open(rows.schema)
    sink.write(rows)
    assert buffer.getvalue() == b'"n"\n1\n2\n'
    sink.finish()
    sink.close()
    assert not buffer.closed


def test_the_reader_of_standard_output_closes_early() -> None:
    program = """
import sys
from shoal.errors import OutputError
import pyarrow as pa
from shoal.encode.csv import CsvEncoder
from shoal.sinks.files import StandardOutputSink
sink = StandardOutputSink(CsvEncoder())
rows = pa.record_batch({"n": ["x" * 1000]})
sink.open(rows.schema)
try:
    for _ in range(10_000):
        sink.write(rows)
    sink.finish()
except OutputError as error:
    print(error, file=sys.stderr)
    sys.exit(7)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        said = process.stderr.read().decode()
        assert process.wait() == 7
    assert said == "standard output: the reader has gone away; keep it open until the run is done\n"
