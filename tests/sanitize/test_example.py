"""The example of measurements goes through the whole process."""

from __future__ import annotations

import shutil
from pathlib import Path

from examples.measurements.make_measurements import main

from shoal.sanitize.process import Sanitizer

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "measurements"


def test_measurements(tmp_path, monkeypatch):
    shutil.copy(EXAMPLE / "sanitize.toml", tmp_path)
    path = main(tmp_path, people=150, records=3000)
    names = {line.split(",")[at].strip('"') for line in path.read_text().splitlines()[1:] for at in range(4)}
    (tmp_path / "key.txt").write_text("a key of more than sixteen bytes")
    monkeypatch.setenv("SHOAL_KEY_FILE", str(tmp_path / "key.txt"))
    summary = Sanitizer.from_policy(tmp_path / "sanitize.toml").run()
    assert summary.read == 3000
    assert summary.published + summary.status["pending"] == 3000
    assert summary.status["internal"]["records"] == 6 * 3000
    assert summary.status["audit"] == "passed"
    stores = [*(tmp_path / "private").iterdir(), tmp_path / "public.db"]
    contents = b"".join(own.read_bytes() for own in stores)
    assert not any(name.encode() in contents for name in names if len(name) > 6)
