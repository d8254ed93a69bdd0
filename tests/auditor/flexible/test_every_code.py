"""Every code of flexible k: a change convicts, the release without it is acquitted, at once and in parts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.auditor.listing import entries as declared
from tests.auditor.flexible.naive import Run, records
from tests.auditor.flexible.test_parts import write
from tests.auditor.in_parts import audit_in_parts, same_report

ALL = ("device", "place", "hour")
Paths = dict[str, Any]


def made(folder: Path) -> Run:
    return Run(folder, records(400, seed=2, missing=0.05), p_sparse=0.5)


def a_row(run: Run) -> int:
    return next(at for at, row in enumerate(run.release) if None not in [row[name] for name in ALL])


def shows(name: str, value: Any) -> Callable[[Run], None]:
    def change(run: Run) -> None:
        run.release[a_row(run)][name] = value

    return change


def says(name: str, value: Any) -> Callable[[Run], None]:
    def change(run: Run) -> None:
        run.entries()[4][name] = value

    return change


def one_person(run: Run, at: list[int], left: int = 0) -> None:
    for row in at[left:]:
        run.record_of(row)["maid"] = "m1"


def rows_like(run: Run, row: int) -> list[int]:
    return [at for at in range(len(run.release)) if run.vector(at) == run.vector(row)]


def largest(run: Run) -> list[int]:
    return max((rows_like(run, at) for at in range(len(run.release))), key=len)


def held_back(run: Run) -> None:
    crowd = {**run.truth[0], "device": "G 1", "place": "a", "hour": 3}
    run.truth[:0] = [{**crowd, "maid": f"new {number}"} for number in range(run.k)]
    for entry in run.trace:
        entry["row"] += run.k


def published_twice(run: Run) -> None:
    run.release.append({**run.release[0]})
    run.trace.append({**run.entries()[0]})


def refused(reason: str | None) -> Callable[[Run], None]:
    def change(run: Run) -> None:
        left = set(range(len(run.truth))) - {entry["row"] for entry in run.trace}
        run.trace.append({"row": min(left), "verdict": "dead", "reason": reason})

    return change


def suppressed(run: Run) -> None:
    refused("null-person")(run)
    run.trace[-1] |= {"verdict": "suppressed", "reason": None}


def unchanged(*columns: str, value: Callable[[int], Any]) -> Callable[[Run], None]:
    def change(run: Run) -> None:
        for at, row in enumerate(run.release):
            for name in columns:
                row[name] = run.record_of(at)[name] = value(at)

    return change


def identifying_together(run: Run) -> None:
    run.promised["anonymize"].pop("sensitive")
    run.promised["stream"]["carry"] = ["net", "mbps"]
    for at, row in enumerate(run.release):
        both = {"net": f"n{at % 15}", "mbps": float(at // 15)}
        row |= both
        run.record_of(at).update(both)


def names_its_person(run: Run) -> None:
    run.release[5]["net"] = run.record_of(5)["net"] = run.record_of(5)["maid"]


ON_RUNS: dict[str, Callable[[Run], None]] = {
    "bad-range": shows("hour", {"lo": 16, "hi": 8}),
    "below-k": lambda run: one_person(run, [at for at in range(len(run.release)) if run.vector(
        at, names=("place", "hour")) == run.vector(0, names=("place", "hour"))]),
    "below-k-s": lambda run: one_person(run, run.smallest_group()),
    "dead-without-cause": refused("unknown:device"),
    "decided-twice": published_twice,
    "filled-cells": lambda run: next(row for row in run.release if row["device"] is None).update(device="Asia"),
    "group-differs": lambda run: run.entries()[-1].update(group=run.entries()[0]["group"]),
    "held-back": held_back,
    "identifier-in-column": names_its_person,
    "identifying-carry": unchanged("mbps", value=float),
    "identifying-sensitive": unchanged("net", value=lambda at: f"net {at}"),
    "identifying-together": identifying_together,
    "k-lowered": says("k", 3),
    "k-s-lowered": says("k_s", 1),
    "lost": lambda run: run.truth.append({**run.truth[0], "hour": 70}),
    "not-a-cell": shows("hour", {"lo": 1, "hi": 5}),
    "not-covered": shows("device", "Apple"),
    "not-in-truth": says("row", 5000),
    "one-person-share": lambda run: one_person(run, largest(run), left=4),
    "raw-identifier": shows("place", "m5"),
    "release-count": lambda run: run.release.pop(9),
    "root-label": shows("place", "*"),
    "sparse-differs": lambda run: run.claims.update(sparse=["device", "place"]),
    "suppressed": suppressed,
    "trace-delay": says("delay", -5),
    "trace-group": says("group", None),
    "trace-row": says("row", -1),
    "trace-verdict": says("verdict", "maybe"),
    "unchecked-promise": refused(None),
    "unknown-label": shows("device", "Nokia"),
    "unusable-accepted": lambda run: run.record_of(3).update(maid=None),
    "whole-domain": shows("hour", {"lo": 0, "hi": 64}),
    "wrong-carry": shows("mbps", -1.0),
    "wrong-nulls": shows("device", None),
    "wrong-sensitive": shows("net", "3g"),
}  # fmt: skip


# ---- changes of files


def rewritten(change: Callable[[pa.Table], pa.Table]) -> Callable[[Paths], None]:
    def rewrite(paths: Paths) -> None:
        for file in Path(paths["release"]).glob("*.parquet"):
            pq.write_table(change(pq.read_table(file)), file)

    return rewrite


def as_lines(change: Callable[[list[str]], None]) -> Callable[[Paths], None]:
    def rewrite(paths: Paths) -> None:
        for file in Path(paths["release"]).glob("*.parquet"):
            rows = pq.read_table(file).to_pylist()
            for row in rows:
                row["hour"] = None if row["hour"] is None else [row["hour"]["lo"], row["hour"]["hi"]]
            lines = [json.dumps(row, separators=(",", ":")) for row in rows]
            if file.stem == "part-1":
                change(lines)
            file.with_suffix(".jsonl").write_text("\n".join(lines) + "\n")
            file.unlink()

    return rewrite


def line(old: str, new: str) -> Callable[[Paths], None]:
    def change(lines: list[str]) -> None:
        at = next(at for at, text in enumerate(lines) if old in text)
        lines[at] = lines[at].replace(old, new, 1)

    return as_lines(change)


def in_nanoseconds(table: pa.Table) -> pa.Table:
    at = table.column_names.index("hour")
    kind = pa.timestamp("ns", "UTC")
    ends = [pa.array([None if row is None else row[end] for row in table["hour"].to_pylist()], pa.int64()).cast(kind)
            for end in ("lo", "hi")]  # fmt: skip
    return table.set_column(at, "hour", pa.StructArray.from_arrays(ends, ["lo", "hi"]))


def with_unused_entry(paths: Paths) -> None:
    for file in Path(paths["release"]).glob("*.parquet"):
        table = pq.read_table(file)
        texts = table["net"].combine_chunks().dictionary_encode()
        coded = pa.DictionaryArray.from_arrays(texts.indices, pa.concat_arrays([texts.dictionary, pa.array(["left"])]))
        with pa.ipc.new_file(file.with_suffix(".arrow"), table.schema.set(3, pa.field("net", coded.type))) as writer:
            writer.write_table(table.set_column(3, "net", coded))
        file.unlink()


def without_trace(paths: Paths) -> None:
    paths["trace"] = None
    rewritten(lambda table: pa.concat_tables([table, table]))(paths)


ON_FILES: dict[str, Callable[[Paths], None]] = {
    "extra-column": rewritten(lambda table: table.append_column("who", pa.nulls(len(table), pa.string()))),
    "hidden-value": with_unused_entry,
    "layout": line('"mbps":', '"mbps": '),
    "missing-column": rewritten(lambda table: table.drop_columns(["hour"])),
    "more-often-than-truth": without_trace,
    "spelling": line('"hour":[8,', '"hour":[8.0,'),
    "too-fine": rewritten(in_nanoseconds),
    "unexpected-metadata": rewritten(lambda table: table.replace_schema_metadata({"note": "of ours"})),
    "unreadable-row": line('"net":', '"net":"5g","net":'),
    "unreadable-value": line('"hour":[8,16]', '"hour":"late"'),
}


def looked_at(paths: Paths) -> set[str]:
    here = shoal.audit(**paths)
    same_report(here, audit_in_parts(**paths))
    return {found.code for found in here.findings}


@pytest.mark.parametrize("code", ON_RUNS)
def test_a_change_of_a_run(tmp_path: Path, code: str) -> None:
    run = made(tmp_path)
    ON_RUNS[code](run)
    assert code in looked_at(write(run, tmp_path))


@pytest.mark.parametrize("code", ON_FILES)
def test_a_change_of_files(tmp_path: Path, code: str) -> None:
    paths = write(made(tmp_path), tmp_path)
    ON_FILES[code](paths)
    assert code in looked_at(paths)


def test_without_a_change(tmp_path: Path) -> None:
    run = made(tmp_path)
    assert looked_at(write(run, tmp_path / "as_it_is")) == {"pending"}
    paths = write(run, tmp_path / "in_lines")
    as_lines(lambda _: None)(paths)
    assert looked_at(paths) == {"pending"}


def test_the_table_is_complete() -> None:
    codes = {one.code for one in declared() if "flexible" in one.families}
    assert codes - {*ON_RUNS, *ON_FILES} == {"pending", "off-grid", "out-of-domain", "rows-not-people"}
