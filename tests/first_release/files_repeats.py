"""Several rows a person: panels, repeated measures, pupils in schools, households, twins."""

from __future__ import annotations

import math

from tests.first_release.cases import case
from tests.first_release.samples import (
    LETTERS,
    ages,
    around,
    dates,
    distinct,
    each,
    emails,
    full_names,
    holes,
    of,
    pick,
    skewed,
    uuids,
    whole,
    words_of,
)  # fmt: skip


@case(
    "sleep_study.csv",
    person="Subject",
    traits="sleep study | several rows a person | empty header cell | row number",
    columns="""
        = row number, code
        Reaction = sensitive | quasi | carried, numeric
        Days = quasi | time | carried, numeric
        Subject = person, code
    """,
    reason="18 subjects on 10 days each: 18 people, not 180, although 18 values are few.",
)
def sleep_study(rng):
    return {
        "": range(1, 181),
        "Reaction": around(rng, 300, 50, 180, 4),
        "Days": list(range(10)) * 18,
        "Subject": each(sorted(distinct(rng, 308, 373, 18)), 10),
    }


@case(
    "young_women.csv",
    person="idcode",
    traits="idcode as 22.0 | panel | several rows a person | logs and squares | flags | wages",
    columns="""
        idcode = person, code
        year = time | quasi, time | numeric
        birth_yr = quasi, numeric | time
        race = quasi | sensitive, category | code
        msp = quasi, boolean | category
        collgrad = quasi, boolean | category
        ind_code = quasi, code | category
        union = sensitive | quasi, boolean | category
        ln_wage = sensitive, numeric
    """,
    reason="A panel: idcode is written 22.0, repeats in consecutive rows, and year of birth depends on it.",
)
def young_women(rng):
    people = sorted(distinct(rng, 1, 5159, 60))
    times = whole(rng, 3, 8, 60)
    rows = each([float(person) for person in people], times)
    n = len(rows)
    birth = dict(zip(people, whole(rng, 43, 54, 60), strict=True))
    race = dict(zip(people, whole(rng, 1, 3, 60), strict=True))
    return {
        "idcode": rows,
        "year": [68 + 3 * number for count in times for number in range(count)],
        "birth_yr": of(rows, birth),
        "race": of(rows, race),
        "msp": holes(rng, whole(rng, 0, 1, n), 0.03),
        "collgrad": whole(rng, 0, 1, n),
        "ind_code": whole(rng, 1, 12, n),
        "union": holes(rng, [float(value) for value in whole(rng, 0, 1, n)], 0.3),
        "ln_wage": [round(math.log(value), 6) for value in skewed(rng, 6, n, digits=4)],
    }


@case(
    "household_panel.csv",
    person="pid",
    traits="households | panel | several rows a person | sentinels",
    missing={"plb0022": ("-2", "-1")},
    columns="""
        hid = identifier | drop | quasi, code
        pid = person, code
        syear = time | quasi, time | numeric
        gebjahr = quasi, numeric | time
        sex = quasi, category | code
        plb0022 = quasi | sensitive, category | code
        einkommen = sensitive, numeric
    """,
    reason="hid is the household, pid its member, who answers in several years: the household is not the person.",
)
def household_panel(rng):
    homes = sorted(distinct(rng, 10_000, 90_000, 40))
    sizes = whole(rng, 1, 4, 40)
    members = [
        (home, home * 100 + number) for home, size in zip(homes, sizes, strict=True) for number in range(1, size + 1)
    ]
    birth = {pid: year for (_, pid), year in zip(members, whole(rng, 1935, 2003, len(members)), strict=True)}
    sex = {pid: value for (_, pid), value in zip(members, whole(rng, 1, 2, len(members)), strict=True)}
    rows = each(members, 3)
    n = len(rows)
    return {
        "hid": [home for home, _ in rows],
        "pid": [pid for _, pid in rows],
        "syear": [2018, 2019, 2020] * len(members),
        "gebjahr": [birth[pid] for _, pid in rows],
        "sex": [sex[pid] for _, pid in rows],
        "plb0022": pick(rng, [1, 2, 4, 9, -2, -1], n, [6, 2, 1, 2, 1, 1]),
        "einkommen": skewed(rng, 2300, n),
    }


@case(
    "maths_schools.csv",
    person="pupil",
    traits="pupils in schools | several rows a person",
    columns="""
        school = quasi | drop, code
        pupil = person, code
        wave = time | quasi | carried, numeric | category
        ses = sensitive | quasi, numeric
        minority = quasi | sensitive, boolean | category
        mathach = sensitive, numeric
    """,
    reason="Two tests a pupil in 12 schools; pupil numbers are unique: the school is not the person.",
)
def maths_schools(rng):
    pupils = distinct(rng, 20_000, 70_000, 120)
    school = dict(zip(pupils, each(distinct(rng, 1000, 9999, 12), 10), strict=True))
    minority = dict(zip(pupils, pick(rng, [0, 1], 120, [7, 3]), strict=True))
    rows = each(pupils, 2)
    return {
        "school": of(rows, school),
        "pupil": rows,
        "wave": [1, 2] * 120,
        "ses": around(rng, 0, 0.8, 240, 3),
        "minority": of(rows, minority),
        "mathach": around(rng, 12.7, 6.8, 240, 3),
    }


@case(
    "pupils_restart.csv",
    person="row",
    may_ask=True,
    traits="pupils in schools",
    columns="""
        schoolnr = quasi | drop, code
        pupilnr = drop | identifier, code
        class_size = quasi, numeric
        iq_verbal = sensitive | quasi, numeric
        repeated_grade = sensitive | quasi, boolean | category
        lang_score = sensitive, numeric
    """,
    reason="Pupil 1 is in every school: only both numbers are a pupil, who has one row. Neither alone says who.",
)
def pupils_restart(rng):
    sizes = whole(rng, 9, 25, 14)
    n = sum(sizes)
    return {
        "schoolnr": each(distinct(rng, 1, 260, 14), sizes),
        "pupilnr": [number for size in sizes for number in range(1, size + 1)],
        "class_size": each(sizes, sizes),
        "iq_verbal": around(rng, 12, 2, n),
        "repeated_grade": pick(rng, [0, 1], n, [8, 1]),
        "lang_score": whole(rng, 9, 58, n),
    }


@case(
    "twins.csv",
    person="row",
    may_ask=True,
    traits="twins",
    columns="""
        pair = identifier | drop, code
        twin = quasi | drop | carried, category | code
        zygosity = quasi | sensitive, category
        age = quasi, numeric
        bmi = sensitive | quasi, numeric
        depression = sensitive, boolean | category
    """,
    reason="A pair are two people, twin only says 1 or 2: every row is somebody else.",
)
def twins(rng):
    age = ages(rng, 90)
    return {
        "pair": each(distinct(rng, 100, 2000, 90), 2),
        "twin": [1, 2] * 90,
        "zygosity": each(pick(rng, "MZ DZ", 90), 2),
        "age": each(age, 2),
        "bmi": around(rng, 25, 4, 180),
        "depression": pick(rng, [0, 1], 180, [8, 2]),
    }


def visits(rng, ids):
    """Each of the people in consecutive rows; sex and year of birth depend on who it is."""
    rows = each(ids, 4)
    sex = dict(zip(ids, pick(rng, "F M", len(ids)), strict=True))
    birth = dict(zip(ids, whole(rng, 1940, 2000, len(ids)), strict=True))
    return rows, of(rows, sex), of(rows, birth)


@case(
    "unnamed_panel.csv",
    person="v1",
    may_ask=True,
    traits="persons by values | several rows a person | another column depends on it",
    columns="""
        v1 = person, code
        v2 = quasi, category
        v3 = quasi, numeric | time
        v4 = sensitive | quasi | carried, numeric
    """,
    reason="No name helps: v1 repeats in consecutive rows, and v2 (F, M) and v3 (a year) depend on it.",
)
def unnamed_panel(rng):
    rows, sex, birth = visits(rng, distinct(rng, 1000, 9999, 60))
    return {"v1": rows, "v2": sex, "v3": birth, "v4": around(rng, 120, 18, len(rows))}


@case(
    "kod_panel.csv",
    person="kod",
    may_ask=True,
    traits="persons by values | several rows a person | another column depends on it | person in the last column",
    columns="""
        wert = sensitive | quasi | carried, numeric
        g = quasi, category
        jahrgang = quasi, numeric | time
        kod = person, code
    """,
    reason="The last column repeats in consecutive rows and determines two others, although kod says only code.",
)
def kod_panel(rng):
    letters = words_of(rng, "ABCDEFGH", 2, 50)
    rows, sex, birth = visits(rng, [f"{a}{b}" for a, b in zip(letters, distinct(rng, 10, 99, 50), strict=True)])
    return {"wert": around(rng, 7, 2, len(rows)), "g": sex, "jahrgang": birth, "kod": rows}


def account(name, column, ids, trait, reason):
    """A file whose persons are written in one of several ways."""
    columns = f"""
        {column} = person, code | text
        sex = quasi, category
        born = quasi, numeric | time
        visited = time | quasi | drop, time
        complaint = sensitive, category
    """

    @case(name, person=column, traits=f"{trait} | several rows a person", columns=columns, reason=reason)
    def accounts(rng):
        rows, sex, born = visits(rng, ids(rng))
        days = dates(rng, "2022-03-01", 300, len(rows))
        complaints = pick(rng, "headache anxiety fracture pregnancy", len(rows))
        return {column: rows, "sex": sex, "born": born, "visited": days, "complaint": complaints}


def mixed_case(rng):
    """Some differ in nothing but a capital letter, and are different people."""
    some = words_of(rng, LETTERS, 6, 40)
    return [*some, *(word.swapcase() for word in some[:10] if word.swapcase() != word)]


account("by_uuid.csv", "uuid", lambda rng: uuids(rng, 45), "uuid", "A UUID that repeats in four rows is the person.")
account(
    "by_hash.csv", "pseudonym", lambda rng: words_of(rng, "0123456789abcdef", 40, 45), "hash",
    "A hash of somebody stands for somebody and is not published either.",
)  # fmt: skip
account(
    "by_email.csv", "e_mail", lambda rng: emails(full_names(rng, 45)), "email as person",
    "The e-mail address is the only id: it says who, and is never published.",
)  # fmt: skip
account("by_login.csv", "userName", mixed_case, "mixed case", "aB3x and Ab3X are two people: case counts.")
