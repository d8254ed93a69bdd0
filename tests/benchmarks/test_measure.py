"""What benchmarks measure with: costs, results files, and the figures in README and docs."""

from __future__ import annotations

import json
import re
import threading
import time
from importlib import import_module

import pytest
from benchmarks.__main__ import BY_HAND, LONG, SUITE
from benchmarks.__main__ import main as bench
from benchmarks.measure import Cost, Meter, Report, apart, least, measured, module_of, parse, parser, short

from benchmarks import fill, sources


def spin(rounds=300_000):
    return sum(number * number for number in range(rounds))


def test_a_meter_counts_processor_seconds_of_all_threads():
    spent = []

    def busy():
        spin()
        spent.append(time.thread_time())

    def work():
        threads = [threading.Thread(target=busy) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    with Meter() as meter:
        work()
    assert len(spent) == 2
    assert meter.cost.processor > 0.99 * sum(spent)


def test_a_meter_counts_child_processes(tmp_path):
    with Meter() as alone:
        pass
    with Meter() as meter:
        found = apart(answer, value=20)
    assert found == {"value": 21}
    assert meter.cost.processor > alone.cost.processor + 0.01  # starting Python takes longer than nothing
    assert apart(answer, here=True, value=1) == {"value": 2}


def answer(value):
    return {"value": value + 1}


def test_a_function_of_the_module_that_was_started_is_found_again(monkeypatch):
    assert module_of(answer) == "tests.benchmarks.test_measure"
    monkeypatch.setattr(answer, "__module__", "__main__")  # as under `python -m`
    assert module_of(answer) == "tests.benchmarks.test_measure"
    assert apart(answer, value=1) == {"value": 2}


def test_the_least_cost_takes_each_figure_by_itself():
    assert least(Cost(1.0, 3.0, 2), Cost(2.0, 2.0, 1)) == Cost(1.0, 2.0, 2)
    cost, result = measured(lambda: 7, tries=3)
    assert result == 7
    assert cost.processor > 0


@pytest.mark.parametrize(
    ("value", "text"),
    [(5_312_345, "5.31 million"), (81_843, "81,800"), (443, "443"), (42.34, "42.3"), (0.01234, "0.0123")],
)
def test_short_gives_three_digits(value, text):
    assert short(value) == text


def write_result(folder, *words):
    given = parse(parser("doc", data="files"), ["--out", str(folder), *words])
    report = Report("benchmarks/made.py", given)
    report.table("speeds", ["what", "rows per processor second"], [["ours", 5], ["theirs", 4]])
    report.text("sentence", "It takes 5 s.")
    report.write()
    return json.loads((folder / "made.json").read_text())


def test_a_result_names_the_command_without_paths(tmp_path, capsys):
    result = write_result(tmp_path, "--data", str(tmp_path))
    assert result["command"] == "python -m benchmarks.made --data FOLDER"
    assert str(tmp_path) not in json.dumps(result)
    assert {"processor", "cores", "python", "numba"} <= set(result["machine"])
    assert "| ours | 5 |" in capsys.readouterr().out


def test_files_that_only_a_fresh_process_loads_count_too(tmp_path, capsys):
    assert "benchmarks/z_drifts.py" in apart(load_more)["loaded"]
    assert "benchmarks/z_drifts.py" in write_result(tmp_path)["sources"]


def load_more():
    import_module("benchmarks.z_drifts")
    return {"loaded": sources.loaded_sources()}


def test_nothing_is_written_when_sizes_are_tiny(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("benchmarks.measure.RESULTS", tmp_path / "results")
    report = Report("benchmarks/made.py", parse(parser("doc"), ["--tiny"]))
    report.write()
    assert not (tmp_path / "results").exists()


def test_a_page_is_filled_from_the_result_and_from_nothing_else(tmp_path, capsys, monkeypatch):
    write_result(tmp_path)
    monkeypatch.setattr(fill, "RESULTS", tmp_path)
    page = "before\n<!-- figures: made.speeds -->\nedited by hand\n<!-- end -->\nafter\n"
    filled = fill.filled(page)
    assert "edited by hand" not in filled
    assert "| ours | 5 |\n| theirs | 4 |\n" in filled
    assert filled.startswith("before\n<!-- figures: made.speeds -->\n| what |")
    assert filled.endswith("</sub>\n<!-- end -->\nafter\n")
    assert fill.filled(filled) == filled
    assert "It takes 5 s." in fill.filled("<!-- figures: made.sentence -->\n<!-- end -->")


def test_a_figure_older_than_its_code_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text("pass")
    before = sources.digest(["one.py", "two.py"])
    assert before == sources.digest(["two.py", "one.py"])
    (tmp_path / "two.py").write_text("changed")
    assert sources.digest(["one.py", "two.py"]) != before
    (tmp_path / "two.py").unlink()
    assert sources.digest(["one.py", "two.py"]) != before


def test_every_figure_in_readme_and_docs_is_that_of_the_results():
    different = [page.name for page in fill.pages() if fill.filled(page.read_text()) != page.read_text()]
    assert different == [], "run `make figures`; do not edit between the marks"


def test_make_bench_and_bench_all_measure_every_figure_and_nothing_else():
    assert {name for page in fill.pages() for name in fill.names_on(page)} == {*SUITE, *LONG, *BY_HAND}
    assert not set(SUITE) & set(LONG)


def test_a_page_names_only_benchmarks_whose_results_fill_a_block():
    named = {
        name
        for page in fill.pages()
        for name in re.findall(r"benchmarks\.(?!md\b)([a-z]\w+)", fill.BLOCK.sub("", page.read_text(encoding="utf-8")))
    }
    assert named - {"fill"} <= {*SUITE, *LONG}, "figures of a benchmark without a block are written by hand"


@pytest.mark.parametrize(
    ("words", "names"), [([], SUITE), (["--all"], (*SUITE, *LONG)), (["--all", "--only", "z_peers"], ("z_peers",))]
)
def test_bench_runs_the_suite_and_all_runs_the_long_ones_too(words, names, monkeypatch, capsys):
    commands = []
    monkeypatch.setattr("subprocess.run", lambda command, check: commands.append(command[2]))
    bench(words)
    assert commands == [*(f"benchmarks.{name}" for name in names), "benchmarks.fill"]


@pytest.mark.parametrize(("name", "command"), [(SUITE[0], "make bench"), (LONG[0], "make bench-all")])
def test_a_stale_figure_is_reported_with_the_command_that_measures_it(name, command, tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text(f"<!-- figures: {name}.runs -->\n<!-- end -->\n")
    monkeypatch.setattr(fill, "ROOT", tmp_path)
    monkeypatch.setattr(fill, "pages", lambda: [page])
    monkeypatch.setattr(fill, "read_result", lambda _: {"sources": [], "stamp": "of other code"})
    assert fill.stale() == [f"page.md: figures older than the code: {name}; `{command}` measures again"]
