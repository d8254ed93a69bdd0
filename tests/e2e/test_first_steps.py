"""What a new user stumbles over: each is reported, and no result is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import shoal as library
from shoal.errors import PolicyError, RunError
from tests.e2e.scene import ROWS, Scene, encode, shoal


def test_a_finished_run_whose_output_is_missing_is_refused(scene: Scene) -> None:
    assert scene.run("--checkpoint", "state").code == 0
    assert scene.run("--checkpoint", "state").code == 0
    (scene.folder / "out.csv").unlink()
    ended = scene.run("--checkpoint", "state")
    assert ended.code == 1
    assert "out.csv: is missing but the checkpoint refers to it" in ended.err


def test_the_doctor_looks_at_the_columns_of_every_file(scene: Scene) -> None:
    scene.sections["source"] = {"kind": "csv", "path": "in*.csv"}
    scene.write("in2.csv", encode("csv", [{**row, "site": "x"} for row in ROWS]))
    assert scene.run("--json").code == 0
    assert shoal("doctor", scene.policy).code == 0
    scene.write("in2.csv", b"ts,user,page\n1,ann,x\n")
    ended = shoal("doctor", scene.policy)
    assert ended.code == 1
    assert b"in2.csv: there is no column 'site'" in ended.out


def test_the_doctor_reports_what_would_be_replaced(scene: Scene) -> None:
    scene.sections["sink"] = {"kind": "csv", "path": "out/"}
    assert scene.run().code == 0
    assert b"out/: contains part files, which will be replaced" in shoal("doctor", scene.policy).out


def test_a_sealed_trace_without_a_key(scene: Scene, key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.sections["trace"] = {"path": "trace.parquet"}
    assert scene.run().code == 0
    args = ("audit", "out.csv", "--truth", "in.csv", "--trace", "trace.parquet", "--policy", scene.policy)
    assert shoal(*args).code == 0
    monkeypatch.delenv("SHOAL_KEY_FILE")
    ended = shoal(*args)
    assert ended.code == 1
    assert "trace.parquet: the trace is sealed; set SHOAL_KEY_FILE" in ended.err


def test_a_key_that_is_text() -> None:
    with pytest.raises(PolicyError, match="key: must be bytes"):
        library.ZAnonymity(z=2, window=1, person="u", time="t", attribute="a", key="sixteen letters!")  # type: ignore[arg-type]


def test_a_demo_without_its_picture_still_prints_its_result(scene: Scene) -> None:
    with patch("shoal.figures.z_day.draw_day", side_effect=RunError("no pictures here")):
        ended = shoal("demo", "--people", "200", "--events", "3000", "--z", "5", "--out", scene.folder / "demo")
    assert ended.code == 0
    assert b"promise kept; the smallest crowd has 5 people" in ended.out
    assert b"none: no pictures here" in ended.out


def test_a_demo_counts_late_rows_as_the_run_does_and_names_every_file_once(scene: Scene) -> None:
    ended = shoal("demo", "--people", "200", "--events", "3000", "--z", "5", "--out", scene.folder / "demo")
    said = ended.out.decode()
    refused = next(line.split()[1] for line in said.splitlines() if line.startswith("    late "))
    assert f" {refused} of them later than the 5 minutes that the policy allows" in said
    assert said.count("released.parquet\n") == 1


def test_the_lines_that_a_demo_proposes_make_a_policy(scene: Scene) -> None:
    folder = scene.folder / "demo"
    said = shoal("demo", "--people", "200", "--events", "3000", "--z", "5", "--out", folder).out.decode()
    policy = (folder / "policy.toml").read_text()
    proposed = [line.strip() for line in said.splitlines() if line.strip().startswith(("combine =", "k ="))]
    assert len(proposed) == 2
    (folder / "policy.toml").write_text(policy.replace("z = 5", "\n".join(["z = 5", *proposed])))
    ended = shoal("run", folder / "policy.toml", "--json")
    assert ended.code == 0, ended.err
    assert "is shared by at least 2 different people" in ended.summary["guarantee"]


def test_the_picture_of_a_demo_counts_as_the_console_does(scene: Scene) -> None:
    """Also the dead letters that have no usable time and no place in it."""
    drawn: list[Any] = []
    with patch("shoal.figures.z_day.save", side_effect=lambda figure, _: drawn.append(figure)):
        ended = shoal("demo", "--people", "200", "--events", "3000", "--z", "5", "--out", scene.folder / "demo")
    said = ended.out.decode()
    labels = [text.get_text() for text in drawn[0].axes[0].get_legend().get_texts()]
    for name, line in (("released", "released"), ("suppressed", "suppressed"), ("refused", "refused")):
        count = next(words.split(line)[1].split()[0] for words in said.splitlines() if words.startswith(f"  {line}"))
        assert f"{name} ({count})" in labels
    assert "refused rows without a usable time" in drawn[0].axes[-1].get_xlabel()


def test_the_help_describes_every_command() -> None:
    out = shoal("--help").out.decode()
    for sentence in ("Anonymize a stream", "Check a policy", "Check a release", "Generate a day of web visits"):
        assert sentence in out


@pytest.mark.usefixtures("key")
def test_a_demo_with_a_key_opens_its_sealed_trace(scene: Scene) -> None:
    ended = shoal("demo", "--people", "200", "--events", "3000", "--z", "5", "--out", scene.folder / "demo")
    assert ended.code == 0, ended.err
    assert b"promise kept" in ended.out


def test_a_demo_in_which_nothing_is_released(scene: Scene) -> None:
    ended = shoal("demo", "--people", "50", "--events", "500", "--z", "40", "--out", scene.folder / "demo")
    assert ended.code == 3
    assert b"promise kept; nothing was published" in ended.out


def test_progress_away_from_a_terminal_is_plain_lines(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.cli.output.render._SECONDS_BETWEEN_LINES", 0.0)
    ended = scene.run("--json")
    assert ended.code == 0
    assert ended.err.startswith("shoal: 6 rows in, 3 released, 3 suppressed, 0 refused, ")
    assert scene.run("--json", "--quiet").err == ""


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("doctor",), "shoal: name the policy: shoal doctor policy.toml\n"),
        (("report", "out.csv"), "shoal: --policy is missing: shoal report … --policy policy.toml\n"),
        (("doctor", "--polcy", "x"), "Unknown option"),
    ],
)
def test_a_missing_argument_is_explained(args: tuple[str, ...], sentence: str) -> None:
    ended = shoal(*args)
    assert ended.code == 2
    assert sentence in ended.err
