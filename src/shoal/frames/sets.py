"""Sets of a data frame: one set per person, or one per row."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from shoal.errors import InputError
from shoal.frames.result import Anonymized
from shoal.hierarchies import Hierarchy
from shoal.inspection import Proposal
from shoal.methods.base import statement_for_rows
from shoal.methods.policy_content import nested_tree
from shoal.methods.registry import METHODS
from shoal.methods.sets.local_result import LocalKmResult
from shoal.pipeline.sets.rare_items import drop_statement
from shoal.pipeline.sets.run import free_root
from shoal.policy import Policy
from shoal.policy.sets import SetSection

Sets = list[frozenset[str]]


def anonymize_sets(table: pa.Table, policy: Policy, content: Any, proposal: Proposal | None) -> Anonymized:
    """Publish the sets of all people at once; a row without an item or a person is refused."""
    rules = policy.anonymize
    assert isinstance(rules, SetSection), "other methods decide rows one by one"
    sets, refused = _sets(table, rules.item, policy.stream.person)
    if not sets:
        raise InputError(f"column {rules.item!r}: has no items; nothing can be published")
    truth, counted = sets, Counter(item for one in sets for item in one)
    sets = _without_rare(sets, counted, rules.drop_rare)
    items = sorted({item for one in sets for item in one})
    parameters = policy.parameters()
    if "generalize" not in parameters:
        parameters["generalize"] = tree = Hierarchy.balanced(items, rules.generalize.balanced or 5, free_root(items))
        content = _with_tree(content, tree)
    result = METHODS[rules.METHOD].load()(**parameters).anonymize(sets)
    rows = result.published(rules.column)
    merged = [item for item in items if item not in result.blocks]
    items_merged, entries_merged = len(merged), sum(counted[item] for item in merged)
    if isinstance(result, LocalKmResult):  # an item may be itself in one record and generalized in another
        items_merged = result.items_generalized
        entries_merged = round(result.entries_generalized * sum(map(len, sets)))
    dropped = counted.keys() - set(items)
    promised = (result.certificate.statement + drop_statement(rules.drop_rare)).replace("\n", " ")
    counts = {"rows": table.num_rows, "sets": len(truth), "released": rows.num_rows,
              "suppressed": len(truth) - len(sets), "refused": sum(refused.values()), "pending": 0}  # fmt: skip
    return Anonymized(
        frame=None, rows=rows, trace=None, truth=truth, policy=content, counts=counts,
        refused={reason: f"{count:,}" for reason, count in refused.items() if count},
        statement=promised if policy.stream.person in table.column_names else statement_for_rows(promised),
        proposal=proposal, warnings=tuple(policy.warnings),
        metrics={
            "items": len(counted), "items_generalized": items_merged / len(counted),
            "occurrences_generalized": entries_merged / counted.total(),
            "items_dropped": len(dropped) / len(counted),
            "occurrences_dropped": sum(counted[item] for item in dropped) / counted.total(),
            "blocks": len(result.blocks), "error": result.error,
        },
    )  # fmt: skip


def _with_tree(content: Any, tree: Hierarchy) -> Any:
    """The policy with the tree that was built over the items; the path of a policy stays as it is."""
    if not isinstance(content, dict):
        return content
    described = tree.to_dict()
    labels = {"kind": "nested", "tree": nested_tree(described["labels"], described["parents"])}
    return {**content, "anonymize": {**content["anonymize"], "generalize": {"hierarchy": labels}}}


def _without_rare(sets: Sets, counted: Counter[str], least: int | None) -> Sets:
    """The sets without items that fewer people have; empty ones are left out."""
    if least is None:
        return sets
    kept = [one for one in (frozenset(item for item in own if counted[item] >= least) for own in sets) if one]
    if not kept:
        raise InputError(f"every item is one that fewer than {least} people have; lower drop_rare, or leave it out")
    return kept


def _sets(table: pa.Table, item: str, person: str | None) -> tuple[Sets, dict[str, int]]:
    column = table.column(item)
    is_list = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    people = table.column(person).to_pylist() if person in table.column_names else range(table.num_rows)
    found: dict[Any, set[str]] = {}
    refused = {"null-person": 0, "no-item": 0}
    for who, value in zip(people, column.to_pylist(), strict=True):
        listed = value if is_list else [value]
        items = {str(one).strip() for one in listed or () if one is not None and str(one).strip()}
        if who is None or not items:
            refused["null-person" if who is None else "no-item"] += 1
        else:
            found.setdefault(who, set()).update(items)
    return [frozenset(one) for one in found.values()], refused
