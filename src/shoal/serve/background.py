"""The thread that measures and tries settings: one thing at a time; the run never waits for it to finish."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from shoal.errors import ShoalError
from shoal.policy import Policy
from shoal.serve.measured.measured import Measured, Measurer, without_measurement
from shoal.serve.recent import RecentRows
from shoal.serve.trials import run_trial

_EVERY_SECONDS: Final = 2.0


class Background:
    """Measures from time to time; a trial that is asked for goes first, and replaces one that waits.

    Parameters
    ----------
    on_measured, on_trial
        Called in this thread with every result.
    """

    def __init__(
        self,
        policy: Policy,
        recent: RecentRows,
        *,
        on_measured: Callable[[Measured], None],
        on_trial: Callable[[dict[str, Any]], None],
        on_failure: Callable[[str], None],
    ) -> None:
        self._policy, self._recent, self._measurer = policy, recent, Measurer(policy, recent)
        self._on_measured, self._on_trial, self._on_failure = on_measured, on_trial, on_failure
        self._measured = Measured()
        self._measuring = threading.Lock()
        self._news = threading.Condition()
        self._waiting: tuple[int, dict[str, float]] | None = None
        self._asked = 0
        self._is_closing = False

    def ask(self, settings: dict[str, float]) -> int:
        """Try settings; returns the id that the result will have."""
        with self._news:
            self._asked += 1
            self._waiting = self._asked, settings
            self._news.notify_all()
            return self._asked

    @contextmanager
    def working(self) -> Iterator[None]:
        """Work while a block runs."""
        thread = threading.Thread(target=self._work, name="shoal measuring", daemon=True)
        thread.start()
        try:
            yield
        finally:
            with self._news:
                self._is_closing = True
                self._news.notify_all()
            thread.join(_EVERY_SECONDS)

    def _work(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._is_closing or self._waiting is not None, _EVERY_SECONDS)
                if self._is_closing:
                    return
                asked, self._waiting = self._waiting, None
            if asked is not None:
                self.answer(*asked)
            else:
                self.measure()

    def measure(self) -> None:
        """Measure once; a failure is reported, and what was measured before does not count any more."""
        with self._measuring:
            try:
                self._measured = self._measurer.measure()
            except Exception as error:  # the page must not end the run, nor show a figure that is not of now
                self._measured = without_measurement(self._measured)
                self._on_failure(f"measuring has failed ({type(error).__name__}); the run goes on")
            self._on_measured(self._measured)

    def answer(self, number: int, settings: dict[str, float]) -> None:
        """Do a trial; the result has an error in one sentence if it is impossible."""
        try:
            found = run_trial(self._policy, self._recent, settings)
        except ShoalError as error:
            found = {"settings": settings, "error": str(error)}
        except Exception as error:
            found = {"settings": settings, "error": f"the trial has failed ({type(error).__name__}); the run goes on"}
        self._on_trial({"id": number, **found})
