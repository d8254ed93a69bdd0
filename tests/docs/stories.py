"""The stories of the gallery, carried out line by line as their pages tell them."""

from __future__ import annotations

import doctest
import re
import runpy
import shlex
import shutil
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.docs.pages import ROOT
from tests.e2e import scene

STORIES = [page for page in sorted((ROOT / "docs" / "gallery").glob("*.md")) if page.stem != "index"]
BLOCK = re.compile(r"^```(sh|text|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def make_keys() -> None:
    """What the two commands of openssl do, also where it is not installed."""
    key = Ed25519PrivateKey.generate()
    raw = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    Path("auditor.pem").write_bytes(key.private_bytes(*raw))
    Path("auditor.pem").chmod(0o600)
    public = key.public_key().public_bytes(raw[0], serialization.PublicFormat.SubjectPublicKeyInfo)
    Path("auditor.pub").write_bytes(public)


def carry_out(line: str) -> str:
    """Do what a line of the page says and return what it prints."""
    words = shlex.split(line, comments=True)
    if not words or words[0] == "cd":
        return ""
    if words[0] == "python":
        runpy.run_path(words[1], run_name="__main__")
        return ""
    if words[0] == "openssl":
        make_keys()
        return ""
    assert words[0] == "shoal", line
    ended = scene.shoal(*words[1:])
    assert ended.code == 0, f"{line}\n{ended.err}"
    return ended.out.decode()


def tell(page: Path, folder: Path) -> int:
    """Carry out a page in the current folder `folder`; returns how many outputs were compared."""
    shutil.copytree(ROOT / "examples" / "gallery" / page.stem, folder, dirs_exist_ok=True)
    policy = Path("policy.toml").read_text(encoding="utf-8")
    printed, compared = "", 0
    for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "toml":
            assert text in policy, "the page shows a part of the policy that runs"
        elif language == "sh":
            printed = "".join(carry_out(line) for line in text.replace("\\\n", " ").splitlines())
        else:
            assert doctest.OutputChecker().check_output(text, printed, FLAGS), (
                f"{text}\nis shown, printed was\n{printed}"
            )
            compared += 1
    return compared
