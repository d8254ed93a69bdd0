"""Help, the list of methods, completion, and how a message names the program."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import orjson
import pytest

from shoal.cli.app import app
from shoal.cli.output import program as calling
from shoal.methods.registry import METHODS
from tests.e2e.scene import Scene, shoal

COMMANDS = [name for name in app if not name.startswith("-")]


@pytest.mark.parametrize("command", COMMANDS)
def test_paragraphs_fill_the_lines_of_a_narrow_terminal(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = shoal(command, "--help").out.decode()
    _, _, rest = text.partition("\n\n")
    description = rest.partition("Examples")[0].partition("╭")[0].split("\n\n")
    for paragraph in description:
        lines = [line.rstrip() for line in paragraph.strip().splitlines()]
        for line, after in pairwise(lines):
            assert len(line) + 1 + len(after.split()[0]) > 80, f"{command}: {line!r} ends early"
    assert max(map(len, text.splitlines())) <= 80


def test_every_method_is_listed_with_its_purpose_on_one_line() -> None:
    lines = shoal("methods").out.decode().splitlines()
    for entry in METHODS.values():
        assert f"  {entry.name:<18} {entry.summary}" in lines
    assert max(map(len, lines)) <= 80
    listed = orjson.loads(shoal("methods", "--json").out)
    assert [one["name"] for one in listed] == list(METHODS)


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_completion_knows_the_commands(kind: str) -> None:
    script = app.generate_completion(shell=kind)
    assert all(command in script for command in COMMANDS)


def test_the_program_is_named_as_the_shell_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, elsewhere = tmp_path / "env" / "bin" / "shoal", tmp_path / "other" / "shoal"
    for path in (here, elsewhere):
        path.parent.mkdir(parents=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o700)
    (here.parent / "activate").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "env"))
    monkeypatch.setattr(sys, "argv", [str(here)])
    monkeypatch.setenv("PATH", str(here.parent))
    assert (calling.program(), calling.how_to_call()) == ("shoal", [])
    monkeypatch.setenv("PATH", str(elsewhere.parent))
    assert calling.program() == "env/bin/shoal"
    assert calling.how_to_call() == ["               (source env/bin/activate makes it `shoal`)"]
    monkeypatch.setattr(sys, "argv", ["-c"])
    monkeypatch.setenv("PATH", "")
    assert calling.program().endswith("-m shoal.cli")


def test_an_audit_of_several_inputs(scene: Scene) -> None:
    lines = (scene.folder / "in.csv").read_text().splitlines()
    for name, some in {"a.csv": lines[1:4], "b.csv": lines[4:]}.items():
        scene.write(name, "\n".join([lines[0], *some]) + "\n")
    scene.sections["trace"] = {"path": "trace.parquet"}
    scene.sections["source"]["path"] = ["a.csv", "b.csv"]
    assert scene.run().code == 0
    words = ("--trace", "trace.parquet", "--policy", "policy.toml", "--json")
    whole = shoal("audit", "out.csv", "--truth", "in.csv", *words)
    parts = shoal("audit", "out.csv", "--truth", "a.csv", "b.csv", *words)
    assert whole.code == parts.code == 0
    assert whole.out == parts.out
    assert shoal("audit", "out.csv", "--truth", "[ab].csv", *words).out == whole.out


@pytest.mark.parametrize(
    ("folder", "path", "shown"),
    [
        (".", "out.csv", "out.csv"),
        (".", "below/out.csv", "below/out.csv"),
        ("below", "out.csv", "../out.csv"),
        ("below/deeper", "out.csv", "{folder}/out.csv"),
    ],
)
def test_places_are_shown_as_seen_from_here(
    folder: str, path: str, shown: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    (scene.folder / "below" / "deeper").mkdir(parents=True)
    monkeypatch.chdir(scene.folder / folder)
    scene.sections["sink"]["path"] = path
    lines = scene.run().out.decode().splitlines()
    assert f"released to    {shown.format(folder=scene.folder)}" in lines
