"""The wheel, installed into an empty environment without extras, runs the demo and one example of each family."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OFFLINE = ("No matching distribution", "Failed to establish a new connection", "Could not find a version")

pytestmark = [pytest.mark.slow, pytest.mark.compiled]


def run(*command, cwd, env=None):
    return subprocess.run([*map(str, command)], cwd=cwd, env=env, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Python of an environment with the wheel and its requirements only."""
    folder = tmp_path_factory.mktemp("wheel")
    built = run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", ROOT, cwd=folder)
    assert built.returncode == 0, built.stderr
    assert len(list((folder / "dist").glob("*.tar.gz"))) == 1
    (wheel,) = (folder / "dist").glob("*.whl")
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", ROOT / "constraints.txt")
    installed = run(*pip, wheel, cwd=folder)
    if any(sign in installed.stderr for sign in OFFLINE):
        pytest.skip("installing the wheel needs a package index, and none can be reached")
    assert installed.returncode == 0, installed.stderr
    return python


@pytest.fixture
def shoal(python, tmp_path):
    """Call `shoal` of that environment in another folder than the source tree."""

    def call(*words, code=0, cwd=tmp_path):
        ended = run(python.parent / "shoal", *words, cwd=cwd, env={"PATH": str(python.parent)})
        assert ended.returncode == code, ended.stderr + ended.stdout
        return ended

    return call


def example(name, folder):
    return Path(shutil.copytree(ROOT / "examples" / name, folder / name))


def test_no_extra_is_installed_and_the_sources_are_not_in_reach(python, tmp_path):
    script = "import importlib.util as find, shoal; print(shoal.__file__, [n for n in {} if find.find_spec(n)])"
    names = ["rdflib", "shapely", "matplotlib", "psycopg", "pytest"]
    ended = run(python, "-c", script.format(names), cwd=tmp_path, env={})
    assert ended.stdout.strip().endswith("site-packages/shoal/__init__.py []"), ended.stderr


def test_a_file_of_ones_own(shoal, tmp_path):
    """As data frames are written: with an unnamed column of row numbers, and gaps."""
    towns, ills = ["Ulm", "Bonn", "Kiel"], ["asthma", "flu", "", "gout"]
    rows = [f"{n},P{n},{20 + n * 7 % 50},{towns[n % 3]},{ills[n * n % 4]}" for n in range(120)]
    (tmp_path / "own.csv").write_text(",patient,age,town,diagnosis\n" + "\n".join(rows) + "\n")
    assert "patient" in shoal("init", "own.csv", "--yes").stdout
    shoal("run", "policy.toml", "--quiet")
    head = (tmp_path / "released.csv").read_text().splitlines()[0].split(",")
    assert set(head) == {'"age"', '"town"', '"diagnosis"'}
    files = ("--truth", "own.csv", "--trace", "trace.parquet", "--policy", "policy.toml")
    assert "promise kept" in shoal("audit", "released.csv", *files).stdout


def test_demo(shoal, tmp_path):
    ended = shoal("demo", "--people", "200", "--events", "3000", "--z", "5", "--out", "demo")
    assert "pip install matplotlib" in ended.stdout
    assert (tmp_path / "demo" / "released.parquet").is_file()


def test_z(python, tmp_path):
    script = shutil.copy(ROOT / "examples" / "push_records.py", tmp_path)
    ended = run(python, script, cwd=tmp_path, env={})
    assert ended.returncode == 0, ended.stderr
    assert "news.example" in ended.stdout


def test_tuples(python, shoal, tmp_path):
    folder = example("tuples", tmp_path)
    assert run(python, "make_people.py", cwd=folder, env={}).returncode == 0
    shoal("run", "policy.toml", "--quiet", cwd=folder)
    files = ("--truth", "people.csv", "--trace", "trace.parquet", "--policy", "policy.toml")
    shoal("audit", "released.parquet", *files, cwd=folder)


def test_sets(shoal, tmp_path):
    folder = example("sets", tmp_path)
    shoal("run", "policy.toml", "--quiet", cwd=folder)
    files = ("--truth", "visits.csv", "--trace", "trace.parquet", "--policy", "policy.toml")
    shoal("audit", "released.jsonl", *files, cwd=folder)


def test_flexible(python, shoal, tmp_path):
    page = shutil.copy(ROOT / "docs" / "howto" / "measurements.md", tmp_path)
    ended = run(python, "-m", "doctest", page, cwd=tmp_path, env={})
    assert ended.returncode == 0, ended.stdout
    assert "pip install rdflib" in shoal("ontology", "check", code=1).stderr
