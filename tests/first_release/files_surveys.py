"""Surveys, exams, offences, and columns of codes: what is sensitive, and what is no quantity."""

from __future__ import annotations

from tests.first_release.cases import case
from tests.first_release.samples import ages, dates, distinct, each, holes, of, pick, skewed, whole


@case(
    "attitudes_wide.csv",
    person="caseid",
    traits="wide survey | Likert items | sentinels",
    missing={f"q{number}": ("9",) for number in range(1, 41)} | {"age": ("999",)},
    columns="caseid = person, code\nage = quasi, numeric\nsex = quasi, category | code\n"
    + "\n".join(f"q{number} = sensitive | quasi | carried | drop, category | numeric" for number in range(1, 41)),
    reason="Forty answers from 1 to 5 with 9 for none: opinions, too many to be quasi-identifiers all at once.",
)
def attitudes_wide(rng):
    n = 220
    answers = {f"q{number}": holes(rng, whole(rng, 1, 5, n), 0.05, 9) for number in range(1, 41)}
    return {
        "caseid": distinct(rng, 100_000, 900_000, n),
        "age": holes(rng, ages(rng, n), 0.04, 999),
        "sex": whole(rng, 1, 2, n),
        **answers,
    }


@case(
    "values_survey.csv",
    person="idno",
    traits="religion and politics | codes | country codes",
    columns="""
        idno = person, code
        cntry = quasi, code | category
        yrbrn = quasi, numeric | time
        gndr = quasi, category | code
        rlgdnm = sensitive, category | code
        lrscale = sensitive, numeric | category
        prtvt = sensitive, category | code
        hinctnt = sensitive, numeric | category
        sexorient = sensitive, category | code
    """,
    reason="Names as in European surveys: idno is the respondent; denomination, left-right and vote are sensitive.",
)
def values_survey(rng):
    n = 320
    return {
        "idno": distinct(rng, 10_000, 99_999, n),
        "cntry": pick(rng, "DE FR PL SE PT", n),
        "yrbrn": whole(rng, 1932, 2004, n),
        "gndr": whole(rng, 1, 2, n),
        "rlgdnm": pick(rng, [1, 2, 3, 5, 6, 66], n, [6, 5, 2, 1, 2, 9]),
        "lrscale": whole(rng, 0, 10, n),
        "prtvt": whole(rng, 1, 8, n),
        "hinctnt": whole(rng, 1, 10, n),
        "sexorient": pick(rng, [1, 2, 3], n, [18, 1, 1]),
    }


@case(
    "exam_grades.csv",
    person="row",
    separator=";",
    traits="exam grades | semicolon | flags",
    columns="""
        school = quasi, category
        sex = quasi, category
        age = quasi, numeric
        address = quasi | carried, category
        Mjob = quasi, category
        failures = sensitive | quasi, numeric
        romantic = sensitive | quasi, boolean | category
        G1 = sensitive, numeric
        G2 = sensitive, numeric
        G3 = sensitive, numeric
    """,
    reason="One row a pupil without an id; the school has two values; grades are sensitive; address is only U or R.",
)
def exam_grades(rng):
    n = 350
    first = whole(rng, 3, 19, n)
    return {
        "school": pick(rng, "GP MS", n, [8, 2]),
        "sex": pick(rng, "F M", n),
        "age": whole(rng, 15, 20, n),
        "address": pick(rng, "U R", n, [3, 1]),
        "Mjob": pick(rng, "teacher health services at_home other", n),
        "failures": pick(rng, [0, 1, 2, 3], n, [8, 1, 1, 1]),
        "romantic": pick(rng, "no yes", n),
        "G1": first,
        "G2": [min(20, grade + step) for grade, step in zip(first, whole(rng, 0, 2, n), strict=True)],
        "G3": [min(20, grade + step) for grade, step in zip(first, whole(rng, 0, 3, n), strict=True)],
    }


@case(
    "exam_subjects.csv",
    person="student_id",
    traits="several rows a person | handful of values as person | exam grades",
    columns="""
        student_id = person, code
        subject = quasi | value | carried, category
        gender = quasi, category
        birth_year = quasi, numeric | time
        grade = sensitive, category | numeric
    """,
    reason="subject is maths or physics here, not a participant: the student repeats in five rows.",
)
def exam_subjects(rng):
    students = distinct(rng, 100, 999, 50)
    gender = dict(zip(students, pick(rng, "f m", 50), strict=True))
    birth = dict(zip(students, whole(rng, 2004, 2008, 50), strict=True))
    rows = each(students, 5)
    return {
        "student_id": rows,
        "subject": ["maths", "physics", "english", "history", "art"] * 50,
        "gender": of(rows, gender),
        "birth_year": of(rows, birth),
        "grade": pick(rng, "A B C D E F", 250),
    }


@case(
    "offences.csv",
    person="defendant_no",
    traits="offences | several rows a person | codes",
    columns="""
        defendant_no = person, code
        age_at_arrest = quasi, numeric
        race = quasi | sensitive, category
        district = quasi, code | category
        arrest_date = time | quasi | drop, time
        offence = sensitive, category
        sentence_months = sensitive | quasi, numeric
        debts = sensitive, numeric
    """,
    reason="Some were arrested more than once; the offence is what nobody should learn; the district number is a code.",
)
def offences(rng):
    n = 260
    return {
        "defendant_no": pick(rng, distinct(rng, 5000, 9999, 150), n),
        "age_at_arrest": whole(rng, 18, 70, n),
        "race": pick(rng, "black white hispanic", n),
        "district": pick(rng, [101, 102, 103, 201, 202, 305], n),
        "arrest_date": sorted(dates(rng, "2019-01-01", 700, n)),
        "offence": pick(rng, "theft assault drugs fraud arson", n),
        "sentence_months": whole(rng, 0, 60, n),
        "debts": skewed(rng, 4000, n),
    }


@case(
    "codes.csv",
    person="person_ref",
    traits="ICD and ATC | postcodes | country codes | codes | several rows a person",
    columns="""
        person_ref = person, code
        year = time | quasi, time | numeric
        month = time | quasi | drop, time | category | numeric
        country = quasi, code | category
        postcode = quasi, code
        icd10 = sensitive, code
        atc = sensitive, code
        venue = quasi | drop, code
    """,
    reason="Postcodes, venues, countries, ICD and ATC are codes: no means, no ranges; prefixes make trees.",
)
def codes(rng):
    n = 300
    return {
        "person_ref": pick(rng, distinct(rng, 70_000, 99_999, 120), n),
        "year": whole(rng, 2018, 2022, n),
        "month": whole(rng, 1, 12, n),
        "country": pick(rng, [276, 40, 756], n, [8, 1, 1]),
        "postcode": pick(rng, [10115, 10117, 10243, 20095, 20099, 80331, 80333], n),
        "icd10": pick(rng, ["F32.1", "F33.0", "E11.9", "E10.1", "B20", "I10", "I21.4"], n),
        "atc": pick(rng, ["N06AB04", "N06AB10", "A10BA02", "A10AB01", "J05AR10", "C09AA05"], n),
        "venue": pick(rng, [1204, 1207, 1311, 2250], n),
    }


@case(
    "health_zip.csv",
    person="row",
    traits="postcodes | leading zeros",
    columns="""
        zip_code = quasi, code
        date_of_birth = quasi | identifier | drop, time
        ethnicity = quasi | sensitive, category
        blood_group = quasi | sensitive | carried, category
        hiv_status = sensitive, category
        annual_cost = sensitive | quasi, numeric
    """,
    reason="Leading zeros belong to the postcode; postcode and day of birth find people; HIV is sensitive.",
)
def health_zip(rng):
    n = 240
    return {
        "zip_code": pick(rng, ["02138", "02139", "02141", "01002", "01003"], n),
        "date_of_birth": dates(rng, "1940-01-01", 23_000, n, "%m/%d/%Y"),
        "ethnicity": pick(rng, "asian black white", n),
        "blood_group": pick(rng, ["A+", "B+", "0+", "AB-", "0-"], n),
        "hiv_status": pick(rng, "negative positive", n, [9, 1]),
        "annual_cost": skewed(rng, 3000, n, digits=2),
    }


@case(
    "expenditure.csv",
    person="hhid",
    traits="wages | households",
    columns="""
        hhid = person, code
        hhsize = quasi, numeric
        region = quasi, category
        age_head = quasi, numeric
        income = sensitive, numeric
        food = sensitive | quasi, numeric
        rent = sensitive | quasi, numeric
        weight = drop | carried | quasi, numeric
    """,
    reason="One row a household and no members: the household stands for its people.",
)
def expenditure(rng):
    n = 200
    return {
        "hhid": distinct(rng, 1_000_000, 9_999_999, n),
        "hhsize": whole(rng, 1, 7, n),
        "region": pick(rng, "urban rural", n),
        "age_head": ages(rng, n),
        "income": skewed(rng, 28_000, n),
        "food": skewed(rng, 5200, n),
        "rent": skewed(rng, 7000, n),
        "weight": [round(value, 4) for value in rng.uniform(0.4, 2.5, n).tolist()],
    }
