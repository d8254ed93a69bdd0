"""Certificates of an authority that exists for one test run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certificates:
    """Files in PEM: an authority, and a server on this machine that it vouches for."""

    ca: Path
    server: Path
    key: Path
    chain: Path
    """Key and certificates in one file, as Kafka reads them."""

    @classmethod
    def make(cls, folder: Path) -> Certificates:
        """Write new ones to a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        ca_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        ca_name = _name(f"authority of {folder}"[-64:])
        authority = x509.BasicConstraints(ca=True, path_length=0)
        ca = _draft(ca_name, ca_name, ca_key).add_extension(authority, critical=True)
        ca = ca.add_extension(_USES_OF_AN_AUTHORITY, critical=True).sign(ca_key, hashes.SHA256())
        places = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
        server = _draft(_name("localhost"), ca_name, server_key).add_extension(places, critical=False)
        signed = server.sign(ca_key, hashes.SHA256())
        made = cls(*(folder / name for name in ("ca.pem", "server.pem", "server.key", "chain.pem")))
        made.ca.write_bytes(_pem(ca))
        made.server.write_bytes(_pem(signed))
        key = server_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        made.key.write_bytes(key)
        made.chain.write_bytes(key + _pem(signed) + _pem(ca))
        return made


_USES_OF_AN_AUTHORITY = x509.KeyUsage(
    digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
    key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
)  # fmt: skip


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _draft(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
