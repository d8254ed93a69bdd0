"""Check the pseudonyms that replace persons: are they random, and kept within their epoch?

Every test of patterns reports honest pseudonyms (independent and uniform over 32 hex digits) with a probability below
1e-10 for up to ten million of them.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import compress
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.auditor.checks import Answer, check
from shoal.auditor.counting import combined
from shoal.auditor.findings import Severity
from shoal.auditor.reading.columns import TEXT, Bools, Ints
from shoal.auditor.relation import Relation, Shape, Texts
from shoal.auditor.sorting import distinct, firsts, order_of
from shoal.auditor.z.promise import ZPromise

_LOOKED_AT: Final = 200_000
"""Patterns are looked for in this many pseudonyms, the first ones."""
_PSEUDONYM: Final = "^[0-9a-f]{32}$"
_NOT_PLAIN: Final = re.compile("[^0-9a-z]")
_PLAIN_HASHES: Final = (hashlib.md5, hashlib.sha1, hashlib.sha256, hashlib.sha512)

KNOWN_PAIRS: Final = 4
"""Pairs of a person and an epoch to try if their pseudonym is known: one is enough if all are hashed alike."""
OTHER_PAIRS: Final = 20
"""Pairs to try if released persons are not known."""
_SEPARATORS: Final = ("", "|", ":", "-", "_", "/", ",", ";", " ", ".", "#", "\n", "\x00", "::")
_ALGORITHMS: Final = (hashlib.md5, hashlib.sha1, hashlib.sha256, hashlib.sha512, hashlib.sha3_256, hashlib.blake2b,
                      hashlib.blake2s)  # fmt: skip
_LENGTH: Final = 32
_SPELLINGS: Final = ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S+00:00",
                     "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H", "%Y-%m-%d", "%Y%m%d", "%Y%m%d%H")  # fmt: skip
_START: Final = datetime(1970, 1, 1, tzinfo=UTC)
FORMS: Final[Shape] = {"pseudonym": str, "is_raw": bool}
of_pseudonyms = partial(check, families=("z",), by="value")
of_people = partial(check, families=("z",), by="person", needs=("truth",))
_NEW_KEY: Final = "People can be recognized: do not publish this release, run it again with a key that nobody else knows."
_ANOTHER: Final = "Replace the method that makes pseudonyms: it must be a keyed hash, with a new key in every epoch."


# ---- the form of pseudonyms


def disguises(people: Relation) -> Relation:
    """What anyone can compute from the identifiers of the truth: themselves, respelt, as hex, hashed without a key."""
    persons = people["person"]
    known = [persons.texts[code] for code in persons.codes.tolist()]
    others = [form for person in known for form in _disguises(person)]
    count = len(known) + len(others)
    return Relation({"pseudonym": Texts(np.arange(count), known + others), "is_raw": np.arange(count) < len(known)})


def _disguises(person: str) -> tuple[str, ...]:
    data, low = person.encode("utf-8", "surrogatepass"), person.lower()
    plain = low if low.isascii() and low.isalnum() else _NOT_PLAIN.sub("", low)
    hashed = [make(data, usedforsecurity=False).hexdigest()[:32] for make in _PLAIN_HASHES]
    return plain, data.hex()[:32], *hashed


def unmasked(forms: Relation, rows: Relation) -> Relation:
    """Mark released rows whose person is an identifier of the truth, or a form of one."""
    names, codes, is_raw = forms["pseudonym"].texts, forms.codes("pseudonym"), forms["is_raw"]
    for column, which in (("raw", is_raw), ("disguised", ~is_raw)):
        is_one = np.zeros(len(names), np.bool_)
        is_one[codes[which]] = True
        rows = rows.having(**{column: marked(rows["pseudonym"], compress(names, is_one.tolist()))})
    return rows


def marked(texts: Texts, known: Iterable[str]) -> Bools:
    """Mark the rows whose text is one of some texts."""
    wanted = known if isinstance(known, set | frozenset) else set(known)
    found = np.zeros(len(texts.texts) + 1, np.bool_)  # -1 picks the last
    found[:-1] = np.fromiter(map(wanted.__contains__, texts.texts), np.bool_, len(texts.texts))
    return found[texts.codes]


def is_well_formed(texts: Texts) -> Bools:
    """Mark the rows whose text is a pseudonym."""
    return np.append(_fits(texts.texts), False)[texts.codes]  # -1 picks the last


def _fits(texts: Sequence[str]) -> Bools:
    found = pc.match_substring_regex(pa.array(texts, TEXT), _PSEUDONYM)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


@of_pseudonyms("unreadable-row", "A released row cannot be read or has no time.",
               advice="What cannot be read cannot be checked: write the release again.")  # fmt: skip
def unreadable_row(rows: Relation, *_: Any) -> Bools:
    return ~rows["readable"]


@of_pseudonyms("identifier-in-column", "A column other than the person column contains an identifier of the truth.",
               needs=("truth",), severity=Severity.WARNING,
               advice="Whoever knows the identifier finds the person's rows: publish the release without the column.")  # fmt: skip
def identifier_in_column(rows: Relation) -> Bools:
    return rows["named"]


@of_pseudonyms("bad-pseudonym",
               "The person column contains something other than a pseudonym of 32 lowercase hex characters.",
               advice=_ANOTHER)  # fmt: skip
def bad_pseudonym(rows: Relation, *_: Any) -> Bools:
    return ~is_well_formed(rows["pseudonym"]) & rows["readable"]


@of_pseudonyms("raw-identifier", "A released row contains an identifier of the truth.", needs=("truth",), advice=_NEW_KEY)
def raw_identifier(rows: Relation, *_: Any) -> Bools:
    return rows["raw"]


@of_pseudonyms("disguised-identifier",
               "A released person is an identifier of the truth in another form: respelt, as hex, or hashed without a key.",
               needs=("truth",), advice=_NEW_KEY)  # fmt: skip
def disguised_identifier(rows: Relation, *_: Any) -> Bools:
    return rows["disguised"]


@of_pseudonyms("disguised-identifier", "A released person is an identifier of the truth hashed with its epoch, without a key.",
               needs=("truth",), advice=_NEW_KEY)  # fmt: skip
def hashed_with_epoch(rows: Relation, _: ZPromise, forms: frozenset[str]) -> Bools:
    return marked(rows["pseudonym"], forms)


@of_pseudonyms("empty-row", "A row was released although all its values are private.",
               advice="An empty row still shows that somebody was there: do not publish this release.")  # fmt: skip
def empty_row(rows: Relation, promise: ZPromise, *_: Any) -> Bools:
    if any(attribute.on_private == "blank" for attribute in promise.attributes):
        return np.zeros(len(rows), np.bool_)
    values = [rows.codes(f"released {attribute.name}") < 0 for attribute in promise.attributes]
    return np.logical_and.reduce(values) & rows["readable"]


@of_pseudonyms("pseudonym-across-epochs",
               "A pseudonym appears in more than one epoch, so that rows of different epochs can be linked.",
               advice=_ANOTHER)  # fmt: skip
def across_epochs(rows: Relation, *_: Any) -> Bools:
    code = rows.codes("pseudonym")
    return has_several(code, rows["shown epoch"], rows["readable"] & (code >= 0))


@of_pseudonyms("pseudonym-shared", "Two persons share one pseudonym in one epoch.", needs=("truth",), advice=_ANOTHER)
def pseudonym_shared(rows: Relation, *_: Any) -> Bools:
    known = is_linked(rows)
    key = combined([rows.codes("pseudonym")[known], _epochs(rows)[known]], int(known.sum()))
    return _among(known, has_several(key, rows.codes("person")[known], np.ones(len(key), np.bool_)))


@of_people("pseudonym-split", "One person has two pseudonyms in one epoch.",
           advice="The person is counted twice where people are counted by pseudonym: run it again. " + _ANOTHER)  # fmt: skip
def pseudonym_split(rows: Relation, *_: Any) -> Bools:
    known = is_linked(rows)
    key = combined([rows.codes("person")[known], _epochs(rows)[known]], int(known.sum()))
    return _among(known, has_several(key, rows.codes("pseudonym")[known], np.ones(len(key), np.bool_)))


def is_linked(rows: Relation) -> Bools:
    """Mark released rows that have a pseudonym and a usable record."""
    found: Bools = rows["readable"] & (rows.codes("pseudonym") >= 0) & (rows["record"] >= 0) & rows["usable"]
    return found


def _epochs(rows: Relation) -> Ints:
    epoch = rows["shown epoch"]
    return epoch - epoch.min(initial=0)


def _among(rows: Bools, found: Bools) -> Bools:
    marks = np.zeros(len(rows), np.bool_)
    marks[rows] = found
    return marks


def has_several(key: Ints, other: Ints, among: Bools) -> Bools:
    """Mark the rows whose key occurs with more than one value of ``other``; keys are numbers from 0."""
    found = np.zeros(len(key), np.bool_)
    own, values = key[among], other[among]
    lowest = np.full(int(own.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    highest = np.full(len(lowest), np.iinfo(np.int64).min)
    np.minimum.at(lowest, own, values)
    np.maximum.at(highest, own, values)
    found[among] = (lowest < highest)[own]
    return found


# ---- hashed with the epoch


def spread(count: int, wanted: int) -> Ints:
    """Places spread over a number of rows, the first and the last among them."""
    return np.unique(np.linspace(0, max(count - 1, 0), 4 * wanted).astype(np.int64))[:count]


def hashed_forms(pairs: Sequence[tuple[str, int]], count: int, rotation_ns: int, first: int) -> frozenset[str]:
    """Some of the people, each with an epoch, hashed together in the usual ways."""
    different = list(dict.fromkeys(pairs))
    found: set[str] = set()
    for person, epoch in different[:: max(len(different) // count, 1)][:count]:
        found.update(hashes(person, list(dict.fromkeys(epoch_spellings(epoch, rotation_ns, first)))))
    return frozenset(found)


def epoch_spellings(epoch: int, rotation_ns: int, first: int) -> Iterator[str]:
    """Yield the usual ways to write an epoch: its number, its start as a number or as a date."""
    start = epoch * rotation_ns
    yield from (str(epoch), str(epoch - first), str(epoch - first + 1), str(start))
    yield from (str(start // unit) for unit in (1_000, 1_000_000, 1_000_000_000))
    yield f"{start / 1e9}"
    try:
        moment = _START + timedelta(microseconds=start // 1_000)
    except OverflowError:
        return
    yield from (moment.strftime(spelling) for spelling in _SPELLINGS)


def hashes(person: str, epochs: Iterable[str]) -> Iterator[str]:
    """Yield the hashes of a person with an epoch, cut to the length of a pseudonym."""
    for name in dict.fromkeys((person, person.lower())):
        for epoch in epochs:
            for between in _SEPARATORS:
                for text in (f"{name}{between}{epoch}", f"{epoch}{between}{name}"):
                    yield from _digests(text.encode("utf-8", "surrogatepass"))
            yield from _with_plain_key(name.encode("utf-8", "surrogatepass"), epoch.encode())


def _digests(data: bytes) -> Iterator[str]:
    for make in _ALGORITHMS:
        yield make(data, usedforsecurity=False).hexdigest()[:_LENGTH]
    yield hashlib.blake2b(data, digest_size=16, usedforsecurity=False).hexdigest()
    yield hashlib.blake2s(data, digest_size=16, usedforsecurity=False).hexdigest()


def _with_plain_key(person: bytes, epoch: bytes) -> Iterator[str]:
    """Yield keyed hashes whose key is the epoch or the person, which protect nothing."""
    for key, data in ((epoch, person), (person, epoch)):
        for algorithm in ("md5", "sha1", "sha256", "sha512"):
            yield hmac.new(key, data, algorithm).hexdigest()[:_LENGTH]
        yield hashlib.blake2b(data, key=key[:64], digest_size=16, usedforsecurity=False).hexdigest()
        yield hashlib.blake2s(data, key=key[:32], digest_size=16, usedforsecurity=False).hexdigest()


_DIGITS: Final = 32
_LOG_CHANCE: Final = math.log(1e-11)
_NEAR: Final = 2**44
"""Ten million numbers below 2^128 have a gap this small with a chance of 5e-12, two of them with far less."""
Digits = npt.NDArray[np.uint8]


# ---- patterns


def first_of_each(rows: Relation) -> Relation:
    """Every pseudonym once, at the first row that has it."""
    rows = rows.only("row", "pseudonym").take(is_well_formed(rows["pseudonym"]))
    rows = rows.take(order_of(rows["row"]))
    return rows.take(np.sort(firsts(rows.codes("pseudonym"))))


def first_pseudonyms(parts: Iterable[Relation]) -> Relation:
    """The pseudonyms in which patterns are looked for, in order of appearance."""
    found: list[str] = []
    for part in parts:
        texts = part["pseudonym"]
        found += [texts.texts[code] for code in texts.codes[: _LOOKED_AT - len(found)].tolist()]
        if len(found) >= _LOOKED_AT:
            break
    return Relation({"pseudonym": Texts(np.arange(len(found)), found)})


def _bytes_of(texts: Sequence[str]) -> npt.NDArray[np.uint8]:
    """A row of 16 bytes for every pseudonym."""
    return np.frombuffer(bytes.fromhex("".join(texts)), np.uint8).reshape(len(texts), _DIGITS // 2)


def digits_of(texts: Sequence[str]) -> Digits:
    """Return a matrix of hex digits, a row for every pseudonym."""
    data = _bytes_of(texts)
    return np.stack((data >> 4, data & 15), axis=2).reshape(len(texts), _DIGITS)


@of_pseudonyms("weak-pseudonym", "Pseudonyms are not random: some digits are more frequent than others.", advice=_ANOTHER)
def uneven_digits(first: Relation) -> Answer:
    places = uneven_places(digits_of(first["pseudonym"].texts))
    sentence = f"Pseudonyms are not random: digits at {places} of 32 places are not equally frequent."
    return Answer(count=places, sentence=sentence)


@of_pseudonyms("weak-pseudonym", "Pseudonyms are not random: half of the digits of one are those of another.",
               advice=_ANOTHER)  # fmt: skip
def shared_halves(first: Relation) -> int:
    return shared_parts(first["pseudonym"].texts)


@of_pseudonyms("weak-pseudonym",
               "Pseudonyms are not random: they follow one another in equal or small steps, as a counter does.",
               advice=_ANOTHER)  # fmt: skip
def counted_up(first: Relation) -> int:
    return steps(first["pseudonym"].texts)


def uneven_places(digits: Digits) -> int:
    """Count the places at which some digit is too frequent, or too rare, among different pseudonyms."""
    count = len(digits)
    if not count:
        return 0
    times = np.stack([np.bincount(digits[:, place], minlength=16) for place in range(_DIGITS)])
    return int((_log_tail(times, count, 1 / 16) + math.log(2 * 16 * _DIGITS) < _LOG_CHANCE).any(axis=1).sum())


def _log_tail(times: npt.NDArray[Any], count: int | Ints, chance: float) -> npt.NDArray[np.float64]:
    """Bound the log of the chance that something happens so often, or so rarely (Chernoff)."""
    share = np.clip(times / np.maximum(count, 1), 1e-300, 1)
    rest = np.clip(1 - share, 1e-300, 1)
    return -count * (share * np.log(share / chance) + (1 - share) * np.log(rest / (1 - chance)))


def shared_parts(texts: Sequence[str]) -> int:
    """Count pseudonyms that share half of their digits, at one of three places, with one before them.

    Ten million texts share 16 digits at one place twice with a chance below 1e-11.
    """
    data = _bytes_of(texts)
    halves = (np.ascontiguousarray(data[:, at : at + 8]).view(np.int64).ravel() for at in (0, 4, 8))
    repeated = max((len(half) - len(distinct(half)) for half in halves), default=0)
    return repeated if repeated >= 2 else 0


def steps(texts: Sequence[str]) -> int:
    """Count pseudonyms, in order of appearance, that follow the one before by a step that occurs again, or are near."""
    words = _bytes_of(texts).view(">u8").astype(np.uint64)
    apart = _differences(words)
    ordered = apart[np.lexsort(apart.T)]
    again = int((ordered[1:] == ordered[:-1]).all(axis=1).sum())
    gaps = _differences(words[np.lexsort((words[:, 1], words[:, 0]))])
    near = int(((gaps[:, 0] == 0) & (gaps[:, 1] < _NEAR)).sum())
    return max(again, near if near >= 2 else 0)


def _differences(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Each number of two words minus the one before it, modulo 2^128."""
    low = words[1:, 1] - words[:-1, 1]
    return np.stack((words[1:, 0] - words[:-1, 0] - (words[1:, 1] < words[:-1, 1]), low), axis=1)


# ---- kept from epoch to epoch


def kept_digits(rows: Relation) -> Ints:
    """Compare the pseudonyms of each person in an epoch and in the next one that the person appears in.

    Returns how many have the same digit at each place, and how many were compared.
    """
    rows = rows.take(is_linked(rows))
    order = order_of(rows.codes("person"), rows["shown epoch"], rows["row"])
    person, epoch, shown = rows.codes("person")[order], rows["shown epoch"][order], rows.codes("pseudonym")[order]
    fits = _fits(texts := rows["pseudonym"].texts)
    digits = digits_of(list(compress(texts, fits.tolist())))
    place = np.where(fits, np.cumsum(fits) - 1, -1)[shown]  # among those that are pseudonyms
    follows = (person[1:] == person[:-1]) & (epoch[1:] != epoch[:-1]) & (shown[1:] != shown[:-1])
    follows &= (place[1:] >= 0) & (place[:-1] >= 0)
    same = digits[place[:-1][follows]] == digits[place[1:][follows]]
    return np.append(same.sum(axis=0), len(same))


@of_people("pseudonym-across-epochs", "Parts of pseudonyms stay the same over epochs: people can be linked.", advice=_ANOTHER)
def kept_parts(_: Relation, same: Ints, count: int) -> Answer:
    places = kept_places(same, count)
    sentence = f"Parts of pseudonyms stay the same over epochs, at {places or 'some'} of 32 places: people can be linked."
    return Answer(count=places or int(is_alike(same, count)), sentence=sentence)


def kept_places(same: Ints, count: int) -> int:
    """Count the places at which people keep their digit from one epoch to the next more often than by chance."""
    if not count:
        return 0
    unlikely = (same > count / 16) & (_log_tail(same, count, 1 / 16) + math.log(_DIGITS) < _LOG_CHANCE)
    return int(unlikely.sum())


def is_alike(same: Ints, count: int) -> bool:
    """Return whether people keep more of their digits than by chance, over all positions."""
    if not count:
        return False
    total = np.array([same.sum()])
    return bool(total[0] > count * _DIGITS / 16 and _log_tail(total, count * _DIGITS, 1 / 16)[0] < _LOG_CHANCE)
