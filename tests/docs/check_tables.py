"""Fill the table of audit codes from the declarations of the checks: python -m tests.docs.check_tables

The table is between <!-- checks --> and <!-- end checks -->.
"""

from __future__ import annotations

import re

from shoal.auditor.listing import table
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "reference" / "audit.md"
_BLOCK = re.compile(r"(<!-- checks -->\n).*?(<!-- end checks -->)", re.DOTALL)


def filled(text: str) -> str:
    """The page with the table as the checks describe themselves."""
    return _BLOCK.sub(lambda found: found[1] + table() + found[2], text)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
