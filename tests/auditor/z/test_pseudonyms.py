"""Pseudonyms that anyone could compute, or that have a pattern, are convicted; honest ones are not."""

from __future__ import annotations

import hashlib
import hmac
import random
from datetime import UTC, datetime
from math import comb

import numpy as np
import pyarrow as pa
import pytest

from shoal.auditor import audit
from shoal.auditor.z.patterns import (
    _log_tail,
    digits_of,
    is_alike,
    kept_places,
    shared_parts,
    steps,
    uneven_places,
)
from tests.auditor.z.naive import HOUR, policy, table, trace_table

PEOPLE, EPOCHS = 12, 3


def iso(epoch, spelling="%Y-%m-%dT%H:%M:%SZ"):
    return datetime.fromtimestamp(epoch * HOUR, UTC).strftime(spelling)


def md5(text):
    return hashlib.md5(text.encode()).hexdigest()


RECIPES = {
    "md5 person|epoch": lambda who, epoch: md5(f"{who}|{epoch}"),
    "md5 epoch:person": lambda who, epoch: md5(f"{epoch}:{who}"),
    "md5 start in s": lambda who, epoch: md5(f"{who}{epoch * HOUR}"),
    "sha1 start in ms": lambda who, epoch: hashlib.sha1(f"{who}-{epoch * HOUR * 1000}".encode()).hexdigest()[:32],
    "sha256 start in ns": lambda who, epoch: hashlib.sha256(f"{who}_{epoch * HOUR * 10**9}".encode()).hexdigest()[:32],
    "sha512 ISO": lambda who, epoch: hashlib.sha512(f"{iso(epoch)}/{who}".encode()).hexdigest()[:32],
    "blake2b date and hour": lambda who, epoch: hashlib.blake2b(
        f"{who} {iso(epoch, '%Y-%m-%dT%H')}".encode(), digest_size=16
    ).hexdigest(),
    "blake2s": lambda who, epoch: hashlib.blake2s(f"{who},{epoch}".encode()).hexdigest()[:32],
    "hmac with the epoch": lambda who, epoch: hmac.new(str(epoch).encode(), who.encode(), "sha256").hexdigest()[:32],
    "epochs from 0": lambda who, epoch: md5(f"{who}|{epoch - 500_000}"),
}


def release_of(pseudonym, *, people=PEOPLE, epochs=EPOCHS):
    """Everybody shows one site in every epoch; all rows may be released."""
    truth, release, trace = [], [], []
    for epoch in range(500_000, 500_000 + epochs):
        for number in range(people):
            who, time = f"person {number}", epoch * HOUR + number
            truth.append({"ts": time, "user": who, "site": "a.example"})
            trace.append({"row": len(truth) - 1, "verdict": "released", "z": 1})
            release.append({"ts": time, "user": pseudonym(who, epoch), "site": "a.example"})
    return table(release), table(truth), trace_table(trace)


def codes(pseudonym, *, trace=True, **size):
    shown, truth, decided = release_of(pseudonym, **size)
    return {found.code for found in audit(shown, truth, decided if trace else None, policy(z=1)).violations}


@pytest.mark.parametrize("name", RECIPES)
def test_a_hash_with_the_epoch(name):
    assert codes(RECIPES[name]) == {"disguised-identifier"}
    assert codes(RECIPES[name], trace=False) == {"disguised-identifier"}


def honest(who, epoch):
    return hmac.new(b"a key of the run", f"{epoch}/{who}".encode(), "sha256").hexdigest()[:32]


def test_honest_ones_are_acquitted():
    assert codes(honest) == set()
    assert codes(honest, people=400, epochs=4) == set()


def counter(step, start=0):
    numbers: dict[tuple[str, int], int] = {}

    def made(who, epoch):
        place = numbers.setdefault((who, epoch), len(numbers))
        return f"{(start + place * step) % 2**128:032x}"

    return made


@pytest.mark.parametrize("step", [1, -1, 7, 2**100 + 12345, 0x9E3779B97F4A7C15F39CC0605CEDC835])
@pytest.mark.parametrize("size", [{"people": 3, "epochs": 1}, {}])
def test_a_counter(step, size):
    start = random.Random(1).getrandbits(128)
    assert "weak-pseudonym" in codes(counter(step, start), **size)
    assert "weak-pseudonym" in codes(counter(step, start), trace=False, **size)


def test_a_part_that_stays_over_epochs():
    def kept(who, epoch):
        return honest(who, 0)[:24] + honest(who, epoch)[:8]

    assert {"pseudonym-across-epochs", "weak-pseudonym"} <= codes(kept)
    assert "weak-pseudonym" in codes(kept, trace=False)


@pytest.mark.parametrize("places", [4, 8, 20])
def test_digits_that_stay_wherever_they_are(places):
    where = random.Random(places).sample(range(32), places)

    def kept(who, epoch):
        first, own = honest(who, 0), honest(who, epoch)
        return "".join(first[at] if at in where else own[at] for at in range(32))

    assert "pseudonym-across-epochs" in codes(kept, people=40)


def test_a_constant_digit():
    assert "weak-pseudonym" in codes(lambda who, epoch: honest(who, epoch)[:12] + "4" + honest(who, epoch)[13:])


def test_digits_that_are_decimal():
    made = random.Random(3)
    texts = ["".join(made.choice("0123456789") for _ in range(32)) for _ in range(1000)]
    assert uneven_places(digits_of(texts)) == 32


@pytest.mark.parametrize("seed", range(20))
def test_patterns_are_not_seen_in_random_digits(seed):
    made = random.Random(seed)
    texts = [f"{made.getrandbits(128):032x}" for _ in range(made.choice([1, 2, 3, 10, 100, 5000]))]
    others = [f"{made.getrandbits(128):032x}" for _ in texts]
    same = (digits_of(texts) == digits_of(others)).sum(axis=0)
    assert uneven_places(digits_of(texts)) == shared_parts(texts) == steps(texts) == 0
    assert kept_places(same, len(texts)) == 0
    assert not is_alike(same, len(texts))


def test_nothing_has_no_pattern():
    nothing = digits_of([])
    same = np.zeros(32, np.int64)
    assert uneven_places(nothing) == kept_places(same, 0) == shared_parts([]) == steps([]) == 0
    assert not is_alike(same, 0)
    assert nothing.shape == (0, 32)


def test_the_bound_on_a_false_alarm_is_one():
    for count in (10, 400):
        times = np.arange(count // 16 + 1, count + 1)
        exact = [binomial_tail(count, least, 1 / 16) for least in times.tolist()]
        assert (np.exp(_log_tail(times, count, 1 / 16)) >= np.array(exact) * (1 - 1e-9)).all()


def binomial_tail(count, least, chance):
    return sum(comb(count, at) * chance**at * (1 - chance) ** (count - at) for at in range(least, count + 1))


def test_other_people_than_those_released():
    truth = pa.table(
        {"ts": pa.array([], pa.int64()), "user": pa.array([], pa.string()), "site": pa.array([], pa.string())}
    )
    shown, _, _ = release_of(honest)
    assert "not-in-truth" in {found.code for found in audit(shown, truth, policy=policy(z=1)).violations}
