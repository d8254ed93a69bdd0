"""Can someone who has the internal store and no key distinguish decoys from real records?

    python -m benchmarks.decoys [--kind campaign] [--people 1000] [--records 20000] [--k 6] [--fill] [--batches 4]
                                [--seed 11 12 13 14]

A classifier (boosted trees, here in NumPy) sees everything the store holds: every column, how often values and pairs of
values occur, how often an id comes back, its gaps in time, how many different values it has, how large its group is. It
learns on the records of half of the people, with the truth, and is asked about the other half; shadows stay
with their person. The area under the ROC curve (0.5 is a coin) is reported with a bootstrap interval over people, and
the columns it used most.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.measure import Report, parse, parser
from shoal.crypto.keys import new_secret
from shoal.sanitize.decoys.cells import Normal, column_of, group, is_number, numbers
from shoal.sanitize.decoys.decoys import DecoyMaker, Known
from shoal.sanitize.pii import Names, as_names
from shoal.sanitize.tags import as_blocks

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_BINS = 32
_NEAREST = (1, 2, 3, 5, 8)
_HOUR_NS = 3_600_000_000_000


# ---- records: a campaign of the package, and a simpler one whose columns hang together more loosely

_PUBLISHED = ("time", "place", "provider", "network", "device", "mbps_down", "mbps_up", "latency_ms")


def city(people: int, records: int, seed: int) -> tuple[pa.Table, Ints]:
    """The measurement campaign of the package, and whose each record is."""
    from shoal.reproduce.data.campaign import make_campaign

    made = make_campaign(people, records, seed)
    who = made.column("maid").combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    return made.select(list(_PUBLISHED)), who


def campaign(people: int, records: int, seed: int) -> tuple[pa.Table, Ints]:
    """People with a phone, a provider, a home and a workplace, who measure now and then; and whose each record is."""
    draw = np.random.default_rng(seed)
    home, work = draw.integers(0, 25, people), draw.integers(0, 25, people)
    device = np.minimum(draw.zipf(1.3, people) - 1, 199)
    quality = draw.lognormal(0, 0.3, 200)
    provider = draw.choice(4, people, p=[0.4, 0.3, 0.2, 0.1])
    eager = draw.lognormal(0, 1.0, people)
    who = np.sort(draw.choice(people, records, p=eager / eager.sum()))
    day = draw.integers(0, 28, records)
    hour = np.clip(draw.normal(14, 4, records), 0, 23.99)
    at_work = (hour > 9) & (hour < 17) & (draw.random(records) < 0.7)
    place = np.where(at_work, work[who], home[who])
    place = np.where(draw.random(records) < 0.1, draw.integers(0, 25, records), place)
    network = np.where(draw.random(records) < 0.15, 0, np.where(draw.random(records) < 0.3 + 0.02 * place, 2, 1))
    speed = np.array([4.0, 30.0, 120.0])[network] * quality[device[who]] * draw.lognormal(0, 0.5, records)
    ns = 1_772_323_200_000_000_000 + day * 24 * _HOUR_NS + (hour * 3600).astype(np.int64) * 1_000_000_000
    order = np.argsort(ns)
    table = pa.table(
        {
            "time": pa.array(ns).cast(pa.timestamp("ns", "UTC")),
            "place": pa.array([f"district {at}" for at in place]),
            "provider": pa.array([f"provider {at}" for at in provider[who]]),
            "network": pa.array([("3G", "4G", "5G")[at] for at in network]),
            "device": pa.array([f"model {at}" for at in device[who]]),
            "mbps": pa.array(np.round(speed, 2)),
            "signal": pa.array(np.round(draw.normal(-85, 10, records)).astype(np.int64)),
        }
    ).take(pa.array(order))
    return table, who[order]


NORMALS = (Normal("time", grid=3600.0), Normal("place"), Normal("provider"), Normal("network"))


class PlainMemory:
    """What decoys remember, without a store."""

    def __init__(self, schema: pa.Schema) -> None:
        self._donors: dict[bytes, tuple[bytes, ...]] = {}
        self._records: dict[bytes, pa.Table] = {}
        self._schema = schema

    def recall(self, people: Sequence[bytes]) -> Known:
        known = {person: self._donors[person] for person in people if person in self._donors}
        here = set(people)
        absent = list(dict.fromkeys(donor for own in known.values() for donor in own if donor not in here))
        tables = [self._records[donor] for donor in absent]
        owners = [donor for donor, table in zip(absent, tables, strict=True) for _ in range(len(table))]
        return Known(known, tuple(owners), pa.concat_tables([self._schema.empty_table(), *tables]))

    def remember(self, donors: Any, who: Names, records: pa.Table) -> None:
        self._donors.update(donors)
        for person in np.unique(who):
            at = np.flatnonzero(who == person)[-3:]
            self._records[person.ljust(16, b"\0")] = records.take(pa.array(at))


def with_decoys(
    table: pa.Table, who: Ints, normals: Sequence[Normal], *, k: int, blend: bool, batches: int, seed: int | None = None
) -> tuple[pa.Table, Names, Ints, npt.NDArray[np.bool_]]:
    """Real records and decoys together: data, ids, the real person behind each, and which are real."""
    secret = new_secret()
    draw = np.random.default_rng(secrets.randbits(64) if seed is None else seed)
    maker = DecoyMaker(normals, k=k, key=lambda purpose: secret.subkey(purpose), draw=draw, blend=blend)
    memory, large = PlainMemory(table.schema), np.empty(0, dtype=np.int64)
    names = as_blocks(draw.bytes(16 * (int(who.max()) + 1)))
    parts, ids, owners, is_real = [], [], [], []
    for rows in np.array_split(np.arange(len(table)), batches):
        data, persons = table.take(pa.array(rows)), names[who[rows]]
        made = maker.make(persons, persons, data, memory, lambda found: np.isin(found, large))  # noqa: B023
        large = np.concatenate([large, made.groups])
        parts += [data, made.data]
        ids += [as_names(persons), as_names(made.persons)]
        owners += [who[rows], _owners(k, maker, names, who[rows], made)]
        is_real += [np.ones(len(rows), bool), np.zeros(len(made.data), bool)]
    return pa.concat_tables(parts), np.concatenate(ids), np.concatenate(owners), np.concatenate(is_real)


def _owners(k: int, maker: Any, names: Any, who: Ints, made: Any) -> Ints:
    """The person each decoy is a shadow of: for splitting people, not for the classifier."""
    people = np.unique(who)
    found: dict[bytes, int] = {}
    for number in range(k - 1):
        shadows = maker.ids("person", names[people], np.full(len(people), number))
        found.update(zip(as_names(shadows).tolist(), people.tolist(), strict=True))
    return np.array([found[name] for name in as_names(made.persons).tolist()], dtype=np.int64)


# ---- what the store shows


def features(data: pa.Table, ids: Names, normals: Sequence[Normal], time: str | None) -> tuple[Floats, list[str]]:
    """One row of numbers a record: all that an attacker without the key can see of it."""
    codes = {name: _codes(column_of(data, name)) for name in data.schema.names}
    person = np.unique(ids, return_inverse=True)[1]
    cells = group(b"0" * 16, data, normals).of
    found: dict[str, Floats] = {"group size": _distinct(cells, person), "records of id": _counts(person)}
    for name, code in codes.items():
        column = column_of(data, name)
        if is_number(column.type):
            values = numbers(column)[0].astype(np.float64)
            found[name] = values
            seconds = values / 1e9 if pa.types.is_timestamp(column.type) else values
            found[f"{name}: in its minute"] = np.mod(seconds, 60.0)
            found[f"{name}: in its hour"] = np.mod(seconds, 3600.0)
            found[f"{name}: behind the point"] = np.mod(seconds, 1.0)
        else:
            for value in np.argsort(-np.bincount(code))[:12]:
                found[f"{name}: value {value}"] = (code == value).astype(np.float64)
        found[f"{name}: how often"] = _counts(code)
        found[f"{name}: different ones of id"] = _distinct(person, code)
        found[f"{name}: people with it"] = _distinct(code, person)
    found |= _neighbours(data, codes, {own.name for own in normals})
    for first, second in combinations(codes, 2):
        found[f"{first} + {second}: how often"] = _counts(codes[first] * (codes[second].max() + 1) + codes[second])
    if time is not None:
        kinds = {name: code for name, code in codes.items() if not is_number(data.schema.field(name).type)}
        found |= _gaps(numbers(column_of(data, time))[0].astype(np.float64) / 1e9, person, kinds)
    return np.stack(list(found.values()), axis=1), list(found)


def _codes(column: pa.Array) -> Ints:
    coded = column.dictionary_encode(null_encoding="encode").indices
    return np.asarray(coded.to_numpy(zero_copy_only=False), dtype=np.int64)


def _counts(code: Ints) -> Floats:
    _, back, counts = np.unique(code, return_inverse=True, return_counts=True)
    return counts[back].astype(np.float64)


def _distinct(of: Ints, what: Ints) -> Floats:
    """How many different `what` go with each `of`."""
    pairs = np.unique(of * (what.max() + 1) + what) // (what.max() + 1)
    return np.bincount(pairs, minlength=of.max() + 1)[of].astype(np.float64)


def _neighbours(data: pa.Table, codes: dict[str, Ints], normal: set[str]) -> dict[str, Floats]:
    """How near the nearest records are that agree in the texts: copies lie around what they were copied from."""
    others = [name for name in data.schema.names if name not in normal]
    points = [_spread(column_of(data, name)) for name in others if is_number(data.schema.field(name).type)]
    alike = np.zeros(len(data), dtype=np.int64)
    for name in others:
        if not is_number(data.schema.field(name).type):
            alike = np.unique(alike * (codes[name].max() + 1) + codes[name], return_inverse=True)[1]
    if not points:
        return {}
    x = np.stack(points, axis=1)
    found = {f"distance to neighbour {at}": np.full(len(x), 10.0) for at in _NEAREST}
    for value in np.unique(alike):
        rows = np.flatnonzero(alike == value)
        for part in np.array_split(rows, max(1, len(rows) // 1000)):
            far = np.sort(np.sqrt(((x[part][:, None] - x[rows][None]) ** 2).sum(axis=2)), axis=1)
            for at in _NEAREST:
                if at < far.shape[1]:
                    found[f"distance to neighbour {at}"][part] = far[:, at]
    return found


def _spread(column: pa.Array) -> Floats:
    values = numbers(column)[0].astype(np.float64)
    values = np.log(values) if values.min() > 0 else values
    return (values - values.mean()) / (values.std() or 1.0)


def _gaps(seconds: Floats, person: Ints, kinds: dict[str, Ints]) -> dict[str, Floats]:
    """Times between the records of an id, and those in which something else became different."""
    order = np.lexsort((seconds, person))
    gap = np.diff(seconds[order], prepend=np.nan)
    gap[np.append(True, np.diff(person[order]) != 0)] = np.nan
    steps = {"gap before": gap, "gap after": np.append(gap[1:], np.nan)}
    for name, code in kinds.items():
        has_changed = np.append(False, np.diff(code[order]) != 0)
        steps[f"gap in which {name} changed"] = np.where(has_changed, gap, np.nan)
        steps[f"gap in which {name} did not change"] = np.where(has_changed, np.nan, gap)
    found = {}
    for name, values in steps.items():
        found[name] = np.empty(len(gap))
        found[name][order] = np.nan_to_num(values, nan=-1.0)
        shortest = np.full(person.max() + 1, np.inf)
        np.minimum.at(shortest, person[order], np.nan_to_num(values, nan=np.inf))
        found[f"shortest {name} of id"] = np.minimum(shortest, 1e12)[person]
    mean = np.bincount(person[order], weights=np.nan_to_num(gap)) / np.maximum(np.bincount(person) - 1, 1)
    return found | {"mean gap of id": mean[person]}


# ---- boosted trees


class Trees:
    """Gradient boosting of small trees on binned features, logistic loss."""

    def __init__(self, *, rounds: int = 60, depth: int = 3, rate: float = 0.2) -> None:
        self._rounds, self._depth, self._rate = rounds, depth, rate
        self._trees: list[Any] = []

    def fit(self, x: Floats, y: npt.NDArray[np.bool_]) -> Trees:
        self._edges = [np.unique(np.quantile(column, np.linspace(0, 1, _BINS)[1:-1])) for column in x.T]
        binned = self._binned(x)
        self._start = float(np.log(y.mean() / (1 - y.mean())))
        score = np.full(len(y), self._start)
        self.gains = np.zeros(x.shape[1])
        for _ in range(self._rounds):
            chance = 1 / (1 + np.exp(-score))
            tree = self._grow(binned, y - chance, chance * (1 - chance), np.arange(len(y)), self._depth)
            self._trees.append(tree)
            score += self._rate * _answer(tree, binned)
        return self

    def score(self, x: Floats) -> Floats:
        binned = self._binned(x)
        return self._start + self._rate * np.sum([_answer(tree, binned) for tree in self._trees], axis=0)

    def _binned(self, x: Floats) -> npt.NDArray[np.int64]:
        return np.stack(
            [np.searchsorted(edges, column) for edges, column in zip(self._edges, x.T, strict=True)], axis=1
        )

    def _grow(self, binned: Any, slope: Floats, weight: Floats, rows: Ints, depth: int) -> Any:
        total, heavy = slope[rows].sum(), weight[rows].sum()
        value = total / (heavy + 1.0)
        if depth == 0 or len(rows) < 40:
            return value
        best = (1e-6, -1, -1)
        for feature in range(binned.shape[1]):
            bins = binned[rows, feature]
            left = np.cumsum(np.bincount(bins, weights=slope[rows], minlength=_BINS))[:-1]
            mass = np.cumsum(np.bincount(bins, weights=weight[rows], minlength=_BINS))[:-1]
            gain = left**2 / (mass + 1) + (total - left) ** 2 / (heavy - mass + 1) - total**2 / (heavy + 1)
            at = int(gain.argmax())
            best = max(best, (float(gain[at]), feature, at))
        gain, feature, at = best
        if feature < 0:
            return value
        self.gains[feature] += gain
        is_left = binned[rows, feature] <= at
        below = [self._grow(binned, slope, weight, rows[side], depth - 1) for side in (is_left, ~is_left)]
        return feature, at, *below


def _answer(tree: Any, binned: Any) -> Floats:
    if not isinstance(tree, tuple):
        return np.full(len(binned), tree)
    feature, at, left, right = tree
    return np.where(binned[:, feature] <= at, _answer(left, binned), _answer(right, binned))


def auc(score: Floats, is_real: npt.NDArray[np.bool_]) -> float:
    """Chance that a real record scores above a decoy; ties count half."""
    values, back = np.unique(score, return_inverse=True)
    real = np.bincount(back, weights=is_real, minlength=len(values))
    fake = np.bincount(back, weights=~is_real, minlength=len(values))
    below = np.cumsum(fake) - fake
    return float((real * (below + fake / 2)).sum() / (real.sum() * fake.sum()))


def attack(
    data: pa.Table, ids: Names, owners: Ints, is_real: npt.NDArray[np.bool_], normals: Sequence[Normal], *,
    time: str | None = "time", seed: int = 0, drawn: int = 200, most: int = 40_000,
) -> dict[str, Any]:  # fmt: skip
    """Train on half of the people, ask about the others."""
    draw = np.random.default_rng(seed)
    x, names = features(data, ids, normals, time)
    people = draw.permutation(np.unique(owners))
    is_known = np.isin(owners, people[: len(people) // 2])
    known = draw.permutation(np.flatnonzero(is_known))[:most]
    asked = draw.permutation(np.flatnonzero(~is_known))[:most]
    model = Trees().fit(x[known], is_real[known])
    score, truth, owner = model.score(x[asked]), is_real[asked], owners[asked]
    rows_of = [np.flatnonzero(owner == person) for person in np.unique(owner)]
    again = []
    for _ in range(drawn):
        rows = np.concatenate([rows_of[at] for at in draw.integers(0, len(rows_of), len(rows_of))])
        again.append(auc(score[rows], truth[rows]))
    top = np.argsort(-model.gains)[:5]
    return {
        "auc": auc(score, truth),
        "interval": (float(np.quantile(again, 0.025)), float(np.quantile(again, 0.975))),
        "decoys": float(1 - is_real.mean()),
        "used": [(names[at], float(model.gains[at] / max(model.gains.sum(), 1e-9))) for at in top],
    }


def attack_seed(given: Any, seed: int) -> dict[str, Any]:
    """Make the records and decoys of one seed and attack them."""
    table, who = (city if given.kind == "campaign" else campaign)(given.people, given.records, seed)
    made = with_decoys(table, who, NORMALS, k=given.k, blend=not given.fill, batches=given.batches, seed=seed)
    return attack(*made, NORMALS, drawn=20 if given.tiny else 200)


def main(arguments: Sequence[str] | None = None) -> None:
    """Attack one store for each seed."""
    options = parser(__doc__)
    options.add_argument("--kind", choices=("campaign", "simple"), default="campaign", help="which synthetic records")
    options.add_argument("--people", type=int, default=1000)
    options.add_argument("--records", type=int, default=20_000)
    options.add_argument("--k", type=int, default=6)
    options.add_argument("--batches", type=int, default=4)
    options.add_argument("--seed", type=int, nargs="+", default=[11, 12, 13, 14])
    options.add_argument("--fill", action="store_true", help="decoys only where a group is too small")
    given = parse(options, arguments)
    if given.tiny:
        given.people, given.records, given.batches, given.seed = 20, 120, 2, [1]
    report = Report(__file__, given, data="a synthetic campaign of measurements")
    how, rows, used = f"{given.kind}, {'fill' if given.fill else 'blend'}", [], []
    for seed in given.seed:
        found = attack_seed(given, seed)
        low, high = found["interval"]
        row = [how, str(seed), f"{found['auc']:.3f}", f"{low:.3f} to {high:.3f}", f"{found['decoys']:.1%}"]
        rows.append(row)
        print(" | ".join(row), file=sys.stderr, flush=True)
        used.append([str(seed), "; ".join(f"{name} {share:.0%}" for name, share in found["used"])])
    report.table("attack", ["records", "seed", "held-out AUC", "95% interval", "decoys in the store"], rows)
    report.table("used", ["seed", "what the attack used most, and its share of what the trees gained"], used)
    report.write()


if __name__ == "__main__":
    main()
