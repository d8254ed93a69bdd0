"""A naive publisher of tuples (lists, one record at a time: the expiring one and its nearest); no code of shoal."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from shoal.auditor import audit

SECOND = 1_000_000_000
TREE = {"*": {"north": ["ash", "birch"], "south": ["cedar", "date", "elm"]}}
PATHS = {
    **{leaf: (leaf, "north", "*") for leaf in ("ash", "birch")},
    **{leaf: (leaf, "south", "*") for leaf in ("cedar", "date", "elm")},
}
LEAVES = {"north": 2, "south": 3, "*": 5}
ILLS = ("cough", "fever", "gout", "none")
LOW, HIGH = 0, 100

Row = dict[str, Any]


def policy(*, numeric: Row | None = None, **rules: Any) -> dict[str, Any]:
    stream: Row = {"person": "id", "carry": list(rules.pop("carry", ["shop"]))}
    if "time" in rules:
        stream["time"] = rules.pop("time")
    quasi = {
        "age": {"kind": "numeric", "low": LOW, "high": HIGH, **(numeric or {})},
        "tree": {"kind": "categorical", "hierarchy": {"kind": "nested", "tree": TREE}},
    }
    method = {"method": "fads", "k": 3, "deadline": 12, "reuse": 6, "sensitive": ["ill"], "quasi": quasi}
    return {"stream": stream, "anonymize": {**method, **rules}}


def records(count: int, *, seed: int = 1, people: int | None = None, missing: float = 0.0) -> list[Row]:
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        row: Row = {"id": f"person {draw.randrange(people) if people else number}"}
        row["age"] = None if draw.random() < missing else draw.randrange(LOW, HIGH + 1)
        row["tree"] = None if draw.random() < missing else draw.choice(sorted(PATHS))
        row |= {"ill": draw.choice(ILLS), "shop": f"shop {draw.randrange(4)}", "ts": 10 * number}
        rows.append(row)
    return rows


@dataclass
class Cluster:
    number: int
    made: int
    values: Row
    """The published vector."""
    carriers: list[int]
    ills: list[str]
    """Sensitive values of all rows that left by it."""
    reference: Counter[str]


@dataclass
class Publisher:
    """Decide records one by one; `released` and `trace` grow."""

    k: int = 3
    deadline: int = 12
    reuse: int = 6
    missing: str = "covered"
    min_carriers: int | None = None
    l: int = 1  # noqa: E741
    t: float | None = None
    reference: int = 1000
    declared: dict[str, float] | None = None
    groups: bool = False
    root: bool = False
    grid: int | None = None
    is_timed: bool = False
    shuffles: bool = True
    released: list[Row] = field(default_factory=list)
    trace: list[Row] = field(default_factory=list)

    def run(self, stream: list[Row]) -> Publisher:
        self._held: list[tuple[int, int, Row]] = []  # (row, arrived, record)
        self._pool: list[Cluster] = []
        self._ills: list[str] = []
        clock, arrivals, formed = -math.inf, 0, 0
        self._formed, self._event, self._made = formed, 0, []
        self._order = random.Random(5)
        for number, record in enumerate(stream):
            self._publish_event()
            self._event = number
            reason = refusal(record)
            if reason:
                self._note(number, "dead", reason=reason)
                continue
            if self.is_timed:
                clock = max(clock, record["ts"] * SECOND)
                while self._held and self._held[0][1] + self.deadline <= clock:
                    self._decide(self._held[0][1] + self.deadline)
            self._held.append((number, int(clock) if self.is_timed else arrivals, record))
            self._ills.append(record["ill"])
            while not self.is_timed and self._held and self._held[0][1] + self.deadline <= arrivals:
                self._decide(arrivals)
            arrivals += 1
        self._publish_event()
        while self._held:
            self._decide(int(clock) if self.is_timed else arrivals - 1)
        self._publish_event()
        return self

    def _publish_event(self) -> None:
        """Publish what one arrival (or the end) decided, in a random order."""
        if self.shuffles:
            self._order.shuffle(self._made)
        for entry, row in self._made:
            self.trace.append(entry)
            self.released += [] if row is None else [row]
        self._made = []

    def _decide(self, now: int) -> None:
        mine = self._held[0]
        self._pool = [cluster for cluster in self._pool if now - cluster.made <= self.reuse]
        fitting = [] if self.groups else [cluster for cluster in self._pool if self._fits(mine[2], cluster)]
        best = min(fitting, key=lambda cluster: self._loss(mine[2], cluster.values), default=None)
        members = self._members(mine)
        made = self._cluster(members, now) if members else None
        if best and (made is None or self._loss(mine[2], best.values) <= self._loss(mine[2], made.values)):
            self._held.remove(mine)
            best.ills.append(mine[2]["ill"])
            self._leave(mine, best, now, reused=True)
        elif made is not None:
            self._formed += 1
            self._pool.append(made)
            for member in sorted(members):
                self._held.remove(member)
                self._leave(member, made, now, reused=False, is_first=member == min(members))
        else:
            self._held.remove(mine)
            root = {"age": {"lo": LOW, "hi": HIGH}, "tree": "*", **rest(mine[2])}
            self._note(mine[0], "suppressed", root if self.root else None, delay=now - mine[1])

    def _members(self, mine: tuple[int, int, Row]) -> list[tuple[int, int, Row]]:
        pool = [other for other in self._held if self.missing != "own" or lacks(other[2]) == lacks(mine[2])]
        nearest = sorted(pool, key=lambda other: (distance(mine[2], other[2]), other[0]))
        members, people = [mine], {mine[2]["id"]}
        for other in nearest:
            is_new_ill = other[2]["ill"] not in {member[2]["ill"] for member in members}
            needed = len(members) < self.k or (not self._is_diverse(members) and is_new_ill)
            if needed and other[2]["id"] not in people:
                members.append(other)
                people.add(other[2]["id"])
        enough = len(members) >= self.k and self._is_diverse(members)
        return members if enough else []

    def _is_diverse(self, members: list[tuple[int, int, Row]]) -> bool:
        return self._is_enough([member[2]["ill"] for member in members], self._recent())

    def _recent(self) -> Counter[str]:
        return Counter(self._ills[-self.reference :])

    def _is_enough(self, ills: list[str], reference: Counter[str]) -> bool:
        if len(set(ills)) < self.l:
            return False
        return self.t is None or variation(Counter(ills), self.declared or reference) <= self.t

    def _cluster(self, members: list[tuple[int, int, Row]], now: int) -> Cluster:
        inside = [member[2] for member in members]
        carriers = [sum(record[name] is not None for record in inside) for name in ("age", "tree")]
        least = self.min_carriers or math.ceil(self.k / 2)
        needed = {"own": 1, "hidden": len(inside), "covered": least, "paper": 1}[self.missing]
        values: Row = {"age": None, "tree": None}
        if carriers[0] >= needed:
            values["age"] = self._range([record["age"] for record in inside if record["age"] is not None])
        if carriers[1] >= needed:
            values["tree"] = meet([record["tree"] for record in inside if record["tree"] is not None])
        return Cluster(self._formed, now, values, carriers, [record["ill"] for record in inside], self._recent())

    def _range(self, ages: list[int]) -> Row:
        low, high = min(ages), max(ages)
        if self.grid:
            low, high = low // self.grid * self.grid, min(-(-high // self.grid) * self.grid, HIGH)
        return {"lo": low, "hi": high}

    def _fits(self, record: Row, cluster: Cluster) -> bool:
        if record["age"] is not None:
            span = cluster.values["age"]
            if span is None or not span["lo"] <= record["age"] <= span["hi"]:
                return False
        if record["tree"] is not None and cluster.values["tree"] not in PATHS[record["tree"]]:
            return False
        if self.missing == "own" and lacks(record) != lacks(cluster.values):
            return False
        if self.missing == "hidden" and lacks(record) - lacks(cluster.values):
            return False
        return self._is_enough([*cluster.ills, record["ill"]], cluster.reference)

    @staticmethod
    def _loss(record: Row, values: Row) -> float:
        losses = []
        if record["age"] is not None:
            span = values["age"]
            losses.append(1.0 if span is None else (span["hi"] - span["lo"]) / (HIGH - LOW))
        if record["tree"] is not None:
            losses.append(1.0 if values["tree"] is None else (LEAVES.get(values["tree"], 1) - 1) / (LEAVES["*"] - 1))
        return sum(losses) / len(losses) if losses else 0.0

    def _leave(
        self, member: tuple[int, int, Row], cluster: Cluster, now: int, *, reused: bool, is_first: bool = False
    ) -> None:
        shown = dict(cluster.values)
        if self.missing == "paper":
            shown = {name: None if member[2][name] is None else value for name, value in shown.items()}
        said = None
        if is_first and self.t is not None and not self.declared:
            said = [{"column": "ill", "value": ill, "count": count} for ill, count in cluster.reference.items()]
        self._note(
            member[0], "released", {**shown, **rest(member[2])}, group=cluster.number, delay=now - member[1],
            reused=reused, carriers=list(cluster.carriers), reference=said,
        )  # fmt: skip

    def _note(self, number: int, verdict: str, row: Row | None = None, **more: Any) -> None:
        entry = {"row": number, "verdict": verdict, "k": self.k, "event": self._event, **more}
        self._made.append((entry, row))


def refusal(record: Row) -> str | None:
    if not record["id"]:
        return "null-person"
    if record["age"] is not None and not LOW <= record["age"] <= HIGH:
        return "outside:age"
    return "unknown:tree" if record["tree"] is not None and record["tree"] not in PATHS else None


def lacks(row: Row) -> set[str]:
    return {name for name in ("age", "tree") if row[name] is None}


def rest(record: Row) -> Row:
    return {"ill": record["ill"], "shop": record["shop"]}


def distance(one: Row, other: Row) -> float:
    parts = []
    if one["age"] is not None and other["age"] is not None:
        parts.append(abs(one["age"] - other["age"]) / (HIGH - LOW))
    if one["tree"] is not None and other["tree"] is not None:
        parts.append((LEAVES.get(meet([one["tree"], other["tree"]]), 1) - 1) / (LEAVES["*"] - 1))
    return sum(parts) / len(parts) if parts else 1.0


def meet(leaves: list[str]) -> str:
    return next(label for label in PATHS[leaves[0]] if all(label in PATHS[leaf] for leaf in leaves))


def variation(one: Counter[str], other: Any) -> float:
    total, whole = sum(one.values()), sum(other.values())
    values = {*one, *other}
    return sum(abs(one.get(value, 0) / total - other.get(value, 0) / whole) for value in values) / 2


SPAN = pa.struct([("lo", pa.int64()), ("hi", pa.int64())])
RELEASE = pa.schema([("age", SPAN), ("tree", pa.string()), ("ill", pa.string()), ("shop", pa.string())])
TRUTH = pa.schema([("id", pa.string()), ("age", pa.int64()), ("tree", pa.string()), ("ill", pa.string()),
                   ("shop", pa.string()), ("ts", pa.int64())])  # fmt: skip
_COUNT = pa.struct([("column", pa.string()), ("value", pa.string()), ("count", pa.int64())])
TRACE = pa.schema([("row", pa.int64()), ("verdict", pa.string()), ("reason", pa.string()), ("group", pa.int64()),
                   ("delay", pa.int64()), ("k", pa.int64()), ("reused", pa.bool_()),
                   ("carriers", pa.list_(pa.int32())), ("reference", pa.list_(_COUNT)),
                   ("event", pa.int64())])  # fmt: skip


def table(rows: list[Row], schema: pa.Schema) -> pa.Table:
    names = [*schema.names, *(name for name in (rows[0] if rows else {}) if name not in schema.names)]
    if not any("event" in row for row in rows):  # a trace may not tell
        names = [name for name in names if name != "event"]
    kinds = {name: schema.field(name).type if name in schema.names else None for name in names}
    return pa.table({name: pa.array([row.get(name) for row in rows], kind) for name, kind in kinds.items()})


class Run:
    """A correct run that tests may spoil."""

    def __init__(self, truth: list[Row] | None = None, promised: dict[str, Any] | None = None, **how: Any) -> None:
        self.truth = records(120) if truth is None else truth
        publisher = Publisher(**how).run(self.truth)
        self.release, self.trace = publisher.released, publisher.trace
        self.promised = promised or promise_of(how)

    def audit(self, *, truth: bool = True, trace: bool = True) -> Any:
        return audit(
            table(self.release, RELEASE),
            table(self.truth, TRUTH) if truth else None,
            table(self.trace, TRACE) if trace else None,
            self.promised,
        )

    def codes(self, **given: bool) -> dict[str, tuple[int, ...]]:
        return {found.code: found.rows for found in self.audit(**given).violations}

    def entry_of(self, released: int) -> int:
        """The entries of the trace for released rows."""
        leaves = [
            place
            for place, entry in enumerate(self.trace)
            if entry["verdict"] == "released" or (entry["verdict"] == "suppressed" and self._shows_suppressed)
        ]
        return leaves[released]

    def rows_of_group(self, group: int) -> list[int]:
        """Released rows of a cluster that was not reused: the first ones."""
        return [at for at in range(len(self.release)) if self.trace[self.entry_of(at)].get("group") == group]

    @property
    def _shows_suppressed(self) -> bool:
        return self.promised["anonymize"].get("suppressed") == "root"


_RULES = ("k", "deadline", "reuse", "missing", "min_carriers", "l", "t", "reference", "groups")


def promise_of(how: Row) -> dict[str, Any]:
    """The policy a publisher made this way keeps."""
    rules = {"missing": Publisher.missing, **{name: value for name, value in how.items() if name in _RULES}}
    if how.get("is_timed"):
        rules |= {"time": "ts", **{name: f"{how[name] // SECOND}s" for name in ("deadline", "reuse")}}
    if how.get("root"):
        rules["suppressed"] = "root"
    if how.get("declared"):
        rules["reference"] = {"ill": how["declared"]}
    return policy(numeric={"grid": how["grid"]} if how.get("grid") else None, **rules)
