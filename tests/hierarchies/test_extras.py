"""Without an optional package one sentence names the extra to install, and nothing else needs the package."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT = """
import sys
sys.modules["{package}"] = None
import shoal
from shoal.errors import RunError
tree = shoal.Hierarchy.from_nested({{"all": ["a", "b"]}})
table = shoal.Ontology.from_table([{{"model": "a", "os": "x"}}], value="model", properties=["os"])
try:
    {use}
except RunError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("package", "use", "sentence"),
    [
        ("rdflib", "shoal.Ontology.devices()", "reading RDF needs the package rdflib: pip install rdflib"),
        ("shapely", "shoal.Places", "a map of places needs the package shapely: pip install shapely"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(package, use, sentence):
    code = WITHOUT.format(package=package, use=use)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith(sentence)
