"""`shoal init`: from a file to a policy that runs and passes the audit, for five kinds of data."""

from __future__ import annotations

import gzip
import json
import stat
import sys
import tomllib
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from tests.e2e.scene import Ended, encode, shoal
from tests.inspection.stories import METHODS, PERSONS, STORIES, admissions, baskets, visits

KINDS = {
    "visits": "csv.gz", "sensors": "csv", "admissions": "csv", "baskets": "jsonl", "measurements": "parquet",
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SHOAL_KEY_FILE", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(name: str, *words: str) -> Ended:
    return shoal("init", name, "--yes", *words)


def audited(name: str, released: str) -> Ended:
    return shoal("audit", released, "--truth", name, "--trace", "trace.parquet", "--policy", "policy.toml", "--json")


@pytest.mark.parametrize("story", STORIES)
def test_init_run_and_audit(story: str, folder: Path) -> None:
    kind = KINDS[story]
    name = f"{story}.{kind}"
    table = STORIES[story]()
    (folder / name).write_bytes(encode(kind, table))
    written = init(name, *(["--person", PERSONS[story]] if story in PERSONS else []))
    assert written.code == 0, written.out.decode() + written.err
    policy = tomllib.loads((folder / "policy.toml").read_text())
    assert policy["anonymize"]["method"] == METHODS[story]
    ran = shoal("run", "policy.toml", "--quiet", "--json")
    assert ran.code == 0, ran.err
    assert ran.summary["released"] > 0.3 * table.num_rows
    assert ran.summary["dead"] == 0
    report = audited(name, policy["sink"]["path"])
    assert report.code == 0, report.out.decode()


def values_of(table: pa.Table) -> set[str]:
    """Texts that only the data have."""
    texts = (column for column in table.columns if pa.types.is_string(column.type))
    return {value for column in texts for value in column.unique().to_pylist() if value and len(value) > 3}


@pytest.mark.parametrize("story", ["visits", "admissions", "measurements"])
def test_no_value_is_in_the_policy_and_hierarchies_are_private(story: str, folder: Path) -> None:
    table = STORIES[story]()
    (folder / "data.parquet").write_bytes(encode("parquet", table))
    said = init("data.parquet").out.decode()
    text = (folder / "policy.toml").read_text()
    assert [value for value in values_of(table) if value in text + said] == []
    trees = list((folder / "policy-hierarchies").glob("*.json")) if story != "visits" else []
    for path in trees:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert ("readable only by you" in said) == bool(trees)


def test_numbers_stay_numbers(folder: Path) -> None:
    (folder / "visits.csv").write_bytes(encode("csv", visits().append_column("score", [[1.5, 2.5] * 1500])))
    assert init("visits.csv", "--carry", "score").code == 0
    policy = (folder / "policy.toml").read_text().replace('kind = "csv"\npath = "released.csv"',
                                                          'kind = "jsonl"\npath = "released.jsonl"')  # fmt: skip
    (folder / "policy.toml").write_text(policy)
    assert shoal("run", "policy.toml", "--quiet").code == 0
    row = json.loads((folder / "released.jsonl").read_text().splitlines()[0])
    assert row["score"] in (1.5, 2.5)


def test_files_as_they_are_found(folder: Path) -> None:
    rows = admissions().select(["patient", "age", "sex", "diagnosis"])
    lines = [";".join(map(str, row.values())) for row in rows.to_pylist()]
    lines[3] = lines[3].replace(";f;", ";?;").replace(";m;", ";?;")
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    written = init("people.csv", "--person", "column1")
    assert written.code == 0
    assert 'read as        nulls = ["?"]; if that is wrong, correct it in [source]' in written.out.decode()
    source = tomllib.loads((folder / "policy.toml").read_text())["source"]
    assert source["delimiter"] == ";"
    assert source["header"] == ["column1", "column2", "column3", "column4"]
    assert source["nulls"] == ["?"]
    assert shoal("run", "policy.toml", "--quiet", "--json").summary["dead"] == 0
    assert audited("people.csv", "released.csv").code == 0


def test_ugly_names_and_numbers(folder: Path) -> None:
    """A name with a space is quoted in the commands to type; numbers with a decimal comma are read."""
    rows = admissions(400).to_pylist()
    lines = ["Kunden-Nr.;Ort;Umsatz (€)", *(f"{one['patient']};{one['postcode']};{one['age']},50" for one in rows)]
    (folder / "my data.csv").write_text("\n".join(lines) + "\n")
    said = init("my data.csv", "--person", "Kunden-Nr.")
    assert said.code == 0, said.err
    assert "--truth 'my data.csv' --trace" in said.out.decode()
    policy = tomllib.loads((folder / "policy.toml").read_text())
    assert policy["source"]["decimal"] == ","
    assert policy["anonymize"]["quasi"]["Umsatz (€)"]["kind"] == "numeric"
    ran = shoal("run", "policy.toml", "--quiet", "--json")
    assert (ran.code, ran.summary["dead"]) == (0, 0)


def test_lines_of_items(folder: Path) -> None:
    lines = [",".join(items) for items in baskets().column("items").to_pylist()]
    (folder / "baskets.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    assert init("baskets.csv.gz").code == 0
    ran = shoal("run", "policy.toml", "--quiet")
    assert ran.code == 0
    blocks = json.loads((folder / "released.csv.blocks.json").read_text())
    merged = sum(len(items) for items in blocks.values() if len(items) > 1)
    assert f"generalized    {merged:>12,}  items" in ran.out.decode()
    assert audited("baskets.csv.gz", "released.csv").code == 0


def test_sets_in_a_column_of_text(folder: Path) -> None:
    items = ["|".join(items) for items in baskets().column("items").to_pylist()]
    (folder / "baskets.csv").write_bytes(encode("csv", pa.table({"goods": items})))
    assert init("baskets.csv").code == 0
    assert tomllib.loads((folder / "policy.toml").read_text())["source"]["separator"] == "|"
    assert shoal("run", "policy.toml", "--quiet").code == 0
    assert audited("baskets.csv", "released.csv").code == 0


def test_rows_in_any_order_and_times_in_milliseconds(folder: Path) -> None:
    table = visits()
    late = table.set_column(0, "ts", [[time * 1000 for time in table.column("ts").to_pylist()]])
    (folder / "visits.csv").write_bytes(encode("csv", late.take(list(range(3000))[::-1])))
    assert init("visits.csv").code == 0
    assert tomllib.loads((folder / "policy.toml").read_text())["stream"]["time_unit"] == "ms"
    assert shoal("run", "policy.toml", "--quiet", "--json").summary["dead"] == 0


def answered(name: str, *answers: str) -> Ended:
    """Answer on a terminal."""
    given = iter([*answers, ""])
    with (
        patch("builtins.input", lambda _: next(given)),
        patch.object(sys, "stdin", type("Terminal", (), {"isatty": lambda _: True})()),
    ):
        return _called(name)


def _called(name: str) -> Ended:
    from shoal.cli import init as command

    code = command.init(name)
    return Ended(code, b"", "")


def test_answers_on_a_terminal_change_roles_and_parameters(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "people.csv").write_bytes(encode("csv", admissions()))
    answers = ["k=7", "diagnosis=quasi", "age=carry", "postcode=drop", "sex=nothing", "nobody=drop", "k=x", "huh",
               "method=fads", "method=none", "age=quasi"]  # fmt: skip
    assert answered("people.csv", *answers).code == 0
    said = capsys.readouterr().out
    for words in ("'nothing' is not a role", "'nobody': does not exist", "k: must be a whole number",
                  "write COLUMN=ROLE", "method: must be one of"):  # fmt: skip
        assert words in said
    rules = tomllib.loads((folder / "policy.toml").read_text())["anonymize"]
    assert (rules["k"], rules["method"]) == (7, "fads")
    assert list(rules["quasi"]) == ["admitted", "age", "sex", "diagnosis"]
    assert "sensitive" not in rules


PANEL = {"v1": [1000 + 7 * (row // 4) for row in range(240)], "v2": ["F" if row % 8 < 4 else "M" for row in range(240)],
         "v3": [1940 + row // 4 % 50 for row in range(240)], "v4": [row * 37 % 101 for row in range(240)]}  # fmt: skip


def test_a_doubtful_person_stops_with_candidates_and_commands(folder: Path) -> None:
    (folder / "my panel.csv").write_bytes(encode("csv", pa.table(PANEL)))
    ended = init("my panel.csv", "--k", "4")
    assert ended.code == 2
    assert not (folder / "policy.toml").exists()
    assert "'v1'" not in ended.out.decode()
    lines = ended.err.splitlines()
    assert lines[0] == "error: whose row is it? No column is certain to be the person; nothing was written"
    assert (
        lines[1] == "  v1  60 different ones, 4.0 rows each, one after another; the same in all rows of one: 'v2', 'v3'"
    )
    assert lines[2] == "continue with  shoal init 'my panel.csv' --yes --k 4 --person v1"
    assert lines[3].startswith("           or  shoal init 'my panel.csv' --yes --k 4 --person row   (every row")
    assert init("my panel.csv", "--k", "4", "--person", "v1").code == 0
    assert tomllib.loads((folder / "policy.toml").read_text())["stream"]["person"] == "v1"


def test_rows_are_counted_if_that_is_confirmed(folder: Path) -> None:
    (folder / "panel.csv").write_bytes(encode("csv", pa.table(PANEL)))
    said = init("panel.csv", "--person", "row")
    assert said.code == 0, said.err
    assert "all 240 rows, counted as rows, not people" in said.out.decode()
    assert "name the column (person)" not in said.out.decode()
    text = (folder / "policy.toml").read_text()
    assert 'person = "row"              # rows, not people, are counted' in text
    policy = tomllib.loads(text)
    assert policy["stream"] == {"person": "row"}
    assert "v1" not in policy["anonymize"]["quasi"]


@pytest.mark.parametrize(("answers", "person"), [(["v1"], "v1"), (["nobody", "row"], "row")])
def test_a_terminal_asks_whose_row_it_is(answers, person, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "panel.csv").write_bytes(encode("csv", pa.table(PANEL)))
    assert answered("panel.csv", *answers).code == 0
    said = capsys.readouterr().out
    assert "whose row is it?" in said
    assert ("no column has this name" in said) == ("nobody" in answers)
    assert tomllib.loads((folder / "policy.toml").read_text())["stream"]["person"] == person


def test_what_is_of_no_use_does_not_say_run(folder: Path) -> None:
    (folder / "few.csv").write_text("patient,age\n1,20\n2,30\n3,60\n")
    ended = init("few.csv")
    assert ended.code == 1
    said = ended.out.decode()
    assert "wrong" in said
    assert "shoal run" not in said
    assert "next           change what is marked wrong above, then shoal doctor policy.toml" in said


@pytest.mark.parametrize(
    ("name", "content", "words", "code", "said"),
    [
        ("none.csv", None, (), 1, "cannot be read"),
        ("data.xyz", b"a", (), 1, "does not show its format"),
        ("empty.csv", b"", (), 1, "has no rows"),
        ("head.csv", b"a,b\n", (), 1, "has no rows"),
        ("broken.parquet", b"PAR1 and more", (), 1, "is not parquet"),
        ("broken.csv.gz", b"\x1f\x8b\x08 broken", (), 1, "is not csv"),
        ("binary.csv", b"id,city\n1,Z\xfc\x00\x01\n2,Bern\n", (), 1, "save it as csv in UTF-8"),
        ("x.csv", b"id,age\n1,20\n2,30\n", ("--method", "magic"), 2, "--method: must be one of"),
        ("x.csv", b"id,age\n1,20\n2,30\n", ("--person", "nobody"), 2, "'nobody': does not exist"),
        ("x.csv", b"id,age\n1,20\n2,30\n", ("--out", "x.csv"), 2, "x.csv: exists"),
        ("x.csv", b"id,age\n1,20\n2,30\n", ("--out", "x.csv/deep/policy.toml"), 1, "x.csv"),
    ],
)  # fmt: skip
def test_what_cannot_be(name, content, words, code, said, folder: Path) -> None:
    if content is not None:
        (folder / name).write_bytes(content)
    ended = init(name, *words)
    assert ended.code == code
    assert said in ended.err
    assert "Traceback" not in ended.err
    assert "internal error" not in ended.err


def test_a_policy_is_replaced_only_on_request(folder: Path) -> None:
    (folder / "visits.csv").write_bytes(encode("csv", visits(300)))
    init("visits.csv")
    assert init("visits.csv").code == 2
    assert init("visits.csv", "--force", "--z", "2").code in (0, 1)
    assert tomllib.loads((folder / "policy.toml").read_text())["anonymize"]["z"] == 2


def test_columns_with_odd_names(folder: Path) -> None:
    table = admissions().rename_columns(
        ["who is it", "name", "ad\nmitted", 'a"ge', "se[x]", "post = code", "dia#gnosis"]
    )
    (folder / "odd.parquet").write_bytes(encode("parquet", table))
    assert init("odd.parquet", "--person", "who is it").code == 0
    assert 'a"ge' in tomllib.loads((folder / "policy.toml").read_text())["anonymize"]["quasi"]
    assert shoal("run", "policy.toml", "--quiet").code == 0


SECRETS = ["Aurelia-Quist", "Vaduz", "63", "haemophilia"]
"""The first record of a file without a header line."""


def bare(count: int = 80) -> str:
    towns, illnesses = ["Ulm", "Bern", "Graz"], ["asthma", "flu", "migraine"]
    rows = [[f"Ann-Lee{chr(97 + place % 26)}{place}", towns[place % 3], str(20 + place % 40), illnesses[place % 3]]
            for place in range(count)]  # fmt: skip
    return "".join(",".join(row) + "\n" for row in [SECRETS, *rows])


def test_nothing_of_a_first_record_enters_the_policy_or_a_message(folder: Path) -> None:
    (folder / "people.csv").write_text(bare())
    ended = init("people.csv", "--person", "column1", "--header", "no")
    said = ended.out.decode() + ended.err + (folder / "policy.toml").read_text()
    assert "say --header yes" in said
    assert not [secret for secret in SECRETS if secret != "63" and secret in said]
    assert tomllib.loads((folder / "policy.toml").read_text())["source"]["header"] == [
        "column1", "column2", "column3", "column4",
    ]  # fmt: skip
    ran = shoal("run", "policy.toml", "--quiet", "--json")
    assert ran.summary["rows_in"] == 81
    policy = tomllib.loads((folder / "policy.toml").read_text())
    assert audited("people.csv", policy["sink"]["path"]).code == 0


def test_a_file_without_a_header_is_seen(folder: Path) -> None:
    (folder / "people.csv").write_text(bare().replace(SECRETS[3], "asthma"))
    assert "header         none, the first line is a record" in init("people.csv", "--person", "column1").out.decode()
    ended = init("people.csv", "--person", SECRETS[0], "--header", "yes", "--force")
    assert "if it is a record, say --header no" in ended.out.decode()
    assert "header" not in tomllib.loads((folder / "policy.toml").read_text())["source"]


def test_the_index_of_pandas_does_not_hide_the_header(folder: Path) -> None:
    rows = "".join(f"{place},p{place},{20 + place % 30},{'fm'[place % 2]}\n" for place in range(90))
    (folder / "people.csv").write_text(f",name,age,sex\n{rows}")
    ended = init("people.csv", "--person", "name", "--quasi", "age", "--quasi", "sex")
    assert ended.code == 0
    assert "say --header no" in ended.out.decode()
    ran = shoal("run", "policy.toml", "--quiet", "--json")
    assert (ran.summary["rows_in"], ran.summary["dead"]) == (90, 0)
    assert (folder / "released.csv").read_text().splitlines()[0] == '"age","sex"'
    assert audited("people.csv", "released.csv").code == 0


def access_log(count: int = 400) -> str:
    lines = []
    for place in range(count):
        clock = f"{place // 60:02d}:{place % 60:02d}:00"
        page = "/secret-page" if place == 50 else f"/page{place % 4}"
        lines.append(
            f'10.0.0.{place % 23} - canary-user [01/Mar/2024:{clock} +0100] "GET {page} HTTP/1.1" 200 {place * 7} "-" '
            f'"canary-agent/{place}"\n'
        )
    return "".join(lines)


@pytest.mark.parametrize("name", ["access.log", "access_log", "requests.txt"])
def test_an_access_log_becomes_events_of_hosts(folder: Path, name: str) -> None:
    (folder / name).write_text(access_log())
    ended = init(name, "--z", "3")
    assert ended.code == 0, ended.out.decode() + ended.err
    text = (folder / "policy.toml").read_text()
    policy = tomllib.loads(text)
    assert policy["stream"] == {"person": "host", "time": "time", "carry": ["status"]}
    assert policy["source"]["kind"] == "access-log"
    assert (policy["anonymize"]["method"], policy["anonymize"]["attribute"]) == ("z-anonymity", "request")
    assert "canary" not in text + ended.out.decode()
    ran = shoal("run", "policy.toml", "--quiet", "--json")
    assert (ran.summary["rows_in"], ran.summary["dead"]) == (400, 0)
    assert ran.summary["released"] > 300
    released = (folder / "released.csv").read_text()
    assert not [word for word in ("canary", "secret-page", "10.0.0.") if word in released]
    assert audited(name, "released.csv").code == 0


def test_another_use_of_an_access_log(folder: Path) -> None:
    (folder / "access.log").write_text(access_log())
    assert init("access.log", "--attribute", "agent", "--z", "2").code in (0, 1)
    rules = tomllib.loads((folder / "policy.toml").read_text())
    assert rules["anonymize"]["attribute"] == "agent"
    assert init("access.log", "--k", "5", "--quasi", "size", "--person", "host", "--force").code == 0
    assert list(tomllib.loads((folder / "policy.toml").read_text())["anonymize"]["quasi"]) == ["size"]


def test_a_log_of_another_kind_is_refused(folder: Path) -> None:
    (folder / "app.log").write_text("started\nstopped\n")
    ended = init("app.log")
    assert ended.code == 1
    assert "is no access log in the common or combined format" in ended.err


@pytest.mark.parametrize(("share", "missing"), [(0.3, "own"), (0.12, "hidden")])
def test_the_policy_says_what_rows_show_of_missing_values_and_why(share: float, missing: str, folder: Path) -> None:
    """One column with gaps leaves two patterns, eight leave many: own would suppress much of those."""
    draw = np.random.default_rng(3)
    names = ["age"] if missing == "own" else [f"q{place}" for place in range(8)]
    columns = {name: pa.array(draw.integers(0, 40, 500), mask=draw.random(500) < share) for name in names}
    table = pa.table({"patient": [f"p{row:04}" for row in range(500)], **columns, "size": draw.integers(150, 199, 500)})
    (folder / "gaps.csv").write_bytes(encode("csv", table))
    said = init("gaps.csv")
    (line,) = (line for line in (folder / "policy.toml").read_text().splitlines() if line.startswith("missing = "))
    assert f'missing = "{missing}"' in line
    assert ('"own" would suppress about' in line) == (missing == "hidden")
    assert line.partition("# ")[2] in said.out.decode()
    ran = shoal("run", "policy.toml", "--quiet", "--json")
    assert ran.summary["released"] > 0.9 * 500
    assert ran.summary["metrics"]["filled"] == 0
    assert audited("gaps.csv", "released.csv").code == 0
