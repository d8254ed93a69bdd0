"""What was missing: words and numbers that mean it, and columns where much of it is."""

from __future__ import annotations

from tests.first_release.cases import case
from tests.first_release.samples import ages, around, dates, distinct, holes, pick, skewed, whole


@case(
    "sentinels.csv",
    person="row",
    traits="sentinels -999/9999/. | missing words",
    missing={"bmi": ("-999",), "birth_year": ("9999",), "sbp": (".",), "income": ("-9",)},
    columns="""
        sex = quasi, category | code
        birth_year = quasi, numeric | time
        bmi = quasi | sensitive, numeric
        sbp = sensitive | quasi, numeric
        income = sensitive, numeric
    """,
    reason="-999, 9999, -9 and a single dot are no measurements: they mean missing.",
)
def sentinels(rng):
    n = 260
    return {
        "sex": whole(rng, 1, 2, n),
        "birth_year": holes(rng, whole(rng, 1930, 2005, n), 0.06, 9999),
        "bmi": holes(rng, around(rng, 26, 4, n), 0.1, -999),
        "sbp": holes(rng, whole(rng, 95, 180, n), 0.15, "."),
        "income": holes(rng, skewed(rng, 31_000, n), 0.2, -9),
    }


@case(
    "befragung.csv",
    person="Kennung",
    separator=";",
    decimal=",",
    traits="missing words | semicolon | decimal comma | German dates | language de | end dates",
    missing={
        "Familienstand": ("k. A.",),
        "Konfession": ("unbekannt",),
        "Einkommen": ("n/a",),
        "Vertrag_bis": ("31.12.9999",),
    },
    columns="""
        Kennung = person, code
        Alter = quasi, numeric
        Familienstand = quasi, category
        Konfession = sensitive, category
        Einkommen = sensitive, numeric
        Pendelzeit_h = quasi | carried, numeric
        Vertrag_bis = quasi | time | drop, time
    """,
    reason="k. A., unbekannt, n/a and 31.12.9999 mean missing or open; they are no answers.",
)
def befragung(rng):
    n = 210
    return {
        "Kennung": [f"K{number}" for number in distinct(rng, 1000, 9999, n)],
        "Alter": ages(rng, n),
        "Familienstand": holes(rng, pick(rng, "ledig verheiratet geschieden verwitwet", n), 0.08, "k. A."),
        "Konfession": holes(rng, pick(rng, ["evangelisch", "katholisch", "muslimisch", "keine"], n), 0.1, "unbekannt"),
        "Einkommen": holes(rng, skewed(rng, 2600, n, digits=2), 0.15, "n/a"),
        "Pendelzeit_h": around(rng, 0.8, 0.2, n, 2),
        "Vertrag_bis": holes(rng, dates(rng, "2024-01-01", 1500, n, "%d.%m.%Y"), 0.3, "31.12.9999"),
    }


@case(
    "contracts.csv",
    person="insured_id",
    traits="end dates | missing words",
    missing={"valid_to": ("9999-12-31",), "occupation": ("unknown", "N/A")},
    columns="""
        insured_id = person, code
        year_of_birth = quasi, numeric | time
        occupation = quasi, category
        valid_from = time | quasi | drop, time
        valid_to = quasi | drop | time, time
        claims = sensitive | quasi, numeric
    """,
    reason="9999-12-31 stands for contracts without an end.",
)
def contracts(rng):
    n = 170
    job = holes(rng, pick(rng, "baker roofer driver teacher", n), 0.1, "unknown")
    return {
        "insured_id": distinct(rng, 200_000, 999_999, n),
        "year_of_birth": whole(rng, 1945, 2003, n),
        "occupation": holes(rng, job, 0.05, "N/A"),
        "valid_from": dates(rng, "2010-01-01", 4000, n),
        "valid_to": holes(rng, dates(rng, "2022-01-01", 900, n), 0.6, "9999-12-31"),
        "claims": rng.poisson(0.7, n).tolist(),
    }


@case(
    "diagnoses_missing.csv",
    person="row",
    traits="missing diagnoses with HIV | missing",
    columns="""
        age = quasi, numeric
        sex = quasi, category
        region = quasi, category
        diagnosis = sensitive, category
    """,
    reason="Most have no diagnosis, some have HIV: sensitive, and an empty cell stays empty.",
)
def diagnoses_missing(rng):
    n = 400
    known = pick(rng, ["HIV", "hepatitis C", "gonorrhoea", "syphilis"], n, [2, 3, 3, 2])
    return {
        "age": ages(rng, n),
        "sex": pick(rng, "f m", n),
        "region": pick(rng, "north south east west", n),
        "diagnosis": holes(rng, known, 0.6),
    }


@case(
    "languages_missing.csv",
    person="row",
    traits="missing languages | missing",
    columns="""
        age = quasi, numeric
        language = quasi, category
        household_size = quasi, numeric
        county = quasi, category
        benefits = sensitive, category | boolean
    """,
    reason="A missing language is not English; it stays missing.",
)
def languages_missing(rng):
    n = 300
    return {
        "age": ages(rng, n),
        "language": holes(rng, pick(rng, ["English", "Spanish", "Chinese"], n, [8, 2, 1]), 0.18),
        "household_size": holes(rng, whole(rng, 1, 8, n), 0.1),
        "county": pick(rng, "Kent Essex Devon", n),
        "benefits": pick(rng, "no yes", n, [7, 3]),
    }


@case(
    "gaps_everywhere.csv",
    person="respondent_id",
    method="tuples | varied",
    traits="missing | missing words",
    missing={"height": ("NA",), "weight": ("NA",), "drinks_per_week": ("refused", "NA")},
    columns="""
        respondent_id = person, code
        age = quasi, numeric
        height = quasi, numeric
        weight = quasi | sensitive, numeric
        drinks_per_week = sensitive | quasi, numeric
        sti_ever = sensitive, category | boolean
    """,
    reason="NA and refused among numbers do not make the column a text; patterns of gaps are many.",
)
def gaps_everywhere(rng):
    n = 280
    return {
        "respondent_id": distinct(rng, 1, 5000, n),
        "age": holes(rng, ages(rng, n), 0.2),
        "height": holes(rng, around(rng, 170, 9, n), 0.3, "NA"),
        "weight": holes(rng, around(rng, 75, 14, n), 0.3, "NA"),
        "drinks_per_week": holes(rng, holes(rng, whole(rng, 0, 30, n), 0.2, "refused"), 0.1, "NA"),
        "sti_ever": holes(rng, pick(rng, "no yes", n, [8, 2]), 0.4),
    }
