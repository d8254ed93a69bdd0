"""`shoal audit --sign` and `--verify`: what is signed can be checked, and no change goes unnoticed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from shoal.auditor.attestation import Inputs, make_statement
from shoal.auditor.digests import checksum
from shoal.auditor.findings import AuditReport
from shoal.errors import InputError
from tests.e2e.scene import Scene, encode, shoal
from tests.e2e.test_report import visits


def write_key(name: str, seed: int) -> None:
    key = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
    Path(name).write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    Path(f"{name}.pub").write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


@pytest.fixture
def signed(scene: Scene, key: Path) -> Scene:
    """A release that was audited and signed."""
    scene.write("in.csv", encode("csv", visits()))
    scene.sections["anonymize"] |= {"z": 3, "window": "1min"}
    scene.write_policy()
    assert scene.run("--quiet").code == 0
    write_key("auditor.pem", 1)
    write_key("other.pem", 2)
    ended = shoal(
        "audit", "out.csv", "--truth", "in.csv", "--policy", scene.policy, "--sign", "auditor.pem", "-o", "att.json"
    )
    assert ended.code == 0
    assert "att.json" in ended.err
    return scene


def verified(scene: Scene, *args: str) -> tuple[int, str]:
    ended = shoal("audit", "out.csv", "--policy", scene.policy, "--verify", "att.json", *args)
    return ended.code, ended.out.decode() + ended.err


def test_what_was_signed_is_verified(signed):
    code, text = verified(signed, "--key", "auditor.pem.pub", "--truth", "in.csv")
    assert (code, text.split(":")[0]) == (0, "attested")
    assert verified(signed, "--key", "auditor.pem")[0] == 0  # the private key has the public one in it
    statement = json.loads(Path("att.json").read_text())["statement"]
    assert statement["verdict"].startswith("promise kept")
    assert f"attested: z-anonymity, {statement['verdict']}; 0 warnings" in text
    assert set(statement["sha256"]) == {"release", "policy", "truth", "report"}


@pytest.mark.parametrize("name", ["out.csv", "in.csv", "policy"])
def test_a_changed_file_is_noticed(signed, name):
    path = signed.policy if name == "policy" else Path(name)
    path.write_text(Path(path).read_text() + "\n")
    code, text = verified(signed, "--key", "auditor.pem.pub", "--truth", "in.csv")
    assert code == 1
    assert "another than the one that was audited" in text


@pytest.mark.parametrize("field", ["ok", "method", "not_checked", "shoal"])
def test_a_changed_statement_is_noticed(signed, field):
    found = json.loads(Path("att.json").read_text())
    found["statement"][field] = "forged"
    Path("att.json").write_text(json.dumps(found))
    code, text = verified(signed, "--key", "auditor.pem.pub")
    assert code == 1
    assert "signature is wrong" in text


def test_another_key_and_no_key(signed):
    assert "another key" in verified(signed, "--key", "other.pem.pub")[1]
    code, text = verified(signed)
    assert code == 1
    assert "public key" in text


def test_a_broken_promise_is_attested_as_broken(signed):
    rows = Path("out.csv").read_text().splitlines()
    Path("bad.csv").write_text("\n".join([rows[0], *rows[1:3], rows[1].rsplit(",", 1)[0] + ",never.example"]) + "\n")
    common = ("--truth", "in.csv", "--policy", signed.policy)
    assert shoal("audit", "bad.csv", *common, "--sign", "auditor.pem").code == 1
    ended = shoal("audit", "bad.csv", *common, "--verify", "bad.csv.attestation.json", "--key", "auditor.pem.pub")
    assert ended.code == 1
    assert b"broken promise" in ended.out


def test_bad_keys_and_files(signed):
    Path("text.pem").write_text("no key")
    wrong = X25519PrivateKey.generate()
    Path("x.pem").write_bytes(
        wrong.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    for name in ("text.pem", "x.pem", "nowhere.pem", "auditor.pem.pub"):
        ended = shoal("audit", "out.csv", "--policy", signed.policy, "--sign", name)
        assert ended.code == 1
        assert name in ended.err
    Path("att.json").write_text("{}")
    code, text = verified(signed, "--key", "auditor.pem.pub")
    assert code == 1
    assert "not an attestation" in text


def test_a_path_without_a_file_is_not_verified(signed):
    for name in ("--truth", "--trace"):
        code, text = verified(signed, "--key", "auditor.pem.pub", name, "nowhere.csv")
        assert code == 1
        assert "no file at nowhere.csv" in text


def test_a_release_given_as_a_glob_is_signed_too(signed):
    common = ("audit", "ou?.csv", "--truth", "i?.csv", "--policy", signed.policy)
    assert shoal(*common, "--sign", "auditor.pem", "-o", "glob.json").code == 0
    check = (*common, "--verify", "glob.json", "--key", "auditor.pem.pub")
    assert shoal(*check).code == 0
    Path("out.csv").write_text(Path("out.csv").read_text() + "\n")
    assert b"release is another" in shoal(*check).out
    Path("in.csv").write_text(Path("in.csv").read_text() + "\n")
    assert b"truth is another" in shoal(*check).out


def test_a_changed_hierarchy_is_noticed(signed):
    hosts = sorted({row.rsplit(",", 1)[1] for row in Path("in.csv").read_text().splitlines()[1:]})
    Path("levels.csv").write_text("".join(f"{host};any\n" for host in hosts))
    signed.sections["anonymize"]["generalize"] = {"hierarchy": {"kind": "csv", "path": "levels.csv"}}
    signed.write_policy()
    common = ("audit", "out.csv", "--policy", signed.policy)
    shoal(*common, "--sign", "auditor.pem", "-o", "att.json")
    assert "levels.csv" not in verified(signed, "--key", "auditor.pem.pub")[1]
    Path("levels.csv").write_text("".join(f"{host};all\n" for host in hosts))
    code, text = verified(signed, "--key", "auditor.pem.pub")
    assert code == 1
    assert "policy, levels.csv is another" in text


def test_a_file_that_changes_during_the_audit_is_not_signed(signed):
    inputs = Inputs("out.csv", signed.policy, "in.csv")
    before = inputs.digests()
    Path("out.csv").write_text(Path("out.csv").read_text() + "\n")
    with pytest.raises(InputError, match="changed during the audit"):
        make_statement(AuditReport("z-anonymity", (), (), {}), inputs, before)


def test_the_digest_of_a_folder(tmp_path):
    folder, other = tmp_path / "one", tmp_path / "other"
    for place in (folder, other):
        place.mkdir()
        (place / "a").write_text("1")
    (folder / "b").write_text("2")
    of_b = checksum(folder / "b")
    (other / "a").rename(other / f"a\n{of_b}  b")
    assert checksum(folder) != checksum(other)
    before = checksum(folder)
    (folder / "day=1").mkdir()
    (folder / "day=1" / "more").write_text("3")
    assert checksum(folder) != before
