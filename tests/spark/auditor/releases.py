"""A release of tuples with its truth and trace, made by hand: clusters of people who arrive one after another."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TREE = {"any": {"low": ["a", "b"], "high": ["c", "d"]}}
POLICY: dict[str, Any] = {
    "stream": {"person": "id", "carry": ["shop"]},
    "anonymize": {
        "method": "least-loss", "k": 4, "deadline": 60, "reuse": 40, "sensitive": ["work"], "l": 2,
        "quasi": {
            "age": {"kind": "numeric", "low": 0, "high": 100},
            "school": {"kind": "categorical", "hierarchy": {"kind": "nested", "tree": TREE}},
        },
    },
}  # fmt: skip
ABOVE = {"a": "low", "b": "low", "c": "high", "d": "high"}


@dataclass
class Evidence:
    """Rows of the release, the truth and the trace, to be broken and written."""

    release: list[dict[str, Any]] = field(default_factory=list)
    truth: list[dict[str, Any]] = field(default_factory=list)
    trace: list[dict[str, Any]] = field(default_factory=list)
    policy: dict[str, Any] = field(default_factory=lambda: POLICY)

    def write(self, folder: Path, *, files: int = 3, kind: str = "parquet") -> dict[str, Any]:
        """Write all parts to files; return the arguments of an audit."""
        for name in ("release", "truth", "trace"):
            rows = getattr(self, name)
            (folder / name).mkdir(parents=True)
            size = max(-(-len(rows) // files), 1)
            names = list(dict.fromkeys(key for row in rows for key in row))
            full = pa.Table.from_pylist([{key: row.get(key) for key in names} for row in rows])
            for number in range(files):
                part = full.slice(number * size, size)
                if kind == "parquet":
                    pq.write_table(part, folder / name / f"part-{number}.parquet")
                else:
                    (folder / name / f"part-{number}.jsonl").write_bytes(_lines(part))
        paths = {name: str(folder / name) for name in ("release", "truth", "trace")}
        return {**paths, "policy": self.policy}


def _lines(part: pa.Table) -> bytes:
    import orjson

    return b"".join(orjson.dumps(row) + b"\n" for row in part.to_pylist())


def make_evidence(clusters: int = 60, size: int = 6) -> Evidence:
    """Clusters of `size` people of similar age; one record in fifty is refused, some rows reuse the cluster before."""
    found, arrived, made = Evidence(), 0, []
    for cluster in range(clusters):
        members, low = [], cluster * 7 % 60
        for place in range(size):
            row = len(found.truth)
            school = "abcd"[(cluster + place % 2) % 4]
            found.truth.append(
                {"id": f"p{row % 307}", "age": low + place, "school": school, "work": f"w{place % 3}", "shop": "x"}
            )
            members.append((row, arrived))
            arrived += 1
        if cluster % 8 == 3:  # refused: no person
            row = len(found.truth)
            found.truth.append({"id": None, "age": 1, "school": "a", "work": "w0", "shop": "x"})
            found.trace.append(entry(row, "dead", reason="null-person"))
        schools = {found.truth[row]["school"] for row, _ in members}
        above = {ABOVE[school] for school in schools}
        vector = {"age": {"lo": low, "hi": low + size}, "school": "any" if len(above) > 1 else above.pop()}
        last = members[-1]
        made.append((cluster, vector, low, last[1]))
        turn = cluster * 5 % size  # rows of a cluster are published in another order than they arrived in
        for row, at in (*members[turn:], *members[:turn]):
            found.trace.append(entry(row, "released", group=cluster, delay=last[1] - at, event=last[0], size=size))
            found.release.append({**vector, "work": found.truth[row]["work"], "shop": "x"})
        if cluster % 5 == 4:  # a row of its own, published by the cluster just made
            row = len(found.truth)
            found.truth.append({**found.truth[last[0]], "id": f"q{row}"})
            found.trace.append(entry(row, "released", group=cluster, event=row, size=size, reused=True))
            found.release.append({**vector, "work": found.truth[row]["work"], "shop": "x"})
            arrived += 1
    return found


def entry(row: int, verdict: str, **more: Any) -> dict[str, Any]:
    """An entry of the trace."""
    size = more.get("size", 0)
    return {
        "row": row, "verdict": verdict, "reason": more.get("reason"), "group": more.get("group"),
        "delay": more.get("delay", 0), "reused": more.get("reused", False), "event": more.get("event", row),
        "k": 4 if verdict == "released" else None, "carriers": [size, size] if verdict == "released" else None,
    }  # fmt: skip
