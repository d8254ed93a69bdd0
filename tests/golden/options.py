"""Options of sources, sinks, streams and sets in policy files: each is set in some run."""

from __future__ import annotations

import base64
import gzip
import json
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.crypto.keys import as_secret
from shoal.crypto.sealing import unseal
from tests.e2e.scene import Scene
from tests.golden.files import encoded
from tests.golden.fingerprints import Digests, digest
from tests.golden.runs import Run, ran
from tests.golden.sets import POINTS, RING, TREE, people_with_items
from tests.golden.streams import STREAMS
from tests.laws.cases import stream

Sections = dict[str, dict[str, Any]]
LONGEST = 100
Z = {"method": "z-anonymity", "attribute": "site", "z": 2, "window": "1min"}
STREAM = {"person": "user", "time": "ts"}
TRACE = {"path": "trace.parquet"}
ZEEK = "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#path\tweb\n"
ZEEK += "#fields\tts\tuser\tsite\tdevice\n#types\ttime\tstring\tstring\tstring\n"

OF_STREAMS: dict[str, Sections] = {
    "csv-marks": {
        "source": {"kind": "csv", "path": "in.csv", "delimiter": ";", "nulls": ["-", "n/a"], "trim": False},
        "sink": {"kind": "csv", "path": "out.csv", "delimiter": "|"},
        "dead_letters": {"path": "refused.jsonl", "keep_rows": True},
    },
    "csv-without-header": {
        "source": {"kind": "csv", "path": "in.csv.gz", "header": ["ts", "user", "site", "device"],
                   "types": {"ts": "int64"}, "compression": "gzip", "max_record_bytes": LONGEST},
        "stream": {**STREAM, "time_unit": "s", "carry": ["device"], "carry_identifying": True},
        "sink": {"kind": "jsonl", "path": "out/", "compression": "gzip"},
    },
    "csv-of-a-country": {
        "stream": {"person": "user"},
        "source": {"kind": "csv", "path": "in.csv", "delimiter": ";", "encoding": "latin-1", "decimal": ",",
                   "dates": {"born": "DD.MM.YYYY"}, "nulls": {"born": ["31.12.9999"], "town": ["unbekannt"]}},
        "anonymize": {"method": "least-loss", "k": 4, "deadline": 40, "reuse": 5, "l": 2, "sensitive": ["wage", "town"],
                      "quasi": {"wage": {"kind": "numeric", "low": 0, "high": 9000, "grid": 500},
                                "born": {"kind": "numeric", "low": "1940-01-01", "high": "2010-01-01",
                                         "grid": "365d"}}},
        "sink": {"kind": "csv", "path": "out.csv"},
    },
    "zeek": {
        "source": {"kind": "zeek", "path": "in.log"},
        "sink": {"kind": "jsonl", "path": "out.jsonl"},
        "checkpoint": {"path": "state", "every": 50},
    },
    "flexible-sensitive": {
        "stream": {"person": "maid", "time": "ts"},
        "source": {"kind": "csv", "path": "in.csv"},
        "anonymize": {**STREAMS["flexible-k-plain"].policy["anonymize"], "sensitive": ["mbps"], "compare": False},
        "sink": {"kind": "csv", "path": "out.csv"},
    },
}  # fmt: skip
OF_SETS: dict[str, Sections] = {
    "sets-balanced": {
        "anonymize": {"method": "k^m-apriori", "item": "item", "k": 20, "m": 1, "drop_rare": 18, "seed": 3,
                      "column": "things", "generalize": {"balanced": 2}},
    },
    "sets-places": {
        "anonymize": {"method": "k^m", "item": "item", "k": 3, "m": 2, "sigma": 0.9, "trials": 2, "error": "ncp",
                      "generalize": {"places": "places.csv", "name": "tower", "x": "east", "y": "north",
                                     "geographic": False, "region": "region.json"}},
        "sink": {"kind": "parquet", "path": "out.parquet"},
    },
    "sets-graph": {
        "stream": {},
        "source": {"kind": "csv", "path": "in.csv", "separator": " "},
        "anonymize": {"method": "k^m", "item": "item", "k": 3, "m": 2, "generalize": {"graph": "graph.csv"}},
        "sink": {"kind": "csv", "path": "out.csv", "separator": "/"},
    },
    "sets-local": {
        "anonymize": {"method": "k^m-apriori", "item": "item", "k": [6, 4, 2], "m": 3, "recoding": "local",
                      "generalize": {"hierarchy": {"kind": "nested", "tree": TREE}}},
    },
}  # fmt: skip


def option_runs() -> dict[str, Run]:
    """A run for each of the policies."""
    return {
        **{name: partial(_run_of_stream, name) for name in OF_STREAMS},
        **{name: partial(_run_of_sets, name) for name in OF_SETS},
    }


def policy_of(name: str) -> Sections:
    """All sections of a policy."""
    if name in OF_STREAMS:
        return {"stream": STREAM, "anonymize": Z, "trace": TRACE, **OF_STREAMS[name]}
    table = {"kind": "csv", "path": "in.csv"}
    sink = {"kind": "jsonl", "path": "out.jsonl"}
    return {"stream": {"person": "user"}, "source": table, "sink": sink, "trace": TRACE, **OF_SETS[name]}


# ---- streams


def _run_of_stream(name: str, folder: Path) -> Digests:
    scene, sections = Scene(folder), policy_of(name)
    scene.sections = sections
    scene.write_policy()
    source, letters = sections["source"]["path"], sections.get("dead_letters", {}).get("path")
    scene.write(source, _text(name))
    made = ran(scene, source=source, sink=sections["sink"]["path"], letters=letters or _letters(sections["sink"]))
    return {**made, "kept rows": _kept_rows(scene.letters(letters))} if letters else made


def _letters(sink: dict[str, Any]) -> str:
    return f"{sink['path'].rstrip('/')}.dead.jsonl"


def _kept_rows(letters: list[dict[str, Any]]) -> str:
    """What sealed letters keep of refused records."""
    sealed = [base64.b64decode(one["sealed"]) for one in letters if "sealed" in one]
    return digest([unseal(as_secret(None), data, purpose="dead letter").decode() for data in sealed])


def _text(name: str) -> bytes:
    """Records as a text, some of which cannot be read."""
    if name == "flexible-sensitive":
        return encoded("csv", STREAMS["flexible-k-plain"].stream)
    if name == "csv-of-a-country":
        return _of_a_country()
    rows = [list(row.values()) for row in _in_seconds(stream(120, seed=31)).to_pylist()]
    if name == "zeek":
        return (ZEEK + _lines(rows, "\t", "-")).encode()
    if name == "csv-without-header":
        rows[20][2] = "long." * LONGEST
        rows[40] = rows[40][:2]
        return gzip.compress(_lines(rows, ",", "").encode(), mtime=0)
    rows[30][0], rows[50][2] = "noon", " a.news "
    return ("ts;user;site;device\n" + _lines(rows, ";", "-")).encode()


def _of_a_country() -> bytes:
    """People of Zürich and elsewhere; three of their numbers and dates cannot be read."""
    towns = ("Zürich", "Köln", "Graz", "unbekannt")
    lines = [
        f"u{row};{1 + row % 7}.{row * 7 % 1000:03},{row % 10};{row % 28 + 1}.{row % 12 + 1}.{1950 + row % 50};"
        f"{towns[row % 4]}"
        for row in range(120)
    ]
    lines[11], lines[12] = "u11;7.5;3.4.1980;Köln", "u12;1.500,5;31.2.1980;Köln"
    lines[13], lines[14] = "u13;x;3.4.1980;Graz", "u14;950,5;31.12.9999;Graz"
    return "\n".join(["user;wage;born;town", *lines, ""]).encode("latin-1")


def _in_seconds(visits: pa.Table) -> pa.Table:
    return visits.set_column(0, "ts", visits["ts"].cast(pa.int64()).cast(pa.float64()))


def _lines(rows: list[list[Any]], delimiter: str, missing: str) -> str:
    cells = [[int(row[0] / 1000) if isinstance(row[0], float) else row[0], *row[1:]] for row in rows]
    return "".join(delimiter.join(missing if cell is None else str(cell) for cell in row) + "\n" for row in cells)


# ---- sets


def _run_of_sets(name: str, folder: Path) -> Digests:
    scene, sections = Scene(folder), policy_of(name)
    scene.sections = sections
    scene.write_policy()
    people = people_with_items(60, seed=4)
    if "separator" in sections["source"]:
        lines = ["item", *(" ".join(sorted(items)) for items in people)]
    else:
        lines = ["user,item", *(f"u{number},{item}" for number, items in enumerate(people) for item in sorted(items))]
        lines += [",a", "u1,"]
    scene.write("in.csv", "\n".join(lines) + "\n")
    scene.write("places.csv", "tower,east,north\n" + "".join(f"{one},{x},{y}\n" for one, (x, y) in POINTS.items()))
    square = {"type": "Polygon", "coordinates": [[[-1, -1], [11, -1], [11, 11], [-1, 11], [-1, -1]]]}
    scene.write("region.json", json.dumps(square))
    scene.write("graph.csv", "one,other\n" + "".join(f"{one},{other}\n" for one, other in RING))
    return ran(scene, source="in.csv", sink=sections["sink"]["path"])
