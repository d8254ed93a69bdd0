"""Can a phone's owner be found in an external release? python -m benchmarks.flexible_traces [--people N]

The traceability attack on a synthetic measurement campaign. An adversary knows the cell a person lives in and the hours
of the week in which the person measured there, perhaps the model of the phone too, and has what was published: labels
of place, network, time and device, and the speed as it was measured. Rows whose labels cover what is known are the
candidates. The same is tried on the raw data, with and without pseudonyms.

- `least`, `median`: people behind a person's candidate rows, counted with the truth; `below`: the share of people with
  fewer than promised (K, or K_s where the model is known), `alone`: with no other.
- `guess`: the share of the person's rows among those candidates whose labels are the finest. `over`: the share of
  people for whom that is above 1/K (1/K_s): people are counted, not rows, and one may have most rows of a group.
- `together`: of people with at least three groups at home, how many other people (median) are in all of these groups,
  and how many have none such: an adversary who knows where everyone was can identify them in the release.
- `precision`: the share of the candidates that are the person's; `recall`: the share of the person's rows, at home or
  elsewhere, that are among them. With pseudonyms the adversary takes all rows of the one that has most candidates.
- `chained`: from a row of the person at home on to the next published row at another place with the same device label:
  how often that is the same person. `rare chained`: the same where the label is rare, with at most 1% of the rows.
  `by chance`: any later row elsewhere instead.
- Speeds: the share of rows whose carried speed no other row has, alone or among the rows that cover home and hour: one
  who saw the number on the phone has found the row. Carry rounded speeds, or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.measure import Report, parse, parser
from shoal import Categorical, FlexibleK, Hierarchy, Numeric, Ontology, Schema
from shoal.reproduce.data.campaign import NETWORKS, campaign_places, make_campaign

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

HOURS = 7 * 24
HOUR = 3600.0
START = 1_772_409_600.0
"""Monday, 2 March 2026, when campaigns begin."""
RARE = 0.01
MANY = 3
STEPS = (0.01, 1.0, 10.0)
"""What speeds are rounded to, in Mbit/s; the first is as they were measured."""


@dataclass(frozen=True)
class Shown:
    """Rows as an adversary sees them, in the order of time, and whose they are."""

    name: str
    person: Ints
    place: Ints
    """A line of `places`."""
    places: Bools
    """By label and cell: whether the label covers the cell."""
    network: Ints
    device: Ints
    devices: Bools
    """By label and model."""
    begin: Ints
    """The first hour of the week that the time covers, and the first one after it."""
    end: Ints
    speed: Floats
    has_pseudonyms: bool = False
    promised: tuple[int, int] | None = None
    """K and K_s."""


@dataclass(frozen=True)
class Truth:
    """The campaign as numbers."""

    person: Ints
    cell: Ints
    model: Ints
    network: Ints
    hour: Ints
    speed: Floats
    cells: list[str]
    models: list[str]

    @classmethod
    def of(cls, table: pa.Table) -> Truth:
        """Number people, cells and models."""
        person, _ = numbered(table["maid"])
        cell, cells = numbered(table["place"])
        model, models = numbered(table["device"])
        network, _ = numbered(table["network"])
        return cls(person, cell, model, network, hours(table["time"]), table["mbps_down"].to_numpy(), cells, models)


def numbered(column: pa.ChunkedArray) -> tuple[Ints, list[Any]]:
    """Codes of a column, and what they stand for."""
    found = pc.dictionary_encode(column).combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = found.chunk(0)
    return found.indices.to_numpy().astype(np.int64), found.dictionary.to_pylist()


def hours(moments: pa.ChunkedArray, *, up: bool = False) -> Ints:
    """Hours from the start of the campaign, rounded down or up."""
    since = pc.cast(moments, pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64()).to_numpy() / 1000 - START
    found: Ints = (np.ceil(since / HOUR) if up else np.floor(since / HOUR)).astype(np.int64)
    return found


# ---- what is seen


def raw(truth: Truth, *, has_pseudonyms: bool) -> Shown:
    """The records themselves, without names."""
    name = "raw, pseudonyms" if has_pseudonyms else "pseudonyms removed"
    return Shown(
        name, truth.person, truth.cell, np.eye(len(truth.cells), dtype=np.bool_), truth.network, truth.model,
        np.eye(len(truth.models), dtype=np.bool_), truth.hour, truth.hour + 1, truth.speed, has_pseudonyms,
    )  # fmt: skip


def published(table: pa.Table, truth: Truth, k: int) -> tuple[Shown, dict[str, float]]:
    """What leaves of the campaign at some k."""
    tree, ontology = campaign_places(), Ontology.devices()
    schema = Schema(
        person="maid", carry=["mbps_down"],
        quasi=[
            Categorical("place", tree), Categorical("network", Hierarchy.flat(list(NETWORKS))),
            Numeric("time", low=START, high=START + HOURS * HOUR, grid=HOUR), Categorical("device"),
        ],
    )  # fmt: skip
    made = FlexibleK(schema, ontology, k=k, sparse=["device"], key=bytes(range(16)))
    releases = [made.push_batch(table), made.flush()]
    rows = pa.Table.from_batches([release.rows for release in releases])
    trace = pa.Table.from_batches([release.trace for release in releases])
    row = trace["row"].to_numpy()[pc.equal(trace["verdict"].cast(pa.string()), "released").to_numpy()]
    begin, end = (hours(pc.struct_field(rows["time"], name), up=name == "hi") for name in ("lo", "hi"))
    place, place_labels = numbered(rows["place"])
    device, device_labels = numbered(rows["device"])
    concepts = ontology.attribute("device")
    places = np.array([[label in tree.path(cell) for cell in truth.cells] for label in place_labels])
    covered = [set(concepts.covered(label)) for label in device_labels]
    devices = np.array([[model in models for model in truth.models] for models in covered])
    order = np.lexsort((np.random.default_rng(k).permutation(len(row)), begin))  # of rows that begin alike any is next
    frozen = made.frozen
    assert frozen is not None
    shown = Shown(
        f"k = {k}", truth.person[row][order], place[order], places, numbered(rows["network"])[0][order],
        device[order], devices, begin[order], end[order], rows["mbps_down"].to_numpy()[order],
        promised=(k, frozen.k_s[k]),
    )  # fmt: skip
    return shown, {"pending": float(made.pending), "loss": made.metrics["loss"], "k_s": float(frozen.k_s[k])}


# ---- the attack


@dataclass(frozen=True)
class Target:
    """What the adversary knows of a person."""

    person: int
    cell: int
    model: int
    at_home: Bools
    """By hour of the campaign."""


def targets(truth: Truth, count: int, seed: int) -> list[Target]:
    """Some people with at least two rows at the cell they are at most often."""
    chosen = np.random.default_rng(seed).permutation(int(truth.person.max()) + 1)
    by_person = np.argsort(truth.person, kind="stable")
    bounds = np.searchsorted(truth.person[by_person], np.arange(len(chosen) + 1))
    found: list[Target] = []
    for person in chosen.tolist():
        own = by_person[bounds[person] : bounds[person + 1]]
        home = int(np.bincount(truth.cell[own]).argmax())
        there = own[truth.cell[own] == home]
        if len(there) > 1 and len(found) < count:
            known = np.zeros(HOURS, np.bool_)
            known[truth.hour[there]] = True
            found.append(Target(person, home, int(truth.model[own[0]]), known))
    return found


def covering(shown: Shown, target: Target, *, knows_device: bool) -> Bools:
    """Rows whose labels cover what is known."""
    before = np.concatenate(([0], np.cumsum(target.at_home)))
    found: Bools = shown.places[shown.place, target.cell]
    found = found & (before[np.minimum(shown.end, HOURS)] > before[np.minimum(shown.begin, HOURS)])
    return found & shown.devices[shown.device, target.model] if knows_device else found


def find(shown: Shown, known: list[Target], *, knows_device: bool) -> dict[str, Any]:
    """Pick the candidates of everybody."""
    people, precision, recall, guess, lost = [], [], [], [], 0
    size = shown.places.sum(axis=1)[shown.place] * (shown.end - shown.begin)
    if knows_device:
        size = size * np.maximum(shown.devices.sum(axis=1), 1)[shown.device]
    for target in known:
        own = shown.person == target.person
        rows = covering(shown, target, knows_device=knows_device)
        if not (rows & own).any():
            lost += 1
            continue
        behind, counts = np.unique(shown.person[rows], return_counts=True)
        people.append(len(behind))
        finest = rows & (size == size[rows].min())
        guess.append((finest & own).sum() / finest.sum())
        if shown.has_pseudonyms:
            rows = shown.person == behind[counts.argmax()]
        precision.append((rows & own).sum() / rows.sum())
        recall.append((rows & own).sum() / own.sum())
    behind = np.array(people)
    promised = shown.promised[1 if knows_device else 0] if shown.promised else None
    over = None if promised is None else float((np.array(guess) > 1 / promised).mean())
    return {
        "people": len(known), "nothing published": lost, "least": int(behind.min()), "median": float(np.median(behind)),
        "alone": float((behind == 1).mean()), "promised": promised,
        "below": None if promised is None else float((behind < promised).mean()),
        "guess": float(np.mean(guess)), "over": over, "precision": float(np.mean(precision)),
        "recall": float(np.mean(recall)),
    }  # fmt: skip


def chain(shown: Shown, known: list[Target]) -> dict[str, Any]:
    """Go on from every target's rows at home to the next row elsewhere with the same device label."""
    is_rare = np.bincount(shown.device, minlength=len(shown.devices)) <= RARE * len(shown.device)
    right, rare_right, chances = [], [], []
    for target in known:
        own = shown.person == target.person
        elsewhere = ~shown.places[shown.place, target.cell]
        at_home = np.flatnonzero(own & ~elsewhere)
        for row in at_home[:: max(1, len(at_home) // 5)]:
            later = elsewhere & (shown.begin >= shown.end[row])
            alike = np.flatnonzero(later & (shown.device == shown.device[row]))
            if not len(alike):
                continue
            hit = bool(own[alike[0]])
            if shown.has_pseudonyms:
                hit = True  # the pseudonym tells
            right.append(hit)
            chances.append((own & later).sum() / later.sum())
            if is_rare[shown.device[row]]:
                rare_right.append(hit)
    return {
        "links": len(right), "chained": float(np.mean(right)),
        "rare links": len(rare_right), "rare chained": float(np.mean(rare_right)) if rare_right else None,
        "by chance": float(np.mean(chances)),
    }  # fmt: skip


def together(shown: Shown, known: list[Target]) -> dict[str, Any]:
    """Other people in all groups, by all labels, that contain a person's rows at home."""
    labels = np.stack((shown.place, shown.device, shown.network, shown.begin, shown.end))
    group = np.unique(labels, axis=1, return_inverse=True)[1].ravel()
    others = []
    for target in known:
        own = (shown.person == target.person) & shown.places[shown.place, target.cell]
        groups = np.unique(group[own])
        if len(groups) >= MANY:
            sets = [set(shown.person[group == one].tolist()) for one in groups.tolist()]
            others.append(len(set.intersection(*sets)) - 1)
    found = np.array(others)
    return {"people": len(found), "others": float(np.median(found)), "no one else": float((found == 0).mean())}


def speeds(shown: Shown, known: list[Target]) -> dict[str, float]:
    """The share of rows that the speed alone tells from all others, and of those of the targets at home that it does
    together with home and hour."""
    found = {}
    for step in STEPS:
        value = np.rint(shown.speed / step).astype(np.int64)
        _, code, counts = np.unique(value, return_inverse=True, return_counts=True)
        found[f"unique at {step:g}"] = float((counts[code] == 1).mean())
        alone = []
        for target in known:
            rows = np.flatnonzero(covering(shown, target, knows_device=False))
            _, here, times = np.unique(value[rows], return_inverse=True, return_counts=True)
            alone += (times[here] == 1)[shown.person[rows] == target.person].tolist()
        found[f"with home and hour at {step:g}"] = float(np.mean(alone))
    return found


# ---- the command


def measure(people: int, records: int, seed: int, count: int, ks: list[int]) -> dict[str, Any]:
    """Attack the raw data and the releases."""
    table = make_campaign(people, records, seed)
    truth = Truth.of(table)
    known = targets(truth, count, seed)
    seen: list[tuple[Shown, dict[str, float]]] = [
        (raw(truth, has_pseudonyms=True), {}), (raw(truth, has_pseudonyms=False), {}),
        *(published(table, truth, k) for k in ks),
    ]  # fmt: skip
    lines = [
        {
            "data": shown.name, **facts, "home": find(shown, known, knows_device=False),
            "home and device": find(shown, known, knows_device=True), "chain": chain(shown, known),
            "together": together(shown, known), "speed": speeds(shown, known),
        }
        for shown, facts in seen
    ]  # fmt: skip
    return {"people": people, "records": records, "seed": seed, "targets": len(known), "lines": lines}


def _text(value: float | None) -> str:
    if value is None:
        return "–"
    return (
        f"{value:,}"
        if isinstance(value, int)
        else f"{value:.4f}"
        if 0 < value < 0.1
        else f"{value:.3f}"
        if value < 1
        else f"{value:,.1f}"
    )


ATTACKS = (
    ("K_s", lambda line: f"{line['k_s']:.0f}" if "k_s" in line else "–"),
    ("home and hours known: people it could be, least / median", lambda line: _people(line["home"])),
    ("… of the rows picked, theirs", lambda line: _share(line["home"]["precision"])),
    ("… people with fewer than K candidates", lambda line: _share(line["home"]["below"])),
    ("device known too: people it could be, least / median", lambda line: _people(line["home and device"])),
    ("… of the rows picked, theirs", lambda line: _share(line["home and device"]["precision"])),
    ("… people with fewer than K_s candidates", lambda line: _share(line["home and device"]["below"])),
    ("… best guess by the finest labels is right", lambda line: _share(line["home and device"]["guess"])),
    ("… people for whom it is right more often than 1/K_s", lambda line: _share(line["home and device"]["over"])),
    ("next row elsewhere with the same rare label is theirs", lambda line: _links(line["chain"])),
    ("any later row elsewhere is theirs (chance)", lambda line: _share(line["chain"]["by chance"])),
    (
        "exact speed (carried) and home: the row is found",
        lambda line: _share(line["speed"]["with home and hour at 0.01"]),
    ),
    ("speed to 1 Mbit/s and home: the row is found", lambda line: _share(line["speed"]["with home and hour at 1"])),
    ("no one else is in all groups of a person", lambda line: _share(line["together"]["no one else"])),
)
"""The rows of the table: a name, and how its figure is read from a result."""


def attack_rows(lines: list[dict[str, Any]]) -> list[list[str]]:
    """The most telling figures, one column for each kind of release."""
    return [[name, *(cell(line) for line in lines)] for name, cell in ATTACKS]


def _share(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.2%}" if 0 < value < 0.01 else f"{value:.1%}"


def _people(found: dict[str, Any]) -> str:
    return f"{found['least']} / {found['median']:,.0f}"


def _links(found: dict[str, Any]) -> str:
    return f"{_share(found['rare chained'])} of {found['rare links']:,}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print tables."""
    options = parser(__doc__)
    options.add_argument("--people", type=int, default=2_000)
    options.add_argument("--records", type=int, default=30_000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--targets", type=int, default=400, help="people who are looked for")
    options.add_argument("--k", type=int, nargs="+", default=[3, 6, 12])
    given = parse(options, arguments)
    if given.tiny:
        given.people, given.records, given.targets, given.k = 100, 1_000, 10, [3]
    report = Report(__file__, given, data="a synthetic campaign of measurements")
    found = measure(given.people, given.records, given.seed, given.targets, given.k)
    report.figures = found
    people = ["least", "median", "promised", "below", "alone", "guess", "over", "precision", "recall"]
    tables = {
        "home": ("home", people),
        "device": ("home and device", people),
        "chain": ("chain", ["links", "chained", "rare links", "rare chained", "by chance"]),
        "together": ("together", ["people", "others", "no one else"]),
        "speed": ("speed", list(found["lines"][0]["speed"])),
    }
    report.table("attack", ["", *(line["data"] for line in found["lines"])], attack_rows(found["lines"]))
    for name, (part, columns) in tables.items():
        rows = [[line["data"], *(_text(line[part][column]) for column in columns)] for line in found["lines"]]
        report.table(name, ["", *columns], rows)
    report.write()


if __name__ == "__main__":
    main()
