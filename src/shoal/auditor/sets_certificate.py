"""What the certificate beside a release claims, held against the policy and the release."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from shoal.auditor.report import Notes
from shoal.auditor.sets_promise import SetPromise
from shoal.auditor.sets_records import Sets
from shoal.errors import InputError

_ENDING: Final = ".certificate.json"
_SURE: Final = ("counted", "empty")
"""Claims about every itemset; one that is sampled is about a share of them."""
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Claim:
    """What is claimed of the itemsets of one size."""

    size: int
    k: int
    how: str
    adversary: str
    sigma: float


@dataclass(frozen=True, slots=True)
class Certificate:
    """All that is claimed."""

    claims: tuple[Claim, ...]
    m: int
    records: int

    def of(self, size: int) -> list[Claim]:
        """Return what is claimed of one size."""
        return [claim for claim in self.claims if claim.size == size]

    def is_sure(self, size: int) -> bool:
        """Tell whether every itemset of a size is said to have its k records."""
        return any(claim.how in _SURE for claim in self.of(size))


def read_certificate(release: Any) -> Certificate | None:
    """Return what stands in the file beside a release."""
    if not isinstance(release, str | Path):
        return None
    path = Path(str(release).rstrip("/") + _ENDING)
    if not path.is_file():
        return None
    try:
        return _certificate(json.loads(path.read_bytes()))
    except OSError as error:
        raise InputError(f"{path}: the certificate cannot be read ({error.strerror})") from None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise InputError(f"{path}: not a certificate of sets; publish again, or take the file away") from None


def _certificate(found: Any) -> Certificate:
    claims = tuple(
        Claim(_whole(one["size"]), _whole(one["k"]), str(one["how"]), str(one["adversary"]), _share(one["sigma"]))
        for one in _table(found)["sizes"]
    )
    return Certificate(claims, _whole(found["m"]), _whole(found["records"]))


def _table(found: Any) -> Mapping[str, Any]:
    if not isinstance(found, Mapping) or not isinstance(found["sizes"], list):
        raise TypeError
    return found


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return value


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError
    return float(value)


def check_certificate(found: Certificate, promise: SetPromise, release: Sets, notes: Notes) -> None:
    """Check that no less is claimed than the policy promises, and of as many records as were released."""
    if found.m < promise.m:
        _differs(f"it is for m = {found.m}, the policy for {promise.m}", notes)
    if found.records != len(release):
        _differs(f"it is for {found.records} records, the release has {len(release)}", notes)
    for size in range(1, promise.m + 1):
        fault = _fault(found.of(size), size, promise, release)
        if fault:
            _differs(f"size {size}: {fault}", notes)


def _fault(claims: list[Claim], size: int, promise: SetPromise, release: Sets) -> str | None:
    k, sigma = promise.k[size - 1], promise.sigma[size - 1]
    sure, whose = [claim for claim in claims if claim.how in _SURE], {claim.adversary for claim in claims}
    if not claims or not (sure or whose >= set(promise.adversaries)):
        return "it claims nothing of what the policy promises"
    if any(claim.how not in (*_SURE, "sampled") for claim in claims):
        return "it does not say whether itemsets were counted or sampled"
    if min(claim.k for claim in claims) < k:
        return f"its k is below the policy's {k}"
    if not sure and min(claim.sigma for claim in claims) < sigma - _ROUNDING:
        return f"its sigma is below the policy's {sigma}"
    if any(claim.how == "empty" for claim in claims) and (release.sizes >= size).any():
        return "it says that nobody has so many items, but released sets have"
    return None


def _differs(what: str, notes: Notes) -> None:
    notes.violation("certificate-differs", f"The certificate does not fit: {what}.", count=1)
