"""Other packages next to shoal: anjana publishes the same input, pycanon measures every release.

Both need fixed versions of numpy and pandas, so they run in a process of their own, with the interpreter that has them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

from shoal.auditor import audit_table
from shoal.auditor.attacks.settings import Settings
from shoal.auditor.policy import read_policy
from shoal.auditor.reading.files import read
from shoal.auditor.reading.numbers import read_numbers
from shoal.auditor.reading.paths import Format
from shoal.auditor.report.evidence_report import describe_release
from shoal.auditor.rows.rules import LabelRule, NumberRule
from shoal.auditor.tuples.promise import TuplePromise, read_tuple_promise
from shoal.auditor.utility.workload import read_workload
from shoal.errors import PolicyError, RunError

PEERS: Final = ("anjana", "pycanon")
_SUPPRESSED: Final = 5
"""Percent of the records that anjana may suppress."""
_HALVINGS: Final = 5
"""Levels of a column of numbers: its domain in 32, 16, … parts."""

_ANJANA: Final = """
import json, sys
order = json.load(sys.stdin)
import numpy, pandas
from anjana.anonymity import k_anonymity
data = pandas.read_csv(order["path"], dtype=str, keep_default_na=False)
levels = {name: {at: numpy.array(level) for at, level in enumerate(own)} for name, own in order["levels"].items()}
found = k_anonymity(data, [], list(levels), order["k"], order["suppressed"], levels)
found.to_csv(order["out"], index=False)
"""
_PYCANON: Final = """
import json, sys
order = json.load(sys.stdin)
import pandas
from pycanon import anonymity
data, quasi = pandas.read_csv(order["path"], dtype=str, keep_default_na=False), order["quasi"]
found = {"k": int(anonymity.k_anonymity(data, quasi))}
for name in order["sensitive"]:
    found[f"l of {name}"] = int(anonymity.l_diversity(data, quasi, [name]))
json.dump(found, open(order["out"], "w"))
"""


def check_peers(peers: Sequence[str], methods: Sequence[str], python: str | None) -> None:
    """Raise an error for peers that are not known, not installed, or cannot be compared with these methods."""
    strange = [name for name in peers if name not in PEERS]
    if strange:
        raise PolicyError(f"peers: {', '.join(strange)} is not known; choose from {', '.join(PEERS)}")
    others = [name for name in methods if name in {"z-anonymity", "flexible-k"} or name.startswith("k^m")]
    if peers and others:
        raise PolicyError(f"peers: {', '.join(PEERS)} are about tables with k, l and t; {others[0]} is not")
    for name in peers:
        if _started(f"import {name}", "", python).returncode:
            raise RunError(
                f"peers: {name} is not installed; install it (pip install {name}), or, as it needs its own versions of "
                "numpy and pandas, in another environment, and name its interpreter with --peers-python"
            )


def publish_by_anjana(
    policy: Mapping[str, Any], truth: Any, *, k: int, targets: int, seed: int, workload: Any, python: str | None
) -> dict[str, Any]:
    """Publish the input by anjana's k-anonymity and describe the release like one of shoal."""
    content = {**policy, "anonymize": {**policy["anonymize"], "method": "least-loss", "k": k}}
    written = read_policy(content)
    promise = read_tuple_promise(written)
    rows = read(truth, name="truth", expected=Format.of_source(written.section("source")))
    names = [rule.name for rule in promise.quasi]
    rows.require(*names, *promise.sensitive)
    columns = {name: rows.text(name).to_pylist() for name in (*names, *promise.sensitive)}
    usable = np.ones(len(rows), np.bool_)
    levels = {}
    for rule in promise.quasi:
        columns[rule.name], own, known = _levels(rule, rows, columns[rule.name])
        levels[rule.name] = own
        usable &= known
    numbers = np.flatnonzero(usable)
    table = pa.table(
        {name: pa.array([column[at] or "" for at in numbers.tolist()], pa.string()) for name, column in columns.items()}
    ).append_column("shoal_row", pa.array(numbers.astype(str)))
    order = {"levels": levels, "k": k, "suppressed": _SUPPRESSED}
    with tempfile.TemporaryDirectory(prefix="shoal-peer-") as folder:
        found = _run("anjana", _ANJANA, table, order, Path(folder), python)
        texts = arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(table.column_names, pa.string()), strings_can_be_null=False
        )
        shown = arrow_csv.read_csv(found, convert_options=texts)
    trace = pa.table(
        {"row": pa.array([int(one) for one in shown.column("shoal_row").to_pylist()], pa.int64()),
         "verdict": ["released"] * len(shown), "group": np.zeros(len(shown), np.int64)}
    )  # fmt: skip
    release = shown.drop_columns(["shoal_row"])
    settings = Settings(None, targets, seed, lambda _: None)
    described = describe_release(
        "least-loss", written, release, truth, trace, None, settings, read_workload(workload)
    )  # fmt: skip
    described.pop("tried")
    return {**described, "audit": _audited(release, promise, shown.column("shoal_row"), rows), "delay": None,
            "release": release}  # fmt: skip


def _audited(release: pa.Table, promise: TuplePromise, numbers: Any, rows: Any) -> dict[str, Any]:
    """Count the people of every class: anjana counts rows."""
    judged, person = release, None
    if promise.person in rows.columns:
        names = rows.text(promise.person).to_pylist()
        judged = release.append_column(
            "shoal_person", pa.array([names[int(at)] for at in numbers.to_pylist()], pa.string())
        )
        person = "shoal_person"
    quasi = [rule.name for rule in promise.quasi]
    found: dict[str, Any] = audit_table(judged, quasi=quasi, person=person, k=promise.k).to_dict()
    return found


def _levels(rule: Any, rows: Any, texts: list[str | None]) -> tuple[list[str | None], list[list[str]], Any]:
    """Return the values as anjana gets them, its hierarchy (a list of labels for each level), and which are usable."""
    if isinstance(rule, LabelRule):
        leaf = rule.tree.is_leaf()
        known = np.array([text is not None and leaf.get(text, False) for text in texts], np.bool_)
        values = sorted(
            {text for text, is_known in zip(texts, known.tolist(), strict=True) if is_known and text is not None}
        )
        paths = [rule.tree.path(value) for value in values]
        depth = max((len(path) for path in paths), default=1)
        return texts, [[path[min(at, len(path) - 1)] for path in paths] for at in range(depth)], known
    assert isinstance(rule, NumberRule)
    if rule.is_moment:
        raise PolicyError(f"peers: column {rule.name} holds moments; anjana is compared on numbers and categories only")
    number = read_numbers(rows.pieces(rule.name)).value
    known = np.isfinite(number) & (number >= rule.low) & (number <= rule.high)
    spelt = [f"[{value:.17g}, {value:.17g}]" if is_known else None
             for value, is_known in zip(number.tolist(), known.tolist(), strict=True)]  # fmt: skip
    different = np.unique(number[known])
    own = [[f"[{value:.17g}, {value:.17g}]" for value in different.tolist()]]
    for parts in (2**power for power in range(_HALVINGS, -1, -1)):
        width = (rule.high - rule.low) / parts
        start = rule.low + np.minimum(np.floor((different - rule.low) / width), parts - 1) * width
        own.append([f"[{low:.17g}, {low + width:.17g}]" for low in start.tolist()])
    return spelt, own, known


def measure_by_pycanon(
    release: Any, quasi: Sequence[str], sensitive: Sequence[str], *, python: str | None
) -> dict[str, Any]:
    """Return k and l of a release by pycanon and by shoal's audit of tables; both count rows."""
    rows = read(release, name="release", expected=Format())
    table = pa.table({name: rows.text(name).cast(pa.string()).fill_null("") for name in (*quasi, *sensitive)})
    order = {"quasi": list(quasi), "sensitive": list(sensitive)}
    with tempfile.TemporaryDirectory(prefix="shoal-peer-") as folder:
        theirs = json.loads(_run("pycanon", _PYCANON, table, order, Path(folder), python).read_text())
    ours = audit_table(table, quasi=list(quasi), sensitive=list(sensitive)).metrics
    found = {"k": ours["smallest_k"], **{f"l of {name}": ours["l"][name] for name in sensitive}}
    return {"pycanon": theirs, "shoal": found, "agree": theirs == found}


def _run(name: str, script: str, table: pa.Table, order: Mapping[str, Any], folder: Path, python: str | None) -> Path:
    """Run a package on a table, in another process; return the file it wrote."""
    path, out = folder / "in.csv", folder / "out"
    arrow_csv.write_csv(table, path)
    given = json.dumps({**order, "path": str(path), "out": str(out)})
    done = _started(script, given, python)
    if done.returncode or not out.is_file():
        raise RunError(f"peers: {name} failed on this input; its last words: {_last_line(done.stderr)}")
    return out


def _started(script: str, given: str, python: str | None) -> Any:
    command = [python or sys.executable, "-c", script]
    try:
        return subprocess.run(command, input=given, text=True, capture_output=True, check=False)
    except OSError as error:
        raise PolicyError(f"peers-python: {python} cannot be started ({error.strerror})") from None


def _last_line(text: str) -> str:
    """Return the kind of error only: its message may quote a record."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].partition(":")[0] if lines else "none"
