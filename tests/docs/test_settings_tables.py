"""Every key of every method is in docs/reference/policy.md, with the words of its settings class."""

from __future__ import annotations

import pytest

from shoal.methods.registry import METHODS
from shoal.policy.live.systems import SINKS, SOURCES
from shoal.policy.tables import FILE_KINDS, ONLY_READ
from tests.docs.settings_tables import PAGE, described, filled, table

TEXT = PAGE.read_text(encoding="utf-8")


def test_tables_are_those_of_the_settings_classes():
    assert filled(TEXT) == TEXT, "run `make tables`; do not edit between the marks"


def test_all_methods_have_a_table():
    assert set(METHODS) == described(TEXT)


@pytest.mark.parametrize("name", METHODS)
def test_every_key_is_on_the_page(name):
    keys = METHODS[name].load().settings_class.model_fields
    assert [key for key in keys if f"`{key}`" not in TEXT] == []


@pytest.mark.parametrize("kind", [kind for kind in SOURCES if kind not in (*FILE_KINDS, *ONLY_READ)])
def test_every_key_of_a_live_system_is_on_the_page(kind):
    keys = [*SOURCES[kind].model_fields, *(SINKS[kind].model_fields if kind in SINKS else ())]
    assert [key for key in keys if f"`{key}`" not in TEXT] == []


def test_a_key_of_some_methods_names_them():
    made = table(["fads", "castle"])
    assert "| `beta` | `castle`: " in made
    assert made.index("`k`") < made.index("`beta`")
