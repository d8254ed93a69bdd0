"""Every policy of the pages on live streams is one that can run, alone or in place of sections of the first."""

from __future__ import annotations

import tomllib

import pytest

from shoal.policy import parse_policy
from shoal.policy.live.systems import SINKS, SOURCES
from shoal.policy.tables import FILE_KINDS, ONLY_READ
from tests.docs.pages import blocks

PAGES = ("docs/howto/live.md", "docs/howto/live-security.md", "docs/howto/workers.md")
POLICIES = {page: [tomllib.loads(block.text) for block in blocks("toml") if block.page == page] for page in PAGES}
WHOLE = [{**POLICIES[PAGES[0]][0], **sections} for page in PAGES for sections in POLICIES[page]]


@pytest.mark.parametrize("policy", WHOLE, ids=lambda policy: f"{policy['source']['kind']} {policy['sink']['kind']}")
def test_a_policy_is_accepted(policy, tmp_path):
    if "headers" in policy["source"]:
        policy = {**policy, "stream": {**policy["stream"], "carry": ["tenant"]}}
    assert parse_policy(policy, folder=tmp_path).checkpoint is not None


def test_every_system_is_shown():
    live = set(SOURCES) - {*FILE_KINDS, *ONLY_READ}
    assert {policy["source"]["kind"] for policy in WHOLE} == live
    assert {policy["sink"]["kind"] for policy in WHOLE} >= set(SINKS) - set(FILE_KINDS) - {"mqtt"}
