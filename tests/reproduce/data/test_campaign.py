"""The synthetic measurement campaign."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from shoal.errors import PolicyError
from shoal.hierarchies.ontology.ontology import Ontology
from shoal.reproduce.data.campaign import NETWORKS, PROVIDERS, START, campaign_places, make_campaign


@pytest.fixture(scope="module")
def campaign() -> pa.Table:
    return make_campaign(people=1500, records=40_000, seed=4)


def column(table: pa.Table, name: str) -> np.ndarray:
    return np.array(table[name].to_pylist())


def test_columns_and_values(campaign):
    assert campaign.column_names == [
        *("maid", "account", "email", "imei", "device", "provider", "network", "place", "lat", "lon", "time"),
        *("mbps_down", "mbps_up", "latency_ms"),
    ]
    assert campaign.num_rows == 40_000
    assert all(campaign[name].null_count == 0 for name in campaign.column_names)
    assert set(campaign["device"].to_pylist()) <= set(Ontology.devices().attribute("device").values)
    assert set(campaign["provider"].to_pylist()) == set(PROVIDERS)
    assert set(campaign["network"].to_pylist()) == set(NETWORKS)
    assert all(pc.min(campaign[name]).as_py() > 0 for name in ("mbps_down", "mbps_up", "latency_ms"))
    assert "Nokia 105" not in campaign["device"].to_pylist()


def test_the_same_seed_makes_the_same_campaign(campaign):
    assert make_campaign(1500, 40_000, seed=4).equals(campaign)
    assert not make_campaign(1500, 40_000, seed=5).equals(campaign)


def test_rows_stand_in_the_order_of_time_within_the_days(campaign):
    times = campaign["time"].to_numpy().astype("datetime64[ms]")
    assert (np.diff(times) >= np.timedelta64(0)).all()
    assert times[0] >= START
    assert times[-1] < START + np.timedelta64(7, "D")
    short = make_campaign(20, 500, days=1)["time"].to_numpy().astype("datetime64[ms]")
    assert short[-1] < START + np.timedelta64(1, "D")
    hours = times.astype("datetime64[h]").astype(int) % 24
    assert (hours == 19).sum() > 5 * (hours == 4).sum()


def passes_luhn(digits: str) -> bool:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (1 + place % 2)
        total += doubled - 9 * (doubled > 9)
    return total % 10 == 0


def test_identities_belong_together(campaign):
    rows = set(
        zip(*(campaign[name].to_pylist() for name in ("maid", "account", "email", "imei", "device")), strict=True)
    )
    maids, accounts, emails, imeis, _ = zip(*rows, strict=True)
    assert len(rows) == len(set(maids)) == len(set(imeis))  # a phone is an agent, of one model
    assert len(set(accounts)) == len(set(emails)) == len({*zip(accounts, emails, strict=True)})
    two = len(rows) - len(set(accounts))
    assert 0.04 < two / len(set(accounts)) < 0.13
    assert all(len(imei) == 15 and passes_luhn(imei) for imei in imeis)
    assert len({len(maid) for maid in maids}) == 1


def test_identities_of_many_phones_stay_apart():
    table = make_campaign(people=30_000, records=120_000, seed=1)
    phones = pc.count_distinct(table["maid"]).as_py()
    assert phones > 25_000
    assert pc.count_distinct(table["imei"]).as_py() == phones


def test_models_are_sparse(campaign):
    phones = dict(zip(campaign["maid"].to_pylist(), campaign["device"].to_pylist(), strict=True))
    _, owners = np.unique(list(phones.values()), return_counts=True)
    owners = np.sort(owners)[::-1]
    assert (owners < 6).mean() > 0.6
    assert owners[0] > 30
    rare = owners[owners < 6].sum() / owners.sum()
    assert 0.1 < rare < 0.7


def test_networks_depend_on_the_place_and_results_on_the_network(campaign):
    places, networks, down = (column(campaign, name) for name in ("place", "network", "mbps_down"))
    in_centre = np.char.startswith(places, "centre")
    in_villages = np.char.startswith(places, "villages")
    cellular = networks != "Wi-Fi"
    assert (networks[in_centre & cellular] == "5G").mean() > 3 * (networks[in_villages & cellular] == "5G").mean()
    medians = [np.median(down[networks == network]) for network in ("2G", "3G", "4G", "5G")]
    assert medians == sorted(medians)
    latency = column(campaign, "latency_ms")
    assert np.median(latency[networks == "2G"]) > np.median(latency[networks == "5G"])
    phones = column(campaign, "device")
    plain = set(Ontology.devices().attribute("device").covered("feature phone system"))
    assert "5G" not in set(networks[[phone in plain for phone in phones]])


def test_people_are_at_home_by_night_and_move_by_day(campaign):
    frame = campaign.select(["account", "place", "time"]).to_pandas()
    frame["hour"] = frame["time"].dt.hour
    busy = frame.groupby("account").filter(lambda rows: len(rows) > 60)
    night = (
        busy[busy["hour"] < 6].groupby("account")["place"].agg(lambda places: places.value_counts(normalize=True).max())
    )
    day = busy[busy["hour"].between(8, 20)].groupby("account")["place"].nunique()
    assert night.median() > 0.8
    assert day.median() >= 3


def test_places_and_positions(campaign):
    tree = campaign_places()
    leaves = [label for node, label in enumerate(tree.labels) if node not in tree.parents]
    assert len(leaves) == 200
    assert set(campaign["place"].to_pylist()) <= set(leaves)
    assert tree.path("north 2-07") == ("north 2-07", "north 2", "north", "city")
    lat, lon, places = (column(campaign, name) for name in ("lat", "lon", "place"))
    for place in ("centre 1-01", "villages 2-03"):
        here = places == place
        assert lat[here].std() * 111_000 < 400
        assert lon[here].std() * 79_000 < 400
    assert lat[np.char.startswith(places, "north")].mean() > lat[np.char.startswith(places, "south")].mean()
    assert lon[np.char.startswith(places, "east")].mean() > lon[np.char.startswith(places, "west")].mean()


def test_small_and_wrong_campaigns():
    assert make_campaign(1, 0).num_rows == 0
    assert make_campaign(1, 3).num_rows == 3
    for wrong in ({"people": 0}, {"records": -1}, {"days": 0}, {"people": True}, {"days": 1.5}):
        with pytest.raises(PolicyError, match="must be a whole number"):
            make_campaign(**({"people": 1, "records": 1} | wrong))
