"""Publish the same input with several settings, judge every release, and say which setting to take."""

from __future__ import annotations

import copy
import itertools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from shoal.auditor.report.comparison import Comparison, Setting
from shoal.auditor.report.evidence_report import report_evidence
from shoal.encode.sealed import is_sealed_trace, read_trace
from shoal.errors import PolicyError
from shoal.methods.registry import METHODS
from shoal.pipeline.peers import check_peers, measure_by_pycanon, publish_by_anjana
from shoal.pipeline.pipeline import Pipeline
from shoal.policy.loading import parse_policy, read_tables
from shoal.policy.methods import section_for

_KEPT: Final = ("stream", "source", "anonymize")
"""Sections of the policy that stay; rows go to a temporary folder."""
_MOST: Final = 100


def compare_settings(
    policy: str | Path,
    *,
    methods: Sequence[str] = (),
    varied: Mapping[str, Sequence[Any]] | None = None,
    targets: int = 500,
    seed: int = 1,
    max_risk: float = 0.05,
    workload: Any = None,
    peers: Sequence[str] = (),
    peers_python: str | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> Comparison:
    """Run a policy once for every combination of methods and values, and compare the releases.

    Parameters
    ----------
    policy
        The path of a policy that reads files. Nothing it names is written; releases are kept in a temporary folder
        and removed.
    methods
        Names of methods of the policy's family; by default the policy's own.
    varied
        Values by key of [anonymize], such as ``{"k": [5, 10]}``.
    max_risk
        The largest acceptable chance to find a person's row, by which a setting is chosen.
    workload
        Counts that matter, as for `report_evidence`: the error of these decides, in place of random counts.
    peers
        Packages to compare with: "anjana" (its k-anonymity of the same input, for every k) and "pycanon" (k and l of
        every release by its checks).
    peers_python
        The interpreter that has them; by default this one.
    """
    table, folder = read_tables(Path(policy)), Path(policy).absolute().parent
    own = str(table.get("anonymize", {}).get("method"))
    keys = dict(varied or {})
    combinations = list(itertools.product(methods or (own,), *keys.values()))
    if len(combinations) > _MOST:
        raise PolicyError(f"{len(combinations)} combinations are too many; compare at most {_MOST}")
    _check(methods, own, keys)
    check_peers(peers, methods or (own,), peers_python)
    found = []
    for number, (method, *values) in enumerate(combinations, start=1):
        chosen = dict(zip(keys, values, strict=True))
        name = " ".join([method, *(f"{key}={value}" for key, value in chosen.items())])
        progress(f"{number} of {len(combinations)}: {name}")
        with tempfile.TemporaryDirectory(prefix="shoal-compare-") as place:
            content = _publish_and_judge(_changed(table, method, chosen), folder, Path(place), targets, seed, workload)
            if "pycanon" in peers:
                content["checked"] = measure_by_pycanon(
                    Path(place) / "released.parquet", *_columns(table), python=peers_python
                )
        found.append(Setting(name, method, chosen, content))
    if "anjana" in peers:
        for k in keys.get("k", [table["anonymize"].get("k")]):
            progress(f"anjana k={k}")
            content = publish_by_anjana(
                _with_folder({name: table[name] for name in _KEPT if name in table}, folder), _truth(table, folder),
                k=k, targets=targets, seed=seed, workload=workload, python=peers_python,
            )  # fmt: skip
            if "pycanon" in peers:
                content["checked"] = measure_by_pycanon(content.pop("release"), *_columns(table), python=peers_python)
            found.append(Setting(f"anjana k={k}", "anjana", {"k": k}, content))
    return Comparison(tuple(found), max_risk)


def _columns(table: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The quasi-identifiers of a policy, and the sensitive columns that are published unchanged."""
    rules = table["anonymize"]
    quasi, sensitive = list(rules.get("quasi", {})), rules.get("sensitive", [])
    return quasi, [name for name in ([sensitive] if isinstance(sensitive, str) else sensitive) if name not in quasi]


def _check(methods: Sequence[str], own: str, keys: Mapping[str, Sequence[Any]]) -> None:
    known = METHODS.get(own)
    if known is None:
        raise PolicyError(f"[anonymize] method: unknown; choose from {', '.join(METHODS)}")
    fitting = [name for name, entry in METHODS.items() if entry.family == known.family]
    strange = [name for name in methods if name not in fitting]
    if strange:
        raise PolicyError(
            f"methods: {', '.join(strange)} cannot publish what {own} does; choose from {', '.join(fitting)}"
        )
    allowed = {field for name in methods or (own,) for field in _fields(name)}
    unknown = [key for key in keys if key not in allowed]
    if unknown:
        raise PolicyError(f"{', '.join(unknown)}: not a key of [anonymize] for {', '.join(methods or (own,))}")


def _fields(method: str) -> set[str]:
    model = section_for(method)
    assert model is not None
    return {field.alias or name for name, field in model.model_fields.items()}


def _changed(table: Mapping[str, Any], method: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the policy with another method and other values; keys that the method does not have are left out."""
    made = {name: copy.deepcopy(table[name]) for name in _KEPT if name in table}
    allowed = _fields(method)
    rules = {key: value for key, value in {**made["anonymize"], **chosen}.items() if key in allowed}
    made["anonymize"] = {**rules, "method": method}
    return made


def _publish_and_judge(
    table: dict[str, Any], folder: Path, place: Path, targets: int, seed: int, workload: Any
) -> dict[str, Any]:
    release, trace = place / "released.parquet", place / "trace.parquet"
    run = {
        **table,
        "sink": {"kind": "parquet", "path": str(release)},
        "trace": {"path": str(trace)},
        "dead_letters": {"path": str(place / "dead.jsonl")},
    }
    checked = parse_policy(run, folder=folder)
    Pipeline(checked).run()
    opened: Any = read_trace(trace) if is_sealed_trace(trace) else trace
    policy = _with_folder(run, folder)
    return report_evidence(
        release, _truth(table, folder), policy, trace=opened, targets=targets, seed=seed, workload=workload
    ).to_dict()


def _truth(table: Mapping[str, Any], folder: Path) -> Any:
    """The files that a policy reads."""
    given = table.get("source", {}).get("path")
    paths = [str(folder / one) for one in ([given] if isinstance(given, str) else list(given or ()))]
    return paths[0] if len(paths) == 1 else paths


def _with_folder(table: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the policy with absolute paths of hierarchies, as the auditor reads a policy without a file."""

    def absolute(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: absolute(inner, name) for name, inner in value.items()}
        return str(folder / value) if key in {"path", "ontology"} and isinstance(value, str) else value

    return {**table, "anonymize": absolute(table["anonymize"])}
