"""What the page measures is what counting by hand finds, and a release that breaks its promise is found."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from shoal.serve.background import Background
from shoal.serve.measured.measured import Measurer, not_measured
from shoal.serve.recent import RecentRows
from tests.serve.scene import TUPLES, Run, Z, arrive, forged

WINDOW_S = 20


def visits(rows: int = 3000) -> str:
    random = Random(5)
    lines = [f"{at // 20},u{random.randrange(60)},s{int(random.paretovariate(0.8))}" for at in range(rows)]
    return "ts,user,site\n" + "\n".join(lines) + "\n"


def people(rows: int = 3000) -> str:
    random = Random(6)
    jobs, illnesses = ("nurse", "doctor", "baker", "smith"), ("flu", "gout", "cold")
    lines = [
        f"u{random.randrange(400)},{random.uniform(40, 50):.2f},{random.uniform(0, 10):.2f},{random.choice(jobs)},"
        f"{random.choice(illnesses)}"
        for _ in range(rows)
    ]
    return "user,lat,lon,job,illness\n" + "\n".join(lines) + "\n"


@pytest.fixture
def z_run(tmp_path: Path) -> Run:
    return Run(tmp_path, Z, visits())


@pytest.fixture
def tuple_run(tmp_path: Path) -> Run:
    return Run(tmp_path, TUPLES, people())


def entries(run: Run, measurer: Measurer | None = None) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in (measurer or Measurer(run.policy, run.recent)).measure().promise}


def test_the_people_behind_values_are_counted_as_by_hand(z_run: Run) -> None:
    records = z_run.records()
    first: dict[str, int] = {}
    for number, row in z_run.published():
        first.setdefault(row["site"], number)
    crowds = [
        len({one["user"] for one in records[: number + 1]
             if one["site"] == records[number]["site"] and int(one["ts"]) >= int(records[number]["ts"]) - WINDOW_S})
        for number in first.values()
    ]  # fmt: skip
    found = entries(z_run)["z"]
    assert (found["promised"], found["measured"], found["holds"]) == (3, min(crowds), True)


def test_a_value_of_too_few_people_within_the_window_is_found(z_run: Run) -> None:
    measurer = Measurer(z_run.policy, z_run.recent)
    assert entries(z_run, measurer)["z"]["holds"] is True
    number = len(z_run.records())
    last = z_run.records()[-1]
    batch = z_run.recent.steps()[0].batch
    assert batch is not None
    before = {**last, "ts": str(int(last["ts"]) - WINDOW_S - 1), "site": "seen once"}
    seen = [{**before, "user": "u2"}, {**before, "user": "u3"}, {**last, "user": "u1", "site": "seen once"}]
    arrive(z_run.recent, seen, number, batch)
    forged(z_run.recent, number + 2, {"site": "seen once"})
    found = entries(z_run, measurer)["z"]
    assert (found["measured"], found["holds"]) == (1, False)


def test_people_hidden_by_what_is_published_of_them(z_run: Run) -> None:
    shown: dict[str, set[str]] = {}
    for _, row in z_run.published():
        shown.setdefault(row["user"], set()).add(row["site"])
    sets = [frozenset(one) for one in shown.values()]
    share = sum(sets.count(one) >= 2 for one in sets) / len(sets)
    assert entries(z_run)["people"]["measured"] == pytest.approx(share, abs=1e-4)


def test_after_missed_steps_no_count_is_too_low(tmp_path: Path) -> None:
    """The crowds of windows that are not known whole are not judged: a few people would seem to be a broken promise."""
    run = Run(tmp_path, Z, visits())
    run.recent.begin_in_the_middle()
    assert entries(run)["z"]["holds"] in (True, None)


def test_the_people_of_classes_are_counted_as_by_hand(tuple_run: Run) -> None:
    records = tuple_run.records()
    classes: dict[Any, set[str]] = {}
    values: dict[Any, set[str]] = {}
    for number, row in tuple_run.published():
        key = str([row[name] for name in ("lat", "lon", "job")])
        classes.setdefault(key, set()).add(records[number]["user"])
        values.setdefault(key, set()).add(row["illness"])
    found = entries(tuple_run)
    assert found["k"]["measured"] == min(map(len, classes.values())) >= 4
    assert found["l"]["measured"] == min(map(len, values.values())) >= 2
    assert found["deadline"]["holds"] is True
    assert found["deadline"]["bound"] == "most"


def test_a_class_of_one_person_is_found(tuple_run: Run) -> None:
    number, row = tuple_run.published()[0]
    forged(tuple_run.recent, number, {**row, "lat": {"lo": 41.0, "hi": 41.0}})
    found = entries(tuple_run)["k"]
    assert (found["measured"], found["holds"]) == (1, False)


def test_classes_whose_records_are_forgotten_are_not_judged(tmp_path: Path) -> None:
    run = Run(tmp_path, TUPLES, people())
    few = RecentRows(most_rows=1)
    steps = run.recent.steps()
    few.add(None, 0, steps[-1].release)
    found = {one["name"]: one for one in Measurer(run.policy, few).measure().promise}["k"]
    assert (found["measured"], found["holds"]) == (None, None)


def test_losses_delays_and_places(tuple_run: Run) -> None:
    measured = Measurer(tuple_run.policy, tuple_run.recent).measure()
    rows = [row for _, row in tuple_run.published()]
    lat = sum(row["lat"]["hi"] - row["lat"]["lo"] for row in rows) / 10 / len(rows)
    share = {"nurse": 0, "doctor": 0, "baker": 0, "smith": 0, "health": 1 / 3, "trade": 1 / 3, "any": 1}
    job = sum(share[row["job"]] for row in rows) / len(rows)
    losses = {one["column"]: one["loss"] for one in measured.loss}
    assert losses["lat"] == pytest.approx(lat, abs=1e-4)
    assert losses["job"] == pytest.approx(job, abs=1e-4)
    assert measured.deadline is not None
    assert sum(count for _, count in measured.deadline["histogram"]) == len(rows)
    assert measured.deadline["longest"] <= measured.deadline["allowed"] == 60
    assert measured.places is not None
    assert all(40 <= one["south"] <= one["north"] <= 50 for one in measured.places)


def test_before_anything_arrives_promises_are_known(tuple_run: Run) -> None:
    found = not_measured(tuple_run.policy)
    assert [(one["name"], one["promised"], one["measured"]) for one in found.promise] == [
        ("k", 4, None),
        ("l", 2, None),
    ]
    assert found.deadline == {"unit": "records", "allowed": 60, "longest": None, "histogram": []}


def test_a_failure_to_measure_is_reported_and_ends_nothing(z_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    background = Background(
        z_run.policy, z_run.recent, on_measured=shown.append, on_trial=shown.append, on_failure=z_run.tap.warn_once
    )
    background.measure()
    monkeypatch.setattr(Measurer, "measure", lambda self: 1 / 0)
    background.measure()
    background.measure()
    assert [one["measured"] for one in shown[-1].promise] == [None, None]
    assert [one for one in z_run.tap.warnings if "measuring" in one] == [
        "measuring has failed (ZeroDivisionError); the run goes on"
    ]


def test_after_a_failure_nothing_of_before_is_shown(z_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    measurer = Measurer(z_run.policy, z_run.recent)
    before = measurer.measure()
    assert before.loss
    monkeypatch.setattr(z_run.recent, "steps", lambda: 1 / 0)
    background = Background(
        z_run.policy, z_run.recent, on_measured=print, on_trial=print, on_failure=z_run.tap.warn_once
    )
    background._measurer, background._measured = measurer, before
    background.measure()
    found = background._measured
    assert [one["measured"] for one in found.promise] == [None] * len(before.promise)
    assert (found.loss, found.delay, found.places) == ([], None, None)


def test_what_was_half_counted_is_counted_as_a_gap(z_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    measurer, seen = Measurer(z_run.policy, z_run.recent), []
    with monkeypatch.context() as broken:
        broken.setattr("shoal.serve.measured.measured.column_losses", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            measurer.measure()
    count = measurer._part.measure
    monkeypatch.setattr(
        measurer._part, "measure", lambda *a, has_gap: (seen.append(has_gap), count(*a, has_gap=has_gap))[1]
    )
    assert measurer.measure().loss
    assert measurer.measure().loss
    assert seen == [True]


def test_recent_rows_are_bounded(tmp_path: Path) -> None:
    run = Run(tmp_path, Z, visits(), most_rows=100)
    assert len(run.recent.steps()) == 1  # the newest step always stays
