"""Violations thought of from the documentation alone, planted in real runs: each must be convicted."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shoal.auditor import audit, audit_table
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


def _exchange(one: dict[str, Any], other: dict[str, Any], name: str) -> None:
    one[name], other[name] = other[name], one[name]


def _neighbours(rows: Rows, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The first rows next to each other that differ in a column."""
    return next((one, other) for one, other in pairwise(rows) if one[name] != other[name])


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


def exchange_pseudonyms(scene: Scene) -> None:
    """Two neighbouring rows exchange pseudonyms; one of the people has other rows."""
    rows, of = scene.rows, Counter(row["user"] for row in scene.rows)
    at = next(at for at in range(len(rows)) if of[rows[at]["user"]] > 1 and rows[at]["user"] != rows[at + 1]["user"])
    _exchange(rows[at], rows[at + 1], "user")


def pseudonym_of_another_epoch(scene: Scene) -> None:
    """One row has the pseudonym that its person has in another epoch."""
    people = [scene.record_of(at)["user"] for at in range(len(scene.rows))]
    for row, person in zip(scene.rows, people, strict=True):
        others = [other["user"] for other, own in zip(scene.rows, people, strict=True) if own == person]
        if others[-1] != row["user"]:
            row["user"] = others[-1]
            return


def half_a_pseudonym_for_ever(scene: Scene) -> None:
    """Half of the digits stay the same over epochs."""
    for at, row in enumerate(scene.rows):
        fixed = hashlib.sha256(b"secret" + scene.record_of(at)["user"].encode()).hexdigest()
        row["user"] = fixed[:16] + row["user"][16:]


def capital_digits(scene: Scene) -> None:
    """One pseudonym is written in capitals."""
    scene.rows[9]["user"] = scene.rows[9]["user"].upper()


def digest_of_the_person(scene: Scene) -> None:
    """SHA-1 of the person, cut to 32 digits."""
    for at, row in enumerate(scene.rows):
        row["user"] = hashlib.sha1(scene.record_of(at)["user"].encode()).hexdigest()[:32]


def epoch_as_key(scene: Scene) -> None:
    """An HMAC whose key is the number of the epoch."""
    for at, row in enumerate(scene.rows):
        key, person = str(row["ts"] // 7200).encode(), scene.record_of(at)["user"].encode()
        row["user"] = hmac.new(key, person, "sha256").hexdigest()[:32]


def swap_countries(scene: Scene) -> None:
    """Two neighbouring rows exchange their countries."""
    _exchange(*_neighbours(scene.rows, "country"), "country")


def cut_the_end(scene: Scene) -> None:
    """The last rows are missing."""
    del scene.rows[-20:]


def popular_in_place_of_rare(scene: Scene) -> None:
    """A suppressed record is released under a popular site."""
    rare = next(entry for entry in reversed(scene.trace) if entry["verdict"] == "suppressed")
    place = sum(entry["verdict"] == "released" for entry in scene.trace[: scene.trace.index(rare)])
    rare["verdict"] = "released"
    scene.rows.insert(place, {**scene.truth[rare["row"]], "site": "s0", "user": "5e" * 16})


def older_than_the_one_before(scene: Scene) -> None:
    """A released record is older than the one before, and none may be late."""
    released = scene.released
    at = next(at for at in range(50, len(released)) if released[at]["row"] == released[at - 1]["row"] + 1)
    scene.rows[at]["ts"] = scene.record_of(at)["ts"] = scene.rows[at - 1]["ts"] - 300


def crowd_of_one_person(scene: Scene) -> None:
    """All records of the rarest released site are of one person."""
    rare = Counter(row["site"] for row in scene.rows).most_common()[-1][0]
    for record in scene.truth:
        if record["site"] == rare:
            record["user"] = "person 000"


def crowd_before_the_window(scene: Scene) -> None:
    """All others who show the site of the last row do so only before its window."""
    last = scene.rows[-1]
    own = scene.record_of(len(scene.rows) - 1)
    for record in scene.truth:
        if record is not own and record["site"] == last["site"] and record["ts"] >= last["ts"] - 7200:
            record["site"] = "elsewhere"


def row_of_nobody(scene: Scene) -> None:
    """The record of a released row has no person."""
    scene.record_of(30)["user"] = None


def cut_to_minutes(scene: Scene) -> None:
    """Times are cut to minutes."""
    for row in scene.rows:
        row["ts"] = row["ts"] // 60 * 60


def call_it_suppressed(scene: Scene) -> None:
    """The trace calls a released record suppressed; its row stays."""
    scene.released[40]["verdict"] = "suppressed"


def last_come_first_decided(scene: Scene) -> None:
    """Two records of one moment are decided in reverse order of arrival."""
    rows, released = scene.rows, scene.released
    at = next(at for at in range(len(rows)) if rows[at]["ts"] == rows[at + 1]["ts"])
    first, then = scene.trace.index(released[at]), scene.trace.index(released[at + 1])
    scene.trace[first], scene.trace[then] = scene.trace[then], scene.trace[first]
    rows[at], rows[at + 1] = rows[at + 1], rows[at]


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


def swap_wards(scene: Scene) -> None:
    """Two neighbouring rows exchange what they carry."""
    _exchange(*_neighbours(scene.rows, "ward"), "ward")


def respell_an_illness(scene: Scene) -> None:
    """One illness is written in capitals, which marks its row."""
    scene.rows[6]["illness"] = scene.rows[6]["illness"].upper()


def forget_an_illness(scene: Scene) -> None:
    """A row loses its illness."""
    scene.rows[6]["illness"] = None


def known_of_one_only(scene: Scene) -> None:
    """In a class only one illness is known, in the records too."""
    for at in min(_classes(scene.rows).values(), key=len)[1:]:
        scene.rows[at]["illness"] = scene.record_of(at)["illness"] = None


def two_rows_of_one_record(scene: Scene) -> None:
    """Two rows claim the same record."""
    scene.released[11]["row"] = scene.released[12]["row"]


def nobody_waited(scene: Scene) -> None:
    """No row says that it waited."""
    for entry in scene.released:
        entry["delay"] = 0


def half_in_another_event(scene: Scene) -> None:
    """Half of a cluster was published an arrival later, according to the trace."""
    group = scene.released[0]["group"]
    own = [entry for entry in scene.released if entry["group"] == group and not entry["reused"]]
    for entry in own[: len(own) // 2]:
        entry["event"] += 1


def citizen_without_a_name(scene: Scene) -> None:
    """The record of a released row has no person."""
    scene.record_of(8)["id"] = None


def older_than_the_domain(scene: Scene) -> None:
    """A released record lies outside the domain."""
    at = next(at for at, row in enumerate(scene.rows) if row["age"] and row["age"]["hi"] == 90)
    scene.record_of(at)["age"] = 91


def town_of_no_map(scene: Scene) -> None:
    """A released record has a town that the hierarchy does not have."""
    at = next(at for at, row in enumerate(scene.rows) if row["town"] == "all")
    scene.record_of(at)["town"] = "Atlantis"


def claim_a_lower_k(scene: Scene) -> None:
    """One entry of the trace says k = 2."""
    scene.released[0]["k"] = 2


def reuse_an_old_cluster(scene: Scene) -> None:
    """A row reuses its cluster 100 arrivals later than it did, and the trace says so."""
    last = max(entry["event"] for entry in scene.trace)
    at, entry = next((at, one) for at, one in enumerate(scene.released) if one["reused"] and one["event"] < last - 200)
    row = scene.rows.pop(at)
    scene.trace.remove(entry)
    entry["event"], entry["delay"] = entry["event"] + 100, entry["delay"] + 100
    to = next(to for to, other in enumerate(scene.trace) if other["event"] > entry["event"])
    place = sum(other["verdict"] == "released" for other in scene.trace[:to])
    scene.trace.insert(to, entry)
    scene.rows.insert(place, row)


def beside_the_grid(scene: Scene) -> None:
    """A range ends one above a point of the grid."""
    row = next(row for row in scene.rows if row["age"] and row["age"]["hi"] < 90)
    row["age"] = {**row["age"], "hi": row["age"]["hi"] + 1}


def blank_behind_a_label(scene: Scene) -> None:
    """A label differs from that of its class by a blank."""
    scene.rows[15]["town"] += " "


def alone_at_the_root(scene: Scene) -> None:
    """One row of a cluster shows less than the others."""
    next(row for row in scene.rows if row["town"] != "all")["town"] = "all"


def range_without_a_beginning(scene: Scene) -> None:
    """A range has one end."""
    row = next(row for row in scene.rows if row["age"])
    row["age"] = {**row["age"], "lo": None}


def one_number_for_two_clusters(scene: Scene) -> None:
    """The trace gives two clusters with different values one number."""
    first = scene.released[0]["group"]
    other = next(
        entry["group"] for at, entry in enumerate(scene.released) if scene.rows[at]["town"] != scene.rows[0]["town"]
    )
    for entry in scene.released:
        entry["group"] = first if entry["group"] == other else entry["group"]


def one_person_fewer_than_k(scene: Scene) -> None:
    """A class of many rows has k - 1 different people."""
    rows = min(_classes(scene.rows).values(), key=len)
    people = list(dict.fromkeys(scene.record_of(at)["id"] for at in rows))[:4]
    for number, at in enumerate(rows):
        scene.record_of(at)["id"] = people[number % 4]


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


def publish_again(scene: Scene) -> None:
    """A row and its entry are there twice."""
    scene.rows.append(dict(scene.rows[-1]))
    scene.trace.append(dict(scene.released[-1]))


def two_people_in_a_town(scene: Scene) -> None:
    """All rows of a published town are of two people."""
    town = Counter(row["town"] for row in scene.rows).most_common()[-1][0]
    for at, row in enumerate(scene.rows):
        if row["town"] == town:
            scene.record_of(at)["maid"] = f"agent {at % 2:03}"


def one_person_with_a_model(scene: Scene) -> None:
    """All rows of a model in a town are of one person."""
    rare = Counter((row["model"], row["town"]) for row in scene.rows).most_common()[-1][0]
    for at, row in enumerate(scene.rows):
        if (row["model"], row["town"]) == rare:
            scene.record_of(at)["maid"] = "agent 000"


def hide_a_model(scene: Scene) -> None:
    """A row loses its model."""
    scene.rows[12]["model"] = None


def other_maker(scene: Scene) -> None:
    """A row claims the other maker."""
    at = next(at for at in range(len(scene.rows)) if scene.record_of(at)["model"].startswith("one"))
    scene.rows[at]["model"] = "maker two"


def row_without_a_group(scene: Scene) -> None:
    """A released row is in no group."""
    scene.released[7]["group"] = None


def published_before_it_came(scene: Scene) -> None:
    """A delay is negative."""
    scene.released[7]["delay"] = -1


def exchange_speeds(scene: Scene) -> None:
    """Two neighbouring rows exchange their speeds."""
    _exchange(*_neighbours(scene.rows, "speed"), "speed")


def unlisted_model_as_it_is(scene: Scene) -> None:
    """A model that the hierarchy does not list is published, truly."""
    scene.rows[20]["model"] = scene.record_of(20)["model"] = "three-x"


def device_of_nobody(scene: Scene) -> None:
    """The record of a released row has no person."""
    scene.record_of(20)["maid"] = None


def refuse_under_a_pretext(scene: Scene) -> None:
    """A usable record is refused as outside its domain."""
    scene.released[25].update(group=None, reason="outside: model", verdict="dead")
    del scene.rows[25]


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


def exchange_positions(scene: Scene) -> None:
    """The trace exchanges the rows of two records with different sets."""
    first = next(entry for entry in scene.trace if entry["position"] >= 0)
    mine = set(_items_of(scene.rows[first["position"]])[1])
    other = next(entry for entry in scene.trace if set(_items_of(scene.rows[entry["position"]])[1]) != mine)
    _exchange(first, other, "position")


def one_record_twice(scene: Scene) -> None:
    """The trace names a record twice and another one never."""
    scene.trace[3]["row"] = scene.trace[4]["row"]


def position_beyond_the_release(scene: Scene) -> None:
    """The trace names a row that does not exist."""
    scene.trace[3]["position"] = len(scene.rows) + 3


def empty_label(scene: Scene) -> None:
    """A set has a label without a name."""
    name, own = _items_of(scene.rows[2])
    scene.rows[2][name] = [*own, ""]


def everything_for_one(scene: Scene) -> None:
    """One set shows the root alone."""
    name, _ = _items_of(scene.rows[2])
    scene.rows[2][name] = ["all"]


def lose_a_label(scene: Scene) -> None:
    """A set leaves out a label of its record."""
    row = next(row for row in scene.rows if len(_items_of(row)[1]) > 1)
    name, own = _items_of(row)
    row[name] = own[:-1]


def set_of_another(scene: Scene) -> None:
    """A row is replaced by a copy of another row."""
    name, own = _items_of(scene.rows[0])
    scene.rows[0][name] = next(list(row[name]) for row in scene.rows if set(row[name]) != set(own))


def label_of_no_tree(scene: Scene) -> None:
    """A set has a label that the hierarchy does not have."""
    name, own = _items_of(scene.rows[1])
    scene.rows[1][name] = [*own[:-1], "gh"]


def pair_of_three(scene: Scene) -> None:
    """Only three sets keep a pair of labels; the truth agrees."""
    name, _ = _items_of(scene.rows[0])
    pairs = Counter(pair for row in scene.rows for pair in combinations(sorted(row[name]), 2))
    (first, other), _ = pairs.most_common()[-1]
    people = list(dict.fromkeys(record["user"] for record in scene.truth))
    persons = {entry["position"]: people[entry["row"]] for entry in scene.trace}
    for at in [at for at, row in enumerate(scene.rows) if {first, other} <= set(row[name])][3:]:
        scene.rows[at][name] = [label for label in scene.rows[at][name] if label != other]
        scene.truth = [record for record in scene.truth if record["user"] != persons[at] or record["item"] not in other]


# ---- plain tables


def honest_table() -> tuple[Rows, Rows]:
    """Six classes of ten people, and a population twice as large."""
    rows = [
        {"person": f"p{at}", "age": f"{at % 2}0-{at % 2}9", "zip": f"{at % 3}*", "ill": at // 6 % 5}
        for at in range(60)
    ]  # fmt: skip
    return rows, [dict(row) for row in rows * 2]


def _class(rows: Rows) -> Rows:
    return [row for row in rows if (row["age"], row["zip"]) == (rows[0]["age"], rows[0]["zip"])]


def blank_in_a_quasi_identifier(rows: Rows, _: Rows) -> None:
    """Four rows of a class have a blank behind the age."""
    for row in _class(rows)[:4]:
        row["age"] += " "


def nothing_and_empty(rows: Rows, _: Rows) -> None:
    """A class has an empty age, but for four rows without any."""
    for at, row in enumerate(_class(rows)):
        row["age"] = None if at < 4 else ""


def capital_in_a_quasi_identifier(rows: Rows, _: Rows) -> None:
    """The zip of two classes is a word; four rows write it in capitals."""
    for at, row in enumerate(_class(rows)):
        row["zip"] = "CITY" if at < 4 else "city"


def half_suppressed(rows: Rows, _: Rows) -> None:
    """Four rows hide the age only: they still are a class."""
    for row in _class(rows)[:4]:
        row["age"] = "*"


def one_person_in_many_spellings(rows: Rows, _: Rows) -> None:
    """Most of a class is one person, with blanks around the name or zeros behind it."""
    for row, name in zip(_class(rows), ["7", " 7", "7 ", " 7 ", "7.0", "7.00", "\t7"], strict=False):
        row["person"] = name


def people_without_names(rows: Rows, _: Rows) -> None:
    """Six rows of a class name nobody."""
    for at, row in enumerate(_class(rows)[:6]):
        row["person"] = (None, "", " ")[at % 3]


def one_illness_for_all(rows: Rows, _: Rows) -> None:
    """A class has one illness."""
    for row in _class(rows):
        row["ill"] = 3


def one_known_illness(rows: Rows, _: Rows) -> None:
    """In a class the illness of two people is known, and it is the same."""
    for at, row in enumerate(_class(rows)):
        row["ill"] = 3 if at < 2 else None


def nine_of_ten(rows: Rows, _: Rows) -> None:
    """Nearly all of a class have one illness."""
    for row in _class(rows)[1:]:
        row["ill"] = 1


def only_the_extremes(rows: Rows, _: Rows) -> None:
    """A class has only the largest values, of three kinds."""
    for at, row in enumerate(_class(rows)):
        row["ill"] = (50, 51, 52)[at % 3]


def everybody_is_in_it(rows: Rows, population: Rows) -> None:
    """A class of the population has nobody who is not in the table."""
    own = (rows[0]["age"], rows[0]["zip"])
    del population[60:]
    population += [dict(row) for row in rows if (row["age"], row["zip"]) != own]


def not_of_the_population(rows: Rows, population: Rows) -> None:
    """The population spells a zip in another way."""
    for row in population:
        row["zip"] = row["zip"].replace("0*", "00*")


def drop_half_a_class(rows: Rows, _: Rows) -> None:
    """A class loses most of its people."""
    lost = _class(rows)[:7]
    rows[:] = [row for row in rows if row not in lost]


def pairs_of_a_year(rows: Rows, _: Rows) -> None:
    """Two rows show a decade that nobody else shows."""
    for row in _class(rows)[:2]:
        row["age"] = "90-99"


TABLES = (
    blank_in_a_quasi_identifier,
    nothing_and_empty,
    capital_in_a_quasi_identifier,
    half_suppressed,
    one_person_in_many_spellings,
    people_without_names,
    one_illness_for_all,
    one_known_illness,
    nine_of_ten,
    only_the_extremes,
    everybody_is_in_it,
    not_of_the_population,
    drop_half_a_class,
    pairs_of_a_year,
)
BOUNDS: dict[str, Any] = {
    "k": 5, "m": 1, "l": 3, "entropy_l": 2.5, "recursive_l": (2, 2), "t": 0.4, "alpha": 0.6, "beta": 2,
    "presence": (0.4, 0.6),
}  # fmt: skip


def table_violations(rows: Rows, population: Rows) -> list[str]:
    """The codes of broken promises of a plain table."""
    found = audit_table(
        pa.Table.from_pylist(rows), quasi=["age", "zip"], sensitive="ill", person="person", suppressed="*",
        population=pa.Table.from_pylist(population), **BOUNDS,
    )  # fmt: skip
    return [one.code for one in found.violations]


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
        exchange_pseudonyms,
        pseudonym_of_another_epoch,
        half_a_pseudonym_for_ever,
        capital_digits,
        digest_of_the_person,
        epoch_as_key,
        swap_countries,
        cut_the_end,
        popular_in_place_of_rare,
        older_than_the_one_before,
        crowd_of_one_person,
        crowd_before_the_window,
        row_of_nobody,
        cut_to_minutes,
        call_it_suppressed,
        last_come_first_decided,
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
        swap_wards,
        respell_an_illness,
        forget_an_illness,
        known_of_one_only,
        two_rows_of_one_record,
        nobody_waited,
        half_in_another_event,
        citizen_without_a_name,
        older_than_the_domain,
        town_of_no_map,
        claim_a_lower_k,
        reuse_an_old_cluster,
        beside_the_grid,
        blank_behind_a_label,
        alone_at_the_root,
        range_without_a_beginning,
        one_number_for_two_clusters,
        one_person_fewer_than_k,
    ),
    "flexible": (
        suppress_one,
        exact_rare_model,
        everything_at_one_town,
        lower_k_s,
        other_speed,
        listed_as_unknown,
        publish_again,
        two_people_in_a_town,
        one_person_with_a_model,
        hide_a_model,
        other_maker,
        row_without_a_group,
        published_before_it_came,
        exchange_speeds,
        unlisted_model_as_it_is,
        device_of_nobody,
        refuse_under_a_pretext,
    ),
    "sets": (
        add_an_item,
        drop_a_person,
        repeat_a_label,
        leaf_and_block,
        exchange_positions,
        one_record_twice,
        position_beyond_the_release,
        empty_label,
        everything_for_one,
        lose_a_label,
        set_of_another,
        label_of_no_tree,
        pair_of_three,
    ),
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


def test_the_table_as_it_is_keeps_its_promise() -> None:
    assert table_violations(*honest_table()) == []


@pytest.mark.parametrize("change", TABLES, ids=lambda change: change.__name__)
def test_every_violation_planted_in_a_table_is_convicted(change: Callable[[Rows, Rows], None]) -> None:
    rows, population = honest_table()
    change(rows, population)
    assert table_violations(rows, population)
