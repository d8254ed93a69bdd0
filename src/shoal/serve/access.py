"""Who may see the page: a token, once in the address and then in a cookie, or as a bearer token."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request

from shoal.errors import PolicyError

TOKEN_VARIABLE: Final = "SHOAL_SERVE_TOKEN"
_LEAST: Final = 16
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]", "::1"})


@dataclass(frozen=True)
class Access:
    """Decides about requests. Without a token, only requests by a name of this machine, or by `host`, are allowed."""

    token: str | None
    host: str

    @property
    def cookie(self) -> str:
        """The value of the cookie: it does not reveal the token."""
        return hashlib.blake2b(b"cookie", key=(self.token or "").encode()[:64], digest_size=32).hexdigest()

    @staticmethod
    def cookie_name(request: Request) -> str:
        """Cookies are shared by all ports of a host, so the port is part of the name."""
        return f"shoal-{request.url.port or 80}"

    def opens(self, token: str) -> bool:
        """Whether this is the token."""
        return self.token is not None and hmac.compare_digest(token.encode(), self.token.encode())

    def names_this_machine(self, request: Request) -> bool:
        """Whether a request to a server of this machine names it; a foreign name may have been pointed here."""
        return self.host not in _LOOPBACK or _host_name(request) in _LOOPBACK

    def allows(self, request: Request) -> bool:
        """Whether a request may be answered."""
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
            return False  # a page of another site asks
        if self.token is None:  # a name that others can point to this machine is not enough
            return _host_name(request) in _LOOPBACK or _host_name(request) == self.host
        kind, _, bearer = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self.opens(bearer.strip())
        return hmac.compare_digest(request.cookies.get(self.cookie_name(request), "").encode(), self.cookie.encode())


def _host_name(request: Request) -> str:
    """The name by which a request calls the server, without the port."""
    return request.headers.get("host", "").rsplit(":", 1)[0]


def make_token(given: str | None = None) -> str:
    """The token of the policy or of the environment; else a random one for this start."""
    token = given or os.environ.get(TOKEN_VARIABLE)
    if token is None:
        return secrets.token_urlsafe(24)
    if len(token) < _LEAST or not token.isascii() or not token.isprintable() or " " in token:
        raise PolicyError(f"{TOKEN_VARIABLE}: must be at least {_LEAST} printable ASCII characters without blanks")
    return token
