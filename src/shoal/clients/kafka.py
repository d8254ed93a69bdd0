"""Kafka's client: its settings, and its errors in sentences.

Settings have librdkafka's names. They may contain secrets, so no error repeats them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from shoal.clients.patience import Patience
from shoal.clients.trouble import Unreachable, persist
from shoal.errors import RunError, missing_extra

try:
    from confluent_kafka import KafkaError, KafkaException
except ImportError:
    raise missing_extra("Kafka", package="confluent-kafka", extra="kafka") from None

Settings = Mapping[str, str | int | float | bool]
STEP_SECONDS: Final = 0.4
"""How long a call may block while a run reads or waits, so that it serves signals in between."""
REQUEST_SECONDS: Final = 10.0
"""How long a request may take: brokers that have just started need some time, and a repeated call starts over."""
FENCED: Final = frozenset({"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"})
"""Another producer of the same name has taken over."""
UNKNOWN_TOPIC: Final = "UNKNOWN_TOPIC_OR_PART"
_LOGIN: Final = frozenset({"_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED"})
_TLS: Final = "_SSL"
_UNVERIFIED: Final = re.compile(r"certificate verify failed|could not be verified")
_DENIED: Final = frozenset(
    {
        *_LOGIN,
        "TOPIC_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
        "CLUSTER_AUTHORIZATION_FAILED",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    }
)
_PASSING: Final = frozenset(
    {
        "_TIMED_OUT",
        "_TIMED_OUT_QUEUE",
        "_TRANSPORT",
        _TLS,
        "_ALL_BROKERS_DOWN",
        "_RESOLVE",
        "_WAIT_COORD",
        "_WAIT_CACHE",
        "_IN_PROGRESS",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_FOR_PARTITION",
        "REQUEST_TIMED_OUT",
        "BROKER_NOT_AVAILABLE",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "CONCURRENT_TRANSACTIONS",
    }
)
_REFUSED: Final = frozenset(
    {
        "MSG_SIZE_TOO_LARGE",
        "RECORD_LIST_TOO_LARGE",
        "INVALID_RECORD",
        "INVALID_MSG",
        "POLICY_VIOLATION",
        "TOPIC_EXCEPTION",
        "UNSUPPORTED_VERSION",
        "UNSUPPORTED_FOR_MESSAGE_FORMAT",
        "INVALID_TRANSACTION_TIMEOUT",
    }
)
_VALUE: Final = re.compile(r'value "[^"]*"')
_T = TypeVar("_T")
_SILENT: Final = logging.getLogger("shoal.kafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False  # what matters is raised; the client's own lines may name hosts and users

Failure = Callable[[str], RunError]
"""Makes the error of a source or a sink from a reason."""


def make_client(kind: Callable[..., _T], settings: dict[str, Any], failure: Failure) -> _T:
    """A consumer or producer with these settings."""
    try:
        return kind(settings, logger=_SILENT)
    except KafkaException as error:
        why = _VALUE.sub("value", reason(error))  # it may be a secret
        raise failure(f"the client refuses its settings ({why}); check client and secrets") from None


class FatalAsException:
    """The client raises a fatal error as an object that is not an exception, so no ``except`` clause can name it."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, KafkaError):
            raise KafkaException(error) from None


def as_error(error: KafkaException | KafkaError) -> KafkaError:
    """The error inside an exception."""
    return error.args[0] if isinstance(error, KafkaException) else error


def reason(error: KafkaException | KafkaError) -> str:
    """An error in a sentence, or the client's name and text of it."""
    found = as_error(error)
    if found.name() in _LOGIN:
        return "brokers refuse the user or the password; check sasl.mechanism and sasl.username in client, and secrets"
    if _is_unverified(found):
        return (
            "the certificate of a broker cannot be verified; check ssl.ca.location in client, and that the address is "
            "in the certificate"
        )
    return f"{found.name()}: {found.str()}"


def _is_unverified(error: KafkaError) -> bool:
    return error.name() == _TLS and _UNVERIFIED.search(error.str()) is not None


def is_denied(error: KafkaException | KafkaError) -> bool:
    """Whether trying again is pointless: brokers refuse us, or the client cannot be used any more."""
    found = as_error(error)
    return bool(found.fatal() or found.name() in _DENIED or _is_unverified(found))


def is_refused(error: KafkaException | KafkaError) -> bool:
    """Whether writing the same messages again, with a new client, is pointless: brokers refuse us, or them."""
    found = as_error(error)
    return bool(found.name() in _DENIED | _REFUSED or _is_unverified(found))


def is_passing(error: KafkaException | KafkaError) -> bool:
    """Whether the same call may succeed later: brokers are unreachable, slow or elect a leader."""
    found = as_error(error)
    return bool(not is_denied(found) and (found.retriable() or found.name() in _PASSING))


class Refusal:
    """Remembers that brokers refuse us. Calls report only that they got no answer; the reason comes by `error_cb`."""

    def __init__(self) -> None:
        self._error: KafkaError | None = None

    def note(self, error: KafkaError) -> None:
        """The client's `error_cb`."""
        if is_denied(error) and self._error is None:
            self._error = error

    def require_none(self, failure: Failure, serve: Callable[[float], object]) -> None:
        """Raise `failure` if brokers have refused us; `serve` is the client's `poll`, which reports it."""
        with FatalAsException():
            serve(0)
        if self._error is not None:
            raise failure(reason(self._error))


def attempt(call: Callable[[], _T], failure: Failure, explain: Callable[[], None] | None = None) -> _T:
    """Call the client once; Unreachable if the same call may succeed later, and `explain` raises nothing else."""
    try:
        with FatalAsException():
            return call()
    except KafkaException as error:
        if not is_passing(error):
            raise failure(reason(error)) from None
        if explain is not None:
            explain()
        raise Unreachable(reason(error)) from None


def insist(
    call: Callable[[], _T], patience: Patience, failure: Failure, explain: Callable[[], None] | None = None
) -> _T:
    """Call the client until it succeeds; `failure` if an error does not pass, or lasts too long."""
    return persist(lambda: attempt(call, failure, explain), patience, failure)
