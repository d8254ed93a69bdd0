"""Places of an audit: what is found does not depend on where it runs and how rows are divided."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.auditor.checks import Found, all_found
from shoal.auditor.engine import Here, Place
from shoal.auditor.findings import CheckFailed, Finding, Notes, Severity
from shoal.auditor.policy import read_policy
from shoal.auditor.reading.columns import TEXT
from shoal.auditor.reading.files import read
from shoal.auditor.reading.paths import Format
from shoal.auditor.reading.rows import Rows, by_stream
from shoal.auditor.relation import Relation, Texts
from shoal.auditor.spark import OnSpark
from shoal.auditor.task_files import files_of
from shoal.errors import InputError
from tests.auditor.divided import Divided

POLICY = {"stream": {"person": "row"}}
SHAPE = {"row": int, "name": str, "share": float, "is_odd": bool}
PAIRED = {"row": int, "name": str, "other": int, "share": float}
COUNTED = {"row": int, "same": int}
NAMES = [None, "", "ada", "bob", "Zoë", "a\nb"]
SHARES = [0.0, -0.0, 0.5, float("nan"), float("inf")]


@pytest.fixture(scope="module", autouse=True)
def _send_this_module() -> Iterator[None]:
    """Executors do not have the tests: send functions of this module by value."""
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


def random_table(rows: int, seed: int) -> pa.Table:
    draw = np.random.default_rng(seed)
    return pa.table({
        "name": pa.array([NAMES[at] for at in draw.integers(0, len(NAMES), rows)], TEXT),
        "share": pa.array([SHARES[at] for at in draw.integers(0, len(SHARES), rows)], pa.float64()),
        "is_odd": pa.array(draw.integers(0, 2, rows) == 1, pa.bool_()),
    })  # fmt: skip


def read_all(rows: Rows, first: int) -> Relation:
    count = len(rows)
    columns = {name: list(rows.pieces(name)) for name in ("share", "is_odd")}
    return Relation({
        "row": np.arange(first, first + count, dtype=np.int64),
        "name": Texts.from_arrow(rows.text("name")),
        "share": np.concatenate([np.zeros(0), *(np.asarray(piece.to_numpy()) for piece in columns["share"])]),
        "is_odd": np.concatenate([np.zeros(0, bool), *(np.asarray(piece.to_numpy()) for piece in columns["is_odd"])]),
    })  # fmt: skip


def paired(left: Relation, right: Relation) -> Relation:
    """All pairs of rows of one name."""
    known: dict[str | None, list[int]] = {}
    for at, name in enumerate(right["name"].to_arrow().to_pylist()):
        known.setdefault(name, []).append(at)
    names = left["name"].to_arrow().to_pylist()
    pairs = [(at, other) for at, name in enumerate(names) for other in known.get(name, ())]
    own = left.take(np.array([at for at, _ in pairs], np.int64))
    of_right = np.array([right["row"][at] for _, at in pairs], np.int64)
    return Relation({"row": own["row"], "name": own["name"], "other": of_right, "share": own["share"]})


def with_same(rows: Relation) -> Relation:
    """How many rows have the name and the share of a row."""
    texts = rows["name"].to_arrow().to_pylist()
    keys = [(text, repr(share + 0.0)) for text, share in zip(texts, rows["share"].tolist(), strict=True)]
    return Relation({"row": rows["row"], "same": np.array([keys.count(key) for key in keys], np.int64)})


def lone(rows: Relation) -> Found:
    alone = np.sort(rows["row"][rows["same"] == 1])[:10]
    count = int((rows["same"] == 1).sum())
    finding = Finding("lone", Severity.VIOLATION, count, "Alone.", tuple(alone.tolist()))
    sizes = rows["same"].tolist()
    sums = {"rows": len(rows)} if len(rows) else {}
    least, most = ({"same": which(sizes)} if sizes else {} for which in (min, max))
    return Found([finding] if count else [], sums, least, most)


def in_order(batches: Iterator[Relation]) -> list[int]:
    return [row for batch in batches for row in batch["row"].tolist()]


def halved(rows: Relation) -> Relation:
    return rows.having(share=rows["share"] / 2)


def toy_audit(place: Place) -> dict[str, Any]:
    """One of every step."""
    table = place.read("release", read_all, SHAPE)
    truth = place.each(place.read("truth", read_all, SHAPE), halved, SHAPE)
    same = place.regroup(table, ("name", "share"), with_same, COUNTED)
    found = all_found(place.divide(same, ("row",), lone))
    pairs = place.gather(place.both(table, truth, ("name",), paired, PAIRED))
    order = np.lexsort((pairs["other"], pairs["row"]))
    return {
        "found": (found.findings, found.sums, found.least, found.most),
        "pairs": (pairs["row"][order].tolist(), pairs["other"][order].tolist(), repr(pairs["share"][order].tolist())),
        "order": place.along(same, ("same", "row"), in_order),
        "rows": place.outline("release").rows,
        "columns": place.outline("truth").columns,
        "lengths": sum(place.facts("truth", len)),
        "trace": (place.has("trace"), place.facts("trace", len)),
    }


def written(folder: Path, role: str, tables: list[pa.Table]) -> list[str]:
    paths = [str(folder / f"{role}-{at}.parquet") for at in range(len(tables))]
    for path, table in zip(paths, tables, strict=True):
        pq.write_table(table, path)
    return paths


def rows_of(role: str, paths: list[str]) -> Rows:
    rows = read(paths, name=role, expected=Format())
    return by_stream(rows, POLICY["stream"]) if role == "truth" else rows


@contextmanager
def small_batches(session: Any) -> Iterator[None]:
    """A task gets its rows in many batches, whose texts have different numbers."""
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = session.conf.get(name)
    session.conf.set(name, "7")
    yield
    session.conf.set(name, before)


@pytest.mark.parametrize(
    ("sizes", "others", "buckets"),
    [((40, 0, 23), (30,), 3), ((1,), (1, 0), 5), ((0,), (3,), 2), ((7,), (9, 4), 20)],
)
def test_places_agree(session: Any, tmp_path: Path, sizes: Any, others: Any, buckets: int) -> None:
    tables = {"release": [random_table(rows, at) for at, rows in enumerate(sizes)]}
    tables["truth"] = [random_table(rows, 10 + at) for at, rows in enumerate(others)]
    paths = {role: written(tmp_path, role, own) for role, own in tables.items()}
    files = [file for role, own in paths.items() for file in files_of(own, role, Format())]
    here = toy_audit(Here({role: rows_of(role, own) for role, own in paths.items()}))
    with small_batches(session), OnSpark(session, read_policy(POLICY), files, buckets=buckets) as place:
        there = toy_audit(place)
    assert there == here
    first, divided = 0, {"release": [rows_of("release", [path]) for path in paths["release"]], "truth": []}
    for path in paths["truth"]:
        rows = read(path, name="truth", expected=Format())
        divided["truth"].append(by_stream(rows, POLICY["stream"], first))
        first += len(rows)
    assert toy_audit(Divided(divided, buckets)) == here


def refuse(rows: Relation) -> int:
    raise InputError("release: a column has no name; check the file")


def stumble(rows: Relation) -> int:
    return int(rows["row"][len(rows)])


def test_errors_of_tasks_are_what_they_were(session: Any, tmp_path: Path) -> None:
    from shoal.spark.cluster.session import readable_errors

    (path,) = written(tmp_path, "release", [random_table(5, 1)])
    place = OnSpark(session, read_policy({}), files_of(path, "release", Format()), errors=readable_errors)
    table = place.read("release", read_all, SHAPE)
    with pytest.raises(InputError, match="a column has no name"):
        place.divide(table, ("name",), refuse)
    with pytest.raises(CheckFailed, match=r"IndexError in test_place.py, line \d+"):
        place.divide(table, ("name",), stumble)
    notes = {}
    places: dict[str, Place] = {"here": Here({"release": rows_of("release", [path])}), "spark": place}
    for name, own in places.items():
        notes[name] = Notes()
        with notes[name].guarded():
            own.divide(own.read("release", read_all, SHAPE), ("name",), stumble)
    assert [found.code for found in notes["spark"].findings] == ["unchecked-promise"]
    assert notes["spark"].findings == notes["here"].findings


def test_tables_are_kept_until_the_end_and_cheap_ones_from_their_second_use_on(session: Any, tmp_path: Path) -> None:
    paths = written(tmp_path, "release", [random_table(20, 1), random_table(3, 2)])
    with OnSpark(session, read_policy({}), files_of(paths, "release", Format())) as place:
        table = place.read("release", read_all, SHAPE)
        half = place.each(table, halved, SHAPE)
        kept = []
        for _ in range(2):
            assert sum(place.divide(half, ("share",), len)) == 23
            kept.append((table.frame.is_cached, half.frame.is_cached))
        assert kept == [(True, False), (True, True)]
    assert (table.frame.is_cached, half.frame.is_cached) == (False, False)


def test_memory_only_is_refused() -> None:
    with pytest.raises(InputError, match="on Spark give paths"):
        files_of(pa.table({}), "release", Format())
