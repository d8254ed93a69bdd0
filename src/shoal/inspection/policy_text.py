"""A proposal as a commented policy file, with its hierarchies in private files next to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from shoal.inspection.columns.facts import Facts
from shoal.inspection.files.reading import FirstRows
from shoal.inspection.proposal import Proposal
from shoal.inspection.toml_text import toml, toml_key

_ENDINGS: Final = {"csv": "csv", "jsonl": "jsonl", "parquet": "parquet", "arrow": "arrow", "access-log": "csv"}
_MEANING: Final = {
    "k": "people who share what is published", "z": "people who must share a value within the window",
    "m": "items of a person that somebody may know", "window": "how far back people count",
    "deadline": "how long, or how many rows, a row may wait", "reuse": "how long a published group accepts more rows",
    "lateness": "rows may come this late", "max_gap": "time may jump ahead this far", "l": "different sensitive values",
    "sensitive": "different in every group; as they are, or as ranges if they are below",
    "attribute": "published where enough share it",
    "sparse": "many of its values are rare", "k_s": "people who share a published rare value", "item": "the items",
}  # fmt: skip


def policy_text(
    proposal: Proposal, data: FirstRows, facts: Mapping[str, Facts], *, path: str, folder: str, by: str
) -> tuple[str, dict[str, str]]:
    """The policy for a file at `path`, and the files of its hierarchies by name, all relative to the policy.

    Of the data only rounded bounds are in the policy. Labels of hierarchies are in the other files, which only the user
    can read.
    """
    trees: dict[str, str] = {}
    source = {**data.source, **_types(proposal, data, facts)} if data.is_live else {
        **data.source, "path": path, **_types(proposal, data, facts),
    }  # fmt: skip
    source |= _outer_columns(proposal, data)
    if proposal.family == "sets" and facts[proposal.anonymize["item"]].separator is not None:
        source["separator"] = facts[proposal.anonymize["item"]].separator
    lines = [
        f"# Written by `{by}`. Lines that end in CHECK are guesses that only you can confirm.",
        f"# Of the data only rounded bounds are in this file; labels of hierarchies are in {folder}/ (private)."
        if proposal.trees
        else "# Of the data only rounded bounds are in this file.",
        f"# Why {proposal.method}: {proposal.why}. `shoal methods` lists the others.",
        "",
        *_roles(proposal),
        *_stream(proposal, facts),
        "[source]",
        *(f"{key} = {toml(value)}" for key, value in source.items()),
        "",
        *_anonymize(proposal, folder, trees),
        *_outputs(data),
    ]  # fmt: skip
    return "\n".join(lines) + "\n", trees


def _outputs(data: FirstRows) -> list[str]:
    """The sections that say where rows, trace and state go."""
    if data.sink is not None:
        return [
            "[sink]",
            *(f"{key} = {toml(value)}" for key, value in data.sink.items()),
            "",
            "[checkpoint]",
            'path = "state"              # private; a killed run continues from it',
            'every = "10s"               # rows are visible after this time',
        ]
    return [
        "[sink]",
        f'kind = "{_ENDINGS[data.source["kind"]]}"',
        f'path = "released.{_ENDINGS[data.source["kind"]]}"',
        "",
        "[trace]",
        'path = "trace.parquet"      # private; lets the auditor check every decision',
    ]


def _outer_columns(proposal: Proposal, data: FirstRows) -> dict[str, str]:
    """Keys of [source] for columns that are not in the value of a message, if they are used."""
    used = {one.column for one in proposal.roles if one.role != "drop"}
    return {key: name for name, key in data.outer.items() if name in used}


def _roles(proposal: Proposal) -> list[str]:
    lines = ["# column: role, why"]
    for one in proposal.roles:
        lines.append(f"# {toml(one.column)}: {one.role}, {one.reason}{'' if one.is_sure else '  CHECK'}")
    for risk in proposal.pairs:
        names = " and ".join(map(toml, risk.columns))
        lines.append(f"# {names} together single out {risk.unique:.0%} of the {risk.people:,} {risk.counted}")
    return [*lines, *(f"# {question}  CHECK" for question in proposal.questions), ""]


def _stream(proposal: Proposal, facts: Mapping[str, Facts]) -> list[str]:
    stream = dict(proposal.stream)
    epochs = (one.column for one in proposal.roles if _is_epoch(one.column, proposal, facts))
    time = stream.get("time") or next(epochs, None)
    if time is not None and facts[time].kind == "whole":
        stream |= {"time": time, "time_unit": facts[time].time_unit or "s"}
    lines = [f"{key} = {toml(value)}" for key, value in stream.items()]
    if not proposal.columns("person"):
        lines[0] = f"{lines[0]:<28}# rows, not people, are counted: each is taken for another person"
    return ["[stream]", *lines, ""]


def _is_epoch(column: str, proposal: Proposal, facts: Mapping[str, Facts]) -> bool:
    """Whether ranges of moments are published of whole numbers: the unit must be stated."""
    rule = proposal.anonymize.get("quasi", {}).get(column, {})
    return facts[column].kind == "whole" and rule.get("kind") == "numeric" and isinstance(rule["low"], str)


def _types(proposal: Proposal, data: FirstRows, facts: Mapping[str, Facts]) -> dict[str, Any]:
    """Numbers that are published stay numbers, although a CSV file has only text; messages keep their types."""
    if data.is_live:
        return _message_types(proposal, data)
    if not data.converts or proposal.family == "sets":
        return {}
    names = {"whole": "int64" if data.is_all else "float64", "number": "float64"}  # later rows may have decimals
    rules = proposal.anonymize.get("quasi", {})
    published = [one.column for one in proposal.roles if one.role in ("quasi", "sensitive", "carry")]
    found = {
        name: names[facts[name].kind] for name in published
        if facts[name].kind in names and rules.get(name, {}).get("kind", "numeric") == "numeric"
        and not _is_epoch(name, proposal, facts)
    }  # fmt: skip
    return {"types": found} if found else {}


def _message_types(proposal: Proposal, data: FirstRows) -> dict[str, Any]:
    """Types of the columns in use, so that a run does not learn them from its first messages."""
    names = {pa.int64(): "int64", pa.float64(): "float64", pa.string(): "string", pa.bool_(): "bool"}
    rules = proposal.anonymize.get("quasi", {})
    is_moment = {name for name, rule in rules.items() if isinstance(rule.get("low"), str)}
    is_moment |= {str(proposal.stream.get("time"))}
    used = [one.column for one in proposal.roles if one.role != "drop" and one.column not in data.outer]
    kinds = {name: data.table.schema.field(name).type for name in used}
    found = {
        name: names[kind] for name, kind in kinds.items()
        if kind in names and not (kind == pa.string() and name in is_moment)
    }  # fmt: skip
    return {"types": found} if found else {}


def _anonymize(proposal: Proposal, folder: str, trees: dict[str, str]) -> list[str]:
    rules = dict(proposal.anonymize)
    quasi, generalize = rules.pop("quasi", {}), rules.pop("generalize", None)
    lines = ["[anonymize]"]
    for key, value in rules.items():
        line, meaning = f"{key} = {toml(value)}", proposal.missing if key == "missing" else _MEANING.get(key)
        lines.append(f"{line:<27} # {meaning}" if meaning else line)
    lines.append("")
    if generalize is not None:
        words = proposal.trees.get(rules["item"], "a tree over the items by name")
        lines += ["[anonymize.generalize]", f"# {words}; a hierarchy of your own may be easier to read"]
        own = _in_file(generalize, f"{folder}/items.json", trees)
        lines += [*(f"{key} = {toml(value)}" for key, value in own.items()), ""]
    for number, (column, rule) in enumerate(quasi.items()):
        lines.append(f"[anonymize.quasi.{toml_key(column)}]")
        own = _in_file(rule, f"{folder}/{number + 1}.json", trees)
        if _is_tree(rule):
            lines.append(f"# {proposal.trees[column]}")
        if column in proposal.ends:
            lines.append(f"# {proposal.ends[column]}")
        lines += [*(f"{key} = {toml(value)}" for key, value in own.items()), ""]
    return lines


def _in_file(rule: Mapping[str, Any], name: str, trees: dict[str, str]) -> dict[str, Any]:
    """The rule with its tree, if it has one, in a file."""
    if not _is_tree(rule):
        return dict(rule)
    trees[name] = json.dumps(rule["hierarchy"]["tree"], ensure_ascii=False, indent=1)
    return {**rule, "hierarchy": {"kind": "nested", "path": name}}


def _is_tree(rule: Mapping[str, Any]) -> bool:
    return isinstance(rule.get("hierarchy"), Mapping) and rule["hierarchy"].get("kind") == "nested"
