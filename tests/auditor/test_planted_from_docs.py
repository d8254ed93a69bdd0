"""Violations thought of from the documentation alone, planted in real runs: each must be convicted."""

from __future__ import annotations

import hashlib
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shoal.auditor import audit
from tests.auditor.honest_runs import Run, run

Rows = list[dict[str, Any]]
"""Released rows, or entries of a trace."""


class Scene:
    """A run whose release and trace may be changed."""

    def __init__(self, of: Run) -> None:
        self._of = of
        self.policy = of.policy
        self.truth: Rows = of.truth.to_pylist()
        self.rows: Rows = of.release.to_pylist()
        self.trace: Rows = [] if of.trace is None else of.trace.to_pylist()

    @property
    def released(self) -> Rows:
        """Entries of the trace that have a row, in the order of rows."""
        return [entry for entry in self.trace if entry["verdict"] == "released"]

    def record_of(self, at: int) -> dict[str, Any]:
        """The record of a released row."""
        return self.truth[self.released[at]["row"]]

    def violations(self) -> list[str]:
        """The codes of broken promises."""
        of = self._of
        release = pa.Table.from_pylist(self.rows, of.release.schema)
        truth = pa.Table.from_pylist(self.truth, of.truth.schema)
        trace = None if of.trace is None else pa.Table.from_pylist(self.trace, of.trace.schema)
        return [found.code for found in audit(release, truth, trace, self.policy).violations]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Run]]:
    """Runs of families, each made once."""
    made: dict[str, Run] = {}
    before = Path.cwd()

    def of(family: str) -> Run:
        if family not in made:
            folder = tmp_path_factory.mktemp(family)
            os.chdir(folder)
            made[family] = run(family, folder)
        return made[family]

    yield of
    os.chdir(before)


# ---- z-anonymity


def merge_two_people(scene: Scene) -> None:
    """One pseudonym for two people of an epoch."""
    epoch = [row for row in scene.rows if row["ts"] // 7200 == scene.rows[0]["ts"] // 7200]
    first, other = list(dict.fromkeys(row["user"] for row in epoch))[:2]
    for row in epoch:
        row["user"] = first if row["user"] == other else row["user"]


def one_pseudonym_for_ever(scene: Scene) -> None:
    """Everybody keeps the pseudonym of the first epoch."""
    kept: dict[str, str] = {}
    for at, row in enumerate(scene.rows):
        row["user"] = kept.setdefault(scene.record_of(at)["user"], row["user"])


def digest_with_a_guessable_salt(scene: Scene) -> None:
    """MD5 of the person and the start of the epoch in seconds."""
    for at, row in enumerate(scene.rows):
        start = row["ts"] // 7200 * 7200
        row["user"] = hashlib.md5(f"{scene.record_of(at)['user']}:{start}".encode()).hexdigest()


def count_up(scene: Scene) -> None:
    """Pseudonyms are the numbers of first appearances."""
    numbers: dict[str, str] = {}
    for row in scene.rows:
        row["user"] = numbers.setdefault(row["user"], f"{len(numbers) * 17:032x}")


def show_a_rare_site(scene: Scene) -> None:
    """A suppressed record is released in place of a released one; the trace agrees."""
    rare = next(entry for entry in reversed(scene.trace) if entry["verdict"] == "suppressed")
    place = sum(entry["verdict"] == "released" for entry in scene.trace[: scene.trace.index(rare)])
    record = scene.truth[rare["row"]]
    row = {**record, "user": "5e" * 16}
    rare["verdict"] = "released"
    scene.rows.insert(place, row)


def swap_sites_of_a_moment(scene: Scene) -> None:
    """Two neighbouring rows exchange their sites."""
    at = next(at for at, row in enumerate(scene.rows[:-1]) if row["site"] != scene.rows[at + 1]["site"])
    scene.rows[at]["site"], scene.rows[at + 1]["site"] = scene.rows[at + 1]["site"], scene.rows[at]["site"]


def shift_times(scene: Scene) -> None:
    """Times are a second late, all of them."""
    for row in scene.rows:
        row["ts"] += 1


def person_in_country(scene: Scene) -> None:
    """A carried column shows the person."""
    scene.rows[7]["country"] = scene.record_of(7)["user"]


def release_a_row_again(scene: Scene) -> None:
    """A row and its entry of the trace are there twice."""
    scene.rows.append(dict(scene.rows[-1]))
    scene.trace.append(dict(scene.released[-1]))


def forget_a_record(scene: Scene) -> None:
    """A suppressed record is missing from the trace."""
    scene.trace.remove(next(entry for entry in scene.trace[200:] if entry["verdict"] == "suppressed"))


def refuse_a_good_record(scene: Scene) -> None:
    """A trace without a known verdict for a record."""
    next(entry for entry in scene.trace if entry["verdict"] == "suppressed")["verdict"] = "forgotten"


def claim_a_lower_z(scene: Scene) -> None:
    """One entry of the trace says z = 1."""
    scene.released[3]["z"] = 1


def decide_backwards(scene: Scene) -> None:
    """The trace and the rows are in reverse order of time."""
    scene.rows.reverse()
    scene.trace.reverse()


def no_site_at_all(scene: Scene) -> None:
    """A row without any value."""
    scene.rows[10]["site"] = None


def record_beyond_the_truth(scene: Scene) -> None:
    """The trace names a record that does not exist."""
    scene.released[0]["row"] = len(scene.truth) + 5


def negative_record(scene: Scene) -> None:
    """The trace names record -1."""
    scene.released[0]["row"] = -1


# ---- tuples


def _classes(rows: Rows) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for at, row in enumerate(rows):
        found[repr((row["age"], row["town"]))].append(at)
    return found


def one_illness_in_a_class(scene: Scene) -> None:
    """All rows of a class have one illness, the records too."""
    for at in min(_classes(scene.rows).values(), key=len):
        scene.rows[at]["illness"] = scene.record_of(at)["illness"] = "flu"


def one_person_is_a_crowd(scene: Scene) -> None:
    """All records of a class belong to one person."""
    rows = min(_classes(scene.rows).values(), key=len)
    for at in rows:
        scene.record_of(at)["id"] = "citizen 000"


def exact_age(scene: Scene) -> None:
    """A range is one exact age off the grid."""
    at = next(at for at, row in enumerate(scene.rows) if row["age"] is not None)
    age = scene.record_of(at)["age"]
    scene.rows[at]["age"] = {"lo": age, "hi": age}


def narrower_for_one(scene: Scene) -> None:
    """One row of a cluster shows a narrower range than the others, on the grid."""
    at = next(at for at, row in enumerate(scene.rows) if row["age"] and row["age"]["hi"] - row["age"]["lo"] >= 15)
    row, age = scene.rows[at], scene.record_of(at)["age"]
    row["age"] = {"lo": age // 5 * 5, "hi": age // 5 * 5 + 5}


def range_beside_the_value(scene: Scene) -> None:
    """All ranges of a cluster miss the values of its records."""
    group = scene.released[0]["group"]
    for at, entry in enumerate(scene.released):
        if entry["group"] == group and scene.rows[at]["age"] is not None:
            scene.rows[at]["age"] = {"lo": 85, "hi": 90}


def fill_a_gap(scene: Scene) -> None:
    """Rows whose record has no age get one."""
    for row in scene.rows:
        row["age"] = row["age"] or {"lo": 15, "hi": 90}


def hide_an_age(scene: Scene) -> None:
    """A row loses its age."""
    next(row for row in scene.rows if row["age"] is not None)["age"] = None


def swap_illnesses(scene: Scene) -> None:
    """Two rows of a class exchange illnesses: every count stays as it is."""
    for rows in _classes(scene.rows).values():
        first = rows[0]
        other = next((at for at in rows if scene.rows[at]["illness"] != scene.rows[first]["illness"]), None)
        if other is not None:
            mine, theirs = scene.rows[first], scene.rows[other]
            mine["illness"], theirs["illness"] = theirs["illness"], mine["illness"]
            return


def reverse_the_domain(scene: Scene) -> None:
    """A range ends before it begins."""
    row = next(row for row in scene.rows if row["age"] and row["age"]["hi"] > row["age"]["lo"])
    row["age"] = {"lo": row["age"]["hi"], "hi": row["age"]["lo"]}


def beyond_the_domain(scene: Scene) -> None:
    """A range of a whole cluster reaches to 200."""
    group = scene.released[0]["group"]
    for at, entry in enumerate(scene.released):
        if entry["group"] == group and scene.rows[at]["age"] is not None:
            scene.rows[at]["age"] = {**scene.rows[at]["age"], "hi": 200}


def invent_a_town(scene: Scene) -> None:
    """A label that no hierarchy has."""
    scene.rows[4]["town"] = "Atlantis"


def town_of_another_branch(scene: Scene) -> None:
    """A whole cluster claims the other half of the country."""
    group = scene.released[0]["group"]
    for at, entry in enumerate(scene.released):
        if entry["group"] == group:
            scene.rows[at]["town"] = "south" if scene.record_of(at)["town"] in {"Aa", "Bo", "Cu"} else "north"


def too_late(scene: Scene) -> None:
    """A row says it waited longer than its deadline."""
    scene.released[20]["delay"] += 500


def negative_delay(scene: Scene) -> None:
    """A row was published before it arrived."""
    scene.released[20]["delay"] = -3


def reuse_without_a_cluster(scene: Scene) -> None:
    """The first row of a cluster says that it reuses it."""
    scene.released[0]["reused"] = True


def more_carriers_than_people(scene: Scene) -> None:
    """A cluster claims other carriers than its records show."""
    group = scene.released[0]["group"]
    for entry in scene.released:
        if entry["group"] == group:
            entry["carriers"] = [99, 99]


def split_a_cluster(scene: Scene) -> None:
    """Half of a cluster gets a number of its own in the trace."""
    sizes = Counter(entry["group"] for entry in scene.released if not entry["reused"])
    group = next(number for number, size in sizes.items() if size < 10)
    own = [entry for entry in scene.released if entry["group"] == group]
    for entry in own[: len(own) // 2]:
        entry["group"] = 1_000_000


def person_as_ward(scene: Scene) -> None:
    """The carried column is the person, in the truth as well: everybody can be found."""
    for at, row in enumerate(scene.rows):
        record = scene.record_of(at)
        row["ward"] = record["ward"] = f"unit {record['id']}"


def swap_two_rows(scene: Scene) -> None:
    """Two rows of different clusters change places in the release."""
    scene.rows[0], scene.rows[-1] = scene.rows[-1], scene.rows[0]


# ---- flexible k


def suppress_one(scene: Scene) -> None:
    """A record is dropped, which nothing may be."""
    scene.released[5]["verdict"] = "suppressed"
    del scene.rows[5]


def exact_rare_model(scene: Scene) -> None:
    """A rare model is published as it is."""
    at = next(at for at in range(len(scene.rows)) if scene.record_of(at)["model"] in {"one-c", "two-c"})
    scene.rows[at]["model"] = scene.record_of(at)["model"]


def everything_at_one_town(scene: Scene) -> None:
    """A row claims a town that its record does not have."""
    at = next(at for at, row in enumerate(scene.rows) if row["town"] == "Aa")
    scene.rows[at]["town"] = "Eb"


def lower_k_s(scene: Scene) -> None:
    """The trace says that K_s was 1."""
    if "k_s" in scene.trace[0]:
        for entry in scene.released:
            entry["k_s"] = 1
    else:
        scene.released[0]["k"] = 1


def other_speed(scene: Scene) -> None:
    """A carried value is another one."""
    scene.rows[3]["speed"] += 1


def listed_as_unknown(scene: Scene) -> None:
    """A listed model is published as unknown."""
    for row in scene.rows:
        if row["model"] == "one-a":
            row["model"] = "unknown"


# ---- sets


def _items_of(row: dict[str, Any]) -> tuple[str, list[str]]:
    (name,) = [name for name, value in row.items() if isinstance(value, list)]
    return name, row[name]


def add_an_item(scene: Scene) -> None:
    """A released set gains a label that its record does not have."""
    labels = {label for row in scene.rows for label in _items_of(row)[1]}
    row = next(row for row in scene.rows if set(_items_of(row)[1]) < labels)
    name, own = _items_of(row)
    row[name] = sorted({*own, min(labels - set(own))})


def drop_a_person(scene: Scene) -> None:
    """The last set is missing."""
    scene.rows.pop()


def repeat_a_label(scene: Scene) -> None:
    """A label stands twice in a set."""
    name, own = _items_of(scene.rows[0])
    scene.rows[0][name] = [*own, own[0]]


def leaf_and_block(scene: Scene) -> None:
    """A single set shows an item more precisely than all others."""
    for row in scene.rows:
        name, own = _items_of(row)
        wide = [label for label in own if len(label) == 2]
        if wide:
            row[name] = [wide[0][0] if label == wide[0] else label for label in own]
            return
    name, own = _items_of(scene.rows[0])
    scene.rows[0][name] = ["zz", *own]


PLANTED: dict[str, tuple[Callable[[Scene], None], ...]] = {
    "z": (
        merge_two_people,
        one_pseudonym_for_ever,
        digest_with_a_guessable_salt,
        count_up,
        show_a_rare_site,
        swap_sites_of_a_moment,
        shift_times,
        person_in_country,
        release_a_row_again,
        forget_a_record,
        refuse_a_good_record,
        claim_a_lower_z,
        decide_backwards,
        no_site_at_all,
        record_beyond_the_truth,
        negative_record,
    ),
    "tuples": (
        one_illness_in_a_class,
        one_person_is_a_crowd,
        exact_age,
        narrower_for_one,
        range_beside_the_value,
        fill_a_gap,
        hide_an_age,
        swap_illnesses,
        reverse_the_domain,
        beyond_the_domain,
        invent_a_town,
        town_of_another_branch,
        too_late,
        negative_delay,
        reuse_without_a_cluster,
        more_carriers_than_people,
        split_a_cluster,
        person_as_ward,
        swap_two_rows,
    ),
    "flexible": (
        suppress_one,
        exact_rare_model,
        everything_at_one_town,
        lower_k_s,
        other_speed,
        listed_as_unknown,
    ),
    "sets": (add_an_item, drop_a_person, repeat_a_label, leaf_and_block),
}


@pytest.mark.parametrize("family", PLANTED)
def test_the_run_as_it_is_keeps_its_promise(runs: Callable[[str], Run], family: str) -> None:
    assert Scene(runs(family)).violations() == []


@pytest.mark.parametrize(
    ("family", "change"),
    [pytest.param(family, change, id=change.__name__) for family, own in PLANTED.items() for change in own],
)
def test_every_planted_violation_is_convicted(
    runs: Callable[[str], Run], family: str, change: Callable[[Scene], None]
) -> None:
    scene = Scene(runs(family))
    change(scene)
    assert scene.violations()
