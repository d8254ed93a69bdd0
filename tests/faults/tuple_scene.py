"""A small stream of tuples with all that can be lost: rows that are pending, published late, alone or never."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.faults.scene import KEY, POLICY, STATE, Forker, Scene, Sink

HEADER = "id,age,school,ts,work,note"
SCHOOLS = ("primary", "secondary", "bachelor", "master")

# Two cannot be decoded, the method refuses the others: a label that is no leaf and, where time counts, one far ahead.
BAD = {7: "p7,old,master,{ts},w0,n0", 18: "p1,30,none,{ts},w1,n1", 29: "p2,31", 41: "p3,32,master,99000000,w0,n0"}

METHODS = {
    "fads": 'method = "fads"\ndeadline = 9\nreuse = 4\nmissing = "covered"',
    "least-loss": 'method = "least-loss"\ndeadline = "40s"\nreuse = "60s"\nsensitive = ["work"]\nl = 2',
}


def rows(count: int) -> list[str]:
    """Rows that differ; some lack a value, some are of a person who was there before, some cannot be used."""
    return [BAD.get(number, _row(number)).format(ts=4 * number) for number in range(count)]


def _row(number: int) -> str:
    age = "" if number % 7 == 3 else 20 + number * 13 % 50
    school = "" if number % 5 == 2 else SCHOOLS[number * 7 % 4]
    people = 17 if number < 45 else 2  # too few for a crowd at the end
    return f"p{number % people},{age},{school},{{ts}},w{number % 3},n{number % 2}"


class TupleScene(Scene):
    """Runs of a tuple method."""

    @classmethod
    def of(cls, forker: Forker, folder: Path, sink: Sink, method: str) -> TupleScene:
        """Write the input, in three files, and the policy."""
        folder.mkdir(exist_ok=True)
        lines = rows(60)
        for number, start in enumerate(range(0, len(lines), 20)):
            text = "\n".join([HEADER, *lines[start : start + 20]]) + "\n"
            (folder / f"in-{number}.csv").write_text(text)
        (folder / "key.txt").write_text(KEY)
        (folder / "key.txt").chmod(0o600)
        (folder / POLICY).write_text(_policy(sink, method))
        return cls(forker, folder, sink)

    @property
    def is_timed(self) -> bool:
        """Whether deadlines are durations."""
        return 'time = "ts"' in (self.folder / POLICY).read_text()

    def result(self) -> dict[str, Any]:
        """What was released, refused, traced, counted and measured."""
        return {**super().result(), "metrics": self.summary()["metrics"]}


def _policy(sink: Sink, method: str) -> str:
    time = 'time = "ts"' if method == "least-loss" else ""
    return f"""
[stream]
person = "id"
carry = ["note"]
{time}
[source]
kind = "csv"
path = "in-*.csv"
[anonymize]
{METHODS[method]}
k = 3
[anonymize.quasi.age]
kind = "numeric"
low = 17
high = 90
[anonymize.quasi.school]
kind = "categorical"
hierarchy = {{kind = "nested", tree = {{any = {{lower = ["primary", "secondary"], upper = ["bachelor", "master"]}}}}}}
[sink]
kind = "{sink.kind}"
path = "{sink.path}"
[dead_letters]
path = "dead.jsonl"
[trace]
path = "trace.parquet"
[checkpoint]
path = "{STATE}"
every = 5
"""
