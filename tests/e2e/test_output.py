"""What a run writes besides the rows, who may read it, and what happens if nothing can be written."""

from __future__ import annotations

import stat
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.e2e.scene import CANARY, ROWS, Scene, encode, pairs, shoal

FULL = {"trace": {"path": "trace.parquet"}, "anonymize": {"lateness": "2s"}}
BROKEN = f"9,{CANARY},a.example\n16,{CANARY}\n,{CANARY},a.example\n"


@pytest.fixture
def full(scene: Scene) -> Scene:
    """Everything a policy can ask for, on input with bad rows."""
    scene.write("in.csv", encode("csv", ROWS) + BROKEN.encode())
    for section, keys in FULL.items():
        scene.sections.setdefault(section, {}).update(keys)
    return scene


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


class TestPrivacy:
    @pytest.mark.parametrize("is_key_given", [True, False])
    @pytest.mark.parametrize("args", [["--json"], [], ["--quiet"]], ids=["json", "text", "quiet"])
    def test_no_person_is_named(
        self, full: Scene, args: list[str], is_key_given: bool, request: pytest.FixtureRequest
    ) -> None:
        if is_key_given:
            request.getfixturevalue("key")
        ended = full.run("--checkpoint", "state", *args)
        assert ended.code == 0, ended.err
        assert len(full.letters()) == 3
        assert CANARY not in ended.err
        assert CANARY.encode() not in ended.out
        assert full.holds_canary() == []
        assert CANARY.encode() in (full.folder / "in.csv").read_bytes(), "the search would find it"

    def test_private_files_are_the_owners(self, full: Scene) -> None:
        full.write("out.csv.dead.jsonl", "from an earlier run, open to all").chmod(0o644)
        full.run("--checkpoint", "state")
        assert mode(full.folder / "out.csv.dead.jsonl") == 0o600
        assert mode(full.folder / "trace.parquet") == 0o600
        assert mode(full.folder / "state") == 0o700
        assert {mode(path) for path in (full.folder / "state").iterdir()} == {0o600}

    def test_a_fault_of_ours_shows_no_value(self, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object, **__: object) -> None:
            raise RuntimeError(CANARY)

        monkeypatch.setattr("shoal.methods.z.z_anonymity.ZAnonymity.push_batch", fail)
        ended = scene.run()
        assert ended.code == 1
        assert "internal error: RuntimeError at test_output.py" in ended.err
        assert CANARY not in ended.err


class TestAudit:
    def audit(self, scene: Scene, *more: str) -> tuple[int, str]:
        args = ["out.csv", "--truth", "in.csv", "--policy", "policy.toml", *more]
        ended = shoal("audit", *args)
        return ended.code, ended.out.decode() + ended.err

    def test_a_release_holds(self, full: Scene) -> None:
        full.run()
        code, said = self.audit(full, "--trace", "trace.parquet")
        assert code == 0, said
        assert CANARY not in said

    @pytest.mark.usefixtures("key")
    def test_a_sealed_trace(self, full: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        full.run("--checkpoint", "state")
        with pytest.raises(Exception, match=r"[Pp]arquet"):
            pq.read_table(full.folder / "trace.parquet")
        assert self.audit(full, "--trace", "trace.parquet")[0] == 0
        full.write("key.txt", "another key of sixteen bytes")
        code, said = self.audit(full, "--trace", "trace.parquet")
        assert code == 1
        assert "another key" in said
        monkeypatch.delenv("SHOAL_KEY_FILE")
        assert self.audit(full, "--trace", "trace.parquet")[0] == 1

    @pytest.mark.parametrize(
        "tamper",
        [
            lambda text: text + '"15","00000000000000000000000000000000","rare.example"\n',
            lambda text: text.replace("b.example", "rare.example"),
        ],
        ids=["a row too many", "a rare value"],
    )
    def test_a_tampered_release_is_convicted(self, full: Scene, tamper: object) -> None:
        full.run()
        path = full.folder / "out.csv"
        path.write_text(tamper(path.read_text()))  # type: ignore[operator]
        code, said = self.audit(full)
        assert code == 1, said
        assert CANARY not in said


class TestSinks:
    @pytest.mark.parametrize("section", ["sink", "dead_letters", "trace"])
    @pytest.mark.parametrize("path", ["/dev/null/out", "/proc/nowhere/out", "/dev/full", "in.csv/out"])
    def test_a_place_that_cannot_be_written(self, scene: Scene, path: str, section: str) -> None:
        scene.sections["dead_letters"] = {"path": "dead.jsonl"}
        scene.sections.setdefault(section, {})["path"] = path
        ended = scene.run()
        assert ended.code == 1
        assert len(ended.sentences) == 1, ended.err
        assert path in ended.err
        assert "; " in ended.err, "it says what to do"
        assert "internal error" not in ended.err
        assert not (scene.folder / "out.csv").exists()

    def test_an_earlier_release_stays_until_the_new_one_is_whole(self, scene: Scene) -> None:
        scene.write("out.csv", "earlier")
        scene.write("in.csv", "no,such,columns\n")
        assert scene.run().code == 1
        assert (scene.folder / "out.csv").read_text() == "earlier"
        scene.write("in.csv", encode("csv", ROWS))
        assert scene.run().code == 0
        assert len(pairs(scene.released())) == 3
        assert not list(scene.folder.glob("*.partial"))


class TestKeys:
    def test_too_short(self, scene: Scene, key: Path) -> None:
        key.write_text("short")
        ended = scene.run()
        assert ended.code == 1
        assert ended.sentences == [
            f"shoal: {key}: the key has fewer than 16 bytes; make one with: openssl rand -hex 32"
        ]

    def test_missing(self, scene: Scene, key: Path) -> None:
        key.unlink()
        ended = scene.run()
        assert ended.code == 1
        assert str(key) in ended.err
        assert "SHOAL_KEY_FILE" in ended.err

    def test_pseudonyms_depend_on_it(self, scene: Scene, key: Path) -> None:
        scene.run()
        first = scene.released().column("user").to_pylist()
        scene.run()
        assert scene.released().column("user").to_pylist() == first
        key.write_text("another key of sixteen bytes")
        scene.run()
        assert not set(first) & set(scene.released().column("user").to_pylist())


class TestSummary:
    def test_as_json(self, full: Scene) -> None:
        ended = full.run("--json")
        assert ended.err == ""
        summary = ended.summary
        assert summary["rows_in"] == 9
        assert summary["rows_in"] == summary["released"] + summary["suppressed"] + summary["dead"]
        assert summary["dead_by_reason"] == {"unreadable": 1, "late": 1, "null-time": 1}
        assert summary["ok"] is True
        assert summary["files"] == 1
        assert "at least 2 different people" in summary["guarantee"]

    def test_for_people(self, full: Scene) -> None:
        text = full.run().out.decode()
        assert "rows in" in text
        assert "released to    out.csv" in text
        assert "dead letters" in text

    def test_a_warning_is_a_plain_line(self, scene: Scene) -> None:
        scene.sections["anonymize"]["z"] = 1
        ended = scene.run()
        assert ended.code == 0
        assert [line[:15] for line in ended.sentences] == ["shoal: warning:"]

    def test_resuming_is_reported(self, full: Scene) -> None:
        full.run("--checkpoint", "state")
        ended = full.run("--checkpoint", "state")
        assert (ended.code, ended.err) == (0, "")
        assert b"finished before; nothing was changed" in ended.out
