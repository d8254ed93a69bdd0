"""Domains and hierarchies of the papers' data sets.

Adult: ranges and sizes of trees as in Table 6 of the K-VARP paper (26, 11, 13, 62, 15, 7, 6 and 3 nodes). PM2.5: ranges
as in its Table 7, which are exactly those of the rows without a missing value. Its tree of seasons has 8 nodes on three
levels, as here. The paper gives its tree of wind directions 5 nodes on two levels: a root and four directions. But
the largest value of its first post is in a row with calm wind, so calm rows were used; every value is a leaf here, so
calm is a fifth leaf and the tree has 6 nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Nested = Mapping[str, Any]
Domain = tuple[float, float]

ADULT_DOMAINS: Final[Mapping[str, Domain]] = {
    "age": (17, 90),
    "fnlwgt": (13_769, 1_484_705),
    "education-num": (1, 16),
    "capital-gain": (0, 99_999),
    "capital-loss": (0, 4_356),
    "hours-per-week": (1, 99),
}

_NO_COLLEGE: Final = {
    "Preschool": None,
    "Primary": ["1st-4th", "5th-6th", "7th-8th"],
    "High-school": {"Lower": ["9th", "10th"], "Upper": ["11th", "12th", "HS-grad"]},
}
_COLLEGE: Final = {
    "Some-college": None,
    "Two-years": ["Assoc-acdm", "Assoc-voc"],
    "Four-years": {"Bachelors": None, "Prof-school": None, "Graduate": ["Masters", "Doctorate"]},
}
_AMERICAS: Final = {
    "Northern America": ["United-States", "Canada", "Outlying-US(Guam-USVI-etc)"],
    "Mexico and Guatemala": ["Mexico", "Guatemala"],
    "Rest of Central America": ["Honduras", "El-Salvador", "Nicaragua"],
    "Spanish Caribbean": ["Cuba", "Dominican-Republic", "Puerto-Rico"],
    "Other Caribbean": ["Haiti", "Jamaica", "Trinadad&Tobago"],
    "Southern America": ["Columbia", "Ecuador", "Peru"],
}
_EUROPE: Final = {
    "Britain and Ireland": ["England", "Scotland", "Ireland"],
    "Western Europe": ["France", "Germany", "Holand-Netherlands"],
    "Southern Europe": ["Italy", "Portugal", "Greece"],
    "Eastern Europe": ["Poland", "Hungary", "Yugoslavia"],
}
_ASIA: Final = {
    "China and Japan": ["China", "Japan"],
    "Hong Kong and Taiwan": ["Hong", "Taiwan"],
    "Mainland South-East": ["Cambodia", "Laos", "Vietnam", "Thailand"],
    "Islands": ["Philippines"],
    "Indian subcontinent": ["India"],
    "Western Asia": ["Iran"],
}

ADULT_TREES: Final[Mapping[str, Nested]] = {
    "education": {"Any education": {"No college": _NO_COLLEGE, "College": _COLLEGE}},
    "marital-status": {
        "Any status": {
            "Never-married": None,
            "Has been married": {
                "Is married": ["Married-civ-spouse", "Married-AF-spouse", "Married-spouse-absent"],
                "Was married": ["Divorced", "Separated", "Widowed"],
            },
        }
    },
    "workclass": {
        "Any class": {
            "Never-worked": None,
            "Works": {
                "Without-pay": None,
                "For pay": {
                    "Private": None,
                    "Own business": ["Self-emp-inc", "Self-emp-not-inc"],
                    "For the state": ["Federal-gov", "Local-gov", "State-gov"],
                },
            },
        }
    },
    "native-country": {
        "Any country": {"Americas": _AMERICAS, "Europe": _EUROPE, "Asia": _ASIA, "Elsewhere": ["South"]}
    },
    "occupation": {
        "Any occupation": [
            "Adm-clerical", "Armed-Forces", "Craft-repair", "Exec-managerial", "Farming-fishing", "Handlers-cleaners",
            "Machine-op-inspct", "Other-service", "Priv-house-serv", "Prof-specialty", "Protective-serv", "Sales",
            "Tech-support", "Transport-moving",
        ]
    },
    "relationship": {
        "Any relationship": ["Husband", "Not-in-family", "Other-relative", "Own-child", "Unmarried", "Wife"]
    },
    "race": {"Any race": ["Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White"]},
    "sex": {"Any sex": ["Female", "Male"]},
}  # fmt: skip

PM25_DOMAINS: Final[Mapping[str, Domain]] = {
    "first-post": (1, 1528),
    "second-post": (1, 940),
    "third-post": (1, 968),
    "dew-point": (-40, 28),
    "temperature": (-25, 41),
    "humidity": (2, 100),
    "pressure": (975, 1042),
    "wind-speed": (0, 608),
    "h-precipitation": (0, 61.6),
    "c-precipitation": (0, 226.4),
}

PM25_TREES: Final[Mapping[str, Nested]] = {
    "season": {"Any season": {"Mild": ["Spring", "Autumn"], "Hot": ["Summer"], "Cold": ["Winter"]}},
    "wind-direction": {"Any wind": ["NE", "NW", "SE", "SW", "cv"]},
}
