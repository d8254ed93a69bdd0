"""Servers that refuse a login, and certificates that cannot be verified: one sentence, without a secret."""

from __future__ import annotations

import ssl

import pytest
from confluent_kafka import KafkaError, KafkaException

from shoal.clients.kafka import Refusal, attempt, is_denied, is_passing, reason
from shoal.clients.tls import distrust
from shoal.clients.trouble import Unreachable
from shoal.errors import InputError

LOGIN = KafkaError(KafkaError._AUTHENTICATION, "SASL authentication error: hunter2")
UNVERIFIED = KafkaError(KafkaError._SSL, "SSL handshake failed: certificate verify failed: broker certificate could")
CUT = KafkaError(KafkaError._SSL, "SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener?")
SILENT = KafkaException(KafkaError(KafkaError._TRANSPORT, "no answer"))


def no_answer() -> None:
    raise SILENT


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (LOGIN, "brokers refuse the user or the password"),
        (UNVERIFIED, "the certificate of a broker cannot be verified"),
    ],
)
def test_brokers_that_refuse_us_are_not_asked_again(error: KafkaError, sentence: str) -> None:
    assert is_denied(error)
    refusal = Refusal()
    explain = lambda: refusal.require_none(InputError, lambda seconds: None)  # noqa: E731
    with pytest.raises(Unreachable):
        attempt(no_answer, InputError, explain)
    refusal.note(error)
    with pytest.raises(InputError, match=f"^{sentence}; check ") as raised:
        attempt(no_answer, InputError, explain)
    assert "hunter2" not in str(raised.value)


def test_a_handshake_that_is_cut_off_may_succeed_later() -> None:
    """A broker that stops does that."""
    assert is_passing(CUT)
    refusal = Refusal()
    refusal.note(CUT)
    refusal.require_none(InputError, lambda seconds: None)
    assert "PLAINTEXT broker listener" in reason(CUT)


def test_a_certificate_is_found_behind_other_errors() -> None:
    error = ssl.SSLCertVerificationError()
    error.verify_message = "unable to get local issuer certificate"
    outer = ConnectionError("cannot connect")
    outer.__context__ = OSError("1")
    outer.__context__.__cause__ = error
    sentence = "the certificate of the server cannot be verified (unable to get local issuer certificate); check cafile"
    assert str(distrust(outer)).startswith(sentence)
    assert "check ssl_ca_certs in client" in str(distrust(error, "ssl_ca_certs"))
    assert distrust(ConnectionError("refused")) is None
