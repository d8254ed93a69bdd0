"""Every parameter is in the golden digests: with a value that is not its default, and with an effect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import pytest

from shoal.methods.flexible.settings import CellClass, CellClasses
from shoal.methods.registry import METHODS
from shoal.methods.z.settings import ZColumnSettings
from shoal.models.z.target.target import KTarget
from shoal.policy.methods import section_for
from shoal.policy.quasi import CategoricalSection, NumericSection
from shoal.policy.sets import GeneralizeSection
from shoal.policy.tables import (
    CheckpointSection,
    DeadLettersSection,
    FileSink,
    FileSource,
    StreamSection,
    TraceSection,
)
from tests.golden.digests import recorded
from tests.golden.options import OF_SETS, OF_STREAMS, policy_of
from tests.golden.parameters import CHANGES, words
from tests.golden.streams import CASES

RECORDED = recorded()
WITHOUT_EFFECT = {
    ("flexible-k", "criteria"),
    ("flexible-k", "compare"),
    ("z-anonymity", "attribute"),  # on_private = "blank" in a table, where private values are blanked anyway
    ("fads-varied", "missing"),  # rows of a cluster lack the same values
    ("fads-varied", "min_carriers"),
}
POLICIES = [policy_of(name) for name in (*OF_STREAMS, *OF_SETS)]
MESSAGES_ONLY = {"name"}
"""Keys of tables of files that are for messages."""


def values_of(method: str, name: str) -> list[Any]:
    """Values that a parameter has in some case."""
    return [
        change.settings[name] for change in CHANGES.get(method, []) if change.name == name and name in change.settings
    ]


def choices(annotation: Any) -> set[Any]:
    """The values of a Literal, anywhere in an annotation."""
    if get_origin(annotation) is Literal:
        return set(get_args(annotation))
    return {value for inner in get_args(annotation) for value in choices(inner)}


def keys_in(value: Any) -> Iterator[str]:
    """All keys of nested tables."""
    if isinstance(value, dict):
        yield from value
    for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from keys_in(below)


@pytest.mark.parametrize("method", METHODS)
def test_every_parameter_has_a_digest_with_another_value(method):
    for name, field in METHODS[method].load().settings_class.model_fields.items():
        values = values_of(method, name)
        assert any(value != field.default for value in values), f"add a change of {name} to tests/golden/parameters.py"
        lacking = [choice for choice in choices(field.annotation) if choice not in [field.default, *values]]
        assert not lacking, f"add changes of {name} to {lacking} to tests/golden/parameters.py"


@pytest.mark.parametrize("method", METHODS)
def test_every_change_of_a_parameter_has_an_effect(method):
    parts = RECORDED[f"parameters {method}"]
    for change in CHANGES[method]:
        differs = parts[words(change.settings)] != parts[words(change.against)]
        assert differs == change.has_effect, words(change.settings)
        assert change.has_effect or (method, change.name) in WITHOUT_EFFECT
    assert set(parts) == {words(given) for change in CHANGES[method] for given in (change.settings, change.against)}


def test_nested_parameters_have_digests():
    tables = [table for table in values_of("z-anonymity", "attribute") if isinstance(table, dict)]
    own = {name for table in tables for below in table.values() for name in below}
    assert own == set(ZColumnSettings.model_fields)
    targets = values_of("z-anonymity", "target")
    assert {name for target in targets for name in target} == set(KTarget.__dataclass_fields__)
    cells = set(keys_in(values_of("flexible-k", "density_from_data")))
    assert cells >= {*CellClasses.model_fields, *CellClass.model_fields}


@pytest.mark.parametrize("method", METHODS)
def test_every_key_of_a_policy_s_method_is_in_some_run(method):
    section, own = section_for(method), METHODS[method].load().settings_class
    assert section is not None
    same_family = {name for name, entry in METHODS.items() if entry.family == METHODS[method].family}
    tables = [policy["anonymize"] for policy in (*POLICIES, *(case.policy for case in CASES))]
    used = {key for table in tables if table["method"] in same_family for key in table}
    assert set(section.model_fields) - set(own.model_fields) <= used


def test_every_key_of_nested_tables_of_policies_is_in_some_run():
    used = set(keys_in([policy["anonymize"] for policy in (*POLICIES, *(case.policy for case in CASES))]))
    assert {*NumericSection.model_fields, *CategoricalSection.model_fields, *GeneralizeSection.model_fields} <= used


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("stream", StreamSection),
        ("source", FileSource),
        ("sink", FileSink),
        ("trace", TraceSection),
        ("dead_letters", DeadLettersSection),
        ("checkpoint", CheckpointSection),
    ],
)
def test_every_option_of_files_is_in_some_run(name, kind):
    used = {key for policy in POLICIES for key in policy.get(name, {})}
    assert set(kind.model_fields) - MESSAGES_ONLY <= used
