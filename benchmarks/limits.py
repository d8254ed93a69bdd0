"""What the promises do not cover, as shares of people found: python -m benchmarks.limits [--data FOLDER]

Fake accounts next to a target, a stable secret over several rows of one person, exact values at the ends of ranges, and
the exact time of a z event. Each attack is run against a release and counted with the truth at hand.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from benchmarks.flexible_speed import roles_of
from benchmarks.measure import Report, parse, parser
from benchmarks.z_stream import make_stream, names
from shoal import Castle, Fads, FlexibleK, LeastLoss, Numeric, Ontology, Schema, ZAnonymity
from shoal.reproduce.data.adult import read_adult
from shoal.reproduce.data.adult_imitation import imitate_adult
from shoal.reproduce.data.campaign import make_campaign
from shoal.reproduce.data.streams import PERSON, Stream

Ints = npt.NDArray[np.int64]
QUASI = ("age", "fnlwgt", "hours-per-week", "workclass", "marital-status", "sex")
SECRET = "occupation"
METHODS = {"least-loss": LeastLoss, "fads": Fads, "castle": Castle}
WINDOW = {"deadline": 2000, "reuse": 200}
FAKE = 1_000_000_000
"""People from this number on are the attacker's."""
CHECKINS = "checkins.csv.gz"


class Released:
    """What left, with what the attacker must not have: the record behind every row, and its person."""

    def __init__(self, method: Any, table: pa.Table, quasi: Sequence[str]) -> None:
        parts = [method.push_batch(table.select(method.columns)), method.flush()]
        self.rows = pa.Table.from_batches([part.rows for part in parts])
        traces = pa.Table.from_batches([part.trace for part in parts])
        left = traces.filter(pc.equal(traces["verdict"].cast(pa.string()), "released"))
        self.record: Ints = left["row"].to_numpy()
        self.group: Ints = left["group"].to_numpy()
        self.person: Ints = table[method.columns[0]].to_numpy()[self.record]
        self.classes = _codes([self.rows[name] for name in quasi])
        self.loss = method.metrics["loss"]

    def row_of(self, records: Ints) -> dict[int, int]:
        """The released row of each of these records that left."""
        wanted = set(records.tolist())
        return {int(record): row for row, record in enumerate(self.record) if int(record) in wanted}


def _codes(columns: Sequence[pa.ChunkedArray]) -> Ints:
    """Number the different rows of some columns."""
    found = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        ends = column.flatten() if pa.types.is_struct(column.type) else [column]
        for end in ends:
            filled = end.combine_chunks().dictionary_encode(null_encoding="encode").indices.to_numpy()
            found = np.unique(found * (int(filled.max(initial=0)) + 1) + filled, return_inverse=True)[1]
    return found


def share(part: float, whole: float) -> str:
    """A share as the docs show it."""
    return f"{part / whole:.2f}" if whole else "–"


# ---- sybils


def with_fakes(table: pa.Table, targets: Ints, fakes: int, person: str) -> tuple[pa.Table, Ints]:
    """Right after each target, records of people who do not exist, with the target's values; where targets now are."""
    counts = np.ones(len(table), np.int64)
    counts[targets] += fakes
    source = np.repeat(np.arange(len(table)), counts)
    is_fake = np.append(False, source[1:] == source[:-1])
    people = np.where(is_fake, FAKE + np.arange(len(source)), table[person].to_numpy()[source])
    made = table.take(pa.array(source))
    made = made.set_column(made.schema.get_field_index(person), person, pa.array(people))
    return made, np.flatnonzero(~is_fake)[targets]


def isolated(released: Released, targets: Ints) -> tuple[int, int]:
    """Targets whose class holds no other real person, and targets that left."""
    real = released.person < FAKE
    pairs = np.unique(np.stack((released.classes[real], released.person[real])), axis=1)
    honest = Counter(pairs[0].tolist())
    rows = released.row_of(targets)
    return sum(honest[int(released.classes[row])] == 1 for row in rows.values()), len(rows)


def sybils(stream: Stream, ks: Sequence[int], targets: int) -> list[list[str]]:
    """A line for each method and k."""
    quasi = stream.quasi
    chosen = np.sort(np.random.default_rng(1).choice(len(stream), targets, replace=False)).astype(np.int64)
    lines = []
    for name, make in METHODS.items():
        for k in ks:
            cells = []
            for fakes in (0, k - 1, 3 * k):
                table, places = with_fakes(stream.table, chosen, fakes, PERSON)
                found = Released(make(stream.schema, k=k, key=bytes(16), **WINDOW), table, quasi)
                cells.append(share(*isolated(found, places)))
            lines.append([name, str(k), *cells])
    return lines


def flexible_sybils(table: pa.Table, k: int, window: int, targets: int) -> list[str]:
    """The same for flexible k-anonymity, K − 1 fakes with all of the target's values."""
    numbers = table["maid"].combine_chunks().dictionary_encode().indices.cast(pa.int64())
    table = table.set_column(table.schema.get_field_index("maid"), "maid", numbers)
    schema = Schema(person="maid", quasi=roles_of(table, 4))
    chosen = np.sort(np.random.default_rng(1).choice(len(table), targets, replace=False)).astype(np.int64)
    cells = []
    for fakes in (0, k - 1, 3 * k):
        with_them, places = with_fakes(table, chosen, fakes, "maid")
        method = FlexibleK(schema, Ontology.devices(), k=k, window=window, key=bytes(16))
        found = Released(method, with_them, [role.name for role in schema.quasi])
        cells.append(share(*isolated(found, places)))
    return ["flexible-k", str(k), *cells]


def z_sybils(events: int, z: int, targets: int) -> list[str]:
    """Values that only one person shows: how many leave without help, and with z − 1 people who do not exist."""
    stream = make_stream(events, people=max(events // 20, 20), attributes=max(events // 20, 50))
    batch = stream.batch
    owners = Counter(
        site
        for site, _ in {(s, u) for s, u in zip(*(batch.column(c).to_pylist() for c in ("site", "user")), strict=True)}
    )
    alone = [row for row, site in enumerate(batch.column("site").to_pylist()) if owners[site] == 1]
    chosen = np.sort(np.random.default_rng(1).choice(alone, min(targets, len(alone)), replace=False)).astype(np.int64)
    cells = []
    for fakes in (0, z - 1, 3 * z):
        counts = np.ones(batch.num_rows, np.int64)
        counts[chosen] += fakes
        source = np.repeat(np.arange(batch.num_rows), counts)
        is_fake = np.append(source[1:] == source[:-1], False)  # they come first, the target last
        made = pa.Table.from_batches([batch]).take(pa.array(source))
        users = pc.if_else(pa.array(is_fake), names("fake-", np.arange(len(source)), ""), made["user"].combine_chunks())
        made = made.set_column(1, "user", users)
        method = ZAnonymity(z=z, window=f"{stream.window}s", person="user", attribute="site", time="ts", key=bytes(16))
        traces = pa.Table.from_batches([method.push_batch(made).trace, method.flush().trace])
        left = traces.filter(pc.equal(traces["verdict"].cast(pa.string()), "released"))["row"].to_numpy()
        targets_now = np.flatnonzero(~is_fake)[chosen]
        cells.append(share(len(np.intersect1d(left, targets_now)), len(chosen)))
    return ["z-anonymity", str(z), *cells]


# ---- several rows of one person


def repeated(stream: Stream, times: int, seed: int = 1) -> Stream:
    """Every person comes `times` times with the same values, in any order."""
    order = np.random.default_rng(seed).permutation(np.tile(np.arange(len(stream)), times))
    return stream.with_table(stream.table.take(pa.array(order)))


def with_rare_secret(stream: Stream, values: int = 1_000, seed: int = 2) -> Stream:
    """Another secret: one of many values, each as likely."""
    drawn = names("code ", np.random.default_rng(seed).integers(0, values, len(stream)), "")
    return stream.with_table(stream.table.set_column(stream.table.schema.get_field_index(SECRET), SECRET, drawn))


def secrets_found(stream: Stream, k: int, times: int) -> str:
    """People whose secret is the only one in all of their decisions, if an attacker knows those decisions."""
    found = Released(
        LeastLoss(stream.schema, k=k, key=bytes(16), groups=True, **WINDOW), repeated(stream, times).table, stream.quasi
    )
    secret = found.rows[SECRET].combine_chunks().dictionary_encode().indices.to_numpy()
    members: dict[int, set[int]] = {}
    for group, value in zip(found.group.tolist(), secret.tolist(), strict=True):
        members.setdefault(group, set()).add(value)
    candidates: dict[int, set[int]] = {}
    for person, group in zip(found.person.tolist(), found.group.tolist(), strict=True):
        own = members[group]
        candidates[person] = candidates[person] & own if person in candidates else own
    return share(sum(len(left) == 1 for left in candidates.values()), len(candidates))


# ---- ends of ranges


def ends_exposed(stream: Stream, k: int, steps: int | None) -> list[str]:
    """How many ends of ranges are a value of the class, or of exactly one person in it; people it shows; the loss."""
    quasi = tuple(
        replace(role, grid=float(np.ceil((role.high - role.low) / steps)))
        if isinstance(role, Numeric) and steps
        else role
        for role in stream.schema.quasi
    )
    schema = replace(stream.schema, quasi=quasi)
    found = Released(LeastLoss(schema, k=k, key=bytes(16), **WINDOW), stream.table, stream.quasi)
    ends, held, lone, exposed = 0, 0, 0, np.zeros(len(found.person), np.bool_)
    count = int(found.classes.max()) + 1
    for name in stream.domains:
        true = stream.table[name].to_numpy()[found.record].astype(np.float64)
        for part in found.rows[name].flatten():
            at_end = true == part.to_numpy().astype(np.float64)
            people = np.unique(np.stack((found.classes[at_end], found.person[at_end])), axis=1)[0]
            holders = np.bincount(people, minlength=count)[found.classes]
            ends, held, lone = ends + len(holders), held + int((holders > 0).sum()), lone + int((holders == 1).sum())
            exposed |= at_end & (holders == 1)
    shown = share(len(np.unique(found.person[exposed])), len(np.unique(found.person)))
    return [share(held, ends), share(lone, ends), shown, f"{found.loss:.3f}"]


# ---- the time of a z event


def times_unique(table: pa.Table, z: int, window: str) -> list[str]:
    """Of the released rows, those that are the only one of their second, and of their minute."""
    method = ZAnonymity(z=z, window=window, person="user", attribute="site", time="ts", key=bytes(16))
    rows = pa.Table.from_batches([method.push_batch(table).rows, method.flush().rows])
    times = rows["ts"].cast(pa.int64()).to_numpy()
    unique = [int((np.unique(times // unit, return_counts=True)[1] == 1).sum()) for unit in (1, 60)]
    return [f"{len(times):,}", *(share(count, len(times)) for count in unique)]


def read_checkins(path: Path) -> pa.Table:
    """User, venue and second of every check-in."""
    found = csv.read_csv(path, convert_options=csv.ConvertOptions(include_columns=["user", "venue", "time"]))
    moments = found["time"].cast(pa.timestamp("s")).cast(pa.int64())
    return pa.table({"ts": moments, "user": found["user"].cast(pa.string()), "site": found["venue"].cast(pa.string())})


def z_times(given: argparse.Namespace) -> list[list[str]]:
    """Streams of different density, and real check-ins where there are any."""
    lines = []
    for events in (2_000,) if given.tiny else (10_000, 100_000, 1_000_000):
        stream = make_stream(events, people=max(events // 20, 20), attributes=10_000)
        found = times_unique(pa.Table.from_batches([stream.batch]), 10, f"{stream.window}s")
        lines.append([f"synthetic, {events / 1e6:g} events a second", *found])
    path = next(iter(given.data.rglob(CHECKINS)), None) if given.data else None
    if path is not None:
        lines.append(["Gowalla check-ins, New York", *times_unique(read_checkins(path), 10, "7d")])
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Print and write the tables."""
    given = parse(parser(__doc__, data=f"UCI's adult.data and Gowalla's {CHECKINS}"), arguments)
    report = Report(__file__, given)
    rows, targets = (1_200, 20) if given.tiny else (20_000, 200)
    whole = read_adult(given.data) if given.data else imitate_adult(rows, seed=1)
    report.data = whole.origin
    stream = whole.head(rows).narrowed(QUASI, [SECRET])
    report.text("source", f"{len(stream):,} people of {whole.origin}.")
    ks = (5,) if given.tiny else (5, 10, 50)
    lines = sybils(stream, ks, targets)
    people, records = (200, 1_000) if given.tiny else (2_000, 30_000)
    campaign = make_campaign(people, records, seed=1)
    lines += [flexible_sybils(campaign, k, records // 6, targets) for k in ((6,) if given.tiny else (6, 12))]
    lines += [z_sybils(2_000 if given.tiny else 100_000, z, targets) for z in ks]
    report.table("sybils", ["method", "k or z", "no fakes", "k − 1 fakes (z − 1)", "3 k fakes (3 z)"], lines)
    times = (1, 2) if given.tiny else (1, 2, 3, 5)
    some = stream.head(len(stream) // 4)
    kinds = {"occupation (14 values)": some, "a code of 1,000": with_rare_secret(some)}
    report.table(
        "intersection",
        ["secret", "k", *(f"{count} row{'s' * (count > 1)}" for count in times)],
        [[kind, str(k), *(secrets_found(own, k, count) for count in times)] for kind, own in kinds.items() for k in ks],
    )
    report.table(
        "ends",
        ["k", "grid", "ends that are a person's value", "… of exactly one person", "people with such an end", "loss"],
        [[str(k), f"1/{steps} of the domain" if steps else "none", *ends_exposed(stream, k, steps)]
         for k in ks for steps in (None, 100, 50, 20)],
    )  # fmt: skip
    report.table(
        "z_times", ["stream, z = 10", "released rows", "alone in their second", "in their minute"], z_times(given)
    )
    report.write()


if __name__ == "__main__":
    main()
