"""The page of evidence: it says what the JSON says, parses strictly, needs no network, and escapes what it shows."""

from __future__ import annotations

import copy
import json
import re
from html.parser import HTMLParser

import pyarrow as pa
import pytest

from shoal.auditor.digests import checksum
from shoal.auditor.report.evidence_report import report_evidence
from shoal.errors import InputError
from tests.auditor.attacks import test_sets
from tests.auditor.attacks.scenes import POLICY, at_the_root, in_classes, people, traced
from tests.auditor.attacks.z import scenes as stream_scenes

VOID = {"meta", "br"}
HOSTILE = "<script>alert('n1')</script>"


class Strict(HTMLParser):
    """Fails on tags that are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.links: list[str] = []
        self.names: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        given = dict(attrs)
        self.names.add(given.get("id") or "")
        self.links += [value for name, value in attrs if name in {"href", "src", "xlink:href"}]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(page: str) -> Strict:
    reader = Strict()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def rows():
    truth = people()
    release, order = in_classes(truth, 5)
    return report_evidence(release, truth, POLICY, trace=traced(order), control=people(seed=2))


def test_the_page_of_rows(rows):
    page = rows.html()
    found = parsed(page)
    assert {"promise", "audit", "attacks", "classes", "columns", "utility", "groups", "policy", "repeat"} <= found.names
    assert all(link.removeprefix("#") in found.names and link.startswith("#") for link in found.links)
    assert not {"script", "link", "img", "iframe"} & found.seen
    assert "http:" not in page
    assert "https:" not in page
    for attack in rows.content["attacks"]["attacks"]:
        assert attack["name"] in page
        assert attack["success"] is None or f"{attack['success']['n']:,}" in page
    assert "at least 5 different people" in page
    assert "People have several rows" not in page


def test_the_page_says_how_many_rows_people_have():
    truth = people(rows_of_each=4, count=50)
    release, order = in_classes(truth, 5)
    page = report_evidence(release, truth, POLICY, trace=traced(order)).html()
    assert "People have several rows in this release" in page
    assert "one 4." in page


def test_the_page_of_events():
    truth = stream_scenes.stream(lambda person, epoch, event: f"s{person % 3}-{event}")
    found = report_evidence(stream_scenes.pseudonymous(truth), truth, stream_scenes.POLICY)
    assert "windows" in parsed(found.html()).names
    assert found.content["windows"]["windows"][0]["shown"] == 30
    assert {measure["name"]: measure["value"] for measure in found.content["utility"]}["heavy hitters"] == 1


def test_the_page_of_sets():
    truth = test_sets.baskets()
    found = report_evidence(test_sets.under(truth, lambda item: item[0]), truth, test_sets.POLICY)
    assert "classes" in parsed(found.html()).names
    assert any("2 items" in sentence for sentence in found.content["promise"])
    assert "</h3><h3>" not in found.html(), "a question without an attack says so"
    assert "No attack of this kind is simulated" in found.html()


def test_values_are_escaped():
    truth = people()
    zones = [HOSTILE if one == "n1" else one for one in truth.column("zone").to_pylist()]
    truth = truth.set_column(3, "zone", pa.array(zones))
    policy = copy.deepcopy(POLICY)
    policy["anonymize"]["quasi"]["zone"]["hierarchy"]["tree"]["*"]["north"][0] = HOSTILE
    page = report_evidence(at_the_root(truth), truth, policy, trace=traced(range(200))).html()
    assert "script" not in parsed(page).seen
    assert "&lt;script&gt;" in page


def test_the_json_is_the_same_every_time(rows):
    truth = people()
    release, order = in_classes(truth, 5)
    again = report_evidence(release, truth, POLICY, trace=traced(order), control=people(seed=2))
    assert json.dumps(again.to_dict()) == json.dumps(rows.to_dict())


def test_a_perfect_release_loses_nothing_and_the_root_everything(rows):
    truth = people()
    root = report_evidence(at_the_root(truth), truth, POLICY, trace=traced(range(200))).content
    assert [column["loss"] for column in root["columns"]] == [1, 1, 1]
    assert all(0 < column["loss"] <= 1 for column in rows.content["columns"])
    assert root["classes"]["smallest"] == 200
    assert rows.content["classes"]["smallest"] == 5
    counts = {name: next(one["value"] for one in found["utility"] if one["name"] == "counts")
              for name, found in (("root", root), ("classes", rows.content))}  # fmt: skip
    assert counts["classes"] < counts["root"]


def test_suppressed_groups_are_named():
    truth = people()
    north = [row for row, zone in enumerate(truth.column("zone").to_pylist()) if zone != "s1"]
    release = at_the_root(truth).take(pa.array(north))
    groups = report_evidence(release, truth, POLICY, trace=traced(north)).content["groups"]
    assert groups[0]["value"] == "s1"
    assert groups[0]["suppressed"] == 1


def test_checksums(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x\n")
    assert checksum(path) == "73cb3858a687a8494ca3323053016282f3dad39d42cf62ca4e79dda2aac7d9ac"
    assert re.fullmatch("[0-9a-f]{64}", checksum([path, path]) or "")
    assert checksum(people()) is None


def test_the_truth_is_needed():
    with pytest.raises(InputError, match="private input"):
        report_evidence(at_the_root(people()), None, POLICY)


def test_delays_are_in_arrivals_or_seconds():
    truth = people(count=40)
    delays = pa.array(range(40), pa.int64())
    found = report_evidence(at_the_root(truth), truth, POLICY, trace=traced(range(40)).append_column("delay", delays))
    assert found.content["delay"] == {"records": 40, "unit": "arrivals", "median": 19.5, "95%": 37.05, "longest": 39.0}
    assert "<p>In arrivals.</p>" in found.html()
    events = stream_scenes.stream(lambda person, epoch, event: "s")
    trace = stream_scenes.trace_of(len(events)).append_column("delay", pa.array([1_500_000_000] * len(events)))
    found = report_evidence(stream_scenes.pseudonymous(events), events, stream_scenes.POLICY, trace=trace)
    assert found.content["delay"]["unit"] == "seconds"
    assert found.content["delay"]["median"] == pytest.approx(1.5)
    assert "<p>In seconds.</p>" in found.html()
