"""TLS for clients that take a context of Python's ssl module instead of settings."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final

from shoal.errors import RunError

NAMES: Final = ("tls", "cafile", "certfile", "keyfile")
"""Settings: `tls = true`, and files of certificates by the names of Python's ssl module; any file switches TLS on."""


def tls_context(settings: Mapping[str, Any], failure: Callable[[str], RunError]) -> ssl.SSLContext | None:
    """The context that settings ask for; None for a connection without TLS."""
    if not any(settings.get(name) for name in NAMES):
        return None
    try:
        context = ssl.create_default_context(cafile=settings.get("cafile"))
        if settings.get("certfile"):
            context.load_cert_chain(settings["certfile"], settings.get("keyfile"))
    except (OSError, ssl.SSLError):
        raise failure("the files of TLS cannot be used; check cafile, certfile and keyfile in client") from None
    return context


def without_tls(settings: Mapping[str, Any]) -> dict[str, Any]:
    """All other settings."""
    return {name: value for name, value in settings.items() if name not in NAMES}


def distrust(error: BaseException | None, name: str = "cafile") -> str | None:
    """What to say if a server's certificate was not accepted; None for another error. `name`: of the setting."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            why = error.verify_message.rstrip(".")
            return (
                f"the certificate of the server cannot be verified ({why}); check {name} in client, and that the "
                "address is in the certificate"
            )
        error = error.__cause__ or error.__context__
    return None
