"""Synthetic people like those of UCI Adult: columns with similar distributions and dependencies.

The tables are rounded frequencies of the published data, in thousandths unless noted; they contain no row of it.
Dependencies: marital status on age and sex; relationship on marital status; race and education on country; education on
age; occupation on sex and education; class of work on occupation; hours on sex and age; capital gains and losses on age
and education. `education-num` is the rank of the education, as in Adult.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.reproduce.data.adult import adult_stream
from shoal.reproduce.data.streams import Stream

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SEXES: Final = ("Male", "Female")
SEX_SHARES: Final = (676, 324)
_AGE: Final = (  # quantiles by sex
    ((0, 17), (0.05, 20), (0.1, 23), (0.2, 27), (0.3, 31), (0.4, 34), (0.5, 38), (0.6, 42), (0.7, 46), (0.8, 50),
     (0.9, 57), (0.95, 62), (0.98, 68), (0.995, 76), (1, 91)),
    ((0, 17), (0.05, 19), (0.1, 21), (0.2, 24), (0.3, 27), (0.4, 31), (0.5, 35), (0.6, 39), (0.7, 44), (0.8, 49),
     (0.9, 56), (0.95, 62), (0.98, 68), (0.995, 76), (1, 91)),
)  # fmt: skip
_AGE_BANDS: Final = (25, 35, 45, 55, 65)

MARITAL: Final = (
    "Married-civ-spouse", "Never-married", "Divorced", "Separated", "Widowed", "Married-spouse-absent",
    "Married-AF-spouse",
)  # fmt: skip
_MARITAL_BY_SEX_AND_AGE: Final = (
    (126, 851, 10, 8, 0.4, 5, 0.4), (537, 368, 65, 20, 1, 8, 0.7), (714, 131, 117, 27, 2, 9, 0.4),
    (796, 59, 112, 13, 7, 13, 0.2), (823, 47, 89, 14, 19, 8, 0), (793, 60, 41, 9, 86, 11, 0),
    (43, 901, 26, 19, 1, 9, 2), (170, 553, 185, 61, 7, 22, 2), (215, 258, 390, 83, 31, 23, 1),
    (186, 150, 451, 85, 102, 26, 0), (165, 95, 376, 50, 296, 18, 0), (68, 109, 208, 25, 578, 12, 0),
)  # fmt: skip
RELATIONSHIP: Final = ("Husband", "Not-in-family", "Own-child", "Unmarried", "Wife", "Other-relative")
_RELATIONSHIP_BY_SEX_AND_MARITAL: Final = (
    (990, 1, 4, 0, 0, 6), (0, 471, 413, 52, 0, 64), (0, 694, 97, 184, 0, 25), (0, 644, 112, 186, 0, 58),
    (0, 546, 7, 404, 0, 43), (0, 635, 77, 182, 0, 105), (1000, 0, 0, 0, 0, 0),
    (1, 1, 23, 0, 943, 32), (0, 440, 392, 121, 0, 47), (0, 434, 57, 484, 0, 24), (0, 258, 85, 601, 0, 56),
    (0, 517, 16, 417, 0, 50), (0, 349, 153, 460, 0, 37), (0, 0, 83, 0, 833, 83),
)  # fmt: skip
_RELATIONSHIP_OF_NEVER_MARRIED: Final = ((0, 266, 628, 44, 0, 62), (0, 610, 230, 112, 0, 50))  # below 25; older

COUNTRIES: Final = {  # in ten thousandths, by the groups below
    "United-States": 9119,
    "Mexico": 202, "Puerto-Rico": 36, "El-Salvador": 33, "Cuba": 31, "Dominican-Republic": 22, "Guatemala": 21,
    "Columbia": 19, "Nicaragua": 11, "Peru": 10, "Ecuador": 9, "Honduras": 4,
    "Jamaica": 27, "Haiti": 14, "Trinadad&Tobago": 6, "Outlying-US(Guam-USVI-etc)": 5,
    "Philippines": 62, "India": 33, "South": 24, "China": 23, "Vietnam": 21, "Japan": 20, "Taiwan": 14, "Hong": 6,
    "Cambodia": 6, "Thailand": 6, "Laos": 6,
    "Germany": 42, "Canada": 35, "England": 29, "Italy": 23, "Poland": 19, "Iran": 14, "Portugal": 11, "Greece": 10,
    "France": 9, "Ireland": 8, "Yugoslavia": 5, "Hungary": 4, "Scotland": 4, "Holand-Netherlands": 0.3,
}  # fmt: skip
_COUNTRY_GROUPS: Final = np.repeat(np.arange(5), (1, 11, 4, 11, 14))
_UNITED_STATES, _LATIN, _CARIBBEAN, _ASIA, _EUROPE = range(5)
RACES: Final = ("White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other")
_RACE_BY_COUNTRY: Final = (
    (881, 96, 10, 10, 4), (874, 27, 3, 8, 88), (84, 883, 19, 0, 13), (68, 9, 908, 6, 9), (949, 22, 22, 2, 6),
)  # fmt: skip

EDUCATION: Final = (
    "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college",
    "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate",
)  # fmt: skip
_EDUCATION_BY_AGE: Final = (
    (1, 1, 5, 8, 14, 44, 90, 33, 308, 346, 26, 23, 94, 4, 0.5, 0.5),
    (0.5, 1, 4, 10, 11, 22, 26, 10, 341, 210, 53, 41, 207, 40, 14, 8),
    (0.5, 2, 4, 8, 11, 17, 20, 8, 324, 209, 53, 41, 193, 71, 25, 12),
    (1, 3, 8, 20, 13, 21, 24, 7, 328, 193, 44, 32, 168, 88, 24, 23),
    (1, 7, 12, 49, 26, 45, 27, 11, 348, 172, 30, 20, 134, 66, 24, 21),
    (3, 10, 14, 68, 25, 44, 34, 7, 324, 174, 30, 9, 134, 56, 31, 30),
)  # fmt: skip
_EDUCATION_OF_LATIN_AMERICA: Final = (18, 75, 140, 75, 65, 44, 46, 30, 240, 140, 20, 15, 70, 18, 10, 4)
_EDUCATION_OF_ASIA: Final = (8, 4, 16, 12, 10, 10, 25, 5, 175, 145, 25, 25, 310, 134, 56, 50)
_EDUCATION_BANDS: Final = (8, 9, 12, 13)  # ranks from 0: high school, some college, four years, beyond

OCCUPATIONS: Final = (
    "Prof-specialty", "Craft-repair", "Exec-managerial", "Adm-clerical", "Sales", "Other-service", "Machine-op-inspct",
    "Transport-moving", "Handlers-cleaners", "Farming-fishing", "Tech-support", "Protective-serv", "Priv-house-serv",
    "Armed-Forces",
)  # fmt: skip
_OCCUPATION_BY_SEX_AND_EDUCATION: Final = (
    (13, 241, 29, 25, 60, 148, 120, 126, 131, 91, 4, 10, 2, 0),
    (19, 268, 79, 58, 94, 80, 110, 114, 76, 56, 15, 29, 0, 1),
    (70, 204, 135, 84, 139, 75, 56, 57, 50, 38, 49, 44, 0, 0.3),
    (253, 58, 286, 66, 179, 27, 13, 15, 12, 21, 43, 24, 1, 0.3),
    (588, 14, 251, 25, 69, 5, 3, 7, 3, 8, 18, 9, 0, 1),
    (19, 29, 25, 97, 167, 382, 152, 9, 34, 15, 8, 5, 58, 0),
    (32, 32, 85, 309, 134, 229, 87, 16, 29, 7, 19, 7, 15, 0),
    (100, 20, 119, 342, 136, 158, 26, 8, 10, 7, 57, 10, 6, 0),
    (375, 9, 214, 173, 106, 49, 9, 1, 3, 2, 47, 9, 3, 0),
    (688, 4, 185, 47, 38, 19, 4, 0, 0, 0, 13, 0, 0, 0),
)  # fmt: skip
WORKCLASSES: Final = (
    "Private", "Self-emp-not-inc", "Local-gov", "State-gov", "Self-emp-inc", "Federal-gov", "Without-pay",
)  # fmt: skip
_WORKCLASS_BY_OCCUPATION: Final = (
    (558, 90, 171, 100, 39, 41, 0), (781, 130, 35, 14, 25, 16, 0.2), (663, 96, 53, 47, 96, 45, 0),
    (751, 13, 76, 67, 8, 85, 1), (808, 105, 2, 3, 78, 4, 0), (830, 54, 59, 38, 8, 11, 0.3), (957, 18, 6, 7, 5, 7, 0.5),
    (793, 75, 73, 26, 17, 15, 0.6), (930, 11, 34, 7, 1, 16, 0.7), (455, 435, 29, 15, 52, 8, 6),
    (793, 29, 42, 61, 3, 72, 0), (289, 9, 472, 180, 8, 42, 0), (1000, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 1000, 0),
)  # fmt: skip

_HOURS: Final = (
    40, 8, 10, 12, 15, 16, 20, 24, 25, 30, 32, 35, 36, 38, 42, 44, 45, 48, 50, 52, 55, 60, 65, 70, 75, 80, 90, 99,
)  # fmt: skip
_HOURS_BY_GROUP: Final = (  # men and women from 25 to 64, people below 25, people from 65
    (492, 2, 3, 2, 4, 3, 13, 4, 9, 19, 6, 28, 6, 14, 10, 11, 80, 24, 130, 8, 34, 72, 13, 15, 5, 7, 3, 3),
    (515, 5, 7, 5, 12, 8, 32, 12, 23, 40, 18, 68, 18, 38, 9, 9, 51, 15, 59, 6, 15, 26, 5, 6, 2, 3, 1, 2),
    (378, 12, 28, 19, 46, 21, 118, 18, 64, 90, 14, 62, 9, 12, 6, 5, 27, 11, 42, 3, 10, 17, 4, 3, 1, 2, 1, 1),
    (281, 30, 52, 26, 38, 38, 138, 36, 42, 58, 12, 55, 8, 8, 2, 5, 27, 8, 58, 2, 21, 18, 4, 8, 5, 3, 1, 7),
)  # fmt: skip
_GAIN_BY_AGE: Final = (0.3, 0.75, 1.2, 1.3, 1.25, 2.2)  # factor on the share by education
_GAIN_BY_EDUCATION: Final = (0.047, 0.062, 0.071, 0.112, 0.165)
_LOSS_BY_AGE: Final = (0.5, 0.9, 1.15, 1.25, 1.15, 1.3)
_LOSS_BY_EDUCATION: Final = (0.033, 0.044, 0.048, 0.073, 0.11)
_GAINS: Final = {  # frequent amounts, per thousand gains
    15024: 133, 7688: 106, 7298: 95, 99999: 58, 3103: 38, 5178: 37, 5013: 30, 4386: 30, 3325: 25, 8614: 24, 2174: 25,
    10520: 20, 4064: 23, 4650: 22, 14084: 18, 3137: 20, 20051: 13, 27828: 13, 3908: 20, 2829: 20, 594: 18, 14344: 11,
    6849: 16, 13550: 11, 2885: 18, 4787: 15, 1055: 16, 3411: 18, 2176: 17, 2597: 17, 9386: 12, 6497: 13, 1506: 12,
    25236: 6, 114: 5, 34095: 2,
}  # fmt: skip
_LOSSES: Final = {
    1902: 136, 1977: 114, 1887: 109, 1848: 36, 1485: 35, 2415: 33, 1740: 35, 1876: 33, 1590: 33, 1672: 31, 1602: 31,
    2258: 22, 1564: 26, 1980: 21, 1741: 22, 1669: 22, 2051: 21, 2001: 21, 1719: 22, 2002: 21, 1579: 22, 1408: 22,
    1974: 18, 2377: 17, 1340: 14, 1258: 10, 625: 14, 880: 9, 213: 9, 2824: 9, 3770: 4, 4356: 3,
}  # fmt: skip
_WEIGHT: Final = (  # quantiles of fnlwgt
    (0, 13769), (0.01, 27200), (0.05, 39500), (0.1, 65800), (0.25, 117600), (0.5, 178400), (0.75, 237600),
    (0.9, 329000), (0.95, 379700), (0.99, 511000), (0.999, 760000), (1, 1484705),
)  # fmt: skip


def imitate_adult(rows: int, *, seed: int) -> Stream:
    """Return synthetic people in the columns of Adult."""
    random = np.random.default_rng(seed)
    sex = draw(random, rows, SEX_SHARES)
    age = np.where(sex == 0, *(draw_between(random, rows, quantiles) for quantiles in _AGE)).astype(np.int64)
    age = np.minimum(age, 90)
    band = np.digitize(age, _AGE_BANDS)
    country = draw(random, rows, tuple(COUNTRIES.values()))
    group = _COUNTRY_GROUPS[country]
    education = _draw_education(random, band, group)
    schooling = np.digitize(education, _EDUCATION_BANDS)
    marital = draw_given(random, sex * len(_GAIN_BY_AGE) + band, _MARITAL_BY_SEX_AND_AGE)
    occupation = draw_given(random, sex * 5 + schooling, _OCCUPATION_BY_SEX_AND_EDUCATION)
    gain, loss = _draw_capital(random, band, schooling)
    columns = {
        "age": pa.array(age),
        "workclass": _named(WORKCLASSES, draw_given(random, occupation, _WORKCLASS_BY_OCCUPATION)),
        "fnlwgt": pa.array(draw_between(random, rows, _WEIGHT).astype(np.int64)),
        "education": _named(EDUCATION, education),
        "education-num": pa.array(education + 1),
        "marital-status": _named(MARITAL, marital),
        "occupation": _named(OCCUPATIONS, occupation),
        "relationship": _named(RELATIONSHIP, _draw_relationship(random, sex, band, marital)),
        "race": _named(RACES, draw_given(random, group, _RACE_BY_COUNTRY)),
        "sex": _named(SEXES, sex),
        "capital-gain": pa.array(gain),
        "capital-loss": pa.array(loss),
        "hours-per-week": pa.array(_draw_hours(random, sex, band)),
        "native-country": _named(tuple(COUNTRIES), country),
    }
    return adult_stream(columns, origin=f"an imitation of Adult with seed {seed}, made by shoal")


def _named(names: tuple[str, ...], codes: Ints) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(names)).cast(pa.string())


def _draw_education(random: np.random.Generator, band: Ints, group: Ints) -> Ints:
    by_age, latin, asian = band, len(_EDUCATION_BY_AGE), len(_EDUCATION_BY_AGE) + 1
    given = np.where(group == _LATIN, latin, np.where(group == _ASIA, asian, by_age))
    return draw_given(random, given, (*_EDUCATION_BY_AGE, _EDUCATION_OF_LATIN_AMERICA, _EDUCATION_OF_ASIA))


def _draw_relationship(random: np.random.Generator, sex: Ints, band: Ints, marital: Ints) -> Ints:
    by_marital = draw_given(random, sex * len(MARITAL) + marital, _RELATIONSHIP_BY_SEX_AND_MARITAL)
    by_age = draw_given(random, np.minimum(band, 1), _RELATIONSHIP_OF_NEVER_MARRIED)
    return np.where(marital == MARITAL.index("Never-married"), by_age, by_marital)


def _draw_hours(random: np.random.Generator, sex: Ints, band: Ints) -> Ints:
    group = np.where(band == 0, 2, np.where(band == len(_AGE_BANDS), 3, sex))
    return np.asarray(_HOURS)[draw_given(random, group, _HOURS_BY_GROUP)]


def _draw_capital(random: np.random.Generator, band: Ints, schooling: Ints) -> tuple[Ints, Ints]:
    """Draw gains and losses: few people have a gain, fewer a loss, no one both."""
    rows = len(band)
    has_gain = random.random(rows) < np.asarray(_GAIN_BY_AGE)[band] * np.asarray(_GAIN_BY_EDUCATION)[schooling]
    has_loss = random.random(rows) < np.asarray(_LOSS_BY_AGE)[band] * np.asarray(_LOSS_BY_EDUCATION)[schooling]
    gain = np.asarray(list(_GAINS))[draw(random, rows, tuple(_GAINS.values()))]
    loss = np.asarray(list(_LOSSES))[draw(random, rows, tuple(_LOSSES.values()))]
    return np.where(has_gain, gain, 0), np.where(has_loss & ~has_gain, loss, 0)


def draw_given(random: np.random.Generator, given: Ints, shares: Sequence[Sequence[float]]) -> Ints:
    """Draw one choice per entry of `given`, with the weights of the row it names; weights need no fixed sum."""
    table = np.asarray(shares, dtype=np.float64)
    edges = np.cumsum(table, axis=1) / table.sum(axis=1, keepdims=True)
    lots = random.random(len(given))
    chosen = np.zeros(len(given), dtype=np.int64)
    for edge in edges.T[:-1]:
        chosen += lots >= edge[given]
    return chosen


def draw(random: np.random.Generator, rows: int, shares: Sequence[float]) -> Ints:
    """Draw choices with one row of weights."""
    return draw_given(random, np.zeros(rows, dtype=np.int64), [shares])


def draw_between(random: np.random.Generator, rows: int, quantiles: Sequence[tuple[float, float]]) -> Floats:
    """Draw numbers from a distribution given by its quantiles, pairs of share and value, interpolated linearly."""
    at, values = zip(*quantiles, strict=True)
    return np.asarray(np.interp(random.random(rows), at, values))
