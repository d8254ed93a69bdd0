"""`shoal init`: look at a file or topic, propose what to do with each column, and write a policy that runs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from shoal.inspection import Facts, Proposal, Wishes
    from shoal.inspection.files.reading import FirstRows

_SINGLE: Final = ("person", "time", "attribute", "items")
_SEVERAL: Final = {"quasi": "also_quasi", "sensitive": "sensitive", "carry": "carry", "drop": "drop"}
_HEADERS: Final = {
    True: "header         the first line names the columns; if it is a record, say --header no",
    False: "header         none, the first line is a record; if it names the columns, say --header yes",
}
_NUMBERS: Final = ("k", "z", "m")
_FOUND: Final = ("encoding", "decimal", "dates", "nulls")
"""Keys of [source] that say how values are read, and may have been found wrongly."""
_Names = Annotated[list[str] | None, Parameter(consume_multiple=True, json_list=False, negative="")]


def init(  # noqa: PLR0913 - one option for each role and parameter
    data: str,
    *,
    out: Path = Path("policy.toml"),
    yes: Annotated[bool, Parameter(name=["--yes", "-y"], negative="")] = False,
    force: Annotated[bool, Parameter(negative="")] = False,
    person: str | None = None,
    time: str | None = None,
    quasi: _Names = None,
    sensitive: _Names = None,
    carry: _Names = None,
    drop: _Names = None,
    attribute: str | None = None,
    items: str | None = None,
    method: str | None = None,
    k: int | None = None,
    z: int | None = None,
    m: int | None = None,
    header: Literal["yes", "no"] | None = None,
    rows: int = 1_000_000,
    source: _Names = None,
) -> int:
    """Look at a file or a live topic of data about people and write a policy for it.

    Proposes the role of each column with the reason, measures how identifying columns and pairs of columns are,
    recommends a method with parameters, builds hierarchies, writes a commented policy and runs the doctor on it. On a
    terminal you can change the proposal before it is written. What only you can know is marked CHECK in the policy.

    Of a topic or stream it reads up to 200,000 of the messages that are there. It joins no group, moves no offset and
    acknowledges nothing. The policy writes to another topic or stream, whose name ends in -released.

    Of the data only rounded bounds are written into the policy. Hierarchies list the values of their columns; they are
    written into a folder next to the policy that only you can read.

    Exit code 0 when the policy can run, 1 when the file cannot be read or the doctor finds that the run would be of no
    use, 2 when an option is wrong, or when it is not certain whose row it is: the columns that may say so are listed
    with what speaks for each, and nothing is written.

    Examples:

        shoal init visits.csv

        shoal init patients.csv --yes --person id --k 5 --sensitive diagnosis

        shoal init x.csv --yes && shoal run policy.toml

        shoal init ratings.dat --header no

        shoal init kafka://localhost:9092/visits

        shoal init kafka://broker:9093/visits --source client.security.protocol=SSL

    Parameters
    ----------
    data
        The file: CSV, JSON lines, Parquet or Arrow; .gz and .zst too. Or kafka://HOST:PORT/TOPIC, redis://HOST:PORT/STREAM,
        nats://HOST:PORT/STREAM, rabbitmq://HOST:PORT/STREAM.
    out
        Where the policy is written.
    yes
        Do not ask.
    force
        Replace a policy that exists.
    person
        The column that says whose row it is; `row` if every row is another person.
    time
        The column that says when.
    quasi
        Columns that somebody may know of a person. Only these are published generalized.
    sensitive
        Columns that are published unchanged in groups in which their values differ.
    carry
        Columns that are published unchanged.
    drop
        Columns that are not published.
    attribute
        Events: the column that says what people did.
    items
        Sets: the column of items.
    method
        A method; `shoal methods` lists them.
    k
        How many people must share what is published.
    z
        Events: how many people must have done the same.
    m
        Sets: how many items of a person may be known.
    header
        CSV: whether the first line names the columns. By default that is seen by comparing it with the lines below.
    rows
        How many rows to look at. Values that are only in later rows are missing in hierarchies.
    source
        A live system: a further key of [source], such as group=mine, client.NAME=VALUE or secrets.NAME=env:VARIABLE.
    """
    from shoal.cli.whose_row import ask_person, print_doubt
    from shoal.errors import PolicyError
    from shoal.inspection import PersonDoubt, Wishes, look, propose
    from shoal.methods.registry import METHODS

    if method is not None and method not in METHODS:
        raise PolicyError(f"--method: must be one of {', '.join(METHODS)}")
    if out.exists() and not force:
        raise PolicyError(f"{out}: exists; name another file with --out, or replace it with --force")
    wishes = Wishes(
        person=person, time=time, quasi=quasi, sensitive=sensitive, carry=carry, drop=drop or (), attribute=attribute,
        items=items, method=method, k=k, z=z, m=m,
    )  # fmt: skip
    found = _read(data, source or (), rows, out.absolute().parent, header=None if header is None else header == "yes")
    wishes = wishes.with_known(found.known)
    reads_moments = found.is_live or found.source["kind"] in ("csv", "jsonl")
    arrival = next((name for name, key in found.outer.items() if key == "timestamp_column"), None)
    wishes = replace(wishes, reads_moments=reads_moments, sees_all=found.is_all, is_live=found.is_live, arrival=arrival)
    facts = look(found.table, converts=found.converts)
    is_asking = not yes and sys.stdin.isatty()
    try:
        proposal = propose(facts, wishes)
    except PersonDoubt as doubt:
        answer = ask_person(doubt, facts) if is_asking else None
        if answer is None:
            _say_how_read(found)
            print_doubt(doubt, data)
            return 2
        wishes = replace(wishes, person=answer)
        proposal = propose(facts, wishes)
    _show(proposal, found.table.num_rows, is_all=found.is_all)
    _say_how_read(found)
    if is_asking:
        proposal = _ask(facts, wishes, proposal)
    _write(proposal, found, facts, data, out)
    return _check(data, out)


def _read(data: str, source: Sequence[str], rows: int, folder: Path, *, header: bool | None) -> FirstRows:
    from shoal.errors import PolicyError
    from shoal.inspection.files.reading import read_data

    if "://" not in data:
        if source:
            raise PolicyError("--source: is for live systems; leave it out")
        return read_data(Path(data), rows, header=header)
    if header is not None:
        raise PolicyError("--header: is for CSV files; leave it out")
    from shoal.pipeline.live.first_messages import read_first_messages

    return read_first_messages(data, source, rows, folder)


def _say_how_read(found: FirstRows) -> None:
    from shoal.inspection.toml_text import toml

    if found.has_header is not None:
        print(_HEADERS[found.has_header])
    if guessed := {key: toml(found.source[key]) for key in _FOUND if key in found.source}:
        keys = ", ".join(f"{key} = {value}" for key, value in guessed.items())
        print(f"read as        {keys}; if that is wrong, correct it in [source]")


def _show(proposal: Proposal, rows: int, *, is_all: bool) -> None:
    from shoal.inspection.columns.column_names import printable

    people = f"{proposal.people:,} people" if proposal.columns("person") else "counted as rows, not people"
    print(f"{'all' if is_all else 'the first'} {rows:,} rows, {people}")
    width = max(len(printable(one.column)) for one in proposal.roles)
    for one in proposal.roles:
        mark = " " if one.is_sure else "?"
        print(f"  {printable(one.column):<{width}}  {mark} {one.role:<10} {one.reason}")
    for risk in proposal.pairs:
        names = " and ".join(map(repr, risk.columns))
        print(f"risk           {names} together single out {risk.unique:.0%} of the {risk.counted}")
    shown = {key: value for key, value in proposal.anonymize.items() if key in (*_NUMBERS, "window", "deadline", "l")}
    parameters = ", ".join(f"{key} = {value}" for key, value in shown.items())
    print(f"method         {proposal.method} with {parameters}: {proposal.why}")
    if proposal.missing:
        print(f"missing        {proposal.anonymize['missing']}: {proposal.missing}")
    for question in proposal.questions:
        print(f"check          {question}")


def _ask(facts: Mapping[str, Facts], wishes: Wishes, proposal: Proposal) -> Proposal:
    """Let the user change roles and parameters until they accept the proposal."""
    from shoal.errors import PolicyError
    from shoal.inspection import propose

    roles = ", ".join((*_SINGLE, *_SEVERAL))
    print("Change a role or parameter, one in a line, or press Enter to accept.")
    print(f"COLUMN=ROLE ({roles}), k=, z=, m=, method=")
    while True:
        try:
            answer = input("> ").strip()
        except EOFError:
            answer = ""
        if not answer:
            return proposal
        try:
            changed = _changed(wishes, answer)
            proposal = propose(facts, changed)
        except PolicyError as error:
            print("\n".join(error.problems))
            continue
        wishes = changed
        _show(proposal, next(iter(facts.values())).rows, is_all=wishes.sees_all)


def _changed(wishes: Wishes, answer: str) -> Wishes:
    from shoal.errors import PolicyError
    from shoal.methods.registry import METHODS

    name, sign, value = (part.strip() for part in answer.rpartition("="))
    if not sign or not name:
        raise PolicyError("write COLUMN=ROLE or a parameter such as k=5")
    if name in _NUMBERS and value not in (*_SINGLE, *_SEVERAL):
        least = 2 if name == "k" else 1
        if not value.isdecimal() or int(value) < least:
            raise PolicyError(f"{name}: must be a whole number from {least}")
        number: dict[str, Any] = {name: int(value)}
        return replace(wishes, **number)
    if name == "method":
        if value not in METHODS:
            raise PolicyError(f"method: must be one of {', '.join(METHODS)}")
        return replace(wishes, method=value)
    lists: dict[str, Any] = {
        key: [one for one in getattr(wishes, key) or () if one != name] for key in ("quasi", *_SEVERAL.values())
    }
    lists = {key: found if found or getattr(wishes, key) is not None else None for key, found in lists.items()}
    lists |= {one: None for one in _SINGLE if getattr(wishes, one) == name}
    if value in _SINGLE:
        return replace(wishes, **{**lists, value: name})
    if value not in _SEVERAL:
        raise PolicyError(f"{value!r} is not a role; write one of {', '.join((*_SINGLE, *_SEVERAL))}")
    field = "quasi" if value == "quasi" and wishes.quasi is not None else _SEVERAL[value]
    return replace(wishes, **{**lists, field: [*(lists[field] or ()), name]})


def _write(proposal: Proposal, found: FirstRows, facts: Mapping[str, Facts], data: str, out: Path) -> None:
    """Write the policy and, into a private folder, its hierarchies."""
    import os

    from shoal.crypto.safe_open import write_file
    from shoal.inspection.policy_text import policy_text
    from shoal.sinks.durable import output_error

    source = "" if found.is_live else os.path.relpath(Path(data).absolute(), out.absolute().parent)
    folder = f"{out.stem}-hierarchies"
    by = f"shoal init {data if found.is_live else Path(data).name}"
    text, trees = policy_text(proposal, found, facts, path=source, folder=folder, by=by)
    with output_error(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        for name, tree in trees.items():
            (out.parent / folder).mkdir(mode=0o700, exist_ok=True)
            write_file(out.parent / name, tree, private=True)
        write_file(out, text)
    print(f"\nwritten        {out}, which contains only rounded bounds of the data")
    if trees:
        print(f"               {out.parent / folder}{os.sep}: trees of values, readable only by you")


def _check(data: str, out: Path) -> int:
    """Let the doctor check the policy, and print what to do next; return the exit code."""
    import os

    from shoal.cli.output.program import command_line
    from shoal.cli.output.render import LineObserver, print_remarks
    from shoal.pipeline.doctor.doctor import examine
    from shoal.policy import load_policy

    policy = load_policy(out)
    remarks = examine(policy, observer=LineObserver(quiet=False))
    print_remarks(remarks)
    if any(remark.level == "wrong" for remark in remarks):
        print(f"next           change what is marked wrong above, then {command_line('doctor', out)}")
        return 1
    print(f"next           {command_line('run', out)}")
    if policy.sink.place is None:
        print(f"               {command_line('serve', out)}   (the same, with a page to watch it)")
        return 0
    sink = policy.file_sink.path.path
    where = os.path.relpath(sink)
    trace = os.path.relpath(sink.parent / "trace.parquet")
    audit = command_line("audit", where, "--truth", data, "--trace", trace, "--policy", out)
    print(f"               {audit}")
    return 0
