"""A run with its web server: connects the tap, the board, the routes and the run."""

from __future__ import annotations

import signal
from contextlib import nullcontext
from threading import Event
from typing import Final

from shoal.clients.addresses import Address, addresses
from shoal.errors import PolicyError, ShoalError, missing_extra
from shoal.observe.counts import RunSummary
from shoal.observe.metrics import MetricsObserver
from shoal.observe.observer import Observer, Observers
from shoal.observe.serving import HealthObserver
from shoal.pipeline import Pipeline
from shoal.pipeline.stopping import Stop
from shoal.pipeline.wiring import make_source
from shoal.policy import Policy
from shoal.policy.live.systems import HttpSource
from shoal.serve.background import Background
from shoal.serve.measured.measured import Measured
from shoal.serve.recent import RecentRows
from shoal.serve.released import ReleasedRows
from shoal.serve.tap import RunTap
from shoal.serve.trials import check_trial
from shoal.sources.base import Source
from shoal.sources.http import EVENTS, HttpReader
from shoal.sources.live import LiveSource

try:
    from shoal.serve.access import Access, make_token
    from shoal.serve.app import Site
    from shoal.serve.board import Board
    from shoal.serve.events import Intake
    from shoal.serve.server import listen, serving
except ModuleNotFoundError:
    raise missing_extra("the web server", package="starlette uvicorn", extra="serve") from None

_PLACE: Final = Address("127.0.0.1", 8765)
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


class RunHost:
    """One run of a pipeline behind a web server, which listens when this is made.

    Parameters
    ----------
    host, port
        Where to listen; by default port 8765 of this machine only.
    with_token
        Whether requests need the token.
    with_page
        Whether there is a page; otherwise only rows and metrics are served.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        host: str | None = None,
        port: int | None = None,
        with_token: bool = True,
        with_page: bool = True,
    ) -> None:
        if not pipeline.policy.anonymize.IS_STREAM:
            raise PolicyError(
                f"[anonymize] method: {pipeline.policy.anonymize.METHOD} decides all records at once, so there is "
                "nothing to watch; use shoal run"
            )
        self._pipeline = pipeline
        self._source, reader = _http_source(pipeline.policy)
        listens_at = _place(pipeline.policy)
        self._host = host or listens_at.host
        self._listening = listen(self._host, listens_at.port if port is None else port)
        self.port: int = self._listening.getsockname()[1]
        token = make_token(_secret_token(pipeline.policy)) if with_token else None
        self._access = Access(token, self._host)
        self._recent, self._released = RecentRows(), ReleasedRows()
        self._tap = RunTap(self._recent, self._released)
        self._health, self._metrics = HealthObserver(), MetricsObserver()
        intake = Intake(reader) if reader is not None else None
        self._board = Board(pipeline.policy, self._tap) if with_page else None
        self._site = Site(
            self._board, self._released, self._access, self._health, self._metrics.page, intake, self._ask_trial
        )
        self._background = Background(
            pipeline.policy,
            self._recent,
            on_measured=self._show,
            on_trial=self._site.announce_trial,
            on_failure=self._tap.warn_once,
        )

    def _ask_trial(self, given: object) -> int:
        return self._background.ask(check_trial(self._pipeline.policy, given))

    def _show(self, measured: Measured) -> None:
        if self._board is not None:
            self._board.measured = measured

    @property
    def address(self) -> str:
        """The page's address, with the token."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        query = f"?token={self._access.token}" if self._access.token else ""
        return f"http://{host}:{self.port}/{query}"

    @property
    def token(self) -> str | None:
        """What requests must have."""
        return self._access.token

    @property
    def events_address(self) -> str:
        """Where records are sent."""
        return f"{self.address.partition('?')[0]}{EVENTS.removeprefix('/')}"

    @property
    def warnings(self) -> list[str]:
        """What to know before others can reach it."""
        if self._host in _LOOPBACK:
            return []
        return [
            f"{self._host} may be reachable by other machines, and the connection is not encrypted: token and rows can "
            "be read on the way; put a proxy with TLS in front of it"
        ]

    def close(self) -> None:
        """Stop listening, if nothing was run."""
        self._listening.close()

    def run(
        self, observer: Observer, *, stop: Stop | None = None, take_over: bool = False, upgrade: bool = False
    ) -> RunSummary:
        """Run to the end while serving; options are those of :meth:`shoal.Pipeline.run`.

        A run over files stays on the page until Ctrl-C or SIGTERM.
        """
        policy = self._pipeline.policy
        together = Observers(observer, self._tap, self._health, self._metrics)
        measuring = self._background.working() if self._board is not None else nullcontext()
        with serving(self._site, self._listening), measuring:
            for warning in policy.warnings:
                together.warn(warning)
            try:
                summary = self._pipeline.run(
                    together, source=self._source, stop=stop, take_over=take_over, upgrade=upgrade
                )
            except ShoalError as error:
                self._tap.fail(str(error))
                raise
            except Exception:
                self._tap.fail("The run has failed by an internal error.")
                raise
            self._tap.progress(summary)
            if self._board is not None:
                self._background.measure()
            self._tap.stop("Stopped after a checkpoint." if summary.stopped else "Finished: all records are decided.")
            if not policy.source.is_endless and self._board is not None:
                _wait_for_signal()
        return summary


def _http_source(policy: Policy) -> tuple[Source | None, HttpReader | None]:
    """The source that this server fills, if the policy has one."""
    if not isinstance(policy.source, HttpSource):
        return None, None
    source = make_source(policy)
    assert isinstance(source, LiveSource)
    assert isinstance(source.reader, HttpReader)
    source.reader.is_served = True
    return source, source.reader


def _place(policy: Policy) -> Address:
    return addresses(policy.source.listen, port=_PLACE.port)[0] if isinstance(policy.source, HttpSource) else _PLACE


def _secret_token(policy: Policy) -> str | None:
    found = policy.source.settings("source") if isinstance(policy.source, HttpSource) else {}
    return found.get("token")


def _wait_for_signal() -> None:
    """Wait for Ctrl-C or SIGTERM."""
    asked = Event()
    before = signal.signal(signal.SIGTERM, lambda *_: asked.set())
    try:
        asked.wait()
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)
