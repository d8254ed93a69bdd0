"""Columns that count or flag rows but do not say who: 1..n, yes and no, a handful of values."""

from __future__ import annotations

from tests.first_release.cases import case
from tests.first_release.samples import (
    ages,
    pick,
    skewed,
    whole,
)


def numbered(name, others, *, person, roles, reason):
    """A file whose first column counts the rows under one of several names."""
    columns = f"{name} = {roles}, code\n" + "\n".join(f"{other} = {role}" for other, role, _ in others)

    @case(f"numbered_{name}.csv", person=person, traits="row number 1..n", columns=columns, reason=reason)
    def numbered_rows(rng):
        n = 150
        return {name: range(1, n + 1), **{other: make(rng, n) for other, _, make in others}}


AGE = ("age", "quasi, numeric", ages)
SEX = ("sex", "quasi, category", lambda rng, n: pick(rng, "f m", n))
PULSE = ("pulse", "sensitive | quasi, numeric", lambda rng, n: whole(rng, 50, 110, n))
TREATED = ("treatment", "quasi | sensitive | carried, category", lambda rng, n: pick(rng, "drug placebo", n))
DEPRESSED = ("depression", "sensitive, category | boolean", lambda rng, n: pick(rng, "no yes", n, [8, 2]))

numbered(
    "id", (AGE, SEX, TREATED, DEPRESSED), person="row | id", roles="row number | person",
    reason="1..n named id: a row number; dropped as such or taken for the person, rows are people.",
)  # fmt: skip
numbered(
    "patient", (AGE, SEX, PULSE, DEPRESSED), person="patient", roles="person",
    reason="1..n, but the name says person: it is the person, and not published.",
)  # fmt: skip
numbered(
    "seqn", (SEX, AGE, PULSE, DEPRESSED), person="seqn", roles="person",
    reason="1..n named seqn, the sequence number of respondents in health surveys: the person.",
)  # fmt: skip


@case(
    "loans.csv",
    person="row",
    traits="loans with Student | empty header cell | row number | flags",
    columns="""
        = row number, code
        Income = sensitive, numeric
        Limit = quasi | sensitive, numeric
        Rating = quasi | sensitive, numeric
        Cards = quasi, numeric
        Age = quasi, numeric
        Education = quasi, numeric
        Gender = quasi, category
        Student = quasi, boolean | category
        Married = quasi, boolean | category
        Balance = sensitive | quasi, numeric
    """,
    reason="Student says yes or no: a flag, never a person. Income and debts are sensitive.",
)
def loans(rng):
    n = 400
    income = skewed(rng, 35, n, digits=3)
    return {
        "": range(1, n + 1),
        "Income": income,
        "Limit": [round(60 * value + 2500) for value in income],
        "Rating": whole(rng, 100, 900, n),
        "Cards": whole(rng, 1, 8, n),
        "Age": ages(rng, n),
        "Education": whole(rng, 6, 20, n),
        "Gender": pick(rng, "Male Female", n),
        "Student": pick(rng, "No Yes", n, [9, 1]),
        "Married": pick(rng, "No Yes", n, [4, 6]),
        "Balance": whole(rng, 0, 1900, n),
    }


@case(
    "consultations.csv",
    person="row",
    traits="flag named person | flags",
    columns="""
        person = quasi | carried | drop, boolean | category
        age = quasi, numeric
        female = quasi, boolean | category
        chronic = sensitive, boolean | category
        visits = quasi | sensitive, numeric
    """,
    reason="person is 0 or 1 (seen in person or by phone): two values cannot be who.",
)
def consultations(rng):
    n = 400
    return {
        "person": whole(rng, 0, 1, n),
        "age": ages(rng, n),
        "female": whole(rng, 0, 1, n),
        "chronic": pick(rng, [0, 1], n, [7, 3]),
        "visits": rng.poisson(2, n).tolist(),
    }


@case(
    "election.csv",
    person="row",
    traits="party 0-6 | religion and politics",
    columns="""
        party = sensitive, category | code
        age = quasi, numeric
        educ = quasi, category | numeric
        income_group = sensitive, category | numeric
        tv_news_days = quasi | carried, numeric
        vote = sensitive, category
    """,
    reason="party is the political party from 0 to 6, not a party to a contract: sensitive, never the person.",
)
def election(rng):
    n = 300
    return {
        "party": whole(rng, 0, 6, n),
        "age": ages(rng, n),
        "educ": whole(rng, 1, 7, n),
        "income_group": whole(rng, 1, 24, n),
        "tv_news_days": whole(rng, 0, 7, n),
        "vote": pick(rng, "left right none", n),
    }


@case(
    "case_control.csv",
    person="row",
    may_ask=True,
    traits="handful of values as person | flags",
    columns="""
        case = sensitive, boolean | category
        stratum = drop | identifier | quasi, code
        age = quasi, numeric
        parity = quasi, numeric
        smoking = quasi | sensitive, boolean | category
    """,
    reason="case is 1 for the ill and 0 for controls; a stratum is a matched set of three people.",
)
def case_control(rng):
    n = 180
    return {
        "case": [1, 0, 0] * 60,
        "stratum": [number // 3 + 1 for number in range(n)],
        "age": whole(rng, 21, 44, n),
        "parity": whole(rng, 1, 6, n),
        "smoking": whole(rng, 0, 1, n),
    }


@case(
    "clients_few.csv",
    person="row",
    may_ask=True,
    traits="handful of values as person",
    columns="""
        client = quasi | carried | drop | identifier, category
        age = quasi, numeric
        hours = quasi | sensitive, numeric
        therapy = sensitive | quasi, category
    """,
    reason="client has four values (the firms that pay); k cannot be made of four, so it is not the person.",
)
def clients_few(rng):
    n = 200
    return {
        "client": pick(rng, ["Acme", "Borg", "Cyan", "Delta"], n),
        "age": ages(rng, n),
        "hours": whole(rng, 1, 40, n),
        "therapy": pick(rng, "couple addiction grief phobia", n),
    }


FLAGS = ("smoker", "diabetes", "insured", "veteran", "renter")


@case(
    "flags.csv",
    person="row",
    traits="all booleans | flags",
    columns="""
        smoker = quasi | sensitive, boolean | category
        diabetes = sensitive, boolean | category
        insured = quasi | carried, boolean | category
        veteran = quasi, boolean | category
        renter = quasi, boolean | category
    """,
    reason="TRUE and FALSE, T and F, 0 and 1, yes and no: categories with two values, in every spelling.",
)
def flags(rng):
    spellings = ("TRUE FALSE", "T F", "0 1", "yes no", "True False")
    return {name: pick(rng, words, 250) for name, words in zip(FLAGS, spellings, strict=True)}
