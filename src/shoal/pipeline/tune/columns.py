"""Find the columns of person, time and attribute: as named, from a policy, or by their usual names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from shoal.errors import InputError, PolicyError
from shoal.models.z.events import USUAL_NAMES
from shoal.pipeline.wiring import make_decoder, make_files
from shoal.policy import Policy
from shoal.policy.loading import parse_policy
from shoal.policy.z import ZAnonymitySection

_KINDS: Final = {
    ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "arrow", ".arrows": "arrow", ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip
_COMPRESSED: Final = (".gz", ".zst")
_ROLES: Final = {"person": "the person", "time": "the time", "attribute": "the value to publish"}


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the three columns."""

    person: str
    time: str
    attribute: str


def find_columns(
    source: Path, hints: Policy | None, person: str | None, time: str | None, attribute: str | None
) -> tuple[Columns, list[str]]:
    """The columns, and a warning for each that was guessed."""
    found: dict[str, str | None] = {"person": person, "time": time, "attribute": attribute}
    if hints is not None:
        known: dict[str, str | None] = {"person": hints.stream.person, "time": hints.stream.time}
        if isinstance(hints.anonymize, ZAnonymitySection) and len(hints.anonymize.attribute) == 1:
            known["attribute"] = next(iter(hints.anonymize.attribute))
        found = {name: given if given is not None else known.get(name) for name, given in found.items()}
    if hints is None:
        _require(source, found)
    guessed = {} if hints is not None else _guessed(source, found)
    return _checked({**found, **guessed}), [
        f"--{role}: not given, so {name!r} is used as the column of {_ROLES[role]}" for role, name in guessed.items()
    ]


def _require(source: Path, found: dict[str, str | None]) -> None:
    """Refuse names that the file does not have; a file that cannot be read is reported later."""
    missing = [
        f"--{role}: the file has no column {name!r}; name another, or describe the file in a policy (.toml)"
        for role, name in found.items()
        if name is not None and source.is_file() and _lacks(source, name)
    ]
    if missing:
        raise PolicyError(missing)


def _lacks(source: Path, name: str) -> bool:
    policy = plain_policy(source, Columns("a person", "a time", name))
    try:
        with make_decoder(policy, make_files(policy)[0], (name,)) as decoder:
            decoder.schema  # noqa: B018 - asking reads the header
    except InputError as error:
        return repr(name) in str(error)
    return False


def _guessed(source: Path, found: dict[str, str | None]) -> dict[str, str]:
    """For roles without a name the first usual one that the file has; a file's own names are never listed."""
    taken = set(found.values())
    guesses = {}
    for role in (role for role, name in found.items() if name is None):
        names = (name for name in USUAL_NAMES[role] if name not in taken)
        guess = next((name for name in names if _has_values(source, name)), None)
        if guess is not None:
            guesses[role] = guess
            taken.add(guess)
    return guesses


def _has_values(source: Path, name: str) -> bool:
    """Whether the first rows of a file have any value in a column of this name."""
    policy = plain_policy(source, Columns("a person", "a time", name))
    try:
        with make_decoder(policy, make_files(policy)[0], (name,)) as decoder:
            first = next(iter(decoder.batches()), None)
            return first is not None and first.batch.column(0).null_count < first.batch.num_rows
    except InputError:
        return False


def _checked(found: dict[str, str | None]) -> Columns:
    missing = [f"--{role}: is missing; name the column of {what}" for role, what in _ROLES.items() if not found[role]]
    if missing:
        raise PolicyError(missing)
    named = [str(found[role]) for role in _ROLES]
    if len(set(named)) < len(named):
        raise PolicyError("--person, --time, --attribute: must be three different columns")
    return Columns(*named)


def plain_policy(source: Path, columns: Columns) -> Policy:
    """The policy that reads a data file by its name."""
    name = source.name.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    kind = _KINDS.get(Path(name).suffix)
    if kind is None:
        raise PolicyError(
            f"{source}: its name does not show its format; give a .csv, .jsonl, .parquet or .arrow file, or a policy "
            "(.toml) whose [source] describes it"
        )
    table: dict[str, Any] = {
        "stream": {"person": columns.person, "time": columns.time},
        "source": {"kind": kind, "path": str(source)},
        "anonymize": {"method": "z-anonymity", "attribute": columns.attribute, "z": 2, "window": "1h"},
        "sink": {"kind": "parquet", "path": "released-by-shoal-tune/"},
    }
    return parse_policy(table)
