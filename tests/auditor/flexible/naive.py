"""A naive publisher of flexible releases (lists and sets, no code of shoal), and a run that tests may spoil."""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.auditor import audit

Row = dict[str, Any]

TURTLE = """
@prefix : <urn:test#> .
@prefix s: <urn:shoal:ontology#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .

:device a owl:Class ; rdfs:subClassOf s:SparseAttribute ; rdfs:label "any device" .
:Samsung a owl:Class ; rdfs:subClassOf :device ; :producedIn :Korea .
:Galaxy a owl:Class ; rdfs:subClassOf :Samsung, [ owl:onProperty :hasOS ; owl:hasValue :Android ] .
:Apple a owl:Class ; rdfs:subClassOf :device, [ owl:onProperty :hasOS ; owl:someValuesFrom :iOS ] .
:Georgia a owl:Class ; rdfs:subClassOf :device ; :hasOS :Android .
:hasOS a owl:ObjectProperty ; rdfs:label "has OS" .
:producedIn a owl:ObjectProperty ; rdfs:label "produced in" .
:Android a :System . :iOS a :System .
:Korea rdfs:subClassOf :Asia . :China rdfs:subClassOf :Asia .
:GeorgiaCountry rdfs:label "Georgia" ; rdfs:subClassOf :Asia .
:g1 a :Galaxy ; rdfs:label "G 1"@en, "G eins"@de . :g2 a :Galaxy ; rdfs:label "G 2" . :g3 a :Galaxy ; rdfs:label "G 3" .
:s9 a :Samsung ; rdfs:label "S 9" .
:i1 a :Apple ; rdfs:label "i 1" ; :producedIn :China . :i2 a :Apple ; rdfs:label "i 2" ; :producedIn :China .
:o1 a :Georgia ; rdfs:label "o 1" ; :producedIn :GeorgiaCountry .
:o2 a :Georgia ; rdfs:label "o 2" ; :producedIn :China .
"""
_KOREA, _CHINA = {"Korea", "Asia"}, {"China", "Asia"}
DEVICES = {
    **{f"G {n}": {"Galaxy", "Samsung", "Android", "System", *_KOREA} for n in (1, 2, 3)},
    "S 9": {"Samsung", *_KOREA},
    **{f"i {n}": {"Apple", "iOS", "System", *_CHINA} for n in (1, 2)},
    "o 1": {"Georgia (is a)", "Android", "System", "Georgia (produced in)", "Asia"},
    "o 2": {"Georgia (is a)", "Android", "System", *_CHINA},
}
"""What covers each device, written by hand."""
PLACES = {"*": {"city": {"centre": ["a", "b"], "edge": ["c"]}, "land": {"village": ["d", "e"]}}}
PATHS = {
    "a": ("a", "centre", "city"), "b": ("b", "centre", "city"), "c": ("c", "edge", "city"),
    "d": ("d", "village", "land"), "e": ("e", "village", "land"),
}  # fmt: skip
DENSITY = {"centre": 3, "village": 6, "city": 5}
HOURS = 64
SPAN = pa.struct([("lo", pa.int64()), ("hi", pa.int64())])
RELEASE = pa.schema([("device", pa.string()), ("place", pa.string()), ("hour", SPAN), ("net", pa.string()),
                     ("mbps", pa.float64())])  # fmt: skip
TRUTH = pa.schema([("maid", pa.string()), ("device", pa.string()), ("place", pa.string()), ("hour", pa.int64()),
                   ("net", pa.string()), ("mbps", pa.float64())])  # fmt: skip
TRACE = pa.schema([("row", pa.int64()), ("verdict", pa.string()), ("reason", pa.string()), ("group", pa.int64()),
                   ("delay", pa.int64()), ("k", pa.int64()), ("k_s", pa.int64())])  # fmt: skip


def policy(folder: Path, **rules: Any) -> dict[str, Any]:
    path = folder / "devices.ttl"
    path.write_text(TURTLE)
    quasi = {
        "device": {"kind": "ontology", "ontology": {"kind": "rdf", "path": str(path), "attribute": "device"}},
        "place": {"kind": "categorical", "hierarchy": {"kind": "nested", "tree": PLACES}},
        "hour": {"kind": "numeric", "low": 0, "high": HOURS, "grid": 4},
    }
    method = {"method": "flexible-k", "k": 4, "sparse": ["device"], "window": 100, "sensitive": ["net"], "quasi": quasi}
    return {"stream": {"person": "maid", "carry": ["mbps"]}, "anonymize": {**method, **rules}}


def records(count: int, *, seed: int = 1, people: int = 60, missing: float = 0.0) -> list[Row]:
    draw = random.Random(seed)

    def value(drawn: Any) -> Any:
        return None if draw.random() < missing else drawn

    return [
        {
            "maid": f"m{draw.randrange(people)}",
            "device": value(draw.choice(sorted(DEVICES) + ["G 1"] * 12 + ["i 1"] * 6)),
            "place": value(draw.choice(sorted(PATHS))),
            "hour": value(draw.randrange(HOURS)),
            "net": draw.choice(["lte", "5g"]),
            "mbps": 10.0 * int(draw.random() * 4),
        }
        for _ in range(count)
    ]


def refusal(record: Row, unknown: str = "accept") -> str | None:
    if not record["maid"]:
        return "null-person"
    if record["hour"] is not None and not 0 <= record["hour"] <= HOURS:
        return "outside:hour"
    if unknown == "accept":
        return None
    strange = [name for name, known in (("device", DEVICES), ("place", PATHS))
               if record[name] is not None and record[name] not in known]  # fmt: skip
    return f"unknown:{strange[0]}" if strange else None


def asked_k(record: Row, k: int, density: dict[str, int]) -> int:
    path = () if record["place"] is None else PATHS.get(record["place"], ("not listed",))
    return next((density[label] for label in path if label in density), k)


def measured_density(stream: list[Row], k: int, level: int, classes: dict[int, int]) -> dict[str, int]:
    """The k of every place by the people in its cell, `level` steps above the place; classes by `fewer than`."""
    people = defaultdict(set)
    for record in stream:
        if record["place"] in PATHS:
            people[PATHS[record["place"]][level]].add(record["maid"])
    counts = {place: len(people[path[level]]) for place, path in PATHS.items()} | {"not listed": 0}
    return {place: next((classes[most] for most in sorted(classes) if count < most), k)
            for place, count in counts.items()}  # fmt: skip


def share(stream: list[Row], k: int, density: dict[str, int], name: str = "device") -> float:
    people = defaultdict(set)
    for record in stream:
        people[record[name]].add(record["maid"])
    return sum(len(people[record[name]]) < asked_k(record, k, density) for record in stream) / len(stream)


def k_sparse(p: float, k: int) -> int:
    return k if p < 0.05 else min(max(math.ceil(p * k), 2), k)


def normal(record: Row, level: int) -> tuple[Any, ...]:
    place = None if record["place"] is None else PATHS.get(record["place"], ("unknown",) * 3)[min(level, 2)]
    if record["hour"] is None:
        return place, None
    width = 4 * 2 ** (1 + level)
    begin = min(record["hour"], HOURS - 1) // width * width
    return place, (begin, begin + width)


class Run:
    """Decide everything at once, from fine to coarse; rows without enough people stay pending."""

    def __init__(
        self,
        folder: Path,
        truth: list[Row] | None = None,
        *,
        k: int = 4,
        density: Any = None,
        cells: Any = None,
        publishes: bool = True,
        **rules: Any,
    ):
        self.truth = records(400) if truth is None else truth
        self.k, self.density = k, density or {}
        self.promised = policy(folder, k=k, **({"density": {"place": density}} if density else {}), **rules)
        self.unknown = rules.get("unknown", "accept")
        usable = [record for record in self.truth if not refusal(record, self.unknown)]
        first = usable[: self.promised["anonymize"]["window"]]
        if cells:
            level, classes = cells
            listed = [{"fewer_than": most, "k": each} for most, each in sorted(classes.items())]
            self.promised["anonymize"]["density_from_data"] = {"place": {"level": 3 - level, "classes": listed}}
            self.density = measured_density(first, k, level, classes)
        found = share(first, k, self.density) if usable else 0.0
        self.p = rules.get("p_sparse", found)
        self.k_s = k_sparse(self.p, k)
        self.claims: Row = {"sparse": ["device"], "k": k, "k_s": self.k_s, "p_sparse": self.p}
        self.release: list[Row] = []
        self.trace: list[Row] = []
        if publishes:
            self._publish()

    def _publish(self) -> None:
        left = []
        for number, record in enumerate(self.truth):
            reason = refusal(record, self.unknown)
            if reason:
                self.trace.append({"row": number, "verdict": "dead", "reason": reason})
            else:
                left.append(number)
        self._groups = 0
        for level in range(3):
            blocks = defaultdict(list)
            for number in left:
                blocks[normal(self.truth[number], level)].append(number)
            for vector, members in blocks.items():
                labels = self._labels(members)
                if labels:
                    self._leave(vector, labels)
                    left = [number for number in left if number not in labels]

    def _people(self, rows: Any) -> int:
        return len({self.truth[number]["maid"] for number in rows})

    def _labels(self, members: list[int]) -> dict[int, Any]:
        """Choose a label for the device of every member that can have one; none where too few people can."""
        k = max(asked_k(self.truth[number], self.k, self.density) for number in members)
        k_s, labels, left = k_sparse(self.p, k), {}, set(members)
        while left:
            covered = defaultdict(set)
            for number in left:
                device = self.truth[number]["device"]
                if device is not None and device not in DEVICES:
                    device = "unknown"
                for label in {device, *DEVICES.get(device, ())}:
                    covered[label].add(number)
            fitting = [(len(DEVICES) if label not in DEVICES else 0, -len(rows), str(label), label)
                       for label, rows in covered.items() if self._people(rows) >= k_s]  # fmt: skip
            if not fitting:
                break
            label = min(fitting)[3]
            labels |= dict.fromkeys(covered[label], label)
            left -= covered[label]
        return labels if self._people(labels) >= k else {}

    def _leave(self, vector: tuple[Any, ...], labels: dict[int, Any]) -> None:
        k = max(asked_k(self.truth[number], self.k, self.density) for number in labels)
        for label in sorted(set(labels.values()), key=str):
            for number in sorted(at for at, chosen in labels.items() if chosen == label):
                place, hours = vector
                record = self.truth[number]
                self.release.append({
                    "device": label, "place": place, "hour": hours and {"lo": hours[0], "hi": hours[1]},
                    "net": record["net"], "mbps": record["mbps"],
                })  # fmt: skip
                self.trace.append({
                    "row": number, "verdict": "released", "reason": None, "group": self._groups,
                    "delay": len(self.truth) - number - 1, "k": k, "k_s": k_sparse(self.p, k),
                })  # fmt: skip
            self._groups += 1

    # ---- for tests

    def audit(self, *, truth: bool = True, trace: bool = True) -> Any:
        notes = None if self.claims is None else {b"shoal": json.dumps(self.claims).encode()}
        return audit(
            table(self.release, RELEASE),
            table(self.truth, TRUTH) if truth else None,
            table(self.trace, TRACE).replace_schema_metadata(notes) if trace else None,
            self.promised,
        )

    def codes(self, **given: bool) -> dict[str, tuple[int, ...]]:
        return {found.code: found.rows for found in self.audit(**given).violations}

    def entries(self) -> list[Row]:
        """The trace's entries of released rows, in order."""
        return [entry for entry in self.trace if entry["verdict"] == "released"]

    def record_of(self, released: int) -> Row:
        return self.truth[self.entries()[released]["row"]]

    def vector(self, released: int, *, names: tuple[str, ...] = ("device", "place", "hour")) -> str:
        return json.dumps([self.release[released][name] for name in names])

    def smallest_group(self, names: tuple[str, ...] = ("device", "place", "hour")) -> list[int]:
        """Released rows of the group with fewest people."""
        groups = defaultdict(list)
        for at in range(len(self.release)):
            groups[self.vector(at, names=names)].append(at)
        return min(groups.values(), key=lambda rows: len({self.record_of(at)["maid"] for at in rows}))


def table(rows: list[Row], schema: pa.Schema) -> pa.Table:
    return pa.table({name: pa.array([row.get(name) for row in rows], schema.field(name).type) for name in schema.names})


# ---- the verdict, by counting one by one


def broken(run: Run) -> tuple[set[int], set[int]]:
    """Released rows whose group by normal quasi-identifiers, and by all, has too few people."""
    found = []
    for names, is_sparse in ((("place", "hour"), False), (("device", "place", "hour"), True)):
        few = set()
        for at in range(len(run.release)):
            mine = [
                other
                for other in range(len(run.release))
                if run.vector(other, names=names) == run.vector(at, names=names)
            ]
            normal = ("place", "hour")
            block = [
                other
                for other in range(len(run.release))
                if run.vector(other, names=normal) == run.vector(at, names=normal)
            ]
            k = max(asked_k(run.record_of(other), run.k, run.density) for other in block)
            needed = k_sparse(run.p, k) if is_sparse else k
            if len({run.record_of(other)["maid"] for other in mine}) < needed:
                few.add(at)
        found.append(few)
    return found[0], found[1]


def covers(shown: Row, record: Row, names: tuple[str, ...]) -> bool:
    for name in names:
        label, value = shown[name], record[name]
        if label is None or value is None:
            if label is not value:
                return False
        elif name == "hour":
            if not label["lo"] <= value <= label["hi"]:
                return False
        elif value not in (DEVICES if name == "device" else PATHS):
            if label != "unknown":
                return False
        elif label not in {value, *(DEVICES[value] if name == "device" else (*PATHS[value], "*"))}:
            return False
    return True


def candidates(run: Run, names: tuple[str, ...]) -> list[int]:
    """For every released row, the people behind all rows that cover its record."""
    counts = []
    for at in range(len(run.release)):
        target = run.record_of(at)
        behind = [other for other, shown in enumerate(run.release) if covers(shown, target, names)]
        counts.append(len({run.record_of(other)["maid"] for other in behind}))
    return counts
