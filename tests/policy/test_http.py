"""The table of the HTTP source: what it refuses, and what the doctor says."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import PolicyError
from shoal.pipeline.live.http import check_source, make_source
from shoal.pipeline.live.wiring import source_parts
from shoal.policy import parse_policy
from shoal.policy.live.systems import HttpSource
from shoal.sources.live import LiveSource

TABLE: dict[str, Any] = {
    "stream": {"person": "user", "time": "time"},
    "source": {"kind": "http"},
    "anonymize": {"method": "z-anonymity", "attribute": "site", "z": 2, "window": "1h"},
    "sink": {"kind": "jsonl", "path": "out/"},
    "checkpoint": {"path": "state"},
}


def with_source(**keys: Any) -> dict[str, Any]:
    return {**TABLE, "source": {**TABLE["source"], **keys}}


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"until": "end"}, "neither a beginning nor an end"),
        ({"start": "latest"}, "neither a beginning nor an end"),
        ({"client": {"a": 1}}, "one JSON object and nothing else"),
        ({"key_column": "k"}, "one JSON object and nothing else"),
        ({"headers": {"tenant": "t"}}, "one JSON object and nothing else"),
        ({"format": "avro", "schema_file": "s.avsc"}, 'set format = "json"'),
        ({"secrets": {"password": "env:P"}}, 'only the secret "token"'),
        ({"queue": 0}, "queue"),
        ({"workers": 2}, "several workers"),
    ],
)
def test_keys_that_make_no_sense(keys: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=sentence):
        parse_policy(with_source(**keys), folder=tmp_path)


def test_a_checkpoint_is_needed(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="needs a folder for its state"):
        parse_policy({key: value for key, value in TABLE.items() if key != "checkpoint"}, folder=tmp_path)


def test_where_it_listens_may_change_while_a_run_is_stopped(tmp_path: Path) -> None:
    one = parse_policy(with_source(listen="127.0.0.1:7001", queue=5), folder=tmp_path)
    other = parse_policy(TABLE, folder=tmp_path)
    assert one.fingerprint("source") == other.fingerprint("source")
    assert isinstance(one.source, HttpSource)
    found = make_source(source_parts(one))
    assert isinstance(found, LiveSource)
    assert found.identity() == make_source(source_parts(other)).identity()


def test_the_doctor_says_that_a_port_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        policy = parse_policy(with_source(listen=f"127.0.0.1:{taken.getsockname()[1]}"), folder=tmp_path)
        (finding,) = check_source(source_parts(policy))
    assert finding.level == "wrong"
    assert "cannot listen at 127.0.0.1" in finding.sentence
