"""One version everywhere, and extras that cover every optional import."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import shoal

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def test_package_changelog_and_citation_have_one_version():
    assert PROJECT["version"] == shoal.__version__
    sections = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert sections[0] == ("Unreleased", "")
    version, date = sections[1]
    assert version == shoal.__version__
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {version}\ndate-released: {date}\n" in citation


def test_every_extra_is_part_of_all_and_dev_installs_all():
    live = {"kafka", "redis", "nats", "rabbitmq", "mqtt", "avro", "metrics"}
    assert (
        set(EXTRAS)
        == {"ontology", "places", "figures", "hosts", "postgres", "live", "serve", "spark", "all", "tests", "dev"}
        | live
    )
    assert EXTRAS["live"] == ["shoal[kafka,redis,nats,rabbitmq,mqtt,avro,metrics]"]
    assert EXTRAS["all"] == ["shoal[ontology,places,figures,hosts,postgres,live,serve]"]
    assert "shoal[all]" in EXTRAS["tests"]
    assert "shoal[tests,spark]" in EXTRAS["dev"]  # Spark is larger than everything else together, so not part of all


def test_every_development_tool_is_pinned():
    pins = {line.split("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().split()}
    wanted = {
        re.split(r"[\[>=<]", requirement)[0].lower()
        for requirement in [*PROJECT["dependencies"], *(one for extra in EXTRAS.values() for one in extra)]
    }
    assert wanted - {"shoal"} <= pins
