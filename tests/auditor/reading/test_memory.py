"""An audit takes memory for rows, not for text, and refuses what would take more than it may."""

from __future__ import annotations

import gzip
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.auditor import audit
from shoal.auditor.counting import shared_codes
from shoal.auditor.reading.files import read
from shoal.auditor.reading.memory import limited, size_of, spelt
from shoal.auditor.reading.paths import Format
from shoal.auditor.reading.spellings import Spelling
from shoal.errors import InputError, PolicyError, ShoalError
from tests.auditor.z.naive import policy

RELEASE = pa.table({"ts": [1000], "user": ["0123456789abcdef" * 2], "site": ["a.example"]})


def bomb(path, megabytes):
    """A small file that is large when decompressed."""
    line = b"1000,person 1,a.example," + b"x" * 1000 + b"\n"
    with gzip.open(path, "wb", compresslevel=6) as file:
        file.write(b"ts,user,site,note\n")
        for _ in range(megabytes):
            file.write(line * (2**20 // len(line)))
    return path


def test_text_that_repeats_takes_little(tmp_path):
    path = bomb(tmp_path / "truth.csv.gz", 64)
    with limited("8 MB"):
        rows = read(path, name="truth", expected=Format())
    assert len(rows) > 60_000
    assert rows.text("user").combine_chunks().nbytes < 5 * len(rows)
    assert audit(RELEASE, path, policy=policy(z=1), max_memory="8 MB").ok


@pytest.mark.exhaustive
def test_the_peak_is_not_that_of_the_text(tmp_path):
    """256 MB of text in 250,000 rows: the process must not store all of it."""
    path = bomb(tmp_path / "truth.csv.gz", 256)
    code = (
        "import resource, sys\n"
        "from shoal.auditor.reading.files import read\n"
        "from shoal.auditor.reading.paths import Format\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "rows = read(sys.argv[1], name='truth', expected=Format())\n"
        "print(len(rows), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    rows, kilobytes = map(int, ended.stdout.split())
    assert rows > 240_000
    assert kilobytes < 128 * 1024


def untidy(path):
    with gzip.open(path, "wb") as file:
        file.write(b"ts,user,site\n" + b'1000,"a\nb",s\n' * 300_000)
    return path


def objects(path):
    with gzip.open(path, "wb") as file:
        file.write(b'{"ts": 1000, "user": "a", "site": "s"}\n' * 100_000)
    return path


def one_line(path):
    with gzip.open(path, "wb") as file:
        for _ in range(64):
            file.write(b"x" * 2**20)
    return path


def constant(path):
    column = pa.DictionaryArray.from_arrays(np.zeros(2_000_000, np.int32), ["a"])
    pq.write_table(pa.table({"ts": column, "user": column, "site": column}), path)
    return path


@pytest.mark.parametrize(
    ("make", "name"),
    [(untidy, "t.csv.gz"), (objects, "t.jsonl.gz"), (one_line, "t.csv.gz"), (constant, "t.parquet")],
)
def test_what_would_take_too_much_is_refused(make, name, tmp_path):
    path = make(tmp_path / name)
    assert path.stat().st_size < 2**20
    with pytest.raises(
        InputError, match=r"would take more memory than the 16\.0 MB allowed; raise max_memory"
    ) as error:
        audit(RELEASE, path, policy=policy(z=1), max_memory="16 MB")
    assert str(error.value).startswith(str(path))


def test_all_inputs_share_the_memory(tmp_path):
    path = objects(tmp_path / "t.jsonl.gz")
    with limited("80 MB"):
        read(path, name="truth", expected=Format())
        with pytest.raises(InputError):
            read(path, name="trace", expected=Format())


@pytest.mark.parametrize("size", [0, -1, True, 1.5, "", "much", "8 XB", "0", "-8 GB", []])
def test_invalid_sizes(size):
    with pytest.raises(PolicyError, match="max_memory"):
        size_of(size)


def test_sizes():
    assert [size_of(size) for size in (10, "10", "2kB", "2 KB", "1.5 MB", "8 GB", "1 TiB")] == [
        10, 10, 2048, 2048, 1.5 * 2**20, 8 * 2**30, 2**40,
    ]  # fmt: skip
    assert size_of(None) > 2**28
    assert [spelt(size) for size in (5, 2048, 2**20, 12 * 2**30)] == ["5 bytes", "2.0 kB", "1.0 MB", "12.0 GB"]


def test_codes_do_not_depend_on_how_text_is_kept():
    random = np.random.default_rng(3)
    values = [None if at == 7 else f"v{at}" for at in random.integers(0, 9, 200).tolist()]
    plain = pa.chunked_array([pa.array(values[:90], pa.large_string()), pa.array(values[90:], pa.large_string())])
    dictionary = pa.array([None, "unused", *(f"v{at}" for at in range(9, -1, -1))], pa.large_string())
    places = [dictionary.to_pylist().index(value) for value in values]
    coded = pa.DictionaryArray.from_arrays(pa.array(places[90:], pa.int32()), dictionary)
    mixed = pa.chunked_array([plain.chunk(0).dictionary_encode(), coded])
    texts, (first, second) = shared_codes(plain, plain)
    again, (third, fourth) = shared_codes(mixed, mixed)
    assert texts == again
    assert first.tolist() == third.tolist()
    assert second.tolist() == fourth.tolist()


BLOCKS = [
    b"ts,user\n1,a\n2,b\n",
    b"ts,user\r\n1,a\r\n\r\n2,\r\n",
    b"\xef\xbb\xbfts,user\n1,a\n\n\n2,b",
    b'ts,user\n1,"a"\n2,"b,c"\n3,"d""e"\n',
    b'ts,user\n1,"a\nb"\n2,c\n',
    b"ts,user\n1,a\n2\n3,c\n",
    b"ts,user\n1,\xff\n2,b\n",
    b"ts,user\n",
    b"ts, user \n 1 , a \n2,  \n",
    b"\n\nts,user\n1,a\n",
    b"1,a\n",
    b"",
]


@pytest.mark.parametrize("data", BLOCKS)
@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize(
    "expected", [Format(), Format(trims=True), Format(header=["x", "y"]), Format(spelling=Spelling(words=("b",)))]
)
def test_blocks_do_not_show(data, size, expected, tmp_path, monkeypatch):
    """However a file is cut, the rows are those of the file in one piece."""
    path = tmp_path / "a.csv"
    path.write_bytes(data)
    found = []
    for block in (2**20, size):
        monkeypatch.setattr("shoal.auditor.reading.paths._BLOCK", block)
        try:
            rows = read(path, name="truth", expected=expected)
        except ShoalError as error:
            found.append(str(error))
        else:
            found.append(({name: rows.text(name).to_pylist() for name in rows.columns}, rows.broken.tolist()))
    assert found[0] == found[1]


def test_columns_that_the_policy_does_not_name_are_not_kept(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"ts,user,note\n1,a,long\n")
    assert read(path, name="truth", expected=Format(wanted=frozenset({"ts", "user"}))).columns == ["ts", "user"]
