"""MQTT: whatever is killed, no message is lost; repeats are counted, and recognized by an id in the content."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt import client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from tests.brokers.forker import ALARMED, ENDED, KILLED, Forker
from tests.brokers.servers import Mosquitto
from tests.brokers.stream_scene import policy_text

MESSAGES = 2_000
KILLS = 12
UNLOGGED, UNACKNOWLEDGED = "before MessageLog.append", "after MessageLog.append"


@pytest.fixture
def broker() -> Iterator[Mosquitto]:
    """A running broker; skips if it is not on this machine."""
    missing = Mosquitto.missing()
    if missing:
        pytest.skip(missing)
    with Mosquitto() as running:
        yield running


class Session:
    """A client of the test, with a session that the broker keeps."""

    def __init__(self, broker: Mosquitto, name: str) -> None:
        self.messages: list[Any] = []
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2, name, protocol=mqtt.MQTTv5)
        self.client.on_message = lambda client, data, message: self.messages.append(message)
        properties = mqtt.Properties(mqtt.PacketTypes.CONNECT)
        properties.SessionExpiryInterval = 0xFFFFFFFF
        self.client.connect("127.0.0.1", broker.port, clean_start=False, properties=properties)

    def subscribe(self, topic: str) -> None:
        answered: list[int] = []
        self.client.on_subscribe = lambda client, data, mid, codes, properties: answered.append(mid)
        self.client.subscribe(topic, qos=1)
        while not answered:
            self.client.loop(0.1)

    def publish(self, topic: str, values: list[bytes]) -> None:
        for start in range(0, len(values), 50):
            sent = [self.client.publish(topic, value, qos=1) for value in values[start : start + 50]]
            while not all(one.is_published() for one in sent):
                self.client.loop(0.1)

    def collect(self, steps: int = 200) -> list[Any]:
        for _ in range(steps):
            if self.client.loop(0.01) != mqtt.MQTT_ERR_SUCCESS:
                self.client.reconnect()
        return self.messages


def make_run(folder: Path, broker: Mosquitto, extra: str = "") -> dict[str, Any]:
    """A policy from MQTT to MQTT that publishes every record at once; the job that runs it."""
    (folder / "key.txt").write_text("a key of more than sixteen bytes")
    (folder / "key.txt").chmod(0o600)
    address = f'broker = "127.0.0.1:{broker.port}"'
    types = '[source.types]\nts = "int64"\nuser = "string"\nsite = "string"\nid = "int64"'
    text = policy_text(
        stream='person = "user"\ntime = "ts"\ntime_unit = "s"\ncarry = ["id"]\ncarry_identifying = true',
        source=f'kind = "mqtt"\n{address}\ntopics = ["in/+"]\nclient_id = "shoal"\nlag = "1h"\n{extra}\n{types}',
        anonymize='method = "z-anonymity"\nattribute = "site"\nz = 1\nwindow = "60s"',
        sink='kind = "mqtt"\ntopic = "out"',
        checkpoint='path = "state"\nevery = 200',
    )
    (folder / "policy.toml").write_text(text)
    return {"folder": str(folder), "env": {"SHOAL_KEY_FILE": str(folder / "key.txt")}}


def numbers(messages: list[Any]) -> dict[int, bytes]:
    """Values by number; a number that comes again has the same value."""
    found: dict[int, bytes] = {}
    for message in messages:
        number = int(dict(message.properties.UserProperty)["number"])
        assert found.setdefault(number, message.payload) == message.payload
    return found


@pytest.mark.parametrize("extra", ["", 'id = "id"'], ids=["without an id", "with an id"])
def test_killed_again_and_again(broker: Mosquitto, stream_forker: Forker, tmp_path: Path, extra: str) -> None:
    job = make_run(tmp_path, broker, extra)
    Session(broker, "shoal").subscribe("in/+")
    rows, letters = Session(broker, "rows"), Session(broker, "letters")
    rows.subscribe("out")
    letters.subscribe("out-dead-letters")
    now = int(time.time())  # time passes while nothing arrives, an hour behind the clock
    records = [{"ts": now, "user": f"u{i % 30}", "site": f"s{i % 7}", "id": i} for i in range(MESSAGES)]
    device = Session(broker, "device")
    draw = random.Random(extra)
    sent = 0
    ends = []
    for kill in range(KILLS):
        upto = MESSAGES * (kill + 1) // KILLS
        device.publish("in/a", [json.dumps(record).encode() for record in records[sent:upto]])
        sent = upto
        places = [{"kill_at": UNLOGGED}, {"seconds": draw.uniform(0.3, 1.2)}, {"kill_at": UNACKNOWLEDGED}]
        ends.append(stream_forker.ask(**job, **places[kill % 3])["code"])
        if kill == KILLS // 2:  # it saves sessions when it stops
            broker.stop()
            broker.start()
            for one in (rows, letters, device):
                one.client.reconnect()
    assert set(ends) <= {KILLED, ALARMED}, (tmp_path / "stderr.txt").read_text()
    child = stream_forker.ask(**job, is_left_alone=True)["child"]
    wanted = set(range(MESSAGES))
    for _ in range(300):
        found = numbers(rows.collect())
        if {json.loads(value)["id"] for value in found.values()} >= wanted:
            break
    os.kill(child, signal.SIGTERM)
    assert stream_forker.ask(wait=child) in ENDED, (tmp_path / "stderr.txt").read_text()
    ids = [json.loads(value)["id"] for value in numbers(rows.collect()).values()]
    refused = [json.loads(value)["reason"] for value in numbers(letters.collect()).values()]
    assert set(ids) == wanted  # nothing is lost
    repeats = len(ids) - len(wanted)
    sys.stdout.write(f"{len(ends)} kills: {repeats} published twice, {len(refused)} refused as repeats\n")  # pytest -rP
    if extra:
        assert repeats == 0
        assert set(refused) == {"repeats a message that arrived before"}
    else:
        assert repeats > 0
        assert refused == []


def test_the_key_changes_while_messages_are_in_the_log(
    broker: Mosquitto, stream_forker: Forker, tmp_path: Path
) -> None:
    """The log next to the checkpoints is read with the old key, sealed again, and needs the new one only."""
    job = make_run(tmp_path, broker, 'id = "id"')
    Session(broker, "shoal").subscribe("in/+")
    rows, device = Session(broker, "rows"), Session(broker, "device")
    rows.subscribe("out")
    now = int(time.time())

    def publish(first: int) -> None:
        records = [{"ts": now, "user": f"u{i % 3}", "site": "s", "id": i} for i in range(first, first + 10)]
        device.publish("in/a", [json.dumps(record).encode() for record in records])

    def ids() -> list[int]:
        return [json.loads(value)["id"] for value in numbers(rows.collect(20)).values()]

    def go_on(upto: int, **changes: Any) -> None:
        child = stream_forker.ask(**{**job, **changes}, is_left_alone=True)["child"]
        while len(ids()) < upto:
            assert not broken(), (tmp_path / "stderr.txt").read_text()
        os.kill(child, signal.SIGTERM)
        assert stream_forker.ask(wait=child) in ENDED, (tmp_path / "stderr.txt").read_text()

    def broken() -> bool:
        errors = tmp_path / "stderr.txt"
        return errors.exists() and "another key" in errors.read_text()

    publish(0)
    go_on(10)
    publish(10)
    assert stream_forker.ask(**job, kill_at=UNACKNOWLEDGED)["code"] == KILLED
    (tmp_path / "new.txt").write_text("another key of more than sixteen bytes")
    (tmp_path / "new.txt").chmod(0o600)
    new, old = {"SHOAL_KEY_FILE": str(tmp_path / "new.txt")}, {"SHOAL_OLD_KEY_FILE": job["env"]["SHOAL_KEY_FILE"]}
    go_on(20, env={**new, **old}, words=["run", "policy.toml", "--json", "--upgrade"])
    publish(20)
    go_on(30, env=new)
    assert sorted(ids()) == list(range(30))
