"""One row a person: row numbers, flags and other columns that are not the person, wages, decimals, one column."""

from __future__ import annotations

import math

from tests.first_release.cases import case
from tests.first_release.samples import (
    ages,
    around,
    dates,
    distinct,
    emails,
    full_names,
    holes,
    pick,
    skewed,
    whole,
    words_of,
)  # fmt: skip


@case(
    "census.csv",
    person="row",
    traits="missing words",
    missing={"workclass": ("?",), "occupation": ("?",)},
    columns="""
        age = quasi, numeric
        workclass = quasi, category
        education = quasi, category
        marital.status = quasi, category
        occupation = quasi | sensitive, category
        race = quasi | sensitive, category
        sex = quasi, category
        hours.per.week = quasi, numeric
        native.country = quasi, category | code
        income = sensitive, category
    """,
    reason="A census extract: every row is somebody else, a question mark means missing, income is sensitive.",
)
def census(rng):
    n = 400
    return {
        "age": ages(rng, n),
        "workclass": holes(rng, pick(rng, ["Private", "State", "Self-employed"], n, [7, 2, 2]), 0.06, "?"),
        "education": pick(rng, ["HS-grad", "Bachelors", "Masters", "11th"], n, [5, 3, 1, 1]),
        "marital.status": pick(rng, ["Married", "Never-married", "Divorced"], n),
        "occupation": holes(rng, pick(rng, ["Sales", "Craft", "Clerical", "Tech"], n), 0.06, "?"),
        "race": pick(rng, ["White", "Black", "Asian"], n, [8, 1, 1]),
        "sex": pick(rng, ["Male", "Female"], n),
        "hours.per.week": whole(rng, 10, 60, n),
        "native.country": pick(rng, ["United-States", "Mexico", "India"], n, [18, 1, 1]),
        "income": pick(rng, ["<=50K", ">50K"], n, [3, 1]),
    }


@case(
    "staff.csv",
    person="emp_no",
    traits="identifiers | names",
    columns="""
        emp_no = person, code
        full_name = identifier, text
        email = identifier, text
        phone = identifier, text
        ssn = identifier, code
        iban = identifier, code
        device_id = identifier, code
        ip_address = identifier, text
        department = quasi, category
        hired = quasi | time | drop, time
        salary = sensitive, numeric
    """,
    reason="Everything that finds a member of staff without any other column stays out.",
)
def staff(rng):
    n = 100
    names = full_names(rng, n)
    codes = distinct(rng, 10_000_000, 99_999_999, n)
    return {
        "emp_no": distinct(rng, 1000, 9999, n),
        "full_name": names,
        "email": emails(names),
        "phone": [f"+1-555-{code % 900 + 100}-{code % 9000 + 1000}" for code in codes],
        "ssn": [f"9{code % 90 + 10:02d}-{code % 80 + 10}-{code % 9000 + 1000}" for code in codes],
        "iban": [f"DE{code % 90 + 10}1002 0030 {code}{code % 90 + 10}" for code in codes],
        "device_id": words_of(rng, "0123456789abcdef", 16, n),
        "ip_address": [f"192.168.{code % 250}.{code // 7 % 250}" for code in codes],
        "department": pick(rng, "sales research finance legal", n),
        "hired": dates(rng, "2005-01-01", 6500, n),
        "salary": skewed(rng, 52_000, n, sigma=0.3),
    }


@case(
    "ages.csv", person="row", traits="one column", columns="age = quasi, numeric",
    reason="A single column of ages: every row is somebody, and k people share every range.",
)  # fmt: skip
def one_column_of_ages(rng):
    return {"age": ages(rng, 200)}


@case(
    "guests.csv", person="row | name", method="none", may_refuse=True, traits="one column | names",
    columns="name = identifier | person, text",
    reason="Names only: nothing can be published, and the reason is said.",
)  # fmt: skip
def one_column_of_names(rng):
    return {"name": full_names(rng, 120)}


def late(rng, n, rare):
    """Whole hours until the last rows, which contain halves."""
    hours = list(map(str, whole(rng, 1, 48, n)))
    return [*hours[: -len(rare)], *rare]


LATE = """
    age = quasi, numeric
    job = quasi, category
    weekly_hours = quasi, numeric
    sick_days = sensitive | quasi, numeric
"""


def late_table(rng, n):
    return {
        "age": ages(rng, n),
        "job": pick(rng, "nurse doctor clerk porter", n),
        "weekly_hours": late(rng, n, ["37.5", "38", "7.5", "40"]),
        "sick_days": whole(rng, 0, 30, n),
    }


@case(
    "late_decimals.csv", person="row", traits="decimals among integers", columns=LATE,
    reason="7.5 comes after hundreds of whole numbers: the column has decimals, no row is lost to it.",
)  # fmt: skip
def late_decimals(rng):
    return late_table(rng, 400)


@case(
    "very_late_decimals.csv", person="row", traits="decimals among integers", columns=LATE,
    reason="As before after 5,000 rows, where a look at the first rows does not reach.",
)  # fmt: skip
def very_late_decimals(rng):
    return late_table(rng, 5000)


@case(
    "wages.csv",
    person="row",
    traits="wages | logs and squares | missing",
    columns="""
        wage = sensitive, numeric
        lwage = drop | sensitive, numeric
        educ = quasi, numeric
        exper = quasi, numeric
        expersq = drop, numeric
        married = quasi, boolean | category
        kidslt6 = quasi, numeric
    """,
    reason="Most wages there are are unique, the rest is missing; log and square repeat another column.",
)
def wages(rng):
    n = 300
    wage = [value if value else None for value in holes(rng, skewed(rng, 9.5, n, digits=4), 0.43)]
    exper = whole(rng, 0, 40, n)
    return {
        "wage": wage,
        "lwage": [None if value is None else round(math.log(value), 6) for value in wage],
        "educ": whole(rng, 5, 17, n),
        "exper": exper,
        "expersq": [value * value for value in exper],
        "married": whole(rng, 0, 1, n),
        "kidslt6": whole(rng, 0, 3, n),
    }


@case(
    "twice.csv",
    person="row",
    may_ask=True,
    traits="duplicates of every row",
    columns="""
        age = quasi, numeric
        zip = quasi, code
        height_cm = quasi, numeric
        weight_kg = quasi | sensitive, numeric
        illness = sensitive, category
    """,
    reason="Every row occurs twice, one after the other, but no column says who: rows are counted, or a question.",
)
def twice(rng):
    n = 100
    rows = {
        "age": ages(rng, n),
        "zip": pick(rng, "02138 02139 02140 02141", n),
        "height_cm": around(rng, 171, 9, n),
        "weight_kg": around(rng, 76, 13, n),
        "illness": pick(rng, "flu cancer asthma none", n),
    }
    return {name: [value for value in values for _ in range(2)] for name, values in rows.items()}
