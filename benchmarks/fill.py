"""Fill the figures in README and docs from benchmarks/results, or check them.

python -m benchmarks.fill           # write the blocks
python -m benchmarks.fill --check   # change nothing; fail if a block differs, list blocks whose code has changed since

A block is between <!-- figures: BENCHMARK.TABLE --> and <!-- end -->, the table of goals (benchmarks/goals.py) between
<!-- goals --> and <!-- end -->. Do not edit them by hand.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from benchmarks import goals
from benchmarks.__main__ import LONG
from benchmarks.measure import RESULTS, markdown
from benchmarks.sources import ROOT, digest

BUSY = 1.2
"""A load above this means that other work was going on when the benchmark began, and its wall clock says little."""
BLOCK = re.compile(r"(<!-- figures: (\w+)\.(\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

GOALS = re.compile(r"(<!-- goals -->\n).*?(<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    """Pages that may have figures."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def read_result(name: str) -> dict[str, Any]:
    """What a benchmark wrote."""
    if not (RESULTS / f"{name}.json").is_file():
        sys.exit(f"benchmarks/results/{name}.json is not there: run python -m benchmarks.{name}")
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def rendered(name: str, block: str) -> str:
    """One block, with where its figures come from."""
    result = read_result(name)
    about = result["machine"]
    where = f"{about['cores']} cores of {about['processor']}, Python {about['python']}, Numba {about['numba']}"
    busy = f", busy with other work (load {result['load']:g})" if result.get("load", 0) > BUSY else ""
    when = f"`{result['command']}` on {result['date']}, {where}{busy}"
    origin = f"{when}; source `{result['stamp'][:8]}`; data: {result['data']}"
    return f"{markdown(result['blocks'][block])}\n\n<sub>{origin}</sub>\n"


def filled(text: str) -> str:
    """A page with all its blocks as the results have them."""
    text = BLOCK.sub(lambda found: found[1] + rendered(found[2], found[3]) + found[4], text)
    return GOALS.sub(lambda found: f"{found[1]}{goals.table()}\n{found[2]}", text)


def names_on(page: Path) -> list[str]:
    """Benchmarks that blocks of a page come from."""
    return sorted({found[2] for found in BLOCK.finditer(page.read_text(encoding="utf-8"))})


def stale() -> list[str]:
    """Pages with figures measured on code that has changed since, by which benchmarks, and what measures them again."""
    found = []
    for page in pages():
        old = [name for name in names_on(page) if _has_changed(read_result(name))]
        command = "make bench-all" if set(old) & set(LONG) else "make bench"
        if old:
            names = ", ".join(old)
            found.append(f"{page.relative_to(ROOT)}: figures older than the code: {names}; `{command}` measures again")
    return found


def _has_changed(result: dict[str, Any]) -> bool:
    return digest(result["sources"]) != result["stamp"]


def main() -> None:
    """Fill or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    different = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if filled(text) != text:
            different.append(str(page.relative_to(ROOT)))
            if not given.check:
                page.write_text(filled(text), encoding="utf-8")
    for line in stale():
        print(line)
    if different:
        print(("figures differ from benchmarks/results: " if given.check else "filled: ") + ", ".join(different))
    sys.exit(bool(given.check and different))


if __name__ == "__main__":
    main()
