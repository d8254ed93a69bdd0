"""Headers that are empty, repeated, numeric, too short, or not there."""

from __future__ import annotations

from tests.first_release.cases import case
from tests.first_release.samples import (
    ages,
    around,
    distinct,
    full_names,
    pick,
    skewed,
    whole,
    words,
)  # fmt: skip

ILLNESSES = words("asthma diabetes influenza migraine HIV hypertension")


@case(
    "pandas_index.csv",
    person="row | name",
    traits="empty header cell | row number | names",
    columns="""
        = row number, code
        name = identifier | person, text
        age = quasi, numeric
        sex = quasi, category
        city = quasi, category
        diagnosis = sensitive, category
    """,
    reason="The nameless column is the index that pandas writes; every row is another named person.",
)
def pandas_index(rng):
    n = 120
    return {
        "": range(n),
        "name": full_names(rng, n),
        "age": ages(rng, n),
        "sex": pick(rng, "f m", n),
        "city": pick(rng, "Leeds York Hull Bath", n),
        "diagnosis": pick(rng, ILLNESSES, n, [9, 7, 8, 6, 1, 9]),
    }


@case(
    "r_row_names.csv",
    person="row | ",
    may_ask=True,
    is_quoted=True,
    traits="empty header cell | row names | names",
    columns="""
        = person | identifier, text
        rank = quasi, category
        discipline = quasi, category
        yrs.since.phd = quasi, numeric
        sex = quasi, category
        salary = sensitive, numeric
    """,
    reason="R's row names are people's names, all different: rows are people and the nameless column identifies them.",
)
def r_row_names(rng):
    n = 150
    return {
        "": full_names(rng, n),
        "rank": pick(rng, ["Prof", "AssocProf", "AsstProf"], n, [6, 2, 2]),
        "discipline": pick(rng, "A B", n),
        "yrs.since.phd": whole(rng, 1, 45, n),
        "sex": pick(rng, "Female Male", n, [3, 7]),
        "salary": skewed(rng, 105_000, n, sigma=0.25),
    }


@case(
    "r_write_table.txt",
    person="row",
    separator=" ",
    is_quoted=True,
    is_header_short=True,
    traits="row names | row number | header one cell short",
    columns="""
        = row number, code
        age = quasi, numeric
        gender = quasi, category
        smoker = quasi | sensitive, category | boolean
        cholesterol = sensitive | quasi, numeric
    """,
    reason="R's write.table names one column fewer than it writes: the first holds row numbers.",
)
def r_write_table(rng):
    n = 90
    return {
        "": [str(number) for number in range(1, n + 1)],
        "age": ages(rng, n),
        "gender": pick(rng, "female male", n),
        "smoker": pick(rng, "no yes", n, [7, 3]),
        "cholesterol": around(rng, 5.4, 1.0, n),
    }


@case(
    "repeated_names.csv",
    person="participant",
    traits="repeated header names",
    columns="""
        participant = person, code
        age = quasi, numeric
        group = quasi | carried, category
        score = sensitive | quasi | carried, numeric
        score = sensitive | quasi | carried, numeric
        score = sensitive | quasi | carried, numeric
    """,
    reason="Three columns of the same name are three measurements of one participant; a repeated name is still a name.",
)
def repeated_names(rng):
    n = 80
    scores = [whole(rng, 0, 40, n) for _ in range(3)]
    return [
        ("participant", [f"P{number}" for number in distinct(rng, 100, 999, n)]),
        ("age", ages(rng, n)),
        ("group", pick(rng, "control treated", n)),
        *(("score", score) for score in scores),
    ]


@case(
    "years_as_names.csv",
    person="respondent",
    traits="numeric header cells",
    columns="""
        respondent = person, code
        region = quasi, category
        2019 = sensitive, numeric
        2020 = sensitive, numeric
        2021 = sensitive, numeric
    """,
    reason="Years in the header are names of columns with incomes of that year.",
)
def years_as_names(rng):
    n = 140
    income = skewed(rng, 30_000, n)
    return {
        "respondent": distinct(rng, 10_000, 99_999, n),
        "region": pick(rng, "north east south west", n),
        "2019": income,
        "2020": [round(value * 1.02) for value in income],
        "2021": [round(value * 1.05) for value in income],
    }


@case(
    "numbered_columns.csv",
    person="row",
    about_people=None,
    traits="empty header cell | numeric header cells | row number",
    columns="""
        = row number, code
        0 = quasi, numeric
        1 = quasi | sensitive | carried | drop, category | numeric
        2 = quasi | sensitive | carried | drop, category | numeric
        3 = quasi | sensitive | carried | drop, category | numeric
    """,
    reason="A matrix saved by pandas: its header is ,0,1,2,3 and nothing in it says who.",
)
def numbered_columns(rng):
    n = 200
    answers = {str(number): whole(rng, 1, 5, n) for number in (1, 2, 3)}
    return {"": range(n), "0": ages(rng, n), **answers}
