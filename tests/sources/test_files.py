"""Files, folders, globs, pipes; compressed, concatenated, cut and damaged."""

from __future__ import annotations

import gzip
import io
import os
import random
import threading
from pathlib import Path
from typing import Any

import pytest
import zstandard

from shoal.errors import InputError, PolicyError, TruncatedInput
from shoal.sources.compression import detect
from shoal.sources.files import find_files
from shoal.sources.input_file import InputFile

TEXT = b"".join(b"line %d of a text that says %d\n" % (n, n * n) for n in range(20_000))
NOISE = random.Random(7).randbytes(400_000)


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def plain(data: bytes) -> bytes:
    return data


COMPRESSORS = {"none": plain, "gzip": gzip.compress, "zstd": zstd}
compressed = pytest.mark.parametrize("compress", [gzip.compress, zstd], ids=["gzip", "zstd"])


def read_all(file: InputFile, size: int = 10_000) -> tuple[bytes, Exception | None]:
    parts = []
    with file.open() as stream:
        try:
            while part := stream.read(size):
                parts.append(part)
        except InputError as error:
            return b"".join(parts), error
    return b"".join(parts), None


def written(folder: Path, data: bytes, name: str = "data.bin") -> InputFile:
    path = folder / name
    path.write_bytes(data)
    return InputFile(path)


@pytest.mark.parametrize("kind", COMPRESSORS)
@pytest.mark.parametrize("data", [b"", b"x", TEXT, NOISE], ids=["empty", "short", "text", "noise"])
def test_compression_is_detected_by_the_bytes(tmp_path: Path, kind: str, data: bytes) -> None:
    file = written(tmp_path, COMPRESSORS[kind](data), "misleading.gz.csv")
    assert read_all(file) == (data, None)
    with file.open() as stream:
        assert stream.read() == data
    assert detect(COMPRESSORS[kind](TEXT)[:4]) == kind


@compressed
def test_members_and_frames_one_after_another(tmp_path: Path, compress: Any) -> None:
    file = written(tmp_path, compress(TEXT) + compress(b"") + compress(NOISE))
    assert read_all(file) == (TEXT + NOISE, None)


def test_padding_and_rubbish_after_gzip(tmp_path: Path) -> None:
    padded = written(tmp_path, gzip.compress(TEXT) + b"\0" * 999)
    assert read_all(padded) == (TEXT, None)
    data, error = read_all(written(tmp_path, gzip.compress(TEXT) + b"rubbish"))
    assert data == TEXT
    assert "damaged" in str(error)


def test_skippable_zstd_frame_first(tmp_path: Path) -> None:
    skippable = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
    assert read_all(written(tmp_path, skippable + zstd(TEXT))) == (TEXT, None)


@compressed
@pytest.mark.parametrize("cut", [1, 3, 5, 9, 1000, 100_000])
@pytest.mark.parametrize("size", [1_000, 70_000, 10_000_000])
def test_truncated_after_the_last_byte_to_be_had(tmp_path: Path, compress: Any, cut: int, size: int) -> None:
    file = written(tmp_path, compress(NOISE)[:-cut])
    data, error = read_all(file, size)
    assert isinstance(error, TruncatedInput)
    assert str(file.path) in str(error)
    assert NOISE.startswith(data)
    # Noise is stored as it is, so all of it up to the cut can be had.
    assert len(data) >= len(NOISE) - cut


@compressed
def test_truncated_text(tmp_path: Path, compress: Any) -> None:
    whole = compress(TEXT)
    data, error = read_all(written(tmp_path, whole + whole[: len(whole) // 2]))
    assert isinstance(error, TruncatedInput)
    assert data.startswith(TEXT)
    assert (TEXT + TEXT).startswith(data)
    assert len(data) > len(TEXT) or compress is zstd  # one zstd block may be all there is


def test_the_error_waits_for_the_last_bytes(tmp_path: Path) -> None:
    with written(tmp_path, gzip.compress(TEXT)[:-4]).open() as stream:
        assert stream.read() == TEXT
        for _ in range(2):
            with pytest.raises(TruncatedInput):
                stream.read(1)


def test_bad_checksum_after_what_could_be_read(tmp_path: Path) -> None:
    for compress, at in ((gzip.compress, -6), (zstd, -2)):
        whole = bytearray(compress(TEXT))
        whole[at] ^= 1
        data, error = read_all(written(tmp_path, bytes(whole)))
        assert "damaged" in str(error)
        assert not isinstance(error, TruncatedInput)
        assert TEXT.startswith(data)
        if compress is gzip.compress:
            assert data == TEXT


def test_damage_in_the_middle_of_gzip(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(TEXT * 5))
    whole[len(whole) // 2 : len(whole) // 2 + 50] = b"\xff" * 50
    data, error = read_all(written(tmp_path, bytes(whole)))
    assert error is not None
    assert data[:100_000] == (TEXT * 5)[:100_000]


def test_compression_given(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(TEXT))
    assert read_all(InputFile(path, compression="none"))[0] == path.read_bytes()
    assert read_all(InputFile(path, compression="gzip"))[0] == TEXT
    assert read_all(InputFile(path, compression="zstd"))[1] is not None
    path.write_bytes(TEXT)
    assert "damaged" in str(read_all(InputFile(path, compression="gzip"))[1])
    with pytest.raises(PolicyError, match="auto, none, gzip, zstd"):
        find_files("a", compression="rar")  # type: ignore[arg-type]


# --- which files


def test_folder(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", ".hidden", "c.partial", "d.tmp", "e.dead.jsonl"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "z.csv").write_bytes(b"x")
    assert [file.path.name for file in find_files(str(tmp_path)) if file.path] == ["a.csv", "b.csv"]


def test_globs_lists_and_base(tmp_path: Path) -> None:
    for name in ("b2.csv", "b1.csv", "a.txt"):
        (tmp_path / name).write_bytes(b"x")
    found = find_files(["b*.csv", "a.txt", "b1.csv"], base=tmp_path)
    assert [file.name for file in found] == [str(tmp_path / name) for name in ("b1.csv", "b2.csv", "a.txt")]


def test_a_name_with_a_star_in_it_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "a[1].csv").write_bytes(b"x")
    assert len(find_files("a[1].csv", base=tmp_path)) == 1


@pytest.mark.parametrize("path", ["missing.csv", "*.csv", "empty"])
def test_nothing_there(tmp_path: Path, path: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError) as error:
        find_files(path, base=tmp_path)
    assert str(error.value).startswith(str(tmp_path / path))


def test_folder_instead_of_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder where a file is needed"):
        InputFile(tmp_path).open()


def test_a_file_removed_before_it_is_read(tmp_path: Path) -> None:
    file = written(tmp_path, b"x")
    assert file.path is not None
    file.path.unlink()
    for use in (file.open, file.open_seekable, file.fingerprint, lambda: file.size):
        with pytest.raises(InputError, match="does not exist"):
            use()


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path, b"x")

    def refuse(*_: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match="cannot be read; check the permissions"):
        file.open()


def test_folder_that_may_not_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(InputError, match="cannot be read; check the permissions"):
        find_files(str(tmp_path))


# --- standard input and pipes


class FakeStandardInput:
    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_standard_input(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr("sys.stdin", FakeStandardInput(COMPRESSORS[kind](TEXT)))
    (file,) = find_files("-")
    assert (file.name, file.path, file.size, file.fingerprint()) == ("standard input", None, None, "-")
    assert read_all(file) == (TEXT, None)
    with pytest.raises(InputError, match="only once"):
        file.open()


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_named_pipe(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(COMPRESSORS[kind](TEXT),))
    writer.start()
    assert read_all(InputFile(path)) == (TEXT, None)
    writer.join()


def test_standard_input_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (TEXT, b"x", b""):
        monkeypatch.setattr("sys.stdin", FakeStandardInput(data))
        with InputFile(None).open() as stream:
            assert stream.readable()
            assert stream.read() == data


def test_read_error_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "open", lambda *_: Broken())
    with pytest.raises(InputError, match=r"cannot be read \(Input/output error\)"):
        written_without_open(tmp_path).open()


def written_without_open(folder: Path) -> InputFile:
    os.close(os.open(folder / "a", os.O_CREAT))
    return InputFile(folder / "a")


def test_decompressed_streams_are_ordinary_streams(tmp_path: Path) -> None:
    with written(tmp_path, gzip.compress(TEXT)).open() as stream:
        assert (stream.readable(), stream.seekable()) == (True, False)
        assert io.BufferedReader(stream).readline() == TEXT.split(b"\n")[0] + b"\n"  # type: ignore[arg-type]
    with written(tmp_path, gzip.compress(TEXT)).open() as stream:
        assert stream.read(0) == b""
        assert stream.readall() == TEXT  # type: ignore[attr-defined]


# --- seekable and fingerprint


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_seekable(tmp_path: Path, kind: str) -> None:
    with written(tmp_path, COMPRESSORS[kind](TEXT)).open_seekable() as source:
        assert source.size() == len(TEXT)
        source.seek(100)
        assert source.read(10) == TEXT[100:110]


def test_seekable_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.sources.input_file.MEMORY_LIMIT_BYTES", 100_000)
    with pytest.raises(InputError, match="uncompress it first"):
        written(tmp_path, gzip.compress(TEXT)).open_seekable()
    written(tmp_path, TEXT).open_seekable().close()


def test_seekable_from_truncated(tmp_path: Path) -> None:
    with pytest.raises(TruncatedInput):
        written(tmp_path, gzip.compress(TEXT)[:-9]).open_seekable()


def test_fingerprint(tmp_path: Path) -> None:
    file = written(tmp_path, NOISE * 8)
    path = file.path
    assert path is not None
    before = file.fingerprint()
    stamp = path.stat().st_mtime_ns
    assert file.fingerprint() == before
    assert file.size == len(NOISE) * 8

    def changed(data: bytes, time_ns: int = stamp) -> bool:
        path.write_bytes(data)
        os.utime(path, ns=(time_ns, time_ns))
        return file.fingerprint() != before

    assert not changed(NOISE * 8)
    assert changed(b"x" + (NOISE * 8)[1:])
    assert changed((NOISE * 8)[:-1] + b"x")
    assert changed(NOISE * 8 + b"x")
    assert changed(NOISE * 8, stamp + 1)


def test_repr_names_the_file(tmp_path: Path) -> None:
    assert "data.bin" in repr(written(tmp_path, b""))
