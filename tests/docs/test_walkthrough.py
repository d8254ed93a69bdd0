"""The walk-through of docs/contributing.md adds a method that keeps every law and passes the audit."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys

import pytest

from tests.docs import walkthrough

POLICY = """
[stream]
person = "id"
[source]
kind = "csv"
path = "people.csv"
[anonymize]
method = "exact-k"
k = 3
deadline = 50
reuse = 0
[anonymize.quasi.age]
kind = "numeric"
low = 0
high = 100
[sink]
kind = "csv"
path = "released.csv"
[trace]
path = "trace.parquet"
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = walkthrough.copy_tree(tmp_path_factory.mktemp("tree"))
    walkthrough.apply(folder)
    return folder


def run(tree, *command, cwd=None):
    env = {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}"}
    return subprocess.run(
        [sys.executable, *map(str, command)], cwd=cwd or tree, env=env, capture_output=True, text=True, check=False
    )


def test_the_steps_are_found():
    assert set(walkthrough.new_files()) == {"src/shoal/methods/tuples/exact_k.py", "tests/laws/exact_cases.py"}
    assert [name for name, _, _ in walkthrough.edits()] == [
        "src/shoal/methods/registry.py",
        "src/shoal/__init__.py",
        "src/shoal/__init__.py",
        "src/shoal/auditor/policy.py",
        "tests/laws/test_laws.py",
        "tests/laws/tuple_cases.py",
        "docs/reference/policy.md",
    ]


def test_the_method_keeps_every_law_its_example_runs_and_lists_of_methods_know_it(tree):
    assert run(tree, "-m", "tests.docs.settings_tables").returncode == 0
    lists = ["tests/docs/test_settings_tables.py", "tests/policy/test_tuples.py", "tests/test_public_names.py"]
    files = ["tests/laws/test_laws.py", "src/shoal/methods/tuples/exact_k.py", *lists]
    chosen = "exact or every_method_has_cases or test_settings_tables or test_tuples or test_public_names"
    ended = run(
        tree, "-m", "pytest", "-q", *files, "-k", chosen, "--deselect", f"{lists[-1]}::test_every_method_has_a_page"
    )
    assert ended.returncode == 0, ended.stdout[-3000:]
    assert int(ended.stdout.split(" passed")[0].split()[-1]) > 10


@pytest.mark.exhaustive
def test_it_can_be_warmed_up(tree):
    ended = run(tree, "-c", "from shoal.pipeline.warmup import warm; warm('exact-k')")
    assert ended.returncode == 0, ended.stderr[-3000:]


def test_a_policy_runs_and_is_audited(tree, tmp_path):
    draw = random.Random(1)
    lines = [f"p{draw.randrange(40)},{draw.choice([30, 31, 32, 77, draw.randrange(100)])}" for _ in range(300)]
    (tmp_path / "people.csv").write_text("\n".join(["id,age", *lines]) + "\n")
    (tmp_path / "policy.toml").write_text(POLICY)
    ended = run(tree, "-m", "shoal.cli", "run", "policy.toml", "--json", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    summary = json.loads(ended.stdout)
    assert summary["released"] > 100
    assert summary["suppressed"] > 0
    files = ("--truth", "people.csv", "--trace", "trace.parquet", "--policy", "policy.toml")
    judged = run(tree, "-m", "shoal.cli", "audit", "released.csv", *files, "--json", cwd=tmp_path)
    assert judged.returncode == 0, judged.stdout
    assert json.loads(judged.stdout)["metrics"]["smallest_k"] >= 3


def test_an_unsupported_parameter_is_a_wrong_policy(tree, tmp_path):
    (tmp_path / "policy.toml").write_text(POLICY.replace("reuse = 0", "reuse = 0\nmax_share = 0.5"))
    ended = run(tree, "-m", "shoal.cli", "run", "policy.toml", cwd=tmp_path)
    assert ended.returncode == 2
    assert "use least-loss" in ended.stderr


@pytest.mark.exhaustive  # with the tools of `make check`
def test_the_new_files_are_typed_and_formatted(tree):
    assert run(tree, "-m", "ruff", "check", *walkthrough.new_files()).stdout.strip() == "All checks passed!"
