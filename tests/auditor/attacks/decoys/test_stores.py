"""Internal stores: weak decoys must be found, perfect ones not, and the truth must be read right."""

from __future__ import annotations

import sqlite3

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.auditor.attacks.decoys.store import read_store
from shoal.auditor.attacks.settings import Settings
from shoal.auditor.policy import read_policy
from shoal.errors import InputError
from tests.sanitize.scene import Scene, lines

K = 3
POLICY = {
    "stream": {"time": "time"},
    "sanitize": {"pii": ["name"]},
    "anonymize": {
        "method": "fads", "k": K, "deadline": 60,
        "quasi": {"place": {"kind": "categorical", "hierarchy": {"kind": "flat", "values": list("abcd")}},
                  "time": {"kind": "numeric", "low": "2026-01-01", "high": "2027-01-01", "grid": "1h"}},
    },
}  # fmt: skip


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo what a scene of the process changes in the environment."""
    monkeypatch.setenv("SHOAL_KEY_FILE", "")


def store(kind: str, *, people: int = 60, each: int = 12) -> tuple[pa.Table, pa.Table]:
    """A store of people with a device each, and its truth; decoys draw the device for each record, or once."""
    draw = np.random.default_rng(5)
    columns: dict[str, list] = {name: [] for name in ("shoal_person", "time", "place", "device", "speed")}
    real = []
    for person in range(people):
        hours, places = draw.choice(2000, each, replace=False), draw.choice(list("abcd"), each)
        for shadow in range(K):
            device = draw.integers(8, size=each) if shadow and kind == "weak" else np.full(each, draw.integers(8))
            for hour, place, own in zip(hours.tolist(), places.tolist(), device.tolist(), strict=True):
                moment = np.datetime64("2026-01-01") + np.timedelta64(hour * 3600 + int(draw.integers(3600)), "s")
                row = (f"{person}-{shadow}", str(moment), place, f"model {own}", f"{draw.lognormal():.6f}")
                real.append(shadow == 0)
                for cells, cell in zip(columns.values(), row, strict=True):
                    cells.append(cell)
    table = pa.table(columns)
    order = draw.permutation(len(table))
    return table.take(order), table.drop_columns(["shoal_person"]).filter(pa.array(real))


def test_weak_decoys_are_found():
    stored, truth = store("weak")
    found = shoal.attack(stored, truth, POLICY)
    assert found["decoy or real"].success.low > 0.9
    assert found["decoy or real"].gains
    assert found["real one of its group"].success.value > 0.9
    assert found["real one of its group"].guess == pytest.approx(1 / K)
    assert any("device" in one for one in found.facts["used"])


def test_perfect_decoys_are_not():
    stored, truth = store("perfect")
    found = shoal.attack(stored, truth, POLICY)
    assert found["decoy or real"].success.low < 0.5
    assert not found["real one of its group"].gains


def test_the_truth_of_a_real_store(tmp_path):
    scene = Scene(tmp_path, k=3)
    scene.write("in-1.csv", lines(30, 240, 1))
    scene.run()
    inside = scene.internal()
    settings = Settings(None, 1000, 1, lambda _: None)
    read = read_store(read_policy(scene.policy), tmp_path / "internal.db", str(tmp_path / "in-*.csv"), settings)
    with sqlite3.connect(tmp_path / "internal.db") as database:
        ids = [row[0] for row in database.execute("SELECT shoal_id FROM shoal_internal_records")]
    tagged = dict(zip(inside.ids.column("shoal_id").to_pylist(), inside.is_real.tolist(), strict=True))
    assert read.is_real.tolist() == [tagged[one] for one in ids]
    together = {one: set(read.person[read.together == one].tolist()) for one in np.unique(read.together).tolist()}
    assert sum(len(ids) % 3 == 0 for ids in together.values()) == len(together)  # a person and two decoys
    found = shoal.attack(tmp_path / "internal.db", str(tmp_path / "in-*.csv"), scene.policy)
    assert found.facts["people"] == len(np.unique(read.person)) // 3
    assert found["real one of its group"].success.low < 0.6


def test_a_store_without_decoys_and_one_of_others():
    stored, truth = store("weak", people=12, each=4)
    real = [one.endswith("-0") for one in stored.column("shoal_person").to_pylist()]
    assert (
        shoal.attack(stored.filter(pa.array(real)), truth, POLICY)["decoy or real"].why_not == "the store has no decoy"
    )
    other = shoal.attack(stored, truth.slice(0, 0), POLICY)["decoy or real"]
    assert other.why_not == "no record of the store is in the truth"


def test_a_database_that_is_no_store(tmp_path):
    with sqlite3.connect(tmp_path / "x.db") as database:
        database.execute("CREATE TABLE other (a)")
    with pytest.raises(InputError, match="no table shoal_internal_records"):
        shoal.attack(tmp_path / "x.db", store("weak", people=2)[1], POLICY)
