"""Policies of systems of messages: what is refused, and that no secret is ever shown or counted."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import PolicyError
from shoal.policy import parse_policy
from shoal.policy.live.messages import MessageSink, MessageSource
from shoal.policy.live.secrets import is_secret_setting
from shoal.policy.live.systems import SINKS, SOURCES
from tests.policy.test_policy import changed
from tests.policy.test_problems import problems_of

KINDS = ["kafka", "redis", "nats", "rabbitmq", "mqtt"]
TUPLES = {
    "method": "least-loss",
    "k": 5,
    "deadline": "5min",
    "reuse": "1min",
    "quasi": {"age": {"kind": "numeric", "low": 0, "high": 120}},
}
READ = {
    "kafka": {"brokers": "localhost:9092", "topics": ["visits"]},
    "redis": {"streams": ["visits"]},
    "nats": {"stream": "visits"},
    "rabbitmq": {"streams": ["visits"]},
    "mqtt": {"topics": ["visits/+"]},
}
WRITTEN = {
    "kafka": {"topic": "published"},
    "redis": {"stream": "published"},
    "nats": {"stream": "published"},
    "rabbitmq": {"stream": "published"},
    "mqtt": {"topic": "published"},
}


def live_table(kind: str = "kafka") -> dict[str, Any]:
    return copy.deepcopy(
        {
            "stream": {"person": "user", "time": "ts", "carry": ["shop"]},
            "source": {"kind": kind, **READ[kind]},
            "anonymize": {"method": "z-anonymity", "attribute": "site", "z": 3, "window": "1h"},
            "sink": {"kind": kind, **WRITTEN[kind]},
            "checkpoint": {"path": "state"},
        }
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_system_has_a_short_policy(kind: str, tmp_path: Path) -> None:
    policy = parse_policy(live_table(kind), folder=tmp_path)
    assert policy.message_source.format == "json"
    assert policy.message_source.lag.given == "5s"
    assert policy.message_sink.name == "published"
    assert policy.message_sink.address is None
    assert policy.dead_letters.name == policy.dead_letters.where == "published-dead-letters"
    assert policy.message_source.settings("source") == {}


@pytest.mark.parametrize("kind", KINDS)
def test_any_source_goes_with_any_sink(kind: str, tmp_path: Path) -> None:
    table = live_table(kind)
    to_file = {**table, "sink": {"kind": "parquet", "path": "out/"}}
    assert parse_policy(to_file, folder=tmp_path).dead_letters.path.text == "out.dead.jsonl"
    from_files = {**table, "source": {"kind": "csv", "path": "in.csv"}}
    (problem,) = problems_of(from_files, folder=tmp_path)
    assert problem.endswith("is missing; say where the system is")
    key = problem.split("]")[1].split(":")[0].strip()
    policy = parse_policy(changed(from_files, f"sink/{key}", "host:1"), folder=tmp_path)
    assert policy.message_sink.address == "host:1"


# One change to a good policy, and the one sentence it brings about.
ONE_PROBLEM = [
    ("source/topics", None, "[source] topics: is missing; list the topics"),
    ("source/topics", "visits", "[source] topics: must be a list of texts"),
    ("source/topcs", [], '[source] topcs: unknown key; did you mean "topics"?'),
    ("source/brokers", "ann:hunter2@host", "[source] brokers: has a user or a password in it; put them into client"),
    ("source/brokers", "host?password=hunter2", "[source] brokers: has settings in it, behind a question mark; put"),
    ("source/secrets", {"acks": "env:A"}, "[source.secrets] acks: is set so that every record is published exactly"),
    ("source/format", "protobuf", '[source] format: must be one of "json", "avro"'),
    ("source/format", "avro", "[source] schema_file: give either schema_file (a file) or registry (a URL)"),
    ("source/registry", "http://host", '[source] registry: is only for format = "avro"; leave it out'),
    ("source/start", "middle", '[source] start: must be one of "earliest", "latest"'),
    ("source/until", "noon", '[source] until: must be "end"'),
    ("source/lag", "soon", "[source] lag: "),
    ("source/idle_partition", "0s", "[source] idle_partition: must be longer than 0 seconds"),
    ("source/max_message_bytes", 0, "[source] max_message_bytes: must be at least 1"),
    ("source/key_column", "", "[source] key_column: must not be empty"),
    ("source/headers", {"a": 3}, "[source.headers] a: must be text"),
    ("source/types", {"user": "int"}, '[source.types] user: must be one of "int64"'),
    ("source/client", {"group.id": "x"}, '[source.client] "group.id": is the key group of [source]; write it there'),
    ("source/client", {"acks": "1"}, "[source.client] acks: is set so that every record is published exactly once"),
    ("source/client", {"a": ["x"]}, "[source.client] a: must be text, a number, true or false"),
    ("source/secrets", {"sasl.password": "hunter2"}, '[source.secrets] "sasl.password": must be "env:" and the name'),
    ("source/secrets", {"sasl.password": "env:"}, '[source.secrets] "sasl.password": must be "env:" and the name'),
    ("source/secrets", {"sasl.password": 3}, '[source.secrets] "sasl.password": must be "env:" and the name'),
    ("source/password", "hunter2", "[source] password: secrets do not belong in a policy"),
    ("sink/topic", None, "[sink] topic: is missing; name the topic"),
    ("sink/topic", "visits", '[sink]: "visits" is read by [source], so the output would become input'),
    ("sink/key", "user", "[sink] key: is the person's column, which would group messages by person"),
    ("sink/key", "agent", '[sink] key: the column "agent" is not published; name one that is'),
    ("sink/format", "avro", "[sink] schema_file: give either"),
    ("dead_letters", {"name": "published"}, "[dead_letters] name: is where the rows go; name another"),
    ("dead_letters", {"name": "visits"}, '[dead_letters] name: "visits" is read by [source]'),
    ("dead_letters", {"name": "a", "path": "b"}, "[dead_letters] name: give either a name"),
    ("checkpoint", None, "[checkpoint]: is missing; a live run does not end"),
    (
        "anonymize",
        {**TUPLES, "deadline": 2000, "reuse": 100},
        "[anonymize] deadline: counts arrivals, so it would never end",
    ),
]


@pytest.mark.parametrize(("path", "value", "sentence"), ONE_PROBLEM)
def test_one_problem(path: str, value: Any, sentence: str, tmp_path: Path) -> None:
    (problem, *others) = problems_of(changed(live_table(), path, value), folder=tmp_path)
    assert sentence in problem
    assert not others
    assert "hunter2" not in "".join((problem, *others))


@pytest.mark.parametrize("key", ["site", "shop", "ts"])
def test_published_columns_may_be_keys(key: str, tmp_path: Path) -> None:
    assert parse_policy(changed(live_table(), "sink/key", key), folder=tmp_path).message_sink.key == key


def test_quasi_identifiers_may_be_keys_and_times_that_are_not_published_may_not(tmp_path: Path) -> None:
    table = changed(live_table(), "anonymize", TUPLES)
    assert parse_policy(changed(table, "sink/key", "age"), folder=tmp_path).message_sink.key == "age"
    assert "is not published" in problems_of(changed(table, "sink/key", "ts"), folder=tmp_path)[0]


def test_a_run_that_ends_may_count_arrivals_and_needs_no_checkpoint(tmp_path: Path) -> None:
    table = changed(live_table("redis"), "anonymize", {**TUPLES, "deadline": 2000, "reuse": 100})
    table = changed(table, "checkpoint", None)
    assert parse_policy(changed(table, "source/until", "end"), folder=tmp_path).message_source.until == "end"


def test_methods_that_need_files_say_so(tmp_path: Path) -> None:
    table = changed(
        live_table(), "anonymize", {"method": "k^m", "item": "site", "k": 2, "m": 1, "generalize": {"balanced": 2}}
    )
    table = changed(changed(table, "stream", {"person": "user"}), "checkpoint", None)
    assert any("k^m decides all records at once, so it reads files only" in one for one in problems_of(table))


def test_the_topic_of_another_system_may_have_the_same_name(tmp_path: Path) -> None:
    table = changed(live_table(), "sink/topic", "visits")
    parse_policy(changed(table, "sink/brokers", "elsewhere:9092"), folder=tmp_path)


def test_the_schema_that_is_written_must_not_be_the_one_that_is_read(tmp_path: Path) -> None:
    avro = {"format": "avro", "schema_file": "visit.avsc"}
    table = live_table()
    table = {**table, "source": {**table["source"], **avro}, "sink": {**table["sink"], **avro}}
    (problem,) = problems_of(table, folder=tmp_path)
    assert "[sink] schema_file: is the same place as [source] schema_file; write somewhere else" in problem
    parse_policy(changed(table, "sink/schema_file", "other.avsc"), folder=tmp_path)
    (problem,) = problems_of(changed(table, "sink/schema_file", "state"), folder=tmp_path)
    assert "[sink] schema_file: is the same place as [checkpoint] path" in problem


def test_names_of_topics_for_letters_are_for_messages(tmp_path: Path) -> None:
    table = changed(live_table(), "sink", {"kind": "csv", "path": "out.csv"})
    (problem,) = problems_of(changed(table, "dead_letters", {"name": "refused"}), folder=tmp_path)
    assert "is for sinks of messages; name a file in path" in problem
    named = parse_policy(changed(live_table(), "dead_letters", {"name": "refused"}), folder=tmp_path)
    assert named.dead_letters.where == "refused"
    in_file = parse_policy(changed(live_table(), "dead_letters", {"path": "refused.jsonl"}), folder=tmp_path)
    assert in_file.dead_letters.where == str(tmp_path / "refused.jsonl")


# ---- secrets


@pytest.mark.parametrize(
    "name",
    ["sasl.password", "ssl.key.password", "ssl.key.pem", "sasl.jaas.config", "basic.auth.user.info", "token",
     "password", "sasl.oauthbearer.client.secret", "sasl.oauthbearer.config", "api_key", "passphrase",
     "nkeys_seed_str"],
)  # fmt: skip
def test_secrets_among_the_settings_of_the_client_are_refused(name: str, tmp_path: Path) -> None:
    (problem,) = problems_of(changed(live_table(), "sink/client", {name: "hunter2"}), folder=tmp_path)
    assert "secrets do not belong in a policy; write it below secrets" in problem
    assert "hunter2" not in problem


@pytest.mark.parametrize(
    "name",
    ["ssl.ca.location", "ssl.key.location", "security.protocol", "sasl.username", "ssl_keyfile", "user_credentials",
     "fetch.min.bytes", "sasl.mechanism", "partitioner", "nkeys_seed"],
)  # fmt: skip
def test_settings_that_are_not_secret_are_taken(name: str) -> None:
    assert not is_secret_setting(name)


def test_secrets_come_from_the_environment_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "hunter2")
    (tmp_path / "token").write_text("swordfish\n")
    client = {"security.protocol": "SASL_SSL", "fetch.min.bytes": 7}
    secrets = {"sasl.password": "env:KAFKA_PASSWORD", "ssl.key.pem": "file:token", "registry.auth": "file:token"}
    table = changed(changed(live_table(), "source/client", client), "source/secrets", secrets)
    policy = parse_policy(table, folder=tmp_path)
    found = policy.message_source.settings("source")
    assert found == {**client, "sasl.password": "hunter2", "ssl.key.pem": "swordfish"}
    assert policy.message_source.registry_login("source") == "swordfish"
    for secret in ("hunter2", "swordfish"):
        assert secret not in repr(policy) + str(policy) + policy.fingerprint()


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("env:SHOAL_NOT_SET", "the environment variable SHOAL_NOT_SET is not set"),
        ("file:none", "none cannot be read"),
        ("file:empty", "empty is empty"),
        ("file:binary", "binary is not UTF-8"),
    ],
)
def test_secrets_that_cannot_be_read(reference: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    policy = parse_policy(changed(live_table(), "source/secrets", {"sasl.password": reference}), folder=tmp_path)
    with pytest.raises(PolicyError, match=sentence) as caught:
        policy.message_source.settings("source")
    assert caught.value.problems[0].startswith('[source.secrets] "sasl.password": ')


def test_how_a_system_is_reached_may_change_between_runs(tmp_path: Path) -> None:
    def fingerprint(*changes: tuple[str, Any]) -> str:
        table = live_table()
        for path, value in changes:
            table = changed(table, path, value)
        return parse_policy(table, folder=tmp_path).fingerprint()

    first = fingerprint()
    for path, value in (
        ("source/client", {"fetch.min.bytes": 7}),
        ("source/secrets", {"sasl.password": "env:OTHER"}),
        ("source/give_up", "1min"),
        ("source/lag", "9s"),
        ("sink/client", {"linger.ms": 7}),
    ):
        assert fingerprint((path, value)) == first
    for path, value in (
        ("source/topics", ["others"]),
        ("source/key_column", "device"),
        ("sink/key", "site"),
        ("sink/topic", "elsewhere"),
        ("dead_letters", {"name": "refused"}),
    ):
        assert fingerprint((path, value)) != first


@pytest.mark.parametrize("kind", KINDS)
def test_all_systems_have_the_keys_of_messages(kind: str) -> None:
    assert issubclass(SOURCES[kind], MessageSource)
    assert issubclass(SINKS[kind], MessageSink)
    for section in (SOURCES[kind], SINKS[kind]):
        assert all(field.description for name, field in section.model_fields.items() if name != "kind")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"checkpoint/every": "5min"}, None),
        ({"checkpoint/every": "6min"}, "half the time for which Kafka keeps a transaction open (600 s)"),
        ({"checkpoint/every": "6min", "sink/client": {"transaction.timeout.ms": 900_000}}, None),
        ({"checkpoint/every": 1_000}, 'give a duration such as "30s"'),
        ({"checkpoint/every": 1_000, "source/until": "end"}, None),
        ({"checkpoint": None, "source/until": "end"}, "what is written to Kafka becomes visible with a checkpoint"),
    ],
)
def test_a_transaction_of_kafka_is_not_open_for_long(
    changes: dict[str, Any], sentence: str | None, tmp_path: Path
) -> None:
    table = live_table("kafka")
    for key, value in changes.items():
        table = changed(table, key, value)
    table = {name: section for name, section in table.items() if section is not None}
    if sentence is None:
        parse_policy(table, folder=tmp_path)
    else:
        (problem,) = problems_of(table, folder=tmp_path)
        assert sentence in problem


@pytest.mark.parametrize(("section", "topics"), [("source", {"topics": ["a"]}), ("sink", {"topic": "b"})])
def test_a_session_of_mqtt_is_never_thrown_away(section: str, topics: dict[str, Any], tmp_path: Path) -> None:
    table = changed(live_table(), section, {"kind": "mqtt", "broker": "h", **topics, "client": {"clean_session": True}})
    assert any("is set so that no message is lost; leave it out" in one for one in problems_of(table, folder=tmp_path))
