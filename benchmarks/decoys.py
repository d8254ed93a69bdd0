"""Can someone who has the internal store and no key distinguish decoys from real records?

    python -m benchmarks.decoys [--kind campaign] [--people 1000] [--records 20000] [--k 6] [--fill] [--batches 4]
                                [--seed 11 12 13 14]

The attack of `shoal attack` on an internal store: a classifier (boosted trees) sees everything the store holds: every
column, how often values and pairs of values occur, how often an id comes back, its gaps in time, how many different
values it has, how large its group is. It learns on the records of half of the people, with the truth, and is asked
about the other half; shadows stay with their person. Reported are the area under the ROC curve (0.5 is a coin) with a
bootstrap interval over people, how often the id that looks most real among a person's is the person, and the columns
it used most.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.measure import Report, parse, parser
from shoal.auditor.attacks.decoys.attack import one_of_group, separate
from shoal.auditor.attacks.decoys.features import Column, StoredRecords
from shoal.crypto.keys import new_secret
from shoal.sanitize.decoys.cells import Normal, column_of, group, is_number, numbers
from shoal.sanitize.decoys.decoys import DecoyMaker, Known
from shoal.sanitize.pii import Names, as_names
from shoal.sanitize.tags import as_blocks

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
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


# ---- the attack


def stored(
    data: pa.Table, ids: Names, owners: Ints, is_real: npt.NDArray[np.bool_], normals: Sequence[Normal],
    *, time: str | None = "time",
) -> StoredRecords:  # fmt: skip
    """Return the store as an attacker without the key reads it; shadows stay with their person."""
    normal = {own.name for own in normals}
    columns = {}
    for name in data.schema.names:
        column = column_of(data, name)
        scale = 1e9 if pa.types.is_timestamp(column.type) else 1.0
        value = numbers(column)[0].astype(np.float64) / scale if is_number(column.type) else None
        columns[name] = Column(_codes(column), value, name in normal)
    person = np.unique(ids, return_inverse=True)[1]
    cells = group(b"0" * 16, data, normals).of
    return StoredRecords(columns, person, cells, None if time is None else columns[time].value, owners, is_real)


def _codes(column: pa.Array) -> Ints:
    coded = column.dictionary_encode(null_encoding="encode").indices
    return np.asarray(coded.to_numpy(zero_copy_only=False), dtype=np.int64)


def attack(
    data: pa.Table, ids: Names, owners: Ints, is_real: npt.NDArray[np.bool_], normals: Sequence[Normal], *,
    time: str | None = "time", seed: int = 0, drawn: int = 200,
) -> dict[str, Any]:  # fmt: skip
    """Train on half of the people, ask about the others."""
    store = stored(data, ids, owners, is_real, normals, time=time)
    found, blind = separate(store, np.random.default_rng(seed), drawn=drawn)
    picked = one_of_group(store, found)
    return {
        "auc": found.auc,
        "interval": (found.low, found.high),
        "blind": blind,
        "picked": picked.success,
        "guess": picked.guess,
        "decoys": float(1 - is_real.mean()),
        "used": found.used,
    }


def attack_seed(given: Any, seed: int) -> dict[str, Any]:
    """Make the records and decoys of one seed and attack them."""
    table, who = (city if given.kind == "campaign" else campaign)(given.people, given.records, seed)
    made = with_decoys(table, who, NORMALS, k=given.k, blend=not given.fill, batches=given.batches, seed=seed)
    return attack(*made, NORMALS, drawn=20 if given.tiny else 200)


def _shown(found: dict[str, Any]) -> str:
    rate = found["picked"]
    return "–" if rate is None else f"{rate.value:.3f}, {rate.low:.3f} to {rate.high:.3f} ({found['guess']:.3f})"


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
        row = [
            how,
            str(seed),
            f"{found['auc']:.3f}",
            f"{low:.3f} to {high:.3f}",
            f"{found['decoys']:.1%}",
            _shown(found),
        ]
        rows.append(row)
        print(" | ".join(row), file=sys.stderr, flush=True)
        used.append([str(seed), "; ".join(f"{name} {share:.0%}" for name, share in found["used"])])
    report.table(
        "attack",
        [
            "records",
            "seed",
            "held-out AUC",
            "95% interval",
            "decoys in the store",
            "person picked among its decoys (guess)",
        ],
        rows,
    )
    report.table("used", ["seed", "what the attack used most, and its share of what the trees gained"], used)
    report.write()


if __name__ == "__main__":
    main()
