"""Separators, encodings, decimal commas, quotes, JSON lines, Parquet, access logs, and files with next to nothing."""

from __future__ import annotations

import pyarrow as pa

from tests.first_release.cases import case
from tests.first_release.samples import (
    ages,
    around,
    dates,
    distinct,
    each,
    full_names,
    holes,
    moments,
    of,
    pick,
    skewed,
    whole,
)  # fmt: skip


@case(
    "krankenhaus.csv",
    person="PatientenNr",
    separator=";",
    encoding="latin-1",
    decimal=",",
    traits="semicolon | Latin-1 | decimal comma | German dates | codes | several rows a person | language de",
    columns="""
        PatientenNr = person, code
        Fallnummer = identifier | drop, code
        Geburtsdatum = quasi | identifier | drop, time
        Geschlecht = quasi, category
        PLZ = quasi, code
        Größe = quasi, numeric
        Gewicht = quasi | sensitive, numeric
        Hauptdiagnose = sensitive, code
        Aufnahme = time | quasi | drop, time
    """,
    reason="Stays in a German hospital: a patient has several, the case number names one stay.",
)
def krankenhaus(rng):
    n = 240
    patients = distinct(rng, 100_000, 999_999, 130)
    birth = dict(zip(patients, dates(rng, "1930-01-01", 30_000, 130, "%d.%m.%Y"), strict=True))
    sex = dict(zip(patients, pick(rng, ["männlich", "weiblich"], 130), strict=True))
    plz = dict(zip(patients, pick(rng, ["01067", "01069", "04103", "04105", "80331", "80333"], 130), strict=True))
    rows = [*patients, *pick(rng, patients, n - 130)]
    return {
        "PatientenNr": rows,
        "Fallnummer": [f"F{number}" for number in distinct(rng, 10_000_000, 99_999_999, n)],
        "Geburtsdatum": of(rows, birth),
        "Geschlecht": of(rows, sex),
        "PLZ": of(rows, plz),
        "Größe": around(rng, 1.72, 0.09, n, 2),
        "Gewicht": around(rng, 78, 14, n),
        "Hauptdiagnose": pick(rng, ["E11.9", "I10.0", "J45.0", "B20", "F32.1", "C50.9", "I21.0"], n),
        "Aufnahme": dates(rng, "2022-01-01", 360, n, "%d.%m.%Y"),
    }


@case(
    "enquete.csv",
    person="identifiant",
    encoding="utf-8-sig",
    separator=";",
    traits="BOM | semicolon | language fr | religion and politics | codes",
    columns="""
        identifiant = person, code
        âge = quasi, numeric
        sexe = quasi, category
        code_commune = quasi, code
        profession = quasi, category
        revenu_mensuel = sensitive, numeric
        religion = sensitive, category
    """,
    reason="A French survey: one row a respondent; income and religion are sensitive.",
)
def enquete(rng):
    n = 180
    return {
        "identifiant": distinct(rng, 1000, 9999, n),
        "âge": ages(rng, n),
        "sexe": pick(rng, "H F", n),
        "code_commune": pick(rng, ["75056", "69123", "13055", "2A004", "31555"], n),
        "profession": pick(rng, ["ouvrier", "employé", "cadre", "retraité", "étudiant"], n),
        "revenu_mensuel": skewed(rng, 2100, n),
        "religion": holes(rng, pick(rng, ["catholique", "musulmane", "juive", "aucune"], n, [8, 2, 1, 9]), 0.05),
    }


@case(
    "members.tsv",
    person="member_no",
    separator="\t",
    traits="tab | names",
    columns="""
        member_no = person, code
        surname = identifier, text
        first_name = identifier, text
        dob = quasi | identifier | drop, time
        joined = quasi | time | drop, time
        plan = quasi | carried, category
        premium = quasi | sensitive, numeric
    """,
    reason="One row a member; names identify.",
)
def members(rng):
    n = 110
    people = [name.split() for name in full_names(rng, n)]
    return {
        "member_no": [f"M-{number:05d}" for number in distinct(rng, 1, 99_999, n)],
        "surname": [last for _, last in people],
        "first_name": [first for first, _ in people],
        "dob": dates(rng, "1940-01-01", 22_000, n),
        "joined": dates(rng, "2015-01-01", 2500, n),
        "plan": pick(rng, "basic family gold", n),
        "premium": whole(rng, 20, 180, n),
    }


@case(
    "patients.parquet",
    person="pid",
    traits="parquet | booleans | missing | identifiers | several rows a person | person in the last column",
    columns="""
        birth_year = quasi, numeric | time
        insured = quasi | carried, boolean | category
        admitted = time | quasi | drop, time
        hba1c = sensitive | quasi, numeric
        mobile_phone = identifier, text
        pid = person, code
    """,
    reason="The frame's index was stored last: it repeats, and it is the patient.",
)
def patients_parquet(rng):
    people = distinct(rng, 1000, 9999, 60)
    birth = dict(zip(people, whole(rng, 1930, 2004, 60), strict=True))
    phones = dict(zip(people, [f"+44 7700 {number}" for number in distinct(rng, 100_000, 999_999, 60)], strict=True))
    pid = each(people, 3)
    n = len(pid)
    return {
        "birth_year": of(pid, birth),
        "insured": holes(rng, pick(rng, [True, False], n, [8, 2]), 0.1),
        "admitted": pa.array(moments(rng, "2023-01-01", 20_000_000, n), pa.timestamp("us")),
        "hba1c": holes(rng, around(rng, 6.1, 1.1, n), 0.2),
        "mobile_phone": of(pid, phones),
        "pid": pid,
    }


@case(
    "complaints.csv",
    person="customer_id",
    is_quoted=True,
    method="tuples | z-anonymity",
    traits="quoted | free text | several rows a person",
    columns="""
        customer_id = person, code
        received = time | quasi | drop, time
        age_band = quasi, category
        product = quasi | value | carried, category
        comment = drop | identifier, text
    """,
    reason="Comments contain commas, quotes, line ends and names: free text is not published.",
)
def complaints(rng):
    n = 130
    told = [f'I, {name}, said "no",\nand nobody called me.' for name in full_names(rng, n)]
    return {
        "customer_id": pick(rng, [f"C{number}" for number in distinct(rng, 1000, 9999, 70)], n),
        "received": sorted(dates(rng, "2023-01-01", 200, n)),
        "age_band": pick(rng, "18-29 30-44 45-59 60+", n),
        "product": pick(rng, "loan card account mortgage", n),
        "comment": told,
    }


NOTHING = {"person_id": (), "age": (), "sex": (), "income": ()}
COLUMNS = """
    person_id = person, code
    age = quasi, numeric
    sex = quasi, category
    income = sensitive, numeric
"""


@case(
    "header_only.csv", person="person_id", traits="header only", may_ask=True, may_refuse=True, columns=COLUMNS,
    reason="Names but no records: the names may be used, or the file refused with this reason.", method="tuples | none",
)  # fmt: skip
def header_only(rng):
    return NOTHING


@case(
    "zero_rows.parquet", person="person_id", traits="parquet | 0 rows", may_ask=True, may_refuse=True, columns=COLUMNS,
    reason="A table with columns and no row: as a header alone.", method="tuples | none",
)  # fmt: skip
def zero_rows(rng):
    kinds = (pa.int64(), pa.int64(), pa.string(), pa.float64())
    return {name: pa.array([], kind) for name, kind in zip(NOTHING, kinds, strict=True)}


@case(
    "one_row.csv", person="person_id", traits="1 row", may_ask=True, may_refuse=True, columns=COLUMNS,
    reason="One person cannot hide among others: a policy from the names, or a refusal that says so.",
    method="tuples | none",
)  # fmt: skip
def one_row(rng):
    return {"person_id": [4711], "age": [52], "sex": ["f"], "income": [31_500]}
