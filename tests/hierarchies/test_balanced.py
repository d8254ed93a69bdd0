"""Trees for values that come without one."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.errors import PolicyError
from shoal.hierarchies import Hierarchy
from tests.hierarchies.test_hierarchy import LABELS


def groups(hierarchy: Hierarchy) -> dict[str, list[str]]:
    below: dict[str, list[str]] = {}
    for node in range(1, len(hierarchy)):
        below.setdefault(hierarchy.labels[hierarchy.parents[node]], []).append(hierarchy.labels[node])
    return below


def test_numbers_are_sorted_as_numbers():
    hierarchy = Hierarchy.balanced([str(number) for number in range(1, 13)], fanout=4)
    assert groups(hierarchy) == {
        "*": ["1…4", "5…8", "9…12"],
        "1…4": ["1", "2", "3", "4"],
        "5…8": ["5", "6", "7", "8"],
        "9…12": ["10", "11", "12", "9"],
    }


def test_words_are_sorted_as_words():
    hierarchy = Hierarchy.balanced(["b", "10", "9", "a", "9"], fanout=2, root="all")
    assert groups(hierarchy) == {"all": ["10…9", "a…b"], "10…9": ["10", "9"], "a…b": ["a", "b"]}


def test_few_labels_lie_directly_under_the_root():
    assert groups(Hierarchy.balanced("abcde")) == {"*": list("abcde")}
    assert Hierarchy.balanced(["a"]).path("a") == ("a", "*")


def test_a_label_that_looks_like_a_range():
    hierarchy = Hierarchy.balanced(["a", "a…b", "b", "c", "d", "e"], fanout=3)
    assert groups(hierarchy) == {"*": ["a…b…", "c…e"], "a…b…": ["a", "a…b", "b"], "c…e": ["c", "d", "e"]}


@given(st.lists(LABELS, min_size=1, max_size=60), st.integers(2, 6))
@example([str(number) for number in range(26)], 5)
@example(["1", "01", "+1", "-3"], 2)
@example(["…", "……", "………"], 2)
def test_every_group_is_a_run_of_at_most_fanout(labels, fanout):
    root = "a root that no label is"
    hierarchy = Hierarchy.balanced(labels, fanout, root)
    leaves = {label for node, label in enumerate(hierarchy.labels) if node not in hierarchy.parents}
    assert leaves == set(labels)
    assert len(set(hierarchy.labels)) == len(hierarchy)
    below = groups(hierarchy)
    assert all(2 <= len(group) <= fanout for label, group in below.items() if label != root)
    assert len(below[root]) <= fanout
    levels, width = 1, len(leaves)
    while width > fanout:
        levels, width = levels + 1, -(-width // fanout)
    assert hierarchy.depths.max() == levels
    assert Hierarchy.balanced(reversed(labels), fanout, root) == hierarchy


@pytest.mark.parametrize(
    ("labels", "fanout", "root", "problem"),
    [
        ([], 5, "*", "at least one label"),
        (["a", " "], 5, "*", "every label must be text"),
        (["a", 3], 5, "*", "every label must be text"),
        (["a"], 1, "*", "fanout must be"),
        (["a"], 2.5, "*", "fanout must be"),
        (["a"], True, "*", "fanout must be"),
        (["a"], 5, "", "root must be text"),
        (["a", "*"], 5, "*", "a label equals the root"),
    ],
)
def test_what_it_refuses(labels, fanout, root, problem):
    with pytest.raises(PolicyError, match=problem):
        Hierarchy.balanced(labels, fanout, root)
