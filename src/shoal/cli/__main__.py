"""`python -m shoal.cli`, the same as `shoal`."""

from __future__ import annotations

from shoal.cli.app import main

if __name__ == "__main__":
    main()
