"""`python -m shoal.cli` does what `shoal` does."""

from __future__ import annotations

from shoal.cli.app import main

if __name__ == "__main__":
    main()
