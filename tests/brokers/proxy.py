"""A TCP proxy between a client and a broker, which holds back bytes or cuts connections when a test says so."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Literal, Self

Direction = Literal["up", "down"]
"""To the broker, or to the client."""
_CHUNK = 65_536


class Proxy:
    """Listens on a port of its own, and connects every client to the port of a broker."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._news = threading.Condition()
        self._stalled: Direction | None = None
        self._held = 0
        self._left: dict[Direction, int] = {}
        self._silent: set[socket.socket] = set()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.resume()
        self.cut()

    # ---- faults

    def stall(self, direction: Direction) -> None:
        """Let nothing pass in this direction from now on."""
        with self._news:
            self._stalled, self._held = direction, 0

    def wait_until_held(self) -> None:
        """Wait until something is held back."""
        with self._news:
            assert self._news.wait_for(lambda: self._held > 0, 300), "nothing was sent"

    def resume(self) -> None:
        """Let everything pass that was held back, on connections that are still there."""
        with self._news:
            self._stalled = None
            self._news.notify_all()

    def cut(self) -> None:
        """End all connections; what is held back is lost."""
        with self._news:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for one in pair:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def silence(self) -> None:
        """Lose everything on the connections there are, without ending them, as a firewall that has forgotten them."""
        with self._news:
            self._silent |= {one for pair in self._pairs for one in pair}

    def cut_after(self, count: int, direction: Direction) -> None:
        """End the connection that is the first to send more than this many bytes, in the middle of a message."""
        with self._news:
            self._left = {direction: count}

    # ---- bytes

    def _accept(self) -> None:
        with suppress(OSError):  # the proxy was closed
            while True:
                client, _ = self._server.accept()
                try:
                    broker = socket.create_connection(("127.0.0.1", self._target))
                except OSError:
                    client.close()
                    continue
                with self._news:
                    self._pairs.append((client, broker))
                ways: tuple[tuple[Direction, socket.socket, socket.socket], ...]
                ways = ("up", client, broker), ("down", broker, client)
                for way in ways:
                    threading.Thread(target=self._pass, args=way, daemon=True).start()

    def _pass(self, direction: Direction, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                allowed = self._allowed(direction, data)
                if source in self._silent or sink in self._silent:
                    continue
                sink.sendall(allowed)
                if len(allowed) < len(data):
                    break
        for one in (source, sink):  # closing alone does not end a connection that the other thread reads
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _allowed(self, direction: Direction, data: bytes) -> bytes:
        with self._news:
            if direction == self._stalled:
                self._held += len(data)
                self._news.notify_all()
                self._news.wait_for(lambda: direction != self._stalled)
            if direction not in self._left:
                return data
            self._left[direction] -= len(data)
            over = self._left[direction]
            if over >= 0:
                return data
            del self._left[direction]
            return data[:over]
