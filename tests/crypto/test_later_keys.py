"""A key file with several keys: which one counts when, and files that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.crypto.keys import LaterKey, Secret, moment, secret_from_file
from shoal.crypto.pseudonyms import Pseudonyms
from shoal.errors import VaultError

FIRST, SECOND, THIRD = (Secret(name * 16) for name in (b"a", b"b", b"c"))
SEVERAL = Secret(b"a" * 16, (LaterKey(25, SECOND), LaterKey(40, THIRD)))


def text_of(*lines: str) -> str:
    return "\n".join(["shoal-keys", "a" * 16, *lines]) + "\n"


def test_a_file_with_several_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(text_of("", f"2027-01-01T00:00:00Z {'b' * 16}", f"2027-06-01T02:00:00+02:00  {'c' * 16}"))
    found = secret_from_file(path)
    assert found.same_as(FIRST)
    assert [moment(one.start_ns) for one in found.later] == ["2027-01-01T00:00:00Z", "2027-06-01T00:00:00Z"]
    assert [one.secret.same_as(key) for one, key in zip(found.later, (SECOND, THIRD), strict=True)] == [True, True]
    assert found.mark == FIRST.mark
    assert list(found.later_marks.values()) == [SECOND.mark, THIRD.mark]
    assert "bbbb" not in f"{found!r} {found.later!r} {found.later_marks} {found.mark}"


@pytest.mark.parametrize("value", [b"one\nkey\nwith line ends in it", b"shoal-keys are not at the first line alone"])
def test_any_other_file_is_one_key(tmp_path: Path, value: bytes) -> None:
    path = tmp_path / "key"
    path.write_bytes(value + b"\n")
    assert secret_from_file(path).same_as(Secret(value))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("shoal-keys\n", "must be the first key, alone on its line"),
        (f"shoal-keys\n2027-01-01T00:00:00Z {'q' * 16}\n", "must be the first key, alone on its line"),
        (text_of("q" * 16), "line 3: write the time from which the key counts"),
        (text_of(f"soon {'q' * 16}"), "line 3: is not a time with its zone"),
        (text_of(f"2027-01-01T00:00:00 {'q' * 16}"), "line 3: is not a time with its zone"),
        (text_of("2027-01-01T00:00:00Z qqq"), "line 3: the key has fewer than 16 bytes"),
        (text_of(*[f"2027-01-01T00:00:00Z {'q' * 16}"] * 2), "times of the keys must grow"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "keys"
    path.write_text(text)
    with pytest.raises(VaultError, match=sentence) as raised:
        secret_from_file(path)
    assert "qqq" not in str(raised.value)


def test_pseudonyms_change_with_the_first_epoch_that_starts_at_the_time_or_later() -> None:
    """Epochs of 10: from 25 on means from 30 on, from 40 on means from 40 on."""
    several = Pseudonyms(SEVERAL, rotation_ns=10)
    alone = [Pseudonyms(key, rotation_ns=10) for key in (FIRST, SECOND, THIRD)]
    for time in range(-5, 60):
        expected = alone[(time >= 30) + (time >= 40)]
        assert several.name(b"ann", time) == expected.name(b"ann", time), time
