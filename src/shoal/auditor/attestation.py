"""A signed statement that a release was audited: digests of what was audited, the verdict, and an Ed25519 signature."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from shoal.auditor.digests import checksum, checksums_next_to, checksums_of_policy, version_of
from shoal.auditor.findings import ROWS, AuditReport
from shoal.errors import InputError

FORMAT: Final = "shoal-attestation-1"
_DOMAIN: Final = b"shoal attestation 1\n"
"""Keeps a signature from counting for anything else that the key signs."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The files of an audit; None for what was not given."""

    release: Any
    policy: Any
    truth: Any = None
    trace: Any = None

    def digests(self) -> dict[str, str]:
        """Return the digests of all files; raise InputError if one that is given does not exist."""
        own = {}
        for name in ("release", "policy", "truth", "trace"):
            given = getattr(self, name)
            if given is not None:
                digest = checksum(given)
                if digest is None:
                    raise InputError(f"{name}: no file at {given}; check the path")
                own[name] = digest
        named = {f"policy, {name}": digest for name, digest in checksums_of_policy(self.policy).items()}
        companions = {f"release.{ending}": digest for ending, digest in checksums_next_to(self.release).items()}
        return {**own, **named, **companions}


def make_statement(report: AuditReport, inputs: Inputs, before: Mapping[str, str]) -> dict[str, Any]:
    """Return what is signed: the verdict, how much was checked, and the digests of what was audited.

    ``before`` are the digests from before the audit: if a file has changed since, nothing is signed.
    """
    found = report.to_dict()
    if inputs.digests() != before:
        raise InputError("files changed during the audit, so nothing is signed; audit again")
    return {
        "format": FORMAT,
        "shoal": version_of("shoal"),
        "method": report.method,
        "ok": report.ok,
        "about": report.about,
        "verdict": report.verdict.sentence,
        "violations": len(report.violations),
        "warnings": len(report.warnings),
        "not_checked": len(report.not_checked),
        "sha256": {**before, "report": digest_of(found)},
    }


def verdict_in(statement: Mapping[str, Any]) -> str:
    """Return the verdict of a statement; older ones have only whether a promise was broken, and about what."""
    older = "nothing broken" + (f" for {ROWS}" if statement.get("about") == ROWS else "")
    return str(statement.get("verdict", older))


def digest_of(content: Any) -> str:
    """Return the SHA-256 of a report as canonical JSON, as `shoal audit --json` has it, without its layout."""
    return hashlib.sha256(_canonical(content)).hexdigest()


def sign(statement: dict[str, Any], key: Path) -> str:
    """Return the attestation as JSON text; the key is an Ed25519 private key in PEM without a password."""
    private = _read_key(key)
    if not isinstance(private, Ed25519PrivateKey):
        raise InputError(f"{key}: not a private Ed25519 key; make one with: openssl genpkey -algorithm ed25519")
    signature = private.sign(_DOMAIN + _canonical(statement))
    public = private.public_key().public_bytes_raw()
    made = {"statement": statement, "public_key": public.hex(), "signature": signature.hex()}
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def verify(attestation: Path, inputs: Inputs, key: Path | None = None) -> tuple[dict[str, Any], list[str]]:
    """Return the statement, and every reason not to trust it; none if all digests and the signature are right.

    ``key`` is the auditor's key in PEM, public or private. Without it only the key in the attestation is checked, which
    anyone could have put there: that is a reason, too.
    """
    statement, public, signature = _read(attestation)
    problems = []
    if key is None:
        problems.append("Whose signature it is was not checked: give the auditor's public key.")
    else:
        expected = _read_key(key)
        if isinstance(expected, Ed25519PrivateKey):
            expected = expected.public_key()
        if expected.public_bytes_raw() != public:
            problems.append("It is signed with another key than the one given.")
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, _DOMAIN + _canonical(statement))
    except (InvalidSignature, ValueError):
        problems.append("The signature is wrong: the attestation was changed, or signed by someone else.")
    problems += _differences(statement, inputs)
    if statement.get("ok") is not True:
        problems.append("It says that the audit found a broken promise.")
    return statement, problems


def _differences(statement: dict[str, Any], inputs: Inputs) -> list[str]:
    signed = statement.get("sha256")
    if not isinstance(signed, dict) or statement.get("format") != FORMAT:
        return [f"It is not an attestation of the format {FORMAT}."]
    here = inputs.digests()
    found = [f"The {name} is another than the one that was audited." for name in here if signed.get(name) != here[name]]
    gone = [name for name in signed if name.startswith(("release", "policy")) and name not in here]
    return found + [f"The file {name} that was audited is missing." for name in gone]


def _read(path: Path) -> tuple[dict[str, Any], bytes, bytes]:
    try:
        found = json.loads(path.read_bytes())
        if not isinstance(found["statement"], dict):
            raise TypeError("statement")
        return found["statement"], bytes.fromhex(found["public_key"]), bytes.fromhex(found["signature"])
    except OSError as error:
        raise InputError(f"{path}: the attestation cannot be read ({error.strerror})") from None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise InputError(f"{path}: not an attestation; `shoal audit --sign` writes one") from None


def _read_key(path: Path) -> Ed25519PrivateKey | Ed25519PublicKey:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: the key cannot be read ({error.strerror})") from None
    found: object = None
    with suppress(ValueError, TypeError):
        is_private = b"PRIVATE KEY" in data
        found = (
            serialization.load_pem_private_key(data, None) if is_private else serialization.load_pem_public_key(data)
        )
    if not isinstance(found, Ed25519PrivateKey | Ed25519PublicKey):
        raise InputError(
            f"{path}: not an Ed25519 key in PEM without a password; openssl genpkey -algorithm ed25519 makes one"
        )
    return found


def _canonical(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
