"""Compile most kernels before the tests, as a part of setting up: what the tests take is then what the tests take.

It makes a first `make test` no shorter: on two cores it takes 2 min 20 s that the tests took before.

python -m tests.compile_once
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor

FIRST = ("fads", "fast", "castle", "fads-varied")
"""Methods compiled in one process; all others in another beside it."""


def compile_share(*, is_first: bool) -> int:
    """Run a short stream through every method of one share."""
    from tests.laws.test_laws import CASES

    cases = [case for case in CASES if (case.method in FIRST) == is_first and "wrong-start" not in case.name]
    for case in cases:
        anonymizer = case.make()
        anonymizer.push_batch(case.stream)
        anonymizer.flush()
    return len(cases)


def main() -> None:
    """Both shares, side by side."""
    sys.stderr.write("compiling kernels where they are not yet, which takes two minutes or more …\n")
    with ProcessPoolExecutor(2) as pool:
        shares = [pool.submit(compile_share, is_first=is_first) for is_first in (True, False)]
    sys.stderr.write(f"they serve {sum(share.result() for share in shares)} kinds of streams\n")


if __name__ == "__main__":
    main()
