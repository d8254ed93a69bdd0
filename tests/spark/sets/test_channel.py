"""Questions and answers between the driver and the parts, over real connections in one process."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Client, Listener
from threading import Thread
from typing import Any

import numpy as np
import pytest

from shoal.methods.sets.km_anonymity import decide_blocks
from shoal.methods.sets.search import Search
from shoal.spark.sets.channel import END, PartLost, PartServers, RemoteParts, decoded, encoded, serve
from shoal.spark.sets.part import SetPart
from shoal.spark.sets.supports import DividedSupports
from tests.spark.sets.test_parts import ITEMS, METHODS, LocalParts, divided, read, records

pytestmark = pytest.mark.compiled


def test_messages_come_back_unchanged() -> None:
    values = {"handle": 7, "images": np.array([[1, -1], [2, 3]], np.int32), "none": np.empty((0, 2), np.uint64)}
    question, found = decoded(encoded("supports", values))
    assert (question, found["handle"]) == ("supports", 7)
    for name in ("images", "none"):
        assert found[name].dtype == values[name].dtype  # type: ignore[attr-defined]
        assert found[name].tolist() == values[name].tolist()  # type: ignore[attr-defined]
    found["images"][0, 0] = 9  # blocks are reordered in place


def serve_quietly(driver: Any, make: Any) -> None:
    """As a task does, which fails when the driver has gone."""
    with suppress(PartLost):
        serve(driver, make)


def connected(local: LocalParts) -> tuple[RemoteParts, list[Thread], list[Any]]:
    """Every part behind a connection, served by a thread."""
    ours, threads, numbers = [], [], []
    for one in local.parts:
        here, there = Pipe()

        def make(own: Any, one: SetPart = one) -> SetPart:
            assert own.tolist() == one._numbers.tolist()
            return one

        threads.append(Thread(target=serve_quietly, args=(there, make), daemon=True))
        threads[-1].start()
        ours.append(here)
        numbers.append(one._numbers)
    parts = RemoteParts(ours)
    parts.begin(numbers)
    return parts, threads, ours


def test_a_search_over_connections() -> None:
    given, method = records(), METHODS["both"]
    data = read(given, sorted(ITEMS))
    local, known = divided(data, 3)
    parts, threads, _ = connected(local)
    partition = method.partition_of(sorted(ITEMS))
    supports = DividedSupports(parts, known)
    partition.start(supports.people())
    _, certificate = decide_blocks(Search(known, partition, method.settings, supports=supports))
    assert certificate == method.anonymize(given).certificate
    parts.tell(END)
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_a_part_that_is_gone() -> None:
    local, known = divided(read(records(), sorted(ITEMS)), 2)
    parts, _, connections = connected(local)
    supports = DividedSupports(parts, known)
    connections[1].close()
    with pytest.raises(PartLost, match="has died"):
        supports.people()


def test_a_task_fails_when_the_driver_gives_up() -> None:
    """If it ended well, Spark would not start it again with the others, which would wait for it for ever."""
    here, there = Pipe()
    here.close()
    with pytest.raises(PartLost, match="another task that held a part has died"):
        serve(there, lambda numbers: pytest.fail("nothing was asked"))


def test_a_connection_that_is_cut_does_not_end_the_waiting_for_parts() -> None:
    nobody: Any = None  # neither a frame nor a recipe is looked at while connections are accepted
    servers = PartServers(nobody, 1, nobody, nobody)

    def connect() -> None:
        with Client(listener.address, authkey=b"key") as task:
            task.send_bytes(encoded("here", {"part": 0, "attempt": 4}))

    with Listener(("127.0.0.1", 0), authkey=b"key") as listener:
        Thread(target=servers._accept, args=(listener,), daemon=True).start()
        with socket.create_connection(listener.address) as cut:
            cut.recv(1)  # the challenge: the connection is accepted
            cut.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing resets it
        Thread(target=connect, daemon=True).start()
        assert servers._arrived.get(timeout=60)[:2] == (4, 0)
