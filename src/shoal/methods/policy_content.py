"""The settings of a method as the content of a policy, so that an auditor can be asked without writing a file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from shoal.errors import PolicyError


def policy_of(method: str, header: Mapping[str, Any], types: pa.Schema) -> dict[str, Any]:
    """The sections [stream] and [anonymize] for the settings that a snapshot's header describes."""
    if header.get("ontology"):
        raise PolicyError("an ontology cannot be passed on to the auditor from Python; give audit() the policy's path")
    rules = {"method": method} | {name: _written(value) for name, value in header.items() if value is not None}
    roles = (rules.pop(name, None) for name in ("schema", "roles", "is_table", "ontology", "compare"))
    schema, columns, is_table, *_ = roles
    if schema is None:
        attribute = dict(rules["attribute"])
        rules["attribute"] = attribute if is_table else next(iter(attribute))
        return {"stream": dict(zip(("person", "time", "carry"), columns, strict=True)), "anonymize": rules}
    moments = {field.name for field in types if pa.types.is_temporal(field.type)}
    quasi = {role["name"]: _quasi(dict(role), is_moment=role["name"] in moments) for role in schema["quasi"]}
    stream = {name: schema[name] for name in ("person", "time", "carry") if schema.get(name)}
    return {"stream": stream, "anonymize": {**rules, "sensitive": schema["sensitive"], "quasi": quasi}}


def policy_of_sets(method: str, promise: Mapping[str, Any], hierarchy: Mapping[str, Any] | None) -> dict[str, Any]:
    """The section [anonymize] for a promise about sets, with the hierarchy of items if there is one."""
    ways = {} if hierarchy is None else {"generalize": {"hierarchy": _written(hierarchy)}}
    return {"anonymize": {"method": method, **promise, **ways}}


def nested_tree(labels: list[str], parents: list[int]) -> dict[str, Any]:
    """A tree as tables within tables, from the parent of every label; the root has the parent -1."""
    tables: list[dict[str, Any]] = [{} for _ in labels]
    inner = set(parents)
    for node, parent in enumerate(parents):
        if parent >= 0:
            tables[parent][labels[node]] = tables[node] if node in inner else None
    root = parents.index(-1)
    return {labels[root]: tables[root]}


def _quasi(rule: dict[str, Any], *, is_moment: bool) -> dict[str, Any]:
    del rule["name"]
    if is_moment and rule["kind"] == "numeric":
        rule |= {key: datetime.fromtimestamp(rule[key], UTC).isoformat() for key in ("low", "high")}
        rule |= {"grid": f"{round(rule['grid'] * 1e9)}ns"} if "grid" in rule else {}
    return rule


def _written(value: Any) -> Any:
    """A value of a header as a policy writes it; None is left out."""
    if isinstance(value, list | tuple):
        return [_written(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    if value.get("kind") == "closed":
        return {"kind": "nested", "tree": nested_tree(value["labels"], value["parents"])}
    made = {name: _written(one) for name, one in value.items() if one is not None}
    return {**made, "kind": made.pop("side")} if "side" in made else made
