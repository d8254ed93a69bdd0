"""Header lines, delimiters and sets, from the beginnings of files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import InputError, PolicyError
from shoal.inspection.files.csv_layout import CsvLayout, layout_of
from shoal.inspection.files.header_line import has_header
from shoal.inspection.files.reading import read_data
from tests.reference.effort import tries

PEOPLE = ["34,f,Ulm", "51,m,Bern", "29,f,Ulm", "47,m,Bern", "62,f,Ulm", "38,m,Ulm"]


def layout(*lines: str, is_csv: bool = True, header: bool | None = None) -> CsvLayout:
    text = "".join(f"{line}\n" for line in lines)
    return layout_of(text, is_cut=False, is_csv=is_csv, header=header, name="data")


def named(*lines: str, is_csv: bool = True) -> bool:
    return layout(*lines, is_csv=is_csv).has_header


@pytest.mark.parametrize("is_csv", [True, False])
def test_words_above_numbers_are_names_and_what_is_like_the_rest_is_not(is_csv: bool) -> None:
    assert named("age,sex,city", *PEOPLE, is_csv=is_csv)
    assert not named(*PEOPLE, is_csv=is_csv)


@pytest.mark.parametrize("first", [",name,age", "x,,", "2019,2020,2021", "score,score,score", "age,age,", ",a,0"])
def test_empty_repeated_and_numeric_cells_are_no_reason(first: str) -> None:
    rows = [f"{place},p{place * 7919 % 1000},{20 + place * 37 % 50}" for place in range(40)]
    if first.startswith("2019"):
        rows = [f"{1300 + place * 7919 % 1700},{1400 + place * 104729 % 1700},{place * 31 % 90}" for place in range(40)]
    found = layout(first, *rows)
    assert found.has_header
    assert len(set(found.names)) == 3


def test_an_empty_cell_above_the_numbers_of_rows_is_part_of_a_header() -> None:
    """Although the other cells look like those below, and one of them occurs there."""
    assert layout(',site,"http...a.example"', "1,site,http://a.example/b", "2,data,http://a.example/c").has_header
    assert not layout(",site,http...a.example", "4,site,http://a.example/b", "9,data,http://a.example/c").has_header


def test_words_that_occur_below_are_a_record() -> None:
    rows = ["Ulm,baker,none", "Bern,nurse,jewish", "Ulm,nurse,none", "Bern,baker,none"] * 10
    assert not named(*rows)
    assert named("town,job,faith", *rows)


def test_years_of_a_person_are_a_record() -> None:
    """Birth and graduation are years in order, in the first line as in all others."""
    rows = [f"{1950 + place},{1970 + place + place % 3}" for place in range(40)]
    assert not named(*rows)
    assert named("1950,1970", *(f"{place * 37 % 100},{place * 53 % 100}" for place in range(40)))


def test_numbers_that_go_on_below_are_a_record() -> None:
    """Row numbers go on, although the rest of the first line looks like names."""
    rows = [f"{place},{place % 2},{30 + place * 7 % 9}" for place in range(3, 40)]
    assert not named("0,EWR,Newark Airport", "1,0,31", "2,1,38", *rows)
    assert named("7,EWR,Newark Airport", "1,0,31", "2,1,38", *rows)
    assert not named("1,2,9", "2,0,31", "3,1,38", *rows)


def test_a_line_of_nothing_is_no_header() -> None:
    assert not named(",,", *(f"{place * 37 % 50},{place * 41 % 60},{place * 29 % 70}" for place in range(40)))
    assert not named("NA,NA,3.5", *(f"{place * 37 % 50},NA,{place * 29 % 70}.5" for place in range(40)))


def test_numbers_without_order_are_a_record() -> None:
    rows = [f"{place * 37 % 50},{place * 41 % 60 / 7:.3f},{place * 29 % 70}" for place in range(40)]
    assert not named("5.1,3.5,1.4", *rows)
    assert not named("5,3,14", *rows)
    assert named("id,5,14,25", *(f"u{place}x,{row}" for place, row in enumerate(rows)))


def test_moments_and_ids() -> None:
    rows = [f"2024-05-{place + 1:02d} 08:00,u{place % 7},{place}.5" for place in range(28)]
    assert not named(*rows)
    assert named("when,who,value", *rows)


def test_where_nothing_tells_a_csv_file_has_names() -> None:
    rows = ["alpha", "beta", "gamma", "delta"]
    assert named(*rows)
    assert not named(*rows, is_csv=False)


def test_one_line() -> None:
    assert named("name,age")
    assert not named("ann,34")
    assert not named("ann,2024-05-01")


def test_two_lines() -> None:
    assert named("name,age", "ann,34")
    assert not named("ann,34", "bob,51")


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_separators_and_quotes(sign: str) -> None:
    lines = [sign.join(f'"{cell}"' for cell in line.split(",")) for line in ["age,sex,city", *PEOPLE]]
    assert layout(*lines) == CsvLayout(sign, ("age", "sex", "city"), has_header=True)


def test_a_cell_with_line_ends_is_one_cell() -> None:
    rows = [f'{place},"he said, ""no"",\nand left {place}"' for place in range(20)]
    assert layout("id,said", *rows).names == ("id", "said")


def test_the_user_decides() -> None:
    assert layout("age,sex,city", *PEOPLE, header=False).names == ("column1", "column2", "column3")
    assert layout(*PEOPLE, header=True).names == ("34", "f", "Ulm")
    assert layout(*PEOPLE, header=True).source == {"kind": "csv"}


def test_a_header_that_lacks_the_first_name() -> None:
    rows = [f'"{place}" {place * 37 % 80} "f"' for place in range(1, 20)]
    found = layout('"age" "sex"', *rows, is_csv=False)
    assert found.names == ("column1", "age", "sex")
    assert found.source == {"kind": "csv", "delimiter": " ", "header": "short"}
    with pytest.raises(InputError, match="all lines but the first end with a delimiter"):
        layout("a,b", "1,2,", "3,4,")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["# made by a program", "age,sex,city", *PEOPLE], "its first line has more or fewer cells"),
        (["Report", "of 2024", "age,sex,city", *PEOPLE], "its first 2 lines have more or fewer cells"),
        (["age,sex", *[f"{line},x" for line in PEOPLE]], "its first line has more or fewer cells"),
    ],
)
def test_lines_above_the_header(lines: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        layout(*lines)


def test_a_comment_sign_in_the_header_is_part_of_the_name() -> None:
    assert layout("#age,sex,city", *PEOPLE).names == ("#age", "sex", "city")


SETS = ["milk,bread", "beer", "milk,butter,beer,eggs", "bread,eggs,milk", "butter,beer,eggs,milk,rolls"]


def test_sets() -> None:
    assert layout(*SETS) == CsvLayout("\t", ("items",), has_header=False, separator=",")
    assert layout("basket", *SETS[:1], *SETS[2:]) == CsvLayout("\t", ("basket",), has_header=True, separator=",")
    assert layout(*SETS, header=True).names == ("milk,bread",)
    assert layout(*(line.replace(",", "\t") for line in SETS)).delimiter == "|"
    numbers = ["30 41 52", "7", "8 9", "1 2 3 4", "5 6 7 8 9"]
    assert layout(*numbers, is_csv=False) == CsvLayout("\t", ("items",), has_header=False, separator=" ")


def test_words_of_a_text_are_not_cells() -> None:
    assert layout("Ann Lee", "Bob Ray", "Cem Oz", is_csv=False).delimiter == ","


def test_reading(tmp_path: Path) -> None:
    """A mark at the start, blanks around cells, records that a run refuses, and the number of rows asked for."""
    path = tmp_path / "people.csv"
    path.write_text("\ufeffage, sex\n34, f\n51\n29, m\n40, ?\n", encoding="utf-8")
    data = read_data(path, 10)
    assert data.table.to_pydict() == {"age": ["34", "29", "40"], "sex": ["f", "m", None]}
    assert (data.is_all, data.has_header, data.source) == (True, True, {"kind": "csv", "nulls": ["?"]})
    assert read_data(path, 2).table.num_rows == 2
    assert not read_data(path, 2).is_all
    with pytest.raises(PolicyError, match="--header: is for CSV files"):
        read_data(tmp_path / "x.jsonl", 10, header=True)


CELLS = st.sampled_from(["ann", "bob", "3", "4.5", "2019", "2020", "", "NA", "2024-01-01", "Ulm", "x y", "ü", "-1"])


@tries(200)
@given(st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=8), st.booleans())
def test_any_records_are_weighed(records: list[list[str]], is_csv: bool) -> None:
    assert has_header(records, is_csv=is_csv) in (True, False)
    assert not is_csv or has_header(records, is_csv=True) or not has_header(records, is_csv=False)


def test_lines_longer_than_a_cell_may_be_are_split() -> None:
    """For a delimiter that does not occur in it, the line is one cell of more than 131,072 characters."""
    line = ", ".join(["-2.48"] * 20_000)
    found = layout(line, line, header=False)
    assert found.delimiter == ","
    assert len(found.names) == 20_000
