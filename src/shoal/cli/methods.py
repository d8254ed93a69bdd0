"""`shoal methods`: every method with what it is for."""

from __future__ import annotations

import sys
from typing import Annotated, Final

from cyclopts import Parameter

_FAMILIES: Final = {
    "z": "events: who, when, what",
    "tuples": "rows with several quasi-identifiers",
    "sets": "one set of items per person",
    "flexible": "records with many rare values",
}


def methods(*, as_json: Annotated[bool, Parameter(name="--json", negative="")] = False) -> int:
    """List the methods, with what each is for.

    `method` in the `[anonymize]` table of a policy takes one of these names. `shoal init` recommends one for a file.

    Parameters
    ----------
    as_json
        Print the list as JSON.
    """
    from shoal.methods.registry import METHODS

    if as_json:
        import orjson

        listed = [
            {"name": one.name, "family": one.family, "class": f"shoal.{one.class_name}", "docs": one.docs,
             "summary": one.summary}
            for one in METHODS.values()
        ]  # fmt: skip
        print(orjson.dumps(listed, option=orjson.OPT_INDENT_2).decode(), file=sys.stdout)
        return 0
    for family, data in _FAMILIES.items():
        print(data, file=sys.stdout)
        for one in METHODS.values():
            if one.family == family:
                print(f"  {one.name:<18} {one.summary}", file=sys.stdout)
    return 0
