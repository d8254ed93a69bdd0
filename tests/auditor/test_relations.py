"""Relations as they are sent, and checks as they are declared."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from shoal.auditor.checks import CHECKS, Answer, Found, all_found, check, look
from shoal.auditor.engine import Here
from shoal.auditor.findings import Severity
from shoal.auditor.reading.columns import Bools
from shoal.auditor.relation import Relation, Texts, has_shape, place_of

SHAPE = {"row": int, "name": str, "share": float, "is_odd": bool}


def relation() -> Relation:
    return Relation({
        "row": np.array([3, 4, -1], np.int64),
        "name": Texts(np.array([1, -1, 0], np.int64), ["b", "a"]),
        "share": np.array([0.5, np.nan, 2.0]),
        "is_odd": np.array([True, False, True]),
    })  # fmt: skip


def test_a_relation_is_sent_and_comes_back():
    sent = pa.Table.from_batches([relation().to_batch(SHAPE)])
    assert sent["name"].to_pylist() == ["a", None, "b"]
    back = Relation.from_table(sent, SHAPE)
    assert has_shape(back, SHAPE)
    assert [list(back["name"].texts)[code] if code >= 0 else None for code in back["name"].codes] == ["a", None, "b"]
    np.testing.assert_array_equal(back["share"], relation()["share"])


@pytest.mark.parametrize(
    "changed",
    [{"row": np.array([1, 2])}, {"name": np.zeros(3)}, {"is_odd": np.zeros(3, np.int64)}, {"more": np.ones(3)}],
)
def test_another_shape_is_refused(changed):
    with pytest.raises(TypeError):
        Here({}).each(relation(), lambda rows: rows.having(**changed), SHAPE)


def test_texts_that_become_equal_share_a_number():
    texts = Texts(np.array([0, 1, 2, -1]), ["1", "1.0", "x"]).mapped(["1", "1", None])
    assert texts.codes.tolist() == [0, 0, -1, -1]


def test_places_of_numbers():
    assert place_of(np.array([5, 7, 6]), np.array([6, 5, 5])).tolist() == [1, -1, 0]
    assert place_of(np.array([5]), np.zeros(0, np.int64)).tolist() == [-1]


def declared(code: str, function):
    made = check(code, "A sentence.", advice="Do it.", families=["z"], by="none")(function)
    del CHECKS[code, f"{function.__module__}.{function.__name__}"]
    return made


def test_a_check_marks_rows_counts_them_and_names_those_that_are_released():
    def odd(rows: Relation) -> Bools:
        return rows["is_odd"]

    (found,) = declared("odd", odd)(relation())
    assert (found.code, found.severity, found.count, found.rows) == ("odd", Severity.VIOLATION, 2, (3,))
    assert look(relation(), [declared("none", lambda _: 0)]) == []
    (other,) = declared("odd", lambda rows: Answer(rows["is_odd"], 7, "In other words."))(relation())
    assert (other.count, other.sentence) == (7, "In other words.")


def test_what_parts_found_adds_up():
    def odd(rows: Relation) -> Bools:
        return rows["is_odd"]

    one = declared("odd", odd)
    parts = [
        Found(one(relation().having(row=np.array([9, 4, 30]))), {"rows": 3}, {"k": 4}, {"share": None}),
        Found(one(relation()), {"rows": 3}, {"k": None}, {"share": 0.5}),
    ]
    whole = all_found(parts)
    assert [(found.count, found.rows) for found in whole.findings] == [(4, (3, 9, 30))]
    assert (whole.sums, whole.least, whole.most) == ({"rows": 6}, {"k": 4}, {"share": 0.5})


def test_a_pass_along_an_order():
    table = Relation({"at": np.array([3, 1, 2]), "row": np.array([0, 1, 2])})
    assert Here({}).along(table, ("at",), lambda parts: [part["row"].tolist() for part in parts]) == [[1, 2, 0]]
