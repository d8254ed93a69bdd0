"""Start `shoal` as a process of its own: the installed command, and `python -m shoal.cli`."""

from __future__ import annotations

import sys

from shoal.cli.app import main


class _WithoutPandas:
    """Hide pandas, except from Spark, which needs it.

    Arrow imports pandas, if it is installed, before it converts its first value. That takes longer than a small run,
    and no command uses data frames.
    """

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuse to find pandas; leave everything else to Python."""
        if name == "pandas" and "pyspark" not in sys.modules:
            raise ModuleNotFoundError("no command uses pandas", name=name)


def start() -> None:
    """Run the command line and end the process."""
    sys.meta_path.insert(0, _WithoutPandas())
    main()


if __name__ == "__main__":
    start()
