"""Files as they are found: blanks after commas, no header, another delimiter. Each works, or a message helps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shoal.observe.counts import RunSummary
from shoal.observe.observer import Observer
from shoal.pipeline import Pipeline
from tests.e2e.scene import Scene, shoal

PEOPLE = 40
HEADER = ["id", "age", "work", "class"]


@pytest.fixture
def census(tmp_path: Path) -> Scene:
    """Adult as UCI ships it: a blank after each comma, no header, a question mark for what is missing."""
    scene = Scene(tmp_path)
    works = ("Private", "State-gov", "?")
    lines = [f"p{n}, {20 + n % 30}, {works[n % 3]}, {('<=50K', '>50K')[n % 2]}" for n in range(PEOPLE)]
    scene.write("in.csv", "\n".join(lines) + "\n")
    scene.write("work.csv", "Private;Any\nState-gov;Any\n")
    scene.sections = {
        "stream": {"person": "id"},
        "source": {"kind": "csv", "path": "in.csv", "header": HEADER, "nulls": ["?"]},
        "anonymize": {"method": "least-loss", "k": 4, "deadline": 20, "reuse": 5, "sensitive": ["class"]},
        "anonymize.quasi.age": {"kind": "numeric", "low": 0, "high": 100, "grid": 5},
        "anonymize.quasi.work": {
            "kind": "categorical",
            "hierarchy": {"kind": "csv", "path": "work.csv", "sep": ";", "header": False},
        },
        "sink": {"kind": "csv", "path": "out.csv"},
        "trace": {"path": "trace.parquet"},
    }
    return scene


def audit(scene: Scene, *more: str) -> int:
    folder = scene.folder
    files = ("--truth", folder / "in.csv", "--trace", folder / "trace.parquet", "--policy", scene.policy)
    return shoal("audit", folder / "out.csv", *files, *more).code


def test_blanks_after_commas(census: Scene) -> None:
    ended = census.run("--json", "--quiet")
    assert ended.code == 0
    assert ended.summary["dead"] == 0
    assert ended.summary["released"] > 0.9 * PEOPLE
    assert set(census.released().column("class").to_pylist()) == {"<=50K", ">50K"}
    assert shoal("doctor", census.policy).code == 0
    assert audit(census) == 0


def test_blanks_that_count(census: Scene) -> None:
    """With trim = false a value is what separates the commas; the auditor reads it so as well."""
    census.sections["source"]["trim"] = False
    ended = census.run("--json", "--quiet")
    assert ended.summary["dead"] == PEOPLE - PEOPLE // 3  # " ?" is a missing value all the same
    assert set(census.released().column("class").to_pylist()) == {" <=50K", " >50K"}
    assert audit(census) == 0
    census.sections["source"]["trim"] = True
    census.write_policy()
    assert audit(census) == 1


def test_trim_must_be_true_or_false_and_is_for_csv(census: Scene) -> None:
    census.sections["source"]["trim"] = "yes"
    assert "[source] trim: must be true or false" in census.run().err
    census.sections["source"] = {"kind": "jsonl", "path": "in.csv", "trim": True}
    assert "[source] trim: is only for csv" in census.run().err


def test_items_of_a_joined_text(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.write("in.csv", "items\n" + "a | b\n b|a \n" * 5)
    scene.sections = {
        "source": {"kind": "csv", "path": "in.csv", "separator": "|"},
        "anonymize": {"method": "k^m", "item": "items", "k": 5, "m": 2},
        "anonymize.generalize": {"balanced": 2},
        "sink": {"kind": "csv", "path": "out.csv"},
        "trace": {"path": "trace.parquet"},
    }
    ended = scene.run("--json", "--quiet")
    assert ended.summary["items"] == 2
    assert set(scene.released().column("items").to_pylist()) == {"a|b"}
    assert audit(scene) == 0


def test_a_header_with_too_few_names(census: Scene) -> None:
    census.sections["source"]["header"] = HEADER[:3]
    del census.sections["anonymize"]["sensitive"]
    census.run()
    reason = "4 fields where [source] header names 3; quote fields that contain the delimiter, or name every column"
    assert census.letters()[0]["reason"] == f"{reason} of the file"


def test_a_file_without_a_header_when_none_is_given(census: Scene) -> None:
    del census.sections["source"]["header"]
    for command in ("run", "doctor"):
        census.write_policy()
        ended = shoal(command, census.policy)
        assert ended.code == 1
        said = ended.err + ended.out.decode()
        assert "there are no columns 'id', " in said
        assert 'name the columns in [source], such as header = ["first", "second"]' in said
        assert "Private" not in said


@pytest.mark.parametrize(("sign", "written"), [(";", ";"), ("\t", "\\t"), ("|", "|")])
@pytest.mark.parametrize("command", ["run", "doctor"])
def test_another_delimiter(scene: Scene, sign: str, written: str, command: str) -> None:
    text = (scene.folder / "in.csv").read_text()
    scene.write("in.csv", text.replace(",", sign))
    scene.write_policy()
    ended = shoal(command, scene.policy)
    assert ended.code == 1
    hint = f'its header line is separated by "{written}": set delimiter = "{written}" in [source]'
    assert hint in ended.err + ended.out.decode()
    scene.sections["source"]["delimiter"] = sign
    assert scene.run().code == 0


def test_another_delimiter_without_a_header(census: Scene) -> None:
    census.write("in.csv", (census.folder / "in.csv").read_text().replace(",", ";"))
    census.run()
    assert census.letters()[0]["reason"] == (
        "1 field where [source] header names 4; complete the record, or set [source] delimiter if another character "
        "separates fields"
    )


def test_names_that_differ_in_case(scene: Scene) -> None:
    text = (scene.folder / "in.csv").read_text()
    scene.write("in.csv", text.replace("user", "User"))
    assert "differ here in case or spaces; write them as the file does" in scene.run().err


# ---- each row is a person


def test_each_row_is_a_person(census: Scene) -> None:
    census.sections["stream"]["person"] = "row"
    ended = census.run("--json", "--quiet")
    assert ended.code == 0, ended.err
    assert ended.summary["dead"] == 0
    assert ended.summary["released"] > 0.9 * PEOPLE
    assert ended.summary["guarantee"].startswith("rows, not people, are counted: every published combination")
    assert "is shared by at least 4 different rows" in ended.summary["guarantee"]
    assert "row" not in census.released().column_names
    assert audit(census) == 0
    looked = shoal("doctor", census.policy)
    assert looked.code == 0
    assert b"rows, not people, are counted" in looked.out
    assert [remark["level"] for remark in json.loads(shoal("doctor", census.policy, "--json").out)["remarks"]
            if remark["topic"] == "person"] == ["look"]  # fmt: skip


@pytest.mark.usefixtures("key")
def test_rows_keep_their_numbers_over_files_and_stops(scene: Scene) -> None:
    """Persons are rows of the stream, wherever a file or a run ended: pseudonyms are those of one long file."""
    scene.sections["stream"]["person"] = "row"
    rows = [f"{10 + n},s{n % 2}\n" for n in range(20)]
    scene.write("in.csv", "ts,site\n" + "".join(rows))
    assert scene.run("--quiet").code == 0
    whole = (scene.folder / "out.csv").read_bytes()
    assert len(whole.splitlines()) == 1 + 18
    scene.write("in.csv", "ts,site\n" + "".join(rows[:7]))
    scene.write("in2.csv", "ts,site\n" + "".join(rows[7:]))
    scene.sections["source"]["path"] = ["in.csv", "in2.csv"]
    scene.sections["checkpoint"] = {"path": "state", "every": 1}
    scene.write_policy()
    with pytest.raises(KeyboardInterrupt):
        Pipeline.from_policy(scene.policy).run(StopsAt(20))
    resumed = Pipeline.from_policy(scene.policy).run()
    assert resumed.resumed
    assert (scene.folder / "out.csv").read_bytes() == whole


class StopsAt(Observer):
    """Stops a run before it records that it has read this many rows."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def progress(self, summary: RunSummary) -> None:
        if summary.rows_in >= self._rows:
            raise KeyboardInterrupt


def test_a_real_column_named_row_is_used(census: Scene) -> None:
    census.sections["stream"]["person"] = "row"
    census.sections["source"]["header"] = ["row", *HEADER[1:]]
    lines = (census.folder / "in.csv").read_text().splitlines()
    same = [f"p{n % 3}," + line.partition(",")[2] for n, line in enumerate(lines)]
    census.write("in.csv", "\n".join(same) + "\n")
    ended = census.run("--json", "--quiet")
    assert ended.summary["released"] == 0  # three people are fewer than k
    assert (
        b"the input has a column 'row', which is taken as the column of persons" in shoal("doctor", census.policy).out
    )
    assert audit(census) == 0


def test_each_row_is_a_person_for_z_anonymity(scene: Scene) -> None:
    """Two rows with a value are two people, also where they are of one."""
    scene.sections["stream"]["person"] = "row"
    scene.sections["trace"] = {"path": "trace.parquet"}
    ended = scene.run("--json", "--quiet")
    assert ended.summary["released"] == 3
    assert audit(scene) == 0
    scene.sections["stream"]["person"] = "user"
    scene.write_policy()
    assert audit(scene) == 1  # the release has no column user


def test_each_row_is_a_set(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.write("in.csv", "items\n" + "a|b\nb|a\n" * 5)
    scene.sections = {
        "stream": {"person": "row"},
        "source": {"kind": "csv", "path": "in.csv", "separator": "|"},
        "anonymize": {"method": "k^m", "item": "items", "k": 5, "m": 2},
        "anonymize.generalize": {"balanced": 2},
        "sink": {"kind": "csv", "path": "out.csv"},
        "trace": {"path": "trace.parquet"},
    }
    ended = scene.run("--json", "--quiet")
    assert ended.summary["records"] == 10
    assert audit(scene) == 0
    assert b"rows, not people, are counted" in shoal("doctor", scene.policy).out
    named = (scene.folder / "out.csv").read_bytes()
    del scene.sections["stream"]
    assert scene.run("--quiet").code == 0
    assert (scene.folder / "out.csv").read_bytes() == named


# ---- units of time


def timed(scene: Scene, factor: int) -> None:
    """Four people an hour at two sites, in a recent year."""
    lines = [f"{(1_700_000_000 + n) * factor},u{n % 4},s{n % 2}" for n in range(40)]
    scene.write("in.csv", "ts,user,site\n" + "\n".join(lines) + "\n")
    scene.sections["trace"] = {"path": "trace.parquet"}


UNITS = [("ms", 10**3), ("us", 10**6), ("ns", 10**9)]


@pytest.mark.parametrize(("unit", "factor"), UNITS)
def test_numbers_of_another_unit(scene: Scene, unit: str, factor: int) -> None:
    timed(scene, 1)
    assert scene.run("--quiet").code == 0
    expected = scene.released().column("site").to_pylist()
    timed(scene, factor)
    scene.sections["stream"]["time_unit"] = unit
    ended = scene.run("--quiet", "--json")
    assert ended.code == 0
    assert ended.err == ""
    released = scene.released()
    assert released.column("site").to_pylist() == expected
    assert str(released.column("ts")[0]).startswith("2023-11-14")
    assert audit(scene) == 0
    assert shoal("doctor", scene.policy).code == 0
    scene.sections["stream"]["time_unit"] = "s"
    scene.write_policy()
    assert audit(scene) == 1


@pytest.mark.parametrize(("unit", "factor"), UNITS)
def test_numbers_taken_for_seconds(scene: Scene, unit: str, factor: int) -> None:
    """They are far in the future: the run refuses them, the doctor names their unit."""
    timed(scene, factor)
    ended = scene.run("--quiet", "--json")
    assert ended.summary["dead"] == 40
    assert 'time_unit = "ms" in [stream]' in scene.letters()[0]["reason"]
    looked = shoal("doctor", scene.policy)
    assert looked.code == 1
    assert f'set time_unit = "{unit}" in [stream]' in looked.out.decode()


def test_seconds_taken_for_milliseconds(scene: Scene) -> None:
    """Times shrink to a thousandth and windows are a thousand times too long: a warning reports it."""
    timed(scene, 1)
    scene.sections["stream"]["time_unit"] = "ms"
    ended = scene.run()
    assert "warning: column 'ts': in milliseconds (time_unit = \"ms\") its times are in 1970" in ended.err
    looked = shoal("doctor", scene.policy)
    assert looked.code == 1
    assert 'set time_unit = "s" in [stream]' in looked.out.decode()


def test_an_invalid_time_in_its_unit(scene: Scene) -> None:
    timed(scene, 1000)
    scene.write("in.csv", (scene.folder / "in.csv").read_text() + "99999999999999999,u1,s1\nsoon,u1,s1\n")
    scene.sections["stream"]["time_unit"] = "ms"
    ended = scene.run("--json", "--quiet")
    assert ended.summary["dead"] == 2
    assert [letter["row"] for letter in scene.letters()] == [41, 42]
    assert scene.letters()[0]["reason"].startswith(
        'not a time between 1824 and 2116 in milliseconds (time_unit = "ms")'
    )
    assert audit(scene) == 0


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        (
            {"person": "user", "time": "ts", "time_unit": "h"},
            '[stream] time_unit: must be one of "s", "ms", "us", "ns"',
        ),
        ({"person": "user", "time_unit": "ms"}, "[stream] time_unit: is the unit of numbers in [stream] time"),
    ],
)
def test_units_that_cannot_be(scene: Scene, stream: dict[str, str], words: str) -> None:
    scene.sections["stream"] = stream
    ended = scene.run()
    assert ended.code == 2
    assert words in ended.err


# ---- values that are nearly leaves


def test_values_that_differ_in_case_or_spaces(census: Scene) -> None:
    """Messages show labels of the hierarchy, never values of the data."""
    text = (census.folder / "in.csv").read_text()
    census.write("in.csv", text.replace("Private", "PRIVATE").replace("State-gov", "State -gov"))
    ended = census.run("--json", "--quiet")
    words = '27 {} would match if case and spaces were ignored (labels "Private", "State-gov"); spell them the same'
    assert f"warning: column 'work': {words.format('refused values')}" in ended.err
    assert words.format("refused values") in ended.summary["warnings"][0]
    looked = shoal("doctor", census.policy)
    assert looked.code == 1
    fate = "27 values are not leaves of the hierarchy; their rows will go to the dead letters"
    assert f"column 'work': {fate}; {words.format('of them')}" in looked.out.decode()
    assert "PRIVATE" not in ended.err + looked.out.decode()


def test_they_are_counted_over_a_stop(census: Scene) -> None:
    lines = (census.folder / "in.csv").read_text().replace("Private", "private").splitlines(keepends=True)
    census.write("in.csv", "".join(lines[:20]))
    census.write("in2.csv", "".join(lines[20:]))
    census.sections["source"]["path"] = ["in.csv", "in2.csv"]
    census.sections["checkpoint"] = {"path": "state", "every": 1}
    census.write_policy()
    with pytest.raises(KeyboardInterrupt):
        Pipeline.from_policy(census.policy).run(StopsAt(PEOPLE))
    (warning,) = Pipeline.from_policy(census.policy).run().warnings
    assert warning.startswith("column 'work': 14 refused values would match")


def test_unknown_values_that_are_not_near(census: Scene) -> None:
    census.write("in.csv", (census.folder / "in.csv").read_text().replace("Private", "Abroad"))
    assert "would match" not in census.run("--quiet").err
    assert "add them to the hierarchy" in shoal("doctor", census.policy).out.decode()


def test_values_of_an_attribute_that_resemble_leaves(scene: Scene) -> None:
    tree = {"kind": "nested", "tree": {"any": ["A.Example", "b.example", "rare.example"]}}
    scene.sections["anonymize"] |= {"on_private": "generalize", "hierarchy": tree}
    ended = scene.run("--json", "--quiet")
    words = 'would match if case and spaces were ignored (labels "A.Example")'
    assert f"warning: column 'site': 3 refused values {words}" in ended.err
    assert f"column 'site': 3 unknown values {words}" in shoal("doctor", scene.policy).out.decode()


def test_items_that_resemble_leaves(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.write("in.csv", "items\n" + "A|b\na|b\n" * 5)
    scene.sections = {
        "source": {"kind": "csv", "path": "in.csv", "separator": "|"},
        "anonymize": {"method": "k^m", "item": "items", "k": 5, "m": 1},
        "anonymize.generalize": {"hierarchy": {"kind": "nested", "tree": {"any": ["a", "b"]}}},
        "sink": {"kind": "csv", "path": "out.csv"},
    }
    words = '5 unknown items would match if case and spaces were ignored (labels "a")'
    assert words in scene.run("--quiet").err
    assert words in shoal("doctor", scene.policy).out.decode()


# ---- the verdict


def verdict(scene: Scene) -> tuple[int, str]:
    scene.write_policy()
    ended = shoal("doctor", scene.policy)
    return ended.code, ended.out.decode()


def visits(scene: Scene, times: list[int], *, sites: int = 2) -> None:
    lines = [f"{1_700_000_000 + time},u{n % 10},s{n % sites}" for n, time in enumerate(times)]
    scene.write("in.csv", "ts,user,site\n" + "\n".join(lines) + "\n")


@pytest.mark.parametrize(("refused", "code"), [(5, 0), (6, 0), (50, 0), (51, 1)])
def test_rows_that_are_refused(scene: Scene, refused: int, code: int) -> None:
    visits(scene, list(range(100)))
    lines = (scene.folder / "in.csv").read_text().splitlines()
    lines[1 : refused + 1] = ["never,u1,s1"] * refused
    scene.write("in.csv", "\n".join(lines) + "\n")
    found, out = verdict(scene)
    assert found == code
    words = "many rows are refused" if refused <= 50 else "most rows are refused"
    assert (words in out) == (refused > 5)
    assert ("this policy can run" in out) == (code == 0)


@pytest.mark.parametrize(("sites", "code"), [(95, 0), (96, 1), (100, 1)])
def test_rows_that_are_suppressed(scene: Scene, sites: int, code: int) -> None:
    """Of 100 rows as many are released as there are second visits to a site."""
    visits(scene, list(range(100)), sites=sites)
    found, out = verdict(scene)
    assert found == code
    assert f"{100 - sites:.1f}% would be released" in out
    assert ("choose a smaller z" in out) == (code == 1)


def test_a_sample_that_is_too_short_to_tell(scene: Scene) -> None:
    visits(scene, list(range(100)), sites=100)
    scene.write_policy()
    assert shoal("doctor", scene.policy).code == 1
    ended = shoal("doctor", scene.policy, "--rows", "50")
    assert ended.code == 0
    assert b"the sample may be too short to tell" in ended.out


def test_a_part_of_a_day_may_be_the_night(scene: Scene) -> None:
    visits(scene, [144 * n for n in range(100)], sites=100)  # four windows
    scene.write_policy()
    assert shoal("doctor", scene.policy).code == 1
    assert shoal("doctor", scene.policy, "--rows", "50").code == 0


def test_input_that_is_not_sorted(scene: Scene) -> None:
    """Two of three rows are late: reported with what to write; once written, nothing is refused."""
    visits(scene, [n * 10 - 60 * (n % 3 > 0) for n in range(400)])
    found, out = verdict(scene)
    assert found == 1
    assert "rows are not sorted by 'ts': 66." in out
    assert "would be refused as late: sort the input by 'ts', or set lateness = \"50s\"" in out
    scene.sections["anonymize"]["lateness"] = "50s"
    found, out = verdict(scene)
    assert found == 0
    assert "lateness is long enough for them" in out
    assert "refused; " not in out


def test_input_in_no_order_at_all(scene: Scene) -> None:
    visits(scene, [n * 7919 % 4001 for n in range(400)])
    found, out = verdict(scene)
    assert found == 1
    assert "sort the input by 'ts' (rows are not in time order at all: no lateness would help)" in out


def test_items_that_are_mostly_refused(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.write("in.csv", "items\n" + "x\n" * 6 + "a\n" * 5)
    scene.sections = {
        "source": {"kind": "csv", "path": "in.csv", "separator": "|"},
        "anonymize": {"method": "k^m", "item": "items", "k": 2, "m": 1},
        "anonymize.generalize": {"hierarchy": {"kind": "nested", "tree": {"any": ["a", "b"]}}},
        "sink": {"kind": "csv", "path": "out.csv"},
    }
    assert verdict(scene)[0] == 1


@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("ms", 1000)])
def test_a_time_that_is_also_a_quasi_identifier(census: Scene, unit: str, factor: int) -> None:
    """Numbers in a column whose domain is given in moments need a unit; then they are read, published and audited."""
    lines = (census.folder / "in.csv").read_text().splitlines()
    census.write("in.csv", "".join(f"{line}, {(1_700_000_000 + n) * factor}\n" for n, line in enumerate(lines)))
    census.sections["source"]["header"] = [*HEADER, "ts"]
    census.sections["stream"] = {"person": "row", "time": "ts"}
    census.sections["anonymize.quasi.ts"] = {"kind": "numeric", "low": "2023-11-01", "high": "2023-12-01", "grid": "1h"}
    census.sections["sink"] = census.sections.pop("sink")
    census.write_policy()
    looked = shoal("doctor", census.policy)
    assert looked.code == 1
    assert f'set time_unit = "{unit}" in [stream]' in looked.out.decode()
    census.sections["stream"]["time_unit"] = unit
    ended = census.run("--json", "--quiet")
    assert ended.summary["dead"] == 0
    assert ended.summary["released"] > 0.9 * PEOPLE
    assert "2023-11-14" in census.released().column("ts")[0].as_py()
    assert audit(census) == 0
    assert shoal("doctor", census.policy).code == 0
    census.sections["source"]["types"] = {"ts": "timestamp"}
    assert "[source] types: the time is read by its time_unit; leave it out here" in census.run().err
