"""Check the certificate of a release against the policy and the release."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from shoal.auditor.checks import Answer
from shoal.auditor.findings import Notes
from shoal.auditor.reading.lines import once
from shoal.auditor.sets.promise import SetPromise
from shoal.auditor.sets.records import Counts, Records, Sets, sets_check
from shoal.errors import InputError

_ENDING: Final = ".certificate.json"
_SURE: Final = ("counted", "empty")
"""Claims about every itemset; a sampled claim is about a share of them."""
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim about the itemsets of one size."""

    size: int
    k: int
    how: str
    adversary: str
    sigma: float
    epsilon: float
    delta: float
    attempts: int
    passed: int
    """Samples of the last attempt."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """All claims."""

    claims: tuple[Claim, ...]
    m: int
    records: int
    others: Mapping[str, Any]
    """All other entries, by name."""

    def of(self, size: int) -> list[Claim]:
        """Return the claims about one size."""
        return [claim for claim in self.claims if claim.size == size]

    def is_sure(self, size: int) -> bool:
        """Return whether the certificate claims k records for every itemset of a size."""
        return any(claim.how in _SURE for claim in self.of(size))

    def is_empty(self, size: int) -> bool:
        """Return whether the certificate claims that no record has this many items."""
        return any(claim.how == "empty" for claim in self.of(size))


def read_certificate(release: Any) -> Certificate | None:
    """Read the certificate file next to a release."""
    if not isinstance(release, str | Path):
        return None
    path = Path(str(release).rstrip("/") + _ENDING)
    if not path.is_file():
        return None
    try:
        return _certificate(json.loads(path.read_bytes(), object_pairs_hook=once))
    except OSError as error:
        raise InputError(f"{path}: the certificate cannot be read ({error.strerror})") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InputError(f"{path}: not a certificate of sets; publish again, or take the file away") from None


def _certificate(found: Any) -> Certificate:
    claims = tuple(_claim(one) for one in _table(found)["sizes"])
    return Certificate(claims, _whole(found["m"]), _whole(found["records"]), found)


def _claim(one: Any) -> Claim:
    """Read one claim; missing numbers of its sample count as 0 and prove nothing."""
    return Claim(
        _whole(one["size"]), _whole(one["k"]), str(one["how"]), str(one["adversary"]), _share(one["sigma"]),
        _share(one.get("epsilon", 0)), _share(one.get("delta", 0)), _whole(one.get("attempts", 0)),
        _whole(one.get("passed", 0)),
    )  # fmt: skip


def _table(found: Any) -> Mapping[str, Any]:
    if not isinstance(found, Mapping) or not isinstance(found["sizes"], list):
        raise TypeError
    return found


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**63:
        raise TypeError
    return value


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**63:
        raise TypeError
    return float(value)


@sets_check(
    "certificate-differs", "The certificate does not fit the policy or the release.", by="none",
    advice="Do not rely on the certificate: it is of another policy or release, or was changed. Publish again.",
)  # fmt: skip
def certificate_differs(what: str) -> Answer:
    """Report what differs; `what` is empty if nothing does."""
    return Answer(count=int(bool(what)), sentence=f"The certificate does not fit: {what}.")


def check_certificate(found: Certificate, promise: SetPromise, counts: Counts, notes: Notes) -> None:
    """Check that the claims match the promise, and the number and size of the released records."""
    faults = []
    if found.m != promise.m or any(not 1 <= claim.size <= promise.m for claim in found.claims):
        faults.append(f"it is for other sizes than the policy, whose m is {promise.m}")
    if found.records != counts.records or found.others.get("released", counts.records) != counts.records:
        faults.append(f"it is for another number of records, the release has {counts.records}")
    faults += [f"its {name} is not the policy's" for name in _others_that_differ(found, promise)]
    for size in range(1, promise.m + 1):
        fault = _fault(found.of(size), size, promise, counts.longest)
        faults += [f"size {size}: {fault}"] if fault else []
    _report(faults, notes)


def check_empty(found: Certificate, longest: int, notes: Notes) -> None:
    """Check claims that no record has this many items against the longest record of the truth."""
    sizes = [size for size in range(1, min(found.m, longest) + 1) if found.is_empty(size)]
    _report([f"size {size}: it claims that no record has this many items, but one has" for size in sizes], notes)


def _report(faults: Iterable[str], notes: Notes) -> None:
    notes.findings += [finding for fault in faults for finding in certificate_differs(fault)]


def check_binding(found: Certificate, release: Records, notes: Notes) -> None:
    """Check that no entry of the certificate, its sentences included, was changed, and that it is of these sets."""
    claimed, sets = found.others.get("binding"), release.gathered
    if claimed is None:
        notes.skip("The certificate's sentences, seed and error were not checked: it is not bound to the release.")
    elif sets is None:
        notes.skip("Whether the certificate is of these sets was not checked: too many for one machine.")
    else:
        names = sorted(sets.labels[item] for item in np.unique(sets.items).tolist())
        if claimed != _binding(found.others, names, _sorted_records(sets, names)):
            _report(["it was changed, or it is of another release"], notes)


def _binding(certificate: Mapping[str, Any], names: Sequence[str], records: Iterable[bytes]) -> str:
    """Return the digest of a certificate and of the released sets in any order, each as ranks of its labels."""
    content = {name: value for name, value in certificate.items() if name != "binding"}
    digest = hashlib.sha256(b"shoal set certificate 1\n")
    for part in (content, list(names)):
        text = json.dumps(part, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        digest.update(f"{text}\n".encode())
    for record in records:
        digest.update(len(record).to_bytes(8, "little") + record)
    return digest.hexdigest()


def _sorted_records(release: Sets, names: Sequence[str]) -> list[bytes]:
    """Return every set as the ranks of its labels among ``names``; sets sorted."""
    place = {name: rank for rank, name in enumerate(names)}
    rank_of = np.array([place.get(label, -1) for label in release.labels], np.int64)
    records = []
    for start, end in pairwise(release.offsets.tolist()):
        ranks = np.sort(rank_of[release.items[start:end]])
        records.append(ranks.astype("<u4").tobytes())
    return sorted(records)


def _others_that_differ(found: Certificate, promise: SetPromise) -> list[str]:
    """Return the names of other entries that differ from the policy."""
    expected: dict[str, Any] = {"m": promise.m, "adversary": promise.adversary, "joint": promise.joint}
    settings = {**expected, "k": list(promise.k), "sigma": list(promise.sigma)}
    found_settings = found.others.get("settings", {})
    wrong = [
        name
        for name, value in {**expected, "method": promise.method, "drop_rare": promise.drop_rare}.items()
        if found.others.get(name, value) != value
    ]
    if (found.others.get("recoding", "global") == "local") != promise.is_local:
        wrong.append("recoding")
    if not isinstance(found_settings, Mapping):
        return [*wrong, "settings"]
    return wrong + [f"settings: {name}" for name, value in settings.items() if found_settings.get(name, value) != value]


def _fault(claims: list[Claim], size: int, promise: SetPromise, longest: int) -> str | None:
    k, sigma = promise.k[size - 1], promise.sigma[size - 1]
    sure, whose = [claim for claim in claims if claim.how in _SURE], {claim.adversary for claim in claims}
    if not claims or not (sure or whose >= set(promise.adversaries)):
        return "it does not cover the policy's promise"
    if any(claim.how not in (*_SURE, "sampled") for claim in claims):
        return "it does not state whether itemsets were counted or sampled"
    if any(claim.k != k for claim in claims):
        return f"its k is not the policy's {k}"
    if any(abs(claim.sigma - (1 if claim in sure else sigma)) > _ROUNDING for claim in claims):
        return f"its sigma is not the policy's {sigma}, or not 1 although itemsets were counted"
    if not all(claim in sure or _is_proven(claim) for claim in claims):
        return "its samples do not prove its epsilon and delta, or these do not give its sigma"
    if any(claim.how == "empty" for claim in claims) and longest >= size:
        return "it claims that no record has this many items, but released sets have"
    return None


def _is_proven(claim: Claim) -> bool:
    """Return whether the samples without a failure prove the claim; attempt j may use δ/(j (j + 1))."""
    if not (0 < claim.epsilon < 1 and 0 < claim.delta < 1 and claim.attempts >= 1):
        return False
    share = math.log(claim.attempts) + math.log(claim.attempts + 1)
    needed = (math.log(claim.delta) - share) / math.log1p(-claim.epsilon)
    gives = (1 - claim.epsilon) * (1 - claim.delta)
    return claim.passed >= needed * (1 - _ROUNDING) and gives >= claim.sigma - _ROUNDING
