"""Policies for several workers: which are refused and why, and what each worker gets for itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shoal.errors import PolicyError
from shoal.pipeline import Pipeline
from shoal.policy import Policy, load_policy, parse_policy
from shoal.policy.live.systems import KafkaSink
from shoal.policy.live.workers import for_worker
from shoal.policy.tables import CheckpointSection
from tests.policy.test_live import KINDS, TUPLES, live_table
from tests.policy.test_policy import changed
from tests.policy.test_problems import problems_of

SHARED = {"workers": 4, "keyed_by": "site"}
TREE = {"kind": "flat", "values": ["a", "b"]}
Z = live_table()["anonymize"]
T = {**TUPLES, "sensitive": ["illness"], "t": 0.2}


def table(*changes: tuple[str, Any]) -> dict[str, Any]:
    found = live_table()
    found["source"] |= SHARED
    for path, value in changes:
        found = changed(found, path, value)
    return found


def tuples(anonymize: dict[str, Any] = TUPLES, keyed_by: str = "age") -> dict[str, Any]:
    return table(("anonymize", anonymize), ("source/keyed_by", keyed_by), ("source/types", {"age": "int64"}))


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        (table(("source/keyed_by", None)), "[source] keyed_by: is missing; several workers need a topic"),
        (table(("source/keyed_by", "shop")), '[source] keyed_by: people who share a value of "site" must be at one'),
        (table(("source/workers", 0)), "[source] workers: must be at least 1"),
        (table(("source/workers", None)), "[source] keyed_by: is for several workers; set workers, or leave it out"),
        (table(("source/partitioner", "random")), '[source] partitioner: must be one of "murmur2", "crc32"'),
        (table(("stream/person", "row")), '[source] workers: person = "row" numbers rows'),
        (
            table(("anonymize/attribute", {"site": {}, "agent": {}})),
            "[anonymize] attribute: a topic is keyed by one column",
        ),
        (
            table(("anonymize", {**Z, "on_private": "generalize", "hierarchy": TREE})),
            "[anonymize] on_private: generalizes to labels whose people are at several workers",
        ),
        (table(("anonymize", {**Z, "combine": "k", "k": 5})), "[anonymize] combine: compares all values of a person"),
        (
            table(("anonymize", {key: Z[key] for key in Z if key != "z"} | {"target": {"k": 2, "p": 0.9}})),
            "[anonymize] target: z follows all people of the stream",
        ),
        (
            table(("sink", {"kind": "redis", "stream": "out", "url": "redis://host"})),
            "[sink] kind: numbers of messages belong to one writer",
        ),
        (tuples(keyed_by="user"), '[source] keyed_by: the column "user" is neither a quasi-identifier nor carried'),
        (changed(tuples(), "source/types", None), '[source] types: "age" has a text only as a whole number; declare'),
        (tuples(T), "[anonymize] reference: t compares with recent arrivals, and those of a worker are not those"),
    ],
)
def test_refused_with_the_reason(policy: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    (problem, *others) = problems_of(policy, folder=tmp_path)
    assert sentence in problem
    assert not others


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "kafka"])
def test_other_systems_have_one_worker(kind: str, tmp_path: Path) -> None:
    (problem,) = problems_of(changed(live_table(kind), "source/workers", 2), folder=tmp_path)
    assert "which only topics of Kafka are; leave it out" in problem


@pytest.mark.parametrize(
    "policy",
    [
        table(),
        table(("source/partitioner", "crc32")),
        table(("anonymize", {**Z, "on_private": "blank"})),
        tuples(),
        tuples(keyed_by="shop"),
        tuples({**T, "reference": {"illness": {"flu": 0.5, "gout": 0.5}}}),
    ],
)
def test_accepted(policy: dict[str, Any], tmp_path: Path) -> None:
    assert parse_policy(policy, folder=tmp_path).message_source.workers == 4


def test_the_example_is_for_two_workers() -> None:
    file = Path(__file__).parents[2] / "examples" / "live" / "kafka.toml"
    assert checkpoint_of(load_policy(file, worker=1)) == "state/worker-1"


def test_flexible_k_has_one_worker(tmp_path: Path) -> None:
    quasi = {"school": {"kind": "categorical", "hierarchy": TREE}}
    policy = tuples({"method": "flexible-k", "k": 3, "window": 60, "quasi": quasi}, "school")
    (problem,) = problems_of(policy, folder=tmp_path)
    assert "forms groups among all people of the stream, so it runs in one process" in problem


def checkpoint_of(policy: Policy) -> str:
    assert isinstance(policy.checkpoint, CheckpointSection)
    return policy.checkpoint.path.text


def test_every_worker_has_its_own(tmp_path: Path) -> None:
    policy = parse_policy(table(), folder=tmp_path)
    own = [for_worker(policy, worker) for worker in range(4)]
    assert [checkpoint_of(one) for one in own] == [f"state/worker-{worker}" for worker in range(4)]
    ids = [one.sink.transactional_id for one in own if isinstance(one.sink, KafkaSink)]
    assert ids == [f"published-worker-{worker}-of-4" for worker in range(4)]
    assert {one.dead_letters.name for one in own} == {"published-dead-letters"}
    assert len({one.fingerprint() for one in own}) == 4


@pytest.mark.parametrize(
    ("sink", "rows", "letters"),
    [
        ({"kind": "parquet", "path": "out/"}, "out/worker-2/", "out.worker-2.dead.jsonl"),
        ({"kind": "csv", "path": "data/out.csv.gz"}, "data/out.worker-2.csv.gz", "data/out.worker-2.csv.gz.dead.jsonl"),
    ],
)
def test_files_of_a_worker(tmp_path: Path, sink: dict[str, Any], rows: str, letters: str) -> None:
    policy = parse_policy(table(("sink", sink), ("trace", {"path": "trace.parquet"})), folder=tmp_path)
    own = for_worker(policy, 2)
    assert own.file_sink.path.text == rows
    assert own.file_sink.path.path == tmp_path / rows
    assert own.dead_letters.path.path == tmp_path / letters
    assert own.trace is not None
    assert own.trace.path.path == tmp_path / "trace.worker-2.parquet"


def test_which_worker_and_which_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = parse_policy(table(), folder=tmp_path)
    monkeypatch.delenv("SHOAL_KEY_FILE", raising=False)
    with pytest.raises(PolicyError, match="say which one this is: --worker 0 to --worker 3"):
        Pipeline(policy)
    with pytest.raises(PolicyError, match="SHOAL_KEY_FILE is not set, but all workers need the same key"):
        Pipeline(for_worker(policy, 0))
    with pytest.raises(PolicyError, match="--worker: must be between 0 and 3"):
        for_worker(policy, 4)
    with pytest.raises(PolicyError, match="--worker: the policy has one worker"):
        for_worker(parse_policy(live_table(), folder=tmp_path), 0)


def test_checkpoints_of_one_worker_stay_valid_and_a_run_may_be_told_to_end(tmp_path: Path) -> None:
    plain = parse_policy(live_table(), folder=tmp_path).source.plain_fields()
    assert not {"workers", "keyed_by", "partitioner"} & plain.keys()
    ended = parse_policy(changed(live_table(), "source/until", "end"), folder=tmp_path)
    assert ended.fingerprint() == parse_policy(live_table(), folder=tmp_path).fingerprint()
    assert parse_policy(table(), folder=tmp_path).source.plain_fields()["workers"] == 4
