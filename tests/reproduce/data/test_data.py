"""The papers' data sets: read as published, with the papers' trees, repeated people and missing values."""

from __future__ import annotations

import gzip
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from shoal.errors import InputError
from shoal.hierarchies import Hierarchy
from shoal.reproduce.data.adult import FAST_QUASI, fast_stream, read_adult, repeat_people
from shoal.reproduce.data.adult_imitation import imitate_adult
from shoal.reproduce.data.pm25 import CITIES, FILES, read_pm25
from shoal.reproduce.data.streams import remove_values
from shoal.reproduce.data.trees import ADULT_DOMAINS, ADULT_TREES, PM25_DOMAINS, PM25_TREES

ADULT_LINES = """\
44, Private, 100000, Masters, 14, Divorced, Sales, Not-in-family, White, Female, 0, 0, 40, United-States, <=50K
31, ?, 100001, HS-grad, 9, Never-married, ?, Own-child, White, Male, 0, 0, 20, United-States, <=50K
60, Local-gov, 100002, HS-grad, 9, Widowed, Other-service, Unmarried, Black, Female, 0, 1902, 35, Jamaica, >50K

"""
POSTS = {"Beijing": ("PM_A", "PM_B", "PM_C", "PM_US Post")}
WEATHER = "DEWP,HUMI,PRES,TEMP,cbwd,Iws,precipitation,Iprec"


def city_file(city: str, *rows: str) -> str:
    """A file in the layout of the five cities; a row is its hour, season and readings."""
    posts = ",".join(POSTS.get(city, ("PM_A", "PM_US Post", "PM_B")))
    return "\n".join([f"No,year,month,day,hour,season,{posts},{WEATHER}", *rows, ""])


@pytest.fixture
def cities(tmp_path: Path) -> Path:
    """Two hours of five cities, one of them with a gap."""
    for number, (city, name) in enumerate(zip(CITIES, FILES, strict=True)):
        fourth = ",4" if city == "Beijing" else ""
        late = f"2,2013,1,1,1,4,1{number},2,3{fourth},-5,60,1020,2,NW,3.5,0,0"
        early = f"1,2013,1,1,0,4,{'NA' if city == 'Shanghai' else number + 1},2,3{fourth},-4,61.5,1021,2,cv,1,0.2,0.4"
        (tmp_path / name).write_text(city_file(city, late, early))
    return tmp_path


def test_adult_as_published(tmp_path: Path) -> None:
    (tmp_path / "adult.data").write_text(ADULT_LINES)
    stream = read_adult(tmp_path)
    assert stream.quasi == (*ADULT_DOMAINS, *ADULT_TREES)
    assert len(stream) == 2, "rows with a question mark and the empty line are left out"
    first, second = stream.table.to_pylist()
    assert (first["person"], first["age"], first["education"], first["native-country"]) == (
        0,
        44,
        "Masters",
        "United-States",
    )
    assert (second["person"], second["capital-loss"], second["occupation"]) == (1, 1902, "Other-service")
    assert "class" not in first
    assert "adult.data of the UCI Machine Learning Repository, Adult" in stream.origin


def test_gzipped_in_a_folder_below(tmp_path: Path) -> None:
    (tmp_path / "adult").mkdir()
    with gzip.open(tmp_path / "adult" / "adult.data.gz", "wt") as file:
        file.write(ADULT_LINES)
    assert len(read_adult(tmp_path)) == 2


def test_files_that_lack_are_named_with_their_publisher(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing adult\.data .*UCI Machine Learning Repository, Adult"):
        read_adult(tmp_path)
    (tmp_path / FILES[1]).write_text(city_file("Chengdu"))
    with pytest.raises(InputError, match=r"PM2\.5 Data of Five Chinese Cities") as caught:
        read_pm25(tmp_path)
    assert FILES[0] in str(caught.value)
    assert FILES[1] not in str(caught.value)
    with pytest.raises(InputError, match="no such folder"):
        read_adult(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("1, 2, 3\n", "line 1: 3 fields instead of 15"),
        (ADULT_LINES.replace("44", "forty-four"), "line 1: column 'age' is not a whole number"),
        ("\n", "no row without a missing value"),
    ],
)
def test_adult_that_is_broken(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "adult.data").write_text(content)
    with pytest.raises(InputError, match=says) as caught:
        read_adult(tmp_path)
    assert "forty-four" not in str(caught.value)


def test_a_file_that_breaks_off(tmp_path: Path) -> None:
    whole = gzip.compress(ADULT_LINES.encode() * 100)
    (tmp_path / "adult.data.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"adult\.data\.gz: cannot be read"):
        read_adult(tmp_path)


def test_five_cities_hour_by_hour(cities: Path) -> None:
    stream = read_pm25(cities)
    assert stream.quasi == (*PM25_DOMAINS, *PM25_TREES)
    table = stream.table
    assert table["first-post"].to_pylist() == [1, 2, 3, 5, 10, 11, 12, 13, 14], "Shanghai's first hour has a gap"
    assert table["person"].to_pylist() == list(range(9))
    first = table.slice(0, 1).to_pylist()[0]
    assert first["third-post"] == 3, "Beijing's fourth post is left out"
    assert (first["season"], first["wind-direction"], first["humidity"]) == ("Winter", "cv", 61.5)
    assert (first["h-precipitation"], first["c-precipitation"], first["dew-point"]) == (0.2, 0.4, -4)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("DEWP", "dew", "does not name the columns"),
        (",cv,", ",", "line 3: 16 fields instead of 17"),
        ("61.5", "wet", "line 3: a field is not a valid reading"),
        ("2013,1,1,1,4", "2013,1,1,1,5", "line 2: a field is not a valid reading"),
    ],
)
def test_a_city_that_is_broken(cities: Path, old: str, new: str, says: str) -> None:
    path = cities / FILES[2]
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError, match=f"{FILES[2]}.*{says}"):
        read_pm25(cities)


# ---- trees


@pytest.mark.parametrize(
    ("name", "nodes", "levels", "leaves_below"),
    [
        ("education", 26, 5, [2, 2, 2, 3, 3, 4, 5, 7, 9, 16]),
        ("marital-status", 11, 4, [3, 3, 6, 7]),
        ("workclass", 13, 5, [2, 3, 6, 7, 8]),
        ("native-country", 62, 4, [1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 11, 12, 17, 41]),
        ("occupation", 15, 2, [14]),
        ("relationship", 7, 2, [6]),
        ("race", 6, 2, [5]),
        ("sex", 3, 2, [2]),
        ("season", 8, 3, [1, 1, 2, 4]),
        ("wind-direction", 6, 2, [5]),
    ],
)
def test_trees_have_the_sizes_of_the_papers_tables(name: str, nodes: int, levels: int, leaves_below: list[int]) -> None:
    tree = Hierarchy.from_nested({**ADULT_TREES, **PM25_TREES}[name])
    inner = sorted(set(tree.parents.tolist()) - {-1})
    assert len(tree) == nodes
    assert tree.depths.max() + 1 == levels
    assert sorted(tree.leaf_counts[inner].tolist()) == leaves_below


# ---- repeated people, missing values


def test_one_row_in_ten_comes_twice() -> None:
    people = imitate_adult(1000, seed=3)
    stream = fast_stream(people, seed=5)
    persons = stream.table["person"].to_pylist()
    assert stream.quasi == FAST_QUASI
    assert stream.sensitive == ("occupation",)
    assert Counter(Counter(persons).values()) == {1: 900, 2: 100}
    rows = stream.table.to_pylist()
    by_person = {row["person"]: row for row in rows}
    assert all(by_person[row["person"]] == row for row in rows), "the second row is the first again"
    firsts = list(dict.fromkeys(persons))
    moved = sum(a > b for a, b in pairwise(firsts))
    assert moved <= 100, "the others keep their order"
    assert persons != repeat_people(people, share=0.1, seed=6).table["person"].to_pylist()


@pytest.mark.parametrize("at_most", [0, 1, 3, 9])
def test_as_many_rows_miss_one_value_as_miss_none(at_most: int) -> None:
    stream = imitate_adult(1200, seed=3)
    varied = remove_values(stream, at_most=at_most, seed=1)
    missing = np.column_stack([varied.table[name].is_null().to_numpy() for name in stream.quasi])
    counts = np.bincount(missing.sum(axis=1), minlength=at_most + 1)
    assert counts.tolist() == [1200 // (at_most + 1)] * (at_most + 1)
    share = at_most / 2 / len(stream.quasi)
    assert np.abs(missing.mean(axis=0) - share).max() < 0.05, "no attribute is spared"
    kept = ~missing[:, 0]
    assert (varied.table["age"].to_numpy()[kept] == stream.table["age"].to_numpy()[kept]).all()
    assert varied.table["person"].null_count == 0


def test_missing_values_follow_the_seed() -> None:
    stream = imitate_adult(500, seed=3)
    first, again, other = (remove_values(stream, at_most=2, seed=seed).table for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)
