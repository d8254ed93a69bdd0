"""Compile the kernels of all methods before the tests, as a part of setting up, on all cores.

python -m tests.compile_once
"""

from __future__ import annotations

import sys

from shoal.methods.registry import METHODS
from shoal.pipeline.warmup import warm_all


def main() -> None:
    """Compile what is not compiled yet."""
    sys.stderr.write("compiling kernels where they are not compiled yet …\n")
    for name in warm_all(list(METHODS)):
        sys.stderr.write(f"compiled {name}\n")


if __name__ == "__main__":
    main()
