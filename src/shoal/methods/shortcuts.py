"""What a stream method offers besides the contract: one call for all rows, `with`, `audit`, a repr, a warning."""

from __future__ import annotations

import logging
import os
import warnings
from abc import ABC, abstractmethod
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import pyarrow as pa

from shoal.methods.policy_content import policy_of

if TYPE_CHECKING:
    from shoal.methods.base import Guarantee
    from shoal.methods.release import Release

_LOG: Final = logging.getLogger("shoal.methods")


class PendingRowsWarning(UserWarning):
    """A method is closed while rows are pending: they are in no release."""


class Shortcuts(ABC):
    """Shortcuts for people who call a method from Python; they use the contract of StreamMethod only."""

    method: ClassVar[str]
    _settings: Any
    _is_kept = False
    """Whether pending rows are kept elsewhere, in a snapshot."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What is promised of every published row."""

    @property
    @abstractmethod
    def pending(self) -> int:
        """Records accepted and not decided yet."""

    @property
    @abstractmethod
    def counts(self) -> dict[str, int]:
        """Records so far."""

    @property
    @abstractmethod
    def input_schema(self) -> pa.Schema:
        """Columns read, with their types."""

    @abstractmethod
    def push_batch(self, batch: Any) -> Release:
        """Accept a batch."""

    @abstractmethod
    def flush(self) -> Release:
        """Decide everything pending."""

    @abstractmethod
    def _joined(self, parts: list[Release]) -> Release:
        """Several releases as one."""

    def anonymize(self, rows: Any) -> Release:
        """Push all rows and flush: one release of everything. Rows are as for :meth:`push_batch`."""
        return self._joined([self.push_batch(rows), self.flush()])

    @property
    def policy(self) -> dict[str, Any]:
        """The columns and the promise as the content of a policy, which :func:`shoal.audit` reads."""
        return policy_of(self.method, self._settings.to_header(), self.input_schema)

    def audit(self, truth: Any, release: Any, trace: Any = None) -> Any:
        """Check a release of this method with :func:`shoal.audit`.

        `truth` is everything that was pushed, in order; `release` is a :class:`Release`, a list of them, or only rows,
        where `trace` may be given too.
        """
        if trace is None:
            trace = _traces(release)
        # By name: the auditor and the methods share no code, and neither imports the other.
        return import_module("shoal.auditor").audit(release, truth=truth, trace=trace, policy=self.policy)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, place: object) -> None:
        if error is None and self.pending and not self._is_kept and not self.guarantee.keeps_pending:
            warnings.warn(_lost(self), PendingRowsWarning, stacklevel=2)
            self._is_kept = True  # reported once

    def __del__(self) -> None:
        # A warning would be invisible here by default, and an exception is never shown to the caller.
        try:
            is_lost = bool(self.pending) and not self._is_kept and not self.guarantee.keeps_pending
        except Exception:  # half built, or the interpreter is shutting down
            return
        if is_lost and not os.environ.get("SHOAL_QUIET"):
            _LOG.warning("shoal: %s", _lost(self))

    def __repr__(self) -> str:
        counts = self.counts
        shown = f"{counts['pushed']:,} rows in, {counts['released']:,} released, {counts['suppressed']:,} suppressed"
        shown += f", {counts['dead']:,} refused, {counts['pending']:,} pending"
        return f"<{type(self).__name__}: {self.guarantee.statement}; {shown}>"


def _lost(method: Shortcuts) -> str:
    return (
        f"{method.pending:,} rows of {type(method).__name__} are pending and in no release; publish what flush() "
        "returns, or use anonymize(), which flushes"
    )


def _traces(release: Any) -> Any:
    if isinstance(release, list | tuple):
        found = [part.trace for part in release if hasattr(part, "trace")]
        return found if len(found) == len(release) and found else None
    return getattr(release, "trace", None)
