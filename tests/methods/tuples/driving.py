"""The tuple methods and their naive twins side by side: schemas, streams, and the comparison of all that comes out."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from shoal.hierarchies import Hierarchy
from shoal.methods.registry import METHODS
from shoal.methods.tuples import in_lanes
from shoal.methods.tuples.decider import lanes
from shoal.methods.tuples.decider.lane_assignment import LaneAssignment
from shoal.schema import Categorical, Numeric, Schema
from tests.reference.castle import CastleTwin
from tests.reference.clock import AHEAD, RESTART, NaiveClock
from tests.reference.fads import FadsTwin
from tests.reference.fads_varied import FadsVariedTwin
from tests.reference.fast import FastTwin, LaneTwin
from tests.reference.iot_anonymization import IotAnonymizationTwin
from tests.reference.k_varp import KVarpTwin
from tests.reference.publish_order import in_published_order
from tests.reference.tuples import Attribute, Cat, Decision, Num, TupleTwin, blank_to_none, cost

SECOND = 1_000_000_000
GAP = 1000 * SECOND
BEGIN = 1_770_000_000 * SECOND
KEY = bytes(range(32))
ALL_TWINS = {
    "fads": FadsTwin,
    "k-varp": KVarpTwin,
    "iot-anonymization": IotAnonymizationTwin,
    "fads-varied": FadsVariedTwin,
    "castle": CastleTwin,
    "fast": FastTwin,
}
TWINS = {name: twin for name, twin in ALL_TWINS.items() if name in METHODS}
"""The methods that there are already, with their twins."""
OWN_SETTINGS = {
    "k-varp": st.fixed_dictionaries({}, optional={"likeness": st.sampled_from([0.0, 0.05, 0.5, 1.0])}),
    "fads-varied": st.fixed_dictionaries({}, optional={"late_penalty": st.sampled_from([0.0, 0.05])}),
    "castle": st.fixed_dictionaries({"beta": st.integers(1, 4), "mu": st.integers(1, 3)}),
    "fast": st.fixed_dictionaries({"threads": st.integers(1, 3), "round": st.sampled_from([None, 1, 3, 5])}),
}
VARIED = ("k-varp", "iot-anonymization", "fads-varied")
"""Methods whose rows may be published with rows that lack other attributes, which therefore have no "own"."""


# ---- schemas: attributes of the twin, and the values a stream takes


@dataclass(frozen=True)
class Scene:
    """Attributes, the type of each column, and the few values each takes."""

    attributes: Sequence[Attribute]
    types: Sequence[pa.DataType]
    values: Sequence[Sequence[Any]]
    trees: dict[str, Hierarchy] = field(default_factory=dict)

    def roles(self) -> list[Numeric | Categorical]:
        return [
            Numeric(one.name, one.low, one.high, one.weight, one.grid, one.outside)
            if isinstance(one, Num)
            else Categorical(one.name, self.trees[one.name], one.weight)
            for one in self.attributes
        ]


def tree_scene(name: str, nested: dict[str, Any], *, weight: float = 1.0) -> tuple[Cat, Hierarchy]:
    return Cat(name, nested, weight), Hierarchy.from_nested(nested)


SMALL = {"all": {"left": ["a", "b", "c"], "right": {"far": ["d"], "near": {"e": None, "f": None}}}}
CHAINS = {"top": {"one": {"two": {"three": {"x": None}}}, "wide": {"only": {"y": None, "z": None}}}}


def grown(random_: random.Random, leaves: int, prefix: str = "n") -> dict[str, Any]:
    """A random tree of at least `leaves` leaves, with nodes of one child among them."""
    made, grow = {}, [0]

    def below(depth: int) -> dict[str, Any] | None:
        grow[0] += 1
        if depth == 0 or (depth < 4 and random_.random() < 0.2):
            return None
        return {f"{prefix}{grow[0]}.{child}": below(depth - 1) for child in range(random_.choice([1, 2, 3, 9]))}

    while sum(1 for _ in leaves_of(made)) < leaves:
        grow[0] += 1
        made[f"{prefix}{grow[0]}"] = below(4)
    return {"root": made}


def leaves_of(nested: Any, label: str = "root") -> Any:
    if not nested:
        yield label
        return
    for child in nested:
        yield from leaves_of(nested[child] if isinstance(nested, dict) else None, child)


def thinned(labels: Sequence[str], count: int) -> list[str]:
    """Some labels, the first and the last among them."""
    return [labels[place * (len(labels) - 1) // (count - 1)] for place in range(count)]


@cache
def scenes() -> dict[str, Scene]:
    small, small_tree = tree_scene("t", SMALL, weight=0.5)
    chains, chain_tree = tree_scene("c", CHAINS)
    big_nested = grown(random.Random(5), 600)
    big, big_tree = tree_scene("b", big_nested, weight=3)
    assert len(big.leaves) > 512
    in_order = [label for label in big_tree.labels if label in set(big.leaves)]
    ones = [Num(f"a{number}", 0, 1, weight=1 + number % 3) for number in range(70)]
    return {
        "line": Scene([Num("x", 0, 10)], [pa.int64()], [[0, 1, 2, 5, 9, 10]]),
        "mixed": Scene(
            [Num("x", -5, 20, weight=2, grid=3), small, Num("y", 0, 1, weight=0.3, outside="clamp")],
            [pa.int32(), pa.string(), pa.float64()],
            [[-5, -4, 0, 7, 20], ["a", "b", "d", "e", "f"], [0.0, 0.1, 0.7, 1.5, -1.0, 0.30000000000000004]],
            {"t": small_tree},
        ),
        "trees": Scene(
            [chains, big, small],
            [pa.string(), pa.dictionary(pa.int32(), pa.string()), pa.large_string()],
            [chains.leaves, thinned(in_order, 9), small.leaves],
            {"c": chain_tree, "b": big_tree, "t": small_tree},
        ),
        "grid": Scene(  # 1.7 / 0.1 is rounded up to 17, and 17 * 0.1 is more than 1.7; other values the other way
            [Num("x", 0, 1000, grid=0.1), Num("y", 0.1, 90.1, grid=0.3), Num("z", 0, 7, grid=100)],
            [pa.float64(), pa.float64(), pa.float32()],
            [[0.3, 1.7, 3.4, 0.9000000000000001, 1000.0], [0.1, 1.0, 5.799999999999999, 89.9], [0.0, 3.5, 7.0]],
        ),
        "wide": Scene(ones, [pa.int8()] * 70, [[0, 1]] * 70),
    }


# ---- settings


SENSITIVE = {"ill": pa.string(), "score": pa.float64()}
ILLS = ["cough", "fever", "gout", None]
SCORES = [0.0, 1.0, 2.5, 7.0, None, float("nan")]
DECLARED = {"ill": {"gout": 0.2, "fever": 3, "nothing": 0.5}, "score": {7.0: 1, 1.0: 1, 0.0: 2, 99.0: 0}}


def diversities() -> st.SearchStrategy[dict[str, Any]]:
    """What is asked of sensitive values; nothing half of the time."""
    asked = st.fixed_dictionaries(
        {},
        optional={
            "l": st.integers(1, 3),
            "entropy_l": st.sampled_from([1.0, 1.5, 2.0, 2.5]),
            "t": st.sampled_from([0.1, 0.3, 0.5, 0.8, 1.0]),
            "reference": st.sampled_from([1, 3, 20, 1000, "declared"]),
        },
    )
    return st.one_of(st.just({}), asked)


@st.composite
def settings_of(draw: st.DrawFn, method: str, *, timed: bool) -> dict[str, Any]:
    """Settings of a method; spans in arrivals, or in seconds when timed."""
    k = draw(st.integers(2, 5))
    missing = draw(st.sampled_from(["own", "own", "covered", "hidden", "paper"][2 * (method in VARIED) :]))
    shares = [None] if missing == "paper" else [None, None, 1 / k, 0.5, 0.6, 0.75, 1.0]
    return {
        "k": k,
        "max_share": draw(st.sampled_from(shares)),
        "deadline": draw(st.integers(1, 12)),
        "reuse": draw(st.sampled_from([0, 1, 3, 15])),
        "missing": missing,
        "min_carriers": draw(st.one_of(st.none(), st.integers(1, k))) if missing == "covered" else None,
        "groups": draw(st.sampled_from([False] * 5 + [True])),
        "suppressed": draw(st.sampled_from(["drop", "root"])),
        "alpha": draw(st.sampled_from([0.0, 0.02])),
        "by": "time" if timed else "count",
        **draw(diversities()),
        **draw(OWN_SETTINGS.get(method, st.just({}))),
    }


# ---- lanes of a few tuples

FEW = {"rows_of_a_lane": 1, "pending_of_a_lane": 1, "first": 8}
"""When the twins deal in `small_lanes`."""
_DEALINGS: dict[tuple[int, ...], Any] = {}


@contextmanager
def small_lanes() -> Iterator[None]:
    """Let lanes be as small as streams of tests are, use threads for them, and note where they are cut."""
    choose = LaneAssignment.choose

    def noting(own: LaneAssignment, values: Any, rows: Any, count: int) -> None:
        choose(own, values, rows, count)
        _DEALINGS[tuple(rows.tolist())] = list(own._cuts)

    with ExitStack() as patches:
        for target, name, value in (
            (in_lanes, "ROWS_OF_A_LANE", 1), (lanes, "PENDING_OF_A_LANE", 1), (lanes, "FIRST_CHECK", 8),
            (lanes, "WORTH_THREADS", 4), (LaneAssignment, "choose", noting),
        ):  # fmt: skip
            patches.enter_context(mock.patch.object(target, name, value))
        yield


# ---- both, with the same settings


def make_method(method: str, scene: Scene, given: dict[str, Any], sensitive: Sequence[str] = tuple(SENSITIVE)) -> Any:
    settings = {name: value for name, value in given.items() if name != "by"}
    if given.get("by") == "time":
        settings |= {name: f"{given[name] * SECOND}ns" for name in ("deadline", "reuse")}
        settings["max_gap"] = GAP / SECOND
    if given.get("reference") == "declared":
        settings["reference"] = {name: DECLARED[name] for name in sensitive}
    schema = Schema(person="id", time="ts", quasi=scene.roles(), sensitive=list(sensitive), carry=["note"])
    return METHODS[method].load()(schema, key=KEY, **settings)


class TwinRun:
    """A twin with a clock that one person's wrong word does not move."""

    def __init__(self, method: str, scene: Scene, given: dict[str, Any], sensitive: Sequence[str] = tuple(SENSITIVE)):
        settings = {name: value for name, value in given.items() if name not in ("suppressed", "alpha")}
        if given.get("by") == "time":
            settings |= {name: given[name] * SECOND for name in ("deadline", "reuse")}
        if given.get("reference") == "declared":
            settings["reference"] = [DECLARED[name] for name in sensitive]
        if method == "fast" or "threads" in settings:
            settings |= {"dealings": _DEALINGS, **FEW}
        self.twin: TupleTwin = TWINS[method](scene.attributes, **settings)
        self.clock = NaiveClock(lateness=0, max_gap=GAP)
        self.references: dict[int, Sequence[Any]] = {}
        for lane in getattr(self.twin, "lanes", [self.twin]):
            lane.publish = partial(self._publish, lane.publish)

    def _publish(self, publish: Any, formed: Any, now: int) -> list[Decision]:
        made: list[Decision] = publish(formed, now)
        self.references |= {cluster.number: cluster.reference for _, cluster in formed}
        return made

    def push(self, record: dict[str, Any], names: Sequence[str], sensitive: Sequence[str]) -> list[Decision]:
        twin, person, time = self.twin, record["id"], record["ts"]
        values = [record[name] for name in names]
        if twin.by == "time" and twin._read(person, values, time)[1] is None:
            code = self.clock.admit(person, time)
            if code == AHEAD:
                twin.rows += 1
                return [Decision(twin.rows - 1, "dead", None, (), 0, None, None, 0.0, 0.0, "ahead")]
            if code == RESTART:
                self._restart()
            time = self.clock.newest
        return twin.push(person, values, time, tuple(record[name] for name in sensitive))

    def _restart(self) -> None:
        """What is held came when the right clock starts, which it does once."""
        self.twin.clock = self.clock.newest
        for lane in getattr(self.twin, "lanes", [self.twin]):
            lane.pool.clear()
        self.clock.owner = None
        for one in self.twin.held.values():
            one.arrived, one.due = self.clock.newest, self.clock.newest + self.twin.deadline

    def advance(self, now: int) -> list[Decision]:
        if self.twin.by == "count":
            return []
        self.clock.advance(now)
        return self.twin.advance(self.clock.newest)


class Pair:
    """A method and its twin, fed the same and compared in all that comes out."""

    def __init__(self, method: str, scene: Scene, given: dict[str, Any], sensitive: Sequence[str] = tuple(SENSITIVE)):
        self.scene, self.given, self.sensitive = scene, given, tuple(sensitive)
        self.names = [one.name for one in scene.attributes]
        self.made = make_method(method, scene, given, sensitive)
        self.run = TwinRun(method, scene, given, sensitive)
        self.records: list[dict[str, Any]] = []
        self.decided: list[Decision] = []
        self.formed: set[int] = set()
        self.schema = pa.schema(
            [("id", pa.string()), ("ts", pa.timestamp("ns")), *zip(self.names, scene.types, strict=True),
             *((name, SENSITIVE[name]) for name in self.sensitive), ("note", pa.int64())]
        )  # fmt: skip

    def batch(self, records: Sequence[dict[str, Any]]) -> pa.RecordBatch:
        columns = [pa.array([record[name] for record in records], kind) for name, kind in
                   zip(self.schema.names, self.schema.types, strict=True)]  # fmt: skip
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    # -- doing the same to both

    def push_batch(self, records: Sequence[dict[str, Any]]) -> None:
        release = self.made.push_batch(self.batch(records))
        self.compare(release, self._expect(records))

    def push_singly(self, records: Sequence[dict[str, Any]]) -> None:
        """Single records give rows only."""
        self.made.bind(self.schema)
        for record in records:
            time = None if record["ts"] is None else np.datetime64(record["ts"], "ns")
            rows = self.made.push({**record, "ts": time})
            (expected,) = self._expect([record])
            self.decided += expected
            self.formed |= {one.group for one in expected if one.group is not None}
            assert [self._shown(row) for row in rows] == [
                self._expected_row(one) for one in in_published_order(expected, KEY) if self._left(one)
            ]

    def advance(self, now: int) -> None:
        self.compare(self.made.advance(np.datetime64(now, "ns")), [self.run.advance(now)])

    def flush(self) -> None:
        self.run.clock.owner = None
        self.compare(self.made.flush(), [self.run.twin.flush()])
        assert self.made.pending == 0

    def restore(self, restore: Any) -> None:
        """Go on from a snapshot."""
        state = self.made.snapshot()
        self.made = restore(state, key=KEY)
        assert self.made.snapshot() == state

    def spare_room(self) -> None:
        """Give the method hardly any memory, so that it has to ask for more."""
        decider = self.made._engine.decider
        for one in getattr(decider, "lanes", [decider]):
            one.resize(one.memory.sizes.with_room(pending=1, clusters=1))

    # -- comparing

    def _expect(self, records: Sequence[dict[str, Any]]) -> list[list[Decision]]:
        """What each record's arrival decides."""
        self.records += records
        return [self.run.push(record, self.names, self.sensitive) for record in records]

    def compare(self, release: Any, events: Sequence[Sequence[Decision]]) -> None:
        """Events are sets: the twin decides what is in them, and the keyed order how they are published."""
        first = len(self.records) - len(events)
        shuffled = [in_published_order(event, KEY) for event in events]
        expected = [one for event in shuffled for one in event]
        numbers = [first + at for at, event in enumerate(events) for _ in event]
        trace = release.trace.to_pylist()
        assert [self._traced(row) for row in trace] == [self._expected_trace(one) for one in expected]
        assert [row["event"] for row in trace] == numbers
        left = [one for one in expected if self._left(one)]
        assert [self._shown(row) for row in release.rows.to_pylist()] == [self._expected_row(one) for one in left]
        assert self.made.pending == len(self.run.twin.held)
        if "reference" in release.trace.schema.names:
            self._compare_references(trace)
        self.decided += [one for event in events for one in event]
        self.formed |= {one.group for one in expected if one.group is not None}

    @staticmethod
    def _traced(row: dict[str, Any]) -> tuple[Any, ...]:
        carriers = None if row["carriers"] is None else tuple(row["carriers"])
        return row["row"], row["verdict"], row["reason"], row["group"], row["delay"], row["reused"], carriers, row["k"]

    def _expected_trace(self, one: Decision) -> tuple[Any, ...]:
        k = self.given["k"]
        return one.row, one.verdict, one.reason, one.group, one.delay, one.reused, one.carriers, k

    def _left(self, one: Decision) -> bool:
        return one.verdict == "released" or (one.verdict == "suppressed" and self.given.get("suppressed") == "root")

    def _shown(self, row: dict[str, Any]) -> tuple[Any, ...]:
        cells = [row[name] for name in self.names]
        vector = tuple((cell["lo"], cell["hi"]) if isinstance(cell, dict) else cell for cell in cells)
        return vector, *(blank_to_none(row[name]) for name in self.sensitive), row["note"]

    def _expected_row(self, one: Decision) -> tuple[Any, ...]:
        record = self.records[one.row]
        vector = one.published if one.verdict == "released" else self._root()
        return vector, *(blank_to_none(record[name]) for name in self.sensitive), record["note"]

    def _root(self) -> tuple[Any, ...]:
        return tuple((one.low, one.high) if isinstance(one, Num) else one.root for one in self.scene.attributes)

    def _compare_references(self, trace: Sequence[dict[str, Any]]) -> None:
        """A new cluster says on the first of its own rows what it was held against."""
        seen = set(self.formed)
        for row in trace:
            is_first = row["group"] is not None and not row["reused"] and row["group"] not in seen
            if is_first:
                seen.add(row["group"])
            if not is_first:
                assert row["reference"] is None
                continue
            said = {(one["column"], one["value"]): one["count"] for one in row["reference"]}
            assert len(said) == len(row["reference"])
            assert said == {
                (name, None if value is None else str(value)): count
                for name, counts in zip(self.sensitive, self.run.references[row["group"]], strict=True)
                for value, count in counts.items()
            }

    def compare_metrics(self) -> None:
        """Sums over all decisions in their order: equal to the last bit."""
        alive = [one for one in self.decided if one.verdict != "dead"]
        assert {name: self.made.counts[name] for name in ("pushed", "released", "suppressed", "dead", "pending")} == {
            "pushed": len(self.records),
            "released": sum(one.verdict == "released" for one in alive),
            "suppressed": sum(one.verdict == "suppressed" for one in alive),
            "dead": len(self.decided) - len(alive),
            "pending": len(self.run.twin.held),
        }
        unit = SECOND if self.given.get("by") == "time" else 1
        own = every = costs = 0.0
        for one in alive:
            own += one.own_loss
            every += one.all_loss
            costs += cost(one.own_loss, one.delay / unit, self.given.get("alpha", 0.02))
        found, decided = self.made.metrics, max(len(alive), 1)
        expected = {"loss": own / decided, "loss_all": every / decided, "cost": costs / decided}
        if isinstance(self.run.twin, LaneTwin):  # every lane has a sum of its own
            expected = {name: pytest.approx(value, rel=1e-12) for name, value in expected.items()}
        assert {name: found[name] for name in expected} == expected
        assert found["delay"] == sum(one.delay for one in alive) / decided / unit
        assert found["max_delay"] == max((one.delay for one in alive), default=0) / unit
        assert found["reused"] == sum(one.reused is True for one in alive)
        assert found["formed"] == len({one.group for one in alive if one.reused is False})
        assert found["clamped"] == self._clamped()
        lanes = getattr(self.run.twin, "lanes", [self.run.twin])
        assert found["rare_patterns"] == sum(lane.rare_patterns for lane in lanes)
        assert found["filled"] == sum(map(self._filled, alive))

    def _filled(self, one: Decision) -> int:
        """How many values a row shows that its record lacks."""
        given = [blank_to_none(self.records[one.row][name]) for name in self.names]
        return sum(given[at] is None and shown is not None for at, shown in enumerate(one.published))

    def _clamped(self) -> int:
        dead = {one.row for one in self.decided if one.verdict == "dead"}
        kept = [record for row, record in enumerate(self.records) if row not in dead]
        clamping = [one for one in self.scene.attributes if isinstance(one, Num) and one.outside == "clamp"]
        return sum(
            value is not None and not one.low <= value <= one.high
            for one in clamping
            for value in (record[one.name] for record in kept)
        )


# ---- streams

EVEN = (0, SECOND, SECOND, 2 * SECOND)
UNEVEN = (0, 0, 0, 1, SECOND, SECOND, 3 * SECOND, 12 * SECOND, -1, -2 * SECOND)
JUMPS = (GAP, GAP + 1, -GAP - 1, 3 * GAP)


@st.composite
def records_of(draw: st.DrawFn, scene: Scene, *, most: int = 40, jumps: bool = False) -> list[dict[str, Any]]:
    """Records of few people with few values, so that there are ties everywhere; some may be broken."""
    records = random_records(
        scene,
        draw(st.integers(most // 3, most)),
        seed=draw(st.integers(0, 10_000)),
        people=draw(st.sampled_from([3, 6, 40])),
        missing=draw(st.sampled_from([0.0, 0.0, 0.2, 0.6])),
        steps=draw(st.sampled_from([EVEN, UNEVEN])),
        ills=draw(st.sampled_from([2, len(ILLS)])),
    )
    if jumps:
        for at, jump in draw(st.lists(st.tuples(st.integers(0, most), st.sampled_from(JUMPS)), max_size=3)):
            records[at % len(records)]["ts"] += jump
    for at, (name, value) in draw(st.lists(st.tuples(st.integers(0, most), broken_cells(scene)), max_size=3)):
        records[at % len(records)][name] = value
    return records


def broken_cells(scene: Scene) -> st.SearchStrategy[tuple[str, Any]]:
    """No person, no time, a number outside of its domain, a label that is none."""
    bad: list[tuple[str, Any]] = [("id", None), ("id", ""), ("ts", None)]
    for one in scene.attributes[:3]:
        bad += [(one.name, 100 if one.high < 100 else -1)] if isinstance(one, Num) else [(one.name, "no such label")]
    return st.sampled_from(bad)


def random_records(
    scene: Scene, count: int, *, seed: int, people: int, missing: float, steps: Sequence[int] = EVEN, ills: int = 9
) -> list[dict[str, Any]]:
    """A stream at one blow; a shorter one of the same seed is its beginning."""
    draw, time, records = random.Random(seed), BEGIN, []
    for number in range(count):
        time += draw.choice(steps)
        row = {"id": f"p{draw.randrange(people)}", "ts": time}
        row |= zip((one.name for one in scene.attributes), row_of(draw, scene, missing), strict=True)
        records.append({**row, "ill": draw.choice(ILLS[:ills]), "score": draw.choice(SCORES), "note": number})
    return records


def row_of(draw: random.Random, scene: Scene, missing: float) -> list[Any]:
    """Values of one record; of many attributes those that are missing come in a few patterns."""
    row = [draw.choice(list(values)) for values in scene.values]
    if len(row) > 10:
        gone = draw.choice([(69,), (0, 69), (64,), range(63, 70), range(3, 70)]) if draw.random() < missing else ()
    else:
        gone = [at for at in range(len(row)) if draw.random() < missing]
    return [None if at in gone else value for at, value in enumerate(row)]
