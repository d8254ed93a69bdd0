"""`shoal reproduce`: files are written, links work, the page shows what the tables hold, and the numbers are right."""

from __future__ import annotations

import csv
from html.parser import HTMLParser
from pathlib import Path

import pytest
from pyarrow import csv as csv_writer

from shoal.reproduce.data.campaign import campaign_places, make_campaign
from tests.e2e.scene import shoal, skip_drawing

pytestmark = pytest.mark.compiled

PICTURES = {
    "fast": {f"fast_figure_{number}.png" for number in range(3, 9)},
    "flexible": {f"flexible_{name}.png" for name in ("figure_1", "figure_2", "blocks", "p_s", "loss", "attack")},
    "km": {f"km_figure_{number}.png" for number in range(2, 7)} | {"km_figure_2_map.png"},
    "kvarp": {f"kvarp_figure_{number}.png" for number in range(5, 11)} | {"kvarp_below_k.png", "kvarp_sizes.png"},
    "z": {f"z_figure_{number}.png" for number in (2, 3, 4, 5, 6, 7, 8, "C10")},
}
TABLES = {
    "fast": {"parameters", "pool", "published", "time", "rounds", "claims"},
    "flexible": {"k_s", "blocks", "columns", "p_s", "runs", "steps", "density", "attack", "claims"},
    "km": {"runs", "uniqueness", "mixing", "city", "claims"},
    "kvarp": {"runs", "sizes", "units", "claims"},
    "z": {"publishing", "by_z", "by_window", "by_attributes", "by_users", "activity", "interest", "seeds", "claims"},
}


@pytest.fixture(autouse=True)
def one_study_renders(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.name != "test_fast_from_a_folder_of_downloads":
        skip_drawing(monkeypatch)


class Page(HTMLParser):
    """Links, pictures and tables of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.images: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self._row: list[str] = []
        self._table = ""
        self._in_cell = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        match tag:
            case "a":
                self.links.append(given["href"] or "")
            case "img":
                self.images.append(given["src"] or "")
            case "table":
                self._table = given["id"] or ""
                self.tables[self._table] = []
            case "tr":
                self._row = []
            case "td" | "th":
                self._row.append("")
                self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "tr":
            self.tables[self._table].append(self._row)
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self._row[-1] += data


def read_csv(path: Path) -> list[list[str]]:
    """All lines of a table."""
    with path.open(newline="") as file:
        return list(csv.reader(file))


def read_records(path: Path) -> list[dict[str, str]]:
    """The lines of a table by the names of its columns."""
    header, *lines = read_csv(path)
    return [dict(zip(header, line, strict=True)) for line in lines]


def reproduce(paper: str, tmp_path: Path, *options: str | Path, says: str = "") -> Path:
    """Run a quick study; check its files and links, and that the page shows what the tables hold."""
    out = tmp_path / "made" / "here"
    ended = shoal("reproduce", paper, "--quick", "--out", out, *options)
    assert says in ended.out.decode()
    assert "seconds of processor time" in ended.out.decode()
    assert ended.code == 0, ended.err
    assert str(out / "index.html") in ended.out.decode()
    tables = {f"{paper}_{name}" for name in TABLES[paper]}
    files = PICTURES[paper] | {f"{name}.csv" for name in tables}
    assert {path.name for path in out.iterdir()} == files | {"index.html"}
    assert all((out / name).read_bytes().startswith(b"\x89PNG") for name in PICTURES[paper])
    text = (out / "index.html").read_text()
    assert "How we read the paper" in text
    page = Page(text)
    assert set(page.links) == files
    assert len(page.images) == len(PICTURES[paper])
    assert all(image.startswith("data:image/png;base64,") for image in page.images), "the page stands alone"
    assert set(page.tables) == tables
    for name, (header, *lines) in page.tables.items():
        written, *expected = read_csv(out / f"{name}.csv")
        assert header == [column.replace("_", " ") for column in written]
        assert lines == expected
        assert lines
    claims = read_csv(out / f"{paper}_claims.csv")[1:]
    assert all(line[2] in ("yes", "no", "") and line[3] for line in claims)
    return out


@pytest.mark.exhaustive
def test_fast_from_a_folder_of_downloads(tmp_path: Path) -> None:
    line = "{age}, Private, 1{number:05}, HS-grad, 9, Divorced, Sales, Unmarried, White, Male, 0, 0, 40, Cuba, <=50K\n"
    text = "".join(line.format(age=20 + number % 60, number=number) for number in range(500))
    (tmp_path / "adult.data").write_text(text)
    says = "Adult: 495 rows of adult.data of the UCI Machine Learning Repository, Adult"
    out = reproduce("fast", tmp_path, "--data", tmp_path, "--rows", "450", says=says)
    records = read_records(out / "fast_parameters.csv")
    assert all(0 < float(record["loss"]) <= 1 for record in records)


def test_kvarp(tmp_path: Path) -> None:
    records = read_records(reproduce("kvarp", tmp_path) / "kvarp_runs.csv")
    assert all(0 < float(record["loss"]) <= 1 for record in records)
    strict = [record for record in records if "strict" in record["method"]]
    assert all(float(record["rows_below_k"]) == 0 and record["promise_kept"] == "yes" for record in strict)
    published = [r for r in records if r["method"] == "K-VARP, as published" and r["at_most"] != "0"]
    assert all(float(record["rows_below_k"]) > 0.1 and record["promise_kept"] == "no" for record in published)
    none_missing = {
        r["loss"] for r in records if r["at_most"] == "0" and "least" not in r["method"] and r["data"] == "Adult"
    }
    assert len(none_missing) == 1, "with nothing missing the papers' methods are one"
    filled = [(float(r["loss"]), float(r["loss_if_imputed_is_lost"])) for r in records if r["method"].startswith("IoT")]
    assert all(loss <= lost for loss, lost in filled)
    assert filled[0][0] == filled[0][1] < filled[2][0] < filled[2][1]


@pytest.mark.exhaustive
def test_flexible_from_a_file(tmp_path: Path) -> None:
    """The promise is kept in every release, and the paper's wrong statements are refused."""
    csv_writer.write_csv(make_campaign(150, 1_500, seed=3), tmp_path / "measurements.csv")
    (tmp_path / "places.csv").write_text("".join(";".join(campaign_places().path(cell)) + "\n" for cell in cells()))
    out = reproduce(
        "flexible", tmp_path, "--data", tmp_path / "measurements.csv", "--places", tmp_path / "places.csv",
        says="measurements.csv: 1,500 measurements of 155 people",
    )  # fmt: skip
    runs = read_records(out / "flexible_runs.csv")
    assert {one["release"] for one in runs} == {"flexible", "K_s = K", "device ignored", "no ontology"}
    for one in runs:
        assert int(one["published"]) + int(one["pending"]) == int(one["records"]) == 1_500
        if one["published"] != "0":
            assert int(one["fewest_people_without_device"]) >= int(one["k"])
            assert int(one["fewest_people_with_device"]) >= int(one["k_s"] or 1)
    attacks = read_records(out / "flexible_attack.csv")
    promised = [one for one in attacks if one["promised"] and "ignored" not in one["release"]]
    assert all(float(one["fewer_than_promised"] or 0) == 0 for one in promised)
    claims = {one["the_paper"]: one for one in read_records(out / "flexible_claims.csv")}
    for begins, agrees, says in (
        ("Section 5.3: k = 6 and P(s) = 50%", "yes", "K_s = 3"),
        ("Section 5.3: of six mobiles", "yes", "3 Samsung Galaxy S6 + 3 Android"),
        ("Section 5.3: a Samsung S6", "yes", "Low density (k = 6): 6 Samsung."),
        ("Section 5.2: HTC One", "no", "Taiwan, South Korea, China, South Korea"),
        ("Section 5.2, definition", "no", "sequences of 3 with K = 6"),
        ("Table 1: the result", "no", "exact speed"),
    ):
        (found,) = [one for paper, one in claims.items() if paper.startswith(begins)]
        assert found["agrees"] == agrees
        assert says in found["we_find"]


def cells() -> list[str]:
    """The leaves of the campaign's hierarchy."""
    places = campaign_places()
    inner = set(places.parents.tolist())
    return [label for node, label in enumerate(places.labels) if node not in inner]


def test_flexible_of_too_few_people(tmp_path: Path) -> None:
    header = "maid,device,place,network,time\n"
    rows = [f"p{at},Unheard of,here,4G,2026-03-02T0{at}:00:00Z\n" for at in range(5)]
    (tmp_path / "few.csv").write_text(header + "".join(rows))
    out = reproduce("flexible", tmp_path, "--data", tmp_path / "few.csv", says="few.csv: 5 measurements of 5 people")
    runs = read_records(out / "flexible_runs.csv")
    assert {one["pending"] for one in runs if one["k"] == "6"} == {"5"}


def test_km(tmp_path: Path) -> None:
    out = reproduce("km", tmp_path)
    runs = {(one["k"], one["sigma"], one["m"]): one for one in read_records(out / "km_runs.csv")}
    assert set(runs) >= {
        (k, sigma, m) for k in ("10", "20") for sigma in ("0.9900", "0.9990") for m in ("5", "8", "11")
    }
    assert all(1 <= int(one["blocks"]) < 1303 and float(one["error_m"]) > 0 for one in runs.values())
    assert {one["samples_a_size"] for key, one in runs.items() if key[1] == "0.9900"} == {"760"}
    for key in (("20", "0.9900"), ("20", "0.9990")):
        areas = [float(runs[*key, m]["block_km2"]) for m in ("5", "8", "11")]
        assert areas == sorted(areas), "more knowledge needs larger blocks"
    shares = {(one["when"], one["m"]): float(one["unique"]) for one in read_records(out / "km_uniqueness.csv")}
    assert shares["before", "5"] > 0.5
    assert shares["after", "5"] < 0.02
    assert "1,000 people instead of 4,427,486" in (out / "index.html").read_text()
    claims = read_records(out / "km_claims.csv")
    assert any(one["agrees"] == "no" and "5,866,617" in one["the_paper"] for one in claims)


Z_ORACLES = {
    ("100", "2"): 0.173974, ("150", "2"): 0.424692, ("250", "2"): 0.930808, ("350", "2"): 0.991965,
    ("100", "3"): 0.067909, ("150", "3"): 0.248550, ("250", "3"): 0.869856, ("350", "3"): 0.980913,
    ("100", "4"): 0.033873, ("150", "4"): 0.163040, ("250", "4"): 0.814907, ("350", "4"): 0.968174,
}  # fmt: skip


def test_z(tmp_path: Path) -> None:
    """The papers' numbers are between the bounds drawn, simulations are near, and wrong claims are refused."""
    out = reproduce("z", tmp_path)
    by_z = {(one["z"], one["k"]): one for one in read_records(out / "z_by_z.csv")}
    for key, expected in Z_ORACLES.items():
        assert float(by_z[key]["lower"]) - 1e-6 <= expected <= float(by_z[key]["upper"]) + 1e-6
        assert float(by_z[key]["simulated"]) == pytest.approx(expected, abs=0.06)
    windows = {(one["window"], one["k"]): one for one in read_records(out / "z_by_window.csv")}
    assert float(windows["8", "2"]["lower"]) <= 0.855431 <= float(windows["8", "2"]["upper"])
    entropies = {(one["attributes"], one["z"]): one["entropy"] for one in read_records(out / "z_by_attributes.csv")}
    assert (entropies["20", "1"], entropies["20", "150"]) == ("9.99129", "8.04519")
    activity = {(one["ratio"], one["people"]): one for one in read_records(out / "z_activity.csv")}
    for people, expected in (("class 1", 0.024877), ("class 2", 0.796809), ("all", 0.410843)):
        assert float(activity["0.1", people]["lower"]) <= expected <= float(activity["0.1", people]["upper"])
        assert float(activity["0.1", people]["simulated"]) == pytest.approx(expected, abs=0.03)
    interest = {(one["rule"], one["people"]): one for one in read_records(out / "z_interest.csv")[:3]}
    assert float(interest["rates of Table 3", "all"]["model"]) == pytest.approx(0.494, abs=0.01)
    assert len(read_records(out / "z_seeds.csv")) == 6
    for name in TABLES["z"] - {"claims", "seeds"}:
        for one in read_records(out / f"z_{name}.csv"):
            assert float(one["lower"]) <= float(one["model"]) <= float(one["upper"])
            assert not one["simulated"] or float(one["low"]) <= float(one["simulated"]) <= float(one["high"])
    claims = read_records(out / "z_claims.csv")
    refused = {one["the_paper"]: one["we_find"] for one in claims if one["agrees"] == "no"}
    for begins, says in (
        ("Figure 2, z = 100: rank 13", "published 0.1686"),
        ("Figure 3, k = 2: 0.8 at z = 250", "0.930808 at z = 250; 0.8 is reached at z = 208"),
        ("Figure 3: the larger z", "z = 340 to 352: 0.992654 to 0.991915"),
        ("Figure 8: with η = 0.5", "single class 0.1713"),
        ("Figure 6b", "a share of 1.000000 of the exposures is published"),
    ):
        assert any(claim.startswith(begins) and says in found for claim, found in refused.items()), begins
    assert any(one["the_paper"].startswith("Figure C.10: exact") and one["agrees"] == "yes" for one in claims)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("kvarp", "--data", "."), "PM2.5 Data of Five Chinese Cities"),
        (("kvarp", "--data", "."), "missing adult.data"),
        (("fast", "--data", "nowhere"), "nowhere: no such folder"),
        (("fast", "--rows", "10"), "rows: must be at least 400"),
        (("km", "--people", "10"), "people: must be at least 400"),
        (("km", "--trials", "0"), "trials: must be at least 1"),
        (("z", "--runs", "2"), "runs: must be at least 3"),
        (("z", "--seed", "-1"), "seed: must be at least 0"),
        (("flexible", "--data", "nowhere.csv"), "nowhere.csv: no such file"),
        (("flexible", "--data", "taken"), "taken: cannot be read as CSV or Parquet"),
        (("flexible", "--places", "taken"), "give them with --data"),
        (("flexible", "--rows", "10"), "rows: must be at least 400"),
        (("fast", "--quick", "--out", "taken"), "taken: cannot be created as a folder"),
    ],
)
def test_errors(args: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("")
    ended = shoal("reproduce", *args)
    assert ended.code in (1, 2)
    assert says in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    "example",
    [
        "kvarp --data downloads --unit milliseconds",
        "flexible --data measurements.csv --places places.csv",
        "km --people 200000 --trials 3",
        "fast --quick --out try",
        "z --runs 400 --seed 2",
    ],
)
def test_help_has_examples(example: str) -> None:
    ended = shoal("reproduce", example.partition(" ")[0], "--help")
    assert ended.code == 0
    assert f"shoal reproduce {example}".encode() in ended.out
