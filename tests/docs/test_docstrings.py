"""Every example in a docstring gives what it says."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

from tests.docs.pages import FLAGS, ROOT

SOURCE = ROOT / "src"
MODULES = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(SOURCE.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    failed, attempted = doctest.testmod(import_module(name), optionflags=FLAGS)
    assert attempted > 0
    assert failed == 0


def test_modules_are_found():
    assert {"shoal.methods.z.z_anonymity", "shoal.frames.anonymize"} <= set(MODULES)
