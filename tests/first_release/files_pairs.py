"""Two columns that could be the person."""

from __future__ import annotations

from tests.first_release.cases import case
from tests.first_release.samples import dates, distinct, full_names, moments, of, pick, skewed, whole, written


def others(rng, owners, people):
    """Somebody for every row who is not its owner."""
    return [next(other for other in pick(rng, people, 9) if other != owner) for owner in owners]


@case(
    "doctors_patients.csv",
    person="patient_id",
    traits="doctor and patient | two candidates | several rows a person | codes",
    columns="""
        doctor_id = identifier | drop | quasi, code
        patient_id = person, code
        visit_date = time | quasi | drop, time
        patient_sex = quasi, category
        patient_birth_year = quasi, numeric | time
        icd_code = sensitive, code
    """,
    reason="The record is about the patient: sex, year of birth and illness depend on the patient, not on the doctor.",
)
def doctors_patients(rng):
    n = 280
    patients = distinct(rng, 10_000, 99_999, 110)
    sex = dict(zip(patients, pick(rng, "f m", 110), strict=True))
    birth = dict(zip(patients, whole(rng, 1935, 2010, 110), strict=True))
    rows = pick(rng, patients, n)
    return {
        "doctor_id": pick(rng, distinct(rng, 100, 999, 20), n),
        "patient_id": rows,
        "visit_date": sorted(dates(rng, "2023-01-01", 200, n)),
        "patient_sex": of(rows, sex),
        "patient_birth_year": of(rows, birth),
        "icd_code": pick(rng, ["J06.9", "F41.1", "M54.5", "E11.9", "N39.0", "B20"], n),
    }


@case(
    "teachers_students.csv",
    person="student",
    may_ask=True,
    traits="teacher and student | two candidates | several rows a person | exam grades",
    columns="""
        teacher = identifier | drop | quasi, code
        student = person, code
        course = quasi | carried, category
        term = time | quasi, time | category
        mark = sensitive, numeric
    """,
    reason="Marks are the students'; the teacher is a second person and is not published exactly.",
)
def teachers_students(rng):
    n = 260
    students = distinct(rng, 3000, 9999, 65)
    return {
        "teacher": [f"T{number:02d}" for number in whole(rng, 1, 25, n)],
        "student": [f"S{number}" for number in pick(rng, students, n)],
        "course": pick(rng, "algebra biology latin chemistry", n),
        "term": pick(rng, "2021-1 2021-2 2022-1 2022-2", n),
        "mark": whole(rng, 1, 15, n),
    }


@case(
    "sales_between.csv",
    person="buyer | ask",
    may_ask=True,
    traits="buyer and seller | two candidates | several rows a person | names",
    method="z-anonymity | tuples | k^m",
    columns="""
        sold_at = time | quasi | drop, time
        seller = identifier | drop | quasi, text
        buyer = person, text
        category = value | quasi | items, category
        price = quasi | sensitive | drop, numeric
    """,
    reason="Buyer and seller are both people: what was bought tells more of the buyer, but a question is right.",
)
def sales_between(rng):
    n = 240
    people = [name.lower().replace(" ", "_") for name in full_names(rng, 90)]
    sellers = pick(rng, people[:40], n)
    return {
        "sold_at": written(moments(rng, "2023-05-01", 3_000_000, n)),
        "seller": sellers,
        "buyer": others(rng, sellers, people[30:]),
        "category": pick(rng, "books toys garden medicine music", n),
        "price": skewed(rng, 18, n, digits=2),
    }


@case(
    "trips.csv",
    person="driver_id",
    may_ask=True,
    traits="vehicles with drivers | two candidates | several rows a person | events",
    method="tuples | z-anonymity",
    columns="""
        vehicle = identifier | drop, code
        licence_plate = identifier, text
        driver_id = person, code
        start_time = time, time
        zone = value | quasi, code
        km = quasi | drop, numeric
        speeding = sensitive | quasi, boolean | category
    """,
    reason="The driver is the person; vehicle and plate lead to one and are not published.",
)
def trips(rng):
    n = 250
    plates = {number: f"K-{number % 90 + 10} AB {number}" for number in distinct(rng, 100, 999, 25)}
    vehicles = pick(rng, plates, n)
    return {
        "vehicle": [f"V{number}" for number in vehicles],
        "licence_plate": of(vehicles, plates),
        "driver_id": pick(rng, distinct(rng, 40_000, 49_999, 45), n),
        "start_time": written(moments(rng, "2023-09-01", 900_000, n), "%Y-%m-%d %H:%M:%S"),
        "zone": whole(rng, 1, 30, n),
        "km": skewed(rng, 9, n, digits=1),
        "speeding": pick(rng, "false true", n, [9, 1]),
    }


@case(
    "calls.csv",
    person="caller | ask",
    may_ask=True,
    traits="phone calls | two candidates | several rows a person | events",
    method="z-anonymity | tuples",
    columns="""
        caller = person, code | text
        callee = identifier | drop, code | text
        start = time, time
        duration_s = drop | quasi | sensitive, numeric
        cell = value | quasi, code
    """,
    reason="The cell is the caller's; the called number is somebody else's and never published. A question is right.",
)
def calls(rng):
    n = 300
    numbers = [f"+49151{number}" for number in distinct(rng, 1_000_000, 9_999_999, 80)]
    callers = pick(rng, numbers[:50], n)
    return {
        "caller": callers,
        "callee": others(rng, callers, numbers[20:]),
        "start": written(moments(rng, "2024-01-08", 500_000, n), "%Y-%m-%d %H:%M:%S"),
        "duration_s": skewed(rng, 90, n),
        "cell": pick(rng, [f"262-01-{number}" for number in distinct(rng, 1000, 9999, 25)], n),
    }


@case(
    "friends.csv",
    person="ask",
    traits="two candidates | several rows a person",
    method="tuples | k^m | z-anonymity | none",
    columns="""
        from = person | identifier, code
        to = person | identifier | items | value, code
        since = quasi | time | drop, time
    """,
    reason="An edge of a friendship graph belongs to both; nothing in the file prefers one of them.",
)
def friends(rng):
    n = 220
    people = distinct(rng, 100, 999, 70)
    ones = pick(rng, people, n)
    return {
        "from": ones,
        "to": others(rng, ones, people),
        "since": dates(rng, "2012-01-01", 3600, n),
    }
