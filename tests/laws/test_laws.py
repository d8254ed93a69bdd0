"""Every method, in every configuration, keeps every law."""

from __future__ import annotations

import pytest

from shoal.anonymizers.restoring import METHODS
from shoal.testing import driving, laws
from tests.laws.cases import CASES, PEOPLE, SITES
from tests.reference.effort import IS_COMPILED

SHORT = [case for case in CASES if case.name in ("z-drop", "z-closed", "z-suffix", "z-late", "z-late-table")]
every = pytest.mark.parametrize("case", CASES if IS_COMPILED else SHORT, ids=lambda case: case.name)


def test_every_method_has_cases():
    assert {case.method for case in CASES} == set(METHODS)


@every
def test_batching_is_invisible(case):
    laws.batching_is_invisible(case.make, case.stream)


@every
def test_everything_is_accounted_for(case):
    laws.everything_is_accounted_for(case.make, case.stream)


@every
def test_snapshots_are_invisible(case):
    laws.snapshots_are_invisible(case.make, case.stream)


@every
def test_refusals_change_nothing(case):
    laws.refusals_change_nothing(case.make, case.stream)


@pytest.mark.compiled
def test_the_output_is_the_same_in_another_process():
    cases = [(case.make, case.stream) for case in CASES]
    elsewhere = driving.digests_elsewhere(cases)
    here = [driving.digest(make, stream) for make, stream in cases]
    assert dict(zip((case.name for case in CASES), here, strict=True)) == dict(
        zip((case.name for case in CASES), elsewhere, strict=True)
    )


@pytest.mark.compiled
def test_is_same_in_another_process():
    laws.is_same_in_another_process(CASES[0].make, CASES[0].stream)


@every
def test_flush_leaves_nothing(case):
    laws.flush_leaves_nothing(case.make, case.stream)


@every
def test_delay_is_bounded(case):
    laws.delay_is_bounded(case.make, case.stream, time="ts")


@every
def test_held_is_bounded(case):
    laws.held_is_bounded(case.make, case.stream)


@pytest.mark.compiled
@pytest.mark.parametrize("case", [case for case in CASES if case.steady], ids=lambda case: case.name)
def test_memory_is_flat(case):
    laws.memory_is_flat(case.make, case.steady)


@every
def test_inputs_are_left_alone(case):
    laws.inputs_are_left_alone(case.make, case.stream)


@every
def test_output_is_as_promised(case):
    persons = {str(person) for person in case.stream["user"].to_pylist() if person}
    laws.output_is_as_promised(case.make, case.stream, persons=persons)


@every
def test_errors_tell_no_values(case):
    secrets = {str(value) for name in ("user", "site") for value in case.stream[name].to_pylist() if value}
    odd = [
        {"ts": "no time, said person-ann", "user": PEOPLE[0], "site": SITES[0]},
        {"ts": 1, "user": "person-\ud800-ann", "site": SITES[0]},
        {"ts": 1, "user": PEOPLE[0], "site": "a.news\ud800"},
        {"ts": 1, "user": 3 + 4j, "site": SITES[0]},
        {"ts": 1_770_009_000, "user": PEOPLE[0], "site": SITES[0], "device": Odd(PEOPLE[0])},
        {"ts": 1_770_009_000, "user": PEOPLE[0], "site": SITES[0], "device": PEOPLE[0] + "\ud800"},
        {},
    ]
    laws.errors_tell_no_values(case.make, case.stream, secrets=secrets | set(PEOPLE), odd=odd)


class Odd:
    """A value no column can hold, with a repr that tells."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


@every
def test_auditor_finds_nothing(case):
    laws.auditor_finds_nothing(case.make, case.stream, policy=case.policy)
