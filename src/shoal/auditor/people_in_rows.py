"""Where rows are counted as people: does another column look like the person, and do rows then have a crowd?

A column looks like a person if its values repeat and its name says so (user, patient, device), or if its values are
identifiers: e-mail addresses, UUIDs, hex digests, MAC or IP addresses, one prefix with numbers, or numbers that count
without gaps from 0 or 1. It is looked for among the columns of the release that are not quasi-identifiers; with the
truth and the trace among all columns of the truth.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.auditor.checks import ROW, Answer, check, look
from shoal.auditor.counting import combined, people_of
from shoal.auditor.evidence import source_format
from shoal.auditor.findings import AuditReport, Notes, Severity
from shoal.auditor.policy import Policy, names_of
from shoal.auditor.reading.batches import names_in, read_batches
from shoal.auditor.reading.columns import TEXT, Ints, as_text
from shoal.auditor.reading.files import read
from shoal.auditor.reading.lines import ABSENT
from shoal.auditor.reading.paths import Format
from shoal.auditor.relation import Relation

_PERSON: Final = frozenset(
    str.split("""
    user person individual patient customer client subscriber member passenger employee student pupil respondent
    subject participant visitor driver rider worker owner resident citizen child account household device imei imsi
    msisdn phone email mail login username ssn passport surname lastname firstname fullname pid uid mrn kunde kunden
    nutzer benutzer patienten versicherter utilisateur usuario cliente paciente persona utente
""")
)
_OTHER: Final = frozenset(
    str.split("""
    agent model type class kind category segment group status code zip postcode postal city town country region state
    county station site shop store product item venue place zone cell location movie film title genre job occupation
    diagnosis illness disease day date time year month week hour minute age price amount count total number score
    rating level education income size weight height speed os version language gender sex
""")
)
_SHAPES: Final = tuple(map(re.compile, (
    r"[^@\s]+@[^@\s]+\.\w+",
    r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    r"[0-9a-fA-F]{12,}",
    r"([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}",
    r"\d{1,3}(\.\d{1,3}){3}",
)))  # fmt: skip
_PREFIXED: Final = re.compile(r"([A-Za-z]{1,8}[-_ #]?)\d+")
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_LEAST: Final = 20
"""Fewer different values are not taken for identifiers."""
_LEAST_NUMBERS: Final = 100
"""Nor are fewer numbers: ages and percentages count from 0, too."""
_MOST_MISFITS: Final = 0.05
_MOST_CELLS: Final = 1 << 26
"""Classes times persons, up to which a table of them is made."""


NOT_CHECKED: Final = "Whether another column looks like a person was not checked"


def what_to_count(report: AuditReport, policy: Policy) -> tuple[tuple[str, ...], int] | None:
    """The quasi-identifiers and k of a release whose rows are counted as people; None for any other."""
    table = policy.section("table")
    rules = table or policy.section("anonymize")
    quasi, k = tuple(names_of(rules.get("quasi", ()))), rules.get("k", None if table else 50)
    return (quasi, k) if report.counts_rows and quasi and isinstance(k, int) else None


def with_people_in_rows(report: AuditReport, policy: Policy, release: Any, truth: Any, trace: Any) -> AuditReport:
    """Add what columns that look like a person say about the classes of a release whose rows are counted."""
    asked = what_to_count(report, policy)
    if asked is None:
        return report
    (quasi, k), table = asked, policy.section("table")
    expected, notes = Format.of(policy.section("sink")), Notes()
    try:
        names = names_in(release, name="release", expected=expected)
        others = tuple(name for name in names if name not in quasi and name != table.get("person"))
        linked = None if table or truth is None or trace is None else _linked(policy, truth, trace, {*names, *quasi})
        people = linked or _looking(_first(release, others, expected))
        if people:
            read_all = _joined(release, (*quasi, *(() if linked else people)), expected)
            classes = combined([_codes(read_all[name]) for name in quasi], len(read_all[quasi[0]]))
            for name in people:
                person = _codes(linked[name] if linked else read_all[name])
                if len(person) == len(classes):
                    rows = Relation({ROW: np.arange(len(classes)), "class": classes, "person": person})
                    notes.findings += look(rows, [rows_not_people], name, k)
                else:
                    notes.skip(f"{NOT_CHECKED}: the trace does not fit the release.")
    except MemoryError:
        raise
    except Exception:  # such as a row that cannot be read, which the audit itself reports
        notes.skip(f"{NOT_CHECKED}: the files cannot be read for it.")
    gaps, ranks = (*report.not_checked, *notes.not_checked), list(Severity)
    findings = sorted((*report.findings, *notes.findings), key=lambda found: ranks.index(found.severity))
    return replace(report, findings=tuple(findings), not_checked=gaps)


def looks_like_a_person(name: str, column: Any) -> bool:
    """Whether a column of texts repeats, and its name or its values are those of people."""
    texts = column.drop_null()
    different = texts.unique().to_pylist()
    if not different or 2 * len(different) > len(texts):
        return False
    words = [word.lower() for word in _WORD.findall(name)]
    if any(word in _OTHER for word in words):
        return False
    if any(word in _PERSON or word.removesuffix("id") in _PERSON for word in words):
        return True
    return len(different) >= _LEAST and _are_identifiers(different)


def _are_identifiers(texts: Sequence[str]) -> bool:
    least = (1 - _MOST_MISFITS) * len(texts)
    if any(sum(shape.fullmatch(text) is not None for text in texts) >= least for shape in _SHAPES):
        return True
    prefixes = [found.group(1) for text in texts if (found := _PREFIXED.fullmatch(text))]
    if len(prefixes) >= least and len(set(prefixes)) == 1:
        return True
    numbers = [int(text) for text in texts if text.isdecimal() and len(text) < 10]
    if len(numbers) < max(least, _LEAST_NUMBERS) or min(numbers) > 1:
        return False
    return len(numbers) >= (1 - _MOST_MISFITS) * (max(numbers) - min(numbers) + 1)


def _looking(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {name: column for name, column in columns.items() if looks_like_a_person(name, column)}


def _linked(policy: Policy, truth: Any, trace: Any, known: set[str]) -> dict[str, Any]:
    """The columns of the truth that look like a person, by released row; the trace says which record a row is of."""
    records = read(truth, name="truth", expected=replace(source_format(policy), wanted=None))
    decided = read(trace, name="trace", expected=Format(), part="trace")
    shown = ("released", "suppressed") if policy.section("anonymize").get("suppressed") == "root" else ("released",)
    row = decided.numbers("row")[np.isin(np.array(decided.text("verdict").to_pylist()), shown)]
    time = policy.section("stream").get("time")
    others = [name for name in records.columns if name == time or name not in known]
    there = pa.array(np.where((row >= 0) & (row < len(records)), row, -1), mask=(row < 0) | (row >= len(records)))
    found = _looking({name: records.text(name).cast(TEXT) for name in others if name != time})
    return {name: column.take(there) for name, column in found.items()}


def _first(what: Any, names: tuple[str, ...], expected: Format) -> dict[str, Any]:
    """The first batch of some columns, as text."""
    batch = next(read_batches(what, names, name="release", expected=expected), {}) if names else {}
    return {name: pa.chunked_array([as_text(_plain(column))], TEXT) for name, column in batch.items()}


def _joined(what: Any, names: tuple[str, ...], expected: Format) -> dict[str, Any]:
    """Some columns as text, coded batch by batch."""
    pieces: dict[str, list[Any]] = {name: [] for name in names}
    for batch in read_batches(what, names, name="release", expected=expected):
        for name, column in batch.items():
            pieces[name].append(as_text(_plain(column)).dictionary_encode())
    return {name: pa.chunked_array(found, pa.dictionary(pa.int32(), TEXT)) for name, found in pieces.items()}


def _plain(column: Any) -> Any:
    return [None if value is ABSENT else value for value in column] if isinstance(column, list) else column


def _codes(column: Any) -> Ints:
    """A number for every text, equal for equal texts; a missing one is -1."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    whole = coded.unify_dictionaries().combine_chunks()
    indices = whole.indices if isinstance(whole, pa.DictionaryArray) else whole.chunk(0).indices
    return np.asarray(pc.fill_null(indices, -1).to_numpy(zero_copy_only=False), np.int64)


def _crowds(classes: Ints, person: Ints, count: int) -> Ints:
    """The different persons of every class; marked in a table if it is small, which is faster than sorting."""
    width = int(person.max(initial=0)) + 1
    if count * width > _MOST_CELLS:
        return people_of(classes, person, count)
    seen = np.zeros(count * width, np.bool_)
    seen[classes * width + person] = True
    return np.asarray(np.count_nonzero(seen.reshape(count, width), axis=1), np.int64)


@check(
    "rows-not-people",
    "Rows are counted as people, a column looks like the person, and its values are too few in a class.",
    advice="Name the column as the person (person, --person), so that people are counted, and release again.",
    families=("tuples", "flexible", "table"),
    by="class",
    severity=Severity.WARNING,
)
def rows_not_people(rows: Relation, name: str, k: int) -> Answer:
    """Count the different values of a column in every class: that many people, if each is one."""
    person, classes = rows["person"], rows["class"]
    known = person >= 0
    few = _crowds(classes[known], person[known], int(classes.max(initial=-1)) + 1)[classes] < k
    values, count = (int(np.count_nonzero(one)) for one in (np.bincount(person[known]), few))
    return Answer(few, sentence=(
        f"`{name}` looks like a person and has {values:,} values; {count:,} rows share their class with fewer than "
        f"{k:,} of them."
    ))  # fmt: skip
