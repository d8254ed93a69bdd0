"""Domains as a policy may write them: (low, high, grid), and what they mean in seconds or numbers; None: refused."""

from __future__ import annotations

import tomllib

_DAY = 86_400.0
_APRIL = 1_333_238_400.0  # 2012-04-01

AS_WRITTEN = {
    # numbers
    ("0", "90", "5"): (0.0, 90.0, 5.0),
    ("-74.25", "-73.7", "0.01"): (-74.25, -73.7, 0.01),
    ("0", "1", "0.3333333333333333"): (0.0, 1.0, 1 / 3),
    ("0", "90", None): (0.0, 90.0, None),
    ("0.5", "0.5", None): None,
    ("5", "4", None): None,
    ("nan", "4", None): None,
    ("0", "inf", None): None,
    ("true", "90", None): None,
    ("0", "9007199254740992", None): None,
    ("-9007199254740991", "9007199254740991", None): (-9007199254740991.0, 9007199254740991.0, None),
    ('"17"', "90", None): None,
    ("[0]", "90", None): None,
    # days and moments, as TOML has them and as text
    ("2012-04-01", "2012-04-02", None): (_APRIL, _APRIL + _DAY, None),
    ("2012-04-01", "2012-04-02T00:00:00Z", '"1h"'): (_APRIL, _APRIL + _DAY, 3600.0),
    ("2012-04-01T00:00:00", "2012-04-02 00:00:00", '"1h30min"'): (_APRIL, _APRIL + _DAY, 5400.0),
    ("2012-04-01T02:00:00+02:00", "2012-04-01T22:00:00-02:00", "60"): (_APRIL, _APRIL + _DAY, 60.0),
    ("2012-04-01T00:00:00.250Z", "2012-04-02", '"250ms"'): (_APRIL + 0.25, _APRIL + _DAY, 0.25),
    ('"2012-04-01"', '"2012-04-02"', '"1d"'): (_APRIL, _APRIL + _DAY, _DAY),
    ('"2012-04-01T00:00:00Z"', '"2012-04-02 00:00"', '"0.5h"'): (_APRIL, _APRIL + _DAY, 1800.0),
    ('"20120401"', '"2012-04-02"', None): (_APRIL, _APRIL + _DAY, None),
    ('"2012-04-31"', '"2012-05-02"', None): None,
    ('"soon"', '"2012-05-02"', None): None,
    ("07:30:00", "08:30:00", None): None,
    ('"07:30"', '"08:30"', None): None,
    # grids
    ("0", "90", "0"): None,
    ("0", "90", "-5"): None,
    ("0", "90", "inf"): None,
    ("0", "90", "true"): None,
    ("0", "90", '"often"'): None,
    ("0", "90", '"0s"'): None,
    ("0", "90", "07:30:00"): None,
    ("0", "90", "2012-04-01"): None,
    ("0", "9007199254740991", "0.001"): None,
    ("97.25908989999999", "98", "0.01"): (97.25908989999999, 98.0, 0.01),
    ("1000000000000000", "1000000000000001", "0.001"): None,
}  # fmt: skip


def _parsed(texts):
    written = zip(("low", "high", "grid"), texts, strict=True)
    return {key: tomllib.loads(f"x = {text}")["x"] for key, text in written if text}


CASES = [(_parsed(texts), meant) for texts, meant in AS_WRITTEN.items()]
