"""The entry: read a release and its truth, and try every attack that applies to its family."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from shoal.auditor.attacks.arrivals import attack_arrivals
from shoal.auditor.attacks.classes import RowEvidence, read_row_evidence
from shoal.auditor.attacks.decoys.attack import DECOY_OR_REAL, attack_decoys
from shoal.auditor.attacks.decoys.store import is_store, read_store
from shoal.auditor.attacks.minimality import attack_minimality
from shoal.auditor.attacks.outcome import Attack, AttackReport, by_question
from shoal.auditor.attacks.promise import check_knows, has_quasi_identifiers, read_row_promise
from shoal.auditor.attacks.quasi_identifiers import attack_by_quasi_identifiers
from shoal.auditor.attacks.range_ends import attack_range_ends
from shoal.auditor.attacks.released_sets import attack_sets, read_set_evidence
from shoal.auditor.attacks.sensitive_values import attack_sensitive_values
from shoal.auditor.attacks.settings import Progress, Settings
from shoal.auditor.attacks.two_releases import attack_two_releases, two_releases
from shoal.auditor.attacks.undescribed import describe
from shoal.auditor.attacks.z.attacks import attack_stream
from shoal.auditor.attacks.z.evidence import read_stream_evidence
from shoal.auditor.evidence import read_evidence
from shoal.auditor.flexible.quasi import read_flexible_attribute
from shoal.auditor.policy import METHODS, Policy, read_policy
from shoal.auditor.reading.files import read
from shoal.auditor.reading.memory import limited
from shoal.auditor.reading.paths import Format
from shoal.auditor.reading.rows import by_stream
from shoal.auditor.rows.attributes import read_attribute
from shoal.errors import PolicyError

TARGETS: Final = 1000


def attack(  # noqa: PLR0913
    release: Any,
    truth: Any,
    policy: Any = None,
    *,
    trace: Any = None,
    other: Any = None,
    control: Any = None,
    knows: Sequence[str] | None = None,
    sensitive: Sequence[str] = (),
    person: str | None = None,
    targets: int = TARGETS,
    seed: int = 1,
    max_memory: int | str | None = None,
    progress: Progress | None = None,
) -> AttackReport:
    """Simulate attackers on a release, and compare each with guessing, the raw data and people who are not in it.

    Parameters
    ----------
    release, truth, trace
        As for `shoal.audit`. The truth is needed to know whether an attacker is right; no attacker sees it. Without
        the trace, attacks that depend on whose row is whose say what attackers believe, or do not apply.
    policy
        The policy of the release, of a path or as a dict. With ``[sanitize]`` the release may be its internal store,
        a SQLite file or the table of it: can its decoys be told from real records? For a table of another tool without
        a policy: None; then name its quasi-identifiers in ``knows``. Published values may then be ranges ("[20, 30]"),
        true values, values with asterisks at the end ("130**") and "*".
    other
        A second release of the same records under the same policy, such as by another method or with another key: what
        do both together show? For releases of rows.
    control
        Records of people who are not in the data, in the form of the truth. What attackers learn about them
        comes from the population, not from the release of their data.
    knows
        The quasi-identifiers that attackers know; by default all.
    sensitive, person
        Without a policy: the sensitive columns, and the column that identifies people (by default each row is one).
    targets
        How many people are attacked, drawn at random with ``seed``.

    Examples
    --------
    >>> import pyarrow as pa
    >>> truth = pa.table({"zip": ["1301", "1302", "1455", "1456"], "ill": ["flu", "flu", "flu", "asthma"]})
    >>> release = pa.table({"zip": ["130*", "130*", "145*", "145*"], "ill": ["flu", "flu", "asthma", "flu"]})
    >>> found = attack(release, truth, knows=["zip"], sensitive=["ill"])
    >>> found["prosecutor"].success.value, found["prosecutor"].raw
    (0.5, 1.0)
    """
    settings = Settings(None if knows is None else tuple(knows), targets, seed, progress or (lambda _: None))
    if isinstance(targets, bool) or not isinstance(targets, int) or targets < 1:
        raise PolicyError("targets: must be a whole number from 1")
    with limited(max_memory):
        if policy is None:
            policy, release = describe(release, truth, settings.knows or (), tuple(sensitive), person)
        written = read_policy(policy)
        method = str(written.section("anonymize").get("method"))
        if other is not None and not has_quasi_identifiers(method):
            raise PolicyError("other: two releases are compared for methods with quasi-identifiers only")
        refuse_control(method, control)
        if is_store(release, written):
            return attack_decoys(read_store(written, release, truth, settings), settings)
        if method not in METHODS:
            raise PolicyError(f"[anonymize] method: attacks know {', '.join(METHODS)}")
        if METHODS[method] == "z":
            return attack_stream(read_stream_evidence(written, release, truth, trace, settings))
        if METHODS[method] == "sets":
            return attack_sets(read_set_evidence(written, release, truth, trace, settings))
        rows = read_rows(written, release, truth, trace, control, settings)
        again = None if other is None else read_rows(written, other, truth, None, None, settings, name="other")
        return attack_rows(rows, settings, again)


def refuse_control(method: str, control: Any) -> None:
    """Refuse a control group that would not be used."""
    if control is not None and not has_quasi_identifiers(method):
        raise PolicyError(
            f"control: nobody outside the data has a row to be found in a release of {method}; leave it out"
        )


_ROW_ATTACKS: Final[Mapping[str, Callable[[RowEvidence], list[Attack]]]] = {
    "quasi-identifiers": attack_by_quasi_identifiers,
    "ranges": attack_range_ends,
    "arrivals": attack_arrivals,
    "sensitive values": attack_sensitive_values,
    "minimality": attack_minimality,
}


def read_rows(
    policy: Policy, release: Any, truth: Any, trace: Any, control: Any, settings: Settings, *, name: str = "release"
) -> RowEvidence:
    """Read a release of rows, its truth and the control group; errors call the release `name`."""
    promise = read_row_promise(policy)
    check_knows(settings.knows, promise)
    settings.progress("reading")
    evidence = read_evidence(policy, release, truth, trace, name=name)
    assert evidence.truth is not None
    evidence.release.require(*(rule.name for rule in promise.quasi))
    outside = None
    if control is not None:
        rows = read(control, name="control", expected=Format.of_source(policy.section("source")))
        outside = by_stream(rows, policy.section("stream"))
    return read_row_evidence(
        evidence, promise, outside, read_flexible_attribute if promise.method == "flexible-k" else read_attribute,
        knows=settings.knows, targets=settings.targets, seed=settings.seed,
    )  # fmt: skip


def attack_rows(rows_read: RowEvidence, settings: Settings, again: RowEvidence | None = None) -> AttackReport:
    """Try every attack on rows; `again` is another release of the same records."""
    found: list[Attack] = []
    for name, run in _ROW_ATTACKS.items():
        settings.progress(name)
        found += run(rows_read)
    if again is not None:
        settings.progress("two releases")
        found += attack_two_releases(rows_read, again)
    else:
        found.append(two_releases().not_applicable("it needs a second release of the same records (other)"))
    found.append(DECOY_OR_REAL.not_applicable("released rows have no decoys; attack the internal store of sanitize"))
    people = rows_read.members
    facts: dict[str, Any] = {
        "released_rows": rows_read.rows,
        "classes": len(rows_read.released.rows),
        "people": people.count,
        "targets": len(people.targets),
        "control": 0 if rows_read.outsiders is None else len(rows_read.outsiders.targets),
        "traced": rows_read.record_of is not None,
        "knows": [attribute.name for attribute in people.attributes],
        "seed": settings.seed,
    }
    rows_of_people = rows_read.rows_by_person()[2]
    if rows_of_people.max(initial=0) > 1:
        facts |= {
            "median_rows_of_a_person": float(np.median(rows_of_people)),
            "most_rows_of_a_person": int(rows_of_people.max()),
        }
    return AttackReport(rows_read.promise.method, by_question(found), facts)
