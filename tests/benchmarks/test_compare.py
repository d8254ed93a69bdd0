"""The comparison of two revisions reports a slow-down that is there and none that is not, whatever noise there is."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from random import Random

import numpy as np
import pytest
from benchmarks.compare import ALLOWED, FRESH_PAIRS, MOST, PAIRS, Trees, make_data, verdict
from benchmarks.compare_worker import CASES, measured, use_processors
from benchmarks.intervals import Interval

from benchmarks import compare

FRESH = "first row, empty cache"


class FakeTrees:
    """Two trees of which the new one takes `slowdown` times as long, on a machine whose speed drifts and jumps."""

    def __init__(self, slowdown=1.0, *, noise=0.01, drift=0.0):
        self.draw, self.slowdown, self.noise, self.drift = np.random.default_rng(1), slowdown, noise, drift
        self.runs, self.machine, self.opened = [], 1.0, 0

    @contextmanager
    def pair(self):
        self.opened += 1
        self.machine = np.exp(self.draw.normal(0, 0.3))  # this pair of processes is slow, or fast
        yield self.run

    def run(self, tree, name):
        self.runs.append((tree, name))
        self.machine *= 1 + self.drift
        seconds = self.machine * np.exp(self.draw.normal(0, self.noise)) * (self.slowdown if tree == "new" else 1)
        return seconds, 100


@pytest.fixture
def exit_code(monkeypatch, capsys):
    """Runs the command on fake trees."""

    monkeypatch.setattr(compare, "random", Random(1))

    def run(fake, *words):
        monkeypatch.setattr(Trees, "copy", lambda *_: None)
        monkeypatch.setattr(compare, "make_data", lambda _: None)
        monkeypatch.setattr(Trees, "pair", lambda _: fake.pair())
        with pytest.raises(SystemExit) as ended:
            compare.main(words)
        return ended.value.code, capsys.readouterr().out

    return run


def test_a_tree_compared_with_itself_is_no_slower(exit_code):
    fake = FakeTrees()
    code, table = exit_code(fake)
    assert not code
    lines = table.splitlines()[2:]
    assert [line.split(" | ")[0].removeprefix("| ") for line in lines] == list(CASES)
    assert all("| no slower |" in line for line in lines)
    assert all(0.985 < float(line.split(" | ")[3]) < 1.015 for line in lines)
    assert fake.opened == PAIRS
    assert fake.runs.count(("new", "fads")) == fake.runs.count(("old", "fads")) == 8 * PAIRS
    assert fake.runs.count(("new", FRESH)) == fake.runs.count(("old", FRESH)) == FRESH_PAIRS


@pytest.mark.parametrize(
    ("slowdown", "word", "code"), [(1.05, "slower", 1), (1.10, "slower", 1), (0.9, "no slower", 0)]
)
def test_a_slow_down_is_reported(exit_code, slowdown, word, code):
    found, table = exit_code(FakeTrees(slowdown), "--only", "fads")
    assert found == code
    cells = table.splitlines()[2].split(" | ")
    assert cells[0] == "| fads"
    assert float(cells[3]) == pytest.approx(slowdown, abs=0.01)
    assert cells[-1] == f"{word} |"


def test_one_slow_case_is_enough(exit_code):
    fake = FakeTrees()
    run = fake.run
    fake.run = lambda tree, name: (run(tree, name)[0] * (1.05 if (tree, name) == ("new", "k^m") else 1), 100)
    code, table = exit_code(fake)
    assert code == 1
    assert [line.split(" | ")[0] for line in table.splitlines() if line.endswith("| slower |")] == ["| k^m"]


def test_a_drift_of_the_machine_is_no_slow_down(exit_code):
    """Each run takes 2% longer than the one before, which runs in turns, new and old, would report."""
    code, table = exit_code(FakeTrees(drift=0.02, noise=0.0001), "--only", "fads")
    assert not code
    low, high = (float(bound) for bound in table.splitlines()[2].split(" | ")[4].split(" to "))
    assert 0.998 <= low <= high <= 1.002


def test_noise_gets_more_pairs_up_to_a_bound_and_then_no_benefit_of_doubt(exit_code):
    some, much = FakeTrees(noise=0.08), FakeTrees(noise=0.5)
    exit_code(some, "--only", "fads")
    assert PAIRS < some.opened < MOST * PAIRS
    code, table = exit_code(much, "--only", "fads", "--pairs", "10")
    assert much.opened == MOST * 10
    assert code == 1
    assert "| not certain |" in table


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.9, ALLOWED, "no slower"),
        (1.01, ALLOWED, "no slower"),
        (0.9, ALLOWED + 1e-6, "not certain"),
        (1.0, 1.2, "not certain"),
        (1.001, 1.2, "slower"),
    ],
)
def test_the_verdict_depends_on_both_ends(low, high, words):
    assert verdict(Interval(low, 1.0, high)) == words


def test_different_numbers_of_rows_are_reported(exit_code):
    fake = FakeTrees()
    run = fake.run
    fake.run = lambda tree, name: (run(tree, name)[0], 1100 if tree == "new" else 900)
    assert "publishes 1,100 rows, before 900" in exit_code(fake, "--only", "fads")[1]


@pytest.mark.parametrize("words", [["--pairs", "5"], ["--only", "nothing"]])
def test_what_cannot_be_measured_is_refused(exit_code, words):
    assert exit_code(FakeTrees(), *words)[0]


def test_an_unknown_base_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="not a revision"):
        Trees(tmp_path).copy("no-such-revision")


@pytest.mark.compiled
def test_every_case_runs_on_this_tree(tmp_path, monkeypatch):
    """Each publishes rows, and says how long that took by its clock."""
    monkeypatch.delenv("SHOAL_KEY_FILE", raising=False)
    make_data(tmp_path, tiny=True)
    for name, case in CASES.items():
        found = measured(case, case.prepare(tmp_path, tmp_path))
        assert found["rows"] > 100, name
        assert found["seconds"] > 0, name


def test_a_worker_uses_its_own_tree_and_cache(tmp_path, monkeypatch):
    """Its shoal only writes down where the cache is."""
    package = tmp_path / "new" / "src" / "shoal"
    package.mkdir(parents=True)
    package.joinpath("__init__.py").write_text(
        "import os\n"
        "class KmAnonymity:\n"
        "    def __init__(*_, **__): pass\n"
        "    def anonymize(self, path):\n"
        "        with open(__file__ + '.cache', 'w') as file: file.write(os.environ['NUMBA_CACHE_DIR'])\n"
        "        return [1, 2, 3]\n"
        "class Hierarchy:\n"
        "    balanced = staticmethod(list)\n"
    )
    with Trees(tmp_path).pair() as run:
        seconds, rows = run("new", "k^m")
    assert (package / "__init__.py.cache").read_text() == str(tmp_path / "new-cache")
    assert rows == 3
    assert seconds > 0


def test_a_worker_that_fails_ends_the_comparison(tmp_path):
    trees = Trees(tmp_path)
    (tmp_path / "new").mkdir()
    with trees.pair() as run, pytest.raises(SystemExit, match="fads: the process ended without a result"):
        run("new", "fads")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps threads on processors")
def test_all_threads_are_kept_on_the_processors():
    before = os.sched_getaffinity(0)
    try:
        use_processors(1)
        assert os.sched_getaffinity(0) == {min(before)}
        use_processors(None)
        assert os.sched_getaffinity(0) == before
    finally:
        os.sched_setaffinity(0, before)
