"""A scene in its own folder, with a key and without."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.scene import ROWS, Scene, encode


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Good input and a good policy; no key is given."""
    monkeypatch.delenv("SHOAL_KEY_FILE", raising=False)
    # On a machine that still has to compile its kernels a run reports it, and takes long enough for a line of progress.
    monkeypatch.setattr("shoal.cli.output.render._SECONDS_BETWEEN_LINES", float("inf"))
    for place in ("run", "doctor.doctor", "warmup"):
        monkeypatch.setattr(f"shoal.pipeline.{place}.must_compile", lambda method: False)
    monkeypatch.chdir(tmp_path)
    scene = Scene(tmp_path)
    scene.write("in.csv", encode("csv", ROWS))
    return scene


@pytest.fixture
def key(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A key file, named by the environment."""
    path = scene.write("key.txt", "sixteen bytes at least")
    path.chmod(0o600)
    monkeypatch.setenv("SHOAL_KEY_FILE", str(path))
    return path
